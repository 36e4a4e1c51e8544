// MatMul  Y[b.., m, n] = sum_k A[b.., m, k] * B[b.., k, n]   (numpy rules: batch axes broadcast, a
// 1-D
//         operand gets an axis of size 1 that the result loses)
// ge.MatMul, ge.Gemm   the same with a result in f32, whatever the type of A and B
// Gemm    Y[m, n] = alpha * sum_k A'[m, k] * B'[k, n] + beta * C[m, n]   (C broadcasts one way)
#include <fmt/format.h>

#include "base/check.h"
#include "ir/opdef.h"
#include "ops/dot.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::Val;

// The type of a product: that of its sum where the node is ours, else the operands'.
DType ResultType(const InferContext& c) {
  return c.node.op->domain == "ge" ? DType::kF32 : c.In(0).dtype;
}

Status InferMatMul(InferContext& c) {
  GE_ASSIGN(DotShape s, MatMulShape(c.In(0).dims, c.In(1).dims));
  if (c.In(0).dtype != c.In(1).dtype)
    return c.Fault(fmt::format("operands are {} and {}, but must have one type",
                               Name(c.In(0).dtype), Name(c.In(1).dtype)));
  c.Check(Eq(s.k, s.k_b),
          fmt::format("MatMul: inner dims {} and {} differ", ToString(s.k), ToString(s.k_b)));
  for (auto& [cond, text] : s.checks) c.Check(cond, text);
  c.Out(0, ResultType(c), s.out);
  return {};
}

void LowerMatMul(Lowering& l) {
  auto shape = MatMulShape(l.In(0).dims, l.In(1).dims);
  GE_CHECK(shape.ok());
  const DotShape& s = *shape;
  // With columns the vector runs along n (contiguous in B), else the sum itself is vectorised.
  const bool columns = s.has_n && !s.b.back().IsConst(1);
  l.ForEach(s.out, columns, [&](const Index& o) {
    Val sum = l.b.Reduce(tile::ReduceOp::kSum, {s.k}, [&](const std::vector<Expr>& k) {
      return l.Load(0, s.IndexA(o, k[0])) * l.Load(1, s.IndexB(o, k[0]));
    });
    l.Yield(0, o, sum);
  });
}

const OpDef& kMatMul = Register(
    {.name = "MatMul",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = InferMatMul,
     .lower = LowerMatMul,
     .expand = ExpandBatch<0, 1>,
     .halves = Halves::kWiden,
     .flops_per_element = 2,
     .samples = {"(f32[3,4], f32[4,5])", "(f32[2,1,3,4], f32[5,4,6])", "(f32[4], f32[4])",
                 "(f32[4], f32[2,4,3])", "(f32[2,3,4], f32[4])", "(i32[3,4], i32[4,2])",
                 "(f32[0,4], f32[4,3])", "(f64[2,5,7], f64[2,7,24])", "(f64[19,9], f64[9,40])"},
     .tolerance = 1e-4});

[[maybe_unused]] const OpDef& kWideMatMul =
    Register({.name = "MatMul",
              .domain = "ge",
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = InferMatMul,
              .lower = LowerMatMul,
              .flops_per_element = 2,
              .samples = {"(bf16[3,4], bf16[4,5])", "(f16[2,3,4], f16[4,6])"},
              .tolerance = 1e-4});

// Element (i, j) of the operand, transposed or not.
Val Operand(Lowering& l, int input, bool transposed, Expr i, Expr j) {
  return transposed ? l.Load(input, {j, i}) : l.Load(input, {i, j});
}

Val Scale(Val v, float by) { return by == 1.0F ? v : v * static_cast<double>(by); }

Status InferGemm(InferContext& c) {
  const auto &a = c.In(0), &b = c.In(1);
  if (a.rank() != 2 || b.rank() != 2)
    return c.Fault(fmt::format("A and B must have rank 2, but have {} and {}", a.rank(), b.rank()));
  const bool ta = c.Int("transA", 0), tb = c.Int("transB", 0);
  c.Check(Eq(a.dims[ta ? 0 : 1], b.dims[tb ? 1 : 0]),
          fmt::format("Gemm: inner dims of A {} and B {} differ", ShapeText(a.dims),
                      ShapeText(b.dims)));
  const std::vector<Expr> out = {a.dims[ta ? 1 : 0], b.dims[tb ? 0 : 1]};
  if (c.Has(2)) {
    const auto& bias = c.In(2).dims;
    if (bias.size() > 2)
      return c.Fault(fmt::format("C has rank {}, but at most 2 is allowed", bias.size()));
    for (size_t i = 0; i < bias.size(); ++i) {
      const Expr want = out[2 - bias.size() + i];
      c.Check(Or(Eq(bias[i], 1), Eq(bias[i], want)),
              fmt::format("Gemm: C {} does not broadcast to {}", ShapeText(bias), ShapeText(out)));
    }
  }
  c.Out(0, ResultType(c), out);
  return {};
}

void LowerGemm(Lowering& l) {
  const bool ta = l.Int("transA", 0), tb = l.Int("transB", 0);
  const float alpha = l.Float("alpha", 1), beta = l.Float("beta", 1);
  const Expr k = l.In(0).dims[ta ? 0 : 1];
  // B transposed is contiguous along k: then the sum is vectorised instead of the columns.
  // That of one column is too.
  const bool columns = ta || (!tb && !l.Out(0).dims[1].IsConst(1));
  l.ForEach(l.Out(0).dims, columns, [&](const Index& o) {
    Val sum = l.b.Reduce(tile::ReduceOp::kSum, {k}, [&](const std::vector<Expr>& i) {
      return Operand(l, 0, ta, o[0], i[0]) * Operand(l, 1, tb, i[0], o[1]);
    });
    sum = Scale(sum, alpha);
    if (l.Has(2) && beta != 0) sum = sum + Scale(l.LoadBroadcast(2, o), beta);
    l.Yield(0, o, sum);
  });
}

const OpDef& kGemm = Register(
    {.name = "Gemm",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = InferGemm,
     .lower = LowerGemm,
     .halves = Halves::kWiden,
     .flops_per_element = 2,
     .samples = {"(f32[3,4], f32[4,5], f32[5])",
                 "(f32[4,3], f32[5,4], f32[3,1]) {transA=1, transB=1, alpha=0.5, beta=2.0}",
                 "(f32[3,4], f32[5,4]) {transB=1}", "(f32[3,4], f32[4,5], f32[])",
                 "(f64[9,17], f64[27,9], f64[27]) {transA=1, transB=1, alpha=0.5}"},
     .tolerance = 1e-4});

[[maybe_unused]] const OpDef& kWideGemm = Register(
    {.name = "Gemm",
     .domain = "ge",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = InferGemm,
     .lower = LowerGemm,
     .flops_per_element = 2,
     .samples = {"(bf16[3,4], bf16[4,5], f32[5])", "(bf16[3,4], bf16[5,4]) {transB=1, alpha=0.5}"},
     .tolerance = 1e-4});

}  // namespace
}  // namespace ge
