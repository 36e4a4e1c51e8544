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
  bool vector_store = true;     // false: stores share bytes (sub-byte outputs), so nothing is split
};

struct LoopReport {
  std::string schedule;   // for people
  double iterations = 0;  // innermost ones, at hint sizes
};

// Runs body(idx) for every index of `extents`; the last axis is the vector loop if `vector`.
void NestLoops(tile::Builder& b, const std::vector<Expr>& extents, bool vector,
               const LoopPolicy& policy, const std::function<void(const Index&)>& body,
               LoopReport* report);

}  // namespace ge
