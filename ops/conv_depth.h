// Convolutions of volumes as convolutions of pictures.
#pragma once

#include "ir/graph.h"

namespace ge {

// Of a Conv of rank 5: the slices of a window's depth are channels beside each other, the slices of
// the output are images.
bool ExpandConvOfVolumes(Graph& g, NodeId n);
// The same of a ConvTranspose, with zeros between the slices of the input.
bool ExpandConvTransposeOfVolumes(Graph& g, NodeId n);

}  // namespace ge
