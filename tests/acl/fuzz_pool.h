// What the parts of the AscendCL fuzz share: handles that any thread may pick, alive or dead.
#pragma once

#include <mutex>
#include <random>
#include <vector>

#include "api/acl/include/acl/acl.h"

using Rng = std::mt19937_64;

// Handles that any thread may pick: live ones and dead ones. What is pushed out is released, so
// that the program does not run out of streams or files by leaks of its own.
class Pool {
 public:
  explicit Pool(void (*release)(void*)) : release_(release) {}
  void Put(void* handle) {
    if (handle == nullptr) return;
    void* out = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (list_.size() < 64) {
        list_.push_back(handle);
      } else {
        std::swap(list_[next_++ % list_.size()], handle);
        out = handle;
      }
    }
    if (out != nullptr) release_(out);
  }
  void* Pick(Rng& rng) {
    std::lock_guard lock(mutex_);
    if (list_.empty() || rng() % 16 == 0) return nullptr;
    if (rng() % 32 == 0) return reinterpret_cast<void*>(rng() & 0x7fffffffffff);
    return list_[rng() % list_.size()];
  }
  void ReleaseAll() {
    std::vector<void*> all;
    {
      std::lock_guard lock(mutex_);
      all.swap(list_);
    }
    for (void* handle : all) release_(handle);
  }

 private:
  void (*release_)(void*);
  std::mutex mutex_;
  std::vector<void*> list_;
  size_t next_ = 0;
};

template <class T>
T* As(void* handle) {
  return static_cast<T*>(handle);
}

// Channels, queues, profiling, operands: one random call; and the release of what they made.
aclError QueueStep(Rng& rng);
aclError ProfileStep(Rng& rng);
// A jump forward in a recorded stream; an allocator for it.
aclError JumpStep(Rng& rng, void* stream, void* other, void* memory);
void ReleaseQueueHandles();
// Any function of the API with arguments drawn by their types; `handle` picks one of any kind.
aclError SurfaceStep(Rng& rng, void* (*handle)(Rng&));
