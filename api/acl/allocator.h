// A client's allocator, registered for a stream: models that run there asynchronously have their
// work memory from it, taken before a run and given back after it, on the stream's thread.
#pragma once

#include <memory>

#include "api/acl/include/acl/acl_rt_allocator.h"
#include "rt/runtime.h"

namespace ge::acl {

struct Allocator {
  static constexpr int kHandleKind = 33;
  aclrtAllocatorDesc desc = nullptr;  // the handle that it was registered by
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc release = nullptr;
  aclrtAllocatorAllocAdviseFunc advise = nullptr;  // never needed
  aclrtAllocatorGetAddrFromBlockFunc address = nullptr;
};

rt::ArenaSource SourceOf(std::shared_ptr<const Allocator> allocator);

}  // namespace ge::acl
