// A buffer that is written before a loop and read in it lives to the loop's end; one that is written in a loop and
// read after it lives from the loop's beginning (an iteration must not lose what an earlier one wrote). Both
// branches of an If lie in the list one after the other, so intervals over the list cover them.

#include "plan/lifetimes.h"

#include <algorithm>
#include <vector>

#include "plan/arena.h"

namespace ge {
namespace {

bool IsPlanned(const om::Buffer& b) {
  return b.kind == om::BufferKind::kArena || b.kind == om::BufferKind::kPool;
}

}  // namespace

void ComputeLifetimes(om::Plan& plan) {
  auto root = [&](int32_t b) { return plan.buffers[b].alias >= 0 ? plan.buffers[b].alias : b; };
  auto touch = [&](int32_t b, int32_t task) {
    if (b < 0) return;
    om::Buffer& buffer = plan.buffers[root(b)];
    if (!IsPlanned(buffer)) return;
    if (buffer.first < 0) buffer.first = task;
    buffer.last = task;
  };
  struct Loop {
    int32_t head, end;
  };
  std::vector<Loop> loops;
  for (int32_t t = 0; t < static_cast<int32_t>(plan.tasks.size()); ++t) {
    const om::Task& task = plan.tasks[t];
    for (int32_t b : task.args) touch(b, t);
    for (int32_t b : task.outs) touch(b, t);
    if (task.target >= 0 && task.target <= t) loops.push_back({task.target, t});
  }
  // Inner loops end before outer ones, so one pass in order of their ends is enough.
  for (const Loop& loop : loops)
    for (om::Buffer& b : plan.buffers) {
      if (b.first < 0 || b.alias >= 0) continue;
      if (b.first < loop.head && b.last >= loop.head && b.last < loop.end) b.last = loop.end;
      if (b.first >= loop.head && b.first <= loop.end && b.last > loop.end) b.first = loop.head;
    }
  for (om::Buffer& b : plan.buffers)
    if (b.alias >= 0 && IsPlanned(b)) {
      b.first = plan.buffers[b.alias].first;
      b.last = plan.buffers[b.alias].last;
    }
}

void PlaceArena(om::Plan& plan) {
  std::vector<ArenaBuffer> problem;
  std::vector<size_t> which;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const om::Buffer& b = plan.buffers[i];
    if (b.kind != om::BufferKind::kArena || b.alias >= 0 || b.first < 0) continue;
    const om::SizeExpr& e = plan.sizes[b.bytes];
    const om::SizeCode& code = plan.size_code[e.begin];
    if (e.end - e.begin != 1 || code.op != om::SizeOp::kConst) {
      plan.arena_bytes = -1;
      return;
    }
    problem.push_back({b.first, b.last, code.value});
    which.push_back(i);
  }
  const ArenaLayout layout = PlanArena(problem);
  for (size_t k = 0; k < which.size(); ++k) plan.buffers[which[k]].offset = layout.offsets[k];
  for (om::Buffer& b : plan.buffers)
    if (b.kind == om::BufferKind::kArena && b.alias >= 0) b.offset = plan.buffers[b.alias].offset;
  plan.arena_bytes = layout.height;
}

}  // namespace ge
