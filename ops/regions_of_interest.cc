// Operators that read X at positions or in regions that data give:
//   RoiAlign    Y[r, c, i, j] = mean or maximum of bilinear samples within bin (i, j) of roi r
//   MaxRoiPool  Y[r, c, i, j] = maximum of X over the pixels of bin (i, j) of roi r
//   DeformConv  a convolution whose taps are moved by offsets, bilinear between pixels, times a
//   mask
#include <fmt/format.h>

#include <limits>

#include "base/check.h"
#include "ir/opdef.h"
#include "ops/positions.h"
#include "ops/shapes.h"
#include "ops/sizes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

Val Number(tile::Builder& b, Expr e, DType t) { return b.Cast(b.Index(e), t); }

Status InferRoiAlign(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 4));
  GE_TRY(CheckRank(c, 1, 2));
  GE_TRY(CheckRank(c, 2, 1));
  c.Check(Eq(c.In(1).dims[1], 4),
          fmt::format("rois {} must have 4 coordinates", ShapeText(c.In(1).dims)));
  const std::string mode = c.Str("mode", "avg");
  if (mode != "avg" && mode != "max")
    return c.Fault(fmt::format("mode is '{}', but must be avg or max", mode));
  const int64_t h = c.Int("output_height", 1), w = c.Int("output_width", 1);
  if (h < 1 || w < 1 || c.Int("sampling_ratio", 0) < 0)
    return c.Fault("output_height, output_width must be positive, sampling_ratio not negative");
  c.Out(0, c.In(0).dtype, {c.In(1).dims[0], c.In(0).dims[1], h, w});
  return {};
}

// One axis of a bilinear sample: two pixels and their weights (both 0 outside).
struct Between {
  Expr low, high;
  Val low_weight, high_weight;
};

// RoiAlign's rule: up to one pixel outside counts as the edge.
Between ClampedBetween(Lowering& l, Val at, Expr n) {
  auto& b = l.b;
  const Val size = Number(b, n, at.type()), one = Like(at, 1), zero = Like(at, 0);
  const Val outside = Or(Less(at, Like(at, -1)), Less(size, at));
  const Val v = b.Let(Max(at, zero));
  const Val low = b.Let(Min(b.Unary(Op::kFloor, v), size - 1));
  const Val part = b.Let(Min(v, size - 1) - low);
  const Expr i = BindPosition(l, b.Cast(low, DType::kI64), n);
  const Expr k = BindPosition(l, b.Cast(low + 1, DType::kI64), n);
  return {i, k, b.Select(outside, zero, one - part), b.Select(outside, zero, part)};
}

struct RoiBins {
  Val start_h, start_w, bin_h, bin_w;
  Expr grid_h, grid_w;
  Expr batch;
};

RoiBins BinsOf(Lowering& l, Expr r) {
  auto& b = l.b;
  const DType t = DType::kF32;
  const double scale = l.Float("spatial_scale", 1.0F);
  const bool half = l.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  auto edge = [&](int64_t k) {
    const Val v = b.Cast(l.Load(1, {r, k}), t) * scale;
    return b.Let(half ? v - 0.5 : v);
  };
  RoiBins k;
  k.start_w = edge(0);
  k.start_h = edge(1);
  Val w = edge(2) - k.start_w, h = edge(3) - k.start_h;
  if (!half) {
    w = Max(w, Like(w, 1));
    h = Max(h, Like(h, 1));
  }
  k.bin_h = b.Let(h / static_cast<double>(l.Int("output_height", 1)));
  k.bin_w = b.Let(w / static_cast<double>(l.Int("output_width", 1)));
  const int64_t ratio = l.Int("sampling_ratio", 0);
  auto grid = [&](Val bin) {
    if (ratio > 0) return Expr(ratio);
    return b.LetIndex(Max(b.Cast(b.Unary(Op::kCeil, bin), DType::kI64), b.ConstInt(DType::kI64, 0)),
                      0, INT64_MAX);
  };
  k.grid_h = grid(k.bin_h);
  k.grid_w = grid(k.bin_w);
  k.batch = LoadPosition(l, 2, {r}, l.In(0).dims[0]);
  return k;
}

