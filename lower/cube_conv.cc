// Conv  Y[n, o, y, x] = B[o] + sum_{c, i, j} X[n, c, y*sh + i*dh - top, x*sw +
// j*dw - left] * W[o, c, i, j]
//
//   grid: images x panels of nb output channels x groups of output rows
//   for output row y, tile of m pixels: BrGemm m x nb, batch-reduced over (c1,
//   i, j), depth c0
//
// Few channels: batch (c, i), depth j. 1x1 windows over whole planes: rows and
// columns are one axis. Weights are packed as [panel][c1][i][j][c0][nb].
#include "lower/cube_conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "abi/convert.h"
#include "base/check.h"
#include "lower/cost.h"

namespace ge {

using tile::LoopKind;
using tile::Val;

Index ConvShape::At(Expr image, Expr channel, Expr y, Expr x) const {
  if (rank == 3) return {image, channel, x};
  if (turned) return {image, channel, x, y};
  return {image, channel, y, x};
}

std::optional<ConvShape> ConvShapeOf(const Graph& g, const Node& node) {
  ConvShape s;
  s.x = node.inputs[0], s.weights = node.inputs[1], s.y = node.outputs[0];
  const bool bytes = node.op->name == "ConvInteger";
  s.transposed = node.op->name == "ConvTranspose";
  if (node.inputs.size() > 2 && !bytes) s.bias = node.inputs[2];
  s.has_bias = s.bias != kNone;
  s.over = HasAttr(node, "write_over");
  const TensorType &x = g.value(s.x).type, &w = g.value(s.weights).type;
  s.rank = x.rank();
  if (s.rank != 3 && s.rank != 4) return std::nullopt;
  if (!g.IsConstant(s.weights) || !x.dims[1].IsConst()) return std::nullopt;
  if (bytes) {
    s.type = x.dtype;
    if (!ConstantZero(g, node, 2, &s.zero)) {
      if (!g.value(node.inputs[2]).type.Elements().IsConst(1)) return std::nullopt;
      s.zero_value = node.inputs[2];
    }
  } else if (!IsSmallFloat(x.dtype)) {
    return std::nullopt;
  }
  std::vector<int64_t> cut;
  auto window = s.transposed ? PhaseWindow(node, Tail(x.dims, 2), Tail(w.dims, 2), &cut)
                             : ForwardWindow(node, Tail(x.dims, 2), Tail(w.dims, 2));
  if (!window.ok()) return std::nullopt;
  const int last = s.rank - 3;
  s.group = AttrOr<int64_t>(node, "group", 1);
  if (s.transposed) {
    if (s.group != 1) return std::nullopt;
    const auto strides = AttrOr<std::vector<int64_t>>(node, "strides", {1, 1});
    s.up_w = strides[last], s.cut_w = cut[last];
    if (s.rank == 4) s.up_h = strides[0], s.cut_h = cut[0];
  }
  s.n = x.dims[0], s.c = x.dims[1], s.o = w.dims[s.transposed ? 1 : 0];
  s.w = x.dims.back(), s.ow = window->out[last];
  s.kw = window->kernel[last].value(), s.sw = window->stride[last], s.dw = window->dilation[last];
  s.pad_left = window->pad_lo[last], s.pad_right = window->pad_hi[last];
  s.h = s.oh = 1;
  if (s.rank == 4) {
    s.h = x.dims[2], s.oh = window->out[0];
    s.kh = window->kernel[0].value(), s.sh = window->stride[0], s.dh = window->dilation[0];
    s.pad_top = window->pad_lo[0], s.pad_bottom = window->pad_hi[0];
  }
  // Tiles are runs of pixels of a row, so a column is made one.
  if (s.rank == 4 && !s.transposed && s.w.IsConst(1) && s.ow.IsConst(1) && s.kw == 1 &&
      s.pad_left.IsConst(0) && !s.h.IsConst(1)) {
    s.turned = true;
    std::swap(s.h, s.w), std::swap(s.oh, s.ow), std::swap(s.kh, s.kw), std::swap(s.sh, s.sw);
    std::swap(s.dh, s.dw), std::swap(s.pad_top, s.pad_left), std::swap(s.pad_bottom, s.pad_right);
  }
  // Pads below 0 cut the input; what cuts windows at its edges does not know them.
  const bool cuts_input = !ProvablyLe(0, s.pad_top) || !ProvablyLe(0, s.pad_left);
  if (cuts_input && (s.group != 1 || !s.pad_top.IsConst() || !s.pad_left.IsConst()))
    return std::nullopt;
  for (Expr e : {s.n, s.oh, s.ow, s.c, s.o}) {
    if (e.IsConst(0)) return std::nullopt;
  }
  if (s.group > 1 && !bytes && !s.transposed) {
    s.fold = GroupsTogether(s.group, s.ChannelsPerGroup(), s.o.value() / s.group);
    if (s.fold == 0) return std::nullopt;
    s.group /= s.fold;
  }
  return s;
}

int64_t GroupsTogether(int64_t group, int64_t c, int64_t o) {
  constexpr int64_t kMost = 16;  // times more products than there are; plain loops are slower yet
  if (c == 1 && o == 1) return 1;
  for (int64_t f = 1; f <= std::min(group, kMost); ++f)
    if (group % f == 0 && (f * c % 16 == 0 || f == group)) return f;
  return 0;
}

float WeightAt(const ConvShape& s, const Constant& w, int64_t o, int64_t c, int64_t i, int64_t j,
               int64_t phase) {
  if (!s.transposed) {
    const int64_t own = s.ChannelsPerGroup() / s.fold, outputs = s.o.value() / (s.group * s.fold);
    if (s.fold > 1 && o / outputs % s.fold != c / own) return 0;
    return FloatAt(w, ((o * own + c % own) * s.kh + i) * s.kw + j);
  }
  const int64_t width = w.dims.back(), height = s.rank == 4 ? w.dims[2] : 1;
  const int64_t y = phase / s.up_w + (s.kh - 1 - i) * s.up_h,
                x = phase % s.up_w + (s.kw - 1 - j) * s.up_w;
  if (y >= height || x >= width) return 0;
  return FloatAt(w, ((c * s.o.value() + o) * height + y) * width + x);
}

std::string ConvProblem(const Graph& g, const ConvShape& s) {
  const Layout& layout = g.value(s.x).type.layout;
  return fmt::format("conv {} {}x{}x{}x{} of {} stride {} to {}x{}", Name(s.type), s.o.value(),
                     s.ChannelsPerGroup(), s.kh, s.kw, layout.IsNd() ? 1 : layout.dims[1].tile,
                     s.sw, s.oh.IsConst() ? ToString(s.oh) : "n",
                     s.ow.IsConst() ? ToString(s.ow) : "n");
}

bool SupportsConv(const Graph& g, const Region& region, const SocSpec& soc) {
  (void)soc;
  return ConvShapeOf(g, g.node(region.anchor)).has_value();
}

namespace {

constexpr int64_t kFewInRows = 4;     // of so few channels bf16 is read by rows of the window
constexpr int64_t kMostHalves = 136;  // of more channels half a block of zeros costs less

class ConvLowering {
 public:
  ConvLowering(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy,
               const ConvShape& s)
      : build_(g, region, soc), soc_(soc), policy_(policy), s_(s) {}

