// Resize: Y[o..] = interpolation of X at x(o..), one axis at a time.
//   What an axis reads is a table (ops/resize_taps.cc), with the scale that was given (not out/in,
//   which is the scale only where sizes were given).
// ge.Repeat: Y[o..] = X[floor(o / repeats)..], what nearest is for whole factors; a view.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Val;

enum Operand { kX, kRoi, kScales, kSizes };

struct ResizeAxis {
  int axis;
  Expr in, out;
  double scale = 0;            // 0: out / in
  bool runtime_scale = false;  // read from the operand
  bool known = true;           // `out` is what the operands say
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

// floor(in * factor) in f32.
int64_t FloatProduct(int64_t in, float factor) {
  return static_cast<int64_t>(std::floor(static_cast<float>(in) * factor));
}

// Whether floor(in * numerator / denominator) is what floats give, for all sizes that a dim takes
// and whose product floats hold with a fraction; of larger sizes, up to kMostSize.
bool GivesFloatProducts(Expr in, int64_t numerator, int64_t denominator, float factor) {
  constexpr int64_t kMostSize = 65536, kMostProduct = 1 << 22;
  const int64_t most = std::min(kMostSize, Bounds(in).hi);
  for (int64_t size = 1; size <= most && numerator / denominator * size <= kMostProduct; ++size)
    if (size * numerator / denominator != FloatProduct(size, factor)) return false;
  return true;
}

// floor(in * factor) as floats give it, which is what ONNX Runtime takes: where the exact product
// is just below a whole number, floats may round up to it (10 * 0.7). For symbols by the exact
// factor, or the fraction that it stands for, if that gives the same; else `*known` is false.
Expr Scaled(Expr in, float factor, bool* known) {
  *known = true;
  if (in.IsConst()) return FloatProduct(in.value(), factor);
  int exponent = 0;
  const float mantissa = std::frexp(factor, &exponent);  // factor = m * 2^(exponent - 24)
  auto m = static_cast<int64_t>(std::ldexp(mantissa, 24));
  int shift = 24 - exponent;
  while (shift > 0 && m % 2 == 0) {
    m /= 2;
    --shift;
  }
  if (shift <= 0) return in * (m << std::min(-shift, 30));
  const int64_t power = int64_t{1} << std::min(shift, 62);
  if (GivesFloatProducts(in, m, power, factor)) return FloorDiv(in * m, power);
  for (int64_t denominator = 3; denominator <= 1000; ++denominator) {
    const auto numerator =
        static_cast<int64_t>(std::llround(static_cast<double>(factor) * denominator));
    if (static_cast<float>(static_cast<double>(numerator) / denominator) != factor) continue;
    if (GivesFloatProducts(in, numerator, denominator, factor))
      return FloorDiv(in * numerator, denominator);
    break;
  }
  *known = false;
  return FloorDiv(in * m, power);
}

// Set by ExpandResize: sizes holds what scales give.
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
    ResizeAxis& a = p.axes[i];
    a.out = Scaled(a.in, static_cast<float>(s[i] * part), &a.known);
    a.scale = s[i];
    if (!roi.empty()) a.known = true;  // there is no other way yet
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
    const Constant* c = g.ConstantOf(n.inputs[kScales]);
    const std::vector<double> values = c ? FloatElements(*c) : std::vector<double>();
    for (size_t i = 0; i < p.axes.size(); ++i) {
      p.axes[i].runtime_scale = c == nullptr;
      if (i < values.size()) p.axes[i].scale = values[i];
    }
    return p;
  }
  if (scales == sizes) return Invalid("exactly one of scales and sizes must be given");
  GE_TRY(scales ? PlanScales(g, n, p) : PlanSizes(g, n, p));
  return p;
}

// Whether the output's dims hang on operands that are only known at run time.
bool NeedsSizes(const Graph& g, const Node& n) {
  if (HasAttr(n, kRuntimeScales)) return false;
  if (!IsEmptyOperand(g, n, kScales)) {
    if (g.ConstantOf(n.inputs[kScales]) == nullptr) return true;
    const auto plan = PlanResize(g, n);
    return plan.ok() && !std::ranges::all_of(plan->axes, &ResizeAxis::known);
  }
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
    const auto plan = PlanResize(c.graph, c.node);
    if (!plan.ok())
      for (Expr& d : out) d = c.Fresh("n");
    else
      for (const ResizeAxis& a : plan->axes) out[a.axis] = a.known ? a.out : c.Fresh("n");
    c.Out(0, c.In(0).dtype, out);
    return {};
  }
  GE_ASSIGN(const ResizePlan p, PlanResize(c.graph, c.node));
  for (const ResizeAxis& a : p.axes) out[a.axis] = a.out;
  c.Out(0, c.In(0).dtype, out);
  return {};
}

// Does the axis stay as it is? With one scale for all axes, or a part of the input, its size alone
// does not say.
bool IsKept(const ResizePlan& p, const ResizeAxis& a) {
  return a.in == a.out && (a.scale == 0 || a.scale == 1) && !a.runtime_scale && !p.fit;
}

