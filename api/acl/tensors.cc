// Data buffers, tensor descriptions, datasets, element types and fp16.
#include "api/acl/tensors.h"

#include "abi/convert.h"
#include "api/acl/dtypes.h"
#include "api/acl/error.h"

namespace ge::acl {

int64_t TensorBytes(aclDataType dtype, const std::vector<int64_t>& dims) {
  const DType t = FromAcl(dtype);
  if (t == DType::kNone || t == DType::kString) return -1;
  int64_t elements = 1;
  for (const int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(elements, d, &elements)) return -1;
  return elements > (int64_t{1} << 56) ? -1 : BytesFor(t, elements);
}

namespace {

constexpr const char* kNoDesc = "not a live tensor description";
constexpr const char* kNoBuffer = "not a live data buffer";
constexpr const char* kNoDataset = "not a live dataset";

// Runs f on the description, or fails with the function's name.
template <class F>
aclError WithDesc(const aclTensorDesc* desc, const char* function, F&& f) {
  if (desc == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "desc is null");
  aclError code = ACL_SUCCESS;
  if (!Live<TensorDesc>().With(desc, [&](TensorDesc& d) { code = f(d); }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, kNoDesc);
  return code == ACL_SUCCESS ? code : Fail(code, function, "index or count is out of range");
}

aclError SetDims(aclTensorDesc* desc, int n, const int64_t* dims, const char* function) {
  if (n < 0 || n > ACL_MAX_DIM_CNT || (n > 0 && dims == nullptr))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "numDims or dims is wrong");
  return WithDesc(desc, function, [&](TensorDesc& d) {
    d.dims.assign(dims, dims + n);
    return ACL_SUCCESS;
  });
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL size_t aclDataTypeSize(aclDataType dataType) {
  const ge::DType t = FromAcl(dataType);
  const int bits = ge::BitWidth(t);
  return bits < 8 ? 0 : static_cast<size_t>(bits) / 8;
}
GE_ACL float aclFloat16ToFloat(aclFloat16 value) { return ge::F16ToF32(value); }
GE_ACL aclFloat16 aclFloatToFloat16(float value) { return ge::F32ToF16(value); }

GE_ACL aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  auto buffer = std::make_shared<DataBuffer>(DataBuffer{data, size});
  return static_cast<aclDataBuffer*>(Live<DataBuffer>().Add(std::move(buffer)));
}
GE_ACL aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  ACL_NEEDS(dataBuffer != nullptr, "dataBuffer is null");
  if (!Live<DataBuffer>().Remove(dataBuffer)) ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoBuffer);
  return ACL_SUCCESS;
}
GE_ACL aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  ACL_NEEDS(dataBuffer != nullptr, "dataBuffer is null");
  if (!Live<DataBuffer>().With(dataBuffer, [&](DataBuffer& b) { b = {data, size}; }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoBuffer);
  return ACL_SUCCESS;
}
GE_ACL void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  void* data = nullptr;
  if (!Live<DataBuffer>().With(dataBuffer, [&](DataBuffer& b) { data = b.data; }))
    Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoBuffer);
  return data;
}
GE_ACL size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  size_t bytes = 0;
  if (!Live<DataBuffer>().With(dataBuffer, [&](DataBuffer& b) { bytes = b.bytes; }))
    Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoBuffer);
  return bytes;
}
GE_ACL uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return static_cast<uint32_t>(aclGetDataBufferSizeV2(dataBuffer));
}

