// Start and stop, versions, capabilities, log.
//
// aclInit reads its JSON for the default device, dumps and profiling.
// Initialisation is not counted: a second one is an error, one after aclFinalize is not.
#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/acl/context.h"
#include "api/acl/dump.h"
#include "api/acl/error.h"
#include "api/acl/json.h"
#include "api/acl/profile.h"

namespace ge::acl {
namespace {

struct Global {
  std::mutex mutex;
  bool initialized = false, was_initialized = false;
  std::string config;
  std::vector<std::pair<aclInitCallbackFunc, void*>> init_callbacks;
  std::vector<std::pair<aclFinalizeCallbackFunc, void*>> finalize_callbacks;
};
Global& The() {
  static auto* global = new Global;
  return *global;
}

template <class List, class Fn>
bool EraseCallback(List& list, Fn fn) {
  return std::erase_if(list, [&](const auto& entry) { return entry.first == fn; }) > 0;
}

constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};
constexpr const char kVersion[] = "8.5.0";
constexpr int32_t kVersionNumber = 80500000;

int LogLevel() {
  static const int level = [] {
    const char* value = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
    return value == nullptr ? static_cast<int>(ACL_ERROR) : std::atoi(value);
  }();
  return level;
}

}  // namespace

bool Initialized() {
  Global& global = The();
  std::lock_guard lock(global.mutex);
  return global.initialized;
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclInit(const char* configPath) {
  Global& global = The();
  std::string text;
  Json json;
  {
    std::lock_guard lock(global.mutex);
    if (global.initialized) ACL_FAIL(ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called already");
  }
  if (aclError code = ReadConfig(configPath, &text, &json, __func__)) return code;
  std::unique_lock lock(global.mutex);
  if (global.initialized) ACL_FAIL(ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called already");
  if (aclError code = StartDump(json, __func__)) return code;
  if (aclError code = StartProfile(json, __func__)) {
    StopDump();
    return code;
  }
  global.initialized = global.was_initialized = true;
  global.config = text;
  const auto callbacks = global.init_callbacks;
  lock.unlock();
  for (const auto& [fn, data] : callbacks)
    if (aclError code = fn(text.c_str(), text.size(), data))
      ACL_FAIL(code, "an initialisation callback failed");
  const Json& device = json["defaultDevice"]["default_device"];
  if (device.IsNull()) return ACL_SUCCESS;
  const int id = device.kind == Json::Kind::kString ? std::atoi(device.string.c_str())
                                                    : static_cast<int>(device.number);
  return aclrtSetDevice(id);
}

GE_ACL aclError aclFinalize() {
  Global& global = The();
  std::unique_lock lock(global.mutex);
  if (!global.initialized) {
    if (global.was_initialized)
      ACL_FAIL(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize was called already");
    ACL_FAIL(ACL_ERROR_UNINITIALIZE, "aclInit was not called");
  }
  global.initialized = false;
  StopDump();
  FinishProfile(__func__);
  const auto callbacks = global.finalize_callbacks;
  lock.unlock();
  for (const auto& [fn, data] : callbacks)
    if (aclError code = fn(data)) ACL_FAIL(code, "a finalisation callback failed");
  return ACL_SUCCESS;
}
GE_ACL aclError aclFinalizeReference(uint64_t* refCount) {
  const aclError code = aclFinalize();
  if (refCount != nullptr) *refCount = 0;
  return code;
}

GE_ACL aclError aclInitCallbackRegister(aclRegisterCallbackType, aclInitCallbackFunc cbFunc,
                                        void* userData) {
  ACL_NEEDS(cbFunc != nullptr, "cbFunc is null");
  Global& global = The();
  std::unique_lock lock(global.mutex);
  global.init_callbacks.emplace_back(cbFunc, userData);
  const bool now = global.initialized;  // too late to be called by aclInit: called here
  const std::string config = global.config;
  lock.unlock();
  return now ? cbFunc(config.c_str(), config.size(), userData) : ACL_SUCCESS;
}
GE_ACL aclError aclInitCallbackUnRegister(aclRegisterCallbackType, aclInitCallbackFunc cbFunc) {
  Global& global = The();
  std::lock_guard lock(global.mutex);
  ACL_NEEDS(EraseCallback(global.init_callbacks, cbFunc), "this callback was not registered");
  return ACL_SUCCESS;
}
GE_ACL aclError aclFinalizeCallbackRegister(aclRegisterCallbackType, aclFinalizeCallbackFunc cbFunc,
                                            void* userData) {
  ACL_NEEDS(cbFunc != nullptr, "cbFunc is null");
  Global& global = The();
  std::lock_guard lock(global.mutex);
  global.finalize_callbacks.emplace_back(cbFunc, userData);
  return ACL_SUCCESS;
}
GE_ACL aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType,
                                              aclFinalizeCallbackFunc cbFunc) {
  Global& global = The();
  std::lock_guard lock(global.mutex);
  ACL_NEEDS(EraseCallback(global.finalize_callbacks, cbFunc), "this callback was not registered");
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion,
                                int32_t* patchVersion) {
  ACL_NEEDS(majorVersion != nullptr && minorVersion != nullptr && patchVersion != nullptr,
            "a null pointer");
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}
GE_ACL aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  ACL_NEEDS(version != nullptr, "version is null");
  ACL_NEEDS(name >= ACL_PKG_NAME_CANN && name <= ACL_PKG_NAME_DRIVER, "unknown package");
  *version = {};
  std::strcpy(version->version, kVersion);
  std::strcpy(version->majorVersion, "8");
  std::strcpy(version->minorVersion, "5");
  std::strcpy(version->releaseVersion, "0");
  return ACL_SUCCESS;
}
GE_ACL aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  ACL_NEEDS(pkgName != nullptr && versionStr != nullptr, "a null pointer");
  std::strcpy(versionStr, kVersion);  // the interface gives it ACL_PKG_VERSION_MAX_SIZE bytes
  return ACL_SUCCESS;
}
GE_ACL aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  ACL_NEEDS(pkgName != nullptr && versionNum != nullptr, "a null pointer");
  *versionNum = kVersionNumber;
  return ACL_SUCCESS;
}
GE_ACL aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  ACL_NEEDS(cannAttrList != nullptr && num != nullptr, "a null pointer");
  *cannAttrList = kAttributes;
  *num = std::size(kAttributes);
  return ACL_SUCCESS;
}
GE_ACL aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  ACL_NEEDS(cannAttr >= ACL_CANN_ATTR_INF_NAN && cannAttr <= ACL_CANN_ATTR_JIT_COMPILE,
            "unknown attribute");
  *value = 0;
  for (const aclCannAttr known : kAttributes)
    if (known == cannAttr) *value = 1;
  return ACL_SUCCESS;
}

GE_ACL void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
                      const char* fmt, ...) {
  const char* out = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
  if (fmt == nullptr || out == nullptr || out[0] != '1' || logLevel < LogLevel()) return;
  static const char* const kNames[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  const char* name = logLevel >= ACL_DEBUG && logLevel <= ACL_ERROR ? kNames[logLevel] : "INFO";
  std::string text(1024, 0);
  va_list args;
  va_start(args, fmt);
  const int n = std::vsnprintf(text.data(), text.size(), fmt, args);
  va_end(args);
  text.resize(static_cast<size_t>(std::clamp(n, 0, 1023)));
  std::printf("[%s] APP: [%s:%u]%s: %s\n", name, file == nullptr ? "" : file, line,
              func == nullptr ? "" : func, text.c_str());
}
