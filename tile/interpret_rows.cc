// Typed row loops of the interpreter: every operation on kLanes elements at a time. The formulas
// are those of tile/scalar.h.
#include <algorithm>

#include "abi/convert.h"
#include "tile/interpret_frame.h"
#include "tile/scalar.h"

namespace ge::tile::interpret {
namespace {

template <class T, class F>
void Unary(const Instr& i, Frame& f, int first, int count) {
  using R = decltype(F{}(T{}));
  const T* __restrict a = f.Row<T>(i.a) + first;
  R* __restrict d = f.Row<R>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = F{}(a[j]);
}

template <class T, class F>
void Binary(const Instr& i, Frame& f, int first, int count) {
  using R = decltype(F{}(T{}, T{}));
  const T* a = f.Row<T>(i.a) + first;
  const T* b = f.Row<T>(i.b) + first;
  R* __restrict d = f.Row<R>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = F{}(a[j], b[j]);
}

// By masks, which compilers turn into vector code.
template <class T>
void SelectOf(const Instr& i, Frame& f, int first, int count) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t,
                               std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;
  const uint8_t* c = f.Row<uint8_t>(i.a) + first;
  const U* a = f.Row<U>(i.b) + first;
  const U* b = f.Row<U>(i.c) + first;
  U* __restrict d = f.Row<U>(i.dst) + first;
  for (int j = 0; j < count; ++j) {
    const U mask = static_cast<U>(U{0} - c[j]);
    d[j] = static_cast<U>((a[j] & mask) | (b[j] & ~mask));
  }
}

void FmaOf(const Instr& i, Frame& f, int first, int count) {
  const float* a = f.Row<float>(i.a) + first;
  const float* b = f.Row<float>(i.b) + first;
  const float* c = f.Row<float>(i.c) + first;
  float* __restrict d = f.Row<float>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = std::fmaf(a[j], b[j], c[j]);
}

template <class From, class To>
void CastOf(const Instr& i, Frame& f, int first, int count) {
  const From* a = f.Row<From>(i.a) + first;
  To* __restrict d = f.Row<To>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = scalar::Cast<To>(a[j]);
}

template <class From, class To>
void BitCastOf(const Instr& i, Frame& f, int first, int count) {
  const From* a = f.Row<From>(i.a) + first;
  To* __restrict d = f.Row<To>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = scalar::BitCast<To>(a[j]);
}

template <class T>
void NarrowOf(const Instr& i, Frame& f, int first, int count) {
  const T* a = f.Row<T>(i.a) + first;
  T* __restrict d = f.Row<T>(i.dst) + first;
  alignas(8) uint8_t cell[8] = {};
  for (int j = 0; j < count; ++j) {
    StoreElement(i.storage, cell, 0, a[j]);
    d[j] = LoadElement<T>(i.storage, cell, 0);
  }
}

template <class T>
void SplatOf(const Instr& i, Frame& f, int first, int count) {
  const T v = *f.Row<T>(i.a);
  T* d = f.Row<T>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = v;
}

template <class T>
void MoveOf(const Instr& i, Frame& f, int first, int count) {
  const T* a = f.Row<T>(i.a) + first;
  std::copy(a, a + count, f.Row<T>(i.dst) + first);
}

void BoundsOf(const Instr& i, Frame& f, int first, int count) {
  const int64_t* a = f.Row<int64_t>(i.a) + first;
  int64_t lo = a[0], hi = a[0];
  for (int j = 1; j < count; ++j) {
    lo = std::min(lo, a[j]);
    hi = std::max(hi, a[j]);
  }
  f.Row<int64_t>(i.dst)[0] = lo;
  f.Row<int64_t>(i.dst)[1] = hi;
}

void Iota(const Instr& i, Frame& f, int first, int count) {
  const uint64_t stride = static_cast<uint64_t>(i.access.stride.Eval(f));
  const uint64_t base = static_cast<uint64_t>(i.access.base.Eval(f)) +
                        stride * static_cast<uint64_t>(f.lane_base + first);
  int64_t* d = f.Row<int64_t>(i.dst) + first;
  for (int j = 0; j < count; ++j) {
    d[j] = static_cast<int64_t>(base + stride * static_cast<uint64_t>(j));
  }
}

template <ExprKind K>
void ExprBinary(const Instr& i, Frame& f, int first, int count) {
  const int64_t* a = f.Row<int64_t>(i.a) + first;
  const int64_t* b = f.Row<int64_t>(i.b) + first;
  int64_t* __restrict d = f.Row<int64_t>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = Combine(K, a[j], b[j]);
}

void ExprNot(const Instr& i, Frame& f, int first, int count) {
  const int64_t* a = f.Row<int64_t>(i.a) + first;
  int64_t* d = f.Row<int64_t>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = a[j] == 0;
}

void ExprSelect(const Instr& i, Frame& f, int first, int count) {
  const int64_t* c = f.Row<int64_t>(i.a) + first;
  const int64_t* a = f.Row<int64_t>(i.b) + first;
  const int64_t* b = f.Row<int64_t>(i.c) + first;
  int64_t* d = f.Row<int64_t>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = c[j] ? a[j] : b[j];
}

template <ReduceOp K, class T>
T Reduced(T a, T b) {
  if constexpr (K == ReduceOp::kSum)
    return scalar::Add(a, b);
  else if constexpr (K == ReduceOp::kProd)
    return scalar::Mul(a, b);
  else if constexpr (K == ReduceOp::kMin)
    return scalar::Min(a, b);
  else if constexpr (K == ReduceOp::kMax)
    return scalar::Max(a, b);
  else if constexpr (scalar::kIsFloat<T>)
    return a;  // Verify refuses and, or of floats
  else if constexpr (K == ReduceOp::kAnd)
    return static_cast<T>(a & b);
  else
    return static_cast<T>(a | b);
}

template <ReduceOp K, class T>
T Identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (K == ReduceOp::kProd) return 1;
  if constexpr (K == ReduceOp::kMin) {
    if constexpr (scalar::kIsBool<T>)
      return 1;
    else
      return scalar::kIsFloat<T> ? Limits::infinity() : Limits::max();
  }
  if constexpr (K == ReduceOp::kMax)
    return scalar::kIsFloat<T> ? -Limits::infinity() : Limits::min();
  if constexpr (K == ReduceOp::kAnd) return scalar::kIsBool<T> ? T(1) : static_cast<T>(-1);
  return 0;
}

