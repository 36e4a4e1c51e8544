// Depthwise Conv  Y[n, c, y, x] = B[c] + sum_{i, j} X[n, c, y*sh + i*dh - top, x*sw + j*dw - left]
// * W[c, i, j]
//
//   grid: images x channel blocks x groups of rows;  for row, tile of columns: vector over the
//   channels of a block, an accumulator for each column
//
// The columns of a tile share the weights and, where the windows overlap, the inputs; their sums do
// not wait for each other. An input without a halo is read where it lies: windows at the edges are
// cut, so nobody fills borders. Where sizes are known, rows that are cut alike have code of their
// own, and columns at the edges are in tiles like the others.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "base/check.h"
#include "lower/cube_conv.h"
#include "lower/lowering_context.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

constexpr int kFewColumns = 4, kMostColumns = 16;  // of a tile
constexpr size_t kMostCuts = 8;  // ways in which rows are cut that have code of their own

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
    over_ = WritesOver();
    build_.AddKernel(fmt::format("depthwise {}x{} by {}{}", s_.kh, s_.kw, in_.c0,
                                 over_ ? " over its input" : ""),
                     [&](LoweringContext& c) { over_ ? KernelOver(c) : Kernel(c); });
    if (over_) NoteWritesOver(build_, s_);
    NoteChoice();
    turned_.Finish();
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
  // Columns of a tile: their sums, the inputs of one row of their windows and a weight are in
  // registers. Where the number of columns is not known, many would be in tiles of the rest.
  int ColumnsByModel() const {
    if (!Unrolled()) return 1;
    if (build_.soc.vector_registers < 32 || !s_.ow.IsConst()) return kFewColumns;
    for (int m = 8; m > kFewColumns; --m) {
      if (m + (m - 1) * s_.sw + s_.kw + 1 <= 24) return m;
    }
    return kFewColumns;
  }

  void Choose() {
    columns_ = ColumnsByModel();
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
    const int64_t others = HintValue(s_.n * in_.c1) / planes;
    rows_ = build_.TaskRows(
        RowsPerChunk(build_.soc, ns, HintValue(s_.oh), static_cast<double>(others)), s_.oh);
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
    for (int m : {2, 4, 6, 8}) {
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
    turned_.Declare(c);
    const Expr groups = CeilDiv(s_.oh, rows_);
    c.b().For("p", s_.n * in_.c1 * groups, LoopKind::kParallel, [&](Expr p) {
      const ChunkPlace at = PlaceOfChunk(p, s_.n, in_.c1, groups, rows_outside_);
      const Expr n = at.n, c1 = at.panel, part = at.part;
      Expr first = part * rows_;
      Expr count = DivisibleBy(s_.oh, rows_) ? Expr(rows_) : Min(rows_, s_.oh - first);
      c.b().For("y", count, LoopKind::kSerial, [&](Expr y) { Row(c, {n, c1, first + y, {}}); });
    });
  }

  // A row of the result may take the place of the input's row with its number if the rows that
  // later windows read of those before are kept. A task is then a block of channels of an image:
  // of few there would be too few.
  bool WritesOver() const {
    constexpr int64_t kLeastTasks = 4;
    return s_.over && Unrolled() && s_.sh == 1 && s_.sw == 1 && s_.dh == 1 &&
           s_.pad_top.IsConst() && s_.pad_top.value() < s_.kh && HintValue(in_.c1) >= kLeastTasks &&
           MayWriteOver(build_, s_, in_);
  }

  void KernelOver(LoweringContext& c) {
    x_ = PaddedArg(c, s_, in_);
    w_ = c.AddArg({KernelArg::Kind::kPack, weights_}, "w", DType::kF32,
                  build_.lowered.packs[weights_].bytes / 4, false);
    const int64_t ahead = s_.kh - 1 - s_.pad_top.value();  // rows below that a window reaches
    const Expr row = in_.width * in_.c0;
    slots_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(s_.kh)));
    c.b().For("p", s_.n * in_.c1, LoopKind::kParallel, [&](Expr p) {
      const ChunkPlace at = PlaceOfChunk(p, s_.n, in_.c1, 1, false);
      const Expr plane = in_.base + at.n * in_.sn + at.panel * in_.sc1 + s_.pad_top * in_.sy +
                         s_.pad_left * in_.sx;
      kept_ = c.b().Alloc("rows", DType::kF32, row * slots_);
      const auto keep = [&](Expr y) {
        CopySpan(c.b(), x_, plane + y * in_.sy, kept_, Mod(y, slots_) * row, row);
      };
      c.b().For("y", Min(ahead, s_.h), LoopKind::kSerial, keep);
      c.b().For("y", s_.oh, LoopKind::kSerial, [&](Expr y) {
        c.b().If(c.b().Cast(c.b().Index(Lt(y + ahead, s_.h)), DType::kBool),
                 [&] { keep(y + ahead); });
        Row(c, {at.n, at.panel, y, {}});
      });
    });
  }

  // Steps of the window along an axis that are inside.
  struct Steps {
    Expr first, end;
    Expr Count() const { return end - first; }
  };
  struct Place {
    Expr n, c1, y;
    Steps rows;  // of the window
    bool IsCut() const { return !rows.Count().IsConst(); }
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
    auto as = [&](Steps rows) {
      at.rows = rows;
      Columns(c, at);
    };
    if (!in_.cut_rows) return as({0, s_.kh});
    if (Unrolled() && s_.oh.IsConst() && s_.h.IsConst()) {
      const std::vector<RowRange> ranges = Ranges();
      if (ranges.size() <= kMostCuts) return OneOf(c, at.y, ranges, as);
    }
    Expr top = at.y * s_.sh - s_.pad_top;
    Expr whole = And(Le(0, top), Lt(top + (s_.kh - 1) * s_.dh, s_.h));
    c.b().If(
        c.b().Cast(c.b().Index(whole), DType::kBool), [&] { as({0, s_.kh}); },
        [&] { as(RowsOf(at.y)); });
  }

  // Rows [first, end) of the output, whose windows are cut alike.
  struct RowRange {
    int64_t first = 0, end = 0;
    Steps rows;
  };
  // The widest first.
  std::vector<RowRange> Ranges() const {
    std::vector<RowRange> ranges;
    for (int64_t y = 0; y < s_.oh.value(); ++y) {
      const Steps rows = RowsOf(y);
      const bool same = !ranges.empty() && ranges.back().rows.first == rows.first &&
                        ranges.back().rows.end == rows.end;
      if (same)
        ranges.back().end = y + 1;
      else
        ranges.push_back({y, y + 1, rows});
    }
    std::stable_sort(ranges.begin(), ranges.end(), [](const RowRange& a, const RowRange& b) {
      return a.end - a.first > b.end - b.first;
    });
    return ranges;
  }

  static void OneOf(LoweringContext& c, Expr y, std::span<const RowRange> ranges,
                    const std::function<void(Steps)>& body) {
    if (ranges.size() == 1) return body(ranges[0].rows);
    const Expr inside = And(Le(ranges[0].first, y), Lt(y, ranges[0].end));
    c.b().If(
        c.b().Cast(c.b().Index(inside), DType::kBool), [&] { body(ranges[0].rows); },
        [&] { OneOf(c, y, ranges.subspan(1), body); });
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
    if (Unrolled() && s_.ow.IsConst() && s_.w.IsConst())
      return KnownColumns(c, at, left.value(), right.value());
    auto edge = [&](Expr first, Expr count) {
      c.b().For("x", count, LoopKind::kSerial, [&](Expr x) { Tile(c, at, first + x, 1, true); });
    };
    edge(0, left);
    tiles(left, right - left);
    edge(right, s_.ow - right);
  }

  // Tiles of about the same width over all columns, of which those with windows that are cut, the
  // first `left` and those from `right` on, are not in a loop.
  void KnownColumns(LoweringContext& c, const Place& at, int64_t left, int64_t right) {
    const int64_t columns = s_.ow.value(), count = CeilOf(columns, columns_),
                  width = CeilOf(columns, count);
    int64_t first = 0, end = columns;
    auto edge = [&](int64_t x, int64_t m) { Tile(c, at, x, static_cast<int>(m), true); };
    for (; first < left; first += std::min(width, columns - first))
      edge(first, std::min(width, columns - first));
    std::vector<std::pair<int64_t, int64_t>> last;
    while (end > std::max(first, right)) {
      const int64_t m = std::min(width, end - first);
      last.emplace_back(end -= m, m);
    }
    ForRowTiles(c.b(), end - first, static_cast<int>(width),
                [&](Expr x, int m) { Tile(c, at, x + first, m, false); });
    for (; !last.empty(); last.pop_back()) edge(last.back().first, last.back().second);
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
          turned_.Yield(c, at.n, channel, at.y, x + j, s_.has_bias ? sums[j] + bias : sums[j]);
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

  // The product of step (i, j), added to `sum` if there is one. In one operation it is less work,
  // but a sum waits longer for its next step: `many` sums are under way.
  Val Step(LoweringContext& c, const Place& at, Expr x, Expr i, Expr j, Expr lane, Val sum,
           bool many) {
    Expr place = in_.base + at.n * in_.sn + at.c1 * in_.sc1 + (at.y * s_.sh + i * s_.dh) * in_.sy +
                 (x * s_.sw + j * s_.dw) * in_.sx + lane;
    if (over_)
      place = Mod(at.y + i + (slots_ - s_.pad_top), slots_) * (in_.width * in_.c0) +
              (x + j * s_.dw - s_.pad_left) * in_.c0 + lane;
    Val input = c.b().Load(over_ ? kept_ : x_, place);
    Val weight = c.b().Load(w_, ((at.c1 * s_.kh + i) * s_.kw + j) * in_.c0 + lane);
    if (!sum.valid()) return input * weight;
    return many ? c.b().Fma(input, weight, sum) : sum + input * weight;
  }

  // As loops.
  Val Sum(LoweringContext& c, const Place& at, Expr x, Expr lane) {
    const Steps columns = ColumnsOf(x);
    return c.b().Reduce(
        tile::ReduceOp::kSum, {at.rows.Count(), columns.Count()}, [&](const std::vector<Expr>& k) {
          return Step(c, at, x, at.rows.first + k[0], columns.first + k[1], lane, {}, false);
        });
  }

  // The steps of column x in row i of the window, added to `sum` if there is one.
  Val RowOfWindow(LoweringContext& c, const Place& at, Expr x, const Steps& steps, Expr i, Val sum,
                  Expr lane) {
    for (int64_t j = steps.first.value(); j < steps.end.value(); ++j) {
      sum = Step(c, at, x, i, j, lane, sum, false);
    }
    return sum.valid() ? sum : c.b().F(0);
  }

  // Row by row of the window, so that few weights and inputs are alive at once.
  std::vector<Val> Sums(LoweringContext& c, const Place& at, Expr x, int m, bool edge, Expr lane) {
    auto steps = [&](int column) { return edge ? ColumnsOf(x + column) : Steps{0, s_.kw}; };
    if (!Unrolled() || !steps(0).Count().IsConst()) return {Sum(c, at, x, lane)};
    std::vector<Val> sums(m);
    if (at.IsCut()) {
      for (int j = 0; j < m; ++j) {
        sums[j] =
            c.b().Reduce(tile::ReduceOp::kSum, {at.rows.Count()}, [&](const std::vector<Expr>& k) {
              return RowOfWindow(c, at, x + j, steps(j), at.rows.first + k[0], {}, lane);
            });
      }
      return sums;
    }
    // Neighbouring steps are of different sums if these are many, else of one: fewer inputs are
    // alive at once.
    const bool many = m > kFewColumns;
    const int together = many ? m : 1;
    for (int64_t i = at.rows.first.value(); i < at.rows.end.value(); ++i) {
      for (int first = 0; first < m; first += together) {
        for (int64_t step = 0; step < s_.kw; ++step) {
          for (int j = first; j < first + together; ++j) {
            const Steps inside = steps(j);
            if (inside.first.value() <= step && step < inside.end.value())
              sums[j] = c.b().Let(Step(c, at, x + j, i, step, lane, sums[j], many));
          }
        }
      }
    }
    for (Val& sum : sums) {
      if (!sum.valid()) sum = c.b().F(0);  // nothing but pads
    }
    return sums;
  }

  CubeBuild build_;
  ConvShape s_;
  TurnedOutput turned_{build_, s_};
  PaddedInput in_;
  int columns_ = 1;   // of a tile
  int64_t rows_ = 1;  // of a task
  bool rows_outside_ = false, over_ = false;
  int64_t slots_ = 0;  // of the rows that are kept
  int weights_ = -1, x_ = -1, w_ = -1, kept_ = -1;
};

}  // namespace

Lowered LowerDepthwise(const Graph& g, const Region& region, const SocSpec& soc,
                       const Policy& policy, const ConvShape& s) {
  return DepthwiseLowering(g, region, soc, policy, s).Run();
}

}  // namespace ge
