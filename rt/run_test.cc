// Memory, threads and speed of runs.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <numeric>
#include <thread>

#include "rt/state.h"
#include "rt/test_model.h"

namespace ge::rt {
int64_t AllocationsSoFar();  // allocations_test.cc

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

// t = x * w (through scratch), y = t + x, over 64 chunks of 16.
const char* const kScale =
    "float* tmp = call->scratch; for (int64_t c = begin; c < end; ++c) {"
    " for (int i = 0; i < 16; ++i) tmp[i] = ((const float*)b[0])[c * 16 + i] * ((const "
    "float*)b[1])[i];"
    " for (int i = 0; i < 16; ++i) ((float*)b[2])[c * 16 + i] = tmp[i]; }";
const char* const kAdd =
    "for (int64_t i = begin * 16; i < end * 16; ++i)"
    " ((float*)b[2])[i] = ((const float*)b[0])[i] + ((const float*)b[1])[i];";
const TestModel kStatic = {R"(plan {name="static" arena_bytes=4096}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[1024] bytes=4096}
    buffer 1 {name="w" kind=const dtype=f32 dims=[16] bytes=64 offset=0}
    buffer 2 {name="t" kind=arena dtype=f32 dims=[1024] bytes=4096 offset=0 first=0 last=1}
    buffer 3 {name="y" kind=output dtype=f32 index=0 dims=[1024] bytes=4096}
    task 0 {kind=launch name="scale" kernel=0 args=[0, 1, 2] grid=64 scratch=64}
    task 1 {kind=launch name="add" kernel=1 args=[2, 0, 3] grid=64}
    input {name="x" dtype=f32 dims=[1024] buffer=0}
    output {name="y" dtype=f32 dims=[1024] buffer=3})",
                           {kScale, kAdd},
                           Floats(16, 3.0f)};

Floats Ramp(size_t n) {
  Floats x(n);
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

void ExpectQuadruple(const Floats& x, const Floats& y) {
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 4) << i;
}

TEST(RunTest, StaticModelOnOneAndMoreWorkers) {
  for (const int threads : {1, 2, 3}) {
    const auto model = kStatic.Load(threads);
    EXPECT_EQ(model->threads(), threads);
    EXPECT_EQ(model->work_bytes(), 4096 + threads * 128);
    EXPECT_EQ(model->weight_bytes(), 64);
    auto run = NewRun(model);
    Floats x = Ramp(1024), y(1024);
    Tensor in[] = {On(x)}, out[] = {On(y)};
    EXPECT_THAT(*run->OutputDims(in), ElementsAre(ElementsAre(1024)));
    for (int round = 0; round < 200; ++round) {
      std::fill(y.begin(), y.end(), 0.0f);
      ASSERT_EQ(run->Execute(in, out).message(), "");
      ExpectQuadruple(x, y);
    }
    EXPECT_EQ(run->stats().arena_bytes, 4096);
  }
}

TEST(RunTest, CallersWorkMemory) {
  const auto model = kStatic.Load(2);
  const auto bytes = static_cast<size_t>(model->work_bytes());
  constexpr size_t kGuard = 64;
  auto* memory =
      static_cast<unsigned char*>(std::aligned_alloc(64, (bytes + 2 * kGuard + 63) / 64 * 64));
  std::memset(memory, 0x5a, bytes + 2 * kGuard);
  {
    auto run = NewRun(model, memory + kGuard);
    Floats x = Ramp(1024), y(1024);
    Tensor in[] = {On(x)}, out[] = {On(y)};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    ExpectQuadruple(x, y);
  }
  EXPECT_NE(memory[kGuard], 0x5a);  // it was used ...
  for (size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(memory[i], 0x5a);  // ... and nothing around it
    EXPECT_EQ(memory[kGuard + bytes + i], 0x5a);
  }
  EXPECT_THAT(Run::Create(model, memory + 1).status().message(), HasSubstr("aligned"));
  std::free(memory);
}

