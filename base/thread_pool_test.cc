// The pool does every chunk once, from many callers, and its workers neither miss nor invent work.
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace ge {
namespace {

struct Counts {
  std::vector<std::atomic<int>> done;
  std::atomic<int> bad_worker{0};
  int size;
  Counts(int64_t n, int size) : done(n), size(size) {}
  static void Add(void* context, int worker, int64_t begin, int64_t end) {
    auto* self = static_cast<Counts*>(context);
    if (worker < 0 || worker >= self->size) ++self->bad_worker;
    for (int64_t i = begin; i < end; ++i) ++self->done[i];
  }
};

TEST(ThreadPoolTest, EveryChunkOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t chunks = 0; chunks < 300; chunks = chunks * 3 / 2 + 1) {
      Counts counts(chunks, threads);
      for (int round = 1; round <= 20; ++round) {
        pool.Run(Counts::Add, &counts, chunks);
        for (const auto& n : counts.done) ASSERT_EQ(n, round);
      }
      EXPECT_EQ(counts.bad_worker, 0);
    }
  }
}

// What each worker took, in order. The second worker's first piece lasts until the first has done
// all that it can get.
struct Pieces {
  static constexpr int64_t kChunks = 100;
  std::vector<std::pair<int64_t, int64_t>> of[2];
  std::atomic<int64_t> done{0};
  static void Take(void* context, int worker, int64_t begin, int64_t end) {
    auto* self = static_cast<Pieces*>(context);
    auto& mine = self->of[worker];
    mine.emplace_back(begin, end);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    auto others_wait = [&] { return std::chrono::steady_clock::now() < until; };
    if (worker == 0)  // the second worker has begun
      while (self->done < 0 && others_wait()) sched_yield();
    if (worker == 1 && mine.size() == 1) {
      self->done = 0;
      while (self->done < kChunks - (end - begin) && others_wait()) sched_yield();
    }
    self->done += end - begin;
  }
};

TEST(ThreadPoolTest, RangesAscendAndAreTakenOver) {
  ThreadPool pool(2);
  Pieces p;
  p.done = -1;
  pool.Run(Pieces::Take, &p, Pieces::kChunks);
  ASSERT_EQ(p.of[1].size(), 1U);  // all else was taken over
  EXPECT_EQ(p.of[1][0].first, Pieces::kChunks / 2);
  EXPECT_EQ(p.of[0][0].first, 0);
  int runs = 1;
  for (size_t i = 1; i < p.of[0].size(); ++i) {
    if (p.of[0][i].first == p.of[0][i - 1].second) continue;
    ++runs;
    EXPECT_GE(p.of[0][i].first, p.of[1][0].second);
  }
  EXPECT_GE(runs, 2);
  EXPECT_LE(runs, 8);  // halves of what the other had left
}

TEST(ThreadPoolTest, ManyCallersShareOnePool) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 2000; ++round) {
        Counts counts(1 + (round * 7 + c) % 40, 3);
        pool.Run(Counts::Add, &counts, static_cast<int64_t>(counts.done.size()));
        for (const auto& n : counts.done) wrong += n != 1;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPoolTest, SleepersWake) {
  ThreadPool pool(2);
  for (int round = 0; round < 30; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(round * 20));
    // The two chunks wait for each other, so both threads must take part.
    std::atomic<int> present{0};
    pool.Run(
        [](void* context, int, int64_t, int64_t) {
          auto* here = static_cast<std::atomic<int>*>(context);
          ++*here;
          const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          while (*here < 2 && std::chrono::steady_clock::now() < until) sched_yield();
        },
        &present, 2);
    ASSERT_EQ(present, 2);
  }
}

TEST(ThreadPoolTest, OneWorkerStaysOnTheCaller) {
  ThreadPool pool(1);
  const auto self = std::this_thread::get_id();
  std::thread::id ran;
  struct Context {
    std::thread::id* ran;
  } context{&ran};
  pool.Run([](void* c, int, int64_t,
              int64_t) { *static_cast<Context*>(c)->ran = std::this_thread::get_id(); },
           &context, 100);
  EXPECT_EQ(ran, self);
}

