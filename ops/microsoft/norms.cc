// Normalisations with a residual, of com.microsoft:
//   SkipLayerNormalization            s = input + skip + bias; LayerNormalization(s, gamma, beta)
//   SimplifiedLayerNormalization      x / sqrt(mean(x^2) + epsilon) * scale   (also in ai.onnx)
//   SkipSimplifiedLayerNormalization  the same of s
//   EmbedLayerNormalization           LayerNormalization of the sum of word, position and segment
//                                     embeddings; and how many places of the mask are 1
// Outputs after the first: mean, inverse deviation (of one value per row, f32), and s.
#include <fmt/format.h>

#include "ops/microsoft/formula.h"
#include "ops/shapes.h"

namespace ge::microsoft {
namespace {

Status InferSkipNorm(InferContext& c) {
  const TensorType& x = c.In(0);
  if (x.rank() < 1) return c.Fault("the input must have rank 1 at least");
  Dims row = x.dims;
  row.back() = 1;
  c.Out(0, x.dtype, x.dims);
  c.Out(1, DType::kF32, row);
  c.Out(2, DType::kF32, row);
  c.Out(3, x.dtype, x.dims);
  return {};
}

// 1 / sqrt(mean(x^2) + epsilon) of each row, f32.
ValueId InverseRoot(ExpandBuilder& e, ValueId x, int64_t axis, float epsilon) {
  Formula f{e};
  const ValueId wide = e.Cast(x, DType::kF32);
  std::vector<int64_t> axes;
  for (int64_t a = axis; a < e.Rank(x); ++a) axes.push_back(a);
  const ValueId mean = e.Op("ReduceMean", {f.Mul(wide, wide), e.Ints(axes)});
  return e.Op("Reciprocal", {e.Op("Sqrt", {f.Add(mean, e.ScalarLike(mean, epsilon))})});
}

bool ExpandSkipLayerNorm(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId sum = f.AddIf(f.Add(e.In(0), e.In(1)), e.In(4));
  const auto y = e.Ops("LayerNormalization", {sum, e.In(2), e.In(3)}, 3,
                       {{"axis", int64_t{-1}}, {"epsilon", e.Float("epsilon", 1e-12F)}});
  return Finish(e, {y[0], y[1], y[2], sum});
}

bool ExpandSkipSimplified(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId sum = f.AddIf(f.Add(e.In(0), e.In(1)), e.In(3));
  const float epsilon = e.Float("epsilon", 1e-12F);
  const ValueId y =
      e.Op("RMSNormalization", {sum, e.In(2)}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  const ValueId inverse =
      e.Wants(1) || e.Wants(2) ? InverseRoot(e, sum, e.Rank(sum) - 1, epsilon) : kNone;
  return Finish(e, {y, inverse, inverse, sum});
}

Status InferSimplified(InferContext& c) {
  const TensorType& x = c.In(0);
  GE_ASSIGN(const int axis, NormaliseAxis(c.Int("axis", -1), x.rank()));
  Dims row = x.dims;
  for (size_t i = axis; i < row.size(); ++i) row[i] = 1;
  c.Out(0, c.In(1).dtype, x.dims);
  c.Out(1, DType::kF32, row);
  return {};
}

bool ExpandSimplified(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const float epsilon = e.Float("epsilon", 1e-5F);
  const int64_t axis = AxisOf(e.Int("axis", -1), e.Rank(e.In(0)));
  const ValueId y =
      e.Op("RMSNormalization", {e.In(0), e.In(1)}, {{"axis", axis}, {"epsilon", epsilon}});
  return Finish(e, {y, e.Wants(1) ? InverseRoot(e, e.In(0), axis, epsilon) : kNone});
}

enum Embed { kIds, kSegments, kWords, kPlaces, kSegmentTable, kGamma, kBeta, kMask, kPlaceIds };

Status InferEmbed(InferContext& c) {
  for (int i : {kIds, kWords, kPlaces, kGamma, kBeta})
    if (!c.Has(i)) return c.Fault(fmt::format("input {} is missing", i));
  GE_TRY(CheckRank(c, kIds, 2));
  GE_TRY(CheckRank(c, kWords, 2));
  GE_TRY(CheckRank(c, kPlaces, 2));
  const Dims& ids = c.In(kIds).dims;
  const Dims out = {ids[0], ids[1], c.In(kWords).dims[1]};
  c.Out(0, c.In(kWords).dtype, out);
  c.Out(1, DType::kI32, {ids[0]});
  c.Out(2, c.In(kWords).dtype, out);
  return {};
}

bool ExpandEmbed(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const auto ids = e.Dims(e.In(kIds));
  ValueId sum = e.Op("Gather", {e.In(kWords), e.In(kIds)});
  const ValueId places =
      e.Has(kPlaceIds) ? e.In(kPlaceIds) : e.Reshape(f.Range(ids[1]), {1, ids[1]});
  sum = f.Add(sum, e.Op("Gather", {e.In(kPlaces), places}));
  if (e.Has(kSegments) && e.Has(kSegmentTable))
    sum = f.Add(sum, e.Op("Gather", {e.In(kSegmentTable), e.In(kSegments)}));
  const ValueId y = e.Op("LayerNormalization", {sum, e.In(kGamma), e.In(kBeta)},
                         {{"axis", int64_t{-1}}, {"epsilon", e.Float("epsilon", 1e-12F)}});
  ValueId lengths = kNone;
  if (e.Wants(1)) {
    if (e.Has(kMask)) {
      const ValueId ones =
          e.Cast(e.Op("Equal", {e.In(kMask), e.ScalarLike(e.In(kMask), 1)}), DType::kI32);
      lengths = e.Op("ReduceSum", {ones, e.Ints({1})}, {{"keepdims", int64_t{0}}});
    } else {
      lengths = e.Expand(e.Scalar(DType::kI32, 0), {ids[0]});
    }
  }
  return Finish(e, {y, lengths, sum});
}

const OpDef& kSkipLayerNorm =
    Register({.name = "SkipLayerNormalization",
              .domain = kDomain,
              .min_inputs = 3,
              .max_inputs = 5,
              .max_outputs = 4,
              .infer = InferSkipNorm,
              .expand = ExpandSkipLayerNorm,
              .samples = {"(f32[2,3,8], f32[2,3,8], f32[8], f32[8], f32[8])"},
              .tolerance = 1e-4});
const OpDef& kSkipSimplified = Register({.name = "SkipSimplifiedLayerNormalization",
                                         .domain = kDomain,
                                         .min_inputs = 3,
                                         .max_inputs = 4,
                                         .max_outputs = 4,
                                         .infer = InferSkipNorm,
                                         .expand = ExpandSkipSimplified,
                                         .samples = {"(f32[2,3,8], f32[2,3,8], f32[8], f32[8])"},
                                         .tolerance = 1e-4});
OpDef Simplified(const char* domain) {
  return {.name = "SimplifiedLayerNormalization",
          .domain = domain,
          .min_inputs = 2,
          .max_inputs = 2,
          .max_outputs = 2,
          .infer = InferSimplified,
          .expand = ExpandSimplified,
          .samples = {"(f32[2,3,8], f32[8])"},
          .tolerance = 1e-4};
}
const OpDef& kSimplified = Register(Simplified(kDomain));
const OpDef& kSimplifiedPlain = Register(Simplified(""));
const OpDef& kEmbedLayerNorm = Register({.name = "EmbedLayerNormalization",
                                         .domain = kDomain,
                                         .min_inputs = 1,
                                         .max_inputs = 9,
                                         .max_outputs = 3,
                                         .infer = InferEmbed,
                                         .expand = ExpandEmbed,
                                         .tolerance = 1e-4});

}  // namespace
}  // namespace ge::microsoft
