// Gathers: output elements at positions that an index tensor gives. Negative positions count from
// the end. A position out of range is the model's fault; the nearest valid one is read, never other
// memory.
//   Gather          Y[i.., q.., j..] = X[i.., I[q..], j..]
//   GatherElements  Y[i..] = X[i.. with i[axis] = I[i..]]
//   GatherND        Y[b.., q.., j..] = X[b.., I[b.., q.., 0..k-1].., j..]
#include <fmt/format.h>

#include "base/check.h"
#include "ir/opdef.h"
#include "ops/positions.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::Val;

// Elements of a gathered shape, known when the positions are.
void GatherFacts(InferContext& c, int axis) {
  const auto *data = c.Elems(0), *indices = c.Elems(1);
  if (!data || !indices || axis != 0 || c.In(0).rank() != 1) return;
  std::vector<Expr> out;
  const auto n = static_cast<int64_t>(data->size());
  for (const Expr& i : *indices) {
    if (!i.IsConst() || i.value() < -n || i.value() >= n) return;
    out.push_back((*data)[i.value() < 0 ? i.value() + n : i.value()]);
  }
  c.OutElems(0, out);
}

Status CheckPositions(InferContext& c, int input, Expr extent) {
  const DType t = c.In(input).dtype;
  if (t != DType::kI32 && t != DType::kI64)
    return c.Fault(fmt::format("indices are {}, but must be i32 or i64", Name(t)));
  const auto* elems = c.Elems(input);
  if (!elems || !extent.IsConst()) return {};
  for (const Expr& e : *elems)
    if (e.IsConst() && (e.value() < -extent.value() || e.value() >= extent.value()))
      return c.Fault(fmt::format("index {} is outside [{}, {}]", e.value(), -extent.value(),
                                 extent.value() - 1));
  return {};
}

Status InferGather(InferContext& c) {
  const Dims &x = c.In(0).dims, &i = c.In(1).dims;
  GE_TRY(CheckMinRank(c, 0, 1));
  GE_ASSIGN(const int axis, NormaliseAxis(c.Int("axis", 0), c.In(0).rank()));
  GE_TRY(CheckPositions(c, 1, x[axis]));
  Dims out(x.begin(), x.begin() + axis);
  out.insert(out.end(), i.begin(), i.end());
  out.insert(out.end(), x.begin() + axis + 1, x.end());
  c.Out(0, c.In(0).dtype, out);
  GatherFacts(c, axis);
  return {};
}

Val Gather(Lowering& l, int, const Index& o) {
  const int axis = AxisOf(l.Int("axis", 0), l.In(0).rank()), q = l.In(1).rank();
  const Index at(o.begin() + axis, o.begin() + axis + q);
  Index i(o.begin(), o.begin() + axis);
  i.push_back(LoadPosition(l, 1, at, l.In(0).dims[axis]));
  i.insert(i.end(), o.begin() + axis + q, o.end());
  return l.Load(0, i);
}

const OpDef& kGather = Register({.name = "Gather",
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .infer = InferGather,
                                 .element = Gather,
                                 .fusion = Fusion::kGather,
                                 .halves = Halves::kFollow,
                                 .samples = {"(f32[3,4], i64[2,2])", "(f32[3,4], i32[2]) {axis=1}",
                                             "(f32[3,4], i64[]) {axis=-1}"}});

Status InferGatherElements(InferContext& c) {
  GE_TRY(CheckMinRank(c, 0, 1));
  GE_TRY(CheckRank(c, 1, c.In(0).rank()));
  GE_ASSIGN(const int axis, NormaliseAxis(c.Int("axis", 0), c.In(0).rank()));
  GE_TRY(CheckPositions(c, 1, c.In(0).dims[axis]));
  for (int d = 0; d < c.In(0).rank(); ++d)
    if (d != axis)
      c.Check(Le(c.In(1).dims[d], c.In(0).dims[d]),
              fmt::format("indices {} are larger than data {} on axis {}", ShapeText(c.In(1).dims),
                          ShapeText(c.In(0).dims), d));
  c.Out(0, c.In(0).dtype, c.In(1).dims);
  return {};
}

Val GatherElements(Lowering& l, int, const Index& o) {
  const int axis = AxisOf(l.Int("axis", 0), l.In(0).rank());
  Index i = o;
  i[axis] = LoadPosition(l, 1, o, l.In(0).dims[axis]);
  return l.Load(0, i);
}

const OpDef& kGatherElements =
    Register({.name = "GatherElements",
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = InferGatherElements,
              .element = GatherElements,
              .fusion = Fusion::kGather,
              .halves = Halves::kFollow,
              .samples = {"(f32[3,4], i64[2,4])", "(f32[3,4], i32[3,2]) {axis=1}"}});

Status InferGatherNd(InferContext& c) {
  const Dims &x = c.In(0).dims, &i = c.In(1).dims;
  GE_TRY(CheckMinRank(c, 0, 1));
  GE_TRY(CheckMinRank(c, 1, 1));
  const int64_t batch = c.Int("batch_dims", 0);
  if (!i.back().IsConst())
    return Unsupported(fmt::format("the last dim of indices {} must be known", ShapeText(i)));
  const int64_t k = i.back().value();
  if (batch < 0 || batch >= static_cast<int64_t>(std::min(x.size(), i.size())) || k < 1 ||
      batch + k > static_cast<int64_t>(x.size()))
    return c.Fault(fmt::format("batch_dims {} and indices {} do not fit data {}", batch,
                               ShapeText(i), ShapeText(x)));
  for (int64_t d = 0; d < batch; ++d)
    c.Check(Eq(x[d], i[d]),
            fmt::format("batch dims of data {} and indices {} differ", ShapeText(x), ShapeText(i)));
  Dims out(i.begin(), i.end() - 1);
  out.insert(out.end(), x.begin() + batch + k, x.end());
  c.Out(0, c.In(0).dtype, out);
  return {};
}

Val GatherNd(Lowering& l, int, const Index& o) {
  const Dims &x = l.In(0).dims, &i = l.In(1).dims;
  const int64_t batch = l.Int("batch_dims", 0), k = i.back().value();
  Index at(o.begin(), o.begin() + static_cast<int64_t>(i.size()) - 1),
      xi(o.begin(), o.begin() + batch);
  at.push_back(0);
  for (int64_t d = 0; d < k; ++d) {
    at.back() = d;
    xi.push_back(LoadPosition(l, 1, at, x[batch + d]));
  }
  xi.insert(xi.end(), o.begin() + static_cast<int64_t>(i.size()) - 1, o.end());
  return l.Load(0, xi);
}

const OpDef& kGatherNd =
    Register({.name = "GatherND",
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = InferGatherNd,
              .element = GatherNd,
              .fusion = Fusion::kGather,
              .halves = Halves::kFollow,
              .samples = {"(f32[2,3,4], i64[5,2])", "(f32[2,3,4], i64[2,1]) {batch_dims=1}"}});

}  // namespace
}  // namespace ge
