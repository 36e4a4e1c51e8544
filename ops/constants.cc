// Tensors made of sizes and attributes.
//   Shape            y = dims[start:end] of x          Size   y = product of dims
//   ConstantOfShape  y[i] = value, of the given shape  EyeLike  y[i,j] = j - i == k
//   Range            y[i] = start + i * delta, ceil((limit - start) / delta) elements
//   windows          y[n] = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/expand.h"
#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Op;
using tile::Val;

// out[i] = elements[i], for outputs whose facts are complete.
Val FromFacts(Lowering& l, int output, const Index& idx) {
  const auto& elems = *l.graph.value(l.node.outputs[output]).elems;
  Expr at = Linear(idx, l.Out(output).dims);
  Expr e = elems.empty() ? Expr(0) : elems.back();
  for (int64_t i = static_cast<int64_t>(elems.size()) - 2; i >= 0; --i) {
    e = Select(Eq(at, i), elems[i], e);
  }
  return l.b.Convert(l.b.Index(e), l.Out(output).dtype);
}

Status InferShape(InferContext& ctx) {
  const Dims& dims = ctx.In(0).dims;
  int64_t rank = dims.size();
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  int64_t start = clamp(ctx.Int("start", 0)), end = clamp(ctx.Int("end", rank));
  Dims elems;
  for (int64_t i = start; i < end; ++i) elems.push_back(dims[i]);
  ctx.Out(0, DType::kI64, {elems.size()});
  ctx.OutElems(0, std::move(elems));
  return {};
}

Status InferSize(InferContext& ctx) {
  ctx.Out(0, DType::kI64, {});
  ctx.OutElems(0, {Product(ctx.In(0).dims)});
  return {};
}

const OpDef& kShape = Register({.name = "Shape",
                                .infer = InferShape,
                                .element = FromFacts,
                                .fusion = Fusion::kPointwise,
                                .flops_per_element = 0,
                                .samples = {"(f32[2,3,4]) {start=-2}"}});
const OpDef& kSize = Register({.name = "Size",
                               .infer = InferSize,
                               .element = FromFacts,
                               .fusion = Fusion::kPointwise,
                               .flops_per_element = 0,
                               .samples = {"(f32[2,3,4])"}});

// --- ConstantOfShape ----------------------------------------------------------------------------

std::shared_ptr<const Constant> ValueAttr(const Node& n) {
  return AttrOr<std::shared_ptr<const Constant>>(n, "value", nullptr);
}

Status InferConstantOfShape(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 0, 1));
  GE_ASSIGN(Dims dims, SizesOf(ctx, 0));
  for (Expr d : dims) ctx.Check(Le(0, d), "a dim of ConstantOfShape must not be negative");
  auto value = ValueAttr(ctx.node);
  DType t = value ? value->dtype : DType::kF32;
  Expr count = Product(dims);
  ctx.Out(0, t, std::move(dims));
  bool facts = IsInteger(t) || t == DType::kBool;
  if (facts && value && value->Elements() == 1 && count.IsConst() && count.value() >= 0 &&
      count.value() <= 64) {
    ctx.OutElems(0, std::vector<Expr>(count.value(), IntElements(*value)[0]));
  }
  return {};
}

Val ConstantOfShape(Lowering& l, int, const Index&) {
  DType t = ComputeType(l.Out(0).dtype);
  auto value = ValueAttr(l.node);
  if (!value) return l.b.Const(t, 0);
  if (IsFloat(value->dtype)) return l.b.Const(t, FloatElement(*value, 0));
  return l.b.ConstInt(t, IntElements(*value)[0]);
}

const OpDef& kConstantOfShape = Register({.name = "ConstantOfShape",
                                          .infer = InferConstantOfShape,
                                          .element = ConstantOfShape,
                                          .expand = ExpandSizes<0>,
                                          .fusion = Fusion::kPointwise,
                                          .flops_per_element = 0,
                                          .samples = {"(i64[2]=[2,3])"}});

// --- EyeLike ------------------------------------------------------------------------------------

