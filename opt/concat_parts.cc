// concat_parts: a concatenation that holds all parts of one Split, in order, holds what was split.
//
//   %a, %b = Split(%x)  %y = Concat(%a, %c(%b), ..)          no change: parts are missing
//   %a, %b = Split(%x)  %y = Concat(%a, %b, %z)        ->    %y = Concat(%x, %z)
//
// The planner can then let %x be a part of %y's memory (plan/alias.cc), whatever halo the readers
// of %b want around it.
#include <algorithm>

#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

int64_t AxisOf(const Graph& g, const Node& n) {
  const int64_t axis = AttrOr<int64_t>(n, "axis", 0);
  return axis < 0 ? axis + g.value(n.inputs[0]).type.rank() : axis;
}

// How many inputs from i on are all outputs of one Split along the same axis; else 0.
size_t PartsAt(const Graph& g, const Node& n, size_t i) {
  const NodeId producer = g.value(n.inputs[i]).producer;
  if (producer == kNone || !IsPlain(g.node(producer), "Split")) return 0;
  const Node& split = g.node(producer);
  const size_t count = split.outputs.size();
  const bool all =
      count <= n.inputs.size() - i && std::equal(split.outputs.begin(), split.outputs.end(),
                                                 n.inputs.begin() + static_cast<ptrdiff_t>(i));
  return all && AxisOf(g, split) == AxisOf(g, n) ? count : 0;
}

bool Run(Graph& g, const Policy& policy, const PassServices& services) {
  bool changed = false;
  for (NodeId id : g.order) {
    for (const auto& sub : g.node(id).subgraphs) changed |= Run(*sub, policy, services);
    Node& n = g.node(id);
    if (!IsPlain(n, "Concat")) continue;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const size_t parts = PartsAt(g, n, i);
      if (parts == 0) continue;
      const auto at = n.inputs.begin() + static_cast<ptrdiff_t>(i);
      *at = g.node(g.value(*at).producer).inputs[0];
      n.inputs.erase(at + 1, at + static_cast<ptrdiff_t>(parts));
      changed = true;
    }
  }
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "concat_parts", .needs = {}, .gives = {}, .run = Run});

}  // namespace
}  // namespace ge
