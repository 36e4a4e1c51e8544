// Lower: one region to a sequence of TileIR kernels.
//
// The general path evaluates element functions at each output index, inlining fused producers and
// consumers, over loops in the physical order of the output (pad lanes get zero, halos their fill).
// The cube engine (lower/cube_*.cc) writes dots and convolutions around BrGemm instead.
#pragma once

#include "ir/lowered.h"
#include "ir/policy.h"
#include "soc/soc.h"

namespace ge {

Lowered LowerRegion(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy);

}  // namespace ge
