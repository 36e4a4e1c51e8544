// Random operators. The specification leaves the generator open; here an element is a function of
// the seed and its position (see random.h), so a model without seeds gives the same numbers on each
// run.
//   RandomUniform[Like]   low + (high - low) * u
//   RandomNormal[Like]    mean + scale * n
//   Bernoulli             u < x ? 1 : 0
//   Multinomial           the class where the cumulated probability passes u
#include "ops/random.h"

#include <cmath>
#include <numbers>

#include "ops/shapes.h"

namespace ge {

using tile::Builder;
using tile::Op;
using tile::Val;

namespace {

Val U64(Builder& b, uint64_t x) { return b.ConstInt(DType::kU64, static_cast<int64_t>(x)); }

// x ^= x >> shift; x *= factor.
Val Stir(Val x, int shift, uint64_t factor) {
  Val folded = x.b->Binary(Op::kXor, x, x.b->Binary(Op::kShr, x, U64(*x.b, shift)));
  return folded * U64(*x.b, factor);
}

}  // namespace

Val UniformAt(Builder& b, Val position, int64_t seed, int64_t stream) {
  uint64_t start = static_cast<uint64_t>(seed) * 0xd1342543de82ef95u +
                   static_cast<uint64_t>(stream + 1) * 0x9e3779b97f4a7c15u;
  Val x = b.Cast(position, DType::kU64) * U64(b, 0x9e3779b97f4a7c15u) + U64(b, start);
  x = Stir(Stir(x, 30, 0xbf58476d1ce4e5b9u), 27, 0x94d049bb133111ebu);
  Val top = b.Binary(Op::kShr, x, U64(b, 40));  // 24 bits: exact in f32
  return b.Cast(b.Cast(top, DType::kI64), DType::kF32) * std::ldexp(1.0, -24);
}

Val NormalAt(Builder& b, Val position, int64_t seed) {
  Val u = 1.0 - UniformAt(b, position, seed, 1);  // in (0, 1]
  Val angle = UniformAt(b, position, seed, 2) * (2 * std::numbers::pi);
  Val radius = b.Unary(Op::kSqrt, b.Unary(Op::kLog, u) * -2.0);
  return radius * b.Unary(Op::kCos, angle);
}

int64_t SeedOf(const Lowering& l) {
  if (HasAttr(l.node, "seed")) {
    return static_cast<int64_t>(l.Float("seed", 0) * 4096) ^ l.Int("seed", 0);
  }
  int64_t seed = 1;
  for (char c : l.node.name) seed = seed * 131 + c;
  return seed & 0xffffffff;
}

namespace {

Status InferFromAttributes(InferContext& ctx) {
  Dims dims;
  for (int64_t d : ctx.Ints("shape")) dims.push_back(d);
  ctx.Out(0, static_cast<DType>(ctx.Int("dtype", 1)), dims);
  return {};
}

Status InferLike(InferContext& ctx) {
  DType t = static_cast<DType>(ctx.Int("dtype", static_cast<int>(ctx.In(0).dtype)));
  ctx.Out(0, t, ctx.In(0).dims);
  return {};
}

Val Position(Lowering& l, const Index& idx) { return l.b.Index(Linear(idx, l.Out(0).dims)); }

Val Uniform(Lowering& l, int, const Index& idx) {
  double low = l.Float("low", 0), high = l.Float("high", 1);
  Val u = UniformAt(l.b, Position(l, idx), SeedOf(l));
  return l.b.Convert(u * (high - low) + low, l.Out(0).dtype);
}

Val Normal(Lowering& l, int, const Index& idx) {
  Val n = NormalAt(l.b, Position(l, idx), SeedOf(l));
  return l.b.Convert(n * l.Float("scale", 1) + l.Float("mean", 0), l.Out(0).dtype);
}

Val Bernoulli(Lowering& l, int, const Index& idx) {
  Val u = UniformAt(l.b, Position(l, idx), SeedOf(l));
  return l.b.Convert(Less(u, l.b.Cast(l.Load(0, idx), DType::kF32)), l.Out(0).dtype);
}

Status InferMultinomial(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 0, 2));
  ctx.Out(0, static_cast<DType>(ctx.Int("dtype", 6)),
          {ctx.In(0).dims[0], ctx.Int("sample_size", 1)});
  return {};
}

// Input: unnormalised log probabilities [batch, classes]. The class drawn is the number of classes
// whose cumulated weight is not above u * total.
void LowerMultinomial(Lowering& l) {
  const Dims dims = l.Out(0).dims;
  Expr classes = l.In(0).dims[1];
  l.ForEach(dims, false, [&](const Index& idx) {
    auto weight = [&](Expr c) {
      return l.b.Unary(Op::kExp, l.b.Cast(l.Load(0, {idx[0], c}), DType::kF64));
    };
    auto sum_to = [&](Expr count) {
      return l.b.Reduce(tile::ReduceOp::kSum, {count},
                        [&](const std::vector<Expr>& c) { return weight(c[0]); });
    };
    Val u = l.b.Cast(UniformAt(l.b, l.b.Index(Linear(idx, dims)), SeedOf(l)), DType::kF64);
    Val goal = l.b.Let(u * sum_to(classes));
    Val drawn = l.b.Reduce(tile::ReduceOp::kSum, {classes - 1}, [&](const std::vector<Expr>& c) {
      return l.b.Cast(LessEqual(sum_to(c[0] + 1), goal), DType::kI64);
    });
    l.Yield(0, idx, l.b.Convert(drawn, l.Out(0).dtype));
  });
}

OpDef Source(const char* name, bool like, Val (*element)(Lowering&, int, const Index&)) {
  return {.name = name,
          .min_inputs = like,
          .max_inputs = like,
          .infer = like ? InferLike : InferFromAttributes,
          .element = element,
          .fusion = Fusion::kPointwise,
          .flops_per_element = 40,
          .samples = {like ? "(f32[2,3]) {seed=3.0}" : "() {shape=[2,3], seed=3.0}"}};
}

const OpDef& kUniform = Register(Source("RandomUniform", false, Uniform));
const OpDef& kUniformLike = Register(Source("RandomUniformLike", true, Uniform));
const OpDef& kNormal = Register(Source("RandomNormal", false, Normal));
const OpDef& kNormalLike = Register(Source("RandomNormalLike", true, Normal));
const OpDef& kBernoulli = Register(Source("Bernoulli", true, Bernoulli));
const OpDef& kMultinomial = Register({.name = "Multinomial",
                                      .infer = InferMultinomial,
                                      .lower = LowerMultinomial,
                                      .samples = {"(f32[2,5]) {sample_size=3, seed=1.0}"}});

}  // namespace
}  // namespace ge
