// Reductions: y[kept] = g( op over reduced axes of f(x[..]) )
//   Sum x | Mean x/n | Max | Min | Prod | L1 |x| | L2 sqrt(x*x) | SumSquare x*x | LogSum log |
//   LogSumExp
// The result over an empty set is op's identity. noop_with_empty_axes=1 without axes reduces
// nothing but still applies f and g. Axes known only at run time work too: they are looked up with
// Selects.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Op;
using tile::ReduceOp;
using tile::Val;

// Which axes are reduced (0 or 1 each, as Exprs) and how indices map.
struct Reduction {
  std::vector<Expr> reduced;
  bool keep = true;
  bool fixed = true;  // no symbolic axis
  Dims in, out;

  // Position of input axis d among the kept ones.
  Expr KeptBefore(size_t d) const {
    Expr count = 0;
    for (size_t e = 0; e < d; ++e) count += Expr(1) - reduced[e];
    return count;
  }
  std::vector<Expr> Extents() const {
    std::vector<Expr> extents;
    for (size_t d = 0; d < in.size(); ++d) extents.push_back(Select(reduced[d], in[d], 1));
    return extents;
  }
  Expr Count() const { return Product(Extents()); }
  Index InputIndex(const Index& o, const std::vector<Expr>& k) const {
    Index at(in.size());
    for (size_t d = 0; d < in.size(); ++d) {
      Expr kept = keep ? o[d] : Expr(0);
      for (size_t j = 0; !keep && j < o.size(); ++j) {
        kept = Select(Eq(KeptBefore(d), static_cast<int64_t>(j)), o[j], kept);
      }
      at[d] = Select(reduced[d], k[d], kept);
    }
    return at;
  }
};

Reduction MakeReduction(const Dims& in, const std::vector<Expr>& axes, bool noop, bool keep) {
  Reduction r;
  r.in = in;
  r.keep = keep;
  int64_t rank = in.size(),
          dropped = axes.empty() && !noop ? rank : static_cast<int64_t>(axes.size());
  for (int64_t d = 0; d < rank; ++d) {
    Expr reduced = axes.empty() && !noop ? 1 : 0;
    for (Expr a : axes) reduced = Or(reduced, Or(Eq(a, d), Eq(a, d - rank)));
    r.fixed = r.fixed && reduced.IsConst();
    r.reduced.push_back(reduced);
  }
  if (keep) {
    for (int64_t d = 0; d < rank; ++d) r.out.push_back(Select(r.reduced[d], 1, in[d]));
    return r;
  }
  for (int64_t j = 0; j < rank - dropped; ++j) {
    Expr dim = 1;
    for (int64_t d = 0; d < rank; ++d) {
      dim = Select(And(Not(r.reduced[d]), Eq(r.KeptBefore(d), j)), in[d], dim);
    }
    r.out.push_back(dim);
  }
  return r;
}

Reduction ReductionOf(const Lowering& l) {
  std::vector<Expr> axes = SizesOf(l, 1);
  for (int64_t a : l.Ints("axes")) axes.push_back(a);
  return MakeReduction(l.In(0).dims, axes, l.Int("noop_with_empty_axes", 0) != 0,
                       l.Int("keepdims", 1) != 0);
}

// A reduction of all of a short list of known integers.
void FoldFacts(InferContext& ctx, Expr (*fold)(Expr, Expr)) {
  const auto* elems = ctx.Elems(0);
  const Dims& out = ctx.graph.value(ctx.node.outputs[0]).type.dims;
  if (!fold || !elems || elems->empty() || !Product(out).IsConst(1)) return;
  Expr result = (*elems)[0];
  for (size_t i = 1; i < elems->size(); ++i) result = fold(result, (*elems)[i]);
  ctx.OutElems(0, {result});
}

template <Expr (*kFold)(Expr, Expr), bool kBool>
Status InferReduce(InferContext& ctx) {
  std::vector<Expr> axes;
  if (ctx.Has(1)) {
    GE_ASSIGN(axes, SizesOf(ctx, 1));
  }
  for (int64_t a : ctx.Ints("axes")) axes.push_back(a);
  std::vector<int64_t> known;
  for (Expr a : axes) {
    if (a.IsConst()) known.push_back(a.value());
  }
  GE_ASSIGN([[maybe_unused]] auto axes_checked, NormaliseAxes(known, ctx.In(0).rank()));
  if (!kBool && ctx.In(0).dtype == DType::kBool)
    return ctx.Fault("operand 0 has type bool, must be numeric");
  Reduction r = MakeReduction(ctx.In(0).dims, axes, ctx.Int("noop_with_empty_axes", 0) != 0,
                              ctx.Int("keepdims", 1) != 0);
  ctx.Out(0, ctx.In(0).dtype, r.out);
  FoldFacts(ctx, kFold);
  return {};
}

// Lanes run over the kept axes where the innermost stored axis is kept, else over the reduced ones.
bool LanesOverKept(const TensorType& in, const Reduction& r) {
  int axis = in.rank() - 1;
  if (!in.layout.IsNd()) {
    axis = in.layout.dims.back().axis;
  } else {
    while (axis > 0 && in.dims[axis].IsConst(1)) --axis;
  }
  return axis >= 0 && r.reduced[axis].IsConst(0);
}

using Map = Val (*)(Lowering&, Val);

Val Reduced(Lowering& l, const Reduction& r, const Index& o, ReduceOp op,
            const std::function<Val(Val)>& map) {
  return l.b.Reduce(op, r.Extents(),
                    [&](const std::vector<Expr>& k) { return map(l.Load(0, r.InputIndex(o, k))); });
}

