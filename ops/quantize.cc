// Quantisation. The scale and zero point of x[i] are one number, one per index of `axis`, or one
// per block of `block_size` along it.
//   QuantizeLinear     y = saturate(round_to_even(x / scale) + zero)   float types: cast(x / scale
//   + zero) DequantizeLinear   y = (x - zero) * scale DynamicQuantizeLinear   scale = (max(x,0) -
//   min(x,0)) / 255, zero = saturate(round(-min / scale))
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "ir/expand.h"
#include "ops/cast.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Op;
using tile::Val;

DType TypeAttr(const Node& n, std::string_view name) {
  return static_cast<DType>(AttrOr<int64_t>(n, name, 0));
}

// Position in scale and zero point of element idx of x.
Index ScaleIndex(const Lowering& l, int operand, const Index& idx) {
  const TensorType &x = l.In(0), &scale = l.In(operand);
  if (scale.rank() == 0) return {};
  if (scale.Elements().IsConst(1)) return Index(scale.rank(), 0);
  int axis = AxisOf(l.Int("axis", 1), x.rank());
  int64_t block = l.Int("block_size", 0);
  if (scale.rank() == 1 && (x.rank() != 1 || block == 0)) return {idx[axis]};
  Index at = idx;
  if (block == 0 && (scale.dims[axis] == x.dims[axis] || scale.dims[axis].IsConst(0))) return at;
  at[axis] = FloorDiv(idx[axis], block ? Expr(block) : CeilDiv(x.dims[axis], scale.dims[axis]));
  return at;
}

Status CheckScale(InferContext& ctx) {
  const TensorType &x = ctx.In(0), &scale = ctx.In(1);
  bool one = ctx.Has(2) && ctx.In(2).Elements().IsConst(1) && scale.Elements().IsConst(1);
  if (ctx.Has(2) && !one && ctx.In(2).rank() != scale.rank()) {
    return ctx.Fault(fmt::format("zero point has shape {}, scale {}; they must be equal",
                                 ShapeText(ctx.In(2).dims), ShapeText(scale.dims)));
  }
  if (scale.rank() == 0 || scale.Elements().IsConst(1)) return {};
  GE_ASSIGN(int axis, NormaliseAxis(ctx.Int("axis", 1), x.rank()));
  if (scale.rank() != 1 && scale.rank() != x.rank()) {
    return ctx.Fault(fmt::format("scale has rank {}, must be 0, 1 or {}", scale.rank(), x.rank()));
  }
  if (scale.rank() == 1 && ctx.Int("block_size", 0) == 0) {
    GE_ASSIGN([[maybe_unused]] Expr same,
              SameDim(ctx, scale.dims[0], x.dims[axis], "scales of the axis"));
  }
  return {};
}

// --- QuantizeLinear -----------------------------------------------------------------------------

Status InferQuantize(InferContext& ctx) {
  GE_TRY(CheckScale(ctx));
  DType to = ctx.Has(2) ? ctx.In(2).dtype : TypeAttr(ctx.node, "output_dtype");
  if (to == DType::kNone) to = DType::kU8;
  ctx.Out(0, to, ctx.In(0).dims);
  return {};
}

Val Saturated(Lowering& l, Val x, DType to) {
  int width = BitWidth(to);
  double high = std::ldexp(1.0, IsSigned(to) ? width - 1 : width) - 1;
  double low = IsSigned(to) ? -high - 1 : 0;
  Val y = Min(Max(x, Like(x, low)), Like(x, high));
  return l.b.Convert(l.b.Cast(y, DType::kI32), to);
}

// The numbers x between which rint(x / scale) lies in [low, high], at the ends.
std::pair<float, float> Preimage(float scale, double low, double high) {
  auto end = [&](double n, float outwards) {
    auto inside = [&](float x) {
      const double q = static_cast<double>(std::rint(x / scale));
      return outwards > 0 ? q <= n : q >= n;
    };
    float x = static_cast<float>((n + std::copysign(0.5, outwards)) * static_cast<double>(scale));
    while (!inside(x)) x = std::nextafter(x, -outwards);
    for (float next; inside(next = std::nextafter(x, outwards));) x = next;
    return x;
  };
  const float inf = std::numeric_limits<float>::infinity();
  return {end(low, -inf), end(high, inf)};
}

