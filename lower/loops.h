// Loops: how a space of independent iterations becomes one parallel loop of chunks with loops
// inside.
//
// Invariant: the split depends on extents and cost only, never on the number of workers. Index
// arithmetic by division happens once per chunk, never per iteration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/opdef.h"
#include "tile/builder.h"

namespace ge {

struct LoopPolicy {
  double ns_per_iteration = 0;  // of one innermost iteration; 0 = unknown: one chunk
  bool parallel = true;         // may open the kernel's parallel loop
  // Position, among the axes of more than one element, of one along which something is loaded side
  // by side that the last axis loads at a distance. It becomes the last but one, and chunks keep
  // squares of it and the last axis together, which are turned in registers. -1: none.
  int crossed = -1;
  bool vector_store = true;  // false: stores share bytes (sub-byte outputs), so nothing is split
};

struct LoopReport {
  std::string schedule;   // for people
  double iterations = 0;  // innermost ones, at hint sizes
};

// Runs body(idx) for every index of `extents`; the last axis is the vector loop if `vector`.
void NestLoops(tile::Builder& b, const std::vector<Expr>& extents, bool vector,
               const LoopPolicy& policy, const std::function<void(const Index&)>& body,
               LoopReport* report);

// Which axis of the one loop nest that `trial` consists of is crossed; -1 if none is.
int CrossedAxis(const tile::Kernel& trial);

}  // namespace ge
