// GridSample: Y[n, c, o..] = X[n, c] sampled at grid[n, o..], whose entries run from -1 to 1 over
// the image (x first, then y, z). Outside the image there are zeros, or the edge, or a reflection
// of it.
#include <fmt/format.h>

#include <cmath>

#include "ir/opdef.h"
#include "ops/positions.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

Status InferGridSample(InferContext& c) {
  const Dims &x = c.In(0).dims, &g = c.In(1).dims;
  GE_TRY(CheckMinRank(c, 0, 3));
  GE_TRY(CheckRank(c, 1, c.In(0).rank()));
  c.Check(Eq(g.back(), static_cast<int64_t>(x.size()) - 2),
          fmt::format("grid {} must give {} coordinates", ShapeText(g), x.size() - 2));
  const std::string mode = c.Str("mode", "linear"), padding = c.Str("padding_mode", "zeros");
  if (mode != "linear" && mode != "bilinear" && mode != "nearest" && mode != "cubic" &&
      mode != "bicubic")
    return c.Fault(fmt::format("mode is '{}', but must be linear, nearest or cubic", mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return c.Fault(
        fmt::format("padding_mode is '{}', but must be zeros, border or reflection", padding));
  Dims out = {x[0], x[1]};
  out.insert(out.end(), g.begin() + 1, g.end() - 1);
  c.Out(0, c.In(0).dtype, out);
  return {};
}

class Sampler {
 public:
  explicit Sampler(Lowering& l)
      : l_(l),
        x_(l.In(0).dims),
        padding_(l.Str("padding_mode", "zeros")),
        align_(l.Int("align_corners", 0) != 0) {
    const std::string mode = l.Str("mode", "linear");
    nearest_ = mode == "nearest";
    cubic_ = mode.ends_with("cubic");
    rank_ = static_cast<int>(x_.size()) - 2;
  }

  Val Value(const Index& o) {
    auto& b = l_.b;
    const DType t = ComputeType(l_.In(0).dtype), sum = t == DType::kF64 ? t : DType::kF32;
    std::vector<Val> at(rank_), whole(rank_), ratio(rank_);
    for (int d = 0; d < rank_; ++d) {
      at[d] = Place(d, Coordinate(o, d));
      const Val f = nearest_ ? b.Unary(Op::kRound, at[d]) : b.Unary(Op::kFloor, at[d]);
      whole[d] = b.Let(f);
      if (!nearest_) ratio[d] = b.Let(at[d] - whole[d]);
    }
    if (nearest_) return Pixel(o, whole);
    const int64_t first = cubic_ ? -1 : 0, count = cubic_ ? 4 : 2;
    const Val v =
        b.Reduce(ReduceOp::kSum, std::vector<Expr>(rank_, count), [&](const std::vector<Expr>& j) {
          std::vector<Val> tap(rank_);
          Val weight;
          for (int d = 0; d < rank_; ++d) {
            const Val offset = b.Cast(b.Index(j[d] + first), DType::kF64);
            tap[d] = whole[d] + offset;
            const Val w = Weight(offset - ratio[d]);
            weight = weight.valid() ? weight * w : w;
          }
          return b.Cast(Pixel(o, tap), sum) * b.Cast(weight, sum);
        });
    return b.Convert(v, l_.In(0).dtype);
  }

  // Linear or nearest, for images of several channels: pixels and weights of a strip of positions
  // along the last axis are kept, and used for each channel.
  void Strips() {
    constexpr int64_t kStrip = 64;
    auto& b = l_.b;
    const Dims& y = l_.Out(0).dims;
    const DType t = ComputeType(l_.In(0).dtype), sum = t == DType::kF64 ? t : DType::kF32;
    const int64_t taps = nearest_ ? 1 : 2, all = int64_t{1} << (nearest_ ? 0 : rank_);
    Dims outer = {y[0]};
    outer.insert(outer.end(), y.begin() + 2, y.end());
    outer.back() = CeilDiv(y.back(), kStrip);
    auto tap = [&](int64_t k, int d) { return (k >> (rank_ - 1 - d)) & 1; };
    l_.ForEach(outer, false, [&](const Index& o) {
      const Expr first = o.back() * kStrip, count = Min(kStrip, y.back() - first);
      auto at = [&](Expr c, Expr i) {
        Index out = {o[0], c};
        out.insert(out.end(), o.begin() + 1, o.end());
        out.back() = first + i;
        return out;
      };
      std::vector<int> pixels;
      for (int d = 0; d < rank_; ++d)
        pixels.push_back(b.Alloc("pixels", DType::kI32, taps * kStrip));
      const int weights = b.Alloc("weights", sum, all * kStrip);
      const int insides = b.Alloc("insides", DType::kBool, all * kStrip);
      b.For("i", count, LoopKind::kVector, [&](Expr i) {
        std::vector<Val> weight, inside;  // of each axis and tap
        for (int d = 0; d < rank_; ++d) {
          const Val v = Place(d, Coordinate(at(0, i), d));
          const Val whole = b.Let(b.Unary(nearest_ ? Op::kRound : Op::kFloor, v));
          const Val ratio = b.Let(v - whole);
          for (int64_t k = 0; k < taps; ++k) {
            const Val p = b.Let(whole + static_cast<double>(k));
            inside.push_back(b.Let(And(LessEqual(Like(p, 0), p), LessEqual(p, Last(d)))));
            weight.push_back(b.Let(Weight(Like(ratio, static_cast<double>(k)) - ratio)));
            b.Store(pixels[d], i + k * kStrip, b.Cast(Clamp(d, p), DType::kI32));
          }
        }
        for (int64_t k = 0; k < all; ++k) {
          Val w, in;
          for (int d = 0; d < rank_; ++d) {
            const size_t of = static_cast<size_t>(d * taps + tap(k, d));
            w = d == 0 ? weight[of] : w * weight[of];
            in = d == 0 ? inside[of] : And(in, inside[of]);
          }
          b.Store(weights, i + k * kStrip, nearest_ ? b.Const(sum, 1) : b.Cast(w, sum));
          b.Store(insides, i + k * kStrip, in);
        }
      });
      b.For("c", x_[1], LoopKind::kSerial, [&](Expr c) {
        b.For("i", count, LoopKind::kVector, [&](Expr i) {
          std::vector<Expr> places;
          for (int d = 0; d < rank_; ++d)
            for (int64_t k = 0; k < taps; ++k)
              places.push_back(b.LetIndex(b.Cast(b.Load(pixels[d], i + k * kStrip), DType::kI64), 0,
                                          x_[2 + d].IsConst() ? x_[2 + d].value() - 1 : INT64_MAX,
                                          x_[2 + d]));
          Val v;
          for (int64_t k = 0; k < all; ++k) {
            Index from = {o[0], c};
            for (int d = 0; d < rank_; ++d)
              from.push_back(places[static_cast<size_t>(d * taps + tap(k, d))]);
            Val x = l_.Load(0, from);
            if (padding_ == "zeros") x = b.Select(b.Load(insides, i + k * kStrip), x, Like(x, 0));
            if (nearest_) return l_.Yield(0, at(c, i), x);
            const Val part = b.Cast(x, sum) * b.Load(weights, i + k * kStrip);
            v = k == 0 ? part : v + part;
          }
          l_.Yield(0, at(c, i), b.Convert(v, l_.In(0).dtype));
        });
      });
    });
  }

  bool InStrips() const {
    return !cubic_ && l_.In(0).layout.IsNd() && l_.Out(0).layout.IsNd() && HintValue(x_[1]) >= 2;
  }

 private:
  // The pixel position that the grid gives for spatial axis d.
  Val Coordinate(const Index& o, int d) {
    auto& b = l_.b;
    Index g = {o[0]};
    g.insert(g.end(), o.begin() + 2, o.end());
    g.push_back(rank_ - 1 - d);
    const Val v = b.Cast(l_.Load(1, g), DType::kF64), n = b.Cast(b.Index(x_[2 + d]), DType::kF64);
    return b.Let(align_ ? (v + 1) * 0.5 * (n - 1) : ((v + 1) * n - 1) * 0.5);
  }

  // Moves a position into the image, as the padding mode wants it before interpolation.
  Val Place(int d, Val v) {
    if (padding_ == "zeros" || cubic_) return v;
    return l_.b.Let(padding_ == "border" ? Clamp(d, v) : Reflect(d, v));
  }

  Val Clamp(int d, Val v) { return Max(Min(v, Last(d)), Like(v, 0)); }
  Val Last(int d) { return l_.b.Cast(l_.b.Index(x_[2 + d] - 1), DType::kF64); }

  // Reflection at the image's border: the outer pixels' centres (align_corners) or edges.
  Val Reflect(int d, Val v) {
    auto& b = l_.b;
    const double lo = align_ ? 0 : -0.5;
    const Val range = b.Let(align_ ? Max(Last(d), Like(v, 1e-30)) : Last(d) + 1);
    const Val far = b.Let(b.Unary(Op::kAbs, v - lo));
    const Val turns = b.Let(b.Unary(Op::kFloor, far / range));
    const Val rest = b.Let(far - turns * range);
    const Val odd =
        Equal(b.Binary(Op::kFloorMod, b.Cast(turns, DType::kI64), b.ConstInt(DType::kI64, 2)),
              b.ConstInt(DType::kI64, 1));
    return Clamp(d, b.Select(odd, range - rest, rest) + lo);
  }

  Val Pixel(const Index& o, const std::vector<Val>& at) {
    auto& b = l_.b;
    Index i = {o[0], o[1]};
    Val inside;
    for (int d = 0; d < rank_; ++d) {
      Val v = at[d];
      if (padding_ == "zeros") {
        const Val in = And(LessEqual(Like(v, 0), v), LessEqual(v, Last(d)));
        inside = inside.valid() ? And(inside, in) : in;
      } else if (padding_ == "reflection" && cubic_) {
        v = b.Unary(Op::kTrunc, Reflect(d, v));
      }
      i.push_back(BindPosition(l_, b.Cast(v, DType::kI64), x_[2 + d]));
    }
    const Val v = l_.Load(0, i);
    return inside.valid() ? b.Select(inside, v, Like(v, 0)) : v;
  }

  Val Weight(Val distance) {
    auto& b = l_.b;
    const Val d = b.Let(b.Unary(Op::kAbs, distance));
    if (!cubic_) return Max(1.0 - d, Like(d, 0));
    const double a = -0.75;
    const Val near = ((d * (a + 2) - (a + 3)) * d) * d + 1;
    const Val far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
    return b.Select(LessEqual(d, Like(d, 1)), near, far);
  }

  Lowering& l_;
  const Dims& x_;
  std::string padding_;
  bool align_, nearest_, cubic_;
  int rank_;
};

void LowerGridSample(Lowering& l) {
  if (Sampler sampler(l); sampler.InStrips()) return sampler.Strips();
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) { l.Yield(0, o, Sampler(l).Value(o)); });
}

const OpDef& kGridSample = Register(
    {.name = "GridSample",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = InferGridSample,
     .lower = LowerGridSample,
     .flops_per_element = 30,
     .samples =
         {"(f32[1,2,4,5], f32[1,3,3,2])",
          "(f32[1,2,4,5], f32[1,3,3,2]) {mode=\"cubic\", padding_mode=\"border\", align_corners=1}",
          "(f32[2,3,4,5], f32[2,2,70,2]) {padding_mode=\"reflection\"}",
          "(f32[1,2,3,4,5], f32[1,2,3,4,3]) {padding_mode=\"border\", align_corners=1}",
          "(f32[1,3,4,5], f32[1,2,3,2]) {mode=\"nearest\"}",
          "(f32[1,1,3,4,5], f32[1,2,2,2,3]) {mode=\"nearest\", padding_mode=\"reflection\"}"},
     .tolerance = 1e-4});

}  // namespace
}  // namespace ge
