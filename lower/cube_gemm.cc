// Register tiles: with R vector registers, m * nv accumulators + nv of B + 1 of
// A must fit. Cycles of one step of k: the larger of FMAs / units and loads /
// 2, and never below the latency of the FMA chain.
#include "lower/cube_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "abi/convert.h"
#include "base/check.h"
#include "lower/region_walk.h"

namespace ge {

namespace {

constexpr double kFmaLatency = 4;
constexpr double kLoadCost = 0.56;  // cycles: two a cycle, but never quite

double StepCycles(const GemmTile& t, const SocSpec& soc) {
  double fma = static_cast<double>(t.m * t.nv) / soc.fma_per_cycle;
  double loads = static_cast<double>(t.m + t.nv) * kLoadCost;
  return std::max({fma, loads, kFmaLatency}) + 0.25;
}

}  // namespace

int MaxRows(const SocSpec& soc, int nv) {
  int m = (soc.vector_registers - 1 - nv) / nv;
  // One register spare where the tile is wide: gcc copies one when all are
  // taken.
  if (nv == 3) m = soc.vector_registers == 32 ? 8 : 3;
  return std::max(m, 1);
}

bool HasNarrowPanel(int64_t cols, int nv, const SocSpec& soc) {
  const int64_t w = soc.F32Lanes(), left = cols % (nv * w);
  return nv == 2 && cols > nv * w && left > 0 && left <= w;
}

bool FitsRegisters(const SocSpec& soc, int m, int nv, int64_t cols_per_panel) {
  return m * nv + nv + 1 <= soc.vector_registers &&
         (cols_per_panel == 0 || cols_per_panel % (nv * soc.F32Lanes()) == 0);
}

double TileCycles(int64_t rows, int max_m, int nv, const SocSpec& soc) {
  const int64_t tiles = CeilOf(rows, max_m);
  const int m = static_cast<int>(CeilOf(rows, tiles));
  const int64_t tall = rows - tiles * (m - 1);
  double cycles = static_cast<double>(tall) * StepCycles({m, nv}, soc);
  if (tiles > tall) cycles += static_cast<double>(tiles - tall) * StepCycles({m - 1, nv}, soc);
  return cycles;
}

GemmTile ChooseTile(int64_t rows, int64_t cols, const SocSpec& soc, int64_t cols_per_panel,
                    int most_rows, bool narrow) {
  const int w = soc.F32Lanes();
  rows = std::max<int64_t>(rows, 1);
  cols = std::max<int64_t>(cols, 1);
  GemmTile best;
  double best_cycles = 0;
  const int widest = rows == 1 ? 8 : rows <= 4 ? 6 : 4;
  for (int nv = 1; nv <= widest; ++nv) {
    if (cols_per_panel && cols_per_panel % (nv * w) != 0) continue;
    int limit = MaxRows(soc, nv);
    if (most_rows > 0) limit = std::min(limit, most_rows);
    if (limit * nv + nv + 1 > soc.vector_registers) continue;  // not even one row
    if (limit * nv < 4 && nv > 2) continue;
    const int m = static_cast<int>(CeilOf(rows, CeilOf(rows, limit)));
    auto panel = [&](int width) { return TileCycles(rows, limit, width, soc); };
    double cycles = panel(nv) * static_cast<double>(CeilOf(cols, nv * w));
    if (narrow && HasNarrowPanel(cols, nv, soc)) cycles += panel(1) - panel(nv);
    // Equal up to 3 %: taller tiles read the weights fewer times.
    if (best_cycles == 0 || cycles < best_cycles * 0.97) best = {m, nv}, best_cycles = cycles;
  }
  return best;
}

GemmTile TileFor(Expr rows, int64_t cols, const SocSpec& soc, int64_t cols_per_panel, bool narrow) {
  const int64_t count = std::max<int64_t>(HintValue(rows), 1);
  const GemmTile best = ChooseTile(rows.IsConst() ? count : std::max<int64_t>(count, 64), cols, soc,
                                   cols_per_panel, rows.IsConst() ? 0 : kMostSymbolicRows, narrow);
  if (rows.IsConst()) return best;
  return {std::min(MaxRows(soc, best.nv), kMostSymbolicRows), best.nv};
}

void ForRowTiles(tile::Builder& b, Expr rows, int max_m,
                 const std::function<void(Expr, int)>& body) {
  auto tiles = [&](Expr first, Expr count, int m) {
    if (count.IsConst(0)) return;
    if (count.IsConst(1)) return body(first, m);
    b.For("t", count, tile::LoopKind::kSerial, [&](Expr t) { body(first + t * m, m); });
  };
  if (rows.IsConst()) {
    if (rows.value() <= 0) return;
    int64_t count = CeilOf(rows.value(), max_m);
    int m = static_cast<int>(CeilOf(rows.value(), count));
    int64_t tall = rows.value() - count * (m - 1);
    tiles(0, tall, m);
    return tiles(tall * m, count - tall, m - 1);
  }
  tiles(0, FloorDiv(rows, max_m), max_m);
  Expr whole = FloorDiv(rows, max_m) * max_m, rest = Mod(rows, max_m);
  for (int m = static_cast<int>(std::bit_floor(static_cast<unsigned>(max_m - 1)));
       m >= 1 && max_m > 1; m /= 2) {
    Expr odd = Mod(FloorDiv(rest, m), 2);
    if (odd.IsConst(0)) continue;
    Expr first = whole + FloorDiv(rest, 2 * m) * (2 * m);
    b.If(b.Cast(b.Index(odd), DType::kBool), [&] { body(first, m); });
  }
}

void ForEvenRowTiles(tile::Builder& b, Expr rows, int max_m,
                     const std::function<void(Expr, int)>& body) {
  if (rows.IsConst() || max_m == 1) return ForRowTiles(b, rows, max_m, body);
  const Expr count = CeilDiv(rows, max_m);
  const Expr m = CeilDiv(rows, Max(count, 1)), tall = rows - count * (m - 1);
  b.For("t", count, tile::LoopKind::kSerial, [&](Expr t) {
    const Expr first = t * m - Max(t - tall, 0), height = m - Le(tall, t);
    std::function<void(int)> choose = [&](int h) {
      if (h == 1) return body(first, 1);
      b.If(
          b.Cast(b.Index(Eq(height, h)), DType::kBool), [&] { body(first, h); },
          [&] { choose(h - 1); });
    };
    choose(max_m);
  });
}

std::optional<Operand> AsOperand(const tile::Builder& b, tile::Val value, Expr row, Expr k,
                                 DType type) {
  const tile::Kernel& kernel = const_cast<tile::Builder&>(b).kernel();
  const tile::ValueNode& n = kernel.values[value.id];
  if (n.op != tile::Op::kLoad || kernel.buffers[n.buffer].dtype != type) return std::nullopt;
  std::optional<Linear> by_row = AsLinear(n.index, row);
  if (!by_row || DependsOn(by_row->coefficient, k)) return std::nullopt;
  std::optional<Linear> by_k = AsLinear(by_row->rest, k);
  if (!by_k) return std::nullopt;
  return Operand{n.buffer, by_k->rest, by_row->coefficient, by_k->coefficient};
}

int PanelAhead(const SocSpec& soc, int64_t panel, int64_t panels, int64_t element_bytes) {
  const int64_t bytes = panel * element_bytes;
  return bytes * panels > soc.l2_bytes / 2 && bytes <= soc.l2_bytes * 3 / 8
             ? static_cast<int>(panel)
             : 0;
}

int WeightsAhead(const SocSpec& soc, int64_t panel, int64_t panels, int64_t element_bytes) {
  constexpr int64_t kAhead = 8192;
  if (panel * element_bytes > soc.l2_bytes / 4) return static_cast<int>(kAhead / element_bytes);
  return PanelAhead(soc, panel, panels, element_bytes);
}

Index SplitIndex(const std::vector<Expr>& dims, Expr flat) {
  Index idx(dims.size(), Expr(0));
  int first = 0;
  while (first + 1 < static_cast<int>(dims.size()) && dims[first].IsConst(1)) ++first;
  for (int d = static_cast<int>(dims.size()) - 1; d > first; --d) {
    if (dims[d].IsConst(1)) continue;
    idx[d] = Mod(flat, dims[d]);
    flat = FloorDiv(flat, dims[d]);
  }
  if (!dims.empty()) idx[first] = flat;
  return idx;
}

float FloatAt(const Constant& c, int64_t i) {
  if (c.dtype == DType::kF32) return ReadAs<float>(c.bytes.data(), i);
  return LoadElement<float>(c.dtype, c.bytes.data(), i);
}

bool IsSmallFloat(DType t) { return IsFloat(t) && ComputeType(t) == DType::kF32; }

int CubeBuild::AddTemp(Expr bytes) {
  lowered.temps.push_back({bytes});
  return static_cast<int>(lowered.temps.size()) - 1;
}

int CubeBuild::AddPack(Pack pack) {
  lowered.packs.push_back(std::move(pack));
  return static_cast<int>(lowered.packs.size()) - 1;
}

void CubeBuild::AddKernel(const std::string& schedule,
                          const std::function<void(LoweringContext&)>& body) {
  LoweringContext trial(g, region, soc);
  body(trial);
  std::set<ValueId> used = trial.used();
  LoweringContext context(g, region, soc, &used);
  body(context);
  LoweredKernel kernel = context.Finish(schedule);
  if (!lowered.kernels.empty()) kernel.kernel.name += "." + std::to_string(lowered.kernels.size());
  if (Status fault = tile::Verify(kernel.kernel); !fault.ok()) {
    GE_CHECK(false, "kernel " + region.name + ": " + fault.message() + "\n" +
                        tile::ToString(kernel.kernel));
  }
  lowered.kernels.push_back(std::move(kernel));
}

void CubeBuild::AddBorders(bool lanes_done) {
  std::vector<ValueId> rest;
  for (ValueId v : region.outputs) {
    const View view = BufferView(g.value(v));
    if (view.HasHalo() || (view.HasPadLanes() && !lanes_done)) rest.push_back(v);
  }
  while (!rest.empty()) {
    View view = BufferView(g.value(rest[0]));
    std::vector<ValueId> now, later;
    for (ValueId v : rest) (SameStorage(view, BufferView(g.value(v))) ? now : later).push_back(v);
    AddKernel("borders", [&](LoweringContext& c) {
      LoopReport report;
      LoopPolicy policy;
      policy.ns_per_iteration = 200;
      FillBorders(c, now, policy, &report);
    });
    rest = std::move(later);
  }
}

}  // namespace ge