void ForKept(Lowering& l, const std::function<Val(const Reduction&, const Index&)>& value) {
  Reduction r = ReductionOf(l);
  l.ForEach(r.out, LanesOverKept(l.In(0), r),
            [&](const Index& o) { l.Yield(0, o, l.b.Convert(value(r, o), l.Out(0).dtype)); });
}

template <ReduceOp kOp, Map kMap, Map kAfter>
void LowerReduce(Lowering& l) {
  ForKept(l, [&](const Reduction& r, const Index& o) {
    return kAfter(l, Reduced(l, r, o, kOp, [&](Val x) { return kMap(l, x); }));
  });
}

Val Same(Lowering&, Val x) { return x; }
Val Square(Lowering&, Val x) { return x * x; }
Val Size(Lowering& l, Val x) { return x.type() == DType::kU64 ? x : l.b.Unary(Op::kAbs, x); }
// Integers take the root or logarithm as f64.
template <Op kOp>
Val FloatFormula(Lowering& l, Val x) {
  return l.b.Unary(kOp, IsFloat(x.type()) ? x : l.b.Cast(x, DType::kF64));
}

// Max and Min: and/or of bools; an integer storage narrower than its compute type has limits of its
// own, which are the result over an empty set.
template <bool kMax>
void LowerExtremum(Lowering& l) {
  DType t = l.In(0).dtype;
  ForKept(l, [&](const Reduction& r, const Index& o) {
    bool logic = t == DType::kBool;
    ReduceOp op =
        logic ? (kMax ? ReduceOp::kOr : ReduceOp::kAnd) : (kMax ? ReduceOp::kMax : ReduceOp::kMin);
    Val y = Reduced(l, r, o, op, [](Val x) { return x; });
    int width = BitWidth(t);
    if (!IsInteger(t) || width >= 64) return y;
    int64_t high = (int64_t{1} << (IsSigned(t) ? width - 1 : width)) - 1;
    int64_t limit = !kMax ? high : IsSigned(t) ? -high - 1 : 0;
    Val bound = l.b.ConstInt(y.type(), limit);
    return kMax ? Max(y, bound) : Min(y, bound);
  });
}

void LowerMean(Lowering& l) {
  ForKept(l, [&](const Reduction& r, const Index& o) {
    Val sum = Reduced(l, r, o, ReduceOp::kSum, [](Val x) { return x; });
    Expr count = r.Count();
    if (count.IsConst() && sum.type() == DType::kF32)
      return sum / static_cast<double>(count.value());
    return sum / l.b.Cast(l.b.Index(count), sum.type());
  });
}

// log(sum(exp(x - m))) + m with m = max(x), or 0 where that is infinite.
void LowerLogSumExp(Lowering& l) {
  DType t = ComputeType(l.In(0).dtype);
  DType f = IsFloat(t) ? t : DType::kF64;
  ForKept(l, [&](const Reduction& r, const Index& o) {
    Val top = Reduced(l, r, o, ReduceOp::kMax, [&](Val x) { return l.b.Cast(x, f); });
    Val shift = l.b.Let(l.b.Select(l.b.Unary(Op::kIsInf, top), l.b.Const(f, 0), top));
    Val sum = Reduced(l, r, o, ReduceOp::kSum,
                      [&](Val x) { return l.b.Unary(Op::kExp, l.b.Cast(x, f) - shift); });
    return l.b.Unary(Op::kLog, sum) + shift;
  });
}

Expr AddFold(Expr a, Expr b) { return a + b; }
Expr MulFold(Expr a, Expr b) { return a * b; }
Expr MaxFold(Expr a, Expr b) { return ge::Max(a, b); }
Expr MinFold(Expr a, Expr b) { return ge::Min(a, b); }
constexpr auto kPlainInfer = InferReduce<nullptr, false>;

struct OpRow {
  const char* name;
  Status (*infer)(InferContext&);
  void (*lower)(Lowering&);
};

const OpRow kRows[] = {
    {"ReduceSum", InferReduce<AddFold, false>, LowerReduce<ReduceOp::kSum, Same, Same>},
    {"ReduceMean", kPlainInfer, LowerMean},
    {"ReduceMax", InferReduce<MaxFold, true>, LowerExtremum<true>},
    {"ReduceMin", InferReduce<MinFold, true>, LowerExtremum<false>},
    {"ReduceProd", InferReduce<MulFold, false>, LowerReduce<ReduceOp::kProd, Same, Same>},
    {"ReduceL1", kPlainInfer, LowerReduce<ReduceOp::kSum, Size, Same>},
    {"ReduceL2", kPlainInfer, LowerReduce<ReduceOp::kSum, Square, FloatFormula<Op::kSqrt>>},
    {"ReduceSumSquare", kPlainInfer, LowerReduce<ReduceOp::kSum, Square, Same>},
    {"ReduceLogSum", kPlainInfer, LowerReduce<ReduceOp::kSum, Same, FloatFormula<Op::kLog>>},
    {"ReduceLogSumExp", kPlainInfer, LowerLogSumExp},
};

[[maybe_unused]] const bool kRegistered = [] {
  for (const OpRow& row : kRows) {
    Register({.name = row.name,
              .min_inputs = 1,
              .max_inputs = 2,
              .infer = row.infer,
              .lower = row.lower,
              .expand = ExpandSizes<1>,
              .halves = Halves::kWiden,
              .samples = {"(f32[2,3,4]) {axes=[1]}", "(f32[2,3]) {keepdims=0}",
                          "(f32[2,3,4]) {axes=[-1], keepdims=0}"}});
  }
  return true;
}();

}  // namespace
}  // namespace ge