template <ReduceOp K, class T>
void Accumulate(const Instr& i, Frame& f, int first, int count) {
  const T* __restrict a = f.Row<T>(i.a) + first;
  T* __restrict d = f.Row<T>(i.dst) + first;
  for (int j = 0; j < count; ++j) d[j] = Reduced<K>(d[j], a[j]);
}

// Calls use.template operator()<K, T>().
template <class F>
void VisitReduce(ReduceOp op, DType type, F&& use) {
  scalar::VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    switch (op) {
      case ReduceOp::kSum: return use.template operator()<ReduceOp::kSum, T>();
      case ReduceOp::kProd: return use.template operator()<ReduceOp::kProd, T>();
      case ReduceOp::kMin: return use.template operator()<ReduceOp::kMin, T>();
      case ReduceOp::kMax: return use.template operator()<ReduceOp::kMax, T>();
      case ReduceOp::kAnd: return use.template operator()<ReduceOp::kAnd, T>();
      case ReduceOp::kOr: return use.template operator()<ReduceOp::kOr, T>();
    }
  });
}

}  // namespace

RowFn UnaryRow(Op op, DType type) {
  RowFn fn = nullptr;
  scalar::VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    scalar::VisitUnary<T>(op, [&](auto f) { fn = &Unary<T, decltype(f)>; });
  });
  return fn;
}

