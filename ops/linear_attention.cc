// LinearAttention: a state S [Dk, Dv] per batch entry and key head walks over time:
//   S = exp(decay_t) * S                     (gated, gated_delta)
//   S = S + k_t (x) v_t                      (linear, gated)
//   S = S + k_t (x) beta_t (v_t - S^T k_t)   (delta, gated_delta)
//   y_t = scale * q_t S                      for each query head of the group
// The columns of S are independent: each is one chunk.
// CausalConvWithState: a depthwise convolution over [past, input], and the last K-1 of that as new
// past.
#include <fmt/format.h>

#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

enum Operand { kQuery, kKey, kValue, kPast, kDecay, kBeta };

Status InferLinearAttention(InferContext& c) {
  for (int i = 0; i < 3; ++i) GE_TRY(CheckRank(c, i, 3));
  const int64_t hq = c.Int("q_num_heads", 0), hkv = c.Int("kv_num_heads", 0);
  if (hq < 1 || hkv < 1 || hq % hkv != 0)
    return c.Fault(fmt::format("q_num_heads {} must be a multiple of kv_num_heads {}", hq, hkv));
  const std::string rule = c.Str("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    return c.Fault(
        fmt::format("update_rule is '{}', but must be linear, gated, delta or gated_delta", rule));
  if (rule.starts_with("gated") && !c.Has(kDecay)) return c.Fault("decay is missing");
  if (rule.ends_with("delta") && !c.Has(kBeta)) return c.Fault("beta is missing");
  const Dims &q = c.In(kQuery).dims, &v = c.In(kValue).dims;
  const Expr dk = FloorDiv(q[2], hq), dv = FloorDiv(v[2], hkv);
  GE_TRY(SameDim(c, c.In(kKey).dims[2], dk * hkv, "the size of keys").status());
  c.Out(0, c.In(kQuery).dtype, {q[0], q[1], dv * hq});
  c.Out(1, c.In(kQuery).dtype, {q[0], hkv, dk, dv});
  return {};
}

struct LinearStep {
  Lowering& l;
  int64_t hq, hkv;
  Expr dk, dv;
  bool gated, delta;
  float scale;  // 0: 1 / sqrt(dk)

  Val Scaled(Val y) const {
    if (scale != 0) return y * static_cast<double>(scale);
    return y / l.b.Unary(Op::kSqrt, l.b.Cast(l.b.Index(dk), DType::kF32));
  }
  Val In(int input, const Index& i) const { return l.b.Cast(l.Load(input, i), DType::kF32); }

  void Run(const Index& chunk, int column, Expr t) const {
    auto& b = l.b;
    const Expr n = chunk[0], h = chunk[1], j = chunk[2];
    auto key = [&](Expr i) { return In(kKey, {n, t, h * dk + i}); };
    if (gated) {
      const bool per_head = l.In(kDecay).dims[2] == Expr(hkv) && !dk.IsConst(1);
      b.For("i", dk, LoopKind::kVector, [&](Expr i) {
        const Val decay = b.Unary(Op::kExp, In(kDecay, {n, t, per_head ? h : h * dk + i}));
        b.Store(column, i, b.Load(column, i) * decay);
      });
    }
    Val write = In(kValue, {n, t, h * dv + j});
    if (delta) {
      const Val held =
          b.Reduce(ReduceOp::kSum, {dk}, [&](auto& i) { return b.Load(column, i[0]) * key(i[0]); });
      write = (write - held) * In(kBeta, {n, t, l.In(kBeta).dims[2].IsConst(1) ? Expr(0) : h});
    }
    write = b.Let(write);
    b.For("i", dk, LoopKind::kVector,
          [&](Expr i) { b.Store(column, i, b.Load(column, i) + key(i) * write); });
    for (int64_t k = 0; k < hq / hkv; ++k) {
      const Expr head = h * (hq / hkv) + k;
      const Val y = b.Reduce(ReduceOp::kSum, {dk}, [&](auto& i) {
        return b.Load(column, i[0]) * In(kQuery, {n, t, head * dk + i[0]});
      });
      if (!l.node.outputs.empty() && l.node.outputs[0] != kNone)
        l.Yield(0, {n, t, head * dv + j}, Scaled(y));
    }
  }
};

