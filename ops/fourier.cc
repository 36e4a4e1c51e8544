// ge.Frames   y[b, f, k] = x[b, f * step + k], k < length
//
// A transform of rows [rows, n, channels] gives [rows, bins, 2]; channels 1 is real, 2 (re, im).
//   short      rows times T, T[(j, channel), (k, part)] of e^(sign 2 pi i j k / n)
//   n = a * b  with j = b j1 + j2, k = k1 + a k2: transforms of length a over j1, times the turns
//              e^(sign 2 pi i j2 k1 / n), then transforms of length b over j2
//   else       j k = (j^2 + k^2 - (k - j)^2) / 2: times e^(sign pi i j^2 / n), convolved with the
//              inverse of that, times it again
#include "ops/fourier.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "ir/expand.h"
#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using Turns = std::vector<std::complex<double>>;

constexpr int64_t kShort =
    512;  // elements of a row: then the matrix is about as large as L2 at most
constexpr int64_t kPrime = 1024;  // lengths without factors are short up to here

// e^(2 pi i j / n), exact where a part is 0 or 1.
std::complex<double> Turn(int64_t j, int64_t n) {
  j = ((j % n) + n) % n;
  const int64_t quarter = 4 * j / n;
  const double angle =
      static_cast<double>(4 * j - quarter * n) / static_cast<double>(n) * (std::numbers::pi / 2);
  const double c = std::cos(angle), s = angle == 0 ? 0.0 : std::sin(angle);
  switch (quarter) {
    case 0: return {c, s};
    case 1: return {-s, c};
    case 2: return {-c, -s};
    default: return {s, -c};
  }
}

// The divisor of n nearest to its root from below.
int64_t Factor(int64_t n) {
  int64_t best = 1;
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) best = d;
  return best;
}

// In place; the length is a power of two.
void TransformHere(Turns& x) {
  const size_t n = x.size();
  if (n == 1) return;
  Turns even(n / 2), odd(n / 2);
  for (size_t i = 0; i < n / 2; ++i) even[i] = x[2 * i], odd[i] = x[2 * i + 1];
  TransformHere(even);
  TransformHere(odd);
  for (size_t i = 0; i < n / 2; ++i) {
    const auto turned = odd[i] * Turn(-static_cast<int64_t>(i), static_cast<int64_t>(n));
    x[i] = even[i] + turned, x[i + n / 2] = even[i] - turned;
  }
}

class Fourier {
 public:
  Fourier(ExpandBuilder& e, DType type) : e_(e), type_(type) {}

  // The first `bins` of the transform of x [rows, n, channels], times `scale`; `window` [n], if
  // there is one, is multiplied with each row first.
  ValueId Run(ValueId x, Expr rows, int64_t n, int64_t channels, int64_t bins, int sign,
              double scale, ValueId window = kNone) {
    const int64_t a = Factor(n);
    if (n * channels <= kShort || (a == 1 && n <= kPrime))
      return Short(x, rows, n, channels, bins, sign, scale, window);
    if (window != kNone) x = e_.Op("Mul", {x, e_.Reshape(window, {n, 1})});
    const ValueId all = a > 1 ? ByFactors(x, rows, n, a, channels, sign, scale)
                              : AsConvolution(x, rows, n, channels, sign, scale);
    return bins == n ? all : Cut(all, 1, bins);
  }

  // Real rows of n from the n / 2 + 1 first bins x [rows, bins, 2].
  ValueId ToReal(ValueId x, Expr rows, int64_t n, double scale) {
    const int64_t half = n / 2 + 1, mirrored = n - half;
    if (n <= kShort) {
      std::vector<double> table(half * 2 * n);
      for (int64_t k = 0; k < half; ++k)
        for (int64_t m = 0; m < n; ++m) {
          const auto turn = Turn(k * m, n) * (k == 0 || 2 * k == n ? scale : 2 * scale);
          table[(2 * k) * n + m] = turn.real(), table[(2 * k + 1) * n + m] = -turn.imag();
        }
      const ValueId flat = e_.Reshape(x, {rows, half * 2});
      const ValueId y = e_.Op("MatMul", {flat, e_.Constant(type_, {half * 2, n}, table)});
      return e_.Reshape(y, {rows, n, 1});
    }
    if (mirrored > 0) {
      const ValueId back = Slice(x, 1, mirrored, 0, -1);
      const ValueId other = e_.Op("Mul", {back, e_.Constant(type_, {2}, {1, -1})});
      x = e_.Op("Concat", {x, other}, {{"axis", int64_t{1}}});
    }
    return Cut(Run(x, rows, n, 2, n, 1, scale), 2, 1);
  }

