// Resize: Y[o..] = interpolation of X at x(o..), one axis at a time.
//   x(o) comes from the coordinate mode, e.g. half_pixel: (o + 1/2) / scale - 1/2, with the scale
//   that was given (not out/in, which is the scale only where sizes were given). nearest: X at the
//   rounded x. linear, cubic: weighted taps around floor(x), taps outside are the edge's (or left
//   out: exclude_outside). antialias: the filter is stretched by 1/scale.
// ge.Repeat: Y[o..] = X[floor(o / repeats)..], what nearest is for whole factors; a view.
#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/positions.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::Op;
using tile::ReduceOp;
using tile::Val;

enum Operand { kX, kRoi, kScales, kSizes };

struct ResizeAxis {
  int axis;
  Expr in, out;
  double scale = 0;            // 0: out / in
  bool runtime_scale = false;  // read from the operand
};

struct ResizePlan {
  std::vector<ResizeAxis> axes;
  bool fit = false;  // one scale for all axes: the smallest (largest) size / in
  bool largest = false;
  std::vector<Expr> sizes;
};

bool IsEmptyOperand(const Graph& g, const Node& n, int i) {
  if (i >= static_cast<int>(n.inputs.size()) || n.inputs[i] == kNone) return true;
  const auto& dims = g.value(n.inputs[i]).type.dims;
  return dims.size() == 1 && dims[0].IsConst(0);
}

// floor(in * factor), as floats give it for constants and exactly for symbols.
Expr Scaled(Expr in, double factor) {
  if (in.IsConst())
    return static_cast<int64_t>(
        std::floor(static_cast<float>(in.value()) * static_cast<float>(factor)));
  int exponent = 0;
  const double mantissa = std::frexp(factor, &exponent);  // factor = m * 2^(exponent - 24)
  auto m = static_cast<int64_t>(std::ldexp(mantissa, 24));
  int shift = 24 - exponent;
  while (shift > 0 && m % 2 == 0) {
    m /= 2;
    --shift;
  }
  if (shift <= 0) return in * (m << std::min(-shift, 30));
  return FloorDiv(in * m, int64_t{1} << std::min(shift, 62));
}

// Set by ExpandResize: scales are no constant, and sizes holds what they give.
constexpr std::string_view kRuntimeScales = "runtime_scales";

Status PlanScales(const Graph& g, const Node& n, ResizePlan& p) {
  const Constant* scales = g.ConstantOf(n.inputs[kScales]);
  if (!scales) return Unsupported("scales are not constant");
  const std::vector<double> s = FloatElements(*scales);
  if (s.size() != p.axes.size())
    return Invalid(fmt::format("{} scales for {} axes", s.size(), p.axes.size()));
  std::vector<double> roi;
  if (AttrOr<std::string>(n, "coordinate_transformation_mode", "half_pixel") ==
          "tf_crop_and_resize" &&
      !IsEmptyOperand(g, n, kRoi)) {
    const Constant* c = g.ConstantOf(n.inputs[kRoi]);
    if (!c) return Unsupported("roi is not constant while scales are given");
    roi = FloatElements(*c);
    if (roi.size() != 2 * s.size())
      return Invalid(fmt::format("roi has {} values, but {} are needed", roi.size(), 2 * s.size()));
  }
  for (size_t i = 0; i < s.size(); ++i) {
    if (!(s[i] > 0) || s[i] > 1e9) return Invalid(fmt::format("scale {} must be positive", s[i]));
    const double part = roi.empty() ? 1 : roi[s.size() + i] - roi[i];
    p.axes[i].out = Scaled(p.axes[i].in, s[i] * part);
    p.axes[i].scale = s[i];
  }
  return {};
}

Status PlanSizes(const Graph& g, const Node& n, ResizePlan& p) {
  const auto& elems = g.value(n.inputs[kSizes]).elems;
  if (!elems) return Unsupported("sizes are not known");
  if (elems->size() != p.axes.size())
    return Invalid(fmt::format("{} sizes for {} axes", elems->size(), p.axes.size()));
  p.sizes = *elems;
  const auto policy = AttrOr<std::string>(n, "keep_aspect_ratio_policy", "stretch");
  p.fit = policy != "stretch";
  p.largest = policy == "not_smaller";
  for (size_t i = 0; i < p.axes.size(); ++i) {
    ResizeAxis& a = p.axes[i];
    a.out = p.sizes[i];
    if (!p.fit) continue;
    // round(in * scale), half up, for the least (greatest) of the scales size / in.
    for (size_t k = 0; k < p.axes.size(); ++k) {
      const Expr in = p.axes[k].in;
      const Expr size = FloorDiv(a.in * p.sizes[k] * 2 + in, in * 2);
      a.out = k == 0 ? size : p.largest ? Max(a.out, size) : Min(a.out, size);
    }
  }
  return {};
}

