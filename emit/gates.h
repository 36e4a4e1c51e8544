// Gates: what emitted code must never contain. For tests; they run a disassembler.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace ge::emit {

// The innermost loops of micro-kernels: those of 8 or more multiply-adds (f32, pairs of bf16,
// groups of bytes; x86-64 and aarch64).
struct MicroKernels {
  int loops = 0;
  std::vector<std::string> spills;  // instructions in them that move a vector through the stack
};
Result<MicroKernels> FindSpills(const std::string& object_bytes);  // kUnavailable without objdump
// Symbols that the object needs from elsewhere; must be empty.
Result<std::vector<std::string>> UndefinedSymbols(const std::string& object_bytes);

}  // namespace ge::emit
