// Dots of quantised operands, with int32 sums:
//   MatMulInteger  Y = sum_k (A - a_zero) * (B - b_zero)
//   ConvInteger    the same over windows; pads count as x_zero, hence add nothing
//   QLinearMatMul, QLinearConv   Y = saturate(round(sum * a_scale * b_scale / y_scale) + y_zero)
// A's zero point and scale may be per row, B's per column, a weight's per output channel.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/opdef.h"
#include "ops/dot.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::Op;
using tile::ReduceOp;
using tile::Val;

// A quantisation parameter: one value, one per `row` (rank 1), or per row with the other matrix
// axis of size 1 and batch axes as the operand's own.
Val Parameter(Lowering& l, int input, const Index& operand, Expr row, bool rows_last,
              double otherwise, DType t) {
  if (!l.Has(input)) return l.b.Const(t, otherwise);
  const Dims& dims = l.In(input).dims;
  Index idx(dims.size(), Expr(0));
  const size_t n = dims.size();
  if (n == 1 && !dims[0].IsConst(1)) idx[0] = row;
  if (n >= 2) {
    const size_t at = rows_last ? n - 1 : n - 2;
    for (size_t i = 0; i + 2 < n; ++i) idx[i] = dims[i].IsConst(1) ? Expr(0) : operand[i];
    if (!dims[at].IsConst(1)) idx[at] = row;
  }
  return l.b.Let(l.b.Cast(l.Load(input, idx), t));
}

// The type in which products are summed: int32 for integers, the float's own otherwise.
DType SumType(DType operand) { return IsFloat(operand) ? ComputeType(operand) : DType::kI32; }

struct MatMulOperands {
  int a, b, a_zero, b_zero;  // input numbers
};

Val IntegerDot(Lowering& l, const DotShape& s, const Index& o, const MatMulOperands& in) {
  const DType t = SumType(l.In(in.a).dtype);
  const Val az = Parameter(l, in.a_zero, s.IndexA(o, 0), s.Row(o), false, 0, t);
  const Val bz = Parameter(l, in.b_zero, s.IndexB(o, 0), s.Col(o), true, 0, t);
  return l.b.Reduce(ReduceOp::kSum, {s.k}, [&](const std::vector<Expr>& k) {
    const Val a = l.b.Cast(l.Load(in.a, s.IndexA(o, k[0])), t) - az;
    return a * (l.b.Cast(l.Load(in.b, s.IndexB(o, k[0])), t) - bz);
  });
}

// round(sum * scale) + zero, within the range of `to`.
Val Requantise(Lowering& l, Val sum, Val scale, int zero_input, DType to) {
  auto& b = l.b;
  Val v = b.Cast(sum, DType::kF32) * scale;
  if (IsFloat(to)) return v;
  v = b.Unary(Op::kRound, v);
  if (l.Has(zero_input))
    v = v + b.Cast(l.Load(zero_input, Index(l.In(zero_input).dims.size(), Expr(0))), DType::kF32);
  const int bits = BitWidth(to);
  const double lo = IsSigned(to) ? -std::ldexp(1.0, bits - 1) : 0;
  const double hi = IsSigned(to) ? std::ldexp(1.0, bits - 1) - 1 : std::ldexp(1.0, bits) - 1;
  return b.Cast(Min(Max(v, Like(v, lo)), Like(v, hi)), ComputeType(to));
}

Status InferMatMulShape(InferContext& c, int a, int b, DType out) {
  GE_ASSIGN(DotShape s, MatMulShape(c.In(a).dims, c.In(b).dims));
  c.Check(Eq(s.k, s.k_b),
          fmt::format("inner dims of {} and {} differ", ShapeText(s.a), ShapeText(s.b)));
  for (auto& [cond, text] : s.checks) c.Check(cond, text);
  c.Out(0, out, s.out);
  return {};
}

Status InferMatMulInteger(InferContext& c) { return InferMatMulShape(c, 0, 1, DType::kI32); }

void LowerMatMulInteger(Lowering& l) {
  auto s = MatMulShape(l.In(0).dims, l.In(1).dims);
  GE_CHECK(s.ok());
  l.ForEach(s->out, s->has_n,
            [&](const Index& o) { l.Yield(0, o, IntegerDot(l, *s, o, {0, 1, 2, 3})); });
}

const OpDef& kMatMulInteger =
    Register({.name = "MatMulInteger",
              .min_inputs = 2,
              .max_inputs = 4,
              .infer = InferMatMulInteger,
              .lower = LowerMatMulInteger,
              .expand = ExpandBatch<0, 1>,
              .flops_per_element = 2,
              .samples = {"(u8[4,3], u8[3,2], u8[1], u8[1])", "(u8[4,3], i8[3,2], u8[], i8[2])",
                          "(i8[2,4,3], i8[3,2], i8[4])"},
              .tolerance = 0});

Status InferQLinearMatMul(InferContext& c) { return InferMatMulShape(c, 0, 3, c.In(7).dtype); }

void LowerQLinearMatMul(Lowering& l) {
  auto s = MatMulShape(l.In(0).dims, l.In(3).dims);
  GE_CHECK(s.ok());
  l.ForEach(s->out, s->has_n, [&](const Index& o) {
    const Val as = Parameter(l, 1, s->IndexA(o, 0), s->Row(o), false, 1, DType::kF32);
    const Val bs = Parameter(l, 4, s->IndexB(o, 0), s->Col(o), true, 1, DType::kF32);
    const Val ys = Parameter(l, 6, {}, 0, true, 1, DType::kF32);
    const Val sum = IntegerDot(l, *s, o, {0, 3, 2, 5});
    l.Yield(0, o, Requantise(l, sum, as * bs / ys, 7, l.Out(0).dtype));
  });
}

