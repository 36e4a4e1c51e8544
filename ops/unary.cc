// Unary pointwise operators: y[i] = f(x[i]), y of x's type and shape (IsNaN and IsInf give bool).
// Formulas are computed in the compute type; integers of float formulas go through f64.
// NaN passes through every operator here, as the specification's formulas say.
#include <cmath>

#include "ir/expand.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Builder;
using tile::Op;
using tile::Val;

Val Sigmoid(Val x) { return x.b->Unary(Op::kRcp, x.b->Unary(Op::kExp, -x) + 1.0); }

// log(1 + exp(x)) without overflow.
Val Softplus(Val x) {
  Val tail = x.b->Unary(Op::kLog1p, x.b->Unary(Op::kExp, -x.b->Unary(Op::kAbs, x)));
  return Max(x, Like(x, 0)) + tail;
}

template <Op kOp>
Val Direct(Lowering& l, Val x) {
  return l.b.Unary(kOp, x);
}

Val Abs(Lowering& l, Val x) { return x.type() == DType::kU64 ? x : l.b.Unary(Op::kAbs, x); }

Val Sign(Lowering& l, Val x) {
  Val sign = l.b.Select(Less(x, Like(x, 0)), Like(x, -1), Like(x, 1));
  if (x.type() == DType::kU64) sign = Like(x, 1);
  // x == 0 and NaN give x itself.
  Val same = IsFloat(x.type()) ? Or(Equal(x, Like(x, 0)), NotEqual(x, x)) : Equal(x, Like(x, 0));
  return l.b.Select(same, x, sign);
}

Val Relu(Lowering&, Val x) { return Max(x, Like(x, 0)); }
Val LeakyRelu(Lowering& l, Val x) {
  return l.b.Select(Less(x, Like(x, 0)), x * l.Float("alpha", 0.01f), x);
}
Val Elu(Lowering& l, Val x) {
  Val low = l.b.Unary(Op::kExpm1, x) * l.Float("alpha", 1.0f);
  return l.b.Select(Less(x, Like(x, 0)), low, x);
}
Val Selu(Lowering& l, Val x) {
  double alpha = l.Float("alpha", 1.67326319217681884765625f);
  double gamma = l.Float("gamma", 1.05070102214813232421875f);
  Val low = l.b.Unary(Op::kExpm1, x) * alpha;
  return l.b.Select(LessEqual(x, Like(x, 0)), low, x) * gamma;
}
Val Celu(Lowering& l, Val x) {
  double alpha = l.Float("alpha", 1.0f);
  Val low = l.b.Unary(Op::kExpm1, x / alpha) * alpha;
  return Max(x, Like(x, 0)) + Min(low, Like(x, 0));
}
Val ThresholdedRelu(Lowering& l, Val x) {
  Val alpha = Like(x, l.Float("alpha", 1.0f));
  return l.b.Select(Less(alpha, x), x, Like(x, 0));
}
Val HardSigmoid(Lowering& l, Val x) {
  Val line = x * l.Float("alpha", 0.2f) + l.Float("beta", 0.5f);
  return Max(Like(x, 0), Min(Like(x, 1), line));
}
Val HardSwish(Lowering&, Val x) {
  return x * Max(Like(x, 0), Min(Like(x, 1), x * (1.0 / 6) + 0.5));
}
Val SigmoidOp(Lowering&, Val x) { return Sigmoid(x); }
Val SoftplusOp(Lowering&, Val x) { return Softplus(x); }
Val Softsign(Lowering& l, Val x) { return x / (l.b.Unary(Op::kAbs, x) + 1.0); }
Val Gelu(Lowering& l, Val x) {
  if (l.Str("approximate", "none") == "tanh") {
    Val inner = (x + x * x * x * 0.044715) * std::sqrt(2 / M_PI);
    return x * Sigmoid(inner * 2.0);  // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u))
  }
  return l.b.Unary(Op::kGelu, x);
}
Val Swish(Lowering& l, Val x) {
  const float alpha = l.Float("alpha", 1.0f);
  return x * Sigmoid(alpha == 1 ? x : x * alpha);
}
Val Mish(Lowering& l, Val x) { return x * l.b.Unary(Op::kTanh, Softplus(x)); }
Val Shrink(Lowering& l, Val x) {
  double lambda = l.Float("lambd", 0.5f), bias = l.Float("bias", 0.0f);
  Val zero = Like(x, 0);
  Val low = l.b.Select(Less(x, Like(x, -lambda)), x + bias, zero);
  return l.b.Select(Less(Like(x, lambda), x), x - bias, low);
}
Val Identity(Lowering&, Val x) { return x; }
Val IsNan(Lowering& l, Val x) { return l.b.Unary(Op::kIsNan, x); }
Val IsInf(Lowering& l, Val x) {
  Val inf = l.b.Unary(Op::kIsInf, x);
  bool low = l.Int("detect_negative", 1) != 0, high = l.Int("detect_positive", 1) != 0;
  if (low && high) return inf;
  if (!low && !high) return BoolConst(l.b, false);
  return And(inf, low ? Less(x, Like(x, 0)) : Less(Like(x, 0), x));
}

