// Positions that data give: an index tensor's element as an Expr that may address another operand.
#pragma once

#include "ir/opdef.h"

namespace ge {

// Element idx of `input`; negative ones count from the end of `extent`; kept within it.
Expr LoadPosition(Lowering& l, int input, const Index& idx, Expr extent);
// A computed i64 value as such an index (kept within [0, extent), negative ones are not special).
Expr BindPosition(Lowering& l, tile::Val position, Expr extent);

}  // namespace ge
