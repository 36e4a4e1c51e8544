// See spill.h.
//
//   x = ...;  y = f(x);  ...  z = g(x)    ->    x = ...;  y = f(x);  spill x to s;  ...
//                                               fetch x' from s;  z = g(x')
//
// x' is a buffer of its own, so that lifetimes, placement and the validator see nothing new. A
// value that comes from the store and was not written since is dropped without another spill.
#include "plan/spill.h"

#include <algorithm>
#include <map>

#include "om/live.h"
#include "om/size.h"
#include "plan/arena.h"

namespace ge {
namespace {

using om::BufferKind;
using om::Task;
using om::TaskKind;

constexpr int64_t kPage = 4096;  // places in the store do not share pages
constexpr int kMostSteps = 10'000, kMostRounds = 8;

int64_t BytesOf(const om::Plan& plan, size_t buffer) {
  const om::Buffer& b = plan.buffers[buffer];
  return b.bytes < 0 ? 0 : std::max<int64_t>(0, om::EvalSize(plan, b.bytes, {}));
}
int64_t Lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// A value between two of its uses, tasks `from` and `to`.
struct Gap {
  size_t root = 0, from = 0, to = 0;
  int32_t written = -1;  // the buffer to be spilled: the root, or what was written last over it all
  int32_t store = -1;    // where the value lies already
};

class Search {
 public:
  explicit Search(const om::Plan& plan) : plan_(plan) {
    FindLive();
    FindUses();
    for (size_t root = 0; root < plan.buffers.size(); ++root) AddGaps(root);
  }

  // What no spilling gets below: what is in use at one task, or cannot be moved.
  int64_t Floor() const {
    std::vector<int64_t> fixed = live_;
    for (const Gap& gap : gaps_)
      for (size_t t = gap.from + 1; t < gap.to; ++t) fixed[t] -= Lines(BytesOf(plan_, gap.root));
    return fixed.empty() ? 0 : *std::max_element(fixed.begin(), fixed.end());
  }

  // The gap that relieves the tasks above the limit the most for the bytes that it moves.
  const Gap* Best(int64_t limit) const {
    std::vector<size_t> over;
    for (size_t t = 0; t < live_.size(); ++t)
      if (live_[t] > limit) over.push_back(t);
    const Gap* best = nullptr;
    double best_score = 0;
    for (const Gap& gap : gaps_) {
      const int64_t bytes = Lines(BytesOf(plan_, gap.root));
      double relief = 0;
      for (auto t = std::upper_bound(over.begin(), over.end(), gap.from);
           t != over.end() && *t < gap.to; ++t)
        relief += static_cast<double>(std::min(bytes, live_[*t] - limit));
      const double score = relief / (MoveNs(bytes) * (gap.store < 0 ? 2 : 1));
      if (score > best_score) best = &gap, best_score = score;
    }
    return best;
  }

 private:
  size_t Root(int32_t b) const { return static_cast<size_t>(om::RootOf(plan_, b)); }

  void FindLive() {
    live_ = om::ArenaLives(plan_, {}).ByTask();
    live_.resize(plan_.tasks.size(), 0);
  }

  void FindUses() {
    uses_.resize(plan_.buffers.size());
    jumps_.assign(plan_.tasks.size() + 1, 0);
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      const Task& task = plan_.tasks[t];
      for (const auto* list : {&task.args, &task.outs})
        for (int32_t b : *list)
          if (b >= 0 && (uses_[Root(b)].empty() || uses_[Root(b)].back() != t))
            uses_[Root(b)].push_back(t);
      if (task.kind != TaskKind::kJump && task.kind != TaskKind::kJumpUnless) continue;
      jumps_[t] = jumps_[static_cast<size_t>(task.target)] = 1;
    }
    kept_.assign(plan_.buffers.size(), false);
    for (const om::IoTensor& io : plan_.outputs) kept_[Root(io.buffer)] = true;
  }

