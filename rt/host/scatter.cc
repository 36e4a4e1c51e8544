// ScatterElements, ScatterND, TensorScatter: a copy of the data, then the updates in their order.
#include <algorithm>
#include <cmath>

#include "abi/convert.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMin, kMax };

Status ReductionOf(const HostCall& call, Reduction* r) {
  const std::string name = call.attrs.Str("reduction", "none");
  const char* const names[] = {"none", "add", "mul", "min", "max"};
  for (int i = 0; i < 5; ++i)
    if (name == names[i]) {
      *r = static_cast<Reduction>(i);
      return {};
    }
  return Invalid("reduction '" + name + "'");
}

template <class T>
T Combine(Reduction r, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (r == Reduction::kMin || r == Reduction::kMax) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
  }
  switch (r) {
    case Reduction::kAdd: return a + b;
    case Reduction::kMul: return a * b;
    case Reduction::kMin: return std::min(a, b);
    case Reduction::kMax: return std::max(a, b);
    case Reduction::kNone: break;
  }
  return b;
}

template <class T>
void Apply(Reduction r, DType t, void* y, int64_t at, const void* u, int64_t from) {
  StoreElement<T>(t, y, at, Combine<T>(r, LoadElement<T>(t, y, at), LoadElement<T>(t, u, from)));
}

// Of a type that is computed in as it is stored.
template <class T>
void UpdateRow(Reduction r, T* y, const T* u, int64_t count) {
  constexpr int64_t kStep = 16;  // a number that the compiler knows becomes vectors
  int64_t i = 0;
  if (r == Reduction::kAdd) {
    for (; i + kStep <= count; i += kStep) {
      T sum[kStep];
      for (int64_t j = 0; j < kStep; ++j) sum[j] = y[i + j] + u[i + j];
      for (int64_t j = 0; j < kStep; ++j) y[i + j] = sum[j];
    }
  }
  for (; i < count; ++i) y[i] = Combine<T>(r, y[i], u[i]);
}

// y[at .. at+count) = reduction of itself and u[from ..).
void Update(Reduction r, DType t, void* y, int64_t at, const void* u, int64_t from, int64_t count) {
  if (r == Reduction::kNone) return CopyElements(t, u, from, y, at, count);
  if (t == DType::kF32)
    return UpdateRow(r, static_cast<float*>(y) + at, static_cast<const float*>(u) + from, count);
  if (t == DType::kF64)
    return UpdateRow(r, static_cast<double*>(y) + at, static_cast<const double*>(u) + from, count);
  for (int64_t i = 0; i < count; ++i) {
    if (IsFloat(t))
      Apply<float>(r, t, y, at + i, u, from + i);
    else if (t == DType::kBool || !IsSigned(t))
      Apply<uint64_t>(r, t, y, at + i, u, from + i);
    // Unsigned arithmetic wraps where signed would overflow.
    else if (r == Reduction::kAdd || r == Reduction::kMul) {
      const auto a = static_cast<uint64_t>(LoadElement<int64_t>(t, y, at + i)),
                 b = static_cast<uint64_t>(LoadElement<int64_t>(t, u, from + i));
      StoreElement<int64_t>(t, y, at + i, static_cast<int64_t>(Combine<uint64_t>(r, a, b)));
    } else {
      Apply<int64_t>(r, t, y, at + i, u, from + i);
    }
  }
}

struct Operands {
  HostTensor x, i, u;
  Reduction reduction;
  void* y;
};

// Checks what both scatters need and copies x to y.
Status Begin(HostCall& call, Operands* o) {
  GE_TRY(CheckCall(call, 3, 1));
  GE_TRY(TensorIn(call, 0, &o->x));
  GE_TRY(TensorIn(call, 1, &o->i));
  GE_TRY(TensorIn(call, 2, &o->u));
  GE_TRY(CheckIndexType(o->i, "indices"));
  GE_TRY(ReductionOf(call, &o->reduction));
  if (o->u.dtype != o->x.dtype) return Invalid("updates and data have different types");
  GE_TRY(Claim(call, 0, o->x.dims, &o->y));
  if (o->y != nullptr && o->y != o->x.data)
    CopyElements(TypeOf(o->x), o->x.data, 0, o->y, 0, Count(o->x.dims));
  return {};
}

