// Walks over TileIR: see walk.h.
#include "tile/walk.h"

namespace ge::tile {

void ForEachStmt(const Stmt& s, const std::function<void(const Stmt&)>& f) {
  f(s);
  for (const Stmt& c : s.body) ForEachStmt(c, f);
  for (const Stmt& c : s.orelse) ForEachStmt(c, f);
}

ExprId RootOf(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kStore:
    case StmtKind::kLet:
    case StmtKind::kIf:
    case StmtKind::kReduce: return s.value;
    default: return -1;
  }
}

void ForEachExpr(const Stmt& s, const std::function<void(Expr)>& f) {
  switch (s.kind) {
    case StmtKind::kLoop: f(s.extent); break;
    case StmtKind::kStore: f(s.index); break;
    case StmtKind::kReduce:
      for (const auto& axis : s.axes) f(axis.second);
      break;
    case StmtKind::kBrGemm: {
      const BrGemm& g = s.gemm;
      for (const auto& batch : g.batch) f(batch.second);
      for (Expr e : {g.n_valid, g.k, g.a, g.a_row, g.a_k, g.b, g.b_k}) f(e);
      break;
    }
    default: break;
  }
}

void ForEachBoundSymbol(const Kernel& k, const Stmt& s, const std::function<void(Expr)>& f) {
  if (s.kind == StmtKind::kLoop) f(s.symbol);
  if (s.kind == StmtKind::kReduce) {
    for (const auto& axis : s.axes) f(axis.first);
  }
  if (s.kind == StmtKind::kBrGemm) {
    for (const auto& batch : s.gemm.batch) f(batch.first);
    f(s.gemm.row);
    f(s.gemm.col);
  }
  if ((s.kind == StmtKind::kLet || s.kind == StmtKind::kReduce) && s.var >= 0 &&
      k.vars[s.var].index.IsSymbol()) {
    f(k.vars[s.var].index);
  }
}

std::vector<bool> Reachable(const Kernel& k) {
  std::vector<bool> live(k.values.size(), false);
  ForEachStmt(k.body, [&](const Stmt& s) {
    if (ExprId root = RootOf(s); root >= 0) live[root] = true;
  });
  for (size_t i = k.values.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (ExprId operand : {k.values[i].a, k.values[i].b, k.values[i].c}) {
      if (operand >= 0) live[operand] = true;
    }
  }
  return live;
}

int NumOperands(Op op) {
  if (op >= Op::kSelect) return 3;
  if (op >= Op::kAdd) return 2;
  return op >= Op::kNeg ? 1 : 0;
}

}  // namespace ge::tile
