// See lanes.h. Tasks are taken in the order of the list; each goes to the lane where it ends first.
//
// Waits are few: a task does not wait for what the task before it in its lane, or another of its
// waits, has waited for already (each task knows the last finished task of every lane).
#include "plan/lanes.h"

#include <algorithm>
#include <array>

#include "om/lanes.h"
#include "om/live.h"
#include "om/size.h"

namespace ge {
namespace {

using om::Plan;
using om::Task;
using om::TaskKind;
using Clock =
    std::array<int32_t, om::kMostLanes>;  // last task of each lane that is over; -1 = none

using Wanted = std::unordered_map<int32_t, int32_t>;  // kernel -> lane

constexpr size_t kLongest = 2048;  // tasks that are looked at together

struct Access {
  int32_t task;
  int64_t begin, end;  // bytes of the root; all of it if sizes are symbolic
  bool writes;
};

// What each task of [first, end) must come after, among them: earlier ones that touch its bytes.
class Order {
 public:
  Order(const Plan& plan, size_t first, size_t end) : plan_(plan), first_(first) {
    before_.resize(end - first);
    for (size_t t = first; t < end; ++t) {
      const Task& task = plan.tasks[t];
      for (int32_t b : task.args) {
        if (b < 0) continue;
        const bool writes = std::find(task.outs.begin(), task.outs.end(), b) != task.outs.end();
        if (!writes) Touch(t, b, false);
      }
      for (int32_t b : task.outs) {
        if (b >= 0) Touch(t, b, true);
      }
    }
    for (auto& list : before_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }
  // Positions from `first` on.
  const std::vector<int32_t>& Before(size_t t) const { return before_[t]; }

 private:
  int64_t Known(om::SizeRef size) const {
    for (const om::SizeCode& c : om::CodeOf(plan_, size)) {
      if (c.op == om::SizeOp::kSymbol) return om::kNoSize;
    }
    return om::EvalSize(plan_, size, {});
  }

  void Touch(size_t t, int32_t buffer, bool writes) {
    const om::Buffer& b = plan_.buffers[static_cast<size_t>(buffer)];
    const auto root = static_cast<size_t>(om::RootOf(plan_, buffer));
    if (plan_.buffers[root].kind == om::BufferKind::kConst) return;
    const int64_t offset = b.alias_offset < 0 ? 0 : Known(b.alias_offset);
    const int64_t bytes = b.bytes < 0 ? om::kNoSize : Known(b.bytes);  // slots have no bytes
    const bool known = offset != om::kNoSize && bytes != om::kNoSize;
    Access now{static_cast<int32_t>(t - first_), known ? offset : 0,
               known ? offset + bytes : INT64_MAX, writes};
    if (root >= seen_.size()) seen_.resize(root + 1);
    std::vector<Access>& list = seen_[root];
    for (const Access& a : list) {
      const bool meet = a.begin < now.end && now.begin < a.end;
      if (meet && (a.writes || writes) && a.task != now.task)
        before_[static_cast<size_t>(now.task)].push_back(a.task);
    }
    if (writes) {  // who comes after this one comes after what it covers
      std::erase_if(list,
                    [&](const Access& a) { return a.begin >= now.begin && a.end <= now.end; });
    }
    list.push_back(now);
  }

  const Plan& plan_;
  size_t first_;
  std::vector<std::vector<int32_t>> before_;
  std::vector<std::vector<Access>> seen_;
};

// Positions that are ordered with all others: what lies between two of them is a fork and its join.
std::vector<bool> Cuts(const Order& order, size_t count) {
  const size_t words = (count + 63) / 64;
  std::vector<std::vector<uint64_t>> earlier(count, std::vector<uint64_t>(words, 0));
  std::vector<size_t> ancestors(count, 0), descendants(count, 0);
  for (size_t t = 0; t < count; ++t) {
    for (int32_t u : order.Before(t)) {
      for (size_t w = 0; w < words; ++w) earlier[t][w] |= earlier[static_cast<size_t>(u)][w];
      earlier[t][static_cast<size_t>(u) / 64] |= uint64_t{1} << (u % 64);
    }
    for (size_t w = 0; w < words; ++w) {
      for (uint64_t rest = earlier[t][w]; rest; rest &= rest - 1) {
        ++descendants[64 * w + static_cast<size_t>(__builtin_ctzll(rest))];
        ++ancestors[t];
      }
    }
  }
  std::vector<bool> cut(count);
  for (size_t t = 0; t < count; ++t) cut[t] = ancestors[t] == t && descendants[t] == count - 1 - t;
  return cut;
}

// Lanes for the tasks at positions [begin, end) of an order that starts at task `first`.
void ChooseLanes(Plan& plan, const Order& order, size_t first, size_t begin, size_t end, int lanes,
                 const Wanted& wanted) {
  std::vector<int64_t> free(static_cast<size_t>(lanes), 0), over(end - begin, 0);
  std::vector<Clock> clocks(end - begin);
  std::vector<int32_t> last(static_cast<size_t>(lanes), -1);
  int chosen = 0;  // lanes that users named: others go elsewhere if they can start as early
  for (const auto& [kernel, lane] : wanted) chosen = std::max(chosen, lane + 1);
  for (size_t p = begin; p < end; ++p) {
    Task& task = plan.tasks[first + p];
    int32_t best = 0;
    int64_t best_start = INT64_MAX;
    const auto choice = wanted.find(task.kernel);
    for (int32_t k = 0; k < lanes; ++k) {
      const int32_t lane = (k + chosen) % lanes;
      if (choice != wanted.end() && lane != choice->second) continue;
      int64_t start = free[static_cast<size_t>(lane)];
      for (int32_t u : order.Before(p)) {
        if (u < static_cast<int32_t>(begin)) continue;
        const bool same = plan.tasks[first + static_cast<size_t>(u)].lane == lane;
        start = std::max(start, over[static_cast<size_t>(u) - begin] + (same ? 0 : om::kEventNs));
      }
      if (start < best_start) best = lane, best_start = start;
    }
    task.lane = best;
    task.waits.clear();
    Clock& clock = clocks[p - begin];
    clock.fill(-1);
    const auto merge = [&](int32_t u) {
      const Clock& other = clocks[static_cast<size_t>(u) - begin];
      for (size_t l = 0; l < clock.size(); ++l) clock[l] = std::max(clock[l], other[l]);
      auto& own = clock[static_cast<size_t>(plan.tasks[first + static_cast<size_t>(u)].lane)];
      own = std::max(own, u);
    };
    if (const int32_t u = last[static_cast<size_t>(best)]; u >= 0) merge(u);
    const std::vector<int32_t>& before = order.Before(p);
    for (size_t k = before.size(); k-- > 0;) {  // the latest first: it may cover the others
      const int32_t u = before[k];
      if (u < static_cast<int32_t>(begin)) break;
      const int32_t lane = plan.tasks[first + static_cast<size_t>(u)].lane;
      if (clock[static_cast<size_t>(lane)] >= u) continue;
      task.waits.push_back(static_cast<int32_t>(first) + u);
      merge(u);
    }
    std::sort(task.waits.begin(), task.waits.end());
    last[static_cast<size_t>(best)] = static_cast<int32_t>(p);
    free[static_cast<size_t>(best)] = over[p - begin] = best_start + task.cost;
  }
}

void AssignStretch(Plan& plan, const Policy& policy, const Wanted& wanted, size_t first,
                   size_t end) {
  const size_t count = end - first;
  int lanes = policy.max_streams;
  for (const auto& [kernel, lane] : wanted) lanes = std::max(lanes, lane + 1);
  lanes = std::min<int>(lanes, om::kMostLanes);
  const Order order(plan, first, end);
  const std::vector<bool> cut = Cuts(order, count);
  for (size_t begin = 0; begin < count;) {
    if (cut[begin]) {
      ++begin;
      continue;
    }
    size_t stop = begin;
    int64_t shared = 0;
    bool chosen = false;
    for (; stop < count && !cut[stop]; ++stop) {
      const Task& task = plan.tasks[first + stop];
      shared += om::SharedNs(task, om::KnownGrid(plan, task), lanes);
      chosen |= wanted.contains(task.kernel);
    }
    ChooseLanes(plan, order, first, begin, stop, lanes, wanted);
    const int64_t apart = om::LanesNs(plan, first + begin, first + stop, lanes);
    if (!chosen && static_cast<double>(apart) * policy.stream_gain > static_cast<double>(shared)) {
      for (size_t p = begin; p < stop; ++p) {
        plan.tasks[first + p].lane = -1;
        plan.tasks[first + p].waits.clear();
      }
    }
    begin = stop;
  }
}

}  // namespace

void AssignLanes(Plan& plan, const Policy& policy, const Wanted& wanted) {
  if (policy.max_streams < 2) return;
  std::vector<bool> is_target(plan.tasks.size() + 1, false);
  for (const Task& t : plan.tasks) {
    if (t.target >= 0) is_target[static_cast<size_t>(t.target)] = true;
  }
  for (size_t first = 0; first < plan.tasks.size();) {
    size_t end = first;
    while (end < plan.tasks.size() && end - first < kLongest &&
           plan.tasks[end].kind == TaskKind::kLaunch && (end == first || !is_target[end]))
      ++end;
    if (end - first > 2) AssignStretch(plan, policy, wanted, first, end);
    // Two sections that touch would be one: their order is that of no lane.
    if (end > first && end < plan.tasks.size()) {
      plan.tasks[end - 1].lane = -1;
      plan.tasks[end - 1].waits.clear();
    }
    first = std::max(end, first + 1);
  }
}

std::vector<std::vector<int32_t>> TaskOrder(const Plan& plan) {
  const auto count = static_cast<int32_t>(plan.tasks.size());
  const Order order(plan, 0, plan.tasks.size());
  std::vector<std::vector<int32_t>> before;
  int32_t barrier = -1;
  for (int32_t t = 0; t < count; ++t) {
    std::vector<int32_t>& list = before.emplace_back();
    if (barrier >= 0) list.push_back(barrier);
    if (plan.tasks[static_cast<size_t>(t)].kind == TaskKind::kLaunch) {
      for (int32_t u : order.Before(static_cast<size_t>(t)))
        if (u > barrier) list.push_back(u);
      continue;
    }
    for (int32_t u = barrier + 1; u < t; ++u) list.push_back(u);
    barrier = t;
  }
  return before;
}

std::vector<std::pair<int32_t, int32_t>> ConcurrentTasks(const Plan& plan) {
  const auto count = static_cast<int32_t>(plan.tasks.size());
  std::vector<std::pair<int32_t, int32_t>> range;
  for (int32_t t = 0; t < count; ++t) range.emplace_back(t, t);
  for (int32_t first = 0; first < count; ++first) {
    const auto end = static_cast<int32_t>(om::LanesEnd(plan, static_cast<size_t>(first)));
    std::vector<Clock> clocks(static_cast<size_t>(end - first));
    Clock last;
    last.fill(-1);
    for (int32_t t = first; t < end; ++t) {
      const Task& task = plan.tasks[static_cast<size_t>(t)];
      Clock& clock = clocks[static_cast<size_t>(t - first)];
      clock.fill(-1);
      const auto merge = [&](int32_t u) {
        if (u < first) return;
        const Clock& other = clocks[static_cast<size_t>(u - first)];
        for (size_t l = 0; l < clock.size(); ++l) clock[l] = std::max(clock[l], other[l]);
        auto& own = clock[static_cast<size_t>(plan.tasks[static_cast<size_t>(u)].lane)];
        own = std::max(own, u);
      };
      merge(last[static_cast<size_t>(task.lane)]);
      for (int32_t u : task.waits) merge(u);
      last[static_cast<size_t>(task.lane)] = t;
      for (int32_t u = first; u < t; ++u) {
        if (clock[static_cast<size_t>(plan.tasks[static_cast<size_t>(u)].lane)] >= u) continue;
        range[static_cast<size_t>(t)].first = std::min(range[static_cast<size_t>(t)].first, u);
        range[static_cast<size_t>(u)].second = std::max(range[static_cast<size_t>(u)].second, t);
      }
    }
    first = std::max(first, end - 1);
  }
  return range;
}

}  // namespace ge
