// Memory for time: a wide value between two convolutions is never there as a whole.
#pragma once

#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/lowered.h"
#include "ir/policy.h"
#include "ir/region.h"
#include "plan/planner.h"

namespace ge {

// A picture of a known height of at least two rows: what strips may be of.
bool HasRows(const Value& v);

// Replaces the regions that make and read the largest such value by strips of rows: one that they
// work on at the fullest moment, else one that lies there. False if there is none. Regions, kernels
// and plan must be made anew afterwards. `undo`, if given: brings the graph back to what it was, as
// long as nothing else changes it. The policy's choice for a node (strips=N) is the number of
// strips of what it makes, 1: none.
bool SplitIntoStrips(Graph& g, const RegionMap& regions, const LoweredMap& lowered,
                     const Planned& planned, const Policy& policy,
                     std::function<void()>* undo = nullptr);

// y, which `nodes` make, becomes Concat along the axis of the parts that `make` adds to the graph.
// They stand where the last of the nodes was; the nodes die. Gives what undoes it, as above.
std::function<void()> ReplaceByParts(Graph& g, const std::set<NodeId>& nodes, ValueId y, int axis,
                                     std::string_view suffix,
                                     const std::function<std::vector<ValueId>()>& make);

}  // namespace ge
