// What AscendCL promises, call by call: order of life, codes of misuse, streams, events, callbacks,
// memory. GE_ACL_MODEL names a model x[1,3,32,32] -> y[1,10] for the tests that need one.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "tests/acl/device_test.h"

namespace {

using namespace std::chrono_literals;

class Acl : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStreamForce(stream_), ACL_SUCCESS);
    DeviceTest::TearDown();
  }
  aclrtStream stream_ = nullptr;
};

TEST(AclLife, InitAndFinalizeOnce) {
  EXPECT_EQ(aclFinalize() == ACL_SUCCESS, false);
  EXPECT_EQ(aclInit(""), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_NE(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclInit("/nowhere/acl.json"), ACL_ERROR_INVALID_FILE);
}

TEST(AclLife, NothingWithoutContext) {
  std::thread([] {
    void* p = nullptr;
    EXPECT_EQ(aclrtMalloc(&p, 16, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
    aclrtStream s = nullptr;
    EXPECT_EQ(aclrtCreateStream(&s), ACL_ERROR_RT_CONTEXT_NULL);
    aclrtContext c = nullptr;
    EXPECT_EQ(aclrtGetCurrentContext(&c), ACL_ERROR_RT_CONTEXT_NULL);
    uint32_t id = 0;
    EXPECT_EQ(aclmdlLoadFromFile("x.om", &id), static_cast<aclError>(ACL_ERROR_GE_EXEC_NOT_INIT));
  }).join();
}

TEST_F(Acl, DevicesAndContexts) {
  EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtSetDevice(1000), ACL_ERROR_RT_INVALID_DEVICEID);
  aclrtContext own = nullptr, made = nullptr, current = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&own), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
  EXPECT_EQ(current, made);
  EXPECT_EQ(aclrtDestroyContext(own), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(made), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSetCurrentContext(made), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtSetCurrentContext(own), ACL_SUCCESS);
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);
}

TEST_F(Acl, ContextTakesItsStreams) {
  aclrtContext own = nullptr, made = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&own), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
  aclrtStream s = nullptr;
  ASSERT_EQ(aclrtCreateStream(&s), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(s), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSetCurrentContext(own), ACL_SUCCESS);
}