TEST(RunTest, TwoRunsAtOnce) {
  const auto model = kStatic.Load(2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      auto run = NewRun(model);
      Floats x(1024, static_cast<float>(t + 1)), y(1024);
      Tensor in[] = {On(x)}, out[] = {On(y)};
      for (int round = 0; round < 500; ++round) {
        std::fill(y.begin(), y.end(), 0.0f);
        wrong += !run->Execute(in, out).ok();
        for (const float v : y) wrong += v != static_cast<float>(t + 1) * 4;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

#ifndef GE_SANITIZED  // sanitizers bring their own operator new
TEST(RunTest, NoAllocationInTheSteadyRun) {
  for (const int threads : {1, 2}) {
    auto run = NewRun(kStatic.Load(threads));
    Floats x = Ramp(1024), y(1024);
    Tensor in[] = {On(x)}, out[] = {On(y)};
    for (int round = 0; round < 3; ++round) ASSERT_TRUE(run->Execute(in, out).ok());
    const int64_t before = AllocationsSoFar();
    EXPECT_GT(before, 0) << "they are counted";
    for (int round = 0; round < 100; ++round) (void)run->Execute(in, out).ok();
    EXPECT_EQ(AllocationsSoFar() - before, 0);
  }
}

#endif

TEST(RunTest, SharedAndCrookedMemory) {
  auto run = NewRun(kStatic.Load(2));
  const Floats ramp = Ramp(1024);
  Floats x = ramp, expected = ramp;
  for (float& v : expected) v *= 4;
  {  // in place
    Tensor in[] = {On(x)}, out[] = {On(x)};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_EQ(x, expected);
  }
  {  // half overlapping
    Floats both(1536);
    std::copy(ramp.begin(), ramp.end(), both.begin());
    Tensor in[] = {{1, {1024}, both.data(), 4096}}, out[] = {{1, {1024}, both.data() + 512, 4096}};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_EQ(Floats(both.begin() + 512, both.end()), expected);
    EXPECT_EQ(Floats(both.begin(), both.begin() + 512), Floats(ramp.begin(), ramp.begin() + 512));
  }
  {  // misaligned, twice with new contents
    std::vector<char> raw_in(4097), raw_out(4098, 'z');
    for (const float factor : {1.0f, 2.0f}) {
      x = ramp;
      for (float& v : x) v *= factor;
      std::memcpy(raw_in.data() + 1, x.data(), 4096);
      Tensor in[] = {{1, {1024}, raw_in.data() + 1, 4096}},
             out[] = {{1, {1024}, raw_out.data() + 1, 4096}};
      ASSERT_EQ(run->Execute(in, out).message(), "");
      Floats y(1024);
      std::memcpy(y.data(), raw_out.data() + 1, 4096);
      ExpectQuadruple(x, y);
      EXPECT_EQ(raw_out[0], 'z');
      EXPECT_EQ(raw_out[4097], 'z');
    }
  }
  {  // the Run's memory goes back in as an input
    x = Floats(1024, 1.0f);
    Tensor in[] = {On(x)}, out[] = {Tensor()};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    for (int round = 0; round < 3; ++round) {
      in[0] = out[0];
      ASSERT_EQ(run->Execute(in, out).message(), "");
    }
    EXPECT_EQ(Values<float>(out[0]), Floats(1024, 256.0f));
  }
}

TEST(RunTest, RefusesWrongInputs) {
  auto run = NewRun(kStatic.Load());
  Floats x = Ramp(1024), y(1024);
  const auto message = [&](Tensor in, Tensor out) {
    return run->Execute(std::span(&in, 1), std::span(&out, 1)).message();
  };
  EXPECT_EQ(message(On(x, {1023}), On(y)), "input \"x\": dim 0 is 1023, the model takes 1024");
  EXPECT_EQ(message(On(x, {32, 32}), On(y)), "input \"x\": dims [32, 32], the model takes 1 dims");
  EXPECT_EQ(message({7, {1024}, x.data(), 4096}, On(y)),
            "input \"x\": element type i64, the model takes f32");
  EXPECT_EQ(message({1, {1024}, nullptr, 4096}, On(y)), "input \"x\": no data");
  EXPECT_EQ(message({1, {1024}, x.data(), 4092}, On(y)),
            "input \"x\": 4092 bytes given, 4096 needed");
  EXPECT_EQ(message(On(x), {1, {1024}, y.data(), 4092}),
            "output \"y\": 4092 bytes given, 4096 needed");
  EXPECT_EQ(run->Execute({}, {}).message(), "0 outputs given, the model has 1");
  EXPECT_EQ(message(On(x), On(y)), "");
}

// Symbols, and an arena that is placed for each shape: a = x + 1, b = a * 2, y = a + b.
const TestModel kSymbolic = {
    R"(plan {name="symbolic"}
    symbol {name="N" lo=4 hi=512 multiple_of=4 input=0 dim=0}
    check {condition=ne($N, 12) message="twelve is not wanted"}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[$N, 3] bytes=mul($N, 12)}
    buffer 1 {name="a" kind=arena dtype=f32 dims=[$N, 3] bytes=mul($N, 12) first=0 last=2}
    buffer 2 {name="b" kind=arena dtype=f32 dims=[$N, 3] bytes=mul($N, 12) first=1 last=2}
    buffer 3 {name="y" kind=output dtype=f32 index=0 dims=[$N, 3] bytes=mul($N, 12)}
    task 0 {kind=launch name="a" kernel=0 args=[0, 1] sizes=[$N] grid=$N scratch=mul($N, 8)}
    task 1 {kind=launch name="b" kernel=1 args=[1, 2] sizes=[$N] grid=$N}
    task 2 {kind=launch name="y" kernel=2 args=[1, 2, 3] sizes=[$N] grid=$N}
    input {name="x" dtype=f32 dims=[$N, 3] buffer=0}
    output {name="y" dtype=f32 dims=[$N, 3] buffer=3})",
    {"for (int64_t i = begin * 3; i < end * 3; ++i) ((float*)b[1])[i] = ((float*)b[0])[i] + 1;"
     "((volatile char*)call->scratch)[s[0] * 8 - 1] = 1;",
     "for (int64_t i = begin * 3; i < end * 3; ++i) ((float*)b[1])[i] = ((float*)b[0])[i] * 2;",
     "for (int64_t i = begin * 3; i < end * 3; ++i)"
     " ((float*)b[2])[i] = ((float*)b[0])[i] + ((float*)b[1])[i];"}};

TEST(RunTest, SymbolsAndShapes) {
  const auto model = kSymbolic.Load(2);
  EXPECT_EQ(model->work_bytes(), -1);
  auto run = NewRun(model);
  for (int round = 0; round < 3; ++round) {
    for (int64_t n = 4; n <= 512; n += round == 1 ? 4 : 36) {  // more shapes than are kept
      Floats x = Ramp(static_cast<size_t>(3 * n));
      Tensor in[] = {On(x, {n, 3})}, out[] = {Tensor()};
      const Status status = run->Execute(in, out);
      if (n == 12) {
        EXPECT_EQ(status.message(), "twelve is not wanted");
        continue;
      }
      ASSERT_EQ(status.message(), "");
      EXPECT_THAT(out[0].dims, ElementsAre(n, 3));
      const Floats y = Values<float>(out[0]);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], (x[i] + 1) * 3);
      EXPECT_GE(run->stats().arena_bytes, 2 * 12 * n);
    }
  }
  Floats x(1536 * 2);
  const auto message = [&](std::vector<int64_t> dims) {
    Tensor in[] = {On(x, std::move(dims))}, out[] = {Tensor()};
    return run->Execute(in, out).message();
  };
  EXPECT_EQ(message({6, 3}), "input \"x\": dim 0 is 6; allowed: 4 to 512, a multiple of 4 (N)");
  EXPECT_EQ(message({516, 3}), "input \"x\": dim 0 is 516; allowed: 4 to 512, a multiple of 4 (N)");
  EXPECT_EQ(message({8, 4}), "input \"x\": dim 1 is 4, the model takes 3");
  alignas(64) static std::byte work[64];
  EXPECT_THAT(Run::Create(model, work).status().message(), HasSubstr("symbolic"));
}

