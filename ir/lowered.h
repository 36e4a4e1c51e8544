// Lowered: what a region becomes: kernels, temporaries between them, packed constants. Made by
// lower/, read by plan/ and driver/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/policy.h"
#include "ir/region.h"
#include "tile/tile.h"

namespace ge {

// A constant in another memory order (packed weights, Winograd's U). A recipe: evaluated last, one
// at a time, straight into the output file.
struct Pack {
  ValueId source = kNone;
  std::string key;  // says what `fill` does; same source and key = same bytes
  int64_t bytes = 0;
  std::function<void(const Constant& source, std::byte* out)> fill;
};

struct KernelArg {
  enum class Kind : uint8_t { kValue, kTemp, kPack } kind = Kind::kValue;
  int32_t id = -1;  // ValueId, or index into Lowered::temps / packs
};

struct LoweredKernel {
  tile::Kernel kernel;
  std::vector<KernelArg> args;  // one per kernel argument
  Expr grid = 1;
  double flops = 0, bytes = 0;  // estimates, at hint sizes
  double cost_ns = 0;
  double tiles = 0, on_chip_bytes = 0;  // register tiles of dots; what one of them touches
  int32_t over = -1;     // argument over which the only written one may lie: each chunk copies what
                         // it needs of it before it writes, and no two chunks touch the same bytes
  std::string schedule;  // for people: "brgemm 14x2 k=576 ..."
  // A kernel with a register tile: the problem that it solves, and what was chosen. Else empty.
  std::string problem;
  DotChoice chosen;
  std::vector<DotChoice> others;  // that fit the chip too, the best by the cost model first
};

struct Temp {  // lives from its first kernel to its last
  Expr bytes = 0;
};

struct Lowered {
  std::vector<LoweredKernel> kernels;
  std::vector<Temp> temps;
  std::vector<Pack> packs;
  std::vector<std::string> faults, notes;  // choices for this node, for its problem, that cannot be
};

// One per region of each graph, in the same order.
using LoweredMap = std::map<const Graph*, std::vector<Lowered>>;

}  // namespace ge
