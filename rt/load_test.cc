// Loading: what is refused and why; text kernels; damaged files; host attributes; placement.
#include <gmock/gmock.h>

#include <random>

#include "base/file_map.h"
#include "rt/cpu.h"
#include "rt/host_kernel.h"
#include "rt/placement.h"
#include "rt/test_model.h"

namespace ge::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

const char* const kPlan = R"(plan {arena_bytes=0}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[4] bytes=16}
    buffer 1 {name="w" kind=const dtype=f32 dims=[4] bytes=16 offset=0}
    buffer 2 {name="y" kind=output dtype=f32 index=0 dims=[4] bytes=16}
    task 0 {kind=launch name="k" kernel=0 args=[0, 1, 2] grid=4}
    input {name="x" dtype=f32 dims=[4] buffer=0}
    output {name="y" dtype=f32 dims=[4] buffer=2})";
const TestModel kMultiply = {kPlan,
                             {"for (int64_t i = begin; i < end; ++i) ((float*)b[2])[i] = "
                              "((float*)b[0])[i] * ((float*)b[1])[i];"},
                             {1, 2, 3, 4}};
const TestModel kSubtract = {kPlan,
                             {"for (int64_t i = begin; i < end; ++i) ((float*)b[2])[i] = "
                              "((float*)b[0])[i] - ((float*)b[1])[i];"},
                             {1, 2, 3, 4}};

Floats Result10(const std::shared_ptr<const Model>& model) {
  auto run = NewRun(model);
  Floats x(4, 10), y(4);
  Tensor in[] = {On(x)}, out[] = {On(y)};
  EXPECT_EQ(run->Execute(in, out).message(), "");
  return y;
}

std::string LoadMessage(const std::string& path) { return Model::Load(path).status().message(); }

TEST(LoadTest, SeveralModelsAtOnce) {
  const auto multiply = kMultiply.Load(), subtract = kSubtract.Load();
  EXPECT_THAT(Result10(multiply), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(Result10(subtract), ElementsAre(9, 8, 7, 6));
  EXPECT_THAT(Result10(kMultiply.Load()), ElementsAre(10, 20, 30, 40));
}

TEST(LoadTest, FromMemoryThatGoesAway) {
  std::shared_ptr<const Model> model;
  {
    std::string bytes = "x" + ReadFile(kMultiply.Write());  // misaligned, too
    auto loaded = Model::LoadFromMemory(bytes.data() + 1, static_cast<int64_t>(bytes.size()) - 1);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    model = *loaded;
    std::fill(bytes.begin(), bytes.end(), '?');
  }
  EXPECT_THAT(Result10(model), ElementsAre(10, 20, 30, 40));
  EXPECT_FALSE(Model::LoadFromMemory(nullptr, 3).ok());
}

TEST(LoadTest, RefusesWhatItCannotRun) {
  TestModel model = kMultiply;
  model.cpu_features = {"avx9000"};
  EXPECT_THAT(LoadMessage(model.Write()),
              HasSubstr("CPU features that this machine lacks: avx9000"));
  model = kMultiply;
  model.plan += "kernel {name=\"a\" hash=\"0\"} kernel {name=\"b\" hash=\"1\"}";
  EXPECT_THAT(LoadMessage(model.Write()), HasSubstr("it has 1 kernels, the plan has 2"));
  model = kMultiply;
  model.plan += "task {kind=host name=\"odd\" host=\"NoSuchKernel\"}";
  EXPECT_THAT(LoadMessage(model.Write()),
              HasSubstr("task odd: this runtime has no host kernel NoSuchKernel"));

  om::OmContents contents = kMultiply.Contents();
  const std::string path = TestFolder() + "/odd.om";
  contents.code = "not a shared object";
  ASSERT_TRUE(om::WriteOm(path, contents).ok());
  EXPECT_THAT(LoadMessage(path), HasSubstr("cannot load its code"));
  contents.code.clear();
  ASSERT_TRUE(om::WriteOm(path, contents).ok());
  EXPECT_THAT(LoadMessage(path), HasSubstr("kernel 0: has no code"));
  EXPECT_THAT(LoadMessage(TestFolder() + "/missing.om"), HasSubstr("missing.om: cannot open"));
}

TEST(LoadTest, TextKernels) {
  om::OmContents contents = kMultiply.Contents();
  contents.code.clear();
  contents.plan.kernels[0].text = "fill 42";
  const std::string path = TestFolder() + "/text.om";
  ASSERT_TRUE(om::WriteOm(path, contents).ok());
  EXPECT_THAT(LoadMessage(path), HasSubstr("is TileIR text"));

  LoadOptions options;
  options.text_kernel = [](const std::string& text) -> Result<LoadOptions::TextKernel> {
    const ge_kernel_fn fn = [](const ge_kernel_call* call, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        static_cast<float*>(call->buffers[2])[i] =
            static_cast<float>(*static_cast<const int*>(call->self));
      }
    };
    return LoadOptions::TextKernel{fn, std::make_shared<int>(std::stoi(text.substr(5)))};
  };
  auto model = Model::Load(path, options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(Result10(*model), ElementsAre(42, 42, 42, 42));
  options.text_kernel = [](const std::string&) -> Result<LoadOptions::TextKernel> {
    return Invalid("bad text");
  };
  EXPECT_THAT(Model::Load(path, options).status().message(), HasSubstr("kernel k0: bad text"));
}

// Damage never crashes: a file loads and runs, or is refused.
TEST(LoadTest, DamagedFiles) {
  const std::string bytes = ReadFile(kMultiply.Write());
  for (size_t length = 0; length < bytes.size(); length += 1 + length / 300) {
    ASSERT_FALSE(Model::LoadFromMemory(bytes.data(), static_cast<int64_t>(length)).ok()) << length;
  }
  std::mt19937 random(7);
  LoadOptions options;
  options.threads = 1;
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::string flipped = bytes;
    const size_t bit = random() % (flipped.size() * 8);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    auto model =
        Model::LoadFromMemory(flipped.data(), static_cast<int64_t>(flipped.size()), options);
    refused += !model.ok();
    if (model.ok()) Result10(*model);  // runs, whatever it computes
  }
  EXPECT_GT(refused, 300);
}

