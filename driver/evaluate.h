// Values of nodes whose inputs are constants: what constant folding and tests call.
#pragma once

#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "soc/soc.h"

namespace ge {

// The outputs of one node (its inputs must be constants and its output types static); empty if it
// cannot be evaluated (control flow, data-dependent sizes, an error of a host kernel). Small work
// runs in the interpreter, large work in generated code from the same TileIR when a compiler is
// there.
std::vector<Constant> EvaluateConstant(const Graph& g, const Node& n);

}  // namespace ge
