// Kernels of a client's own: the ways to load them, to give them arguments and to launch them, and
// misuse. ACL_KERNELS: the shared object of kernels.c.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "tests/acl/device_test.h"

namespace {

constexpr int64_t kLength = 1000;

class AclKernel : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    for (float** p : {&x_, &y_, &z_}) {
      ASSERT_EQ(aclrtMalloc(reinterpret_cast<void**>(p), kLength * 4, ACL_MEM_MALLOC_HUGE_FIRST),
                ACL_SUCCESS);
    }
    for (int64_t i = 0; i < kLength; ++i) x_[i] = 0.5f * i, y_[i] = 1000.0f - i, z_[i] = -1;
    std::ifstream file(ACL_KERNELS, std::ios::binary);
    bytes_ = {std::istreambuf_iterator<char>(file), {}};
    ASSERT_GT(bytes_.size(), 1000u);
  }
  void TearDown() override {
    for (float* p : {x_, y_, z_}) EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    DeviceTest::TearDown();
  }
  aclrtBinHandle Load() {
    aclrtBinHandle binary = nullptr;
    EXPECT_EQ(aclrtBinaryLoadFromFile(ACL_KERNELS, nullptr, &binary), ACL_SUCCESS);
    return binary;
  }
  aclrtFuncHandle Function(aclrtBinHandle binary, const char* name) {
    aclrtFuncHandle function = nullptr;
    EXPECT_EQ(aclrtBinaryGetFunction(binary, name, &function), ACL_SUCCESS);
    return function;
  }
  // What z holds after the stream's tasks, until `length`; z is cleared.
  void ExpectSum(int64_t length = kLength) {
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    for (int64_t i = 0; i < kLength; ++i) ASSERT_EQ(z_[i], i < length ? x_[i] + y_[i] : -1.0f) << i;
    for (int64_t i = 0; i < kLength; ++i) z_[i] = -1;
  }

  aclrtStream stream_ = nullptr;
  float *x_ = nullptr, *y_ = nullptr, *z_ = nullptr;
  std::vector<char> bytes_;
};

