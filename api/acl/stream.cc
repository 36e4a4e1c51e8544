// See stream.h.
#include "api/acl/stream.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>

#include "api/acl/error.h"
#include "api/acl/recording.h"

namespace ge::acl {
namespace {

std::atomic<int32_t> next_id{0};
constexpr size_t kMaxStreams = 2048;

struct StateCallbacks {
  std::mutex mutex;
  std::map<std::string, std::pair<aclrtStreamStateCallback, void*>> list;
};
StateCallbacks& Callbacks() {
  static auto* callbacks = new StateCallbacks;
  return *callbacks;
}

void TellState(aclrtStream stream, aclrtStreamState state) {
  StateCallbacks& callbacks = Callbacks();
  std::unique_lock lock(callbacks.mutex);
  const auto list = callbacks.list;
  lock.unlock();
  for (const auto& [name, callback] : list) callback.first(stream, state, callback.second);
}

}  // namespace

Signal& TheSignal() {
  static auto* signal = new Signal;
  return *signal;
}

Stream::Stream(uint32_t priority, uint32_t flags)
    : id_(next_id++), priority_(priority), flags_(flags) {}

std::shared_ptr<Stream> Stream::Make(const std::shared_ptr<Context>& context, uint32_t priority,
                                     uint32_t flags) {
  if (Live<Stream>().live() >= kMaxStreams) return nullptr;
  auto stream = std::make_shared<Stream>(std::min(priority, 7u), flags);
  stream->context = context;
  stream->handle_ = Live<Stream>().Add(stream);
  std::lock_guard lock(context->mutex);
  auto& all = context->streams;
  std::erase_if(all, [](const std::weak_ptr<Stream>& weak) { return weak.expired(); });
  all.push_back(stream);
  return stream;
}

bool Stream::Record(std::shared_ptr<Recording> recording) {
  std::lock_guard lock(mutex_);
  if (recording && (recording_ || closing_)) return false;
  recording_.swap(recording);
  return true;
}

std::shared_ptr<Recording> Stream::recording() const {
  std::lock_guard lock(mutex_);
  return recording_;
}

void Stream::SetAllocator(std::shared_ptr<const Allocator> allocator) {
  std::lock_guard lock(mutex_);
  allocator_.swap(allocator);
}

std::shared_ptr<const Allocator> Stream::allocator() const {
  std::lock_guard lock(mutex_);
  return allocator_;
}

aclError Stream::Submit(Task task, const char* kind) {
  {
    std::lock_guard lock(mutex_);
    if (closing_) return ACL_ERROR_RT_INVALID_HANDLE;
    if (recording_) {
      recording_->Add({kind, handle_, std::move(task)});
      return ACL_SUCCESS;
    }
    if (error_ != ACL_SUCCESS && failure_mode == ACL_STOP_ON_FAILURE) return error_;
    queue_.push_back(std::move(task));
    ++submitted_;
    if (!started_) {
      started_ = true;
      thread_ = std::thread([self = shared_from_this()] { self->Loop(); });
    }
  }
  work_.notify_one();
  return ACL_SUCCESS;
}

void Stream::Loop() {
  pthread_setname_np(pthread_self(), ("acl stream " + std::to_string(id_ % 1000)).c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return !queue_.empty() || closing_; });
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    const bool skip = error_ != ACL_SUCCESS && failure_mode == ACL_STOP_ON_FAILURE;
    lock.unlock();
    const aclError code = skip || cut_off() ? ACL_SUCCESS : task(*this);
    task = nullptr;  // what it holds is released outside of the lock
    lock.lock();
    if (code != ACL_SUCCESS && error_ == ACL_SUCCESS) error_ = code;
    ++finished_;
    done_.notify_all();
  }
}

bool Stream::Idle() const {
  std::lock_guard lock(mutex_);
  return finished_ == submitted_;
}

aclError Stream::Synchronize(int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  if (started_ && thread_.get_id() == std::this_thread::get_id())
    return ACL_ERROR_RT_STREAM_CONTEXT;  // a task that waits for itself
  if (recording_) return ACL_ERROR_RT_STREAM_CAPTURED;
  const uint64_t target = submitted_;
  const auto over = [&] { return finished_ >= target; };
  if (timeout_ms < 0) {
    done_.wait(lock, over);
  } else if (!done_.wait_for(lock, std::chrono::milliseconds(timeout_ms), over)) {
    return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
  }
  const aclError code = error_;
  if (failure_mode != ACL_STOP_ON_FAILURE) error_ = ACL_SUCCESS;
  return code;
}