  Lowered Run() {
    build_.Fix(policy_, ConvProblem(build_.g, s_));
    build_.RefuseForm("direct");
    if (build_.fixed.k > 0 || !build_.fixed.pack.empty())
      build_.Refuse(ToString(build_.fixed), "k and pack are for matrix products");
    in_ = PadInput(build_, s_);
    pairs_ = soc_.HasPairs() && s_.type == DType::kBF16 && (in_.c0 % 2 == 0 || in_.row_depth > 0);
    weight_type_ = pairs_ ? DType::kBF16 : DType::kF32;
    Choose();
    PackWeights();
    build_.AddKernel(fmt::format("brgemm {}{}x{} batch {}x{}x{}{}{}", pairs_ ? "bf16 " : "",
                                 tile_.m, nb_, Batches(), s_.kh, ByRows() ? 1 : s_.kw,
                                 flat_ ? " flat" : "", over_ ? " over its input" : ""),
                     [&](LoweringContext& c) { over_ ? KernelOver(c) : Kernel(c); });
    if (over_) NoteWritesOver(build_, s_);
    NoteChoice();
    turned_.Finish();
    build_.AddBorders(ZeroesLanes());
    return std::move(build_.lowered);
  }

 private:
  bool ZeroesLanes() const { return Units() == 1 && !s_.transposed; }
  // Columns are output channels: of one group, of one phase, or, where they are
  // few, of all phases.
  bool Merged() const { return s_.Phases() > 1 && s_.o.value() < 8; }
  int64_t Columns() const {
    return Merged() ? s_.o.value() * s_.Phases() : s_.o.value() / s_.group;
  }
  // Columns that panels are to divide, so that none crosses a group; 0: a group's last one is
  // padded.
  int64_t WholePanels() const {
    return s_.group > 1 && Columns() % soc_.F32Lanes() == 0 ? Columns() : 0;
  }
  int64_t Units() const { return Merged() ? 1 : s_.group * s_.Phases(); }
  // Channels of one step of the batch: a block, or half of one where the last
  // block is half empty.
  int64_t StepChannels() const {
    const int64_t c = s_.ChannelsPerGroup();
    return in_.c0 == 16 && c % 16 == 8 && c <= kMostHalves ? 8 : in_.c0;
  }
  int64_t Batches() const { return CeilOf(s_.ChannelsPerGroup(), StepChannels()); }
  // Is a row of the window one run of k, of one channel or of all?
  bool ByRows() const { return in_.c0 == 1 || in_.row_depth > 0; }
  int64_t RowDepth() const { return in_.row_depth > 0 ? in_.row_depth : s_.kw * StepChannels(); }
  int64_t Depth() const { return Batches() * s_.kh * RowDepth(); }

