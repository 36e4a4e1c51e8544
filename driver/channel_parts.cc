// Parts of channels, where rows are not known beforehand and so there are no strips of them:
//
//   %v = Conv(%x)  %y = Depthwise(%v)   ->   %y = Concat of, for each part p of the channels,
//                                            Depthwise_p(Conv_p(%x))
//
// The parts are computed one after the other, so that one of v is alive at a time. Nothing is
// computed twice; x is read once for each part. Pointwise nodes of the two regions go along.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "driver/compilation.h"
#include "driver/strips.h"
#include "ir/opdef.h"
#include "om/live.h"
#include "opt/facts.h"

namespace ge {
namespace {

constexpr int64_t kBlock = 16, kMostParts = 4;

bool HasChannels(const Value& v, int64_t channels) {
  return v.type.rank() == 4 && v.type.dims[1].IsConst(channels);
}

// A constant that is one number for each channel, along this axis; -1: it is not.
int AxisOfChannels(const Graph& g, ValueId v, int64_t channels) {
  const std::vector<Expr>& dims = g.value(v).type.dims;
  const int axis = static_cast<int>(dims.size()) - 3;
  const bool fits = g.IsConstant(v) && BitWidth(g.value(v).type.dtype) >= 8 && axis >= 0 &&
                    dims[static_cast<size_t>(axis)].IsConst(channels) &&
                    g.value(v).type.Elements().IsConst(channels);
  return fits ? axis : -1;
}

// Can the region's channels be computed apart? `in`: the value between the two, kNone in the first.
bool ByChannel(const Graph& g, const Region& r, int64_t channels, ValueId in) {
  if (r.engine != Engine::kCube || r.outputs.size() != 1 || r.anchor == kNone) return false;
  const auto is_inside = [&](ValueId v) {
    return v == in ||
           (g.value(v).producer != kNone &&
            std::find(r.nodes.begin(), r.nodes.end(), g.value(v).producer) != r.nodes.end());
  };
  for (NodeId id : r.nodes) {
    const Node& n = g.node(id);
    if (n.outputs.size() != 1 || HasAttr(n, "strip") ||
        !HasChannels(g.value(n.outputs[0]), channels))
      return false;
    if (id == r.anchor) {
      const int64_t group = AttrOr<int64_t>(n, "group", 1);
      const bool weights = n.op->name == "Conv" && n.op->domain.empty() &&
                           g.IsConstant(n.inputs[1]) &&
                           g.value(n.inputs[1]).type.dims[0].IsConst(channels);
      const bool bias = n.inputs.size() < 3 || n.inputs[2] == kNone || g.IsConstant(n.inputs[2]);
      if (!weights || !bias || group != (in == kNone ? 1 : channels)) return false;
      if (in != kNone && !(is_inside(n.inputs[0]) && HasChannels(g.value(n.inputs[0]), channels)))
        return false;
      continue;
    }
    if (n.op->fusion != Fusion::kPointwise || !n.op->element) return false;
    for (ValueId v : n.inputs) {
      const bool fits = v == kNone || (is_inside(v) && HasChannels(g.value(v), channels)) ||
                        (g.IsConstant(v) && (g.value(v).type.Elements().IsConst(1) ||
                                             AxisOfChannels(g, v, channels) >= 0));
      if (!fits) return false;
    }
  }
  return true;
}

class Rewriting {
 public:
  Rewriting(Graph& g, const Region& first, const Region& second, int64_t channels)
      : g_(g), second_(second), channels_(channels) {
    for (NodeId n : g.order)
      for (const Region* r : {&first, &second})
        if (std::find(r->nodes.begin(), r->nodes.end(), n) != r->nodes.end()) nodes_.push_back(n);
  }

  std::function<void()> Run(int64_t parts) {
    const std::set<NodeId> nodes(nodes_.begin(), nodes_.end());
    return ReplaceByParts(g_, nodes, second_.outputs[0], 1, "parts", [&] {
      std::vector<ValueId> made;
      for (int64_t p = 0; p < parts; ++p)
        made.push_back(Part(channels_ * p / parts, channels_ * (p + 1) / parts));
      return made;
    });
  }

