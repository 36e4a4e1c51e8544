// Which loops become lanes, and what a Reduce computes once: see interpret_plan.h.
#include "tile/interpret_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tile/walk.h"

namespace ge::tile::interpret {
namespace {

// Loops shorter than this are joined with the one around them.
constexpr int64_t kEnoughLanes = 64;

bool Contains(const std::vector<Stmt>& body, const std::function<bool(const Stmt&)>& is) {
  bool found = false;
  for (const Stmt& s : body) {
    ForEachStmt(s, [&](const Stmt& c) { found = found || is(c); });
  }
  return found;
}

// Whether the statements of `body`, each done for all iterations before the next one, do the same:
// nothing is loaded that is stored, and each buffer is stored by one statement only.
bool StoresStandAlone(const Kernel& k, const std::vector<Stmt>& body) {
  std::map<int, int> stores;
  std::vector<bool> live(k.values.size(), false);
  for (const Stmt& top : body) {
    ForEachStmt(top, [&](const Stmt& s) {
      if (s.kind == StmtKind::kStore) ++stores[s.buffer];
      if (ExprId root = RootOf(s); root >= 0) live[root] = true;
    });
  }
  for (size_t i = k.values.size(); i-- > 0;) {
    const ValueNode& n = k.values[i];
    if (!live[i]) continue;
    if (n.op == Op::kLoad && stores.count(n.buffer)) return false;
    for (ExprId operand : {n.a, n.b, n.c}) {
      if (operand >= 0) live[operand] = true;
    }
  }
  for (auto [buffer, count] : stores) {
    if (count > 1) return false;
  }
  return true;
}

using Mask = uint32_t;  // a bit per serial axis
constexpr Mask kAlways = ~Mask{0};

// On which axes an instruction depends.
class Dependence {
 public:
  Dependence(const ReduceStep& step, const std::unordered_set<int>& rows,
             const std::unordered_set<int>& slots) {
    for (int r : rows) rows_[r] = kAlways;
    for (int s : slots) slots_[s] = kAlways;
    for (size_t a = 0; a < step.axes.size(); ++a) slots_[step.axes[a].slot] = Mask{1} << a;
  }
  Mask Of(const Instr& i) {
    Mask m = Of(i.access.base) | Of(i.access.stride);
    for (int row : {i.a, i.b, i.c, i.access.index_row, i.access.bounds_row}) {
      if (auto it = rows_.find(row); it != rows_.end()) m |= it->second;
    }
    rows_[i.dst] = m;
    return m;
  }

