// Winograd F(m, r) of a convolution of stride 1 whose window is one row of r = 3 or 5: of six
// points, so that m = 7 - r outputs of a row take six products instead of m * r.
//
//   V[xi][t][c] = (B^T d)[xi]       d: the 6 inputs of tile t, which makes m outputs of a row
//   M[xi][t][o] = sum_c V[xi][t][c] * U[xi][c][o]        6 matrix products by BrGemm
//   Y[m of t]   = A^T M, then the fused consumers        U = G w, packed at compile time
//
// One kernel makes V of all tiles. In the other a chunk is a panel of output channels for a group
// of tiles whose V stays in the L2 cache; M of a few tiles at a time lies in the worker's scratch.
// Ragged tiles read the last input again and do not store what lies outside.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "lower/cube_conv.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

constexpr int kPoints = 6;
constexpr double kError = 2e-5;      // what the transforms add, relative to the output's rms
constexpr double kGain = 0.85;       // must beat the direct form by this
constexpr int64_t kLeastTiles = 28;  // of a row
constexpr double kPlaces[] = {0, 1, -1, 2, -2};  // and infinity

// U = G w of one window of `taps`.
void WeightTransform(const std::array<double, 5>& w, int taps, std::array<double, kPoints>& u) {
  static constexpr double kScale[] = {1.0 / 4, -1.0 / 6, -1.0 / 6, 1.0 / 24, 1.0 / 24};
  for (int i = 0; i < kPoints - 1; ++i) {
    double sum = 0, power = 1;
    for (int k = 0; k < taps; ++k, power *= kPlaces[i]) sum += power * w[k];
    u[i] = sum * kScale[i];
  }
  u[kPoints - 1] = w[taps - 1];
}

class RowLowering {
 public:
  RowLowering(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy,
              const ConvShape& s)
      : build_(g, region, soc), soc_(soc), s_(s), o_(s.o.value()) {
    build_.Fix(policy, ConvProblem(g, s));
    build_.KeepTileOnly("Winograd's form");
    outputs_ = kPoints + 1 - s.kw;
    cols_ = CeilDiv(s.ow, outputs_);
    tiles_ = s.n * s.oh * cols_;
  }

