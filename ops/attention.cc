// Attention: Y = softmax(softcap(scale * Q K^T) + mask) V, per head: ge.Attend, or its steps where
// that does not do.
//   Q [B, Hq, S, D], K [B, Hkv, T, D], V [B, Hkv, T, Dv]; or rank 3 with heads inside the last
//   axis. Query head h reads key/value head h / (Hq / Hkv). past_key and past_value go in front of
//   K and V.
// ge.MaskScores: scores plus the mask, -inf where the mask is false, or ends before that key, where
//   is_causal and key > query + past, or where key >= nonpad_kv_seqlen[b].
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/attend.h"
#include "ops/dot.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Val;

enum Operand { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonPad };
enum Output { kY, kPresentKey, kPresentValue, kScores };

struct AttentionShape {
  bool flat = false;  // rank 3
  Expr batch, q_heads, kv_heads, queries, keys, past, head, value_head;
  Expr Total() const { return past + keys; }
};

Result<AttentionShape> ShapeOf(const Node& n, const std::function<Dims(int)>& dims) {
  AttentionShape s;
  const Dims q = dims(kQ), k = dims(kK), v = dims(kV);
  if (q.size() != k.size() || q.size() != v.size() || (q.size() != 3 && q.size() != 4))
    return Invalid(fmt::format("Q {}, K {} and V {} must all have rank 3 or all 4", ShapeText(q),
                               ShapeText(k), ShapeText(v)));
  s.flat = q.size() == 3;
  s.batch = q[0];
  if (s.flat) {
    const int64_t hq = AttrOr<int64_t>(n, "q_num_heads", 0),
                  hkv = AttrOr<int64_t>(n, "kv_num_heads", 0);
    if (hq < 1 || hkv < 1)
      return Invalid("q_num_heads and kv_num_heads are needed for inputs of rank 3");
    s.q_heads = hq;
    s.kv_heads = hkv;
    s.queries = q[1];
    s.keys = k[1];
    s.head = FloorDiv(q[2], hq);
    s.value_head = FloorDiv(v[2], hkv);
  } else {
    s.q_heads = q[1];
    s.kv_heads = k[1];
    s.queries = q[2];
    s.keys = k[2];
    s.head = q[3];
    s.value_head = v[3];
  }
  const Dims past = dims(kPastKey);
  s.past = past.size() == 4 ? past[2] : Expr(0);
  return s;
}

Status InferAttention(InferContext& c) {
  GE_ASSIGN(const AttentionShape s,
            ShapeOf(c.node, [&](int i) { return c.Has(i) ? c.In(i).dims : Dims{}; }));
  if (c.Has(kPastKey) != c.Has(kPastValue))
    return c.Fault("past_key and past_value must be given together");
  if (c.Has(kPastKey)) {
    GE_TRY(CheckRank(c, kPastKey, 4));
    GE_TRY(CheckRank(c, kPastValue, 4));
  }
  if (c.Has(kMask) && (c.In(kMask).rank() < 1 || c.In(kMask).rank() > 4))
    return c.Fault(fmt::format("the mask {} must have rank 1 to 4", ShapeText(c.In(kMask).dims)));
  c.Check(Eq(Mod(s.q_heads, s.kv_heads), 0),
          fmt::format("{} query heads are no multiple of {} key heads", ToString(s.q_heads),
                      ToString(s.kv_heads)));
  if (s.flat)
    c.Out(kY, c.In(kQ).dtype, {s.batch, s.queries, s.q_heads * s.value_head});
  else
    c.Out(kY, c.In(kQ).dtype, {s.batch, s.q_heads, s.queries, s.value_head});
  c.Out(kPresentKey, c.In(kK).dtype, {s.batch, s.kv_heads, s.Total(), s.head});
  c.Out(kPresentValue, c.In(kV).dtype, {s.batch, s.kv_heads, s.Total(), s.value_head});
  c.Out(kScores, c.In(kQ).dtype, {s.batch, s.q_heads, s.queries, s.Total()});
  return {};
}

Attr Perm(std::vector<int64_t> p) { return p; }

