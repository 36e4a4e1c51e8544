// GE_TRACE: what a viewer relies on. The file is JSON, one slice per task on one worker, slices
// that cover all chunks on several, and slices of one worker never overlap.
#include "rt/trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "rt/test_model.h"

namespace ge::rt {
namespace {

using Floats = std::vector<float>;

const char* const kDouble =
    "for (int64_t i = begin * 16; i < end * 16; ++i)"
    " ((float*)b[1])[i] = 2 * ((const float*)b[0])[i];";
const TestModel kModel = {R"(plan {name="a \"quoted\" name" arena_bytes=4096}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[1024] bytes=4096}
    buffer 1 {name="t" kind=arena dtype=f32 dims=[1024] bytes=4096 offset=0 first=0 last=1}
    buffer 2 {name="y" kind=output dtype=f32 index=0 dims=[1024] bytes=4096}
    task 0 {kind=launch name="first" kernel=0 args=[0, 1] outs=[1] grid=64 cost=2000000}
    task 1 {kind=launch name="second" kernel=0 args=[1, 2] outs=[2] grid=64 cost=2000000}
    input {name="x" dtype=f32 dims=[1024] buffer=0}
    output {name="y" dtype=f32 dims=[1024] buffer=2})",
                          {kDouble}};

nlohmann::json TraceOf(int threads, int rounds) {
  const std::string path = TestFolder() + "/trace" + std::to_string(threads) + ".json";
  const auto model = kModel.Load(threads);
  setenv("GE_TRACE", path.c_str(), 1);
  std::string written = path;
  {
    auto run = NewRun(model);
    static int runs = 0;
    if (++runs > 1)
      written =
          TestFolder() + "/trace" + std::to_string(threads) + "." + std::to_string(runs) + ".json";
    Floats x(1024, 1.0f), y(1024);
    Tensor in[] = {On(x)}, out[] = {On(y)};
    for (int i = 0; i < rounds; ++i) EXPECT_EQ(run->Execute(in, out).message(), "");
  }
  unsetenv("GE_TRACE");
  return nlohmann::json::parse(ReadFile(written), nullptr, false);
}

TEST(TraceTest, SlicesCoverTheTasks) {
  for (const int threads : {1, 2}) {
    const nlohmann::json json = TraceOf(threads, 3);
    ASSERT_TRUE(json.is_object());
    std::map<std::string, int64_t> chunks;
    std::map<int, std::vector<std::pair<double, double>>> slices;
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] == "M") {
        if (event["name"] != "process_name") continue;
        EXPECT_EQ(event["args"]["name"], "a \"quoted\" name");
        continue;
      }
      EXPECT_EQ(event["ph"], "X");
      EXPECT_EQ(event["cat"], "kernel");
      EXPECT_EQ(event["args"]["estimated_us"], 2000.0);
      chunks[event["name"]] += event["args"]["chunks"].get<int64_t>();
      const double begin = event["ts"], duration = event["dur"];
      EXPECT_GE(duration, 0);
      slices[event["tid"]].emplace_back(begin, begin + duration);
    }
    EXPECT_EQ(chunks.size(), 2u);
    EXPECT_EQ(chunks["first"], 3 * 64);
    EXPECT_EQ(chunks["second"], 3 * 64);
    for (auto& [worker, list] : slices) {
      EXPECT_LT(worker, threads);
      std::sort(list.begin(), list.end());
      for (size_t i = 1; i < list.size(); ++i) EXPECT_GE(list[i].first, list[i - 1].second - 0.002);
    }
  }
}

TEST(TraceTest, NoFileIfNotAskedFor) {
  unsetenv("GE_TRACE");
  EXPECT_EQ(Trace::FromEnvironment(kModel.Contents().plan, 1), nullptr);
}

}  // namespace
}  // namespace ge::rt
