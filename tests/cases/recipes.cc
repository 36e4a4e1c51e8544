// Faults that show only over many runs (docs/cases.md, rows B099, B101 and B104): memory that grows
// with every new shape, threads that disturb each other, sessions that wait for each other.
//
//   case_recipes DATA_FOLDER [--throughput]      the last line is "N passed, N failed"
//
// With --throughput: two sessions against one. Exit code 77: there is one CPU.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "driver/compile.h"
#include "tools/session.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
constexpr uint8_t kF32 = 1;
constexpr int kThreads = 8, kRunsPerThread = 500, kShapes = 500, kRuns = 2000;

Result<std::shared_ptr<const rt::Model>> Build(const fs::path& data, const std::string& name,
                                               const fs::path& folder) {
  CompileRequest request;
  request.model = (data / name / "model.onnx").string();
  request.output = (folder / (name + ".om")).string();
  request.cache_dir = (folder / "cache").string();
  GE_TRY(Compile(request).status());
  return LoadModel(request.output, 1);
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

// Runs in 0.4 seconds by each of `count` threads with a session of its own.
Result<int64_t> Throughput(std::shared_ptr<const rt::Model> model, int count) {
  std::vector<int64_t> done(static_cast<size_t>(count));
  std::vector<Status> status(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      const auto index = static_cast<size_t>(t);
      auto run = rt::Run::Create(model);
      if (!run.ok()) {
        status[index] = run.status();
        return;
      }
      const Feed feed({1, 3, 64, 64}, t);
      std::vector<float> result;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
      while (status[index].ok() && std::chrono::steady_clock::now() < end) {
        status[index] = RunOn(**run, feed, &result);
        ++done[index];
      }
    });
  for (std::thread& t : threads) t.join();
  int64_t all = 0;
  for (size_t t = 0; t < done.size(); ++t) {
    GE_TRY(std::move(status[t]));
    all += done[t];
  }
  return all;
}

// The same by two processes, which share nothing: what the machine gives.
Result<int64_t> ByProcesses(const std::shared_ptr<const rt::Model>& model) {
  int64_t all = 0;
  int fds[2];
  if (pipe(fds) != 0) return Error(Code::kResourceExhausted, "no pipe");
  for (int p = 0; p < 2; ++p) {
    if (fork() != 0) continue;
    const Result<int64_t> done = Throughput(model, 1);
    const int64_t count = done.ok() ? *done : 0;
    _exit(write(fds[1], &count, sizeof count) == sizeof count ? 0 : 1);
  }
  close(fds[1]);
  for (int64_t count = 0; read(fds[0], &count, sizeof count) == sizeof count;) all += count;
  close(fds[0]);
  while (wait(nullptr) > 0) {
  }
  return all;
}

// Two threads of one process do nearly twice the runs of one or, where the CPUs share a core or
// are busy, what two processes do.
Status SessionsDoNotWait(const fs::path& data, const fs::path& folder) {
  GE_ASSIGN(auto model, Build(data, "dynamic_conv_reshape", folder));
  double most = 0, of_processes = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    GE_ASSIGN(const int64_t one, Throughput(model, 1));
    GE_ASSIGN(const int64_t two, Throughput(model, 2));
    GE_ASSIGN(const int64_t apart, ByProcesses(model));
    most =
        std::max(most, static_cast<double>(two) / static_cast<double>(std::max<int64_t>(one, 1)));
    of_processes = std::max(
        of_processes, static_cast<double>(two) / static_cast<double>(std::max<int64_t>(apart, 1)));
    if (most >= 1.7 || of_processes >= 0.9) break;
  }
  std::printf("two sessions: %.2f times the runs of one, %.2f times those of two processes\n", most,
              of_processes);
  if (most >= 1.7 || of_processes >= 0.9) return {};
  return Invalid(fmt::format("two sessions do {:.2f} times the runs of one", most));
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: case_recipes DATA_FOLDER [--throughput]\n");
    return 2;
  }
  if (argc > 2 && std::thread::hardware_concurrency() < 2) {
    std::printf("skipped: there is one CPU\n");
    return 77;
  }
  const std::filesystem::path data = argv[1], folder = std::filesystem::temp_directory_path() /
                                                       fmt::format("ge_recipes_{}", getpid());
  std::filesystem::create_directories(folder);
  int passed = 0, failed = 0;
  const auto check = [&](const char* name, const ge::Status& status) {
    std::printf("%s: %s\n", name, status.ok() ? "passed" : status.message().c_str());
    ++(status.ok() ? passed : failed);
  };
  if (argc > 2) {
    check("B104 sessions do not wait for each other", ge::SessionsDoNotWait(data, folder));
  } else {
    check("B099 memory is flat over many shapes", ge::MemoryIsFlat(data, folder));
    check("B101 threads give the same bits", ge::ThreadsAgree(data, folder));
  }
  std::filesystem::remove_all(folder);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