// Of a dynamic model: kernels write the arena to its last planned byte, and nothing behind it.
TEST(RunTest, PlannedBytesAreTheBytesInUse) {
  const auto model = kSymbolic.Load(1);
  Run::State state(model);
  ASSERT_TRUE(state.Start(nullptr).ok());
  for (const int64_t n : {512, 4, 100, 36}) {
    Floats x = Ramp(static_cast<size_t>(3 * n));
    const Tensor in[] = {On(x, {n, 3})};
    Tensor out[] = {Tensor()};
    ASSERT_EQ(state.Execute(in, out).message(), "");
    const int64_t planned = state.shapes[0].arena_bytes;
    std::memset(state.arena_base, 0xa5, static_cast<size_t>(state.arena.bytes()));
    out[0] = Tensor();
    ASSERT_EQ(state.Execute(in, out).message(), "");
    int64_t used = state.arena.bytes();
    while (used > 0 && state.arena_base[used - 1] == std::byte{0xa5}) --used;
    EXPECT_EQ((used + 63) / 64 * 64, planned) << n;
  }
}

// y = 2 (x + 1) through the arena, for any number of elements; the last result stays valid.
TEST(RunTest, MemoryOfALargeShapeGoesBack) {
  const TestModel any = {R"(plan {name="any"}
    symbol 0 {name="N" lo=1 hi=100000000 input=0 dim=0}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[$N] bytes=mul($N, 4)}
    buffer 1 {name="t" kind=arena dtype=f32 dims=[$N] bytes=mul($N, 4) first=0 last=1}
    buffer 2 {name="y" kind=output dtype=f32 index=0 dims=[$N] bytes=mul($N, 4)}
    task 0 {kind=launch name="t" kernel=0 args=[0, 1] outs=[1] sizes=[$N] grid=$N}
    task 1 {kind=launch name="y" kernel=1 args=[1, 2] outs=[2] sizes=[$N] grid=$N}
    input {name="x" dtype=f32 dims=[$N] buffer=0}
    output {name="y" dtype=f32 dims=[$N] buffer=2})",
                         {"for (int64_t i = begin; i < end; ++i)"
                          " ((float*)b[1])[i] = ((float*)b[0])[i] + 1;",
                          "for (int64_t i = begin; i < end; ++i)"
                          " ((float*)b[1])[i] = ((float*)b[0])[i] * 2;"}};
  const auto resident_mb = [] {
    std::ifstream file("/proc/self/statm");
    long all = 0, resident = 0;
    file >> all >> resident;
    return resident * (getpagesize() / 1024) / 1024;
  };
  auto run = NewRun(any.Load(1));
  Floats large = Ramp(8 << 20), small = Ramp(1000);  // 32 MB
  const auto execute = [&](Floats& x) {
    Tensor in[] = {On(x)}, out[] = {Tensor()};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    const auto* y = static_cast<const float*>(out[0].data);
    for (size_t i = 0; i < x.size(); i += 97) ASSERT_EQ(y[i], (x[i] + 1) * 2);
  };
  for (int round = 0; round < 3; ++round) {
    execute(large);
    const long full = resident_mb();
    for (int i = 0; i < 130; ++i) execute(small);
    EXPECT_LT(resident_mb(), full - 50) << full;  // two blocks of 32 MB
  }
}

