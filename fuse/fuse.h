// Fuse: which nodes become one region, and in which memory order each value lies.
#pragma once

#include "ir/policy.h"
#include "ir/region.h"
#include "soc/soc.h"

namespace ge {

// Chooses layouts and halos of values (blocked for convolution chains, ND elsewhere and at graph
// inputs and outputs); inserts conversions where a consumer insists. No-op at opt_level 0.
void AssignLayouts(Graph& g, const SocSpec& soc, const Policy& policy);
// At opt_level 0: one node, one region. Else growth over pointwise and view producers and
// consumers.
RegionMap FormRegions(const Graph& g, const SocSpec& soc, const Policy& policy);

}  // namespace ge
