// Events, notifies and waits for values in memory.
//
// An event counts its records: `requested` when the record is submitted, `completed` when the
// stream has come to it. A wait waits for the last record that was submitted before it; if there is
// none, a plain event waits for the next record, an event of aclrtCreateEventExWithFlag does not
// wait. A notify is one bit: a wait takes it back.
//
// While a stream is recorded (recording.h), recording an event and waiting for it only say which
// streams belong together: the order of the recording keeps the rest. Flag EXTERNAL makes tasks of
// them, for whoever waits outside.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/recording.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

std::atomic<uint32_t> next_event{0}, next_notify{0};
constexpr uint32_t kMaxEvents = 65536;

// State under the Signal's lock.
struct Event {
  static constexpr int kHandleKind = 3;
  const uint32_t id = next_event++;
  uint32_t flags = 0;
  bool extended = false;
  bool destroyed = false;
  uint64_t requested = 0, completed = 0, reset = 0;  // numbers of records
  int64_t waits = 0;                                 // submitted and not over
  int64_t time_ns = 0;                               // of the last completed record
  std::weak_ptr<Recording> recording;                // in which it was recorded last
};

struct Notify {
  static constexpr int kHandleKind = 4;
  const uint32_t id = next_notify++;
  bool set = false, destroyed = false;
};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

#define ACL_EVENT(name, handle)                  \
  ACL_NEEDS(handle != nullptr, "event is null"); \
  const auto name = Live<Event>().Get(handle);   \
  if (!name) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live event")
#define ACL_NOTIFY(name, handle)                  \
  ACL_NEEDS(handle != nullptr, "notify is null"); \
  const auto name = Live<Notify>().Get(handle);   \
  if (!name) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live notify")

aclError MakeEvent(aclrtEvent* event, uint32_t flag, bool extended, const char* function) {
  if (event == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "event is null");
  constexpr uint32_t kKnown = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS |
                              ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL |
                              ACL_EVENT_IPC;
  if ((flag & ~kKnown) != 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "unknown flag");
  if (!CurrentContext()) return Fail(ACL_ERROR_RT_CONTEXT_NULL, function, kNoContext);
  if (Live<Event>().live() >= kMaxEvents)
    return Fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, function, "too many events");
  auto made = std::make_shared<Event>();
  made->flags = flag;
  made->extended = extended;
  *event = Live<Event>().Add(std::move(made));
  return ACL_SUCCESS;
}

// The record that a wait which is submitted now waits for; 0: none. Under the Signal's lock.
uint64_t Target(const Event& event) {
  if (event.requested > event.reset) return event.requested;
  return event.extended ? 0 : event.requested + 1;
}

aclError WaitUntil(const Event& event, uint64_t target, int64_t timeout_ms, const Stream& self,
                   std::unique_lock<std::mutex>& lock) {
  const bool done = WaitSignal(lock, &self, timeout_ms,
                               [&] { return event.completed >= target || event.destroyed; });
  return done || self.cut_off() ? ACL_SUCCESS : ACL_ERROR_RT_WAIT_TIMEOUT;
}

// A wait of a recorded stream, or one that makes the stream recorded. False: an ordinary wait.
bool WaitRecorded(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event) {
  std::shared_ptr<Recording> origin;
  {
    std::lock_guard lock(TheSignal().mutex);
    origin = event->recording.lock();
  }
  if (!origin || !origin->open()) return false;
  if (stream->recording() == origin) return true;
  if (!stream->Record(origin)) return false;
  origin->Join(stream);
  return true;
}

