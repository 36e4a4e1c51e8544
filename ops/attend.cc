// ge.Attend  Y[b.., h, s, n] = sum_t softmax_t(score[b.., h, s, t]) * V[b.., h / shared, t, n]
//            score[b.., h, s, t] = scale * sum_d Q[b.., h, s, d] K[b.., h / shared, d, t]
//              where Allowed[b.., h, s, t], else low;  plus M[b.., h, s, t]
// Attention of one head after the other, what opt/rules/attention.cc makes of products around a
// Softmax. Allowed and M are optional and broadcast. Scores of a row stay in a local buffer; V is
// multiplied by exponentials, and the product by the reciprocal of their sum. With `empty`, a row
// of -inf gives 0 and not NaN.
#include "ops/attend.h"

#include <fmt/format.h>

#include <limits>

#include "ops/dot.h"
#include "ops/rows.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

constexpr int64_t kMostPacked = 512 << 10;  // elements of a head's keys
constexpr int64_t kLanes = 16;              // columns of v in whole vectors of any chip

Status InferAttend(InferContext& c) {
  const Dims &q = c.In(kAttendQ).dims, &k = c.In(kAttendK).dims, &v = c.In(kAttendV).dims;
  if (q.size() < 3 || k.size() != q.size() || v.size() != q.size())
    return c.Fault(fmt::format("Q {}, K {} and V {} must have one rank of at least 3", ShapeText(q),
                               ShapeText(k), ShapeText(v)));
  const size_t n = q.size();
  const int64_t shared = c.Int("shared", 1);
  if (shared < 1) return c.Fault(fmt::format("shared is {}, but must be at least 1", shared));
  for (size_t d = 0; d + 2 < n; ++d) {
    const Expr of_keys = d + 3 == n ? k[d] * shared : k[d];
    c.Check(
        And(Eq(of_keys, q[d]), Eq(v[d], k[d])),
        fmt::format("batches of {}, {} and {} differ", ShapeText(q), ShapeText(k), ShapeText(v)));
  }
  c.Check(Eq(q[n - 1], k[n - 2]), "the depths of Q and K differ");
  c.Check(Eq(k[n - 1], v[n - 2]), "K and V have different numbers of keys");
  Dims scores = q;
  scores.back() = k.back();
  for (int mask : {kAttendMask, kAttendAllowed})
    if (c.Has(mask)) GE_TRY(CheckBroadcastsTo(c, c.In(mask).dims, scores));
  Dims out = q;
  out.back() = v.back();
  c.Out(0, c.In(kAttendQ).dtype, out);
  return {};
}

void LowerAttend(Lowering& l) {
  const Dims &q = l.In(kAttendQ).dims, &k = l.In(kAttendK).dims, &v = l.In(kAttendV).dims;
  const size_t n = q.size();
  const Expr depth = q.back(), keys = k.back();
  const DType t = ComputeType(l.In(kAttendQ).dtype);
  const double scale = l.Float("scale", 1), low = l.Float("low", 0);
  const int64_t shared = l.Int("shared", 1);
  Dims scores = q;
  scores.back() = keys;
  l.ForEach({q.begin(), q.end() - 1}, false, [&](const Index& r) {
    auto& b = l.b;
    const Index front(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(n) - 2);
    auto of_head = [&](Expr i, Expr j) { return Join(front, {i, j}); };
    auto of_keys = [&](Expr i, Expr j) {
      Index at = of_head(i, j);
      at[n - 3] = FloorDiv(at[n - 3], shared);
      return at;
    };
    const Expr s = r.back();
    const int row = b.Alloc("row", t, keys);
    b.For("t", keys, LoopKind::kSerial, [&](Expr j) {
      Val score = b.Reduce(ReduceOp::kSum, {depth}, [&](auto& d) {
        return l.Load(kAttendQ, of_head(s, d[0])) * l.Load(kAttendK, of_keys(d[0], j));
      });
      auto mask = [&](int input) {
        return l.Load(input, BroadcastIndex(l.In(input).dims, scores, of_head(s, j)));
      };
      score = score * scale;
      if (l.Has(kAttendAllowed)) {
        const Val other = Like(score, low), set = mask(kAttendAllowed);
        score = l.Int("hides", 0) != 0 ? b.Select(set, other, score) : b.Select(set, score, other);
      }
      if (l.Has(kAttendMask)) score = score + mask(kAttendMask);
      b.Store(row, j, score);
    });
    Val top = Largest(b, row, 0, keys);
    if (l.Int("empty", 0) != 0) top = Finite(top);
    const Val inverse = Exponentials(b, row, 0, keys, top);
    b.For("n", v.back(), LoopKind::kVector, [&](Expr j) {
      const Val sum = b.Reduce(ReduceOp::kSum, {keys}, [&](auto& i) {
        return b.Load(row, i[0]) * l.Load(kAttendV, of_keys(i[0], j));
      });
      l.Yield(0, of_head(s, j), sum * inverse);
    });
  });
}

[[maybe_unused]] const OpDef& kAttend = Register(
    {.name = "Attend",
     .domain = "ge",
     .min_inputs = 3,
     .max_inputs = 5,
     .infer = InferAttend,
     .lower = LowerAttend,
     .flops_per_element = 40,
     .samples =
         {"(f32[2,3,5,4], f32[2,3,4,7], f32[2,3,7,16]) {scale=0.5}",
          "(f32[3,20,8], f32[3,8,40], f32[3,40,32], f32[3,1,40])",
          "(f32[2,2,70,8], f32[2,2,8,33], f32[2,2,33,16], f32[70,33])",
          "(f32[1,2,3,4], f32[1,2,4,5], f32[1,2,5,7], f32[1,1,1,5])",
          "(f32[2,6,5,8], f32[2,2,8,19], f32[2,2,19,16], f32[2,1,5,19]) {shared=3}",
          "(f32[2,6,1,8], f32[2,2,8,40], f32[2,2,40,16], f32[1,6,1,40]) {shared=3, scale=0.5}",
          "(f32[1,4,37,8], f32[1,2,8,37], f32[1,2,37,16], , bool[1,4,37,37]) {shared=2, low=-3}",
          "(f32[2,9,4], f32[2,4,9], f32[2,9,16], f32[9], bool[9,9]) {low=-1e4, hides=1, empty=1}",
          "(f16[2,9,4], f16[2,4,9], f16[2,9,16], f16[9])"},
     .tolerance = 1e-4});

}  // namespace

std::string AgainstAttend(const TensorType& q, const TensorType& k, const TensorType& v,
                          int64_t shared) {
  const size_t n = q.dims.size();
  if (ComputeType(q.dtype) != DType::kF32 || q.dtype != k.dtype || q.dtype != v.dtype)
    return "not f32 or smaller";
  if (n < 3 || k.dims.size() != n || v.dims.size() != n) return "no heads";
  for (size_t d = 0; d + 2 < n; ++d)
    if (q.dims[d] != (d + 3 == n ? k.dims[d] * shared : k.dims[d]) || v.dims[d] != k.dims[d])
      return "heads of q, k and v differ";
  const Expr columns = v.dims.back();
  if (!columns.IsConst() || columns.value() % kLanes != 0 || columns.IsConst(0))
    return fmt::format("the columns of v are no multiple of {}", kLanes);
  if (HintValue(k.dims.back() * q.dims.back()) > kMostPacked)
    return "too many keys for a core's cache";
  return "";
}

}  // namespace ge
