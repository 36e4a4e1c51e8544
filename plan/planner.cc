// See planner.h: the walk makes tasks and buffers; lifetimes and offsets follow from them.

#include "plan/planner.h"

#include "plan/lifetimes.h"
#include "plan/walk.h"

namespace ge {

Result<Planned> BuildPlan(const Graph& root, const RegionMap& regions, const LoweredMap& lowered,
                          const Policy& policy) {
  Planned planned;
  PlanWalk walk(regions, lowered, policy, planned);
  GE_TRY(walk.Run(root));
  ComputeLifetimes(planned.plan);
  PlaceArena(planned.plan);
  return planned;
}

}  // namespace ge