aclError WaitEvent(aclrtStream stream, aclrtEvent handle, int64_t timeout_ms, bool external,
                   const char* function) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "event is null");
  const auto event = Live<Event>().Get(handle);
  if (!event) return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "not a live event");
  int code = 0;
  if (const auto found = StreamOf(stream, &code)) {
    if (!external && WaitRecorded(found, event)) return ACL_SUCCESS;
    if (found->recording())
      return SubmitTo(stream, function, [event, timeout_ms](const Stream& self) -> aclError {
        std::unique_lock lock(TheSignal().mutex);
        return WaitUntil(*event, Target(*event), timeout_ms, self, lock);
      });
  }
  uint64_t target = 0;
  {
    std::lock_guard lock(TheSignal().mutex);
    target = Target(*event);
    ++event->waits;
  }
  // Counts down even if the task is dropped.
  std::shared_ptr<void> counted(nullptr, [event](void*) { Raise([&] { --event->waits; }); });
  return SubmitTo(
      stream, function,
      [event, target, timeout_ms, counted = std::move(counted)](const Stream& self) -> aclError {
        std::unique_lock lock(TheSignal().mutex);
        return WaitUntil(*event, target, timeout_ms, self, lock);
      });
}

// A record of a stream that is being recorded.
aclError RecordRecorded(const std::shared_ptr<Event>& event, aclrtStream handle,
                        const std::shared_ptr<Recording>& recording, bool external,
                        const char* function) {
  if (!external) {
    std::lock_guard lock(TheSignal().mutex);
    event->recording = recording;
    return ACL_SUCCESS;
  }
  return SubmitTo(handle, function, [event](const Stream&) -> aclError {
    Raise([&] {
      event->completed = ++event->requested;
      event->time_ns = NowNs();
    });
    return ACL_SUCCESS;
  });
}

aclError RecordEvent(aclrtEvent handle, aclrtStream stream, bool external, const char* function) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "event is null");
  const auto event = Live<Event>().Get(handle);
  if (!event) return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "not a live event");
  int code = 0;
  const auto found = StreamOf(stream, &code);
  if (!found) return Fail(code, function, "not a live stream, or no context");
  if (const auto recording = found->recording())
    return RecordRecorded(event, stream, recording, external, function);
  uint64_t number = 0;
  {
    std::lock_guard lock(TheSignal().mutex);
    number = ++event->requested;
    event->recording.reset();
  }
  // A record that is dropped with its stream counts as done: nobody must wait for it for ever.
  std::shared_ptr<void> record(nullptr, [event, number](void*) {
    Raise([&] {
      if (event->completed >= number) return;
      event->completed = number;
      event->time_ns = NowNs();
    });
  });
  return SubmitTo(stream, function,
                  [record = std::move(record)](const Stream&) mutable -> aclError {
                    record.reset();
                    return ACL_SUCCESS;
                  });
}

bool Recorded(const Event& e) { return e.requested > e.reset && e.completed >= e.requested; }

bool Holds(uint64_t current, uint64_t value, uint32_t flag) {
  switch (flag) {
    case ACL_STREAM_WAIT_VALUE_GEQ: return static_cast<int64_t>(current - value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ: return current == value;
    case ACL_STREAM_WAIT_VALUE_AND: return (current & value) != 0;
    default: return ~(current | value) != 0;
  }
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtCreateEvent(aclrtEvent* event) { return MakeEvent(event, 0, false, __func__); }
GE_ACL aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return MakeEvent(event, flag, false, __func__);
}
GE_ACL aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return MakeEvent(event, flag, true, __func__);
}

GE_ACL aclError aclrtDestroyEvent(aclrtEvent event) {
  ACL_NEEDS(event != nullptr, "event is null");
  const auto found = Live<Event>().Remove(event);
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live event");
  // What waits for a record that nobody can make any more goes on; records in flight still count.
  Raise([&] { found->destroyed = found->completed >= found->requested; });
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return RecordEvent(event, stream, false, __func__);
}
GE_ACL aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  ACL_NEEDS(flag <= ACL_EVENT_RECORD_EXTERNAL, "unknown flag");
  return RecordEvent(event, stream, flag == ACL_EVENT_RECORD_EXTERNAL, __func__);
}

