// Cast, CastLike, BitCast: y[i] = x[i] in another type, by value or by bits.
//   to float: round to nearest even; to integer: truncate, then wrap; to bool: x != 0
//   to float8 and float4: saturate=1 clamps to the largest number, saturate=0 gives infinity or NaN
//   to float8e8m0: a power of two, rounded as round_mode says
// Casts from and to strings become ge.CastString.
#include "ops/cast.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/expand.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Builder;
using tile::Op;
using tile::Val;

// Largest number, the size from which a number rounds past it, and what lies beyond.
struct Small {
  double largest = 0, overflow = 0;
  bool infinity = false;
};

Small SmallFloatOf(DType t) {
  switch (t) {
    case DType::kF8E4M3FN: return {448, 464, false};
    case DType::kF8E4M3FNUZ: return {240, 248, false};
    case DType::kF8E5M2: return {57344, 61440, true};
    case DType::kF8E5M2FNUZ: return {57344, 61440, false};
    case DType::kF4E2M1: return {6, 7, false};
    default: return {};
  }
}

Val ToSmallFloat(Builder& b, Val x, DType to, bool saturate) {
  Small s = SmallFloatOf(to);
  x = b.Cast(x, DType::kF32);
  Val clamped = Max(Min(x, b.F(s.largest)), b.F(-s.largest));
  if (to == DType::kF4E2M1) return b.Select(NotEqual(x, x), b.F(-0.0), clamped);  // it has no NaN
  if (saturate) return clamped;
  // A tie at the limit rounds to the even neighbour: down for 448 (110), up for the others (11,
  // 111).
  Val size = b.Unary(Op::kAbs, x), limit = b.F(s.overflow);
  Val over = to == DType::kF8E4M3FN ? Less(limit, size) : LessEqual(limit, size);
  double far = s.infinity ? INFINITY : NAN;
  Val beyond = b.Select(Less(x, b.F(0)), b.F(-far), b.F(far));
  return b.Select(over, beyond, clamped);
}

// The power of two next to x: the exponent field of its f32 form, rounded by the mantissa.
Val ToPowerOfTwo(Builder& b, Val x, bool saturate, std::string_view mode) {
  x = b.Cast(x, DType::kF32);
  auto i = [&](int64_t v) { return b.ConstInt(DType::kI32, v); };
  Val bits = b.BitCast(x, DType::kI32);
  Val mantissa = b.Binary(Op::kAnd, bits, i(0x7fffff));
  Val exponent = b.Binary(Op::kAnd, b.Binary(Op::kShr, bits, i(23)), i(255));
  int64_t threshold = mode == "up" ? 1 : mode == "nearest" ? 0x400000 : 0x800000;
  Val up = LessEqual(i(threshold), mantissa);
  Val rounded = exponent + b.Select(up, i(1), i(0));
  Val largest = b.F(std::ldexp(1.0, 127));
  Val power = b.BitCast(b.Binary(Op::kShl, rounded, i(23)), DType::kF32);
  Val over = LessEqual(i(255), rounded);
  Val finite = b.Select(over, saturate ? largest : b.F(NAN), power);
  if (!saturate) finite = b.Select(Equal(x, b.F(0)), b.F(NAN), finite);
  return b.Select(NotEqual(x, x), x, finite);
}

}  // namespace

Val CastTo(Builder& b, Val x, DType to, bool saturate, std::string_view round_mode) {
  if (to == DType::kF8E8M0) {
    x = ToPowerOfTwo(b, x, saturate, round_mode);
  } else if (SmallFloatOf(to).largest > 0) {
    x = ToSmallFloat(b, x, to, saturate);
  }
  return b.Convert(x, to);
}