// Updates from.. of one line. Whole words are copied as such, or added.
template <class Word, class I, bool kSum = false>
Status CopyLine(const Operands& o, int64_t base, int64_t from, int64_t count, int64_t dim,
                int64_t step, int64_t along) {
  auto* y = static_cast<Word*>(o.y) + base;
  const auto* u = static_cast<const Word*>(o.u.data) + from;
  const auto* at = static_cast<const I*>(o.i.data) + from;
  for (int64_t j = 0; j < count; ++j) {
    int64_t index = at[j];
    if (index < 0 || index >= dim) GE_TRY(WrapIndex(&index, dim, "index"));
    Word& to = y[index * step + j * along];
    to = kSum ? to + u[j] : u[j];
  }
  return {};
}

Status ScatterLine(const Operands& o, int64_t base, int64_t from, int64_t count, int64_t dim,
                   int64_t step, int64_t along) {
  const DType t = TypeOf(o.x);
  const bool words = o.reduction == Reduction::kNone && TypeOf(o.i) == DType::kI64;
  if (words && BitWidth(t) == 32)
    return CopyLine<uint32_t, int64_t>(o, base, from, count, dim, step, along);
  if (words && BitWidth(t) == 64)
    return CopyLine<uint64_t, int64_t>(o, base, from, count, dim, step, along);
  if (o.reduction == Reduction::kAdd && t == DType::kF32 && TypeOf(o.i) == DType::kI64)
    return CopyLine<float, int64_t, true>(o, base, from, count, dim, step, along);
  for (int64_t j = 0; j < count; ++j) {
    int64_t index = IntAt(o.i, from + j);
    GE_TRY(WrapIndex(&index, dim, "index"));
    Update(o.reduction, t, o.y, base + index * step + j * along, o.u.data, from + j, 1);
  }
  return {};
}

Status ScatterElements(HostCall& call) {
  Operands o;
  GE_TRY(Begin(call, &o));
  if (o.y == nullptr) return {};
  const auto rank = static_cast<int64_t>(o.x.dims.size());
  int64_t axis = call.attrs.Int("axis", 0);
  GE_TRY(WrapAxis(&axis, rank));
  GE_TRY(CheckRank(o.i, rank, "indices"));
  if (!std::ranges::equal(o.i.dims, o.u.dims))
    return Invalid("indices " + Text(o.i.dims) + " and updates " + Text(o.u.dims) + " differ");
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis && o.i.dims[d] > o.x.dims[d])
      return Invalid("indices " + Text(o.i.dims) + " are larger than data " + Text(o.x.dims));
  if (Count(o.i.dims) == 0) return {};
  // Line after line of the last axis: element j goes to base + index * step + j * along.
  const int64_t width = rank == 0 ? 1 : o.i.dims[rank - 1],
                step = CountOf(o.x.dims, axis + 1, rank), along = axis + 1 == rank ? 0 : 1,
                lines = Count(o.i.dims) / width;
  std::vector<int64_t> at(rank, 0);
  for (int64_t line = 0; line < lines; ++line) {
    int64_t base = 0;
    for (int64_t d = 0; d < rank; ++d) base = base * o.x.dims[d] + (d == axis ? 0 : at[d]);
    GE_TRY(ScatterLine(o, base, line * width, width, o.x.dims[axis], step, along));
    for (int64_t d = rank - 2; d >= 0 && ++at[d] == o.i.dims[d]; --d) at[d] = 0;
  }
  return {};
}

