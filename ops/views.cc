// Operators whose every output element is one input element at another index.
//   Transpose        y[i0..] = x[..], axis k of y is axis perm[k] of x
//   Expand           y[i] = x[i broadcast]               Tile  y[i] = x[i mod dims]
//   Trilu            y[i,j] = x[i,j] on one side of diagonal k, else 0
//   DepthToSpace     y[n,c,h*b+i,w*b+j] = x[n,(i*b+j)*C+c,h,w] (CRD: c*b*b+i*b+j)
//   SpaceToDepth     y[n,(i*b+j)*C+c,h,w] = x[n,c,h*b+i,w*b+j]
//   ReverseSequence  y[t] = x[len-1-t] for t < len of the batch, else x[t]
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Val;

OpDef ViewOp(const char* name, int operands, Status (*infer)(InferContext&),
             Val (*element)(Lowering&, int, const Index&), std::vector<std::string> samples) {
  return {.name = name,
          .min_inputs = operands,
          .max_inputs = operands,
          .infer = infer,
          .element = element,
          .fusion = Fusion::kView,
          .halves = Halves::kFollow,
          .flops_per_element = 0,
          .samples = std::move(samples)};
}

// Facts of output 0, a constant shape, of which element k is element source(index of k) of input 0.
template <class F>
void MapFacts(InferContext& ctx, F source) {
  const auto* elems = ctx.Elems(0);
  if (!elems || !ctx.Wants(0)) return;
  const Dims dims = ctx.graph.value(ctx.node.outputs[0]).type.dims;
  Expr count = Product(dims);
  if (!ConstDims(dims) || !ConstDims(ctx.In(0).dims) || !count.IsConst() || count.value() > 64)
    return;
  std::vector<Expr> out;
  for (int64_t k = 0; k < count.value(); ++k) {
    Expr at = Linear(source(Unlinear(k, dims)), ctx.In(0).dims);
    out.push_back((*elems)[at.value()]);
  }
  ctx.OutElems(0, std::move(out));
}

// --- Transpose ----------------------------------------------------------------------------------

std::vector<int64_t> PermOf(const Node& n, int rank) {
  auto perm = AttrOr<std::vector<int64_t>>(n, "perm", {});
  if (perm.empty()) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  return perm;
}

Index TransposedIndex(const Index& out, const std::vector<int64_t>& perm) {
  Index in(out.size());
  for (size_t k = 0; k < perm.size(); ++k) in[perm[k]] = out[k];
  return in;
}

Status InferTranspose(InferContext& ctx) {
  const Dims& in = ctx.In(0).dims;
  auto perm = PermOf(ctx.node, static_cast<int>(in.size()));
  auto sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Dims out;
  for (size_t k = 0; k < sorted.size(); ++k) {
    if (perm.size() != in.size() || sorted[k] != static_cast<int64_t>(k)) {
      return ctx.Fault(fmt::format("perm is no permutation of the {} axes", in.size()));
    }
  }
  for (int64_t axis : perm) out.push_back(in[axis]);
  ctx.Out(0, ctx.In(0).dtype, std::move(out));
  MapFacts(ctx, [&](const Index& k) { return TransposedIndex(k, perm); });
  return {};
}

Val Transpose(Lowering& l, int, const Index& idx) {
  return l.Load(0, TransposedIndex(idx, PermOf(l.node, l.In(0).rank())));
}

const OpDef& kTranspose = Register(ViewOp("Transpose", 1, InferTranspose, Transpose,
                                          {"(f32[2,3,4]) {perm=[1,2,0]}", "(f32[2,3])"}));

// --- Expand, Tile -------------------------------------------------------------------------------

