// Short forms for values that lie between constants, as quantisation makes them:
//
//   Round(x / s), s a constant      rint(fma(x, high, x * low)) with high + low = 1/s
//   Cast(x, i32)                    the bare instruction, instead of one that saturates
//
// The first gives the same integers as the division for every x of the range: both err by less than
// an ulp, so they could differ only near the ties (k + 1/2) * s, and all numbers near a tie are
// tried when the kernel is printed. What fails the trial keeps its division.
#include "emit/quotient.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ge::emit {

using tile::Op;

namespace {

constexpr int kDeepest = 12;
constexpr double kInf = std::numeric_limits<double>::infinity();
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

std::optional<int64_t> AsInteger(const tile::Kernel& k, tile::ExprId id) {
  const tile::ValueNode& n = k.values[id];
  return n.op == Op::kConst && n.type == DType::kI32 ? std::optional(n.i) : std::nullopt;
}

// Between which numbers an i32 value lies.
std::pair<double, double> IntegersOf(const tile::Kernel& k, tile::ExprId id) {
  const tile::ValueNode& n = k.values[id];
  const DType stored = n.op == Op::kLoad     ? k.buffers[n.buffer].dtype
                       : n.op == Op::kNarrow ? n.storage
                                             : DType::kNone;
  if (stored == DType::kU8) return {0, 255};
  if (stored == DType::kI8) return {-128, 127};
  if (n.op == Op::kSub && AsInteger(k, n.b)) {
    const tile::ValueNode& from = k.values[n.a];
    const auto [lo, hi] = IntegersOf(k, n.a);
    const double c = static_cast<double>(*AsInteger(k, n.b));
    if ((from.op == Op::kLoad || from.op == Op::kNarrow) && hi - lo < 256 && std::fabs(c) < 1 << 20)
      return {lo - c, hi - c};
  }
  return {-0x1p31, 0x1p31};
}

std::pair<double, double> RangeTo(const tile::Kernel& k, tile::ExprId id, int depth) {
  const std::pair<double, double> all = {-kInf, kInf};
  const tile::ValueNode& n = k.values[id];
  double c = 0;
  if (AsConstant(k, id, &c)) return {c, c};
  if (n.op == Op::kLoad && k.buffers[n.buffer].within < tile::Buffer::kAny)
    return {-k.buffers[n.buffer].within, k.buffers[n.buffer].within};
  if (depth == 0 || n.type != DType::kF32 || n.op == Op::kVar || n.a < 0) return all;
  if (n.op == Op::kCast && k.values[n.a].type == DType::kI32) return IntegersOf(k, n.a);
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
  if (n.op != Op::kAdd && n.op != Op::kMul) return all;
  const auto [alo, ahi] = RangeTo(k, n.a, depth - 1);
  const auto [blo, bhi] = RangeTo(k, n.b, depth - 1);
  if (!(ahi - alo < kInf && bhi - blo < kInf)) return all;
  if (n.op == Op::kAdd) return {alo + blo, ahi + bhi};
  return std::minmax({alo * blo, alo * bhi, ahi * blo, ahi * bhi});
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
  if (n.op == Op::kCast && n.type == DType::kF32 && k.values[n.a].type == DType::kI32) {
    const tile::ValueNode* byte = &k.values[n.a];
    int64_t zero = 0;
    if (byte->op == Op::kSub && AsInteger(k, byte->b))
      zero = *AsInteger(k, byte->b), byte = &k.values[byte->a];
    if (byte->op != Op::kNarrow) return std::nullopt;
    auto q = AsQuantised(k, *byte);
    return q && q->zero == zero ? q : std::nullopt;
  }
  if (n.op != Op::kNarrow || !IsByte(n.storage)) return std::nullopt;
  Quantised q;
  const tile::ValueNode* made = &k.values[n.a];
  if (made->op == Op::kAdd && AsInteger(k, made->b))
    q.zero = *AsInteger(k, made->b), made = &k.values[made->a];
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

bool NeverNan(const tile::Kernel& k, tile::ExprId id) {
  const tile::ValueNode& n = k.values[id];
  double c = 0;
  if (n.type != DType::kF32) return n.type == DType::kI32;
  if (n.op == Op::kConst) return AsConstant(k, id, &c);
  if (n.op == Op::kLoad) return k.buffers[n.buffer].within < tile::Buffer::kAny;
  if (n.op == Op::kCast) return k.values[n.a].type == DType::kI32;
  const auto [lo, hi] = RangeOf(k, id);
  if (!(hi - lo < std::numeric_limits<float>::max()) || n.a < 0 || !NeverNan(k, n.a)) return false;
  if (n.op == Op::kRound) return true;
  if (n.op == Op::kDiv) return AsConstant(k, n.b, &c) && c != 0;
  const bool of_two = n.op == Op::kAdd || n.op == Op::kMul || n.op == Op::kMin || n.op == Op::kMax;
  return of_two && NeverNan(k, n.b);
}

namespace {

// A number made of a byte, times a constant.
struct Dequantised {
  tile::ExprId byte = -1;
  float scale = 1;
  int first = 0, last = 0;
};

std::optional<Dequantised> AsDequantised(const tile::Kernel& k, tile::ExprId id) {
  Dequantised d{id, 1, 0, 0};
  double c = 0;
  if (k.values[id].op == Op::kMul && AsConstant(k, k.values[id].b, &c)) {
    d.byte = k.values[id].a;
    d.scale = static_cast<float>(c);
  }
  const tile::ValueNode& n = k.values[d.byte];
  if (n.op != Op::kCast || n.type != DType::kF32 || k.values[n.a].type != DType::kI32)
    return std::nullopt;
  const auto [lo, hi] = IntegersOf(k, n.a);
  if (hi - lo > 255) return std::nullopt;
  d.first = static_cast<int>(lo), d.last = static_cast<int>(hi);
  return d;
}

// Does rint(p * a + q * b) give what rint((p * its scale + q * its scale) / s) gives, wherever it
// lies between `low` and `high`, and nothing there elsewhere?
bool SumsLike(const Dequantised& p, const Dequantised& q, float a, float b, float s, float low,
              float high) {
  for (int i = p.first; i <= p.last; ++i) {
    for (int j = q.first; j <= q.last; ++j) {
      const float x = static_cast<float>(i), y = static_cast<float>(j);
      const float first = x * p.scale, second = y * q.scale, sum = first + second;
      const float want = std::rint(sum / s), got = std::rint(std::fmaf(x, a, y * b));
      if (std::min(std::max(want, low), high) != std::min(std::max(got, low), high)) return false;
    }
  }
  return true;
}

// Factors for p and q of x = p + q, if some near the quotients of the scales do.
void FindFactors(const tile::Kernel& k, float s, double low, double high, Saturated* form) {
  const tile::ValueNode& n = k.values[form->x];
  if (n.op != Op::kAdd) return;
  std::optional<Dequantised> p = AsDequantised(k, n.a), q = AsDequantised(k, n.b);
  if (!p || !q) return;
  for (int turn = 0; turn < 2; ++turn, std::swap(p, q)) {
    const float a = p->scale / s, b = q->scale / s;
    for (float a1 : {a, std::nextafterf(a, 0), std::nextafterf(a, INFINITY)})
      for (float b1 : {b, std::nextafterf(b, 0), std::nextafterf(b, INFINITY)}) {
        if (!SumsLike(*p, *q, a1, b1, s, static_cast<float>(low), static_cast<float>(high)))
          continue;
        form->p = p->byte, form->q = q->byte, form->a = a1, form->b = b1;
        return;
      }
  }
}

}  // namespace

std::optional<Saturated> AsSaturated(const tile::Kernel& k, tile::ExprId narrow) {
  constexpr double kSmall = 1 << 30;
  const tile::ValueNode& n = k.values[narrow];
  const std::optional<Quantised> byte =
      n.op == Op::kNarrow && IsByte(n.storage) ? AsQuantised(k, n) : std::nullopt;
  if (!byte) return std::nullopt;
  const tile::ValueNode& rounded = k.values[byte->rounded];
  Saturated form;
  form.zero = byte->zero;
  form.x = rounded.a;
  double s = 1;
  if (const tile::ValueNode& d = k.values[rounded.a]; d.op == Op::kDiv && AsConstant(k, d.b, &s)) {
    const auto of = RoundedQuotient(k, rounded, &form.reciprocal, &form.rest);
    if (!of) return std::nullopt;
    form.x = *of;
  }
  const double least = n.storage == DType::kI8 ? -128 : 0, zero = static_cast<double>(form.zero);
  // Limits at or beyond those of the byte.
  for (double c = 0;;) {
    const tile::ValueNode& limit = k.values[form.x];
    if ((limit.op != Op::kMin && limit.op != Op::kMax) || !AsConstant(k, limit.b, &c)) break;
    const double at = std::nearbyint(Quotient(c, s)) + zero;
    if (limit.op == Op::kMin ? at < least + 255 : at > least) break;
    form.x = limit.a;
  }
  const auto [lo, hi] = RangeOf(k, form.x);
  if (!(std::max(-lo, hi) / s + std::fabs(zero) <= kSmall) || !NeverNan(k, form.x))
    return std::nullopt;
  FindFactors(k, static_cast<float>(s), least - zero, least + 255 - zero, &form);
  return form;
}

}  // namespace ge::emit
