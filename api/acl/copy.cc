// Copies and fills. The side that is called device must lie in memory that this library knows; a
// host side may be any memory of the process. Asynchronous ones pin what they touch.
#include <cstring>
#include <string>

#include "abi/convert.h"
#include "api/acl/dtypes.h"
#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

// A host side too is checked where it lies in memory that we know, and pinned.
struct Side {
  const void* data;
  bool device;
  const char* name;
};

aclError PinSide(const Side& side, size_t bytes, std::shared_ptr<MemoryBlock>* pin,
                 const char* function) {
  if (bytes == 0) return ACL_SUCCESS;
  *pin = PinBlock(side.data, bytes);
  if (*pin) return ACL_SUCCESS;
  if (side.device)
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
                std::string(side.name) + " is not (wholly) in live device memory");
  if (BlockOf(side.data))
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
                std::string(side.name) + " ends past the memory that was allocated");
  return ACL_SUCCESS;
}

struct Pins {
  std::shared_ptr<MemoryBlock> dst, src;
};

aclError CheckCopy(void* dst, size_t dst_bytes, const void* src, size_t src_bytes,
                   aclrtMemcpyKind kind, Pins* pins, const char* function) {
  if (dst == nullptr || src == nullptr)
    return Fail(ACL_ERROR_INVALID_PARAM, function, dst == nullptr ? "dst is null" : "src is null");
  bool to_device = false, from_device = false;
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
    case ACL_MEMCPY_DEFAULT: break;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: to_device = true; break;
    case ACL_MEMCPY_DEVICE_TO_HOST: from_device = true; break;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE: to_device = from_device = true; break;
    default: return Fail(ACL_ERROR_INVALID_PARAM, function, "unknown kind of copy");
  }
  if (aclError code = PinSide({dst, to_device, "dst"}, dst_bytes, &pins->dst, function))
    return code;
  return PinSide({src, from_device, "src"}, src_bytes, &pins->src, function);
}

aclError Copy(void* dst, size_t dest_max, const void* src, size_t count, aclrtMemcpyKind kind,
              Pins* pins, const char* function) {
  if (count > dest_max)
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "count " + std::to_string(count) + " is above destMax " + std::to_string(dest_max));
  return CheckCopy(dst, count, src, count, kind, pins, function);
}

aclError Copy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                size_t height, aclrtMemcpyKind kind, Pins* pins, const char* function) {
  if (width == 0 || height == 0 || width > dpitch || width > spitch)
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "width or height is 0, or width is above a pitch");
  size_t dst_bytes = 0, src_bytes = 0;
  if (__builtin_mul_overflow(dpitch, height - 1, &dst_bytes) ||
      __builtin_mul_overflow(spitch, height - 1, &src_bytes) ||
      __builtin_add_overflow(dst_bytes, width, &dst_bytes) ||
      __builtin_add_overflow(src_bytes, width, &src_bytes))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "pitch times height overflows");
  return CheckCopy(dst, dst_bytes, src, src_bytes, kind, pins, function);
}

void CopyRows(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
              size_t height) {
  for (size_t row = 0; row < height; ++row)
    std::memmove(static_cast<char*>(dst) + row * dpitch,
                 static_cast<const char*>(src) + row * spitch, width);
}

template <class T>
void ReduceAs(DType t, void* dst, const void* src, int64_t n, aclrtReduceKind kind) {
  for (int64_t i = 0; i < n; ++i) {
    const T a = LoadElement<T>(t, dst, i), b = LoadElement<T>(t, src, i);
    const T r = kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM   ? static_cast<T>(a + b)
                : kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX ? (a < b ? b : a)
                                                           : (b < a ? b : a);
    StoreElement<T>(t, dst, i, r);
  }
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                            aclrtMemcpyKind kind) {
  Pins pins;
  if (aclError code = Copy(dst, destMax, src, count, kind, &pins, __func__)) return code;
  std::memmove(dst, src, count);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                 aclrtMemcpyKind kind, aclrtStream stream) {
  Pins pins;
  if (aclError code = Copy(dst, destMax, src, count, kind, &pins, __func__)) return code;
  return SubmitTo(stream, __func__, [dst, src, count, pins](const Stream&) -> aclError {
    std::memmove(dst, src, count);
    return ACL_SUCCESS;
  });
}
GE_ACL aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src,
                                              size_t count, aclrtMemcpyKind kind,
                                              aclrtStream stream) {
  return aclrtMemcpyAsync(dst, destMax, src, count, kind, stream);
}
GE_ACL aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, aclrtMemcpyKind kind) {
  Pins pins;
  if (aclError code = Copy2d(dst, dpitch, src, spitch, width, height, kind, &pins, __func__))
    return code;
  CopyRows(dst, dpitch, src, spitch, width, height);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                                   size_t width, size_t height, aclrtMemcpyKind kind,
                                   aclrtStream stream) {
  Pins pins;
  if (aclError code = Copy2d(dst, dpitch, src, spitch, width, height, kind, &pins, __func__))
    return code;
  return SubmitTo(stream, __func__, [=](const Stream&) -> aclError {
    CopyRows(dst, dpitch, src, spitch, width, height);
    return ACL_SUCCESS;
  });
}

