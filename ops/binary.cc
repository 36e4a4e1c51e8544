// Binary and variadic pointwise operators: z[i] = f(a[i], b[i], ...) under numpy broadcasting.
// Integers: wrap at the store, Div truncates, Mod has the divisor's sign (fmod=1: the dividend's).
// Facts: elements of small integer tensors are computed symbolically, so shape arithmetic folds.
#include <fmt/format.h>

#include <algorithm>

#include "ir/expand.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Op;
using tile::Val;

// The integers whose arithmetic Exprs follow: those in which shapes are computed.
bool HasFacts(DType t) { return t == DType::kI64 || t == DType::kI32 || t == DType::kBool; }

using FactOf = Expr (*)(const InferContext&, Expr, Expr);

// Facts of output 0 from those of all operands, folded from the left.
void FoldFacts(InferContext& ctx, FactOf fact) {
  if (!ctx.Wants(0) || !HasFacts(ctx.In(0).dtype)) return;
  Dims dims = ctx.graph.value(ctx.node.outputs[0]).type.dims;
  if (!ConstDims(dims)) return;
  Expr count = Product(dims);
  if (!count.IsConst() || count.value() > 64) return;
  std::vector<Expr> out(count.value());
  for (int i = 0; i < ctx.NumInputs(); ++i) {
    const auto* elems = ctx.Elems(i);
    if (!elems || !ConstDims(ctx.In(i).dims)) return;
    for (int64_t k = 0; k < count.value(); ++k) {
      Expr e = (*elems)[BroadcastPosition(k, dims, ctx.In(i).dims)];
      out[k] = i == 0 ? e : fact(ctx, out[k], e);
      if (!out[k].IsValid()) return;
    }
  }
  ctx.OutElems(0, std::move(out));
}

enum class Domain { kNumber, kInteger, kBool, kAny };

Status CheckDomain(const InferContext& ctx, Domain domain) {
  DType t = ctx.In(0).dtype;
  bool number = IsFloat(t) || IsInteger(t);
  bool ok = domain == Domain::kAny || (domain == Domain::kNumber && number) ||
            (domain == Domain::kInteger && IsInteger(t)) ||
            (domain == Domain::kBool && t == DType::kBool);
  if (ok) return {};
  static constexpr const char* kText[] = {"a numeric type", "an integer type", "bool", "any"};
  return ctx.Fault(
      fmt::format("operands have type {}, must be {}", Name(t), kText[static_cast<int>(domain)]));
}

template <Domain kDomain, FactOf kFact, bool kPredicate = false>
Status InferFold(InferContext& ctx) {
  GE_TRY(CheckDomain(ctx, kDomain));
  GE_TRY(InferBroadcast(ctx));
  if (kPredicate) ctx.Out(0, DType::kBool, ctx.graph.value(ctx.node.outputs[0]).type.dims);
  if constexpr (kFact != nullptr) FoldFacts(ctx, kFact);
  return {};
}

// --- formulas -----------------------------------------------------------------------------------

template <Op kOp>
Val Direct(Lowering& l, Val a, Val b) {
  return l.b.Binary(kOp, a, b);
}
Val Mod(Lowering& l, Val a, Val b) {
  return l.b.Binary(l.Int("fmod", 0) ? Op::kFmod : Op::kFloorMod, a, b);
}
Val Greater(Lowering&, Val a, Val b) { return ge::Less(b, a); }
Val GreaterOrEqual(Lowering&, Val a, Val b) { return ge::LessEqual(b, a); }
// Shifting by the width or more leaves the sign (0 for unsigned numbers).
Val BitShift(Lowering& l, Val a, Val b) {
  DType t = l.In(0).dtype;
  int width = BitWidth(t);
  Val in_range = And(ge::LessEqual(Like(b, 0), b), ge::Less(b, Like(b, width)));
  Val by = l.b.Select(in_range, b, Like(b, width - 1));
  if (l.Str("direction", "LEFT") == "LEFT") {
    return l.b.Select(in_range, l.b.Binary(Op::kShl, a, by), Like(a, 0));
  }
  Val right = l.b.Binary(Op::kShr, a, by);
  return IsSigned(t) ? right : l.b.Select(in_range, right, Like(a, 0));
}

template <Val (*kF)(Lowering&, Val, Val)>
Val Element(Lowering& l, int, const Index& idx) {
  Val acc = l.LoadBroadcast(0, idx);
  for (size_t i = 1; i < l.node.inputs.size(); ++i) {
    acc = kF(l, acc, l.LoadBroadcast(static_cast<int>(i), idx));
  }
  return acc;
}

