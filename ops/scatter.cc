// Scatters: a copy of X with elements at given positions replaced (or added to, multiplied, ...).
// Updates apply in their order, which no parallel loop nest can promise: host kernels
// (rt/host/scatter.cc).
//   ScatterElements  Y[i.. with i[axis] = I[i..]] = U[i..]    for i over the shape of I
//   ScatterND        Y[I[q.., 0..k-1].., j..] = U[q.., j..]
//   TensorScatter    Y[b.., w[b] + s, ..] = U[b.., s, ..]     a key-value cache, at write positions
//   w
#include <fmt/format.h>

#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

Status CheckReduction(InferContext& c) {
  const std::string r = c.Str("reduction", "none");
  if (r == "none" || r == "add" || r == "mul" || r == "min" || r == "max") return {};
  return c.Fault(fmt::format("reduction is '{}', but must be none, add, mul, min or max", r));
}

Status InferScatterElements(InferContext& c) {
  GE_TRY(CheckReduction(c));
  GE_TRY(CheckMinRank(c, 0, 1));
  GE_TRY(NormaliseAxis(c.Int("axis", 0), c.In(0).rank()).status());
  GE_TRY(CheckRank(c, 1, c.In(0).rank()));
  GE_TRY(CheckRank(c, 2, c.In(0).rank()));
  for (int d = 0; d < c.In(1).rank(); ++d)
    GE_TRY(SameDim(c, c.In(1).dims[d], c.In(2).dims[d], "dims of indices and updates").status());
  CopyType(c, 0, 0);
  return {};
}

Status InferScatterNd(InferContext& c) {
  GE_TRY(CheckReduction(c));
  GE_TRY(CheckMinRank(c, 0, 1));
  GE_TRY(CheckMinRank(c, 1, 1));
  const Dims &x = c.In(0).dims, &i = c.In(1).dims, &u = c.In(2).dims;
  if (i.back().IsConst()) {
    const int64_t k = i.back().value();
    if (k < 0 || k > static_cast<int64_t>(x.size()) || u.size() != i.size() - 1 + x.size() - k)
      return c.Fault(fmt::format("indices {} and updates {} do not fit data {}", ShapeText(i),
                                 ShapeText(u), ShapeText(x)));
  }
  CopyType(c, 0, 0);
  return {};
}

Status InferTensorScatter(InferContext& c) {
  GE_TRY(CheckRank(c, 1, c.In(0).rank()));
  GE_ASSIGN(const int axis, NormaliseAxis(c.Int("axis", -2), c.In(0).rank()));
  if (axis == 0) return c.Fault("axis must not be the batch axis");
  for (int d = 0; d < c.In(0).rank(); ++d)
    if (d != axis)
      GE_TRY(SameDim(c, c.In(0).dims[d], c.In(1).dims[d], "dims of cache and update").status());
  CopyType(c, 0, 0);
  return {};
}

const OpDef& kScatterElements = Register({.name = "ScatterElements",
                                          .min_inputs = 3,
                                          .max_inputs = 3,
                                          .infer = InferScatterElements,
                                          .host = "ScatterElements"});
const OpDef& kScatterNd = Register({.name = "ScatterND",
                                    .min_inputs = 3,
                                    .max_inputs = 3,
                                    .infer = InferScatterNd,
                                    .host = "ScatterND"});
const OpDef& kTensorScatter = Register({.name = "TensorScatter",
                                        .min_inputs = 2,
                                        .max_inputs = 3,
                                        .infer = InferTensorScatter,
                                        .host = "TensorScatter"});

}  // namespace
}  // namespace ge
