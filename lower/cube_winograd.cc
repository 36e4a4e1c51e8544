// Winograd F(4x4, 3x3) of a 3x3 convolution of stride 1, in three kernels:
//
//   V[xi][t][c] = (B^T d B)[xi]     d: the 6x6 input patch of output tile t, xi in 6x6
//   M[xi][t][o] = sum_c V[xi][t][c] * U[xi][c][o]        36 matrix products by BrGemm
//   Y[4x4 of t] = A^T M A, then the fused consumers      U = G w G^T, packed at compile time
//
// 2.25 multiplications for each output instead of 9. Ragged tiles read zeros past the padded input
// and do not store what lies outside. Relative error about 1e-5: only where policy.conv_tolerance
// allows it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "lower/cube_conv.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

constexpr int kOut = 4, kIn = 6, kPoints = kIn * kIn;
constexpr int64_t kBlock = 16;       // channels that the transforms treat at once
constexpr double kError = 2e-5;      // what the transforms add, relative to the output's rms
constexpr double kCacheGbPerS = 40;  // V and M come and go through the outer caches
constexpr double kGain = 0.85;       // must beat the direct form by this

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

int64_t CeilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }

class WinogradLowering {
 public:
  WinogradLowering(const Graph& g, const Region& region, const SocSpec& soc, const ConvShape& s)
      : build_(g, region, soc), soc_(soc), s_(s), c_(s.c.value()), o_(s.o.value()) {
    rows_ = CeilOf(s.oh.value(), kOut), cols_ = CeilOf(s.ow.value(), kOut);
    tiles_ = s.n.value() * rows_ * cols_;
  }

