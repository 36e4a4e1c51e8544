// Two streams, events, callbacks, timing.
//   events MODEL.om EXPECTED.bin INPUT.bin
//
// Stream A copies the input in, stream B runs the model when A's event says so, A copies the result
// out when B's event says so. Then: what a call costs, and whether two streams overlap.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "common.h"

namespace {

using Clock = std::chrono::steady_clock;
double Us(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

double MedianUs(int n, const std::function<void()>& f) {
  std::vector<double> times;
  for (int i = 0; i < n; ++i) {
    const auto start = Clock::now();
    f();
    times.push_back(Us(Clock::now() - start));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Two functions on two streams that wait for each other, half a minute at most.
struct Meeting {
  std::atomic<int> begun{0}, met{0};
};
void Meet(void* data) {
  auto* meeting = static_cast<Meeting*>(data);
  ++meeting->begun;
  for (int ms = 0; ms < 30000 && meeting->begun < 2; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (meeting->begun == 2) ++meeting->met;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  StartDevice();
  aclrtStream a = nullptr, b = nullptr;
  CHECK_ACL(aclrtCreateStream(&a));
  CHECK_ACL(aclrtCreateStream(&b));
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  aclrtEvent copied = nullptr, computed = nullptr, start = nullptr, end = nullptr;
  for (aclrtEvent* e : {&copied, &computed, &start, &end}) CHECK_ACL(aclrtCreateEvent(e));
  {
    const Buffers buffers(desc);
    const std::vector<char> data = ReadFile(argv[3]);
    std::vector<float> result(aclmdlGetOutputSizeByIndex(desc, 0) / sizeof(float));
    CHECK_ACL(aclrtRecordEvent(start, a));
    CHECK_ACL(aclrtMemcpyAsync(buffers.InputMemory(0), aclmdlGetInputSizeByIndex(desc, 0),
                               data.data(), data.size(), ACL_MEMCPY_HOST_TO_DEVICE, a));
    CHECK_ACL(aclrtRecordEvent(copied, a));
    CHECK_ACL(aclrtStreamWaitEvent(b, copied));
    CHECK_ACL(aclmdlExecuteAsync(model, buffers.input, buffers.output, b));
    CHECK_ACL(aclrtRecordEvent(computed, b));
    CHECK_ACL(aclrtStreamWaitEvent(a, computed));
    void* out = aclGetDataBufferAddr(aclmdlGetDatasetBuffer(buffers.output, 0));
    CHECK_ACL(aclrtMemcpyAsync(result.data(), result.size() * sizeof(float), out,
                               result.size() * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST, a));
    CHECK_ACL(aclrtRecordEvent(end, a));
    CHECK_ACL(aclrtSynchronizeStream(a));
    Expect(result, argv[2], "result over two streams");
    float ms = -1;
    CHECK_ACL(aclrtEventElapsedTime(&ms, start, end));
    std::printf("copy in, run, copy out: %.3f ms\n", static_cast<double>(ms));
    if (ms < 0) return 1;

    const double sync =
        MedianUs(2000, [&] { aclmdlExecute(model, buffers.input, buffers.output); });
    const double async = MedianUs(2000, [&] {
      aclmdlExecuteAsync(model, buffers.input, buffers.output, b);
      aclrtSynchronizeStream(b);
    });
    std::printf(
        "aclmdlExecute %.2f us, aclmdlExecuteAsync with synchronisation %.2f us: %.2f us more\n",
        sync, async, async - sync);
  }
  // Overlap: each stream's host function sleeps; a callback that blocks one does not stop the
  // other.
  const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  const auto begin = Clock::now();
  CHECK_ACL(aclrtLaunchHostFunc(a, sleep, nullptr));
  CHECK_ACL(aclrtLaunchHostFunc(b, sleep, nullptr));
  CHECK_ACL(aclrtSynchronizeDevice());
  std::printf("two streams of 50 ms each: %.1f ms together\n", Us(Clock::now() - begin) / 1000);
  // The proof asks no clock: each function waits for the other to have begun.
  Meeting meeting;
  CHECK_ACL(aclrtLaunchHostFunc(a, Meet, &meeting));
  CHECK_ACL(aclrtLaunchHostFunc(b, Meet, &meeting));
  CHECK_ACL(aclrtSynchronizeDevice());
  if (meeting.met != 2) return 1;
  for (aclrtEvent e : {copied, computed, start, end}) CHECK_ACL(aclrtDestroyEvent(e));
  CHECK_ACL(aclmdlUnload(model));
  CHECK_ACL(aclmdlDestroyDesc(desc));
  CHECK_ACL(aclrtDestroyStream(a));
  CHECK_ACL(aclrtDestroyStream(b));
  EndDevice();
  return 0;
}
