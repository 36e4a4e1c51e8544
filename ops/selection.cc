// Operators that select by value; their output sizes depend on data, and host kernels (rt/host/) do
// them.
//   TopK              the k largest (smallest) of an axis, and their positions; equal ones by
//   position NonZero           positions of elements other than zero, [rank, n] NonMaxSuppression
//   boxes that do not overlap a better one of their class, [n, 3] Unique            distinct
//   elements (or slices of an axis), where they were first, and how often Compress          slices
//   whose condition is true
#include <fmt/format.h>

#include "ir/opdef.h"
#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

int64_t Most(Expr e) { return Bounds(e).hi; }

Status InferTopK(InferContext& c) {
  GE_TRY(CheckMinRank(c, 0, 1));
  GE_ASSIGN(const int axis, NormaliseAxis(c.Int("axis", -1), c.In(0).rank()));
  GE_ASSIGN(const std::vector<Expr> k, SizesOf(c, 1));
  if (k.size() != 1) return c.Fault(fmt::format("k has {} elements, but must have 1", k.size()));
  Dims out = c.In(0).dims;
  c.Check(And(Le(0, k[0]), Le(k[0], out[axis])),
          fmt::format("TopK: k = {} is not within 0 and the axis' size {}", ToString(k[0]),
                      ToString(out[axis])));
  out[axis] = k[0];
  c.Out(0, c.In(0).dtype, out);
  c.Out(1, DType::kI64, out);
  return {};
}

const OpDef& kTopK = Register({.name = "TopK",
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .max_outputs = 2,
                               .infer = InferTopK,
                               .expand = ExpandSizes<1>,
                               .host = "TopK",
                               .halves = Halves::kWiden});

Status InferNonZero(InferContext& c) {
  const Expr n = c.Fresh("nonzero", 0, Most(c.In(0).Elements()));
  c.Out(0, DType::kI64, {c.In(0).rank(), n});
  return {};
}

const OpDef& kNonZero = Register({.name = "NonZero", .infer = InferNonZero, .host = "NonZero"});

Status InferNms(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 3));
  GE_TRY(CheckRank(c, 1, 3));
  const Dims &boxes = c.In(0).dims, &scores = c.In(1).dims;
  c.Check(Eq(boxes[2], 4), fmt::format("boxes {} must have 4 coordinates", ShapeText(boxes)));
  c.Check(Eq(boxes[0], scores[0]), "boxes and scores differ in batches");
  c.Check(Eq(boxes[1], scores[2]), "boxes and scores differ in the number of boxes");
  Expr most = scores[0] * scores[1] * scores[2];
  if (const auto* k = c.Elems(2); k && k->size() == 1)
    most = scores[0] * scores[1] * Max(0, Min(scores[2], (*k)[0]));
  c.Out(0, DType::kI64, {c.Fresh("selected", 0, Most(most)), 3});
  return {};
}

const OpDef& kNms = Register({.name = "NonMaxSuppression",
                              .min_inputs = 2,
                              .max_inputs = 5,
                              .infer = InferNms,
                              .host = "NonMaxSuppression"});

Status InferUnique(InferContext& c) {
  const bool flat = !HasAttr(c.node, "axis");
  Dims out = {c.In(0).Elements()};
  int axis = 0;
  if (!flat) {
    GE_ASSIGN(axis, NormaliseAxis(c.Int("axis", 0), c.In(0).rank()));
    out = c.In(0).dims;
  }
  const Expr count = out[axis], n = c.Fresh("unique", 0, Most(count));
  out[axis] = n;
  c.Out(0, c.In(0).dtype, out);
  c.Out(1, DType::kI64, {n});
  c.Out(2, DType::kI64, {count});
  c.Out(3, DType::kI64, {n});
  return {};
}

const OpDef& kUnique =
    Register({.name = "Unique", .max_outputs = 4, .infer = InferUnique, .host = "Unique"});

Status InferCompress(InferContext& c) {
  GE_TRY(CheckRank(c, 1, 1));
  Dims out = {c.In(0).Elements()};
  int axis = 0;
  if (HasAttr(c.node, "axis")) {
    GE_ASSIGN(axis, NormaliseAxis(c.Int("axis", 0), c.In(0).rank()));
    out = c.In(0).dims;
  }
  out[axis] = c.Fresh("kept", 0, std::min(Most(out[axis]), Most(c.In(1).dims[0])));
  c.Out(0, c.In(0).dtype, out);
  return {};
}

const OpDef& kCompress = Register({.name = "Compress",
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .infer = InferCompress,
                                   .host = "Compress"});

}  // namespace
}  // namespace ge
