// ConvInteger, MatMulInteger  Y = sum_k (A - a_zero) * (B - b_zero)   int32
//
//   Y = sum_k A' B' - a_zero' * sum_k B'
//
// around BrGemm in groups of four k: A' is A as u8 (i8 plus 128), B' = B - b_zero in i8, a constant
// packed as [panel][k / 4][nb][4]; a_zero' is A's zero point, plus 128 for i8; a matrix unit takes
// i8 as it is. The column sums of B' are a constant too. What follows (scales, bias, residual, the
// next quantisation) is fused into the epilogue like any pointwise consumer.
//
// Convolutions read NC1HWC0 with the zero point in the halo, or a copy of that form.
#include <fmt/format.h>

#include <algorithm>

#include "abi/convert.h"
#include "base/check.h"
#include "lower/cost.h"
#include "lower/cube_conv.h"
#include "lower/loops.h"

namespace ge {

using tile::LoopKind;
using tile::Val;

namespace {

int64_t IntAt(const Constant& c, int64_t i) {
  return LoadElement<int64_t>(c.dtype, c.bytes.data(), i);
}

const Constant* OperandConstant(const Graph& g, const Node& n, size_t i) {
  return i < n.inputs.size() ? g.ConstantOf(n.inputs[i]) : nullptr;
}
bool HasOperand(const Node& n, size_t i) { return i < n.inputs.size() && n.inputs[i] != kNone; }

// Zero points of B's columns: none, one, or one for each of `columns`.
bool ZerosOfColumns(const Graph& g, const Node& n, int64_t columns, std::vector<int64_t>* zeros) {
  zeros->assign(static_cast<size_t>(columns), 0);
  if (!HasOperand(n, 3)) return true;
  const Constant* c = OperandConstant(g, n, 3);
  if (c == nullptr || c->dims.size() > 1 || (c->Elements() != 1 && c->Elements() != columns))
    return false;
  for (int64_t i = 0; i < columns; ++i) (*zeros)[i] = IntAt(*c, c->Elements() == 1 ? 0 : i);
  return true;
}

// How many matrices of i8 add up to B - zero: one, or up to three where some of it is beyond i8, as
// weights of u8 have it unless their zero point is 128. Element i of B belongs to column
// (i / inner) % columns.
int PlanesOf(const Constant& b, const std::vector<int64_t>& zeros, int64_t inner) {
  const int64_t columns = static_cast<int64_t>(zeros.size());
  if (b.dtype == DType::kI8 && std::all_of(zeros.begin(), zeros.end(), [](auto z) { return !z; }))
    return 1;
  int planes = 1;
  for (int64_t i = 0; i < b.Elements(); ++i) {
    const int64_t v = IntAt(b, i) - zeros[i / inner % columns];
    while (v < -128 * planes || v > 127 * planes) ++planes;
  }
  return planes;
}

// What is added to an i8 A, which vector code multiplies as u8 and a matrix unit as it is.
int64_t Shift(const SocSpec& soc, DType a) {
  return a == DType::kI8 && !OnMatrixUnit(soc, 4) ? 128 : 0;
}

// Byte (k, col) of B' and its column sums times a number, packed. Where B' has two planes, a panel
// holds the first's bytes, then what they lack.
struct PackedB {
  int bytes = -1, sums = -1;  // numbers of the packs
};

PackedB PackBytes(CubeBuild& build, ValueId source, const std::string& form, int64_t depth,
                  int64_t columns, int planes, int nb, std::vector<int64_t> zeros, int64_t times,
                  std::function<int64_t(int64_t k, int64_t col)> at) {
  const int64_t panels = CeilOf(columns, nb);
  // Element of B' at (k, col); `at` gives its place in the constant, or -1 where there is none.
  auto element = [zeros = std::move(zeros), at = std::move(at)](const Constant& c, int64_t k,
                                                                int64_t col) -> int64_t {
    const int64_t i = at(k, col);
    return i < 0 ? 0 : IntAt(c, i) - zeros[col];
  };
  std::string key = form;
  Pack bytes{
      source, fmt::format("bytes {} in panels of {}", key, nb), panels * planes * depth * nb, {}};
  bytes.fill = [=](const Constant& c, std::byte* out) {
    int8_t* to = reinterpret_cast<int8_t*>(out);
    for (int64_t p = 0; p < panels; ++p)
      for (int64_t k = 0; k < planes * depth; k += 4)
        for (int64_t col = p * nb; col < (p + 1) * nb; ++col)
          for (int64_t j = k; j < k + 4; ++j) {
            int64_t v = col < columns ? element(c, j % depth, col) : 0;
            for (int64_t plane = j / depth; plane > 0; --plane)
              v -= std::clamp<int64_t>(v, -128, 127);
            *to++ = static_cast<int8_t>(std::clamp<int64_t>(v, -128, 127));
          }
  };
  Pack sums{
      source, fmt::format("sums {} of {} by {}", key, panels * nb, times), panels * nb * 4, {}};
  sums.fill = [=](const Constant& c, std::byte* out) {
    int32_t* to = reinterpret_cast<int32_t*>(out);
    for (int64_t col = 0; col < panels * nb; ++col) {
      int64_t sum = 0;
      for (int64_t k = 0; col < columns && k < depth; ++k) sum += element(c, k, col);
      *to++ = static_cast<int32_t>(static_cast<uint32_t>(sum * times));
    }
  };
  PackedB packed;
  packed.bytes = build.AddPack(std::move(bytes));
  packed.sums = build.AddPack(std::move(sums));
  return packed;
}

// Numbers of the zeros, so that packs of one source with other zeros have other keys.
std::string ZerosKey(const std::vector<int64_t>& zeros) {
  if (zeros.empty()) return "";
  if (std::all_of(zeros.begin(), zeros.end(), [&](int64_t z) { return z == zeros[0]; }))
    return fmt::format("zero {}", zeros[0]);
  return fmt::format("zeros {}", fmt::join(zeros, " "));
}

class ByteConv {
 public:
  ByteConv(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy,
           const ConvShape& s)
      : build_(g, region, soc), soc_(soc), s_(s) {
    build_.Fix(policy, ConvProblem(g, s));
    build_.RefuseForm("direct");
    if (build_.fixed.k > 0 || !build_.fixed.pack.empty())
      build_.Refuse(ToString(build_.fixed), "k and pack are for products of floats");
    o_ = s.o.value();
    GE_CHECK(ZerosOfColumns(g, g.node(region.anchor), o_, &zeros_));
    const Constant& w = *g.ConstantOf(s.weights);
    planes_ = PlanesOf(w, zeros_, w.Elements() / o_);
  }