// [B, S, H*D] to [B, H, S, D].
ValueId SplitHeads(ExpandBuilder& e, ValueId v, Expr heads, Expr size) {
  const auto d = e.Dims(v);
  return e.Op("Transpose", {e.Reshape(v, {d[0], d[1], heads, size})},
              {{"perm", Perm({0, 2, 1, 3})}});
}

// The scale, or its root: given, or 1 over the root of a head's size.
ValueId ScaleFactor(ExpandBuilder& e, Expr head, DType t, bool root) {
  if (!HasAttr(e.node(), "scale") && !head.IsConst()) {
    const ValueId size = e.Cast(e.Reshape(e.Exprs({head}), {}), DType::kF32);
    const ValueId scale = e.Op("Reciprocal", {e.Op("Sqrt", {size})});
    return e.Cast(root ? e.Op("Sqrt", {scale}) : scale, t);
  }
  const double scale = HasAttr(e.node(), "scale")
                           ? e.Float("scale", 1)
                           : 1 / std::sqrt(static_cast<double>(head.value()));
  return e.Scalar(t, root ? std::sqrt(scale) : scale);
}

// [0, .., n), along the last axis but `after` of a tensor of rank 4.
ValueId Positions(ExpandBuilder& e, Expr n, int after) {
  auto scalar = [&](Expr x) { return e.Reshape(e.Exprs({x}), {}); };
  std::vector<Expr> dims(4, 1);
  dims[static_cast<size_t>(3 - after)] = n;
  return e.Reshape(e.Op("Range", {scalar(0), scalar(n), scalar(1)}), dims);
}

// Which keys a row may see, as bool that broadcasts to [B, H, S, T]; kNone: all.
ValueId Visible(ExpandBuilder& e, const AttentionShape& s) {
  ValueId all = kNone;
  auto and_also = [&](ValueId v) { all = all == kNone ? v : e.Op("And", {all, v}); };
  if (e.Has(kMask) && e.Type(e.In(kMask)) == DType::kBool) and_also(e.In(kMask));
  if (e.Int("is_causal", 0) != 0) {
    const ValueId row = e.Op("Add", {Positions(e, s.queries, 1), e.Exprs({s.past})});
    and_also(e.Op("LessOrEqual", {Positions(e, s.Total(), 0), row}));
  }
  if (e.Has(kNonPad)) {
    const ValueId length = e.Reshape(e.Cast(e.In(kNonPad), DType::kI64), {s.batch, 1, 1, 1});
    and_also(e.Op("Less", {Positions(e, s.Total(), 0), length}));
  }
  return all;
}

// Y of q, k, v of rank 4 by ge.Attend; kNone where that is not worth it, or cannot do it.
ValueId AsOneKernel(ExpandBuilder& e, const AttentionShape& s, ValueId q, ValueId k, ValueId v) {
  const Expr shared = FloorDiv(s.q_heads, s.kv_heads);
  if (q == kNone || k == kNone || v == kNone) return kNone;  // a step before failed
  if (e.Float("softcap", 0) != 0 || e.Wants(kScores) || !shared.IsConst()) return kNone;
  if (!HasAttr(e.node(), "scale") && !s.head.IsConst()) return kNone;
  TensorType keys = e.graph().value(k).type;
  std::swap(keys.dims[2], keys.dims[3]);
  if (!AgainstAttend(e.graph().value(q).type, keys, e.graph().value(v).type, shared.value())
           .empty())
    return kNone;
  if (e.Has(kMask) && e.Dims(e.In(kMask)).back() != s.Total()) return kNone;
  const double scale = HasAttr(e.node(), "scale")
                           ? e.Float("scale", 1)
                           : 1 / std::sqrt(static_cast<double>(s.head.value()));
  Attrs attrs = {{"scale", static_cast<float>(scale)}};
  if (shared.value() != 1) attrs["shared"] = shared.value();
  std::vector<ValueId> inputs = {q, e.Op("Transpose", {k}, {{"perm", Perm({0, 1, 3, 2})}}), v};
  const bool added = e.Has(kMask) && e.Type(e.In(kMask)) != DType::kBool;
  const ValueId visible = Visible(e, s);
  if (added || visible != kNone) inputs.push_back(added ? e.In(kMask) : kNone);
  if (visible != kNone) {
    inputs.push_back(visible);
    attrs["low"] = -std::numeric_limits<float>::infinity();
  }
  return e.Op("ge.Attend", inputs, attrs);
}

