// dead_code: removes what no output needs, and Ifs whose condition is known.
//
//   %y = If(%true, %x) then {%t = Relu(%x)} else {..}     ->  %t = Relu(%x); %y = Identity(%t)
//   %u = Exp(%x)   (unused)                               ->
//
// Optional outputs that nobody reads become absent; values captured for an If that neither branch
// reads are no longer passed.
#include <algorithm>
#include <unordered_map>

#include "ir/opdef.h"
#include "ir/symbol_uses.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

// The value of a known condition.
std::optional<bool> KnownCondition(const Graph& g, const Node& n) {
  if (n.op->name != "If" || n.inputs.empty() || n.inputs[0] == kNone) return {};
  if (const Constant* c = g.ConstantOf(n.inputs[0])) {
    if (c->dtype != DType::kBool || c->Elements() != 1) return {};
    return c->bytes[0] != std::byte{0};
  }
  const auto& elems = g.value(n.inputs[0]).elems;
  if (!elems || elems->size() != 1 || !(*elems)[0].IsConst()) return {};
  return (*elems)[0].value() != 0;
}

// Puts the nodes of `branch` into g at the end of `order`; gives the branch's outputs as values of
// g.
std::vector<ValueId> Splice(Graph& g, Graph& branch, const std::vector<ValueId>& captured,
                            std::vector<NodeId>& order) {
  std::unordered_map<ValueId, ValueId> values;
  for (size_t i = 0; i < branch.inputs.size(); ++i) values[branch.inputs[i]] = captured[i];
  auto map = [&](ValueId v) {
    if (v == kNone) return kNone;
    auto [it, fresh] = values.try_emplace(v, kNone);
    if (fresh) {
      Value copy = branch.value(v);
      copy.producer = kNone;
      g.values.push_back(std::move(copy));
      it->second = static_cast<ValueId>(g.values.size()) - 1;
    }
    return it->second;
  };
  for (NodeId id : branch.order) {
    Node n = std::move(branch.node(id));
    for (ValueId& v : n.inputs) v = map(v);
    const auto new_id = static_cast<NodeId>(g.nodes.size());
    for (ValueId& v : n.outputs) {
      v = map(v);
      if (v != kNone) g.value(v).producer = new_id;
    }
    g.nodes.push_back(std::move(n));
    order.push_back(new_id);
  }
  std::vector<ValueId> outputs;
  for (ValueId v : branch.outputs) outputs.push_back(map(v));
  return outputs;
}

// Replaces one If by its branch and Identities that keep the If's output values.
void Inline(Graph& g, NodeId id, bool condition, std::vector<NodeId>& order) {
  std::unique_ptr<Graph> branch = std::move(g.node(id).subgraphs[condition ? 0 : 1]);
  const std::vector<ValueId> captured(g.node(id).inputs.begin() + 1, g.node(id).inputs.end());
  const std::vector<ValueId> results = Splice(g, *branch, captured, order);
  const Node old = std::move(g.node(id));
  g.node(id) = Node{};
  g.node(id).op = old.op;
  g.node(id).name = old.name;
  g.node(id).dead = true;
  for (size_t o = 0; o < old.outputs.size(); ++o) {
    if (old.outputs[o] == kNone) continue;
    Node identity;
    identity.op = FindOp("", "Identity");
    identity.name = old.name;
    identity.origin = old.origin;
    identity.inputs = {results[o]};
    identity.outputs = {old.outputs[o]};
    const auto new_id = static_cast<NodeId>(g.nodes.size());
    g.value(old.outputs[o]).producer = new_id;
    g.nodes.push_back(std::move(identity));
    order.push_back(new_id);
  }
}

bool InlineIfs(Graph& g) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    std::vector<NodeId> order;
    std::vector<ValueId> fresh;
    for (NodeId id : std::vector<NodeId>(g.order)) {
      const std::optional<bool> condition = KnownCondition(g, g.node(id));
      if (!condition) {
        order.push_back(id);
        continue;
      }
      const size_t from = order.size();
      Inline(g, id, *condition, order);
      for (size_t i = from; i < order.size(); ++i) {
        for (ValueId v : g.node(order[i]).inputs) {
          if (v != kNone) fresh.push_back(v);
        }
      }
      again = true;
    }
    g.order = std::move(order);
    // The branch knows more than what both branches had in common.
    InferAgain(g, fresh);
    changed = changed || again;
  }
  if (changed) MakeNamesUnique(g);
  return changed;
}

// Drops captures of an If that no branch reads. (The values of a loop may be carried: those stay.)
bool DropCaptures(Graph& g, Node& n) {
  if (n.op->name != "If" || n.subgraphs.size() != 2) return false;
  bool changed = false;
  std::vector<std::vector<bool>> read;
  for (const auto& branch : n.subgraphs) {
    std::vector<bool> used(branch->values.size(), false);
    for (ValueId v : branch->outputs) used[v] = true;
    for (NodeId id : branch->order) {
      for (ValueId v : branch->node(id).inputs) {
        if (v != kNone) used[v] = true;
      }
    }
    read.push_back(std::move(used));
  }
  for (size_t i = n.inputs.size() - 1; i-- > 0;) {
    bool used = false;
    for (size_t b = 0; b < 2; ++b) used = used || read[b][n.subgraphs[b]->inputs[i]];
    if (used) continue;
    n.inputs.erase(n.inputs.begin() + static_cast<int64_t>(i) + 1);
    for (const auto& branch : n.subgraphs) {
      branch->inputs.erase(branch->inputs.begin() + static_cast<int64_t>(i));
    }
    changed = true;
  }
  if (changed && HasAttr(n, "captures"))
    n.attrs["captures"] = static_cast<int64_t>(n.inputs.size()) - 1;
  (void)g;
  return changed;
}

bool Sweep(Graph& g, const SymbolSet& sizes) {
  std::vector<bool> needed(g.values.size(), false);
  for (ValueId v : g.outputs) needed[v] = true;
  std::vector<NodeId> kept;
  bool changed = false;
  for (size_t i = g.order.size(); i-- > 0;) {
    Node& n = g.node(g.order[i]);
    bool live = GivesSize(n, sizes);
    for (ValueId v : n.outputs) live = live || (v != kNone && needed[v]);
    if (!live) {
      n.dead = changed = true;
      continue;
    }
    for (size_t o = static_cast<size_t>(n.op->min_outputs); o < n.outputs.size() && !n.op->control;
         ++o) {
      if (n.outputs[o] == kNone || needed[n.outputs[o]]) continue;
      g.value(n.outputs[o]).producer = kNone;
      n.outputs[o] = kNone;
      changed = true;
    }
    changed |= DropCaptures(g, n);
    for (ValueId v : n.inputs) {
      if (v != kNone) needed[v] = true;
    }
    kept.push_back(g.order[i]);
  }
  std::reverse(kept.begin(), kept.end());
  g.order = std::move(kept);
  return changed;
}

bool Run(Graph& g, const Policy&, const PassServices&) {
  bool changed = false;
  // Outer Ifs first: a branch that goes away need not be looked at.
  changed |= InlineIfs(g);
  const SymbolSet sizes = SizesInUse(g);
  ForEachGraph(g, [&](Graph& sub) {
    if (&sub != &g) changed |= InlineIfs(sub);
    changed |= Sweep(sub, sizes);
  });
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "dead_code", .needs = {}, .gives = {"live"}, .run = Run});

}  // namespace
}  // namespace ge
