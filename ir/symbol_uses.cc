// Which data-dependent sizes are used.
#include "ir/symbol_uses.h"

#include <algorithm>

namespace ge {
namespace {

bool HasFresh(const Graph& g) {
  for (NodeId id : g.order) {
    if (!g.node(id).fresh.empty()) return true;
    for (const auto& sub : g.node(id).subgraphs)
      if (HasFresh(*sub)) return true;
  }
  return false;
}

void AddUses(const Value& v, const Node& producer, SymbolSet& out) {
  std::vector<Expr> symbols;
  for (const Expr& d : v.type.dims) CollectSymbols(d, symbols);
  if (v.elems)
    for (const Expr& e : *v.elems) CollectSymbols(e, symbols);
  for (const Expr& s : symbols)
    if (std::find(producer.fresh.begin(), producer.fresh.end(), s) == producer.fresh.end())
      out.insert(s.node());
}

void AddGraph(const Graph& g, SymbolSet& out) {
  for (NodeId id : g.order) {
    const Node& n = g.node(id);
    for (ValueId v : n.outputs)
      if (v != kNone) AddUses(g.value(v), n, out);
    for (const auto& sub : n.subgraphs) AddGraph(*sub, out);
  }
}

}  // namespace

SymbolSet SizesInUse(const Graph& root) {
  SymbolSet used;
  if (HasFresh(root)) AddGraph(root, used);
  return used;
}

bool GivesSize(const Node& n, const SymbolSet& in_use) {
  return std::any_of(n.fresh.begin(), n.fresh.end(),
                     [&](Expr s) { return in_use.contains(s.node()); });
}

}  // namespace ge