GE_ACL aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  ACL_EVENT(found, event);
  int code = 0;
  if (!StreamOf(stream, &code)) ACL_FAIL(code, "not a live stream, or no context");
  Raise([&] { found->reset = found->requested; });
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  ACL_NEEDS(status != nullptr, "status is null");
  ACL_EVENT(found, event);
  std::lock_guard lock(TheSignal().mutex);
  *status =
      found->completed >= found->requested ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  ACL_NEEDS(status != nullptr, "status is null");
  ACL_EVENT(found, event);
  std::lock_guard lock(TheSignal().mutex);
  const bool complete = Recorded(*found) || (found->extended && found->requested == found->reset);
  *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  ACL_NEEDS(status != nullptr, "status is null");
  ACL_EVENT(found, event);
  std::lock_guard lock(TheSignal().mutex);
  *status = found->waits == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  ACL_EVENT(found, event);
  std::unique_lock lock(TheSignal().mutex);
  const uint64_t target = found->requested;
  if (target <= found->reset) {
    if (found->extended) return ACL_SUCCESS;
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the event was not recorded");
  }
  if (!WaitSignal(lock, nullptr, timeout, [&] { return found->completed >= target; }))
    ACL_FAIL(ACL_ERROR_RT_WAIT_TIMEOUT, "the event was not complete in time");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return aclrtSynchronizeEventWithTimeout(event, -1);
}

GE_ACL aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  ACL_NEEDS(ms != nullptr, "ms is null");
  ACL_EVENT(start, startEvent);
  ACL_EVENT(end, endEvent);
  std::lock_guard lock(TheSignal().mutex);
  if (start->completed == 0 || end->completed == 0 || start->completed < start->requested ||
      end->completed < end->requested)
    ACL_FAIL(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "an event is not complete");
  if (end->time_ns < start->time_ns)
    ACL_FAIL(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "the end lies before the start");
  *ms = static_cast<float>(static_cast<double>(end->time_ns - start->time_ns) * 1e-6);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  ACL_NEEDS(timestamp != nullptr, "timestamp is null");
  ACL_EVENT(found, event);
  std::lock_guard lock(TheSignal().mutex);
  if (found->completed == 0 || found->completed < found->requested)
    ACL_FAIL(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event is not complete");
  *timestamp = static_cast<uint64_t>(found->time_ns / 1000);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  ACL_NEEDS(eventId != nullptr, "eventId is null");
  ACL_EVENT(found, event);
  *eventId = found->id;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  ACL_NEEDS(eventCount != nullptr, "eventCount is null");
  *eventCount = kMaxEvents - static_cast<uint32_t>(Live<Event>().live());
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return WaitEvent(stream, event, -1, false, __func__);
}
GE_ACL aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  return WaitEvent(stream, event, timeout <= 0 ? -1 : int64_t{timeout} * 1000, false, __func__);
}
GE_ACL aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t flag) {
  ACL_NEEDS(flag <= ACL_EVENT_WAIT_EXTERNAL, "unknown flag");
  return WaitEvent(stream, event, -1, flag == ACL_EVENT_WAIT_EXTERNAL, __func__);
}

