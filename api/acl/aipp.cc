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
  float crop = 0, crop_w = 0, crop_h = 0, crop_size_w = 0, crop_size_h = 0;
  float resize = 0, resize_in_w = 0, resize_in_h = 0, resize_out_w = 0, resize_out_h = 0;
  float padding = 0, top = 0, bottom = 0, left = 0, right = 0;
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

template <class F>
aclError SetPicture(aclmdlAIPP* handle, uint64_t index, const char* function, F&& f) {
  bool in_range = false;
  const aclError code = Set(handle, function, [&](Aipp& a) {
    in_range = index < a.pictures.size();
    if (in_range) f(a.pictures[index]);
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
  return SetPicture(aippParmsSet, batchIndex, __func__, [&](Picture& p) {
    p.resize = scfSwitch;
    p.resize_in_w = static_cast<float>(scfInputSizeW);
    p.resize_in_h = static_cast<float>(scfInputSizeH);
    p.resize_out_w = static_cast<float>(scfOutputSizeW);
    p.resize_out_h = static_cast<float>(scfOutputSizeH);
  });
}
GE_ACL aclError aclmdlSetAIPPCropParams(aclmdlAIPP* aippParmsSet, int8_t cropSwitch,
                                        int32_t cropStartPosW, int32_t cropStartPosH,
                                        int32_t cropSizeW, int32_t cropSizeH, uint64_t batchIndex) {
  ACL_NEEDS(IsSwitch(cropSwitch), "a switch must be 0 or 1");
  return SetPicture(aippParmsSet, batchIndex, __func__, [&](Picture& p) {
    p.crop = cropSwitch;
    p.crop_w = static_cast<float>(cropStartPosW);
    p.crop_h = static_cast<float>(cropStartPosH);
    p.crop_size_w = static_cast<float>(cropSizeW);
    p.crop_size_h = static_cast<float>(cropSizeH);
  });
}
GE_ACL aclError aclmdlSetAIPPPaddingParams(aclmdlAIPP* aippParmsSet, int8_t paddingSwitch,
                                           int32_t paddingSizeTop, int32_t paddingSizeBottom,
                                           int32_t paddingSizeLeft, int32_t paddingSizeRight,
                                           uint64_t batchIndex) {
  ACL_NEEDS(IsSwitch(paddingSwitch), "a switch must be 0 or 1");
  return SetPicture(aippParmsSet, batchIndex, __func__, [&](Picture& p) {
    p.padding = paddingSwitch;
    p.top = static_cast<float>(paddingSizeTop);
    p.bottom = static_cast<float>(paddingSizeBottom);
    p.left = static_cast<float>(paddingSizeLeft);
    p.right = static_cast<float>(paddingSizeRight);
  });
}
GE_ACL aclError aclmdlSetAIPPDtcPixelMean(aclmdlAIPP* aippParmsSet, int16_t dtcPixelMeanChn0,
                                          int16_t dtcPixelMeanChn1, int16_t dtcPixelMeanChn2,
                                          int16_t dtcPixelMeanChn3, uint64_t batchIndex) {
  return SetPicture(aippParmsSet, batchIndex, __func__, [&](Picture& p) {
    const int16_t mean[] = {dtcPixelMeanChn0, dtcPixelMeanChn1, dtcPixelMeanChn2, dtcPixelMeanChn3};
    std::copy(std::begin(mean), std::end(mean), p.mean);
  });
}
GE_ACL aclError aclmdlSetAIPPDtcPixelMin(aclmdlAIPP* aippParmsSet, float dtcPixelMinChn0,
                                         float dtcPixelMinChn1, float dtcPixelMinChn2,
                                         float dtcPixelMinChn3, uint64_t batchIndex) {
  return SetPicture(aippParmsSet, batchIndex, __func__, [&](Picture& p) {
    const float min[] = {dtcPixelMinChn0, dtcPixelMinChn1, dtcPixelMinChn2, dtcPixelMinChn3};
    std::copy(std::begin(min), std::end(min), p.min);
  });
}
GE_ACL aclError aclmdlSetAIPPPixelVarReci(aclmdlAIPP* aippParmsSet, float dtcPixelVarReciChn0,
                                          float dtcPixelVarReciChn1, float dtcPixelVarReciChn2,
                                          float dtcPixelVarReciChn3, uint64_t batchIndex) {
  return SetPicture(aippParmsSet, batchIndex, __func__, [&](Picture& p) {
    const float var[] = {dtcPixelVarReciChn0, dtcPixelVarReciChn1, dtcPixelVarReciChn2,
                         dtcPixelVarReciChn3};
    std::copy(std::begin(var), std::end(var), p.var_reci);
  });
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
GE_ACL aclError aclmdlGetAippType(uint32_t modelId, size_t index, aclmdlInputAippType* type,
                                  size_t* dynamicAttachedDataIndex) {
  ACL_NEEDS(type != nullptr && dynamicAttachedDataIndex != nullptr, "a null pointer");
  const auto model = FindModel(modelId);
  if (!model) ACL_FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model has this id");
  ACL_NEEDS(index < model->info->num_inputs(), "index is out of range");
  const ModelInfo& info = *model->info;
  const auto holds = [&](const std::vector<int>& inputs) {
    return std::find(inputs.begin(), inputs.end(), static_cast<int>(index)) != inputs.end();
  };
  *dynamicAttachedDataIndex = ACL_INVALID_NODE_INDEX;
  *type = ACL_DATA_WITHOUT_AIPP;
  if (info.aipp_input >= 0 && index == static_cast<size_t>(info.aipp_input)) {
    *type = ACL_DYNAMIC_AIPP_NODE;
  } else if (holds(info.static_aipp)) {
    *type = ACL_DATA_WITH_STATIC_AIPP;
  } else if (holds(info.dynamic_aipp) && info.aipp_input >= 0) {
    *type = ACL_DATA_WITH_DYNAMIC_AIPP;
    *dynamicAttachedDataIndex = static_cast<size_t>(info.aipp_input);
  }
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetFirstAippInfo(uint32_t modelId, size_t, aclAippInfo* aippInfo) {
  ACL_NEEDS(aippInfo != nullptr, "aippInfo is null");
  if (!FindModel(modelId)) ACL_FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model has this id");
  ACL_FAIL(ACL_ERROR_NOT_STATIC_AIPP, "the model's AIPP is not static, or was not recorded");
}