// f at each element; integers go through f64 where f is a float formula.
template <Val (*kF)(Lowering&, Val), bool kFloatFormula>
Val Element(Lowering& l, int, const Index& idx) {
  Val x = l.Load(0, idx);
  if (kFloatFormula && !IsFloat(x.type())) {
    return l.b.Convert(kF(l, l.b.Cast(x, DType::kF64)), l.Out(0).dtype);
  }
  return kF(l, x);
}

enum class Domain { kFloat, kNumber, kSigned, kInteger, kBool };

bool Accepts(Domain domain, DType t) {
  switch (domain) {
    case Domain::kFloat: return IsFloat(t);
    case Domain::kNumber: return IsFloat(t) || IsInteger(t);
    case Domain::kSigned: return IsSigned(t);
    case Domain::kInteger: return IsInteger(t);
    case Domain::kBool: return t == DType::kBool;
  }
  return false;
}

template <Domain kDomain>
Status InferIn(InferContext& ctx) {
  static constexpr const char* kText[] = {"a float type", "a numeric type", "a signed type",
                                          "an integer type", "bool"};
  DType t = ctx.In(0).dtype;
  if (Accepts(kDomain, t)) return InferSameAsInput(ctx);
  return ctx.Fault("operand 0 has type " + std::string(Name(t)) + ", must be " +
                   kText[static_cast<int>(kDomain)]);
}

template <Expr (*kFact)(Expr), Domain kDomain>
Status InferFact(InferContext& ctx) {
  GE_TRY(InferIn<kDomain>(ctx));
  if (const auto* elems = ctx.Elems(0)) {
    std::vector<Expr> out;
    for (Expr e : *elems) out.push_back(kFact(e));
    ctx.OutElems(0, std::move(out));
  }
  return {};
}

Status InferPredicate(InferContext& ctx) {
  GE_TRY(InferIn<Domain::kFloat>(ctx));
  ctx.Out(0, DType::kBool, ctx.In(0).dims);
  return {};
}

Expr NegFact(Expr e) { return Expr(0) - e; }
Expr AbsFact(Expr e) { return Max(e, NegFact(e)); }
Expr ReluFact(Expr e) { return Max(e, 0); }
Expr SignFact(Expr e) { return Min(Max(e, -1), 1); }
Expr NotFact(Expr e) { return Not(e); }

constexpr auto kFloatIn = InferIn<Domain::kFloat>;
constexpr auto kNumberIn = InferIn<Domain::kNumber>;

struct Row {
  const char* name;
  Status (*infer)(InferContext&);
  Val (*element)(Lowering&, int, const Index&);
  double flops;
  const char* sample;
};

template <Op kOp>
constexpr auto kPlain = Element<Direct<kOp>, true>;

constexpr const char* kF = "(f32[2,3])";
constexpr const char* kI = "(i32[2,3])";

