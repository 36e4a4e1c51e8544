// Operators along one axis.
//   ArgMax, ArgMin   y = first (select_last_index: last) position of the extremum; NaN is one
//   Hardmax          y[i] = 1 at the first maximum of the axis, else 0
//   CumSum, CumProd  y[i] = op over x[..i]; exclusive: without x[i]; reverse: from the end
#include <fmt/format.h>

#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

Val Same(Val a, Val b) {  // a is the extremum; b an element, which is it too if it is NaN
  return IsFloat(a.type()) ? Or(Equal(a, b), NotEqual(b, b)) : Equal(a, b);
}

// Position of the extremum of x along `axis`, where `at(k)` is the index of element k.
Val ArgPosition(Lowering& l, bool max, bool last, Expr dim, const std::function<Index(Expr)>& at) {
  Val top = l.b.Reduce(max ? ReduceOp::kMax : ReduceOp::kMin, {dim},
                       [&](const std::vector<Expr>& k) { return l.Load(0, at(k[0])); });
  return l.b.Reduce(last ? ReduceOp::kMax : ReduceOp::kMin, {dim}, [&](const std::vector<Expr>& k) {
    Val miss = last ? l.b.ConstInt(DType::kI64, -1) : l.b.Index(dim);
    return l.b.Select(Same(top, l.Load(0, at(k[0]))), l.b.Index(k[0]), miss);
  });
}

Status InferArg(InferContext& ctx) {
  GE_ASSIGN(int axis, NormaliseAxis(ctx.Int("axis", 0), ctx.In(0).rank()));
  Dims out = ctx.In(0).dims;
  if (out[axis].IsConst(0)) return ctx.Fault(fmt::format("axis {} has no elements", axis));
  if (ctx.Int("keepdims", 1)) {
    out[axis] = 1;
  } else {
    out.erase(out.begin() + axis);
  }
  ctx.Out(0, DType::kI64, std::move(out));
  return {};
}

template <bool kMax>
void LowerArg(Lowering& l) {
  int axis = AxisOf(l.Int("axis", 0), l.In(0).rank());
  bool keep = l.Int("keepdims", 1) != 0, last = l.Int("select_last_index", 0) != 0;
  bool lanes = axis + 1 < l.In(0).rank();
  l.ForEach(l.Out(0).dims, lanes, [&](const Index& o) {
    Val position = ArgPosition(l, kMax, last, l.In(0).dims[axis], [&](Expr k) {
      Index at = o;
      if (!keep) at.insert(at.begin() + axis, k);
      at[axis] = k;
      return at;
    });
    l.Yield(0, o, position);
  });
}

OpDef ArgOp(const char* name, void (*lower)(Lowering&)) {
  return {.name = name,
          .infer = InferArg,
          .lower = lower,
          .halves = Halves::kWiden,
          .samples = {"(f32[2,3,4]) {axis=1}",
                      "(f32[3,5]) {axis=-1, keepdims=0, select_last_index=1}"}};
}

const OpDef& kArgMax = Register(ArgOp("ArgMax", LowerArg<true>));
const OpDef& kArgMin = Register(ArgOp("ArgMin", LowerArg<false>));

// --- Hardmax ------------------------------------------------------------------------------------

Status InferHardmax(InferContext& ctx) {
  GE_ASSIGN([[maybe_unused]] int axis, NormaliseAxis(ctx.Int("axis", -1), ctx.In(0).rank()));
  return InferSameAsInput(ctx);
}

void LowerHardmax(Lowering& l) {
  int axis = AxisOf(l.Int("axis", -1), l.In(0).rank());
  Dims kept = l.In(0).dims;
  Expr dim = kept[axis];
  kept[axis] = 1;
  l.ForEach(kept, false, [&](const Index& o) {
    auto at = [&](Expr k) {
      Index i = o;
      i[axis] = k;
      return i;
    };
    Val position = ArgPosition(l, true, false, dim, at);
    const bool along = axis + 1 == l.In(0).rank();
    l.b.For("k", dim, along ? LoopKind::kVector : LoopKind::kSerial, [&](Expr k) {
      Val hit = Equal(position, l.b.Index(k));
      l.Yield(0, at(k), l.b.Cast(hit, ComputeType(l.Out(0).dtype)));
    });
  });
}

const OpDef& kHardmax = Register({.name = "Hardmax",
                                  .infer = InferHardmax,
                                  .lower = LowerHardmax,
                                  .samples = {"(f32[2,3,4]) {axis=1}", "(f32[3,4])"}});

