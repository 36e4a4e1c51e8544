// Memory for time: values that lie idle while the arena is fullest are computed again where they
// are read next.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "ir/lowered.h"
#include "ir/region.h"
#include "plan/planner.h"

namespace ge {

// The task at which most bytes of the arena are alive.
size_t FullestTask(const om::Plan& plan);

// Copies the nodes of one region of the root graph to just before its late readers: that which
// costs least for each byte that it frees at the fullest moment. False if no region frees anything
// there; cheap: none that takes less time than to spill its result and to fetch it. Regions,
// kernels and plan must be made anew afterwards. `undo`: as in strips.h.
bool RecomputeOne(Graph& g, const RegionMap& regions, const LoweredMap& lowered,
                  const Planned& planned, bool cheap, std::function<void()>* undo = nullptr);

}  // namespace ge
