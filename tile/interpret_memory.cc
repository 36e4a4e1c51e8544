// Loads, stores, copies and Exprs of the interpreter: rows of elements between buffers and
// registers.
#include <algorithm>
#include <atomic>
#include <string>

#include "abi/convert.h"
#include "base/check.h"
#include "tile/interpret_frame.h"
#include "tile/scalar.h"

namespace ge::tile::interpret {
namespace {

// The offsets of lanes [first, first + count): start + stride * j, or row[j].
struct Offsets {
  int64_t start = 0, stride = 0;
  const int64_t* row = nullptr;
  int64_t operator[](int j) const { return row ? start + row[j] : start + stride * j; }
};

Offsets OffsetsOf(const Access& access, const Frame& f, int first, int count, const char* what) {
  Offsets o;
  if (access.index_row >= 0) {
    o.row = f.Row<int64_t>(access.index_row) + first;
    o.start = access.base.Eval(f);
    if (count > 0) {
      const int64_t* bounds = f.Row<int64_t>(access.bounds_row);
      CheckRange(f, access.buffer, o.start + bounds[0], o.start + bounds[1], what);
    }
    return o;
  }
  o.stride = access.stride.Eval(f);
  o.start = access.base.Eval(f) + o.stride * (f.lane_base + first);
  if (count > 0) {
    const int64_t last = o.start + o.stride * (count - 1);
    CheckRange(f, access.buffer, std::min(o.start, last), std::max(o.start, last), what);
  }
  return o;
}

// Storage types whose elements convert by a plain C++ conversion.
template <class S, class C>
void LoadPlain(const Instr& i, Frame& f, int first, int count) {
  const Offsets o = OffsetsOf(i.access, f, first, count, "load");
  const S* from = reinterpret_cast<const S*>(f.buffers[i.access.buffer]);
  C* __restrict d = f.Row<C>(i.dst) + first;
  if (o.row) {
    const S* base = from + o.start;
    for (int j = 0; j < count; ++j) d[j] = static_cast<C>(base[o.row[j]]);
  } else if (o.stride == 1) {
    const S* __restrict p = from + o.start;
    for (int j = 0; j < count; ++j) d[j] = static_cast<C>(p[j]);
  } else if (o.stride == 0) {
    std::fill_n(d, count, static_cast<C>(from[o.start]));
  } else {
    for (int j = 0; j < count; ++j) d[j] = static_cast<C>(from[o.start + o.stride * j]);
  }
}

template <DType S, class C>
void LoadCoded(const Instr& i, Frame& f, int first, int count) {
  const Offsets o = OffsetsOf(i.access, f, first, count, "load");
  const void* from = f.buffers[i.access.buffer];
  C* __restrict d = f.Row<C>(i.dst) + first;
  if (!o.row && o.stride == 0) {
    std::fill_n(d, count, LoadElement<C>(S, from, o.start));
    return;
  }
  for (int j = 0; j < count; ++j) d[j] = LoadElement<C>(S, from, o[j]);
}

template <class S, class C>
void StorePlain(const Access& access, Frame& f, const void* row, int first, int count) {
  const Offsets o = OffsetsOf(access, f, first, count, "store");
  S* to = reinterpret_cast<S*>(f.buffers[access.buffer]);
  const C* __restrict v = static_cast<const C*>(row) + first;
  if (!o.row && o.stride == 1) {
    S* __restrict p = to + o.start;
    for (int j = 0; j < count; ++j) p[j] = static_cast<S>(v[j]);
  } else {
    for (int j = 0; j < count; ++j) to[o[j]] = static_cast<S>(v[j]);
  }
}

template <DType S, class C>
void StoreCoded(const Access& access, Frame& f, const void* row, int first, int count) {
  const Offsets o = OffsetsOf(access, f, first, count, "store");
  void* to = f.buffers[access.buffer];
  const C* v = static_cast<const C*>(row) + first;
  for (int j = 0; j < count; ++j) StoreElement(S, to, o[j], v[j]);
}

// Two workers may store to one byte: a packed element is replaced atomically.
template <DType S, int kBits, class C>
void StorePacked(const Access& access, Frame& f, const void* row, int first, int count) {
  const Offsets o = OffsetsOf(access, f, first, count, "store");
  uint8_t* to = reinterpret_cast<uint8_t*>(f.buffers[access.buffer]);
  const C* v = static_cast<const C*>(row) + first;
  constexpr int kPerByte = 8 / kBits;
  constexpr unsigned kMask = (1u << kBits) - 1;
  for (int j = 0; j < count; ++j) {
    uint8_t cell = 0;
    StoreElement(S, &cell, 0, v[j]);
    const int shift = static_cast<int>(o[j] % kPerByte) * kBits;
    std::atomic_ref<uint8_t> byte(to[o[j] / kPerByte]);
    uint8_t old = byte.load(std::memory_order_relaxed), now;
    do {
      now = static_cast<uint8_t>((old & ~(kMask << shift)) | (cell & kMask) << shift);
    } while (!byte.compare_exchange_weak(old, now, std::memory_order_relaxed));
  }
}

void StoreBool(const Access& access, Frame& f, const void* row, int first, int count) {
  const Offsets o = OffsetsOf(access, f, first, count, "store");
  uint8_t* to = reinterpret_cast<uint8_t*>(f.buffers[access.buffer]);
  const uint8_t* v = static_cast<const uint8_t*>(row) + first;
  for (int j = 0; j < count; ++j) to[o[j]] = v[j] != 0;
}

template <class T>
void CopyAs(const Offsets& from, const Offsets& to, const std::byte* src, std::byte* dst,
            int count) {
  const T* s = reinterpret_cast<const T*>(src);
  T* d = reinterpret_cast<T*>(dst);
  if (!from.row && !to.row && from.stride == 1 && to.stride == 1) {
    std::memmove(d + to.start, s + from.start, sizeof(T) * static_cast<size_t>(count));
    return;
  }
  for (int j = 0; j < count; ++j) d[to[j]] = s[from[j]];
}

}  // namespace

int64_t Combine(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case ExprKind::kAdd: return scalar::Add(a, b);
    case ExprKind::kMul: return scalar::Mul(a, b);
    case ExprKind::kFloorDiv: {
      if (((a | b) >> 31) == 0 && b != 0)
        return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
      const int64_t q = scalar::Div(a, b);
      return b != 0 && scalar::Mul(q, b) != a && (a < 0) != (b < 0) ? q - 1 : q;
    }
    case ExprKind::kMod:
      if (((a | b) >> 31) == 0 && b != 0)
        return static_cast<uint32_t>(a) % static_cast<uint32_t>(b);
      return scalar::FloorMod(a, b);
    case ExprKind::kMin: return a < b ? a : b;
    case ExprKind::kMax: return a > b ? a : b;
    case ExprKind::kLt: return a < b;
    case ExprKind::kLe: return a <= b;
    case ExprKind::kEq: return a == b;
    case ExprKind::kNe: return a != b;
    case ExprKind::kAnd: return a != 0 && b != 0;
    case ExprKind::kOr: return a != 0 || b != 0;
    default: GE_CHECK(false, "not a binary Expr"); return 0;
  }
}

