// What clients may ask about a model's image preprocessing (AIPP): its kind, and the configuration
// that a static one was compiled with, from the .om's description.
#include <algorithm>
#include <cstring>

#include "api/acl/dtypes.h"
#include "api/acl/error.h"
#include "api/acl/json.h"
#include "api/acl/model.h"
#include "api/acl/tensors.h"

namespace ge::acl {
namespace {

aclAippInputFormat FormatNumber(const std::string& name) {
  static constexpr const char* kNames[] = {
      "YUV420SP_U8",  "XRGB8888_U8", "RGB888_U8", "YUV400_U8",   "NC1HWC0DI_FP16",
      "NC1HWC0DI_S8", "ARGB8888_U8", "YUYV_U8",   "YUV422SP_U8", "AYUV444_U8",
      "RAW10",        "RAW12",       "RAW16",     "RAW24"};
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  return static_cast<aclAippInputFormat>(found == std::end(kNames) ? 0 : found - kNames + 1);
}

// A key as the member's type; absent ones have their default.
template <class T>
void Put(const Json& keys, const char* key, T* to, double otherwise = 0) {
  const Json& value = keys[key];
  *to = static_cast<T>(value.IsNull() ? otherwise : value.number);
}

void PutNumbers(const Json& k, aclAippInfo* to) {
  Put(k, "src_image_size_w", &to->srcImageSizeW);
  Put(k, "src_image_size_h", &to->srcImageSizeH);
  Put(k, "crop", &to->cropSwitch);
  Put(k, "load_start_pos_w", &to->loadStartPosW);
  Put(k, "load_start_pos_h", &to->loadStartPosH);
  Put(k, "crop_size_w", &to->cropSizeW);
  Put(k, "crop_size_h", &to->cropSizeH);
  Put(k, "resize", &to->resizeSwitch);
  Put(k, "resize_output_w", &to->resizeOutputW);
  Put(k, "resize_output_h", &to->resizeOutputH);
  Put(k, "padding", &to->paddingSwitch);
  Put(k, "left_padding_size", &to->leftPaddingSize);
  Put(k, "right_padding_size", &to->rightPaddingSize);
  Put(k, "top_padding_size", &to->topPaddingSize);
  Put(k, "bottom_padding_size", &to->bottomPaddingSize);
  Put(k, "csc_switch", &to->cscSwitch);
  Put(k, "rbuv_swap_switch", &to->rbuvSwapSwitch);
  Put(k, "ax_swap_switch", &to->axSwapSwitch);
  Put(k, "single_line_mode", &to->singleLineMode);
  int32_t* const matrix[] = {&to->matrixR0C0, &to->matrixR0C1, &to->matrixR0C2,
                             &to->matrixR1C0, &to->matrixR1C1, &to->matrixR1C2,
                             &to->matrixR2C0, &to->matrixR2C1, &to->matrixR2C2};
  for (size_t i = 0; i < 9; ++i)
    Put(k, ("matrix_r" + std::to_string(i / 3) + "c" + std::to_string(i % 3)).c_str(), matrix[i]);
  int32_t* const in[] = {&to->inputBias0, &to->inputBias1, &to->inputBias2};
  int32_t* const out[] = {&to->outputBias0, &to->outputBias1, &to->outputBias2};
  int32_t* const mean[] = {&to->meanChn0, &to->meanChn1, &to->meanChn2, &to->meanChn3};
  float* const min[] = {&to->minChn0, &to->minChn1, &to->minChn2, &to->minChn3};
  float* const var[] = {&to->varReciChn0, &to->varReciChn1, &to->varReciChn2, &to->varReciChn3};
  for (size_t i = 0; i < 4; ++i) {
    const std::string digit = std::to_string(i);
    if (i < 3) Put(k, ("input_bias_" + digit).c_str(), in[i]);
    if (i < 3) Put(k, ("output_bias_" + digit).c_str(), out[i]);
    Put(k, ("mean_chn_" + digit).c_str(), mean[i]);
    Put(k, ("min_chn_" + digit).c_str(), min[i]);
    Put(k, ("var_reci_chn_" + digit).c_str(), var[i], 1);
  }
}

// The picture's dims and the model's, for each gear (or once).
void PutShapes(const Json& aipp, const ClientModel& info, size_t input, aclAippInfo* to) {
  std::vector<int64_t> model;
  for (const Json& d : aipp["dims"].items) model.push_back(static_cast<int64_t>(d.number));
  const auto type = ToAcl(ParseDType(aipp["type"].string).value_or(DType::kNone));
  to->srcFormat = aipp["layout"].string == "NHWC" ? ACL_FORMAT_NHWC : ACL_FORMAT_NCHW;
  to->srcDatatype = type;
  to->srcDimNum = model.size();
  to->shapeCount =
      std::clamp<size_t>(info.gears.size(), 1, static_cast<size_t>(ACL_MAX_SHAPE_COUNT));
  for (size_t s = 0; s < to->shapeCount; ++s) {
    aclAippDims& dims = to->outDims[s];
    const auto at = info.gears.empty() ? std::vector<std::vector<int64_t>>()
                                       : DimsAt(info, info.gear_mode, info.gears[s]);
    const auto source = at.empty() ? info.inputs[input].dims : at[input];
    auto made = model;
    if (!at.empty() && info.gear_mode == GearMode::kBatch && !made.empty())
      made[0] = info.gears[s][0];
    if (!at.empty() && info.gear_mode == GearMode::kImage && made.size() == 4) {
      const size_t h = to->srcFormat == ACL_FORMAT_NHWC ? 1 : 2;
      made[h] = info.gears[s][0];
      made[h + 1] = info.gears[s][1];
    }
    PutDims(info.inputs[input].name, source, &dims.srcDims);
    PutDims(info.inputs[input].name, made, &dims.aippOutdims);
    dims.srcSize =
        static_cast<size_t>(std::max<int64_t>(0, TensorBytes(info.inputs[input].dtype, source)));
    dims.aippOutSize = static_cast<size_t>(std::max<int64_t>(0, TensorBytes(type, made)));
  }
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclmdlGetAippType(uint32_t modelId, size_t index, aclmdlInputAippType* type,
                                  size_t* dynamicAttachedDataIndex) {
  ACL_NEEDS(type != nullptr && dynamicAttachedDataIndex != nullptr, "a null pointer");
  const auto model = FindModel(modelId);
  if (!model) ACL_FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model has this id");
  ACL_NEEDS(index < model->info->num_inputs(), "index is out of range");
  const ClientModel& info = *model->info;
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

GE_ACL aclError aclmdlGetFirstAippInfo(uint32_t modelId, size_t index, aclAippInfo* aippInfo) {
  ACL_NEEDS(aippInfo != nullptr, "aippInfo is null");
  const auto model = FindModel(modelId);
  if (!model) ACL_FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model has this id");
  ACL_NEEDS(index < model->info->num_inputs(), "index is out of range");
  const auto description = ParseJson(model->model->description());
  const Json nothing;
  for (const Json& aipp : (description.ok() ? *description : nothing)["aipp"].items) {
    if (aipp["mode"].string != "static" || aipp["input"].number != static_cast<double>(index))
      continue;
    std::memset(aippInfo, 0, sizeof *aippInfo);
    aippInfo->inputFormat = FormatNumber(aipp["format"].string);
    PutNumbers(aipp["keys"], aippInfo);
    PutShapes(aipp, *model->info, index, aippInfo);
    return ACL_SUCCESS;
  }
  ACL_FAIL(ACL_ERROR_NOT_STATIC_AIPP,
           "input " + std::to_string(index) + " has no static image preprocessing");
}
