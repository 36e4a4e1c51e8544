// The cube engine: regions around a matrix product or a convolution, as loops around tile::BrGemm.
//
// The anchor's operands are read where they lie if their addresses are linear in row and depth;
// else a kernel before copies them to a temporary. Constant operands are packed at compile time.
#pragma once

#include "ir/lowered.h"
#include "ir/policy.h"
#include "soc/soc.h"

namespace ge {

bool CubeSupports(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy);
// Only for a region that CubeSupports.
Lowered LowerCube(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy);

}  // namespace ge