  Lowered Run() {
    in_ = PadInput(build_, s_);
    c_ = in_.c1.value() * in_.c0;
    tile_ = build_.fixed.m > 0 ? build_.Tile(14, o_, 0) : ChooseTile(14, o_, soc_, 0, 14);
    nb_ = tile_.nv * soc_.F32Lanes();
    panels_ = CeilOf(o_, nb_);
    group_ = std::max<int64_t>(1, soc_.l2_bytes / 2 / (kPoints * c_ * 4));
    if (cols_.IsConst()) group_ = CeilOf(cols_.value(), CeilOf(cols_.value(), group_));
    PackWeights();
    v_ = build_.AddTemp(kPoints * tiles_ * c_ * 4);
    build_.AddKernel("winograd row input", [&](LoweringContext& c) { Inputs(c); });
    build_.AddKernel(fmt::format("winograd row F({},{}) brgemm {}x{} k {} groups of {}", outputs_,
                                 s_.kw, tile_.m, nb_, c_, group_),
                     [&](LoweringContext& c) { Outputs(c); });
    build_.NoteWinograd(tile_);
    turned_.Finish();
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  void PackWeights() {
    const int64_t depth = c_, channels = s_.c.value(), outputs = o_, nb = nb_, panels = panels_;
    const int taps = static_cast<int>(s_.kw);
    Pack pack;
    pack.source = s_.weights;
    pack.key = fmt::format("winograd row of {} panels of {}, {} channels", taps, nb, depth);
    pack.bytes = kPoints * panels * depth * nb * 4;
    pack.fill = [=](const Constant& w, std::byte* out) {
      float* to = reinterpret_cast<float*>(out);
      for (int64_t o = 0; o < panels * nb; ++o) {
        for (int64_t c = 0; c < depth; ++c) {
          std::array<double, 5> window{};
          std::array<double, kPoints> u{};
          for (int j = 0; j < taps && o < outputs && c < channels; ++j)
            window[j] = static_cast<double>(FloatAt(w, (o * channels + c) * taps + j));
          WeightTransform(window, taps, u);
          for (int64_t xi = 0; xi < kPoints; ++xi)
            to[((o / nb * kPoints + xi) * depth + c) * nb + o % nb] = static_cast<float>(u[xi]);
        }
      }
    };
    u_ = build_.AddPack(std::move(pack));
  }

  int ArgV(LoweringContext& c, bool written) {
    return c.AddArg({KernelArg::Kind::kTemp, v_}, "v", DType::kF32, kPoints * tiles_ * c_, written);
  }
  // V is [tile][xi][c]: a group of tiles is one run of memory.
  Expr PlaceInV(Expr tile, Expr xi) const { return (tile * kPoints + xi) * c_; }

  struct Place {
    Expr n, y, x;  // x in tiles
  };
  static Expr Named(tile::Builder& b, Expr e, Expr below = 0) {
    if (e.IsConst()) return e;
    const int64_t hi = below.IsConst() && below.value() > 0 ? below.value() - 1 : INT64_MAX / 4096;
    return b.LetIndex(b.Let(b.Index(e)), 0, hi);
  }
  Place PlaceOf(tile::Builder& b, Expr t) const {
    const Expr row = Named(b, FloorDiv(t, cols_), s_.n * s_.oh),
               x = Named(b, t - row * cols_, cols_);
    if (s_.n.IsConst(1)) return {0, row, x};
    const Expr n = Named(b, FloorDiv(row, s_.oh), s_.n);
    return {n, Named(b, row - n * s_.oh, s_.oh), x};
  }

  void Inputs(LoweringContext& c) {
    tile::Builder& b = c.b();
    const int x = PaddedArg(c, s_, in_), v = ArgV(c, true);
    const int64_t each = std::max<int64_t>(1, 20000 / std::max<int64_t>(1, c_));  // 20 us
    b.For("p", CeilDiv(tiles_, each), LoopKind::kParallel, [&](Expr p) {
      b.For("t", Min(each, tiles_ - p * each), LoopKind::kSerial, [&](Expr i) {
        const Expr t = p * each + i;
        const Place at = PlaceOf(b, t);
        std::array<Expr, kPoints> from;
        for (int k = 0; k < kPoints; ++k) {
          const Expr column = at.x * outputs_ + k, end = s_.ow + s_.kw - 1;
          from[k] = Named(b, (ProvablyLt(column, end) ? column : Min(column, end - 1)) * in_.sx);
        }
        b.For("c1", in_.c1, LoopKind::kSerial, [&](Expr c1) {
          const Expr base = Named(b, in_.base + at.n * in_.sn + c1 * in_.sc1 + at.y * in_.sy);
          b.For("c", in_.c0, LoopKind::kVector, [&](Expr lane) {
            std::array<Val, kPoints> d;
            for (int k = 0; k < kPoints; ++k) d[k] = b.Let(b.Load(x, base + lane + from[k]));
            Transform(b, d);
            for (int k = 0; k < kPoints; ++k) b.Store(v, PlaceInV(t, k) + c1 * in_.c0 + lane, d[k]);
          });
        });
      });
    });
  }

  // B^T
  static void Transform(tile::Builder& b, std::array<Val, kPoints>& d) {
    auto let = [&](Val v) { return b.Let(v); };
    const Val a = let(d[4] - d[2] * 4), c = let(d[3] - d[1] * 4), e = let(d[4] - d[2]),
              f = let((d[3] - d[1]) * 2);
    d = {let(d[0] * 4 - d[2] * 5 + d[4]), let(a + c), let(a - c), let(e + f), let(e - f),
         let(d[1] * 4 - d[3] * 5 + d[5])};
  }

  void Outputs(LoweringContext& c) {
    tile::Builder& b = c.b();
    const int v = ArgV(c, false);
    const int u = c.AddArg({KernelArg::Kind::kPack, u_}, "u", DType::kF32,
                           kPoints * panels_ * c_ * nb_, false);
    turned_.Declare(c);
    const Expr groups = CeilDiv(cols_, group_);
    b.For("p", s_.n * s_.oh * groups * panels_, LoopKind::kParallel, [&](Expr p) {
      const int m = b.Alloc("m", DType::kF32, kPoints * tile_.m * nb_);
      const Expr panel = Mod(p, panels_), rest = FloorDiv(p, panels_);
      const Expr part = Mod(rest, groups), first = FloorDiv(rest, groups) * cols_ + part * group_;
      auto group = [&](Expr count) {
        ForRowTiles(b, count, tile_.m, [&](Expr at, int height) {
          Products(b, v, u, m, panel, first + at, height);
          b.For("t", height, LoopKind::kSerial,
                [&](Expr t) { Tile(c, m, t, PlaceOf(b, first + at + t), panel); });
        });
      };
      if (!cols_.IsConst()) return group(Min(group_, cols_ - part * group_));
      const int64_t left = cols_.value() % group_;
      if (left == 0) return group(group_);
      b.If(
          b.Cast(b.Index(Lt(part, groups - 1)), DType::kBool), [&] { group(group_); },
          [&] { group(left); });
    });
  }

  void Products(tile::Builder& b, int v, int u, int m, Expr panel, Expr tile, int height) {
    b.For("xi", kPoints, LoopKind::kSerial, [&](Expr xi) {
      tile::BrGemm g;
      g.m = height, g.n = nb_, g.n_valid = nb_, g.k = c_;
      g.a_buffer = v, g.a = PlaceInV(tile, xi), g.a_row = kPoints * c_, g.a_k = 1;
      g.b_buffer = u, g.b = (panel * kPoints + xi) * c_ * nb_, g.b_k = nb_;
      b.Gemm(g,
             [&](Expr r, Expr col, Val acc) { b.Store(m, (xi * tile_.m + r) * nb_ + col, acc); });
    });
  }

  // The outputs of one tile and panel.
  void Tile(LoweringContext& c, int m, Expr t, const Place& at, Expr panel) {
    tile::Builder& b = c.b();
    auto lanes = [&](Expr first, int64_t count) {
      b.For("o", count, LoopKind::kVector, [&](Expr lane) {
        std::array<Val, kPoints> d;
        for (int k = 0; k < kPoints; ++k)
          d[k] = b.Let(b.Load(m, (k * tile_.m + t) * nb_ + first + lane));
        const Expr channel = panel * nb_ + first + lane;
        Val bias;
        if (s_.has_bias) bias = b.Let(c.Read(s_.bias, {channel}));
        const Val sum12 = b.Let(d[1] + d[2]), less12 = b.Let(d[1] - d[2]),
                  sum34 = b.Let(d[3] + d[4]), less34 = b.Let(d[3] - d[4]);
        double power = 1;  // of 2
        for (int j = 0; j < outputs_; ++j, power *= 2) {
          const Val near = j % 2 ? less12 : sum12, far = j % 2 ? less34 : sum34;
          Val y = j == 0 ? d[0] + near + far : near + far * power;
          if (j == outputs_ - 1) y = y + d[5];
          Pixel(c, at, channel, at.x * outputs_ + j, s_.has_bias ? y + bias : y);
        }
      });
    };
    const int64_t w = soc_.F32Lanes(), last = o_ - (panels_ - 1) * nb_;
    auto panel_of = [&](int64_t columns) {
      for (int64_t first = 0; first < columns; first += w)
        lanes(first, std::min(w, columns - first));
    };
    if (last == nb_) return panel_of(nb_);
    b.If(
        b.Cast(b.Index(Lt(panel, panels_ - 1)), DType::kBool), [&] { panel_of(nb_); },
        [&] { panel_of(last); });
  }

  void Pixel(LoweringContext& c, const Place& at, Expr channel, Expr x, Val value) {
    auto yield = [&] { turned_.Yield(c, at.n, channel, at.y, x, value); };
    if (ProvablyLt(x, s_.ow)) return yield();
    c.b().If(c.b().Cast(c.b().Index(Lt(x, s_.ow)), DType::kBool), yield);
  }

  CubeBuild build_;
  const SocSpec& soc_;
  ConvShape s_;
  TurnedOutput turned_{build_, s_};
  PaddedInput in_;
  GemmTile tile_;
  const int64_t o_;
  int64_t c_ = 0, panels_ = 0, group_ = 1, outputs_ = 0;  // c_: with those that fill the last block
  Expr cols_, tiles_;
  int nb_ = 0, u_ = -1, v_ = -1;
};

}  // namespace

