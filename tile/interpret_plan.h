// Decisions of the interpreter's compiler: which loops become lanes, what a Reduce computes once
// for many steps. Private to tile/interpret*.cc.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "tile/interpret_steps.h"
#include "tile/tile.h"

namespace ge::tile::interpret {

bool ContainsVector(const std::vector<Stmt>& body);
bool ContainsReduce(const std::vector<Stmt>& body);
// Whether `body` may run for many values of the symbols `lanes` at once: the extents of the loops
// inside must be the same for all, and no locals or BrGemms are inside.
bool Laneable(const Kernel& k, const std::vector<Stmt>& body, const std::vector<Expr>& lanes);
// The axis of a Reduce that becomes lanes: the innermost, unless it is short and another much
// longer.
size_t LaneAxis(const Stmt& reduce);

// A nest of short loops that can run as one: lane l stands for the indices that `index` writes in
// l.
struct FlatNest {
  const Stmt* innermost = nullptr;
  Expr lane, extent;
  std::vector<std::pair<Expr, Expr>> index;  // (symbol of a loop, its value)
};
// The nest that begins at `s`, if it has more than one loop, and stores do not meet loads inside.
std::optional<FlatNest> Flatten(const Kernel& k, const Stmt& s);

// Reorders the serial axes of a Reduce, and moves what does not depend on the last one to its
// prefix. `rows` and `slots` change in every step (they are bound by its lets).
void Hoist(ReduceStep& step, const std::unordered_set<int>& rows,
           const std::unordered_set<int>& slots);

}  // namespace ge::tile::interpret
