// Live<T>(): the registry of the objects of one kind that clients hold handles to.
//
// A handle is never an address: it holds a slot, the slot's generation and the kind, so that a
// stale handle, a handle of another kind and a random pointer are all refused, at any time and from
// any thread. Objects are shared: what one thread destroys lives on until others have done with it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ge::acl {

template <class T>
class Registry {
 public:
  // handle = generation << 32 | (slot + 1) << 6 | kind
  static constexpr int kSlotBits = 26, kKindBits = 6;

  void* Add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    uint32_t slot = 0;
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else {
      if (slots_.size() >= (1u << kSlotBits) - 2) return nullptr;
      slot = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    }
    slots_[slot].object = std::move(object);
    ++live_;
    const uint64_t handle = uint64_t{slots_[slot].generation} << 32 |
                            uint64_t{slot + 1} << kKindBits | uint64_t{T::kHandleKind};
    return reinterpret_cast<void*>(static_cast<uintptr_t>(handle));
  }

  std::shared_ptr<T> Get(const void* handle) const {
    std::lock_guard lock(mutex_);
    const Slot* slot = Find(handle);
    return slot == nullptr ? nullptr : slot->object;
  }

  std::shared_ptr<T> Remove(const void* handle) {
    std::lock_guard lock(mutex_);
    Slot* slot = const_cast<Slot*>(Find(handle));
    if (slot == nullptr) return nullptr;
    std::shared_ptr<T> object = std::move(slot->object);
    slot->object = nullptr;
    slot->generation = slot->generation % 0x7fffu + 1;  // user addresses have 47 bits
    free_.push_back(static_cast<uint32_t>(slot - slots_.data()));
    --live_;
    return object;
  }

  // Runs f(T&) under the registry's lock: for plain records. False if the handle is not live.
  template <class F>
  bool With(const void* handle, F&& f) const {
    std::lock_guard lock(mutex_);
    const Slot* slot = Find(handle);
    if (slot == nullptr) return false;
    f(*slot->object);
    return true;
  }

  std::vector<std::shared_ptr<T>> All() const {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (const Slot& slot : slots_)
      if (slot.object) all.push_back(slot.object);
    return all;
  }
  // An object whose handle is not known.
  void RemoveObject(const T* object) {
    std::shared_ptr<T> last;  // goes outside of the lock
    std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.object.get() != object) continue;
      last = std::move(slot.object);
      slot.object = nullptr;
      slot.generation = slot.generation % 0x7fffu + 1;
      free_.push_back(static_cast<uint32_t>(&slot - slots_.data()));
      --live_;
      return;
    }
  }
  size_t live() const {
    std::lock_guard lock(mutex_);
    return live_;
  }

  // For several lookups at once: lock once, then Peek.
  std::unique_lock<std::mutex> Lock() const { return std::unique_lock(mutex_); }
  T* Peek(const void* handle) const {
    const Slot* slot = Find(handle);
    return slot == nullptr ? nullptr : slot->object.get();
  }

 private:
  struct Slot {
    std::shared_ptr<T> object;
    uint32_t generation = 1;
  };
  const Slot* Find(const void* handle) const {
    const auto bits = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
    if ((bits & ((1u << kKindBits) - 1)) != T::kHandleKind) return nullptr;
    const uint64_t slot = (bits & 0xffffffffu) >> kKindBits;
    if (slot == 0 || slot > slots_.size()) return nullptr;
    const Slot& s = slots_[slot - 1];
    return s.object && s.generation == bits >> 32 ? &s : nullptr;
  }

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  size_t live_ = 0;
};

// Never destroyed: a client's threads may outlive main.
template <class T>
Registry<T>& Live() {
  static auto* registry = new Registry<T>;
  return *registry;
}

}  // namespace ge::acl