  Lowered Run() {
    in_ = PadInput(build_, s_);
    Choose();
    const int64_t c0 = in_.c0, kh = s_.kh, kw = s_.kw, channels = s_.c.value(), row = RowDepth();
    packed_ = PackBytes(
        build_, s_.weights, fmt::format("channels by {} {}", c0, ZerosKey(zeros_)),
        Blocks() * kh * row, o_, planes_, nb_, zeros_, s_.zero_value == kNone ? -Zero() : 1,
        [=](int64_t k, int64_t col) {
          const int64_t c = k / (kh * row) * c0 + k % row % c0, i = k / row % kh, j = k % row / c0;
          return c < channels && j < kw ? ((col * channels + c) * kh + i) * kw + j : -1;
        });
    // The analyser takes the function that PackBytes keeps for a leak.
    // NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)
    build_.AddKernel(
        fmt::format("bytes {}x{} batch {}x{}x{}{}{}", tile_.m, nb_, Blocks(), kh,
                    RowOfWindow() ? 1 : kw, planes_ > 1 ? fmt::format(" {} times", planes_) : "",
                    flat_ ? " flat" : ""),
        [&](LoweringContext& c) { Kernel(c); });
    NoteChoice();
    // NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  int64_t Blocks() const { return CeilOf(s_.c.value(), in_.c0); }
  int64_t Depth() const { return planes_ * Blocks() * s_.kh * RowDepth(); }
  // One block of channels: a row of the window is one run of bytes.
  bool RowOfWindow() const { return Blocks() == 1 && s_.dw == 1 && in_.sx.IsConst(in_.c0); }
  int64_t RowDepth() const { return in_.row_depth > 0 ? in_.row_depth : s_.kw * in_.c0; }

  void Choose() {
    flat_ =
        s_.kh == 1 && s_.kw == 1 && s_.sh == 1 && s_.sw == 1 && ProvablyEq(in_.sy, s_.ow * in_.sx);
    pitch_ = s_.ow;
    pixels_ = flat_ ? s_.oh * s_.ow : s_.ow;
    if (const int64_t run = flat_ ? 0 : RunPitch(soc_, 4, s_, in_); run > 0) {
      flat_ = true, pitch_ = run;
      pixels_ = (s_.oh - 1) * run + s_.ow;
    }
    tile_ = ByteTile(build_, pixels_, HintValue(pixels_), o_);
    nb_ = tile_.nv * soc_.F32Lanes();
    if (!flat_)
      lines_ = LinesOfTile(build_, s_, tile_, 4, MaxByteRows(soc_, tile_.nv), Depth() * nb_);
    if (lines_ > 1) tile_.m = static_cast<int>(lines_ * s_.ow.value());
    panels_ = CeilOf(o_, nb_);
    const double ns =
        static_cast<double>(Depth() * nb_) / MacsPerCycle(soc_, 4) / soc_.ghz;  // of a pixel
    rows_outside_ = build_.fixed.order.empty()
                        ? RowsOutside(soc_, static_cast<double>(Depth() * nb_ * panels_), s_)
                        : build_.fixed.order == "mn";
    const int64_t inside = rows_outside_ ? panels_ : 1;  // panels of the same rows in turn
    const int64_t outside = HintValue(s_.n) * panels_ / inside;
    const double turn = ns * static_cast<double>(inside), others = static_cast<double>(outside);
    chunk_ =
        flat_ ? RowsPerChunk(soc_, turn * tile_.m, HintValue(CeilDiv(pixels_, tile_.m)), others) *
                    tile_.m
              : RowsPerChunk(soc_, turn * static_cast<double>(HintValue(s_.ow)), HintValue(s_.oh),
                             others);
    // A weight panel larger than a quarter of L2 must be read once only.
    if (static_cast<double>(Depth()) * nb_ > static_cast<double>(soc_.l2_bytes) / 4)
      chunk_ = std::max(chunk_, HintValue(flat_ ? pixels_ : s_.oh));
    chunk_ = CeilOf(chunk_, lines_) * lines_;
    chunk_ = build_.TaskRows(chunk_, flat_ ? pixels_ : s_.oh);
  }

  void NoteChoice() {
    OpenDot d;
    d.line = std::max<int64_t>(HintValue(pixels_), 1);
    d.lines = flat_ ? 1 : std::max<int64_t>(HintValue(s_.oh), 1);
    d.cols = o_, d.depth = Depth();
    DotChoice chosen = build_.fixed;
    chosen.m = tile_.m, chosen.nv = tile_.nv, chosen.order = rows_outside_ ? "mn" : "nm";
    chosen.rows = std::min(chunk_, flat_ ? d.line : d.lines);
    build_.NoteChoice(chosen, ByteChoices(pixels_, d, chosen, soc_));
  }

  void Kernel(LoweringContext& c) {
    a_ = PaddedArg(c, s_, in_);
    const auto& packs = build_.lowered.packs;
    b_ = c.AddArg({KernelArg::Kind::kPack, packed_.bytes}, "w", DType::kI8,
                  packs[packed_.bytes].bytes, false);
    if (s_.zero_value != kNone || Zero() != 0) {
      sums_ = c.AddArg({KernelArg::Kind::kPack, packed_.sums}, "sums", DType::kI32,
                       packs[packed_.sums].bytes / 4, false);
    }
    Expr groups = CeilDiv(flat_ ? pixels_ : s_.oh, chunk_);
    c.b().For("p", s_.n * panels_ * groups, LoopKind::kParallel, [&](Expr p) {
      const auto [n, panel, part] = PlaceOfChunk(p, s_.n, panels_, groups, rows_outside_);
      Chunk(c, n, panel, part, part * chunk_);
    });
  }

  void Chunk(LoweringContext& c, Expr n, Expr panel, Expr part, Expr first) {
    if (!flat_)
      return ForLines(c.b(), s_, first, chunk_, lines_, [&](Expr y, int64_t lines) {
        if (lines_ == 1) return Row(c, n, panel, y, 0, s_.ow);
        Tile(c, n, panel, y, 0, static_cast<int>(lines * s_.ow.value()), lines);
      });
    if (!pixels_.IsConst()) return Row(c, n, panel, 0, first, Min(chunk_, pixels_ - first));
    const int64_t whole = pixels_.value() / chunk_, left = pixels_.value() % chunk_;
    if (left == 0) return Row(c, n, panel, 0, first, chunk_);
    if (whole == 0) return Row(c, n, panel, 0, first, left);
    c.b().If(
        c.b().Cast(c.b().Index(Lt(part, whole)), DType::kBool),
        [&] { Row(c, n, panel, 0, first, chunk_); }, [&] { Row(c, n, panel, 0, first, left); });
  }

  // Pixels [first, first + count) of output row y.
  void Row(LoweringContext& c, Expr n, Expr panel, Expr y, Expr first, Expr count) {
    ForRowTiles(c.b(), count, tile_.m, [&](Expr x, int m) { Tile(c, n, panel, y, first + x, m); });
  }

  // m pixels of row y from x on, or of all `lines` rows from there on.
  void Tile(LoweringContext& c, Expr n, Expr panel, Expr y, Expr x, int m, int64_t lines = 1) {
    const int64_t c0 = in_.c0;
    ExprArena& arena = c.b().arena();
    tile::BrGemm g;
    auto symbol = [&](const char* name, int64_t extent) {
      if (extent == 1) return Expr(0);
      Expr s = arena.Fresh(name, {.lo = 0, .hi = extent - 1, .extent = extent});
      g.batch.push_back({s, extent});
      return s;
    };
    Expr plane = symbol("plane", planes_), c1 = symbol("c1", Blocks()), i = symbol("i", s_.kh),
         j = RowOfWindow() ? Expr(0) : symbol("j", s_.kw);
    g.m = m;
    g.n = nb_;
    g.n_valid = o_ % nb_ == 0 ? Expr(nb_) : Min(nb_, o_ - panel * nb_);
    g.k = RowOfWindow() ? RowDepth() : c0;
    g.k_group = 4;
    g.signed_a = s_.type == DType::kI8 && OnMatrixUnit(soc_, 4);
    g.a_buffer = a_;
    g.a = in_.base + n * in_.sn + c1 * in_.sc1 + (y * s_.sh + i * s_.dh) * in_.sy +
          (x * s_.sw + j * s_.dw) * in_.sx;
    g.a_row = in_.sx * s_.sw;
    g.a_k = 1;
    SpreadOverLines(c, s_, in_, lines, &g);
    g.b_buffer = b_;
    g.b = (((panel * planes_ + plane) * Blocks() + c1) * s_.kh + i) * (RowDepth() * nb_) +
          j * (c0 * nb_);
    g.b_k = nb_ * 4;
    if (HintValue(s_.oh * s_.ow) > tile_.m)
      g.prefetch = PanelAhead(soc_, Depth() * nb_, panels_, 1);
    const Val zero = s_.zero_value != kNone ? Zero(c) : Val();
    c.b().Gemm(g, [&](Expr row, Expr col, Val acc) {
      const Expr line = lines == 1 ? Expr(0) : FloorDiv(row, s_.ow);
      Expr channel = panel * nb_ + col, at = x + row - line * s_.ow;
      const bool image = flat_ && s_.rank == 4;
      if (zero.valid()) acc = acc - c.b().Load(sums_, channel) * zero;
      if (!zero.valid() && sums_ >= 0) acc = acc + c.b().Load(sums_, channel);
      const Expr ox = image ? Mod(at, pitch_) : at;
      auto yield = [&] {
        c.Yield(s_.y, s_.At(n, channel, image ? FloorDiv(at, pitch_) : y + line, ox), acc);
      };
      if (!image || pitch_ == s_.ow) return yield();
      c.b().If(c.b().Cast(c.b().Index(Lt(ox, s_.ow)), DType::kBool), yield);
    });
  }

  int64_t Zero() const { return s_.zero + Shift(soc_, s_.type); }
  // The input's zero point, as a number for what is multiplied.
  Val Zero(LoweringContext& c) const {
    const Index scalar(c.graph().value(s_.zero_value).type.dims.size(), Expr(0));
    return c.b().Let(c.Read(s_.zero_value, scalar) + c.b().ConstInt(DType::kI32, Zero()));
  }

  CubeBuild build_;
  const SocSpec& soc_;
  ConvShape s_;
  PaddedInput in_;
  GemmTile tile_;
  bool flat_ = false, rows_outside_ = false;
  Expr pixels_, pitch_;
  int64_t o_ = 1, chunk_ = 1, panels_ = 1, lines_ = 1;  // lines_: of a tile
  std::vector<int64_t> zeros_;
  PackedB packed_;
  int planes_ = 1, nb_ = 16, a_ = -1, b_ = -1, sums_ = -1;
};

// Rows of A are read where they lie if there are whole groups of k, else from a copy.
class ByteMatMul {
 public:
  ByteMatMul(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy)
      : g_(g), node_(g.node(region.anchor)), build_(g, region, soc), soc_(soc) {
    const std::vector<Expr>& a = g.value(node_.inputs[0]).type.dims;
    k_ = a.back().value();
    depth_ = (k_ + 3) / 4 * 4;
    n_ = g.value(node_.inputs[1]).type.dims.back().value();
    rows_ = Product({a.begin(), a.end() - 1});
    a_type_ = g.value(node_.inputs[0]).type.dtype;
    build_.Fix(policy, fmt::format("gemm {} {}x{}x{}", Name(a_type_),
                                   rows_.IsConst() ? ToString(rows_) : "n", n_, k_));
    build_.NoConvolution();
    if (build_.fixed.k > 0 || !build_.fixed.pack.empty())
      build_.Refuse(ToString(build_.fixed), "k and pack are for products of floats");
    GE_CHECK(ZerosOfColumns(g, node_, n_, &zeros_));
    planes_ = PlanesOf(*g.ConstantOf(node_.inputs[1]), zeros_, 1);
  }

