// Winograd F(4x4, 3x3) of a 3x3 convolution of stride 1:
//
//   V[xi][t][c] = (B^T d B)[xi]     d: the 6x6 input patch of output tile t, xi in 6x6
//   M[xi][t][o] = sum_c V[xi][t][c] * U[xi][c][o]        36 matrix products by BrGemm
//   Y[4x4 of t] = A^T M A, then the fused consumers      U = G w G^T, packed at compile time
//
// 2.25 multiplications for each output instead of 9. Ragged tiles read the last row and column of
// the padded input again and do not store what lies outside. Relative error about 1e-5: only where
// policy.conv_tolerance allows it.
//
// Where U fits in the L2 cache beside them, one kernel does strips of tiles whose V and M stay
// there; else three kernels go over U once.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "lower/cost.h"
#include "lower/cube_conv.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

constexpr int kOut = 4, kIn = 6, kPoints = kIn * kIn;
constexpr int64_t kBlock = 16;       // channels that the transforms treat at once
constexpr double kError = 2e-5;      // what the transforms add, relative to the output's rms
constexpr double kCacheGbPerS = 40;  // V and M come and go through the outer caches
constexpr double kInputCycles = 110, kOutputCycles = 80;  // transforms of 16 channels of a tile
constexpr double kGain = 0.85;                            // must beat the direct form by this

template <class T>
using Six = std::array<T, kIn>;

// One dimension of B^T.
Six<Val> InputTransform(const Six<Val>& d) {
  tile::Builder& b = *d[0].b;
  auto let = [&](Val v) { return b.Let(v); };
  Val a = let(d[4] - d[2] * 4), c = let(d[3] - d[1] * 4), e = let(d[4] - d[2]),
      f = let((d[3] - d[1]) * 2);
  return {let(d[0] * 4 - d[2] * 5 + d[4]), let(a + c), let(a - c), let(e + f), let(e - f),
          let(d[1] * 4 - d[3] * 5 + d[5])};
}

// One dimension of A^T.
std::array<Val, kOut> OutputTransform(const Six<Val>& m) {
  tile::Builder& b = *m[0].b;
  auto let = [&](Val v) { return b.Let(v); };
  Val p = let(m[1] + m[2]), q = let(m[1] - m[2]), r = let(m[3] + m[4]), s = let(m[3] - m[4]);
  return {let(m[0] + p + r), let(q + s * 2), let(p + r * 4), let(q + s * 8 + m[5])};
}

