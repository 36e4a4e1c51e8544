// Limits and options of the process: cores of devices and streams (here: workers of models that are
// loaded afterwards), timeouts of operators, determinism.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "api/acl/context.h"
#include "api/acl/error.h"
#include "api/acl/model.h"
#include "api/acl/stream.h"
#include "base/thread_pool.h"

namespace ge::acl {
namespace {

constexpr uint64_t kTimeoutStepUs = 1000;  // operators' timeouts are whole numbers of it ...
constexpr uint64_t kMostSteps = 254;       // ... as on a card

uint32_t Cores() { return static_cast<uint32_t>(AvailableCpus()); }

struct Limits {
  std::atomic<uint32_t> device{0};  // 0: none
  std::atomic<uint64_t> timeout_us{0};
  std::mutex mutex;
  std::map<const void*, uint32_t> streams;  // by handle
  std::map<int, int64_t> options;
};
Limits& The() {
  static auto* limits = new Limits;
  return *limits;
}

thread_local const void* used_stream = nullptr;  // whose limit this thread uses

uint32_t OfStream(const void* handle) {
  Limits& limits = The();
  std::lock_guard lock(limits.mutex);
  std::erase_if(limits.streams, [](const auto& entry) { return !Live<Stream>().Get(entry.first); });
  const auto it = limits.streams.find(handle);
  return it == limits.streams.end() ? 0 : it->second;
}

aclError CheckType(int32_t device, aclrtDevResLimitType type, const char* function) {
  if (device < 0 || device >= DeviceCount())
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function,
                "there is no device " + std::to_string(device));
  if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "unknown type");
  return ACL_SUCCESS;
}

uint64_t Rounded(uint64_t us) {
  const uint64_t steps = us / kTimeoutStepUs + (us % kTimeoutStepUs != 0 ? 1 : 0);
  return std::min(steps, kMostSteps) * kTimeoutStepUs;
}

}  // namespace

int DeviceThreads() {
  if (used_stream != nullptr)
    if (const uint32_t limit = OfStream(used_stream)) return static_cast<int>(limit);
  return static_cast<int>(The().device.load());
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

#define ACL_LIMIT_STREAM(name, handle)              \
  int name##_code = ACL_SUCCESS;                    \
  const auto name = StreamOf(handle, &name##_code); \
  if (!name) ACL_FAIL(name##_code, "not a live stream, or no context")

GE_ACL aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                       uint32_t value) {
  if (aclError code = CheckType(deviceId, type, __func__)) return code;
  ACL_NEEDS(value >= 1 && value <= Cores(), "the limit is 0 or above the number of cores");
  The().device = value;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                       uint32_t* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  if (aclError code = CheckType(deviceId, type, __func__)) return code;
  const uint32_t limit = The().device;
  *value = limit == 0 ? Cores() : limit;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  if (aclError code = CheckType(deviceId, ACL_RT_DEV_RES_CUBE_CORE, __func__)) return code;
  The().device = 0;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                       uint32_t value) {
  if (aclError code = CheckType(0, type, __func__)) return code;
  ACL_NEEDS(value >= 1 && value <= Cores(), "the limit is 0 or above the number of cores");
  ACL_LIMIT_STREAM(found, stream);
  Limits& limits = The();
  std::lock_guard lock(limits.mutex);
  limits.streams[found->handle()] = value;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                       uint32_t* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  ACL_LIMIT_STREAM(found, stream);
  if (aclError code = aclrtGetDeviceResLimit(0, type, value)) return code;
  if (const uint32_t limit = OfStream(found->handle())) *value = limit;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtResetStreamResLimit(aclrtStream stream) {
  ACL_LIMIT_STREAM(found, stream);
  Limits& limits = The();
  std::lock_guard lock(limits.mutex);
  limits.streams.erase(found->handle());
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  ACL_LIMIT_STREAM(found, stream);
  used_stream = found->handle();
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  ACL_LIMIT_STREAM(found, stream);
  if (used_stream == found->handle()) used_stream = nullptr;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  if (aclError code = aclrtGetDeviceResLimit(0, type, value)) return code;
  if (used_stream != nullptr)
    if (const uint32_t limit = OfStream(used_stream)) *value = limit;
  return ACL_SUCCESS;
}

// Nothing is ended by a timeout here; what was set is told.
GE_ACL aclError aclrtSetOpWaitTimeout(uint32_t) { return ACL_SUCCESS; }
GE_ACL aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  The().timeout_us = Rounded(timeout);
  if (actualTimeout != nullptr) *actualTimeout = Rounded(timeout);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  return aclrtSetOpExecuteTimeOutV2(uint64_t{timeout} * 1000000, nullptr);
}
GE_ACL aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  return aclrtSetOpExecuteTimeOutV2(uint64_t{timeout} * 1000, nullptr);
}
GE_ACL aclError aclrtGetOpExecuteTimeout(uint32_t* timeoutMs) {
  ACL_NEEDS(timeoutMs != nullptr, "a null pointer");
  *timeoutMs = static_cast<uint32_t>(The().timeout_us / 1000);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetOpTimeOutInterval(uint64_t* interval) {
  ACL_NEEDS(interval != nullptr, "a null pointer");
  *interval = kTimeoutStepUs;
  return ACL_SUCCESS;
}

// Results are the same bits in every run, whatever is set: determinism is always on.
GE_ACL aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  ACL_NEEDS(opt >= ACL_OPT_DETERMINISTIC && opt <= ACL_OPT_STRONG_CONSISTENCY, "unknown option");
  ACL_NEEDS(value >= 0 && value <= (opt == ACL_OPT_DETERMINISTIC ? 2 : 1), kOptionValue);
  Limits& limits = The();
  std::lock_guard lock(limits.mutex);
  limits.options[opt] = value;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  ACL_NEEDS(opt >= ACL_OPT_DETERMINISTIC && opt <= ACL_OPT_STRONG_CONSISTENCY, "unknown option");
  Limits& limits = The();
  std::lock_guard lock(limits.mutex);
  const auto it = limits.options.find(opt);
  *value = it != limits.options.end() ? it->second : opt == ACL_OPT_DETERMINISTIC;
  return ACL_SUCCESS;
}
