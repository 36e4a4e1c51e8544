// TopK, NonZero, Compress, Unique: what is selected depends on the values.
//
// Order of values: as numbers, NaN above all and equal to itself. Equal ones keep their order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <type_traits>

#include "abi/convert.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

template <class T>
int Compare(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b))
      return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

// Numbers of at most 32 bits as keys: the value in the upper half, so that greater is greater, and
// in the lower half the position, so that of equal ones the first is greater.
uint32_t Ordered(float v) {
  if (std::isnan(v)) return UINT32_MAX;
  const auto bits = std::bit_cast<uint32_t>(v + 0.0f);  // one zero
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The k greatest of n keys, in falling order: candidates above the k-th of those seen so far.
// skip(j, i): element j is surely no better than i, which comes before it.
template <class Key, class Skip>
void GreatestKeys(int64_t n, int64_t k, const Key& key, const Skip& skip,
                  std::vector<uint64_t>& kept) {
  kept.clear();
  if (k == 0) return;
  constexpr int64_t kFew = 24;
  const auto cap = static_cast<size_t>(2 * k + 64);
  uint64_t least = 0;
  int64_t last = -1;
  auto keep_least = [&] {
    least = kept.back();
    last = static_cast<int64_t>(~static_cast<uint32_t>(least));
  };
  auto shrink = [&] {
    if (static_cast<int64_t>(kept.size()) <= k) return;
    std::nth_element(kept.begin(), kept.begin() + k - 1, kept.end(), std::greater<>());
    kept.resize(static_cast<size_t>(k));
    keep_least();
  };
  for (int64_t j = 0; j < n; ++j) {
    if (last >= 0 && skip(j, last)) continue;
    const uint64_t at = key(j);
    if (at < least) continue;
    kept.push_back(at);
    if (k > kFew) {
      if (kept.size() >= cap) shrink();
      continue;
    }
    // Few are kept in order.
    for (size_t i = kept.size() - 1; i > 0 && kept[i - 1] < at; --i)
      std::swap(kept[i - 1], kept[i]);
    if (static_cast<int64_t>(kept.size()) > k) kept.pop_back();
    if (static_cast<int64_t>(kept.size()) == k) keep_least();
  }
  if (k <= kFew) return;
  shrink();
  std::sort(kept.begin(), kept.end(), std::greater<>());
}

template <class T>
struct TopKCall {
  HostTensor x;
  int64_t axis, k;
  bool largest;
  void *values, *indices;

  void Run() const {
    const auto rank = static_cast<int64_t>(x.dims.size());
    const int64_t n = x.dims[axis], outer = CountOf(x.dims, 0, axis),
                  inner = CountOf(x.dims, axis + 1, rank);
    std::vector<T> row(n);
    std::vector<int64_t> order(n);
    std::vector<uint64_t> kept;
    const bool narrow = BitWidth(TypeOf(x)) <= 32 && n <= UINT32_MAX;
    const uint32_t first = IsSigned(TypeOf(x)) ? 0x80000000u : 0;  // the least number becomes 0
    const uint32_t turned = largest ? 0 : UINT32_MAX;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const auto* floats = static_cast<const float*>(x.data) + o * n * inner + i;
        auto element = [&](int64_t j) {
          return LoadElement<T>(TypeOf(x), x.data, (o * n + j) * inner + i);
        };
        auto key = [&](uint32_t ordered, int64_t j) {
          return uint64_t{ordered ^ turned} << 32 | static_cast<uint32_t>(~j);
        };
        auto never = [](int64_t, int64_t) { return false; };
        if (TypeOf(x) == DType::kF32) {
          auto skip = [&](int64_t j, int64_t i) {
            const float a = floats[j * inner], c = floats[i * inner];
            return largest ? a <= c : a >= c;
          };
          GreatestKeys(
              n, k, [&](int64_t j) { return key(Ordered(floats[j * inner]), j); }, skip, kept);
        } else if (narrow && std::is_same_v<T, double>) {
          GreatestKeys(
              n, k, [&](int64_t j) { return key(Ordered(static_cast<float>(element(j))), j); },
              never, kept);
        } else if (narrow && std::is_same_v<T, int64_t>) {
          GreatestKeys(
              n, k, [&](int64_t j) { return key(static_cast<uint32_t>(element(j)) + first, j); },
              never, kept);
        } else {
          kept.clear();
          for (int64_t j = 0; j < n; ++j) row[j] = element(j);
          std::iota(order.begin(), order.end(), 0);
          std::partial_sort(order.begin(), order.begin() + k, order.end(),
                            [&](int64_t a, int64_t b) {
                              const int c = Compare(row[a], row[b]);
                              return c != 0 ? (largest ? c > 0 : c < 0) : a < b;
                            });
        }
        for (int64_t j = 0; j < k; ++j) {
          const int64_t at = (o * k + j) * inner + i;
          const int64_t from =
              kept.empty() ? order[j] : static_cast<int64_t>(~static_cast<uint32_t>(kept[j]));
          if (values) CopyElements(TypeOf(x), x.data, (o * n + from) * inner + i, values, at, 1);
          if (indices) static_cast<int64_t*>(indices)[at] = from;
        }
      }
  }
};

