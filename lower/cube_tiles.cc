// Register tiles of a matrix unit: up to four C tiles of 16 rows and 16 columns, side by side or
// one above the other (emit/brgemm_amx.cc). 2x2 loads one tile for each product, other forms more;
// one block that holds all rows reads the weights once.
#include <algorithm>

#include "lower/cube_conv.h"

namespace ge {

namespace {

constexpr int kSide = 16, kMostTiles = 4;
// Tiles above each other and side by side.
constexpr int kForms[][2] = {{2, 2}, {4, 1}, {3, 1}, {1, 4}, {1, 3}, {2, 1}, {1, 2}, {1, 1}};
constexpr double kLoadCycles = 12;  // of a tile: 8 from L1, more from L2

GemmTile EvenTile(int64_t rows, int mt, int nt) {
  return {static_cast<int>(CeilOf(rows, CeilOf(rows, int64_t{kSide} * mt))), nt};
}

}  // namespace

bool OnMatrixUnit(const SocSpec& soc, int k_group) { return soc.amx && k_group > 1; }

bool FitsUnit(int m, int nv) { return CeilOf(m, kSide) * nv <= kMostTiles; }

int MostUnitRows(int nv) { return kMostTiles / nv * kSide; }

int64_t BlockChannels(const SocSpec& soc, DType type, int64_t channels) {
  int64_t block = soc.F32Lanes();
  if (!soc.amx) return block;
  const int64_t most = type == DType::kBF16                       ? 2 * kSide
                       : type == DType::kU8 || type == DType::kI8 ? 4 * kSide
                                                                  : block;
  while (block < most && block < channels) block *= 2;
  return block;
}

int64_t RunPitch(const SocSpec& soc, int k_group, const ConvShape& s, const PaddedInput& in) {
  constexpr double kGain = 1.25;  // of tiles that are multiplied, for the dropped pixels' sake
  if (!OnMatrixUnit(soc, k_group) || s.rank != 4 || s.transposed || s.sh != 1 || s.sw != 1)
    return 0;
  for (Expr e : {s.oh, s.ow, in.sx, in.sy})
    if (!e.IsConst()) return 0;
  if (in.sy.value() % in.sx.value() != 0) return 0;
  const int64_t pitch = in.sy.value() / in.sx.value();
  const int64_t by_rows = s.oh.value() * CeilOf(s.ow.value(), kSide),
                run = CeilOf((s.oh.value() - 1) * pitch + s.ow.value(), kSide);
  return static_cast<double>(run) * kGain <= static_cast<double>(by_rows) ? pitch : 0;
}

GemmTile ChooseUnitTile(int64_t rows, int64_t cols, const SocSpec& soc) {
  rows = std::max<int64_t>(rows, 1), cols = std::max<int64_t>(cols, 1);
  GemmTile best;
  double best_cycles = 0;
  for (const auto& [tall, nt] : kForms) {
    const GemmTile tile = EvenTile(rows, tall, nt);
    const int64_t mt = CeilOf(tile.m, kSide),
                  blocks = CeilOf(rows, tile.m) * CeilOf(cols, kSide * nt);
    const double step = std::max(soc.tile_cycles * static_cast<double>(mt * nt),
                                 kLoadCycles * static_cast<double>(mt + nt)) +
                        4;
    double cycles = step * static_cast<double>(blocks);
    if (rows > 2 * kSide && tile.m >= rows) cycles *= 0.95;  // weights are read once
    if (best_cycles == 0 || cycles < best_cycles * 0.97) best = tile, best_cycles = cycles;
  }
  return best;
}

GemmTile UnitTileFor(Expr rows, int64_t cols, const SocSpec& soc) {
  if (rows.IsConst()) return ChooseUnitTile(rows.value(), cols, soc);
  // Of an unknown number: whole tiles, the rest in halves.
  const GemmTile t = ChooseUnitTile(std::max<int64_t>(HintValue(rows), 64), cols, soc);
  return {static_cast<int>(CeilOf(t.m, kSide) * kSide), t.nv};
}

std::vector<DotChoice> UnitChoices(Expr rows, int64_t cols, const DotChoice& chosen) {
  std::vector<DotChoice> others;
  for (const auto& [tall, nt] : kForms) {
    if ((nt - 1) * kSide >= cols) continue;
    DotChoice c = chosen;
    c.m = rows.IsConst() ? EvenTile(rows.value(), tall, nt).m : tall * kSide, c.nv = nt;
    const bool known = std::find(others.begin(), others.end(), c) != others.end();
    if (!known && !(c == chosen)) others.push_back(c);
  }
  return others;
}

}  // namespace ge
