// A section of lanes: its launches run at once, each on one worker, in the order of each lane and
// after what they wait for.
//
// Nobody blocks: a worker takes any lane whose next task may start, and looks again until all tasks
// are over. Lists put what is waited for first, so that one worker alone gets through as well.
#include <atomic>
#include <thread>

#include "rt/state.h"

namespace ge::rt {
namespace {

constexpr int kPausesPerYield = 1000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

struct Lane {
  std::atomic<bool> taken{false};
  int32_t next = -1;  // whoever has taken the lane reads and writes it
};

struct LaneJob {
  Run::State& run;
  const LaneSection& section;
  std::array<Lane, om::kMostLanes> lanes{};
  std::atomic<int32_t> left;

  explicit LaneJob(Run::State& r, const LaneSection& s)
      : run(r), section(s), left(s.end - s.first) {
    for (size_t l = 0; l < s.heads.size(); ++l) lanes[l].next = s.heads[l];
    for (int32_t t = s.first; t < s.end; ++t)
      run.lane_done[static_cast<size_t>(t)].store(0, std::memory_order_relaxed);
  }

  bool MayStart(int32_t task) const {
    for (const int32_t w : run.plan.tasks[static_cast<size_t>(task)].waits) {
      if (w >= section.first &&
          run.lane_done[static_cast<size_t>(w)].load(std::memory_order_acquire) == 0)
        return false;
    }
    return true;
  }

  void Launch(int32_t t, int worker) {
    const auto task = static_cast<size_t>(t);
    const Step& step = run.model.steps[task];
    ge_kernel_call call = run.calls[task];
    call.scratch = run.scratch_base + worker * run.scratch_stride;
    const int64_t grid = run.sizes[static_cast<size_t>(step.grid)];
    const bool timed = run.profiling || run.trace != nullptr;
    const int64_t start = timed ? NowNs() : 0;
    if (grid > 0) step.fn(&call, 0, grid);
    if (timed) {
      const int64_t end = NowNs();
      if (run.profiling) run.profile[task] += end - start;
      if (run.trace != nullptr) run.trace->Add(worker, task, grid, start, end);
    }
    run.lane_done[task].store(1, std::memory_order_release);
    left.fetch_sub(1, std::memory_order_acq_rel);
  }

  // Runs what may start of a lane; false if nothing.
  bool Advance(Lane& lane, int worker) {
    if (lane.taken.exchange(true, std::memory_order_acquire)) return false;
    bool any = false;
    while (lane.next >= 0 && MayStart(lane.next)) {
      Launch(lane.next, worker);
      lane.next = run.model.steps[static_cast<size_t>(lane.next)].next_in_lane;
      any = true;
    }
    lane.taken.store(false, std::memory_order_release);
    return any;
  }

  static void Work(void* context, int worker, int64_t begin, int64_t) {
    auto& job = *static_cast<LaneJob*>(context);
    const size_t count = job.section.heads.size();
    for (int idle = 0; job.left.load(std::memory_order_acquire) > 0;) {
      bool any = false;
      for (size_t k = 0; k < count; ++k)
        any |= job.Advance(job.lanes[(static_cast<size_t>(begin) + k) % count], worker);
      if (any) continue;
      // Whoever runs the rest may be waiting for this CPU.
      ++idle % kPausesPerYield == 0 ? std::this_thread::yield() : Pause();
    }
  }
};

}  // namespace

Status Run::State::RunLanes(const LaneSection& section) {
  int64_t most = 0;
  for (int32_t t = section.first; t < section.end; ++t) {
    const Step& step = model.steps[static_cast<size_t>(t)];
    if (!Ready(step, sizes[static_cast<size_t>(step.grid)])) {
      return WhyNotReady(static_cast<size_t>(t))
          .In("task " + plan.tasks[static_cast<size_t>(t)].name);
    }
    if (step.scratch >= 0) most = std::max(most, sizes[static_cast<size_t>(step.scratch)]);
  }
  if (most > scratch_stride) GE_TRY(GrowScratch((most + 127) / 128 * 128));
  LaneJob job(*this, section);
  const auto workers =
      std::min<size_t>(section.heads.size(), static_cast<size_t>(model.pool->size()));
  model.pool->Run(LaneJob::Work, &job, static_cast<int64_t>(workers));
  return {};
}

}  // namespace ge::rt