// U = G w G^T of one 3x3 window.
void WeightTransform(const double (&w)[3][3], double (&u)[kIn][kIn]) {
  static constexpr double kG[kIn][3] = {{1.0 / 4, 0, 0},
                                        {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                        {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                        {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                        {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                        {0, 0, 1}};
  for (int i = 0; i < kIn; ++i) {
    for (int j = 0; j < kIn; ++j) {
      u[i][j] = 0;
      for (int k = 0; k < 3; ++k) {
        for (int l = 0; l < 3; ++l) u[i][j] += kG[i][k] * w[k][l] * kG[j][l];
      }
    }
  }
}

// Tiles along a side, and channels as the input's blocks hold them.
Expr TilesOf(Expr extent) { return CeilDiv(extent, kOut); }
int64_t BlockedChannels(int64_t c) { return CeilOf(c, kBlock) * kBlock; }

double BytesOfU(int64_t c, int64_t o) {
  return 4.0 * kPoints * static_cast<double>(BlockedChannels(c) * BlockedChannels(o));
}

// Tiles of a strip whose V and M share the L2 cache with U; 0 if U leaves no room.
int64_t StripTiles(const ConvShape& s, const SocSpec& soc) {
  const int64_t c = BlockedChannels(s.c.value()), o = BlockedChannels(s.o.value());
  const double l2 = static_cast<double>(soc.l2_bytes), u = BytesOfU(c, o);
  if (u > l2 * 0.75) return 0;
  const double room = std::max(l2 - u, l2 / 4) / (4.0 * kPoints * static_cast<double>(c + o));
  const int64_t most = std::clamp<int64_t>(static_cast<int64_t>(room), 8, 56);
  const Expr tiles = s.n * TilesOf(s.oh) * TilesOf(s.ow);
  if (!tiles.IsConst()) return most;
  // An even number of equal strips, for two workers.
  const int64_t strips = CeilOf(CeilOf(tiles.value(), most), 2) * 2;
  return CeilOf(tiles.value(), strips);
}

// The transforms touch one line of each of 36 planes: an odd number of lines between them keeps
// these in different sets of the cache.
Expr OddLines(Expr elements) {
  constexpr int64_t kLine = 16;
  if (elements.IsConst() && elements.value() / kLine % 2 != 0) return elements;
  return elements + kLine;
}

class WinogradLowering {
 public:
  WinogradLowering(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy,
                   const ConvShape& s)
      : build_(g, region, soc), soc_(soc), s_(s), o_(s.o.value()), strip_(StripTiles(s, soc)) {
    build_.Fix(policy, ConvProblem(g, s));
    build_.KeepTileOnly("Winograd's form");
    rows_ = TilesOf(s.oh), cols_ = TilesOf(s.ow);
    tiles_ = s.n * rows_ * cols_;
  }

  Lowered Run() {
    in_ = PadInput(build_, s_);
    c_ = in_.c1.value() * in_.c0;
    const Expr rows = strip_ ? Expr(strip_) : tiles_;
    tile_ = build_.fixed.m > 0 ? build_.Tile(rows, o_, 0) : ChooseTile(HintValue(rows), o_, soc_);
    nb_ = tile_.nv * soc_.F32Lanes();
    panels_ = CeilOf(o_, nb_);
    v_plane_ = OddLines(rows * c_), m_plane_ = OddLines(rows * MColumns());
    PackWeights();
    strip_ ? Strips() : Whole();
    build_.NoteWinograd(tile_);
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  int64_t MColumns() const { return panels_ * nb_; }
  int ArgU(LoweringContext& c) {
    return c.AddArg({KernelArg::Kind::kPack, u_}, "u", DType::kF32, kPoints * panels_ * c_ * nb_,
                    false);
  }

  void PackWeights() {
    const int64_t depth = c_, channels = s_.c.value(), outputs = o_, nb = nb_, panels = panels_;
    const ConvShape shape = s_;
    Pack pack;
    pack.source = s_.weights;
    pack.key = fmt::format("winograd 4x4 panels of {}, {} channels", nb, depth);
    pack.bytes = kPoints * panels * depth * nb * 4;
    pack.fill = [=](const Constant& w, std::byte* out) {
      float* to = reinterpret_cast<float*>(out);
      double window[3][3], u[kIn][kIn];
      for (int64_t o = 0; o < panels * nb; ++o) {
        for (int64_t c = 0; c < depth; ++c) {
          const bool is = o < outputs && c < channels;
          for (int64_t i = 0; i < 9; ++i) {
            window[i / 3][i % 3] =
                is ? static_cast<double>(WeightAt(shape, w, o, c, i / 3, i % 3)) : 0.0;
          }
          WeightTransform(window, u);
          for (int64_t xi = 0; xi < kPoints; ++xi) {
            to[((xi * panels + o / nb) * depth + c) * nb + o % nb] =
                static_cast<float>(u[xi / kIn][xi % kIn]);
          }
        }
      }
    };
    u_ = build_.AddPack(std::move(pack));
  }

  // One kernel: a chunk is a strip, its V and M lie in the worker's scratch.
  void Strips() {
    std::string what =
        fmt::format("winograd strips of {}, brgemm {}x{} k {}", strip_, tile_.m, nb_, c_);
    build_.AddKernel(what, [&](LoweringContext& c) {
      tile::Builder& b = c.b();
      const int x = PaddedArg(c, s_, in_), u = ArgU(c);
      b.For("p", CeilDiv(tiles_, strip_), LoopKind::kParallel, [&](Expr p) {
        const int v = b.Alloc("v", DType::kF32, kPoints * v_plane_),
                  m = b.Alloc("m", DType::kF32, kPoints * m_plane_);
        const Expr first = p * strip_;
        const bool even = DivisibleBy(tiles_, strip_);
        const Expr count = even ? Expr(strip_) : Min(strip_, tiles_ - first);
        Input(b, x, v, first, count);
        auto products = [&](Expr rows) {
          b.For("xi", kPoints, LoopKind::kSerial, [&](Expr xi) {
            b.For("panel", panels_, LoopKind::kSerial,
                  [&](Expr panel) { Product(b, v, u, m, xi, panel, rows); });
          });
        };
        if (even) {
          products(strip_);
        } else {
          const Expr whole = FloorDiv(tiles_, strip_);
          b.If(
              b.Cast(b.Index(Lt(p, whole)), DType::kBool), [&] { products(strip_); },
              [&] { products(Mod(tiles_, strip_)); });
        }
        Output(c, m, first, count);
      });
    });
  }

  // Three kernels, V and M in the arena.
  void Whole() {
    v_ = build_.AddTemp(kPoints * v_plane_ * 4);
    m_ = build_.AddTemp(kPoints * m_plane_ * 4);
    auto temp = [&](LoweringContext& c, int id, const char* name, Expr plane, bool written) {
      return c.AddArg({KernelArg::Kind::kTemp, id}, name, DType::kF32, kPoints * plane, written);
    };
    build_.AddKernel("winograd input", [&](LoweringContext& c) {
      const int x = PaddedArg(c, s_, in_), v = temp(c, v_, "v", v_plane_, true);
      ForTileRows(c, [&](Expr row) { Input(c.b(), x, v, row * cols_, cols_); });
    });
    build_.AddKernel(
        fmt::format("winograd brgemm {}x{} k {} tiles {}", tile_.m, nb_, c_, ToString(tiles_)),
        [&](LoweringContext& c) {
          const int v = temp(c, v_, "v", v_plane_, false), m = temp(c, m_, "m", m_plane_, true);
          Products(c.b(), v, ArgU(c), m);
        });
    build_.AddKernel("winograd output", [&](LoweringContext& c) {
      const int m = temp(c, m_, "m", m_plane_, false);
      ForTileRows(c, [&](Expr row) { Output(c, m, row * cols_, cols_); });
    });
  }

  void ForTileRows(LoweringContext& c, const std::function<void(Expr)>& body) {
    c.b().For("p", s_.n * rows_, LoopKind::kParallel, body);
  }

  struct Place {
    Expr n, y, x;  // in tiles
  };
  // Named, so that addresses of symbolic images stay short sums.
  static Expr Named(tile::Builder& b, Expr e, Expr below = 0) {
    if (e.IsConst()) return e;
    const int64_t hi = below.IsConst() && below.value() > 0 ? below.value() - 1 : INT64_MAX / 4096;
    return b.LetIndex(b.Let(b.Index(e)), 0, hi);
  }

  // Tile t of all images.
  Place PlaceOf(tile::Builder& b, Expr t) const {
    Expr row = Named(b, FloorDiv(t, cols_), s_.n * rows_), x = Named(b, t - row * cols_, cols_);
    if (s_.n.IsConst(1)) return {0, row, x};
    Expr n = Named(b, FloorDiv(row, rows_), s_.n);
    return {n, Named(b, row - n * rows_, rows_), x};
  }

  // V of tiles [first, first + count), which a strip numbers from 0.
  void Input(tile::Builder& b, int x, int v, Expr first, Expr count) {
    b.For("t", count, LoopKind::kSerial, [&](Expr t) {
      const Place at = PlaceOf(b, first + t);
      // A ragged tile reads the last row and column again; what lies there reaches no output.
      Six<Expr> rows, cols;
      for (int i = 0; i < kIn; ++i) {
        auto clamped = [&](Expr at, Expr out) {
          return ProvablyLt(at, out + 2) ? at : Min(at, out + 1);
        };
        rows[i] = Named(b, clamped(at.y * kOut + i, s_.oh) * in_.sy);
        cols[i] = Named(b, clamped(at.x * kOut + i, s_.ow) * in_.sx);
      }
      b.For("c1", in_.c1, LoopKind::kSerial, [&](Expr c1) {
        const Expr from = Named(b, in_.base + at.n * in_.sn + c1 * in_.sc1);
        b.For("c", in_.c0, LoopKind::kVector, [&](Expr lane) {
          Patch(b, x, v, from + lane, rows, cols,
                (strip_ ? t : first + t) * c_ + c1 * in_.c0 + lane);
        });
      });
    });
  }

  void Patch(tile::Builder& b, int x, int v, Expr from, const Six<Expr>& rows,
             const Six<Expr>& cols, Expr to) {
    std::array<Six<Val>, kIn> columns;  // columns[j]: B^T applied down column j
    for (int j = 0; j < kIn; ++j) {
      Six<Val> d;
      for (int i = 0; i < kIn; ++i) d[i] = b.Let(b.Load(x, from + rows[i] + cols[j]));
      columns[j] = InputTransform(d);
    }
    for (int i = 0; i < kIn; ++i) {
      Six<Val> row;
      for (int j = 0; j < kIn; ++j) row[j] = columns[j][i];
      row = InputTransform(row);
      for (int j = 0; j < kIn; ++j) b.Store(v, to + (i * kIn + j) * v_plane_, row[j]);
    }
  }

  // M of one xi and panel.
  void Product(tile::Builder& b, int v, int u, int m, Expr xi, Expr panel, Expr rows) {
    ForRowTiles(b, rows, tile_.m, [&](Expr row, int height) {
      tile::BrGemm g;
      g.m = height, g.n = nb_, g.n_valid = nb_, g.k = c_;
      g.a_buffer = v, g.a = xi * v_plane_ + row * c_, g.a_row = c_, g.a_k = 1;
      g.b_buffer = u, g.b = (xi * panels_ + panel) * c_ * nb_, g.b_k = nb_;
      if (!strip_) g.prefetch = PanelAhead(soc_, c_ * nb_, kPoints * panels_, 4);
      b.Gemm(g, [&](Expr r, Expr col, Val acc) {
        b.Store(m, xi * m_plane_ + (row + r) * MColumns() + panel * nb_ + col, acc);
      });
    });
  }

  void Products(tile::Builder& b, int v, int u, int m) {
    // Panels of one chunk: work of 20 us or more.
    const double ns =
        static_cast<double>(HintValue(tiles_) * c_ * tile_.nv) / soc_.fma_per_cycle / soc_.ghz;
    int64_t each = std::clamp<int64_t>(static_cast<int64_t>(20000 / std::max(ns, 1.0)), 1, panels_);
    while (panels_ % each != 0) --each;
    const int64_t groups = panels_ / each;
    b.For("p", kPoints * groups, LoopKind::kParallel, [&](Expr p) {
      Expr xi = groups == 1 ? p : FloorDiv(p, groups),
           first = groups == 1 ? Expr(0) : Mod(p, groups) * each;
      b.For("panel", each, LoopKind::kSerial,
            [&](Expr i) { Product(b, v, u, m, xi, first + i, tiles_); });
    });
  }

  void Output(LoweringContext& c, int m, Expr first, Expr count) {
    tile::Builder& b = c.b();
    b.For("t", count, LoopKind::kSerial, [&](Expr t) {
      const Place at = PlaceOf(b, first + t);
      auto block = [&](Expr channel, int64_t lanes) {
        b.For("o", lanes, LoopKind::kVector, [&](Expr lane) {
          Tile(c, m, (strip_ ? t : first + t) * MColumns() + channel + lane, at, channel + lane);
        });
      };
      if (o_ >= kBlock)
        b.For("o1", o_ / kBlock, LoopKind::kSerial, [&](Expr o1) { block(o1 * kBlock, kBlock); });
      if (o_ % kBlock != 0) block(o_ / kBlock * kBlock, o_ % kBlock);
    });
  }

  void Tile(LoweringContext& c, int m, Expr from, const Place& at, Expr channel) {
    tile::Builder& b = c.b();
    std::array<std::array<Val, kOut>, kIn> columns;
    for (int j = 0; j < kIn; ++j) {
      Six<Val> d;
      for (int i = 0; i < kIn; ++i) d[i] = b.Let(b.Load(m, from + (i * kIn + j) * m_plane_));
      columns[j] = OutputTransform(d);
    }
    Val bias;
    if (s_.has_bias) bias = b.Let(c.Read(s_.bias, {channel}));
    for (int i = 0; i < kOut; ++i) {
      Six<Val> row;
      for (int j = 0; j < kIn; ++j) row[j] = columns[j][i];
      std::array<Val, kOut> out = OutputTransform(row);
      for (int j = 0; j < kOut; ++j)
        Pixel(c, at.n, channel, at.y * kOut + i, at.x * kOut + j,
              s_.has_bias ? out[j] + bias : out[j]);
    }
  }

  void Pixel(LoweringContext& c, Expr n, Expr channel, Expr y, Expr x, Val value) {
    Expr inside = And(ProvablyLt(y, s_.oh) ? Expr(1) : Lt(y, s_.oh),
                      ProvablyLt(x, s_.ow) ? Expr(1) : Lt(x, s_.ow));
    auto yield = [&] { c.Yield(s_.y, s_.At(n, channel, y, x), value); };
    if (inside.IsConst(1)) return yield();
    c.b().If(c.b().Cast(c.b().Index(inside), DType::kBool), yield);
  }

  CubeBuild build_;
  const SocSpec& soc_;
  ConvShape s_;
  PaddedInput in_;
  GemmTile tile_;
  const int64_t o_, strip_;     // strip_: tiles of a strip, or 0
  int64_t c_ = 0, panels_ = 0;  // c_: channels with those that fill the last block
  Expr rows_, cols_, tiles_;
  Expr v_plane_, m_plane_;  // elements from one xi to the next in V and M
  int nb_ = 0, u_ = -1, v_ = -1, m_ = -1;
};

}  // namespace

bool AllowsWinograd(const ConvShape& s, const Policy& policy) {
  if (policy.conv_tolerance < kError || policy.disabled.contains("winograd")) return false;
  if (s.rank != 4 || s.group != 1 || s.fold != 1 || s.Phases() != 1 || s.kh != 3 || s.kw != 3)
    return false;
  if (s.sh != 1 || s.sw != 1 || s.dh != 1 || s.dw != 1) return false;
  return s.c.value() >= kBlock && s.o.value() >= kBlock;
}

bool PrefersWinograd(const ConvShape& s, const SocSpec& soc, const Policy& policy) {
  if (!AllowsWinograd(s, policy)) return false;
  const int64_t c = s.c.value(), o = s.o.value();
  const double tiles = static_cast<double>(HintValue(s.n * TilesOf(s.oh) * TilesOf(s.ow)));
  const double gflops = 2 * soc.F32Lanes() * soc.fma_per_cycle * soc.ghz;  // flops per ns
  const double macs = static_cast<double>(BlockedChannels(c) * BlockedChannels(o));
  const double direct_rate =
      MacsPerCycle(soc, s.type == DType::kBF16 ? 2 : 1) / MacsPerCycle(soc, 1);
  const double direct =
      18 * macs * static_cast<double>(HintValue(s.n * s.oh * s.ow)) / gflops / direct_rate;
  const double products = 2 * kPoints * macs * tiles / gflops * 1.1;
  const double ci = static_cast<double>(c), co = static_cast<double>(o);
  if (StripTiles(s, soc) > 0) {
    const double transforms =
        tiles * (ci * kInputCycles + co * kOutputCycles) / soc.F32Lanes() / soc.ghz;
    return products + transforms < kGain * direct;
  }
  const double weights = BytesOfU(c, o) / soc.dram_gb_per_s;
  const double moved = 2.0 * kPoints * tiles * (ci + co) * 4 / kCacheGbPerS;
  return std::max(weights, products) + moved < kGain * direct;
}

Lowered LowerWinograd(const Graph& g, const Region& region, const SocSpec& soc,
                      const Policy& policy, const ConvShape& s) {
  return WinogradLowering(g, region, soc, policy, s).Run();
}

}  // namespace ge
