// The interpreter: runs TileIR without a compiler. Each statement is compiled once to closures over
// rows (innermost vector loops and Reduces run as typed row loops, BrGemm natively).
#pragma once

#include <memory>

#include "abi/kernel_abi.h"
#include "tile/tile.h"

namespace ge::tile {

// Fills locals (Alloc) with NaN or 0xA5 before use, and aborts (GE_CHECK) on an access outside a
// buffer's `elements`.
class Interpreter {
 public:
  explicit Interpreter(const Kernel& kernel);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  // Same contract as a compiled kernel; thread-safe (all state is per call). call.scratch is
  // unused: locals are allocated by the interpreter.
  void Run(const ge_kernel_call& call, int64_t begin, int64_t end) const;
  int64_t Grid(const int64_t* sizes) const;

 private:
  struct Program;
  std::unique_ptr<const Program> program_;
};

// An ABI kernel whose call.self must point at an Interpreter.
extern "C" void GeInterpretKernel(const ge_kernel_call* call, int64_t begin, int64_t end);

}  // namespace ge::tile