void LowerLinearAttention(Lowering& l) {
  const int64_t hq = l.Int("q_num_heads", 1), hkv = l.Int("kv_num_heads", 1);
  const Dims& q = l.In(kQuery).dims;
  const Expr dk = FloorDiv(q[2], hq), dv = FloorDiv(l.In(kValue).dims[2], hkv);
  const std::string rule = l.Str("update_rule", "gated_delta");
  const float scale = l.Float("scale", 0);
  const LinearStep step{l,    hq, hkv, dk, dv, rule.starts_with("gated"), rule.ends_with("delta"),
                        scale};
  l.ForEach({q[0], hkv, dv}, false, [&](const Index& c) {
    auto& b = l.b;
    const int column = b.Alloc("column", DType::kF32, dk);
    b.For("i", dk, LoopKind::kVector, [&](Expr i) {
      b.Store(column, i, l.Has(kPast) ? step.In(kPast, {c[0], c[1], i, c[2]}) : b.F(0));
    });
    b.For("t", q[1], LoopKind::kSerial, [&](Expr t) { step.Run(c, column, t); });
    if (l.node.outputs.size() < 2 || l.node.outputs[1] == kNone) return;
    b.For("i", dk, LoopKind::kVector,
          [&](Expr i) { l.Yield(1, {c[0], c[1], i, c[2]}, b.Load(column, i)); });
  });
}

const OpDef& kLinearAttention =
    Register({.name = "LinearAttention",
              .min_inputs = 3,
              .max_inputs = 6,
              .max_outputs = 2,
              .infer = InferLinearAttention,
              .lower = LowerLinearAttention,
              .flops_per_element = 1000,
              .samples = {"(f32[2,4,16], f32[2,4,8], f32[2,4,8], , f32[2,4,8], f32[2,4,2]) "
                          "{q_num_heads=4, kv_num_heads=2}",
                          "(f32[1,3,8], f32[1,3,8], f32[1,3,8]) {q_num_heads=2, kv_num_heads=2, "
                          "update_rule=\"linear\"}"},
              .tolerance = 1e-4});

Status InferCausalConv(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 3));
  GE_TRY(CheckRank(c, 1, 3));
  const Dims &x = c.In(0).dims, &w = c.In(1).dims;
  c.Check(And(Eq(w[0], x[1]), Eq(w[1], 1)),
          fmt::format("weight {} does not fit input {}", ShapeText(w), ShapeText(x)));
  const std::string activation = c.Str("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return c.Fault(fmt::format("activation is '{}', but must be none, silu or swish", activation));
  CopyType(c, 0, 0);
  c.Out(1, c.In(0).dtype, {x[0], x[1], w[2] - 1});
  return {};
}

bool ExpandCausalConv(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId x = e.In(0), w = e.In(1);
  const std::vector<Expr> xd = e.Dims(x), wd = e.Dims(w);
  if (!wd[0].IsConst() || !wd[2].IsConst()) return false;
  const int64_t k = wd[2].value();
  ValueId past = e.In(3);
  if (past == kNone) past = e.Expand(e.Scalar(e.Type(x), 0), {xd[0], xd[1], k - 1});
  const ValueId padded = k > 1 ? e.Op("Concat", {past, x}, {{"axis", int64_t{2}}}) : x;
  std::vector<ValueId> operands = {padded, w};
  if (e.Has(2)) operands.push_back(e.In(2));
  ValueId y = e.Op("Conv", operands, {{"group", wd[0].value()}});
  if (e.Str("activation", "none") != "none") {
    const ValueId f = e.Cast(y, DType::kF32);
    y = e.Cast(e.Op("Mul", {f, e.Op("Sigmoid", {f})}), e.Type(x));
  }
  std::vector<ValueId> outputs = {y};
  if (e.NumOutputs() > 1) {
    const Expr length = xd[2] + (k - 1);
    outputs.push_back(e.Wants(1) ? e.Op("Slice", {padded, e.Exprs({length - (k - 1)}),
                                                  e.Exprs({length}), e.Ints({2})})
                                 : kNone);
  }
  return e.Done(outputs);
}

const OpDef& kCausalConv =
    Register({.name = "CausalConvWithState",
              .min_inputs = 2,
              .max_inputs = 4,
              .max_outputs = 2,
              .infer = InferCausalConv,
              .expand = ExpandCausalConv,
              .samples = {"(f32[2,4,8], f32[4,1,4]) {activation=\"silu\"}"}});

}  // namespace
}  // namespace ge
