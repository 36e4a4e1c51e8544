// See simulate.h. Jumps are not followed: each task runs once, in an order that its data allows;
// tasks that steer (jumps, binds) and host tasks are ordered with all others.
#include "plan/simulate.h"

#include <algorithm>
#include <list>
#include <queue>
#include <unordered_map>

#include "abi/dtype.h"
#include "om/lanes.h"
#include "om/size.h"
#include "plan/lanes.h"

namespace ge {
namespace {

// The buffers that the on-chip memory holds, the last used first.
class OnChip {
 public:
  explicit OnChip(double capacity) : capacity_(capacity) {}
  // Uses a buffer; true if it was there.
  bool Use(int32_t buffer, double bytes) {
    const auto it = at_.find(buffer);
    const bool hit = it != at_.end() && it->second->second >= bytes;
    if (it != at_.end()) {
      held_ -= it->second->second;
      order_.erase(it->second);
      at_.erase(it);
    }
    if (bytes > capacity_) return false;
    order_.emplace_front(buffer, bytes);
    at_[buffer] = order_.begin();
    held_ += bytes;
    while (held_ > capacity_) {
      held_ -= order_.back().second;
      at_.erase(order_.back().first);
      order_.pop_back();
    }
    return hit;
  }

 private:
  double capacity_, held_ = 0;
  std::list<std::pair<int32_t, double>> order_;
  std::unordered_map<int32_t, std::list<std::pair<int32_t, double>>::iterator> at_;
};

class Simulator {
 public:
  Simulator(const om::Plan& plan, std::span<const TaskWork> work, const ChipModel& chip,
            std::span<const int64_t> symbols, int streams)
      : plan_(plan),
        work_(work),
        chip_(chip),
        symbols_(symbols),
        most_streams_(std::max(streams, 1)),
        on_chip_(static_cast<double>(chip.on_chip_bytes)) {
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      const auto type = static_cast<DType>(plan.buffers[b].dtype);
      if (IsIntermediate(static_cast<int32_t>(b)))
        floats_ &= type != DType::kI8 && type != DType::kU8 && type != DType::kI32;
    }
  }

  Simulation Run() {
    Weigh();
    FindOrder();
    Schedule();
    out_.hit_rate = all_reads_ > 0 ? hits_ / all_reads_ : 0;
    out_.value_hit_rate = out_.read_bytes > 0 ? value_hits_ / out_.read_bytes : 0;
    return std::move(out_);
  }

 private:
  double BytesOf(int32_t buffer) const {
    const om::Buffer& b = plan_.buffers[static_cast<size_t>(buffer)];
    const int64_t bytes = b.bytes < 0 ? 0 : om::EvalSize(plan_, b.bytes, symbols_);
    // Packed weights are recorded as bytes.
    const bool packed = floats_ && b.kind == om::BufferKind::kConst;
    const bool is_float = packed || static_cast<DType>(b.dtype) == DType::kF32;
    return static_cast<double>(std::max<int64_t>(bytes, 0)) *
           (is_float ? chip_.bytes_per_f32 / 4 : 1);
  }
  bool IsIntermediate(int32_t buffer) const {
    const om::Buffer& b = plan_.buffers[static_cast<size_t>(buffer)];
    return b.kind == om::BufferKind::kArena || b.kind == om::BufferKind::kPool;
  }
  static bool Moves(const om::Task& t) {
    return t.kind == om::TaskKind::kSpill || t.kind == om::TaskKind::kFetch;
  }
  static bool Steers(const om::Task& t) {
    return t.kind != om::TaskKind::kLaunch && t.kind != om::TaskKind::kHost && !Moves(t);
  }

