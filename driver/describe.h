// What people may want to know of a compiled model later (ge report): kept as members of the .om's
// description. The runtime never reads it; AscendCL's dumps do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/lowered.h"
#include "ir/region.h"
#include "plan/planner.h"

namespace ge {

// "regions": [{name, engine, op, nodes, origins}] of the root graph and its subgraphs (op: of the
// node that the others are fused into; origins: nodes of the source that it stands for under other
// names); "tasks": one record for each task of the plan, {} or {region, schedule, flops, bytes};
// "storage": [{buffer, order: [[axis, tile]], halo: [[axis, lo, hi]]}] of buffers that are not
// plain (type/layout.h); "temporaries": buffers that are no value of the graph; "rewrites": lines
// of the passes, the first kMostRewrites. Called before the plan's kernels are renumbered.
nlohmann::json Describe(const RegionMap& regions, const LoweredMap& lowered, const Planned& planned,
                        const std::vector<std::string>& rewrites);
inline constexpr size_t kMostRewrites = 1000;

}  // namespace ge
