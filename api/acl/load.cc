// Loading and unloading of models, from files and memory, with and without the client's memory.
//
// Weights stay in the mapped file: weight memory that the client gives is checked and not used.
#include <unistd.h>

#include <cstring>
#include <unordered_map>

#include "api/acl/context.h"
#include "api/acl/dump.h"
#include "api/acl/error.h"
#include "api/acl/model.h"
#include "api/acl/profile.h"

namespace ge::acl {
namespace {

struct Models {
  std::mutex mutex;
  std::unordered_map<uint32_t, std::shared_ptr<LoadedModel>> list;
  uint32_t next = 1;
};
Models& All() {
  static auto* models = new Models;
  return *models;
}

constexpr size_t kAtLeast = 512;  // sizes that clients allocate must not be 0
constexpr uintptr_t kWorkAlignment = 64;

size_t WorkBytes(const rt::Model& model) {
  return std::max(kAtLeast, static_cast<size_t>(std::max<int64_t>(0, model.work_bytes())));
}
size_t WeightBytes(const rt::Model& model) {
  return std::max(kAtLeast, static_cast<size_t>(model.weight_bytes()));
}

aclError CodeOf(const Status& status) {
  switch (status.code()) {
    case Code::kDataLoss: return ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID;
    case Code::kNotFound: return ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID;
    case Code::kInvalidArgument: return ACL_ERROR_GE_PARAM_INVALID;
    default: return ACL_ERROR_GE_LOAD_MODEL;
  }
}

Result<std::shared_ptr<const rt::Model>> Open(const LoadArguments& from) {
  rt::LoadOptions options;
  options.threads = DeviceThreads();
  options.weight_dir = from.weight_dir;
  options.given_weights = from.given_weights;
  if (from.path != nullptr) return rt::Model::Load(from.path, options);
  return rt::Model::LoadFromMemory(from.data, static_cast<int64_t>(from.bytes), options);
}

aclError CheckSource(const LoadArguments& from, const char* function) {
  if (from.path == nullptr && from.data == nullptr)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the model's path or address is null");
  if (from.path == nullptr && from.bytes == 0)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "modelSize is 0");
  if (from.path == nullptr) {
    // Known memory must hold the whole model; other host memory is taken at the client's word.
    if (BlockOf(from.data) && !PinBlock(from.data, from.bytes))
      return Fail(ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID, function,
                  "modelSize is above the memory's");
  } else if (access(from.path, R_OK) != 0) {
    return Fail(ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, function,
                std::string(from.path) + ": " + std::strerror(errno));
  }
  return ACL_SUCCESS;
}

}  // namespace

Result<std::unique_ptr<rt::Run>> LoadedModel::Take() {
  std::unique_lock lock(mutex);
  if (one_run) returned.wait(lock, [&] { return !idle.empty(); });
  if (!idle.empty()) {
    std::unique_ptr<rt::Run> run = std::move(idle.back());
    idle.pop_back();
    return run;
  }
  lock.unlock();
  return rt::Run::Create(model);
}

void LoadedModel::Return(std::unique_ptr<rt::Run> run) {
  {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(run));
  }
  if (one_run) returned.notify_one();
}

std::shared_ptr<LoadedModel> FindModel(uint32_t id) {
  Models& models = All();
  std::lock_guard lock(models.mutex);
  const auto it = models.list.find(id);
  return it == models.list.end() ? nullptr : it->second;
}

Result<std::shared_ptr<LoadedModel>> OpenModel(const LoadArguments& from) {
  auto loaded = std::make_shared<LoadedModel>();
  GE_ASSIGN(loaded->model, Open(from));
  if (from.work != nullptr && loaded->model->work_bytes() > 0 &&
      reinterpret_cast<uintptr_t>(from.work) % kWorkAlignment == 0) {
    loaded->work = from.work;
    loaded->work_pin = PinBlock(from.work, from.work_bytes);
    loaded->one_run = true;
  }
  GE_ASSIGN(std::unique_ptr<rt::Run> first, rt::Run::Create(loaded->model, loaded->work));
  loaded->Return(std::move(first));
  GE_TRY(Describe(loaded.get()));
  return loaded;
}