Status InferExpand(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 1, 1));
  GE_ASSIGN(Dims shape, SizesOf(ctx, 1));
  for (Expr e : shape) {
    if (e.IsConst() && e.value() < 0)
      return ctx.Fault("shape " + ShapeText(shape) + " has a negative dim");
  }
  GE_ASSIGN(Dims out, Broadcast(ctx, ctx.In(0).dims, shape));
  if (!Product(out).IsValid())
    return ctx.Fault("shape " + ShapeText(shape) + " has too many elements");
  const Dims in = ctx.In(0).dims;
  ctx.Out(0, ctx.In(0).dtype, std::move(out));
  MapFacts(ctx, [&](const Index& k) {
    Index at(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
      at[i] = in[i].IsConst(1) ? Expr(0) : k[k.size() - in.size() + i];
    }
    return at;
  });
  return {};
}

Val Expand(Lowering& l, int, const Index& idx) { return l.LoadBroadcast(0, idx); }

Status InferTile(InferContext& ctx) {
  const Dims in = ctx.In(0).dims;
  GE_ASSIGN(Dims repeats, SizesOf(ctx, 1));
  if (repeats.size() != in.size()) {
    return ctx.Fault(fmt::format("{} repeats for rank {}", repeats.size(), in.size()));
  }
  Dims out(in.size());
  for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] * repeats[i];
  ctx.Out(0, ctx.In(0).dtype, std::move(out));
  MapFacts(ctx, [&](const Index& k) {
    Index at(in.size());
    for (size_t i = 0; i < in.size(); ++i) at[i] = Mod(k[i], in[i]);
    return at;
  });
  return {};
}

Val Tile(Lowering& l, int, const Index& idx) {
  const Dims &in = l.In(0).dims, &out = l.Out(0).dims;
  Index at(in.size());
  for (size_t i = 0; i < in.size(); ++i) at[i] = in[i] == out[i] ? idx[i] : Mod(idx[i], in[i]);
  return l.Load(0, at);
}

OpDef Sized(OpDef def) {
  def.expand = ExpandSizes<1>;
  return def;
}

const OpDef& kExpand =
    Register(Sized(ViewOp("Expand", 2, InferExpand, Expand, {"(f32[3,1], i64[3]=[2,1,4])"})));
const OpDef& kTile =
    Register(Sized(ViewOp("Tile", 2, InferTile, Tile, {"(f32[2,3], i64[2]=[2,1])"})));

// --- Trilu --------------------------------------------------------------------------------------

Status InferTrilu(InferContext& ctx) {
  GE_TRY(CheckMinRank(ctx, 0, 2));
  return InferSameAsInput(ctx);
}

Val Trilu(Lowering& l, int, const Index& idx) {
  const int64_t far = int64_t{1} << 40;
  Expr k = l.Has(1) ? IndexOperand(l, 1, 0, -far, far) : Expr(0);
  Val row = l.b.Index(idx[idx.size() - 2] + k), column = l.b.Index(idx.back());
  Val keep = l.Int("upper", 1) ? LessEqual(row, column) : LessEqual(column, row);
  Val x = l.Load(0, idx);
  return l.b.Select(keep, x, Like(x, 0));
}

const OpDef& kTrilu = Register({.name = "Trilu",
                                .min_inputs = 1,
                                .max_inputs = 2,
                                .infer = InferTrilu,
                                .element = Trilu,
                                .fusion = Fusion::kPointwise,
                                .in_place = true,
                                .halves = Halves::kFollow,
                                .samples = {"(f32[2,3,4]) {upper=0}"}});

// --- DepthToSpace, SpaceToDepth -----------------------------------------------------------------

Status InferDepthToSpace(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 0, 4));
  const Dims& in = ctx.In(0).dims;
  int64_t b = ctx.Int("blocksize", 1);
  if (b <= 0) return ctx.Fault("blocksize must be positive");
  ctx.Check(Eq(Mod(in[1], b * b), 0), "channels must be a multiple of blocksize * blocksize");
  ctx.Out(0, ctx.In(0).dtype, {in[0], FloorDiv(in[1], b * b), in[2] * b, in[3] * b});
  return {};
}

