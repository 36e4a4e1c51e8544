// Rows of 7 or 14 elements fill no vector, a whole image does.
#include "tile/merge_axes.h"

#include <algorithm>
#include <unordered_map>

namespace ge::tile {

namespace {

using Axis = std::pair<Expr, Expr>;  // symbol, extent

class Merge {
 public:
  Merge(Kernel& k, const Stmt& s, const Axis& outer, const Axis& inner)
      : k_(k), outer_(outer), inner_(inner) {
    for (const Stmt& let : s.body) lets_.emplace(let.var, let.value);
  }

  // Does every load of the value go on from row to row of the two axes, or stand still?
  bool Fits(ExprId id) {
    if (id < 0 || !seen_.emplace(id, true).second) return true;
    const ValueNode n = k_.values[id];
    if (n.op == Op::kIndex && Uses(n.index)) return false;
    if (n.op == Op::kLoad && Uses(n.index)) {
      const std::optional<Linear> a = AsLinear(n.index, outer_.first);
      if (!a || DependsOn(a->coefficient, inner_.first)) return false;
      const std::optional<Linear> b = AsLinear(a->rest, inner_.first);
      if (!b || DependsOn(b->coefficient, outer_.first)) return false;
      if (!ProvablyEq(a->coefficient, b->coefficient * inner_.second)) return false;
    }
    if (n.op == Op::kVar && lets_.contains(n.var) && !Fits(lets_.at(n.var))) return false;
    return Fits(n.a) && Fits(n.b) && Fits(n.c);
  }

  // The same value of the one axis `symbol`.
  ExprId Along(Expr symbol, ExprId id) {
    if (id < 0) return id;
    if (auto it = made_.find(id); it != made_.end()) return it->second;
    ValueNode n = k_.values[id];
    n.a = Along(symbol, n.a), n.b = Along(symbol, n.b), n.c = Along(symbol, n.c);
    if (n.op == Op::kLoad && Uses(n.index))
      n.index = Substitute(n.index, [&](Expr e) -> std::optional<Expr> {
        if (e == outer_.first) return Expr(0);
        if (e == inner_.first) return symbol;
        return std::nullopt;
      });
    const ExprId made = k_.Add(n);
    made_.emplace(id, made);
    return made;
  }

 private:
  bool Uses(Expr e) const { return DependsOn(e, outer_.first) || DependsOn(e, inner_.first); }

  Kernel& k_;
  const Axis outer_, inner_;
  std::unordered_map<VarId, ExprId> lets_;
  std::unordered_map<ExprId, bool> seen_;
  std::unordered_map<ExprId, ExprId> made_;
};

}  // namespace

void MergeAxes(Kernel& k, Stmt& s, const std::function<Expr(Expr extent)>& fresh) {
  const bool plain = std::all_of(s.body.begin(), s.body.end(), [&](const Stmt& let) {
    return let.kind == StmtKind::kLet && !k.vars[let.var].index.IsSymbol();
  });
  if (!plain) return;
  while (s.axes.size() > 1) {
    const Axis outer = s.axes[s.axes.size() - 2], inner = s.axes.back();
    Merge merge(k, s, outer, inner);
    if (DependsOn(inner.second, outer.first) || !merge.Fits(s.value)) return;
    for (const Stmt& let : s.body)
      if (!merge.Fits(let.value)) return;
    const Expr extent = outer.second * inner.second;
    const Expr symbol = fresh(extent);
    for (Stmt& let : s.body) let.value = merge.Along(symbol, let.value);
    s.value = merge.Along(symbol, s.value);
    s.axes.pop_back();
    s.axes.back() = {symbol, extent};
  }
}

}  // namespace ge::tile