  // x with n elements along axis 1: cut, or filled with zeros.
  ValueId Fit(ValueId x, int64_t have, int64_t n) {
    if (have > n) return Cut(x, 1, n);
    if (have == n) return x;
    return e_.Op("Pad", {x, e_.Ints({0, 0, 0, 0, n - have, 0})});
  }

 private:
  ValueId Slice(ValueId x, int64_t axis, int64_t from, int64_t to, int64_t step) {
    return e_.Op("Slice", {x, e_.Ints({from}), e_.Ints({to}), e_.Ints({axis}), e_.Ints({step})});
  }
  ValueId Cut(ValueId x, int64_t axis, int64_t count) { return Slice(x, axis, 0, count, 1); }

  ValueId Short(ValueId x, Expr rows, int64_t n, int64_t channels, int64_t bins, int sign,
                double scale, ValueId window) {
    const int64_t width = bins * 2;
    std::vector<double> table(n * channels * width);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t k = 0; k < bins; ++k) {
        const auto turn = Turn(sign * j * k, n) * scale;
        double* to = &table[j * channels * width + 2 * k];
        to[0] = turn.real(), to[1] = turn.imag();
        if (channels == 2) to[width] = -turn.imag(), to[width + 1] = turn.real();
      }
    ValueId matrix = e_.Constant(type_, {n, channels, width}, table);
    if (window != kNone) matrix = e_.Op("Mul", {matrix, e_.Reshape(window, {n, 1, 1})});
    matrix = e_.Reshape(matrix, {n * channels, width});
    const ValueId y = e_.Op("MatMul", {e_.Reshape(x, {rows, n * channels}), matrix});
    return e_.Reshape(y, {rows, bins, 2});
  }

  // x [.., channels] times turns that broadcast to it, of these dims.
  ValueId Times(ValueId x, int64_t channels, std::vector<int64_t> dims, const Turns& turns) {
    std::vector<double> same, cross;
    for (const auto& t : turns) {
      same.push_back(t.real());
      same.push_back(channels == 1 ? t.imag() : t.real());
      cross.push_back(-t.imag());
      cross.push_back(t.imag());
    }
    dims.push_back(2);
    const ValueId straight = e_.Op("Mul", {x, e_.Constant(type_, dims, same)});
    if (channels == 1) return straight;
    const ValueId swapped = Slice(x, static_cast<int64_t>(dims.size()), 1, -3, -1);
    return e_.Op("Add", {straight, e_.Op("Mul", {swapped, e_.Constant(type_, dims, cross)})});
  }

  ValueId Transposed(ValueId x) {
    return e_.Op("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }

  ValueId ByFactors(ValueId x, Expr rows, int64_t n, int64_t a, int64_t channels, int sign,
                    double scale) {
    const int64_t b = n / a;
    x = Transposed(e_.Reshape(x, {rows, a, b, channels}));
    x = Run(e_.Reshape(x, {rows * b, a, channels}), rows * b, a, channels, a, sign, 1);
    Turns turns;
    for (int64_t j = 0; j < b; ++j)
      for (int64_t k = 0; k < a; ++k) turns.push_back(Turn(sign * j * k, n) * scale);
    x = Transposed(Times(e_.Reshape(x, {rows, b, a, 2}), 2, {b, a}, turns));
    x = Run(e_.Reshape(x, {rows * a, b, 2}), rows * a, b, 2, b, sign, 1);
    return e_.Reshape(Transposed(e_.Reshape(x, {rows, a, b, 2})), {rows, n, 2});
  }

  ValueId AsConvolution(ValueId x, Expr rows, int64_t n, int64_t channels, int sign, double scale) {
    const int64_t m = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
    Turns chirp(n), kernel(m);
    for (int64_t j = 0; j < n; ++j) {
      chirp[j] = Turn(sign * (j * j % (2 * n)), 2 * n);
      kernel[j] = std::conj(chirp[j]);
      kernel[(m - j) % m] = kernel[j];
    }
    TransformHere(kernel);
    x = Fit(Times(x, channels, {n}, chirp), n, m);
    x = Times(Run(x, rows, m, 2, m, -1, 1), 2, {m}, kernel);
    x = Cut(Run(x, rows, m, 2, m, 1, 1 / static_cast<double>(m)), 1, n);
    for (auto& t : chirp) t *= scale;
    return Times(x, 2, {n}, chirp);
  }

  ExpandBuilder& e_;
  DType type_;
};

DType TypeFor(DType t) { return t == DType::kF64 ? t : DType::kF32; }

std::optional<int64_t> Known(const ExpandBuilder& e, int input) {
  const std::vector<Expr>* elems = e.Elems(e.In(input));
  if (elems == nullptr || elems->size() != 1 || !(*elems)[0].IsConst()) return std::nullopt;
  return (*elems)[0].value();
}

Status InferFrames(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 2));
  const auto& x = c.In(0).dims;
  const int64_t length = c.Int("length", 1);
  c.Out(0, c.In(0).dtype, {x[0], Max(FloorDiv(x[1] - length, c.Int("step", 1)) + 1, 0), length});
  return {};
}