int64_t ExprCode::EvalPost(const Frame& f) const {
  constexpr int kDepth = 64;
  int64_t stack[kDepth];
  int top = 0;
  for (const PostOp& op : post) {
    switch (op.kind) {
      case ExprKind::kConst: stack[top++] = op.value; break;
      case ExprKind::kSymbol: stack[top++] = f.slots[op.value]; break;
      case ExprKind::kNot: stack[top - 1] = stack[top - 1] == 0; break;
      case ExprKind::kSelect:
        top -= 2;
        stack[top - 1] = stack[top - 1] ? stack[top] : stack[top + 1];
        break;
      default:
        --top;
        stack[top - 1] = Combine(op.kind, stack[top - 1], stack[top]);
        break;
    }
    GE_CHECK(top < kDepth, "an index expression is too deep");
  }
  return stack[0];
}

void CheckRange(const Frame& f, int buffer, int64_t lo, int64_t hi, const char* what) {
  const int64_t capacity = f.elements[buffer];
  if (lo >= 0 && hi < capacity) [[likely]]
    return;
  const int64_t bad = lo < 0 ? lo : hi;
  GE_CHECK(false, "kernel " + f.kernel->name + ": " + what + " of " +
                      f.kernel->buffers[buffer].name + "[" + std::to_string(bad) + "], capacity " +
                      std::to_string(capacity));
}

