// Slice and Split: y[i] = x[start + i * step] along some axes. Starts, ends, axes and steps may be
// symbolic: each axis looks its range up in the lists with Selects, which fold for constants.
#include <fmt/format.h>

#include <algorithm>

#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Val;

struct Range {
  Expr start = 0, step = 1, length;
};

// Far limits (INT64_MAX means "to the end") must not overflow when a dim is added, also where they
// come with the data.
Expr Tame(Expr e) {
  constexpr int64_t kFar = int64_t{1} << 60;
  if (e.IsConst()) return std::clamp(e.value(), -kFar, kFar);
  return ProvablyLe(-kFar, e) ? e : Max(e, -kFar);
}

// A step that no axis is long enough for picks one element, as every longer one does. Positions are
// its multiples, so it stays well below what overflows.
Expr TameStep(Expr e) {
  constexpr int64_t kFar = int64_t{1} << 40;
  return e.IsConst() ? Expr(std::clamp(e.value(), -kFar, kFar)) : Tame(e);
}

// ONNX's range of an axis of `dim` elements: unlike numpy's, a start before the first element is
// the first one for negative steps too.
Range ClampedRange(Expr start, Expr end, Expr step, Expr dim) {
  auto from_end = [&](Expr e) {
    e = Tame(e);
    // Exporters write the largest (smallest) int32 or int64 for "to the end (start)".
    if (e.IsConst() && e.value() >= INT32_MAX && !dim.IsConst()) return dim;
    if (e.IsConst() && e.value() <= -INT32_MAX && !dim.IsConst()) return Expr(-1);
    if (ProvablyLe(0, e)) return e;
    if (ProvablyLt(e, 0)) return e + dim;
    return Select(Lt(e, 0), e + dim, e);
  };
  auto clamp = [](Expr e, Expr lo, Expr hi) { return Max(ProvablyLe(e, hi) ? e : Min(e, hi), lo); };
  start = from_end(start);
  end = from_end(end);
  Range up{clamp(start, 0, dim), step, 0};
  up.length = Max(CeilDiv(clamp(end, 0, dim) - up.start, step), 0);
  if (ProvablyLt(0, step)) return up;
  const Expr first = ProvablyLt(0, dim) ? Expr(0) : Min(0, dim - 1);  // -1 if there is none
  Range down{clamp(start, first, dim - 1), step, 0};
  down.length = Max(CeilDiv(down.start - clamp(end, -1, dim - 1), Expr(0) - step), 0);
  if (ProvablyLt(step, 0)) return down;
  Expr positive = Lt(0, step), safe = Select(Eq(step, 0), 1, step);
  up.length = Max(CeilDiv(clamp(end, 0, dim) - up.start, safe), 0);
  down.length = Max(CeilDiv(down.start - clamp(end, -1, dim - 1), Expr(0) - safe), 0);
  return {Select(positive, up.start, down.start), step, Select(positive, up.length, down.length)};
}

// Operand lists of a Slice, defaults filled in.
struct SliceLists {
  std::vector<Expr> starts, ends, axes, steps;
};

std::vector<Range> RangesOf(const SliceLists& lists, const Dims& dims) {
  std::vector<Range> out;
  int64_t rank = dims.size();
  for (int64_t axis = 0; axis < rank; ++axis) {
    Expr start = 0, end = dims[axis], step = 1;
    for (size_t k = 0; k < lists.starts.size(); ++k) {
      Expr here = Or(Eq(lists.axes[k], axis), Eq(lists.axes[k], axis - rank));
      start = Select(here, Tame(lists.starts[k]), start);
      end = Select(here, Tame(lists.ends[k]), end);
      step = Select(here, TameStep(lists.steps[k]), step);
    }
    out.push_back(start.IsConst(0) && step.IsConst(1) && end == dims[axis]
                      ? Range{0, 1, dims[axis]}
                      : ClampedRange(start, end, step, dims[axis]));
  }
  return out;
}

Result<SliceLists> ListsOf(InferContext& ctx) {
  SliceLists lists;
  GE_ASSIGN(lists.starts, SizesOf(ctx, 1));
  GE_ASSIGN(lists.ends, SizesOf(ctx, 2));
  size_t count = lists.starts.size();
  if (ctx.Has(3)) {
    GE_ASSIGN(lists.axes, SizesOf(ctx, 3));
  } else {
    for (size_t k = 0; k < count; ++k) lists.axes.push_back(k);
  }
  if (ctx.Has(4)) {
    GE_ASSIGN(lists.steps, SizesOf(ctx, 4));
  } else {
    lists.steps.assign(count, 1);
  }
  if (lists.ends.size() != count || lists.axes.size() != count || lists.steps.size() != count) {
    return ctx.Fault(fmt::format("starts, ends, axes and steps have {}, {}, {} and {} elements",
                                 count, lists.ends.size(), lists.axes.size(), lists.steps.size()));
  }
  for (Expr e : lists.steps) {
    if (e.IsConst(0)) return ctx.Fault("a step is 0");
  }
  for (Expr e : lists.axes) {
    if (!e.IsConst()) continue;
    GE_ASSIGN([[maybe_unused]] int axis, NormaliseAxis(e.value(), ctx.In(0).rank()));
  }
  return lists;
}

SliceLists ListsOf(const Lowering& l) {
  SliceLists lists;
  lists.starts = SizesOf(l, 1);
  lists.ends = SizesOf(l, 2);
  lists.axes = SizesOf(l, 3);
  lists.steps = SizesOf(l, 4);
  if (!l.Has(3)) {
    for (size_t k = 0; k < lists.starts.size(); ++k) lists.axes.push_back(k);
  }
  if (!l.Has(4)) lists.steps.assign(lists.starts.size(), 1);
  return lists;
}

