// Depthwise Conv  Y[n, c, y, x] = B[c] + sum_{i, j} X[n, c, y*sh + i*dh - top, x*sw + j*dw - left]
// * W[c, i, j]
//
//   grid: images x channel blocks x groups of rows;  for row, tile of columns: vector over the
//   channels of a block, an accumulator for each column
//
// The columns of a tile share the weights and, where the windows overlap, the inputs.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "lower/cube_conv.h"
#include "lower/lowering_context.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

constexpr int kColumns = 4;        // of a tile
constexpr int64_t kMostTaps = 49;  // larger windows are loops, one column at a time

class DepthwiseLowering {
 public:
  DepthwiseLowering(const Graph& g, const Region& region, const SocSpec& soc, const ConvShape& s)
      : build_(g, region, soc), s_(s) {}

  Lowered Run() {
    in_ = PadInput(build_, s_);
    PackWeights();
    build_.AddKernel(fmt::format("depthwise {}x{} by {}", s_.kh, s_.kw, in_.c0),
                     [&](LoweringContext& c) { Kernel(c); });
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  void PackWeights() {
    const int64_t c0 = in_.c0, c1 = in_.c1.value(), window = s_.kh * s_.kw, channels = s_.c.value();
    Pack pack;
    pack.source = s_.weights;
    pack.key = fmt::format("depthwise by {}", c0);
    pack.bytes = c1 * window * c0 * 4;
    pack.fill = [=](const Constant& w, std::byte* out) {
      float* to = reinterpret_cast<float*>(out);
      for (int64_t i = 0; i < c1 * window * c0; ++i) {
        const int64_t c = i / (window * c0) * c0 + i % c0;
        to[i] = c < channels ? FloatAt(w, c * window + i / c0 % window) : 0.0f;
      }
    };
    weights_ = build_.AddPack(std::move(pack));
  }

  void Kernel(LoweringContext& c) {
    x_ = PaddedArg(c, s_, in_);
    w_ = c.AddArg({KernelArg::Kind::kPack, weights_}, "w", DType::kF32,
                  build_.lowered.packs[weights_].bytes / 4, false);
    const double ns = static_cast<double>(HintValue(s_.ow) * s_.kh * s_.kw) * 0.4;
    const int64_t rows = RowsPerChunk(build_.soc, ns, HintValue(s_.oh),
                                      static_cast<double>(HintValue(s_.n * in_.c1)));
    Expr groups = CeilDiv(s_.oh, rows);
    c.b().For("p", s_.n * in_.c1 * groups, LoopKind::kParallel, [&](Expr p) {
      Expr part = groups.IsConst(1) ? Expr(0) : Mod(p, groups),
           plane = groups.IsConst(1) ? p : FloorDiv(p, groups);
      Expr n = s_.n.IsConst(1) ? Expr(0) : FloorDiv(plane, in_.c1),
           c1 = s_.n.IsConst(1) ? plane : Mod(plane, in_.c1);
      Expr first = part * rows;
      Expr count = DivisibleBy(s_.oh, rows) ? Expr(rows) : Min(rows, s_.oh - first);
      c.b().For("y", count, LoopKind::kSerial, [&](Expr y) {
        const int columns = s_.kh * s_.kw <= kMostTaps ? kColumns : 1;
        ForRowTiles(c.b(), s_.ow, columns, [&](Expr x, int m) { Tile(c, n, c1, first + y, x, m); });
      });
    });
  }

  // Columns [x, x + m) of row y.
  void Tile(LoweringContext& c, Expr n, Expr c1, Expr y, Expr x, int m) {
    auto lanes = [&](int64_t count) {
      c.b().For("c", count, LoopKind::kVector, [&](Expr lane) {
        std::vector<Val> sums = s_.kh * s_.kw <= kMostTaps
                                    ? Sums(c, n, c1, y, x, m, lane)
                                    : std::vector<Val>{Sum(c, n, c1, y, x, lane)};
        Expr channel = c1 * in_.c0 + lane;
        Val bias;
        if (s_.has_bias) bias = c.b().Let(c.Read(s_.bias, {channel}));
        for (int j = 0; j < m; ++j)
          c.Yield(s_.y, s_.At(n, channel, y, x + j), s_.has_bias ? sums[j] + bias : sums[j]);
      });
    };
    const int64_t last = s_.c.value() % in_.c0;
    if (last == 0) return lanes(in_.c0);
    c.b().If(
        c.b().Cast(c.b().Index(Lt(c1, in_.c1 - 1)), DType::kBool), [&] { lanes(in_.c0); },
        [&] { lanes(last); });
  }

  Val Input(LoweringContext& c, Expr n, Expr c1, Expr y, Expr x, Expr i, Expr j, Expr lane) {
    return c.b().Load(x_, in_.base + n * in_.sn + c1 * in_.sc1 + (y * s_.sh + i * s_.dh) * in_.sy +
                              (x * s_.sw + j * s_.dw) * in_.sx + lane);
  }
  Val Weight(LoweringContext& c, Expr c1, Expr i, Expr j, Expr lane) {
    return c.b().Load(w_, ((c1 * s_.kh + i) * s_.kw + j) * in_.c0 + lane);
  }

  Val Sum(LoweringContext& c, Expr n, Expr c1, Expr y, Expr x, Expr lane) {
    return c.b().Reduce(tile::ReduceOp::kSum, {s_.kh, s_.kw}, [&](const std::vector<Expr>& k) {
      return Input(c, n, c1, y, x, k[0], k[1], lane) * Weight(c, c1, k[0], k[1], lane);
    });
  }

  // Row by row of the window, so that few weights and inputs are alive at once.
  std::vector<Val> Sums(LoweringContext& c, Expr n, Expr c1, Expr y, Expr x, int m, Expr lane) {
    std::vector<Val> sums(m);
    for (int64_t i = 0; i < s_.kh; ++i) {
      for (int column = 0; column < m; ++column) {
        Val sum = sums[column];
        for (int64_t j = 0; j < s_.kw; ++j) {
          Val product = Input(c, n, c1, y, x + column, i, j, lane) * Weight(c, c1, i, j, lane);
          sum = sum.valid() ? sum + product : product;
        }
        sums[column] = c.b().Let(sum);
      }
    }
    return sums;
  }

  CubeBuild build_;
  ConvShape s_;
  PaddedInput in_;
  int weights_ = -1, x_ = -1, w_ = -1;
};

}  // namespace

Lowered LowerDepthwise(const Graph& g, const Region& region, const SocSpec& soc,
                       const ConvShape& s) {
  return DepthwiseLowering(g, region, soc, s).Run();
}

}  // namespace ge