  void Choose() {
    flat_ =
        s_.kh == 1 && s_.kw == 1 && s_.sh == 1 && s_.sw == 1 && ProvablyEq(in_.sy, s_.ow * in_.sx);
    pitch_ = s_.ow;
    row_pixels_ = flat_ ? s_.oh * s_.ow : s_.ow;
    if (const int64_t run = flat_ ? 0 : RunPitch(soc_, pairs_ ? 2 : 1, s_, in_); run > 0) {
      flat_ = true, pitch_ = run;
      row_pixels_ = (s_.oh - 1) * run + s_.ow;
    }
    rows_ = flat_ ? Expr(1) : s_.oh;
    const int64_t per_group = Columns();
    tile_ = build_.Tile(row_pixels_, per_group, WholePanels(), Units() == 1, pairs_ ? 2 : 1);
    if (flat_ && build_.fixed.m == 0 && Units() == 1 && !OnMatrixUnit(soc_, pairs_ ? 2 : 1))
      tile_ = Wider(tile_);
    nb_ = tile_.nv * soc_.F32Lanes();
    if (!flat_)
      lines_ = LinesOfTile(build_, s_, tile_, pairs_ ? 2 : 1, MaxRows(soc_, tile_.nv),
                           BytesFor(weight_type_, Depth() * nb_));
    if (lines_ > 1) tile_.m = static_cast<int>(lines_ * s_.ow.value());
    last_ = Units() == 1 && HasNarrowPanel(per_group, tile_.nv, soc_) ? soc_.F32Lanes() : nb_;
    panels_ = CeilOf(per_group, nb_);
    const double ns = static_cast<double>(Depth() * nb_) / MacsPerCycle(soc_, pairs_ ? 2 : 1) /
                      soc_.ghz;  // of a pixel
    const int64_t panels = panels_ * Units();
    const int64_t bytes = BytesFor(weight_type_, Depth() * nb_ * panels);
    over_ = s_.over && flat_ && pitch_ == s_.ow && Units() == 1 && !pairs_ && !s_.transposed &&
            MayWriteOver(build_, s_, in_);
    rows_outside_ = build_.fixed.order.empty() ? RowsOutside(soc_, static_cast<double>(bytes), s_)
                                               : build_.fixed.order == "mn";
    rows_outside_ |= over_;
    const int64_t inside = rows_outside_ ? panels : 1;  // panels of the same rows in turn
    const int64_t outside = HintValue(s_.n) * panels / inside;
    const double turn = ns * static_cast<double>(inside), others = static_cast<double>(outside);
    chunk_ = flat_ ? RowsPerChunk(soc_, turn * tile_.m, HintValue(CeilDiv(row_pixels_, tile_.m)),
                                  others) *
                         tile_.m
                   : RowsPerChunk(soc_, turn * static_cast<double>(HintValue(s_.ow)),
                                  HintValue(s_.oh), others);
    // What a task copies is to stay in L1, and is worth reading all weights for.
    if (over_) {
      constexpr int64_t kCopied = 32 << 10, kLeastTiles = 2;
      const int64_t tiles = kCopied / (BytesFor(s_.type, Batches() * StepChannels()) * tile_.m);
      chunk_ = std::min(chunk_, std::max(tiles, kLeastTiles) * tile_.m);
    }
    // A weight panel larger than half of L2 must be read once only.
    if (!over_ && static_cast<double>(Depth() * nb_ * BytesFor(weight_type_, 1)) >
                      static_cast<double>(soc_.l2_bytes) / 4) {
      chunk_ = std::max(chunk_, HintValue(flat_ ? row_pixels_ : s_.oh));
    }
    chunk_ = CeilOf(chunk_, lines_) * lines_;
    chunk_ = build_.TaskRows(chunk_, flat_ ? row_pixels_ : s_.oh);
  }

