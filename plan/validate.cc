// A buffer is alive at a task if some write of it reaches the task and the task reaches some read of it, along the
// jumps. That is wider than the strictest notion (a later full write could end a life), on purpose: kernels may
// write a buffer in parts.

#include "plan/validate.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "fmt/format.h"

namespace ge {
namespace {

using om::BufferKind;
using om::TaskKind;

struct Uses {
  std::vector<int32_t> reads, writes;  // tasks, ascending
};

class Validator {
 public:
  explicit Validator(const om::Plan& plan) : plan_(plan), tasks_(static_cast<int32_t>(plan.tasks.size())) {}

  Status Run() {
    GE_TRY(CheckIndices());
    CollectUses();
    for (const om::Task& t : plan_.tasks) jumps_ |= t.target >= 0;
    if (jumps_) BuildEdges();
    for (int32_t b = 0; b < static_cast<int32_t>(plan_.buffers.size()); ++b) GE_TRY(CheckWrittenFirst(b));
    return CheckOverlap();
  }

 private:
  Status Fault(const std::string& text) const { return Error(Code::kInternal, "plan: " + text); }
  const om::Buffer& buffer(int32_t b) const { return plan_.buffers[b]; }
  int32_t Root(int32_t b) const { return buffer(b).alias >= 0 ? buffer(b).alias : b; }
  bool Planned(int32_t b) const {
    return buffer(b).kind == BufferKind::kArena || buffer(b).kind == BufferKind::kPool;
  }

  Status CheckIndices() const {
    const auto count = static_cast<int32_t>(plan_.buffers.size());
    const auto sizes = static_cast<int32_t>(plan_.sizes.size());
    for (const om::Buffer& b : plan_.buffers) {
      if (b.bytes < 0 || b.bytes >= sizes) return Fault(fmt::format("buffer '{}' has no size", b.name));
      if (b.alias >= count || (b.alias >= 0 && buffer(b.alias).alias >= 0))
        return Fault(fmt::format("buffer '{}' is an alias of no root", b.name));
    }
    for (int32_t i = 0; i < tasks_; ++i) {
      const om::Task& t = plan_.tasks[i];
      for (const auto* list : {&t.args, &t.outs})
        for (int32_t b : *list)
          if (b < -1 || b >= count) return Fault(fmt::format("task {} '{}' names buffer {}", i, t.name, b));
      const bool jump = t.kind == TaskKind::kJump || t.kind == TaskKind::kJumpUnless;
      if (jump != (t.target >= 0) || t.target > tasks_)
        return Fault(fmt::format("task {} '{}' jumps to {}", i, t.name, t.target));
      if (t.kind == TaskKind::kLaunch && (t.kernel < 0 || t.kernel >= static_cast<int32_t>(plan_.kernels.size())))
        return Fault(fmt::format("task {} '{}' has kernel {}", i, t.name, t.kernel));
    }
    return {};
  }

  // A Launch reads all its arguments but those that it writes; `outs` names the written ones.
  void CollectUses() {
    uses_.resize(plan_.buffers.size());
    for (int32_t i = 0; i < tasks_; ++i) {
      const om::Task& t = plan_.tasks[i];
      for (int32_t b : t.args)
        if (b >= 0 && (t.kind != TaskKind::kLaunch || std::find(t.outs.begin(), t.outs.end(), b) == t.outs.end()))
          Push(uses_[Root(b)].reads, i);
      for (int32_t b : t.outs)
        if (b >= 0) Push(uses_[Root(b)].writes, i);
    }
  }
  static void Push(std::vector<int32_t>& list, int32_t task) {
    if (list.empty() || list.back() != task) list.push_back(task);
  }

  template <class F>
  void Next(int32_t task, F f) const {
    const om::Task& t = plan_.tasks[task];
    if (t.target >= 0 && t.target < tasks_) f(t.target);
    if (t.kind != TaskKind::kJump && task + 1 < tasks_) f(task + 1);
  }
  void BuildEdges() {
    before_.resize(tasks_);
    for (int32_t i = 0; i < tasks_; ++i) Next(i, [&](int32_t to) { before_[to].push_back(i); });
  }

  // No path from the beginning reads it before a write.
  Status CheckWrittenFirst(int32_t b) const {
    const Uses& u = uses_[b];
    if (!Planned(b) || buffer(b).alias >= 0 || u.reads.empty()) return {};
    const auto fault = [&](int32_t t) {
      return Fault(fmt::format("task {} '{}' reads buffer '{}' before anything writes it", t, plan_.tasks[t].name, buffer(b).name));
    };
    if (!jumps_) {
      if (u.writes.empty() || u.reads[0] <= u.writes[0]) return fault(u.reads[0]);
      return {};
    }
    std::vector<bool> seen(tasks_, false);
    std::vector<int32_t> rest = {0};
    while (!rest.empty()) {
      const int32_t t = rest.back();
      rest.pop_back();
      if (seen[t]) continue;
      seen[t] = true;
      if (std::binary_search(u.reads.begin(), u.reads.end(), t)) return fault(t);
      if (std::binary_search(u.writes.begin(), u.writes.end(), t)) continue;
      Next(t, [&](int32_t to) { rest.push_back(to); });
    }
    return {};
  }

