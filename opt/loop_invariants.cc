// loop_invariants: takes out of Loop and Scan what is the same in every iteration.
//
//   a carried value that the body hands on as it came
//       ->  captured; the result is what it started with
//
//   a carried value that neither body nor result reads
//       ->  gone
//
//   dots and reductions of captured values and constants
//       ->  computed once, before the loop, and captured
//
// Exporters of imperative programs (Paddle's while, scripted PyTorch) carry every variable that a
// loop sees, weights too. Pointwise work and views are taken out only on the way to a dot or a
// reduction: alone they cost less where they are fused. Sound for loops of no iteration: nothing
// that is taken out can fail, and its result is then unread.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

bool IsLoop(const Node& n) {
  return !n.dead && n.subgraphs.size() == 1 && (n.op->name == "Loop" || n.op->name == "Scan");
}

template <class T>
void EraseAt(std::vector<T>& list, size_t at) {
  list.erase(list.begin() + static_cast<int64_t>(at));
}

// Where the carried values of a Loop or Scan stand. They are the first of the node's outputs.
struct CarriedAt {
  // The first among the node's inputs, the body's inputs and the body's outputs.
  size_t operand, formal, result;
  size_t count;
};

CarriedAt CarriedOf(const Node& n) {
  const bool loop = n.op->name == "Loop";
  const auto others = static_cast<size_t>(AttrOr<int64_t>(n, "captures", 0) +
                                          AttrOr<int64_t>(n, "num_scan_inputs", 0));
  return loop ? CarriedAt{2, 2, 1, n.inputs.size() - 2 - others}
              : CarriedAt{0, 0, 0, n.inputs.size() - others};
}

void AddCapture(Node& n, ValueId outer, ValueId inner) {
  n.inputs.push_back(outer);
  n.subgraphs[0]->inputs.push_back(inner);
  n.attrs["captures"] = AttrOr<int64_t>(n, "captures", 0) + 1;
}

// How often each value is read, by nodes and as an output.
using Reads = std::unordered_map<ValueId, int>;
Reads CountReads(const Graph& g) {
  Reads reads;
  for (ValueId v : g.outputs) ++reads[v];
  for (NodeId id : g.order)
    for (ValueId v : g.node(id).inputs) ++reads[v];
  return reads;
}

// `after` collects the nodes that stand in for results of the loop; `reads` is of g.
bool DropCarried(Graph& g, NodeId id, Reads& reads, std::vector<NodeId>& after) {
  bool changed = false;
  Reads inside = CountReads(*g.node(id).subgraphs[0]);
  for (size_t k = CarriedOf(g.node(id)).count; k-- > 0;) {
    Node& n = g.node(id);
    Graph& body = *n.subgraphs[0];
    const CarriedAt at = CarriedOf(n);
    const ValueId outer = n.inputs[at.operand + k], inner = body.inputs[at.formal + k];
    const ValueId result = k < n.outputs.size() ? n.outputs[k] : kNone;
    if (body.value(inner).kind != ValueKind::kTensor) continue;
    const bool unchanged = body.outputs[at.result + k] == inner;
    const bool unread = inside[inner] == 0 && (result == kNone || reads[result] == 0);
    if (!unchanged && !unread) continue;
    --inside[body.outputs[at.result + k]];
    if (!unchanged) --reads[outer];
    EraseAt(n.inputs, at.operand + k);
    EraseAt(body.inputs, at.formal + k);
    EraseAt(body.outputs, at.result + k);
    if (k < n.outputs.size()) EraseAt(n.outputs, k);
    changed = true;
    if (unchanged) AddCapture(n, outer, inner);
    if (result == kNone) continue;
    g.value(result).producer = kNone;
    if (!unchanged) continue;
    Node identity;
    identity.op = FindOp("", "Identity");
    identity.name = n.name;
    identity.origin = n.origin;
    identity.inputs = {outer};
    identity.outputs = {result};
    const auto new_id = static_cast<NodeId>(g.nodes.size());
    g.value(result).producer = new_id;
    g.nodes.push_back(std::move(identity));
    after.push_back(new_id);
  }
  return changed;
}

bool IsMovable(const Node& n) {
  return n.subgraphs.empty() && n.fresh.empty() && !n.op->control && n.op->host.empty() &&
         !IsRandom(n) &&
         (n.op->lower || n.op->fusion == Fusion::kPointwise || n.op->fusion == Fusion::kView);
}