// Where a sample lies and what its pixels weigh is computed once for all channels, which are lanes.
void LowerRoiAlign(Lowering& l) {
  const Dims &x = l.In(0).dims, &y = l.Out(0).dims;
  const bool average = l.Str("mode", "avg") == "avg";
  l.ForEach({y[0], y[2], y[3]}, false, [&](const Index& o) {
    auto& b = l.b;
    const RoiBins k = BinsOf(l, o[0]);
    const DType t = DType::kF32;
    const Expr channels = x[1];
    auto place = [&](Val start, Val bin, Expr i, Expr j, Expr grid) {
      return start + Number(b, i, t) * bin + (Number(b, j, t) + 0.5) * bin / Number(b, grid, t);
    };
    const int sums = b.Alloc("sums", t, channels);
    b.For("c", channels, LoopKind::kVector, [&](Expr c) {
      b.Store(sums, c, b.F(average ? 0 : -std::numeric_limits<double>::infinity()));
    });
    auto add = [&](const Between& v, const Between& h) {
      auto weight = [&](Val a, Val c) { return b.Let(a * c); };
      const Val w[] = {weight(v.low_weight, h.low_weight), weight(v.low_weight, h.high_weight),
                       weight(v.high_weight, h.low_weight), weight(v.high_weight, h.high_weight)};
      b.For("c", channels, LoopKind::kVector, [&](Expr c) {
        auto pixel = [&](int i, Expr p, Expr q) {
          return w[i] * b.Cast(l.Load(0, {k.batch, c, p, q}), t);
        };
        const Val p = pixel(0, v.low, h.low), q = pixel(1, v.low, h.high),
                  r = pixel(2, v.high, h.low), s = pixel(3, v.high, h.high);
        const Val before = b.Load(sums, c);
        b.Store(sums, c,
                average ? before + (p + q + r + s) : Max(before, Max(Max(p, q), Max(r, s))));
      });
    };
    b.For("h", k.grid_h, LoopKind::kSerial, [&](Expr g) {
      const Between v =
          ClampedBetween(l, b.Let(place(k.start_h, k.bin_h, o[1], g, k.grid_h)), x[2]);
      const Between kept{v.low, v.high, b.Let(v.low_weight), b.Let(v.high_weight)};
      b.For("w", k.grid_w, LoopKind::kSerial, [&](Expr f) {
        add(kept, ClampedBetween(l, b.Let(place(k.start_w, k.bin_w, o[2], f, k.grid_w)), x[3]));
      });
    });
    const Val count = b.Let(Max(Number(b, k.grid_h * k.grid_w, t), b.F(1)));
    b.For("c", channels, LoopKind::kVector, [&](Expr c) {
      const Val v = b.Load(sums, c);
      l.Yield(0, {o[0], c, o[1], o[2]},
              b.Cast(average ? v / count : v, ComputeType(l.Out(0).dtype)));
    });
  });
}

const OpDef& kRoiAlign = Register(
    {.name = "RoiAlign",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = InferRoiAlign,
     .lower = LowerRoiAlign,
     .flops_per_element = 100,
     .samples =
         {"(f32[1,2,6,7], f32[3,4], i64[3]) {output_height=2, output_width=2, sampling_ratio=2}",
          "(f32[1,19,6,7], f32[3,4], i64[3]) {output_height=2, output_width=3, mode=\"max\"}"},
     .tolerance = 1e-4});

Status InferMaxRoiPool(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 4));
  GE_TRY(CheckRank(c, 1, 2));
  const auto size = c.Ints("pooled_shape");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return c.Fault("pooled_shape must have two positive values");
  c.Check(Eq(c.In(1).dims[1], 5),
          fmt::format("rois {} must have 5 values", ShapeText(c.In(1).dims)));
  c.Out(0, c.In(0).dtype, {c.In(1).dims[0], c.In(0).dims[1], size[0], size[1]});
  return {};
}