  void AddGaps(size_t root) {
    const om::Buffer& buffer = plan_.buffers[root];
    if (buffer.kind != BufferKind::kArena || buffer.alias >= 0 || kept_[root]) return;
    if (uses_[root].size() < 2 || BytesOf(plan_, root) == 0) return;
    const auto first = jumps_.begin() + buffer.first, last = jumps_.begin() + buffer.last + 1;
    if (std::find(first, last, 1) != last) return;
    Gap gap{.root = root};
    bool whole = false;
    std::vector<std::pair<int64_t, int64_t>> parts;  // that were written, begin and end
    for (size_t i = 0; i < uses_[root].size(); ++i) {
      gap.to = uses_[root][i];
      if (i > 0 && whole && gap.to > gap.from + 1) gaps_.push_back(gap);
      gap.from = gap.to;
      for (int32_t b : plan_.tasks[gap.to].outs)
        if (b >= 0 && Root(b) == root) Write(b, plan_.tasks[gap.to], parts, whole, gap);
    }
  }

  void Write(int32_t b, const Task& task, std::vector<std::pair<int64_t, int64_t>>& parts,
             bool& whole, Gap& gap) const {
    const om::Buffer& buffer = plan_.buffers[static_cast<size_t>(b)];
    const int64_t begin =
        buffer.alias_offset < 0 ? 0 : om::EvalSize(plan_, buffer.alias_offset, {});
    const int64_t all = BytesOf(plan_, gap.root), bytes = BytesOf(plan_, static_cast<size_t>(b));
    gap.store = task.kind == TaskKind::kFetch ? task.args[0] : -1;
    gap.written = begin == 0 && bytes == all ? b : -1;
    parts.emplace_back(begin, begin + bytes);
    std::sort(parts.begin(), parts.end());
    int64_t reached = 0;
    for (const auto& [from, to] : parts)
      if (from <= reached) reached = std::max(reached, to);
    whole = reached >= all;
  }