TEST_F(Acl, Memory) {
  void* p = nullptr;
  EXPECT_EQ(aclrtMalloc(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMalloc(&p, SIZE_MAX / 2, ACL_MEM_MALLOC_HUGE_FIRST),
            ACL_ERROR_RT_MEMORY_ALLOCATION);
  ASSERT_EQ(aclrtMalloc(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  char host[256] = "text";
  EXPECT_EQ(aclrtMemcpy(p, 100, host, 5, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(p, 4, host, 5, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(p, 1000, host, 200, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpy(host, 5, nullptr, 5, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(host, 5, p, 5, static_cast<aclrtMemcpyKind>(77)), ACL_ERROR_INVALID_PARAM);
  char back[8] = {};
  EXPECT_EQ(aclrtMemcpy(back, 8, p, 5, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_STREQ(back, "text");
  EXPECT_EQ(aclrtMemset(p, 100, 7, 100), ACL_SUCCESS);
  EXPECT_EQ(static_cast<char*>(p)[99], 7);
  EXPECT_EQ(aclrtFreeHost(p), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(static_cast<char*>(p) + 8), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpy(back, 8, p, 5, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(Acl, BlocksDoNotOverlap) {
  std::vector<char*> blocks;
  for (int i = 0; i < 50; ++i) {
    void* p = nullptr;
    ASSERT_EQ(aclrtMalloc(&p, 1000, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemset(p, 1000, i, 1000), ACL_SUCCESS);
    blocks.push_back(static_cast<char*>(p));
  }
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 1000; k += 37) ASSERT_EQ(blocks[static_cast<size_t>(i)][k], i);
    ASSERT_EQ(aclrtFree(blocks[static_cast<size_t>(i)]), ACL_SUCCESS);
  }
}

TEST_F(Acl, MemoryIsKeptForWorkInFlight) {
  void* p = nullptr;
  ASSERT_EQ(aclrtMalloc(&p, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  std::vector<char> host(1 << 20, 3);
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_, [](void*) { std::this_thread::sleep_for(20ms); }, nullptr),
            ACL_SUCCESS);
  ASSERT_EQ(
      aclrtMemcpyAsync(p, 1 << 20, host.data(), host.size(), ACL_MEMCPY_HOST_TO_DEVICE, stream_),
      ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(Acl, StreamsRunInOrder) {
  std::vector<int> seen;
  struct Item {
    std::vector<int>* seen;
    int value;
  };
  std::vector<Item> items;
  for (int i = 0; i < 100; ++i) items.push_back({&seen, i});
  for (Item& item : items)
    ASSERT_EQ(aclrtLaunchHostFunc(
                  stream_,
                  [](void* p) {
                    auto* i = static_cast<Item*>(p);
                    i->seen->push_back(i->value);
                  },
                  &item),
              ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST_F(Acl, StreamTimesOutAndAborts) {
  aclrtEvent never = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&never), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(stream_, never), ACL_SUCCESS);
  aclrtEventWaitStatus waiting = ACL_EVENT_WAIT_STATUS_COMPLETE;
  EXPECT_EQ(aclrtQueryEventWaitStatus(never, &waiting), ACL_SUCCESS);
  EXPECT_EQ(waiting, ACL_EVENT_WAIT_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(aclrtStreamAbort(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(never), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(never), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(Acl, EventsOrderStreams) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  aclrtEvent event = nullptr, end = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&end), ACL_SUCCESS);
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  EXPECT_EQ(aclrtQueryEventStatus(event, &recorded), ACL_SUCCESS);
  EXPECT_EQ(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_PARAM_INVALID);
  float ms = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event, end), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  static std::atomic<int> step{0};
  step = 0;
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_,
                [](void*) {
                  std::this_thread::sleep_for(30ms);
                  step = 1;
                },
                nullptr),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(other, event), ACL_SUCCESS);
  static std::atomic<int> seen{-1};
  ASSERT_EQ(aclrtLaunchHostFunc(other, [](void*) { seen = step.load(); }, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(end, other), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(end), ACL_SUCCESS);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event, end), ACL_SUCCESS);
  EXPECT_GE(ms, 0.0f);
  EXPECT_EQ(aclrtQueryEventStatus(event, &recorded), ACL_SUCCESS);
  EXPECT_EQ(recorded, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(aclrtResetEvent(event, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtQueryEventStatus(event, &recorded), ACL_SUCCESS);
  EXPECT_EQ(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(end), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
}

TEST_F(Acl, NotifiesAreOneBit) {
  aclrtNotify notify = nullptr;
  ASSERT_EQ(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordNotify(notify, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, stream_, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, stream_, 10), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordNotify(notify, stream_), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(Acl, ValuesInMemory) {
  void* p = nullptr;
  ASSERT_EQ(aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemset(p, 64, 0, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtValueWrite(static_cast<char*>(p) + 4, 1, 0, stream_), ACL_ERROR_RT_ADDR_UNALIGNED);
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  ASSERT_EQ(aclrtValueWait(p, 5, ACL_STREAM_WAIT_VALUE_EQ, other), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  ASSERT_EQ(aclrtValueWrite(p, 5, 0, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
}

TEST_F(Acl, CallbacksGoToTheirThread) {
  static std::atomic<int> calls{0};
  static std::atomic<uint64_t> where{0};
  calls = 0;
  const auto count = [](void*) {
    ++calls;
    where = static_cast<uint64_t>(pthread_self());
  };
  EXPECT_EQ(aclrtLaunchCallback(count, nullptr, ACL_CALLBACK_BLOCK, stream_),
            ACL_ERROR_RT_STREAM_NO_CB_REG);
  EXPECT_EQ(aclrtProcessReport(0), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  std::atomic<bool> stop{false};
  std::thread reporter([&] {
    while (!stop) aclrtProcessReport(5);
  });
  const auto id = static_cast<uint64_t>(reporter.native_handle());
  ASSERT_EQ(aclrtSubscribeReport(id, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSubscribeReport(id, stream_), ACL_ERROR_RT_STREAM_SUBSCRIBE);
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(aclrtLaunchCallback(count, nullptr,
                                  i % 2 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream_),
              ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(where, id);
  EXPECT_EQ(aclrtUnSubscribeReport(id + 1, stream_), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  EXPECT_EQ(aclrtUnSubscribeReport(id, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(id, stream_), ACL_ERROR_RT_STREAM_NO_CB_REG);
  stop = true;
  reporter.join();
}

TEST_F(Acl, FailureModes) {
  aclrtNotify notify = nullptr;
  ASSERT_EQ(aclrtCreateNotify(&notify, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE), ACL_SUCCESS);
  static std::atomic<int> ran{0};
  ran = 0;
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, stream_, 1), ACL_SUCCESS);
  aclrtLaunchHostFunc(stream_, [](void*) { ++ran; }, nullptr);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_WAIT_TIMEOUT);
  EXPECT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
}

TEST_F(Acl, StreamCannotWaitForItself) {
  static std::atomic<aclError> code{0};
  static aclrtStream self;
  self = stream_;
  ASSERT_EQ(aclrtLaunchHostFunc(
                stream_, [](void*) { code = aclrtSynchronizeStream(self); }, nullptr),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(code, ACL_ERROR_RT_STREAM_CONTEXT);
}

TEST_F(Acl, HandlesOfAnotherKindAndRandomPointers) {
  int on_stack = 0;
  EXPECT_EQ(aclrtSynchronizeStream(&on_stack), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtDestroyEvent(stream_), ACL_ERROR_RT_INVALID_HANDLE);
  auto* buffer = aclCreateDataBuffer(&on_stack, 4);
  EXPECT_EQ(aclmdlDestroyDataset(reinterpret_cast<aclmdlDataset*>(buffer)),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(nullptr), 0u);
}

TEST_F(Acl, TensorDescriptions) {
  const int64_t dims[] = {2, 3, 4};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT16, 3, dims, ACL_FORMAT_NHWC);
  EXPECT_EQ(aclGetTensorDescSize(desc), 48u);
  EXPECT_EQ(aclGetTensorDescElementCount(desc), 24u);
  EXPECT_EQ(aclGetTensorDescNumDims(desc), 3u);
  EXPECT_EQ(aclGetTensorDescDim(desc, 2), 4);
  EXPECT_EQ(aclGetTensorDescDim(desc, 3), -1);
  EXPECT_EQ(aclGetTensorDescFormat(desc), ACL_FORMAT_NHWC);
  int64_t dim = 0;
  EXPECT_EQ(aclGetTensorDescDimV2(desc, 9, &dim), ACL_ERROR_INVALID_PARAM);
  aclSetTensorDescName(desc, "name");
  EXPECT_STREQ(aclGetTensorDescName(desc), "name");
  aclDestroyTensorDesc(desc);
  EXPECT_EQ(aclGetTensorDescSize(desc), 0u);
  EXPECT_EQ(aclDataTypeSize(ACL_INT64), 8u);
  EXPECT_EQ(aclDataTypeSize(ACL_DT_UNDEFINED), 0u);
}

TEST_F(Acl, Float16) {
  EXPECT_EQ(aclFloatToFloat16(1.0f), 0x3c00);
  EXPECT_EQ(aclFloatToFloat16(65504.0f), 0x7bff);
  EXPECT_EQ(aclFloat16ToFloat(0xc000), -2.0f);
  EXPECT_TRUE(std::isinf(aclFloat16ToFloat(aclFloatToFloat16(1e6f))));
  for (uint32_t h = 0; h < 0x7c00; ++h)
    ASSERT_EQ(aclFloatToFloat16(aclFloat16ToFloat(static_cast<aclFloat16>(h))), h);
}

TEST_F(Acl, NotSupported) {
  EXPECT_EQ(aclrtResetOverflowStatus(nullptr), ACL_ERROR_API_NOT_SUPPORT);
  const char* message = aclGetRecentErrMsg();
  ASSERT_NE(message, nullptr);
  EXPECT_NE(std::strstr(message, "aclrtResetOverflowStatus"), nullptr);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_API_NOT_SUPPORT);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

TEST_F(Acl, PhysicalMemory) {
  aclrtPhysicalMemProp prop = {};
  size_t granularity = 0;
  ASSERT_EQ(
      aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity),
      ACL_SUCCESS);
  aclrtDrvMemHandle handle = nullptr;
  void* at = nullptr;
  ASSERT_EQ(aclrtMallocPhysical(&handle, granularity, &prop, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtReserveMemAddress(&at, granularity, 0, nullptr, 0), ACL_SUCCESS);
  char text[8] = "mapped";
  EXPECT_EQ(aclrtMemcpy(at, 8, text, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclrtMapMem(at, granularity, 0, handle, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(at, 8, text, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_STREQ(static_cast<char*>(at), "mapped");
  EXPECT_EQ(aclrtReleaseMemAddress(at), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtUnmapMem(at), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreePhysical(handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(at), ACL_SUCCESS);
}

TEST_F(Acl, Dump) {
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_ERROR_DUMP_NOT_RUN);
  EXPECT_EQ(aclmdlInitDump(), ACL_SUCCESS);
  EXPECT_EQ(aclmdlInitDump(), ACL_ERROR_DUMP_ALREADY_RUN);
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_SUCCESS);
}

class AclModel : public Acl {
 protected:
  void SetUp() override {
    Acl::SetUp();
    path_ = std::getenv("GE_ACL_MODEL");
    if (path_ == nullptr) GTEST_SKIP() << "GE_ACL_MODEL is not set";
    ASSERT_EQ(aclmdlLoadFromFile(path_, &id_), ACL_SUCCESS) << aclGetRecentErrMsg();
    desc_ = aclmdlCreateDesc();
    ASSERT_EQ(aclmdlGetDesc(desc_, id_), ACL_SUCCESS);
    input_ = aclmdlCreateDataset();
    output_ = aclmdlCreateDataset();
    Add(input_, aclmdlGetInputSizeByIndex(desc_, 0));
    Add(output_, aclmdlGetOutputSizeByIndex(desc_, 0));
  }
  void TearDown() override {
    if (path_ != nullptr) {
      aclmdlUnload(id_);
      EXPECT_EQ(aclmdlDestroyDesc(desc_), ACL_SUCCESS);
      aclmdlDestroyDataset(input_);
      aclmdlDestroyDataset(output_);
      for (void* p : memory_) aclrtFree(p);
    }
    Acl::TearDown();
  }
  aclDataBuffer* Add(aclmdlDataset* dataset, size_t bytes) {
    void* p = nullptr;
    EXPECT_EQ(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    aclrtMemset(p, bytes, 0, bytes);
    memory_.push_back(p);
    aclDataBuffer* buffer = aclCreateDataBuffer(p, bytes);
    EXPECT_EQ(aclmdlAddDatasetBuffer(dataset, buffer), ACL_SUCCESS);
    return buffer;
  }
  const char* path_ = nullptr;
  uint32_t id_ = 0;
  aclmdlDesc* desc_ = nullptr;
  aclmdlDataset *input_ = nullptr, *output_ = nullptr;
  std::vector<void*> memory_;
};

TEST_F(AclModel, Describes) {
  EXPECT_EQ(aclmdlGetNumInputs(desc_), 1u);
  EXPECT_EQ(aclmdlGetNumOutputs(desc_), 1u);
  EXPECT_EQ(aclmdlGetInputSizeByIndex(desc_, 0), 12288u);
  EXPECT_EQ(aclmdlGetOutputSizeByIndex(desc_, 0), 40u);
  EXPECT_EQ(aclmdlGetInputSizeByIndex(desc_, 1), 0u);
  EXPECT_STREQ(aclmdlGetInputNameByIndex(desc_, 0), "x");
  EXPECT_STREQ(aclmdlGetOutputNameByIndex(desc_, 0), "Softmax:0:y");
  EXPECT_EQ(aclmdlGetInputDataType(desc_, 0), ACL_FLOAT);
  EXPECT_EQ(aclmdlGetInputFormat(desc_, 0), ACL_FORMAT_NCHW);
  aclmdlIODims dims;
  EXPECT_EQ(aclmdlGetInputDims(desc_, 0, &dims), ACL_SUCCESS);
  EXPECT_STREQ(dims.name, "x");
  ASSERT_EQ(dims.dimCount, 4u);
  EXPECT_EQ(dims.dims[3], 32);
  EXPECT_EQ(aclmdlGetInputDims(desc_, 7, &dims), ACL_ERROR_INVALID_PARAM);
  size_t index = 9;
  EXPECT_EQ(aclmdlGetOutputIndexByName(desc_, "y", &index), ACL_SUCCESS);
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(aclmdlGetInputIndexByName(desc_, "nothing", &index), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlUnload(id_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlGetNumInputs(desc_), 1u);  // a description outlives its model
  EXPECT_EQ(aclmdlUnload(id_), static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID));
}

TEST_F(AclModel, Misuse) {
  EXPECT_EQ(aclmdlExecute(id_, input_, output_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecute(id_ + 1000, input_, output_),
            static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID));
  EXPECT_EQ(aclmdlExecute(id_, nullptr, output_), ACL_ERROR_INVALID_PARAM);
  aclmdlDataset* empty = aclmdlCreateDataset();
  EXPECT_EQ(aclmdlExecute(id_, empty, output_), ACL_ERROR_MODEL_INPUT_NOT_MATCH);
  EXPECT_EQ(aclmdlExecute(id_, input_, empty), ACL_ERROR_MODEL_OUTPUT_NOT_MATCH);
  aclDataBuffer* buffer = Add(empty, 8);
  EXPECT_EQ(aclmdlExecute(id_, empty, output_), static_cast<aclError>(ACL_ERROR_GE_PARAM_INVALID));
  EXPECT_EQ(aclUpdateDataBuffer(buffer, memory_.back(), 12288),
            ACL_SUCCESS);  // a lie about the size
  EXPECT_EQ(aclmdlExecute(id_, empty, output_), static_cast<aclError>(ACL_ERROR_GE_PARAM_INVALID));
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecute(id_, empty, output_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlDestroyDataset(empty), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecute(id_, empty, output_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlSetDynamicBatchSize(id_, input_, 0, 2), ACL_ERROR_MODEL_NOT_DYNAMIC);
  EXPECT_EQ(aclrtFree(memory_[0]), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecute(id_, input_, output_), static_cast<aclError>(ACL_ERROR_GE_PARAM_INVALID));
}

TEST_F(AclModel, LoadingRefuses) {
  uint32_t id = 0;
  EXPECT_EQ(aclmdlLoadFromFile("/nowhere.om", &id),
            static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID));
  EXPECT_EQ(aclmdlLoadFromFile(nullptr, &id), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlLoadFromFile(path_, nullptr), ACL_ERROR_INVALID_PARAM);
  const char junk[100] = "no model";
  EXPECT_NE(aclmdlLoadFromMem(junk, sizeof junk, &id), ACL_SUCCESS);
  void* work = nullptr;
  ASSERT_EQ(aclrtMalloc(&work, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclmdlLoadFromFileWithMem(path_, &id, work, 64, nullptr, 0),
            static_cast<aclError>(ACL_ERROR_GE_PARAM_INVALID));
  EXPECT_EQ(aclrtFree(work), ACL_SUCCESS);
  EXPECT_EQ(aclmdlLoadFromFileWithMem(path_, &id, work, 64, nullptr, 0),
            static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ADDR_INVALID));
}

TEST_F(AclModel, AsynchronousFailureShowsAtSynchronisation) {
  EXPECT_EQ(aclmdlExecuteAsync(id_, input_, output_, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlUnload(id_), ACL_SUCCESS);  // what was submitted still runs
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecuteAsync(id_, input_, output_, stream_),
            static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID));
}

}  // namespace
