// The pool does every chunk once, from many callers, and its workers neither miss nor invent work.
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

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
          while (*here < 2) sched_yield();
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

}  // namespace
}  // namespace ge
