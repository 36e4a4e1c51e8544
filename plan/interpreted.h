// Kernels that are TileIR text, for rt::LoadOptions::text_kernel: parsed, verified, interpreted.
#pragma once

#include <string>

#include "rt/runtime.h"

namespace ge {
Result<rt::LoadOptions::TextKernel> InterpretedKernel(const std::string& tile_ir);
}  // namespace ge
