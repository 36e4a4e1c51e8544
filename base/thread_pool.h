// ThreadPool: the caller and a fixed number of workers that claim chunks of one job at a time.
//
// A job is one word of state: {epoch, claims left}. A worker claims by a compare-and-swap on it, so
// a late worker can never run a piece of a job that is over. Workers spin for some microseconds
// between jobs and then sleep. They run jobs only; they never wait for each other. When the pool is
// busy with another thread's job, the caller does its job alone.
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
  struct Claim;
  void Loop(int worker);
  bool ClaimOne(int worker, Claim* claim);
  int64_t Drain(int worker);
  void Sleep(int worker);
  void StandAside();

  static constexpr int kLine = 64;
  alignas(kLine) std::atomic<uint64_t> state_{0};    // epoch << 32 | first << 16 | end
  alignas(kLine) std::atomic<int64_t> finished_{0};  // claims done of the current job
  // The job; written only while no claim is left, published by state_.
  alignas(kLine) std::atomic<Fn> fn_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int64_t> chunks_{0}, step_{1};
  alignas(kLine) std::atomic<uint32_t> bell_{0};  // futex of sleeping workers
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  alignas(kLine) std::atomic<bool> busy_{false};  // a caller owns the pool
  std::vector<std::atomic<int>> slept_on_;        // CPU where each worker fell asleep last, or -1
  std::vector<std::thread> workers_;
};

}  // namespace ge
