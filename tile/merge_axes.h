// Axes of a Reduce that walk memory as one are made one.
#pragma once

#include <functional>

#include "tile/tile.h"

namespace ge::tile {

// `fresh`: a new symbol below an extent.
void MergeAxes(Kernel& k, Stmt& reduce, const std::function<Expr(Expr extent)>& fresh);

}  // namespace ge::tile