  // Of shallow dots the widest tile among equals: pixels are read for fewer panels, and registers
  // are left for the epilogue, which is much of the work.
  GemmTile Wider(const GemmTile& tile) const {
    constexpr int64_t kShallow = 48;
    constexpr double kEqual = 1.03;
    if (Depth() > kShallow || tile.nv > 2 || !row_pixels_.IsConst() || soc_.vector_registers < 32)
      return tile;
    const int64_t pixels = row_pixels_.value(), lanes = soc_.F32Lanes();
    const auto cycles = [&](int m, int nv) {
      return TileCycles(pixels, m, nv, soc_) * static_cast<double>(CeilOf(Columns(), nv * lanes));
    };
    for (const int nv : {4, 3}) {
      const int64_t tiles = CeilOf(pixels, MaxRows(soc_, nv));
      const int m = static_cast<int>(CeilOf(pixels, tiles));
      if (Columns() % (nv * lanes) == 0 && cycles(m, nv) <= kEqual * cycles(tile.m, tile.nv))
        return {m, nv};
    }
    return tile;
  }

  void NoteChoice() {
    DotChoice chosen = build_.fixed;
    chosen.m = tile_.m, chosen.nv = tile_.nv, chosen.rows = chunk_;
    if (const Expr all = flat_ ? row_pixels_ : s_.oh; all.IsConst())
      chosen.rows = std::min(chosen.rows, all.value());
    chosen.order = rows_outside_ ? "mn" : "nm";
    OpenDot d;
    d.line = std::max<int64_t>(HintValue(row_pixels_), 1);
    d.lines = std::max<int64_t>(HintValue(rows_), 1);
    d.cols = Columns(), d.depth = Depth(), d.element_bytes = BytesFor(weight_type_, 1);
    d.cols_per_panel = WholePanels();
    d.height = row_pixels_.IsConst() ? 0 : kMostSymbolicRows;
    const bool winograd = AllowsWinograd(s_, policy_) || AllowsWinogradRow(s_, policy_);
    if (winograd) chosen.form = "direct";
    std::vector<DotChoice> others = OnMatrixUnit(soc_, pairs_ ? 2 : 1)
                                        ? UnitChoices(row_pixels_, Columns(), chosen)
                                        : RankChoices(d, chosen, soc_);
    if (winograd) others.insert(others.begin(), DotChoice{.form = "winograd"});
    build_.NoteChoice(chosen, std::move(others));
  }