namespace {

Val Cast(Lowering& l, int, const Index& idx) {
  Val x = l.Load(0, idx);
  DType to = l.Out(0).dtype;
  if (l.In(0).dtype == to) return x;
  return CastTo(l.b, x, to, l.Int("saturate", 1) != 0, l.Str("round_mode", "up"));
}

// Facts pass between the types that shapes are computed in.
void CastFacts(InferContext& ctx, DType to) {
  const auto* elems = ctx.Elems(0);
  if (!elems) return;
  std::vector<Expr> out = *elems;
  if (to == DType::kBool) {
    for (Expr& e : out) e = Ne(e, 0);
  } else if (to == DType::kI32) {
    for (Expr e : out) {
      if (e.IsConst() && e.value() != static_cast<int32_t>(e.value())) return;
    }
  } else if (to != DType::kI64) {
    return;
  }
  ctx.OutElems(0, std::move(out));
}

Status InferCast(InferContext& ctx) {
  DType to = static_cast<DType>(ctx.Int("to", 0));
  if (Name(to).empty() || to == DType::kNone) {
    return ctx.Fault(fmt::format("attribute to is {}: no such type", ctx.Int("to", 0)));
  }
  ctx.Out(0, to, ctx.In(0).dims);
  CastFacts(ctx, to);
  return {};
}

bool ExpandCast(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  DType from = e.Type(e.In(0)), to = e.OutType(0).dtype;
  if (from == to) return e.Done({e.Op("Identity", {e.In(0)})});
  if (from != DType::kString && to != DType::kString) return false;
  return e.Done({e.Op("ge.CastString", {e.In(0)}, {{"to", static_cast<int64_t>(to)}})});
}

const OpDef& kCast =
    Register({.name = "Cast",
              .infer = InferCast,
              .element = Cast,
              .expand = ExpandCast,
              .fusion = Fusion::kPointwise,
              .samples = {"(f32[2,3]) {to=7}", "(i32[4]) {to=9}", "(f32[4]) {to=16}",
                          "(f32[4]) {to=17}", "(i64[3]) {to=1}"}});

Status InferCastLike(InferContext& ctx) {
  ctx.Out(0, ctx.In(1).dtype, ctx.In(0).dims);
  CastFacts(ctx, ctx.In(1).dtype);
  return {};
}

bool ExpandCastLike(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  return e.Done({e.Op("Cast", {e.In(0)},
                      {{"to", static_cast<int64_t>(e.OutType(0).dtype)},
                       {"saturate", e.Int("saturate", 1)},
                       {"round_mode", e.Str("round_mode", "up")}})});
}

const OpDef& kCastLike = Register({.name = "CastLike",
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .infer = InferCastLike,
                                   .expand = ExpandCastLike,
                                   .samples = {"(f32[2,3], i32[1])"}});

// --- BitCast ------------------------------------------------------------------------------------

// The bits of a value of storage type t, as an unsigned number in an i32 or i64 (u64 for 64 bits).
Val BitsOf(Builder& b, Val x, DType t) {
  auto i = [&](int64_t v) { return b.ConstInt(DType::kI32, v); };
  if (t == DType::kF64) return b.BitCast(x, DType::kU64);
  if (t == DType::kF32) return b.BitCast(x, DType::kI32);
  if (t == DType::kBF16) return b.Binary(Op::kShr, b.BitCast(x, DType::kI32), i(16));
  if (t != DType::kF16) return t == DType::kI64 ? b.Cast(x, DType::kU64) : x;
  Val bits = b.BitCast(x, DType::kI32), size = b.Unary(Op::kAbs, x);
  Val mantissa = b.Binary(Op::kAnd, b.Binary(Op::kShr, bits, i(13)), i(0x3ff));
  Val exponent = b.Binary(Op::kAnd, b.Binary(Op::kShr, bits, i(23)), i(255));
  Val normal = b.Binary(Op::kShl, exponent - 112.0, i(10)) + mantissa;
  Val small = b.Cast(size * std::ldexp(1.0, 24), DType::kI32);
  Val special = mantissa + 0x7c00;
  Val value = b.Select(Equal(exponent, i(255)), special,
                       b.Select(Less(size, b.F(std::ldexp(1.0, -14))), small, normal));
  return b.Binary(Op::kOr, value, b.Binary(Op::kAnd, b.Binary(Op::kShr, bits, i(16)), i(0x8000)));
}

// The value of storage type t that has these bits (an i32, i64 or u64 whose low bits count).
Val FromBits(Builder& b, Val bits, DType t) {
  auto i = [&](int64_t v) { return b.ConstInt(DType::kI32, v); };
  if (t == DType::kF64) return b.BitCast(b.Cast(bits, DType::kU64), DType::kF64);
  if (!IsFloat(t)) {
    if (t == DType::kU32)
      bits = b.Binary(Op::kAnd, b.Cast(bits, DType::kI64), b.ConstInt(DType::kI64, 0xffffffff));
    return b.Convert(bits, t);
  }
  bits = b.Cast(bits, DType::kI32);
  if (t == DType::kF32) return b.BitCast(bits, DType::kF32);
  Val high = b.BitCast(b.Binary(Op::kShl, bits, i(16)), DType::kF32);
  if (t == DType::kBF16) return high;
  Val mantissa = b.Binary(Op::kAnd, bits, i(0x3ff));
  Val exponent = b.Binary(Op::kAnd, b.Binary(Op::kShr, bits, i(10)), i(31));
  Val sign = b.Select(Equal(b.Binary(Op::kAnd, bits, i(0x8000)), i(0)), b.F(1), b.F(-1));
  Val field = b.Select(Equal(exponent, i(31)), i(255), exponent + 112.0);
  Val normal = b.BitCast(
      b.Binary(Op::kOr, b.Binary(Op::kShl, field, i(23)), b.Binary(Op::kShl, mantissa, i(13))),
      DType::kF32);
  Val small = b.Cast(mantissa, DType::kF32) * std::ldexp(1.0, -24);
  return b.Select(Equal(exponent, i(0)), small, normal) * sign;
}

bool HasBits(DType t) {
  return IsInteger(t) || t == DType::kBool || t == DType::kF16 || t == DType::kBF16 ||
         t == DType::kF32 || t == DType::kF64;
}

Status InferBitCast(InferContext& ctx) {
  DType from = ctx.In(0).dtype, to = static_cast<DType>(ctx.Int("to", 0));
  auto width = [](DType t) { return t == DType::kBool ? 8 : BitWidth(t); };
  if (width(from) != width(to) || width(to) == 0) {
    return ctx.Fault(fmt::format("types {} and {} differ in width", Name(from), Name(to)));
  }
  if (from != to && (!HasBits(from) || !HasBits(to))) {
    return Unsupported(fmt::format("BitCast from {} to {}", Name(from), Name(to)));
  }
  ctx.Out(0, to, ctx.In(0).dims);
  return {};
}

Val BitCast(Lowering& l, int, const Index& idx) {
  DType from = l.In(0).dtype, to = l.Out(0).dtype;
  Val x = l.Load(0, idx);
  if (from == to) return x;
  if (from == DType::kBool) x = l.b.Cast(x, DType::kI32);
  return FromBits(l.b, BitsOf(l.b, x, from), to);
}

const OpDef& kBitCast =
    Register({.name = "BitCast",
              .infer = InferBitCast,
              .element = BitCast,
              .fusion = Fusion::kPointwise,
              .in_place = true,
              .samples = {"(f32[2,3]) {to=6}", "(f16[4]) {to=4}", "(i16[4]) {to=10}"}});

}  // namespace
}  // namespace ge
