// Which dots of dequantised operands become integer dots (opt/rules/quantised.cc), asked also by
// constant folding, which must not turn their weights into floats first.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ge {

// Why this Conv, MatMul or Gemm of dequantised operands stays one of floats; "" if it can become an
// integer dot.
std::string QuantisedDotFault(const Graph& g, const Node& n);

}  // namespace ge