GE_ACL aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims,
                                          aclFormat format) {
  if (numDims < 0 || numDims > ACL_MAX_DIM_CNT || (numDims > 0 && dims == nullptr)) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "numDims or dims is wrong");
    return nullptr;
  }
  auto desc = std::make_shared<TensorDesc>();
  desc->dtype = dataType;
  desc->format = format;
  desc->dims.assign(dims, dims + numDims);
  desc->unknown_rank = numDims == 1 && dims[0] == -2;
  return static_cast<aclTensorDesc*>(Live<TensorDesc>().Add(std::move(desc)));
}
GE_ACL void aclDestroyTensorDesc(const aclTensorDesc* desc) {
  if (!Live<TensorDesc>().Remove(desc)) Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoDesc);
}
GE_ACL aclError aclSetTensorShapeRange(aclTensorDesc* desc, size_t dimsCount,
                                       int64_t dimsRange[][ACL_TENSOR_SHAPE_RANGE_NUM]) {
  ACL_NEEDS(dimsRange != nullptr && dimsCount <= ACL_MAX_DIM_CNT,
            "dimsRange or dimsCount is wrong");
  return WithDesc(desc, __func__, [&](TensorDesc& d) {
    d.ranges.clear();
    for (size_t i = 0; i < dimsCount; ++i) d.ranges.emplace_back(dimsRange[i][0], dimsRange[i][1]);
    return ACL_SUCCESS;
  });
}
GE_ACL aclError aclSetTensorValueRange(aclTensorDesc* desc, size_t,
                                       int64_t valueRange[][ACL_TENSOR_VALUE_RANGE_NUM]) {
  ACL_NEEDS(valueRange != nullptr, "valueRange is null");
  return WithDesc(desc, __func__, [](TensorDesc&) { return ACL_SUCCESS; });
}
GE_ACL aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  aclDataType type = ACL_DT_UNDEFINED;
  WithDesc(desc, __func__, [&](TensorDesc& d) { return type = d.dtype, ACL_SUCCESS; });
  return type;
}
GE_ACL aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  aclFormat format = ACL_FORMAT_UNDEFINED;
  WithDesc(desc, __func__, [&](TensorDesc& d) { return format = d.format, ACL_SUCCESS; });
  return format;
}
GE_ACL size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  size_t bytes = 0;
  WithDesc(desc, __func__, [&](TensorDesc& d) {
    bytes = static_cast<size_t>(std::max<int64_t>(0, TensorBytes(d.dtype, d.dims)));
    return ACL_SUCCESS;
  });
  return bytes;
}
GE_ACL size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  size_t count = 0;
  WithDesc(desc, __func__, [&](TensorDesc& d) {
    count = static_cast<size_t>(std::max<int64_t>(0, TensorBytes(ACL_INT8, d.dims)));
    return ACL_SUCCESS;
  });
  return count;
}
GE_ACL size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  size_t n = 0;
  WithDesc(desc, __func__, [&](TensorDesc& d) {
    n = d.unknown_rank ? static_cast<size_t>(ACL_UNKNOWN_RANK) : d.dims.size();
    return ACL_SUCCESS;
  });
  return n;
}
GE_ACL aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
  ACL_NEEDS(dimSize != nullptr, "dimSize is null");
  return WithDesc(desc, __func__, [&](TensorDesc& d) {
    if (index >= d.dims.size()) return ACL_ERROR_INVALID_PARAM;
    *dimSize = d.dims[index];
    return ACL_SUCCESS;
  });
}
GE_ACL int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
  int64_t dim = -1;
  return aclGetTensorDescDimV2(desc, index, &dim) == ACL_SUCCESS ? dim : -1;
}
GE_ACL aclError aclGetTensorDescDimRange(const aclTensorDesc* desc, size_t index,
                                         size_t dimRangeNum, int64_t* dimRange) {
  ACL_NEEDS(dimRange != nullptr && dimRangeNum >= 2, "dimRange is null or dimRangeNum below 2");
  return WithDesc(desc, __func__, [&](TensorDesc& d) {
    if (index >= d.ranges.size()) return ACL_ERROR_INVALID_PARAM;
    dimRange[0] = d.ranges[index].first;
    dimRange[1] = d.ranges[index].second;
    return ACL_SUCCESS;
  });
}
GE_ACL void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  WithDesc(desc, __func__, [&](TensorDesc& d) {
    d.name = name == nullptr ? "" : name;
    return ACL_SUCCESS;
  });
}
GE_ACL const char* aclGetTensorDescName(aclTensorDesc* desc) {
  // The text stays where it is while the description lives and keeps its name.
  const char* name = "";
  WithDesc(desc, __func__, [&](TensorDesc& d) { return name = d.name.c_str(), ACL_SUCCESS; });
  return name;
}
GE_ACL aclError aclTransTensorDescFormat(const aclTensorDesc*, aclFormat, aclTensorDesc**) {
  return NotSupported(__func__);
}
GE_ACL aclError aclSetTensorStorageFormat(aclTensorDesc* desc, aclFormat) {
  return WithDesc(desc, __func__, [](TensorDesc&) { return ACL_SUCCESS; });
}
GE_ACL aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  return WithDesc(desc, __func__, [&](TensorDesc& d) { return d.format = format, ACL_SUCCESS; });
}
GE_ACL aclError aclSetTensorOriginFormat(aclTensorDesc* desc, aclFormat) {
  return WithDesc(desc, __func__, [](TensorDesc&) { return ACL_SUCCESS; });
}
GE_ACL aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  return SetDims(desc, numDims, dims, __func__);
}
GE_ACL aclError aclSetTensorStorageShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  return SetDims(desc, numDims, dims, __func__);
}
GE_ACL aclError aclSetTensorOriginShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  ACL_NEEDS(numDims >= 0 && (numDims == 0 || dims != nullptr), "numDims or dims is wrong");
  return WithDesc(desc, __func__, [](TensorDesc&) { return ACL_SUCCESS; });
}
GE_ACL aclTensorDesc* aclGetTensorDescByIndex(aclTensorDesc* desc, size_t index) {
  const aclError code = WithDesc(desc, __func__, [&](TensorDesc&) {
    return index == 0 ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
  });
  return code == ACL_SUCCESS ? desc : nullptr;
}
GE_ACL void* aclGetTensorDescAddress(const aclTensorDesc* desc) {
  void* address = nullptr;
  WithDesc(desc, __func__,
           [&](TensorDesc& d) { return address = const_cast<void*>(d.constant), ACL_SUCCESS; });
  return address;
}
GE_ACL aclError aclSetTensorDynamicInput(aclTensorDesc* desc, const char* dynamicInputName) {
  ACL_NEEDS(dynamicInputName != nullptr, "dynamicInputName is null");
  return WithDesc(desc, __func__, [&](TensorDesc& d) {
    d.dynamic_input = dynamicInputName;
    return ACL_SUCCESS;
  });
}
GE_ACL aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) {
  ACL_NEEDS(dataBuffer != nullptr && length > 0, "dataBuffer is null or length is 0");
  return WithDesc(desc, __func__, [&](TensorDesc& d) {
    d.constant = dataBuffer;
    d.constant_bytes = length;
    return ACL_SUCCESS;
  });
}
GE_ACL aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  return WithDesc(desc, __func__, [&](TensorDesc& d) { return d.place = memType, ACL_SUCCESS; });
}

