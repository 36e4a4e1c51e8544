// ge.RNN, ge.GRU, ge.LSTM with constant R: state * R^T is a BrGemm over some batch entries at once,
// so that R is read once for all of them in each step.
//
//   grid: directions x groups of batch entries; time runs inside
//
// R is packed as [direction][part][panel][hidden][nb], a part being the gates that are summed
// together.
#include <fmt/format.h>

#include <algorithm>

#include "lower/cube_gemm.h"
#include "ops/recurrent.h"

namespace ge {

namespace {

using tile::LoopKind;

constexpr int kMostRows = 6;  // more would leave a second worker nothing

class RecurrentLowering {
 public:
  RecurrentLowering(const Graph& g, const Region& region, const SocSpec& soc)
      : node_(g.node(region.anchor)), build_(g, region, soc) {
    const std::vector<Expr>& p = g.value(node_.inputs[0]).type.dims;
    const std::vector<Expr>& r = g.value(node_.inputs[1]).type.dims;
    hidden_ = r[2].value();
    dirs_ = r[0].value();
    const Expr batch = p[AttrOr<int64_t>(node_, "layout", 0) != 0 ? 0 : 1];
    const bool lengths = node_.inputs.size() > 3 && node_.inputs[3] != kNone;
    const int64_t entries = std::max<int64_t>(HintValue(batch), 1);
    const int64_t groups = CeilOf(entries, kMostRows);
    // Entries of different lengths walk time each on its own.
    dots_.rows = lengths ? 1 : batch.IsConst() ? CeilOf(entries, groups) : 4;
    tile_ = ChooseTile(dots_.rows, hidden_ * GatesOf(node_), soc, 0, static_cast<int>(dots_.rows));
    nb_ = tile_.nv * soc.F32Lanes();
    dots_.sums = [this](const Recurrent::Chunk& c, int state, Expr first, Expr count,
                        const Recurrent::Sink& sink) { Sums(c, state, first, count, sink); };
  }

  Lowered Run() {
    PackWeights();
    build_.AddKernel(fmt::format("recurrent {}x{} entries {}", tile_.m, nb_, dots_.rows),
                     [&](LoweringContext& c) {
                       b_ = &c.b();
                       weights_ = c.AddArg({KernelArg::Kind::kPack, pack_}, "r", DType::kF32,
                                           build_.lowered.packs[pack_].bytes / 4, false);
                       NodeLowering face(c, build_.region.anchor);
                       LowerRecurrence(face, &dots_);
                     });
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  int64_t Panels(int64_t columns) const { return CeilOf(columns, nb_); }

  void PackWeights() {
    const int64_t hidden = hidden_, dirs = dirs_, nb = nb_;
    const int64_t sums = hidden * GatesOf(node_);
    std::vector<std::pair<int64_t, int64_t>> parts;  // first column, number
    direction_ = 0;
    for (auto [first, count] : PartsOf(node_)) {
      parts.emplace_back(first * hidden, count * hidden);
      direction_ += Panels(count * hidden) * hidden * nb;
    }
    Pack pack;
    pack.source = node_.inputs[1];
    pack.key = fmt::format("recurrent {} panels of {}", parts.size(), nb);
    pack.bytes = dirs * direction_ * 4;
    pack.fill = [=](const Constant& r, std::byte* out) {
      float* to = reinterpret_cast<float*>(out);
      for (int64_t d = 0; d < dirs; ++d)
        for (auto [first, count] : parts)
          for (int64_t panel = 0; panel < count; panel += nb)
            for (int64_t k = 0; k < hidden; ++k)
              for (int64_t n = panel; n < panel + nb; ++n)
                *to++ = n < count ? FloatAt(r, (d * sums + first + n) * hidden + k) : 0.0F;
    };
    pack_ = build_.AddPack(std::move(pack));
  }

  void Sums(const Recurrent::Chunk& c, int state, Expr first, Expr count,
            const Recurrent::Sink& sink) {
    const int64_t before = Panels(first.value()), columns = count.value();
    auto tile = [&](Expr row, int m, Expr panel) {
      tile::BrGemm g;
      g.m = m;
      g.n = nb_;
      g.n_valid = columns % nb_ == 0 ? Expr(nb_) : Min(nb_, columns - panel * nb_);
      g.k = hidden_;
      g.a_buffer = state;
      g.a = row * hidden_, g.a_row = hidden_, g.a_k = 1;
      g.b_buffer = weights_;
      g.b = c.dir * direction_ + (before + panel) * (hidden_ * nb_), g.b_k = nb_;
      b_->Gemm(g, [&](Expr i, Expr col, tile::Val acc) {
        sink(row + i, first + panel * nb_ + col, acc);
      });
    };
    auto rows = [&](Expr panel) {
      ForRowTiles(*b_, c.rows, tile_.m, [&](Expr row, int m) { tile(row, m, panel); });
    };
    if (columns <= nb_) return rows(0);
    b_->For("panel", Panels(columns), LoopKind::kSerial, rows);
  }

  const Node& node_;
  CubeBuild build_;
  Recurrent::Dots dots_;
  GemmTile tile_;
  tile::Builder* b_ = nullptr;
  int64_t hidden_ = 0, dirs_ = 0, direction_ = 0;  // direction_: elements of one in the pack
  int nb_ = 16, pack_ = -1, weights_ = -1;
};

}  // namespace

bool SupportsRecurrent(const Graph& g, const Region& region) {
  const Node& n = g.node(region.anchor);
  if (g.value(n.inputs[0]).type.dtype != DType::kF32 || !g.IsConstant(n.inputs[1])) return false;
  const std::vector<Expr>& r = g.value(n.inputs[1]).type.dims;
  return r[2].value() > 0 && g.value(n.inputs[1]).type.dtype == DType::kF32;
}

Lowered LowerCubeRecurrent(const Graph& g, const Region& region, const SocSpec& soc) {
  return RecurrentLowering(g, region, soc).Run();
}

}  // namespace ge