// An output that is a constant, an input, and a part of another output.
TEST(RunTest, OutputsThatAreNotComputed) {
  const TestModel model = {R"(plan {arena_bytes=0}
      buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[2] bytes=8}
      buffer 1 {name="w" kind=const dtype=f32 dims=[2] bytes=8 offset=0}
      buffer 2 {name="y" kind=output dtype=f32 index=2 dims=[2] bytes=8}
      buffer 3 {name="z" kind=output dtype=f32 dims=[1] bytes=4 alias=2 alias_offset=4}
      task 0 {kind=host name="copy" host="Copy" args=[0] outs=[2]}
      input {name="x" dtype=f32 dims=[2] buffer=0}
      output {name="w" dtype=f32 dims=[2] buffer=1}
      output {name="x" dtype=f32 dims=[2] buffer=0}
      output {name="y" dtype=f32 dims=[2] buffer=2}
      output {name="z" dtype=f32 dims=[1] buffer=3})",
                           {},
                           {7, 8}};
  auto run = NewRun(model.Load());
  Floats x = {1, 2}, w(2);
  Tensor in[] = {On(x)}, out[] = {Tensor(), Tensor(), Tensor(), Tensor()};
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_THAT(Values<float>(out[0]), ElementsAre(7, 8));
    EXPECT_THAT(Values<float>(out[1]), ElementsAre(1, 2));
    EXPECT_NE(out[1].data, x.data());
    EXPECT_THAT(Values<float>(out[2]), ElementsAre(1, 2));
    EXPECT_THAT(Values<float>(out[3]), ElementsAre(2));
    out[0] = On(w);
  }
  EXPECT_THAT(w, ElementsAre(7, 8));
}

