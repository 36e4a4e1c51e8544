// Exact search for an arena of at most a given height. Units and lifetimes: see plan/arena.h.
//
// The work that a search may do is a count of what it looks at, so that results do not depend on
// the machine's speed. About 150 million are a second.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/arena.h"

namespace ge {

// Lowers `layout` (a sound one, from a heuristic) as far as `work` allows: first straight to the
// lower bound, then by halving what lies between. Every buffer must have bytes > 0. Offsets stay
// multiples of `alignment`.
void LowerArena(const std::vector<ArenaBuffer>& buffers, int64_t alignment, int64_t work,
                ArenaLayout& layout);

}  // namespace ge
