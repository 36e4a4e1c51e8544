// Spilled values: they come back as they went, nothing is left behind, and what the system refuses
// is said in one sentence.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "rt/state.h"
#include "rt/test_model.h"

namespace ge::rt {
namespace {

using ::testing::HasSubstr;

// a = x + 1 waits in the backing store while b = x * 2 has its bytes; y = a + b.
constexpr const char* kPlan = R"(plan {arena_bytes=192}
  buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[16] bytes=64}
  buffer 1 {name="a" kind=arena dtype=f32 dims=[16] bytes=64 offset=0 first=0 last=1}
  buffer 2 {name="b" kind=arena dtype=f32 dims=[16] bytes=64 offset=0 first=2 last=4}
  buffer 3 {name="a.spilled" kind=store dtype=f32 dims=[16] bytes=64 offset=4096 first=1 last=3}
  buffer 4 {name="a.fetched" kind=arena dtype=f32 dims=[16] bytes=64 offset=64 first=3 last=4}
  buffer 5 {name="y" kind=output dtype=f32 index=0 dims=[16] bytes=64}
  task 0 {kind=launch name="a" kernel=0 args=[0, 1] outs=[1] grid=1}
  task 1 {kind=spill name="a" args=[1] outs=[3]}
  task 2 {kind=launch name="b" kernel=1 args=[0, 2] outs=[2] grid=1}
  task 3 {kind=fetch name="a" args=[3] outs=[4]}
  task 4 {kind=launch name="y" kernel=2 args=[4, 2, 5] outs=[5] grid=1}
  input {name="x" dtype=f32 dims=[16] buffer=0}
  output {name="y" dtype=f32 dims=[16] buffer=5})";

const TestModel kSpilled = {
    kPlan,
    {"for (int i = 0; i < 16; ++i) ((float*)b[1])[i] = ((float*)b[0])[i] + 1;",
     "for (int i = 0; i < 16; ++i) ((float*)b[1])[i] = ((float*)b[0])[i] * 2;",
     "for (int i = 0; i < 16; ++i) ((float*)b[2])[i] = ((float*)b[0])[i] + ((float*)b[1])[i];"}};

// TMPDIR for the time of a test.
class Folder {
 public:
  explicit Folder(const std::string& path) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", path.c_str(), 1);
  }
  ~Folder() {
    if (before_.empty())
      unsetenv("TMPDIR");
    else
      setenv("TMPDIR", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

TEST(StoreTest, ValuesComeBack) {
  const std::string folder = TestFolder() + "/store";
  std::filesystem::create_directories(folder);
  const Folder here(folder);
  const auto model = kSpilled.Load(2);
  auto one = NewRun(model), other = NewRun(model);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  for (int round = 0; round < 20; ++round) {
    for (auto* run : {one.get(), other.get()}) {
      std::vector<float> x(16), y(16);
      for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(i * 3 + round);
      const std::vector<Tensor> in = {On(x)};
      std::vector<Tensor> out = {On(y)};
      const Status status = run->Execute(in, out);
      ASSERT_TRUE(status.ok()) << status.message();
      for (int i = 0; i < 16; ++i) ASSERT_EQ(y[i], x[i] + 1 + x[i] * 2);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(StoreTest, AFolderThatIsNotThere) {
  const Folder here(TestFolder() + "/none");
  const auto run = Run::Create(kSpilled.Load());
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.status().message(), HasSubstr("backing store for spilled values: cannot make a "
                                                "file in " +
                                                TestFolder() + "/none"));
}

// The limit on the size of files for the time of a test; its signal would end the process.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(StoreTest, NoSpaceWhenTheRunIsMade) {
  const Folder here(TestFolder());
  const auto model = kSpilled.Load();
  const FileLimit limit(4096);
  const auto run = Run::Create(model);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.status().message(), HasSubstr("backing store for spilled values: no space in"));
}

TEST(StoreTest, NoSpaceInTheMiddle) {
  const Folder here(TestFolder());
  const auto run = NewRun(kSpilled.Load());
  std::vector<float> x(16), y(16);
  const std::vector<Tensor> in = {On(x)};
  std::vector<Tensor> out = {On(y)};
  {
    const FileLimit limit(4096);
    const Status status = run->Execute(in, out);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr("backing store for spilled values: cannot write in"));
  }
  EXPECT_TRUE(run->Execute(in, out).ok());
}

}  // namespace
}  // namespace ge::rt