Result<ResizePlan> PlanResize(const Graph& g, const Node& n) {
  const Dims& x = g.value(n.inputs[kX]).type.dims;
  const int rank = static_cast<int>(x.size());
  auto given = AttrOr<std::vector<int64_t>>(n, "axes", {});
  if (given.empty())
    for (int i = 0; i < rank; ++i) given.push_back(i);
  GE_ASSIGN(const std::vector<int> axes, NormaliseAxes(given, rank));
  ResizePlan p;
  for (int a : axes) p.axes.push_back({a, x[a], x[a]});
  const bool scales = !IsEmptyOperand(g, n, kScales), sizes = !IsEmptyOperand(g, n, kSizes);
  if (HasAttr(n, kRuntimeScales)) {
    GE_TRY(PlanSizes(g, n, p));
    for (ResizeAxis& a : p.axes) a.runtime_scale = true;
    return p;
  }
  if (scales == sizes) return Invalid("exactly one of scales and sizes must be given");
  GE_TRY(scales ? PlanScales(g, n, p) : PlanSizes(g, n, p));
  return p;
}

// Whether the output's dims hang on operands that are only known at run time.
bool NeedsSizes(const Graph& g, const Node& n) {
  if (HasAttr(n, kRuntimeScales)) return false;
  if (!IsEmptyOperand(g, n, kScales)) return g.ConstantOf(n.inputs[kScales]) == nullptr;
  return !IsEmptyOperand(g, n, kSizes) && !g.value(n.inputs[kSizes]).elems;
}

Status InferResize(InferContext& c) {
  static const char* const kModes[] = {"nearest", "linear", "cubic"};
  const std::string mode = c.Str("mode", "nearest");
  if (std::find(std::begin(kModes), std::end(kModes), mode) == std::end(kModes))
    return c.Fault(fmt::format("mode is '{}', but must be nearest, linear or cubic", mode));
  Dims out = c.In(0).dims;
  if (NeedsSizes(c.graph, c.node)) {  // known after expansion
    for (int64_t axis : c.Ints("axes")) GE_TRY(NormaliseAxis(axis, c.In(0).rank()).status());
    for (Expr& d : out) d = c.Fresh("n");
    c.Out(0, c.In(0).dtype, out);
    return {};
  }
  GE_ASSIGN(const ResizePlan p, PlanResize(c.graph, c.node));
  for (const ResizeAxis& a : p.axes) out[a.axis] = a.out;
  c.Out(0, c.In(0).dtype, out);
  return {};
}

// The position that output o of an axis reads, and what is needed to weigh the taps around it.
struct Position {
  Val x;      // f64
  Val scale;  // f64
};

struct Geometry {
  Lowering& l;
  const ResizePlan& plan;
  std::string coordinates;

  Val F64(Expr e) const { return l.b.Cast(l.b.Index(e), DType::kF64); }
  Val ScaleOf(const ResizeAxis& a) const {
    if (a.scale > 0) return l.b.Const(DType::kF64, a.scale);
    if (a.runtime_scale)
      return l.b.Cast(l.Load(kScales, {Expr(&a - plan.axes.data())}), DType::kF64);
    if (!plan.fit) return F64(a.out) / F64(a.in);
    Val s;
    for (size_t i = 0; i < plan.axes.size(); ++i) {
      const Val r = F64(plan.sizes[i]) / F64(plan.axes[i].in);
      s = !s.valid() ? r : plan.largest ? Max(s, r) : Min(s, r);
    }
    return s;
  }
  Val Roi(size_t axis_number, bool end) const {
    if (!l.Has(kRoi)) return l.b.Const(DType::kF64, end ? 1 : 0);
    const auto at = static_cast<int64_t>(axis_number + (end ? plan.axes.size() : 0));
    return l.b.Cast(l.Load(kRoi, {Expr(at)}), DType::kF64);
  }
  Position At(size_t axis_number, Expr o) const;
};

