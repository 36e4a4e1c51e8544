// Normalisations: Y = (X - mean) / sqrt(variance + epsilon) * scale + bias, which differ in what
// the moments are taken over:
//   BatchNormalization     given moments of each channel (or, training, of the batch)
//   LayerNormalization     the axes from `axis` on; also gives mean and inverse deviation
//   InstanceNormalization  the spatial axes of each channel
//   GroupNormalization     the spatial axes and the channels of a group
//   RMSNormalization       X / sqrt(mean(X^2) + epsilon) * scale over the axes from `axis` on
//   LRN                    X / (bias + alpha/size * sum of X^2 over `size` channels around)^beta
// All in f32 at least (stash_type): squares of f16 overflow.
#include <fmt/format.h>

#include "base/check.h"
#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::Op;
using tile::ReduceOp;
using tile::Val;

Status InferBatchNorm(InferContext& c) {
  const auto& x = c.In(0).dims;
  if (x.empty()) return c.Fault("X has rank 0, but at least 1 is needed");
  const Expr channels = x.size() > 1 ? x[1] : Expr(1);
  for (int i = 1; i < 5; ++i) {
    GE_TRY(CheckRank(c, i, 1));
    c.Check(Eq(c.In(i).dims[0], channels),
            fmt::format("input {} is {}, but X {} has {} channels", i, ShapeText(c.In(i).dims),
                        ShapeText(x), ToString(channels)));
  }
  CopyType(c, 0, 0);
  c.Out(1, c.In(3).dtype, {channels});
  c.Out(2, c.In(4).dtype, {channels});
  return {};
}

Val BatchNorm(Lowering& l, int, const Index& i) {
  auto& b = l.b;
  const DType t = ComputeType(l.In(0).dtype);
  auto channel = [&](int input) {
    return b.Cast(l.Load(input, {i.size() > 1 ? i[1] : Expr(0)}), t);
  };
  const double epsilon = l.Float("epsilon", 1e-5F);
  const Val root = b.Unary(Op::kSqrt, channel(4) + epsilon);
  return (l.Load(0, i) - channel(3)) * (channel(1) / root) + channel(2);
}

// Training: the batch's own moments, and running ones mixed with them.
bool ExpandBatchNorm(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  if (!e.Int("training_mode", 0)) return false;
  const ValueId x = e.In(0);
  const int rank = e.Rank(x);
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i)
    if (i != 1) axes.push_back(i);
  const ValueId axes_value = e.Ints(axes);
  const Attrs keep = {{"keepdims", int64_t{1}}};
  const ValueId mean = e.Op("ReduceMean", {x, axes_value}, keep);
  const ValueId d = e.Op("Sub", {x, mean});
  const ValueId variance = e.Op("ReduceMean", {e.Op("Mul", {d, d}), axes_value}, keep);
  const std::vector<Expr> channels = e.Dims(e.In(3));
  const ValueId mean1 = e.Cast(e.Reshape(mean, channels), e.Type(e.In(3)));
  const ValueId variance1 = e.Cast(e.Reshape(variance, channels), e.Type(e.In(4)));
  const ValueId y = e.Op("BatchNormalization", {x, e.In(1), e.In(2), mean1, variance1},
                         {{"epsilon", e.Float("epsilon", 1e-5F)}});
  const double momentum = e.Float("momentum", 0.9F);
  auto mix = [&](ValueId old, ValueId now) {
    return e.Op("Add", {e.Op("Mul", {old, e.ScalarLike(old, momentum)}),
                        e.Op("Mul", {now, e.ScalarLike(now, 1 - momentum)})});
  };
  std::vector<ValueId> outputs = {y, kNone, kNone};
  outputs.resize(e.NumOutputs());
  if (e.Wants(1)) outputs[1] = mix(e.In(3), mean1);
  if (e.Wants(2)) outputs[2] = mix(e.In(4), variance1);
  return e.Done(outputs);
}

const OpDef& kBatchNormalization =
    Register({.name = "BatchNormalization",
              .min_inputs = 5,
              .max_inputs = 5,
              .max_outputs = 3,
              .infer = InferBatchNorm,
              .element = BatchNorm,
              .expand = ExpandBatchNorm,
              .fusion = Fusion::kPointwise,
              .in_place = true,
              .halves = Halves::kWiden,
              .flops_per_element = 5,
              .samples = {"(f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3])",
                          "(f32[2,3], f32[3], f32[3], f32[3], f32[3]) {epsilon=0.01}"}});

// f32 for f16 and bf16, the own type for the others.
DType StashType(const TensorType& x) { return ComputeType(x.dtype); }

