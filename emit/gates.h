// Gates: what emitted code must never contain. For tests; they run a disassembler.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace ge::emit {

// The innermost loops of micro-kernels: those of 8 or more multiply-adds (f32, pairs of bf16,
// groups of bytes; x86-64 and aarch64), or with a product of tiles.
struct MicroKernels {
  int loops = 0;
  std::vector<std::string> spills;  // instructions in them that move a vector through the stack
};
Result<MicroKernels> FindSpills(const std::string& object_bytes);  // kUnavailable without objdump
// Instructions of a matrix unit, as the text has them.
struct TileUse {
  int products = 0, shapes = 0, releases = 0, loads = 0, stores = 0;
};
Result<TileUse> FindTileUse(const std::string& object_bytes);
// Symbols that the object needs from elsewhere; must be empty.
Result<std::vector<std::string>> UndefinedSymbols(const std::string& object_bytes);

}  // namespace ge::emit
