// A bounded queue that threads wait on, and that can be stopped: channels and buffer queues.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "api/acl/include/acl/acl_base.h"

namespace ge::acl {

template <class T>
class WaitingQueue {
 public:
  explicit WaitingQueue(size_t capacity) : capacity_(capacity) {}

  // timeout_ms < 0: for ever. ACL_SUCCESS, or why not: full (empty), or stopped.
  aclError Put(T item, int64_t timeout_ms) {
    {
      std::unique_lock lock(mutex_);
      if (!Wait(lock, timeout_ms, [&] { return stopped_ || items_.size() < capacity_; }))
        return ACL_ERROR_RT_QUEUE_FULL;
      if (stopped_) return ACL_ERROR_RT_PARAM_INVALID;
      items_.push_back(std::move(item));
    }
    changed_.notify_all();
    return ACL_SUCCESS;
  }
  aclError Take(T* item, int64_t timeout_ms) {
    {
      std::unique_lock lock(mutex_);
      if (!Wait(lock, timeout_ms, [&] { return stopped_ || !items_.empty(); }))
        return ACL_ERROR_RT_QUEUE_EMPTY;
      if (items_.empty()) return ACL_ERROR_RT_PARAM_INVALID;
      *item = std::move(items_.front());
      items_.pop_front();
    }
    changed_.notify_all();
    return ACL_SUCCESS;
  }
  // Wakes who waits; nothing more can be put.
  void Stop() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }
  void Clear() {
    std::deque<T> dropped;  // released outside of the lock
    {
      std::lock_guard lock(mutex_);
      dropped.swap(items_);
    }
    changed_.notify_all();
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  template <class Ready>
  bool Wait(std::unique_lock<std::mutex>& lock, int64_t timeout_ms, Ready&& ready) {
    if (timeout_ms >= 0)
      return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), ready);
    changed_.wait(lock, ready);
    return true;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool stopped_ = false;
};

}  // namespace ge::acl