Val DepthToSpace(Lowering& l, int, const Index& idx) {
  int64_t b = l.Int("blocksize", 1);
  Expr i = Mod(idx[2], b), j = Mod(idx[3], b), at = i * b + j;
  bool crd = l.Str("mode", "DCR") == "CRD";
  Expr channel = crd ? idx[1] * (b * b) + at : at * l.Out(0).dims[1] + idx[1];
  return l.Load(0, {idx[0], channel, FloorDiv(idx[2], b), FloorDiv(idx[3], b)});
}

Status InferSpaceToDepth(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 0, 4));
  const Dims& in = ctx.In(0).dims;
  int64_t b = ctx.Int("blocksize", 1);
  if (b <= 0) return ctx.Fault("blocksize must be positive");
  for (int axis : {2, 3}) {
    ctx.Check(Eq(Mod(in[axis], b), 0), "height and width must be multiples of blocksize");
  }
  ctx.Out(0, ctx.In(0).dtype, {in[0], in[1] * (b * b), FloorDiv(in[2], b), FloorDiv(in[3], b)});
  return {};
}

Val SpaceToDepth(Lowering& l, int, const Index& idx) {
  int64_t b = l.Int("blocksize", 1);
  Expr channels = l.In(0).dims[1], at = FloorDiv(idx[1], channels);
  Expr h = idx[2] * b + FloorDiv(at, b), w = idx[3] * b + Mod(at, b);
  return l.Load(0, {idx[0], Mod(idx[1], channels), h, w});
}

const OpDef& kDepthToSpace = Register(
    ViewOp("DepthToSpace", 1, InferDepthToSpace, DepthToSpace,
           {"(f32[1,8,2,3]) {blocksize=2}", "(f32[1,8,2,3]) {blocksize=2, mode=\"CRD\"}"}));
const OpDef& kSpaceToDepth = Register(
    ViewOp("SpaceToDepth", 1, InferSpaceToDepth, SpaceToDepth, {"(f32[1,2,4,6]) {blocksize=2}"}));

// --- ReverseSequence ----------------------------------------------------------------------------

Status InferReverseSequence(InferContext& ctx) {
  GE_TRY(CheckMinRank(ctx, 0, 2));
  GE_TRY(CheckRank(ctx, 1, 1));
  int64_t time = ctx.Int("time_axis", 0), batch = ctx.Int("batch_axis", 1);
  GE_ASSIGN(int t, NormaliseAxis(time, ctx.In(0).rank()));
  GE_ASSIGN(int n, NormaliseAxis(batch, ctx.In(0).rank()));
  if (t == n) return ctx.Fault("time_axis and batch_axis must differ");
  GE_ASSIGN([[maybe_unused]] Expr same,
            SameDim(ctx, ctx.In(0).dims[n], ctx.In(1).dims[0], "batch"));
  return InferSameAsInput(ctx);
}

Val ReverseSequence(Lowering& l, int, const Index& idx) {
  int rank = l.In(0).rank();
  int t = AxisOf(l.Int("time_axis", 0), rank), n = AxisOf(l.Int("batch_axis", 1), rank);
  Expr dim = l.In(0).dims[t];
  Val length = l.b.Cast(l.Load(1, {idx[n]}), DType::kI64);
  Val time = l.b.Index(idx[t]), limit = l.b.Index(dim);
  length = Max(l.b.ConstInt(DType::kI64, 0), Min(length, limit));
  Val at = l.b.Select(Less(time, length), length - time - 1.0, time);
  Index from = idx;
  from[t] = l.b.LetIndex(at, 0, INT64_MAX, dim);
  return l.Load(0, from);
}

const OpDef& kReverseSequence = Register({.name = "ReverseSequence",
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .infer = InferReverseSequence,
                                          .element = ReverseSequence,
                                          .fusion = Fusion::kGather,
                                          .samples = {"(f32[4,3], i64[3]=[1,4,2])"}});

}  // namespace
}  // namespace ge
