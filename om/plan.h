// Plan: the flat program that the runtime executes, as plain records. The only thing it reads.
//
// Control flow is jumps in one task list. Sizes are SizeExprs: postfix code over symbols. A symbol
// is bound by an input's dim (before the first task), or by a Bind task. Binds cut the list into
// segments: what depends on a late symbol is evaluated when its Bind has run. A static model has no
// symbols and every SizeExpr is one constant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ge::om {

// Postfix code of SizeExprs, evaluated on checked int64.
enum class SizeOp : uint8_t {
  kConst,
  kSymbol,
  kAdd,
  kMul,
  kFloorDiv,
  kMod,
  kMin,
  kMax,
  kSelect,
  kLt,
  kLe,
  kEq,
  kNe,
  kAnd,
  kOr,
  kNot
};
struct SizeCode {
  SizeOp op;
  int64_t value;  // constant, or symbol index
};
using SizeRef = int32_t;  // index into Plan::sizes; -1 = none
struct SizeExpr {
  uint32_t begin, end;  // range in Plan::size_code
};

struct Symbol {
  std::string name;
  int64_t lo, hi;  // inclusive; a value outside is a run error
  int64_t multiple_of;
  int32_t input = -1, dim = -1;  // bound by this input's dim; -1: by a Bind task
};

// Evaluated as soon as its symbols are bound; zero is a run error with `message`.
struct Check {
  SizeRef condition;
  std::string message;
};

enum class BufferKind : uint8_t {
  kInput,   // the caller's: index = input number. Dense ND, never written
  kOutput,  // the caller's: index = output number. Dense ND
  kConst,   // offset into the weights section
  kArena,   // planned: lifetime [first, last]; offset if static
  kPool,    // size depends on a symbol bound by a Bind task: grown on demand, kept by the Run
  kSlot,    // an object slot (string, sequence, optional): host tasks only
  kStore,   // backing store off the arena, at `offset`: spill and fetch only
};
struct Buffer {
  std::string name;  // source value's name
  BufferKind kind;
  uint8_t dtype;        // DType
  int32_t index = -1;   // kInput, kOutput, kSlot
  SizeRef bytes = -1;   // storage size (halo and pad lanes included)
  int64_t offset = -1;  // kConst: weights offset; kStore: place in the backing store;
                        // kArena: byte offset if planned at compile time, else -1 (placed at
                        // run time for each shape)
  int32_t first = -1, last = -1;  // kArena, kPool, kStore: tasks between which it lives, inclusive,
                                  // extended over backward jumps
  int32_t alias = -1;             // shares the memory of that buffer (root, never chained) ...
  SizeRef alias_offset = -1;      // ... at this byte offset (-1 = 0)
  std::vector<SizeRef> dims;      // logical dims (host tasks, outputs, printing)
};

struct Kernel {
  std::string name;  // for people
  std::string hash;  // identity
  std::string text;  // TileIR, if there is no native code for it; else empty
};

enum class TaskKind : uint8_t {
  kLaunch,      // kernel over grid chunks
  kHost,        // a host kernel of the runtime, by name
  kJump,        // to task `target`
  kJumpUnless,  // to `target` if the bool (or integer) in buffer args[0] is zero
  kBind,        // symbol = element `element` of integer buffer args[0] (or size result of a Host)
  kSpill,       // copies arena buffer args[0] to store buffer outs[0], which has its size
  kFetch,       // copies store buffer args[0] to arena buffer outs[0], which has its size
};
struct Task {
  TaskKind kind;
  std::string name;            // region or node, for traces
  int32_t kernel = -1;         // kLaunch
  std::vector<int32_t> args;   // buffer indices: kernel args in ABI order; Host: inputs
                               // (-1 = absent optional) ...
  std::vector<int32_t> outs;   // ... Host: outputs (-1 = not wanted); kLaunch: which args it writes
  std::vector<SizeRef> sizes;  // kLaunch: kernel size symbols in ABI order
  SizeRef grid = -1;           // kLaunch: number of chunks
  SizeRef scratch = -1;        // kLaunch: bytes per worker
  int64_t cost = 0;            // estimated ns of the whole task: small ones stay on one worker
  std::string host;            // kHost: registered name
  std::string attrs;           // kHost: "key=value\n" lines, see rt/host_kernel.h; kBind: "grows"
                               // where the symbol gets another value before it is used in checks
  std::vector<int32_t> binds;  // kHost: symbols that it binds, in the order of its size results;
                               // kBind: one symbol
  int64_t element = 0;         // kBind
  int32_t target = -1;         // kJump, kJumpUnless
  // kLaunch. -1: starts when all before it are over, and all workers share it. Else consecutive
  // tasks with a lane may run at once: each waits for the one before it in its lane, and for the
  // tasks of other lanes in `waits` (events), which stand before it in the list.
  int32_t lane = -1;
  std::vector<int32_t> waits;
};

struct IoTensor {
  std::string name;
  uint8_t dtype;
  std::vector<SizeRef> dims;  // inputs: constants or plain symbols; outputs: any
  int32_t buffer;
};

struct Plan {
  std::string model_name, chip;
  std::vector<SizeCode> size_code;
  std::vector<SizeExpr> sizes;
  std::vector<Symbol> symbols;
  std::vector<Check> checks;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Task> tasks;
  std::vector<IoTensor> inputs, outputs;
  int64_t arena_bytes = -1;  // if every arena buffer has an offset; else -1
  int32_t slots = 0;
};

}  // namespace ge::om