Status InferLayerNorm(InferContext& c) {
  const auto& x = c.In(0).dims;
  GE_ASSIGN(const int axis, NormaliseAxis(c.Int("axis", -1), c.In(0).rank()));
  GE_TRY(CheckBroadcastsTo(c, c.In(1).dims, x));
  if (c.Has(2)) GE_TRY(CheckBroadcastsTo(c, c.In(2).dims, x));
  CopyType(c, 0, 0);
  Dims reduced = x;
  for (size_t i = axis; i < x.size(); ++i) reduced[i] = 1;
  // Mean and deviation have the stash's type whatever X has.
  const DType stash = c.Int("stash_type", 1) == 16 ? DType::kBF16 : DType::kF32;
  c.Out(1, stash, reduced);
  c.Out(2, stash, reduced);
  return {};
}

Dims Head(const Dims& dims, size_t n) {
  return {dims.begin(), dims.begin() + static_cast<int64_t>(n)};
}

void LowerLayerNorm(Lowering& l) {
  const Dims& x = l.In(0).dims;
  const size_t axis = AxisOf(l.Int("axis", -1), l.In(0).rank());
  const DType t = StashType(l.In(0));
  auto wanted = [&](size_t o) { return l.node.outputs.size() > o && l.node.outputs[o] != kNone; };
  l.ForEach(Head(x, axis), false, [&](const Index& r) {
    auto& b = l.b;
    const Row row =
        FillRow(b, t, Tail(x, axis), [&](const Index& j) { return l.Load(0, Join(r, j)); });
    const Moments m = MomentsOf(b, row);
    const Val inverse = InverseDeviation(b, m.variance, l.Float("epsilon", 1e-5F));
    ForAxes(b, row.extents, [&](const Index& j) {
      const Index i = Join(r, j);
      Val y = (row.At(b, j) - m.mean) * inverse * b.Cast(l.LoadBroadcast(1, i), t);
      if (l.Has(2)) y = y + b.Cast(l.LoadBroadcast(2, i), t);
      if (wanted(0)) l.Yield(0, i, y);
    });
    const Index first = Join(r, Index(x.size() - axis, Expr(0)));
    if (wanted(1)) l.Yield(1, first, b.Cast(m.mean, ComputeType(l.Out(1).dtype)));
    if (wanted(2)) l.Yield(2, first, b.Cast(inverse, ComputeType(l.Out(2).dtype)));
  });
}

const OpDef& kLayerNormalization =
    Register({.name = "LayerNormalization",
              .min_inputs = 2,
              .max_inputs = 3,
              .max_outputs = 3,
              .infer = InferLayerNorm,
              .lower = LowerLayerNorm,
              .halves = Halves::kWiden,
              .flops_per_element = 8,
              .samples = {"(f32[2,3,5], f32[5], f32[5])", "(f32[2,3,5], f32[3,5]) {axis=1}",
                          "(f16[2,8], f16[8], f16[8])"},
              .tolerance = 1e-4});

Status InferRmsNorm(InferContext& c) {
  GE_TRY(NormaliseAxis(c.Int("axis", -1), c.In(0).rank()).status());
  GE_TRY(CheckBroadcastsTo(c, c.In(1).dims, c.In(0).dims));
  c.Out(0, c.In(1).dtype, c.In(0).dims);
  return {};
}

void LowerRmsNorm(Lowering& l) {
  const Dims& x = l.In(0).dims;
  const size_t axis = AxisOf(l.Int("axis", -1), l.In(0).rank());
  const DType t = StashType(l.In(0)), out = ComputeType(l.Out(0).dtype);
  l.ForEach(Head(x, axis), false, [&](const Index& r) {
    auto& b = l.b;
    const Row row =
        FillRow(b, t, Tail(x, axis), [&](const Index& j) { return l.Load(0, Join(r, j)); });
    const Expr n = Product(row.extents);
    const Val squares = b.Reduce(ReduceOp::kSum, {n}, [&](auto& i) {
      const Val v = b.Load(row.buffer, i[0]);
      return v * v;
    });
    const Val inverse =
        InverseDeviation(b, squares / b.Cast(b.Index(n), t), l.Float("epsilon", 1e-5F));
    ForAxes(b, row.extents, [&](const Index& j) {
      const Index i = Join(r, j);
      l.Yield(0, i, b.Cast(row.At(b, j) * inverse, out) * l.LoadBroadcast(1, i));
    });
  });
}

const OpDef& kRmsNormalization =
    Register({.name = "RMSNormalization",
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = InferRmsNorm,
              .lower = LowerRmsNorm,
              .halves = Halves::kWiden,
              .flops_per_element = 5,
              .samples = {"(f32[2,3,5], f32[5])", "(f32[2,3,5], f32[3,5]) {axis=1}"},
              .tolerance = 1e-4});

