// Attention of com.microsoft, all by ai.onnx's Attention with an additive mask:
//   Attention           Q, K, V = input * weights + bias, split in heads
//   QAttention          the same of bytes: (input - zero) * (weights - zero) * scales + bias
//   MultiHeadAttention  Q, K, V given, or packed as [B, S, N, 3, H] or [B, L, N, 2, H]
//   RotaryEmbedding     positions [B, S], or one offset
// Masks: lengths [B], ends and starts [2B], keys [B, T], pairs [B, S, T]; what is masked gets
// mask_filter_value.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "ops/microsoft/formula.h"
#include "ops/shapes.h"

namespace ge::microsoft {
namespace {

// 1 where the mask lets a key through, as bool that broadcasts to [B, N, S, T].
ValueId AllowedKeys(ExpandBuilder& e, ValueId mask, Expr batch, Expr keys) {
  Formula f{e};
  const int rank = e.Rank(mask);
  const ValueId zero = e.ScalarLike(mask, 0);
  if (rank == 2) return f.Unsqueeze(e.Op("Greater", {mask, zero}), {1, 2});
  if (rank == 3) return f.Unsqueeze(e.Op("Greater", {mask, zero}), {1});
  if (rank == 4) return e.Op("Greater", {mask, zero});
  const ValueId at = e.Cast(e.Reshape(f.Range(keys), {1, keys}), e.Type(mask));
  const ValueId ends = f.Unsqueeze(f.Slice(mask, 0, 0, batch), {1});
  ValueId allowed = e.Op("Less", {at, ends});
  if (e.Dims(mask)[0] != batch) {
    const ValueId starts = f.Unsqueeze(f.Slice(mask, 0, batch, batch * 2), {1});
    allowed = e.Op("And", {allowed, e.Op("GreaterOrEqual", {at, starts})});
  }
  return f.Unsqueeze(allowed, {1, 2});
}

struct Masking {
  ValueId keys = kNone;  // see AllowedKeys
  ValueId bias = kNone;  // added to the scores
  bool causal = false;
  float filter = -10000;
};

// softmax(scale Q K^T + masks) V back in [B, S, N*Hv], of Q, K, V in [B, N, S, H].
ValueId Attend(ExpandBuilder& e, ValueId q, ValueId k, ValueId v, const Masking& m) {
  Formula f{e};
  const DType t = e.Type(q);
  const auto dq = e.Dims(q), dk = e.Dims(k);
  ValueId mask = m.bias;
  if (m.keys != kNone)
    mask = f.AddIf(e.Op("Where", {AllowedKeys(e, m.keys, dq[0], dk[2]), e.Scalar(t, 0),
                                  e.Scalar(t, m.filter)}),
                   mask);
  if (m.causal) {
    const Expr past = dk[2] - dq[2];
    const ValueId row = e.Reshape(f.Range(dq[2]), {dq[2], 1});
    const ValueId column = e.Reshape(f.Range(dk[2]), {1, dk[2]});
    const ValueId seen = e.Op("LessOrEqual", {column, f.Add(row, e.Exprs({past}))});
    mask = f.AddIf(e.Op("Where", {seen, e.Scalar(t, 0),
                                  e.Scalar(t, t == DType::kF16 ? -65504.0 : -3.4028235e38)}),
                   mask);
  }
  Attrs attrs;
  if (const float scale = e.Float("scale", 0); scale != 0) attrs["scale"] = scale;
  const ValueId y = e.Op("Attention", {q, k, v, mask}, attrs);
  const auto d = e.Dims(y);
  if (d.size() != 4) return kNone;
  return e.Reshape(f.Transpose(y, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

Status CheckMaskRank(InferContext& c, int i) {
  if (!c.Has(i) || (c.In(i).rank() >= 1 && c.In(i).rank() <= 4)) return {};
  return c.Fault(fmt::format("the mask {} must have rank 1 to 4", ShapeText(c.In(i).dims)));
}

// --- Attention ----------------------------------------------------------------------------------

enum Whole { kInput, kWeights, kBias, kMaskIndex, kPast, kAttentionBias };

// Input, weights and bias of the projection to Q, K and V, each of whole heads.
Status CheckProjection(InferContext& c) {
  GE_TRY(CheckRank(c, kInput, 3));
  GE_TRY(CheckRank(c, kWeights, 2));
  const int64_t heads = c.Int("num_heads", 0);
  if (heads < 1 || heads > INT32_MAX)
    return c.Fault(fmt::format("num_heads is {}; allowed: 1 to {}", heads, INT32_MAX));
  const Dims &x = c.In(kInput).dims, &w = c.In(kWeights).dims;
  c.Check(Eq(x[2], w[0]), fmt::format("weights {} do not have the rows that input {} asks for",
                                      ShapeText(w), ShapeText(x)));
  const auto sizes = c.Ints("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3) return c.Fault("qkv_hidden_sizes must have 3 values");
  for (int64_t size : sizes)
    if (size < 1 || size % heads != 0)
      return c.Fault(
          fmt::format("qkv_hidden_sizes has {}, which is not {} whole heads", size, heads));
  if (sizes.empty())
    c.Check(Eq(Mod(w[1], heads * 3), 0),
            fmt::format("weights {} are not 3 times {} whole heads wide", ShapeText(w), heads));
  else
    c.Check(Eq(w[1], Expr(sizes[0]) + sizes[1] + sizes[2]),
            fmt::format("weights {} are not as wide as qkv_hidden_sizes {} + {} + {}", ShapeText(w),
                        sizes[0], sizes[1], sizes[2]));
  if (!c.Has(kBias)) return {};
  GE_TRY(CheckRank(c, kBias, 1));
  c.Check(Eq(c.In(kBias).dims[0], w[1]), fmt::format("bias {} is not as wide as weights {}",
                                                     ShapeText(c.In(kBias).dims), ShapeText(w)));
  return {};
}

Status InferAttention(InferContext& c) {
  GE_TRY(CheckProjection(c));
  GE_TRY(CheckMaskRank(c, kMaskIndex));
  if (c.Has(kPast)) GE_TRY(CheckRank(c, kPast, 5));
  if (c.Int("do_rotary", 0) != 0) return Unsupported("do_rotary of Attention; allowed: 0");
  if (c.NumInputs() > 6) return Unsupported("a shared past buffer of Attention; allowed: none");
  const auto sizes = c.Ints("qkv_hidden_sizes");
  const Dims& x = c.In(kInput).dims;
  const Expr width = sizes.empty() ? FloorDiv(c.In(kWeights).dims[1], 3) : Expr(sizes[2]);
  c.Out(0, c.In(kInput).dtype, {x[0], x[1], width});
  c.Out(1, c.In(kInput).dtype, Dims(5, Expr(1)));
  return {};
}

// What follows the projection `qkv` [B, S, ..]. `past` [2, B, N, P, H] may be kNone.
bool ExpandProjected(ExpandBuilder& e, ValueId qkv, ValueId mask, ValueId past, ValueId bias) {
  Formula f{e};
  const int64_t heads = e.Int("num_heads", 1);
  const auto sizes = e.Ints("qkv_hidden_sizes");
  const Expr third = FloorDiv(e.Dims(e.In(kWeights))[1], 3);
  const Expr dq = sizes.empty() ? third : Expr(sizes[0]),
             dk = sizes.empty() ? third : Expr(sizes[1]);
  const Expr dv = sizes.empty() ? third : Expr(sizes[2]);
  const ValueId q = f.Heads(f.Slice(qkv, 2, 0, dq), heads);
  ValueId k = f.Heads(f.Slice(qkv, 2, dq, dq + dk), heads);
  ValueId v = f.Heads(f.Slice(qkv, 2, dq + dk, dq + dk + dv), heads);
  if (past != kNone) {
    const auto part = [&](int64_t i) {
      return e.Op("Gather", {past, e.Scalar(DType::kI64, static_cast<double>(i))});
    };
    k = f.Concat({part(0), k}, 2);
    v = f.Concat({part(1), v}, 2);
  }
  const Masking m = {mask, bias, e.Int("unidirectional", 0) != 0,
                     e.Float("mask_filter_value", -10000)};
  const ValueId y = Attend(e, q, k, v, m);
  const ValueId present =
      e.Wants(1) ? f.Concat({f.Unsqueeze(k, {0}), f.Unsqueeze(v, {0})}, 0) : kNone;
  return Finish(e, {y, present});
}

bool ExpandAttention(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId qkv = f.AddIf(e.Op("MatMul", {e.In(kInput), e.In(kWeights)}), e.In(kBias));
  return ExpandProjected(e, qkv, e.In(kMaskIndex), e.In(kPast), e.In(kAttentionBias));
}

// --- QAttention ---------------------------------------------------------------------------------

enum Quantised { kScale = 3, kWeightScale, kQuantisedMask, kZero, kWeightZero, kQuantisedPast };

// Operand i has one value, or one for each of `columns` if there are such.
Status CheckOneOrEach(InferContext& c, int i, std::optional<Expr> columns) {
  if (!c.Has(i)) return {};
  const Dims& d = c.In(i).dims;
  if (d.empty() || (d.size() == 1 && d[0].IsConst(1))) return {};
  const std::string fault =
      fmt::format("operand {} is {}, but must be one value{}", i, ShapeText(d),
                  columns ? fmt::format(" or {}", ToString(*columns)) : "");
  if (d.size() != 1) return c.Fault(fault);
  c.Check(columns ? Or(Eq(d[0], 1), Eq(d[0], *columns)) : Eq(d[0], 1), fault);
  return {};
}

Status InferQuantisedAttention(InferContext& c) {
  GE_TRY(CheckProjection(c));
  GE_TRY(CheckMaskRank(c, kQuantisedMask));
  if (c.Has(kQuantisedPast)) GE_TRY(CheckRank(c, kQuantisedPast, 5));
  for (int i : {+kScale, +kZero}) GE_TRY(CheckOneOrEach(c, i, std::nullopt));
  for (int i : {+kWeightScale, +kWeightZero}) GE_TRY(CheckOneOrEach(c, i, c.In(kWeights).dims[1]));
  if (c.Int("do_rotary", 0) != 0) return Unsupported("do_rotary of QAttention; allowed: 0");
  const Dims& x = c.In(kInput).dims;
  c.Out(0, c.In(kScale).dtype, {x[0], x[1], FloorDiv(c.In(kWeights).dims[1], 3)});
  c.Out(1, c.In(kScale).dtype, Dims(5, Expr(1)));
  return {};
}

bool ExpandQuantisedAttention(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId sums =
      e.Op("MatMulInteger", {e.In(kInput), e.In(kWeights), e.In(kZero), e.In(kWeightZero)});
  const ValueId scale = f.Mul(e.In(kScale), e.In(kWeightScale));
  const ValueId qkv = f.Add(f.Mul(e.Cast(sums, e.Type(scale)), scale), e.In(kBias));
  return ExpandProjected(e, qkv, e.In(kQuantisedMask), e.In(kQuantisedPast), kNone);
}

// --- MultiHeadAttention -------------------------------------------------------------------------

enum Multi { kQuery, kKey, kValue, kQkvBias, kPadding, kScoreBias, kPastKey, kPastValue };

Status InferMultiHead(InferContext& c) {
  const int64_t heads = c.Int("num_heads", 0);
  if (heads < 1 || heads > INT32_MAX)
    return c.Fault(fmt::format("num_heads is {}; allowed: 1 to {}", heads, INT32_MAX));
  if (c.NumInputs() > 8) return Unsupported("a shared past buffer; allowed: past_key, past_value");
  const int rank = c.In(kQuery).rank();
  if (rank != 3 && rank != 5)
    return c.Fault(fmt::format("the query has rank {}, but must have 3 or 5", rank));
  if (rank == 3 && c.Has(kKey)) {
    const int key = c.In(kKey).rank();
    if (key < 3 || key > 5)
      return c.Fault(fmt::format("the key has rank {}, but must have 3, 4 or 5", key));
    if (key != 5 && c.Has(kValue)) GE_TRY(CheckRank(c, kValue, key));
  }
  if (c.Has(kQkvBias)) GE_TRY(CheckRank(c, kQkvBias, 1));
  GE_TRY(CheckMaskRank(c, kPadding));
  if (c.Has(kPastKey) != c.Has(kPastValue))
    return c.Fault("past_key and past_value must be given together");
  for (int i : {kPastKey, kPastValue})
    if (c.Has(i)) GE_TRY(CheckRank(c, i, 4));
  c.Out(0, c.In(kQuery).dtype, Dims(3, Expr(1)));
  for (int o = 1; o < c.NumOutputs(); ++o) c.Out(o, c.In(kQuery).dtype, Dims(4, Expr(1)));
  return {};
}

// Part `i` of `parts` along axis 3 of [B, L, N, parts, H], as [B, N, L, H].
ValueId Unpacked(ExpandBuilder& e, ValueId packed, int64_t i) {
  Formula f{e};
  const ValueId part = e.Op("Gather", {packed, e.Scalar(DType::kI64, static_cast<double>(i))},
                            {{"axis", int64_t{3}}});
  return f.Transpose(part, {0, 2, 1, 3});
}

bool ExpandMultiHead(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const int64_t heads = e.Int("num_heads", 1);
  ValueId q, k, v;
  if (e.Rank(e.In(kQuery)) == 5) {
    q = Unpacked(e, e.In(kQuery), 0);
    k = Unpacked(e, e.In(kQuery), 1);
    v = Unpacked(e, e.In(kQuery), 2);
  } else if (!e.Has(kKey)) {
    return false;
  } else {
    const ValueId bias = e.In(kQkvBias);
    const Expr width = e.Dims(e.In(kQuery))[2];
    const auto with_bias = [&](ValueId x, Expr from) {
      if (bias == kNone) return x;
      return f.Add(x, f.Slice(bias, 0, from, from + e.Dims(x).back()));
    };
    q = f.Heads(with_bias(e.In(kQuery), 0), heads);
    const int key_rank = e.Rank(e.In(kKey));
    if (key_rank == 5) {
      k = Unpacked(e, e.In(kKey), 0);
      v = Unpacked(e, e.In(kKey), 1);
    } else if (!e.Has(kValue)) {
      return false;
    } else if (key_rank == 4) {
      k = e.In(kKey);
      v = e.In(kValue);
    } else {
      k = f.Heads(with_bias(e.In(kKey), width), heads);
      v = f.Heads(with_bias(e.In(kValue), width * 2), heads);
    }
  }
  if (e.Has(kPastKey)) {
    k = f.Concat({e.In(kPastKey), k}, 2);
    v = f.Concat({e.In(kPastValue), v}, 2);
  }
  const Masking m = {e.In(kPadding), e.In(kScoreBias), e.Int("unidirectional", 0) != 0,
                     e.Float("mask_filter_value", -10000)};
  return Finish(e, {Attend(e, q, k, v, m), k, v});
}

// --- RotaryEmbedding ----------------------------------------------------------------------------

Status InferRotary(InferContext& c) {
  const TensorType& x = c.In(0);
  if (x.rank() != 3 && x.rank() != 4)
    return c.Fault(fmt::format("the input has rank {}, but must have 3 or 4", x.rank()));
  if (c.In(1).rank() > 2)
    return c.Fault(fmt::format("operand 1 has rank {}, must be 1 or 2", c.In(1).rank()));
  GE_TRY(CheckRank(c, 2, 2));
  GE_TRY(CheckRank(c, 3, 2));
  if (c.Int("is_packed_batching", 0) != 0)
    return Unsupported("is_packed_batching of RotaryEmbedding; allowed: 0");
  c.Out(0, x.dtype, x.dims);
  return {};
}

bool ExpandRotary(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const auto x = e.Dims(e.In(0)), cache = e.Dims(e.In(2));
  const Expr batch = x[0], steps = x.size() == 4 ? x[2] : x[1];
  ValueId ids = e.In(1);
  if (e.Rank(ids) <= 1)
    ids = e.Expand(f.Add(e.Reshape(f.Range(steps), {1, steps}), e.Reshape(ids, {1, 1})),
                   {batch, steps});
  Attrs attrs = {{"interleaved", e.Int("interleaved", 0)}};
  int64_t heads = e.Int("num_heads", 0);
  const int64_t part = e.Int("rotary_embedding_dim", 0);
  if (part > 0) attrs["rotary_embedding_dim"] = part;
  if (x.size() == 3) {
    if (heads == 0) {
      const Expr found = FloorDiv(x[2], cache[1] * 2);
      if (!found.IsConst()) return false;
      heads = found.value();
    }
    attrs["num_heads"] = heads;
  }
  return e.Done({e.Op("RotaryEmbedding", {e.In(0), e.In(2), e.In(3), ids}, attrs)});
}

const OpDef& kAttention = Register({.name = "Attention",
                                    .domain = kDomain,
                                    .min_inputs = 2,
                                    .max_inputs = 7,
                                    .max_outputs = 2,
                                    .infer = InferAttention,
                                    .expand = ExpandAttention,
                                    .samples = {"(f32[2,5,16], f32[16,48], f32[48]) {num_heads=4}"},
                                    .tolerance = 1e-4});
const OpDef& kQuantisedAttention =
    Register({.name = "QAttention",
              .domain = kDomain,
              .min_inputs = 5,
              .max_inputs = 9,
              .max_outputs = 2,
              .infer = InferQuantisedAttention,
              .expand = ExpandQuantisedAttention,
              .samples = {"(u8[2,5,16], i8[16,48], f32[48], f32[], f32[], , u8[], i8[]) "
                          "{num_heads=4}"},
              .tolerance = 1e-4});
const OpDef& kMultiHead =
    Register({.name = "MultiHeadAttention",
              .domain = kDomain,
              .max_inputs = 10,
              .max_outputs = 3,
              .infer = InferMultiHead,
              .expand = ExpandMultiHead,
              .samples = {"(f32[2,4,16], f32[2,6,16], f32[2,6,16]) {num_heads=4}"},
              .tolerance = 1e-4});
const OpDef& kRotary = Register({.name = "RotaryEmbedding",
                                 .domain = kDomain,
                                 .min_inputs = 4,
                                 .max_inputs = 4,
                                 .infer = InferRotary,
                                 .expand = ExpandRotary,
                                 .tolerance = 1e-4});

}  // namespace
}  // namespace ge::microsoft
