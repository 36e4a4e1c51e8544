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

const OpDef& kReshape = Register({.name = "Reshape",
                                  .min_inputs = 2,
                                  .max_inputs = 2,
                                  .infer = InferReshape,
                                  .element = Element,
                                  .expand = ExpandSizes<1>,
                                  .fusion = Fusion::kView,
                                  .in_place = true,
                                  .flops_per_element = 0});

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
                                  .flops_per_element = 0,
                                  .samples = {"(f32[2,3,4]) {axis=2}"}});

// --- Squeeze, Unsqueeze -------------------------------------------------------------------------

Status InferSqueeze(InferContext& ctx) {
  const Dims& in = ctx.In(0).dims;
  GE_ASSIGN(auto given, AxesOf(ctx.graph, ctx.node, 1, "axes"));
  Dims out;
  std::vector<int> axes;
  if (given) {
    GE_ASSIGN(axes, NormaliseAxes(*given, static_cast<int>(in.size())));
  }
  for (int i = 0; i < static_cast<int>(in.size()); ++i) {
    bool drop = given ? std::find(axes.begin(), axes.end(), i) != axes.end() : in[i].IsConst(1);
    if (!drop) {
      // Without axes the rank would depend on the sizes: a symbolic dim is taken to be no 1.
      if (!given)
        ctx.Check(Ne(in[i], 1),
                  fmt::format("Squeeze without axes: dim {} must not be 1", ToString(in[i])));
      out.push_back(in[i]);
    } else if (in[i].IsConst() && !in[i].IsConst(1)) {
      return ctx.Fault(fmt::format("axis {} of {} has {} elements, must have 1", i, ShapeText(in),
                                   in[i].value()));
    } else {
      ctx.Check(Eq(in[i], 1), fmt::format("squeezed axis {} ({}) must be 1", i, ToString(in[i])));
    }
  }
  PassFacts(ctx, std::move(out));
  return {};
}

Status InferUnsqueeze(InferContext& ctx) {
  GE_ASSIGN(auto given, AxesOf(ctx.graph, ctx.node, 1, "axes"));
  if (!given) return ctx.Fault("axes are missing");
  Dims out = ctx.In(0).dims;
  GE_ASSIGN(auto axes, NormaliseAxes(*given, static_cast<int>(out.size() + given->size())));
  std::sort(axes.begin(), axes.end());
  for (int axis : axes) out.insert(out.begin() + axis, Expr(1));
  PassFacts(ctx, std::move(out));
  return {};
}

OpDef AxesView(const char* name, Status (*infer)(InferContext&), const char* sample) {
  return {.name = name,
          .min_inputs = 1,
          .max_inputs = 2,
          .infer = infer,
          .element = Element,
          .fusion = Fusion::kView,
          .in_place = true,
          .flops_per_element = 0,
          .samples = {sample}};
}

const OpDef& kSqueeze = Register(AxesView("Squeeze", InferSqueeze, "(f32[1,3,1]) {axes=[0]}"));
const OpDef& kUnsqueeze =
    Register(AxesView("Unsqueeze", InferUnsqueeze, "(f32[2,3]) {axes=[0, -1]}"));

}  // namespace
}  // namespace ge
