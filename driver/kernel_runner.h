// Runs lowered kernels at compile time on static data: for constant folding and for tests.
#pragma once

#include <functional>

#include "base/status.h"
#include "ir/lowered.h"

namespace ge {

// address(value): where an input or output value of the region lies. All sizes must be constant.
// Kernels of more than about a million operations run as generated code if a compiler is found.
Status RunKernels(const Graph& g, const Lowered& lowered,
                  const std::function<void*(ValueId)>& address);

}  // namespace ge
