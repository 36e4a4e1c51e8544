// Lifetimes and offsets of a plan's arena buffers.
#pragma once

#include "om/plan.h"

namespace ge {

// Fills Buffer::first and last of every kArena and kPool buffer: from the first to the last task that touches it
// or an alias of it, extended over the backward jumps that it lives across. Aliases get their root's.
void ComputeLifetimes(om::Plan& plan);
// Offsets of all kArena buffers if their sizes are constants; arena_bytes is then the height, else -1.
void PlaceArena(om::Plan& plan);

}  // namespace ge
