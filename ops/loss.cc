// Losses and normalisations by formula.
//   ge.NllPick                 loss[n,d] = -weight[t] x[n,t,d] and weight[t], with t = target[n,d];
//                              both 0 where t == ignore_index
//   NegativeLogLikelihoodLoss  none: loss; sum: sum(loss); mean: sum(loss) / sum(weight)
//   SoftmaxCrossEntropyLoss    the same of LogSoftmax(scores) over axis 1, which is output 1
//   LpNormalization            x / norm, 0 where the norm is 0
//   MeanVarianceNormalization  (x - mean) / (sqrt(variance) + 1e-9)
#include <fmt/format.h>

#include "ir/expand.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Val;

Status CheckLoss(InferContext& ctx) {
  const Dims &x = ctx.In(0).dims, &target = ctx.In(1).dims;
  GE_TRY(CheckMinRank(ctx, 0, 2));
  GE_TRY(CheckRank(ctx, 1, static_cast<int>(x.size()) - 1));
  for (size_t i = 0; i < target.size(); ++i) {
    GE_ASSIGN([[maybe_unused]] Expr same, SameDim(ctx, target[i], x[i == 0 ? 0 : i + 1], "target"));
  }
  if (!ctx.Has(2)) return {};
  GE_TRY(CheckRank(ctx, 2, 1));
  GE_ASSIGN([[maybe_unused]] Expr classes, SameDim(ctx, ctx.In(2).dims[0], x[1], "weights"));
  return {};
}

Status InferPick(InferContext& ctx) {
  GE_TRY(CheckLoss(ctx));
  ctx.Out(0, ctx.In(0).dtype, ctx.In(1).dims);
  ctx.Out(1, ctx.In(0).dtype, ctx.In(1).dims);
  return {};
}

Val Pick(Lowering& l, int output, const Index& idx) {
  DType f = ComputeType(l.In(0).dtype);
  Expr classes = l.In(0).dims[1];
  Val target = l.b.Cast(l.Load(1, idx), DType::kI64), zero = l.b.ConstInt(DType::kI64, 0);
  Val inside = Max(zero, Min(target, l.b.Index(classes - 1)));
  Expr t = l.b.LetIndex(inside, 0, INT64_MAX, classes);
  Val weight = l.Has(2) ? l.Load(2, {t}) : l.b.Const(f, 1);
  if (HasAttr(l.node, "ignore_index")) {
    Val ignored = Equal(target, l.b.ConstInt(DType::kI64, l.Int("ignore_index", 0)));
    weight = l.b.Select(ignored, l.b.Const(f, 0), weight);
  }
  if (output == 1) return weight;
  Index at = idx;
  at.insert(at.begin() + 1, t);
  return -l.Load(0, at) * weight;
}

const OpDef& kPick = Register({.name = "NllPick",
                               .domain = "ge",
                               .min_inputs = 2,
                               .max_inputs = 3,
                               .min_outputs = 2,
                               .max_outputs = 2,
                               .infer = InferPick,
                               .element = Pick,
                               .fusion = Fusion::kGather});

Status InferLoss(InferContext& ctx) {
  GE_TRY(CheckLoss(ctx));
  std::string reduction = ctx.Str("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return ctx.Fault("reduction is " + reduction + ", must be none, sum or mean");
  }
  ctx.Out(0, ctx.In(0).dtype, reduction == "none" ? ctx.In(1).dims : Dims{});
  if (ctx.Wants(1)) ctx.Out(1, ctx.In(0).dtype, ctx.In(0).dims);
  return {};
}

