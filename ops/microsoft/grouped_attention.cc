// GroupQueryAttention of com.microsoft: attention with a cache. Row b has seqlens_k[b] + 1 keys in
// all, of which the S of this call stand at places past_b = max(seqlens_k[b] + 1 - S, 0) and on:
//   present[b, t] = t < past_b ? past[b, t] : new[b, t - past_b]
//   query s, at place p = past_b + s, sees the keys t <= p, and with a window t > p - window
// The cache grows to past + S keys. A sink (0 with smooth_softmax, else one of each head) is a
// score that takes part in the softmax without a value: here a key and a value of zeros behind the
// others.
#include <fmt/format.h>

#include "ops/microsoft/formula.h"
#include "ops/shapes.h"

namespace ge::microsoft {
namespace {

enum Operand {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCos,
  kSin,
  kPlaces,
  kBias,
  kSink
};

Status InferGrouped(InferContext& c) {
  GE_TRY(CheckRank(c, kQuery, 3));
  const int64_t heads = c.Int("num_heads", 0), kv = c.Int("kv_num_heads", 0);
  if (heads < 1 || kv < 1 || heads % kv != 0 || heads > INT32_MAX)
    return c.Fault(fmt::format(
        "num_heads is {} and kv_num_heads {}; the first must be a multiple of the second", heads,
        kv));
  if (c.Has(kSink) && c.In(kSink).rank() != 1)
    return c.Fault(fmt::format("head_sink {} must have rank 1", ShapeText(c.In(kSink).dims)));
  if (c.Has(kKey) != c.Has(kValue)) return c.Fault("key and value must be given together");
  for (int i : {kKey, kValue})
    if (c.Has(i)) GE_TRY(CheckRank(c, i, 3));
  for (int i : {kPastKey, kPastValue})
    if (c.Has(i)) GE_TRY(CheckRank(c, i, 4));
  for (int i : {kCos, kSin})
    if (c.Has(i)) GE_TRY(CheckRank(c, i, 2));
  if (!c.Has(kLengths)) return c.Fault("seqlens_k is missing");
  const Dims& q = c.In(kQuery).dims;
  const Expr width = c.Has(kKey) ? q[2] : FloorDiv(q[2], heads + 2 * kv) * heads;
  c.Out(0, c.In(kQuery).dtype, {q[0], q[1], width});
  c.Out(1, c.In(kQuery).dtype, Dims(4, Expr(1)));
  c.Out(2, c.In(kQuery).dtype, Dims(4, Expr(1)));
  return {};
}

// Places of the new keys: [B, S], i64.
ValueId Places(ExpandBuilder& e, ValueId past, Expr batch, Expr steps) {
  Formula f{e};
  return e.Expand(f.Add(past, e.Reshape(f.Range(steps), {1, steps})), {batch, steps});
}

// The cache with the new keys in their places. past: [B, 1].
ValueId Append(ExpandBuilder& e, ValueId cache, ValueId added, ValueId past) {
  if (cache == kNone) return added;
  const auto old = e.Dims(cache);
  if (old.size() != 4) return kNone;
  if (old[2].IsConst(0)) return added;
  return e.Op("ge.AppendKeys", {cache, added, past});
}

enum AppendOperand { kCache, kAdded, kPast };

// [B, N, P + S, H] of a cache [B, N, P, H], keys [B, N, S, H] and places [B, 1].
Status InferAppend(InferContext& c) {
  for (int i : {kCache, kAdded}) GE_TRY(CheckRank(c, i, 4));
  GE_TRY(CheckRank(c, kPast, 2));
  Dims out = c.In(kCache).dims;
  const Dims& added = c.In(kAdded).dims;
  for (size_t d : {0, 1, 3})
    c.Check(Eq(out[d], added[d]),
            fmt::format("cache {} and new keys {} differ", ShapeText(out), ShapeText(added)));
  c.Check(Eq(c.In(kPast).dims[0], out[0]), "there is not one place for each of the batch");
  out[2] = out[2] + added[2];
  c.Out(0, c.In(kCache).dtype, out);
  return {};
}

tile::Val AppendKeys(Lowering& l, int, const Index& i) {
  auto& b = l.b;
  const Expr steps = l.In(kAdded).dims[2];
  const tile::Val t = b.Index(i[2]);
  const tile::Val past = b.Let(b.Cast(l.Load(kPast, {i[0], 0}), DType::kI64));
  const auto limited = [&](tile::Val v) {
    const tile::Val least = b.Binary(tile::Op::kMin, v, b.Index(steps - 1));
    return b.Binary(tile::Op::kMax, least, b.ConstInt(DType::kI64, 0));
  };
  Index at = i;
  at[2] = b.LetIndex(b.Let(limited(t - past)), 0, Bounds(steps).hi, steps);
  const tile::Val added = l.Load(kAdded, at);
  return b.Select(b.Binary(tile::Op::kLt, t, past), l.LoadOr(kCache, i, added), added);
}

const OpDef& kAppendKeys =
    Register({.name = "AppendKeys",
              .domain = "ge",
              .min_inputs = 3,
              .max_inputs = 3,
              .infer = InferAppend,
              .element = AppendKeys,
              .fusion = Fusion::kGather,
              .samples = {"(f32[2,3,5,8], f32[2,3,1,8], i64[2,1]=[5,2])",
                          "(f32[2,1,4,20], f32[2,1,3,20], i64[2,1]=[0,4])"}});

ValueId Rotated(ExpandBuilder& e, ValueId x, ValueId places) {
  const Expr part = e.Dims(e.In(kCos))[1] * 2;
  Attrs attrs = {{"interleaved", e.Int("rotary_interleaved", 0)}};
  if (part.IsConst()) attrs["rotary_embedding_dim"] = part.value();
  return e.Op("RotaryEmbedding", {x, e.In(kCos), e.In(kSin), places}, attrs);
}

// True where a query may see a key: [B, 1, S, T].
ValueId Seen(ExpandBuilder& e, ValueId places, Expr keys) {
  Formula f{e};
  const ValueId at = f.Unsqueeze(f.Unsqueeze(places, {1}), {3});
  const ValueId t = e.Reshape(f.Range(keys), {1, 1, 1, keys});
  ValueId seen = e.Op("LessOrEqual", {t, at});
  if (const int64_t window = e.Int("local_window_size", -1); window > 0)
    seen = e.Op("And",
                {seen, e.Op("Greater",
                            {t, f.Sub(at, e.Scalar(DType::kI64, static_cast<double>(window)))})});
  return seen;
}

// Behind each query's scores, its head's sink.
ValueId WithSink(ExpandBuilder& e, ValueId mask, const std::vector<Expr>& scores) {
  Formula f{e};
  const ValueId sink = e.Has(kSink) ? e.Reshape(e.In(kSink), {1, scores[1], 1, 1})
                                    : e.Reshape(e.ScalarLike(mask, 0), {1, 1, 1, 1});
  const ValueId column = e.Expand(sink, {scores[0], scores[1], scores[2], 1});
  return f.Concat({e.Expand(mask, scores), column}, 3);
}

ValueId WithZeroRow(ExpandBuilder& e, ValueId x) {
  const auto d = e.Dims(x);
  if (d.size() != 4) return kNone;
  return Formula{e}.Concat({x, e.Expand(e.ScalarLike(x, 0), {d[0], d[1], 1, d[3]})}, 2);
}

bool ExpandGrouped(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const int64_t heads = e.Int("num_heads", 1), kv = e.Int("kv_num_heads", 1);
  ValueId q = e.In(kQuery), k = e.In(kKey), v = e.In(kValue);
  const auto dims = e.Dims(q);
  const Expr batch = dims[0], steps = dims[1];
  if (k == kNone) {
    const Expr head = FloorDiv(dims[2], heads + 2 * kv), a = head * heads, b = a + head * kv;
    k = f.Slice(q, 2, a, b);
    v = f.Slice(q, 2, b, dims[2]);
    q = f.Slice(q, 2, 0, a);
  }
  q = f.Heads(q, heads);
  k = f.Heads(k, kv);
  v = f.Heads(v, kv);
  const ValueId last = e.Reshape(e.Cast(e.In(kLengths), DType::kI64), {batch, 1});
  const ValueId past =
      e.Op("Max", {f.Add(last, e.Exprs({Expr(1) - steps})), e.Scalar(DType::kI64, 0)});
  const ValueId places = Places(e, past, batch, steps);
  if (e.Int("do_rotary", 0) != 0) {
    if (!e.Has(kCos) || !e.Has(kSin)) return false;
    const ValueId turns = e.Has(kPlaces) ? e.In(kPlaces) : places;
    q = Rotated(e, q, turns);
    k = Rotated(e, k, turns);
  }
  k = Append(e, e.In(kPastKey), k, past);
  v = Append(e, e.In(kPastValue), v, past);
  const auto all = e.Dims(k);
  if (all.size() != 4) return false;
  const DType t = e.Type(q);
  ValueId mask = e.Op("Where", {Seen(e, places, all[2]), e.Scalar(t, 0),
                                e.Scalar(t, t == DType::kF16 ? -65504.0 : -3.4028235e38)});
  if (e.Has(kBias)) mask = f.Add(mask, e.In(kBias));
  Attrs attrs = {{"softcap", e.Float("softcap", 0)}};
  if (const float scale = e.Float("scale", 0); scale != 0) attrs["scale"] = scale;
  ValueId keys = k, values = v;
  if (e.Int("smooth_softmax", 0) > 0 || e.Has(kSink)) {
    mask = WithSink(e, mask, {batch, heads, steps, all[2]});
    keys = WithZeroRow(e, k);
    values = WithZeroRow(e, v);
  }
  const ValueId y = e.Op("Attention", {q, keys, values, mask}, attrs);
  const auto d = e.Dims(y);
  if (d.size() != 4) return false;
  return Finish(e, {e.Reshape(f.Transpose(y, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]}), k, v});
}

const OpDef& kGrouped = Register({.name = "GroupQueryAttention",
                                  .domain = kDomain,
                                  .min_inputs = 1,
                                  .max_inputs = 12,
                                  .max_outputs = 3,
                                  .infer = InferGrouped,
                                  .expand = ExpandGrouped,
                                  .tolerance = 1e-4});

}  // namespace
}  // namespace ge::microsoft
