// A node's attributes as the text that host kernels read (rt/host_kernel.h).
#pragma once

#include <string>

#include "ir/graph.h"

namespace ge {
std::string EncodeHostAttrs(const Node& n);
}  // namespace ge
