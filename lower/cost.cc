// cycles = sum over statements of trips * (operations / lanes / units); time = max(cycles,
// traffic).
#include "lower/cost.h"

#include <algorithm>
#include <vector>

namespace ge {
namespace {

using tile::Kernel;
using tile::Op;
using tile::Stmt;
using tile::StmtKind;
using tile::ValueNode;

// Vector operations that one element operation stands for.
double Weight(Op op) {
  switch (op) {
    case Op::kConst:
    case Op::kIndex:
    case Op::kVar: return 0;
    case Op::kDiv:
    case Op::kSqrt:
    case Op::kRcp: return 8;
    case Op::kFloorMod: return 12;
    case Op::kExp: return 14;
    case Op::kLog:
    case Op::kTanh:
    case Op::kErf:
    case Op::kGelu:
    case Op::kExpm1:
    case Op::kLog1p:
    case Op::kSinh:
    case Op::kCosh: return 20;
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kAtan:
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtan2: return 30;
    case Op::kPow:
    case Op::kFmod:
    case Op::kAsinh:
    case Op::kAcosh:
    case Op::kAtanh:
    case Op::kLgamma: return 60;
    default: return 1;
  }
}

class Estimate {
 public:
  Estimate(const Kernel& kernel, const SocSpec& soc)
      : touched(kernel.buffers.size(), 0.0), k_(kernel), soc_(soc) {}
  void Walk(const Stmt& s, double trips, double lanes, Expr lane);
  double cycles = 0, flops = 0, tiles = 0, on_chip = 0;
  std::vector<double> touched;  // elements of each buffer that are loaded or stored