void LowerMaxRoiPool(Lowering& l) {
  const Dims& x = l.In(0).dims;
  const auto size = l.Ints("pooled_shape");
  const double scale = l.Float("spatial_scale", 1.0F);
  l.ForEach(l.Out(0).dims, false, [&](const Index& o) {
    auto& b = l.b;
    const DType t = DType::kF32;
    auto corner = [&](int64_t k) {  // rounded, halves away from zero
      const Val v = b.Let(b.Cast(l.Load(1, {o[0], k}), t) * scale);
      const Val up = b.Unary(Op::kFloor, b.Unary(Op::kAbs, v) + 0.5);
      return b.Let(b.Select(Less(v, Like(v, 0)), -up, up));
    };
    // Pixels [begin, end) of one axis of the bin.
    auto range = [&](Val lo, Val hi, Expr i, int64_t bins, Expr n) {
      const Val bin = b.Let(Max(hi - lo + 1, b.F(1)) / static_cast<double>(bins));
      auto bound = [&](Val v) {
        return b.Cast(Max(Min(v + lo, Number(b, n, t)), b.F(0)), DType::kI64);
      };
      const Expr begin =
          b.LetIndex(bound(b.Unary(Op::kFloor, Number(b, i, t) * bin)), 0, Bounds(n).hi);
      const Expr end =
          b.LetIndex(bound(b.Unary(Op::kCeil, Number(b, i + 1, t) * bin)), 0, Bounds(n).hi);
      return std::pair{begin, Max(end - begin, 0)};
    };
    const Expr batch = BindPosition(l, b.Cast(l.Load(1, {o[0], 0}), DType::kI64), x[0]);
    const auto [h, rows] = range(corner(2), corner(4), o[2], size[0], x[2]);
    const auto [w, cols] = range(corner(1), corner(3), o[3], size[1], x[3]);
    const Val top =
        b.Reduce(ReduceOp::kMax, {rows, cols}, [&, h = h, w = w](const std::vector<Expr>& k) {
          return l.Load(0, {batch, o[1], h + k[0], w + k[1]});
        });
    const Val empty = b.Cast(b.Index(Eq(rows * cols, 0)), DType::kBool);
    l.Yield(0, o, b.Select(empty, Like(top, 0), top));
  });
}

const OpDef& kMaxRoiPool = Register({.name = "MaxRoiPool",
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .infer = InferMaxRoiPool,
                                     .lower = LowerMaxRoiPool,
                                     .flops_per_element = 50});

Result<Window> DeformWindow(const Node& n, const Dims& x, const Dims& w) {
  return ForwardWindow(n, Tail(x, 2), Tail(w, 2));
}

Status InferDeformConv(InferContext& c) {
  const Dims &x = c.In(0).dims, &w = c.In(1).dims, &offset = c.In(2).dims;
  if (x.size() != 4 || w.size() != 4 || offset.size() != 4)
    return Unsupported(fmt::format("X {}, W {} and offset {} must have rank 4", ShapeText(x),
                                   ShapeText(w), ShapeText(offset)));
  GE_ASSIGN(const Window win, DeformWindow(c.node, x, w));
  const int64_t group = c.Int("group", 1), parts = c.Int("offset_group", 1);
  if (group < 1 || parts < 1) return c.Fault("group and offset_group must be at least 1");
  const Expr taps = win.kernel[0] * win.kernel[1];
  c.Check(Eq(x[1], w[1] * group),
          fmt::format("X {} does not have the channels of W {}", ShapeText(x), ShapeText(w)));
  c.Check(Eq(offset[1], taps * (2 * parts)),
          fmt::format("offset {} must have {} channels", ShapeText(offset),
                      ToString(taps * (2 * parts))));
  c.Out(0, c.In(0).dtype, {x[0], w[0], win.out[0], win.out[1]});
  return {};
}