TEST(LoadTest, WeightsAreVerifiedOnRequest) {
  std::string bytes = ReadFile(kMultiply.Write());
  bytes.back() = static_cast<char>(bytes.back() ^ 0x40);
  const auto size = static_cast<int64_t>(bytes.size());
  EXPECT_TRUE(Model::LoadFromMemory(bytes.data(), size).ok());
  LoadOptions options;
  options.verify_weights = true;
  EXPECT_THAT(Model::LoadFromMemory(bytes.data(), size, options).status().message(),
              HasSubstr("checksum differs"));
  setenv("GE_VERIFY", "weights", 1);
  EXPECT_FALSE(Model::LoadFromMemory(bytes.data(), size).ok());
  unsetenv("GE_VERIFY");
}

TEST(CpuTest, Features) {
  EXPECT_FALSE(CpuHas("sse9"));
#if defined(__x86_64__)
  EXPECT_EQ(CpuHas("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(CpuHas("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(CpuHas("avx512_vnni"), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(CpuHas("avx512f"), __builtin_cpu_supports("avx512f") != 0);
#endif
  EXPECT_TRUE(CheckCpu({}).ok());
}

TEST(HostAttrsTest, ReadBack) {
  std::string text;
  const std::vector<int64_t> ints = {1, -2, std::numeric_limits<int64_t>::min()};
  const std::vector<double> floats = {0.1, -0.0, 1e300, -std::numeric_limits<double>::infinity()};
  const std::vector<std::string> strings = {"", "a,b\n=", "\xff"};
  AppendAttr(&text, "i", int64_t{-7});
  AppendAttr(&text, "f", 0.1);
  AppendAttr(&text, "s", std::string_view("line\nother"));
  AppendAttr(&text, "e", std::string_view(""));
  AppendAttr(&text, "is", std::span<const int64_t>(ints));
  AppendAttr(&text, "fs", std::span<const double>(floats));
  AppendAttr(&text, "ss", std::span<const std::string>(strings));
  AppendAttr(&text, "none", std::span<const int64_t>());
  const HostAttrs attrs(text);
  EXPECT_EQ(attrs.Int("i", 0), -7);
  EXPECT_EQ(attrs.Float("f", 0), 0.1);
  EXPECT_EQ(attrs.Str("s", ""), "line\nother");
  EXPECT_EQ(attrs.Str("e", "x"), "");
  EXPECT_EQ(attrs.Ints("is"), ints);
  EXPECT_EQ(attrs.Floats("fs"), floats);
  EXPECT_TRUE(std::signbit(attrs.Floats("fs")[1]));
  EXPECT_EQ(attrs.Strs("ss"), strings);
  EXPECT_TRUE(attrs.Has("none"));
  EXPECT_TRUE(attrs.Ints("none").empty());
  EXPECT_FALSE(attrs.Has("other"));
  EXPECT_EQ(attrs.Int("other", 5), 5);
  EXPECT_EQ(HostAttrs("g=f:0x1p-1\n").Float("g", 0), 0.5);
}

// Largest first, the two small ones meet the large ones from one side and leave no gap for 57-58.
TEST(PlacementTest, AnotherOrderReachesTheLowerBound) {
  std::vector<Placed> buffers = {{56, 63, 24576}, {57, 58, 159744}, {58, 63, 159744},
                                 {63, 70, 24576}, {64, 65, 159744}, {65, 70, 159744},
                                 {70, 71, 24576}};
  EXPECT_EQ(PlaceArena(&buffers), 344064);
}

TEST(PlacementTest, NoOverlapAndNearTheLowerBound) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<Placed> buffers(60);
    for (Placed& b : buffers) {
      b.first = static_cast<int32_t>(random() % 40);
      b.last = b.first + static_cast<int32_t>(random() % 6);
      b.bytes = static_cast<int64_t>(random() % 1000);
    }
    buffers[0].offset = 640;
    const int64_t height = PlaceArena(&buffers);
    EXPECT_EQ(buffers[0].offset, 640);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Placed& a = buffers[i];
      EXPECT_EQ(a.offset % 64, 0);
      EXPECT_LE(a.offset + a.bytes, height);
      for (size_t k = 0; k < i; ++k) {
        const Placed& b = buffers[k];
        const bool apart_in_time = a.last < b.first || b.last < a.first;
        EXPECT_TRUE(apart_in_time || a.offset + a.bytes <= b.offset ||
                    b.offset + b.bytes <= a.offset);
      }
    }
    int64_t bound = 640;
    for (int32_t t = 0; t < 46; ++t) {
      int64_t alive = 0;
      for (const Placed& b : buffers)
        alive += b.first <= t && t <= b.last ? (b.bytes + 63) / 64 * 64 : 0;
      bound = std::max(bound, alive);
    }
    EXPECT_LE(height, bound * 3 / 2 + 1664);
  }
}

}  // namespace
}  // namespace ge::rt