void SliceFacts(InferContext& ctx, const std::vector<Range>& ranges, const Dims& out) {
  const auto* elems = ctx.Elems(0);
  Expr count = Product(out);
  if (!elems || !ConstDims(out) || !ConstDims(ctx.In(0).dims) || count.value() > 64) return;
  std::vector<Expr> facts;
  for (int64_t k = 0; k < count.value(); ++k) {
    Index at = Unlinear(k, out);
    for (size_t i = 0; i < at.size(); ++i) at[i] = ranges[i].start + at[i] * ranges[i].step;
    Expr position = Linear(at, ctx.In(0).dims);
    if (!position.IsConst()) return;
    facts.push_back((*elems)[position.value()]);
  }
  ctx.OutElems(0, std::move(facts));
}

Status InferSlice(InferContext& ctx) {
  GE_ASSIGN(SliceLists lists, ListsOf(ctx));
  std::vector<Range> ranges = RangesOf(lists, ctx.In(0).dims);
  Dims out;
  for (const Range& r : ranges) out.push_back(r.length);
  ctx.Out(0, ctx.In(0).dtype, out);
  SliceFacts(ctx, ranges, out);
  return {};
}

Val Slice(Lowering& l, int, const Index& idx) {
  std::vector<Range> ranges = RangesOf(ListsOf(l), l.In(0).dims);
  Index at(idx.size());
  for (size_t i = 0; i < idx.size(); ++i) at[i] = ranges[i].start + idx[i] * ranges[i].step;
  return l.Load(0, at);
}

const OpDef& kSlice = Register(
    {.name = "Slice",
     .min_inputs = 3,
     .max_inputs = 5,
     .infer = InferSlice,
     .element = Slice,
     .expand = ExpandSizes<1, 2, 3, 4>,
     .fusion = Fusion::kView,
     .halves = Halves::kFollow,
     .flops_per_element = 0,
     .samples = {"(f32[5,6], i64[2]=[1,-1], i64[2]=[4,-6], i64[2]=[0,1], i64[2]=[1,-2])"}});

// --- Split --------------------------------------------------------------------------------------

// Sizes of the parts along the axis: operand 1, else equal parts with a smaller last one.
std::vector<Expr> PartsOf(const Graph& g, const Node& n, Expr dim) {
  if (n.inputs.size() > 1 && n.inputs[1] != kNone) {
    if (const auto& elems = g.value(n.inputs[1]).elems) return *elems;
    auto ints = IntsOf(g, n, 1);
    return ints ? std::vector<Expr>(ints->begin(), ints->end()) : std::vector<Expr>();
  }
  int64_t count = AttrOr<int64_t>(n, "num_outputs", static_cast<int64_t>(n.outputs.size()));
  Expr part = CeilDiv(dim, count);
  std::vector<Expr> parts;
  for (int64_t k = 0; k < count; ++k) parts.push_back(Max(Min(part, dim - part * k), 0));
  if (DivisibleBy(dim, count)) parts.assign(count, FloorDiv(dim, count));
  return parts;
}

Status InferSplit(InferContext& ctx) {
  GE_ASSIGN(int axis, NormaliseAxis(ctx.Int("axis", 0), ctx.In(0).rank()));
  Expr dim = ctx.In(0).dims[axis];
  std::vector<Expr> parts;
  if (ctx.Has(1)) {
    GE_ASSIGN(parts, SizesOf(ctx, 1));
    Expr sum = 0;
    for (Expr p : parts) sum += p;
    GE_ASSIGN([[maybe_unused]] Expr same, SameDim(ctx, sum, dim, "sum of the parts"));
  } else {
    parts = PartsOf(ctx.graph, ctx.node, dim);
  }
  if (static_cast<int>(parts.size()) != ctx.NumOutputs()) {
    return ctx.Fault(fmt::format("{} parts for {} outputs", parts.size(), ctx.NumOutputs()));
  }
  Expr start = 0;
  const auto* elems = ctx.Elems(0);
  for (int o = 0; o < ctx.NumOutputs(); ++o) {
    Dims dims = ctx.In(0).dims;
    dims[axis] = parts[o];
    ctx.Out(o, ctx.In(0).dtype, dims);
    if (elems && dims.size() == 1 && start.IsConst() && parts[o].IsConst()) {
      auto first = elems->begin() + start.value();
      ctx.OutElems(o, std::vector<Expr>(first, first + parts[o].value()));
    }
    start += parts[o];
  }
  return {};
}

Val Split(Lowering& l, int output, const Index& idx) {
  int axis = AxisOf(l.Int("axis", 0), l.In(0).rank());
  std::vector<Expr> parts = PartsOf(l.graph, l.node, l.In(0).dims[axis]);
  Index at = idx;
  for (int k = 0; k < output; ++k) at[axis] += parts[k];
  return l.Load(0, at);
}

const OpDef& kSplit = Register({.name = "Split",
                                .min_inputs = 1,
                                .max_inputs = 2,
                                .max_outputs = -1,
                                .infer = InferSplit,
                                .element = Split,
                                .expand = ExpandSizes<1>,
                                .fusion = Fusion::kView,
                                .halves = Halves::kFollow,
                                .flops_per_element = 0,
                                .samples = {"(f32[2,6]) {axis=1, num_outputs=1}"}});

}  // namespace
}  // namespace ge
