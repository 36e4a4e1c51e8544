// The code cache, equal kernels, damaged entries, missing compilers, sanitized kernels.
#include <filesystem>
#include <thread>

#include "emit/process.h"
#include "emit/run_code_test.h"
#include "tile/builder.h"

namespace ge::emit {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::LoopKind;

void Scale(Kernel& k, ExprArena& arena, const std::string& name, double by) {
  k.name = name;
  Builder b(k, arena);
  int x = b.Arg("in_" + name, DType::kF32, 40, false), y = b.Arg("out", DType::kF32, 40, true);
  b.For("i", 40, LoopKind::kVector, [&](Expr i) { b.Store(y, i, b.Load(x, i) * b.F(by)); });
}

float FirstOf(ge_kernel_fn fn) {
  std::vector<float> x(40, 3.0f);
  return CallKernel(fn, {TestBuffer::Of(x), TestBuffer::Of(x)}, {}, 1, 0).back().As<float>()[0];
}

class CompileTest : public testing::Test {
 protected:
  CodeObject Compile(const std::vector<const Kernel*>& kernels) {
    options_.cache_dir = folder_.File("cache");
    Result<CodeObject> code = CompileKernels(kernels, HostSoc(), options_);
    EXPECT_TRUE(code.ok()) << code.status().message();
    return code.ok() ? *code : CodeObject{};
  }
  ScratchFolder folder_;
  CompileOptions options_;
  ExprArena arena_;
};

TEST_F(CompileTest, EqualKernelsShareCodeAndTheCacheKeepsIt) {
  Kernel a, b, c;
  Scale(a, arena_, "a", 2);
  Scale(b, arena_, "b", 2);
  Scale(c, arena_, "c", 5);
  CodeObject first = Compile({&a, &b, &c});
  EXPECT_EQ(first.compiled, 2);
  EXPECT_EQ(first.index[0], first.index[1]);
  CodeObject second = Compile({&c, &a});
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.cached, 2);
  LoadedCode loaded(second.bytes);
  EXPECT_EQ(loaded.count(), 2u);
  EXPECT_EQ(FirstOf(loaded.kernel(second.index[0])), 15);
  EXPECT_EQ(FirstOf(loaded.kernel(second.index[1])), 6);
}

TEST(ScratchFolder, RemovesWhatKilledProcessesLeft) {
  namespace fs = std::filesystem;
  ScratchFolder outer;
  const std::string abandoned = outer.File("ge-cc-abandoned"), foreign = outer.File("other");
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before != nullptr ? before : "";
  setenv("TMPDIR", outer.File("").c_str(), 1);
  {
    const ScratchFolder alive;
    fs::create_directory(abandoned);
    fs::create_directory(foreign);
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(alive.File(""), old);
    const ScratchFolder next;
    EXPECT_TRUE(fs::exists(abandoned));  // young
    fs::last_write_time(abandoned, old);
    fs::last_write_time(foreign, old);
    const ScratchFolder last;
    EXPECT_FALSE(fs::exists(abandoned));
    EXPECT_TRUE(fs::exists(foreign));
    EXPECT_TRUE(fs::exists(alive.File("")));
  }
  before != nullptr ? setenv("TMPDIR", saved.c_str(), 1) : unsetenv("TMPDIR");
}

TEST_F(CompileTest, OverlappingBatchesLink) {
  Kernel a, b, c;
  Scale(a, arena_, "a", 2);
  Scale(b, arena_, "b", 3);
  Scale(c, arena_, "c", 5);
  options_.jobs = 1;
  Compile({&a, &b});
  // b again in another batch, as if another process had not seen the first: its entry is removed.
  for (const auto& entry : std::filesystem::directory_iterator(folder_.File("cache"))) {
    if (entry.path().stem() == KernelHash(b, HostSoc(), FindCompiler()->id))
      std::filesystem::remove(entry.path());
  }
  EXPECT_EQ(Compile({&b, &c}).compiled, 2);
  CodeObject all = Compile({&a, &b, &c});
  EXPECT_EQ(all.compiled, 0);
  LoadedCode loaded(all.bytes);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(FirstOf(loaded.kernel(all.index[static_cast<size_t>(i)])), 3 * (i == 0   ? 2
                                                                              : i == 1 ? 3
                                                                                       : 5));
}

TEST_F(CompileTest, DamagedEntriesAreCompiledAgain) {
  Kernel a;
  Scale(a, arena_, "a", 2);
  Compile({&a});
  for (const auto& entry : std::filesystem::directory_iterator(folder_.File("cache"))) {
    ASSERT_TRUE(WriteFileAtomically(entry.path(), "damaged").ok());
  }
  CodeObject again = Compile({&a});
  EXPECT_EQ(again.compiled, 1);
  LoadedCode loaded(again.bytes);
  EXPECT_EQ(FirstOf(loaded.kernel(0)), 6);
}

TEST_F(CompileTest, SeveralThreadsOneCache) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      ExprArena arena;
      Kernel a, b;
      Scale(a, arena, "a", 7);
      Scale(b, arena, "b", 8 + t % 2);
      CompileOptions options;
      options.cache_dir = folder_.File("cache");
      const Kernel* kernels[] = {&a, &b};
      Result<CodeObject> code = CompileKernels(kernels, HostSoc(), options);
      if (code.ok())
        results[static_cast<size_t>(t)] = FirstOf(LoadedCode(code->bytes).kernel(code->index[1]));
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(results, (std::vector<float>{24, 27, 24, 27}));
}

TEST(Compile, NoCompilerIsUnavailable) {
  Result<CompilerSpec> none = FindCompiler("no-such-compiler");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kUnavailable);
  EXPECT_NE(none.status().message().find("no-such-compiler"), std::string::npos);
}

TEST_F(CompileTest, FailureNamesTheKernel) {
  Kernel a;
  Scale(a, arena_, "broken", 2);
  options_.compiler = {"/bin/false", "false 1.0", false};
  options_.cache_dir = "off";
  const Kernel* kernels[] = {&a};
  Result<CodeObject> code = CompileKernels(kernels, HostSoc(), options_);
  ASSERT_FALSE(code.ok());
  EXPECT_NE(code.status().message().find("broken"), std::string::npos);
}

// Undefined behaviour in generated code would trap.
TEST_F(CompileTest, SanitizedKernelRuns) {
  Kernel a;
  Scale(a, arena_, "a", 4);
  options_.sanitize = "undefined";
  CodeObject code = Compile({&a});
  LoadedCode loaded(code.bytes);
  EXPECT_EQ(FirstOf(loaded.kernel(0)), 12);
}

TEST_F(CompileTest, KeepWritesReadableC) {
  Kernel a;
  Scale(a, arena_, "my kernel", 4);
  setenv("GE_KEEP", folder_.File("keep").c_str(), 1);
  options_.cache_dir = "off";
  const Kernel* kernels[] = {&a};
  ASSERT_TRUE(CompileKernels(kernels, HostSoc(), options_).ok());
  unsetenv("GE_KEEP");
  int sources = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.File("keep"))) {
    if (entry.path().extension() != ".c") continue;
    ++sources;
    std::string text = ReadWholeFile(entry.path()).value();
    EXPECT_EQ(entry.path().filename().string().substr(0, 9), "my_kernel");
    EXPECT_NE(text.find("v_ld_f32"), std::string::npos);
  }
  EXPECT_EQ(sources, 1);
}

}  // namespace
}  // namespace ge::emit