  // Duration and cores of each task; what is on the chip follows the list.
  void Weigh() {
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      const om::Task& task = plan_.tasks[t];
      double written = 0, slow = 0, fast = 0;
      if (Moves(task)) {
        const double bytes = BytesOf(task.outs[0]);
        ++(task.kind == om::TaskKind::kSpill ? out_.spills : out_.fetches);
        out_.moved_bytes += bytes;
        slow += bytes;
      } else if (!Steers(task)) {
        for (int32_t b : task.args) {
          if (b < 0 || std::find(task.outs.begin(), task.outs.end(), b) != task.outs.end())
            continue;
          double bytes = BytesOf(b);
          // Of a table that rows are gathered from, only these.
          const bool table = plan_.buffers[static_cast<size_t>(b)].kind == om::BufferKind::kConst;
          if (table && t < work_.size() && work_[t].bytes > 0)
            bytes = std::min(bytes, work_[t].bytes);
          const bool hit = on_chip_.Use(b, bytes);
          (hit ? fast : slow) += bytes;
          all_reads_ += bytes;
          hits_ += hit ? bytes : 0;
          if (!IsIntermediate(b)) continue;
          ++out_.reads;
          out_.read_bytes += bytes;
          value_hits_ += hit ? bytes : 0;
        }
        for (int32_t b : task.outs) {
          if (b < 0) continue;
          const double bytes = BytesOf(b);
          written += bytes;
          on_chip_.Use(b, bytes);
          // What fits stays on the chip until its readers have had it.
          (bytes > static_cast<double>(chip_.on_chip_bytes) ? slow : fast) += bytes;
          if (!IsIntermediate(b)) continue;
          ++out_.writes;
          out_.written_bytes += bytes;
        }
      }
      out_.memory_bytes += slow;
      const bool cube = t < work_.size() && work_[t].cube;
      const double flops = t < work_.size() ? work_[t].flops : 0;
      const int units = !cube && chip_.vector_cores > 0 ? chip_.vector_cores : chip_.cores;
      const auto parts =
          static_cast<int>(std::min(1e6, written / static_cast<double>(chip_.bytes_per_core))) + 1;
      const int cores = task.kind == om::TaskKind::kLaunch ? std::min(parts, units) : 1;
      const double share = static_cast<double>(cores) / units;
      const double tflops = (cube ? chip_.cube_tflops : chip_.vector_tflops) * share;
      const double traffic =
          slow / (chip_.memory_gb_s * share) + fast / (chip_.on_chip_gb_s * share);
      double us = std::max(flops / tflops / 1e6, traffic / 1e3) + chip_.launch_us;
      if (Moves(task)) us = slow / chip_.host_gb_s / 1e3 + chip_.launch_us;
      if (chip_.runs_here) {
        const int64_t grid =
            task.grid < 0 ? 1 : std::max<int64_t>(-1, om::EvalSize(plan_, task.grid, symbols_));
        us = static_cast<double>(om::SharedNs(task, grid, chip_.cores)) / 1e3 + chip_.launch_us;
      }
      const bool alone = chip_.runs_here && task.lane >= 0;
      if (alone) us = static_cast<double>(task.cost) / 1e3;
      cores_.push_back(alone ? 1 : chip_.runs_here ? chip_.cores : cores);
      us_.push_back(Steers(task) ? 0 : us);
      if (!Steers(task)) out_.launch_us += chip_.launch_us;
    }
  }

  void FindOrder() {
    before_ = TaskOrder(plan_);
    after_.resize(plan_.tasks.size());
    for (size_t t = 0; t < before_.size(); ++t)
      for (int32_t u : before_[t])
        after_[static_cast<size_t>(u)].push_back(static_cast<int32_t>(t));
    rank_.assign(plan_.tasks.size(), 0);  // the longest way to the end
    for (size_t t = rank_.size(); t-- > 0;) {
      for (int32_t u : after_[t]) rank_[t] = std::max(rank_[t], rank_[static_cast<size_t>(u)]);
      rank_[t] += us_[t];
    }
  }

  // The stream of a task's predecessor if nothing has followed it there, else a free one.
  int StreamOf(int32_t task) {
    for (int32_t u : before_[static_cast<size_t>(task)]) {
      const int s = stream_[static_cast<size_t>(u)];
      if (last_[static_cast<size_t>(s)] == u) return s;
    }
    for (size_t s = 0; s < last_.size(); ++s) {
      if (!running_[s]) return static_cast<int>(s);
    }
    if (static_cast<int>(last_.size()) >= most_streams_) return -1;
    last_.push_back(-1);
    running_.push_back(false);
    return static_cast<int>(last_.size()) - 1;
  }

