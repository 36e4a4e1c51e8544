// See lanes.h. A task takes its estimate on one worker.
#include "om/lanes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "om/size.h"

namespace ge::om {

size_t LanesEnd(const Plan& plan, size_t first) {
  size_t end = first;
  while (end < plan.tasks.size() && plan.tasks[end].lane >= 0) ++end;
  return end;
}

int64_t SharedNs(const Task& task, int64_t grid, int workers) {
  if (task.cost < kWorthSharing || grid == 0 || grid == 1) return task.cost;
  const int64_t parts = grid < 0 ? workers : std::min<int64_t>(grid, workers);
  return task.cost / parts + kSharingNs;
}

int64_t KnownGrid(const Plan& plan, const Task& task) {
  if (task.grid < 0) return -1;
  for (const SizeCode& c : CodeOf(plan, task.grid)) {
    if (c.op == SizeOp::kSymbol) return -1;
  }
  return std::max<int64_t>(-1, EvalSize(plan, task.grid, {}));
}

int64_t LanesNs(const Plan& plan, size_t first, size_t end, int workers) {
  std::array<int64_t, kMostLanes> lane_free{};
  std::vector<int64_t> worker_free(static_cast<size_t>(std::max(workers, 1)), 0);
  std::vector<int64_t> over(end - first, 0);
  int64_t last = 0;
  for (size_t t = first; t < end; ++t) {
    const Task& task = plan.tasks[t];
    int64_t& lane = lane_free[static_cast<size_t>(task.lane)];
    int64_t start = lane;
    for (const int32_t w : task.waits) {
      if (w >= static_cast<int32_t>(first))
        start = std::max(start, over[static_cast<size_t>(w) - first] + kEventNs);
    }
    int64_t& worker = *std::min_element(worker_free.begin(), worker_free.end());
    start = std::max(start, worker);
    over[t - first] = worker = lane = start + task.cost;
    last = std::max(last, lane);
  }
  return last + kSharingNs;
}

}  // namespace ge::om
