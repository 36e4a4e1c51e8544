// Concat and Pad kin: outputs that hold an input in a part of themselves.
//   Concat         y = x0, x1, ... one after the other along `axis`
//   Pad            y[i] = x[i - lo], outside by mode: value, edge, reflect, wrap; negative pads
//   crop CenterCropPad  crops or pads with 0 to the given sizes, in the middle
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/parts.h"
#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Val;

// --- Concat -------------------------------------------------------------------------------------

Status InferConcat(InferContext& ctx) {
  GE_TRY(CheckSameType(ctx, 0, ctx.NumInputs()));
  Dims out = ctx.In(0).dims;
  GE_ASSIGN(int axis, NormaliseAxis(ctx.Int("axis", 0), static_cast<int>(out.size())));
  std::vector<Expr> facts;
  bool known = out.size() == 1;
  Expr total = 0;
  for (int i = 0; i < ctx.NumInputs(); ++i) {
    const Dims& dims = ctx.In(i).dims;
    GE_TRY(CheckRank(ctx, i, static_cast<int>(out.size())));
    for (size_t k = 0; k < dims.size(); ++k) {
      if (static_cast<int>(k) == axis) continue;
      GE_ASSIGN(out[k], SameDim(ctx, out[k], dims[k], fmt::format("axis {} of operand {}", k, i)));
    }
    total += dims[axis];
    const auto* elems = ctx.Elems(i);
    known = known && (elems || dims[axis].IsConst(0));
    if (known && elems) facts.insert(facts.end(), elems->begin(), elems->end());
  }
  out[axis] = total;
  ctx.Out(0, ctx.In(0).dtype, std::move(out));
  if (known) ctx.OutElems(0, std::move(facts));
  return {};
}

// The number of elements along `axis` that lie in a row.
int64_t BlockOf(const Layout& layout, int axis) {
  int64_t block = 1;
  for (const LayoutDim& d : layout.dims)
    if (d.axis == axis) block = std::max(block, d.tile);
  return block;
}

// Parts that blocks cut, in one loop nest: all of them at one place, a few lanes at a time, so that
// a line of the whole is written once and no element by itself.
void LowerCutParts(Lowering& l, const std::vector<bool>& cut, int axis, int64_t lanes) {
  Dims dims = l.Out(0).dims;
  dims.erase(dims.begin() + axis);
  dims.emplace_back(1);  // of another rank than the whole: the nest's order stays
  dims.emplace_back(lanes);
  l.ForEach(dims, true, [&](const Index& idx) {
    int64_t start = 0;
    for (size_t i = 0; i < cut.size(); ++i) {
      const int64_t size = l.In(static_cast<int>(i)).dims[axis].value();
      for (int64_t first = 0; cut[i] && first < size; first += lanes) {
        Index at(idx.begin(), idx.end() - 2);
        at.insert(at.begin() + axis, idx.back() + first);
        const Val part = l.Load(static_cast<int>(i), at);
        at[axis] = at[axis] + start;
        l.Yield(0, at, part);
      }
      start += size;
    }
  });
}

// One loop nest per operand, but for those that blocks cut.
void LowerConcat(Lowering& l) {
  constexpr int64_t kFewLanes = 4;
  int axis = AxisOf(l.Int("axis", 0), l.Out(0).rank());
  std::vector<bool> cut = CutParts(l.graph, l.node);
  const int64_t lanes = LanesOfParts(l.graph, l.node);
  if (lanes < kFewLanes) cut.assign(cut.size(), false);
  if (std::find(cut.begin(), cut.end(), true) != cut.end()) LowerCutParts(l, cut, axis, lanes);
  Expr start = 0;
  for (int i = 0; i < static_cast<int>(l.node.inputs.size()); ++i) {
    Dims dims = l.Out(0).dims;
    dims[axis] = l.In(i).dims[axis];
    if (cut[i]) start += dims[axis];
    if (cut[i] || dims[axis].IsConst(0)) continue;
    l.ForEach(dims, true, [&](const Index& idx) {
      Index at = idx;
      at[axis] = idx[axis] + start;
      l.Yield(0, at, l.Load(i, idx));
    });
    start += dims[axis];
  }
}

