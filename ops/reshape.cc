// Operators that change the shape and keep the elements in their order.
//   Reshape    y = x in the given shape; 0 copies a dim (allowzero=0), -1 takes what is left
//   Flatten    [d0*..*d(axis-1), d(axis)*..]
//   Squeeze    drops axes of one element         Unsqueeze   inserts them
// Facts pass through unchanged. The element formula maps axes group by group (ReshapedIndex).
#include <fmt/format.h>

#include <algorithm>

#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Val;

Val Element(Lowering& l, int, const Index& idx) {
  return l.Load(0, ReshapedIndex(idx, l.Out(0).dims, l.In(0).dims));
}

void PassFacts(InferContext& ctx, Dims dims) {
  ctx.Out(0, ctx.In(0).dtype, std::move(dims));
  if (const auto* elems = ctx.Elems(0)) ctx.OutElems(0, *elems);
}

// --- Reshape ------------------------------------------------------------------------------------

// What stays of Product(a) / Product(b) when equal factors are struck out.
Expr Quotient(Dims a, Dims b) {
  for (size_t j = b.size(); j-- > 0;) {
    auto it = std::find(a.begin(), a.end(), b[j]);
    if (it == a.end()) continue;
    a.erase(it);
    b.erase(b.begin() + j);
  }
  Expr below = Product(b);
  if (below.IsConst(0)) return 0;
  return FloorDiv(Product(a), below);
}

// Sizes read at run time may be 0 or -1, with their special meaning; those computed of dims are
// dims.
bool IsReadSize(Expr e) {
  if (ProvablyLe(0, e)) return false;
  std::vector<Expr> symbols = Symbols(e);
  return std::any_of(symbols.begin(), symbols.end(), [](Expr s) { return s.node()->facts.lo < 0; });
}

Result<Dims> ReshapedDims(InferContext& ctx, const Dims& in, Dims sizes) {
  const bool copy_zero = ctx.Int("allowzero", 0) == 0;
  int inferred = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Expr& e = sizes[i];
    if (e.IsConst() && e.value() < -1) {
      return ctx.Fault(fmt::format("shape {}: {} is no dim", ShapeText(sizes), e.value()));
    }
    if (e.IsConst(-1)) {
      if (inferred >= 0) return ctx.Fault(fmt::format("shape {} has two -1", ShapeText(sizes)));
      inferred = static_cast<int>(i);
    } else if (copy_zero && e.IsConst(0)) {
      if (i >= in.size()) {
        return ctx.Fault(fmt::format("shape {}: 0 at {} copies no dim of {}", ShapeText(sizes), i,
                                     ShapeText(in)));
      }
      e = in[i];
    } else if (copy_zero && IsReadSize(e) && i < in.size()) {
      e = Select(Eq(e, 0), in[i], e);
    }
  }
  if (inferred >= 0) {
    Dims others = sizes;
    others.erase(others.begin() + inferred);
    sizes[inferred] = Quotient(in, others);
    Expr total = Product(in);
    ctx.Check(Eq(Product(sizes), total), fmt::format("{} elements do not divide into shape {}",
                                                     ToString(total), ShapeText(sizes)));
    return sizes;
  }
  // Sizes known only at run time: any of them may be -1 then.
  Dims open = sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!IsReadSize(open[i])) continue;
    Dims others = open;
    others.erase(others.begin() + i);
    sizes[i] = Select(Eq(open[i], -1), Quotient(in, others), open[i]);
  }
  ctx.Check(Eq(Product(sizes), Product(in)),
            fmt::format("shape {} must hold the elements of {}", ShapeText(sizes), ShapeText(in)));
  return sizes;
}

Status InferReshape(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 1, 1));
  GE_ASSIGN(Dims sizes, SizesOf(ctx, 1));
  GE_ASSIGN(Dims dims, ReshapedDims(ctx, ctx.In(0).dims, std::move(sizes)));
  PassFacts(ctx, std::move(dims));
  return {};
}

const OpDef& kReshape =
    Register({.name = "Reshape",
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = InferReshape,
              .element = Element,
              .expand = ExpandSizes<1>,
              .fusion = Fusion::kView,
              .in_place = true,
              .halves = Halves::kFollow,
              .flops_per_element = 0,
              .samples = {"(f32[2,3,4], i64[3]=[0,-1,2])", "(f32[6], i64[2]=[2,3])"}});

// --- Flatten ------------------------------------------------------------------------------------

Status InferFlatten(InferContext& ctx) {
  const Dims& in = ctx.In(0).dims;
  int64_t axis = ctx.Int("axis", 1), rank = in.size();
  if (axis < -rank || axis > rank) {
    return ctx.Fault(fmt::format("axis {} is outside rank {}", axis, rank));
  }
  if (axis < 0) axis += rank;
  Expr rows = Product(Dims(in.begin(), in.begin() + axis));
  PassFacts(ctx, {rows, Product(Dims(in.begin() + axis, in.end()))});
  return {};
}

