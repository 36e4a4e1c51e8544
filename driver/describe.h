// What people may want to know of a compiled model later (ge report): kept as members of the .om's
// description. The runtime never reads it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/lowered.h"
#include "ir/region.h"
#include "plan/planner.h"

namespace ge {

// "regions": [{name, engine, nodes}] of the root graph and its subgraphs; "tasks": one record for
// each task of the plan, {} or {region, schedule, flops, bytes}; "rewrites": lines of the passes,
// the first kMostRewrites. Called before the plan's kernels are renumbered.
nlohmann::json Describe(const RegionMap& regions, const LoweredMap& lowered, const Planned& planned,
                        const std::vector<std::string>& rewrites);
inline constexpr size_t kMostRewrites = 1000;

}  // namespace ge
