// Memory for traffic: values that lie idle while the arena is too full go to backing store (a file
// on a CPU, the host's memory on a modelled chip) and come back before they are read.
#pragma once

#include <cstdint>

#include "ir/policy.h"
#include "plan/planner.h"

namespace ge {

// Predicted time of one task that moves so many bytes to the backing store or back. Assumed: a
// gigabyte a second, as solid-state disks write when their caches are full, and two system calls.
inline constexpr double MoveNs(int64_t bytes) { return 5000 + static_cast<double>(bytes); }

// Adds tasks `spill` and `fetch` to a plan whose sizes are known and that has no lanes, until its
// arena is within `limit` or as small as spilling makes it. A value qualifies between two uses in a
// stretch without jumps; outputs of the model do not. The dearest to keep go first: the least bytes
// to move for each byte and task by which the arena is too full.
void SpillValues(Planned& planned, int64_t limit, const Policy& policy);

}  // namespace ge
