// Several models, several threads: each thread sets the context and runs all models in turn. In a
// run of 20 seconds or more the memory of the second half must be that of the first.
//   threads THREADS SECONDS (MODEL.om EXPECTED.bin INPUT.bin)...
#include <unistd.h>

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

// Resident memory now.
long ResidentKb() {
  long total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || (argc - 3) % 3 != 0) return 2;
  const int threads = std::atoi(argv[1]);
  const double seconds = std::atof(argv[2]);
  StartDevice();
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
  const auto wait_until = [&](double fraction) {
    std::this_thread::sleep_until(end -
                                  std::chrono::duration_cast<std::chrono::nanoseconds>(
                                      std::chrono::duration<double>(seconds * (1 - fraction))));
    return ResidentKb();
  };
  const long start = wait_until(0.1), middle = wait_until(0.5), last = wait_until(0.98);
  for (std::thread& worker : workers) worker.join();
  std::printf(
      "%ld runs on %d threads; memory: %ld kB at the start, %ld kB in the middle, %ld kB at the "
      "end\n",
      runs.load(), threads, start, middle, last);
  if (seconds >= 20 && last > middle + middle / 20 + 1024) return 1;
  for (const Case& c : cases) {
    CHECK_ACL(aclmdlUnload(c.id));
    CHECK_ACL(aclmdlDestroyDesc(c.desc));
  }
  CHECK_ACL(aclrtDestroyContext(context));
  EndDevice();
  return 0;
}
