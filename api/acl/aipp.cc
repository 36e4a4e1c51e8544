// Parameters of dynamic image preprocessing (AIPP).
//
// A client fills a set of parameters and binds it to a model's input; it is written into the data
// buffer of the model's input ascend_dynamic_aipp_data, as f32 values in the order of Record below,
// one record for each picture of the batch.
#include <algorithm>
#include <cstring>
#include <vector>

#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/model.h"
#include "api/acl/tensors.h"

namespace ge::acl {
namespace {

struct Picture {
  float crop[5] = {};     // switch, left, top, width, height
  float resize[5] = {};   // switch, width and height before, width and height after
  float padding[5] = {};  // switch, top, bottom, left, right
  float mean[4] = {}, min[4] = {}, var_reci[4] = {1, 1, 1, 1};
};
struct Shared {
  float format = 0, csc = 0, rbuv_swap = 0, ax_swap = 0, src_w = 0, src_h = 0;
  float matrix[9] = {}, output_bias[3] = {}, input_bias[3] = {};
};
struct Record {
  Shared shared;
  Picture picture;
};
static_assert(sizeof(Record) == (21 + 27) * sizeof(float));

struct Aipp {
  static constexpr int kHandleKind = 13;
  Shared shared;
  std::vector<Picture> pictures;
};

constexpr uint64_t kMaxBatch = 65536;
constexpr const char* kNoAipp = "not a live set of AIPP parameters";

template <class F>
aclError Set(aclmdlAIPP* handle, const char* function, F&& f) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "aippParmsSet is null");
  if (!Live<Aipp>().With(handle, f)) return Fail(ACL_ERROR_INVALID_PARAM, function, kNoAipp);
  return ACL_SUCCESS;
}

template <size_t n, class... Values>
aclError SetPicture(aclmdlAIPP* handle, uint64_t index, const char* function,
                    float (Picture::*member)[n], Values... values) {
  static_assert(sizeof...(Values) == n);
  bool in_range = false;
  const aclError code = Set(handle, function, [&](Aipp& a) {
    in_range = index < a.pictures.size();
    if (!in_range) return;
    size_t i = 0;
    ((void((a.pictures[index].*member)[i++] = static_cast<float>(values))), ...);
  });
  if (code == ACL_SUCCESS && !in_range)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "batchIndex is out of range");
  return code;
}

bool IsSwitch(int8_t value) { return value == 0 || value == 1; }

