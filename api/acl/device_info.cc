// What a device says about itself: attributes, peers, identity, groups.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "api/acl/context.h"
#include "api/acl/error.h"
#include "base/thread_pool.h"

namespace ge::acl {
namespace {

std::atomic<int> saturation{ACL_RT_OVERFLOW_MODE_INFNAN};

uint32_t Cores() { return static_cast<uint32_t>(AvailableCpus()); }
bool IsDevice(int64_t id) { return id >= 0 && id < DeviceCount(); }

const char* SocName() {
  static const std::string name = [] {
    const char* value = std::getenv("GE_ACL_SOC_NAME");
    return std::string(value == nullptr ? "Ascend910B1" : value);
  }();
  return name.c_str();
}

}  // namespace

}  // namespace ge::acl

struct tagRtGroupInfo {
  static constexpr int kHandleKind = 11;
  bool filled = false;
};

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

#define ACL_DEVICE_ID(id) \
  if (!IsDevice(id))      \
  ACL_FAIL(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device " + std::to_string(id))

// Clients copy between host and device as they do with a card.
GE_ACL aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  ACL_NEEDS(runMode != nullptr, "runMode is null");
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}
GE_ACL const char* aclrtGetSocName() { return SocName(); }
GE_ACL aclError aclrtSetTsDevice(aclrtTsId tsId) {
  ACL_NEEDS(tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR, "unknown scheduler");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  ACL_NEEDS(deviceStatus != nullptr, "deviceStatus is null");
  ACL_DEVICE_ID(deviceId);
  *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                              aclrtUtilizationInfo* utilizationInfo) {
  ACL_NEEDS(utilizationInfo != nullptr, "utilizationInfo is null");
  ACL_DEVICE_ID(deviceId);
  double load = 0;
  if (getloadavg(&load, 1) != 1)
    ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the system does not tell");
  const int percent = static_cast<int>(std::min(100.0, 100.0 * load / Cores()));
  struct sysinfo info{};
  sysinfo(&info);
  const uint64_t total = std::max<uint64_t>(1, info.totalram);
  const int memory =
      static_cast<int>(100 * (total - std::min<uint64_t>(total, info.freeram)) / total);
  *utilizationInfo = {percent, percent, percent, memory, nullptr};
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  ACL_DEVICE_ID(static_cast<int64_t>(deviceId));
  switch (attr) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = Cores(); return ACL_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      *value = std::max<int64_t>(0, sysconf(_SC_LEVEL2_CACHE_SIZE));
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_SMP_ID: *value = 0; return ACL_SUCCESS;
    case ACL_DEV_ATTR_PHY_CHIP_ID: *value = deviceId; return ACL_SUCCESS;
    case ACL_DEV_ATTR_IS_VIRTUAL: *value = 0; return ACL_SUCCESS;
    default: break;
  }
  ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a CPU has no such attribute");
}
GE_ACL aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
                                       int64_t* value) {
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      return aclrtGetDeviceInfo(deviceId, ACL_DEV_ATTR_AICORE_CORE_NUM, value);
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      return aclrtGetDeviceInfo(deviceId, ACL_DEV_ATTR_VECTOR_CORE_NUM, value);
    case ACL_DEVICE_INFO_L2_SIZE:
      return aclrtGetDeviceInfo(deviceId, ACL_DEV_ATTR_L2_CACHE_SIZE, value);
    default: break;
  }
  ACL_FAIL(ACL_ERROR_INVALID_PARAM, "unknown information");
}
GE_ACL aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType, int32_t* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  ACL_DEVICE_ID(deviceId);
  *value = ACL_DEV_FEATURE_NOT_SUPPORT;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority,
                                                  int32_t* greatestPriority) {
  if (leastPriority != nullptr) *leastPriority = 7;
  if (greatestPriority != nullptr) *greatestPriority = 0;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtCheckArchCompatibility(const char* socVersion, int32_t* canCompatible) {
  ACL_NEEDS(socVersion != nullptr && canCompatible != nullptr, "a null pointer");
  *canCompatible = std::string_view(socVersion).starts_with("Ascend");
  return ACL_SUCCESS;
}

// Nothing of a CPU's errors is known here.
GE_ACL aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  ACL_NEEDS(errorInfo != nullptr, "errorInfo is null");
  ACL_DEVICE_ID(deviceId);
  std::memset(errorInfo, 0, sizeof *errorInfo);
  errorInfo->errorType = ACL_RT_NO_ERROR;
  return ACL_SUCCESS;
}

// Devices of one process share its memory: every pair are peers.
GE_ACL aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                         int32_t peerDeviceId) {
  ACL_NEEDS(canAccessPeer != nullptr, "canAccessPeer is null");
  ACL_DEVICE_ID(deviceId);
  ACL_DEVICE_ID(peerDeviceId);
  ACL_NEEDS(deviceId != peerDeviceId, "a device is not its own peer");
  *canAccessPeer = 1;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  ACL_DEVICE_ID(peerDeviceId);
  ACL_NEEDS(flags == 0, "flags must be 0");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  ACL_DEVICE_ID(peerDeviceId);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId,
                                            int32_t* status) {
  ACL_NEEDS(status != nullptr, "status is null");
  ACL_DEVICE_ID(deviceId);
  ACL_DEVICE_ID(peerDeviceId);
  *status = 1;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  ACL_NEEDS(pid != nullptr, "pid is null");
  *pid = getpid();
  return ACL_SUCCESS;
}

