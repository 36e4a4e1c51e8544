// See recompute.h.
//
//   %a = R(%x)  ...  fullest moment  ...  %y = F(%a)   ->   ...  %a.again = R(%x)  %y = F(%a.again)
//
// A region qualifies if its only result lies in the arena, is not read while the arena is fullest,
// but before and after. What its inputs must live longer counts against it. Copies carry the
// attribute "recomputed", so that they join no region of an earlier moment (fuse/growth.cc).
#include "driver/recompute.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "om/live.h"
#include "om/size.h"
#include "plan/spill.h"

namespace ge {
namespace {

struct Candidate {
  size_t region = 0;
  std::vector<size_t> late_regions;
  double cost_ns = 0;
  int64_t freed = 0;
  double Score() const { return cost_ns / static_cast<double>(freed); }
};

class Search {
 public:
  Search(const Graph& g, const std::vector<Region>& regions, const std::vector<Lowered>& lowered,
         const Planned& planned, bool cheap)
      : g_(g), regions_(regions), lowered_(lowered), plan_(planned.plan), cheap_(cheap) {
    std::unordered_map<const LoweredKernel*, size_t> region_of;
    for (size_t r = 0; r < lowered.size(); ++r)
      for (const LoweredKernel& k : lowered[r].kernels) region_of[&k] = r;
    region_at_.assign(plan_.tasks.size(), regions.size());
    uses_.resize(plan_.buffers.size());
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      const om::Task& task = plan_.tasks[t];
      if (task.kernel >= 0) {
        const auto it = region_of.find(planned.kernels[static_cast<size_t>(task.kernel)]);
        if (it != region_of.end()) region_at_[t] = it->second;
      }
      for (int32_t b : task.args)
        if (b >= 0) uses_[Root(b)].push_back(t);
    }
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const om::Buffer& buffer = plan_.buffers[b];
      if (buffer.alias >= 0) shared_.insert({Root(static_cast<int32_t>(b)), b});
      by_name_[buffer.name] = b;
    }
  }

  bool Best(Candidate* best) const {
    const size_t full = FullestTask(plan_);
    bool any = false;
    for (size_t r = 0; r < regions_.size(); ++r) {
      Candidate c;
      c.region = r;
      if (!Qualifies(full, &c) || (any && c.Score() >= best->Score())) continue;
      *best = c;
      any = true;
    }
    return any;
  }

 private:
  size_t Root(int32_t b) const { return static_cast<size_t>(om::RootOf(plan_, b)); }
  int64_t BytesOf(size_t buffer) const {
    return std::max<int64_t>(0, om::EvalSize(plan_, plan_.buffers[buffer].bytes, {}));
  }

  bool Qualifies(size_t full, Candidate* c) const {
    const Region& r = regions_[c->region];
    const bool code = r.engine == Engine::kVector || r.engine == Engine::kCube;
    if (!code || r.outputs.size() != 1 || lowered_[c->region].kernels.empty()) return false;
    const ValueId v = r.outputs[0];
    if (std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end()) return false;
    const auto it = by_name_.find(g_.value(v).name);
    if (it == by_name_.end()) return false;
    const size_t b = it->second;
    const om::Buffer& buffer = plan_.buffers[b];
    if (buffer.kind != om::BufferKind::kArena || buffer.alias >= 0 || shared_.contains(b))
      return false;
    size_t before = 0, next = plan_.tasks.size();
    for (size_t t : uses_[b]) {
      if (t == full) return false;
      // Its own region may write it by several kernels.
      if (t < full && region_at_[t] != c->region) ++before;
      if (t < full) continue;
      if (region_at_[t] >= regions_.size() || region_at_[t] == c->region) return false;
      next = std::min(next, t);
      c->late_regions.push_back(region_at_[t]);
    }
    if (before < 1 || c->late_regions.empty()) return false;  // read before
    c->freed = BytesOf(b);
    for (ValueId u : r.inputs) {
      const auto in = by_name_.find(g_.value(u).name);
      if (g_.IsConstant(u) || in == by_name_.end()) continue;
      const size_t root = Root(static_cast<int32_t>(in->second));
      const bool planned = plan_.buffers[root].kind == om::BufferKind::kArena;
      if (planned && plan_.buffers[root].last < static_cast<int32_t>(next))
        c->freed -= BytesOf(root);
    }
    for (const LoweredKernel& k : lowered_[c->region].kernels) c->cost_ns += k.cost_ns;
    return c->freed > 0 && (!cheap_ || c->cost_ns <= 2 * MoveNs(BytesOf(b)));
  }

