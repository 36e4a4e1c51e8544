// The rest of the surface of devices, memory and streams: attributes, peers, keys for other
// processes, copies in all shapes, flags, queries. Each function at least once, right and wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "api/acl/include/acl/acl_prof.h"
#include "api/acl/include/acl/acl_tdt.h"
#include "api/acl/include/acl/acl_tdt_queue.h"
#include "tests/acl/device_test.h"

namespace {

class AclRuntime : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    DeviceTest::TearDown();
  }
  static void* Block(size_t bytes) {
    void* p = nullptr;
    EXPECT_EQ(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    return p;
  }
  aclrtStream stream_ = nullptr;
};

TEST_F(AclRuntime, Devices) {
  uint32_t count = 0;
  int32_t device = -1, pid = 0, status = 0, value = 7, can = 7;
  int64_t number = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_GE(count, 1u);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(std::string(aclrtGetSocName()).find("Ascend"), 0u);
  EXPECT_EQ(aclrtDeviceGetBareTgid(&pid), ACL_SUCCESS);
  EXPECT_EQ(pid, getpid());
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &number), ACL_SUCCESS);
  EXPECT_GE(number, 1);
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &number), ACL_SUCCESS);
  EXPECT_GT(number, 1 << 20);
  EXPECT_EQ(aclrtGetDeviceInfo(99, ACL_DEV_ATTR_AICORE_CORE_NUM, &number),
            ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &number), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDeviceCapability(0, static_cast<aclrtDevFeatureType>(1), &value), ACL_SUCCESS);
  EXPECT_EQ(value, ACL_DEV_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtCheckArchCompatibility("Ascend910B1", &can), ACL_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 99), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(0, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(0, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 0, &status), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceDisablePeerAccess(0), ACL_SUCCESS);
  aclrtErrorInfo error{};
  EXPECT_EQ(aclrtGetErrorVerbose(0, &error), ACL_SUCCESS);
  EXPECT_EQ(error.errorType, ACL_RT_NO_ERROR);
  aclrtDeviceStatus state{};
  EXPECT_EQ(aclrtQueryDeviceStatus(0, &state), ACL_SUCCESS);
  EXPECT_EQ(state, ACL_RT_DEVICE_STATUS_NORMAL);
  aclrtUtilizationInfo use{};
  EXPECT_EQ(aclrtGetDeviceUtilizationRate(0, &use), ACL_SUCCESS);
  EXPECT_LE(use.cubeUtilization, 100);
  EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_AICORE), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_RESERVED), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclRuntime, LimitsAndOptions) {
  uint32_t limit = 0, flags = 7;
  int32_t least = 0, greatest = 0, active = 0;
  int64_t option = 7;
  EXPECT_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &limit), ACL_SUCCESS);
  EXPECT_EQ(limit, 1u);
  EXPECT_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &limit), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtResetDeviceResLimit(0), ACL_SUCCESS);
  aclrtFloatOverflowMode mode{};
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  EXPECT_NE(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceGetStreamPriorityRange(&least, &greatest), ACL_SUCCESS);
  EXPECT_GT(least, greatest);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &option), ACL_SUCCESS);
  EXPECT_EQ(option, 1);
  EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &option), ACL_SUCCESS);
  EXPECT_EQ(option, 1);
  EXPECT_EQ(aclrtSetOpWaitTimeout(5), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(5), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutWithMs(5000), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPrimaryCtxState(0, &flags, &active), ACL_SUCCESS);
  EXPECT_EQ(active, 1);
  uint32_t groups = 0, task = 7;
  EXPECT_EQ(aclrtSetGroup(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetGroup(5), ACL_ERROR_RT_GROUP_NOT_CREATE);
  EXPECT_EQ(aclrtGetGroupCount(&groups), ACL_SUCCESS);
  aclrtGroupInfo* info = aclrtCreateGroupInfo();
  int32_t cores = 0;
  size_t size = 0;
  EXPECT_EQ(aclrtGetGroupInfoDetail(info, 0, ACL_GROUP_AICORE_INT, &cores, 4, &size),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetAllGroupInfo(info), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetGroupInfoDetail(info, 0, ACL_GROUP_AICORE_INT, &cores, 4, &size), ACL_SUCCESS);
  EXPECT_GE(cores, 1);
  EXPECT_EQ(aclrtDestroyGroupInfo(info), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetThreadLastTaskId(&task), ACL_SUCCESS);
}

