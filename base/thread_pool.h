// ThreadPool: the caller and a fixed number of workers that claim chunks of one job at a time.
//
// A job's chunks are dealt out as one contiguous range for each worker. A worker takes some from
// the front of its range, ascending, so that what a chunk prefetches is what the same worker does
// next; when its range is empty it takes the back half of another's. A range is one word, {epoch,
// first, end}, changed by compare-and-swap, so a late worker can never run a piece of a job that is
// over. Workers spin for some microseconds between jobs and then sleep. They run jobs only; they
// never wait for each other. When the pool is busy with another thread's job, the caller does its
// job alone; so it does for a while after workers that other programs keep from their CPUs have
// made a job last longer than it does alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ge {

// CPUs that this process may use: its affinity mask, limited by the cgroup's quota; at least 1.
int AvailableCpus();

class ThreadPool {
 public:
  // Does the chunks [begin, end); `worker` is 0 for the caller, and below size().
  using Fn = void (*)(void* context, int worker, int64_t begin, int64_t end);

  explicit ThreadPool(int threads);  // the caller included; at least 1
  // The process's pool of this size: all models of one thread count share it while any is alive.
  static std::shared_ptr<ThreadPool> Shared(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  // Returns when all chunks are done. One chunk, or a pool of one, never leaves the caller.
  void Run(Fn fn, void* context, int64_t chunks);
  // Wakes sleeping workers ahead of a burst of jobs.
  void Wake();

 private:
  static constexpr int kLine = 64;
  // A worker's range of the job, and the job.
  struct alignas(kLine) Share {
    std::atomic<uint64_t> range{0};  // epoch << 32 | first << 16 | end
    std::atomic<Fn> fn{nullptr};
    std::atomic<void*> context{nullptr};
    std::atomic<int64_t> chunks{0}, step{1};  // the range counts steps of so many chunks
  };
  void Loop(int worker);
  int64_t TakeOwn(int worker);
  bool Steal(int worker);
  int64_t Drain(int worker);
  void Sleep(int worker, uint64_t seen);
  void StandAside();
  int64_t Watched();
  void NoteWait(int64_t begin, int64_t idle, int64_t end, int64_t mine, int64_t steps);

  std::vector<Share> shares_;                        // one per worker; the caller's is the first
  alignas(kLine) std::atomic<int64_t> finished_{0};  // steps done of the current job by workers
  alignas(kLine) std::atomic<uint32_t> bell_{0};     // futex of sleeping workers
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  alignas(kLine) std::atomic<bool> busy_{false};  // a caller owns the pool
  // The caller's that owns the pool:
  uint64_t epoch_ = 0;
  int64_t watch_until_ = 0;  // ns; jobs are timed as long as one of the last had to wait; 0: not
  int64_t alone_until_ = 0;  // ns; workers are not asked before; 0 unless jobs are timed
  int64_t alone_for_ = 0, patience_ = 0;    // ns, and that in losses
  std::vector<std::atomic<int>> slept_on_;  // CPU where each worker fell asleep last, or -1
  std::vector<std::thread> workers_;
};

}  // namespace ge
