// The one value of a constant whose elements are all equal, so that it can stand in the kernel's
// text.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace ge {

struct Scalar {
  bool is_integer = false;
  double f = 0;
  int64_t i = 0;  // integers and bool; u64 by its bits
};

// Nullopt for an empty constant, a mixed one, one of many elements, or a type that kernels load by
// tables (8-bit floats and sub-byte types).
std::optional<Scalar> SplatOf(const Constant& constant);

}  // namespace ge
