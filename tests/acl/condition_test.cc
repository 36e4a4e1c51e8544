// Conditions in recordings: branches and loops by a number in device memory.
#include <gtest/gtest.h>

#include <cstring>

#include "api/acl/include/acl/acl.h"
#include "tests/acl/device_test.h"

namespace {

class AclCondition : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&sub_), ACL_SUCCESS);
    void* p = nullptr;
    ASSERT_EQ(aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    memory_ = static_cast<uint64_t*>(p);
    std::memset(memory_, 0, 64);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(sub_), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(memory_), ACL_SUCCESS);
    DeviceTest::TearDown();
  }

  // Records [condition] with `size` parts; part i writes its number + 10 to memory_[0].
  aclmdlRI Record(aclmdlRICondTaskType type, uint32_t size, aclmdlRICondHandleFlag flag,
                  uint64_t initial = 0) {
    aclmdlRI model = nullptr, parts[4] = {};
    aclmdlRICaptureStatus status;
    EXPECT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureGetInfo(stream_, &status, &model), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICondHandleCreate(model, initial, flag, &condition_), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICondHandleGetCondPtr(condition_, &value_), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRIAddCondTask({condition_, type, size, parts}, stream_, 0), ACL_SUCCESS);
    for (uint32_t i = 0; i < size; ++i) {
      EXPECT_EQ(aclmdlRICaptureToModelRIBegin(sub_, parts[i], ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
                ACL_SUCCESS);
      EXPECT_EQ(aclrtLaunchHostFunc(sub_, Write, memory_ + 1 + i), ACL_SUCCESS);
      if (type == ACL_MODEL_RI_COND_TYPE_WHILE) {
        EXPECT_EQ(aclrtLaunchHostFunc(sub_, CountDown, value_), ACL_SUCCESS);
      }
      EXPECT_EQ(aclmdlRICaptureEnd(sub_, &parts[i]), ACL_SUCCESS);
    }
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
    part_ = parts[0];
    return model;
  }
  static void Write(void* p) { ++*static_cast<uint64_t*>(p); }
  static void CountDown(void* p) { --*static_cast<uint64_t*>(p); }
  void Run(aclmdlRI model, uint64_t value) {
    EXPECT_EQ(aclrtMemcpy(value_, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }

  static constexpr auto kByHand = static_cast<aclmdlRICondHandleFlag>(0);
  aclrtStream stream_ = nullptr, sub_ = nullptr;
  uint64_t* memory_ = nullptr;  // [1 + i]: runs of part i
  uint64_t* value_ = nullptr;
  aclmdlRICondHandle condition_ = nullptr;
  aclmdlRI part_ = nullptr;
};

TEST_F(AclCondition, If) {
  const aclmdlRI model = Record(ACL_MODEL_RI_COND_TYPE_IF, 2, kByHand);
  Run(model, 7);
  EXPECT_EQ(memory_[1], 1u);
  EXPECT_EQ(memory_[2], 0u);
  Run(model, 0);
  EXPECT_EQ(memory_[1], 1u);
  EXPECT_EQ(memory_[2], 1u);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICondHandleGetCondPtr(condition_, &value_), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclmdlRIExecuteAsync(part_, stream_), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(AclCondition, IfWithOnePartAndADefault) {
  const aclmdlRI model =
      Record(ACL_MODEL_RI_COND_TYPE_IF, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, 1);
  Run(model, 0);  // each execution begins at the default
  EXPECT_EQ(memory_[1], 1u);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(AclCondition, WhileRunsUntilZero) {
  const aclmdlRI model = Record(ACL_MODEL_RI_COND_TYPE_WHILE, 1, kByHand);
  Run(model, 5);
  EXPECT_EQ(memory_[1], 5u);
  Run(model, 0);
  EXPECT_EQ(memory_[1], 5u);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(AclCondition, SwitchTakesThePartOfTheNumber) {
  const aclmdlRI model = Record(ACL_MODEL_RI_COND_TYPE_SWITCH, 3, kByHand);
  for (const uint64_t value : {0, 1, 2, 2, 9}) Run(model, value);
  EXPECT_EQ(memory_[1], 1u);
  EXPECT_EQ(memory_[2], 1u);
  EXPECT_EQ(memory_[3], 2u);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(AclCondition, Misuse) {
  aclmdlRI model = nullptr, parts[2] = {};
  aclmdlRICaptureStatus status;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureGetInfo(stream_, &status, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICondHandleCreate(stream_, 0, kByHand, &condition_),
            ACL_ERROR_RT_INVALID_HANDLE);
  ASSERT_EQ(aclmdlRICondHandleCreate(model, 0, kByHand, &condition_), ACL_SUCCESS);
  const auto add = [&](aclmdlRICondTaskType type, uint32_t size, aclrtStream stream) {
    return aclmdlRIAddCondTask({condition_, type, size, parts}, stream, 0);
  };
  EXPECT_EQ(add(ACL_MODEL_RI_COND_TYPE_IF, 3, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(add(ACL_MODEL_RI_COND_TYPE_WHILE, 2, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(add(static_cast<aclmdlRICondTaskType>(5), 1, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(add(ACL_MODEL_RI_COND_TYPE_IF, 1, sub_), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  EXPECT_EQ(add(ACL_MODEL_RI_COND_TYPE_IF, 1, nullptr), ACL_ERROR_RT_INVALID_HANDLE);
  ASSERT_EQ(add(ACL_MODEL_RI_COND_TYPE_IF, 1, stream_), ACL_SUCCESS);
  const auto begin = [&](aclrtStream stream, aclmdlRI part) {
    return aclmdlRICaptureToModelRIBegin(stream, part, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  };
  EXPECT_EQ(begin(stream_, parts[0]), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(begin(sub_, model), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(begin(sub_, parts[0]), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureEnd(sub_, &parts[0]), ACL_SUCCESS);
  EXPECT_EQ(begin(sub_, parts[0]), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICondHandleCreate(model, 0, kByHand, &condition_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

}  // namespace