  Lowered Run() {
    in_ = PadInput(build_, s_);
    tile_ = ChooseTile(tiles_, o_, soc_);
    nb_ = tile_.nv * soc_.F32Lanes();
    panels_ = CeilOf(o_, nb_);
    PackWeights();
    v_ = build_.AddTemp(kPoints * tiles_ * c_ * 4);
    m_ = build_.AddTemp(kPoints * tiles_ * panels_ * nb_ * 4);
    build_.AddKernel("winograd input", [&](LoweringContext& c) { Input(c); });
    build_.AddKernel(fmt::format("winograd brgemm {}x{} k {} tiles {}", tile_.m, nb_, c_, tiles_),
                     [&](LoweringContext& c) { Products(c); });
    build_.AddKernel("winograd output", [&](LoweringContext& c) { Output(c); });
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  int64_t MColumns() const { return panels_ * nb_; }
  int Temp(LoweringContext& c, int id, const char* name, int64_t columns, bool written) {
    return c.AddArg({KernelArg::Kind::kTemp, id}, name, DType::kF32, kPoints * tiles_ * columns,
                    written);
  }

  void PackWeights() {
    const int64_t channels = c_, outputs = o_, nb = nb_, panels = panels_;
    const ConvShape shape = s_;
    Pack pack;
    pack.source = s_.weights;
    pack.key = fmt::format("winograd 4x4 panels of {}", nb);
    pack.bytes = kPoints * panels * channels * nb * 4;
    pack.fill = [=](const Constant& w, std::byte* out) {
      float* to = reinterpret_cast<float*>(out);
      double window[3][3], u[kIn][kIn];
      for (int64_t o = 0; o < panels * nb; ++o) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t i = 0; i < 9; ++i) {
            window[i / 3][i % 3] =
                o < outputs ? static_cast<double>(WeightAt(shape, w, o, c, i / 3, i % 3)) : 0.0;
          }
          WeightTransform(window, u);
          for (int64_t xi = 0; xi < kPoints; ++xi) {
            to[((xi * panels + o / nb) * channels + c) * nb + o % nb] =
                static_cast<float>(u[xi / kIn][xi % kIn]);
          }
        }
      }
    };
    u_ = build_.AddPack(std::move(pack));
  }

  // body(image, tile row) over the grid, for the transforms.
  void ForTileRows(LoweringContext& c, const std::function<void(Expr, Expr)>& body) {
    c.b().For("p", s_.n * rows_, LoopKind::kParallel, [&](Expr p) {
      if (s_.n.IsConst(1)) return body(0, p);
      body(FloorDiv(p, rows_), Mod(p, rows_));
    });
  }

  void Input(LoweringContext& c) {
    tile::Builder& b = c.b();
    const int x = PaddedArg(c, s_, in_), v = Temp(c, v_, "v", c_, true);
    ForTileRows(c, [&](Expr n, Expr ty) {
      b.For("c1", in_.c1, LoopKind::kSerial, [&](Expr c1) {
        b.For("tx", cols_, LoopKind::kSerial, [&](Expr tx) {
          b.For("c", in_.c0, LoopKind::kVector, [&](Expr lane) {
            Expr at = in_.base + n * in_.sn + c1 * in_.sc1 + lane;
            Expr tile = (n * rows_ + ty) * cols_ + tx;
            Patch(b, x, v, at, ty, tx, tile * c_ + c1 * in_.c0 + lane);
          });
        });
      });
    });
  }

  void Patch(tile::Builder& b, int x, int v, Expr at, Expr ty, Expr tx, Expr to) {
    std::array<Six<Val>, kIn> columns;  // columns[j]: B^T applied down column j
    for (int j = 0; j < kIn; ++j) {
      Six<Val> d;
      for (int i = 0; i < kIn; ++i) d[i] = b.Let(Pixel(b, x, at, ty * kOut + i, tx * kOut + j));
      columns[j] = InputTransform(d);
    }
    for (int i = 0; i < kIn; ++i) {
      Six<Val> row;
      for (int j = 0; j < kIn; ++j) row[j] = columns[j][i];
      row = InputTransform(row);
      for (int j = 0; j < kIn; ++j) b.Store(v, to + (i * kIn + j) * (tiles_ * c_), row[j]);
    }
  }

  // Zero past the padded image (ragged tiles only).
  Val Pixel(tile::Builder& b, int x, Expr at, Expr y, Expr col) {
    Expr height = s_.oh + 2, width = s_.ow + 2;
    Expr inside = And(ProvablyLt(y, height) ? Expr(1) : Lt(y, height),
                      ProvablyLt(col, width) ? Expr(1) : Lt(col, width));
    if (inside.IsConst(1)) return b.Load(x, at + y * in_.sy + col * in_.sx);
    Val real = b.Load(x, at + Min(y, height - 1) * in_.sy + Min(col, width - 1) * in_.sx);
    return b.Select(b.Cast(b.Index(inside), DType::kBool), real, b.F(0));
  }

  void Products(LoweringContext& c) {
    tile::Builder& b = c.b();
    const int v = Temp(c, v_, "v", c_, false), m = Temp(c, m_, "m", MColumns(), true);
    const int u = c.AddArg({KernelArg::Kind::kPack, u_}, "u", DType::kF32,
                           kPoints * panels_ * c_ * nb_, false);
    // Panels of one chunk: work of 20 us or more.
    const double ns = static_cast<double>(tiles_ * c_ * tile_.nv) / soc_.fma_per_cycle / soc_.ghz;
    int64_t each = std::clamp<int64_t>(static_cast<int64_t>(20000 / std::max(ns, 1.0)), 1, panels_);
    while (panels_ % each != 0) --each;
    const int64_t groups = panels_ / each;
    b.For("p", kPoints * groups, LoopKind::kParallel, [&](Expr p) {
      Expr xi = groups == 1 ? p : FloorDiv(p, groups),
           first = groups == 1 ? Expr(0) : Mod(p, groups) * each;
      b.For("panel", each, LoopKind::kSerial, [&](Expr i) {
        Expr panel = first + i;
        ForRowTiles(b, tiles_, tile_.m, [&](Expr row, int height) {
          tile::BrGemm g;
          g.m = height, g.n = nb_, g.n_valid = nb_, g.k = c_;
          g.a_buffer = v, g.a = (xi * tiles_ + row) * c_, g.a_row = c_, g.a_k = 1;
          g.b_buffer = u, g.b = (xi * panels_ + panel) * c_ * nb_, g.b_k = nb_;
          b.Gemm(g, [&](Expr r, Expr col, Val acc) {
            b.Store(m, (xi * tiles_ + row + r) * MColumns() + panel * nb_ + col, acc);
          });
        });
      });
    });
  }

  void Output(LoweringContext& c) {
    tile::Builder& b = c.b();
    const int m = Temp(c, m_, "m", MColumns(), false);
    ForTileRows(c, [&](Expr n, Expr ty) {
      b.For("o1", o_ / kBlock, LoopKind::kSerial, [&](Expr o1) {
        b.For("tx", cols_, LoopKind::kSerial, [&](Expr tx) {
          b.For("o", kBlock, LoopKind::kVector, [&](Expr lane) {
            Expr tile = (n * rows_ + ty) * cols_ + tx, channel = o1 * kBlock + lane;
            Tile(c, m, tile * MColumns() + channel, n, channel, ty * kOut, tx * kOut);
          });
        });
      });
    });
  }

  void Tile(LoweringContext& c, int m, Expr from, Expr n, Expr channel, Expr y, Expr x) {
    tile::Builder& b = c.b();
    std::array<std::array<Val, kOut>, kIn> columns;
    for (int j = 0; j < kIn; ++j) {
      Six<Val> d;
      for (int i = 0; i < kIn; ++i)
        d[i] = b.Let(b.Load(m, from + (i * kIn + j) * (tiles_ * MColumns())));
      columns[j] = OutputTransform(d);
    }
    Val bias;
    if (s_.has_bias) bias = b.Let(c.Read(s_.bias, {channel}));
    for (int i = 0; i < kOut; ++i) {
      Six<Val> row;
      for (int j = 0; j < kIn; ++j) row[j] = columns[j][i];
      std::array<Val, kOut> out = OutputTransform(row);
      for (int j = 0; j < kOut; ++j)
        Pixel(c, n, channel, y + i, x + j, s_.has_bias ? out[j] + bias : out[j]);
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
  const int64_t c_, o_;
  int64_t rows_ = 0, cols_ = 0, tiles_ = 0, panels_ = 0;
  int nb_ = 0, u_ = -1, v_ = -1, m_ = -1;
};

}  // namespace

