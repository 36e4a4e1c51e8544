// Stream: an in-order queue with a thread of its own, and the signal on which its waits wait.
//
// Tasks run one after the other on the stream's thread, which starts with the first task. A task
// that fails sets the stream's error, which the next synchronisation returns. Tasks that wait (for
// events, notifies, blocking callbacks) wait on the Signal and give up when the stream is cut off.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "api/acl/context.h"
#include "api/acl/include/acl/acl.h"

namespace ge::acl {

class Recording;
struct Allocator;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  static constexpr int kHandleKind = 2;
  using Task = std::function<aclError(const Stream&)>;

  static std::shared_ptr<Stream> Make(const std::shared_ptr<Context>& context, uint32_t priority,
                                      uint32_t flags);
  explicit Stream(uint32_t priority, uint32_t flags);

  // `kind`: the public function that submits.
  aclError Submit(Task task, const char* kind);
  // From now on Submit adds to the recording; null: runs again. False if it is recorded already.
  bool Record(std::shared_ptr<Recording> recording);
  std::shared_ptr<Recording> recording() const;
  // The client's, for models that run here; null: none.
  void SetAllocator(std::shared_ptr<const Allocator> allocator);
  std::shared_ptr<const Allocator> allocator() const;
  // timeout_ms < 0: for ever. The stream's error, or the timeout's code.
  aclError Synchronize(int64_t timeout_ms);
  bool Idle() const;
  // Drops what is queued and ends what waits.
  void Abort();
  // Ends the thread, after the queued tasks or without them.
  void Close(bool drain);
  bool cut_off() const { return cut_off_.load(std::memory_order_acquire); }

  void* handle() const { return handle_; }
  int32_t id() const { return id_; }
  uint32_t priority() const { return priority_; }
  uint32_t flags() const { return flags_; }
  std::weak_ptr<Context> context;
  std::atomic<uint64_t> failure_mode{ACL_CONTINUE_ON_FAILURE};
  std::atomic<uint32_t> overflow_switch{0}, tag{0};
  std::atomic<uint64_t> report_thread{0}, host_func_thread{0};  // subscribed; 0 = none

 private:
  void Loop();
  void Join();

  void* handle_ = nullptr;
  const int32_t id_;
  const uint32_t priority_, flags_;
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<Task> queue_;
  std::shared_ptr<Recording> recording_;
  std::shared_ptr<const Allocator> allocator_;
  uint64_t submitted_ = 0, finished_ = 0;
  aclError error_ = ACL_SUCCESS;
  bool closing_ = false, started_ = false;
  std::atomic<bool> cut_off_{false};
  std::thread thread_;
};

// One condition for everything that streams and hosts wait for: events, notifies, callbacks,
// values.
struct Signal {
  std::mutex mutex;
  std::condition_variable changed;
};
Signal& TheSignal();
// Waits under the signal's lock until ready() or the stream (if any) is cut off. Timeout < 0: for
// ever. True if ready.
template <class Ready>
bool WaitSignal(std::unique_lock<std::mutex>& lock, const Stream* stream, int64_t timeout_ms,
                Ready&& ready) {
  const auto over = [&] { return ready() || (stream != nullptr && stream->cut_off()); };
  if (timeout_ms < 0) {
    TheSignal().changed.wait(lock, over);
  } else {
    TheSignal().changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), over);
  }
  return ready();
}
// Changes state under the lock and wakes the waiters.
template <class Change>
void Raise(Change&& change) {
  {
    std::lock_guard lock(TheSignal().mutex);
    change();
  }
  TheSignal().changed.notify_all();
}

// Submits to the stream of a handle; null = default stream.
aclError SubmitTo(aclrtStream handle, const char* function, Stream::Task task);

}  // namespace ge::acl