TEST_F(AclKernel, LoadedInEveryWay) {
  aclrtBinary raw = aclrtCreateBinary(bytes_.data(), bytes_.size());
  ASSERT_NE(raw, nullptr);
  aclrtBinaryLoadOption lazy = {ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD, {1}};
  aclrtBinaryLoadOptions options = {&lazy, 1};
  aclrtBinHandle binaries[3] = {};
  EXPECT_EQ(aclrtBinaryLoadFromFile(ACL_KERNELS, &options, &binaries[0]), ACL_SUCCESS);
  EXPECT_EQ(aclrtBinaryLoadFromData(bytes_.data(), bytes_.size(), &options, &binaries[1]),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtBinaryLoad(raw, &binaries[2]), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyBinary(raw), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyBinary(raw), ACL_ERROR_RT_INVALID_HANDLE);
  std::vector<char>().swap(bytes_);
  const struct {
    const void *x, *y, *z;
    int64_t length;
  } arguments = {x_, y_, z_, kLength};
  for (aclrtBinHandle binary : binaries) {
    aclrtFuncHandle function = Function(binary, "add_custom");
    EXPECT_EQ(Function(binary, "add_custom"), function);
    for (uint32_t blocks : {1u, 7u, 48u}) {
      EXPECT_EQ(aclrtLaunchKernel(function, blocks, &arguments, sizeof arguments, stream_),
                ACL_SUCCESS);
      ExpectSum();
      aclrtLaunchKernelCfg none = {nullptr, 0};
      EXPECT_EQ(aclrtLaunchKernelV2(function, blocks, &arguments, sizeof arguments, &none, stream_),
                ACL_SUCCESS);
      ExpectSum();
    }
    EXPECT_EQ(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    EXPECT_EQ(aclrtLaunchKernel(function, 1, &arguments, sizeof arguments, stream_),
              ACL_ERROR_RT_INVALID_HANDLE);
  }
}

TEST_F(AclKernel, ArgumentLists) {
  aclrtBinHandle binary = Load();
  aclrtFuncHandle function = Function(binary, "add_placeholder");
  aclrtArgsHandle arguments = nullptr;
  aclrtParamHandle parameter = nullptr, holders[2] = {};
  ASSERT_EQ(aclrtKernelArgsInit(function, &arguments), ACL_SUCCESS);
  for (float** p : {&x_, &y_, &z_})
    EXPECT_EQ(aclrtKernelArgsAppend(arguments, p, sizeof *p, &parameter), ACL_SUCCESS);
  void* buffers[2] = {};
  for (aclrtParamHandle& holder : holders)
    EXPECT_EQ(aclrtKernelArgsAppendPlaceHolder(arguments, &holder), ACL_SUCCESS);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(aclrtKernelArgsGetPlaceHolderBuffer(arguments, holders[i], 4, &buffers[i]),
              ACL_SUCCESS);
  *static_cast<int32_t*>(buffers[0]) = 50;
  *static_cast<int32_t*>(buffers[1]) = 8;
  EXPECT_EQ(aclrtLaunchKernelWithConfig(function, 1, stream_, nullptr, arguments, nullptr),
            ACL_ERROR_RT_PARAM_INVALID);  // not complete
  EXPECT_EQ(aclrtKernelArgsFinalize(arguments), ACL_SUCCESS);
  EXPECT_EQ(aclrtKernelArgsFinalize(arguments), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtKernelArgsAppend(arguments, &x_, 8, &parameter), ACL_ERROR_RT_PARAM_INVALID);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(aclrtLaunchKernelWithConfig(function, 1, stream_, nullptr, arguments, nullptr),
              ACL_SUCCESS);
    ExpectSum(400);
  }
  // The same by one area of the host, data behind the arguments.
  struct {
    const void *x, *y, *z, *length, *tiles;
    int32_t data[2];
  } area = {x_, y_, z_, nullptr, nullptr, {60, 5}};
  aclrtPlaceHolderInfo places[2] = {{24, 40}, {32, 44}};
  EXPECT_EQ(
      aclrtLaunchKernelWithHostArgs(function, 1, stream_, nullptr, &area, sizeof area, places, 2),
      ACL_SUCCESS);
  area.data[0] = 0;  // the area was copied
  ExpectSum(300);
  places[1].dataOffset = sizeof area;
  EXPECT_EQ(
      aclrtLaunchKernelWithHostArgs(function, 1, stream_, nullptr, &area, sizeof area, places, 2),
      ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
  EXPECT_EQ(aclrtKernelArgsFinalize(arguments), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(AclKernel, IntegersOfEverySize) {
  aclrtBinHandle binary = Load();
  aclrtFuncHandle function = Function(binary, "nine");
  const uint64_t area[9] = {reinterpret_cast<uint64_t>(z_),
                            static_cast<uint64_t>(-5),
                            250,
                            static_cast<uint64_t>(-300),
                            60000,
                            static_cast<uint64_t>(-70000),
                            4000000000u,
                            static_cast<uint64_t>(INT64_MIN),
                            UINT64_MAX};
  ASSERT_EQ(aclrtLaunchKernel(function, 1, area, sizeof area, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(z_, area + 1, 64), 0);
  EXPECT_EQ(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
}

// In the order of the stream, also when the binary and the memory go before it runs; recorded.
TEST_F(AclKernel, InTheOrderOfTheStream) {
  aclrtBinHandle binary = Load();
  aclrtFuncHandle function = Function(binary, "count_call");
  uint32_t* calls = nullptr;
  ASSERT_EQ(aclrtMalloc(reinterpret_cast<void**>(&calls), 4, ACL_MEM_MALLOC_HUGE_FIRST),
            ACL_SUCCESS);
  *calls = 0;
  aclmdlRI recording = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchKernel(function, 3, &calls, sizeof calls, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &recording), ACL_SUCCESS);
  uint32_t seen = 0;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(aclmdlRIExecuteAsync(recording, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(&seen, 4, calls, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(calls), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(seen, 6u);
  EXPECT_EQ(aclmdlRIDestroy(recording), ACL_SUCCESS);
}

TEST_F(AclKernel, Misuse) {
  aclrtBinHandle binary = nullptr;
  aclrtFuncHandle function = nullptr;
  aclrtArgsHandle arguments = nullptr;
  aclrtParamHandle parameter = nullptr;
  void* buffer = nullptr;
  EXPECT_EQ(aclrtBinaryLoadFromFile("no/such.o", nullptr, &binary), ACL_ERROR_RT_FILE_OPEN);
  EXPECT_EQ(aclrtBinaryLoadFromFile(nullptr, nullptr, &binary), ACL_ERROR_INVALID_PARAM);
  std::vector<char> foreign = bytes_;
  foreign[18] = 0x29, foreign[19] = 0x10;  // the machine in an ELF header
  for (size_t length : {size_t{1}, size_t{64}, bytes_.size()}) {
    EXPECT_EQ(aclrtBinaryLoadFromData(foreign.data(), length, nullptr, &binary),
              ACL_ERROR_API_NOT_SUPPORT);
    const char* message = aclGetRecentErrMsg();
    ASSERT_NE(message, nullptr);
    EXPECT_NE(std::strstr(message, "for this processor"), nullptr) << message;
  }
  EXPECT_EQ(aclrtBinaryLoadFromData(nullptr, 1, nullptr, &binary), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateBinary(nullptr, 1), nullptr);
  EXPECT_EQ(aclrtCreateBinary("x", 0), nullptr);
  EXPECT_EQ(aclrtBinaryLoad(stream_, &binary), ACL_ERROR_RT_INVALID_HANDLE);
  binary = Load();
  EXPECT_EQ(aclrtBinaryGetFunction(binary, "no_such_kernel", &function),
            ACL_ERROR_KERNEL_NOT_FOUND);
  EXPECT_EQ(aclrtBinaryGetFunction(stream_, "add_custom", &function), ACL_ERROR_RT_INVALID_HANDLE);
  function = Function(binary, "count_call");
  EXPECT_EQ(aclrtKernelArgsInit(binary, &arguments), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtKernelArgsInit(function, nullptr), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtKernelArgsInit(function, &arguments), ACL_SUCCESS);
  EXPECT_EQ(aclrtKernelArgsAppend(arguments, nullptr, 8, &parameter), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtKernelArgsAppend(arguments, &z_, 0, &parameter), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtKernelArgsAppend(function, &z_, 8, &parameter), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtKernelArgsAppend(arguments, &z_, 8, &parameter), ACL_SUCCESS);
  EXPECT_EQ(aclrtKernelArgsGetPlaceHolderBuffer(arguments, parameter, 8, &buffer),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtLaunchKernel(function, 0, &z_, 8, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtLaunchKernel(function, 1, nullptr, 8, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtLaunchKernel(function, 1, bytes_.data(), 257, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtLaunchKernel(function, 1, &z_, 8, binary), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtLaunchKernelWithConfig(function, 1, stream_, nullptr, nullptr, nullptr),
            ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
  EXPECT_EQ(aclrtBinaryUnLoad(binary), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtBinaryUnLoad(nullptr), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