// Arithmetic is IEEE: infinities and NaN stay what they are.
GE_ACL aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  ACL_NEEDS(mode >= ACL_RT_OVERFLOW_MODE_SATURATION && mode < ACL_RT_OVERFLOW_MODE_UNDEF,
            "unknown mode");
  if (mode == ACL_RT_OVERFLOW_MODE_SATURATION)
    ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "saturation is not supported: results are IEEE's");
  saturation = mode;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  ACL_NEEDS(mode != nullptr, "mode is null");
  *mode = static_cast<aclrtFloatOverflowMode>(saturation.load());
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetThreadLastTaskId(uint32_t* taskId) {
  ACL_NEEDS(taskId != nullptr, "taskId is null");
  *taskId = 0;
  return ACL_SUCCESS;
}

// A device has one number in every numbering.
namespace {
aclError SameId(int32_t id, int32_t* to, const char* function) {
  if (to == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "a null pointer");
  if (!IsDevice(id))
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function,
                "there is no device " + std::to_string(id));
  *to = id;
  return ACL_SUCCESS;
}
}  // namespace
GE_ACL aclError aclrtGetLogicDevIdByUserDevId(int32_t userDevid, int32_t* logicDevId) {
  return SameId(userDevid, logicDevId, __func__);
}
GE_ACL aclError aclrtGetUserDevIdByLogicDevId(int32_t logicDevId, int32_t* userDevid) {
  return SameId(logicDevId, userDevid, __func__);
}
GE_ACL aclError aclrtGetPhyDevIdByUserDevId(int32_t userDevid, int32_t* phyDevId) {
  return SameId(userDevid, phyDevId, __func__);
}
GE_ACL aclError aclrtGetUserDevIdByPhyDevId(int32_t phyDevId, int32_t* userDevid) {
  return SameId(phyDevId, userDevid, __func__);
}
GE_ACL aclError aclrtGetLogicDevIdByPhyDevId(int32_t phyDevId, int32_t* logicDevId) {
  return SameId(phyDevId, logicDevId, __func__);
}
GE_ACL aclError aclrtGetPhyDevIdByLogicDevId(int32_t logicDevId, int32_t* phyDevId) {
  return SameId(logicDevId, phyDevId, __func__);
}
// The machine's identity, with the device's number in the last byte.
GE_ACL aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  ACL_NEEDS(uuid != nullptr, "uuid is null");
  ACL_DEVICE_ID(deviceId);
  *uuid = {};
  char digits[33] = {};
  if (std::FILE* file = std::fopen("/etc/machine-id", "r"); file != nullptr) {
    const bool read = std::fgets(digits, sizeof digits, file) != nullptr;
    std::fclose(file);
    for (size_t i = 0; read && i < sizeof uuid->bytes; ++i) {
      const char pair[] = {digits[2 * i], digits[2 * i + 1], 0};
      uuid->bytes[i] = static_cast<char>(std::strtol(pair, nullptr, 16));
    }
  }
  uuid->bytes[15] = static_cast<char>(uuid->bytes[15] ^ deviceId);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len) {
  ACL_NEEDS(pciBusId != nullptr && len >= 13, "pciBusId is null or shorter than 13");
  ACL_DEVICE_ID(deviceId);
  ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a CPU is not on a PCI bus");
}
GE_ACL aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId) {
  ACL_NEEDS(pciBusId != nullptr && deviceId != nullptr, "a null pointer");
  ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a CPU is not on a PCI bus");
}

// The one group: all cores.
GE_ACL aclError aclrtSetGroup(int32_t groupId) {
  if (groupId != 0) ACL_FAIL(ACL_ERROR_RT_GROUP_NOT_CREATE, "there is one group, 0");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetGroupCount(uint32_t* count) {
  ACL_NEEDS(count != nullptr, "count is null");
  *count = 1;
  return ACL_SUCCESS;
}
GE_ACL aclrtGroupInfo* aclrtCreateGroupInfo() {
  return static_cast<aclrtGroupInfo*>(
      Live<tagRtGroupInfo>().Add(std::make_shared<tagRtGroupInfo>()));
}
GE_ACL aclError aclrtDestroyGroupInfo(aclrtGroupInfo* groupInfo) {
  ACL_NEEDS(groupInfo != nullptr, "groupInfo is null");
  if (!Live<tagRtGroupInfo>().Remove(groupInfo))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, "not a live group info");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetAllGroupInfo(aclrtGroupInfo* groupInfo) {
  ACL_NEEDS(groupInfo != nullptr, "groupInfo is null");
  if (!Live<tagRtGroupInfo>().With(groupInfo, [](tagRtGroupInfo& g) { g.filled = true; }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, "not a live group info");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetGroupInfoDetail(const aclrtGroupInfo* groupInfo, int32_t groupIndex,
                                        aclrtGroupAttr attr, void* attrValue, size_t valueLen,
                                        size_t* paramRetSize) {
  ACL_NEEDS(groupInfo != nullptr && attrValue != nullptr && paramRetSize != nullptr,
            "a null pointer");
  bool filled = false;
  if (!Live<tagRtGroupInfo>().With(groupInfo, [&](tagRtGroupInfo& g) { filled = g.filled; }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, "not a live group info");
  ACL_NEEDS(filled, "aclrtGetAllGroupInfo was not called");
  ACL_NEEDS(groupIndex == 0, "there is one group, 0");
  ACL_NEEDS(attr >= ACL_GROUP_AICORE_INT && attr <= ACL_GROUP_GROUPID_INT, "unknown attribute");
  ACL_NEEDS(valueLen >= sizeof(int32_t), "valueLen is below 4");
  const bool core = attr <= ACL_GROUP_AIC_INT;
  const auto value = static_cast<int32_t>(core ? Cores() : 0);
  std::memcpy(attrValue, &value, sizeof value);
  *paramRetSize = sizeof value;
  return ACL_SUCCESS;
}