Status InferEyeLike(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 0, 2));
  ctx.Out(0, static_cast<DType>(ctx.Int("dtype", static_cast<int>(ctx.In(0).dtype))),
          ctx.In(0).dims);
  return {};
}

Val EyeLike(Lowering& l, int, const Index& idx) {
  DType t = ComputeType(l.Out(0).dtype);
  Val on = Equal(l.b.Index(idx[0] + l.Int("k", 0)), l.b.Index(idx[1]));
  return l.b.Select(on, l.b.Const(t, 1), l.b.Const(t, 0));
}

const OpDef& kEyeLike = Register({.name = "EyeLike",
                                  .infer = InferEyeLike,
                                  .element = EyeLike,
                                  .fusion = Fusion::kPointwise,
                                  .samples = {"(f32[3,4]) {k=1}"}});

// --- Range --------------------------------------------------------------------------------------

// The length, if the three operands are known: integers by facts, other numbers as constants.
std::optional<Expr> KnownLength(const Graph& g, const Node& n) {
  const std::vector<Expr>* facts[3];
  bool all = true;
  for (int i = 0; i < 3; ++i) {
    const auto& elems = g.value(n.inputs[i]).elems;
    facts[i] = elems ? &*elems : nullptr;
    all = all && facts[i] && facts[i]->size() == 1;
  }
  if (all) {
    Expr start = (*facts[0])[0], limit = (*facts[1])[0], delta = (*facts[2])[0];
    return Max(CeilDiv(limit - start, delta), 0);
  }
  auto start = ScalarOf(g, n, 0), limit = ScalarOf(g, n, 1), delta = ScalarOf(g, n, 2);
  if (!start || !limit || !delta || *delta == 0) return std::nullopt;
  double length = std::ceil((*limit - *start) / *delta);
  return Expr(static_cast<int64_t>(std::max(length, 0.0)));
}

Status InferRange(InferContext& ctx) {
  GE_TRY(CheckSameType(ctx, 0, 3));
  for (int i = 0; i < 3; ++i)
    ctx.Check(Eq(ctx.In(i).Elements(), 1),
              fmt::format("operand {} is {}, must be one number", i, ToString(ctx.In(i))));
  if (!ctx.failed_check().empty()) return {};
  DType t = ctx.In(0).dtype;
  std::optional<Expr> length = KnownLength(ctx.graph, ctx.node);
  if (length && !length->IsValid()) return ctx.Fault("delta must not be 0");
  ctx.Out(0, t, {length ? *length : ctx.Fresh("range")});
  const auto *start = ctx.Elems(0), *delta = ctx.Elems(2);
  if (!start || !delta || !length || !length->IsConst() || length->value() > 64) return {};
  std::vector<Expr> elems;
  for (int64_t i = 0; i < length->value(); ++i) elems.push_back((*start)[0] + (*delta)[0] * i);
  ctx.OutElems(0, std::move(elems));
  return {};
}

// start + i * delta, in the compute type.
Val RangeElement(Lowering& l, const Index& idx, int delta) {
  Val start = l.Load(0, Index(l.In(0).rank(), 0)),
      step = l.Load(delta, Index(l.In(delta).rank(), 0));
  return start + l.b.Cast(l.b.Index(idx[0]), step.type()) * step;
}

Val Range(Lowering& l, int, const Index& idx) { return RangeElement(l, idx, 2); }