TEST_F(AclRuntime, IdentityOfDevices) {
  int32_t id = 7, back = 7;
  EXPECT_EQ(aclrtGetLogicDevIdByUserDevId(0, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetUserDevIdByLogicDevId(id, &back), ACL_SUCCESS);
  EXPECT_EQ(back, 0);
  EXPECT_EQ(aclrtGetPhyDevIdByUserDevId(0, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetUserDevIdByPhyDevId(id, &back), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetLogicDevIdByPhyDevId(id, &back), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetPhyDevIdByLogicDevId(back, &id), ACL_SUCCESS);
  EXPECT_EQ(id, 0);
  EXPECT_EQ(aclrtGetPhyDevIdByLogicDevId(77, &id), ACL_ERROR_RT_INVALID_DEVICEID);
  aclrtUuid a{}, b{};
  EXPECT_EQ(aclrtDeviceGetUuid(0, &a), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceGetUuid(0, &b), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0);
  char bus[16];
  EXPECT_EQ(aclrtDeviceGetPCIBusId(0, bus, sizeof bus), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtDeviceGetByPCIBusId("0000:00:00.0", &id), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

TEST_F(AclRuntime, LimitsOfStreamsAndTimeouts) {
  uint32_t usual = 0, limit = 0, ms = 0;
  uint64_t step = 0, actual = 0;
  EXPECT_EQ(aclrtGetStreamResLimit(stream_, ACL_RT_DEV_RES_VECTOR_CORE, &usual), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamResLimit(stream_, ACL_RT_DEV_RES_VECTOR_CORE, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamResLimit(stream_, ACL_RT_DEV_RES_VECTOR_CORE, &limit), ACL_SUCCESS);
  EXPECT_EQ(limit, 1u);
  EXPECT_EQ(aclrtUseStreamResInCurrentThread(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &limit), ACL_SUCCESS);
  EXPECT_EQ(limit, 1u);
  EXPECT_EQ(aclrtUnuseStreamResInCurrentThread(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &limit), ACL_SUCCESS);
  EXPECT_EQ(limit, usual);
  EXPECT_EQ(aclrtResetStreamResLimit(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamResLimit(stream_, ACL_RT_DEV_RES_VECTOR_CORE, &limit), ACL_SUCCESS);
  EXPECT_EQ(limit, usual);
  EXPECT_EQ(aclrtSetStreamResLimit(stream_, ACL_RT_DEV_RES_VECTOR_CORE, 0),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetOpTimeOutInterval(&step), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(step + 1, &actual), ACL_SUCCESS);
  EXPECT_EQ(actual, 2 * step);
  EXPECT_EQ(aclrtGetOpExecuteTimeout(&ms), ACL_SUCCESS);
  EXPECT_EQ(ms, actual / 1000);
}

TEST_F(AclRuntime, ErrorsOfTheThread) {
  EXPECT_EQ(aclrtSetDevice(-5), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  std::thread([] { EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS); }).join();
}

TEST_F(AclRuntime, Versions) {
  int32_t major = 0, minor = 0, patch = 0, number = 0, infinities = 0;
  EXPECT_EQ(aclrtGetVersion(&major, &minor, &patch), ACL_SUCCESS);
  EXPECT_EQ(major, ACL_MAJOR_VERSION);
  char package[] = "runtime", text[ACL_PKG_VERSION_MAX_SIZE] = {};
  EXPECT_EQ(aclsysGetVersionStr(package, text), ACL_SUCCESS);
  EXPECT_GT(std::strlen(text), 2u);
  EXPECT_EQ(aclsysGetVersionNum(package, &number), ACL_SUCCESS);
  EXPECT_GT(number, 0);
  aclCANNPackageVersion version{};
  EXPECT_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version), ACL_SUCCESS);
  EXPECT_STREQ(version.version, text);
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  EXPECT_EQ(aclGetCannAttributeList(&attributes, &count), ACL_SUCCESS);
  EXPECT_GE(count, 1u);
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_INF_NAN, &infinities), ACL_SUCCESS);
  EXPECT_EQ(infinities, 1);
  aclAppLog(ACL_ERROR, "here", "file", 1, "a %s", "line");
}

int begun = 0, ended = 0;
TEST(AclCallbacks, OfInitAndFinalize) {
  const auto begin = [](const char*, size_t, void*) -> aclError { return ++begun, ACL_SUCCESS; };
  const auto end = [](void*) -> aclError { return ++ended, ACL_SUCCESS; };
  const auto type = static_cast<aclRegisterCallbackType>(0);
  EXPECT_EQ(aclInitCallbackRegister(type, begin, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeCallbackRegister(type, end, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(aclInitCallbackUnRegister(type, begin), ACL_SUCCESS);
  EXPECT_EQ(aclInitCallbackUnRegister(type, begin), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclFinalizeCallbackUnRegister(type, end), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(begun, 1);
}

TEST_F(AclRuntime, KindsOfMemory) {
  void* p[6] = {};
  aclrtMallocConfig config{};
  EXPECT_EQ(aclrtMallocAlign32(&p[0], 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p[0]) % 32, 0u);
  EXPECT_EQ(aclrtMallocCached(&p[1], 100, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemFlush(p[1], 100), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemInvalidate(p[1], 100), ACL_SUCCESS);
  EXPECT_NE(aclrtMemFlush(p[1], 1000), ACL_SUCCESS);
  EXPECT_EQ(aclrtMallocWithCfg(&p[2], 100, ACL_MEM_MALLOC_HUGE_FIRST, &config), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemAllocManaged(&p[3], 100, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMallocHostWithCfg(&p[4], 100, &config), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(p[0], 100, p[4], 100, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  aclrtPtrAttributes attributes{};
  EXPECT_EQ(aclrtPointerGetAttributes(p[0], &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(aclrtPointerGetAttributes(p[4], &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  int outside = 0;
  EXPECT_EQ(aclrtPointerGetAttributes(&outside, &attributes), ACL_SUCCESS);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(aclrtFree(p[i]), ACL_SUCCESS) << i;
  EXPECT_EQ(aclrtFreeHost(p[4]), ACL_SUCCESS);
  alignas(4096) static char own[4096];
  void* mapped = nullptr;
  EXPECT_EQ(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &mapped), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostUnregister(own), ACL_SUCCESS);
  EXPECT_NE(aclrtHostUnregister(own), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostRegisterV2(own, sizeof own, ACL_HOST_REG_MAPPED), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostGetDevicePointer(own, &mapped, 0), ACL_SUCCESS);
  EXPECT_EQ(mapped, own);
  EXPECT_EQ(aclrtHostUnregister(own), ACL_SUCCESS);
}

TEST_F(AclRuntime, Copies) {
  char host[4][8] = {"ab", "cd", "ef", "gh"}, back[4][8] = {};
  auto* block = static_cast<char*>(Block(64));
  EXPECT_EQ(aclrtMemcpy2d(block, 4, host, 8, 3, 4, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_STREQ(block + 8, "ef");
  EXPECT_EQ(aclrtMemcpy2d(block, 2, host, 8, 3, 4, ACL_MEMCPY_HOST_TO_DEVICE),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2dAsync(back, 8, block, 4, 3, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream_),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_STREQ(back[3], "gh");
  EXPECT_EQ(aclrtMemcpyAsyncWithCondition(block, 64, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream_),
            ACL_SUCCESS);
  void *to[] = {block, block + 16}, *from[] = {host[1], host[2]};
  size_t room[] = {16, 16}, sizes[] = {3, 3}, failed = 0;
  EXPECT_EQ(aclrtMemcpyBatch(to, room, from, sizes, 2, nullptr, nullptr, 0, &failed), ACL_SUCCESS);
  EXPECT_STREQ(block + 16, "ef");
  sizes[1] = 99;
  EXPECT_EQ(aclrtMemcpyBatch(to, room, from, sizes, 2, nullptr, nullptr, 0, &failed),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(failed, 1u);
  sizes[1] = 3;
  EXPECT_EQ(aclrtMemcpyBatchAsync(to, room, from, sizes, 2, nullptr, nullptr, 0, &failed, stream_),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyBatchV2(to, room, from, sizes, 2, nullptr, nullptr, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyBatchAsyncV2(to, room, from, sizes, 2, nullptr, nullptr, 0, stream_),
            ACL_SUCCESS);
  auto *sum = static_cast<float*>(Block(16)), *add = static_cast<float*>(Block(16));
  for (int i = 0; i < 4; ++i) sum[i] = 1, add[i] = static_cast<float>(i);
  EXPECT_EQ(
      aclrtReduceAsync(sum, add, 16, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream_, nullptr),
      ACL_SUCCESS);
  EXPECT_EQ(
      aclrtReduceAsync(sum, add, 15, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream_, nullptr),
      ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(sum[3], 4.0f);
  for (void* p : {static_cast<void*>(block), static_cast<void*>(sum), static_cast<void*>(add)})
    EXPECT_EQ(aclrtFree(p), ACL_SUCCESS);
}

TEST_F(AclRuntime, CopiesByStoredAddresses) {
  auto *from = static_cast<uint32_t*>(Block(64)), *to = static_cast<uint32_t*>(Block(64));
  auto** bases = static_cast<void**>(Block(16));
  bases[0] = to;
  bases[1] = from;
  EXPECT_EQ(aclrtMemsetD32(from, 64, 0xDEADBEEF, 16), ACL_SUCCESS);
  EXPECT_EQ(from[15], 0xDEADBEEF);
  EXPECT_EQ(aclrtMemsetD32(from, 64, 1, 17), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemsetD32Async(to, 64, 5, 16, stream_), ACL_SUCCESS);
  const auto offset = [&](size_t count) {
    return aclrtMemcpyAsyncWithOffset(&bases[0], 64, 8, const_cast<const void**>(&bases[1]), count,
                                      4, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, stream_);
  };
  EXPECT_EQ(offset(60), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(offset(8), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(to[1], 5u);
  EXPECT_EQ(to[2], 0xDEADBEEF);
  EXPECT_EQ(to[3], 0xDEADBEEF);
  EXPECT_EQ(to[4], 5u);
  size_t bytes = 0;
  const auto kind = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
  EXPECT_EQ(aclrtGetMemcpyDescSize(ACL_MEMCPY_HOST_TO_HOST, &bytes), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetMemcpyDescSize(kind, &bytes), ACL_SUCCESS);
  void* desc = Block(bytes);
  std::memset(desc, 0, bytes);
  EXPECT_EQ(aclrtMemcpyAsyncWithDesc(desc, kind, stream_), ACL_SUCCESS);  // not filled yet
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetMemcpyDesc(desc, kind, from, to, 64, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsyncWithDesc(desc, kind, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(to[15], 0xDEADBEEF);
  void* known[] = {from, to};
  uint32_t match = 7;
  EXPECT_EQ(aclrtCheckMemType(known, 2, ACL_RT_MEM_TYPE_DEV, &match, 0), ACL_SUCCESS);
  EXPECT_EQ(match, 1u);
  EXPECT_EQ(aclrtCheckMemType(known, 2, ACL_RT_MEM_TYPE_DVPP, &match, 0), ACL_SUCCESS);
  EXPECT_EQ(match, 0u);
  void* host = nullptr;
  EXPECT_EQ(aclrtMallocHost(&host, 64), ACL_SUCCESS);
  for (void* p :
       {static_cast<void*>(from), static_cast<void*>(to), static_cast<void*>(bases), desc})
    EXPECT_EQ(aclrtFreeWithDevSync(p), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHostWithDevSync(host), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHostWithDevSync(host), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(AclRuntime, KeysOfMemory) {
  void *block = Block(4096), *other = nullptr;
  char key[65] = {};
  int32_t pid = getpid();
  EXPECT_EQ(aclrtIpcMemGetExportKey(block, 4096, key, sizeof key, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcMemSetImportPid(key, &pid, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcMemImportByKey(&other, key, 0), ACL_SUCCESS);
  EXPECT_EQ(other, block);
  EXPECT_NE(aclrtIpcMemImportByKey(&other, "nothing", 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcMemClose(key), ACL_SUCCESS);
  EXPECT_NE(aclrtIpcMemClose("nothing"), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  aclrtPhysicalMemProp prop{};
  aclrtDrvMemHandle physical = nullptr, again = nullptr;
  size_t granularity = 0;
  uint64_t shareable = 0;
  EXPECT_EQ(
      aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity),
      ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocPhysical(&physical, 2 << 20, &prop, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemExportToShareableHandle(physical, ACL_MEM_HANDLE_TYPE_NONE, 0, &shareable),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemSetPidToShareableHandle(shareable, &pid, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemImportFromShareableHandle(shareable, 0, &again), ACL_SUCCESS);
  EXPECT_NE(aclrtMemImportFromShareableHandle(shareable + 1000, 0, &again), ACL_SUCCESS);
  void* at = nullptr;
  ASSERT_EQ(aclrtReserveMemAddress(&at, 2 << 20, 0, nullptr, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtMapMem(at, 2 << 20, 0, physical, 0), ACL_SUCCESS);
  aclrtMemAccessDesc access{};
  access.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  EXPECT_EQ(aclrtMemSetAccess(at, 2 << 20, &access, 1), ACL_SUCCESS);
  EXPECT_NE(aclrtMemSetAccess(at, 2 << 20, nullptr, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnmapMem(at), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(at), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreePhysical(physical), ACL_SUCCESS);
}

TEST_F(AclRuntime, EventsAndNotifiesOfOthers) {
  aclrtEvent event = nullptr, opened = nullptr;
  uint32_t id = 0, available = 0;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEventWithFlag(event, stream_, ACL_EVENT_RECORD_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEventWithFlag(stream_, event, ACL_EVENT_WAIT_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEventWithTimeout(stream_, event, 100), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  aclrtEventStatus status{};
  EXPECT_EQ(aclrtQueryEvent(event, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_STATUS_COMPLETE);
  uint64_t time = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(event, &time), ACL_SUCCESS);
  EXPECT_GT(time, 0u);
  EXPECT_EQ(aclrtGetEventId(event, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetEventAvailNum(&available), ACL_SUCCESS);
  EXPECT_GT(available, 0u);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC), ACL_SUCCESS);
  aclrtIpcEventHandle handle{};
  EXPECT_EQ(aclrtIpcGetEventHandle(event, &handle), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcOpenEventHandle(handle, &opened), ACL_SUCCESS);
  EXPECT_NE(aclrtIpcOpenEventHandle(aclrtIpcEventHandle{}, &opened), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  aclrtNotify notify = nullptr, same = nullptr;
  char key[65] = {};
  int32_t pid = getpid();
  ASSERT_EQ(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetNotifyId(notify, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtNotifyGetExportKey(notify, key, sizeof key, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtNotifySetImportPid(notify, &pid, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtNotifyImportByKey(&same, key, 0), ACL_SUCCESS);
  EXPECT_NE(aclrtNotifyImportByKey(&same, "nothing", 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtNotifyBatchReset(&notify, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
}

int seen = 0;
TEST_F(AclRuntime, Streams) {
  EXPECT_EQ(aclrtRegStreamStateCallback(
                "watch", [](aclrtStream, aclrtStreamState, void*) { ++seen; }, nullptr),
            ACL_SUCCESS);
  aclrtStream made = nullptr, current = nullptr;
  uint32_t flags = 0, priority = 9, available = 0, overflow = 9;
  int32_t id = -1;
  ASSERT_EQ(aclrtCreateStreamWithConfig(&made, 3, ACL_STREAM_FAST_LAUNCH), ACL_SUCCESS);
  EXPECT_GE(seen, 1);
  EXPECT_EQ(aclrtStreamGetFlags(made, &flags), ACL_SUCCESS);
  EXPECT_EQ(flags, ACL_STREAM_FAST_LAUNCH);
  EXPECT_EQ(aclrtStreamGetPriority(made, &priority), ACL_SUCCESS);
  EXPECT_EQ(priority, 3u);
  EXPECT_EQ(aclrtStreamGetId(made, &id), ACL_SUCCESS);
  EXPECT_GE(id, 0);
  EXPECT_EQ(aclrtGetStreamAvailableNum(&available), ACL_SUCCESS);
  EXPECT_GT(available, 0u);
  EXPECT_EQ(aclrtSetStreamOverflowSwitch(made, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamOverflowSwitch(made, &overflow), ACL_SUCCESS);
  EXPECT_EQ(overflow, 1u);
  aclrtStreamAttrValue value{};
  EXPECT_EQ(aclrtGetStreamAttribute(made, static_cast<aclrtStreamAttr>(1), &value), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamAttribute(made, static_cast<aclrtStreamAttr>(1), &value), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamStop(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStreamForce(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtRegStreamStateCallback("watch", nullptr, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&current), ACL_SUCCESS);
  EXPECT_NE(current, nullptr);
  aclrtStreamConfigHandle* config = aclrtCreateStreamConfigHandle();
  size_t flag = ACL_STREAM_FAST_SYNC;
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof flag), ACL_SUCCESS);
  EXPECT_NE(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, 3), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStreamV2(&made, config), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetFlags(made, &flags), ACL_SUCCESS);
  EXPECT_EQ(flags, ACL_STREAM_FAST_SYNC);
  EXPECT_EQ(aclrtDestroyStreamConfigHandle(config), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStreamConfigHandle(config), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyStream(made), ACL_SUCCESS);
}

TEST_F(AclRuntime, WhatRecordingsAndQueuesTell) {
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDebugPrint(stream_), ACL_ERROR_RT_INVALID_HANDLE);
  acltdtQueueAttr* attributes = acltdtCreateQueueAttr();
  uint32_t queue = 0, permission = 0;
  ASSERT_EQ(acltdtCreateQueue(attributes, &queue), ACL_SUCCESS);
  EXPECT_EQ(acltdtGrantQueue(queue, getpid(), 1, 0), ACL_SUCCESS);
  EXPECT_EQ(acltdtAttachQueue(queue, 0, &permission), ACL_SUCCESS);
  EXPECT_EQ(acltdtAttachQueue(queue + 999, 0, &permission), ACL_ERROR_INVALID_QUEUE_ID);
  EXPECT_EQ(acltdtDestroyQueue(queue), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyQueueAttr(attributes), ACL_SUCCESS);
  const int64_t dims[] = {2, 3};
  float data[6] = {};
  acltdtDataItem* item =
      acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, data, sizeof data);
  size_t slices = 9, slice = 9;
  EXPECT_EQ(acltdtGetDimNumFromItem(item), 2u);
  EXPECT_EQ(acltdtGetSliceInfoFromItem(item, &slices, &slice), ACL_SUCCESS);
  EXPECT_EQ(acltdtDestroyDataItem(item), ACL_SUCCESS);
  EXPECT_EQ(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 5), ACL_SUCCESS);
  EXPECT_EQ(aclprofSetConfig(ACL_PROF_ARGS_MAX, "x", 1), ACL_ERROR_INVALID_PARAM);
  float values[2] = {};
  aclDataBuffer* buffer = aclCreateDataBuffer(values, sizeof values);
  EXPECT_EQ(aclGetDataBufferSize(buffer), sizeof values);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
}

}  // namespace
