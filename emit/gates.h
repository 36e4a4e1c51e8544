// Gates: what emitted code must never contain. For tests; they run a disassembler.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace ge::emit {

// Instructions in the innermost loops of micro-kernels (loops of 8 or more multiply-adds) that move
// a vector register through the stack. Empty = no spills. kUnavailable without objdump.
Result<std::vector<std::string>> FindSpills(const std::string& object_bytes);
// Symbols that the object needs from elsewhere; must be empty.
Result<std::vector<std::string>> UndefinedSymbols(const std::string& object_bytes);

}  // namespace ge::emit
