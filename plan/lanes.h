// Lanes of a plan: which launches may run at once, and what each must wait for.
//
// Sections lie between tasks that all others of their stretch are ordered with (fork and join), and
// never across jumps, binds or host tasks. Lanes are used where the prediction (om/lanes.h) gains.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/policy.h"
#include "om/plan.h"

namespace ge {

// Sets lane and waits of the tasks. Aliases must be final; memory offsets are not looked at: they
// follow from ConcurrentTasks. `wanted`: the lane that a user chose for a kernel's tasks; where
// there is such a choice, the section has lanes whatever the prediction says.
void AssignLanes(om::Plan& plan, const Policy& policy,
                 const std::unordered_map<int32_t, int32_t>& wanted = {});
// Per task: the earlier tasks that it must come after because they share bytes, or because one of
// them is no launch.
std::vector<std::vector<int32_t>> TaskOrder(const om::Plan& plan);
// Per task: the earliest and the latest task that may run at the same time as it.
std::vector<std::pair<int32_t, int32_t>> ConcurrentTasks(const om::Plan& plan);

}  // namespace ge