  // All weights of an output channel, in the order of the source: a column of a panel.
  static void PackChannel(const float* from, int64_t channels, int64_t window, int64_t c0,
                          int64_t width, float* out) {
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < window; ++i)
        out[((c / c0 * window + i) * c0 + c % c0) * width] = from[c * window + i];
  }

  void PackWeights() {
    const int64_t panels = panels_, units = Units(), cg = s_.ChannelsPerGroup(),
                  columns = Columns();
    const int64_t c0 = StepChannels(), c1 = Batches(), kh = s_.kh, kw = s_.kw, nb = nb_,
                  last = last_, row = RowDepth();
    const ConvShape shape = s_;
    const bool merged = Merged();
    Pack pack;
    pack.source = s_.weights;
    // One tensor may be the weights of several convolutions.
    pack.key = fmt::format(
        "{}conv {}panels of {} and {}, channels by {}, "
        "units {} of {}, window {}x{} of {}x{}",
        shape.transposed ? "transposed " : "", pairs_ ? "bf16 " : "", nb, last, c0, units,
        shape.fold, kh, kw, shape.up_h, shape.up_w);
    pack.bytes = (units * panels * nb - (nb - last)) * c1 * kh * row * BytesFor(weight_type_, 1);
    const int64_t group = pairs_ ? 2 : 1;
    const DType type = weight_type_;
    const bool plain =
        group == 1 && type == DType::kF32 && !merged && !shape.transposed && shape.fold == 1;
    pack.fill = [=](const Constant& w, std::byte* out) {
      if (plain && w.dtype == DType::kF32) {
        auto* floats = reinterpret_cast<float*>(out);
        std::fill_n(floats, (units * panels * nb - (nb - last)) * c1 * kh * kw * c0, 0.0f);
        for (int64_t o = 0; o < units * columns; ++o)
          PackChannel(reinterpret_cast<const float*>(w.bytes.data()) + o * cg * kh * kw, cg,
                      kh * kw, c0,
                      o / columns * panels + o % columns / nb == units * panels - 1 ? last : nb,
                      floats + (o / columns * panels + o % columns / nb) * nb * c1 * kh * kw * c0 +
                          o % columns % nb);
        return;
      }
      int64_t to = 0;
      for (int64_t up = 0; up < units * panels; ++up) {
        const int64_t width = up == units * panels - 1 ? last : nb;
        for (int64_t pair = 0; pair < c1 * kh * row; pair += group) {
          for (int64_t l = 0; l < width * group; ++l) {
            const int64_t k = pair + l % group;
            const int64_t c = k / (kh * row) * c0 + k % row % c0, i = k / row % kh,
                          j = k % row / c0;
            const int64_t unit = up / panels, column = up % panels * nb + l / group;
            int64_t o = column, phase = 0;
            if (merged)
              o = column % shape.o.value(), phase = column / shape.o.value();
            else if (shape.group > 1)
              o += unit * columns;
            else
              phase = unit;
            const float v =
                c < cg && j < kw && column < columns ? WeightAt(shape, w, o, c, i, j, phase) : 0.0f;
            StoreElement<float>(type, out, to++, v);
          }
        }
      }
    };
    weights_ = build_.AddPack(std::move(pack));
  }