tile::Val Frames(Lowering& l, int, const Index& at) {
  return l.Load(0, {at[0], at[1] * l.Int("step", 1) + at[2]});
}

const OpDef& kFrames = Register({.name = "Frames",
                                 .domain = "ge",
                                 .infer = InferFrames,
                                 .element = Frames,
                                 .fusion = Fusion::kView,
                                 .samples = {"(f32[2,11]) {length=4, step=3}"}});

}  // namespace

bool ExpandStft(Graph& g, NodeId id) {
  if (ExpandWithSizes(g, id, {1, 3})) return true;
  ExpandBuilder e(g, id);
  std::vector<Expr> dims = e.Dims(e.In(0));
  const Expr last = e.Has(2) ? e.Dims(e.In(2))[0] : dims[1];
  const std::optional<int64_t> step = Known(e, 1);
  const std::optional<int64_t> length = e.Has(3)         ? Known(e, 3)
                                        : last.IsConst() ? std::optional(last.value())
                                                         : std::nullopt;
  if (!step || !length || *step < 1 || *length < 1) return false;
  const int64_t n = *length, channels = dims.size() == 3 ? dims[2].value() : 1;
  const int64_t bins = e.Int("onesided", 1) != 0 ? n / 2 + 1 : n;
  const DType type = TypeFor(e.Type(e.In(0)));
  ValueId x = e.Reshape(e.Cast(e.In(0), type), {dims[0], dims[1] * channels});
  x = e.Op("ge.Frames", {x}, {{"length", n * channels}, {"step", *step * channels}});
  if (e.Dims(x).empty()) return false;
  const Expr frames = e.Dims(x)[1], rows = dims[0] * frames;
  x = e.Reshape(x, {rows, n, channels});
  const ValueId window = e.Has(2) ? e.Cast(e.In(2), type) : kNone;
  x = Fourier(e, type).Run(x, rows, n, channels, bins, -1, 1, window);
  x = e.Reshape(x, {dims[0], frames, bins, 2});
  return e.Done({e.Cast(x, e.OutType(0).dtype)});
}

bool ExpandDft(Graph& g, NodeId id) {
  if (ExpandWithSizes(g, id, {1, 2})) return true;
  ExpandBuilder e(g, id);
  std::vector<Expr> dims = e.Dims(e.In(0));
  const int64_t rank = static_cast<int64_t>(dims.size());
  const std::optional<int64_t> given = e.Has(2) ? Known(e, 2) : e.Int("axis", -2);
  if (!given) return false;
  const int64_t axis = *given < 0 ? *given + rank : *given;
  if (axis < 0 || axis > rank - 2 || !dims[axis].IsConst()) return false;
  const bool inverse = e.Int("inverse", 0) != 0, onesided = e.Int("onesided", 0) != 0;
  const int64_t in = dims[axis].value(), channels = dims[rank - 1].value();
  const std::optional<int64_t> length = e.Has(1)              ? Known(e, 1)
                                        : inverse && onesided ? (in - 1) * 2
                                                              : in;
  if (!length || *length < 1 || in < 1) return false;
  const int64_t n = *length;
  const DType type = TypeFor(e.Type(e.In(0)));
  std::vector<int64_t> perm(rank);
  for (int64_t d = 0; d < rank; ++d) perm[d] = d;
  std::swap(perm[axis], perm[rank - 2]);
  std::swap(dims[axis], dims[rank - 2]);
  auto turned = [&](ValueId v) {
    return axis == rank - 2 ? v : e.Op("Transpose", {v}, {{"perm", perm}});
  };
  const Expr rows = Product({dims.begin(), dims.end() - 2});
  Fourier f(e, type);
  ValueId x = e.Reshape(turned(e.Cast(e.In(0), type)), {rows, in, channels});
  const double scale = inverse ? 1 / static_cast<double>(n) : 1;
  if (inverse && onesided) {
    x = f.ToReal(f.Fit(x, in, n / 2 + 1), rows, n, scale);
  } else {
    x = f.Run(f.Fit(x, in, n), rows, n, channels, onesided ? n / 2 + 1 : n, inverse ? 1 : -1,
              scale);
  }
  dims[rank - 2] = onesided && !inverse ? n / 2 + 1 : n;
  dims[rank - 1] = onesided && inverse ? 1 : 2;
  return e.Done({e.Cast(turned(e.Reshape(x, dims)), e.OutType(0).dtype)});
}

}  // namespace ge