GE_ACL aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  ACL_NEEDS(notify != nullptr, "notify is null");
  ACL_NEEDS(flag <= ACL_NOTIFY_DEVICE_USE_ONLY, "unknown flag");
  if (!CurrentContext()) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  *notify = Live<Notify>().Add(std::make_shared<Notify>());
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDestroyNotify(aclrtNotify notify) {
  ACL_NEEDS(notify != nullptr, "notify is null");
  const auto found = Live<Notify>().Remove(notify);
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live notify");
  Raise([&] { found->destroyed = true; });
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  ACL_NOTIFY(found, notify);
  return SubmitTo(stream, __func__, [found](const Stream&) -> aclError {
    Raise([&] { found->set = true; });
    return ACL_SUCCESS;
  });
}
GE_ACL aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  ACL_NOTIFY(found, notify);
  const int64_t timeout_ms = timeout == 0 ? -1 : int64_t{timeout};
  return SubmitTo(stream, __func__, [found, timeout_ms](const Stream& self) -> aclError {
    std::unique_lock lock(TheSignal().mutex);
    const bool done =
        WaitSignal(lock, &self, timeout_ms, [&] { return found->set || found->destroyed; });
    found->set = false;
    return done || self.cut_off() ? ACL_SUCCESS : ACL_ERROR_RT_WAIT_TIMEOUT;
  });
}
GE_ACL aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  ACL_NEEDS(notifyId != nullptr, "notifyId is null");
  ACL_NOTIFY(found, notify);
  *notifyId = found->id;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) {
  ACL_NEEDS(notifies != nullptr && num > 0, "no notifies");
  for (size_t i = 0; i < num; ++i) {
    ACL_NOTIFY(found, notifies[i]);
    Raise([&] { found->set = false; });
  }
  return ACL_SUCCESS;
}
// Export keys name an object of this process: they hold its handle and the process.
GE_ACL aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len, uint64_t) {
  ACL_NOTIFY(found, notify);
  ACL_NEEDS(key != nullptr && len >= 64, "the key needs 64 characters");
  std::snprintf(key, len, "ge-notify-%d-%llx", getpid(),
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(notify)));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, uint64_t) {
  ACL_NEEDS(notify != nullptr && key != nullptr, "a null pointer");
  int pid = 0;
  unsigned long long handle = 0;
  if (std::sscanf(key, "ge-notify-%d-%llx", &pid, &handle) != 2)
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "not a key of a notify");
  if (pid != getpid())
    ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "notifies of another process are not supported");
  auto found = Live<Notify>().Get(reinterpret_cast<void*>(static_cast<uintptr_t>(handle)));
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "the notify is gone");
  *notify = Live<Notify>().Add(std::move(found));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num) {
  ACL_NOTIFY(found, notify);
  ACL_NEEDS(pid != nullptr && num > 0, "no processes");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) {
  ACL_NEEDS(handle != nullptr, "handle is null");
  ACL_EVENT(found, event);
  *handle = {};
  std::snprintf(handle->reserved, sizeof handle->reserved, "ge-event-%d-%llx", getpid(),
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(event)));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) {
  ACL_NEEDS(event != nullptr, "event is null");
  int pid = 0;
  unsigned long long value = 0;
  handle.reserved[sizeof handle.reserved - 1] = 0;
  if (std::sscanf(handle.reserved, "ge-event-%d-%llx", &pid, &value) != 2)
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "not a handle of an event");
  if (pid != getpid())
    ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "events of another process are not supported");
  auto found = Live<Event>().Get(reinterpret_cast<void*>(static_cast<uintptr_t>(value)));
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "the event is gone");
  *event = Live<Event>().Add(std::move(found));
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t, aclrtStream stream) {
  ACL_NEEDS(devAddr != nullptr, "devAddr is null");
  if (reinterpret_cast<uintptr_t>(devAddr) % 8 != 0)
    ACL_FAIL(ACL_ERROR_RT_ADDR_UNALIGNED, "devAddr must be a multiple of 8");
  auto block = PinBlock(devAddr, 8);
  if (!block) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "devAddr is not in device memory");
  return SubmitTo(stream, __func__, [devAddr, value, block](const Stream&) -> aclError {
    Raise([&] { __atomic_store_n(static_cast<uint64_t*>(devAddr), value, __ATOMIC_RELEASE); });
    return ACL_SUCCESS;
  });
}
GE_ACL aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  ACL_NEEDS(devAddr != nullptr, "devAddr is null");
  ACL_NEEDS(flag <= ACL_STREAM_WAIT_VALUE_NOR, "unknown flag");
  if (reinterpret_cast<uintptr_t>(devAddr) % 8 != 0)
    ACL_FAIL(ACL_ERROR_RT_ADDR_UNALIGNED, "devAddr must be a multiple of 8");
  auto block = PinBlock(devAddr, 8);
  if (!block) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "devAddr is not in device memory");
  return SubmitTo(stream, __func__, [devAddr, value, flag, block](const Stream& self) -> aclError {
    // The value may be written by anybody, without our knowing: looked at every millisecond too.
    for (;;) {
      std::unique_lock lock(TheSignal().mutex);
      const auto holds = [&] {
        return Holds(__atomic_load_n(static_cast<uint64_t*>(devAddr), __ATOMIC_ACQUIRE), value,
                     flag);
      };
      if (WaitSignal(lock, &self, 1, holds) || self.cut_off()) return ACL_SUCCESS;
    }
  });
}