const Row kRows[] = {
    {"Abs", InferFact<AbsFact, Domain::kNumber>, Element<Abs, false>, 1, kF},
    {"Neg", InferFact<NegFact, Domain::kSigned>, Element<Direct<Op::kNeg>, false>, 1, kI},
    {"Sign", InferFact<SignFact, Domain::kNumber>, Element<Sign, false>, 2, kF},
    {"Relu", InferFact<ReluFact, Domain::kNumber>, Element<Relu, false>, 1, kF},
    {"Not", InferFact<NotFact, Domain::kBool>, Element<Direct<Op::kNot>, false>, 1, "(bool[5])"},
    {"BitwiseNot", InferIn<Domain::kInteger>, Element<Direct<Op::kBitNot>, false>, 1, kI},
    {"IsNaN", InferPredicate, Element<IsNan, false>, 1, kF},
    {"IsInf", InferPredicate, Element<IsInf, false>, 1, "(f32[4]) {detect_negative=0}"},
    {"LeakyRelu", kFloatIn, Element<LeakyRelu, true>, 2, "(f32[2,3]) {alpha=0.1}"},
    {"Elu", kFloatIn, Element<Elu, true>, 12, kF},
    {"Selu", kFloatIn, Element<Selu, true>, 12, kF},
    {"Celu", kFloatIn, Element<Celu, true>, 14, kF},
    {"ThresholdedRelu", kFloatIn, Element<ThresholdedRelu, true>, 2, kF},
    {"HardSigmoid", kFloatIn, Element<HardSigmoid, true>, 4, kF},
    {"HardSwish", kFloatIn, Element<HardSwish, true>, 5, kF},
    {"Sigmoid", kFloatIn, Element<SigmoidOp, true>, 12, kF},
    {"Softplus", kFloatIn, Element<SoftplusOp, true>, 20, kF},
    {"Softsign", kFloatIn, Element<Softsign, true>, 4, kF},
    {"Gelu", kFloatIn, Element<Gelu, true>, 20, "(f32[2,3]) {approximate=\"tanh\"}"},
    {"Swish", kFloatIn, Element<Swish, true>, 13, kF},
    {"Mish", kFloatIn, Element<Mish, true>, 40, kF},
    {"Shrink", kNumberIn, Element<Shrink, true>, 4, "(f32[2,3]) {bias=0.5, lambd=1.5}"},
    {"Exp", kFloatIn, kPlain<Op::kExp>, 10, kF},
    {"Log", kFloatIn, kPlain<Op::kLog>, 12, kF},
    {"Sqrt", kFloatIn, kPlain<Op::kSqrt>, 4, kF},
    {"Reciprocal", kFloatIn, kPlain<Op::kRcp>, 3, kF},
    {"Floor", kFloatIn, kPlain<Op::kFloor>, 1, kF},
    {"Ceil", kFloatIn, kPlain<Op::kCeil>, 1, kF},
    {"Round", kFloatIn, kPlain<Op::kRound>, 1, kF},
    {"Sin", kFloatIn, kPlain<Op::kSin>, 20, kF},
    {"Cos", kFloatIn, kPlain<Op::kCos>, 20, kF},
    {"Tan", kFloatIn, kPlain<Op::kTan>, 30, kF},
    {"Asin", kFloatIn, kPlain<Op::kAsin>, 20, kF},
    {"Acos", kFloatIn, kPlain<Op::kAcos>, 20, kF},
    {"Atan", kFloatIn, kPlain<Op::kAtan>, 20, kF},
    {"Sinh", kFloatIn, kPlain<Op::kSinh>, 20, kF},
    {"Cosh", kFloatIn, kPlain<Op::kCosh>, 20, kF},
    {"Tanh", kFloatIn, kPlain<Op::kTanh>, 14, kF},
    {"Asinh", kFloatIn, kPlain<Op::kAsinh>, 20, kF},
    {"Acosh", kFloatIn, kPlain<Op::kAcosh>, 20, kF},
    {"Atanh", kFloatIn, kPlain<Op::kAtanh>, 20, kF},
    {"Erf", kNumberIn, kPlain<Op::kErf>, 16, kF},
};

OpDef Definition(const Row& row) {
  bool predicate = row.infer == InferPredicate;
  return {.name = row.name,
          .infer = row.infer,
          .element = row.element,
          .fusion = Fusion::kPointwise,
          .in_place = !predicate,
          .by_element = true,
          .halves = predicate ? Halves::kRound : Halves::kWiden,
          .flops_per_element = row.flops,
          .samples = {row.sample}};
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Row& row : kRows) Register(Definition(row));
  return true;
}();

// Identity also passes sequences, optionals and strings.
Status InferIdentity(InferContext& ctx) {
  CopyType(ctx, 0, 0);
  if (!ctx.Wants(0)) return {};
  ctx.graph.value(ctx.node.outputs[0]).kind = ctx.InValue(0).kind;
  if (const auto* elems = ctx.Elems(0)) ctx.OutElems(0, *elems);
  return {};
}

const OpDef& kCopy =
    Register({.name = "Copy", .domain = "ge", .infer = InferIdentity, .host = "Copy"});

// What no kernel can load is copied by the host.
bool ExpandIdentity(Graph& g, NodeId n) {
  const Value& x = g.value(g.node(n).inputs[0]);
  if (x.kind == ValueKind::kTensor && x.type.dtype != DType::kString) return false;
  ExpandBuilder e(g, n);
  return e.Done({e.Op("ge.Copy", {e.In(0)})});
}

const OpDef& kIdentity = Register({.name = "Identity",
                                   .infer = InferIdentity,
                                   .element = Element<Identity, false>,
                                   .expand = ExpandIdentity,
                                   .fusion = Fusion::kPointwise,
                                   .in_place = true,
                                   .halves = Halves::kFollow,
                                   .flops_per_element = 0,
                                   .samples = {kF}});

}  // namespace
}  // namespace ge