  void Kernel(LoweringContext& c) {
    a_ = PaddedArg(c, s_, in_);
    b_ = c.AddArg({KernelArg::Kind::kPack, weights_}, "w", weight_type_,
                  build_.lowered.packs[weights_].bytes / BytesFor(weight_type_, 1), false);
    turned_.Declare(c);
    Expr extent = flat_ ? row_pixels_ : s_.oh;
    Expr groups = CeilDiv(extent, chunk_);
    Expr panels = panels_ * Units();
    c.b().For("p", s_.n * panels * groups, LoopKind::kParallel, [&](Expr p) {
      const auto [n, panel, part] = PlaceOfChunk(p, s_.n, panels, groups, rows_outside_);
      if (last_ == nb_) return Chunk(c, {n, panel, nb_}, part);
      c.b().If(
          c.b().Cast(c.b().Index(Lt(panel, panels_ - 1)), DType::kBool),
          [&] { Chunk(c, {n, panel, nb_}, part); }, [&] { Chunk(c, {n, panel, last_}, part); });
    });
  }

  // The same where the result lies over the input: a chunk, of all panels, copies its pixels first.
  void KernelOver(LoweringContext& c) {
    const PaddedInput whole = in_;
    const int input = PaddedArg(c, s_, in_);
    b_ = c.AddArg({KernelArg::Kind::kPack, weights_}, "w", weight_type_,
                  build_.lowered.packs[weights_].bytes / BytesFor(weight_type_, 1), false);
    const Expr groups = CeilDiv(row_pixels_, chunk_);
    c.b().For("p", s_.n * groups, LoopKind::kParallel, [&](Expr p) {
      const auto [n, panel, part] = PlaceOfChunk(p, s_.n, 1, groups, true);
      const Expr first = part * chunk_, count = Min(chunk_, row_pixels_ - first);
      a_ = c.b().Alloc("pixels", s_.type, whole.c1 * (chunk_ * whole.c0));
      c.b().For("c1", whole.c1, LoopKind::kSerial, [&](Expr c1) {
        CopySpan(c.b(), input, whole.base + n * whole.sn + c1 * whole.sc1 + first * whole.sx, a_,
                 c1 * (chunk_ * whole.c0), count * whole.c0);
      });
      in_.base = 0 - first * whole.c0, in_.sn = 0, in_.sc1 = chunk_ * whole.c0, in_.sx = whole.c0;
      const int64_t wide = last_ == nb_ ? panels_ : panels_ - 1;
      c.b().For("panel", wide, LoopKind::kSerial, [&](Expr at) { Chunk(c, {n, at, nb_}, part); });
      if (last_ < nb_) Chunk(c, {n, wide, last_}, part);
    });
    in_ = whole;
  }

  // A panel of an image's output channels, `width` columns.
  struct Place {
    Expr n, panel;
    int width;
  };

  void Chunk(LoweringContext& c, const Place& at, Expr part) {
    Expr first = part * chunk_;
    if (!flat_)
      return ForLines(c.b(), s_, first, chunk_, lines_, [&](Expr y, int64_t lines) {
        if (lines_ == 1) return Row(c, at, y, 0, s_.ow);
        Tile(c, at, y, 0, static_cast<int>(lines * s_.ow.value()), lines);
      });
    if (!row_pixels_.IsConst()) return Row(c, at, 0, first, Min(chunk_, row_pixels_ - first));
    const int64_t whole = row_pixels_.value() / chunk_, left = row_pixels_.value() % chunk_;
    if (left == 0) return Row(c, at, 0, first, chunk_);
    if (whole == 0) return Row(c, at, 0, first, left);
    c.b().If(
        c.b().Cast(c.b().Index(Lt(part, whole)), DType::kBool),
        [&] { Row(c, at, 0, first, chunk_); }, [&] { Row(c, at, 0, first, left); });
  }

  // Pixels [first, first + count) of output row y.
  void Row(LoweringContext& c, const Place& at, Expr y, Expr first, Expr count) {
    ForRowTiles(c.b(), count, tile_.m, [&](Expr x, int m) { Tile(c, at, y, first + x, m); });
  }

