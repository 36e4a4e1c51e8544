// Parts of a concatenation along an axis that lies in blocks: which of them blocks cut.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace ge {

// Per input of a Concat: does it begin, or end before the whole does, within a block of the whole's
// layout? Such a part cannot lie in the whole as it is.
std::vector<bool> CutParts(const Graph& g, const Node& concat);
// Elements along the axis that lie in a row in the whole and in every part, from the start of each
// part on; 1 if sizes are not known.
int64_t LanesOfParts(const Graph& g, const Node& concat);

}  // namespace ge