// The same as a formula, for consumers that read it in place.
Val ConcatElement(Lowering& l, int, const Index& idx) {
  int axis = AxisOf(l.Int("axis", 0), l.Out(0).rank());
  Expr start = l.Out(0).dims[axis];
  Val y;
  for (int i = static_cast<int>(l.node.inputs.size()); i-- > 0;) {
    Expr dim = l.In(i).dims[axis];
    start = start - dim;
    if (dim.IsConst(0)) continue;
    Index at = idx;
    at[axis] = Max(Min(idx[axis] - start, dim - 1), 0);
    if (!y.valid()) {
      y = l.Load(i, at);
    } else {
      Val later = LessEqual(l.b.Index(start + dim), l.b.Index(idx[axis]));
      Val zero = l.b.Const(ComputeType(l.In(i).dtype), 0);
      at[axis] = idx[axis] - start;
      y = l.b.Select(later, y, l.LoadOr(i, at, zero));
    }
  }
  return y.valid() ? y : l.b.Const(ComputeType(l.Out(0).dtype), 0);
}

const OpDef& kConcat = Register({.name = "Concat",
                                 .min_inputs = 1,
                                 .max_inputs = -1,
                                 .infer = InferConcat,
                                 .element = ConcatElement,
                                 .lower = LowerConcat,
                                 .fusion = Fusion::kGather,
                                 .halves = Halves::kFollow,
                                 .flops_per_element = 0,
                                 .samples = {"(f32[2,3], f32[2,1], f32[2,4]) {axis=1}"}});

// --- Pad ----------------------------------------------------------------------------------------

struct Pads {
  std::vector<Expr> lo, hi;
};

// Each axis looks its pads up by Selects, which fold for constant axes.
Pads PadsOf(const std::vector<Expr>& pads, const std::vector<Expr>* axes, int64_t rank) {
  Pads out{std::vector<Expr>(rank, 0), std::vector<Expr>(rank, 0)};
  size_t count = pads.size() / 2;
  for (int64_t axis = 0; axis < rank; ++axis) {
    for (size_t k = 0; k < count; ++k) {
      Expr at = axes ? (*axes)[k] : Expr(k);
      Expr here = Or(Eq(at, axis), Eq(at, axis - rank));
      out.lo[axis] = Select(here, pads[k], out.lo[axis]);
      out.hi[axis] = Select(here, pads[k + count], out.hi[axis]);
    }
  }
  return out;
}

Status InferPad(InferContext& ctx) {
  const Dims in = ctx.In(0).dims;
  GE_ASSIGN(std::vector<Expr> pads, SizesOf(ctx, 1));
  std::vector<Expr> axes;
  if (ctx.Has(3)) {
    GE_ASSIGN(axes, SizesOf(ctx, 3));
  }
  size_t expected = 2 * (ctx.Has(3) ? axes.size() : in.size());
  if (pads.size() != expected)
    return ctx.Fault(fmt::format("{} pads, must be {}", pads.size(), expected));
  std::string mode = ctx.Str("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return ctx.Fault("mode is " + mode + ", must be constant, reflect, edge or wrap");
  }
  Pads p = PadsOf(pads, ctx.Has(3) ? &axes : nullptr, in.size());
  Dims out(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    out[i] = in[i] + p.lo[i] + p.hi[i];
    if (out[i].IsConst() && out[i].value() < 0) {
      return ctx.Fault(fmt::format("axis {}: pads {} and {} cut more than {}", i, ToString(p.lo[i]),
                                   ToString(p.hi[i]), ToString(in[i])));
    }
  }
  ctx.Out(0, ctx.In(0).dtype, std::move(out));
  return {};
}

// Where output position `i` of an axis reads, in a mode that repeats the input.
Expr Repeated(const std::string& mode, Expr i, Expr lo, Expr hi, Expr dim) {
  Expr first = Max(Expr(0) - lo, 0), count = dim - first - Max(Expr(0) - hi, 0);
  Expr at = i - Max(lo, 0);
  if (ProvablyLe(0, at) && ProvablyLt(at, count)) return at + first;
  if (mode == "edge") {
    at = Min(Max(at, 0), count - 1);
  } else if (mode == "wrap") {
    at = Mod(at, count);
  } else if (count.IsConst(1)) {
    at = 0;
  } else {
    Expr period = Max((count - 1) * 2, 1);
    at = Mod(at, period);
    at = Min(at, period - at);
    if (!ProvablyLe(2, count)) at = Min(at, count - 1);
  }
  return at + first;
}

