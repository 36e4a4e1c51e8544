// The table of live blocks, and the functions that allocate and free.
//
// Sizes are rounded up to a multiple of 32 with 32 more, as the interface says. Blocks of 2 MB and
// more lie on a 2 MB border and ask for huge pages.
#include "api/acl/memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "api/acl/context.h"
#include "api/acl/error.h"

namespace ge::acl {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kAlignment = 64;
constexpr size_t kLargest = size_t{1} << 46;

struct Table {
  std::mutex mutex;
  std::map<uintptr_t, std::shared_ptr<MemoryBlock>> blocks;  // by begin
  std::atomic<size_t> live{0};
};
Table& Blocks() {
  static auto* table = new Table;
  return *table;
}

std::shared_ptr<MemoryBlock>* FindBlock(Table& table, const void* p, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  auto it = table.blocks.upper_bound(at);
  if (it == table.blocks.begin()) return nullptr;
  --it;
  const MemoryBlock& block = *it->second;
  const uintptr_t offset = at - block.begin;
  if (offset >= block.bytes || block.bytes - offset < bytes) return nullptr;
  return &it->second;
}

}  // namespace

MemoryBlock::~MemoryBlock() {
  if (owned == nullptr) return;
  std::free(owned);
  Blocks().live -= bytes;
}

void* AllocateBlock(size_t bytes, Place place, bool huge) {
  if (bytes > kLargest) return nullptr;
  bytes = (bytes + 31) / 32 * 32 + 32;
  const bool large = huge && bytes >= kHugePage;
  const size_t alignment = large ? kHugePage : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, rounded);
  if (p == nullptr) return nullptr;
  if (large) madvise(p, rounded, MADV_HUGEPAGE);  // a wish: small pages do as well
  auto block = std::make_shared<MemoryBlock>(p, bytes, place, p);
  Table& table = Blocks();
  table.live += bytes;
  std::lock_guard lock(table.mutex);
  table.blocks[reinterpret_cast<uintptr_t>(p)] = std::move(block);
  return p;
}

bool AddRegistered(void* p, size_t bytes, Place place) {
  Table& table = Blocks();
  std::lock_guard lock(table.mutex);
  const auto begin = reinterpret_cast<uintptr_t>(p);
  if (begin + bytes < begin) return false;
  auto next = table.blocks.lower_bound(begin);
  if (next != table.blocks.end() && next->first < begin + bytes) return false;
  if (next != table.blocks.begin()) {
    const MemoryBlock& before = *std::prev(next)->second;
    if (before.begin + before.bytes > begin) return false;
  }
  table.blocks[begin] = std::make_shared<MemoryBlock>(p, bytes, place, nullptr);
  return true;
}

bool ReleaseBlock(const void* p, Place place) {
  std::shared_ptr<MemoryBlock> last;  // freed outside of the lock
  Table& table = Blocks();
  std::lock_guard lock(table.mutex);
  auto it = table.blocks.find(reinterpret_cast<uintptr_t>(p));
  if (it == table.blocks.end() || it->second->place != place) return false;
  last = std::move(it->second);
  table.blocks.erase(it);
  return true;
}

std::shared_ptr<MemoryBlock> PinBlock(const void* p, size_t bytes) {
  Table& table = Blocks();
  std::lock_guard lock(table.mutex);
  auto* found = FindBlock(table, p, bytes);
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<MemoryBlock> BlockOf(const void* p) { return PinBlock(p, 1); }

int PinBlocks(std::span<const MemoryRange> ranges,
              std::vector<std::shared_ptr<MemoryBlock>>* pins) {
  Table& table = Blocks();
  std::lock_guard lock(table.mutex);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].data == nullptr) continue;
    auto* found = FindBlock(table, ranges[i].data, ranges[i].bytes);
    if (found == nullptr) return static_cast<int>(i);
    pins->push_back(*found);
  }
  return -1;
}

size_t LiveBytes() { return Blocks().live; }

namespace {

bool IsPolicy(uint32_t policy) {
  constexpr uint32_t kFlags = ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH |
                              ACL_MEM_ACCESS_USER_SPACE_READONLY;
  return (policy & ~kFlags) <= ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
}

aclError MallocDevice(void** p, size_t size, uint32_t policy, const char* function) {
  if (p == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "devPtr is null");
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, function, "size is 0");
  if (!IsPolicy(policy)) return Fail(ACL_ERROR_INVALID_PARAM, function, "unknown policy");
  if (CurrentContext() == nullptr) return Fail(ACL_ERROR_RT_CONTEXT_NULL, function, kNoContext);
  const uint32_t base = policy & 0xff;
  const bool huge = base != ACL_MEM_MALLOC_NORMAL_ONLY && base != ACL_MEM_MALLOC_NORMAL_ONLY_P2P;
  void* block = AllocateBlock(size, Place::kDevice, huge);
  if (block == nullptr)
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function,
                std::to_string(size) + " bytes: no memory");
  *p = block;
  return ACL_SUCCESS;
}

aclError MallocHost(void** p, size_t size, const char* function) {
  if (p == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "the pointer is null");
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, function, "size is 0");
  void* block = AllocateBlock(size, Place::kHost, true);
  if (block == nullptr)
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function,
                std::to_string(size) + " bytes: no memory");
  *p = block;
  return ACL_SUCCESS;
}

