// See context.h.
#include "api/acl/context.h"

#include <cstdlib>
#include <cstring>

#include "api/acl/error.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

struct Device {
  int users = 0;
  std::shared_ptr<Context> primary;
};
struct Devices {
  std::mutex mutex;
  std::vector<Device> list;
  Devices() : list(static_cast<size_t>(DeviceCount())) {}
};
Devices& All() {
  static auto* devices = new Devices;
  return *devices;
}

thread_local const void* current = nullptr;  // handle of the thread's context

std::shared_ptr<Context> MakeContext(int device, bool primary) {
  auto context = std::make_shared<Context>();
  context->device = device;
  context->primary = primary;
  context->handle = Live<Context>().Add(context);
  return context;
}

// Streams of a context end with it: what is queued is dropped.
void CloseContext(const std::shared_ptr<Context>& context) {
  Live<Context>().Remove(context->handle);
  for (const auto& stream : StreamsOf(*context)) {
    Live<Stream>().Remove(stream->handle());
    stream->Close(/*drain=*/false);
  }
  std::lock_guard lock(context->mutex);
  context->streams.clear();
  context->default_stream = nullptr;
}

bool IsDevice(int32_t id) { return id >= 0 && id < DeviceCount(); }

aclError ResetDevice(int32_t id, bool force, const char* function) {
  if (!IsDevice(id))
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function,
                "there is no device " + std::to_string(id));
  std::shared_ptr<Context> last;
  {
    Devices& devices = All();
    std::lock_guard lock(devices.mutex);
    Device& device = devices.list[static_cast<size_t>(id)];
    if (device.users == 0)
      return Fail(ACL_ERROR_RT_CONTEXT_NULL, function, "the device was not set");
    device.users = force ? 0 : device.users - 1;
    if (device.users == 0) last = std::move(device.primary);
    if (device.users == 0) device.primary = nullptr;
  }
  if (last) CloseContext(last);
  return ACL_SUCCESS;
}

}  // namespace

int DeviceCount() {
  static const int count = [] {
    const char* value = std::getenv("GE_ACL_DEVICES");
    const int n = value == nullptr ? 1 : std::atoi(value);
    return n < 1 ? 1 : n > 64 ? 64 : n;
  }();
  return count;
}

std::shared_ptr<Context> CurrentContext() {
  return current == nullptr ? nullptr : Live<Context>().Get(current);
}

std::vector<std::shared_ptr<Stream>> StreamsOf(Context& context) {
  std::lock_guard lock(context.mutex);
  std::vector<std::shared_ptr<Stream>> all;
  for (const auto& weak : context.streams)
    if (auto stream = weak.lock()) all.push_back(std::move(stream));
  return all;
}

std::shared_ptr<Stream> StreamOf(const void* handle, int* code) {
  if (handle != nullptr) {
    auto stream = Live<Stream>().Get(handle);
    if (!stream) *code = ACL_ERROR_RT_INVALID_HANDLE;
    return stream;
  }
  const auto context = CurrentContext();
  if (!context) {
    *code = ACL_ERROR_RT_CONTEXT_NULL;
    return nullptr;
  }
  {
    std::lock_guard lock(context->mutex);
    if (context->default_stream) return context->default_stream;
  }
  auto stream = Stream::Make(context, 0, 0);
  std::lock_guard lock(context->mutex);
  if (!context->default_stream) context->default_stream = stream;
  return context->default_stream;
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtSetDevice(int32_t deviceId) {
  if (!IsDevice(deviceId))
    ACL_FAIL(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device " + std::to_string(deviceId));
  Devices& devices = All();
  std::lock_guard lock(devices.mutex);
  Device& device = devices.list[static_cast<size_t>(deviceId)];
  ++device.users;
  if (!device.primary) device.primary = MakeContext(deviceId, true);
  current = device.primary->handle;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtResetDevice(int32_t deviceId) {
  return ResetDevice(deviceId, false, __func__);
}
GE_ACL aclError aclrtResetDeviceForce(int32_t deviceId) {
  return ResetDevice(deviceId, true, __func__);
}

GE_ACL aclError aclrtGetDevice(int32_t* deviceId) {
  ACL_NEEDS(deviceId != nullptr, "deviceId is null");
  const auto context = CurrentContext();
  if (!context) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  *deviceId = context->device;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtGetDeviceCount(uint32_t* count) {
  ACL_NEEDS(count != nullptr, "count is null");
  *count = static_cast<uint32_t>(DeviceCount());
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  ACL_NEEDS(context != nullptr, "context is null");
  if (!IsDevice(deviceId))
    ACL_FAIL(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device " + std::to_string(deviceId));
  const auto made = MakeContext(deviceId, false);
  current = made->handle;
  *context = made->handle;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtDestroyContext(aclrtContext context) {
  ACL_NEEDS(context != nullptr, "context is null");
  const auto found = Live<Context>().Get(context);
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live context");
  if (found->primary)
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "a device's own context goes with aclrtResetDevice");
  CloseContext(found);
  if (current == context) current = nullptr;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtSetCurrentContext(aclrtContext context) {
  ACL_NEEDS(context != nullptr, "context is null");
  if (!Live<Context>().Get(context)) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live context");
  current = context;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtGetCurrentContext(aclrtContext* context) {
  ACL_NEEDS(context != nullptr, "context is null");
  const auto found = CurrentContext();
  if (!found) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  *context = found->handle;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  const auto context = CurrentContext();
  if (!context) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  ACL_NEEDS(opt >= ACL_OPT_DETERMINISTIC && opt <= ACL_OPT_STRONG_CONSISTENCY, "unknown option");
  ACL_NEEDS(value >= 0 && value <= (opt == ACL_OPT_DETERMINISTIC ? 2 : 1), kOptionValue);
  std::lock_guard lock(context->mutex);
  context->options[opt] = value;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  const auto context = CurrentContext();
  if (!context) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  ACL_NEEDS(opt >= ACL_OPT_DETERMINISTIC && opt <= ACL_OPT_STRONG_CONSISTENCY, "unknown option");
  std::lock_guard lock(context->mutex);
  const auto it = context->options.find(opt);
  // Results are the same bits in every run: determinism is always on.
  *value = it != context->options.end() ? it->second : opt == ACL_OPT_DETERMINISTIC;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  ACL_NEEDS(stream != nullptr, "stream is null");
  int code = 0;
  const auto found = StreamOf(nullptr, &code);
  if (!found) ACL_FAIL(code, kNoContext);
  *stream = found->handle();
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  if (!IsDevice(deviceId)) ACL_FAIL(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
  ACL_NEEDS(active != nullptr, "active is null");
  Devices& devices = All();
  std::lock_guard lock(devices.mutex);
  if (flags != nullptr) *flags = 0;
  *active = devices.list[static_cast<size_t>(deviceId)].primary != nullptr;
  return ACL_SUCCESS;
}
