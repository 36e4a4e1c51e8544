// Regions of a graph and its subgraphs, in execution order. At opt_level 0 one node is one region.
//
// Integers that inference knows element by element are not computed at all (their readers use the
// facts), unless something reads them as memory: a host kernel, a control node, or the caller.
#include <algorithm>
#include <unordered_map>

#include "fuse/fuse.h"
#include "fuse/growth.h"
#include "ir/opdef.h"

namespace ge {
namespace {

bool Known(const Value& v) { return v.elems && !v.elems->empty() && v.constant == kNone; }

Engine EngineOf(const Node& n, const Policy& policy) {
  if (n.op->control) return Engine::kControl;
  if (!n.op->host.empty()) return Engine::kHost;
  const std::string& name = n.op->name;
  bool dot = name == "Conv" || name == "MatMul" || name == "Gemm" || name == "ConvTranspose" ||
             name == "ConvInteger" || name == "MatMulInteger" ||
             (n.op->domain == "ge" && (name == "Attend" || name == "MatMulNBits"));
  return dot && n.op->lower && policy.opt_level >= 1 ? Engine::kCube : Engine::kVector;
}

class Former {
 public:
  Former(const Graph& g, const Policy& policy)
      : g_(g), policy_(policy), uses_(Uses(g)), is_output_(g.values.size(), false) {
    for (ValueId v : g.outputs)
      if (v != kNone) is_output_[v] = true;
    for (size_t i = 0; i < g.order.size(); ++i) position_[g.order[i]] = static_cast<int>(i);
  }

  std::vector<Region> Run() {
    RegionGrowth growth(g_, policy_);
    for (NodeId n : g_.order) {
      if (g_.node(n).dead || Unneeded(n)) continue;
      Engine engine = EngineOf(g_.node(n), policy_);
      bool facts = engine == Engine::kVector && IsFact(n);
      if (policy_.opt_level >= 1 && !facts)
        growth.Add(n, engine);
      else
        growth.AddAlone(n, engine);
    }
    std::vector<Region> regions;
    for (Growing& grown : growth.Take()) regions.push_back(Finish(std::move(grown)));
    return regions;
  }

 private:
  // Does anything need the value's bytes?
  bool ReadAsMemory(ValueId v) const {
    if (is_output_[v]) return true;
    return std::any_of(uses_[v].begin(), uses_[v].end(), [&](const Use& use) {
      const OpDef& op = *g_.node(use.node).op;
      return op.control || !op.host.empty();
    });
  }

  // All that is wanted of it is known.
  bool IsFact(NodeId n) const {
    return std::all_of(g_.node(n).outputs.begin(), g_.node(n).outputs.end(), [&](ValueId v) {
      return v == kNone || (uses_[v].empty() && !is_output_[v]) || Known(g_.value(v));
    });
  }

  bool Unneeded(NodeId n) const {
    const Node& node = g_.node(n);
    if (EngineOf(node, policy_) != Engine::kVector || !IsFact(n)) return false;
    return std::none_of(node.outputs.begin(), node.outputs.end(),
                        [&](ValueId v) { return v != kNone && ReadAsMemory(v); });
  }

  Region Finish(Growing grown) const {
    Region r;
    r.engine = grown.engine;
    r.anchor = grown.anchor;
    r.nodes = std::move(grown.nodes);
    std::sort(r.nodes.begin(), r.nodes.end(),
              [&](NodeId a, NodeId b) { return position_.at(a) < position_.at(b); });
    r.name = g_.node(r.anchor != kNone ? r.anchor : r.nodes.back()).name;
    bool vector = r.engine == Engine::kVector || r.engine == Engine::kCube;
    auto inside = [&](NodeId n) {
      return std::find(r.nodes.begin(), r.nodes.end(), n) != r.nodes.end();
    };
    for (NodeId n : r.nodes)
      for (ValueId v : g_.node(n).outputs) {
        if (v == kNone) continue;
        bool outside = is_output_[v] || !vector;
        for (const Use& use : uses_[v]) outside |= !inside(use.node);
        if (outside && !(vector && Known(g_.value(v)) && !ReadAsMemory(v))) r.outputs.push_back(v);
      }
    bool facts = vector && std::all_of(r.outputs.begin(), r.outputs.end(),
                                       [&](ValueId v) { return Known(g_.value(v)); });
    if (facts) return r;  // its kernel stores the facts and reads nothing
    for (NodeId n : r.nodes)
      for (ValueId v : g_.node(n).inputs) {
        if (v == kNone || (g_.value(v).producer != kNone && inside(g_.value(v).producer))) continue;
        if (vector && Known(g_.value(v)) && g_.value(v).producer != kNone) continue;
        if (std::find(r.inputs.begin(), r.inputs.end(), v) == r.inputs.end()) r.inputs.push_back(v);
      }
    return r;
  }

  const Graph& g_;
  const Policy& policy_;
  std::vector<std::vector<Use>> uses_;
  std::vector<bool> is_output_;
  std::unordered_map<NodeId, int> position_;
};

}  // namespace

RegionMap FormRegions(const Graph& g, const SocSpec& soc, const Policy& policy) {
  RegionMap regions;
  std::vector<const Graph*> rest = {&g};
  while (!rest.empty()) {
    const Graph* graph = rest.back();
    rest.pop_back();
    regions[graph] = Former(*graph, policy).Run();
    for (NodeId n : graph->order)
      for (const auto& sub : graph->node(n).subgraphs)
        if (sub && !graph->node(n).dead) rest.push_back(sub.get());
  }
  (void)soc;
  return regions;
}

}  // namespace ge