  // m pixels of row y from x on, or of all `lines` rows from there on.
  void Tile(LoweringContext& c, const Place& place, Expr y, Expr x, int m, int64_t lines = 1) {
    const Expr n = place.n, panel = place.panel;
    const int width = place.width;
    const int64_t c0 = StepChannels(), columns = Columns();
    const int64_t steps = in_.c0 / c0;  // of a block
    Expr unit = Units() == 1 ? Expr(0) : FloorDiv(panel, panels_);
    Expr in_unit = Units() == 1 ? panel : Mod(panel, panels_);
    Expr group = s_.group == 1 ? Expr(0) : unit;
    ExprArena& arena = c.b().arena();
    auto symbol = [&](const char* name, int64_t extent) {
      return extent == 1 ? Expr(0)
                         : arena.Fresh(name, {.lo = 0, .hi = extent - 1, .extent = extent});
    };
    Expr c1 = symbol("c1", Batches()), i = symbol("i", s_.kh),
         j = ByRows() ? Expr(0) : symbol("j", s_.kw);
    tile::BrGemm g;
    g.m = m;
    g.n = width;
    g.n_valid = columns % nb_ == 0 || (last_ < nb_ && (width == nb_ || columns % width == 0))
                    ? Expr(width)
                    : Min(width, columns - in_unit * nb_);
    g.k = ByRows() ? RowDepth() : Batches() == 1 ? s_.ChannelsPerGroup() : c0;
    for (auto [s, extent] :
         {std::pair{c1, Batches()}, std::pair{i, s_.kh}, std::pair{j, ByRows() ? 1 : s_.kw}}) {
      if (extent > 1) g.batch.push_back({s, extent});
    }
    g.a_buffer = a_;
    Expr block = group * Batches() + c1;
    g.a =
        in_.base + n * in_.sn +
        (steps == 1 ? block * in_.sc1 : FloorDiv(block, steps) * in_.sc1 + Mod(block, steps) * c0) +
        (y * s_.sh + i * s_.dh) * in_.sy + (x * s_.sw + j * s_.dw) * in_.sx;
    g.a_row = in_.sx * s_.sw;
    g.a_k = in_.c0 == 1 ? in_.sx * s_.dw : Expr(1);
    SpreadOverLines(c, s_, in_, lines, &g);
    // Row and column of the output.
    const auto place_of = [&](Expr row) -> std::pair<Expr, Expr> {
      const Expr at = x + row;
      if (flat_ && s_.rank == 4) return {FloorDiv(at, pitch_), Mod(at, pitch_)};
      if (lines > 1) return {y + FloorDiv(at, s_.ow), Mod(at, s_.ow)};
      return {y, at};
    };
    g.b_buffer = b_;
    g.b = panel * (Depth() * nb_) + (c1 * s_.kh + i) * (RowDepth() * width) + j * (c0 * width);
    g.k_group = pairs_ ? 2 : 1;
    g.b_k = width * g.k_group;
    if (HintValue(row_pixels_ * rows_) > tile_.m)
      g.prefetch = PanelAhead(soc_, Depth() * nb_, panels_ * Units(), BytesFor(weight_type_, 1));
    c.b().Gemm(g, [&](Expr row, Expr col, Val acc) {
      Expr channel = group * columns + in_unit * nb_ + col, phase = s_.group == 1 ? unit : Expr(0);
      if (Merged()) phase = FloorDiv(channel, s_.o), channel = Mod(channel, s_.o);
      const auto [oy, ox] = place_of(row);
      if (s_.has_bias) acc = acc + c.Read(s_.bias, {channel});
      if (!s_.transposed)
        return IfReal(c, ox, [&, oy = oy, ox = ox] { turned_.Yield(c, n, channel, oy, ox, acc); });
      Scattered(c, n, channel, oy * s_.up_h + FloorDiv(phase, s_.up_w) - s_.cut_h,
                ox * s_.up_w + Mod(phase, s_.up_w) - s_.cut_w, acc);
    });
    const auto& outputs = build_.region.outputs;
    const bool padded = std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) {
      return BufferView(build_.g.value(v)).HasPadLanes();
    });
    if (!ZeroesLanes() || !padded) return;
    auto zero = [&] {
      c.b().For("row", m, LoopKind::kSerial, [&](Expr row) {
        const Expr oy = place_of(row).first, ox = place_of(row).second;
        IfReal(c, ox, [&] { ZeroPadLanes(c, s_, n, oy, ox); });
      });
    };
    if (panels_ == 1 || width < nb_) return zero();
    if (last_ < nb_) return;
    c.b().If(c.b().Cast(c.b().Index(Eq(panel, panels_ - 1)), DType::kBool), zero);
  }

  // Pixels of a run that lie beyond the output's width are dropped.
  void IfReal(LoweringContext& c, Expr x, const std::function<void()>& body) {
    if (!flat_ || pitch_ == s_.ow) return body();
    c.b().If(c.b().Cast(c.b().Index(Lt(x, s_.ow)), DType::kBool), body);
  }

  // An output of a transposed convolution; the first and the last of a row may
  // lie outside.
  void Scattered(LoweringContext& c, Expr n, Expr channel, Expr y, Expr x, Val value) {
    const std::vector<Expr>& dims = c.graph().value(s_.y).type.dims;
    Expr inside = 1;
    auto within = [&](Expr at, Expr extent, int64_t cut, Expr reached) {
      if (cut > 0) inside = And(inside, Le(0, at));
      if (!ProvablyLe(reached - cut, extent)) inside = And(inside, Lt(at, extent));
    };
    if (s_.rank == 4) within(y, dims[2], s_.cut_h, s_.oh * s_.up_h);
    within(x, dims.back(), s_.cut_w, s_.ow * s_.up_w);
    auto yield = [&] { c.Yield(s_.y, s_.At(n, channel, y, x), value); };
    if (inside.IsConst(1)) return yield();
    c.b().If(c.b().Cast(c.b().Index(inside), DType::kBool), yield);
  }

  CubeBuild build_;
  const SocSpec& soc_;
  const Policy& policy_;
  ConvShape s_;
  TurnedOutput turned_{build_, s_};
  PaddedInput in_;
  GemmTile tile_;
  bool flat_ = false, pairs_ = false, rows_outside_ = false, over_ = false;
  DType weight_type_ = DType::kF32;
  Expr row_pixels_, rows_, pitch_;  // pitch_: pixels from row to row where rows are one axis
  int64_t chunk_ = 1, panels_ = 1, lines_ = 1;  // lines_: of a tile
  int nb_ = 16, last_ = 16, weights_ = -1, a_ = -1,
      b_ = -1;  // last_: columns of the last panel
};

}  // namespace