Status TopK(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 2));
  HostTensor x, k_in;
  GE_TRY(TensorIn(call, 0, &x));
  GE_TRY(TensorIn(call, 1, &k_in));
  GE_TRY(CheckIndexType(k_in, "k"));
  int64_t axis = call.attrs.Int("axis", -1);
  GE_TRY(WrapAxis(&axis, static_cast<int64_t>(x.dims.size())));
  if (Count(k_in.dims) != 1) return Invalid("k " + Text(k_in.dims) + " must have one element");
  const int64_t k = IntAt(k_in, 0);
  if (k < 0 || k > x.dims[axis])
    return Invalid("k = " + std::to_string(k) + " is outside [0, " + std::to_string(x.dims[axis]) +
                   "]");
  Shape out(x.dims.begin(), x.dims.end());
  out[axis] = k;
  void *values, *indices;
  GE_TRY(Claim(call, 0, out, &values));
  GE_TRY(Claim(call, 1, out, &indices));
  const bool largest = call.attrs.Int("largest", 1) != 0;
  if (IsFloat(TypeOf(x)))
    TopKCall<double>{x, axis, k, largest, values, indices}.Run();
  else if (TypeOf(x) == DType::kU64)
    TopKCall<uint64_t>{x, axis, k, largest, values, indices}.Run();
  else
    TopKCall<int64_t>{x, axis, k, largest, values, indices}.Run();
  return {};
}

bool IsNonZero(const HostTensor& x, int64_t i) {
  return IsFloat(TypeOf(x)) ? LoadElement<double>(TypeOf(x), x.data, i) != 0
                            : LoadElement<int64_t>(TypeOf(x), x.data, i) != 0;
}

// Calls use(is) where is(i) says whether element i counts.
template <class Use>
void WithNonZero(const HostTensor& x, const Use& use) {
  auto plain = [&]<class T>(const T* p) { use([p](int64_t i) { return p[i] != 0; }); };
  switch (TypeOf(x)) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8: return plain(static_cast<const uint8_t*>(x.data));
    case DType::kI32: return plain(static_cast<const int32_t*>(x.data));
    case DType::kI64: return plain(static_cast<const int64_t*>(x.data));
    case DType::kF32: return plain(static_cast<const float*>(x.data));
    default: return use([&](int64_t i) { return IsNonZero(x, i); });
  }
}

Status NonZero(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  HostTensor x;
  GE_TRY(TensorIn(call, 0, &x));
  const auto rank = static_cast<int64_t>(x.dims.size());
  const int64_t all = Count(x.dims), width = rank == 0 ? 1 : x.dims[rank - 1];
  int64_t n = 0;
  WithNonZero(x, [&](auto is) {
    for (int64_t i = 0; i < all; ++i) n += is(i) ? 1 : 0;
  });
  void* out;
  GE_TRY(Claim(call, 0, Shape{rank, n}, &out));
  call.sizes.push_back(n);
  if (out == nullptr || n == 0 || rank == 0) return {};
  auto* y = static_cast<int64_t*>(out);
  // Line after line: where in it, without a branch for each element; the line's place is one.
  std::vector<int64_t> found(static_cast<size_t>(width) + 1), place(static_cast<size_t>(rank), 0);
  WithNonZero(x, [&](auto is) {
    for (int64_t i = 0, done = 0; i < all; i += width) {
      int64_t here = 0;
      for (int64_t j = 0; j < width; ++j) {
        found[static_cast<size_t>(here)] = j;
        here += is(i + j) ? 1 : 0;
      }
      for (int64_t d = 0; d + 1 < rank; ++d) std::fill_n(y + d * n + done, here, place[d]);
      std::copy_n(found.begin(), here, y + (rank - 1) * n + done);
      done += here;
      for (int64_t d = rank - 2; d >= 0 && ++place[d] == x.dims[d]; --d) place[d] = 0;
    }
  });
  return {};
}

