// Walks over TileIR. Statements nest a few levels deep only, so these recurse over statements;
// value nodes are visited in id order (operands have smaller ids than their users).
#pragma once

#include <functional>
#include <vector>

#include "tile/tile.h"

namespace ge::tile {

// Every statement below `s`, `s` included, in program order.
void ForEachStmt(const Stmt& s, const std::function<void(const Stmt&)>& f);
// The value ids that `s` itself uses (not those of its nested statements): at most one root.
ExprId RootOf(const Stmt& s);
// Every Expr that `s` itself holds, its own bound symbols excluded.
void ForEachExpr(const Stmt& s, const std::function<void(Expr)>& f);
// Symbols that `s` binds (loop, axes, batch, row, col, index variable of a Let or Reduce).
void ForEachBoundSymbol(const Kernel& k, const Stmt& s, const std::function<void(Expr)>& f);
// Marks of the values that are reachable from the kernel's statements.
std::vector<bool> Reachable(const Kernel& k);
int NumOperands(Op op);

}  // namespace ge::tile