bool PrefersWinograd(const ConvShape& s, const SocSpec& soc, const Policy& policy) {
  if (policy.conv_tolerance < kError || policy.disabled.contains("winograd")) return false;
  if (s.rank != 4 || s.group != 1 || s.Phases() != 1 || s.kh != 3 || s.kw != 3) return false;
  if (s.sh != 1 || s.sw != 1 || s.dh != 1 || s.dw != 1) return false;
  for (Expr e : {s.n, s.h, s.w, s.oh, s.ow}) {
    if (!e.IsConst()) return false;
  }
  const int64_t c = s.c.value(), o = s.o.value();
  if (c % kBlock != 0 || o % kBlock != 0 || c < 32 || o < 32) return false;
  const int64_t tiles = s.n.value() * CeilOf(s.oh.value(), kOut) * CeilOf(s.ow.value(), kOut);
  const double gflops = 2 * soc.F32Lanes() * soc.fma_per_cycle * soc.ghz;  // flops per ns
  const double macs = static_cast<double>(c) * static_cast<double>(o);
  const double direct =
      18 * macs * static_cast<double>(s.n.value() * s.oh.value() * s.ow.value()) / gflops;
  const double weights = kPoints * macs * 4 / soc.dram_gb_per_s;
  const double products = 2 * kPoints * macs * static_cast<double>(tiles) / gflops * 1.1;
  const double moved = 2.0 * kPoints * static_cast<double>(tiles * (c + o)) * 4 / kCacheGbPerS;
  return std::max(weights, products) + moved < kGain * direct;
}

Lowered LowerWinograd(const Graph& g, const Region& region, const SocSpec& soc,
                      const ConvShape& s) {
  return WinogradLowering(g, region, soc, s).Run();
}

}  // namespace ge
