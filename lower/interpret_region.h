// Runs the kernels of a lowered region through the interpreter: for tests, and where no compiler
// is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/lowered.h"

namespace ge {

struct RegionMemory {
  std::function<void*(ValueId)> value;                 // storage of a value's buffer
  std::function<std::optional<int64_t>(Expr)> symbol;  // of size symbols
};

// Temporaries and packs are made here. `parts`: how many pieces each grid is cut into.
void InterpretLowered(const Graph& g, const Lowered& lowered, const RegionMemory& memory,
                      int parts = 1);

}  // namespace ge
