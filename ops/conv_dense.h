// Transposed convolutions with gaps in their weights as ones without.
#pragma once

#include "ir/graph.h"

namespace ge {

// Of a ConvTranspose of rank 3 or 4 with constant weights and groups or dilations.
bool ExpandConvTransposeWithGaps(Graph& g, NodeId n);

}  // namespace ge
