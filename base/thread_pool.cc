// Why it is safe: what a share says of the job is written only while its range is empty, by the
// caller before it deals the range out, or by the share's own worker before it puts stolen work
// into it. Whoever takes from a range reads the job between loading a range that is not empty and a
// compare-and-swap on the same range; if the swap succeeds, the job was current all the time. A
// range that comes back to an earlier value means the same again: these steps, not yet taken.
// Why no wake-up is lost: a worker counts itself in sleepers_ and then looks at its range again
// before it sleeps; a caller stores the range and then looks at sleepers_ (all sequentially
// consistent).
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
constexpr int kPausesPerLook = 32;  // pauses between two looks at the clock
constexpr uint64_t kPart = 4;       // a worker takes this part of what its range still has

// Standing alone (NoteWait). In nanoseconds:
constexpr int64_t kLongWait = 200'000;     // shorter waits are a chunk's, not the scheduler's
constexpr int64_t kWatch = 1'000'000'000;  // jobs are timed for so long after a long wait
constexpr int64_t kLongestAlone = 200'000'000;
// A loss is followed by so many times its length alone, at first, and where losses follow each
// other.
constexpr int64_t kLeastPatience = 2, kMostPatience = 32;

int64_t Now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

// Fields of a range.
constexpr int64_t kMostSteps = 0xffff;
uint64_t First(uint64_t range) { return range >> 16 & kMostSteps; }
uint64_t End(uint64_t range) { return range & kMostSteps; }
uint64_t Range(uint64_t epoch, uint64_t first, uint64_t end) {
  return epoch << 32 | first << 16 | end;
}
constexpr int kMaxThreads = 1024;

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