// The body's nodes to take out, in order: dots and reductions of values that do not change, and
// what leads to them.
std::vector<NodeId> Invariants(const Node& loop) {
  const Graph& body = *loop.subgraphs[0];
  const auto captures = static_cast<size_t>(AttrOr<int64_t>(loop, "captures", 0));
  std::unordered_set<ValueId> fixed(body.inputs.end() - static_cast<int64_t>(captures),
                                    body.inputs.end());
  std::vector<NodeId> candidates;
  for (NodeId id : body.order) {
    const Node& n = body.node(id);
    bool some = false, all = IsMovable(n);
    for (ValueId v : n.inputs) {
      if (v == kNone || body.IsConstant(v)) continue;
      some = true;
      all = all && fixed.contains(v);
    }
    if (!some || !all) continue;
    candidates.push_back(id);
    fixed.insert(n.outputs.begin(), n.outputs.end());
  }
  std::vector<NodeId> taken;
  std::unordered_set<ValueId> wanted;
  for (size_t i = candidates.size(); i-- > 0;) {
    const Node& n = body.node(candidates[i]);
    const bool leads =
        std::ranges::any_of(n.outputs, [&](ValueId v) { return v != kNone && wanted.contains(v); });
    if (!n.op->lower && !leads) continue;
    taken.push_back(candidates[i]);
    wanted.insert(n.inputs.begin(), n.inputs.end());
  }
  std::ranges::reverse(taken);
  return taken;
}

// Moves them into g, before the loop; `before` collects them.
bool Hoist(Graph& g, NodeId id, std::vector<NodeId>& before) {
  const std::vector<NodeId> taken = Invariants(g.node(id));
  if (taken.empty()) return false;
  Graph& body = *g.node(id).subgraphs[0];
  std::unordered_map<ValueId, ValueId> outside;
  {
    const Node& n = g.node(id);
    for (size_t i = 1; i <= static_cast<size_t>(AttrOr<int64_t>(n, "captures", 0)); ++i)
      outside[body.inputs[body.inputs.size() - i]] = n.inputs[n.inputs.size() - i];
  }
  const auto map = [&](ValueId v) {
    if (v == kNone) return kNone;
    auto [it, fresh] = outside.try_emplace(v, kNone);
    if (fresh) {
      g.values.push_back(body.value(v));
      g.values.back().producer = kNone;
      it->second = static_cast<ValueId>(g.values.size()) - 1;
    }
    return it->second;
  };
  std::vector<ValueId> made;
  for (NodeId old : taken) {
    made.insert(made.end(), body.node(old).outputs.begin(), body.node(old).outputs.end());
    Node n = std::move(body.node(old));
    body.node(old) = Node{};
    body.node(old).op = n.op;
    body.node(old).dead = true;
    const auto new_id = static_cast<NodeId>(g.nodes.size());
    for (ValueId& v : n.inputs) v = map(v);
    for (ValueId& v : n.outputs) {
      v = map(v);
      if (v != kNone) g.value(v).producer = new_id;
    }
    g.nodes.push_back(std::move(n));
    before.push_back(new_id);
  }
  std::erase_if(body.order, [&](NodeId n) { return body.node(n).dead; });
  const Reads inside = CountReads(body);
  for (ValueId v : made) {
    if (v == kNone) continue;
    body.value(v).producer = kNone;
    if (inside.contains(v)) AddCapture(g.node(id), outside.at(v), v);
  }
  return true;
}

bool RunOn(Graph& g) {
  bool changed = false;
  std::vector<NodeId> order;
  std::vector<ValueId> fresh;
  if (std::ranges::none_of(g.order, [&](NodeId id) { return IsLoop(g.node(id)); })) return false;
  Reads reads = CountReads(g);
  for (NodeId id : std::vector<NodeId>(g.order)) {
    std::vector<NodeId> after;
    bool here = false;
    if (IsLoop(g.node(id))) {
      here = DropCarried(g, id, reads, after);
      here |= Hoist(g, id, order);
    }
    order.push_back(id);
    order.insert(order.end(), after.begin(), after.end());
    if (here)
      for (ValueId v : g.node(id).inputs)
        if (v != kNone) fresh.push_back(v);
    changed |= here;
  }
  if (!changed) return false;
  g.order = std::move(order);
  MakeNamesUnique(g);
  InferAgain(g, fresh);
  return true;
}

bool Run(Graph& g, const Policy&, const PassServices&) {
  bool changed = false;
  ForEachGraph(g, [&](Graph& sub) { changed |= RunOn(sub); });
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "loop_invariants", .needs = {}, .gives = {}, .run = Run});

}  // namespace
}  // namespace ge