// --- CumSum, CumProd ----------------------------------------------------------------------------

Status InferCumulative(InferContext& ctx) {
  GE_ASSIGN(std::vector<Expr> axis, SizesOf(ctx, 1));
  if (axis.size() != 1) return ctx.Fault("axis must be one number");
  if (axis[0].IsConst()) {
    GE_ASSIGN([[maybe_unused]] int checked, NormaliseAxis(axis[0].value(), ctx.In(0).rank()));
  }
  return InferSameAsInput(ctx);
}

// A running value per line of the axis, of `kStrip` lines at once where neighbours lie side by
// side.
template <bool kSum>
void ScanLines(Lowering& l, int axis) {
  const bool exclusive = l.Int("exclusive", 0) != 0, reverse = l.Int("reverse", 0) != 0;
  constexpr int64_t kStrip = 512;
  const int last = l.In(0).rank() - 1;
  Dims outer = l.In(0).dims;
  const Expr dim = outer[axis], lines = axis == last ? Expr(1) : outer[last];
  outer[axis] = 1;
  outer[last] = CeilDiv(lines, kStrip);
  const DType t = ComputeType(l.In(0).dtype);
  l.ForEach(outer, false, [&](const Index& o) {
    auto& b = l.b;
    const Expr first = o[last] * kStrip, count = Min(kStrip, lines - first);
    const LoopKind lanes = axis == last ? LoopKind::kSerial : LoopKind::kVector;
    const int total = b.Alloc("total", t, Min(kStrip, lines));
    b.For("i", count, lanes, [&](Expr i) { b.Store(total, i, b.Const(t, kSum ? 0 : 1)); });
    b.For("k", dim, LoopKind::kSerial, [&](Expr k) {
      b.For("i", count, lanes, [&](Expr i) {
        Index at = o;
        at[last] = first + i;
        at[axis] = reverse ? dim - 1 - k : k;
        const Val before = b.Let(b.Load(total, i)), x = l.Load(0, at);
        const Val after = b.Let(kSum ? before + x : before * x);
        b.Store(total, i, after);
        l.Yield(0, at, exclusive ? before : after);
      });
    });
  });
}

// The axis is known only at run time: each element is a reduction of its own.
template <bool kSum>
void ScanElements(Lowering& l, Expr axis) {
  bool exclusive = l.Int("exclusive", 0) != 0, reverse = l.Int("reverse", 0) != 0;
  const Dims dims = l.In(0).dims;
  int64_t rank = dims.size();
  auto here = [&](int64_t d) { return Or(Eq(axis, d), Eq(axis, d - rank)); };
  l.ForEach(dims, false, [&](const Index& o) {
    Expr position = 0, dim = 1;
    for (int64_t d = 0; d < rank; ++d) {
      position = Select(here(d), o[d], position);
      dim = Select(here(d), dims[d], dim);
    }
    Expr first = reverse ? position + (exclusive ? 1 : 0) : Expr(0);
    Expr count = reverse ? dim - first : position + (exclusive ? 0 : 1);
    Val y = l.b.Reduce(kSum ? ReduceOp::kSum : ReduceOp::kProd, {count},
                       [&](const std::vector<Expr>& k) {
                         Index at = o;
                         for (int64_t d = 0; d < rank; ++d)
                           at[d] = Select(here(d), first + k[0], o[d]);
                         return l.Load(0, at);
                       });
    l.Yield(0, o, y);
  });
}

template <bool kSum>
void LowerCumulative(Lowering& l) {
  Expr axis = SizesOf(l, 1)[0];
  if (axis.IsConst()) return ScanLines<kSum>(l, AxisOf(axis.value(), l.In(0).rank()));
  ScanElements<kSum>(l, axis);
}

OpDef Cumulative(const char* name, void (*lower)(Lowering&)) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferCumulative,
          .lower = lower,
          .expand = ExpandSizes<1>,
          .halves = Halves::kWiden,
          .samples = {"(f32[3,4], i64[]=[1])", "(f32[2,3,20], i64[]=[1])",
                      "(f32[3,4], i64[]=[0]) {exclusive=1, reverse=1}"}};
}

const OpDef& kCumSum = Register(Cumulative("CumSum", LowerCumulative<true>));
const OpDef& kCumProd = Register(Cumulative("CumProd", LowerCumulative<false>));

}  // namespace
}  // namespace ge