  const om::Plan& plan_;
  std::vector<int64_t> live_;              // per task: bytes of the arena
  std::vector<std::vector<size_t>> uses_;  // per root
  std::vector<char> jumps_;  // per task: control comes or goes otherwise than in order
  std::vector<bool> kept_;   // per root: an output of the model lies in it
  std::vector<Gap> gaps_;
};

int32_t NewBuffer(Planned& p, om::Buffer record, int32_t like) {
  const auto index = static_cast<int32_t>(p.plan.buffers.size());
  p.plan.buffers.push_back(std::move(record));
  p.is_value.push_back(false);
  if (const auto view = p.views.find(static_cast<size_t>(like)); view != p.views.end())
    p.views.emplace(static_cast<size_t>(index), view->second);
  return index;
}

// Inserts the tasks of a gap; all that comes after them moves back.
void Apply(Planned& p, Gap gap) {
  om::Plan& plan = p.plan;
  const auto root = static_cast<int32_t>(gap.root);
  const om::Buffer value = plan.buffers[gap.root];
  const bool spill = gap.store < 0;
  const auto after = [&](int32_t t) {
    const auto at = static_cast<size_t>(t);
    return t + (spill && t >= 0 && at > gap.from ? 1 : 0) + (t >= 0 && at >= gap.to ? 1 : 0);
  };
  for (om::Buffer& b : plan.buffers) b.first = after(b.first), b.last = after(b.last);
  for (Task& t : plan.tasks) {
    t.target = after(t.target);
    for (int32_t& w : t.waits) w = after(w);
  }
  const auto spilled_at = static_cast<int32_t>(gap.from) + 1,
             fetched_at = static_cast<int32_t>(gap.to) + (spill ? 1 : 0);
  const int32_t end = plan.buffers[gap.root].last;
  plan.buffers[gap.root].last = spill ? spilled_at : static_cast<int32_t>(gap.from);

  om::Buffer again = value;
  again.name += ".fetched";
  again.offset = -1, again.first = fetched_at, again.last = end;
  const int32_t fetched = NewBuffer(p, again, root);
  std::map<int32_t, int32_t> moved = {{root, fetched}};
  const auto move = [&](int32_t& b) {
    if (b < 0) return;
    const om::Buffer record = plan.buffers[static_cast<size_t>(b)];
    if (b != root && record.alias != root) return;
    if (!moved.contains(b)) {
      om::Buffer alias = record;
      alias.alias = fetched;
      moved[b] = NewBuffer(p, std::move(alias), b);
    }
    b = moved[b];
  };
  for (size_t t = gap.to; t < plan.tasks.size(); ++t) {
    for (int32_t& b : plan.tasks[t].args) move(b);
    for (int32_t& b : plan.tasks[t].outs) move(b);
  }

  const auto task = [&](TaskKind kind, int32_t from, int32_t to) {
    Task t{};
    t.kind = kind;
    t.name = value.name;
    t.args = {from};
    t.outs = {to};
    t.cost = static_cast<int64_t>(MoveNs(BytesOf(plan, gap.root)));
    return t;
  };
  om::Buffer whole = value;  // as parts or several values in turn wrote it
  whole.alias = root;
  whole.first = whole.last = whole.offset = -1;
  if (spill) {
    om::Buffer place = value;
    place.name += ".spilled";
    place.kind = BufferKind::kStore;
    place.first = spilled_at;
    gap.store = NewBuffer(p, std::move(place), -1);
    if (gap.written < 0) gap.written = NewBuffer(p, std::move(whole), root);
  }
  int32_t& last = plan.buffers[static_cast<size_t>(gap.store)].last;
  last = std::max(last, fetched_at);
  plan.tasks.insert(plan.tasks.begin() + static_cast<ptrdiff_t>(gap.to),
                    task(TaskKind::kFetch, gap.store, fetched));
  if (spill)
    plan.tasks.insert(plan.tasks.begin() + spilled_at,
                      task(TaskKind::kSpill, gap.written, gap.store));
}

// Offsets of all buffers of a kind; the height.
ArenaLayout Place(om::Plan& plan, BufferKind kind, int64_t alignment, int64_t work) {
  std::vector<ArenaBuffer> buffers;
  std::vector<size_t> which;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const om::Buffer& record = plan.buffers[b];
    if (record.kind != kind || record.alias >= 0 || record.first < 0) continue;
    buffers.push_back({record.first, record.last, BytesOf(plan, b)});
    which.push_back(b);
  }
  ArenaLayout layout = PlanArena(buffers, alignment, work);
  for (size_t i = 0; i < which.size(); ++i) plan.buffers[which[i]].offset = layout.offsets[i];
  return layout;
}

}  // namespace

void SpillValues(Planned& planned, int64_t limit, const Policy& policy) {
  om::Plan& plan = planned.plan;
  const bool lanes =
      std::any_of(plan.tasks.begin(), plan.tasks.end(), [](const Task& t) { return t.lane >= 0; });
  if (plan.arena_bytes < 0 || lanes || !policy.reuse_memory) return;
  const int64_t floor = Search(plan).Floor();
  int64_t target = std::max(limit, floor);
  int steps = 0;
  // What cannot reach the limit comes down to the least, once.
  const int rounds = floor > limit ? 1 : kMostRounds;
  for (int round = 0; round < rounds && plan.arena_bytes > limit; ++round) {
    const int before = steps;
    for (; steps < kMostSteps; ++steps) {
      const Search search(plan);
      const Gap* gap = search.Best(target);
      if (gap == nullptr) break;
      Apply(planned, *gap);
    }
    if (steps == before) return;
    const ArenaLayout layout = Place(plan, BufferKind::kArena, 64, policy.arena_work);
    plan.arena_bytes = layout.height;
    planned.arena_lower_bound = layout.lower_bound;
    Place(plan, BufferKind::kStore, kPage, 0);
    target -= std::max<int64_t>(64, layout.height - limit);  // what the placement lost
  }
}

}  // namespace ge
