// Descriptions of models: names, dims, sizes, types, gears. A description is a snapshot: it
// outlives its model.
#include <cstring>

#include "api/acl/error.h"
#include "api/acl/model.h"
#include "api/acl/tensors.h"

namespace ge::acl {
namespace {

constexpr const char* kNoDesc = "not a live model description, or nothing was read into it";

std::shared_ptr<const ClientModel> InfoOf(const aclmdlDesc* desc, const char* function) {
  std::shared_ptr<const ClientModel> info;
  Live<Desc>().With(desc, [&](Desc& d) { info = d.info; });
  if (!info) Fail(ACL_ERROR_INVALID_PARAM, function, kNoDesc);
  return info;
}

// The tensor at an index, or null with the failure recorded. The gear's input has none.
const ClientTensor* At(const std::vector<ClientTensor>& list, size_t index, const char* function) {
  if (index < list.size()) return &list[index];
  Fail(ACL_ERROR_INVALID_PARAM, function, "index " + std::to_string(index) + " is out of range");
  return nullptr;
}

size_t GearValues(const ClientModel& info) { return info.gears.empty() ? 0 : info.gears[0].size(); }

size_t GearBytes(const ClientModel& info) { return GearValues(info) * sizeof(int64_t); }

aclError ReadDesc(aclmdlDesc* desc, const LoadArguments& from, const char* function) {
  auto opened = OpenModel(from);
  if (!opened.ok()) return Fail(ACL_ERROR_GE_LOAD_MODEL, function, opened.status().message());
  if (!Live<Desc>().With(desc, [&](Desc& d) { d = {(*opened)->info, nullptr}; }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "not a live model description");
  return ACL_SUCCESS;
}

}  // namespace

void PutDims(const std::string& name, const std::vector<int64_t>& dims, aclmdlIODims* to) {
  std::memset(to, 0, sizeof *to);
  std::strncpy(to->name, name.c_str(), sizeof to->name - 1);
  to->dimCount = std::min<size_t>(dims.size(), ACL_MAX_DIM_CNT);
  std::copy_n(dims.begin(), to->dimCount, to->dims);
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

#define ACL_INFO_OF(name, desc)                    \
  ACL_NEEDS(desc != nullptr, "modelDesc is null"); \
  const auto name = InfoOf(desc, __func__);        \
  if (!name) return ACL_ERROR_INVALID_PARAM

GE_ACL aclmdlDesc* aclmdlCreateDesc() {
  return static_cast<aclmdlDesc*>(Live<Desc>().Add(std::make_shared<Desc>()));
}
GE_ACL aclError aclmdlDestroyDesc(aclmdlDesc* modelDesc) {
  ACL_NEEDS(modelDesc != nullptr, "modelDesc is null");
  if (!Live<Desc>().Remove(modelDesc))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, "not a live model description");
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetDesc(aclmdlDesc* modelDesc, uint32_t modelId) {
  ACL_NEEDS(modelDesc != nullptr, "modelDesc is null");
  const auto model = FindModel(modelId);
  if (!model)
    ACL_FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model has the id " + std::to_string(modelId));
  if (!Live<Desc>().With(modelDesc, [&](Desc& d) { d = {model->info, model}; }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, "not a live model description");
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetDescFromFile(aclmdlDesc* modelDesc, const char* modelPath) {
  ACL_NEEDS(modelDesc != nullptr && modelPath != nullptr, "a null pointer");
  return ReadDesc(modelDesc, {.path = modelPath}, __func__);
}
GE_ACL aclError aclmdlGetDescFromMem(aclmdlDesc* modelDesc, const void* model, size_t modelSize) {
  ACL_NEEDS(modelDesc != nullptr && model != nullptr && modelSize > 0, "a null pointer or size 0");
  return ReadDesc(modelDesc, {.data = model, .bytes = modelSize}, __func__);
}

GE_ACL size_t aclmdlGetNumInputs(aclmdlDesc* modelDesc) {
  const auto info = InfoOf(modelDesc, __func__);
  return info ? info->num_inputs() : 0;
}
GE_ACL size_t aclmdlGetNumOutputs(aclmdlDesc* modelDesc) {
  const auto info = InfoOf(modelDesc, __func__);
  return info ? info->outputs.size() : 0;
}
GE_ACL size_t aclmdlGetInputSizeByIndex(aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  if (!info) return 0;
  if (info->IsGearInput(index)) return GearBytes(*info);
  const ClientTensor* io = At(info->inputs, index, __func__);
  return io == nullptr ? 0 : static_cast<size_t>(io->bytes);
}
GE_ACL size_t aclmdlGetOutputSizeByIndex(aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  if (!info) return 0;
  const ClientTensor* io = At(info->outputs, index, __func__);
  return io == nullptr ? 0 : static_cast<size_t>(io->bytes);
}

GE_ACL aclError aclmdlGetInputDims(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) {
  ACL_NEEDS(dims != nullptr, "dims is null");
  ACL_INFO_OF(info, modelDesc);
  if (info->IsGearInput(index)) {
    PutDims(ACL_DYNAMIC_TENSOR_NAME, {static_cast<int64_t>(GearValues(*info))}, dims);
    return ACL_SUCCESS;
  }
  const ClientTensor* io = At(info->inputs, index, __func__);
  if (io == nullptr) return ACL_ERROR_INVALID_PARAM;
  PutDims(io->short_name, io->dims, dims);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetInputDimsV2(const aclmdlDesc* modelDesc, size_t index,
                                     aclmdlIODims* dims) {
  return aclmdlGetInputDims(modelDesc, index, dims);
}
GE_ACL aclError aclmdlGetInputDimsRange(const aclmdlDesc* modelDesc, size_t index,
                                        aclmdlIODimsRange* dimsRange) {
  ACL_NEEDS(dimsRange != nullptr, "dimsRange is null");
  ACL_INFO_OF(info, modelDesc);
  const ClientTensor* io = At(info->inputs, index, __func__);
  if (io == nullptr) return ACL_ERROR_INVALID_PARAM;
  std::memset(dimsRange, 0, sizeof *dimsRange);
  dimsRange->rangeCount = std::min<size_t>(io->range.size(), ACL_MAX_DIM_CNT);
  for (size_t i = 0; i < dimsRange->rangeCount; ++i) {
    dimsRange->range[i][0] = io->range[i].first;
    dimsRange->range[i][1] = io->range[i].second;
  }
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetOutputDims(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) {
  ACL_NEEDS(dims != nullptr, "dims is null");
  ACL_INFO_OF(info, modelDesc);
  const ClientTensor* io = At(info->outputs, index, __func__);
  if (io == nullptr) return ACL_ERROR_INVALID_PARAM;
  PutDims(io->short_name, io->dims, dims);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetCurOutputDims(const aclmdlDesc* modelDesc, size_t index,
                                       aclmdlIODims* dims) {
  if (aclError code = aclmdlGetOutputDims(modelDesc, index, dims)) return code;
  std::shared_ptr<LoadedModel> model;
  Live<Desc>().With(modelDesc, [&](Desc& d) { model = d.model; });
  if (!model) return ACL_SUCCESS;
  std::lock_guard lock(model->mutex);
  if (index < model->current_outputs.size())
    PutDims(model->info->outputs[index].short_name, model->current_outputs[index], dims);
  return ACL_SUCCESS;
}

GE_ACL const char* aclmdlGetOpAttr(aclmdlDesc*, const char*, const char*) {
  NotSupported(__func__);
  return nullptr;
}
// The texts live as long as the description.
GE_ACL const char* aclmdlGetInputNameByIndex(const aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  if (!info) return "";
  if (info->IsGearInput(index)) return ACL_DYNAMIC_TENSOR_NAME;
  const ClientTensor* io = At(info->inputs, index, __func__);
  return io == nullptr ? "" : io->shown.c_str();
}
GE_ACL const char* aclmdlGetOutputNameByIndex(const aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  if (!info) return "";
  const ClientTensor* io = At(info->outputs, index, __func__);
  return io == nullptr ? "" : io->shown.c_str();
}
GE_ACL const char* aclmdlGetTensorRealName(const aclmdlDesc* modelDesc, const char* name) {
  const auto info = InfoOf(modelDesc, __func__);
  if (!info || name == nullptr) return nullptr;
  for (const auto* list : {&info->inputs, &info->outputs})
    for (const ClientTensor& io : *list)
      if (io.short_name == name || io.shown == name || io.name == name) return io.shown.c_str();
  Fail(ACL_ERROR_INVALID_PARAM, __func__, "no tensor has this name");
  return nullptr;
}
GE_ACL aclFormat aclmdlGetInputFormat(const aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  if (!info) return ACL_FORMAT_UNDEFINED;
  if (info->IsGearInput(index)) return ACL_FORMAT_ND;
  const ClientTensor* io = At(info->inputs, index, __func__);
  return io == nullptr ? ACL_FORMAT_UNDEFINED : io->format;
}
GE_ACL aclFormat aclmdlGetOutputFormat(const aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  const ClientTensor* io = info ? At(info->outputs, index, __func__) : nullptr;
  return io == nullptr ? ACL_FORMAT_UNDEFINED : io->format;
}
GE_ACL aclDataType aclmdlGetInputDataType(const aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  if (!info) return ACL_DT_UNDEFINED;
  if (info->IsGearInput(index)) return ACL_INT64;
  const ClientTensor* io = At(info->inputs, index, __func__);
  return io == nullptr ? ACL_DT_UNDEFINED : io->dtype;
}
GE_ACL aclDataType aclmdlGetOutputDataType(const aclmdlDesc* modelDesc, size_t index) {
  const auto info = InfoOf(modelDesc, __func__);
  const ClientTensor* io = info ? At(info->outputs, index, __func__) : nullptr;
  return io == nullptr ? ACL_DT_UNDEFINED : io->dtype;
}
GE_ACL aclError aclmdlGetInputIndexByName(const aclmdlDesc* modelDesc, const char* name,
                                          size_t* index) {
  ACL_NEEDS(name != nullptr && index != nullptr, "a null pointer");
  ACL_INFO_OF(info, modelDesc);
  for (size_t i = 0; i < info->num_inputs(); ++i) {
    const bool gear = info->IsGearInput(i);
    if (gear ? std::strcmp(name, ACL_DYNAMIC_TENSOR_NAME) != 0
             : name != info->inputs[i].shown && name != info->inputs[i].short_name)
      continue;
    *index = i;
    return ACL_SUCCESS;
  }
  ACL_FAIL(ACL_ERROR_INVALID_PARAM, "no input is named " + std::string(name));
}
GE_ACL aclError aclmdlGetOutputIndexByName(const aclmdlDesc* modelDesc, const char* name,
                                           size_t* index) {
  ACL_NEEDS(name != nullptr && index != nullptr, "a null pointer");
  ACL_INFO_OF(info, modelDesc);
  for (size_t i = 0; i < info->outputs.size(); ++i) {
    const ClientTensor& io = info->outputs[i];
    if (name != io.shown && name != io.name && name != io.short_name) continue;
    *index = i;
    return ACL_SUCCESS;
  }
  ACL_FAIL(ACL_ERROR_INVALID_PARAM, "no output is named " + std::string(name));
}

GE_ACL aclError aclmdlGetDynamicBatch(const aclmdlDesc* modelDesc, aclmdlBatch* batch) {
  ACL_NEEDS(batch != nullptr, "batch is null");
  ACL_INFO_OF(info, modelDesc);
  *batch = {};
  if (info->gear_mode != GearMode::kBatch) return ACL_SUCCESS;  // none: the count is 0
  for (const auto& gear : info->gears)
    if (batch->batchCount < ACL_MAX_BATCH_NUM)
      batch->batch[batch->batchCount++] = static_cast<uint64_t>(gear[0]);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetDynamicHW(const aclmdlDesc* modelDesc, size_t, aclmdlHW* hw) {
  ACL_NEEDS(hw != nullptr, "hw is null");
  ACL_INFO_OF(info, modelDesc);
  *hw = {};
  if (info->gear_mode != GearMode::kImage) return ACL_SUCCESS;
  for (const auto& gear : info->gears) {
    if (hw->hwCount >= ACL_MAX_HW_NUM || gear.size() != 2) continue;
    hw->hw[hw->hwCount][0] = static_cast<uint64_t>(gear[0]);
    hw->hw[hw->hwCount++][1] = static_cast<uint64_t>(gear[1]);
  }
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlGetInputDynamicGearCount(const aclmdlDesc* modelDesc, size_t index,
                                               size_t* gearCount) {
  ACL_NEEDS(gearCount != nullptr, "gearCount is null");
  ACL_NEEDS(index == static_cast<size_t>(-1), "index must be -1");
  ACL_INFO_OF(info, modelDesc);
  *gearCount = info->gear_mode == GearMode::kDims ? info->gears.size() : 0;
  return ACL_SUCCESS;
}
// Each gear as the dims of all inputs, one after the other.
GE_ACL aclError aclmdlGetInputDynamicDims(const aclmdlDesc* modelDesc, size_t index,
                                          aclmdlIODims* dims, size_t gearCount) {
  ACL_NEEDS(dims != nullptr, "dims is null");
  ACL_NEEDS(index == static_cast<size_t>(-1), "index must be -1");
  ACL_INFO_OF(info, modelDesc);
  if (info->gear_mode != GearMode::kDims || gearCount < info->gears.size())
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, "the model has no dims gears, or gearCount is too small");
  for (size_t g = 0; g < info->gears.size(); ++g) {
    std::vector<int64_t> all;
    for (const auto& input : DimsAt(*info, info->gear_mode, info->gears[g]))
      all.insert(all.end(), input.begin(), input.end());
    PutDims("", all, &dims[g]);
  }
  return ACL_SUCCESS;
}