// sizes = floor(dims * scales), read at run time where no expression says them.
bool ExpandRuntimeSizes(Graph& g, NodeId id) {
  const auto plan = PlanResize(g, g.node(id));  // fails if operands are not known
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
  if (const std::vector<Expr>* read = e.Elems(inputs[kSizes]); plan.ok() && read != nullptr) {
    std::vector<Expr> sizes = *read;
    for (size_t i = 0; i < sizes.size() && i < plan->axes.size(); ++i)
      if (plan->axes[i].known) sizes[i] = plan->axes[i].out;
    inputs[kSizes] = e.Exprs(sizes);
  }
  return e.Done({e.Op("Resize", inputs, attrs)});
}

// Nearest by whole factors where the rounding gives floor(o / factor): asymmetric with floor, and
// half_pixel with either of the symmetric roundings. Empty where it is not that.
std::vector<int64_t> Repeats(const Graph& g, const Node& n, const ResizePlan& plan) {
  if (HasAttr(n, kRuntimeScales) || AttrOr<std::string>(n, "mode", "nearest") != "nearest")
    return {};
  const auto coordinates = AttrOr<std::string>(n, "coordinate_transformation_mode", "half_pixel");
  const auto rounding = AttrOr<std::string>(n, "nearest_mode", "round_prefer_floor");
  const bool by_floor = (coordinates == "asymmetric" && rounding == "floor") ||
                        (coordinates == "half_pixel" && rounding.starts_with("round_"));
  if (!by_floor || plan.fit) return {};
  std::vector<int64_t> repeats(g.value(n.inputs[0]).type.dims.size(), 1);
  for (const ResizeAxis& a : plan.axes) {
    double scale = a.scale;
    if (scale == 0 && a.in.IsConst() && a.out.IsConst() && a.in.value() > 0)
      scale = static_cast<double>(a.out.value()) / static_cast<double>(a.in.value());
    if (scale == 0 && a.in == a.out) scale = 1;
    if (scale < 1 || scale > 1e6 || scale != std::floor(scale)) return {};
    repeats[a.axis] = static_cast<int64_t>(scale);
  }
  return repeats;
}

// The tables of an axis: positions, weights unless `nearest`, and in a crop what is inside.
void AddTaps(ExpandBuilder& e, const ResizePlan& plan, size_t number, bool nearest, bool crop,
             std::vector<ValueId>& operands) {
  const ResizeAxis& a = plan.axes[number];
  std::vector<Expr> extents = {a.in, a.out};
  for (size_t i = 0; plan.fit && i < plan.axes.size(); ++i) {
    extents.push_back(plan.axes[i].in);
    extents.push_back(plan.sizes[i]);
  }
  Attrs attrs = e.node().attrs;
  attrs.erase("axes");
  attrs["number"] = static_cast<int64_t>(number);
  if (a.scale > 0) attrs["scale"] = static_cast<float>(a.scale);
  if (e.Type(e.In(0)) == DType::kF64) attrs["wide"] = int64_t{1};
  const std::vector<ValueId> taps =
      e.Ops("ge.ResizeTaps",
            {e.Exprs(extents), a.runtime_scale ? e.In(kScales) : kNone, crop ? e.In(kRoi) : kNone},
            crop      ? 3
            : nearest ? 1
                      : 2,
            attrs);
  operands.push_back(taps[0]);
  if (!nearest) operands.push_back(taps[1]);
  if (crop) operands.push_back(taps[2]);
}

bool ExpandResize(Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (NeedsSizes(g, n)) return ExpandRuntimeSizes(g, id);
  auto plan = PlanResize(g, n);
  if (!plan.ok()) return false;
  const std::vector<int64_t> repeats = Repeats(g, n, *plan);
  ExpandBuilder e(g, id);
  if (!repeats.empty()) return e.Done({e.Op("ge.Repeat", {e.In(0)}, {{"repeats", repeats}})});
  const bool nearest = e.Str("mode", "nearest") == "nearest",
             crop = e.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  std::vector<ValueId> operands = {e.In(kX)};
  std::vector<int64_t> axes;
  std::vector<size_t> order(plan->axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return plan->axes[a].axis < plan->axes[b].axis; });
  for (const size_t i : order) {
    if (!crop && IsKept(*plan, plan->axes[i])) continue;
    axes.push_back(plan->axes[i].axis);
    AddTaps(e, *plan, i, nearest, crop, operands);
  }
  if (axes.empty()) return e.Done({e.Op("Identity", {e.In(kX)})});
  Attrs attrs = {{"axes", axes}, {"nearest", int64_t{nearest}}, {"crop", int64_t{crop}}};
  attrs["extrapolation_value"] = e.Float("extrapolation_value", 0);
  return e.Done({e.Op("ge.Resize", operands, attrs)});
}

const OpDef& kResize =
    Register({.name = "Resize",
              .max_inputs = 4,
              .infer = InferResize,
              .expand = ExpandResize,
              .halves = Halves::kWiden,
              .flops_per_element = 10,
              .samples = {"(f32[1,2,3,4], , , i64[4]=[1,2,5,7]) {mode=\"linear\"}",
                          "(f32[1,2,9,40], , , i64[2]=[4,19]) {mode=\"cubic\", axes=[2,3], "
                          "antialias=1}",
                          "(f16[1,2,3,24], , , i64[2]=[7,40]) {axes=[1,3]}",
                          "(f32[1,2,6,20], f32[4]=[0,0,1,1], , i64[2]=[4,33]) {axes=[2,3], "
                          "mode=\"linear\", coordinate_transformation_mode="
                          "\"tf_crop_and_resize\"}"}});

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
