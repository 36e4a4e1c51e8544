// Short forms for values that lie between constants, as quantisation makes them:
//
//   Round(x / s), s a constant      rint(fma(x, high, x * low)) with high + low = 1/s
//   Cast(x, i32)                    the bare instruction, instead of one that saturates
//
// The first gives the same integers as the division for every x of the range: both err by less than
// an ulp, so they could differ only near the ties (k + 1/2) * s, and all numbers near a tie are
// tried when the kernel is printed. What fails the trial keeps its division.
#include "emit/quotient.h"

#include <cmath>
#include <limits>

namespace ge::emit {

using tile::Op;

namespace {

constexpr int kDeepest = 8;
constexpr double kMostTies = 4096;

bool AsConstant(const tile::Kernel& k, tile::ExprId id, double* value) {
  const tile::ValueNode& n = k.values[id];
  if (n.op != Op::kConst || n.type != DType::kF32 || std::isnan(n.f)) return false;
  *value = n.f;
  return true;
}

// As the division of floats rounds it, where x is one.
double Quotient(double x, double c) {
  const float f = static_cast<float>(x);
  if (static_cast<double>(f) != x) return x / c;
  return static_cast<double>(f / static_cast<float>(c));
}

std::pair<double, double> RangeTo(const tile::Kernel& k, tile::ExprId id, int depth) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::pair<double, double> all = {-kInf, kInf};
  const tile::ValueNode& n = k.values[id];
  double c = 0;
  if (AsConstant(k, id, &c)) return {c, c};
  if (depth == 0 || n.type != DType::kF32 || n.op == Op::kVar || n.a < 0) return all;
  if (n.op == Op::kRound) {
    auto [lo, hi] = RangeTo(k, n.a, depth - 1);
    return {std::nearbyint(lo), std::nearbyint(hi)};
  }
  if (n.b < 0) return all;
  if (n.op == Op::kMin || n.op == Op::kMax) {
    auto [alo, ahi] = RangeTo(k, n.a, depth - 1);
    auto [blo, bhi] = RangeTo(k, n.b, depth - 1);
    if (n.op == Op::kMin) return {std::min(alo, blo), std::min(ahi, bhi)};
    return {std::max(alo, blo), std::max(ahi, bhi)};
  }
  if (n.op == Op::kDiv && AsConstant(k, n.b, &c) && c > 0) {
    const auto [lo, hi] = RangeTo(k, n.a, depth - 1);
    return {Quotient(lo, c), Quotient(hi, c)};
  }
  if (n.op == Op::kAdd && AsConstant(k, n.b, &c)) {
    auto [lo, hi] = RangeTo(k, n.a, depth - 1);
    return {lo + c, hi + c};
  }
  return all;
}

}  // namespace

std::pair<double, double> RangeOf(const tile::Kernel& k, tile::ExprId id) {
  return RangeTo(k, id, kDeepest);
}

bool RoundsLikeDivision(float s, double low, double high, float* reciprocal, float* rest) {
  if (!(s > 0) || !std::isnormal(s) || !((high - low) / static_cast<double>(s) <= kMostTies))
    return false;
  const double exact = 1 / static_cast<double>(s);
  *reciprocal = static_cast<float>(exact);
  *rest = static_cast<float>(exact - static_cast<double>(*reciprocal));
  if (!std::isnormal(*reciprocal) || (*rest != 0 && !std::isnormal(*rest))) return false;
  const double first = std::floor(low * exact) - 1, last = std::ceil(high * exact) + 1;
  for (double k = first; k <= last; ++k) {
    float x = static_cast<float>((k + 0.5) * static_cast<double>(s));
    for (int i = 0; i < 4; ++i) x = std::nextafterf(x, -INFINITY);
    for (int i = 0; i < 9; ++i, x = std::nextafterf(x, INFINITY)) {
      const float q = std::fmaf(x, *reciprocal, x * *rest);
      if (std::rint(q) != std::rint(x / s)) return false;
    }
  }
  return true;
}

std::optional<tile::ExprId> RoundedQuotient(const tile::Kernel& k, const tile::ValueNode& n,
                                            float* reciprocal, float* rest) {
  if (n.op != Op::kRound || n.type != DType::kF32) return std::nullopt;
  const tile::ValueNode& d = k.values[n.a];
  double s = 0;
  if (d.op != Op::kDiv || !AsConstant(k, d.b, &s)) return std::nullopt;
  auto [lo, hi] = RangeOf(k, d.a);
  if (!RoundsLikeDivision(static_cast<float>(s), lo, hi, reciprocal, rest)) return std::nullopt;
  return d.a;
}

std::optional<Quantised> AsQuantised(const tile::Kernel& k, const tile::ValueNode& n) {
  const auto integer = [&](tile::ExprId id) {
    const tile::ValueNode& c = k.values[id];
    return c.op == Op::kConst && c.type == DType::kI32 ? std::optional(c.i) : std::nullopt;
  };
  if (n.op == Op::kCast && n.type == DType::kF32 && k.values[n.a].type == DType::kI32) {
    const tile::ValueNode* byte = &k.values[n.a];
    int64_t zero = 0;
    if (byte->op == Op::kSub && integer(byte->b))
      zero = *integer(byte->b), byte = &k.values[byte->a];
    if (byte->op != Op::kNarrow) return std::nullopt;
    auto q = AsQuantised(k, *byte);
    return q && q->zero == zero ? q : std::nullopt;
  }
  if (n.op != Op::kNarrow || (n.storage != DType::kU8 && n.storage != DType::kI8))
    return std::nullopt;
  Quantised q;
  const tile::ValueNode* made = &k.values[n.a];
  if (made->op == Op::kAdd && integer(made->b))
    q.zero = *integer(made->b), made = &k.values[made->a];
  if (made->op != Op::kCast || made->type != DType::kI32) return std::nullopt;
  const tile::ValueNode& rounded = k.values[made->a];
  if (rounded.op != Op::kRound || rounded.type != DType::kF32) return std::nullopt;
  q.rounded = made->a;
  const auto [lo, hi] = RangeOf(k, q.rounded);
  const double least = n.storage == DType::kI8 ? -128 : 0;
  const double zero = static_cast<double>(q.zero);
  if (!(lo + zero >= least && hi + zero <= least + 255)) return std::nullopt;
  return q;
}

}  // namespace ge::emit
