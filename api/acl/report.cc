// Callbacks in the order of a stream, run by threads of the client.
//
// A thread that subscribed to a stream gets the callbacks of that stream when it calls
// aclrtProcessReport. A callback that blocks holds up its stream until it has returned; one that
// does not lets the stream go on. Neither holds up other streams. Host functions run on the
// stream's own thread, unless a thread subscribed to them.
#include <deque>
#include <map>

#include "api/acl/error.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

struct Call {
  void (*fn)(void*);
  void* data;
  uint64_t stream;  // for dropping
  bool done = false;
};
// Per thread that subscribed; under the Signal's lock.
struct Reports {
  int streams = 0;
  std::deque<std::shared_ptr<Call>> calls;
};
using Table = std::map<uint64_t, Reports>;
Table& Subscribed() {
  static auto* table = new Table;
  return *table;
}
Table& SubscribedHostFuncs() {
  static auto* table = new Table;
  return *table;
}

uint64_t ThisThread() { return static_cast<uint64_t>(pthread_self()); }
uint64_t Key(const Stream& stream) { return reinterpret_cast<uintptr_t>(&stream); }

aclError Subscribe(Table& table, std::atomic<uint64_t> Stream::* member, uint64_t thread,
                   aclrtStream handle, const char* function) {
  if (thread == 0) return Fail(ACL_ERROR_INVALID_PARAM, function, "the thread's id is 0");
  int code = 0;
  const auto stream = StreamOf(handle, &code);
  if (!stream) return Fail(code, function, "not a live stream, or no context");
  std::lock_guard lock(TheSignal().mutex);
  if ((*stream.*member).load() != 0)
    return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, function,
                "a thread has subscribed to the stream already");
  (*stream.*member) = thread;
  ++table[thread].streams;
  return ACL_SUCCESS;
}

aclError Unsubscribe(Table& table, std::atomic<uint64_t> Stream::* member, uint64_t thread,
                     aclrtStream handle, const char* function) {
  int code = 0;
  const auto stream = StreamOf(handle, &code);
  if (!stream) return Fail(code, function, "not a live stream, or no context");
  std::unique_lock lock(TheSignal().mutex);
  const uint64_t subscribed = (*stream.*member).load();
  if (subscribed == 0)
    return Fail(ACL_ERROR_RT_STREAM_NO_CB_REG, function, "no thread has subscribed to the stream");
  if (subscribed != thread)
    return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, function,
                "another thread has subscribed to the stream");
  (*stream.*member) = 0;
  const auto it = table.find(thread);
  if (it != table.end()) {
    std::erase_if(it->second.calls, [&](const std::shared_ptr<Call>& call) {
      if (call->stream != Key(*stream)) return false;
      call->done = true;  // never run; whoever waits for it goes on
      return true;
    });
    if (--it->second.streams == 0) table.erase(it);
  }
  lock.unlock();
  TheSignal().changed.notify_all();
  return ACL_SUCCESS;
}

// Runs what has been reported; waits for the first report at most timeout_ms.
aclError Process(Table& table, int32_t timeout, const char* function) {
  if (timeout < -1) return Fail(ACL_ERROR_INVALID_PARAM, function, "timeout is below -1");
  const uint64_t self = ThisThread();
  std::unique_lock lock(TheSignal().mutex);
  if (!table.contains(self))
    return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, function,
                "the thread has not subscribed to a stream");
  const auto pending = [&] {
    const auto it = table.find(self);
    return it == table.end() || !it->second.calls.empty();
  };
  if (!WaitSignal(lock, nullptr, timeout, pending))
    return Fail(ACL_ERROR_RT_REPORT_TIMEOUT, function, "no callback in time");
  for (;;) {
    const auto it = table.find(self);
    if (it == table.end() || it->second.calls.empty()) return ACL_SUCCESS;
    const std::shared_ptr<Call> call = it->second.calls.front();
    it->second.calls.pop_front();
    lock.unlock();
    call->fn(call->data);
    Raise([&] { call->done = true; });
    lock.lock();
  }
}

// Hands the call to `thread`; waits for its end if it blocks.
aclError Report(Table& table, uint64_t thread, std::shared_ptr<Call> call, bool blocks,
                const Stream& stream) {
  std::unique_lock lock(TheSignal().mutex);
  const auto it = table.find(thread);
  if (it == table.end()) return ACL_ERROR_RT_STREAM_NO_CB_REG;
  it->second.calls.push_back(call);
  lock.unlock();
  TheSignal().changed.notify_all();
  if (!blocks) return ACL_SUCCESS;
  lock.lock();
  WaitSignal(lock, &stream, -1, [&] { return call->done; });
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return Subscribe(Subscribed(), &Stream::report_thread, threadId, stream, __func__);
}
GE_ACL aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return Unsubscribe(Subscribed(), &Stream::report_thread, threadId, stream, __func__);
}
GE_ACL aclError aclrtProcessReport(int32_t timeout) {
  return Process(Subscribed(), timeout, __func__);
}

GE_ACL aclError aclrtLaunchCallback(aclrtCallback fn, void* userData,
                                    aclrtCallbackBlockType blockType, aclrtStream stream) {
  ACL_NEEDS(fn != nullptr, "fn is null");
  ACL_NEEDS(blockType == ACL_CALLBACK_NO_BLOCK || blockType == ACL_CALLBACK_BLOCK,
            "unknown block type");
  int code = 0;
  const auto found = StreamOf(stream, &code);
  if (!found) ACL_FAIL(code, "not a live stream, or no context");
  const uint64_t thread = found->report_thread;
  if (thread == 0)
    ACL_FAIL(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread has subscribed to the stream");
  auto call = std::make_shared<Call>(Call{fn, userData, Key(*found)});
  const bool blocks = blockType == ACL_CALLBACK_BLOCK;
  return SubmitTo(stream, __func__, [thread, call, blocks](const Stream& self) -> aclError {
    return Report(Subscribed(), thread, call, blocks, self);
  });
}

GE_ACL aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  ACL_NEEDS(fn != nullptr, "fn is null");
  return SubmitTo(stream, __func__, [fn, args](const Stream& self) -> aclError {
    if (const uint64_t thread = self.host_func_thread; thread != 0) {
      auto call = std::make_shared<Call>(Call{fn, args, Key(self)});
      return Report(SubscribedHostFuncs(), thread, std::move(call), true, self);
    }
    fn(args);
    return ACL_SUCCESS;
  });
}
GE_ACL aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
  return Subscribe(SubscribedHostFuncs(), &Stream::host_func_thread, hostFuncThreadId, exeStream,
                   __func__);
}
GE_ACL aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) {
  return Unsubscribe(SubscribedHostFuncs(), &Stream::host_func_thread, hostFuncThreadId, exeStream,
                     __func__);
}
GE_ACL aclError aclrtProcessHostFunc(int32_t timeout) {
  return Process(SubscribedHostFuncs(), timeout, __func__);
}
