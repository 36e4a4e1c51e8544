// What must be computed: a value is needed if some task reads its memory or it leaves the graph.
// Values that are only known element by element (shapes) need no task. Nodes that bind symbols
// always run.
#include "base/check.h"
#include "ir/opdef.h"
#include "plan/plan_builder.h"

namespace ge {

std::vector<bool>& PlanBuilder::NeedsOf(const Graph& g) {
  std::vector<bool>& needs = needs_[&g];
  if (needs.size() < g.values.size()) needs.resize(g.values.size(), false);
  return needs;
}

bool PlanBuilder::NeedsValue(const Graph& g, ValueId v) const {
  const auto it = needs_.find(&g);
  return v != kNone && it != needs_.end() && it->second[v];
}

void PlanBuilder::MarkNeeded(const Graph& g, ValueId v) {
  if (v != kNone) NeedsOf(g)[v] = true;
}

// Fills binders_: host and control nodes that give sizes which nothing before them gave.
bool PlanBuilder::FindBinders(const Graph& g) {
  bool any = false;
  const auto see = [&](Expr e) {
    std::vector<Expr> symbols;
    CollectSymbols(e, symbols);
    bool fresh = false;
    for (Expr s : symbols) fresh |= seen_symbols_.insert(s.node()).second;
    return fresh;
  };
  for (ValueId v : g.inputs) {
    for (Expr d : g.value(v).type.dims) see(d);
  }
  for (const Region& r : regions_.at(&g)) {
    if (r.engine != Engine::kHost && r.engine != Engine::kControl) continue;
    const Node& n = g.node(r.nodes[0]);
    bool binds = false;
    for (const auto& sub : n.subgraphs) {
      if (regions_.contains(sub.get())) binds |= FindBinders(*sub);
    }
    for (ValueId v : n.outputs) {
      if (v == kNone || g.value(v).kind != ValueKind::kTensor) continue;
      for (Expr d : g.value(v).type.dims) binds |= see(d);
      if (!g.value(v).elems) continue;
      for (Expr e : *g.value(v).elems) binds |= see(e);
    }
    if (binds) binders_.insert(&n);
    any |= binds;
  }
  return any;
}

void PlanBuilder::Need(const Graph& g, const std::vector<bool>& wanted) {
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    if (i < wanted.size() && wanted[i]) MarkNeeded(g, g.outputs[i]);
  }
  NeedsOf(g);
  const std::vector<Region>& regions = regions_.at(&g);
  for (size_t i = regions.size(); i-- > 0;) NeedRegion(g, i);
}

void PlanBuilder::NeedRegion(const Graph& g, size_t index) {
  const Region& r = regions_.at(&g)[index];
  if (r.engine == Engine::kControl || r.engine == Engine::kHost) {
    const Node& n = g.node(r.nodes[0]);
    bool needed = binders_.contains(&n);
    for (ValueId v : n.outputs) needed |= NeedsValue(g, v);
    if (!needed) return;
    if (r.engine == Engine::kControl) return NeedControl(g, n);
    for (ValueId v : n.inputs) MarkNeeded(g, v);
    return;
  }
  bool needed = false, known = true;
  for (ValueId v : r.outputs) {
    if (!NeedsValue(g, v)) continue;
    needed = true;
    known &= g.value(v).elems && IsPlain(g.value(v));
  }
  if (!needed || known) return;  // known elements are written where they are needed
  const Node& n = g.node(r.nodes[0]);
  if (r.nodes.size() == 1 && IsReshape(n)) return MarkNeeded(g, n.inputs[0]);
  for (const LoweredKernel& k : lowered_.at(&g)[index].kernels) {
    for (const KernelArg& a : k.args) {
      if (a.kind == KernelArg::Kind::kValue) MarkNeeded(g, a.id);
    }
  }
}

void PlanBuilder::NeedControl(const Graph& g, const Node& n) {
  if (n.op->name != "If") return NeedLoop(g, n);
  const auto& condition = g.value(n.inputs[0]).elems;
  const bool fixed = condition && condition->size() == 1 && (*condition)[0].IsConst();
  if (!fixed) MarkNeeded(g, n.inputs[0]);
  std::vector<bool> wanted;
  for (ValueId v : n.outputs) wanted.push_back(NeedsValue(g, v));
  for (int k = 0; k < 2; ++k) {
    if (fixed && k == ((*condition)[0].IsConst(0) ? 0 : 1)) continue;
    const Graph& sub = *n.subgraphs[k];
    Need(sub, wanted);
    for (size_t i = 0; i < sub.inputs.size(); ++i) {
      if (NeedsValue(sub, sub.inputs[i])) MarkNeeded(g, n.inputs[i + 1]);
    }
  }
}

// Carried values feed themselves: all of them are kept. Scan outputs only if something reads them.
void PlanBuilder::NeedLoop(const Graph& g, const Node& n) {
  const Graph& sub = *n.subgraphs[0];
  const bool is_loop = n.op->name == "Loop";
  const size_t captures = static_cast<size_t>(AttrOr<int64_t>(n, "captures", 0));
  const size_t scanned =
      is_loop ? 0 : static_cast<size_t>(AttrOr<int64_t>(n, "num_scan_inputs", 0));
  const size_t carried = n.inputs.size() - captures - scanned - (is_loop ? 2 : 0);
  const size_t first = is_loop ? 1 : 0;  // of the carried values among the body's outputs
  std::vector<bool> wanted(sub.outputs.size(), true);
  for (size_t o = carried; o < n.outputs.size(); ++o)
    wanted[o + first] = NeedsValue(g, n.outputs[o]);
  for (size_t o = n.outputs.size() + first; o < wanted.size(); ++o) wanted[o] = false;
  if (is_loop) {
    const auto& more = sub.value(sub.outputs[0]).elems;
    wanted[0] = !(more && more->size() == 1 && (*more)[0].IsConst());
  }
  Need(sub, wanted);
  for (size_t i = 0; i < sub.inputs.size() && i < n.inputs.size(); ++i) {
    const bool control = is_loop && i < 2;  // M and cond: read by the loop's own tasks
    const bool is_carried = !control && i < (is_loop ? 2 : 0) + carried;
    if (control || is_carried || NeedsValue(sub, sub.inputs[i])) MarkNeeded(g, n.inputs[i]);
  }
}

}  // namespace ge