Position Geometry::At(size_t axis_number, Expr o) const {
  auto& b = l.b;
  const ResizeAxis& a = plan.axes[axis_number];
  const Val scale = b.Let(ScaleOf(a)), i = F64(o);
  const Val half_pixel = (i + 0.5) / scale - 0.5;
  // Modes that are not defined for an output of one element have a value of their own there.
  auto unless_single = [&](const std::function<Val()>& many, Val one) {
    if (a.out.IsConst()) return a.out.value() > 1 ? many() : one;
    return b.Select(b.Cast(b.Index(Lt(1, a.out)), DType::kBool), many(), one);
  };
  const Val steps = F64(Max(a.out - 1, 1));
  Val x = half_pixel;
  if (coordinates == "asymmetric") x = i / scale;
  if (coordinates == "tf_half_pixel_for_nn") x = (i + 0.5) / scale;
  if (coordinates == "pytorch_half_pixel")
    x = unless_single([&] { return half_pixel; }, b.Const(DType::kF64, 0));
  if (coordinates == "align_corners") {
    // The last output meets the last input, where the output's length is the exact in * scale.
    const Val last = a.scale > 0 || a.runtime_scale ? scale * F64(a.in) - 1 : F64(a.out - 1);
    x = b.Select(Less(Like(last, 0), last), i * F64(a.in - 1) / last, Like(last, 0));
  }
  if (coordinates == "half_pixel_symmetric") {
    const Val adjustment = F64(a.out) / (scale * F64(a.in));
    x = F64(a.in) * 0.5 * (1.0 - adjustment) + half_pixel;
  }
  if (coordinates == "tf_crop_and_resize") {
    const Val start = Roi(axis_number, false), end = Roi(axis_number, true), last = F64(a.in - 1);
    x = unless_single([&] { return start * last + i * (end - start) * last / steps; },
                      (start + end) * 0.5 * last);
  }
  return {b.Let(x), scale};
}

Val RoundNearest(tile::Builder& b, Val x, const std::string& mode) {
  if (mode == "floor") return b.Unary(Op::kFloor, x);
  if (mode == "ceil") return b.Unary(Op::kCeil, x);
  if (mode == "round_prefer_ceil") return b.Unary(Op::kFloor, x + 0.5);
  return b.Unary(Op::kCeil, x - 0.5);
}

// The filter at a distance from its centre.
Val Filter(tile::Builder& b, bool cubic, double a, Val distance) {
  const Val d = b.Let(b.Unary(Op::kAbs, distance));
  const Val zero = Like(d, 0);
  if (!cubic) return Max(1.0 - d, zero);
  const Val near = ((d * (a + 2) - (a + 3)) * d) * d + 1;
  const Val far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
  return b.Select(LessEqual(d, Like(d, 1)), near, b.Select(Less(d, Like(d, 2)), far, zero));
}

// Taps of one axis: tap j is at floor(x) + first + j.
struct Taps {
  Val whole, ratio, stretch;  // floor(x), x - floor(x), what distances are multiplied by
  Expr first, count;
  Val total;  // what weights are divided by; invalid: nothing
};

class Interpolation {
 public:
  Interpolation(Lowering& l, const ResizePlan& plan) : l_(l), plan_(plan) {
    cubic_ = l.Str("mode", "nearest") == "cubic";
    antialias_ = l.Int("antialias", 0) != 0;
    exclude_ = l.Int("exclude_outside", 0) != 0;
    a_ = l.Float("cubic_coeff_a", -0.75F);
  }

  Val Value(const Index& o, const std::vector<Position>& at) {
    std::vector<Taps> taps;
    std::vector<Expr> extents;
    for (size_t i = 0; i < at.size(); ++i) {
      taps.push_back(TapsOf(plan_.axes[i], at[i]));
      extents.push_back(taps.back().count);
    }
    const DType t = ComputeType(l_.In(0).dtype);
    const DType sum_type = t == DType::kF64 ? t : DType::kF32;
    auto term = [&](const std::vector<Expr>& j) {
      Index xi = o;
      Val weight;
      for (size_t i = 0; i < at.size(); ++i) {
        const ResizeAxis& a = plan_.axes[i];
        const Val position = taps[i].whole + l_.b.Index(taps[i].first + j[i]);
        xi[a.axis] = BindPosition(l_, position, a.in);
        const Val w = Weight(a, taps[i], j[i], position);
        weight = weight.valid() ? weight * w : w;
      }
      return l_.b.Cast(l_.Load(0, xi), sum_type) * l_.b.Cast(weight, sum_type);
    };
    Val sum = l_.b.Reduce(ReduceOp::kSum, extents, term);
    Val total;
    for (const Taps& tap : taps)
      if (tap.total.valid()) total = total.valid() ? total * tap.total : tap.total;
    return total.valid() ? sum / l_.b.Cast(total, sum_type) : sum;
  }