// To bytes by one constant scale: clamped before the division, so that the rest needs no care for
// large numbers (and generated code no division: emit/quotient.cc). Invalid if it is not that.
Val QuantizeByConstant(Lowering& l, const Index& idx) {
  const DType to = l.Out(0).dtype;
  if ((to != DType::kU8 && to != DType::kI8) || l.In(0).dtype != DType::kF32) return {};
  auto constant = [&](Val v) -> const tile::ValueNode* {
    const tile::ValueNode& n = l.b.kernel().values[v.id];
    return n.op == Op::kConst ? &n : nullptr;
  };
  const tile::ValueNode* scale = constant(l.Load(1, ScaleIndex(l, 1, idx)));
  if (scale == nullptr || scale->type != DType::kF32) return {};
  const float s = static_cast<float>(scale->f);
  if (!(s > 1e-30f && s < 1e30f)) return {};
  int64_t zero = 0;
  if (l.Has(2)) {
    const tile::ValueNode* z = constant(l.Load(2, ScaleIndex(l, 2, idx)));
    if (z == nullptr) return {};
    zero = z->i;
  }
  const double low = to == DType::kI8 ? -128 : 0;
  const auto [first, last] =
      Preimage(s, low - static_cast<double>(zero), low + 255 - static_cast<double>(zero));
  Val x = l.Load(0, idx);
  x = Min(Max(x, Like(x, static_cast<double>(first))), Like(x, static_cast<double>(last)));
  if (s != 1) x = x / l.b.F(static_cast<double>(s));
  Val q = l.b.Cast(l.b.Unary(Op::kRound, x), DType::kI32);
  return l.b.Convert(q + l.b.ConstInt(DType::kI32, zero), to);
}

Val Quantize(Lowering& l, int, const Index& idx) {
  DType to = l.Out(0).dtype, precision = TypeAttr(l.node, "precision");
  if (precision == DType::kNone) precision = l.In(1).dtype;
  if (!IsFloat(precision)) precision = DType::kF32;
  if (precision == DType::kF32 && l.In(1).dtype == DType::kF32) {
    if (Val q = QuantizeByConstant(l, idx); q.valid()) return q;
  }
  DType f = ComputeType(precision);
  Val x = l.b.Convert(l.Load(0, idx), precision);
  Val scale = l.b.Convert(l.Load(1, ScaleIndex(l, 1, idx)), precision);
  Val q = l.b.Narrow(x / scale, precision);
  if (IsFloat(to)) {
    if (l.Has(2)) q = q + l.b.Cast(l.Load(2, ScaleIndex(l, 2, idx)), f);
    return CastTo(l.b, q, to, l.Int("saturate", 1) != 0);
  }
  q = l.b.Unary(Op::kRound, q);
  if (l.Has(2)) q = q + l.b.Cast(l.Load(2, ScaleIndex(l, 2, idx)), f);
  return Saturated(l, q, to);
}

const OpDef& kQuantize =
    Register({.name = "QuantizeLinear",
              .min_inputs = 2,
              .max_inputs = 3,
              .infer = InferQuantize,
              .element = Quantize,
              .fusion = Fusion::kPointwise,
              .flops_per_element = 6,
              .samples = {"(f32[2,3,4], f32[3], i8[3])", "(f32[2,3], f32[], u8[])"}});

// --- DequantizeLinear ---------------------------------------------------------------------------

Status InferDequantize(InferContext& ctx) {
  GE_TRY(CheckScale(ctx));
  DType to = TypeAttr(ctx.node, "output_dtype");
  ctx.Out(0, to == DType::kNone ? ctx.In(1).dtype : to, ctx.In(0).dims);
  return {};
}

Val Dequantize(Lowering& l, int, const Index& idx) {
  DType f = ComputeType(l.Out(0).dtype);
  Val x = l.Load(0, idx);
  if (l.Has(2)) x = x - l.Load(2, ScaleIndex(l, 2, idx));
  Val scale = l.b.Cast(l.Load(1, ScaleIndex(l, 1, idx)), f);
  return l.b.Convert(l.b.Cast(x, f) * scale, l.Out(0).dtype);
}

const OpDef& kDequantize =
    Register({.name = "DequantizeLinear",
              .min_inputs = 2,
              .max_inputs = 3,
              .infer = InferDequantize,
              .element = Dequantize,
              .fusion = Fusion::kPointwise,
              .halves = Halves::kWiden,
              .flops_per_element = 2,
              .samples = {"(i8[2,3,4], f32[3], i8[3])", "(u8[2,3], f32[], u8[])"}});

