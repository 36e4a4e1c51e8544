// Lanes in the runtime: two branches that wait for each other's parts, on any number of workers.
#include "rt/state.h"
#include "rt/test_model.h"

namespace ge::rt {
namespace {

// a = x + 1; lane 0: b = a * 2, d = b + c; lane 1: c = a * 3, e = c + b; y = d * e. Costs say that
// lanes pay.
constexpr const char* kPlan = R"(plan {arena_bytes=1024}
  buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[16] bytes=64}
  buffer 1 {name="a" kind=arena dtype=f32 dims=[16] bytes=64 offset=0 first=0 last=5}
  buffer 2 {name="b" kind=arena dtype=f32 dims=[16] bytes=64 offset=64 first=0 last=5}
  buffer 3 {name="c" kind=arena dtype=f32 dims=[16] bytes=64 offset=128 first=0 last=5}
  buffer 4 {name="d" kind=arena dtype=f32 dims=[16] bytes=64 offset=192 first=0 last=5}
  buffer 5 {name="e" kind=arena dtype=f32 dims=[16] bytes=64 offset=256 first=0 last=5}
  buffer 6 {name="y" kind=output dtype=f32 index=0 dims=[16] bytes=64}
  task 0 {kind=launch name="a" kernel=0 args=[0, 1] outs=[1] grid=1 cost=100000}
  task 1 {kind=launch name="b" kernel=1 args=[1, 2] outs=[2] grid=1 scratch=64 cost=100000 lane=0}
  task 2 {kind=launch name="c" kernel=2 args=[1, 3] outs=[3] grid=1 scratch=128 cost=100000 lane=1}
  task 3 {kind=launch name="d" kernel=3 args=[2, 3, 4] outs=[4] grid=1 cost=100000 lane=0 waits=[2]}
  task 4 {kind=launch name="e" kernel=3 args=[3, 2, 5] outs=[5] grid=1 cost=100000 lane=1 waits=[1]}
  task 5 {kind=launch name="y" kernel=4 args=[4, 5, 6] outs=[6] grid=1 cost=100000}
  input {name="x" dtype=f32 dims=[16] buffer=0}
  output {name="y" dtype=f32 dims=[16] buffer=6})";

const std::vector<std::string> kKernels = {
    "for (int i = 0; i < 16; ++i) ((float*)b[1])[i] = ((float*)b[0])[i] + 1;",
    // Through the scratch, which each worker has for itself.
    R"(volatile float* t = call->scratch;
       for (int i = 0; i < 16; ++i) t[i] = ((float*)b[0])[i] * 2;
       for (int i = 0; i < 16; ++i) ((float*)b[1])[i] = t[i];)",
    R"(volatile float* t = call->scratch;
       for (int i = 0; i < 32; ++i) t[i] = ((float*)b[0])[i % 16] * 3;
       for (int i = 0; i < 16; ++i) ((float*)b[1])[i] = t[i + 16];)",
    "for (int i = 0; i < 16; ++i) ((float*)b[2])[i] = ((float*)b[0])[i] + ((float*)b[1])[i];",
    "for (int i = 0; i < 16; ++i) ((float*)b[2])[i] = ((float*)b[0])[i] * ((float*)b[1])[i];"};

TEST(LanesTest, SameBitsOnAnyNumberOfWorkers) {
  for (const int threads : {1, 2, 3}) {
    const auto model = TestModel{kPlan, kKernels}.Load(threads);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->state().sections.size(), threads > 1 ? 1u : 0u);
    auto run = NewRun(model);
    for (int round = 0; round < 300; ++round) {
      std::vector<float> x(16), y(16);
      for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(i + round % 7);
      const std::vector<Tensor> in = {On(x)};
      std::vector<Tensor> out = {On(y)};
      const Status status = run->Execute(in, out);
      ASSERT_TRUE(status.ok()) << status.message();
      for (int i = 0; i < 16; ++i) {
        const float sum = (x[i] + 1) * 2 + (x[i] + 1) * 3;
        ASSERT_EQ(y[i], sum * sum);
      }
    }
  }
}

// Runs of one model at once share the pool: one has it, the others go through alone.
TEST(LanesTest, RunsAtOnce) {
  const auto model = TestModel{kPlan, kKernels}.Load(2);
  ASSERT_NE(model, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([&, k] {
      auto run = NewRun(model);
      std::vector<float> x(16, static_cast<float>(k)), y(16);
      const std::vector<Tensor> in = {On(x)};
      for (int round = 0; round < 200; ++round) {
        std::vector<Tensor> out = {On(y)};
        const float sum = static_cast<float>((k + 1) * 5);
        wrong += !run->Execute(in, out).ok() || y[3] != sum * sum;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(LanesTest, ModelsShareOnePool) {
  const auto a = TestModel{kPlan, kKernels}.Load(2), b = TestModel{kPlan, kKernels}.Load(2),
             c = TestModel{kPlan, kKernels}.Load(3);
  ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
  EXPECT_EQ(a->state().pool, b->state().pool);
  EXPECT_NE(a->state().pool, c->state().pool);
}

TEST(LanesTest, BadWaitsAreRefused) {
  for (const std::string change : {"waits=[4]", "waits=[5]", "waits=[0]", "waits=[-1]"}) {
    std::string plan = kPlan;
    plan.replace(plan.find("waits=[2]"), 9, change);
    const om::Plan changed = TestModel{plan, kKernels}.Contents().plan;
    EXPECT_NE(om::CheckPlan(changed, 0, 5).message().find("waits for a bad task"),
              std::string::npos)
        << change << ": " << om::CheckPlan(changed, 0, 5).message();
  }
}

}  // namespace
}  // namespace ge::rt