 private:
  Taps TapsOf(const ResizeAxis& a, const Position& p) {
    auto& b = l_.b;
    Taps t;
    const Val whole = b.Let(b.Unary(Op::kFloor, p.x));
    t.whole = b.Let(b.Cast(whole, DType::kI64));
    t.ratio = b.Let(p.x - whole);
    t.stretch = b.Const(DType::kF64, 1);
    const int64_t reach = cubic_ ? 2 : 1;
    t.first = 1 - reach;
    if (antialias_) {
      t.stretch = b.Let(Min(p.scale, Like(p.scale, 1)));
      // 1 + floor(-reach / scale)
      t.first = a.scale > 0 ? Expr(static_cast<int64_t>(std::floor(static_cast<double>(-reach) /
                                                                   std::min(a.scale, 1.0))) +
                                   1)
                            : 1 - Max(CeilDiv(a.in * reach, a.out), reach);
    }
    t.count = 2 - t.first * 2;
    if (!antialias_ && !exclude_) return t;
    t.total = b.Let(b.Reduce(ReduceOp::kSum, {t.count}, [&](const std::vector<Expr>& j) {
      return Weight(a, t, j[0], t.whole + b.Index(t.first + j[0]));
    }));
    return t;
  }

  Val Weight(const ResizeAxis& a, const Taps& t, Expr j, Val position) {
    auto& b = l_.b;
    const Val tap = b.Cast(b.Index(t.first + j), DType::kF64);
    const Val w = Filter(b, cubic_, a_, (tap - t.ratio) * t.stretch);
    if (!exclude_) return w;
    const Val inside = And(LessEqual(Like(position, 0), position), Less(position, b.Index(a.in)));
    return b.Select(inside, w, Like(w, 0));
  }

  Lowering& l_;
  const ResizePlan& plan_;
  bool cubic_, antialias_, exclude_;
  double a_;
};

void LowerResize(Lowering& l) {
  auto plan = PlanResize(l.graph, l.node);
  GE_CHECK(plan.ok());
  // Axes that keep their size and scale are copied.
  ResizePlan p = *plan;
  const std::string coordinates = l.Str("coordinate_transformation_mode", "half_pixel");
  const bool crop = coordinates == "tf_crop_and_resize",
             nearest = l.Str("mode", "nearest") == "nearest";
  auto is_copy = [&](const ResizeAxis& a) {
    return a.in == a.out && (a.scale == 0 || a.scale == 1) && !a.runtime_scale && !p.fit && !crop;
  };
  if (!crop) std::erase_if(p.axes, is_copy);
  const Geometry geometry{l, p, coordinates};
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    auto& b = l.b;
    std::vector<Position> at;
    Val outside;
    for (size_t i = 0; i < p.axes.size(); ++i) {
      at.push_back(geometry.At(i, o[p.axes[i].axis]));
      if (!crop) continue;
      const Val x = at.back().x;
      const Val out = Or(Less(x, Like(x, 0)), Less(geometry.F64(p.axes[i].in - 1), x));
      outside = outside.valid() ? Or(outside, out) : out;
    }
    Val y;
    if (at.empty()) {
      y = l.Load(0, o);
    } else if (nearest) {
      Index xi = o;
      for (size_t i = 0; i < at.size(); ++i) {
        const Val x = RoundNearest(b, at[i].x, l.Str("nearest_mode", "round_prefer_floor"));
        xi[p.axes[i].axis] = BindPosition(l, b.Cast(x, DType::kI64), p.axes[i].in);
      }
      y = l.Load(0, xi);
    } else {
      y = b.Convert(Interpolation(l, p).Value(o, at), l.In(0).dtype);
    }
    if (crop) y = b.Select(outside, Like(y, l.Float("extrapolation_value", 0)), y);
    l.Yield(0, o, y);
  });
}

