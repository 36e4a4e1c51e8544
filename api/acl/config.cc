// Handles of options: loading with a configuration, execution options, bundles.
//
// A bundle is several models in one file; a plain .om is a bundle of one model.
#include <cstring>
#include <map>

#include "api/acl/error.h"
#include "api/acl/model.h"

namespace ge::acl {
namespace {

struct Config {
  static constexpr int kHandleKind = 9;
  std::map<int, uint64_t> values;  // numbers and addresses
  std::string path, weight_path;
  std::map<std::string, std::pair<void*, size_t>> external_weights;  // by the file's name
};

struct ExecConfig {
  static constexpr int kHandleKind = 10;
  std::map<int, uint64_t> values;
};

struct Bundle {
  std::vector<uint32_t> models;
};
struct Bundles {
  std::mutex mutex;
  std::map<uint32_t, Bundle> list;
  uint32_t next = 1;
};
Bundles& AllBundles() {
  static auto* bundles = new Bundles;
  return *bundles;
}

size_t SizeOf(aclmdlConfigAttr attr) {
  switch (attr) {
    case ACL_MDL_PRIORITY_INT32:
    case ACL_MDL_WITHOUT_GRAPH_INT32:
    case ACL_MDL_NPU_PERF_MODE_INT32: return 4;
    default: return 8;
  }
}

uint64_t Number(const void* value, size_t size) {
  uint64_t number = 0;
  std::memcpy(&number, value, size);
  return number;
}

aclError LoadBundle(const LoadArguments& from, uint32_t* id, const char* function) {
  if (id == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "bundleId is null");
  uint32_t model = 0;
  if (aclError code = LoadModel(from, &model, function)) return code;
  Bundles& bundles = AllBundles();
  std::lock_guard lock(bundles.mutex);
  *id = bundles.next++;
  bundles.list[*id] = {{model}};
  return ACL_SUCCESS;
}

constexpr const char* kNoConfig = "not a live configuration";
constexpr const char* kNoBundle = "no bundle has this id";

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclmdlConfigHandle* aclmdlCreateConfigHandle() {
  return static_cast<aclmdlConfigHandle*>(Live<Config>().Add(std::make_shared<Config>()));
}
GE_ACL aclError aclmdlDestroyConfigHandle(aclmdlConfigHandle* handle) {
  ACL_NEEDS(handle != nullptr, "handle is null");
  if (!Live<Config>().Remove(handle)) ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoConfig);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlSetConfigOpt(aclmdlConfigHandle* handle, aclmdlConfigAttr attr,
                                   const void* attrValue, size_t valueSize) {
  ACL_NEEDS(handle != nullptr && attrValue != nullptr, "a null pointer");
  ACL_NEEDS(attr >= ACL_MDL_PRIORITY_INT32 && attr <= ACL_MDL_NPU_PERF_MODE_INT32,
            "unknown attribute");
  ACL_NEEDS(valueSize == SizeOf(attr), "wrong size of the attribute's value");
  const uint64_t number = Number(attrValue, valueSize);
  const bool text = attr == ACL_MDL_PATH_PTR || attr == ACL_MDL_WEIGHT_PATH_PTR;
  const auto* path = text ? reinterpret_cast<const char*>(static_cast<uintptr_t>(number)) : nullptr;
  ACL_NEEDS(!text || path != nullptr, "the path is null");
  if (!Live<Config>().With(handle, [&](Config& c) {
        if (text) (attr == ACL_MDL_PATH_PTR ? c.path : c.weight_path) = path;
        c.values[attr] = number;
      }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoConfig);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlSetExternalWeightAddress(aclmdlConfigHandle* handle,
                                               const char* weightFileName, void* devPtr,
                                               size_t size) {
  ACL_NEEDS(handle != nullptr && weightFileName != nullptr && devPtr != nullptr, "a null pointer");
  if (!Live<Config>().With(handle,
                           [&](Config& c) { c.external_weights[weightFileName] = {devPtr, size}; }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoConfig);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlLoadWithConfig(const aclmdlConfigHandle* handle, uint32_t* modelId) {
  ACL_NEEDS(handle != nullptr && modelId != nullptr, "a null pointer");
  Config config;  // a copy: another thread may set options meanwhile
  if (!Live<Config>().With(handle, [&](Config& c) { config = c; }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoConfig);
  const auto value = [&](int attr) {
    const auto it = config.values.find(attr);
    return it == config.values.end() ? uint64_t{0} : it->second;
  };
  const auto address = [&](int attr) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(value(attr)));
  };
  const uint64_t type = value(ACL_MDL_LOAD_TYPE_SIZET);
  ACL_NEEDS(type >= ACL_MDL_LOAD_FROM_FILE && type <= ACL_MDL_LOAD_FROM_MEM_WITH_Q,
            "ACL_MDL_LOAD_TYPE_SIZET is not set");
  if (type >= ACL_MDL_LOAD_FROM_FILE_WITH_Q) return NotSupported(__func__);
  LoadArguments from;
  if (type <= ACL_MDL_LOAD_FROM_FILE_WITH_MEM) {
    ACL_NEEDS(!config.path.empty(), "ACL_MDL_PATH_PTR is not set");
    from.path = config.path.c_str();
  } else {
    from.data = address(ACL_MDL_MEM_ADDR_PTR);
    from.bytes = value(ACL_MDL_MEM_SIZET);
  }
  if (type == ACL_MDL_LOAD_FROM_FILE_WITH_MEM || type == ACL_MDL_LOAD_FROM_MEM_WITH_MEM) {
    from.work = address(ACL_MDL_WORKSPACE_ADDR_PTR);
    from.work_bytes = value(ACL_MDL_WORKSPACE_SIZET);
    from.weights = address(ACL_MDL_WEIGHT_ADDR_PTR);
    from.weight_bytes = value(ACL_MDL_WEIGHT_SIZET);
  }
  from.weight_dir = config.weight_path;
  std::vector<std::shared_ptr<MemoryBlock>> pins;  // until the weights are copied
  for (const auto& [name, memory] : config.external_weights) {
    pins.push_back(PinBlock(memory.first, memory.second));
    if (!pins.back())
      ACL_FAIL(ACL_ERROR_GE_EXEC_MODEL_ADDR_INVALID,
               "the weights of " + name + " are not in live device memory");
    from.given_weights.push_back(
        {name, {static_cast<const std::byte*>(memory.first), memory.second}});
  }
  return LoadModel(from, modelId, __func__);
}

GE_ACL aclmdlExecConfigHandle* aclmdlCreateExecConfigHandle() {
  return static_cast<aclmdlExecConfigHandle*>(
      Live<ExecConfig>().Add(std::make_shared<ExecConfig>()));
}
GE_ACL aclError aclmdlDestroyExecConfigHandle(const aclmdlExecConfigHandle* handle) {
  ACL_NEEDS(handle != nullptr, "handle is null");
  if (!Live<ExecConfig>().Remove(handle)) ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoConfig);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlSetExecConfigOpt(aclmdlExecConfigHandle* handle, aclmdlExecConfigAttr attr,
                                       const void* attrValue, size_t valueSize) {
  ACL_NEEDS(handle != nullptr && attrValue != nullptr, "a null pointer");
  ACL_NEEDS(attr >= ACL_MDL_STREAM_SYNC_TIMEOUT && attr <= ACL_MDL_EXEC_NPU_PERF_MODE,
            "unknown attribute");
  ACL_NEEDS(valueSize == 4, "wrong size of the attribute's value");
  if (!Live<ExecConfig>().With(handle,
                               [&](ExecConfig& c) { c.values[attr] = Number(attrValue, 4); }))
    ACL_FAIL(ACL_ERROR_INVALID_PARAM, kNoConfig);
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlBundleLoadFromFile(const char* modelPath, uint32_t* bundleId) {
  return LoadBundle({.path = modelPath}, bundleId, __func__);
}
GE_ACL aclError aclmdlBundleLoadFromMem(const void* model, size_t modelSize, uint32_t* bundleId) {
  return LoadBundle({.data = model, .bytes = modelSize}, bundleId, __func__);
}
GE_ACL aclError aclmdlBundleUnload(uint32_t bundleId) {
  std::vector<uint32_t> models;
  {
    Bundles& bundles = AllBundles();
    std::lock_guard lock(bundles.mutex);
    const auto it = bundles.list.find(bundleId);
    if (it == bundles.list.end()) ACL_FAIL(ACL_ERROR_INVALID_BUNDLE_MODEL_ID, kNoBundle);
    models = std::move(it->second.models);
    bundles.list.erase(it);
  }
  aclError result = ACL_SUCCESS;
  for (const uint32_t model : models)
    if (aclError code = UnloadModel(model, __func__)) result = code;
  return result;
}
GE_ACL aclError aclmdlBundleGetModelNum(uint32_t bundleId, size_t* modelNum) {
  ACL_NEEDS(modelNum != nullptr, "modelNum is null");
  Bundles& bundles = AllBundles();
  std::lock_guard lock(bundles.mutex);
  const auto it = bundles.list.find(bundleId);
  if (it == bundles.list.end()) ACL_FAIL(ACL_ERROR_INVALID_BUNDLE_MODEL_ID, kNoBundle);
  *modelNum = it->second.models.size();
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlBundleGetModelId(uint32_t bundleId, size_t index, uint32_t* modelId) {
  ACL_NEEDS(modelId != nullptr, "modelId is null");
  Bundles& bundles = AllBundles();
  std::lock_guard lock(bundles.mutex);
  const auto it = bundles.list.find(bundleId);
  if (it == bundles.list.end()) ACL_FAIL(ACL_ERROR_INVALID_BUNDLE_MODEL_ID, kNoBundle);
  ACL_NEEDS(index < it->second.models.size(), "index is out of range");
  *modelId = it->second.models[index];
  return ACL_SUCCESS;
}