  // Tasks at which a buffer is alive, as ranges.
  std::vector<std::pair<int32_t, int32_t>> Life(const Uses& u) const {
    std::vector<int32_t> touch(u.reads);
    touch.insert(touch.end(), u.writes.begin(), u.writes.end());
    if (touch.empty()) return {};
    if (!jumps_) {
      const auto [lo, hi] = std::minmax_element(touch.begin(), touch.end());
      return {{*lo, *hi}};
    }
    std::vector<bool> from_write(tasks_, false), to_read(tasks_, false);
    Reach(u.writes, from_write, [&](int32_t t, auto f) { Next(t, f); });
    Reach(u.reads, to_read, [&](int32_t t, auto f) {
      for (int32_t p : before_[t]) f(p);
    });
    for (int32_t t : touch) from_write[t] = to_read[t] = true;
    std::vector<std::pair<int32_t, int32_t>> ranges;
    for (int32_t t = 0; t < tasks_; ++t) {
      if (!from_write[t] || !to_read[t]) continue;
      if (!ranges.empty() && ranges.back().second == t - 1)
        ranges.back().second = t;
      else
        ranges.emplace_back(t, t);
    }
    return ranges;
  }
  template <class Step>
  void Reach(const std::vector<int32_t>& starts, std::vector<bool>& seen, Step step) const {
    std::vector<int32_t> rest(starts);
    while (!rest.empty()) {
      const int32_t t = rest.back();
      rest.pop_back();
      if (seen[t]) continue;
      seen[t] = true;
      step(t, [&](int32_t to) { rest.push_back(to); });
    }
  }

  int64_t ConstantBytes(int32_t b) const {
    const om::SizeExpr& e = plan_.sizes[buffer(b).bytes];
    const om::SizeCode& code = plan_.size_code[e.begin];
    return e.end - e.begin == 1 && code.op == om::SizeOp::kConst ? code.value : -1;
  }

  // Sweep over the tasks with the live buffers ordered by offset: a newcomer may touch neither neighbour.
  Status CheckOverlap() const {
    struct Event {
      int32_t task;
      bool start;
      int32_t buffer;
    };
    std::vector<Event> events;
    for (int32_t b = 0; b < static_cast<int32_t>(plan_.buffers.size()); ++b) {
      const om::Buffer& record = buffer(b);
      if (!Planned(b) || record.alias >= 0) continue;
      for (const auto& [lo, hi] : Life(uses_[b])) {
        if (record.first > lo || record.last < hi)
          return Fault(fmt::format("buffer '{}' is alive at tasks {}..{} but planned for {}..{}", record.name, lo, hi, record.first, record.last));
        if (record.kind != BufferKind::kArena || record.offset < 0) continue;
        const int64_t bytes = ConstantBytes(b);
        if (bytes < 0 || record.offset + bytes > plan_.arena_bytes)
          return Fault(fmt::format("buffer '{}' at {} does not lie in the arena of {} bytes", record.name, record.offset, plan_.arena_bytes));
        if (bytes == 0) continue;
        events.push_back({lo, true, b});
        events.push_back({hi + 1, false, b});
      }
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return std::tie(a.task, a.start, a.buffer) < std::tie(b.task, b.start, b.buffer); });
    std::map<int64_t, int32_t> alive;
    for (const Event& e : events) {
      const int64_t at = buffer(e.buffer).offset;
      if (!e.start) {
        alive.erase(at);
        continue;
      }
      const auto after = alive.lower_bound(at);
      const bool hits_next = after != alive.end() && after->first < at + ConstantBytes(e.buffer);
      const bool hits_previous = after != alive.begin() && std::prev(after)->first + ConstantBytes(std::prev(after)->second) > at;
      if (hits_next || hits_previous)
        return Fault(fmt::format("buffers '{}' and '{}' share bytes while both are alive at task {}", buffer(e.buffer).name,
                                 buffer(hits_next ? after->second : std::prev(after)->second).name, e.task));
      alive.emplace(at, e.buffer);
    }
    return {};
  }

  const om::Plan& plan_;
  const int32_t tasks_;
  bool jumps_ = false;
  std::vector<Uses> uses_;
  std::vector<std::vector<int32_t>> before_;
};

}  // namespace

Status ValidatePlan(const om::Plan& plan) { return Validator(plan).Run(); }

}  // namespace ge