Status InferChannelNorm(InferContext& c) {
  const auto& x = c.In(0).dims;
  GE_TRY(CheckMinRank(c, 0, 2));
  for (int i = 1; i < 3; ++i) {
    GE_TRY(CheckRank(c, i, 1));
    c.Check(Eq(c.In(i).dims[0], x[1]),
            fmt::format("input {} is {}, but X {} has {} channels", i, ShapeText(c.In(i).dims),
                        ShapeText(x), ToString(x[1])));
  }
  if (c.node.op->name == "GroupNormalization") {
    const int64_t groups = c.Int("num_groups", 0);
    if (groups < 1) return c.Fault(fmt::format("num_groups is {}, but must be at least 1", groups));
    c.Check(Eq(Mod(x[1], groups), 0),
            fmt::format("{} channels are not divisible by num_groups {}", ToString(x[1]), groups));
  }
  CopyType(c, 0, 0);
  return {};
}

// Groups of channels; `groups` = channels for InstanceNormalization.
void LowerChannelNorm(Lowering& l) {
  const Dims& x = l.In(0).dims;
  const Expr groups = l.node.op->name == "GroupNormalization" ? Expr(l.Int("num_groups", 1)) : x[1];
  const Expr size = groups == x[1] ? Expr(1) : FloorDiv(x[1], groups);
  const DType t = StashType(l.In(0));
  Dims extents = Tail(x, 1);
  extents[0] = size;
  l.ForEach({x[0], groups}, false, [&](const Index& r) {
    auto& b = l.b;
    auto at = [&](const Index& j) {
      Index i = {r[0], r[1] * size + j[0]};
      i.insert(i.end(), j.begin() + 1, j.end());
      return i;
    };
    const Row row = FillRow(b, t, extents, [&](const Index& j) { return l.Load(0, at(j)); });
    const Moments m = MomentsOf(b, row);
    const Val inverse = InverseDeviation(b, m.variance, l.Float("epsilon", 1e-5F));
    ForAxes(b, extents, [&](const Index& j) {
      const Index i = at(j);
      const Val scaled = (row.At(b, j) - m.mean) * inverse * b.Cast(l.Load(1, {i[1]}), t);
      l.Yield(0, i, scaled + b.Cast(l.Load(2, {i[1]}), t));
    });
  });
}

const OpDef& kInstanceNormalization = Register({.name = "InstanceNormalization",
                                                .min_inputs = 3,
                                                .max_inputs = 3,
                                                .infer = InferChannelNorm,
                                                .lower = LowerChannelNorm,
                                                .halves = Halves::kWiden,
                                                .flops_per_element = 8,
                                                .samples = {"(f32[2,3,4,5], f32[3], f32[3])"},
                                                .tolerance = 1e-4});
const OpDef& kGroupNormalization =
    Register({.name = "GroupNormalization",
              .min_inputs = 3,
              .max_inputs = 3,
              .infer = InferChannelNorm,
              .lower = LowerChannelNorm,
              .halves = Halves::kWiden,
              .flops_per_element = 8,
              .samples = {"(f32[2,4,3,2], f32[4], f32[4]) {num_groups=2}"},
              .tolerance = 1e-4});

Status InferLrn(InferContext& c) {
  GE_TRY(CheckMinRank(c, 0, 2));
  if (c.Int("size", 0) < 1)
    return c.Fault(fmt::format("size is {}, but must be at least 1", c.Int("size", 0)));
  CopyType(c, 0, 0);
  return {};
}

void LowerLrn(Lowering& l) {
  const int64_t size = l.Int("size", 1);
  const double alpha = l.Float("alpha", 1e-4F), beta = l.Float("beta", 0.75F),
               bias = l.Float("bias", 1.0F);
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    auto& b = l.b;
    const Val zero = b.Const(ComputeType(l.In(0).dtype), 0);
    const Val squares = b.Reduce(ReduceOp::kSum, {size}, [&](auto& k) {
      Index i = o;
      i[1] = o[1] + k[0] - (size - 1) / 2;
      const Val v = b.Let(l.LoadOr(0, i, zero));
      return v * v;
    });
    const Val base = squares * (alpha / static_cast<double>(size)) + bias;
    l.Yield(0, o, l.Load(0, o) / b.Binary(Op::kPow, base, Like(base, beta)));
  });
}

const OpDef& kLrn =
    Register({.name = "LRN",
              .infer = InferLrn,
              .lower = LowerLrn,
              .halves = Halves::kWiden,
              .flops_per_element = 40,
              .samples = {"(f32[2,5,3,3]) {size=3, alpha=0.0002, beta=0.5, bias=2.0}"}});

}  // namespace
}  // namespace ge