  const Graph& g_;
  const std::vector<Region>& regions_;
  const std::vector<Lowered>& lowered_;
  const om::Plan& plan_;
  bool cheap_;
  std::vector<size_t> region_at_;          // per task
  std::vector<std::vector<size_t>> uses_;  // per root
  std::multimap<size_t, size_t> shared_;   // root -> what lies in it
  std::map<std::string, size_t> by_name_;
};

// The region's nodes once more, at a position of the order; the value that stands for its result.
ValueId CopyNodes(Graph& g, const Region& r, size_t position, std::vector<NodeId>& made) {
  std::map<ValueId, ValueId> again;
  for (NodeId n : r.nodes) {
    const Node from = {.op = g.node(n).op,
                       .name = g.node(n).name,
                       .inputs = g.node(n).inputs,
                       .outputs = g.node(n).outputs,
                       .attrs = g.node(n).attrs,
                       .subgraphs = {},
                       .origin = g.node(n).origin,
                       .fresh = g.node(n).fresh};
    std::vector<ValueId> inputs = from.inputs;
    for (ValueId& v : inputs)
      if (const auto it = again.find(v); it != again.end()) v = it->second;
    const std::string suffix = ".again" + std::to_string(g.nodes.size());
    const NodeId copy =
        g.AddNode(*from.op, from.name + suffix, inputs, static_cast<int>(from.outputs.size()));
    Node& node = g.node(copy);
    node.attrs = from.attrs;
    node.attrs["recomputed"] = int64_t{1};
    node.origin = from.origin;
    node.fresh = from.fresh;
    for (size_t o = 0; o < from.outputs.size(); ++o) {
      if (from.outputs[o] == kNone) continue;
      const ValueId v = node.outputs[o];
      const Value& old = g.value(from.outputs[o]);
      g.value(v).type = old.type;
      g.value(v).halo = old.halo;
      g.value(v).elems = old.elems;
      g.value(v).name = old.name + suffix;
      again[from.outputs[o]] = v;
    }
    made.push_back(copy);
  }
  // AddNode appends to the order.
  std::erase_if(g.order,
                [&](NodeId n) { return std::find(made.begin(), made.end(), n) != made.end(); });
  g.order.insert(g.order.begin() + static_cast<ptrdiff_t>(position), made.begin(), made.end());
  return again.at(r.outputs[0]);
}

}  // namespace

size_t FullestTask(const om::Plan& plan) {
  const std::vector<int64_t> live = om::ArenaLives(plan, {}).ByTask();
  return static_cast<size_t>(std::max_element(live.begin(), live.end()) - live.begin());
}

bool RecomputeOne(Graph& g, const RegionMap& regions, const LoweredMap& lowered,
                  const Planned& planned, bool cheap, std::function<void()>* undo) {
  if (planned.plan.arena_bytes < 0) return false;
  const std::vector<Region>& list = regions.at(&g);
  Candidate best;
  if (!Search(g, list, lowered.at(&g), planned, cheap).Best(&best)) return false;
  const Region& r = list[best.region];
  const ValueId v = r.outputs[0];
  std::vector<NodeId> readers;
  for (size_t late : best.late_regions) {
    for (NodeId n : list[late].nodes) {
      const auto& inputs = g.node(n).inputs;
      if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) readers.push_back(n);
    }
  }
  size_t position = g.order.size();
  for (size_t i = 0; i < g.order.size() && position == g.order.size(); ++i)
    if (std::find(readers.begin(), readers.end(), g.order[i]) != readers.end()) position = i;
  if (position == g.order.size()) return false;
  const std::vector<NodeId> old_order = g.order;
  std::vector<NodeId> made;
  const ValueId again = CopyNodes(g, r, position, made);
  for (NodeId n : readers) std::replace(g.node(n).inputs.begin(), g.node(n).inputs.end(), v, again);
  if (undo != nullptr)
    *undo = [&g, made, readers, v, again, old_order] {
      for (const NodeId n : made) g.node(n).dead = true;
      for (const NodeId n : readers)
        std::replace(g.node(n).inputs.begin(), g.node(n).inputs.end(), again, v);
      g.order = old_order;
    };
  return true;
}

}  // namespace ge