ThreadPool::ThreadPool(int threads)
    : shares_(std::clamp(threads, 1, kMaxThreads)), slept_on_(shares_.size()) {
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

// Takes and runs steps from the front of the worker's own range; tells how many, 0 if it is empty.
int64_t ThreadPool::TakeOwn(int worker) {
  Share& own = shares_[static_cast<size_t>(worker)];
  uint64_t range = own.range.load(std::memory_order_acquire);
  while (First(range) != End(range)) {
    const Fn fn = own.fn.load(std::memory_order_relaxed);
    void* const context = own.context.load(std::memory_order_relaxed);
    const int64_t chunks = own.chunks.load(std::memory_order_relaxed),
                  step = own.step.load(std::memory_order_relaxed);
    const uint64_t first = First(range), left = End(range) - first,
                   taken = std::max<uint64_t>(left / kPart, 1);
    if (!own.range.compare_exchange_weak(range, Range(range >> 32, first + taken, End(range)),
                                         std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const int64_t begin = static_cast<int64_t>(first) * step,
                  end = begin + static_cast<int64_t>(taken) * step;
    fn(context, worker, begin, std::min(chunks, end));
    return static_cast<int64_t>(taken);
  }
  return 0;
}

// Moves the back half of another's range into the worker's own, if that is empty; false if there is
// nothing to do. Only within one job: a share that was not dealt to yet must not be written, nor
// one that was since. After the swap the job cannot end before the worker has done what it took.
bool ThreadPool::Steal(int worker) {
  const size_t size = shares_.size(), self = static_cast<size_t>(worker);
  std::atomic<uint64_t>& own = shares_[self].range;
  const uint64_t mine = own.load(std::memory_order_acquire), epoch = mine >> 32;
  if (First(mine) != End(mine)) return true;  // the next job was dealt out since it was empty
  for (size_t i = 1; i < size; ++i) {
    std::atomic<uint64_t>& other = shares_[(self + i) % size].range;
    uint64_t range = other.load(std::memory_order_acquire);
    while (range >> 32 == epoch && First(range) != End(range)) {
      const uint64_t first = First(range), end = End(range), middle = first + (end - first) / 2;
      if (!other.compare_exchange_weak(range, Range(epoch, first, middle),
                                       std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      own.store(Range(epoch, middle, end), std::memory_order_release);
      return true;
    }
  }
  return false;
}

// Runs until nothing is left to take; tells how many steps it did.
int64_t ThreadPool::Drain(int worker) {
  int64_t done = 0;
  do {
    while (const int64_t steps = TakeOwn(worker)) done += steps;
  } while (Steal(worker));
  return done;
}

void ThreadPool::Run(Fn fn, void* context, int64_t chunks) {
  if (chunks <= 0) return;
  if (chunks == 1 || workers_.empty() || busy_.exchange(true, std::memory_order_acquire)) {
    fn(context, 0, 0, chunks);
    return;
  }
  const int64_t begin = watch_until_ == 0 ? 0 : Watched();
  if (begin < alone_until_) {
    busy_.store(false, std::memory_order_release);
    fn(context, 0, 0, chunks);
    return;
  }
  const int64_t step = (chunks + kMostSteps - 1) / kMostSteps, steps = (chunks + step - 1) / step;
  const int64_t sharers = std::min<int64_t>(size(), steps);
  finished_.store(0, std::memory_order_relaxed);
  ++epoch_;
  for (int64_t i = sharers - 1; i >= 0; --i) {  // its own last: it is the one that begins at once
    Share& share = shares_[static_cast<size_t>(i)];
    share.fn.store(fn, std::memory_order_relaxed);
    share.context.store(context, std::memory_order_relaxed);
    share.chunks.store(chunks, std::memory_order_relaxed);
    share.step.store(step, std::memory_order_relaxed);
    const auto first = static_cast<uint64_t>(steps * i / sharers),
               end = static_cast<uint64_t>(steps * (i + 1) / sharers);
    share.range.store(Range(epoch_, first, end),
                      i == 0 ? std::memory_order_release : std::memory_order_seq_cst);
  }
  if (sleepers_.load() > 0) Wake();

  const int64_t mine = Drain(0), others = steps - mine;
  const auto finished = [&] { return finished_.load(std::memory_order_acquire) == others; };
  if (!SpinUntil(finished)) {
    const int64_t idle = Now() - std::chrono::nanoseconds(kSpin).count();
    do {
      sched_yield();
    } while (!SpinUntil(finished));
    NoteWait(begin, idle, Now(), mine, steps);
  }
  busy_.store(false, std::memory_order_release);
}

// The time; when none of the last jobs had to wait, jobs are no longer timed.
int64_t ThreadPool::Watched() {
  const int64_t now = Now();
  if (now > watch_until_) watch_until_ = alone_until_ = alone_for_ = 0;
  return now;
}

// Where another program keeps a worker from its CPU, what the worker has taken waits for some
// milliseconds: a job lasts longer than it does alone. Then the next jobs are done alone, for a
// multiple of what was lost; twice as long if the workers, asked again, make a loss sooner than
// they were let alone. What a job takes alone follows from the caller's own part of it: that a
// worker is the last to end a long chunk is no loss. The first long wait only has jobs timed.
void ThreadPool::NoteWait(int64_t begin, int64_t idle, int64_t end, int64_t mine, int64_t steps) {
  if (end - idle < kLongWait) return;
  if (begin > 0 && mine > 0) {
    const int64_t lost = end - begin - (idle - begin) / mine * steps;
    if (lost > kLongWait) {
      const bool again = end - alone_until_ < alone_for_;
      patience_ = again ? std::min(2 * patience_, kMostPatience) : kLeastPatience;
      alone_for_ = std::min(lost * patience_, kLongestAlone);
      alone_until_ = end + alone_for_;
    }
  }
  watch_until_ = std::max(end, alone_until_) + kWatch;
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

void ThreadPool::Sleep(int worker, uint64_t seen) {
  slept_on_[static_cast<size_t>(worker)].store(sched_getcpu(), std::memory_order_relaxed);
  const uint32_t rung = bell_.load();
  sleepers_.fetch_add(1);
  if (shares_[static_cast<size_t>(worker)].range.load() >> 32 == seen && !stop_.load())
    FutexWait(&bell_, rung);
  sleepers_.fetch_sub(1);
}

// A worker looks for work when its share is of another job than before: then there may be something
// to take, its own or another's.
void ThreadPool::Loop(int worker) {
  const FpState fp_state;
  const std::atomic<uint64_t>& range = shares_[static_cast<size_t>(worker)].range;
  uint64_t seen = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto work = [&] {
      return range.load(std::memory_order_acquire) >> 32 != seen ||
             stop_.load(std::memory_order_relaxed);
    };
    if (!SpinUntil(work)) {
      Sleep(worker, seen);
      continue;
    }
    seen = range.load(std::memory_order_acquire) >> 32;
    if (const int64_t done = Drain(worker); done > 0)
      finished_.fetch_add(done, std::memory_order_release);
  }
}

}  // namespace ge