Val Mean(Lowering& l, int, const Index& idx) {
  Val sum = Element<Direct<Op::kAdd>>(l, 0, idx);
  return sum / static_cast<double>(l.node.inputs.size());
}

// --- facts --------------------------------------------------------------------------------------

Expr AddFact(const InferContext&, Expr a, Expr b) { return a + b; }
Expr SubFact(const InferContext&, Expr a, Expr b) { return a - b; }
Expr MulFact(const InferContext&, Expr a, Expr b) { return a * b; }
Expr DivFact(const InferContext&, Expr a, Expr b) { return TruncDiv(a, b); }
Expr ModFact(const InferContext& ctx, Expr a, Expr b) {
  return ctx.Int("fmod", 0) ? a - TruncDiv(a, b) * b : ge::Mod(a, b);
}
Expr MinFact(const InferContext&, Expr a, Expr b) { return ge::Min(a, b); }
Expr MaxFact(const InferContext&, Expr a, Expr b) { return ge::Max(a, b); }
Expr AndFact(const InferContext&, Expr a, Expr b) { return ge::And(a, b); }
Expr OrFact(const InferContext&, Expr a, Expr b) { return ge::Or(a, b); }
Expr XorFact(const InferContext&, Expr a, Expr b) { return Ne(a, b); }
Expr EqualFact(const InferContext&, Expr a, Expr b) { return Eq(a, b); }
Expr LessFact(const InferContext&, Expr a, Expr b) { return Lt(a, b); }
Expr LessOrEqualFact(const InferContext&, Expr a, Expr b) { return Le(a, b); }
Expr GreaterFact(const InferContext&, Expr a, Expr b) { return Lt(b, a); }
Expr GreaterOrEqualFact(const InferContext&, Expr a, Expr b) { return Le(b, a); }

// --- table --------------------------------------------------------------------------------------

struct Row {
  const char* name;
  int operands;  // -1: variadic
  Status (*infer)(InferContext&);
  Val (*element)(Lowering&, int, const Index&);
  bool predicate;
  const char* sample;
};

constexpr Domain kNumber = Domain::kNumber, kBool = Domain::kBool, kInteger = Domain::kInteger;
template <FactOf kFact>
constexpr auto kCompare = InferFold<kNumber, kFact, true>;
constexpr auto kBits = InferFold<kInteger, nullptr>;
template <Op kOp>
constexpr auto kPlain = Element<Direct<kOp>>;

constexpr const char* kFF = "(f32[2,3], f32[3])";
constexpr const char* kII = "(i32[2,1], i32[3])";
constexpr const char* kBB = "(bool[4], bool[2,4])";

const Row kRows[] = {
    {"Add", 2, InferFold<kNumber, AddFact>, kPlain<Op::kAdd>, false, kFF},
    {"Sub", 2, InferFold<kNumber, SubFact>, kPlain<Op::kSub>, false, kFF},
    {"Mul", 2, InferFold<kNumber, MulFact>, kPlain<Op::kMul>, false, kFF},
    {"Div", 2, InferFold<kNumber, DivFact>, kPlain<Op::kDiv>, false, kII},
    {"Mod", 2, InferFold<kNumber, ModFact>, Element<Mod>, false, kII},
    {"Min", -1, InferFold<kNumber, MinFact>, kPlain<Op::kMin>, false, "(f32[3], f32[1], f32[2,3])"},
    {"Max", -1, InferFold<kNumber, MaxFact>, kPlain<Op::kMax>, false, "(f32[3], f32[1], f32[2,3])"},
    {"Sum", -1, InferFold<kNumber, AddFact>, kPlain<Op::kAdd>, false, "(f32[3], f32[1], f32[2,3])"},
    {"Mean", -1, InferFold<kNumber, nullptr>, Mean, false, "(f32[3], f32[1], f32[2,3])"},
    {"And", 2, InferFold<kBool, AndFact>, kPlain<Op::kAnd>, false, kBB},
    {"Or", 2, InferFold<kBool, OrFact>, kPlain<Op::kOr>, false, kBB},
    {"Xor", 2, InferFold<kBool, XorFact>, kPlain<Op::kXor>, false, kBB},
    {"BitwiseAnd", 2, kBits, kPlain<Op::kAnd>, false, kII},
    {"BitwiseOr", 2, kBits, kPlain<Op::kOr>, false, kII},
    {"BitwiseXor", 2, kBits, kPlain<Op::kXor>, false, kII},
    {"BitShift", 2, kBits, Element<BitShift>, false, "(u8[4], u8[4]) {direction=\"RIGHT\"}"},
    {"Equal", 2, InferFold<Domain::kAny, EqualFact, true>, kPlain<Op::kEq>, true, kII},
    {"Less", 2, kCompare<LessFact>, kPlain<Op::kLt>, true, kFF},
    {"LessOrEqual", 2, kCompare<LessOrEqualFact>, kPlain<Op::kLe>, true, kFF},
    {"Greater", 2, kCompare<GreaterFact>, Element<Greater>, true, kFF},
    {"GreaterOrEqual", 2, kCompare<GreaterOrEqualFact>, Element<GreaterOrEqual>, true, kFF},
};

