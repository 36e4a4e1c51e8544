// The questions that layout choice asks of a node. See layouts.cc for the rules.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace ge {

// A convolution (also a transposed one) that reads and writes NC1HWC0: f32 or (one group, constant
// zero point) bytes, rank 4, constant weights, one group or depthwise, constant pads.
struct BlockedConv {
  bool depthwise = false;
  bool cuts = false;  // reads an input without a halo as well: its windows are cut at the edges
  int64_t channels_in = 0, channels_out = 0;
  std::vector<int64_t> pad_lo, pad_hi;  // of H and W
  bool bytes = false;                   // ConvInteger
  int64_t fill = 0;                     // what pads count as: the zero point
};
bool AsBlockedConv(const Graph& g, const Node& n, BlockedConv* conv);

}  // namespace ge
