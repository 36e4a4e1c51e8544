// The parts that the interpreter's program is made of; private to tile/interpret*.cc.
//
// Values live in rows of kLanes elements. A statement runs either once (lane 0 of its rows) or,
// inside a lane scope (a vector loop, the inner axis of a Reduce, the columns of a BrGemm), for the
// lanes [first, first + count) of the frame at once; lane j stands for the lane symbol's value
// lane_base + j. An instruction marked uniform computes lane 0 only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tile/tile.h"

namespace ge::tile::interpret {

inline constexpr int kLanes = 256;
inline constexpr int kRowBytes = kLanes * 8;

// Symbols that are uniform have a slot with their value.
struct Frame {
  int64_t* slots = nullptr;
  std::byte* rows = nullptr;
  std::byte** buffers = nullptr;  // per kernel buffer
  int64_t* elements = nullptr;    // capacities
  const Kernel* kernel = nullptr;
  int64_t lane_base = 0;
  int first = 0, count = 1;
  int64_t grid_begin = 0, grid_end = 1;
  std::vector<std::vector<std::byte>>* locals = nullptr;

  template <class T>
  T* Row(int row) const {
    return reinterpret_cast<T*>(rows + static_cast<int64_t>(row) * kRowBytes);
  }
};

// An Expr over slots: constant + sum of coefficient * slot, or a postfix program.
struct ExprCode {
  struct Term {
    int slot;
    int64_t coefficient;
  };
  struct PostOp {
    ExprKind kind;      // kConst pushes `value`, kSymbol pushes slots[value]; others pop their args
    int64_t value = 0;  // of n-ary operations: the number of args
  };
  int64_t constant = 0;
  std::vector<Term> terms;
  std::vector<PostOp> post;

  int64_t Eval(const Frame& f) const {
    if (!post.empty()) return EvalPost(f);
    int64_t v = constant;
    for (const Term& t : terms) {
      v = static_cast<int64_t>(static_cast<uint64_t>(v) + static_cast<uint64_t>(f.slots[t.slot]) *
                                                              static_cast<uint64_t>(t.coefficient));
    }
    return v;
  }

 private:
  int64_t EvalPost(const Frame& f) const;
};

// One Expr operation on two values (kAdd ... kOr); division by zero gives 0.
int64_t Combine(ExprKind kind, int64_t a, int64_t b);

// Where a load or store goes: base + stride * lane value, or base + row[lane] where the row
// `bounds_row` holds the least and the greatest of the row.
struct Access {
  int buffer = -1;
  ExprCode base, stride;
  int index_row = -1, bounds_row = -1;
};

struct Instr;
using RowFn = void (*)(const Instr&, Frame&, int first, int count);

struct Instr {
  RowFn fn = nullptr;
  int dst = -1, a = -1, b = -1, c = -1;  // rows
  bool uniform = false;
  DType storage = DType::kNone;  // kNarrow
  Access access;                 // loads; for index rows, base and stride
  int64_t imm = 0;
};

using Code = std::vector<Instr>;

inline void RunCode(const Code& code, Frame& f) {
  for (const Instr& i : code) {
    if (i.uniform)
      i.fn(i, f, 0, 1);
    else
      i.fn(i, f, f.first, f.count);
  }
}

// Row functions. Null if the operation does not exist for the type.
RowFn UnaryRow(Op op, DType type);
RowFn BinaryRow(Op op, DType type);
RowFn SelectRow(DType type);
RowFn FmaRow();  // f32
RowFn CastRow(DType from, DType to);
RowFn BitCastRow(DType from, DType to);
RowFn NarrowRow(DType compute);
RowFn MoveRow(DType type);     // dst = a
RowFn SplatRow(DType type);    // dst lanes = a's lane 0
RowFn BoundsRow();             // dst[0], dst[1] = least and greatest of a's lanes, i64
RowFn IotaRow();               // dst = base + stride * (lane_base + lane), i64
RowFn ExprRow(ExprKind kind);  // i64 rows; kNot unary, kSelect ternary
RowFn LoadRow(DType storage);
RowFn ReduceRow(ReduceOp op, DType type);  // dst = op(dst, a)
void FillIdentity(ReduceOp op, DType type, void* row, int count);
// Combines `count` lanes of a row into lane 0 by a fixed tree.
void FoldLanes(ReduceOp op, DType type, void* row, int count);

using StoreFn = void (*)(const Access&, Frame&, const void* row, int first, int count);
StoreFn StoreRow(DType storage);
// Moves elements as they are, from one access to the other.
void CopyRow(const Access& from, const Access& to, int bytes, Frame& f, int first, int count);

// Aborts with the kernel, the buffer and the offset if lo or hi is outside the buffer.
void CheckRange(const Frame& f, int buffer, int64_t lo, int64_t hi, const char* what);

// A BrGemm without its epilogue: fills acc (m rows of n, f32, f64 or i32).
struct GemmCode {
  int m = 0, n = 0;
  int a_buffer = -1, b_buffer = -1;
  DType a_type = DType::kF32, b_type = DType::kF32;
  ExprCode k, a, a_row, a_k, b, b_k;
  int k_group = 1;
  bool signed_a = false;
  int row_slot = -1;  // of the row, where A's place depends on it
  struct Batch {
    int slot;
    ExprCode extent;
  };
  std::vector<Batch> batch;
};
void RunGemm(const GemmCode& g, Frame& f, void* acc);

}  // namespace ge::tile::interpret
