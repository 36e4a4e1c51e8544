// Setting dynamic dims: the values are kept in the input dataset, for the model they were set for.
//
// With gears the values must be one of them. A model with symbolic dims and no gears takes any
// values that its symbols allow.
#include <algorithm>

#include "api/acl/error.h"
#include "api/acl/model.h"
#include "api/acl/tensors.h"

namespace ge::acl {
namespace {

std::string Text(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t v : values) text += (text.empty() ? "" : ",") + std::to_string(v);
  return text;
}

aclError SetGear(uint32_t id, aclmdlDataset* dataset, size_t index, GearMode mode,
                 const std::vector<int64_t>& values, const char* function) {
  if (dataset == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "dataset is null");
  const auto model = FindModel(id);
  if (!model)
    return Fail(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, function,
                "no model has the id " + std::to_string(id));
  const ClientModel& info = *model->info;
  if (!info.dynamic)
    return Fail(ACL_ERROR_MODEL_NOT_DYNAMIC, function, "the model has no dynamic dims");
  for (const int64_t v : values)
    if (v <= 0) return Fail(ACL_ERROR_INVALID_PARAM, function, "a value is not positive");
  if (!info.gears.empty()) {
    if (index != info.inputs.size())
      return Fail(ACL_ERROR_INVALID_PARAM, function,
                  "index must be that of the input " ACL_DYNAMIC_TENSOR_NAME);
    if (mode != info.gear_mode)
      return Fail(ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID, function,
                  "the model has gears of another kind");
    if (std::find(info.gears.begin(), info.gears.end(), values) == info.gears.end())
      return Fail(ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID, function,
                  Text(values) + " is not a gear of the model");
  }
  const auto dims = DimsAt(info, mode, values);
  if (dims.empty())
    return Fail(ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID, function,
                std::to_string(values.size()) + " values do not fit the model's dynamic dims");
  auto outputs = OutputDimsAt(model.get(), dims);
  if (!outputs.ok())
    return Fail(ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID, function, outputs.status().message());
  // In the order of the dims, whatever the mode was: Execute need not know it.
  std::vector<int64_t> kept = values;
  if (info.gears.empty()) {
    kept.clear();
    for (size_t i = 0; i < dims.size(); ++i)
      for (size_t d = 0; d < dims[i].size(); ++d)
        if (info.inputs[i].dims[d] < 0) kept.push_back(dims[i][d]);
  }
  if (!Live<Dataset>().With(dataset, [&](Dataset& d) {
        d.gear = kept;
        d.gear_model = id;
      }))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "not a live dataset");
  std::lock_guard lock(model->mutex);
  model->current_outputs = std::move(outputs).value();
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclmdlSetDynamicBatchSize(uint32_t modelId, aclmdlDataset* dataset, size_t index,
                                          uint64_t batchSize) {
  ACL_NEEDS(batchSize > 0 && batchSize < (uint64_t{1} << 31), "batchSize is out of range");
  return SetGear(modelId, dataset, index, GearMode::kBatch, {static_cast<int64_t>(batchSize)},
                 __func__);
}

GE_ACL aclError aclmdlSetDynamicHWSize(uint32_t modelId, aclmdlDataset* dataset, size_t index,
                                       uint64_t height, uint64_t width) {
  ACL_NEEDS(height > 0 && width > 0 && height < (uint64_t{1} << 31) && width < (uint64_t{1} << 31),
            "height or width is out of range");
  return SetGear(modelId, dataset, index, GearMode::kImage,
                 {static_cast<int64_t>(height), static_cast<int64_t>(width)}, __func__);
}

// dims: the dims of all inputs one after the other, as aclmdlGetInputDynamicDims gives them.
GE_ACL aclError aclmdlSetInputDynamicDims(uint32_t modelId, aclmdlDataset* dataset, size_t index,
                                          const aclmdlIODims* dims) {
  ACL_NEEDS(dims != nullptr && dataset != nullptr, "dims or dataset is null");
  ACL_NEEDS(dims->dimCount <= ACL_MAX_DIM_CNT, "dimCount is out of range");
  const auto model = FindModel(modelId);
  if (!model)
    ACL_FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model has the id " + std::to_string(modelId));
  std::vector<int64_t> values;
  size_t next = 0;
  for (const ClientTensor& io : model->info->inputs) {
    for (const int64_t d : io.dims) {
      if (next >= dims->dimCount)
        ACL_FAIL(ACL_ERROR_INVALID_PARAM, "dimCount is below the number of the inputs' dims");
      const int64_t given = dims->dims[next++];
      if (d < 0) values.push_back(given);
      if (d >= 0 && d != given)
        ACL_FAIL(ACL_ERROR_INVALID_PARAM, "a dim that is not dynamic is given another value");
    }
  }
  ACL_NEEDS(next == dims->dimCount, "dimCount is not the number of the inputs' dims");
  return SetGear(modelId, dataset, index, GearMode::kDims, values, __func__);
}