RowFn LoadRow(DType storage) {
  switch (storage) {
    case DType::kF32: return &LoadPlain<float, float>;
    case DType::kF64: return &LoadPlain<double, double>;
    case DType::kI8: return &LoadPlain<int8_t, int32_t>;
    case DType::kU8: return &LoadPlain<uint8_t, int32_t>;
    case DType::kI16: return &LoadPlain<int16_t, int32_t>;
    case DType::kU16: return &LoadPlain<uint16_t, int32_t>;
    case DType::kI32: return &LoadPlain<int32_t, int32_t>;
    case DType::kU32: return &LoadPlain<uint32_t, int64_t>;
    case DType::kI64: return &LoadPlain<int64_t, int64_t>;
    case DType::kU64: return &LoadPlain<uint64_t, uint64_t>;
    case DType::kBool: return &LoadCoded<DType::kBool, uint8_t>;
    case DType::kU4: return &LoadCoded<DType::kU4, int32_t>;
    case DType::kI4: return &LoadCoded<DType::kI4, int32_t>;
    case DType::kU2: return &LoadCoded<DType::kU2, int32_t>;
    case DType::kI2: return &LoadCoded<DType::kI2, int32_t>;
    case DType::kF16: return &LoadCoded<DType::kF16, float>;
    case DType::kBF16: return &LoadCoded<DType::kBF16, float>;
    case DType::kF4E2M1: return &LoadCoded<DType::kF4E2M1, float>;
    case DType::kF8E4M3FN: return &LoadCoded<DType::kF8E4M3FN, float>;
    case DType::kF8E4M3FNUZ: return &LoadCoded<DType::kF8E4M3FNUZ, float>;
    case DType::kF8E5M2: return &LoadCoded<DType::kF8E5M2, float>;
    case DType::kF8E5M2FNUZ: return &LoadCoded<DType::kF8E5M2FNUZ, float>;
    case DType::kF8E8M0: return &LoadCoded<DType::kF8E8M0, float>;
    default: return nullptr;
  }
}

StoreFn StoreRow(DType storage) {
  switch (storage) {
    case DType::kF32: return &StorePlain<float, float>;
    case DType::kF64: return &StorePlain<double, double>;
    case DType::kI8:
    case DType::kU8: return &StorePlain<uint8_t, int32_t>;
    case DType::kI16:
    case DType::kU16: return &StorePlain<uint16_t, int32_t>;
    case DType::kI32: return &StorePlain<int32_t, int32_t>;
    case DType::kU32: return &StorePlain<uint32_t, int64_t>;
    case DType::kI64: return &StorePlain<int64_t, int64_t>;
    case DType::kU64: return &StorePlain<uint64_t, uint64_t>;
    case DType::kBool: return &StoreBool;
    case DType::kU4: return &StorePacked<DType::kU4, 4, int32_t>;
    case DType::kI4: return &StorePacked<DType::kI4, 4, int32_t>;
    case DType::kU2: return &StorePacked<DType::kU2, 2, int32_t>;
    case DType::kI2: return &StorePacked<DType::kI2, 2, int32_t>;
    case DType::kF4E2M1: return &StorePacked<DType::kF4E2M1, 4, float>;
    case DType::kF16: return &StoreCoded<DType::kF16, float>;
    case DType::kBF16: return &StoreCoded<DType::kBF16, float>;
    case DType::kF8E4M3FN: return &StoreCoded<DType::kF8E4M3FN, float>;
    case DType::kF8E4M3FNUZ: return &StoreCoded<DType::kF8E4M3FNUZ, float>;
    case DType::kF8E5M2: return &StoreCoded<DType::kF8E5M2, float>;
    case DType::kF8E5M2FNUZ: return &StoreCoded<DType::kF8E5M2FNUZ, float>;
    case DType::kF8E8M0: return &StoreCoded<DType::kF8E8M0, float>;
    default: return nullptr;
  }
}

void CopyRow(const Access& from, const Access& to, int bytes, Frame& f, int first, int count) {
  const Offsets a = OffsetsOf(from, f, first, count, "load");
  const Offsets b = OffsetsOf(to, f, first, count, "store");
  const std::byte* src = f.buffers[from.buffer];
  std::byte* dst = f.buffers[to.buffer];
  if (bytes == 1) CopyAs<uint8_t>(a, b, src, dst, count);
  if (bytes == 2) CopyAs<uint16_t>(a, b, src, dst, count);
  if (bytes == 4) CopyAs<uint32_t>(a, b, src, dst, count);
  if (bytes == 8) CopyAs<uint64_t>(a, b, src, dst, count);
}

}  // namespace ge::tile::interpret
