// Jumps in recordings that are built by hand (labels, streams that start one another), and
// allocators of streams. GE_ACL_MODEL as in contract_test.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "tests/acl/device_test.h"

namespace {

class AclJump : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    for (aclrtStream* s : {&a_, &b_, &c_, &runner_})
      ASSERT_EQ(aclrtCreateStreamWithConfig(s, 0, ACL_STREAM_PERSISTENT), ACL_SUCCESS);
    ASSERT_EQ(aclrtMalloc(&number_, 16, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    std::memset(number_, 0, 16);
    for (aclrtLabel& label : labels_) ASSERT_EQ(aclrtCreateLabel(&label), ACL_SUCCESS);
  }
  void TearDown() override {
    if (model_ != nullptr) {
      EXPECT_EQ(aclmdlRIDestroy(model_), ACL_SUCCESS);
    }
    for (aclrtLabel label : labels_) EXPECT_EQ(aclrtDestroyLabel(label), ACL_SUCCESS);
    if (list_ != nullptr) {
      EXPECT_EQ(aclrtDestroyLabelList(list_), ACL_SUCCESS);
    }
    EXPECT_EQ(aclrtFree(number_), ACL_SUCCESS);
    for (aclrtStream s : {a_, b_, c_, runner_}) EXPECT_EQ(aclrtDestroyStream(s), ACL_SUCCESS);
    DeviceTest::TearDown();
  }
  void Begin(std::vector<aclrtStream> heads, std::vector<aclrtStream> others = {}) {
    ASSERT_EQ(aclmdlRIBuildBegin(&model_, 0), ACL_SUCCESS);
    for (aclrtStream s : heads)
      ASSERT_EQ(aclmdlRIBindStream(model_, s, ACL_MODEL_STREAM_FLAG_HEAD), ACL_SUCCESS);
    for (aclrtStream s : others)
      ASSERT_EQ(aclmdlRIBindStream(model_, s, ACL_MODEL_STREAM_FLAG_DEFAULT), ACL_SUCCESS);
  }
  // A task that writes one character of what the recording did.
  void Say(aclrtStream stream, char c) {
    words_.push_back({&said_, c});
    ASSERT_EQ(aclrtLaunchHostFunc(
                  stream,
                  [](void* p) {
                    const auto* word = static_cast<std::pair<std::string*, char>*>(p);
                    *word->first += word->second;
                  },
                  &words_.back()),
              ACL_SUCCESS);
  }
  std::string Run() {
    said_.clear();
    EXPECT_EQ(aclmdlRIExecuteAsync(model_, runner_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(runner_), ACL_SUCCESS);
    return said_;
  }
  uint32_t& index() { return *static_cast<uint32_t*>(number_); }
  void MakeList() { ASSERT_EQ(aclrtCreateLabelList(labels_, 3, &list_), ACL_SUCCESS); }

  aclrtStream a_ = nullptr, b_ = nullptr, c_ = nullptr, runner_ = nullptr;
  aclrtLabel labels_[3] = {};
  aclrtLabelList list_ = nullptr;
  aclmdlRI model_ = nullptr;
  void* number_ = nullptr;
  std::string said_;
  std::deque<std::pair<std::string*, char>> words_;
};

TEST_F(AclJump, ByIndex) {
  MakeList();
  Begin({a_, b_});
  ASSERT_EQ(aclrtSwitchLabelByIndex(number_, 3, list_, a_), ACL_SUCCESS);
  Say(b_, 'o');  // another stream is not concerned
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(aclrtSetLabel(labels_[i], a_), ACL_SUCCESS);
    Say(a_, static_cast<char>('0' + i));
  }
  ASSERT_EQ(aclmdlRIEndTask(model_, a_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIBuildEnd(model_, nullptr), ACL_SUCCESS);
  const char* wanted[] = {"o012", "o12", "o2", "o2", "o2"};
  for (uint32_t i = 0; i < 5; ++i) {  // above the last: the last
    index() = i == 4 ? UINT32_MAX : i;
    EXPECT_EQ(Run(), wanted[i]) << i;
  }
}

TEST_F(AclJump, BackUntilTheIndexChanges) {
  MakeList();
  Begin({a_, b_});
  ASSERT_EQ(aclrtSetLabel(labels_[0], a_), ACL_SUCCESS);
  Say(a_, 'x');
  ASSERT_EQ(aclrtLaunchHostFunc(
                a_,
                [](void* p) {
                  auto* n = static_cast<uint32_t*>(p);
                  n[0] = ++n[1] < 4 ? 0 : 1;
                },
                number_),
            ACL_SUCCESS);
  Say(b_, 'o');
  ASSERT_EQ(aclrtSwitchLabelByIndex(number_, 2, list_, a_), ACL_SUCCESS);
  Say(a_, '-');
  ASSERT_EQ(aclrtSetLabel(labels_[1], a_), ACL_SUCCESS);
  Say(a_, '.');
  ASSERT_EQ(aclmdlRIBuildEnd(model_, nullptr), ACL_SUCCESS);
  EXPECT_EQ(Run(), "xoxxx.");
  (&index())[1] = 3;
  EXPECT_EQ(Run(), "xo.");
}

TEST_F(AclJump, ToAnotherStream) {
  MakeList();
  Begin({a_}, {b_});
  Say(a_, 'a');
  ASSERT_EQ(aclrtSwitchLabelByIndex(number_, 3, list_, a_), ACL_SUCCESS);
  Say(a_, '-');
  Say(b_, '-');
  ASSERT_EQ(aclrtSetLabel(labels_[0], b_), ACL_SUCCESS);
  Say(b_, 'b');
  ASSERT_EQ(aclrtSetLabel(labels_[1], a_), ACL_SUCCESS);
  Say(a_, 'A');
  ASSERT_EQ(aclmdlRIBuildEnd(model_, nullptr), ACL_SUCCESS);
  EXPECT_EQ(Run(), "ab");
  index() = 1;
  EXPECT_EQ(Run(), "aA");
  index() = 2;  // a label that was never set
  EXPECT_EQ(aclmdlRIExecuteAsync(model_, runner_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(runner_), ACL_ERROR_RT_MODEL_EXECUTE);
}

TEST_F(AclJump, StreamsStartOneAnother) {
  for (const auto type : {ACL_RT_SWITCH_INT32, ACL_RT_SWITCH_INT64}) {
    words_.clear();
    int64_t* values = static_cast<int64_t*>(number_);
    Begin({a_}, {b_, c_});
    Say(b_, 'b');  // before it is started, and still in its turn
    Say(a_, 'a');
    ASSERT_EQ(aclrtSwitchStream(values, ACL_RT_LESS, values + 1, type, b_, nullptr, a_),
              ACL_SUCCESS);
    Say(a_, '=');
    ASSERT_EQ(aclrtSwitchStream(values, ACL_RT_EQUAL, values + 1, type, c_, b_, a_), ACL_SUCCESS);
    Say(a_, '-');
    Say(c_, 'c');
    ASSERT_EQ(aclrtActiveStream(b_, c_), ACL_SUCCESS);
    Say(c_, 'C');
    ASSERT_EQ(aclmdlRIEndTask(model_, c_), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRIBuildEnd(model_, nullptr), ACL_SUCCESS);
    values[0] = -2, values[1] = 5;
    EXPECT_EQ(Run(), "ab");
    values[0] = 5;
    EXPECT_EQ(Run(), "a=cbC");
    values[0] = 6;
    EXPECT_EQ(Run(), "a=b");
    for (aclrtStream s : {a_, b_, c_}) ASSERT_EQ(aclmdlRIUnbindStream(model_, s), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRIDestroy(model_), ACL_SUCCESS);
    model_ = nullptr;
  }
}

TEST_F(AclJump, EveryCondition) {
  const int32_t pairs[][2] = {{1, 2}, {2, 2}, {3, 2}};
  const bool holds[][3] = {{false, true, false}, {true, false, true},  {false, false, true},
                           {false, true, true},  {true, false, false}, {true, true, false}};
  auto* values = static_cast<int32_t*>(number_);
  for (int condition = 0; condition < 6; ++condition) {
    words_.clear();
    Begin({a_}, {b_});
    ASSERT_EQ(aclrtSwitchStream(values, static_cast<aclrtCondition>(condition), values + 1,
                                ACL_RT_SWITCH_INT32, b_, nullptr, a_),
              ACL_SUCCESS);
    Say(a_, 'n');
    Say(b_, 'y');
    ASSERT_EQ(aclmdlRIBuildEnd(model_, nullptr), ACL_SUCCESS);
    for (int i = 0; i < 3; ++i) {
      values[0] = pairs[i][0], values[1] = pairs[i][1];
      EXPECT_EQ(Run(), holds[condition][i] ? "y" : "n") << condition << " " << i;
    }
    ASSERT_EQ(aclmdlRIDestroy(model_), ACL_SUCCESS);
    model_ = nullptr;
  }
}

TEST_F(AclJump, EndlessOnesAreCutOff) {
  MakeList();
  Begin({a_});
  ASSERT_EQ(aclrtSetLabel(labels_[0], a_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSwitchLabelByIndex(number_, 1, list_, a_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIBuildEnd(model_, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(model_, runner_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(runner_, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtStreamAbort(runner_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(runner_), ACL_SUCCESS);
}

TEST_F(AclJump, Misuse) {
  int64_t host = 0;
  MakeList();
  EXPECT_EQ(aclrtCreateLabel(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyLabel(list_), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtDestroyLabelList(labels_[0]), ACL_ERROR_RT_INVALID_HANDLE);
  aclrtLabelList list = nullptr;
  aclrtLabel dead[2] = {labels_[0], &host};
  EXPECT_EQ(aclrtCreateLabelList(dead, 2, &list), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtCreateLabelList(labels_, 0, &list), ACL_ERROR_INVALID_PARAM);
  // Only in what is built by hand.
  EXPECT_EQ(aclrtSetLabel(labels_[0], a_), ACL_ERROR_RT_STREAM_MODEL);
  EXPECT_EQ(aclrtSwitchLabelByIndex(number_, 3, list_, a_), ACL_ERROR_RT_STREAM_MODEL);
  EXPECT_EQ(aclrtActiveStream(b_, a_), ACL_ERROR_RT_STREAM_MODEL);
  ASSERT_EQ(aclmdlRICaptureBegin(b_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetLabel(labels_[0], b_), ACL_ERROR_RT_STREAM_MODEL);
  ASSERT_EQ(aclmdlRICaptureEnd(b_, &model_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIDestroy(model_), ACL_SUCCESS);
  Begin({a_});
  EXPECT_EQ(aclmdlRIBindStream(model_, b_, 7), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetLabel(labels_[0], a_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetLabel(labels_[0], a_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetLabel(nullptr, a_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetLabel(labels_[1], nullptr), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSwitchLabelByIndex(&host, 3, list_, a_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSwitchLabelByIndex(number_, 4, list_, a_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSwitchLabelByIndex(number_, 0, list_, a_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSwitchLabelByIndex(number_, 3, labels_[0], a_), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtActiveStream(b_, a_), ACL_ERROR_RT_STREAM_MODEL);  // b is not bound
  EXPECT_EQ(aclrtSwitchStream(number_, ACL_RT_EQUAL, &host, ACL_RT_SWITCH_INT32, a_, nullptr, a_),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSwitchStream(number_, static_cast<aclrtCondition>(6), number_, ACL_RT_SWITCH_INT32,
                              a_, nullptr, a_),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSwitchStream(number_, ACL_RT_EQUAL, number_, ACL_RT_SWITCH_INT32, b_, nullptr, a_),
            ACL_ERROR_RT_STREAM_MODEL);
  ASSERT_EQ(aclmdlRIBuildEnd(model_, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetLabel(labels_[1], a_), ACL_ERROR_RT_STREAM_MODEL);
}

// An allocator of one block of device memory at a time.
struct Counted {
  std::atomic<int> taken{0}, given{0};
  std::atomic<size_t> bytes{0};
  bool empty = false;
  void* host = nullptr;  // memory that is none of the device
};
struct CountedBlock {
  void* memory;
};
void* TakeBlock(void* object, size_t size) {
  auto* counted = static_cast<Counted*>(object);
  if (counted->empty) return nullptr;
  ++counted->taken;
  counted->bytes = size;
  auto* block = new CountedBlock{counted->host};
  if (block->memory == nullptr) {
    EXPECT_EQ(aclrtMalloc(&block->memory, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  }
  return block;
}
void GiveBlock(void* object, void* block) {
  auto* counted = static_cast<Counted*>(object);
  ++counted->given;
  if (counted->host == nullptr) {
    EXPECT_EQ(aclrtFree(static_cast<CountedBlock*>(block)->memory), ACL_SUCCESS);
  }
  delete static_cast<CountedBlock*>(block);
}
void* AdviseBlock(void* object, size_t size, void*) { return TakeBlock(object, size); }
void* AddressOf(void* block) { return static_cast<CountedBlock*>(block)->memory; }

TEST_F(AclJump, Allocators) {
  Counted counted;
  aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
  ASSERT_NE(desc, nullptr);
  EXPECT_EQ(aclrtAllocatorRegister(a_, desc), ACL_ERROR_INVALID_PARAM);  // incomplete
  EXPECT_EQ(aclrtAllocatorSetObjToDesc(desc, &counted), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorSetAllocFuncToDesc(desc, TakeBlock), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorSetFreeFuncToDesc(desc, GiveBlock), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorRegister(a_, desc), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, AddressOf), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorSetAllocAdviseFuncToDesc(desc, AdviseBlock), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorSetObjToDesc(desc, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorSetObjToDesc(nullptr, &counted), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorRegister(nullptr, desc), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorRegister(desc, desc), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtAllocatorRegister(a_, a_), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtAllocatorRegister(a_, desc), ACL_SUCCESS);
  aclrtAllocatorDesc got = nullptr;
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc take = nullptr;
  aclrtAllocatorFreeFunc give = nullptr;
  aclrtAllocatorAllocAdviseFunc advise = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address = nullptr;
  EXPECT_EQ(aclrtAllocatorGetByStream(b_, &got, nullptr, nullptr, nullptr, nullptr, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorGetByStream(a_, &got, &object, &take, &give, &advise, &address),
            ACL_SUCCESS);
  EXPECT_TRUE(got == desc && object == &counted && take == TakeBlock && give == GiveBlock &&
              advise == AdviseBlock && address == AddressOf);
  EXPECT_EQ(aclrtAllocatorDestroyDesc(desc), ACL_SUCCESS);  // what is registered is a copy
  EXPECT_EQ(aclrtAllocatorDestroyDesc(desc), ACL_ERROR_INVALID_PARAM);

  // A model's work memory comes from it, on its stream only, for each run anew.
  const char* path = std::getenv("GE_ACL_MODEL");
  if (path == nullptr) GTEST_SKIP() << "GE_ACL_MODEL is not set";
  uint32_t id = 0;
  ASSERT_EQ(aclmdlLoadFromFile(path, &id), ACL_SUCCESS);
  aclmdlDesc* model = aclmdlCreateDesc();
  ASSERT_EQ(aclmdlGetDesc(model, id), ACL_SUCCESS);
  void *in = nullptr, *out[2] = {};
  const size_t in_bytes = aclmdlGetInputSizeByIndex(model, 0);
  const size_t out_bytes = aclmdlGetOutputSizeByIndex(model, 0);
  ASSERT_EQ(aclrtMalloc(&in, in_bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  for (size_t i = 0; i < in_bytes / 4; ++i) static_cast<float*>(in)[i] = 0.01f * (i % 97);
  aclmdlDataset *inputs = aclmdlCreateDataset(),
                *outputs[2] = {aclmdlCreateDataset(), aclmdlCreateDataset()};
  aclDataBuffer* buffers[3] = {aclCreateDataBuffer(in, in_bytes)};
  ASSERT_EQ(aclmdlAddDatasetBuffer(inputs, buffers[0]), ACL_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(aclrtMalloc(&out[i], out_bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    buffers[i + 1] = aclCreateDataBuffer(out[i], out_bytes);
    ASSERT_EQ(aclmdlAddDatasetBuffer(outputs[i], buffers[i + 1]), ACL_SUCCESS);
  }
  ASSERT_EQ(aclmdlExecuteAsync(id, inputs, outputs[0], b_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(b_), ACL_SUCCESS);
  EXPECT_EQ(counted.taken, 0);
  for (int run = 1; run <= 3; ++run) {
    ASSERT_EQ(aclmdlExecuteAsync(id, inputs, outputs[1], a_), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(a_), ACL_SUCCESS);
    EXPECT_EQ(counted.taken, run);
    EXPECT_EQ(counted.given, run);
    EXPECT_GT(counted.bytes, 64u);
    EXPECT_EQ(std::memcmp(out[0], out[1], out_bytes), 0);
    std::memset(out[1], 0, out_bytes);
  }
  // One that has nothing, and one whose memory is not the device's.
  counted.empty = true;
  ASSERT_EQ(aclmdlExecuteAsync(id, inputs, outputs[1], a_), ACL_SUCCESS);
  EXPECT_NE(aclrtSynchronizeStream(a_), ACL_SUCCESS);
  counted.empty = false;
  std::vector<char> host(1 << 20);
  counted.host = host.data();
  ASSERT_EQ(aclmdlExecuteAsync(id, inputs, outputs[1], a_), ACL_SUCCESS);
  EXPECT_NE(aclrtSynchronizeStream(a_), ACL_SUCCESS);
  EXPECT_EQ(counted.taken, counted.given);
  EXPECT_EQ(aclrtAllocatorUnregister(a_), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorUnregister(nullptr), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclmdlExecuteAsync(id, inputs, outputs[1], a_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(a_), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(out[0], out[1], out_bytes), 0);
  for (aclDataBuffer* buffer : buffers) EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
  for (aclmdlDataset* set : {inputs, outputs[0], outputs[1]})
    EXPECT_EQ(aclmdlDestroyDataset(set), ACL_SUCCESS);
  for (void* memory : {in, out[0], out[1]}) EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
  EXPECT_EQ(aclmdlUnload(id), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyDesc(model), ACL_SUCCESS);
}

}  // namespace