aclError LoadModel(const LoadArguments& from, uint32_t* id, const char* function) {
  if (id == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "modelId is null");
  if (!Initialized()) return Fail(ACL_ERROR_GE_EXEC_NOT_INIT, function, "aclInit was not called");
  if (!CurrentContext()) return Fail(ACL_ERROR_RT_CONTEXT_NULL, function, kNoContext);
  if (aclError code = CheckSource(from, function)) return code;
  if (from.work != nullptr && !PinBlock(from.work, from.work_bytes))
    return Fail(ACL_ERROR_GE_EXEC_MODEL_ADDR_INVALID, function,
                "workPtr is not in live device memory");
  if (from.weights != nullptr && !PinBlock(from.weights, from.weight_bytes))
    return Fail(ACL_ERROR_GE_EXEC_MODEL_ADDR_INVALID, function,
                "weightPtr is not in live device memory");
  auto opened = OpenModel(from);
  if (!opened.ok()) return Fail(CodeOf(opened.status()), function, opened.status().message());
  const rt::Model& model = *(*opened)->model;
  if (from.work != nullptr && from.work_bytes < WorkBytes(model))
    return Fail(ACL_ERROR_GE_PARAM_INVALID, function,
                "workSize is " + std::to_string(from.work_bytes) + ", the model needs " +
                    std::to_string(WorkBytes(model)));
  if (from.weights != nullptr && from.weight_bytes < WeightBytes(model))
    return Fail(ACL_ERROR_GE_PARAM_INVALID, function,
                "weightSize is " + std::to_string(from.weight_bytes) + ", the model needs " +
                    std::to_string(WeightBytes(model)));
  Models& models = All();
  std::lock_guard lock(models.mutex);
  while (models.next == 0 || models.list.contains(models.next)) ++models.next;
  (*opened)->id = models.next++;
  *id = (*opened)->id;
  (*opened)->dump = DumperOf(model, *id, from.path);
  models.list[*id] = std::move(opened).value();
  return ACL_SUCCESS;
}

aclError UnloadModel(uint32_t id, const char* function) {
  Unsubscribe(id);
  std::shared_ptr<LoadedModel> last;  // goes outside of the lock, or when its runs are over
  Models& models = All();
  std::lock_guard lock(models.mutex);
  const auto it = models.list.find(id);
  if (it == models.list.end())
    return Fail(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, function,
                "no model has the id " + std::to_string(id));
  last = std::move(it->second);
  models.list.erase(it);
  return ACL_SUCCESS;
}

namespace {

aclError QuerySize(const LoadArguments& from, size_t* work, size_t* weights, const char* function) {
  if (work == nullptr || weights == nullptr)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "workSize or weightSize is null");
  if (aclError code = CheckSource(from, function)) return code;
  auto model = Open(from);
  if (!model.ok()) return Fail(CodeOf(model.status()), function, model.status().message());
  *work = WorkBytes(**model);
  *weights = WeightBytes(**model);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclmdlQuerySize(const char* fileName, size_t* workSize, size_t* weightSize) {
  ACL_NEEDS(fileName != nullptr, "fileName is null");
  return QuerySize({.path = fileName}, workSize, weightSize, __func__);
}
GE_ACL aclError aclmdlQuerySizeFromMem(const void* model, size_t modelSize, size_t* workSize,
                                       size_t* weightSize) {
  return QuerySize({.data = model, .bytes = modelSize}, workSize, weightSize, __func__);
}
GE_ACL aclError aclmdlLoadFromFile(const char* modelPath, uint32_t* modelId) {
  return LoadModel({.path = modelPath}, modelId, __func__);
}
GE_ACL aclError aclmdlLoadFromMem(const void* model, size_t modelSize, uint32_t* modelId) {
  return LoadModel({.data = model, .bytes = modelSize}, modelId, __func__);
}
GE_ACL aclError aclmdlLoadFromFileWithMem(const char* modelPath, uint32_t* modelId, void* workPtr,
                                          size_t workSize, void* weightPtr, size_t weightSize) {
  return LoadModel({.path = modelPath,
                    .work = workPtr,
                    .work_bytes = workSize,
                    .weights = weightPtr,
                    .weight_bytes = weightSize},
                   modelId, __func__);
}
GE_ACL aclError aclmdlLoadFromMemWithMem(const void* model, size_t modelSize, uint32_t* modelId,
                                         void* workPtr, size_t workSize, void* weightPtr,
                                         size_t weightSize) {
  return LoadModel({.data = model,
                    .bytes = modelSize,
                    .work = workPtr,
                    .work_bytes = workSize,
                    .weights = weightPtr,
                    .weight_bytes = weightSize},
                   modelId, __func__);
}
GE_ACL aclError aclmdlLoadFromFileWithQ(const char*, uint32_t*, const uint32_t*, size_t,
                                        const uint32_t*, size_t) {
  return NotSupported(__func__);
}
GE_ACL aclError aclmdlLoadFromMemWithQ(const void*, size_t, uint32_t*, const uint32_t*, size_t,
                                       const uint32_t*, size_t) {
  return NotSupported(__func__);
}
GE_ACL aclError aclmdlUnload(uint32_t modelId) { return UnloadModel(modelId, __func__); }