// A bilinear sample of plane (n, c) at (y, x); zeros outside.
Val SamplePlane(Lowering& l, Expr n, Expr c, Val y, Val x) {
  auto& b = l.b;
  const Dims& dims = l.In(0).dims;
  const Val y0 = b.Let(b.Unary(Op::kFloor, y)), x0 = b.Let(b.Unary(Op::kFloor, x));
  const Val fy = b.Let(y - y0), fx = b.Let(x - x0);
  auto pixel = [&](int64_t dy, int64_t dx) {
    const Val py = b.Let(b.Cast(y0, DType::kI64) + b.ConstInt(DType::kI64, dy)),
              px = b.Let(b.Cast(x0, DType::kI64) + b.ConstInt(DType::kI64, dx));
    auto in = [&](Val v, Expr size) {
      return And(LessEqual(Like(v, 0), v), Less(v, b.Index(size)));
    };
    const Val v = l.Load(0, {n, c, BindPosition(l, py, dims[2]), BindPosition(l, px, dims[3])});
    return b.Select(And(in(py, dims[2]), in(px, dims[3])), v, Like(v, 0));
  };
  return (1.0 - fy) * ((1.0 - fx) * pixel(0, 0) + fx * pixel(0, 1)) +
         fy * ((1.0 - fx) * pixel(1, 0) + fx * pixel(1, 1));
}

void LowerDeformConv(Lowering& l) {
  const Dims &x = l.In(0).dims, &w = l.In(1).dims;
  auto window = DeformWindow(l.node, x, w);
  GE_CHECK(window.ok());
  const Window& win = *window;
  const int64_t parts = l.Int("offset_group", 1);
  const Expr per_group = FloorDiv(w[0], l.Int("group", 1)), per_part = FloorDiv(x[1], parts),
             taps = w[2] * w[3];
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    auto& b = l.b;
    Val sum = b.Reduce(ReduceOp::kSum, Tail(w, 1), [&](const std::vector<Expr>& k) {
      const Expr channel = FloorDiv(o[1], per_group) * w[1] + k[0],
                 part = FloorDiv(channel, per_part), tap = k[1] * w[3] + k[2];
      auto place = [&](int axis) {
        const Val moved = l.Load(2, {o[0], (part * taps + tap) * 2 + axis, o[2], o[3]});
        return b.Let(moved + Number(b, win.At(axis, o[2 + axis], k[1 + axis]), moved.type()));
      };
      Val v =
          SamplePlane(l, o[0], channel, place(0), place(1)) * l.Load(1, {o[1], k[0], k[1], k[2]});
      if (l.Has(4)) v = v * l.Load(4, {o[0], part * taps + tap, o[2], o[3]});
      return v;
    });
    if (l.Has(3)) sum = sum + l.Load(3, {o[1]});
    l.Yield(0, o, sum);
  });
}

const OpDef& kDeformConv =
    Register({.name = "DeformConv",
              .min_inputs = 3,
              .max_inputs = 5,
              .infer = InferDeformConv,
              .lower = LowerDeformConv,
              .flops_per_element = 50,
              .samples = {"(f32[1,2,4,4], f32[3,2,2,2], f32[1,8,3,3], f32[3], f32[1,4,3,3])"},
              .tolerance = 1e-4});

Status InferMaxUnpool(InferContext& c) {
  const Dims& x = c.In(0).dims;
  GE_TRY(CheckMinRank(c, 0, 3));
  GE_TRY(CheckRank(c, 1, c.In(0).rank()));
  if (c.Has(2)) {
    GE_ASSIGN(const std::vector<Expr> size, SizesOf(c, 2));
    if (size.size() != x.size()) return c.Fault("output_shape must have one value per axis");
    c.Out(0, c.In(0).dtype, size);
    return {};
  }
  const auto kernel = c.Ints("kernel_shape");
  auto strides = c.Ints("strides"), pads = c.Ints("pads");
  const size_t rank = x.size() - 2;
  if (strides.empty()) strides.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    return c.Fault("kernel_shape, strides or pads do not fit X");
  Dims out = {x[0], x[1]};
  for (size_t i = 0; i < rank; ++i)
    out.push_back((x[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i]);
  c.Out(0, c.In(0).dtype, out);
  return {};
}

// Scatters by data: rt/host/unpool.cc.
const OpDef& kMaxUnpool = Register({.name = "MaxUnpool",
                                    .min_inputs = 2,
                                    .max_inputs = 3,
                                    .infer = InferMaxUnpool,
                                    .expand = ExpandSizes<2>,
                                    .host = "MaxUnpool"});

}  // namespace
}  // namespace ge
