// TileIR: one kernel as loops, lets and stores. Both backends read it: the interpreter
// (tile/interpret.h: oracle and constant folder) and the C printer (emit/).
//
// Values are computed in f32, f64, i32, i64, u64 and bool only. Every other dtype is *storage*:
// Load widens to ComputeType(buffer dtype), Store rounds (floats: nearest even; integers: wrap).
// Addresses are Exprs (element offsets, int64) over loop variables and size symbols; data-dependent
// positions enter through Let with an index symbol. Integer arithmetic wraps; integer division by
// zero gives 0; float semantics are IEEE with denormals flushed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "abi/dtype.h"
#include "base/status.h"
#include "expr/expr.h"

namespace ge::tile {

enum class Op : uint8_t {
  kConst,  // f (floats) or i (integers, bool)
  kIndex,  // index: an Expr as an i64 value
  kVar,    // var: a value bound by Let, Reduce or BrGemm
  kLoad,   // buffer, index; negative or too large offsets are a bug
  // unary, on a
  kNeg,
  kAbs,
  kSign,
  kNot /*bool*/,
  kBitNot,
  kSqrt,
  kRcp /*1/x*/,
  kFloor,
  kCeil,
  kRound /*half to even*/,
  kTrunc,
  kExp,
  kLog,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kGelu /*x Phi(x)*/,
  kIsNan,
  kIsInf,
  kLgamma,
  kExpm1,
  kLog1p,
  kCast,     // a to `type` (saturating float->int: NaN gives 0; int->int wraps; to bool: != 0)
  kNarrow,   // a rounded to what `storage` can hold, still in its compute type (as Store then Load)
  kBitCast,  // same width
  // binary, on a and b (same type)
  kAdd,
  kSub,
  kMul,
  kDiv /*ints: truncate*/,
  kFloorMod /*sign of b*/,
  kFmod /*sign of a*/,
  kPow,
  kMin,
  kMax /*NaN wins*/,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr /*logical for u64, arithmetic else*/,
  kAtan2,
  kLt,
  kLe,
  kEq,
  kNe,  // give bool; NaN compares false (kNe true)
  // ternary
  kSelect,  // a ? b : c
  kFma,     // a * b + c, rounded once; f32 only
};

using ExprId = int32_t;
using VarId = int32_t;

// A node of the kernel's value pool. Nodes are hash-consed: equal ones have one id.
struct ValueNode {
  Op op = Op::kConst;
  DType type = DType::kF32;      // a compute type
  DType storage = DType::kNone;  // kNarrow
  ExprId a = -1, b = -1, c = -1;
  int32_t buffer = -1;  // kLoad
  VarId var = -1;       // kVar
  Expr index;           // kIndex, kLoad
  double f = 0;
  int64_t i = 0;
  friend bool operator==(const ValueNode&, const ValueNode&) = default;
};

struct Buffer {
  std::string name;
  DType dtype = DType::kF32;
  bool is_arg = true;    // else local to one chunk (stack or scratch)
  bool written = false;  // args: the kernel stores to it
  Expr elements = 0;     // capacity
  double within = kAny;  // args of f32: no element is NaN or greater than this, up to sign
  static constexpr double kAny = __builtin_huge_val();
};

// A variable bound by Let, Reduce or BrGemm. If `index` is a symbol, the value is an i64 that Exprs
// may use under that symbol.
struct Var {
  DType type = DType::kF32;
  Expr index = 0;
};

enum class StmtKind : uint8_t { kBlock, kLoop, kAlloc, kLet, kReduce, kIf, kStore, kBrGemm };
enum class LoopKind : uint8_t {
  kSerial,
  kParallel,  // the kernel's outermost statement at most: its extent is the grid
  kVector,    // iterations are independent; may run any number at once
  kUnrolled,
};
enum class ReduceOp : uint8_t { kSum, kProd, kMin, kMax, kAnd, kOr };

// C[row, col] = sum over batch vars and k < k_extent of A[a + row*a_row + k*a_k] * B[b + k*b_k +
// col]. f32 accumulators (f64 for f64 inputs, i32 for u8/i8); then `body` runs once per (row, col)
// with `acc` bound: rows by `row` in [0, m), columns by `col` in [0, n); as if it were a Loop over
// rows of a vector Loop over columns. Only columns col < n_valid reach `body` (B is padded to n).
// k_group = 4 (A u8 or i8, B i8): B holds four steps of k side by side, element (k, col) at b + (k
// / 4) * b_k + col * 4 + k % 4; k is a multiple of 4, a_k is 1. i8 in A counts as its value + 128,
// unless signed_a.
// k_group = 2 (A and B bf16): the same in pairs; the order in which a pair is added is not fixed.
struct BrGemm {
  int m = 1, n = 16;
  Expr n_valid = 16;
  Expr k = 1;
  std::vector<std::pair<Expr, Expr>> batch;  // (symbol, extent), outermost first
  int32_t a_buffer = -1, b_buffer = -1;
  Expr a, a_row, a_k;     // a may use batch symbols and row; all element counts
  Expr b, b_k;            // b may use batch symbols
  int k_group = 1;        // steps of k side by side in B: 1, 2 or 4
  bool signed_a = false;  // as matrix units have it: for tiles that one can hold only
  int prefetch = 0;       // elements ahead in B to prefetch; 0 = none
  Expr row, col;          // symbols
  VarId acc = -1;
};

struct Stmt {
  StmtKind kind = StmtKind::kBlock;
  std::vector<Stmt> body;  // Block, Loop, Alloc (its scope), If (then), BrGemm (epilogue),
                           // Reduce (statements before `value`, run in each step: Lets and Reduces)
  std::vector<Stmt> orelse;  // If
  // Loop: var in [0, extent)
  LoopKind loop = LoopKind::kSerial;
  Expr symbol, extent;
  // Alloc: buffer. Store: buffer[index] = value.
  int32_t buffer = -1;
  Expr index;
  ExprId value = -1;  // Store, Let, If (condition, bool), Reduce
  VarId var = -1;     // Let, Reduce: the variable bound (scope: the rest of the block)
  // Reduce: var = op over the axes of value. Sums may be split in lanes by a fixed rule.
  ReduceOp reduce = ReduceOp::kSum;
  std::vector<std::pair<Expr, Expr>> axes;  // (symbol, extent), outermost first
  BrGemm gemm;                              // BrGemm
};

// One kernel. Buffers that are args come first, in ABI order. `symbols` are the size symbols in ABI
// order; all others in its Exprs are bound inside.
struct Kernel {
  std::string name;  // for people: the region's name
  std::vector<Buffer> buffers;
  std::vector<Expr> symbols;
  std::vector<Var> vars;
  std::vector<ValueNode> values;
  Stmt body;  // a Block

  ExprId Add(const ValueNode& node);  // hash-consed
  Expr Grid() const;                  // extent of the outermost parallel loop, else 1
  int NumArgs() const;

 private:
  std::unordered_multimap<size_t, ExprId> index_;
};

// Gathers the free size symbols of every Expr of `k` into k.symbols (sorted by name).
void CollectSizeSymbols(Kernel& k);

// Where locals lie: offsets into the worker's scratch block; locals of a constant size of at most
// 4096 bytes are on the stack (offset -1).
struct ScratchPlan {
  std::vector<Expr> offset;  // per buffer; -1 for args and stack
  Expr bytes = 0;
};
ScratchPlan PlanScratch(const Kernel& k);

// Text. `canonical` renames buffers, symbols, variables and drops the kernel's name, so that equal
// code prints equally: its hash is the kernel's identity.
std::string ToString(const Kernel& k, bool canonical = false);
Result<Kernel> ParseKernel(std::string_view text, ExprArena& arena);
// Structural legality: types of operands, scopes of symbols and variables, parallel loop outermost,
// buffer ids. Returns every fault.
Status Verify(const Kernel& k);

}  // namespace ge::tile
