// Placement of arena buffers at run time, for the sizes of one shape.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ge::rt {

struct Placed {
  int32_t first, last;  // lifetime, inclusive
  int64_t bytes;
  int64_t offset = -1;  // result; given if >= 0
};
// Greedy by size, lowest gap first; a few other orders where that misses the lower bound. Returns
// the arena's height.
int64_t PlaceArena(std::vector<Placed>* buffers);

}  // namespace ge::rt