// --- DynamicQuantizeLinear ----------------------------------------------------------------------

Status InferDynamicQuantize(InferContext& ctx) {
  ctx.Out(0, DType::kU8, ctx.In(0).dims);
  ctx.Out(1, DType::kF32, {});
  ctx.Out(2, DType::kU8, {});
  return {};
}

// ge.Extremes: the least and the greatest of x over all axes but the first `keep`, read once.
Status InferExtremes(InferContext& ctx) {
  Dims dims = ctx.In(0).dims;
  const auto keep = static_cast<size_t>(ctx.Int("keep", 0));
  if (keep > dims.size()) return ctx.Fault(fmt::format("keep is {}, rank {}", keep, dims.size()));
  dims.resize(keep);
  for (int o : {0, 1}) ctx.Out(o, ctx.In(0).dtype, dims);
  return {};
}

void LowerExtremes(Lowering& l) {
  const Dims& x = l.In(0).dims;
  const Dims inner(x.begin() + l.Int("keep", 0), x.end());
  l.ForEach(Dims(x.begin(), x.end() - static_cast<std::ptrdiff_t>(inner.size())), false,
            [&](const Index& o) {
              for (int output : {0, 1}) {
                const auto op = output == 0 ? tile::ReduceOp::kMin : tile::ReduceOp::kMax;
                l.Yield(output, o, l.b.Reduce(op, inner, [&](const std::vector<Expr>& i) {
                  Index at = o;
                  at.insert(at.end(), i.begin(), i.end());
                  return l.Load(0, at);
                }));
              }
            });
}

const OpDef& kExtremes = Register({.name = "Extremes",
                                   .domain = "ge",
                                   .min_outputs = 2,
                                   .max_outputs = 2,
                                   .infer = InferExtremes,
                                   .lower = LowerExtremes,
                                   .samples = {"(f32[3,4,35]) {keep=2}", "(f32[2,50]) {keep=1}"}});

// The least and the greatest element. Of much data first those of rows.
std::pair<ValueId, ValueId> RangeOf(ExpandBuilder& e, ValueId x) {
  constexpr int64_t kMany = 16384, kRow = 32;
  const Attrs all{{"keepdims", int64_t{0}}};
  const Dims dims = e.Dims(x);
  const size_t keep = dims.size() == 2 ? 1 : 2;
  std::vector<ValueId> parts = {x, x};
  if (dims.size() >= 2 && HintValue(Product(dims)) >= kMany &&
      HintValue(Product(Dims(dims.begin() + static_cast<std::ptrdiff_t>(keep), dims.end()))) >=
          kRow)
    parts = e.Ops("ge.Extremes", {x}, 2, {{"keep", static_cast<int64_t>(keep)}});
  return {e.Op("ReduceMin", {parts[0]}, all), e.Op("ReduceMax", {parts[1]}, all)};
}

bool ExpandDynamicQuantize(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  ValueId x = e.In(0), zero = e.Scalar(DType::kF32, 0), one = e.Scalar(DType::kF32, 1);
  const auto [least, greatest] = RangeOf(e, x);
  ValueId low = e.Op("Min", {least, zero});
  ValueId high = e.Op("Max", {greatest, zero});
  ValueId scale = e.Op("Div", {e.Op("Sub", {high, low}), e.Scalar(DType::kF32, 255)});
  scale = e.Op("Where", {e.Op("Equal", {scale, zero}), one, scale});  // all zeros
  ValueId at = e.Op("Round", {e.Op("Div", {e.Op("Sub", {zero, low}), scale})});
  ValueId point = e.Cast(e.Op("Clip", {at, zero, e.Scalar(DType::kF32, 255)}), DType::kU8);
  ValueId y = e.Op("QuantizeLinear", {x, scale, point});
  return e.Done({e.Wants(0) ? y : kNone, e.Wants(1) ? scale : kNone, e.Wants(2) ? point : kNone});
}

const OpDef& kDynamicQuantize = Register({.name = "DynamicQuantizeLinear",
                                          .min_outputs = 3,
                                          .max_outputs = 3,
                                          .infer = InferDynamicQuantize,
                                          .expand = ExpandDynamicQuantize,
                                          .samples = {"(f32[3,4])", "(f32[2,90,100])"}});

}  // namespace
}  // namespace ge