// sizes = floor(dims * scales), read at run time.
bool ExpandRuntimeSizes(Graph& g, NodeId id) {
  ExpandBuilder e(g, id);
  std::vector<ValueId> inputs = e.node().inputs;
  inputs.resize(4, kNone);
  Attrs attrs = e.node().attrs;
  if (!IsEmptyOperand(g, e.node(), kScales)) {
    std::vector<Expr> dims = e.Dims(inputs[kX]), picked;
    auto axes = e.Ints("axes");
    for (size_t i = 0; axes.empty() && i < dims.size(); ++i) picked.push_back(dims[i]);
    for (int64_t a : axes) picked.push_back(dims[AxisOf(a, static_cast<int>(dims.size()))]);
    const ValueId exact =
        e.Op("Mul", {e.Cast(e.Exprs(picked), DType::kF32), e.Cast(inputs[kScales], DType::kF32)});
    inputs[kSizes] = e.Cast(e.Op("Floor", {exact}), DType::kI64);
    attrs[std::string(kRuntimeScales)] = int64_t{1};
  }
  inputs[kSizes] = e.Op("ge.ReadSizes", {inputs[kSizes]});
  return e.Done({e.Op("Resize", inputs, attrs)});
}

// Nearest by whole factors where the rounding gives floor(o / factor): asymmetric with floor, and
// half_pixel with either of the symmetric roundings.
bool ExpandResize(Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (NeedsSizes(g, n)) return ExpandRuntimeSizes(g, id);
  if (HasAttr(n, kRuntimeScales) || AttrOr<std::string>(n, "mode", "nearest") != "nearest")
    return false;
  const auto coordinates = AttrOr<std::string>(n, "coordinate_transformation_mode", "half_pixel");
  const auto rounding = AttrOr<std::string>(n, "nearest_mode", "round_prefer_floor");
  const bool by_floor = (coordinates == "asymmetric" && rounding == "floor") ||
                        (coordinates == "half_pixel" && rounding.starts_with("round_"));
  auto plan = PlanResize(g, n);
  if (!by_floor || !plan.ok() || plan->fit) return false;
  std::vector<int64_t> repeats(g.value(n.inputs[0]).type.dims.size(), 1);
  for (const ResizeAxis& a : plan->axes) {
    double scale = a.scale;
    if (scale == 0 && a.in.IsConst() && a.out.IsConst() && a.in.value() > 0)
      scale = static_cast<double>(a.out.value()) / static_cast<double>(a.in.value());
    if (scale == 0 && a.in == a.out) scale = 1;
    if (scale < 1 || scale > 1e6 || scale != std::floor(scale)) return false;
    repeats[a.axis] = static_cast<int64_t>(scale);
  }
  ExpandBuilder e(g, id);
  return e.Done({e.Op("ge.Repeat", {e.In(0)}, {{"repeats", repeats}})});
}

const OpDef& kResize =
    Register({.name = "Resize",
              .max_inputs = 4,
              .infer = InferResize,
              .lower = LowerResize,
              .expand = ExpandResize,
              .flops_per_element = 10,
              .samples = {"(f32[1,2,3,4], , , i64[4]=[1,2,5,7]) {mode=\"linear\"}"}});

Status InferRepeat(InferContext& c) {
  const auto repeats = c.Ints("repeats");
  Dims out = c.In(0).dims;
  if (repeats.size() != out.size()) return c.Fault("repeats must have one value per axis");
  for (size_t i = 0; i < out.size(); ++i) {
    if (repeats[i] < 1)
      return c.Fault(fmt::format("repeats must be at least 1, got {}", repeats[i]));
    out[i] = out[i] * repeats[i];
  }
  c.Out(0, c.In(0).dtype, out);
  return {};
}

Val Repeat(Lowering& l, int, const Index& o) {
  const auto repeats = l.Ints("repeats");
  Index i = o;
  for (size_t d = 0; d < i.size(); ++d) i[d] = FloorDiv(i[d], repeats[d]);
  return l.Load(0, i);
}

const OpDef& kRepeat = Register({.name = "Repeat",
                                 .domain = "ge",
                                 .infer = InferRepeat,
                                 .element = Repeat,
                                 .fusion = Fusion::kView,
                                 .samples = {"(f32[1,2,3,4]) {repeats=[1,1,2,3]}"}});

}  // namespace
}  // namespace ge