 private:
  Mask Of(const ExprCode& e) const {
    Mask m = 0;
    auto add = [&](int slot) {
      if (auto it = slots_.find(slot); it != slots_.end()) m |= it->second;
    };
    for (const auto& t : e.terms) add(t.slot);
    for (const auto& op : e.post) {
      if (op.kind == ExprKind::kSymbol) add(static_cast<int>(op.value));
    }
    return m;
  }
  std::unordered_map<int, Mask> rows_, slots_;
};

// How many steps the axis is worth: short ones save little.
int64_t Weight(const ExprCode& extent) {
  const bool constant = extent.terms.empty() && extent.post.empty();
  return constant ? std::min<int64_t>(extent.constant, 64) : 16;
}

}  // namespace

bool ContainsVector(const std::vector<Stmt>& body) {
  return Contains(
      body, [](const Stmt& s) { return s.kind == StmtKind::kLoop && s.loop == LoopKind::kVector; });
}

bool ContainsReduce(const std::vector<Stmt>& body) {
  return Contains(body, [](const Stmt& s) { return s.kind == StmtKind::kReduce; });
}

bool Laneable(const Kernel& k, const std::vector<Stmt>& body, const std::vector<Expr>& lanes) {
  std::vector<Expr> varying = lanes;
  bool ok = true;
  auto uniform = [&](Expr e) {
    for (Expr v : varying) ok = ok && !DependsOn(e, v);
  };
  for (const Stmt& top : body) {
    ForEachStmt(top, [&](const Stmt& s) {
      if (s.kind == StmtKind::kAlloc || s.kind == StmtKind::kBrGemm) ok = false;
      if (s.kind == StmtKind::kLoop) uniform(s.extent);
      if (s.kind == StmtKind::kReduce) {
        for (const auto& axis : s.axes) uniform(axis.second);
      }
      if ((s.kind == StmtKind::kLet || s.kind == StmtKind::kReduce) &&
          k.vars[s.var].index.IsSymbol()) {
        varying.push_back(k.vars[s.var].index);
      }
    });
  }
  return ok;
}

size_t LaneAxis(const Stmt& reduce) {
  size_t best = reduce.axes.size() - 1;
  auto size = [&](size_t i) {
    Expr e = reduce.axes[i].second;
    return e.IsConst() ? e.value() : int64_t{64};
  };
  for (size_t i = reduce.axes.size(); i-- > 0;) {
    if (size(best) < 16 && size(i) >= 4 * size(best)) best = i;
  }
  return best;
}

std::optional<FlatNest> Flatten(const Kernel& k, const Stmt& s) {
  std::vector<const Stmt*> loops;
  std::vector<Expr> symbols;
  for (const Stmt* l = &s;; l = &l->body[0]) {
    for (Expr outer : symbols) {
      if (DependsOn(l->extent, outer)) return {};
    }
    loops.push_back(l);
    symbols.push_back(l->symbol);
    const bool nested = l->body.size() == 1 && l->body[0].kind == StmtKind::kLoop;
    if (!nested) break;
  }
  if (loops.size() < 2 || loops.back()->loop != LoopKind::kVector) return {};
  int64_t inner = 1;  // iterations below s
  for (size_t i = 1; i < loops.size(); ++i) {
    if (!loops[i]->extent.IsConst()) return {};
    inner *= loops[i]->extent.value();
  }
  const std::vector<Stmt>& body = loops.back()->body;
  if (inner <= 0 || inner >= kEnoughLanes || ContainsVector(body)) return {};
  if (!Laneable(k, body, symbols) || !StoresStandAlone(k, body)) return {};
  FlatNest nest;
  nest.innermost = loops.back();
  nest.extent = s.extent * inner;
  SymbolFacts facts;
  facts.extent = nest.extent;
  const int64_t hi = Bounds(nest.extent).hi;
  if (hi != INT64_MAX) facts.hi = std::max<int64_t>(hi - 1, 0);
  nest.lane = s.symbol.node()->arena->Fresh("lane", facts);
  Expr rest = nest.lane;
  for (size_t i = loops.size(); i-- > 0;) {
    const Expr extent = loops[i]->extent;
    nest.index.push_back({loops[i]->symbol, i > 0 ? Mod(rest, extent) : rest});
    if (i > 0) rest = FloorDiv(rest, extent);
  }
  return nest;
}

void Hoist(ReduceStep& step, const std::unordered_set<int>& rows,
           const std::unordered_set<int>& slots) {
  if (step.by_lanes || step.axes.empty()) return;
  Dependence dependence(step, rows, slots);
  std::vector<Mask> masks;
  for (const Instr& i : step.code) masks.push_back(dependence.Of(i));
  masks.back() = kAlways;  // the accumulation
  size_t best = step.axes.size() - 1;
  int64_t most = -1;
  for (size_t a = step.axes.size(); a-- > 0;) {
    int64_t saved = 0;
    for (Mask m : masks) saved += !(m >> a & 1);
    saved *= Weight(step.axes[a].extent);
    if (saved > most) {
      most = saved;
      best = a;
    }
  }
  Code prefix, code;
  for (size_t i = 0; i < masks.size(); ++i) {
    (masks[i] >> best & 1 ? code : prefix).push_back(std::move(step.code[i]));
  }
  step.prefix = std::move(prefix);
  step.code = std::move(code);
  std::rotate(step.axes.begin() + static_cast<int64_t>(best),
              step.axes.begin() + static_cast<int64_t>(best) + 1, step.axes.end());
}

}  // namespace ge::tile::interpret