GE_ACL aclmdlDataset* aclmdlCreateDataset() {
  return static_cast<aclmdlDataset*>(Live<Dataset>().Add(std::make_shared<Dataset>()));
}
GE_ACL aclError aclmdlDestroyDataset(const aclmdlDataset* dataset) {
  ACL_NEEDS(dataset != nullptr, "dataset is null");
  const auto found = Live<Dataset>().Remove(dataset);
  if (!found) ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoDataset);
  for (const Dataset::Entry& entry : found->entries)
    if (entry.desc_handle != nullptr) Live<TensorDesc>().Remove(entry.desc_handle);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* dataBuffer) {
  ACL_NEEDS(dataset != nullptr && dataBuffer != nullptr, "dataset or dataBuffer is null");
  if (!Live<DataBuffer>().Get(dataBuffer)) ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoBuffer);
  if (!Live<Dataset>().With(dataset,
                            [&](Dataset& d) { d.entries.push_back({dataBuffer, {}, {}}); }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoDataset);
  return ACL_SUCCESS;
}
GE_ACL size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) {
  size_t n = 0;
  if (!Live<Dataset>().With(dataset, [&](Dataset& d) { n = d.entries.size(); }))
    Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoDataset);
  return n;
}
GE_ACL aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) {
  const void* buffer = nullptr;
  bool in_range = false;
  const bool live = Live<Dataset>().With(dataset, [&](Dataset& d) {
    in_range = index < d.entries.size();
    if (in_range) buffer = d.entries[index].buffer;
  });
  if (!live || !in_range)
    Fail(ACL_ERROR_INVALID_PARAM, __func__, live ? "index is out of range" : kNoDataset);
  return static_cast<aclDataBuffer*>(const_cast<void*>(buffer));
}
GE_ACL aclError aclmdlSetDatasetTensorDesc(aclmdlDataset* dataset, aclTensorDesc* tensorDesc,
                                           size_t index) {
  ACL_NEEDS(dataset != nullptr && tensorDesc != nullptr, "dataset or tensorDesc is null");
  std::shared_ptr<TensorDesc> copy;  // the client may destroy its description
  if (!Live<TensorDesc>().With(tensorDesc,
                               [&](TensorDesc& d) { copy = std::make_shared<TensorDesc>(d); }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoDesc);
  bool in_range = false;
  if (!Live<Dataset>().With(dataset, [&](Dataset& d) {
        in_range = index < d.entries.size();
        if (in_range) d.entries[index].desc = copy;
      }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoDataset);
  ACL_NEEDS(in_range, "index is out of range");
  return ACL_SUCCESS;
}
GE_ACL aclTensorDesc* aclmdlGetDatasetTensorDesc(const aclmdlDataset* dataset, size_t index) {
  const auto found = Live<Dataset>().Get(dataset);
  const void* handle = nullptr;
  const bool live = Live<Dataset>().With(dataset, [&](Dataset& d) {
    if (index >= d.entries.size() || !d.entries[index].desc) return;
    Dataset::Entry& entry = d.entries[index];
    // The handle's record follows the entry: what a run has found shows in it.
    bool same = entry.desc_handle != nullptr;
    if (same)
      same = Live<TensorDesc>().With(entry.desc_handle, [&](TensorDesc& t) { t = *entry.desc; });
    if (!same)
      entry.desc_handle = Live<TensorDesc>().Add(std::make_shared<TensorDesc>(*entry.desc));
    handle = entry.desc_handle;
  });
  if (!live || handle == nullptr)
    Fail(ACL_ERROR_INVALID_PARAM, __func__, live ? "no description at this index" : kNoDataset);
  return static_cast<aclTensorDesc*>(const_cast<void*>(handle));
}
