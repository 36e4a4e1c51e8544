// ge.ResizeTaps: the tables of one axis of a Resize. Operand 0 holds its sizes, in and out; behind
//   them, where all axes have one scale, in and wanted size of each.
//     positions[t, o]  which input element is tap t of output o (nearest: one tap)
//     weights[t, o]    what it is multiplied by; linear, cubic: by the distance from x(o), taps
//                      outside are the edge's (or left out: exclude_outside); antialias: the filter
//                      is stretched by 1/scale
//     inside[o]        is x(o) within the input?
//   x(o) comes from the coordinate mode, e.g. half_pixel: (o + 1/2) / scale - 1/2.
// ge.Resize: Y[o..] = sum_t X[positions[t, o]..] * weights[t, o]..; after X come positions, weights
//   unless `nearest`, and with `crop` inside, for each of `axes`.
//
// Where a rounding decides (nearest, crop), x is computed in f32, as everybody does.
#include <fmt/format.h>

#include <cmath>

#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

enum Operand { kExtents, kScales, kRoi };

std::string Coordinates(const Node& n) {
  return AttrOr<std::string>(n, "coordinate_transformation_mode", "half_pixel");
}

bool IsNearest(const Node& n) { return AttrOr<std::string>(n, "mode", "nearest") == "nearest"; }

// Tap t of output o is at floor(x(o)) + FirstTap + t; there are 2 - 2 * FirstTap.
Expr FirstTap(const Node& n, Expr in, Expr out) {
  const int64_t reach = AttrOr<std::string>(n, "mode", "nearest") == "cubic" ? 2 : 1;
  if (AttrOr<int64_t>(n, "antialias", 0) == 0) return 1 - reach;
  const double scale = static_cast<double>(AttrOr<float>(n, "scale", 0));
  // 1 + floor(-reach / scale)
  if (scale > 0)
    return static_cast<int64_t>(std::floor(static_cast<double>(-reach) / std::min(scale, 1.0))) + 1;
  return 1 - Max(CeilDiv(in * reach, out), reach);
}

Status InferTaps(InferContext& c) {
  const auto* extents = c.Elems(kExtents);
  if (!extents || extents->size() < 2) return c.Fault("the sizes of the axis are not known");
  const Expr in = (*extents)[0], out = (*extents)[1];
  const Expr taps = IsNearest(c.node) ? Expr(1) : 2 - FirstTap(c.node, in, out) * 2;
  c.Out(0, DType::kI32, {taps, out});
  c.Out(1, c.Int("wide", 0) ? DType::kF64 : DType::kF32, {taps, out});
  c.Out(2, DType::kBool, {out});
  return {};
}

// The axis of a ge.ResizeTaps, in the type in which positions are computed.
class Axis {
 public:
  explicit Axis(Lowering& l)
      : l_(l),
        b_(l.b),
        extents_(*l.Elems(kExtents)),
        in_(extents_[0]),
        out_(extents_[1]),
        coordinates_(Coordinates(l.node)),
        nearest_(IsNearest(l.node)),
        cubic_(l.Str("mode", "nearest") == "cubic"),
        real_(nearest_ || coordinates_ == "tf_crop_and_resize" ? DType::kF32 : DType::kF64) {
    scale_ = b_.Let(Scale());
  }

  Val Inside(Expr o) const {
    const Val x = b_.Let(At(o));
    return And(LessEqual(Like(x, 0), x), LessEqual(x, Real(in_ - 1)));
  }

  Val Position(Expr tap, Expr o) const {
    const Val x = At(o);
    const Val at = nearest_
                       ? b_.Cast(Rounded(x), DType::kI64)
                       : b_.Cast(b_.Unary(Op::kFloor, x), DType::kI64) + b_.Index(First() + tap);
    const Val kept = Max(Min(at, b_.Index(in_ - 1)), b_.ConstInt(DType::kI64, 0));
    return b_.Cast(kept, DType::kI32);
  }