// Operands not known: the length is computed at run time and read back.
bool ExpandRange(Graph& g, NodeId n) {
  if (KnownLength(g, g.node(n))) return false;
  ExpandBuilder e(g, n);
  bool integer = IsInteger(e.Type(e.In(0)));
  auto as = [&](int i) {  // one number, also where its dims are open
    const ValueId v = e.Cast(e.In(i), integer ? DType::kI64 : DType::kF64);
    return Product(e.Dims(v)).IsConst() ? v : e.Reshape(v, {});
  };
  ValueId span = e.Op("Sub", {as(1), as(0)});
  ValueId length;
  if (integer) {  // ceil(a / b) = a / b + (the rest is not 0 and has b's sign)
    ValueId zero = e.Scalar(DType::kI64, 0), delta = as(2);
    ValueId rest = e.Op("Mod", {span, delta}, {{"fmod", int64_t{1}}});
    ValueId exact = e.Op("Equal", {rest, zero});
    ValueId same = e.Op("Equal", {e.Op("Less", {rest, zero}), e.Op("Less", {delta, zero})});
    ValueId up = e.Op("And", {e.Op("Not", {exact}), same});
    length = e.Op("Add", {e.Op("Div", {span, delta}), e.Cast(up, DType::kI64)});
  } else {
    length = e.Cast(e.Op("Ceil", {e.Op("Div", {span, as(2)})}), DType::kI64);
  }
  length = e.Op("ge.ReadSizes", {e.Op("Max", {length, e.Scalar(DType::kI64, 0)})});
  return e.Done({e.Op("ge.RangeOf", {e.In(0), e.In(2), length})});
}

const OpDef& kRange = Register(
    {.name = "Range",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = InferRange,
     .element = Range,
     .expand = ExpandRange,
     .fusion = Fusion::kPointwise,
     .samples = {"(f32[]=[1], f32[]=[4], f32[]=[0.5])", "(i64[]=[9], i64[]=[2], i64[]=[-3])"}});

// ge.RangeOf(start, delta, length)
Status InferRangeOf(InferContext& ctx) {
  GE_ASSIGN(Dims length, SizesOf(ctx, 2));
  ctx.Out(0, ctx.In(0).dtype, {Max(length[0], 0)});
  return {};
}

Val RangeOf(Lowering& l, int, const Index& idx) { return RangeElement(l, idx, 1); }

const OpDef& kRangeOf = Register({.name = "RangeOf",
                                  .domain = "ge",
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .infer = InferRangeOf,
                                  .element = RangeOf,
                                  .fusion = Fusion::kPointwise});

// --- window functions ---------------------------------------------------------------------------

Status InferWindow(InferContext& ctx) {
  GE_ASSIGN(Dims size, SizesOf(ctx, 0));
  if (size.size() != 1) return ctx.Fault("size must be a scalar");
  ctx.Out(0, static_cast<DType>(ctx.Int("output_datatype", 1)), {Max(size[0], 0)});
  return {};
}

Val CosineSum(Lowering& l, const Index& idx, double a0, double a1, double a2) {
  Expr size = l.Out(0).dims[0], period = l.Int("periodic", 1) ? size : size - 1;
  Val n = l.b.Cast(l.b.Index(idx[0]), DType::kF64),
      total = l.b.Cast(l.b.Index(period), DType::kF64);
  Val angle = n * (2 * std::numbers::pi) / total;
  Val y = a0 - l.b.Unary(Op::kCos, angle) * a1;
  if (a2 != 0) y = y + l.b.Unary(Op::kCos, angle * 2.0) * a2;
  return l.b.Convert(y, l.Out(0).dtype);
}

Val Hann(Lowering& l, int, const Index& idx) { return CosineSum(l, idx, 0.5, 0.5, 0); }
Val Hamming(Lowering& l, int, const Index& idx) {
  return CosineSum(l, idx, 25.0 / 46, 1 - 25.0 / 46, 0);
}
Val Blackman(Lowering& l, int, const Index& idx) { return CosineSum(l, idx, 0.42, 0.5, 0.08); }

OpDef Window(const char* name, Val (*element)(Lowering&, int, const Index&)) {
  return {.name = name,
          .infer = InferWindow,
          .element = element,
          .expand = ExpandSizes<0>,
          .fusion = Fusion::kPointwise,
          .flops_per_element = 40,
          .samples = {"(i64[]=[10])", "(i64[]=[7]) {periodic=0}"}};
}

const OpDef& kHann = Register(Window("HannWindow", Hann));
const OpDef& kHamming = Register(Window("HammingWindow", Hamming));
const OpDef& kBlackman = Register(Window("BlackmanWindow", Blackman));

}  // namespace
}  // namespace ge