namespace {

bool Usable(void** dsts, size_t* dest_maxs, void** srcs, size_t* sizes, size_t n,
            aclrtMemcpyBatchAttr* attrs, size_t* attr_indexes, size_t num_attrs) {
  return dsts != nullptr && dest_maxs != nullptr && srcs != nullptr && sizes != nullptr && n > 0 &&
         (num_attrs == 0 || (attrs != nullptr && attr_indexes != nullptr)) && num_attrs <= n;
}

}  // namespace

GE_ACL aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                 size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                 size_t* attrsIndexes, size_t numAttrs, size_t* failIndex) {
  ACL_NEEDS(failIndex != nullptr, "failIndex is null");
  ACL_NEEDS(Usable(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs),
            "an array is null or a count is wrong");
  for (size_t i = 0; i < numBatches; ++i) {
    *failIndex = i;
    const aclError code = aclrtMemcpy(dsts[i], destMaxs[i], srcs[i], sizes[i], ACL_MEMCPY_DEFAULT);
    if (code != ACL_SUCCESS) return code;
  }
  *failIndex = SIZE_MAX;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                   size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                   size_t* attrsIndexes, size_t numAttrs) {
  size_t failed = 0;
  return aclrtMemcpyBatch(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs,
                          &failed);
}
GE_ACL aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                        size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                        size_t* attrsIndexes, size_t numAttrs, aclrtStream stream) {
  size_t failed = 0;
  return aclrtMemcpyBatchAsync(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes,
                               numAttrs, &failed, stream);
}
GE_ACL aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                      size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                      size_t* attrsIndexes, size_t numAttrs, size_t* failIndex,
                                      aclrtStream stream) {
  ACL_NEEDS(failIndex != nullptr, "failIndex is null");
  ACL_NEEDS(Usable(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs),
            "an array is null or a count is wrong");
  for (size_t i = 0; i < numBatches; ++i) {
    *failIndex = i;
    const aclError code =
        aclrtMemcpyAsync(dsts[i], destMaxs[i], srcs[i], sizes[i], ACL_MEMCPY_DEFAULT, stream);
    if (code != ACL_SUCCESS) return code;
  }
  *failIndex = SIZE_MAX;
  return ACL_SUCCESS;
}

namespace {

aclError CheckFill(void* p, size_t max, size_t count, std::shared_ptr<MemoryBlock>* pin,
                   const char* function) {
  if (p == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "devPtr is null");
  if (count > max) return Fail(ACL_ERROR_INVALID_PARAM, function, "count is above maxCount");
  return PinSide({p, true, "devPtr"}, count, pin, function);
}

}  // namespace

GE_ACL aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  std::shared_ptr<MemoryBlock> pin;
  if (aclError code = CheckFill(devPtr, maxCount, count, &pin, __func__)) return code;
  std::memset(devPtr, value, count);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                                 aclrtStream stream) {
  std::shared_ptr<MemoryBlock> pin;
  if (aclError code = CheckFill(devPtr, maxCount, count, &pin, __func__)) return code;
  return SubmitTo(stream, __func__, [devPtr, value, count, pin](const Stream&) -> aclError {
    std::memset(devPtr, value, count);
    return ACL_SUCCESS;
  });
}

GE_ACL aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                                 aclDataType type, aclrtStream stream, void*) {
  const ge::DType t = FromAcl(type);
  ACL_NEEDS(kind >= ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM && kind <= ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN,
            "this kind of reduction is not supported");
  if (!ge::IsFloat(t) && !ge::IsInteger(t))
    ACL_FAIL(ACL_ERROR_UNSUPPORTED_DATA_TYPE, "not a number type");
  const auto element = static_cast<uint64_t>(ge::BytesFor(t, 1));
  ACL_NEEDS(count > 0 && count % element == 0, "count must be a multiple of the element's bytes");
  Pins pins;
  if (aclError code =
          CheckCopy(dst, count, src, count, ACL_MEMCPY_DEVICE_TO_DEVICE, &pins, __func__))
    return code;
  const auto n = static_cast<int64_t>(count / element);
  return SubmitTo(stream, __func__, [=](const Stream&) -> aclError {
    if (ge::IsFloat(t)) {
      ReduceAs<double>(t, dst, src, n, kind);
    } else if (t == ge::DType::kU64) {
      ReduceAs<uint64_t>(t, dst, src, n, kind);
    } else {
      ReduceAs<int64_t>(t, dst, src, n, kind);
    }
    return ACL_SUCCESS;
  });
}