const OpDef& kFlatten = Register({.name = "Flatten",
                                  .infer = InferFlatten,
                                  .element = Element,
                                  .fusion = Fusion::kView,
                                  .in_place = true,
                                  .halves = Halves::kFollow,
                                  .flops_per_element = 0,
                                  .samples = {"(f32[2,3,4]) {axis=2}"}});

// --- Squeeze, Unsqueeze -------------------------------------------------------------------------

// Axes of the operand or attribute; nullopt if there are none. Axes read at run time are symbolic.
Result<std::optional<std::vector<Expr>>> GivenAxes(InferContext& ctx) {
  using Axes = std::optional<std::vector<Expr>>;
  if (ctx.Has(1)) {
    GE_ASSIGN(auto axes, SizesOf(ctx, 1));
    return Axes(std::move(axes));
  }
  if (!HasAttr(ctx.node, "axes")) return Axes();
  auto ints = ctx.Ints("axes");
  return Axes(std::vector<Expr>(ints.begin(), ints.end()));
}

// 0 or 1 for each of `rank` axes: is it named? Constant axes must be legal and different.
Result<std::vector<Expr>> Marks(const std::vector<Expr>& axes, int64_t rank) {
  std::vector<int64_t> known;
  for (Expr a : axes) {
    if (a.IsConst()) known.push_back(a.value());
  }
  GE_ASSIGN([[maybe_unused]] auto checked, NormaliseAxes(known, static_cast<int>(rank)));
  std::vector<Expr> marks(rank, 0);
  for (int64_t d = 0; d < rank; ++d) {
    for (Expr a : axes) marks[d] = Or(marks[d], Or(Eq(a, d), Eq(a, d - rank)));
  }
  return marks;
}

// Number of axes before d that are not marked.
Expr PlainBefore(const std::vector<Expr>& marks, int64_t d) {
  Expr count = 0;
  for (int64_t e = 0; e < d; ++e) count += Expr(1) - marks[e];
  return count;
}

Status InferSqueeze(InferContext& ctx) {
  const Dims& in = ctx.In(0).dims;
  int64_t rank = in.size();
  GE_ASSIGN(auto given, GivenAxes(ctx));
  std::vector<Expr> marks(rank, 0);
  for (int64_t d = 0; d < rank && !given; ++d) marks[d] = in[d].IsConst(1);
  if (given) {
    GE_ASSIGN(marks, Marks(*given, rank));
  }
  int64_t dropped =
      given ? static_cast<int64_t>(given->size()) : std::count(marks.begin(), marks.end(), Expr(1));
  if (dropped > rank) return ctx.Fault(fmt::format("{} axes of rank {}", dropped, rank));
  for (int64_t d = 0; d < rank; ++d) {
    if (marks[d].IsConst(1) && in[d].IsConst() && !in[d].IsConst(1)) {
      return ctx.Fault(fmt::format("axis {} of {} has {} elements, must have 1", d, ShapeText(in),
                                   in[d].value()));
    }
    ctx.Check(Or(Not(marks[d]), Eq(in[d], 1)),
              fmt::format("squeezed axis {} ({}) must be 1", d, ToString(in[d])));
    // Without axes the rank would depend on the sizes: a symbolic dim is taken to be no 1.
    if (!given && !in[d].IsConst()) {
      ctx.Check(Ne(in[d], 1),
                fmt::format("Squeeze without axes: dim {} must not be 1", ToString(in[d])));
    }
  }
  Dims out(rank - dropped, 1);
  for (int64_t j = 0; j < rank - dropped; ++j) {
    for (int64_t d = 0; d < rank; ++d) {
      out[j] = Select(And(Not(marks[d]), Eq(PlainBefore(marks, d), j)), in[d], out[j]);
    }
  }
  PassFacts(ctx, std::move(out));
  return {};
}

Status InferUnsqueeze(InferContext& ctx) {
  const Dims in = ctx.In(0).dims;
  GE_ASSIGN(auto given, GivenAxes(ctx));
  if (!given) return ctx.Fault("axes are missing");
  GE_ASSIGN(auto marks, Marks(*given, in.size() + given->size()));
  Dims out(marks.size(), 1);
  for (size_t d = 0; d < marks.size(); ++d) {
    for (size_t j = 0; j < in.size(); ++j) {
      Expr here = And(Not(marks[d]), Eq(PlainBefore(marks, d), static_cast<int64_t>(j)));
      out[d] = Select(here, in[j], out[d]);
    }
  }
  PassFacts(ctx, std::move(out));
  return {};
}

OpDef AxesView(const char* name, Status (*infer)(InferContext&), const char* sample) {
  return {.name = name,
          .min_inputs = 1,
          .max_inputs = 2,
          .infer = infer,
          .element = Element,
          .expand = ExpandSizes<1>,
          .fusion = Fusion::kView,
          .in_place = true,
          .halves = Halves::kFollow,
          .flops_per_element = 0,
          .samples = {sample}};
}

const OpDef& kSqueeze = Register(AxesView("Squeeze", InferSqueeze, "(f32[1,3,1]) {axes=[0]}"));
const OpDef& kUnsqueeze =
    Register(AxesView("Unsqueeze", InferUnsqueeze, "(f32[2,3]) {axes=[0, -1]}"));

}  // namespace
}  // namespace ge
