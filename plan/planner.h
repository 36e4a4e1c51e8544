// Planner: regions and their kernels to the flat Plan: tasks in order, control flow as jumps,
// symbols and their Binds, lifetimes, aliases, arena offsets.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/lowered.h"
#include "ir/policy.h"
#include "ir/region.h"
#include "om/plan.h"
#include "type/layout.h"

namespace ge {

// One constant of the weights section: raw bytes of the source, or a packed form of it.
struct WeightSource {
  const Graph* graph = nullptr;
  ValueId value = kNone;
  const Pack* pack = nullptr;     // null: raw. Points into the LoweredMap
  int64_t offset = 0, bytes = 0;  // in the weights section, 64-byte aligned
};

struct Planned {
  om::Plan plan;  // Kernel records are per LoweredKernel; driver fills hash and text
  std::vector<const LoweredKernel*> kernels;                 // in the order of plan.kernels
  std::vector<std::unique_ptr<LoweredKernel>> native_loops;  // those of them that planning made
  std::vector<WeightSource> weights;
  std::vector<bool> is_value;    // per buffer; false: a temporary or a packed constant
  std::map<size_t, View> views;  // of buffers whose elements are not one after the other
  std::vector<int64_t> typical;  // per symbol of the plan: a value to weigh choices with
  int64_t weight_bytes = 0;
  int64_t arena_lower_bound = -1;  // the largest sum of sizes alive at one task, if all are static
  int64_t arena_unaliased = -1;    // the same if no two values shared bytes
  // The same if each value of the graph had bytes of its own: nothing fused, nothing in place, no
  // parts and no views. Of the root graph alone.
  int64_t arena_values = -1;
};

Result<Planned> BuildPlan(const Graph& root, const RegionMap& regions, const LoweredMap& lowered,
                          const Policy& policy);

}  // namespace ge