bool ExpandEqual(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  if (e.Type(e.In(0)) != DType::kString) return false;
  return e.Done({e.Op("ge.EqualStrings", {e.In(0), e.In(1)})});
}

const OpDef& kEqualStrings = Register({.name = "EqualStrings",
                                       .domain = "ge",
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .infer = InferFold<Domain::kAny, nullptr, true>,
                                       .host = "EqualStrings"});

[[maybe_unused]] const bool kRegistered = [] {
  for (const Row& row : kRows) {
    Register({.name = row.name,
              .min_inputs = std::max(row.operands, 1),
              .max_inputs = row.operands,
              .infer = row.infer,
              .element = row.element,
              .expand = row.element == kPlain<Op::kEq> ? ExpandEqual : nullptr,
              .fusion = Fusion::kPointwise,
              .in_place = !row.predicate,
              .by_element = true,
              .halves = Halves::kWiden,
              .samples = {row.sample}});
  }
  return true;
}();

// --- Pow ----------------------------------------------------------------------------------------

// Small whole exponents are products: exact on integers and cheap.
Val PowerByProducts(Val x, int exponent) {
  Val result = Like(x, 1), square = x;
  for (bool first = true; exponent > 0; exponent >>= 1) {
    if (exponent & 1) {
      result = first ? square : result * square;
      first = false;
    }
    if (exponent > 1) square = square * square;
  }
  return result;
}

Val Pow(Lowering& l, int, const Index& idx) {
  Val x = l.LoadBroadcast(0, idx);
  if (auto e = ScalarOf(l.graph, l.node, 1)) {
    if (*e >= 0 && *e <= 16 && *e == static_cast<int>(*e)) {
      return PowerByProducts(x, static_cast<int>(*e));
    }
    if (*e == 0.5 && IsFloat(x.type())) return l.b.Unary(Op::kSqrt, x);
    if (*e == -1 && IsFloat(x.type())) return l.b.Unary(Op::kRcp, x);
  }
  Val y = l.LoadBroadcast(1, idx);
  if (!IsFloat(x.type()) && !IsFloat(y.type())) {
    return l.b.Binary(Op::kPow, x, l.b.Cast(y, x.type()));
  }
  DType compute = x.type() == DType::kF32 ? DType::kF32 : DType::kF64;
  Val power = l.b.Binary(Op::kPow, l.b.Cast(x, compute), l.b.Cast(y, compute));
  return l.b.Convert(power, l.Out(0).dtype);
}

Status InferPow(InferContext& ctx) {
  GE_ASSIGN(Dims dims, BroadcastInputs(ctx, 0, 2));
  ctx.Out(0, ctx.In(0).dtype, dims);
  auto exponent = ScalarOf(ctx.graph, ctx.node, 1);
  const auto* elems = ctx.Elems(0);
  if (!elems || !exponent || *exponent < 0 || *exponent > 4) return {};
  if (*exponent != static_cast<int>(*exponent)) return {};
  std::vector<Expr> out;
  for (Expr e : *elems) {
    Expr power = 1;
    for (int i = 0; i < static_cast<int>(*exponent); ++i) power = power * e;
    out.push_back(power);
  }
  if (dims.size() == ctx.In(0).dims.size()) ctx.OutElems(0, std::move(out));
  return {};
}

const OpDef& kPow = Register({.name = "Pow",
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .infer = InferPow,
                              .element = Pow,
                              .fusion = Fusion::kPointwise,
                              .in_place = true,
                              .by_element = true,
                              .halves = Halves::kWiden,
                              .flops_per_element = 30,
                              .samples = {"(f32[2,3], f32[3])", "(i32[4], f32[1])"}});

}  // namespace
}  // namespace ge
