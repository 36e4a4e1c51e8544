// Operators without kin.
//   OneHot      y[.., c, ..] = indices[..] == c (negative ones count from depth) ? on : off
//   AffineGrid  y[n, .., c] = theta[n, c] . (x, y, .., 1), coordinates evenly spaced in [-1, 1]
//   Det         determinant by elimination with row exchange
//   Col2Im      y[n, c, p] = sum over blocks and offsets that cover p of x
#include <fmt/format.h>

#include "ir/expand.h"
#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Builder;
using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

// --- OneHot -------------------------------------------------------------------------------------

Status InferOneHot(InferContext& ctx) {
  Dims dims = ctx.In(0).dims;
  GE_ASSIGN(int axis, NormaliseAxis(ctx.Int("axis", -1), static_cast<int>(dims.size()) + 1));
  std::vector<Expr> depth{0};
  if (!IsFloat(ctx.In(1).dtype)) {
    GE_ASSIGN(depth, SizesOf(ctx, 1));
  }
  if (depth.size() != 1) return ctx.Fault("depth must be one number");
  dims.insert(dims.begin() + axis, depth[0]);
  ctx.Out(0, ctx.In(2).dtype, std::move(dims));
  return {};
}

Val OneHot(Lowering& l, int, const Index& idx) {
  int axis = AxisOf(l.Int("axis", -1), l.Out(0).rank());
  Index at = idx;
  at.erase(at.begin() + axis);
  Val c = l.b.Cast(l.Load(0, at), DType::kI64), depth = l.b.Index(l.Out(0).dims[axis]);
  c = l.b.Select(Less(c, Like(c, 0)), c + depth, c);
  return l.b.Select(Equal(c, l.b.Index(idx[axis])), l.Load(2, {1}), l.Load(2, {0}));
}

bool ExpandOneHot(Graph& g, NodeId n) {
  if (!IsFloat(g.value(g.node(n).inputs[1]).type.dtype)) return ExpandWithSizes(g, n, {1});
  ExpandBuilder e(g, n);
  ValueId depth = e.Cast(e.In(1), DType::kI64);
  if (auto known = e.Const(e.In(1)))
    depth = e.Ints({static_cast<int64_t>(FloatElement(*known, 0))});
  return e.Done({e.Op("OneHot", {e.In(0), depth, e.In(2)}, e.node().attrs)});
}

const OpDef& kOneHot = Register({.name = "OneHot",
                                 .min_inputs = 3,
                                 .max_inputs = 3,
                                 .infer = InferOneHot,
                                 .element = OneHot,
                                 .expand = ExpandOneHot,
                                 .fusion = Fusion::kGather,
                                 .samples = {"(i64[3]=[0,-1,7], i64[]=[4], f32[2])"}});

// --- AffineGrid ---------------------------------------------------------------------------------

Status InferAffineGrid(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 0, 3));
  GE_ASSIGN(std::vector<Expr> size, SizesOf(ctx, 1));
  if (size.size() != 4 && size.size() != 5) {
    return ctx.Fault(fmt::format("size has {} elements, must have 4 or 5", size.size()));
  }
  Dims dims{size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.push_back(size.size() - 2);
  ctx.Out(0, ctx.In(0).dtype, std::move(dims));
  return {};
}

Val AffineGrid(Lowering& l, int, const Index& idx) {
  const Dims& dims = l.Out(0).dims;
  int64_t axes = static_cast<int64_t>(dims.size()) - 2;
  bool corners = l.Int("align_corners", 0) != 0;
  DType f = ComputeType(l.Out(0).dtype);
  Expr n = idx[0], c = idx.back();
  Val y = l.Load(0, {n, c, axes});
  for (int64_t k = 0; k < axes; ++k) {
    // Coordinate k (x first) runs along the k-th axis from the last.
    Expr dim = dims[axes - k], i = idx[axes - k];
    Expr top = corners ? i * 2 : i * 2 + 1, bottom = corners ? Max(dim - 1, 1) : dim;
    Val coordinate = l.b.Cast(l.b.Index(top), f) / l.b.Cast(l.b.Index(bottom), f) - 1.0;
    y = y + l.Load(0, {n, c, k}) * coordinate;
  }
  return y;
}

const OpDef& kAffineGrid = Register({.name = "AffineGrid",
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .infer = InferAffineGrid,
                                     .element = AffineGrid,
                                     .expand = ExpandSizes<1>,
                                     .fusion = Fusion::kGather,
                                     .samples = {"(f32[1,2,3], i64[4]=[1,1,2,3])"}});

// --- Det ----------------------------------------------------------------------------------------

Status InferDet(InferContext& ctx) {
  GE_TRY(CheckMinRank(ctx, 0, 2));
  Dims dims = ctx.In(0).dims;
  GE_ASSIGN([[maybe_unused]] Expr n,
            SameDim(ctx, dims[dims.size() - 2], dims.back(), "rows and columns"));
  dims.resize(dims.size() - 2);
  ctx.Out(0, ctx.In(0).dtype, std::move(dims));
  return {};
}

// Row of the largest element of column k from row k on.
Expr PivotRow(Builder& b, int matrix, Expr n, Expr k) {
  auto size = [&](Expr row) { return b.Unary(Op::kAbs, b.Load(matrix, row * n + k)); };
  Val top = b.Reduce(ReduceOp::kMax, {n - k}, [&](const auto& r) { return size(k + r[0]); });
  Val row = b.Reduce(ReduceOp::kMin, {n - k}, [&](const auto& r) {
    return b.Select(Equal(size(k + r[0]), top), b.Index(k + r[0]), b.Index(n - 1));
  });
  return b.LetIndex(row, 0, INT64_MAX, n);
}

