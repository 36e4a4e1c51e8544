// Recorded streams (aclmdlRI), channels and queues (acltdt), profiling (aclprof), arguments of
// single operators: what they promise, and the codes of misuse. GE_ACL_MODEL as in contract_test.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "api/acl/include/acl/acl_dump.h"
#include "api/acl/include/acl/acl_prof.h"
#include "api/acl/include/acl/acl_rtc.h"
#include "api/acl/include/acl/acl_tdt.h"
#include "api/acl/include/acl/acl_tdt_queue.h"
#include "api/acl/include/aclnn/acl_meta.h"
#include "tests/acl/device_test.h"

namespace {

using namespace std::chrono_literals;

class AclMore : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&a_), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&b_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStreamForce(a_), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStreamForce(b_), ACL_SUCCESS);
    DeviceTest::TearDown();
  }
  aclrtStream a_ = nullptr, b_ = nullptr;
};

void AddOne(void* p) { ++*static_cast<int*>(p); }
void Double(void* p) { *static_cast<int*>(p) *= 2; }

TEST_F(AclMore, RecordsInsteadOfRunning) {
  int x = 0;
  ASSERT_EQ(aclmdlRICaptureBegin(a_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureBegin(a_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
            ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, AddOne, &x), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, Double, &x), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(a_), ACL_ERROR_RT_STREAM_CAPTURED);
  aclmdlRICaptureStatus status;
  aclmdlRI during = nullptr, model = nullptr;
  EXPECT_EQ(aclmdlRICaptureGetInfo(a_, &status, &during), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(aclmdlRIExecuteAsync(during, b_), ACL_ERROR_RT_MODEL_CAPTURED);
  ASSERT_EQ(aclmdlRICaptureEnd(a_, &model), ACL_SUCCESS);
  EXPECT_EQ(model, during);
  EXPECT_EQ(aclmdlRICaptureEnd(a_, &model), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  EXPECT_EQ(x, 0);
  for (aclrtStream stream : {a_, b_, a_}) {
    EXPECT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }
  EXPECT_EQ(x, 14);  // (((0 + 1) * 2 + 1) * 2 + 1) * 2
  EXPECT_EQ(aclmdlRIExecute(model, 1000), ACL_SUCCESS);
  EXPECT_EQ(x, 30);
  uint32_t streams = 0, tasks = 0;
  EXPECT_EQ(aclmdlRIGetStreams(model, nullptr, &streams), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIGetTasksByStream(a_, nullptr, &tasks), ACL_SUCCESS);
  EXPECT_EQ(streams, 1u);
  EXPECT_EQ(tasks, 2u);
  const std::string path = Scratch("recorded.json");
  EXPECT_EQ(aclmdlRIDebugJsonPrint(model, path.c_str(), 0), ACL_SUCCESS);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("aclrtLaunchHostFunc"), std::string::npos);
  std::remove(path.c_str());
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclmdlRIExecuteAsync(model, a_), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(AclMore, EventsBringStreamsIntoARecording) {
  int x = 0;
  aclrtEvent fork = nullptr, join = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&fork), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&join), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(a_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, AddOne, &x), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEvent(fork, a_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(b_, fork), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(b_, Double, &x), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEvent(join, b_), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(a_, join), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, AddOne, &x), ACL_SUCCESS);
  aclmdlRI model = nullptr;
  EXPECT_EQ(aclmdlRICaptureEnd(b_, &model), ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
  ASSERT_EQ(aclmdlRICaptureEnd(a_, &model), ACL_SUCCESS);
  EXPECT_EQ(x, 0);
  EXPECT_EQ(aclrtSynchronizeStream(b_), ACL_SUCCESS);  // runs again
  EXPECT_EQ(aclmdlRIExecuteAsync(model, b_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(b_), ACL_SUCCESS);
  EXPECT_EQ(x, 3);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(fork), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(join), ACL_SUCCESS);
}

