// Splice: the statements of one kernel as a block of another, one grid point after the other. What
// was an argument becomes a place in a buffer of the whole; values are not shared between the
// parts, because a part may store what the next one loads.
#pragma once

#include <utility>
#include <vector>

#include "tile/tile.h"

namespace ge::tile {

// `args`: for each argument of `from`, in order, a buffer of `into` and an offset in elements. Both
// kernels' Exprs are of one arena. Locals, variables and values of `from` are added to `into`; the
// block is returned, for the caller to put where it belongs.
Stmt Splice(Kernel& into, const Kernel& from, const std::vector<std::pair<int32_t, Expr>>& args);

}  // namespace ge::tile
