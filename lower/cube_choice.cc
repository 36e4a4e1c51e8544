// What is open about a dot, in the three stages of docs/speed.md: which choices fit the chip, which
// of them the cost model ranks first, and what a user or a tuning file says instead.
//
// Invariant: a choice that is returned or used fits the registers; one that does not is named in
// Lowered::faults (a node's line) or Lowered::notes (a problem's, perhaps from another chip).
#include <fmt/format.h>

#include <algorithm>

#include "lower/cube_gemm.h"

namespace ge {

namespace {

// Nanoseconds to read `bytes` that were last read when `between` other bytes had not been yet.
double ReadNs(double bytes, double between, const SocSpec& soc) {
  const double rate = between <= static_cast<double>(soc.l2_bytes) / 2 ? soc.l2_gb_per_s
                      : between <= static_cast<double>(soc.l3_bytes)   ? soc.l3_gb_per_s
                                                                       : soc.dram_gb_per_s;
  return bytes / rate;
}

// Of all lines: arithmetic and the larger caches' traffic overlap, but never quite.
double DotNs(const OpenDot& d, const DotChoice& c, const SocSpec& soc) {
  constexpr double kExposed = 0.15;
  const int64_t nb = static_cast<int64_t>(c.nv) * soc.F32Lanes(), panels = CeilOf(d.cols, nb);
  const double depth = static_cast<double>(d.depth),
               pieces = c.k > 0 ? depth / static_cast<double>(c.k) : 1;
  const double compute = static_cast<double>(d.lines * panels) *
                         TileCycles(d.line, c.m, c.nv, soc) * depth / soc.ghz /
                         (d.element_bytes == 1   ? (soc.vnni ? 4 : 1)
                          : d.element_bytes == 2 ? 2
                                                 : 1);
  const double rows = static_cast<double>(d.line * d.lines),
               bytes = static_cast<double>(d.element_bytes);
  const double task_rows = static_cast<double>(d.lines > 1 ? std::min(c.rows, d.lines) * d.line
                                                           : std::min(c.rows, d.line));
  const double groups = std::max(1.0, rows / task_rows), columns = static_cast<double>(panels);
  const double a = rows * depth * bytes, b = columns * static_cast<double>(nb) * depth * bytes;
  const double of_a = a / groups, of_b = b / columns;
  double moved = ReadNs(b, 1e18, soc) + ReadNs(a, a, soc);  // each once
  moved += c.order == "nm" ? ReadNs(a * (columns - 1), a + of_b, soc) +
                                 ReadNs(b * (groups - 1), of_a / pieces + of_b, soc)
                           : ReadNs(a * (columns - 1), of_a + of_b, soc) +
                                 ReadNs(b * (groups - 1), b + of_a, soc);
  // Sums wait in the cache between blocks of k.
  moved += ReadNs(2 * (pieces - 1) * rows * static_cast<double>(d.cols) * 4, 0, soc);
  return std::max(compute, moved) + kExposed * std::min(compute, moved);
}

// Does the part of A and of B that a task reads over and over stay in L2?
bool FitsL2(const OpenDot& d, const DotChoice& c, const SocSpec& soc) {
  const int64_t depth = c.k > 0 ? c.k : d.depth, nb = static_cast<int64_t>(c.nv) * soc.F32Lanes();
  const int64_t panel = nb * depth * d.element_bytes, tile = c.m * depth * d.element_bytes;
  const int64_t sums = c.k > 0 ? 4 * nb * c.rows * (d.lines > 1 ? d.line : 1) : 0;
  return panel + tile + sums <= soc.l2_bytes;
}

}  // namespace

std::vector<DotChoice> RankChoices(const OpenDot& d, const DotChoice& chosen, const SocSpec& soc) {
  constexpr int kWidest = 8;
  constexpr size_t kMost = 5, kMostOfTile = 2;
  constexpr int64_t kBlocks[] = {0, 256, 512};
  std::vector<std::pair<double, DotChoice>> all;
  const int64_t extent = d.lines > 1 ? d.lines : d.line;
  for (int nv = 1; nv <= kWidest; ++nv) {
    const int m = d.height > 0 ? std::min(d.height, MaxRows(soc, nv))
                               : static_cast<int>(CeilOf(d.line, CeilOf(d.line, MaxRows(soc, nv))));
    if (!FitsRegisters(soc, m, nv, d.cols_per_panel)) continue;
    if (nv > 1 && (nv - 1) * soc.F32Lanes() >= d.cols) break;
    for (const int64_t rows : {chosen.rows, chosen.rows / 2, chosen.rows * 2, extent}) {
      for (const char* order : {"nm", "mn"}) {
        for (const int64_t k : kBlocks) {
          if (k > 0 && (!d.blocks || d.depth < 2 * k)) continue;
          DotChoice c = chosen;
          c.m = m, c.nv = nv, c.rows = std::clamp<int64_t>(rows, 1, extent), c.order = order,
          c.k = k;
          if (d.lines == 1) c.rows = std::min(CeilOf(c.rows, m) * m, extent);
          if (!(c == chosen) && FitsL2(d, c, soc)) all.emplace_back(DotNs(d, c, soc), c);
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Some of each tile: what the model does not see differs between tiles.
  std::vector<DotChoice> best;
  for (const auto& [ns, c] : all) {
    const auto alike = [&c = c](const DotChoice& o) { return o.m == c.m && o.nv == c.nv; };
    const bool known = std::find(best.begin(), best.end(), c) != best.end();
    if (!known && best.size() < kMost &&
        std::count_if(best.begin(), best.end(), alike) < static_cast<ptrdiff_t>(kMostOfTile))
      best.push_back(c);
  }
  return best;
}

void CubeBuild::Fix(const Policy& policy, const std::string& problem) {
  problem_ = problem;
  const DotChoice* of_node = policy.ChoiceFor(g.node(region.anchor));
  const auto of_problem = policy.tiles.find(problem);
  of_node_ = of_node != nullptr;
  if (of_node_)
    fixed = *of_node;
  else if (of_problem != policy.tiles.end())
    fixed = of_problem->second;
}

void CubeBuild::Refuse(const std::string& what, const std::string& allowed) {
  const std::string text = fmt::format(
      "{}{}{} of {} {} is not possible: {}", fixed.where, fixed.where.empty() ? "" : ": ", what,
      of_node_ ? "node" : "problem", of_node_ ? g.node(region.anchor).name : problem_, allowed);
  (of_node_ ? lowered.faults : lowered.notes).push_back(text);
}

void CubeBuild::RefuseForm(const std::string& form) {
  if (!fixed.form.empty() && fixed.form != form)
    Refuse(fixed.form,
           "Winograd's form is for windows of 3x3, or of 1x3 or 1x5, of stride 1, with "
           "enough channels, where --op_select_implmode and the memory limit allow it");
}

void CubeBuild::NoConvolution() {
  if (!fixed.form.empty()) Refuse(fixed.form, "it is no convolution");
  fixed.form.clear();
}

void CubeBuild::KeepTileOnly(const std::string& of) {
  DotChoice tile;
  tile.form = fixed.form, tile.m = fixed.m, tile.nv = fixed.nv, tile.where = fixed.where;
  tile.strips = fixed.strips;
  if (!(tile == fixed)) Refuse(ToString(fixed), "of " + of + " the register tile alone is open");
  fixed = tile;
}

void CubeBuild::NoteWinograd(const GemmTile& tile) {
  DotChoice chosen = fixed;
  chosen.form = "winograd", chosen.m = tile.m, chosen.nv = tile.nv;
  std::vector<DotChoice> others = {DotChoice{.form = "direct"}};
  for (int nv = 1; nv <= 2; ++nv) {
    DotChoice other = chosen;
    other.m = std::min(tile.m, MaxRows(soc, nv)), other.nv = nv;
    if (nv != tile.nv) others.push_back(other);
  }
  NoteChoice(chosen, std::move(others));
}

GemmTile CubeBuild::Tile(Expr rows, int64_t cols, int64_t cols_per_panel, bool narrow,
                         int k_group) {
  if (OnMatrixUnit(soc, k_group)) {
    if (fixed.m > 0 && FitsUnit(fixed.m, fixed.nv)) return {fixed.m, fixed.nv};
    if (fixed.m > 0)
      Refuse(fmt::format("tile {}x{}", fixed.m, fixed.nv),
             "it takes more than 4 tiles of 16 rows and 16 columns");
    return UnitTileFor(rows, cols, soc);
  }
  if (fixed.m > 0) {
    if (FitsRegisters(soc, fixed.m, fixed.nv, cols_per_panel)) return {fixed.m, fixed.nv};
    Refuse(
        fmt::format("tile {}x{}", fixed.m, fixed.nv),
        fmt::format("it takes {} of {} vector registers{}", fixed.m * fixed.nv + fixed.nv + 1,
                    soc.vector_registers,
                    cols_per_panel == 0 ? ""
                                        : fmt::format(", and its {} columns must divide {}",
                                                      fixed.nv * soc.F32Lanes(), cols_per_panel)));
  }
  return TileFor(rows, cols, soc, cols_per_panel, narrow);
}

int64_t CubeBuild::TaskRows(int64_t by_model, Expr all) {
  if (fixed.rows == 0) return by_model;
  if (!all.IsConst() || fixed.rows <= all.value()) return fixed.rows;
  Refuse(fmt::format("rows={}", fixed.rows), fmt::format("there are {}", all.value()));
  return by_model;
}

void CubeBuild::NoteChoice(const DotChoice& chosen, std::vector<DotChoice> others) {
  lowered.kernels.back().problem = problem_;
  lowered.kernels.back().chosen = chosen;
  lowered.kernels.back().chosen.where.clear();
  lowered.kernels.back().others = std::move(others);
}

}  // namespace ge