Val Pad(Lowering& l, int, const Index& idx) {
  const Dims& in = l.In(0).dims;
  std::vector<Expr> axes = SizesOf(l, 3);
  Pads p = PadsOf(SizesOf(l, 1), l.Has(3) ? &axes : nullptr, in.size());
  std::string mode = l.Str("mode", "constant");
  Index at(idx.size());
  for (size_t i = 0; i < idx.size(); ++i) {
    bool plain = p.lo[i].IsConst(0) && p.hi[i].IsConst(0);
    if (plain) {
      at[i] = idx[i];
    } else {
      at[i] =
          mode == "constant" ? idx[i] - p.lo[i] : Repeated(mode, idx[i], p.lo[i], p.hi[i], in[i]);
    }
  }
  if (mode != "constant") return l.Load(0, at);
  return l.LoadOr(0, at, ScalarOr(l, 2, ComputeType(l.In(0).dtype), 0));
}

const OpDef& kPad =
    Register({.name = "Pad",
              .min_inputs = 2,
              .max_inputs = 4,
              .infer = InferPad,
              .element = Pad,
              .expand = ExpandSizes<1, 3>,
              .fusion = Fusion::kView,
              .halves = Halves::kFollow,
              .flops_per_element = 1,
              .samples = {"(f32[2,3], i64[4]=[1,0,-1,2])",
                          "(f32[4,3], i64[2]=[2,3], , i64[1]=[0]) {mode=\"reflect\"}",
                          "(f32[4,3], i64[4]=[1,1,0,2]) {mode=\"edge\"}",
                          "(f32[4,3], i64[4]=[1,-1,0,2]) {mode=\"wrap\"}"}});

// --- CenterCropPad ------------------------------------------------------------------------------

Status InferCenterCropPad(InferContext& ctx) {
  Dims out = ctx.In(0).dims;
  GE_ASSIGN(std::vector<Expr> sizes, SizesOf(ctx, 1));
  std::vector<int> axes;
  if (HasAttr(ctx.node, "axes")) {
    GE_ASSIGN(axes, NormaliseAxes(ctx.Ints("axes"), static_cast<int>(out.size())));
  } else {
    for (size_t i = 0; i < out.size(); ++i) axes.push_back(static_cast<int>(i));
  }
  if (axes.size() != sizes.size()) {
    return ctx.Fault(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  }
  for (size_t k = 0; k < axes.size(); ++k) out[axes[k]] = sizes[k];
  ctx.Out(0, ctx.In(0).dtype, std::move(out));
  return {};
}

Val CenterCropPad(Lowering& l, int, const Index& idx) {
  const Dims &in = l.In(0).dims, &out = l.Out(0).dims;
  Index at(idx.size());
  for (size_t i = 0; i < idx.size(); ++i) {
    // Both the cropped and the padded part round down in front.
    Expr crop = FloorDiv(in[i] - out[i], 2), pad = FloorDiv(out[i] - in[i], 2);
    at[i] = idx[i] + Select(Lt(out[i], in[i]), crop, Expr(0) - pad);
  }
  return l.LoadOr(0, at, l.b.Const(ComputeType(l.In(0).dtype), 0));
}

const OpDef& kCenterCropPad = Register({.name = "CenterCropPad",
                                        .min_inputs = 2,
                                        .max_inputs = 2,
                                        .infer = InferCenterCropPad,
                                        .element = CenterCropPad,
                                        .expand = ExpandSizes<1>,
                                        .fusion = Fusion::kView,
                                        .samples = {"(f32[5,4], i64[2]=[3,7])"}});

}  // namespace

std::vector<bool> CutParts(const Graph& g, const Node& concat) {
  const TensorType& whole = g.value(concat.outputs[0]).type;
  const int axis = AxisOf(AttrOr<int64_t>(concat, "axis", 0), whole.rank());
  const int64_t block = BlockOf(whole.layout, axis);
  std::vector<bool> cut;
  Expr start = 0;
  for (size_t i = 0; i < concat.inputs.size(); ++i) {
    const Expr size = g.value(concat.inputs[i]).type.dims[axis];
    const bool last = i + 1 == concat.inputs.size();
    cut.push_back(block > 1 && !(DivisibleBy(start, block) && (last || DivisibleBy(size, block))));
    start += size;
  }
  return cut;
}

int64_t LanesOfParts(const Graph& g, const Node& concat) {
  const TensorType& whole = g.value(concat.outputs[0]).type;
  const int axis = AxisOf(AttrOr<int64_t>(concat, "axis", 0), whole.rank());
  int64_t lanes = BlockOf(whole.layout, axis);
  for (const ValueId v : concat.inputs) {
    const TensorType& part = g.value(v).type;
    if (!part.dims[axis].IsConst()) return 1;
    lanes = std::gcd(lanes, part.dims[axis].value());
    if (!part.layout.IsNd()) lanes = std::gcd(lanes, BlockOf(part.layout, axis));
  }
  return lanes;
}
}  // namespace ge
