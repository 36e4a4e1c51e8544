// Softmax     Y = exp(X - max) / sum exp(X - max)      along one axis
// LogSoftmax  Y = X - max - log(sum exp(X - max))
// One row at a time in a local buffer, so that X (and what is fused into it) is computed once; or
// many rows at a time, one in each lane. A row of equal values, even of the lowest float, is
// uniform; one whose maximum is -inf gives NaN, as the formula does.
#include <fmt/format.h>

#include "ir/opdef.h"
#include "ops/rows.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

Status InferSoftmax(InferContext& c) {
  GE_TRY(NormaliseAxis(c.Int("axis", -1), c.In(0).rank()).status());
  CopyType(c, 0, 0);
  return {};
}

// Each lane has a row of its own: for rows along an outer axis, and for short ones. X is computed
// three times.
void LowerInLanes(Lowering& l, bool log, int axis, const Dims& rest) {
  const Expr n = l.In(0).dims[axis];
  l.ForEach(rest, true, [&](const Index& r) {
    auto& b = l.b;
    auto at = [&](Expr j) {
      Index i = r;
      i.insert(i.begin() + axis, j);
      return i;
    };
    auto shifted = [&](Expr j, Val top) { return l.Load(0, at(j)) - top; };
    const Val top =
        b.Let(b.Reduce(ReduceOp::kMax, {n}, [&](auto& j) { return l.Load(0, at(j[0])); }));
    const Val sum = b.Reduce(ReduceOp::kSum, {n},
                             [&](auto& j) { return b.Unary(Op::kExp, shifted(j[0], top)); });
    const Val scale = b.Let(log ? b.Unary(Op::kLog, sum) : Like(sum, 1) / sum);
    b.For("j", n, LoopKind::kSerial, [&](Expr j) {
      const Val d = shifted(j, top);
      l.Yield(0, at(j), log ? d - scale : b.Unary(Op::kExp, d) * scale);
    });
  });
}

// Short rows: a strip of them lies turned in a local buffer, where each lane has a row.
void LowerShortRows(Lowering& l, bool log, const Dims& rest) {
  constexpr int64_t kStrip = 32;
  const Expr n = l.In(0).dims.back(), rows = rest.back();
  const DType t = ComputeType(l.In(0).dtype);
  Dims strips = rest;
  strips.back() = CeilDiv(rows, kStrip);
  l.ForEach(strips, false, [&](const Index& o) {
    auto& b = l.b;
    const Expr first = o.back() * kStrip, count = Min(kStrip, rows - first);
    const int turned = b.Alloc("turned", t, n * kStrip);
    auto at = [&](Expr r, Expr j) {
      Index i = o;
      i.back() = first + r;
      i.push_back(j);
      return i;
    };
    b.For("j", n, LoopKind::kSerial, [&](Expr j) {
      b.For("r", count, LoopKind::kVector,
            [&](Expr r) { b.Store(turned, j * kStrip + r, l.Load(0, at(r, j))); });
    });
    b.For("r", count, LoopKind::kVector, [&](Expr r) {
      auto x = [&](Expr j) { return b.Load(turned, j * kStrip + r); };
      const Val top = b.Let(b.Reduce(ReduceOp::kMax, {n}, [&](auto& j) { return x(j[0]); }));
      if (log) {
        const Val sum = b.Reduce(ReduceOp::kSum, {n},
                                 [&](auto& j) { return b.Unary(Op::kExp, x(j[0]) - top); });
        const Val shift = b.Let(b.Unary(Op::kLog, sum));
        b.For("j", n, LoopKind::kSerial,
              [&](Expr j) { b.Store(turned, j * kStrip + r, x(j) - top - shift); });
        return;
      }
      b.For("j", n, LoopKind::kSerial,
            [&](Expr j) { b.Store(turned, j * kStrip + r, b.Unary(Op::kExp, x(j) - top)); });
      const Val sum = b.Reduce(ReduceOp::kSum, {n}, [&](auto& j) { return x(j[0]); });
      const Val scale = b.Let(Like(sum, 1) / sum);
      b.For("j", n, LoopKind::kSerial,
            [&](Expr j) { b.Store(turned, j * kStrip + r, x(j) * scale); });
    });
    b.For("r", count, LoopKind::kSerial, [&](Expr r) {
      b.For("j", n, LoopKind::kVector,
            [&](Expr j) { l.Yield(0, at(r, j), b.Load(turned, j * kStrip + r)); });
    });
  });
}

void LowerSoftmaxKind(Lowering& l, bool log) {
  const Dims& x = l.In(0).dims;
  const int axis = AxisOf(l.Int("axis", -1), l.In(0).rank());
  const Expr n = x[axis];
  const DType t = ComputeType(l.In(0).dtype);
  Dims rest = x;
  rest.erase(rest.begin() + axis);
  const bool last = axis + 1 == l.In(0).rank(), short_rows = n.IsConst() && n.value() <= 32;
  if (last && short_rows && !rest.empty() && l.In(0).layout.IsNd() && l.Out(0).layout.IsNd() &&
      n.value() >= 8 && HintValue(rest.back()) >= 16)
    return LowerShortRows(l, log, rest);
  if (!rest.empty() &&
      (last ? short_rows && HintValue(Product(rest)) >= 64 : HintValue(rest.back()) >= 16))
    return LowerInLanes(l, log, axis, rest);
  l.ForEach(rest, false, [&](const Index& r) {
    auto& b = l.b;
    auto at = [&](Expr j) {
      Index i = r;
      i.insert(i.begin() + axis, j);
      return i;
    };
    const int row = b.Alloc("row", t, n);
    b.For("j", n, LoopKind::kVector, [&](Expr j) { b.Store(row, j, l.Load(0, at(j))); });
    const Val top = Largest(b, row, 0, n);
    if (log) {
      const Val sum = b.Reduce(ReduceOp::kSum, {n},
                               [&](auto& j) { return b.Unary(Op::kExp, b.Load(row, j[0]) - top); });
      const Val log_sum = b.Let(b.Unary(Op::kLog, sum));
      b.For("j", n, LoopKind::kVector,
            [&](Expr j) { l.Yield(0, at(j), b.Load(row, j) - top - log_sum); });
      return;
    }
    const Val factor = Exponentials(b, row, 0, n, top);
    b.For("j", n, LoopKind::kVector, [&](Expr j) { l.Yield(0, at(j), b.Load(row, j) * factor); });
  });
}

void LowerSoftmax(Lowering& l) { LowerSoftmaxKind(l, false); }
void LowerLogSoftmax(Lowering& l) { LowerSoftmaxKind(l, true); }

const OpDef& kSoftmax = Register(
    {.name = "Softmax",
     .infer = InferSoftmax,
     .lower = LowerSoftmax,
     .halves = Halves::kWiden,
     .flops_per_element = 20,
     .samples = {"(f32[2,3,5])", "(f32[2,3,5]) {axis=1}", "(f32[4]) {axis=0}", "(f16[2,7])",
                 "(f32[2,3,20]) {axis=1}", "(f32[65,3])", "(f32[3,37,12])", "(f16[2,70,17])"}});
const OpDef& kLogSoftmax =
    Register({.name = "LogSoftmax",
              .infer = InferSoftmax,
              .lower = LowerLogSoftmax,
              .halves = Halves::kWiden,
              .flops_per_element = 20,
              .samples = {"(f32[2,3,5])", "(f32[2,3,5]) {axis=0}", "(f32[40,9])"}});

}  // namespace
}  // namespace ge