TEST(RunTest, KernelsSeeMathAndFlushedDenormals) {
  const TestModel model = {
      R"(plan {arena_bytes=0}
      buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[1] bytes=4}
      buffer 1 {name="y" kind=output dtype=f32 index=0 dims=[2] bytes=8}
      task 0 {kind=launch name="k" kernel=0 args=[0, 1] grid=1}
      input {name="x" dtype=f32 dims=[1] buffer=0}
      output {name="y" dtype=f32 dims=[2] buffer=1})",
      {"float x = *(float*)b[0]; ((float*)b[1])[0] = x * 0.5f;"
       "((float*)b[1])[1] = call->math->f2[GE_M_POW](2.0, call->math->f1[GE_M_EXP](0.0) + 2);"
       "(void)begin; (void)end;"}};
  auto run = NewRun(model.Load());
  Floats x = {std::numeric_limits<float>::min()}, y(2);
  Tensor in[] = {On(x)}, out[] = {On(y)};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(y, ElementsAre(0, 8));
  volatile float small = x[0];
  EXPECT_NE(small * 0.5f, 0) << "the caller's state is back";
}

TEST(RunTest, Profile) {
  auto run = NewRun(kStatic.Load());
  run->EnableProfile(true);
  Floats x = Ramp(1024), y(1024);
  Tensor in[] = {On(x)}, out[] = {On(y)};
  ASSERT_TRUE(run->Execute(in, out).ok());
  ASSERT_EQ(run->profile().size(), 2u);
  EXPECT_GT(run->profile()[0], 0);
}

// ---- Speed: nanoseconds per task of kernels that do nothing.

// The shortest of some times: one that nothing else held up.
double BestNs(const std::function<void()>& work) {
  double best = 1e18;
  for (int round = 0; round < 50; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

double NsPerTask(int threads, int grid) {
  constexpr int kTasks = 1000;
  TestModel model{R"(plan {arena_bytes=0}
      buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[1] bytes=4}
      buffer 1 {name="y" kind=output dtype=f32 index=0 dims=[1] bytes=4}
      input {name="x" dtype=f32 dims=[1] buffer=0}
      output {name="y" dtype=f32 dims=[1] buffer=1})",
                  {"(void)begin; (void)end;"}};
  for (int i = 0; i < kTasks; ++i) {
    model.plan +=
        "task {kind=launch kernel=0 args=[0, 1, 0, 1] grid=" + std::to_string(grid) + "}\n";
  }
  auto run = NewRun(model.Load(threads));
  Floats x(1), y(1);
  Tensor in[] = {On(x)}, out[] = {On(y)};
  return BestNs([&] { EXPECT_TRUE(run->Execute(in, out).ok()); }) / kTasks;
}

// The bar is in calls through a pointer on the same machine: 50 ns where one takes 1.3. What two
// workers take is printed only, as it depends on who else is at work; that they are not woken for
// each task is judged by base/thread_pool_test.cc.
TEST(RunSpeedTest, TaskOverhead) {
  const double one = NsPerTask(1, 2), two = NsPerTask(2, 2);
  int (*volatile call)(int) = std::abs;
  const double calls = BestNs([&] {
    for (int i = 0; i < 1000; ++i) call(i);
  });
  std::printf("task overhead: %.1f ns on one worker, %.1f ns on two; a call %.1f ns\n", one, two,
              calls / 1000);
#ifndef GE_SANITIZED
  EXPECT_LT(one, 40 * calls / 1000);
#endif
}

// Weights too small for a normal float are zeros to every worker, so that no microcode is paid for
// them. (What they cost, bench_kernels prints.)
TEST(RunTest, DenormalWeightsAreZeros) {
  TestModel model = kStatic;
  model.kernels[0] =
      "for (int64_t i = begin * 16; i < end * 16; ++i)"
      "  ((float*)b[2])[i] = ((const float*)b[0])[i] * ((const float*)b[1])[0] * 1e36f; "
      "(void)call;";
  Floats x(1024, 100), y(1024);
  for (const float weight : {0.5f, 1e-40f}) {
    model.weights = Floats(16, weight);
    auto run = NewRun(model.Load(2));
    Tensor in[] = {On(x)}, out[] = {On(y)};
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(run->Execute(in, out).message(), "");
      EXPECT_EQ(y == x, weight < 0.1f);
    }
  }
}

}  // namespace
}  // namespace ge::rt