Status ScatterNd(HostCall& call) {
  Operands o;
  GE_TRY(Begin(call, &o));
  if (o.y == nullptr) return {};
  if (o.i.dims.empty()) return Invalid("indices must have at least rank 1");
  const auto rank = static_cast<int64_t>(o.x.dims.size());
  const int64_t k = o.i.dims.back(), q = static_cast<int64_t>(o.i.dims.size()) - 1;
  if (k > rank)
    return Invalid("indices " + Text(o.i.dims) + " address more axes than data " + Text(o.x.dims) +
                   " has");
  Shape want(o.i.dims.begin(), o.i.dims.end() - 1);
  want.insert(want.end(), o.x.dims.begin() + k, o.x.dims.end());
  if (!std::ranges::equal(want, o.u.dims))
    return Invalid("updates " + Text(o.u.dims) + " must be " + Text(want));
  const int64_t n = CountOf(o.i.dims, 0, q), slice = CountOf(o.x.dims, k, rank);
  for (int64_t j = 0; j < n; ++j) {
    int64_t position = 0;
    for (int64_t d = 0; d < k; ++d) {
      int64_t index = IntAt(o.i, j * k + d);
      GE_TRY(WrapIndex(&index, o.x.dims[d], "index"));
      position = position * o.x.dims[d] + index;
    }
    Update(o.reduction, TypeOf(o.x), o.y, position * slice, o.u.data, j * slice, slice);
  }
  return {};
}

Status TensorScatter(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 1));
  HostTensor x, u, w;
  GE_TRY(TensorIn(call, 0, &x));
  GE_TRY(TensorIn(call, 1, &u));
  const auto rank = static_cast<int64_t>(x.dims.size());
  int64_t axis = call.attrs.Int("axis", -2);
  GE_TRY(WrapAxis(&axis, rank));
  GE_TRY(CheckRank(u, rank, "update"));
  if (axis == 0) return Invalid("axis must not be the batch axis");
  if (u.dtype != x.dtype) return Invalid("update and cache have different types");
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis && u.dims[d] != x.dims[d])
      return Invalid("update " + Text(u.dims) + " does not fit cache " + Text(x.dims));
  const std::string mode = call.attrs.Str("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return Invalid("mode '" + mode + "' must be linear or circular");
  const bool indexed = Present(call, 2);
  if (indexed) {
    GE_TRY(TensorIn(call, 2, &w));
    GE_TRY(CheckIndexType(w, "write_indices"));
    if (Count(w.dims) != x.dims[0])
      return Invalid("write_indices " + Text(w.dims) + " must have one value per batch entry");
  }
  void* y;
  GE_TRY(Claim(call, 0, x.dims, &y));
  if (y == nullptr) return {};
  CopyElements(TypeOf(x), x.data, 0, y, 0, Count(x.dims));
  const int64_t middle = CountOf(x.dims, 1, axis), slice = CountOf(x.dims, axis + 1, rank),
                length = x.dims[axis], steps = u.dims[axis];
  for (int64_t b = 0; b < x.dims[0]; ++b) {
    const int64_t start = indexed ? IntAt(w, b) : 0;
    if (start < 0 || (mode == "linear" && start > length - steps) || (steps > 0 && length == 0))
      return Invalid("write index " + std::to_string(start) + " with " + std::to_string(steps) +
                     " steps is outside a cache of " + std::to_string(length));
    for (int64_t m = 0; m < middle; ++m)
      for (int64_t s = 0; s < steps; ++s)
        CopyElements(TypeOf(x), u.data, ((b * middle + m) * steps + s) * slice, y,
                     ((b * middle + m) * length + (start % length + s) % length) * slice, slice);
  }
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("ScatterElements", ScatterElements) &
                                          RegisterHost("ScatterND", ScatterNd) &
                                          RegisterHost("TensorScatter", TensorScatter);

}  // namespace
}  // namespace ge::rt
