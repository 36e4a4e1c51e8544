// Selects inside an Expr, for code that is written once for each side of their conditions.
#pragma once

#include <vector>

#include "expr/expr.h"

namespace ge {

// The conditions of all Selects in e, inner ones first.
std::vector<Expr> ConditionsIn(Expr e);
// e with every Select on `condition` decided.
Expr Decide(Expr e, Expr condition, bool holds);

}  // namespace ge