// Y back in the form of the inputs.
ValueId Joined(ExpandBuilder& e, const AttentionShape& s, ValueId y) {
  if (!s.flat) return y;
  return e.Reshape(e.Op("Transpose", {y}, {{"perm", Perm({0, 2, 1, 3})}}),
                   {s.batch, s.queries, s.q_heads * s.value_head});
}

bool ExpandAttention(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  auto shape = ShapeOf(e.node(), [&](int i) { return e.Has(i) ? e.Dims(e.In(i)) : Dims{}; });
  if (!shape.ok()) return false;
  const AttentionShape& s = *shape;
  ValueId q = e.In(kQ), k = e.In(kK), v = e.In(kV);
  if (s.flat) {
    q = SplitHeads(e, q, s.q_heads, s.head);
    k = SplitHeads(e, k, s.kv_heads, s.head);
    v = SplitHeads(e, v, s.kv_heads, s.value_head);
  }
  if (e.Has(kPastKey)) {
    k = e.Op("Concat", {e.In(kPastKey), k}, {{"axis", int64_t{2}}});
    v = e.Op("Concat", {e.In(kPastValue), v}, {{"axis", int64_t{2}}});
  }
  const auto done = [&](ValueId y, ValueId scores) {
    std::vector<ValueId> outputs = {Joined(e, s, y), k, v, scores};
    outputs.resize(e.NumOutputs());
    for (int o = 0; o < e.NumOutputs(); ++o)
      if (!e.Wants(o)) outputs[o] = kNone;
    return e.Done(outputs);
  };
  if (const ValueId y = AsOneKernel(e, s, q, k, v); y != kNone) return done(y, kNone);
  const DType t = e.Type(q);
  const std::vector<Expr> scores_dims = {s.batch, s.q_heads, s.queries, s.Total()};
  const Expr rows = FloorDiv(s.q_heads, s.kv_heads) * s.queries;
  const bool grouped = s.q_heads != s.kv_heads;
  ValueId kt = e.Op("Transpose", {k}, {{"perm", Perm({0, 1, 3, 2})}});
  // Small floats: both factors scaled by the root, so that the product does not overflow.
  const bool small = BitWidth(t) < 32;
  const ValueId factor = ScaleFactor(e, s.head, t, small);
  q = e.Op("Mul", {q, factor});
  if (small) kt = e.Op("Mul", {kt, factor});
  // Heads that share keys are rows of one product.
  if (grouped) q = e.Reshape(q, {s.batch, s.kv_heads, rows, s.head});
  ValueId scores = e.Op("MatMul", {q, kt});
  if (grouped) scores = e.Reshape(scores, scores_dims);
  const ValueId product = scores;
  if (const float cap = e.Float("softcap", 0); cap != 0)
    scores =
        e.Op("Mul", {e.Op("Tanh", {e.Op("Div", {scores, e.Scalar(t, cap)})}), e.Scalar(t, cap)});
  const ValueId capped = scores;
  const bool causal = e.Int("is_causal", 0) != 0;
  if (e.Has(kMask) || causal || e.Has(kNonPad))
    scores = e.Op("ge.MaskScores", {scores, e.Exprs({s.past}), e.In(kMask), e.In(kNonPad)},
                  {{"is_causal", int64_t{causal}}});
  const ValueId biased = scores;
  const auto precision = static_cast<DType>(e.Int("softmax_precision", static_cast<int64_t>(t)));
  const ValueId weights =
      e.Cast(e.Op("Softmax", {e.Cast(scores, precision)}, {{"axis", int64_t{-1}}}), t);
  ValueId left = grouped ? e.Reshape(weights, {s.batch, s.kv_heads, rows, s.Total()}) : weights;
  ValueId y = e.Op("MatMul", {e.Cast(left, e.Type(v)), v});
  if (grouped) y = e.Reshape(y, {s.batch, s.q_heads, s.queries, s.value_head});
  const ValueId by_mode[] = {product, capped, biased, weights};
  const int64_t mode = e.Int("qk_matmul_output_mode", 0);
  return done(e.Cast(y, t), by_mode[mode >= 0 && mode < 4 ? mode : 0]);
}

