// Copies whose addresses are read from device memory when they run: by offset from a base address
// that is stored there, and by a descriptor. Fills by 32-bit words.
#include <algorithm>
#include <cstring>

#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

constexpr uint64_t kMagic = 0x4765436f70794465;
struct Descriptor {
  uint64_t magic;
  void* dst;
  const void* src;
  uint64_t count;
};

constexpr const char* kNotLive = "not (wholly) in live device memory";
constexpr const char* kKind = "the kind must be ACL_MEMCPY_INNER_DEVICE_TO_DEVICE";

aclError CopyLive(void* dst, const void* src, size_t count, const char* function) {
  const auto to = PinBlock(dst, count), from = PinBlock(src, count);
  if (!to || !from)
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
                std::string(to ? "the source is " : "the destination is ") + kNotLive);
  std::memmove(dst, src, count);
  return ACL_SUCCESS;
}

aclError CheckWords(void* p, size_t bytes, size_t n, std::shared_ptr<MemoryBlock>* pin,
                    const char* function) {
  if (p == nullptr || n == 0 || n > bytes / 4)
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "ptr is null, or N is 0 or more than the memory holds");
  if (reinterpret_cast<uintptr_t>(p) % 4 != 0)
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "ptr is not a multiple of 4");
  *pin = PinBlock(p, n * 4);
  return *pin ? ACL_SUCCESS : Fail(ACL_ERROR_RT_PARAM_INVALID, function, kNotLive);
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  std::shared_ptr<MemoryBlock> pin;
  if (aclError code = CheckWords(ptr, memSize, N, &pin, __func__)) return code;
  std::fill_n(static_cast<uint32_t*>(ptr), N, value);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                                    aclrtStream stream) {
  std::shared_ptr<MemoryBlock> pin;
  if (aclError code = CheckWords(ptr, memSize, N, &pin, __func__)) return code;
  return SubmitTo(stream, __func__, [=](const Stream&) -> aclError {
    std::fill_n(static_cast<uint32_t*>(ptr), N, value);
    return pin ? ACL_SUCCESS : ACL_ERROR_INTERNAL_ERROR;  // pinned until here
  });
}

GE_ACL aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax, size_t dstDataOffset,
                                           const void** src, size_t count, size_t srcDataOffset,
                                           aclrtMemcpyKind kind, aclrtStream stream) {
  ACL_NEEDS(dst != nullptr && src != nullptr && count > 0, "a null pointer or count 0");
  ACL_NEEDS(kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, kKind);
  ACL_NEEDS(dstDataOffset <= destMax && count <= destMax - dstDataOffset,
            "the offset and count go beyond destMax");
  const auto to = PinBlock(dst, sizeof *dst), from = PinBlock(src, sizeof *src);
  if (!to || !from)
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the stored address is " + std::string(kNotLive));
  return SubmitTo(stream, __func__, [=, pins = std::pair(to, from)](const Stream&) -> aclError {
    return CopyLive(static_cast<char*>(*dst) + dstDataOffset,
                    static_cast<const char*>(*src) + srcDataOffset, count,
                    "aclrtMemcpyAsyncWithOffset");
  });
}

GE_ACL aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize) {
  ACL_NEEDS(descSize != nullptr, "descSize is null");
  ACL_NEEDS(kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, kKind);
  *descSize = sizeof(Descriptor);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr, void* dstAddr,
                                   size_t count, void*) {
  ACL_NEEDS(desc != nullptr && srcAddr != nullptr && dstAddr != nullptr && count > 0,
            "a null pointer or count 0");
  ACL_NEEDS(kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, kKind);
  const auto pin = PinBlock(desc, sizeof(Descriptor));
  if (!pin) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "desc is " + std::string(kNotLive));
  const Descriptor made{kMagic, dstAddr, srcAddr, count};
  std::memcpy(desc, &made, sizeof made);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind, aclrtStream stream) {
  ACL_NEEDS(desc != nullptr, "desc is null");
  ACL_NEEDS(kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, kKind);
  const auto pin = PinBlock(desc, sizeof(Descriptor));
  if (!pin) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "desc is " + std::string(kNotLive));
  return SubmitTo(stream, __func__, [desc, pin](const Stream&) -> aclError {
    Descriptor read;
    std::memcpy(&read, desc, sizeof read);
    if (read.magic != kMagic)
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpyAsyncWithDesc",
                  "desc was not filled by aclrtSetMemcpyDesc");
    return CopyLive(read.dst, read.src, read.count, "aclrtMemcpyAsyncWithDesc");
  });
}
