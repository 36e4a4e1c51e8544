// aclTensor and aclScalar: what single operators are given. Descriptions only; they own no memory.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "api/acl/dtypes.h"
#include "api/acl/error.h"
#include "api/acl/handles.h"
#include "api/acl/include/aclnn/acl_meta.h"

namespace ge::acl {
namespace {

struct OperatorTensor {
  static constexpr int kHandleKind = 16;
  std::vector<int64_t> dims, strides, storage;
  int64_t offset = 0;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  void* data = nullptr;
};

struct OperatorScalar {
  static constexpr int kHandleKind = 17;
  aclDataType dtype = ACL_DT_UNDEFINED;
  uint8_t value[16] = {};
};

constexpr uint64_t kMaxRank = ACL_MAX_DIM_CNT;

bool Positive(const int64_t* dims, uint64_t n) {
  return n <= kMaxRank && (n == 0 || dims != nullptr) &&
         std::all_of(dims, dims + n, [](int64_t d) { return d >= 0; });
}

constexpr const char* kNoTensor = "not a live tensor";

// A list for the caller to delete[]; never null, so that a scalar's empty list can be deleted too.
void Give(const std::vector<int64_t>& from, int64_t** to, uint64_t* count) {
  *to = new int64_t[std::max<size_t>(1, from.size())];
  std::copy(from.begin(), from.end(), *to);
  *count = from.size();
}

aclnnStatus GiveList(const aclTensor* tensor, std::vector<int64_t> OperatorTensor::* list,
                     int64_t** to, uint64_t* count, const char* function) {
  if (to == nullptr || count == nullptr)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "a null pointer");
  const auto found = Live<OperatorTensor>().Get(tensor);
  if (!found) return Fail(ACL_ERROR_INVALID_PARAM, function, kNoTensor);
  Give((*found).*list, to, count);
  return ACL_SUCCESS;
}

template <class T>
aclnnStatus GiveValue(const aclTensor* tensor, T OperatorTensor::* value, T* to,
                      const char* function) {
  if (to == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "a null pointer");
  if (!Live<OperatorTensor>().With(tensor, [&](OperatorTensor& t) { *to = t.*value; }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, kNoTensor);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum,
                                  aclDataType dataType, const int64_t* stride, int64_t offset,
                                  aclFormat format, const int64_t* storageDims,
                                  uint64_t storageDimsNum, void* tensorData) {
  if (!Positive(viewDims, viewDimsNum) || !Positive(storageDims, storageDimsNum) || offset < 0) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "a dim or the offset is negative, or a list is null");
    return nullptr;
  }
  auto made = std::make_shared<OperatorTensor>();
  made->dims.assign(viewDims, viewDims + viewDimsNum);
  made->storage.assign(storageDims, storageDims + storageDimsNum);
  made->strides.assign(viewDimsNum, 1);
  if (stride != nullptr) {
    made->strides.assign(stride, stride + viewDimsNum);
  } else {
    for (size_t i = viewDimsNum; i-- > 1;)
      if (__builtin_mul_overflow(made->strides[i], made->dims[i], &made->strides[i - 1])) {
        Fail(ACL_ERROR_INVALID_PARAM, __func__, "the dims are too large");
        return nullptr;
      }
  }
  made->dtype = dataType;
  made->offset = offset;
  made->format = format;
  made->data = tensorData;
  return static_cast<aclTensor*>(Live<OperatorTensor>().Add(std::move(made)));
}

GE_ACL aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  ACL_NEEDS(Live<OperatorTensor>().Remove(tensor) != nullptr, kNoTensor);
  return ACL_SUCCESS;
}

GE_ACL aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  const size_t size = aclDataTypeSize(dataType);
  if (value == nullptr || size == 0 || size > sizeof OperatorScalar::value) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "value is null, or the type has no size");
    return nullptr;
  }
  auto made = std::make_shared<OperatorScalar>();
  made->dtype = dataType;
  std::memcpy(made->value, value, size);
  return static_cast<aclScalar*>(Live<OperatorScalar>().Add(std::move(made)));
}
GE_ACL aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  ACL_NEEDS(Live<OperatorScalar>().Remove(scalar) != nullptr, "not a live scalar");
  return ACL_SUCCESS;
}

GE_ACL aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                                   uint64_t* viewDimsNum) {
  return GiveList(tensor, &OperatorTensor::dims, viewDims, viewDimsNum, __func__);
}
GE_ACL aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                                      uint64_t* storageDimsNum) {
  return GiveList(tensor, &OperatorTensor::storage, storageDims, storageDimsNum, __func__);
}
GE_ACL aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                                     uint64_t* stridesNum) {
  return GiveList(tensor, &OperatorTensor::strides, stridesValue, stridesNum, __func__);
}
GE_ACL aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return GiveValue(tensor, &OperatorTensor::offset, offset, __func__);
}
GE_ACL aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return GiveValue(tensor, &OperatorTensor::format, format, __func__);
}
GE_ACL aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return GiveValue(tensor, &OperatorTensor::dtype, dataType, __func__);
}
GE_ACL aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return GiveValue(tensor, &OperatorTensor::data, addr, __func__);
}
GE_ACL aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  ACL_NEEDS(Live<OperatorTensor>().With(tensor, [&](OperatorTensor& t) { t.data = addr; }),
            kNoTensor);
  return ACL_SUCCESS;
}
