// Depthwise Conv  Y[n, c, y, x] = B[c] + sum_{i, j} X[n, c, y*sh + i*dh - top, x*sw + j*dw - left]
// * W[c, i, j]
//
//   grid: images x channel blocks x groups of rows;  for row, tile of columns: vector over the
//   channels of a block, an accumulator for each column
//
// The columns of a tile share the weights and, where the windows overlap, the inputs. An input
// without a halo is read where it lies: windows at the edges are cut, so nobody fills borders.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "lower/cube_conv.h"
#include "lower/lowering_context.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

constexpr int kColumns = 4, kMostColumns = 16;  // of a tile

class DepthwiseLowering {
 public:
  DepthwiseLowering(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy,
                    const ConvShape& s)
      : build_(g, region, soc), s_(s) {
    build_.Fix(policy, ConvProblem(g, s));
    build_.RefuseForm("direct");
    if (build_.fixed.k > 0 || !build_.fixed.pack.empty())
      build_.Refuse(ToString(build_.fixed), "k and pack are for matrix products");
  }

  Lowered Run() {
    in_ = PadInput(build_, s_, Unrolled());
    Choose();
    PackWeights();
    build_.AddKernel(fmt::format("depthwise {}x{} by {}", s_.kh, s_.kw, in_.c0),
                     [&](LoweringContext& c) { Kernel(c); });
    NoteChoice();
    // Blocks of other sizes may have pad lanes where the input has none.
    const auto& outputs = build_.region.outputs;
    build_.AddBorders(std::all_of(outputs.begin(), outputs.end(), [&](ValueId v) {
      const View view = BufferView(build_.g.value(v));
      return !view.HasPadLanes() || view.order[1].tile == in_.c0;
    }));
    return std::move(build_.lowered);
  }

 private:
  bool Unrolled() const { return s_.kh * s_.kw <= kMostTaps; }

  void Choose() {
    columns_ = Unrolled() ? kColumns : 1;
    if (const DotChoice& c = build_.fixed; c.m > 0) {
      if (c.nv == 1 && c.m <= kMostColumns && (Unrolled() || c.m == 1))
        columns_ = c.m;
      else
        build_.Refuse(fmt::format("tile {}x{}", c.m, c.nv),
                      Unrolled() ? fmt::format("depthwise tiles are 1x1 to {}x1", kMostColumns)
                                 : "depthwise tiles of such a large window are 1x1");
    }
    // As the products around it, which have some six times fewer channels on their other side.
    const double channels = static_cast<double>(s_.c.value());
    rows_outside_ = build_.fixed.order.empty()
                        ? RowsOutside(build_.soc, channels * channels / 6 * 4, s_)
                        : build_.fixed.order == "mn";
    const int64_t planes = rows_outside_ ? HintValue(in_.c1) : 1;
    const double ns = static_cast<double>(HintValue(s_.ow) * s_.kh * s_.kw * planes) * 0.4;
    rows_ = build_.TaskRows(RowsPerChunk(build_.soc, ns, HintValue(s_.oh),
                                         static_cast<double>(HintValue(s_.n * in_.c1) / planes)),
                            s_.oh);
  }