const OpDef& kQLinearMatMul =
    Register({.name = "QLinearMatMul",
              .min_inputs = 8,
              .max_inputs = 8,
              .infer = InferQLinearMatMul,
              .lower = LowerQLinearMatMul,
              .expand = ExpandBatch<0, 3>,
              .flops_per_element = 2,
              .samples = {"(u8[2,4], f32[1], u8[1], u8[4,3], f32[1], u8[1], f32[1], u8[1])",
                          "(i8[2,2,4], f32[], i8[], i8[2,4,3], f32[], i8[], f32[], i8[])"}});

struct ConvOperands {
  int x, w, x_zero, w_zero;
};

Result<Window> QuantisedWindow(const Node& n, const Dims& x, const Dims& w) {
  if (x.size() < 3 || w.size() != x.size())
    return Invalid(fmt::format("X {} and W {} must have the same rank of at least 3", ShapeText(x),
                               ShapeText(w)));
  return ForwardWindow(n, Tail(x, 2), Tail(w, 2));
}

Status InferQuantisedConv(InferContext& c, int xi, int wi, DType out) {
  const auto &x = c.In(xi).dims, &w = c.In(wi).dims;
  GE_ASSIGN(const Window win, QuantisedWindow(c.node, x, w));
  const int64_t group = c.Int("group", 1);
  if (group < 1) return c.Fault(fmt::format("group is {}, but must be at least 1", group));
  c.Check(Eq(x[1], w[1] * group),
          fmt::format("X {} does not have the channels of W {} with group {}", ShapeText(x),
                      ShapeText(w), group));
  c.Check(Eq(Mod(w[0], group), 0),
          fmt::format("{} output channels are not divisible by group {}", ToString(w[0]), group));
  Dims dims = {x[0], w[0]};
  dims.insert(dims.end(), win.out.begin(), win.out.end());
  c.Out(0, out, dims);
  return {};
}

Val IntegerConv(Lowering& l, const Window& win, const Index& o, const ConvOperands& in) {
  const Dims& w = l.In(in.w).dims;
  const Expr per_group = FloorDiv(w[0], l.Int("group", 1));
  const DType t = DType::kI32;
  const Val xz = Parameter(l, in.x_zero, {}, 0, true, 0, t);
  const Val wz = Parameter(l, in.w_zero, {}, o[1], true, 0, t);
  return l.b.Reduce(ReduceOp::kSum, Tail(w, 1), [&](const std::vector<Expr>& k) {
    Index xi = {o[0], FloorDiv(o[1], per_group) * w[1] + k[0]}, wi = {o[1], k[0]};
    for (int i = 0; i < win.rank(); ++i) {
      xi.push_back(win.At(i, o[2 + i], k[1 + i]));
      wi.push_back(k[1 + i]);
    }
    return (l.LoadOr(in.x, xi, xz) - xz) * (l.Load(in.w, wi) - wz);
  });
}

Status InferConvInteger(InferContext& c) { return InferQuantisedConv(c, 0, 1, DType::kI32); }

void LowerConvInteger(Lowering& l) {
  auto win = QuantisedWindow(l.node, l.In(0).dims, l.In(1).dims);
  GE_CHECK(win.ok());
  l.ForEach(l.Out(0).dims, true,
            [&](const Index& o) { l.Yield(0, o, IntegerConv(l, *win, o, {0, 1, 2, 3})); });
}

const OpDef& kConvInteger =
    Register({.name = "ConvInteger",
              .min_inputs = 2,
              .max_inputs = 4,
              .infer = InferConvInteger,
              .lower = LowerConvInteger,
              .flops_per_element = 2,
              .samples = {"(u8[1,1,3,3], u8[1,1,2,2], u8[]) {pads=[1,1,1,1]}",
                          "(u8[1,4,5,5], i8[4,2,2,2], u8[], i8[4]) {group=2}"},
              .tolerance = 0});

Status InferQLinearConv(InferContext& c) { return InferQuantisedConv(c, 0, 3, c.In(7).dtype); }

void LowerQLinearConv(Lowering& l) {
  auto win = QuantisedWindow(l.node, l.In(0).dims, l.In(3).dims);
  GE_CHECK(win.ok());
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    const Val xs = Parameter(l, 1, {}, 0, true, 1, DType::kF32);
    const Val ws = Parameter(l, 4, {}, o[1], true, 1, DType::kF32);
    const Val ys = Parameter(l, 6, {}, 0, true, 1, DType::kF32);
    Val sum = IntegerConv(l, *win, o, {0, 3, 2, 5});
    if (l.Has(8)) sum = sum + l.Load(8, {o[1]});
    l.Yield(0, o, Requantise(l, sum, xs * ws / ys, 7, l.Out(0).dtype));
  });
}

const OpDef& kQLinearConv = Register({.name = "QLinearConv",
                                      .min_inputs = 8,
                                      .max_inputs = 9,
                                      .infer = InferQLinearConv,
                                      .lower = LowerQLinearConv,
                                      .flops_per_element = 2,
                                      .samples = {"(u8[1,2,5,5], f32[], u8[], i8[3,2,3,3], f32[3], "
                                                  "i8[3], f32[], u8[], i32[3]) {pads=[1,1,1,1]}"}});

}  // namespace
}  // namespace ge