  Val Weight(Expr tap, Expr o) const {
    const Val x = b_.Let(At(o)), whole = b_.Let(b_.Unary(Op::kFloor, x));
    const Val w = Weight(tap, whole, x - whole);
    if (l_.Int("antialias", 0) == 0 && l_.Int("exclude_outside", 0) == 0) return w;
    const Val total = b_.Reduce(ReduceOp::kSum, {2 - First() * 2},
                                [&](auto& t) { return Weight(t[0], whole, x - whole); });
    return w / total;
  }

 private:
  Val Real(Expr e) const { return b_.Cast(b_.Index(e), real_); }

  Val Scale() const {
    const float given = l_.Float("scale", 0);
    if (given > 0) return b_.Const(real_, static_cast<double>(given));
    if (l_.Has(kScales)) return b_.Cast(l_.Load(kScales, {Expr(l_.Int("number", 0))}), real_);
    if (extents_.size() == 2) return Real(out_) / Real(in_);
    const bool largest = l_.Str("keep_aspect_ratio_policy", "stretch") == "not_smaller";
    Val s;
    for (size_t i = 2; i + 1 < extents_.size(); i += 2) {
      const Val r = Real(extents_[i + 1]) / Real(extents_[i]);
      s = !s.valid() ? r : largest ? Max(s, r) : Min(s, r);
    }
    return s;
  }

  Val Roi(bool end) const {
    if (!l_.Has(kRoi)) return b_.Const(real_, end ? 1 : 0);
    const Expr count = FloorDiv(l_.In(kRoi).dims[0], 2);
    return b_.Cast(l_.Load(kRoi, {l_.Int("number", 0) + (end ? count : Expr(0))}), real_);
  }

  // x(o)
  Val At(Expr o) const {
    const Val i = Real(o), half_pixel = (i + 0.5) / scale_ - 0.5;
    // Modes that are not defined for an output of one element have a value of their own there.
    auto unless_single = [&](const std::function<Val()>& many, Val one) {
      if (out_.IsConst()) return out_.value() > 1 ? many() : one;
      return b_.Select(b_.Cast(b_.Index(Lt(1, out_)), DType::kBool), many(), one);
    };
    if (coordinates_ == "asymmetric") return i / scale_;
    if (coordinates_ == "tf_half_pixel_for_nn") return (i + 0.5) / scale_;
    if (coordinates_ == "pytorch_half_pixel")
      return unless_single([&] { return half_pixel; }, b_.Const(real_, 0));
    if (coordinates_ == "align_corners") {
      // The last output meets the last input, where the output's length is the exact in * scale.
      const bool given = l_.Float("scale", 0) > 0 || l_.Has(kScales);
      const Val last = given ? scale_ * Real(in_) - 1 : Real(out_ - 1);
      return b_.Select(Less(Like(last, 0), last), i * Real(in_ - 1) / last, Like(last, 0));
    }
    if (coordinates_ == "half_pixel_symmetric") {
      const Val adjustment = Real(out_) / (scale_ * Real(in_));
      return Real(in_) * 0.5 * (1.0 - adjustment) + half_pixel;
    }
    if (coordinates_ == "tf_crop_and_resize") {
      const Val start = Roi(false), end = Roi(true), last = Real(in_ - 1);
      return unless_single(
          [&] { return start * last + i * (end - start) * last / Real(Max(out_ - 1, 1)); },
          (start + end) * 0.5 * last);
    }
    return half_pixel;
  }

  Val Rounded(Val x) const {
    const std::string how = l_.Str("nearest_mode", "round_prefer_floor");
    if (how == "floor") return b_.Unary(Op::kFloor, x);
    if (how == "ceil") return b_.Unary(Op::kCeil, x);
    // As near to the middle as f32 tells counts as the middle, as in ONNX Runtime.
    constexpr double kNear = 1e-6;
    const Val whole = b_.Let(b_.Unary(Op::kFloor, x)), rest = x - whole;
    const Val up = how == "round_prefer_ceil" ? LessEqual(Like(rest, 0.5 - kNear), rest)
                                              : Less(Like(rest, 0.5 + kNear), rest);
    return b_.Select(up, whole + 1, whole);
  }

  Expr First() const { return FirstTap(l_.node, in_, out_); }