 private:
  ValueId Part(int64_t lo, int64_t hi) {
    std::map<ValueId, ValueId> made;
    ValueId last = kNone;
    for (NodeId id : nodes_) {
      const ValueId out = g_.node(id).outputs[0];
      const bool conv = g_.node(id).op->fusion != Fusion::kPointwise;
      std::vector<ValueId> inputs = g_.node(id).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == kNone) continue;
        const int axis = conv ? (i == 0 ? -1 : 0) : AxisOfChannels(g_, inputs[i], channels_);
        if (made.contains(inputs[i]))
          inputs[i] = made.at(inputs[i]);
        else if (axis >= 0)
          inputs[i] = SliceOf(inputs[i], axis, lo, hi);
      }
      const std::string name = fmt::format("{}.part{}_{}", g_.value(out).name, lo, g_.nodes.size());
      const NodeId copy = g_.AddNode(*g_.node(id).op, name, inputs, 1);
      Node& node = g_.node(copy);
      node.attrs = g_.node(id).attrs;
      node.origin = g_.node(id).origin;
      node.attrs["strip"] = int64_t{1};
      if (conv) node.attrs["recomputed"] = int64_t{1};  // a region of its own
      if (AttrOr<int64_t>(node, "group", 1) > 1) node.attrs["group"] = hi - lo;
      Value& value = g_.value(node.outputs[0]);
      value.name = name;
      value.type = g_.value(out).type;
      value.type.dims[1] = hi - lo;
      value.halo = g_.value(out).halo;
      made[out] = last = node.outputs[0];
    }
    return last;
  }

  ValueId SliceOf(ValueId v, int axis, int64_t lo, int64_t hi) {
    std::vector<int64_t> own(static_cast<size_t>(hi - lo));
    std::iota(own.begin(), own.end(), lo);
    return g_.AddConstant(fmt::format("{}.part{}_{}", g_.value(v).name, lo, g_.values.size()),
                          Taken(*g_.ConstantOf(v), axis, own));
  }

  Graph& g_;
  const Region& second_;
  const int64_t channels_;
  std::vector<NodeId> nodes_;  // of both, in order
};

// Splits the pair whose value in between is the largest at the fullest moment.
bool SplitOne(Compilation& c, std::function<void()>* undo) {
  Graph& g = *c.graph;
  const om::Plan& plan = c.planned.plan;
  const std::vector<Region>& regions = c.regions.at(&g);
  const std::vector<int64_t> live = om::ArenaLives(plan, c.planned.typical).ByTask();
  const auto full = static_cast<int32_t>(std::max_element(live.begin(), live.end()) - live.begin());
  std::set<std::string_view> alive;
  for (const om::Buffer& b : plan.buffers) {
    if (b.kind == om::BufferKind::kArena && b.first >= 0 && b.first <= full && full <= b.last)
      alive.insert(b.name);
  }
  std::map<ValueId, std::vector<const Region*>> readers;
  for (const Region& r : regions)
    for (ValueId v : r.inputs) readers[v].push_back(&r);
  for (const Region& first : regions) {
    if (first.outputs.size() != 1) continue;
    const ValueId v = first.outputs[0];
    const bool is_output = std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
    if (is_output || !alive.contains(g.value(v).name) || readers[v].size() != 1 ||
        g.value(v).type.rank() != 4 || !g.value(v).type.dims[1].IsConst())
      continue;
    const int64_t channels = g.value(v).type.dims[1].value();
    const Region& second = *readers[v][0];
    // Tiles of two vectors of channels are the faster ones.
    const int64_t block = channels % (2 * 2 * kBlock) == 0 ? 2 * kBlock : kBlock;
    int64_t parts = kMostParts;
    while (parts > 1 && channels % (parts * block) != 0) --parts;
    if (parts < 2 || !ByChannel(g, first, channels, kNone) || !ByChannel(g, second, channels, v))
      continue;
    *undo = Rewriting(g, first, second, channels).Run(parts);
    return true;
  }
  return false;
}

}  // namespace

Status UseChannelParts(Compilation& c) {
  constexpr double kSmaller = 0.96, kSlower = 1.02;
  constexpr int kMostSteps = 4;
  const Policy& policy = c.request.policy;
  if (policy.opt_level < 2 || policy.disabled.contains("channel_parts") ||
      c.planned.plan.arena_bytes >= 0)
    return {};
  const auto most = [&] { return om::ArenaLives(c.planned.plan, c.planned.typical).Most(); };
  const double ns = PredictedNs(c.planned), before = static_cast<double>(most());
  std::vector<std::function<void()>> undo;
  double share = 1;
  while (static_cast<int>(undo.size()) < kMostSteps) {
    std::function<void()> back;
    if (!SplitOne(c, &back)) break;
    undo.push_back(std::move(back));
    GE_TRY(PlanAgain(c));
    const double slower = PredictedNs(c.planned) / ns;
    share = static_cast<double>(most()) / before;
    c.Log(
        fmt::format("channel_parts, step {}: arena {} bytes at typical sizes, predicted time "
                    "{:+.1f} %",
                    undo.size(), most(), 100 * (slower - 1)));
    if (slower > kSlower) share = 1;
    if (share <= kSmaller || share == 1) break;
  }
  if (undo.empty() || share <= kSmaller) return {};
  for (; !undo.empty(); undo.pop_back()) undo.back()();
  return PlanAgain(c);
}

}  // namespace ge