Lowered LowerCubeConv(const Graph& g, const Region& region, const SocSpec& soc,
                      const Policy& policy) {
  ConvShape s = *ConvShapeOf(g, g.node(region.anchor));
  // Pairs of channels are read as they are; other small floats are copied to
  // f32.
  const bool pairs = s.c.value() % 2 == 0 && s.c.value() >= 16,
             rows = s.c.value() <= kFewInRows && s.kw > 1 && s.dw == 1 && !s.transposed;
  if (g.value(s.x).type.dtype == DType::kBF16 && soc.HasPairs() && s.group == 1 && (pairs || rows))
    s.type = DType::kBF16;
  if (s.group > 1 && s.ChannelsPerGroup() == 1) return LowerDepthwise(g, region, soc, policy, s);
  if (!IsSmallFloat(g.value(s.x).type.dtype)) return ConvLowering(g, region, soc, policy, s).Run();
  CubeBuild wanted(g, region, soc);
  wanted.Fix(policy, ConvProblem(g, s));
  const bool either = wanted.fixed.form.empty(), winograd = wanted.fixed.form == "winograd";
  if ((winograd && AllowsWinograd(s, policy)) || (either && PrefersWinograd(s, soc, policy)))
    return LowerWinograd(g, region, soc, policy, s);
  if ((winograd && AllowsWinogradRow(s, policy)) || (either && PrefersWinogradRow(s, soc, policy)))
    return LowerWinogradRow(g, region, soc, policy, s);
  return ConvLowering(g, region, soc, policy, s).Run();
}

}  // namespace ge