constexpr const char* kNotABlock =
    "not the begin of memory that was allocated so, or freed already";

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return MallocDevice(devPtr, size, policy, __func__);
}
GE_ACL aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return MallocDevice(devPtr, size, policy, __func__);
}
GE_ACL aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return MallocDevice(devPtr, size, policy, __func__);
}
GE_ACL aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                                   aclrtMallocConfig*) {
  return MallocDevice(devPtr, size, policy, __func__);
}
GE_ACL aclError aclrtMemAllocManaged(void** ptr, uint64_t size, uint32_t) {
  return MallocDevice(ptr, size, ACL_MEM_MALLOC_HUGE_FIRST, __func__);
}
GE_ACL aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return MallocHost(hostPtr, size, __func__);
}
GE_ACL aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig*) {
  return MallocHost(ptr, size, __func__);
}

GE_ACL aclError aclrtFree(void* devPtr) {
  ACL_NEEDS(devPtr != nullptr, "devPtr is null");
  if (!ReleaseBlock(devPtr, Place::kDevice)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, kNotABlock);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtFreeHost(void* hostPtr) {
  ACL_NEEDS(hostPtr != nullptr, "hostPtr is null");
  if (!ReleaseBlock(hostPtr, Place::kHost)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, kNotABlock);
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType, void** devPtr) {
  ACL_NEEDS(ptr != nullptr && devPtr != nullptr && size > 0, "a null pointer or size 0");
  if (!AddRegistered(ptr, size, Place::kRegistered))
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the memory overlaps with memory that is known already");
  *devPtr = ptr;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t) {
  ACL_NEEDS(ptr != nullptr && size > 0, "a null pointer or size 0");
  if (!AddRegistered(ptr, size, Place::kRegistered))
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the memory overlaps with memory that is known already");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t) {
  ACL_NEEDS(pHost != nullptr && pDevice != nullptr, "a null pointer");
  const auto block = BlockOf(pHost);
  if (!block || block->place == Place::kDevice)
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "no registered host memory");
  *pDevice = pHost;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtHostUnregister(void* ptr) {
  ACL_NEEDS(ptr != nullptr, "a null pointer");
  if (!ReleaseBlock(ptr, Place::kRegistered)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, kNotABlock);
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  ACL_NEEDS(ptr != nullptr && attributes != nullptr, "a null pointer");
  *attributes = {};
  attributes->pageSize = 4096;
  const auto block = BlockOf(ptr);
  attributes->location.type = !block                           ? ACL_MEM_LOCATION_TYPE_UNREGISTERED
                              : block->place == Place::kDevice ? ACL_MEM_LOCATION_TYPE_DEVICE
                                                               : ACL_MEM_LOCATION_TYPE_HOST;
  return ACL_SUCCESS;
}

// Memory is coherent: there is nothing to flush.
// Caches are coherent: nothing to write back or to drop.
GE_ACL aclError aclrtMemFlush(void* devPtr, size_t size) {
  ACL_NEEDS(devPtr != nullptr && size > 0, "a null pointer or size 0");
  if (!PinBlock(devPtr, size)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, kNotABlock);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  ACL_NEEDS(devPtr != nullptr && size > 0, "a null pointer or size 0");
  if (!PinBlock(devPtr, size)) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, kNotABlock);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtFreeWithDevSync(void* devPtr) {
  if (aclError code = aclrtSynchronizeDevice()) return code;
  return aclrtFree(devPtr);
}
GE_ACL aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  if (aclError code = aclrtSynchronizeDevice()) return code;
  return aclrtFreeHost(hostPtr);
}
GE_ACL aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType,
                                  uint32_t* checkResult, uint32_t reserve) {
  ACL_NEEDS(addrList != nullptr && checkResult != nullptr && size > 0, "a null pointer or size 0");
  constexpr uint32_t kKnown = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
  ACL_NEEDS(memType != 0 && (memType & ~kKnown) == 0 && reserve == 0, "unknown type of memory");
  *checkResult = 1;
  for (uint32_t i = 0; i < size; ++i) {
    const auto block = BlockOf(addrList[i]);
    const bool device = block && block->place == Place::kDevice && (memType & ACL_RT_MEM_TYPE_DEV);
    const bool reserved =
        block && block->place == Place::kReserved && (memType & ACL_RT_MEM_TYPE_RSVD);
    if (!device && !reserved) *checkResult = 0;
  }
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  ACL_NEEDS(free != nullptr && total != nullptr, "a null pointer");
  ACL_NEEDS(attr >= ACL_DDR_MEM && attr <= ACL_MEM_P2P_HUGE1G, "unknown kind of memory");
  if (CurrentContext() == nullptr) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  struct sysinfo info{};
  if (sysinfo(&info) != 0) ACL_FAIL(ACL_ERROR_RT_INTERNAL_ERROR, "the system does not tell");
  *total = static_cast<size_t>(info.totalram) * info.mem_unit;
  *free = (static_cast<size_t>(info.freeram) + info.bufferram) * info.mem_unit;
  return ACL_SUCCESS;
}