 private:
  void Value(tile::ExprId id, double trips, double lanes, Expr lane);
  void Gemm(const tile::BrGemm& gemm, double trips);
  double Mean(Expr extent) const;
  double Times(Expr extent) const;
  bool IsDense(Expr index, Expr lane) const;
  std::vector<tile::ExprId> loaded_;  // in the scope at hand: what is loaded again is in a register
  std::vector<std::pair<Expr, int64_t>> loops_;  // around the statement at hand: symbol, extent
  const Kernel& k_;
  const SocSpec& soc_;
};

double Trips(Expr extent) { return static_cast<double>(std::max<int64_t>(HintValue(extent), 0)); }

// How often the data lets a loop run is not known: as often as it may.
double Estimate::Times(Expr extent) const {
  constexpr int64_t kFar = int64_t{1} << 31;
  if (extent.IsConst()) return Trips(extent);
  const bool by_data = std::any_of(k_.vars.begin(), k_.vars.end(), [&](const tile::Var& v) {
    return v.index.IsSymbol() && DependsOn(extent, v.index);
  });
  const int64_t most = by_data ? Bounds(extent).hi : kFar;
  return most < kFar ? static_cast<double>(std::max<int64_t>(most, 0)) : Trips(extent);
}

// What a loop of this extent has on average: the last one of several chunks may be shorter.
double Estimate::Mean(Expr extent) const {
  constexpr int64_t kSamples = 32;
  if (extent.IsConst()) return Trips(extent);
  for (size_t i = loops_.size(); i-- > 0;) {
    const auto& [symbol, count] = loops_[i];
    if (count <= 1 || !DependsOn(extent, symbol)) continue;
    const int64_t samples = std::min(count, kSamples);
    double sum = 0;
    for (int64_t s = 0; s < samples; ++s) {
      const Expr at = Substitute(extent, [&](Expr e) -> std::optional<Expr> {
        if (e == symbol) return Expr(s * (count - 1) / std::max<int64_t>(samples - 1, 1));
        return std::nullopt;
      });
      sum += Trips(at);
    }
    return sum / static_cast<double>(samples);
  }
  return Times(extent);
}

// Are the elements of a vector of lanes side by side? Blocks of as many lanes are.
bool Estimate::IsDense(Expr index, Expr lane) const {
  const auto at = [&](int64_t l) {
    return Substitute(index,
                      [&](Expr e) { return e == lane ? std::optional(Expr(l)) : std::nullopt; });
  };
  const int64_t last = soc_.F32Lanes() - 1;
  return (at(1) - at(0)).IsConst(1) && (at(last) - at(0)).IsConst(last);
}

void Estimate::Value(tile::ExprId root, double trips, double lanes, Expr lane) {
  if (root < 0) return;
  std::vector<tile::ExprId> stack = {root};
  std::vector<tile::ExprId> seen;
  while (!stack.empty()) {
    tile::ExprId id = stack.back();
    stack.pop_back();
    if (id < 0 || std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    seen.push_back(id);
    const ValueNode& v = k_.values[id];
    double width = lanes * (BitWidth(v.type) > 32 ? 0.5 : 1);
    if (v.op == Op::kLoad) {
      if (std::find(loaded_.begin(), loaded_.end(), id) != loaded_.end()) continue;
      loaded_.push_back(id);
      bool uniform = lane.IsConst() || !DependsOn(v.index, lane);
      bool dense = uniform || IsDense(v.index, lane);
      touched[v.buffer] += trips;
      cycles += trips * (dense ? 0.5 / std::max(width, 1.0) : 1.0);
    } else {
      double weight = Weight(v.op);
      if (weight > 0) flops += v.op == Op::kFma ? 2 * trips : trips;
      cycles += trips * weight * 0.5 / std::max(width, 1.0);
    }
    stack.insert(stack.end(), {v.a, v.b, v.c});
  }
}

void Estimate::Gemm(const tile::BrGemm& gemm, double trips) {
  double macs = trips * gemm.m * gemm.n * Times(gemm.k);
  for (const auto& [symbol, extent] : gemm.batch) macs *= Times(extent);
  flops += 2 * macs;
  tiles += trips;
  const double depth = macs / std::max(trips, 1.0) / (gemm.m * gemm.n);
  const double a = BitWidth(k_.buffers[gemm.a_buffer].dtype) / 8.0,
               b = BitWidth(k_.buffers[gemm.b_buffer].dtype) / 8.0;
  on_chip = std::max(on_chip, depth * (gemm.m * a + gemm.n * b) + 4.0 * gemm.m * gemm.n);
  touched[gemm.a_buffer] += macs;
  touched[gemm.b_buffer] += macs;
  cycles += macs / MacsPerCycle(soc_, gemm.k_group);
}

// The share of trips on which an If's first branch runs, if an index that is compared with a
// constant takes each of its values as often; else half of them where there are two branches.
double FirstShare(const Kernel& k, const Stmt& s) {
  tile::ExprId id = s.value;
  while (id >= 0 && k.values[id].op == Op::kCast) id = k.values[id].a;
  if (id >= 0 && k.values[id].op == Op::kIndex && k.values[id].index.kind() == ExprKind::kLt) {
    const auto& sides = k.values[id].index.node()->args;
    const Interval range = Bounds(sides[0]);
    constexpr int64_t kFar = int64_t{1} << 40;  // no bound that says anything
    const bool known = sides[1].IsConst() && range.lo > -kFar && range.hi < kFar;
    if (known)
      return std::clamp(static_cast<double>(sides[1].value() - range.lo) /
                            static_cast<double>(range.hi - range.lo + 1),
                        0.0, 1.0);
  }
  return s.orelse.empty() ? 1 : 0.5;
}

void Estimate::Walk(const Stmt& s, double trips, double lanes, Expr lane) {
  if (s.kind == StmtKind::kLoop) {
    const double extent = Mean(s.extent);
    trips *= extent;
    loops_.emplace_back(s.symbol, static_cast<int64_t>(extent));
    if (s.loop == tile::LoopKind::kVector) lanes = soc_.F32Lanes(), lane = s.symbol;
    cycles += trips / std::max(lanes, 1.0);
  }
  if (s.kind == StmtKind::kReduce) {
    for (const auto& [symbol, extent] : s.axes) trips *= Times(extent);
    if (lane.IsConst() && !s.axes.empty()) lanes = soc_.F32Lanes(), lane = s.axes.back().first;
  }
  if (s.kind == StmtKind::kBrGemm) {
    Gemm(s.gemm, trips);
    trips *= s.gemm.m * Mean(s.gemm.n_valid);
    lanes = soc_.F32Lanes(), lane = s.gemm.col;
  }
  if (s.kind == StmtKind::kStore) {
    touched[s.buffer] += trips;
    const bool dense = lane.IsConst() || IsDense(s.index, lane);
    cycles += trips * (dense ? 0.5 / std::max(lanes, 1.0) : 1.0);
  }
  Value(s.value, trips, lanes, lane);
  const double first = s.kind == StmtKind::kIf ? FirstShare(k_, s) : 1;
  const size_t outside = loaded_.size();
  for (const Stmt& inner : s.body) Walk(inner, trips * first, lanes, lane);
  loaded_.resize(outside);
  for (const Stmt& inner : s.orelse) Walk(inner, trips * (1 - first), lanes, lane);
  loaded_.resize(outside);
  if (s.kind == StmtKind::kLoop) loops_.pop_back();
}

}  // namespace

// Groups on a matrix unit: tiles of 16 rows, 16 columns and 16 groups. Else bytes: four products
// per lane by one instruction, or widened to 16 bits by two and as many sums, which was measured as
// 1.25 times the rate of f32; bf16: two.
double MacsPerCycle(const SocSpec& soc, int k_group) {
  if (soc.amx && k_group > 1) return 16 * 16 * 16 * k_group / soc.tile_cycles * soc.tile_share;
  const double bytes = soc.vnni ? 4 : soc.IsArm() ? 1 : 1.25;
  const double per_lane = k_group == 4 ? bytes : k_group == 2 && soc.bf16 ? 2 : 1;
  return soc.F32Lanes() * soc.fma_per_cycle * per_lane * soc.dot_share;
}

KernelCost EstimateCost(const Kernel& kernel, const SocSpec& soc) {
  Estimate estimate(kernel, soc);
  estimate.Walk(kernel.body, 1, 1, 0);
  KernelCost cost;
  cost.flops = estimate.flops;
  cost.tiles = estimate.tiles, cost.on_chip_bytes = estimate.on_chip;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const tile::Buffer& buffer = kernel.buffers[i];
    if (buffer.is_arg)
      cost.bytes += std::min(Trips(buffer.elements), estimate.touched[i]) *
                    std::max(BitWidth(buffer.dtype), 1) / 8.0;
  }
  const double rate = cost.bytes <= static_cast<double>(soc.l2_bytes)   ? soc.l2_gb_per_s
                      : cost.bytes <= static_cast<double>(soc.l3_bytes) ? soc.l3_gb_per_s
                                                                        : soc.dram_gb_per_s;
  cost.ns = std::max(estimate.cycles / soc.ghz, cost.bytes / rate);
  return cost;
}

}  // namespace ge