const OpDef& kAttention = Register(
    {.name = "Attention",
     .min_inputs = 3,
     .max_inputs = 7,
     .max_outputs = 4,
     .infer = InferAttention,
     .expand = ExpandAttention,
     .halves = Halves::kWiden,
     .samples =
         {"(f32[2,3,4,8], f32[2,3,6,8], f32[2,3,6,8])",
          "(f32[2,4,24], f32[2,6,8], f32[2,6,8]) {q_num_heads=3, kv_num_heads=1, is_causal=1}",
          "(f32[2,6,5,8], f32[2,2,7,8], f32[2,2,7,16], bool[5,7]) {is_causal=1}",
          "(f32[2,4,3,8], f32[2,4,6,8], f32[2,4,6,16], f32[2,1,3,6], , , i64[2]=[6,2])"},
     .tolerance = 1e-4});

enum MaskOperand { kRaw, kPast, kMaskIn, kLengths };

Status InferMaskScores(InferContext& c) {
  GE_TRY(CheckRank(c, kRaw, 4));
  if (c.Has(kMaskIn) && (c.In(kMaskIn).rank() > 4 || c.In(kMaskIn).rank() < 1))
    return c.Fault(fmt::format("the mask {} must have rank 1 to 4", ShapeText(c.In(kMaskIn).dims)));
  if (!c.Elems(kPast)) return c.Fault("the length of the past is not known");
  if (c.Has(kMaskIn)) {
    Dims scores = c.In(kRaw).dims;
    const Expr given = c.In(kMaskIn).dims.back(), keys = scores.back();
    if (given.IsConst() && keys.IsConst() && given.value() > keys.value())
      return c.Fault(fmt::format("the mask {} is for more than {} keys",
                                 ShapeText(c.In(kMaskIn).dims), keys.value()));
    scores.back() = c.In(kMaskIn).dims.back();  // may be shorter: see MaskAt
    GE_TRY(CheckBroadcastsTo(c, c.In(kMaskIn).dims, scores));
  }
  CopyType(c, 0, 0);
  return {};
}

Val Condition(tile::Builder& b, Expr e) { return b.Cast(b.Index(e), DType::kBool); }

// The mask's part of element i; its last axis may be shorter than the keys: what is not there is
// masked.
Val MaskAt(Lowering& l, const Index& i, Val lowest) {
  auto& b = l.b;
  const Dims& mask = l.In(kMaskIn).dims;
  Dims full = l.Out(0).dims;
  full.back() = mask.back();
  Index at = BroadcastIndex(mask, full, i);
  if (!mask.back().IsConst()) at.back() = Select(Eq(mask.back(), 1), 0, at.back());
  if (l.In(kMaskIn).dtype == DType::kBool)
    return b.Select(l.LoadOr(kMaskIn, at, BoolConst(b, false)), Like(lowest, 0), lowest);
  return l.LoadOr(
      kMaskIn, at,
      b.Const(ComputeType(l.In(kMaskIn).dtype), -std::numeric_limits<double>::infinity()));
}

Val MaskScores(Lowering& l, int, const Index& i) {
  auto& b = l.b;
  Val v = l.Load(kRaw, i);
  const Val lowest = Like(v, -std::numeric_limits<double>::infinity());
  if (l.Has(kMaskIn)) v = v + b.Cast(MaskAt(l, i, lowest), v.type());
  const Expr past = (*l.Elems(kPast))[0];
  if (l.Int("is_causal", 0)) v = b.Select(Condition(b, Lt(i[2] + past, i[3])), lowest, v);
  if (l.Has(kLengths)) {
    const Val length = b.Cast(l.Load(kLengths, {i[0]}), DType::kI64);
    v = b.Select(Less(b.Index(i[3]), length), v, lowest);
  }
  return v;
}

const OpDef& kMaskScores = Register({.name = "MaskScores",
                                     .domain = "ge",
                                     .min_inputs = 2,
                                     .max_inputs = 4,
                                     .infer = InferMaskScores,
                                     .element = MaskScores,
                                     .fusion = Fusion::kPointwise,
                                     .flops_per_element = 3});

