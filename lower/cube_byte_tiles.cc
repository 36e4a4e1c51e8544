// Register tiles of dots of bytes: which fit, which is chosen, and what else tuning may try.
#include <fmt/format.h>

#include <algorithm>

#include "lower/cube_gemm.h"

namespace ge {

namespace {

constexpr int kWidestWidened = 2;

bool IsVnni(const SocSpec& soc) { return soc.vnni && soc.masks; }

// Without VNNI both halves of B and of A take registers too, and a mask and a product (on ARM in
// two halves).
int WidenedRows(const SocSpec& soc, int nv) {
  return (soc.vector_registers - 2 * nv - (soc.IsArm() ? 8 : 5)) / nv;
}
// With it, one register is left spare: gcc copies one when all are taken.
int VnniRows(const SocSpec& soc, int nv) { return std::min(MaxRows(soc, nv), 30 - nv); }

bool Fits(const SocSpec& soc, int m, int nv) {
  if (OnMatrixUnit(soc, 4)) return FitsUnit(m, nv);
  const int widest = IsVnni(soc) ? soc.vector_registers / 4 : kWidestWidened;
  return nv <= widest && m <= MaxByteRows(soc, nv);
}

}  // namespace

int MaxByteRows(const SocSpec& soc, int nv) {
  if (OnMatrixUnit(soc, 4)) return MostUnitRows(nv);
  return IsVnni(soc) ? VnniRows(soc, nv) : WidenedRows(soc, nv);
}

GemmTile ByteTile(CubeBuild& build, Expr rows, int64_t typical, int64_t cols) {
  const SocSpec& soc = build.soc;
  if (const DotChoice& c = build.fixed; c.m > 0) {
    if (Fits(soc, c.m, c.nv)) return {c.m, c.nv};
    build.Refuse(fmt::format("tile {}x{}", c.m, c.nv),
                 fmt::format("of bytes the tallest that fit are {}x1 and {}x2", MaxByteRows(soc, 1),
                             MaxByteRows(soc, 2)));
  }
  GemmTile tile =
      OnMatrixUnit(soc, 4) ? ChooseUnitTile(typical, cols, soc) : ChooseTile(typical, cols, soc);
  if (!OnMatrixUnit(soc, 4)) {
    if (!IsVnni(soc)) tile.nv = std::min(tile.nv, kWidestWidened);
    tile.m = std::min(tile.m, MaxByteRows(soc, tile.nv));
  }
  if (!rows.IsConst()) tile.m = MaxByteRows(soc, tile.nv);
  return tile;
}

std::vector<DotChoice> ByteChoices(Expr rows, OpenDot dot, const DotChoice& chosen,
                                   const SocSpec& soc) {
  if (OnMatrixUnit(soc, 4)) return UnitChoices(rows, dot.cols, chosen);
  dot.element_bytes = 1;
  dot.height = rows.IsConst() ? 0 : soc.vector_registers;
  std::vector<DotChoice> fit;
  for (DotChoice c : RankChoices(dot, chosen, soc)) {
    c.m = std::min(c.m, MaxByteRows(soc, c.nv));
    if (Fits(soc, c.m, c.nv) && !(c == chosen) && std::find(fit.begin(), fit.end(), c) == fit.end())
      fit.push_back(c);
  }
  return fit;
}

}  // namespace ge