aclError Bind(uint32_t id, aclmdlDataset* dataset, const aclmdlAIPP* handle, const char* function) {
  if (dataset == nullptr || handle == nullptr)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "dataset or aippParmsSet is null");
  const auto model = FindModel(id);
  if (!model)
    return Fail(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, function,
                "no model has the id " + std::to_string(id));
  const int input = model->info->aipp_input;
  if (input < 0)
    return Fail(ACL_ERROR_GE_AIPP_NOT_EXIST, function, "the model has no dynamic AIPP");
  std::vector<Record> records;
  if (!Live<Aipp>().With(handle, [&](Aipp& a) {
        for (const Picture& p : a.pictures) records.push_back({a.shared, p});
      }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, kNoAipp);
  const void* buffer = nullptr;
  if (!Live<Dataset>().With(dataset, [&](Dataset& d) {
        if (static_cast<size_t>(input) < d.entries.size())
          buffer = d.entries[static_cast<size_t>(input)].buffer;
      }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "not a live dataset");
  DataBuffer memory;
  if (!Live<DataBuffer>().With(buffer, [&](DataBuffer& b) { memory = b; }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the dataset has no buffer for the parameters");
  const size_t bytes = std::min(memory.bytes, records.size() * sizeof(Record));
  const auto pin = PinBlock(memory.data, bytes);
  if (bytes == 0 || !pin)
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "the parameters' buffer is not live device memory");
  std::memcpy(memory.data, records.data(), bytes);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclmdlAIPP* aclmdlCreateAIPP(uint64_t batchSize) {
  if (batchSize == 0 || batchSize > kMaxBatch) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "batchSize is out of range");
    return nullptr;
  }
  auto aipp = std::make_shared<Aipp>();
  aipp->pictures.resize(batchSize);
  return static_cast<aclmdlAIPP*>(Live<Aipp>().Add(std::move(aipp)));
}
GE_ACL aclError aclmdlDestroyAIPP(const aclmdlAIPP* aippParmsSet) {
  ACL_NEEDS(aippParmsSet != nullptr, "aippParmsSet is null");
  if (!Live<Aipp>().Remove(aippParmsSet)) ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoAipp);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetAippDataSize(uint64_t batchSize, size_t* size) {
  ACL_NEEDS(size != nullptr && batchSize > 0 && batchSize <= kMaxBatch,
            "size is null or batchSize is wrong");
  *size = batchSize * sizeof(Record);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlSetAIPPInputFormat(aclmdlAIPP* aippParmsSet, aclAippInputFormat inputFormat) {
  ACL_NEEDS(inputFormat >= ACL_YUV420SP_U8 && inputFormat <= ACL_RAW24, "unknown format");
  return Set(aippParmsSet, __func__, [&](Aipp& a) { a.shared.format = inputFormat; });
}
GE_ACL aclError aclmdlSetAIPPCscParams(
    aclmdlAIPP* aippParmsSet, int8_t cscSwitch, int16_t cscMatrixR0C0, int16_t cscMatrixR0C1,
    int16_t cscMatrixR0C2, int16_t cscMatrixR1C0, int16_t cscMatrixR1C1, int16_t cscMatrixR1C2,
    int16_t cscMatrixR2C0, int16_t cscMatrixR2C1, int16_t cscMatrixR2C2, uint8_t cscOutputBiasR0,
    uint8_t cscOutputBiasR1, uint8_t cscOutputBiasR2, uint8_t cscInputBiasR0,
    uint8_t cscInputBiasR1, uint8_t cscInputBiasR2) {
  ACL_NEEDS(IsSwitch(cscSwitch), "a switch must be 0 or 1");
  return Set(aippParmsSet, __func__, [&](Aipp& a) {
    a.shared.csc = cscSwitch;
    const int16_t matrix[] = {cscMatrixR0C0, cscMatrixR0C1, cscMatrixR0C2,
                              cscMatrixR1C0, cscMatrixR1C1, cscMatrixR1C2,
                              cscMatrixR2C0, cscMatrixR2C1, cscMatrixR2C2};
    std::copy(std::begin(matrix), std::end(matrix), a.shared.matrix);
    const uint8_t out[] = {cscOutputBiasR0, cscOutputBiasR1, cscOutputBiasR2};
    const uint8_t in[] = {cscInputBiasR0, cscInputBiasR1, cscInputBiasR2};
    std::copy(std::begin(out), std::end(out), a.shared.output_bias);
    std::copy(std::begin(in), std::end(in), a.shared.input_bias);
  });
}
GE_ACL aclError aclmdlSetAIPPRbuvSwapSwitch(aclmdlAIPP* aippParmsSet, int8_t rbuvSwapSwitch) {
  ACL_NEEDS(IsSwitch(rbuvSwapSwitch), "a switch must be 0 or 1");
  return Set(aippParmsSet, __func__, [&](Aipp& a) { a.shared.rbuv_swap = rbuvSwapSwitch; });
}
GE_ACL aclError aclmdlSetAIPPAxSwapSwitch(aclmdlAIPP* aippParmsSet, int8_t axSwapSwitch) {
  ACL_NEEDS(IsSwitch(axSwapSwitch), "a switch must be 0 or 1");
  return Set(aippParmsSet, __func__, [&](Aipp& a) { a.shared.ax_swap = axSwapSwitch; });
}
GE_ACL aclError aclmdlSetAIPPSrcImageSize(aclmdlAIPP* aippParmsSet, int32_t srcImageSizeW,
                                          int32_t srcImageSizeH) {
  ACL_NEEDS(srcImageSizeW > 0 && srcImageSizeH > 0, "a size is not positive");
  return Set(aippParmsSet, __func__, [&](Aipp& a) {
    a.shared.src_w = static_cast<float>(srcImageSizeW);
    a.shared.src_h = static_cast<float>(srcImageSizeH);
  });
}
GE_ACL aclError aclmdlSetAIPPScfParams(aclmdlAIPP* aippParmsSet, int8_t scfSwitch,
                                       int32_t scfInputSizeW, int32_t scfInputSizeH,
                                       int32_t scfOutputSizeW, int32_t scfOutputSizeH,
                                       uint64_t batchIndex) {
  ACL_NEEDS(IsSwitch(scfSwitch), "a switch must be 0 or 1");
  return SetPicture(aippParmsSet, batchIndex, __func__, &Picture::resize, scfSwitch, scfInputSizeW,
                    scfInputSizeH, scfOutputSizeW, scfOutputSizeH);
}
GE_ACL aclError aclmdlSetAIPPCropParams(aclmdlAIPP* aippParmsSet, int8_t cropSwitch,
                                        int32_t cropStartPosW, int32_t cropStartPosH,
                                        int32_t cropSizeW, int32_t cropSizeH, uint64_t batchIndex) {
  ACL_NEEDS(IsSwitch(cropSwitch), "a switch must be 0 or 1");
  return SetPicture(aippParmsSet, batchIndex, __func__, &Picture::crop, cropSwitch, cropStartPosW,
                    cropStartPosH, cropSizeW, cropSizeH);
}
GE_ACL aclError aclmdlSetAIPPPaddingParams(aclmdlAIPP* aippParmsSet, int8_t paddingSwitch,
                                           int32_t paddingSizeTop, int32_t paddingSizeBottom,
                                           int32_t paddingSizeLeft, int32_t paddingSizeRight,
                                           uint64_t batchIndex) {
  ACL_NEEDS(IsSwitch(paddingSwitch), "a switch must be 0 or 1");
  return SetPicture(aippParmsSet, batchIndex, __func__, &Picture::padding, paddingSwitch,
                    paddingSizeTop, paddingSizeBottom, paddingSizeLeft, paddingSizeRight);
}
GE_ACL aclError aclmdlSetAIPPDtcPixelMean(aclmdlAIPP* aippParmsSet, int16_t dtcPixelMeanChn0,
                                          int16_t dtcPixelMeanChn1, int16_t dtcPixelMeanChn2,
                                          int16_t dtcPixelMeanChn3, uint64_t batchIndex) {
  return SetPicture(aippParmsSet, batchIndex, __func__, &Picture::mean, dtcPixelMeanChn0,
                    dtcPixelMeanChn1, dtcPixelMeanChn2, dtcPixelMeanChn3);
}
GE_ACL aclError aclmdlSetAIPPDtcPixelMin(aclmdlAIPP* aippParmsSet, float dtcPixelMinChn0,
                                         float dtcPixelMinChn1, float dtcPixelMinChn2,
                                         float dtcPixelMinChn3, uint64_t batchIndex) {
  return SetPicture(aippParmsSet, batchIndex, __func__, &Picture::min, dtcPixelMinChn0,
                    dtcPixelMinChn1, dtcPixelMinChn2, dtcPixelMinChn3);
}
GE_ACL aclError aclmdlSetAIPPPixelVarReci(aclmdlAIPP* aippParmsSet, float dtcPixelVarReciChn0,
                                          float dtcPixelVarReciChn1, float dtcPixelVarReciChn2,
                                          float dtcPixelVarReciChn3, uint64_t batchIndex) {
  return SetPicture(aippParmsSet, batchIndex, __func__, &Picture::var_reci, dtcPixelVarReciChn0,
                    dtcPixelVarReciChn1, dtcPixelVarReciChn2, dtcPixelVarReciChn3);
}
GE_ACL aclError aclmdlSetInputAIPP(uint32_t modelId, aclmdlDataset* dataset, size_t index,
                                   const aclmdlAIPP* aippParmsSet) {
  const auto model = FindModel(modelId);
  if (model && model->info->aipp_input >= 0 &&
      index != static_cast<size_t>(model->info->aipp_input))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, "index must be that of the input " ACL_DYNAMIC_AIPP_NAME);
  return Bind(modelId, dataset, aippParmsSet, __func__);
}
GE_ACL aclError aclmdlSetAIPPByInputIndex(uint32_t modelId, aclmdlDataset* dataset, size_t,
                                          const aclmdlAIPP* aippParmsSet) {
  return Bind(modelId, dataset, aippParmsSet, __func__);
}