  void Schedule() {
    const size_t count = plan_.tasks.size();
    stream_.assign(count, -1);
    std::vector<size_t> missing(count);
    const auto later = [&](int32_t a, int32_t b) {
      const auto &x = rank_[static_cast<size_t>(a)], &y = rank_[static_cast<size_t>(b)];
      return x != y ? x < y : a > b;
    };
    std::priority_queue<int32_t, std::vector<int32_t>, decltype(later)> ready(later);
    for (size_t t = 0; t < count; ++t) {
      missing[t] = before_[t].size();
      if (missing[t] == 0) ready.push(static_cast<int32_t>(t));
    }
    using Ending = std::pair<double, int32_t>;
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ends;
    int free_cube = chip_.cores, free_vector = chip_.vector_cores;
    double now = 0;
    while (!ready.empty() || !ends.empty()) {
      std::vector<int32_t> waiting;
      while (!ready.empty()) {
        const int32_t t = ready.top();
        ready.pop();
        if (!Start(t, now, free_cube, free_vector, ends)) waiting.push_back(t);
        if (waiting.size() > static_cast<size_t>(most_streams_)) break;
      }
      for (int32_t t : waiting) ready.push(t);
      if (ends.empty()) break;
      now = ends.top().first;
      while (!ends.empty() && ends.top().first <= now) {
        const int32_t t = ends.top().second;
        ends.pop();
        (OnVector(t) ? free_vector : free_cube) += cores_[static_cast<size_t>(t)];
        running_[static_cast<size_t>(stream_[static_cast<size_t>(t)])] = false;
        for (int32_t u : after_[static_cast<size_t>(t)])
          if (--missing[static_cast<size_t>(u)] == 0) ready.push(u);
      }
    }
    out_.streams = static_cast<int>(last_.size());
    out_.total_us = now;
    CountEvents();
  }

  bool OnVector(int32_t t) const {
    return chip_.vector_cores > 0 &&
           !(static_cast<size_t>(t) < work_.size() && work_[static_cast<size_t>(t)].cube);
  }

  template <class Ends>
  bool Start(int32_t t, double now, int& free_cube, int& free_vector, Ends& ends) {
    int& free = OnVector(t) ? free_vector : free_cube;
    const int cores = cores_[static_cast<size_t>(t)];
    if (cores > free) return false;
    const int s = StreamOf(t);
    if (s < 0) return false;
    bool crosses = false;
    for (int32_t u : before_[static_cast<size_t>(t)])
      crosses |= stream_[static_cast<size_t>(u)] != s && last_[static_cast<size_t>(s)] != u;
    const double begin = now + (crosses ? chip_.event_us : 0),
                 end = begin + us_[static_cast<size_t>(t)];
    free -= cores;
    stream_[static_cast<size_t>(t)] = s;
    last_[static_cast<size_t>(s)] = t;
    running_[static_cast<size_t>(s)] = true;
    out_.tasks.push_back({t, s, cores, begin, end});
    ends.push({end, t});
    return true;
  }

  // Waits that remain when each task knows the last finished task of every stream.
  void CountEvents() {
    std::vector<int> place(plan_.tasks.size(), -1);  // in its stream
    std::vector<int> length(last_.size(), 0);
    std::vector<std::vector<int>> clocks(plan_.tasks.size());
    std::vector<int32_t> last(last_.size(), -1);
    std::vector<bool> recorded(plan_.tasks.size(), false);
    for (const SimulatedTask& s : out_.tasks) {
      const auto t = static_cast<size_t>(s.task);
      std::vector<int>& clock = clocks[t];
      clock.assign(last_.size(), -1);
      const auto merge = [&](int32_t u) {
        const auto& other = clocks[static_cast<size_t>(u)];
        for (size_t l = 0; l < clock.size(); ++l) clock[l] = std::max(clock[l], other[l]);
        int& own = clock[static_cast<size_t>(stream_[static_cast<size_t>(u)])];
        own = std::max(own, place[static_cast<size_t>(u)]);
      };
      if (const int32_t u = last[static_cast<size_t>(s.stream)]; u >= 0) merge(u);
      const auto& before = before_[t];
      for (size_t k = before.size(); k-- > 0;) {
        const auto u = static_cast<size_t>(before[k]);
        if (clock[static_cast<size_t>(stream_[u])] >= place[u]) continue;
        recorded[u] = true;
        merge(before[k]);
      }
      place[t] = length[static_cast<size_t>(s.stream)]++;
      last[static_cast<size_t>(s.stream)] = s.task;
    }
    out_.events = static_cast<int>(std::count(recorded.begin(), recorded.end(), true));
  }

  const om::Plan& plan_;
  std::span<const TaskWork> work_;
  const ChipModel& chip_;
  std::span<const int64_t> symbols_;
  int most_streams_;
  bool floats_ = true;  // no intermediate value of bytes: the model is not quantised
  OnChip on_chip_;
  double all_reads_ = 0, hits_ = 0, value_hits_ = 0;
  std::vector<double> us_, rank_;
  std::vector<int> cores_, stream_;
  std::vector<std::vector<int32_t>> before_, after_;
  std::vector<int32_t> last_;  // per stream
  std::vector<bool> running_;
  Simulation out_;
};

}  // namespace

Simulation Simulate(const om::Plan& plan, std::span<const TaskWork> work, const ChipModel& chip,
                    std::span<const int64_t> symbols, int streams) {
  return Simulator(plan, work, chip, symbols, streams).Run();
}

}  // namespace ge
