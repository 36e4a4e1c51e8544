// See allocator.h. A description is copied when it is registered: it may be destroyed afterwards.
#include "api/acl/allocator.h"

#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

constexpr uintptr_t kAlignment = 64;

// What a Run holds at a time.
struct Taken {
  aclrtAllocatorBlock block = nullptr;
  std::shared_ptr<MemoryBlock> pin;
};

void* Take(const Allocator& from, int64_t bytes, Taken* taken) {
  const size_t wanted = static_cast<size_t>(bytes) + kAlignment;
  taken->block = from.allocate(from.object, wanted);
  if (taken->block == nullptr) return nullptr;
  void* address = from.address(taken->block);
  taken->pin = address == nullptr ? nullptr : PinBlock(address, wanted);
  if (!taken->pin) {  // no device memory
    from.release(from.object, taken->block);
    return nullptr;
  }
  const auto at = reinterpret_cast<uintptr_t>(address);
  return reinterpret_cast<void*>((at + kAlignment - 1) / kAlignment * kAlignment);
}

#define ACL_ALLOCATOR_STREAM(name, handle)        \
  ACL_NEEDS(handle != nullptr, "stream is null"); \
  const auto name = Live<Stream>().Get(handle);   \
  if (!name) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live stream")

template <class Value>
aclError Set(aclrtAllocatorDesc desc, Value Allocator::* member, Value value,
             const char* function) {
  if (desc == nullptr || value == nullptr)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "a null pointer");
  if (!Live<Allocator>().With(desc, [&](Allocator& a) { a.*member = value; }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "not a live allocatorDesc");
  return ACL_SUCCESS;
}

}  // namespace

rt::ArenaSource SourceOf(std::shared_ptr<const Allocator> allocator) {
  auto taken = std::make_shared<Taken>();
  return {[=](int64_t bytes) { return Take(*allocator, bytes, taken.get()); },
          [=](void*) {
            taken->pin = nullptr;
            allocator->release(allocator->object, taken->block);
          }};
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclrtAllocatorDesc aclrtAllocatorCreateDesc() {
  return Live<Allocator>().Add(std::make_shared<Allocator>());
}
GE_ACL aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) {
  ACL_NEEDS(allocatorDesc != nullptr, "allocatorDesc is null");
  ACL_NEEDS(Live<Allocator>().Remove(allocatorDesc), "not a live allocatorDesc");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc,
                                           aclrtAllocator allocator) {
  return Set(allocatorDesc, &Allocator::object, allocator, __func__);
}
GE_ACL aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                 aclrtAllocatorAllocFunc func) {
  return Set(allocatorDesc, &Allocator::allocate, func, __func__);
}
GE_ACL aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                aclrtAllocatorFreeFunc func) {
  return Set(allocatorDesc, &Allocator::release, func, __func__);
}
GE_ACL aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                       aclrtAllocatorAllocAdviseFunc func) {
  return Set(allocatorDesc, &Allocator::advise, func, __func__);
}
GE_ACL aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(
    aclrtAllocatorDesc allocatorDesc, aclrtAllocatorGetAddrFromBlockFunc func) {
  return Set(allocatorDesc, &Allocator::address, func, __func__);
}

GE_ACL aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) {
  ACL_NEEDS(allocatorDesc != nullptr, "allocatorDesc is null");
  ACL_ALLOCATOR_STREAM(found, stream);
  auto copy = std::make_shared<Allocator>();
  ACL_NEEDS(Live<Allocator>().With(allocatorDesc, [&](Allocator& a) { *copy = a; }),
            "not a live allocatorDesc");
  ACL_NEEDS(copy->object != nullptr && copy->allocate != nullptr && copy->release != nullptr &&
                copy->address != nullptr,
            "the allocatorDesc lacks its object, or a function that allocates, frees or gives the "
            "address of a block");
  copy->desc = allocatorDesc;
  found->SetAllocator(std::move(copy));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtAllocatorUnregister(aclrtStream stream) {
  ACL_ALLOCATOR_STREAM(found, stream);
  found->SetAllocator(nullptr);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtAllocatorGetByStream(
    aclrtStream stream, aclrtAllocatorDesc* allocatorDesc, aclrtAllocator* allocator,
    aclrtAllocatorAllocFunc* allocFunc, aclrtAllocatorFreeFunc* freeFunc,
    aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
    aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc) {
  ACL_NEEDS(allocatorDesc != nullptr, "allocatorDesc is null");
  ACL_ALLOCATOR_STREAM(found, stream);
  const auto mine = found->allocator();
  ACL_NEEDS(mine != nullptr, "the stream has no allocator");
  *allocatorDesc = mine->desc;
  if (allocator != nullptr) *allocator = mine->object;
  if (allocFunc != nullptr) *allocFunc = mine->allocate;
  if (freeFunc != nullptr) *freeFunc = mine->release;
  if (allocAdviseFunc != nullptr) *allocAdviseFunc = mine->advise;
  if (getAddrFromBlockFunc != nullptr) *getAddrFromBlockFunc = mine->address;
  return ACL_SUCCESS;
}
