// ge.Attend  Y[b.., s, n] = sum_t softmax_t(scale * sum_d Q[b.., s, d] K[b.., d, t] + M[b.., s, t])
//                           * V[b.., t, n]
// Attention of one head after the other, what opt/rules/attention.cc makes of products around a
// Softmax. M is optional and broadcasts. Scores of a row stay in a local buffer; V is multiplied by
// exponentials, and the product by the reciprocal of their sum.
#include <fmt/format.h>

#include "ir/opdef.h"
#include "ops/dot.h"
#include "ops/rows.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

enum Operand { kQ, kK, kV, kMask };

Status InferAttend(InferContext& c) {
  const Dims &q = c.In(kQ).dims, &k = c.In(kK).dims, &v = c.In(kV).dims;
  if (q.size() < 3 || k.size() != q.size() || v.size() != q.size())
    return c.Fault(fmt::format("Q {}, K {} and V {} must have one rank of at least 3", ShapeText(q),
                               ShapeText(k), ShapeText(v)));
  const size_t n = q.size();
  for (size_t d = 0; d + 2 < n; ++d) {
    c.Check(
        And(Eq(k[d], q[d]), Eq(v[d], q[d])),
        fmt::format("batches of {}, {} and {} differ", ShapeText(q), ShapeText(k), ShapeText(v)));
  }
  c.Check(Eq(q[n - 1], k[n - 2]), "the depths of Q and K differ");
  c.Check(Eq(k[n - 1], v[n - 2]), "K and V have different numbers of keys");
  Dims scores = q;
  scores.back() = k.back();
  if (c.Has(kMask)) GE_TRY(CheckBroadcastsTo(c, c.In(kMask).dims, scores));
  Dims out = q;
  out.back() = v.back();
  c.Out(0, c.In(kQ).dtype, out);
  return {};
}

void LowerAttend(Lowering& l) {
  const Dims &q = l.In(kQ).dims, &k = l.In(kK).dims, &v = l.In(kV).dims;
  const size_t n = q.size();
  const Expr depth = q.back(), keys = k.back();
  const DType t = ComputeType(l.In(kQ).dtype);
  const double scale = l.Float("scale", 1);
  Dims scores = q;
  scores.back() = keys;
  l.ForEach({q.begin(), q.end() - 1}, false, [&](const Index& r) {
    auto& b = l.b;
    auto of_head = [&](Expr i, Expr j) {
      Index at(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(n) - 2);
      at.push_back(i);
      at.push_back(j);
      return at;
    };
    const Expr s = r.back();
    const int row = b.Alloc("row", t, keys);
    b.For("t", keys, LoopKind::kSerial, [&](Expr j) {
      Val score = b.Reduce(ReduceOp::kSum, {depth}, [&](auto& d) {
        return l.Load(kQ, of_head(s, d[0])) * l.Load(kK, of_head(d[0], j));
      });
      score = score * scale;
      if (l.Has(kMask))
        score = score + l.Load(kMask, BroadcastIndex(l.In(kMask).dims, scores, of_head(s, j)));
      b.Store(row, j, score);
    });
    const Val inverse = Exponentials(b, row, 0, keys, Largest(b, row, 0, keys));
    b.For("n", v.back(), LoopKind::kVector, [&](Expr j) {
      const Val sum = b.Reduce(ReduceOp::kSum, {keys}, [&](auto& i) {
        return b.Load(row, i[0]) * l.Load(kV, of_head(i[0], j));
      });
      l.Yield(0, of_head(s, j), sum * inverse);
    });
  });
}

[[maybe_unused]] const OpDef& kAttend =
    Register({.name = "Attend",
              .domain = "ge",
              .min_inputs = 3,
              .max_inputs = 4,
              .infer = InferAttend,
              .lower = LowerAttend,
              .flops_per_element = 40,
              .samples = {"(f32[2,3,5,4], f32[2,3,4,7], f32[2,3,7,16]) {scale=0.5}",
                          "(f32[3,20,8], f32[3,8,40], f32[3,40,32], f32[3,1,40])",
                          "(f32[2,2,70,8], f32[2,2,8,33], f32[2,2,33,16], f32[70,33])",
                          "(f32[1,2,3,4], f32[1,2,4,5], f32[1,2,5,7], f32[1,1,1,5])"},
              .tolerance = 1e-4});

}  // namespace
}  // namespace ge