void LowerDet(Lowering& l) {
  Builder& b = l.b;
  Expr n = l.In(0).dims.back();
  DType f = ComputeType(l.In(0).dtype);
  l.ForEach(l.Out(0).dims, false, [&](const Index& batch) {
    int matrix = b.Alloc("matrix", f, n * n), product = b.Alloc("det", f, 1);
    b.For("r", n, LoopKind::kSerial, [&](Expr r) {
      b.For("c", n, LoopKind::kSerial, [&](Expr c) {
        Index at = batch;
        at.push_back(r);
        at.push_back(c);
        b.Store(matrix, r * n + c, l.Load(0, at));
      });
    });
    b.Store(product, 0, b.Const(f, 1));
    b.For("k", n, LoopKind::kSerial, [&](Expr k) {
      Expr pivot_row = PivotRow(b, matrix, n, k);
      b.For("c", n, LoopKind::kSerial, [&](Expr c) {
        Val low = b.Let(b.Load(matrix, k * n + c)), high = b.Let(b.Load(matrix, pivot_row * n + c));
        b.Store(matrix, k * n + c, high);
        b.Store(matrix, pivot_row * n + c, low);
      });
      Val pivot = b.Let(b.Load(matrix, k * n + k));
      Val sign = b.Select(Equal(b.Index(pivot_row), b.Index(k)), b.Const(f, 1), b.Const(f, -1));
      b.Store(product, 0, b.Load(product, 0) * pivot * sign);
      Val safe = b.Select(Equal(pivot, b.Const(f, 0)), b.Const(f, 1), pivot);
      b.For("r", n - 1 - k, LoopKind::kSerial, [&](Expr r) {
        Expr row = k + 1 + r;
        Val factor = b.Let(b.Load(matrix, row * n + k) / safe);
        b.For("c", n, LoopKind::kSerial, [&](Expr c) {
          Val x = b.Load(matrix, row * n + c) - factor * b.Load(matrix, k * n + c);
          b.Store(matrix, row * n + c, x);
        });
      });
    });
    l.Yield(0, batch, b.Let(b.Load(product, 0)));
  });
}

const OpDef& kDet = Register({.name = "Det",
                              .infer = InferDet,
                              .lower = LowerDet,
                              .samples = {"(f32[2,3,3])", "(f32[2,2])"}});

// --- Col2Im -------------------------------------------------------------------------------------

struct Blocks {
  Dims image, block;
  std::vector<int64_t> strides, pads, dilations;
  // Number of block positions along an axis.
  Expr Count(size_t i) const {
    Expr reach = (block[i] - 1) * dilations[i] + 1;
    return FloorDiv(image[i] + pads[i] + pads[i + image.size()] - reach, strides[i]) + 1;
  }
};

Blocks BlocksOf(const Node& n, Dims image, Dims block) {
  Blocks b{std::move(image), std::move(block), {}, {}, {}};
  size_t rank = b.image.size();
  auto list = [&](std::string_view name, size_t count, int64_t otherwise) {
    auto v = AttrOr<std::vector<int64_t>>(n, name, {});
    if (v.size() != count) v.assign(count, otherwise);
    return v;
  };
  b.strides = list("strides", rank, 1);
  b.pads = list("pads", 2 * rank, 0);
  b.dilations = list("dilations", rank, 1);
  return b;
}

Status InferCol2Im(InferContext& ctx) {
  GE_TRY(CheckRank(ctx, 0, 3));
  GE_ASSIGN(Dims image, SizesOf(ctx, 1));
  GE_ASSIGN(Dims block, SizesOf(ctx, 2));
  if (image.size() != block.size())
    return ctx.Fault("image_shape and block_shape differ in length");
  Dims dims{ctx.In(0).dims[0], FloorDiv(ctx.In(0).dims[1], Product(block))};
  dims.insert(dims.end(), image.begin(), image.end());
  ctx.Out(0, ctx.In(0).dtype, std::move(dims));
  return {};
}

Val Col2Im(Lowering& l, int, const Index& idx) {
  Blocks k = BlocksOf(l.node, SizesOf(l, 1), SizesOf(l, 2));
  size_t rank = k.image.size();
  Dims counts;
  for (size_t i = 0; i < rank; ++i) counts.push_back(k.Count(i));
  Val zero = l.b.Const(ComputeType(l.In(0).dtype), 0);
  return l.b.Reduce(ReduceOp::kSum, k.block, [&](const std::vector<Expr>& offset) {
    Index at(rank);
    Expr exact = 1;
    for (size_t i = 0; i < rank; ++i) {
      Expr start = idx[2 + i] + k.pads[i] - offset[i] * k.dilations[i];
      at[i] = FloorDiv(start, k.strides[i]);
      exact = And(exact, Eq(Mod(start, k.strides[i]), 0));
      exact = And(exact, And(Le(0, at[i]), Lt(at[i], counts[i])));
      at[i] = Min(Max(at[i], 0), counts[i] - 1);
    }
    Val x = l.Load(
        0, {idx[0], idx[1] * Product(k.block) + Linear(offset, k.block), Linear(at, counts)});
    return l.b.Select(Equal(l.b.Index(exact), l.b.ConstInt(DType::kI64, 1)), x, zero);
  });
}

const OpDef& kCol2Im = Register({.name = "Col2Im",
                                 .min_inputs = 3,
                                 .max_inputs = 3,
                                 .infer = InferCol2Im,
                                 .element = Col2Im,
                                 .expand = ExpandSizes<1, 2>,
                                 .fusion = Fusion::kGather,
                                 .samples = {"(f32[1,5,5], i64[2]=[5,5], i64[2]=[1,5])"}});

}  // namespace
}  // namespace ge
