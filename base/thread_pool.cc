// Why it is safe: fn_, context_, chunks_ and step_ are written only between "no claim left and all
// finished" and the store to state_. A worker reads them between loading a state with claims left
// and a compare-and-swap on the same state; if the swap succeeds, the job was current all the time.
// Why no wake-up is lost: a worker counts itself in sleepers_ and then looks at state_ again before
// it sleeps; a caller stores state_ and then looks at sleepers_ (all sequentially consistent).
#include "base/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <map>
#include <mutex>

#include "base/fp_state.h"

namespace ge {
namespace {

constexpr auto kSpin = std::chrono::microseconds(40);
constexpr int kPausesPerLook = 32;       // pauses between two looks at the clock
constexpr int64_t kClaimsPerWorker = 8;  // fine enough to balance, coarse enough to be cheap

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void FutexWait(std::atomic<uint32_t>* word, uint32_t seen) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr,
          0);
}
void FutexWake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr,
          0);
}

// Fields of the state.
uint64_t First(uint64_t state) { return state >> 16 & 0xffff; }
uint64_t End(uint64_t state) { return state & 0xffff; }
bool Left(uint64_t state) { return First(state) != End(state); }
constexpr uint64_t kOneFirst = 1 << 16;
constexpr int kMaxThreads = 1024;  // keeps the number of claims within a field

// Waits until ready() holds; false after kSpin.
template <class Ready>
bool SpinUntil(Ready ready) {
  for (int i = 0; i < kPausesPerLook; ++i) {
    if (ready()) return true;
    Pause();
  }
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (ready()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

struct ThreadPool::Claim {
  Fn fn;
  void* context;
  int64_t begin, end;
};

ThreadPool::ThreadPool(int threads) : slept_on_(std::clamp(threads, 1, kMaxThreads)) {
  for (std::atomic<int>& cpu : slept_on_) cpu.store(-1);
  for (int worker = 1; worker < std::min(threads, kMaxThreads); ++worker)
    workers_.emplace_back([this, worker] { Loop(worker); });
}

std::shared_ptr<ThreadPool> ThreadPool::Shared(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<ThreadPool>> pools;
  const std::lock_guard lock(mutex);
  std::shared_ptr<ThreadPool> pool = pools[threads].lock();
  if (pool == nullptr) pools[threads] = pool = std::make_shared<ThreadPool>(threads);
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  Wake();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::ClaimOne(int worker, Claim* claim) {
  const bool from_front = worker % 2 == 0;
  uint64_t state = state_.load(std::memory_order_acquire);
  while (Left(state)) {
    const int64_t chunks = chunks_.load(std::memory_order_relaxed);
    const int64_t step = step_.load(std::memory_order_relaxed);
    claim->fn = fn_.load(std::memory_order_relaxed);
    claim->context = context_.load(std::memory_order_relaxed);
    if (state_.compare_exchange_weak(state, from_front ? state + kOneFirst : state - 1,
                                     std::memory_order_acq_rel, std::memory_order_acquire)) {
      claim->begin = static_cast<int64_t>(from_front ? First(state) : End(state) - 1) * step;
      claim->end = std::min(chunks, claim->begin + step);
      return true;
    }
  }
  return false;
}

// Claims and runs until nothing is left; tells how many claims it did.
int64_t ThreadPool::Drain(int worker) {
  int64_t done = 0;
  for (Claim claim; ClaimOne(worker, &claim); ++done)
    claim.fn(claim.context, worker, claim.begin, claim.end);
  return done;
}

void ThreadPool::Run(Fn fn, void* context, int64_t chunks) {
  if (chunks <= 0) return;
  if (chunks == 1 || workers_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
    fn(context, 0, 0, chunks);
    return;
  }
  const int64_t step = std::max<int64_t>(1, chunks / (size() * kClaimsPerWorker));
  const int64_t claims = (chunks + step - 1) / step;
  fn_.store(fn, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  chunks_.store(chunks, std::memory_order_relaxed);
  step_.store(step, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  const uint64_t epoch = (state_.load(std::memory_order_relaxed) >> 32) + 1;
  state_.store(epoch << 32 | static_cast<uint64_t>(claims));
  if (sleepers_.load() > 0) Wake();

  const int64_t own = Drain(0);
  const int64_t others = claims - own;
  const auto finished = [&] { return finished_.load(std::memory_order_acquire) == others; };
  while (!SpinUntil(finished)) sched_yield();
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::Wake() {
  bell_.fetch_add(1);
  if (sleepers_.load() == 0) return;
  StandAside();
  FutexWake(&bell_, INT_MAX);
}

// A worker wakes where it fell asleep. If the caller runs there now, and the two CPUs share no
// cache, the scheduler lets it wait for milliseconds before it moves it: it is sent to another CPU
// at once.
void ThreadPool::StandAside() {
  const int own = sched_getcpu();
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (own < 0 || slept_on_[i + 1].load(std::memory_order_relaxed) != own) continue;
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof others, &others) != 0) return;
    CPU_CLR(own, &others);
    if (CPU_COUNT(&others) == 0) return;
    pthread_setaffinity_np(workers_[i].native_handle(), sizeof others, &others);
    slept_on_[i + 1].store(-1, std::memory_order_relaxed);
  }
}

void ThreadPool::Sleep(int worker) {
  slept_on_[static_cast<size_t>(worker)].store(sched_getcpu(), std::memory_order_relaxed);
  const uint32_t seen = bell_.load();
  sleepers_.fetch_add(1);
  if (!Left(state_.load()) && !stop_.load()) FutexWait(&bell_, seen);
  sleepers_.fetch_sub(1);
}

void ThreadPool::Loop(int worker) {
  const FpState fp_state;
  while (!stop_.load(std::memory_order_relaxed)) {
    const int64_t done = Drain(worker);
    if (done > 0) finished_.fetch_add(done, std::memory_order_release);
    const auto work = [this] {
      return Left(state_.load(std::memory_order_acquire)) || stop_.load(std::memory_order_relaxed);
    };
    if (!SpinUntil(work)) Sleep(worker);
  }
}

}  // namespace ge
