// Faults that show only over many runs (docs/cases.md, rows B099, B101 and B104): memory that grows
// with every new shape, threads that disturb each other, sessions that wait for each other.
//
//   case_recipes DATA_FOLDER      the last line is "N passed, N failed"
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include "driver/compile.h"
#include "tools/session.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
constexpr uint8_t kF32 = 1;
constexpr int kThreads = 8, kRunsPerThread = 500, kShapes = 500, kRuns = 2000;

Result<std::shared_ptr<const rt::Model>> Build(const fs::path& data, const std::string& name,
                                               const fs::path& folder, int threads = 1) {
  CompileRequest request;
  request.model = (data / name / "model.onnx").string();
  request.output = (folder / (name + ".om")).string();
  request.cache_dir = (folder / "cache").string();
  GE_TRY(Compile(request).status());
  return LoadModel(request.output, threads);
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// An input whose values say who made it.
struct Feed {
  std::vector<float> values;
  rt::Tensor tensor;
  Feed(std::vector<int64_t> dims, int seed) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(static_cast<float>((i * 7 + seed * 13) % 101) / 50 - 1);
    tensor = {kF32, std::move(dims), values.data(), n * 4};
  }
};

Status RunOn(rt::Run& run, const Feed& feed, std::vector<float>* result) {
  rt::Tensor out;
  GE_TRY(run.Execute({&feed.tensor, 1}, {&out, 1}));
  int64_t n = 1;
  for (int64_t d : out.dims) n *= d;
  result->resize(static_cast<size_t>(n));
  std::memcpy(result->data(), out.data, static_cast<size_t>(n) * 4);
  return {};
}

// 2,000 runs over 500 shapes, the largest first: memory is then enough for all.
Status MemoryIsFlat(const fs::path& data, const fs::path& folder) {
  GE_ASSIGN(auto model, Build(data, "dynamic_conv_reshape", folder));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<float> result;
  int64_t after_first = 0, most = 0;
  for (int i = 0; i < kRuns; ++i) {
    const int shape = i % kShapes;
    const Feed feed({1, 3, 160 - 2 * (shape / 10), 160 - 3 * (shape % 10)}, shape);
    GE_TRY(RunOn(*run, feed, &result));
    if (i == 20) after_first = ResidentBytes();  // the allocator has settled
    if (i % 100 == 99) most = std::max(most, ResidentBytes());
  }
  if (most > after_first + (4 << 20))
    return Invalid(fmt::format("{} KB resident after 20 runs, {} KB in the course of {}",
                               after_first / 1024, most / 1024, kRuns));
  return {};
}

// Many threads, each with a Run and inputs of its own, give the bits that one thread gives.
Status ThreadsAgree(const fs::path& data, const fs::path& folder) {
  GE_ASSIGN(auto gru, Build(data, "gru_last_state_only", folder));
  GE_ASSIGN(auto conv, Build(data, "dynamic_conv_reshape", folder));
  const auto feeds_of = [](int seed) {
    std::vector<Feed> feeds;
    feeds.emplace_back(std::vector<int64_t>{3, 2, 2}, seed);
    feeds.emplace_back(std::vector<int64_t>{1 + seed % 3, 3, 5 + seed % 7, 9 + seed % 4}, seed);
    return feeds;
  };
  std::vector<std::vector<float>> want[2];
  for (int m = 0; m < 2; ++m) {
    GE_ASSIGN(auto run, rt::Run::Create(m == 0 ? gru : conv));
    for (int seed = 0; seed < kRunsPerThread; ++seed)
      GE_TRY(RunOn(*run, feeds_of(seed)[static_cast<size_t>(m)], &want[m].emplace_back()));
  }
  std::vector<Status> status(kThreads);
  const auto work = [&](int t) -> Status {
    GE_ASSIGN(auto first, rt::Run::Create(gru));
    GE_ASSIGN(auto second, rt::Run::Create(conv));
    std::vector<float> got;
    for (int i = 0; i < kRunsPerThread; ++i) {
      const int seed = (i + t * 61) % kRunsPerThread;
      const std::vector<Feed> feeds = feeds_of(seed);
      for (size_t m = 0; m < 2; ++m) {
        GE_TRY(RunOn(m == 0 ? *first : *second, feeds[m], &got));
        const std::vector<float>& right = want[m][static_cast<size_t>(seed)];
        if (got.size() != right.size() ||
            std::memcmp(got.data(), right.data(), got.size() * 4) != 0)
          return Invalid(fmt::format("thread {}, run {}: other bits than alone", t, i));
      }
    }
    return {};
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { status[static_cast<size_t>(t)] = work(t); });
  for (std::thread& t : threads) t.join();
  for (Status& s : status) GE_TRY(std::move(s));
  return {};
}

// A session that stops in mid-run, before its first task, holds up no other: of one model and its
// threads, another does all its runs meanwhile.
Status SessionsDoNotWait(const fs::path& data, const fs::path& folder, int threads) {
  GE_ASSIGN(auto model, Build(data, "dynamic_conv_reshape", folder, threads));
  GE_ASSIGN(auto first, rt::Run::Create(model));
  GE_ASSIGN(auto second, rt::Run::Create(model));
  const Feed feed({1, 3, 64, 64}, 1);
  std::vector<float> alone, beside;
  std::promise<void> stopped, others_done;
  bool once = false, held_up = false;
  first->Watch([&](size_t, bool) {
    if (std::exchange(once, true)) return;
    stopped.set_value();
    held_up =
        others_done.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::timeout;
  });
  Status of_first;
  std::thread session([&] { of_first = RunOn(*first, feed, &alone); });
  stopped.get_future().wait();
  Status of_second;
  for (int i = 0; i < 100 && of_second.ok(); ++i) of_second = RunOn(*second, feed, &beside);
  others_done.set_value();
  session.join();
  GE_TRY(std::move(of_first));
  GE_TRY(std::move(of_second));
  if (held_up) return Invalid("a session waits for one that has stopped in mid-run");
  if (alone != beside) return Invalid("two sessions give different results");
  return {};
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    const bool asked = argc == 2 && std::string_view(argv[1]) == "--help";
    std::fprintf(asked ? stdout : stderr, "usage: case_recipes DATA_FOLDER\n");
    return asked ? 0 : 2;
  }
  const std::filesystem::path data = argv[1], folder = std::filesystem::temp_directory_path() /
                                                       fmt::format("ge_recipes_{}", getpid());
  std::filesystem::create_directories(folder);
  int passed = 0, failed = 0;
  const auto check = [&](const char* name, const ge::Status& status) {
    std::printf("%s: %s\n", name, status.ok() ? "passed" : status.message().c_str());
    ++(status.ok() ? passed : failed);
  };
  check("B099 memory is flat over many shapes", ge::MemoryIsFlat(data, folder));
  check("B101 threads give the same bits", ge::ThreadsAgree(data, folder));
  for (const int threads : {1, 2})
    check("B104 sessions do not wait for each other", ge::SessionsDoNotWait(data, folder, threads));
  std::filesystem::remove_all(folder);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