TEST(ThreadPoolTest, CpusFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(AvailableCpus(), 1);
  EXPECT_LE(AvailableCpus(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(AvailableCpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// The CPUs on which the two threads of a pool did chunks; -1 where one did none.
struct Places {
  std::atomic<int> cpu[2] = {-1, -1};
  static void Add(void* context, int worker, int64_t begin, int64_t end) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
    while (std::chrono::steady_clock::now() < until) continue;
    if (begin < end) static_cast<Places*>(context)->cpu[worker].store(sched_getcpu());
  }
};

// A worker that fell asleep where the caller runs now wakes elsewhere.
TEST(ThreadPoolTest, WorkersDoNotWakeBehindTheCaller) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU only";
  ThreadPool pool(2);
  int apart = 0;  // other programs may run beside the test: some times are enough
  for (int attempt = 0; attempt < 100 && apart < 5; ++attempt) {
    Places before, after;
    for (int i = 0; i < 100 && before.cpu[1] < 0; ++i) pool.Run(Places::Add, &before, 32);
    if (before.cpu[1] < 0) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(before.cpu[1], &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
    const int own = sched_getcpu();
    pool.Run(Places::Add, &after, 32);
    apart += own == before.cpu[1] && after.cpu[1] >= 0 && after.cpu[1] != own;
  }
  EXPECT_EQ(apart, 5);
}

// Jobs of chunks that the caller does in 20 us each; a worker is held up, as by another program, in
// the first of its own, as long as `held`.
struct HeldUp {
  std::atomic<bool> held{true};
  std::atomic<int64_t> helped{0}, done{0};
  static void Work(void* context, int worker, int64_t begin, int64_t end) {
    auto* self = static_cast<HeldUp*>(context);
    self->done += end - begin;
    if (worker != 0) ++self->helped;
    if (worker != 0 && self->held) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const auto until =
        std::chrono::steady_clock::now() + (end - begin) * std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < until) continue;
  }
};

TEST(ThreadPoolTest, WorkersThatAreHeldUpAreAskedSeldom) {
  ThreadPool pool(2);
  HeldUp work;
  constexpr int64_t kJobs = 1000, kChunks = 16;
  for (int64_t job = 0; job < kJobs; ++job) pool.Run(HeldUp::Work, &work, kChunks);
  EXPECT_EQ(work.done, kJobs * kChunks);
  EXPECT_LT(work.helped, kJobs / 4);
  // They are asked again once nothing holds them up.
  work.held = false, work.helped = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (work.helped == 0 && std::chrono::steady_clock::now() < until)
    pool.Run(HeldUp::Work, &work, kChunks);
  EXPECT_GT(work.helped, 0);
}

// Three chunks of 2 ms for two threads: one of them waits for the other, which is no loss. A pool
// that stands alone does a job as one piece. Other programs may run beside the test, and hold up a
// worker indeed: one attempt without that is enough.
TEST(ThreadPoolTest, FewLongChunksAreShared) {
  int attempts = 0;
  for (int whole = 1; whole > 0 && attempts < 50; ++attempts) {
    ThreadPool pool(2);
    std::atomic<int> pieces{0};
    whole = 0;
    for (int job = 0; job < 10; ++job) {
      pieces = 0;
      pool.Run(
          [](void* context, int, int64_t begin, int64_t end) {
            ++*static_cast<std::atomic<int>*>(context);
            std::this_thread::sleep_for((end - begin) * std::chrono::milliseconds(2));
          },
          &pieces, 3);
      whole += pieces == 1;
    }
  }
  EXPECT_LT(attempts, 50);
}

// Jobs so short that the caller often ends one, and deals out the next, while a worker still looks
// for work: no step may be lost, or the caller waits for ever.
TEST(ThreadPoolTest, ShortJobsInQuickSuccessionLoseNothing) {
#ifdef GE_SANITIZED
  const int64_t jobs = 30000;
#else
  const int64_t jobs = 1000000;
#endif
  ThreadPool pool(2);
  for (const int64_t chunks : {2, 3, 16}) {
    std::atomic<int64_t> done{0};
    for (int64_t job = 0; job < jobs; ++job)
      pool.Run([](void* to, int, int64_t begin,
                  int64_t end) { static_cast<std::atomic<int64_t>*>(to)->fetch_add(end - begin); },
               &done, chunks);
    EXPECT_EQ(done.load(), jobs * chunks);
  }
}

// To wake a worker takes longer than a short job: between jobs that follow each other within
// microseconds it does not sleep. Sleeps are counted, not time: one that other programs hold up
// sleeps once in a while, not once for each job.
TEST(ThreadPoolTest, WorkersDoNotSleepBetweenJobsInQuickSuccession) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU only";
  constexpr int kJobs = 1000;
  ThreadPool pool(2);
  const auto work = [](void*, int, int64_t, int64_t) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(10);
    while (std::chrono::steady_clock::now() < until) continue;
  };
  const auto sleeps = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  int64_t least = kJobs;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const int64_t before = sleeps();
    for (int job = 0; job < kJobs; ++job) {
      pool.Run(work, nullptr, 2);
      work(nullptr, 0, 0, 1);  // by the caller
    }
    least = std::min<int64_t>(least, sleeps() - before);
  }
  EXPECT_LT(least, kJobs / 10);
}

}  // namespace
}  // namespace ge
