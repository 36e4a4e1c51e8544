// The discrete Fourier transform as products of matrices: short ones as one product with the matrix
// of all turns, long ones by factors of their length (Cooley, Tukey), or, where that has a large
// prime factor, as a convolution (Bluestein). For OpDef::expand of DFT and STFT; false where a
// length is known only at run time: then they are computed term by term.
#pragma once

#include "ir/graph.h"

namespace ge {

bool ExpandDft(Graph& g, NodeId n);
bool ExpandStft(Graph& g, NodeId n);

}  // namespace ge