bool AllowsWinogradRow(const ConvShape& s, const Policy& policy) {
  if (policy.conv_tolerance < kError || policy.disabled.contains("winograd")) return false;
  if (s.group != 1 || s.fold != 1 || s.Phases() != 1 || s.kh != 1 || (s.kw != 3 && s.kw != 5))
    return false;
  return s.sw == 1 && s.sh == 1 && s.dw == 1 && s.type != DType::kBF16;
}

bool PrefersWinogradRow(const ConvShape& s, const SocSpec& soc, const Policy& policy) {
  if (!AllowsWinogradRow(s, policy)) return false;
  const double c = static_cast<double>(CeilOf(s.c.value(), 16) * 16),
               o = static_cast<double>(CeilOf(s.o.value(), 16) * 16);
  const Expr cols = CeilDiv(s.ow, kPoints + 1 - s.kw);
  if (s.c.value() < 64 || s.o.value() < 64 || HintValue(cols) < kLeastTiles) return false;
  const double outputs = static_cast<double>(HintValue(s.n * s.oh * s.ow));
  const double tiles =
      static_cast<double>(HintValue(s.n * s.oh * CeilDiv(s.ow, kPoints + 1 - s.kw)));
  const double macs_per_ns = soc.F32Lanes() * soc.fma_per_cycle * soc.ghz;
  const double direct = outputs * c * o * static_cast<double>(s.kw) / macs_per_ns;
  const double products = tiles * kPoints * c * o / macs_per_ns * 1.05;
  // Transforms: about two operations for each number of V and M that is made and read again.
  const double transforms = tiles * kPoints * (c + o) * 2.5 / soc.F32Lanes() / soc.ghz;
  return products + transforms < kGain * direct;
}

Lowered LowerWinogradRow(const Graph& g, const Region& region, const SocSpec& soc,
                         const Policy& policy, const ConvShape& s) {
  return RowLowering(g, region, soc, policy, s).Run();
}

}  // namespace ge