// RotaryEmbedding: pairs (x1, x2) of the first `rotary_embedding_dim` values of each head turn by
// the angle of their position: (x1 cos - x2 sin, x1 sin + x2 cos). Pairs are (d, d + half), or
// interleaved (2d, 2d + 1).
struct Rotary {
  Expr heads, head, size, half;
};

Result<Rotary> RotaryOf(const Node& n, const Dims& x) {
  Rotary r;
  if (x.size() == 4) {
    r.head = x[3];
  } else if (x.size() == 3) {
    const int64_t heads = AttrOr<int64_t>(n, "num_heads", 0);
    if (heads < 1) return Invalid("num_heads is needed for an input of rank 3");
    r.head = FloorDiv(x[2], heads);
  } else {
    return Invalid(fmt::format("X {} must have rank 3 or 4", ShapeText(x)));
  }
  const int64_t size = AttrOr<int64_t>(n, "rotary_embedding_dim", 0);
  r.size = size > 0 ? Expr(size) : r.head;
  r.half = FloorDiv(r.size, 2);
  return r;
}

Status InferRotary(InferContext& c) {
  GE_ASSIGN(const Rotary r, RotaryOf(c.node, c.In(0).dims));
  c.Check(Le(r.size, r.head), fmt::format("rotary_embedding_dim {} is larger than a head ({})",
                                          ToString(r.size), ToString(r.head)));
  for (int i = 1; i < 3; ++i) {
    GE_TRY(CheckRank(c, i, c.Has(3) ? 2 : 3));
    c.Check(Eq(c.In(i).dims.back(), r.half),
            fmt::format("caches {} do not have half of {} values", ShapeText(c.In(i).dims),
                        ToString(r.size)));
  }
  CopyType(c, 0, 0);
  return {};
}

Val RotaryEmbedding(Lowering& l, int, const Index& i) {
  auto& b = l.b;
  const Dims& x = l.In(0).dims;
  auto rotary = RotaryOf(l.node, x);
  const Rotary& r = *rotary;
  const Expr d = Mod(i.back(), r.head), base = i.back() - d;
  const bool interleaved = l.Int("interleaved", 0) != 0;
  const Expr k = interleaved ? Mod(FloorDiv(d, 2), r.half) : Mod(d, r.half);
  const Expr partner = interleaved ? Mod(d + 1 - Mod(d, 2) * 2, r.size) : Mod(d + r.half, r.size);
  const Expr first = interleaved ? Eq(Mod(d, 2), 0) : Lt(d, r.half);
  const Expr batch = i[0], position = x.size() == 4 ? i[2] : i[1];
  auto cache = [&](int input) {
    if (!l.Has(3)) return l.Load(input, {batch, position, k});
    const Val row = b.Cast(l.Load(3, {batch, position}), DType::kI64);
    const Expr rows = l.In(input).dims[0];
    const Expr at = b.LetIndex(Max(Min(row, b.Index(rows - 1)), b.ConstInt(DType::kI64, 0)), 0,
                               Bounds(rows).hi, rows);
    return l.Load(input, {at, k});
  };
  Index other = i;
  other.back() = base + partner;
  const Val v = l.Load(0, i), w = l.Load(0, other), c = cache(1), s = cache(2);
  const Val turned = b.Select(Condition(b, first), v * c - w * s, w * s + v * c);
  if (r.size == r.head) return turned;
  return b.Select(Condition(b, Lt(d, r.size)), turned, v);
}

const OpDef& kRotaryEmbedding = Register(
    {.name = "RotaryEmbedding",
     .min_inputs = 3,
     .max_inputs = 4,
     .infer = InferRotary,
     .element = RotaryEmbedding,
     .fusion = Fusion::kGather,
     .halves = Halves::kWiden,
     .flops_per_element = 5,
     .samples = {"(f32[2,4,3,8], f32[2,3,4], f32[2,3,4])",
                 "(f32[2,4,3,8], f32[2,3,2], f32[2,3,2]) {interleaved=1, rotary_embedding_dim=4}",
                 "(f32[2,3,32], f32[50,4], f32[50,4], i64[2,3]) {num_heads=4}"}});

}  // namespace
}  // namespace ge