  // Tiles of other widths, then other rows in a task and the other order.
  void NoteChoice() {
    DotChoice chosen = build_.fixed;
    chosen.m = columns_, chosen.nv = 1, chosen.order = rows_outside_ ? "mn" : "nm";
    const int64_t all = std::max<int64_t>(HintValue(s_.oh), 1);
    chosen.rows = std::min(rows_, all);
    std::vector<DotChoice> others;
    const auto add = [&](DotChoice c) {
      if (!(c == chosen)) others.push_back(std::move(c));
    };
    DotChoice other = chosen;
    for (int m : {2, 6, 8}) {
      if (Unrolled()) other.m = m, add(other);
    }
    other = chosen;
    other.order = rows_outside_ ? "nm" : "mn", add(other);
    other = chosen;
    other.rows = std::clamp<int64_t>(chosen.rows * 2, 1, all), add(other);
    build_.NoteChoice(chosen, std::move(others));
  }

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
    const Expr groups = CeilDiv(s_.oh, rows_);
    c.b().For("p", s_.n * in_.c1 * groups, LoopKind::kParallel, [&](Expr p) {
      const ChunkPlace at = PlaceOfChunk(p, s_.n, in_.c1, groups, rows_outside_);
      const Expr n = at.n, c1 = at.panel, part = at.part;
      Expr first = part * rows_;
      Expr count = DivisibleBy(s_.oh, rows_) ? Expr(rows_) : Min(rows_, s_.oh - first);
      c.b().For("y", count, LoopKind::kSerial, [&](Expr y) { Row(c, {n, c1, first + y}); });
    });
  }

  struct Place {
    Expr n, c1, y;
    bool cut = false;  // rows of the window may lie outside
  };
  // Steps of the window along an axis that are inside.
  struct Steps {
    Expr first, end;
    Expr Count() const { return end - first; }
  };
  Steps RowsOf(Expr y) const {
    if (!in_.cut_rows) return {0, s_.kh};
    return Inside(s_.pad_top - y * s_.sh, s_.dh, s_.kh, s_.h);
  }
  Steps ColumnsOf(Expr x) const {
    if (!in_.cut_columns) return {0, s_.kw};
    return Inside(s_.pad_left - x * s_.sw, s_.dw, s_.kw, s_.w);
  }
  static Steps Inside(Expr before, int64_t dilation, int64_t kernel, Expr extent) {
    return {Max(0, CeilDiv(before, dilation)), Min(kernel, CeilDiv(before + extent, dilation))};
  }

  void Row(LoweringContext& c, Place at) {
    if (!in_.cut_rows) return Columns(c, at);
    Expr top = at.y * s_.sh - s_.pad_top;
    Expr whole = And(Le(0, top), Lt(top + (s_.kh - 1) * s_.dh, s_.h));
    c.b().If(
        c.b().Cast(c.b().Index(whole), DType::kBool), [&] { Columns(c, at); },
        [&] { at.cut = true, Columns(c, at); });
  }

  // The columns whose windows are inside in tiles; those at the edges too if they are known.
  void Columns(LoweringContext& c, const Place& at) {
    auto tiles = [&](Expr first, Expr count) {
      ForRowTiles(c.b(), count, columns_, [&](Expr x, int m) { Tile(c, at, first + x, m, false); });
    };
    if (!in_.cut_columns) return tiles(0, s_.ow);
    const Expr reach = (s_.kw - 1) * s_.dw + 1;
    const Expr left = Min(CeilDiv(s_.pad_left, s_.sw), s_.ow);
    const Expr right = Min(Max(left, FloorDiv(s_.w + s_.pad_left - reach, s_.sw) + 1), s_.ow);
    auto edge = [&](Expr first, Expr count) {
      if (!s_.ow.IsConst() || !s_.w.IsConst()) {
        c.b().For("x", count, LoopKind::kSerial, [&](Expr x) { Tile(c, at, first + x, 1, true); });
        return;
      }
      for (int64_t x = 0; x < count.value(); x += columns_)
        Tile(c, at, first + x, static_cast<int>(std::min<int64_t>(columns_, count.value() - x)),
             true);
    };
    edge(0, left);
    tiles(left, right - left);
    edge(right, s_.ow - right);
  }

  // Columns [x, x + m) of a row; `edge`: their windows may reach outside.
  void Tile(LoweringContext& c, const Place& at, Expr x, int m, bool edge) {
    auto lanes = [&](int64_t count) {
      c.b().For("c", count, LoopKind::kVector, [&](Expr lane) {
        std::vector<Val> sums = Sums(c, at, x, m, edge, lane);
        Expr channel = at.c1 * in_.c0 + lane;
        Val bias;
        if (s_.has_bias) bias = c.b().Let(c.Read(s_.bias, {channel}));
        for (int j = 0; j < m; ++j)
          c.Yield(s_.y, s_.At(at.n, channel, at.y, x + j), s_.has_bias ? sums[j] + bias : sums[j]);
      });
    };
    const int64_t last = s_.c.value() % in_.c0;
    if (last == 0) return lanes(in_.c0);
    c.b().If(
        c.b().Cast(c.b().Index(Lt(at.c1, in_.c1 - 1)), DType::kBool), [&] { lanes(in_.c0); },
        [&] {
          lanes(last);
          for (int j = 0; j < m; ++j) ZeroPadLanes(c, s_, at.n, at.y, x + j);
        });
  }

  Val Product(LoweringContext& c, const Place& at, Expr x, Expr i, Expr j, Expr lane) {
    Val input = c.b().Load(x_, in_.base + at.n * in_.sn + at.c1 * in_.sc1 +
                                   (at.y * s_.sh + i * s_.dh) * in_.sy +
                                   (x * s_.sw + j * s_.dw) * in_.sx + lane);
    return input * c.b().Load(w_, ((at.c1 * s_.kh + i) * s_.kw + j) * in_.c0 + lane);
  }

  // As loops.
  Val Sum(LoweringContext& c, const Place& at, Expr x, Expr lane) {
    const Steps rows = RowsOf(at.y), columns = ColumnsOf(x);
    return c.b().Reduce(tile::ReduceOp::kSum, {rows.Count(), columns.Count()},
                        [&](const std::vector<Expr>& k) {
                          return Product(c, at, x, rows.first + k[0], columns.first + k[1], lane);
                        });
  }

  // The steps of column x in row i of the window, added to `sum` if there is one.
  Val RowOfWindow(LoweringContext& c, const Place& at, Expr x, const Steps& steps, Expr i, Val sum,
                  Expr lane) {
    for (int64_t j = steps.first.value(); j < steps.end.value(); ++j) {
      Val product = Product(c, at, x, i, j, lane);
      sum = sum.valid() ? sum + product : product;
    }
    return sum.valid() ? sum : c.b().F(0);
  }

  // Row by row of the window, so that few weights and inputs are alive at once.
  std::vector<Val> Sums(LoweringContext& c, const Place& at, Expr x, int m, bool edge, Expr lane) {
    auto steps = [&](int column) { return edge ? ColumnsOf(x + column) : Steps{0, s_.kw}; };
    if (!Unrolled() || !steps(0).Count().IsConst()) return {Sum(c, at, x, lane)};
    std::vector<Val> sums(m);
    if (at.cut) {
      const Steps rows = RowsOf(at.y);
      for (int j = 0; j < m; ++j) {
        sums[j] =
            c.b().Reduce(tile::ReduceOp::kSum, {rows.Count()}, [&](const std::vector<Expr>& k) {
              return RowOfWindow(c, at, x + j, steps(j), rows.first + k[0], {}, lane);
            });
      }
      return sums;
    }
    for (int64_t i = 0; i < s_.kh; ++i) {
      for (int j = 0; j < m; ++j)
        sums[j] = c.b().Let(RowOfWindow(c, at, x + j, steps(j), i, sums[j], lane));
    }
    return sums;
  }

  CubeBuild build_;
  ConvShape s_;
  PaddedInput in_;
  int columns_ = 1;   // of a tile
  int64_t rows_ = 1;  // of a task
  bool rows_outside_ = false;
  int weights_ = -1, x_ = -1, w_ = -1;
};

}  // namespace

Lowered LowerDepthwise(const Graph& g, const Region& region, const SocSpec& soc,
                       const Policy& policy, const ConvShape& s) {
  return DepthwiseLowering(g, region, soc, policy, s).Run();
}

}  // namespace ge