ValueId Loss(ExpandBuilder& e, ValueId log_probability) {
  Attrs attrs;
  if (HasAttr(e.node(), "ignore_index")) attrs["ignore_index"] = e.Int("ignore_index", 0);
  std::vector<ValueId> inputs{log_probability, e.In(1)};
  if (e.Has(2)) inputs.push_back(e.In(2));
  std::vector<ValueId> picked = e.Ops("ge.NllPick", inputs, 2, attrs);
  std::string reduction = e.Str("reduction", "mean");
  if (reduction == "none") return picked[0];
  Attrs all{{"keepdims", int64_t{0}}};
  ValueId sum = e.Op("ReduceSum", {picked[0]}, all);
  if (reduction == "sum") return sum;
  return e.Op("Div", {sum, e.Op("ReduceSum", {picked[1]}, all)});
}

bool ExpandNll(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  return e.Done({Loss(e, e.In(0))});
}

bool ExpandCrossEntropy(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  ValueId log_probability = e.Op("LogSoftmax", {e.In(0)}, {{"axis", int64_t{1}}});
  std::vector<ValueId> outputs{Loss(e, log_probability)};
  if (e.NumOutputs() > 1) outputs.push_back(e.Wants(1) ? log_probability : kNone);
  return e.Done(outputs);
}

OpDef LossOp(const char* name, int outputs, bool (*expand)(Graph&, NodeId)) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 3,
          .max_outputs = outputs,
          .infer = InferLoss,
          .expand = expand,
          .samples = {"(f32[2,3], i64[2]=[0,2], f32[3])",
                      "(f32[2,3,2], i64[2,2]=[0,2,1,1]) {reduction=\"none\"}"}};
}

const OpDef& kNll = Register(LossOp("NegativeLogLikelihoodLoss", 1, ExpandNll));
const OpDef& kCrossEntropy = Register(LossOp("SoftmaxCrossEntropyLoss", 2, ExpandCrossEntropy));

// --- normalisations -----------------------------------------------------------------------------

Status InferLpNorm(InferContext& ctx) {
  GE_ASSIGN([[maybe_unused]] int axis, NormaliseAxis(ctx.Int("axis", -1), ctx.In(0).rank()));
  int64_t p = ctx.Int("p", 2);
  if (p != 1 && p != 2) return ctx.Fault(fmt::format("p is {}, must be 1 or 2", p));
  return InferSameAsInput(ctx);
}

bool ExpandLpNorm(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  ValueId x = e.In(0), axes = e.Ints({e.Int("axis", -1)});
  ValueId norm = e.Op(e.Int("p", 2) == 1 ? "ReduceL1" : "ReduceL2", {x, axes});
  ValueId zero = e.ScalarLike(x, 0), none = e.Op("Equal", {norm, zero});
  return e.Done({e.Op("Where", {none, zero, e.Op("Div", {x, norm})})});
}

const OpDef& kLpNorm = Register({.name = "LpNormalization",
                                 .infer = InferLpNorm,
                                 .expand = ExpandLpNorm,
                                 .halves = Halves::kWiden,
                                 .samples = {"(f32[2,3]) {p=1, axis=0}", "(f32[2,3])"}});

Status InferMvn(InferContext& ctx) {
  GE_ASSIGN([[maybe_unused]] auto axes, NormaliseAxes(ctx.Ints("axes"), ctx.In(0).rank()));
  return InferSameAsInput(ctx);
}

bool ExpandMvn(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  std::vector<int64_t> given = e.Ints("axes");
  if (given.empty()) given = {0, 2, 3};
  ValueId x = e.In(0), axes = e.Ints(given);
  ValueId centred = e.Op("Sub", {x, e.Op("ReduceMean", {x, axes})});
  ValueId variance = e.Op("ReduceMean", {e.Op("Mul", {centred, centred}), axes});
  ValueId deviation = e.Op("Add", {e.Op("Sqrt", {variance}), e.ScalarLike(x, 1e-9)});
  return e.Done({e.Op("Div", {centred, deviation})});
}

const OpDef& kMvn = Register({.name = "MeanVarianceNormalization",
                              .infer = InferMvn,
                              .expand = ExpandMvn,
                              .halves = Halves::kWiden,
                              .samples = {"(f32[2,3,4,5])", "(f32[2,3]) {axes=[1]}"}});

}  // namespace
}  // namespace ge
