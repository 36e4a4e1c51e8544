// Convolutions that write their results over their inputs, where input and result together are what
// the arena is fullest with.
//
//   fullest:  y = Conv(x), of the same shape, x not read afterwards   ->   y lies where x did
//
// The kernels that can do so copy what they overwrite (lower/cube_conv.cc,
// lower/cube_depthwise.cc): they cost a little more, so only those are asked for that lower the
// arena, by the attribute "write_over". One whose kernel cannot do it is asked no more.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "driver/compilation.h"
#include "ir/opdef.h"
#include "om/live.h"
#include "om/size.h"

namespace ge {
namespace {

constexpr const char* kAsked = "write_over";

// A convolution that runs as one task, which is the first to use the bytes of its result and the
// last to use those of its input, as many.
struct Candidate {
  NodeId node = kNone;
  size_t task = 0;
  int64_t bytes = 0;
};

std::vector<Candidate> Candidates(const Compilation& c) {
  const Graph& g = *c.graph;
  const std::vector<Region>& regions = c.regions.at(&g);
  const std::vector<Lowered>& lowered = c.lowered.at(&g);
  const om::Plan& plan = c.planned.plan;
  std::unordered_map<const LoweredKernel*, size_t> region_of;
  for (size_t r = 0; r < regions.size(); ++r) {
    const NodeId anchor = regions[r].anchor;
    if (anchor == kNone || regions[r].outputs.size() != 1 || lowered[r].kernels.size() != 1)
      continue;
    const Node& n = g.node(anchor);
    const bool same = n.op->name == "Conv" && n.op->domain.empty() &&
                      g.value(n.inputs[0]).type == g.value(regions[r].outputs[0]).type;
    if (same) region_of[&lowered[r].kernels[0]] = r;
  }
  std::vector<Candidate> found;
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    const om::Task& task = plan.tasks[t];
    if (task.kernel < 0) continue;
    const LoweredKernel* kernel = c.planned.kernels[static_cast<size_t>(task.kernel)];
    const auto at = region_of.find(kernel);
    if (at == region_of.end() || task.outs.size() != 1) continue;
    const Node& n = g.node(regions[at->second].anchor);
    const auto to = static_cast<size_t>(om::RootOf(plan, task.outs[0]));
    Candidate one{regions[at->second].anchor, t, 0};
    for (size_t i = 0; i < kernel->args.size(); ++i) {
      const KernelArg& arg = kernel->args[i];
      if (arg.kind != KernelArg::Kind::kValue || arg.id != n.inputs[0]) continue;
      const om::Buffer& x = plan.buffers[static_cast<size_t>(om::RootOf(plan, task.args[i]))];
      const om::Buffer& y = plan.buffers[to];
      const bool both = x.kind == om::BufferKind::kArena && y.kind == om::BufferKind::kArena;
      if (!both || &x == &y || x.last != static_cast<int32_t>(t) || y.first != x.last) continue;
      one.bytes = om::EvalSize(plan, y.bytes, c.planned.typical);
    }
    if (one.bytes > 0) found.push_back(one);
  }
  return found;
}

int64_t MostAlive(const Compilation& c) {
  return om::ArenaLives(c.planned.plan, c.planned.typical).Most();
}

// Asks those without which the arena would stay larger than it need be.
bool Ask(Compilation& c, std::vector<Candidate> candidates) {
  constexpr double kSmaller = 0.9;
  std::vector<int64_t> live = om::ArenaLives(c.planned.plan, c.planned.typical).ByTask();
  const std::vector<int64_t> before = live;
  for (const Candidate& one : candidates) live[one.task] -= one.bytes;
  const int64_t least = *std::max_element(live.begin(), live.end());
  const int64_t most = *std::max_element(before.begin(), before.end());
  if (static_cast<double>(least) > kSmaller * static_cast<double>(most)) return false;
  for (const Candidate& one : candidates)
    if (before[one.task] > least) c.graph->node(one.node).attrs[kAsked] = int64_t{1};
  return true;
}

}  // namespace

Status UseWriteOver(Compilation& c) {
  constexpr int64_t kWorth = 1 << 20;
  constexpr int kMostRounds = 3;
  constexpr double kSlower = 1.02;
  const Policy& policy = c.request.policy;
  if (policy.opt_level < 2 || policy.disabled.contains(kAsked) || MostAlive(c) < kWorth) return {};
  const double ns = PredictedNs(c.planned);
  const int64_t before = MostAlive(c);
  std::set<NodeId> refused;
  const auto take_back = [&] {
    for (const NodeId n : c.graph->order) c.graph->node(n).attrs.erase(kAsked);
    return PlanAgain(c);
  };
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<Candidate> open = Candidates(c);
    std::erase_if(open, [&](const Candidate& one) { return refused.contains(one.node); });
    if (!Ask(c, open)) return {};
    GE_TRY(PlanAgain(c));
    // What was asked for and still has bytes of its own cannot be.
    bool all = true;
    for (const Candidate& one : Candidates(c)) {
      if (!HasAttr(c.graph->node(one.node), kAsked)) continue;
      refused.insert(one.node);
      all = false;
    }
    const double slower = PredictedNs(c.planned) / ns;
    c.Log(fmt::format("write_over: arena {} bytes, {} before, predicted time {:+.1f} %",
                      MostAlive(c), before, 100 * (slower - 1)));
    if (all && slower <= kSlower) return {};
    GE_TRY(take_back());
    if (all) return {};
  }
  return {};
}

}  // namespace ge
