// Lanes: consecutive launches that may run at once (Task::lane), and what they are predicted to
// take. Planner and runtime decide by the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "om/plan.h"

namespace ge::om {

inline constexpr int32_t kMostLanes = 16;

// The end of the section of lanes that begins at task `first`; `first` itself if it has no lane.
size_t LanesEnd(const Plan& plan, size_t first);

// Below this many nanoseconds the other workers would not have started before the task is over.
inline constexpr int64_t kWorthSharing = 3000;
inline constexpr int64_t kSharingNs = 1500;  // to start and to gather the other workers
inline constexpr int64_t kEventNs = 200;     // until another worker sees that a task is over

// Nanoseconds of one task that all workers share. grid < 0: not known.
int64_t SharedNs(const Task& task, int64_t grid, int workers);
// The number of chunks of a launch if it does not depend on symbols, else -1.
int64_t KnownGrid(const Plan& plan, const Task& task);
// Nanoseconds of a section on so many workers, each task on one of them.
int64_t LanesNs(const Plan& plan, size_t first, size_t end, int workers);

}  // namespace ge::om
