// Several models, several threads: each thread sets the context and runs all models in turn.
//   threads THREADS SECONDS (MODEL.om EXPECTED.bin INPUT.bin)...
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "common.h"

namespace {

struct Case {
  uint32_t id = 0;
  aclmdlDesc* desc = nullptr;
  const char *expected = nullptr, *input = nullptr;
};

long PeakKb() {
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || (argc - 3) % 3 != 0) return 2;
  const int threads = std::atoi(argv[1]);
  const double seconds = std::atof(argv[2]);
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  CHECK_ACL(aclrtCreateContext(&context, 0));
  std::vector<Case> cases;
  for (int i = 3; i + 2 < argc; i += 3) {
    Case c;
    CHECK_ACL(aclmdlLoadFromFile(argv[i], &c.id));
    c.desc = aclmdlCreateDesc();
    CHECK_ACL(aclmdlGetDesc(c.desc, c.id));
    c.expected = argv[i + 1];
    c.input = argv[i + 2];
    cases.push_back(c);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::atomic<long> runs{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      CHECK_ACL(aclrtSetCurrentContext(context));
      aclrtStream stream = nullptr;
      CHECK_ACL(aclrtCreateStream(&stream));
      do {
        for (const Case& c : cases) {
          const Buffers buffers(c.desc);
          buffers.SetInput(0, ReadFile(c.input));
          if (t % 2 == 0) {
            CHECK_ACL(aclmdlExecute(c.id, buffers.input, buffers.output));
          } else {
            CHECK_ACL(aclmdlExecuteAsync(c.id, buffers.input, buffers.output, stream));
            CHECK_ACL(aclrtSynchronizeStream(stream));
          }
          Expect(buffers.Output(0), c.expected, c.input);
          ++runs;
        }
      } while (std::chrono::steady_clock::now() < end);
      CHECK_ACL(aclrtDestroyStream(stream));
    });
  }
  long early = 0;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (early == 0 && runs > 20L * threads) early = PeakKb();
  }
  for (std::thread& worker : workers) worker.join();
  std::printf("%ld runs, peak memory %ld kB early, %ld kB at the end\n", runs.load(), early,
              PeakKb());
  for (const Case& c : cases) {
    CHECK_ACL(aclmdlUnload(c.id));
    CHECK_ACL(aclmdlDestroyDesc(c.desc));
  }
  CHECK_ACL(aclrtDestroyContext(context));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  std::printf("passed\n");
  return 0;
}
