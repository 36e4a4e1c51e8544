// What a kernel costs on a chip, at the hint sizes of its symbols: for chunk sizes and for the
// planner's choice between one worker and many. Never exact; only its order of magnitude is used.
#pragma once

#include "soc/soc.h"
#include "tile/tile.h"

namespace ge {

struct KernelCost {
  double flops = 0;          // arithmetic operations
  double bytes = 0;          // of arguments that are touched, each byte once
  double ns = 0;             // of the whole grid on one worker
  double tiles = 0;          // register tiles of dots
  double on_chip_bytes = 0;  // the most that one of them reads and writes: A, B and C
};

// Multiply-adds that a dot gets done in a cycle, k in groups of so many.
double MacsPerCycle(const SocSpec& soc, int k_group);

KernelCost EstimateCost(const tile::Kernel& kernel, const SocSpec& soc);

}  // namespace ge