void Stream::Abort() {
  std::deque<Task> dropped;
  bool own = false;
  {
    std::lock_guard lock(mutex_);
    own = started_ && thread_.get_id() == std::this_thread::get_id();
    dropped.swap(queue_);
    finished_ += dropped.size();
    cut_off_.store(true, std::memory_order_release);
    done_.notify_all();
  }
  Raise([] {});
  dropped.clear();
  std::unique_lock lock(mutex_);
  if (!own) done_.wait(lock, [&] { return finished_ >= submitted_; });
  error_ = ACL_SUCCESS;
  if (!closing_) cut_off_.store(false, std::memory_order_release);
}

void Stream::Close(bool drain) {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;  // nothing is submitted any more
  }
  if (const auto recording = this->recording()) {
    Record(nullptr);
    recording->StreamGone(*this);
  }
  if (!drain) Abort();
  work_.notify_one();
  Join();
}

void Stream::Join() {
  std::thread thread;
  {
    std::lock_guard lock(mutex_);
    thread.swap(thread_);
  }
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

aclError SubmitTo(aclrtStream handle, const char* function, Stream::Task task) {
  int code = 0;
  const auto stream = StreamOf(handle, &code);
  if (!stream) {
    return Fail(code, function,
                code == ACL_ERROR_RT_CONTEXT_NULL ? kNoContext : "not a live stream");
  }
  code = stream->Submit(std::move(task), function);
  return code == ACL_SUCCESS ? code : Fail(code, function, "the stream takes no tasks");
}

namespace {

// Finds the stream or returns from the calling function with the reason.
#define ACL_STREAM(name, handle)                    \
  int name##_code = 0;                              \
  const auto name = StreamOf(handle, &name##_code); \
  if (!name)                                        \
  ACL_FAIL(name##_code, name##_code == ACL_ERROR_RT_CONTEXT_NULL ? kNoContext : "not a live stream")

aclError CreateStream(aclrtStream* stream, uint32_t priority, uint32_t flag, const char* function) {
  if (stream == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "stream is null");
  const auto context = CurrentContext();
  if (!context) return Fail(ACL_ERROR_RT_CONTEXT_NULL, function, kNoContext);
  const auto made = Stream::Make(context, priority, flag);
  if (!made) return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, function, "too many streams");
  *stream = made->handle();
  TellState(*stream, ACL_RT_STREAM_STATE_CREATE_POST);
  return ACL_SUCCESS;
}

aclError DestroyStream(aclrtStream stream, bool drain, const char* function) {
  if (stream == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "stream is null");
  const auto found = Live<Stream>().Get(stream);
  if (!found) return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "not a live stream");
  TellState(stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
  if (!Live<Stream>().Remove(stream))
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "not a live stream");
  if (const auto context = found->context.lock()) {
    std::lock_guard lock(context->mutex);
    if (context->default_stream == found) context->default_stream = nullptr;
  }
  found->Close(drain);
  return ACL_SUCCESS;
}

struct StreamConfigs {
  std::mutex mutex;
  std::vector<std::unique_ptr<aclrtStreamConfigHandle>> list;
};
StreamConfigs& Configs() {
  static auto* configs = new StreamConfigs;
  return *configs;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtCreateStream(aclrtStream* stream) {
  return CreateStream(stream, 0, 0, __func__);
}
GE_ACL aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return CreateStream(stream, priority, flag, __func__);
}
GE_ACL aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  return handle == nullptr ? CreateStream(stream, 0, 0, __func__)
                           : CreateStream(stream, handle->priority,
                                          static_cast<uint32_t>(handle->flag), __func__);
}
// Public records: clients see their members, so that the handle is the address.
GE_ACL aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle() {
  auto made = std::make_unique<aclrtStreamConfigHandle>();
  StreamConfigs& configs = Configs();
  std::lock_guard lock(configs.mutex);
  return configs.list.emplace_back(std::move(made)).get();
}
GE_ACL aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  ACL_NEEDS(handle != nullptr, "handle is null");
  StreamConfigs& configs = Configs();
  std::lock_guard lock(configs.mutex);
  ACL_NEEDS(std::erase_if(configs.list, [&](const auto& c) { return c.get() == handle; }) > 0,
            "not a live configuration");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                        const void* attrValue, size_t valueSize) {
  ACL_NEEDS(handle != nullptr && attrValue != nullptr, "a null pointer");
  // Clients give 32-bit values for 64-bit members too.
  const auto read = [&](auto* to) {
    const bool narrow = sizeof *to == 8 && valueSize == 4 && attr != ACL_RT_STREAM_WORK_ADDR_PTR;
    if (valueSize != sizeof *to && !narrow) return false;
    __builtin_memset(to, 0, sizeof *to);
    __builtin_memcpy(to, attrValue, valueSize);
    return true;
  };
  bool fits = false;
  switch (attr) {
    case ACL_RT_STREAM_WORK_ADDR_PTR: fits = read(&handle->workptr); break;
    case ACL_RT_STREAM_WORK_SIZE: fits = read(&handle->workSize); break;
    case ACL_RT_STREAM_FLAG: fits = read(&handle->flag); break;
    case ACL_RT_STREAM_PRIORITY: fits = read(&handle->priority); break;
  }
  ACL_NEEDS(fits, "unknown attribute or wrong size of its value");
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtDestroyStream(aclrtStream stream) {
  return DestroyStream(stream, true, __func__);
}
GE_ACL aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return DestroyStream(stream, false, __func__);
}