RowFn BinaryRow(Op op, DType type) {
  RowFn fn = nullptr;
  scalar::VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    scalar::VisitBinary<T>(op, [&](auto f) { fn = &Binary<T, decltype(f)>; });
  });
  return fn;
}

RowFn SelectRow(DType type) {
  RowFn fn = nullptr;
  scalar::VisitType(type, [&](auto zero) { fn = &SelectOf<decltype(zero)>; });
  return fn;
}

RowFn FmaRow() { return &FmaOf; }

RowFn CastRow(DType from, DType to) {
  RowFn fn = nullptr;
  scalar::VisitType(from, [&](auto a) {
    scalar::VisitType(to, [&](auto b) { fn = &CastOf<decltype(a), decltype(b)>; });
  });
  return fn;
}

RowFn BitCastRow(DType from, DType to) {
  RowFn fn = nullptr;
  scalar::VisitType(from, [&](auto a) {
    scalar::VisitType(to, [&](auto b) {
      if constexpr (sizeof a == sizeof b) fn = &BitCastOf<decltype(a), decltype(b)>;
    });
  });
  return fn;
}

RowFn NarrowRow(DType compute) {
  RowFn fn = nullptr;
  scalar::VisitType(compute, [&](auto zero) { fn = &NarrowOf<decltype(zero)>; });
  return fn;
}

RowFn MoveRow(DType type) {
  RowFn fn = nullptr;
  scalar::VisitType(type, [&](auto zero) { fn = &MoveOf<decltype(zero)>; });
  return fn;
}

RowFn SplatRow(DType type) {
  RowFn fn = nullptr;
  scalar::VisitType(type, [&](auto zero) { fn = &SplatOf<decltype(zero)>; });
  return fn;
}

RowFn BoundsRow() { return &BoundsOf; }

RowFn IotaRow() { return &Iota; }

RowFn ExprRow(ExprKind kind) {
  switch (kind) {
    case ExprKind::kAdd: return &ExprBinary<ExprKind::kAdd>;
    case ExprKind::kMul: return &ExprBinary<ExprKind::kMul>;
    case ExprKind::kFloorDiv: return &ExprBinary<ExprKind::kFloorDiv>;
    case ExprKind::kMod: return &ExprBinary<ExprKind::kMod>;
    case ExprKind::kMin: return &ExprBinary<ExprKind::kMin>;
    case ExprKind::kMax: return &ExprBinary<ExprKind::kMax>;
    case ExprKind::kLt: return &ExprBinary<ExprKind::kLt>;
    case ExprKind::kLe: return &ExprBinary<ExprKind::kLe>;
    case ExprKind::kEq: return &ExprBinary<ExprKind::kEq>;
    case ExprKind::kNe: return &ExprBinary<ExprKind::kNe>;
    case ExprKind::kAnd: return &ExprBinary<ExprKind::kAnd>;
    case ExprKind::kOr: return &ExprBinary<ExprKind::kOr>;
    case ExprKind::kNot: return &ExprNot;
    case ExprKind::kSelect: return &ExprSelect;
    default: return nullptr;
  }
}

RowFn ReduceRow(ReduceOp op, DType type) {
  RowFn fn = nullptr;
  VisitReduce(op, type, [&]<ReduceOp K, class T>() { fn = &Accumulate<K, T>; });
  return fn;
}

void FillIdentity(ReduceOp op, DType type, void* row, int count) {
  VisitReduce(op, type, [&]<ReduceOp K, class T>() {
    std::fill_n(static_cast<T*>(row), count, Identity<K, T>());
  });
}

void FoldLanes(ReduceOp op, DType type, void* row, int count) {
  VisitReduce(op, type, [&]<ReduceOp K, class T>() {
    T* v = static_cast<T*>(row);
    for (int n = count; n > 1;) {
      const int half = (n + 1) / 2;
      for (int j = 0; j + half < n; ++j) v[j] = Reduced<K>(v[j], v[j + half]);
      n = half;
    }
  });
}

}  // namespace ge::tile::interpret