  Lowered Run() {
    fixed_ = ConstantZero(g_, node_, 2, &zero_);
    zero_ += Shift(soc_, a_type_);
    direct_ = Direct();
    if (!direct_) StageA();
    Choose();
    const int64_t k_real = k_, n = n_;
    packed_ = PackBytes(build_, node_.inputs[1], "rows " + ZerosKey(zeros_), depth_, n_, planes_,
                        nb_, zeros_, fixed_ ? -zero_ : 1, [=](int64_t k, int64_t col) {
                          return k < k_real ? k * n + col : int64_t{-1};
                        });
    build_.AddKernel(
        fmt::format("bytes {}x{} rows {} of {}{}", tile_.m, nb_, group_, ToString(rows_),
                    planes_ > 1 ? fmt::format(" {} times", planes_) : ""),
        [&](LoweringContext& c) { Kernel(c); });
    NoteChoice();
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  bool Direct() const {
    const Value& a = g_.value(node_.inputs[0]);
    if (k_ % 4 != 0 || !a.type.layout.IsNd() || !a.halo.empty()) return false;
    if (g_.IsConstant(node_.inputs[0]) || a.elems) return false;
    return std::find(build_.region.nodes.begin(), build_.region.nodes.end(), a.producer) ==
           build_.region.nodes.end();
  }

  Index Place(Expr r) const {
    const std::vector<Expr>& dims = g_.value(node_.inputs[0]).type.dims;
    Index idx(dims.size() - 1, Expr(0));
    size_t first = 0;
    while (first + 1 < idx.size() && dims[first].IsConst(1)) ++first;
    for (size_t d = idx.size() - 1; d > first; --d) {
      if (dims[d].IsConst(1)) continue;
      idx[d] = Mod(r, dims[d]);
      r = FloorDiv(r, dims[d]);
    }
    idx[first] = r;
    return idx;
  }

  void StageA() {
    temp_ = build_.AddTemp(rows_ * depth_);
    build_.AddKernel("copy A", [&](LoweringContext& c) {
      int temp = c.AddArg({KernelArg::Kind::kTemp, temp_}, "a",
                          g_.value(node_.inputs[0]).type.dtype, rows_ * depth_, true);
      LoopPolicy policy;
      policy.ns_per_iteration = 0.2;
      LoopReport report;
      NestLoops(
          c.b(), {rows_, Expr(depth_)}, true, policy,
          [&](const Index& i) {
            Index idx = Place(i[0]);
            idx.push_back(depth_ == k_ ? i[1] : Min(i[1], k_ - 1));
            c.b().Store(temp, i[0] * depth_ + i[1], c.Read(node_.inputs[0], idx));
          },
          &report);
    });
  }

  void Choose() {
    const int64_t rows = HintValue(rows_);
    tile_ = ByteTile(build_, rows_, rows_.IsConst() ? rows : std::max<int64_t>(rows, 64), n_);
    nb_ = tile_.nv * soc_.F32Lanes();
    panels_ = CeilOf(n_, nb_);
    const double ns_per_row =
        static_cast<double>(planes_ * depth_ * nb_) / MacsPerCycle(soc_, 4) / soc_.ghz;
    auto round = [&](double r) {
      return std::max<int64_t>(static_cast<int64_t>(r) / tile_.m, 1) * tile_.m;
    };
    const int64_t fits =
        round(static_cast<double>(soc_.l2_bytes) / 2 / static_cast<double>(depth_));
    const double wanted = std::max(1.0, 8 / static_cast<double>(panels_));
    const int64_t smaller = round(std::max(static_cast<double>(rows) / wanted, 20000 / ns_per_row));
    group_ = std::max<int64_t>(std::min({rows_.IsConst() ? rows : round(64), fits, smaller}), 1);
    group_ = build_.TaskRows(group_, rows_);
    panel_outside_ =
        build_.fixed.order.empty() ? n_ / group_ > rows / nb_ : build_.fixed.order == "nm";
  }

  void NoteChoice() {
    OpenDot d;
    d.line = std::max<int64_t>(HintValue(rows_), 1), d.cols = n_, d.depth = depth_;
    DotChoice chosen = build_.fixed;
    chosen.m = tile_.m, chosen.nv = tile_.nv, chosen.rows = group_;
    chosen.order = panel_outside_ ? "nm" : "mn";
    build_.NoteChoice(chosen, ByteChoices(rows_, d, chosen, soc_));
  }

  void Kernel(LoweringContext& c) {
    a_ = direct_ ? c.ArgOf(node_.inputs[0])
                 : c.AddArg({KernelArg::Kind::kTemp, temp_}, "a",
                            g_.value(node_.inputs[0]).type.dtype, rows_ * depth_, false);
    const auto& packs = build_.lowered.packs;
    b_ = c.AddArg({KernelArg::Kind::kPack, packed_.bytes}, "b", DType::kI8,
                  packs[packed_.bytes].bytes, false);
    sums_ = -1;
    if (!fixed_ || zero_ != 0) {
      sums_ = c.AddArg({KernelArg::Kind::kPack, packed_.sums}, "sums", DType::kI32,
                       packs[packed_.sums].bytes / 4, false);
    }
    Expr groups = CeilDiv(rows_, group_);
    c.b().For("p", panels_ * groups, LoopKind::kParallel, [&](Expr p) {
      Expr inner = panel_outside_ ? groups : Expr(panels_);
      Expr outer_index = inner.IsConst(1) ? p : FloorDiv(p, inner);
      Expr inner_index = inner.IsConst(1) ? Expr(0) : Mod(p, inner);
      Expr panel = panel_outside_ ? outer_index : inner_index,
           group = panel_outside_ ? inner_index : outer_index;
      Val zero;
      if (!fixed_) zero = c.b().Let(Zero(c));
      Chunk(c, zero, panel, group);
    });
  }

  // A's zero point, as a number for what is multiplied.
  Val Zero(LoweringContext& c) {
    Val v = c.b().ConstInt(DType::kI32, Shift(soc_, a_type_));
    if (!HasOperand(node_, 2)) return v;
    const ValueId z = node_.inputs[2];
    return c.Read(z, Index(g_.value(z).type.dims.size(), Expr(0))) + v;
  }

  void Chunk(LoweringContext& c, Val zero, Expr panel, Expr group) {
    Expr first = group * group_;
    auto rows = [&](Expr count) {
      const auto tile = [&](Expr r, int m) { Tile(c, zero, panel, first + r, m); };
      OnMatrixUnit(soc_, 4) ? ForRowTiles(c.b(), count, tile_.m, tile)
                            : ForEvenRowTiles(c.b(), count, tile_.m, tile);
    };
    if (!rows_.IsConst()) return rows(Min(group_, rows_ - first));
    const int64_t whole = rows_.value() / group_, rest = rows_.value() % group_;
    if (rest == 0) return rows(group_);
    if (whole == 0) return rows(rest);
    c.b().If(
        c.b().Cast(c.b().Index(Lt(group, whole)), DType::kBool), [&] { rows(group_); },
        [&] { rows(rest); });
  }

  void Tile(LoweringContext& c, Val zero, Expr panel, Expr first, int m) {
    tile::BrGemm g;
    g.m = m;
    g.n = nb_;
    g.n_valid = n_ % nb_ == 0 ? Expr(nb_) : Min(nb_, n_ - panel * nb_);
    g.k = depth_;
    g.k_group = 4;
    g.signed_a = a_type_ == DType::kI8 && OnMatrixUnit(soc_, 4);
    g.a_buffer = a_;
    g.a = first * depth_;
    g.a_row = depth_;
    g.a_k = 1;
    g.b_buffer = b_;
    g.b = panel * (planes_ * depth_ * nb_);
    if (planes_ > 1) {
      const Expr plane =
          c.b().arena().Fresh("plane", {.lo = 0, .hi = planes_ - 1, .extent = planes_});
      g.batch.push_back({plane, planes_});
      g.b = g.b + plane * (depth_ * nb_);
    }
    g.b_k = nb_ * 4;
    if (!rows_.IsConst(1)) g.prefetch = WeightsAhead(soc_, planes_ * depth_ * nb_, panels_, 1);
    c.b().Gemm(g, [&](Expr row, Expr col, Val acc) {
      Expr r = first + row, column = panel * nb_ + col;
      Index idx = Place(r);
      idx.push_back(column);
      if (zero.valid()) acc = acc - c.b().Load(sums_, column) * zero;
      if (fixed_ && zero_ != 0) acc = acc + c.b().Load(sums_, column);
      EnterWalk(c, idx, r);
      c.Yield(node_.outputs[0], idx, acc);
      c.walk.reset();
    });
  }

  // All axes but the last count as one loop over r.
  void EnterWalk(LoweringContext& c, const Index& idx, Expr r) const {
    const Value& out = g_.value(node_.outputs[0]);
    if (idx.size() < 3 || !out.type.layout.IsNd() || !out.halo.empty()) return;
    Walk walk;
    walk.view = BufferView(out);
    walk.logical = walk.physical = idx;
    const int last = static_cast<int>(idx.size()) - 2;
    int first = 0;
    while (first < last && out.type.dims[first].IsConst(1)) ++first;
    if (first < last) walk.groups.push_back({first, last, r});
    c.walk = std::move(walk);
  }

  const Graph& g_;
  const Node& node_;
  CubeBuild build_;
  const SocSpec& soc_;
  int64_t k_ = 0, depth_ = 0, n_ = 0, planes_ = 1, panels_ = 1, group_ = 1;
  Expr rows_;
  std::vector<int64_t> zeros_;
  GemmTile tile_;
  PackedB packed_;
  DType a_type_ = DType::kU8;
  int64_t zero_ = 0;  // A's zero point as a number for what is multiplied, if it is `fixed_`
  bool direct_ = false, panel_outside_ = true, fixed_ = false;
  int nb_ = 16, temp_ = -1, a_ = -1, b_ = -1, sums_ = -1;
};

bool SupportsByteMatMul(const Graph& g, const Node& node) {
  const TensorType &a = g.value(node.inputs[0]).type, &b = g.value(node.inputs[1]).type;
  const Constant* constant = g.ConstantOf(node.inputs[1]);
  if (!IsByte(a.dtype) || constant == nullptr || a.rank() < 2 || b.rank() != 2) return false;
  if (!a.dims.back().IsConst() || a.Elements().IsConst(0) || constant->Elements() == 0)
    return false;
  if (HasOperand(node, 2) && !g.value(node.inputs[2]).type.Elements().IsConst(1)) return false;
  std::vector<int64_t> zeros;
  return ZerosOfColumns(g, node, constant->dims[1], &zeros);
}

bool SupportsByteConv(const Graph& g, const Node& node) {
  std::optional<ConvShape> s = ConvShapeOf(g, node);
  if (!s || !IsByte(s->type) || s->group != 1) return false;
  const Constant& w = *g.ConstantOf(s->weights);
  std::vector<int64_t> zeros;
  return IsByte(w.dtype) && ZerosOfColumns(g, node, s->o.value(), &zeros);
}

}  // namespace

bool ConstantZero(const Graph& g, const Node& node, int operand, int64_t* zero) {
  *zero = 0;
  if (!HasOperand(node, operand)) return true;
  const Constant* c = OperandConstant(g, node, operand);
  if (c == nullptr || c->Elements() != 1) return false;
  *zero = IntAt(*c, 0);
  return true;
}

bool SupportsBytes(const Graph& g, const Region& region) {
  const Node& node = g.node(region.anchor);
  return node.op->name == "ConvInteger" ? SupportsByteConv(g, node) : SupportsByteMatMul(g, node);
}

Lowered LowerCubeBytes(const Graph& g, const Region& region, const SocSpec& soc,
                       const Policy& policy) {
  const Node& node = g.node(region.anchor);
  if (node.op->name == "ConvInteger")
    return ByteConv(g, region, soc, policy, *ConvShapeOf(g, node)).Run();
  return ByteMatMul(g, region, soc, policy).Run();
}

}  // namespace ge
