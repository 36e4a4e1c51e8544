// Classification, asynchronous: a pool of buffers, runs in a stream, results in callbacks that a
// thread of our own takes with aclrtProcessReport.
//   classify_async MODEL.om EXPECTED.bin INPUT.bin [RUNS]
#include <pthread.h>

#include <atomic>
#include <memory>
#include <thread>

#include "common.h"

namespace {

struct Job {
  const Buffers* buffers;
  const char* expected;
  std::atomic<int>* done;
};

void OnResult(void* data) {
  const Job* job = static_cast<Job*>(data);
  Expect(job->buffers->Output(0), job->expected, "asynchronous result");
  ++*job->done;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int runs = argc > 4 ? std::atoi(argv[4]) : 100;
  StartDevice();
  aclrtContext context = nullptr;
  CHECK_ACL(aclrtCreateContext(&context, 0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));

  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  std::thread reporter([&] {
    CHECK_ACL(aclrtSetCurrentContext(context));
    while (!stop) aclrtProcessReport(100);  // a timeout is no error here
  });
  const auto reporter_id = static_cast<uint64_t>(reporter.native_handle());
  CHECK_ACL(aclrtSubscribeReport(reporter_id, stream));
  {
    std::vector<std::unique_ptr<Buffers>> pool;
    std::vector<Job> jobs;
    for (int i = 0; i < 8; ++i) {
      pool.push_back(std::make_unique<Buffers>(desc));
      pool.back()->SetInput(0, ReadFile(argv[3]));
      jobs.push_back({pool.back().get(), argv[2], &done});
    }
    for (int i = 0; i < runs; ++i) {
      Buffers& buffers = *pool[static_cast<size_t>(i) % pool.size()];
      CHECK_ACL(aclmdlExecuteAsync(model, buffers.input, buffers.output, stream));
      // It blocks: the next run into the same buffers comes after the result was read.
      CHECK_ACL(aclrtLaunchCallback(OnResult, &jobs[static_cast<size_t>(i) % jobs.size()],
                                    ACL_CALLBACK_BLOCK, stream));
    }
    CHECK_ACL(aclrtSynchronizeStream(stream));
    std::printf("%d of %d results\n", done.load(), runs);
    if (done != runs) return 1;
  }
  CHECK_ACL(aclrtUnSubscribeReport(reporter_id, stream));
  stop = true;
  reporter.join();
  CHECK_ACL(aclmdlUnload(model));
  CHECK_ACL(aclmdlDestroyDesc(desc));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtDestroyContext(context));
  EndDevice();
  return 0;
}