Status Compress(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 1));
  HostTensor x, keep;
  GE_TRY(TensorIn(call, 0, &x));
  GE_TRY(TensorIn(call, 1, &keep));
  GE_TRY(CheckRank(keep, 1, "condition"));
  const bool flat = !call.attrs.Has("axis");
  int64_t axis = call.attrs.Int("axis", 0);
  Shape out(x.dims.begin(), x.dims.end());
  if (flat) out = {Count(x.dims)};
  GE_TRY(WrapAxis(&axis, static_cast<int64_t>(out.size())));
  const int64_t n = out[axis], outer = CountOf(out, 0, axis),
                inner = CountOf(out, axis + 1, static_cast<int64_t>(out.size()));
  if (keep.dims[0] > n)
    return Invalid("condition has " + std::to_string(keep.dims[0]) + " values for an axis of " +
                   std::to_string(n));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < keep.dims[0]; ++i)
    if (static_cast<const uint8_t*>(keep.data)[i] != 0) kept.push_back(i);
  out[axis] = static_cast<int64_t>(kept.size());
  void* y;
  GE_TRY(Claim(call, 0, out, &y));
  call.sizes.push_back(out[axis]);
  if (y == nullptr) return {};
  int64_t at = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i : kept) {
      CopyElements(TypeOf(x), x.data, (o * n + i) * inner, y, at, inner);
      at += inner;
    }
  return {};
}

// Slices along an axis (all elements, if flat), by value.
struct Slices {
  HostTensor x;
  int64_t n, outer, inner;

  int CompareSlices(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t pa = (o * n + a) * inner + i, pb = (o * n + b) * inner + i;
        const DType t = TypeOf(x);
        const int c =
            IsFloat(t)
                ? Compare(LoadElement<double>(t, x.data, pa), LoadElement<double>(t, x.data, pb))
            : t == DType::kU64
                ? Compare(LoadElement<uint64_t>(t, x.data, pa),
                          LoadElement<uint64_t>(t, x.data, pb))
                : Compare(LoadElement<int64_t>(t, x.data, pa), LoadElement<int64_t>(t, x.data, pb));
        if (c != 0) return c;
      }
    return 0;
  }
};

struct Groups {
  std::vector<int64_t> first, count, inverse;
};

Groups GroupsOf(const Slices& s, bool sorted) {
  Groups g;
  std::vector<int64_t> order(s.n), group(s.n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return s.CompareSlices(a, b) < 0; });
  for (int64_t i = 0; i < s.n; ++i) {
    if (i == 0 || s.CompareSlices(order[i - 1], order[i]) != 0) {
      g.first.push_back(order[i]);
      g.count.push_back(0);
    }
    ++g.count.back();
    group[order[i]] = static_cast<int64_t>(g.first.size()) - 1;
  }
  g.inverse = group;
  if (sorted) return g;
  // In the order of first occurrence instead.
  std::vector<int64_t> by_first(g.first.size()), rank(g.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(),
            [&](int64_t a, int64_t b) { return g.first[a] < g.first[b]; });
  Groups out;
  for (size_t i = 0; i < by_first.size(); ++i) {
    rank[by_first[i]] = static_cast<int64_t>(i);
    out.first.push_back(g.first[by_first[i]]);
    out.count.push_back(g.count[by_first[i]]);
  }
  for (int64_t i : g.inverse) out.inverse.push_back(rank[i]);
  return out;
}

Status ClaimInts(HostCall& call, size_t o, const std::vector<int64_t>& values) {
  void* y;
  GE_TRY(Claim(call, o, Shape{static_cast<int64_t>(values.size())}, &y));
  if (y != nullptr) std::copy(values.begin(), values.end(), static_cast<int64_t*>(y));
  return {};
}

Status Unique(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 4));
  HostTensor x;
  GE_TRY(TensorIn(call, 0, &x));
  Shape out(x.dims.begin(), x.dims.end());
  if (!call.attrs.Has("axis")) out = {Count(x.dims)};
  int64_t axis = call.attrs.Int("axis", 0);
  GE_TRY(WrapAxis(&axis, static_cast<int64_t>(out.size())));
  const Slices s{x, out[axis], CountOf(out, 0, axis),
                 CountOf(out, axis + 1, static_cast<int64_t>(out.size()))};
  const Groups g = GroupsOf(s, call.attrs.Int("sorted", 1) != 0);
  out[axis] = static_cast<int64_t>(g.first.size());
  call.sizes.push_back(out[axis]);
  void* y;
  GE_TRY(Claim(call, 0, out, &y));
  for (int64_t o = 0, at = 0; y != nullptr && o < s.outer; ++o)
    for (int64_t i : g.first) {
      CopyElements(TypeOf(x), x.data, (o * s.n + i) * s.inner, y, at, s.inner);
      at += s.inner;
    }
  GE_TRY(ClaimInts(call, 1, g.first));
  GE_TRY(ClaimInts(call, 2, g.inverse));
  return ClaimInts(call, 3, g.count);
}

[[maybe_unused]] const bool kRegistered =
    RegisterHost("TopK", TopK) & RegisterHost("NonZero", NonZero) &
    RegisterHost("Compress", Compress) & RegisterHost("Unique", Unique);

}  // namespace
}  // namespace ge::rt