GE_ACL aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  ACL_STREAM(found, stream);
  const aclError code = found->Synchronize(timeout);
  if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) ACL_FAIL(code, "the tasks were not done in time");
  if (code == ACL_ERROR_RT_STREAM_CONTEXT) ACL_FAIL(code, "called by a task of the same stream");
  if (code == ACL_ERROR_RT_STREAM_CAPTURED) ACL_FAIL(code, "the stream is being recorded");
  if (code != ACL_SUCCESS) ACL_FAIL(code, "a task of the stream failed with this code");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSynchronizeStream(aclrtStream stream) {
  return aclrtSynchronizeStreamWithTimeout(stream, -1);
}

GE_ACL aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  const auto context = CurrentContext();
  if (!context) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  for (const auto& stream : Live<Stream>().All()) {
    const auto owner = stream->context.lock();
    if (!owner || owner->device != context->device) continue;
    const aclError code = stream->Synchronize(timeout);
    if (code != ACL_SUCCESS) ACL_FAIL(code, "a stream of the device failed with this code");
  }
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSynchronizeDevice() { return aclrtSynchronizeDeviceWithTimeout(-1); }

GE_ACL aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  ACL_NEEDS(status != nullptr, "status is null");
  ACL_STREAM(found, stream);
  *status = found->Idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtStreamAbort(aclrtStream stream) {
  ACL_STREAM(found, stream);
  found->Abort();
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtStreamStop(aclrtStream stream) {
  ACL_STREAM(found, stream);
  found->Abort();
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  ACL_NEEDS(streamId != nullptr, "streamId is null");
  ACL_STREAM(found, stream);
  *streamId = found->id();
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  ACL_NEEDS(priority != nullptr, "priority is null");
  ACL_STREAM(found, stream);
  *priority = found->priority();
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  ACL_NEEDS(flags != nullptr, "flags is null");
  ACL_STREAM(found, stream);
  *flags = found->flags();
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  ACL_NEEDS(streamCount != nullptr, "streamCount is null");
  *streamCount = static_cast<uint32_t>(kMaxStreams - Live<Stream>().live());
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  ACL_NEEDS(stream != nullptr, "the default stream's failure mode cannot be set");
  ACL_NEEDS(mode <= ACL_STOP_ON_FAILURE, "unknown mode");
  ACL_STREAM(found, stream);
  found->failure_mode = mode;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  ACL_NEEDS(flag <= 1, "the switch must be 0 or 1");
  ACL_STREAM(found, stream);
  found->overflow_switch = flag;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  ACL_NEEDS(flag != nullptr, "flag is null");
  ACL_STREAM(found, stream);
  *flag = found->overflow_switch;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                        aclrtStreamAttrValue* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: return aclrtSetStreamFailureMode(stream, value->failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return aclrtSetStreamOverflowSwitch(stream, value->overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG: {
      ACL_STREAM(found, stream);
      found->tag = value->userCustomTag;
      return ACL_SUCCESS;
    }
    default: break;
  }
  ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "this attribute cannot be set");
}
GE_ACL aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                        aclrtStreamAttrValue* value) {
  ACL_NEEDS(value != nullptr, "value is null");
  ACL_STREAM(found, stream);
  *value = {};
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: value->failureMode = found->failure_mode; break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      value->overflowSwitch = found->overflow_switch;
      break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG: value->userCustomTag = found->tag; break;
    case ACL_STREAM_ATTR_PRIORITY: value->streamPriority = found->priority(); break;
    default: ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "unknown attribute");
  }
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                            void* args) {
  ACL_NEEDS(regName != nullptr && regName[0] != 0, "regName is empty");
  StateCallbacks& callbacks = Callbacks();
  std::lock_guard lock(callbacks.mutex);
  if (callback == nullptr) {
    callbacks.list.erase(regName);
  } else {
    callbacks.list[regName] = {callback, args};
  }
  return ACL_SUCCESS;
}