  Val Weight(Expr tap, Val whole, Val ratio) const {
    const bool stretched = l_.Int("antialias", 0) != 0;
    Val distance = Real(First() + tap) - ratio;
    if (stretched) distance = distance * Min(scale_, Like(scale_, 1));
    const Val w = Filter(distance);
    if (l_.Int("exclude_outside", 0) == 0) return w;
    const Val at = whole + Real(First() + tap);
    return b_.Select(And(LessEqual(Like(at, 0), at), Less(at, Real(in_))), w, Like(w, 0));
  }

  // The filter at a distance from its centre.
  Val Filter(Val distance) const {
    const Val d = b_.Let(b_.Unary(Op::kAbs, distance));
    const Val zero = Like(d, 0);
    if (!cubic_) return Max(1.0 - d, zero);
    const double a = static_cast<double>(l_.Float("cubic_coeff_a", -0.75F));
    const Val near = ((d * (a + 2) - (a + 3)) * d) * d + 1;
    const Val far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
    return b_.Select(LessEqual(d, Like(d, 1)), near, b_.Select(Less(d, Like(d, 2)), far, zero));
  }

  Lowering& l_;
  tile::Builder& b_;
  const std::vector<Expr>& extents_;
  const Expr in_, out_;
  const std::string coordinates_;
  const bool nearest_, cubic_;
  const DType real_;
  Val scale_;
};

Val Taps(Lowering& l, int output, const Index& i) {
  const Axis axis(l);
  if (output == 2) return axis.Inside(i[0]);
  if (output == 0) return axis.Position(i[0], i[1]);
  return l.b.Cast(axis.Weight(i[0], i[1]), l.Out(1).dtype);
}

const OpDef& kTaps = Register(
    {.name = "ResizeTaps",
     .domain = "ge",
     .max_inputs = 3,
     .max_outputs = 3,
     .infer = InferTaps,
     .element = Taps,
     .flops_per_element = 20,
     .samples = {"(i64[2]=[5,8]) {mode=\"linear\"}",
                 "(i64[2]=[9,4]) {mode=\"nearest\", "
                 "nearest_mode=\"floor\", coordinate_transformation_mode=\"asymmetric\"}"}});

// The operands of axis number i of a ge.Resize.
struct Tables {
  int positions, weights, inside;
};
Tables TablesOf(const Lowering& l, int i) {
  const bool nearest = l.Int("nearest", 0) != 0, crop = l.Int("crop", 0) != 0;
  const int first = 1 + i * (1 + !nearest + crop);
  return {first, first + 1, first + 1 + !nearest};
}

