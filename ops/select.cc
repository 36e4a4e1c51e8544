// Pointwise operators of several different operands.
//   Where          z = condition ? x : y
//   Clip           y = min(max(x, low), high); NaN stays NaN; an absent limit is the largest number
//                  of the type, so that infinities become finite
//   PRelu          y = x < 0 ? slope * x : x
//   Dropout        inference: y = x, mask all true; training: see below
#include <fmt/format.h>

#include <limits>

#include "ops/random.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Val;

Status InferWhere(InferContext& ctx) {
  if (ctx.In(0).dtype != DType::kBool) {
    return ctx.Fault(fmt::format("condition has type {}, must be bool", Name(ctx.In(0).dtype)));
  }
  GE_TRY(CheckSameType(ctx, 1, 3));
  GE_ASSIGN(Dims dims, BroadcastInputs(ctx, 0, 3));
  ctx.Out(0, ctx.In(1).dtype, dims);
  Expr count = Product(dims);
  const std::vector<Expr>* elems[3];
  for (int i = 0; i < 3; ++i) {
    elems[i] = ctx.Elems(i);
    if (!elems[i] || !ConstDims(ctx.In(i).dims)) return {};
  }
  if (!count.IsConst() || count.value() > 64) return {};
  std::vector<Expr> out(count.value());
  for (int64_t k = 0; k < count.value(); ++k) {
    auto at = [&](int i) { return (*elems[i])[BroadcastPosition(k, dims, ctx.In(i).dims)]; };
    out[k] = Select(at(0), at(1), at(2));
  }
  ctx.OutElems(0, std::move(out));
  return {};
}

Val Where(Lowering& l, int, const Index& idx) {
  return l.b.Select(l.LoadBroadcast(0, idx), l.LoadBroadcast(1, idx), l.LoadBroadcast(2, idx));
}

const OpDef& kWhere = Register({.name = "Where",
                                .min_inputs = 3,
                                .max_inputs = 3,
                                .infer = InferWhere,
                                .element = Where,
                                .fusion = Fusion::kPointwise,
                                .by_element = true,
                                .halves = Halves::kFollow,
                                .samples = {"(bool[2,1], f32[2,3], f32[3])"}});

Status InferClip(InferContext& ctx) {
  GE_TRY(CheckSameType(ctx, 0, 3));
  CopyType(ctx, 0, 0);
  const auto* elems = ctx.Elems(0);
  if (!elems) return {};
  std::vector<Expr> out = *elems;
  for (int i : {1, 2}) {
    if (!ctx.Has(i)) continue;
    const auto* limit = ctx.Elems(i);
    if (!limit || limit->size() != 1) return {};
    for (Expr& e : out) e = i == 1 ? Max(e, (*limit)[0]) : Min(e, (*limit)[0]);
  }
  ctx.OutElems(0, std::move(out));
  return {};
}

double LargestNumber(DType t) {
  switch (t) {
    case DType::kF64: return std::numeric_limits<double>::max();
    case DType::kF16: return 65504;
    case DType::kBF16: return 0x1.fep127;
    default: return std::numeric_limits<float>::max();
  }
}

Val Clip(Lowering& l, int, const Index& idx) {
  Val x = l.Load(0, idx);
  const DType type = l.In(0).dtype;
  const bool bounded = !IsFloat(type);  // integers have no infinities
  if (l.Has(1) || !bounded) x = Max(x, ScalarOr(l, 1, x.type(), -LargestNumber(type)));
  if (l.Has(2) || !bounded) x = Min(x, ScalarOr(l, 2, x.type(), LargestNumber(type)));
  return x;
}

const OpDef& kClip = Register({.name = "Clip",
                               .min_inputs = 1,
                               .max_inputs = 3,
                               .infer = InferClip,
                               .element = Clip,
                               .fusion = Fusion::kPointwise,
                               .in_place = true,
                               .by_element = true,
                               .halves = Halves::kWiden,
                               .flops_per_element = 2,
                               .samples = {"(f32[2,3], f32[], f32[])", "(f32[4])"}});

Status InferPRelu(InferContext& ctx) {
  GE_TRY(CheckSameType(ctx, 0, 2));
  GE_TRY(CheckBroadcastsTo(ctx, ctx.In(1).dims, ctx.In(0).dims));
  CopyType(ctx, 0, 0);
  return {};
}

Val PRelu(Lowering& l, int, const Index& idx) {
  Val x = l.Load(0, idx);
  return l.b.Select(Less(x, Like(x, 0)), x * l.LoadBroadcast(1, idx), x);
}

const OpDef& kPRelu = Register({.name = "PRelu",
                                .min_inputs = 2,
                                .max_inputs = 2,
                                .infer = InferPRelu,
                                .element = PRelu,
                                .fusion = Fusion::kPointwise,
                                .in_place = true,
                                .by_element = true,
                                .halves = Halves::kWiden,
                                .flops_per_element = 2,
                                .samples = {"(f32[2,3,4], f32[3,1])"}});

// Inputs: data, ratio, training_mode. In training mode with a ratio above zero an element is kept
// where a hash of its position and of the seed is not below the ratio, and scaled by 1/(1-ratio).
Status InferDropout(InferContext& ctx) {
  CopyType(ctx, 0, 0);
  if (ctx.Wants(1)) ctx.Out(1, DType::kBool, ctx.In(0).dims);
  return {};
}

Val Dropout(Lowering& l, int output, const Index& idx) {
  auto training = ScalarOf(l.graph, l.node, 2);
  bool off = !l.Has(2) || (training && *training == 0);
  if (off) return output == 0 ? l.Load(0, idx) : BoolConst(l.b, true);
  const DType f = DType::kF32;
  Val ratio = l.b.Cast(ScalarOr(l, 1, l.Has(1) ? ComputeType(l.In(1).dtype) : f, 0.5), f);
  Val position = l.b.Index(Linear(idx, l.In(0).dims));
  Val keep = Or(LessEqual(ratio, UniformAt(l.b, position, l.Int("seed", 0))),
                Equal(ScalarOr(l, 2, DType::kBool, 0), BoolConst(l.b, false)));
  if (output == 1) return keep;
  Val x = l.Load(0, idx);
  Val live = Equal(ScalarOr(l, 2, DType::kBool, 0), BoolConst(l.b, true));
  Val scale = l.b.Select(live, 1.0 / (1.0 - ratio), l.b.F(1));
  return l.b.Select(keep, x * l.b.Cast(scale, x.type()), Like(x, 0));
}

const OpDef& kDropout = Register({.name = "Dropout",
                                  .min_inputs = 1,
                                  .max_inputs = 3,
                                  .max_outputs = 2,
                                  .infer = InferDropout,
                                  .element = Dropout,
                                  .fusion = Fusion::kPointwise,
                                  .in_place = true,
                                  .halves = Halves::kFollow,
                                  .samples = {"(f32[2,3])"}});

}  // namespace
}  // namespace ge
