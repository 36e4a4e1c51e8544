// An independent check of a finished Plan: shares no code with the planner. Recomputes which
// buffers are alive at each task by following the jumps, and proves that no two that are alive
// together share bytes unless they are aliases, that every read has a write before it on every
// path, and that sizes, indices and targets are in range; then the order of accesses (the second
// function, which the first calls).
#pragma once

#include "base/status.h"
#include "om/plan.h"

namespace ge {
Status ValidatePlan(const om::Plan& plan);
Status ValidateOrder(const om::Plan& plan);
}  // namespace ge