Status InferResized(InferContext& c) {
  const auto axes = c.Ints("axes");
  const size_t tables = 1 + (c.Int("nearest", 0) == 0) + (c.Int("crop", 0) != 0);
  Dims out = c.In(0).dims;
  if (c.node.inputs.size() != 1 + axes.size() * tables)
    return c.Fault(fmt::format("{} tables for {} axes", c.node.inputs.size() - 1, axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int table = static_cast<int>(1 + i * tables);
    GE_ASSIGN(const int axis, NormaliseAxis(axes[i], c.In(0).rank()));
    GE_TRY(CheckRank(c, table, 2));
    out[axis] = c.In(table).dims[1];
  }
  c.Out(0, c.In(0).dtype, out);
  return {};
}

class Resizing {
 public:
  explicit Resizing(Lowering& l)
      : l_(l), b_(l.b), axes_(l.Ints("axes")), nearest_(l.Int("nearest", 0) != 0) {
    const DType t = ComputeType(l.In(0).dtype);
    type_ = t == DType::kF64 ? t : DType::kF32;
  }

  void Lower() {
    if (ByLines()) return Lines();
    l_.ForEach(l_.Out(0).dims, true, [&](const Index& o) {
      if (nearest_) {
        Index at = o;
        for (size_t i = 0; i < axes_.size(); ++i) at[axes_[i]] = At(i, 0, o[axes_[i]]);
        return Yield(o, l_.Load(0, at));
      }
      Yield(o, b_.Convert(Sum(axes_.size(), o), l_.In(0).dtype));
    });
  }

 private:
  Expr At(size_t i, Expr tap, Expr o) const {
    const Expr in = l_.In(0).dims[axes_[i]];
    const Val at =
        b_.Cast(l_.Load(TablesOf(l_, static_cast<int>(i)).positions, {tap, o}), DType::kI64);
    return b_.LetIndex(at, 0, std::max<int64_t>(Bounds(in).hi, 1) - 1, in);
  }
  Val WeightOf(size_t i, Expr tap, Expr o) const {
    return b_.Cast(l_.Load(TablesOf(l_, static_cast<int>(i)).weights, {tap, o}), type_);
  }
  Expr TapsOf(size_t i) const { return l_.In(TablesOf(l_, static_cast<int>(i)).positions).dims[0]; }

  // The sum over the taps of the first `count` axes around X[o..].
  Val Sum(size_t count, const Index& o) const {
    std::vector<Expr> taps;
    for (size_t i = 0; i < count; ++i) taps.push_back(TapsOf(i));
    return b_.Reduce(ReduceOp::kSum, taps, [&](const std::vector<Expr>& t) {
      Index at = o;
      Val weight;
      for (size_t i = 0; i < count; ++i) {
        at[axes_[i]] = At(i, t[i], o[axes_[i]]);
        const Val w = WeightOf(i, t[i], o[axes_[i]]);
        weight = weight.valid() ? weight * w : w;
      }
      return b_.Cast(l_.Load(0, at), type_) * weight;
    });
  }

  void Yield(const Index& o, Val y) const {
    if (l_.Int("crop", 0) != 0) {
      Val inside;
      for (size_t i = 0; i < axes_.size(); ++i) {
        const Val in = l_.Load(TablesOf(l_, static_cast<int>(i)).inside, {o[axes_[i]]});
        inside = inside.valid() ? And(inside, in) : in;
      }
      y = b_.Select(inside, y, Like(y, static_cast<double>(l_.Float("extrapolation_value", 0))));
    }
    l_.Yield(0, o, y);
  }

  // Where elements of the last axis lie side by side: a line of X is combined over all axes but the
  // last, from it the elements of a line of Y. Not if most of the line is not read.
  bool ByLines() const {
    constexpr int64_t kSkipped = 8;
    const int last = l_.In(0).rank() - 1;
    return !nearest_ && axes_.size() > 1 && axes_.back() == last && l_.In(0).layout.IsNd() &&
           l_.Out(0).layout.IsNd() &&
           HintValue(l_.In(0).dims[last]) <= kSkipped * HintValue(l_.Out(0).dims[last]);
  }

  void Lines() {
    Dims outer = l_.Out(0).dims;
    outer.pop_back();
    const size_t last = axes_.size() - 1;
    const Expr in = l_.In(0).dims.back(), out = l_.Out(0).dims.back();
    l_.ForEach(outer, false, [&](const Index& o) {
      const int line = b_.Alloc("line", type_, in);
      auto with = [&](Expr column) {
        Index i = o;
        i.push_back(column);
        return i;
      };
      b_.For("c", in, LoopKind::kVector, [&](Expr c) { b_.Store(line, c, Sum(last, with(c))); });
      b_.For("o", out, LoopKind::kVector, [&](Expr c) {
        const Val sum = b_.Reduce(ReduceOp::kSum, {TapsOf(last)}, [&](auto& t) {
          return b_.Load(line, At(last, t[0], c)) * WeightOf(last, t[0], c);
        });
        Yield(with(c), b_.Convert(sum, l_.In(0).dtype));
      });
    });
  }

  Lowering& l_;
  tile::Builder& b_;
  const std::vector<int64_t> axes_;
  const bool nearest_;
  DType type_ = DType::kF32;
};

void LowerResized(Lowering& l) { Resizing(l).Lower(); }

const OpDef& kResized =
    Register({.name = "Resize",
              .domain = "ge",
              .max_inputs = -1,
              .infer = InferResized,
              .lower = LowerResized,
              .halves = Halves::kWiden,
              .flops_per_element = 10,
              .samples = {"(f32[1,2,3,4], i32[1,2]=[2,0]) {axes=[2], nearest=1}",
                          "(f32[1,2,3,17], i32[2,2]=[0,1,1,2], f32[2,2], i32[2,3]=[0,7,16,1,8,9], "
                          "f32[2,3]) {axes=[2,3]}"}});

}  // namespace
}  // namespace ge