TEST_F(AclMore, RecordingByHandAndUpdates) {
  int x = 0;
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRIBuildBegin(&model, 0), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIBindStream(model, a_, ACL_MODEL_STREAM_FLAG_HEAD), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(a_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(a_), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, AddOne, &x), ACL_SUCCESS);
  aclrtTaskGrp group = nullptr;
  EXPECT_EQ(aclmdlRICaptureTaskGrpEnd(a_, &group), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, AddOne, &x), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIEndTask(model, a_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIBuildEnd(model, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIUnbindStream(model, b_), ACL_ERROR_RT_STREAM_MODEL);
  EXPECT_EQ(aclmdlRIUnbindStream(model, a_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
  EXPECT_EQ(x, 2);
  // Another task in the place of the first.
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(b_, group), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(b_, Double, &x), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(b_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
  EXPECT_EQ(x, 5);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(b_, group), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(b_), ACL_ERROR_STREAM_TASK_GROUP_STATUS);  // 0 for 1
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(b_, group), ACL_ERROR_RT_INVALID_HANDLE);
}

// Each run counts up and down again, slowly: two at once would be seen.
TEST_F(AclMore, RunsOfARecordingTakeTurns) {
  struct Count {
    std::atomic<int> now{0}, most{0}, runs{0};
  } count;
  const auto enter = [](void* p) {
    auto* c = static_cast<Count*>(p);
    const int now = ++c->now;
    if (now > c->most) c->most = now;
    std::this_thread::sleep_for(2ms);
  };
  const auto leave = [](void* p) {
    --static_cast<Count*>(p)->now;
    ++static_cast<Count*>(p)->runs;
  };
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(a_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, enter, &count), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(a_, leave, &count), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureEnd(a_, &model), ACL_SUCCESS);
  for (int i = 0; i < 5; ++i)
    for (aclrtStream stream : {a_, b_}) EXPECT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(count.runs, 10);
  EXPECT_EQ(count.most, 1);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(AclMore, ARecordedModelRunsAgain) {
  const char* path = std::getenv("GE_ACL_MODEL");
  if (path == nullptr) GTEST_SKIP() << "GE_ACL_MODEL is not set";
  uint32_t id = 0;
  ASSERT_EQ(aclmdlLoadFromFile(path, &id), ACL_SUCCESS);
  void *in = nullptr, *out = nullptr;
  constexpr size_t kIn = 12288, kOut = 40;
  ASSERT_EQ(aclrtMalloc(&in, kIn, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMalloc(&out, kOut, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  aclmdlDataset *input = aclmdlCreateDataset(), *output = aclmdlCreateDataset();
  aclDataBuffer *x = aclCreateDataBuffer(in, kIn), *y = aclCreateDataBuffer(out, kOut);
  aclmdlAddDatasetBuffer(input, x);
  aclmdlAddDatasetBuffer(output, y);
  float host[kIn / sizeof(float)], results[2][10], want[2][10];
  aclmdlRI model = nullptr;
  for (int i = 0; i < 2; ++i) {
    std::fill(std::begin(host), std::end(host), i == 0 ? 0.25f : -0.75f);
    std::memcpy(in, host, kIn);
    ASSERT_EQ(aclmdlExecute(id, input, output), ACL_SUCCESS);
    std::memcpy(want[i], out, kOut);
  }
  ASSERT_EQ(aclmdlRICaptureBegin(a_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(in, kIn, host, kIn, ACL_MEMCPY_HOST_TO_DEVICE, a_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecuteAsync(id, input, output, a_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureEnd(a_, &model), ACL_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    std::fill(std::begin(host), std::end(host), i == 0 ? 0.25f : -0.75f);
    EXPECT_EQ(aclmdlRIExecuteAsync(model, a_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(a_), ACL_SUCCESS);
    std::memcpy(results[i], out, kOut);
  }
  EXPECT_EQ(std::memcmp(results, want, sizeof want), 0);
  EXPECT_NE(std::memcmp(want[0], want[1], kOut), 0);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  // A callback that blocks its stream, and nobody who takes it: models run on.
  ASSERT_EQ(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), b_), ACL_SUCCESS);
  int called = 0;
  EXPECT_EQ(aclrtLaunchCallback(AddOne, &called, ACL_CALLBACK_BLOCK, b_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecuteAsync(id, input, output, a_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(a_, 10000), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecute(id, input, output), ACL_SUCCESS);
  EXPECT_EQ(called, 0);
  EXPECT_EQ(aclrtProcessReport(10000), ACL_SUCCESS);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), b_), ACL_SUCCESS);
  for (aclmdlDataset* d : {input, output}) EXPECT_EQ(aclmdlDestroyDataset(d), ACL_SUCCESS);
  for (aclDataBuffer* b : {x, y}) EXPECT_EQ(aclDestroyDataBuffer(b), ACL_SUCCESS);
  for (void* p : {in, out}) EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
  EXPECT_EQ(aclmdlUnload(id), ACL_SUCCESS);
}

TEST_F(AclMore, ChannelsCopyTensors) {
  EXPECT_EQ(acltdtCreateChannelWithCapacity(0, "c", 1), nullptr);
  EXPECT_EQ(acltdtCreateChannel(99, "c"), nullptr);
  acltdtChannelHandle* to = acltdtCreateChannelWithCapacity(0, "c", 2);
  acltdtChannelHandle* from = acltdtCreateChannel(0, "c");  // the same queue
  ASSERT_NE(to, nullptr);
  float data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[2] = {2, 3};
  acltdtDataItem* item =
      acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, data, sizeof data);
  acltdtDataset *sent = acltdtCreateDataset(), *got = acltdtCreateDataset();
  EXPECT_EQ(acltdtAddDataItem(sent, item), ACL_SUCCESS);
  EXPECT_EQ(acltdtSendTensor(to, sent, 0), ACL_SUCCESS);
  data[0] = 7;
  EXPECT_EQ(acltdtSendTensor(to, sent, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtSendTensor(to, sent, 1), ACL_ERROR_RT_QUEUE_FULL);
  size_t size = 0;
  EXPECT_EQ(acltdtQueryChannelSize(from, &size), ACL_SUCCESS);
  EXPECT_EQ(size, 2u);
  for (const float first : {1.0f, 7.0f}) {
    EXPECT_EQ(acltdtReceiveTensor(from, got, 0), ACL_SUCCESS);
    ASSERT_EQ(acltdtGetDatasetSize(got), 1u);
    EXPECT_STREQ(acltdtGetDatasetName(got), "c");
    acltdtDataItem* received = acltdtGetDataItem(got, 0);
    EXPECT_EQ(acltdtGetTensorTypeFromItem(received), ACL_TENSOR_DATA_TENSOR);
    EXPECT_EQ(acltdtGetDataTypeFromItem(received), ACL_FLOAT);
    ASSERT_EQ(acltdtGetDataSizeFromItem(received), sizeof data);
    EXPECT_EQ(*static_cast<float*>(acltdtGetDataAddrFromItem(received)), first);
    int64_t found[2] = {};
    EXPECT_EQ(acltdtGetDimsFromItem(received, found, 2), ACL_SUCCESS);
    EXPECT_EQ(found[1], 3);
    EXPECT_EQ(acltdtGetDimsFromItem(received, found, 1), ACL_ERROR_INVALID_PARAM);
  }
  EXPECT_EQ(acltdtReceiveTensor(from, got, 1), ACL_ERROR_RT_QUEUE_EMPTY);
  std::thread stopper([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(acltdtStopChannel(to), ACL_SUCCESS);
  });
  EXPECT_EQ(acltdtReceiveTensor(from, got, -1), ACL_ERROR_RT_PARAM_INVALID);  // woken
  stopper.join();
  EXPECT_EQ(acltdtDestroyDataset(got), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyDataset(sent), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyDataItem(item), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyDataItem(item), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(acltdtDestroyChannel(to), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyChannel(from), ACL_SUCCESS);
  EXPECT_EQ(acltdtCleanChannel(from), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclMore, QueuesOfBuffers) {
  acltdtQueueAttr* attributes = acltdtCreateQueueAttr();
  const char* name = "q";
  const uint32_t depth = 2, wrong = 1;
  EXPECT_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name),
            ACL_SUCCESS);
  EXPECT_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, sizeof depth, &depth),
            ACL_SUCCESS);
  EXPECT_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, sizeof wrong, &wrong),
            ACL_ERROR_INVALID_PARAM);
  const char* found = nullptr;
  size_t size = 0;
  EXPECT_EQ(acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof found, &size, &found),
            ACL_SUCCESS);
  EXPECT_STREQ(found, name);
  uint32_t queue = 0;
  ASSERT_EQ(acltdtCreateQueue(attributes, &queue), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueueAttr(attributes), ACL_SUCCESS);
  acltdtBuf buffer = nullptr, out = nullptr;
  ASSERT_EQ(acltdtAllocBuf(16, 0, &buffer), ACL_SUCCESS);
  void* data = nullptr;
  EXPECT_EQ(acltdtGetBufData(buffer, &data, &size), ACL_SUCCESS);
  EXPECT_EQ(size, 16u);
  std::memcpy(data, "hello", 6);
  EXPECT_EQ(acltdtSetBufDataLen(buffer, 6), ACL_SUCCESS);
  EXPECT_EQ(acltdtEnqueue(queue, buffer, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtFreeBuf(buffer), ACL_ERROR_INVALID_PARAM);  // the queue's
  EXPECT_EQ(acltdtEnqueueData(queue, "world", 6, nullptr, 0, 0, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtEnqueueData(queue, "more", 5, nullptr, 0, 0, 0), ACL_ERROR_RT_QUEUE_FULL);
  EXPECT_EQ(acltdtDequeue(queue, &out, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtGetBufDataLen(out, &size), ACL_SUCCESS);
  EXPECT_EQ(size, 6u);
  EXPECT_EQ(acltdtFreeBuf(out), ACL_SUCCESS);
  char text[16];
  EXPECT_EQ(acltdtDequeueData(queue, text, sizeof text, &size, nullptr, 0, 0), ACL_SUCCESS);
  EXPECT_STREQ(text, "world");
  EXPECT_EQ(acltdtDequeue(queue, &out, 1), ACL_ERROR_RT_QUEUE_EMPTY);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_ERROR_INVALID_QUEUE_ID);
}

TEST_F(AclMore, ProfilesModelsAndMarks) {
  const std::string folder = Scratch("ge_profile");
  EXPECT_EQ(aclprofFinalize(), ACL_ERROR_UNINITIALIZE);
  ASSERT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_SUCCESS);
  EXPECT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_ERROR_REPEAT_INITIALIZE);
  uint32_t devices[1] = {0}, unknown[1] = {99};
  EXPECT_EQ(aclprofCreateConfig(unknown, 1, ACL_AICORE_NONE, nullptr, 0), nullptr);
  aclprofConfig* config =
      aclprofCreateConfig(devices, 1, ACL_AICORE_NONE, nullptr, ACL_PROF_ACL_API);
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_PROF_ALREADY_RUN);
  EXPECT_EQ(aclprofFinalize(), ACL_ERROR_PROF_ALREADY_RUN);
  void* stamp = aclprofCreateStamp();
  EXPECT_EQ(aclprofSetStampTraceMessage(stamp, "a \"mark\"", 8), ACL_SUCCESS);
  EXPECT_EQ(aclprofMark(stamp), ACL_SUCCESS);
  EXPECT_EQ(aclprofPush(stamp), ACL_SUCCESS);
  EXPECT_EQ(aclprofPop(), ACL_SUCCESS);
  EXPECT_EQ(aclprofPop(), ACL_ERROR_INVALID_PARAM);
  uint32_t range = 0;
  EXPECT_EQ(aclprofRangeStart(stamp, &range), ACL_SUCCESS);
  EXPECT_EQ(aclprofRangeStop(range), ACL_SUCCESS);
  EXPECT_EQ(aclprofRangeStop(range), ACL_ERROR_INVALID_PARAM);
  aclprofDestroyStamp(stamp);
  EXPECT_EQ(aclprofMark(stamp), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofStop(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  ASSERT_EQ(aclprofFinalize(), ACL_SUCCESS);
  const std::string path = folder + "/PROF_" + std::to_string(getpid()) + "/trace.json";
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t marks = 0;
  for (size_t at = 0; (at = text.find("a \\\"mark\\\"", at)) != std::string::npos; ++at) ++marks;
  EXPECT_EQ(marks, 3u);
  std::remove(path.c_str());
}

TEST_F(AclMore, ArgumentsOfOperators) {
  const int64_t dims[2] = {2, 3}, negative[1] = {-1};
  aclTensor* tensor =
      aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(aclCreateTensor(negative, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr),
            nullptr);
  int64_t* list = nullptr;
  uint64_t count = 0;
  EXPECT_EQ(aclGetViewStrides(tensor, &list, &count), ACL_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(list[0], 3);
  EXPECT_EQ(list[1], 1);
  delete[] list;
  aclDataType type = ACL_DT_UNDEFINED;
  EXPECT_EQ(aclGetDataType(tensor, &type), ACL_SUCCESS);
  EXPECT_EQ(type, ACL_FLOAT);
  EXPECT_EQ(aclDestroyTensor(tensor), ACL_SUCCESS);
  EXPECT_EQ(aclDestroyTensor(tensor), ACL_ERROR_INVALID_PARAM);
  float value = 1.5f;
  aclScalar* scalar = aclCreateScalar(&value, ACL_FLOAT);
  EXPECT_EQ(aclDestroyScalar(scalar), ACL_SUCCESS);
  EXPECT_EQ(aclDestroyScalar(scalar), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
  EXPECT_EQ(aclCreateScalar(&value, ACL_STRING), nullptr);
}

TEST_F(AclMore, KernelsAreNotCompiled) {
  aclrtcProg program = nullptr;
  EXPECT_EQ(aclrtcCreateProg(&program, "", "", 0, nullptr, nullptr), ACL_ERROR_API_NOT_SUPPORT);
  EXPECT_NE(std::strstr(aclGetRecentErrMsg(), "aclrtcCreateProg"), nullptr);
}

TEST_F(AclMore, WhereDumpsGo) {
  EXPECT_EQ(acldumpGetPath(DATA_DUMP), nullptr);
  const std::string path = Scratch("dump.json");
  std::ofstream(path) << R"({"dump": {"dump_path": "/nowhere/here", "dump_mode": "all"}})";
  ASSERT_EQ(aclmdlInitDump(), ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetDump(path.c_str()), ACL_SUCCESS);
  EXPECT_STREQ(acldumpGetPath(DATA_DUMP), "/nowhere/here");
  EXPECT_EQ(acldumpGetPath(static_cast<acldumpType>(9)), nullptr);
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_SUCCESS);
  EXPECT_EQ(acldumpGetPath(DATA_DUMP), nullptr);
  std::remove(path.c_str());
}

}  // namespace
