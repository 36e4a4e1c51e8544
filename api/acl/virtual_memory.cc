// Reserved addresses and physical memory that is mapped into them; keys for sharing.
//
// Physical memory is a file in memory (memfd): several mappings show the same bytes. Sharing works
// inside a process; keys of other processes are refused.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "api/acl/context.h"
#include "api/acl/error.h"
#include "api/acl/memory.h"

namespace ge::acl {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;

struct Physical {
  static constexpr int kHandleKind = 12;
  int file = -1;
  size_t bytes = 0;
  ~Physical() {
    if (file >= 0) close(file);
  }
};

struct Reserved {
  size_t bytes = 0;
  std::map<uintptr_t, size_t> mapped;  // begin, bytes
};
struct Table {
  std::mutex mutex;
  std::map<uintptr_t, Reserved> reserved;
};
Table& Addresses() {
  static auto* table = new Table;
  return *table;
}

// The reservation that holds [p, p + bytes), or null.
Reserved* Find(Table& table, uintptr_t p, size_t bytes) {
  auto it = table.reserved.upper_bound(p);
  if (it == table.reserved.begin()) return nullptr;
  --it;
  const uintptr_t offset = p - it->first;
  return offset < it->second.bytes && it->second.bytes - offset >= bytes ? &it->second : nullptr;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void*,
                                       uint64_t) {
  ACL_NEEDS(virPtr != nullptr && size > 0, "virPtr is null or size is 0");
  ACL_NEEDS(alignment == 0, "alignment must be 0");
  ACL_NEEDS(size < (size_t{1} << 46), "size is too large");
  if (!CurrentContext()) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  const size_t bytes = (size + kGranularity - 1) / kGranularity * kGranularity;
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) ACL_FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "no addresses left");
  Table& table = Addresses();
  std::lock_guard lock(table.mutex);
  table.reserved[reinterpret_cast<uintptr_t>(p)].bytes = bytes;
  *virPtr = p;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtReleaseMemAddress(void* virPtr) {
  ACL_NEEDS(virPtr != nullptr, "virPtr is null");
  Table& table = Addresses();
  std::lock_guard lock(table.mutex);
  const auto it = table.reserved.find(reinterpret_cast<uintptr_t>(virPtr));
  if (it == table.reserved.end()) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "not a reserved address");
  if (!it->second.mapped.empty())
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "memory is still mapped there");
  munmap(virPtr, it->second.bytes);
  table.reserved.erase(it);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                                    const aclrtPhysicalMemProp* prop, uint64_t flags) {
  ACL_NEEDS(handle != nullptr && prop != nullptr && size > 0, "a null pointer or size 0");
  ACL_NEEDS(flags == 0, "flags must be 0");
  ACL_NEEDS(size % 4096 == 0, "size must be a multiple of the granularity");
  auto physical = std::make_shared<Physical>();
  physical->file = memfd_create("acl", MFD_CLOEXEC);
  physical->bytes = size;
  if (physical->file < 0 || ftruncate(physical->file, static_cast<off_t>(size)) != 0)
    ACL_FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "no memory");
  *handle = Live<Physical>().Add(std::move(physical));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  ACL_NEEDS(handle != nullptr, "handle is null");
  if (!Live<Physical>().Remove(handle))
    ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not live physical memory");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                            uint64_t flags) {
  ACL_NEEDS(virPtr != nullptr && size > 0 && handle != nullptr, "a null pointer or size 0");
  ACL_NEEDS(offset == 0 && flags == 0, "offset and flags must be 0");
  const auto physical = Live<Physical>().Get(handle);
  if (!physical) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not live physical memory");
  const auto p = reinterpret_cast<uintptr_t>(virPtr);
  ACL_NEEDS(p % 4096 == 0 && size <= physical->bytes, "virPtr is unaligned or size too large");
  Table& table = Addresses();
  std::lock_guard lock(table.mutex);
  Reserved* reserved = Find(table, p, size);
  if (reserved == nullptr) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "not reserved addresses");
  if (!AddRegistered(virPtr, size, Place::kReserved))
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "memory is mapped there already");
  if (mmap(virPtr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file, 0) ==
      MAP_FAILED) {
    ReleaseBlock(virPtr, Place::kReserved);
    ACL_FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "the memory cannot be mapped");
  }
  reserved->mapped[p] = size;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtUnmapMem(void* virPtr) {
  ACL_NEEDS(virPtr != nullptr, "virPtr is null");
  const auto p = reinterpret_cast<uintptr_t>(virPtr);
  Table& table = Addresses();
  std::lock_guard lock(table.mutex);
  Reserved* reserved = Find(table, p, 1);
  if (reserved == nullptr || !reserved->mapped.contains(p))
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped there");
  ReleaseBlock(virPtr, Place::kReserved);
  // The addresses stay reserved, and readable, so that work in flight cannot fault.
  const void* kept = mmap(virPtr, reserved->mapped[p], PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  reserved->mapped.erase(p);
  if (kept == MAP_FAILED) ACL_FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "the addresses cannot be kept");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc,
                                  size_t count) {
  ACL_NEEDS(virPtr != nullptr && size > 0 && desc != nullptr && count > 0,
            "a null pointer or size 0");
  if (!PinBlock(virPtr, size)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped there");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                                 aclrtMemGranularityOptions option,
                                                 size_t* granularity) {
  ACL_NEEDS(prop != nullptr && granularity != nullptr, "a null pointer");
  ACL_NEEDS(option == ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM ||
                option == ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
            "unknown option");
  *granularity = kGranularity;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType,
                                                uint64_t, uint64_t* shareableHandle) {
  ACL_NEEDS(shareableHandle != nullptr, "shareableHandle is null");
  if (!Live<Physical>().Get(handle))
    ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not live physical memory");
  *shareableHandle = reinterpret_cast<uintptr_t>(handle);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t,
                                                  aclrtDrvMemHandle* handle) {
  ACL_NEEDS(handle != nullptr, "handle is null");
  auto found =
      Live<Physical>().Get(reinterpret_cast<void*>(static_cast<uintptr_t>(shareableHandle)));
  if (!found)
    ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "memory of another process is not supported");
  *handle = Live<Physical>().Add(std::move(found));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid,
                                                size_t pidNum) {
  ACL_NEEDS(pid != nullptr && pidNum > 0, "no processes");
  if (!Live<Physical>().Get(reinterpret_cast<void*>(static_cast<uintptr_t>(shareableHandle))))
    ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not live physical memory");
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len,
                                        uint64_t) {
  ACL_NEEDS(devPtr != nullptr && size > 0 && key != nullptr && len >= 65,
            "a null pointer, or a short key");
  if (!PinBlock(devPtr, size)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "not live device memory");
  std::snprintf(key, len, "ge-memory-%d-%llx", getpid(),
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(devPtr)));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t) {
  ACL_NEEDS(devPtr != nullptr && key != nullptr, "a null pointer");
  int pid = 0;
  unsigned long long address = 0;
  if (std::sscanf(key, "ge-memory-%d-%llx", &pid, &address) != 2)
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "not a key of memory");
  if (pid != getpid())
    ACL_FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "memory of another process is not supported");
  void* p = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  if (!BlockOf(p)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the memory is gone");
  *devPtr = p;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
  ACL_NEEDS(key != nullptr && pid != nullptr && num > 0, "a null pointer, or no processes");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtIpcMemClose(const char* key) {
  void* unused = nullptr;
  return aclrtIpcMemImportByKey(&unused, key, 0);  // nothing to close, but the key must be one
}
