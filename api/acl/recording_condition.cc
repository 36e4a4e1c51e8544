// Conditions in recordings: a task that runs one of several smaller recordings, or repeats one, by
// a number in device memory.
//
// The smaller ones are made by the task and captured afterwards; they belong to the recording that
// the task is in, and go with it.
#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/recording.h"

namespace ge::acl {
namespace {

struct Condition {
  static constexpr int kHandleKind = 30;
  std::weak_ptr<Recording> recording;
  void* value = nullptr;  // a uint64_t in device memory, of our own
  ~Condition() {
    if (value != nullptr) ReleaseBlock(value, Place::kDevice);
  }
  uint64_t Now() const { return *static_cast<const volatile uint64_t*>(value); }
};

aclError RunChosen(const Condition& condition, aclmdlRICondTaskType type,
                   const std::vector<std::shared_ptr<Recording>>& parts, const Stream& stream) {
  const auto run = [&](uint64_t i) {
    return i < parts.size() ? RunSteps(*parts[i]->steps(), stream) : ACL_SUCCESS;
  };
  switch (type) {
    case ACL_MODEL_RI_COND_TYPE_IF: return run(condition.Now() != 0 ? 0 : 1);
    case ACL_MODEL_RI_COND_TYPE_SWITCH: return run(condition.Now());
    default: break;
  }
  while (condition.Now() != 0 && !stream.cut_off())
    if (aclError code = run(0)) return code;
  return ACL_SUCCESS;
}

}  // namespace

void ForgetPartsOf(const Recording& recording) {
  for (const auto& condition : Live<Condition>().All())
    if (const auto owner = condition->recording.lock(); !owner || owner.get() == &recording)
      Live<Condition>().RemoveObject(condition.get());
  for (const auto& part : Live<Recording>().All()) {
    if (part->part_of.lock().get() != &recording) continue;
    Live<Recording>().Remove(part->handle);
    part->Close();
    ForgetPartsOf(*part);
  }
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint64_t defaultLaunchValue,
                                         aclmdlRICondHandleFlag flag, aclmdlRICondHandle* handle) {
  ACL_NEEDS(modelRI != nullptr && handle != nullptr, "a null pointer");
  ACL_NEEDS(flag == 0 || flag == ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, "unknown flag");
  const auto recording = Live<Recording>().Get(modelRI);
  if (!recording) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live modelRI");
  if (!recording->open()) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the modelRI is complete");
  auto made = std::make_shared<Condition>();
  made->recording = recording;
  made->value = AllocateBlock(sizeof(uint64_t), Place::kDevice, false);
  if (made->value == nullptr) ACL_FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "no memory");
  *static_cast<uint64_t*>(made->value) = defaultLaunchValue;
  if (flag == ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT) {
    const auto streams = recording->streams();
    recording->Add({__func__, streams.empty() ? nullptr : streams.front(),
                    [made, defaultLaunchValue](const Stream&) -> aclError {
                      *static_cast<uint64_t*>(made->value) = defaultLaunchValue;
                      return ACL_SUCCESS;
                    }});
  }
  *handle = Live<Condition>().Add(std::move(made));
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t** ptr) {
  ACL_NEEDS(handle != nullptr && ptr != nullptr, "a null pointer");
  const auto condition = Live<Condition>().Get(handle);
  if (!condition) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live condition");
  *ptr = static_cast<uint64_t*>(condition->value);
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream, uint32_t) {
  const auto found = stream == nullptr ? nullptr : Live<Stream>().Get(stream);
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live stream that can be recorded");
  const auto condition = Live<Condition>().Get(params.handle);
  if (!condition) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live condition");
  const auto recording = found->recording();
  if (!recording || condition->recording.lock() != recording)
    ACL_FAIL(ACL_ERROR_RT_STREAM_NOT_CAPTURED,
             "the stream is not recorded by the modelRI that the condition was made for");
  const bool fits = params.type == ACL_MODEL_RI_COND_TYPE_IF      ? params.size <= 2
                    : params.type == ACL_MODEL_RI_COND_TYPE_WHILE ? params.size == 1
                                                                  : params.size <= 1024;
  ACL_NEEDS(params.modelRIArray != nullptr && params.size > 0 && fits &&
                params.type >= ACL_MODEL_RI_COND_TYPE_IF &&
                params.type <= ACL_MODEL_RI_COND_TYPE_SWITCH,
            "modelRIArray is null, or size or type is wrong");
  std::vector<std::shared_ptr<Recording>> parts;
  for (uint32_t i = 0; i < params.size; ++i) {
    parts.push_back(NewRecording(false));
    parts.back()->part_of = recording;
    params.modelRIArray[i] = parts.back()->handle;
  }
  recording->Add(
      {__func__, stream, [condition, parts, type = params.type](const Stream& self) -> aclError {
         return RunChosen(*condition, type, parts, self);
       }});
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
                                              aclmdlRICaptureMode mode) {
  ACL_NEEDS(stream != nullptr && modelRI != nullptr, "a null pointer");
  ACL_NEEDS(mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED,
            "unknown mode");
  const auto found = Live<Stream>().Get(stream);
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live stream");
  const auto recording = Live<Recording>().Get(modelRI);
  if (!recording) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live modelRI");
  if (!recording->open() || recording->by_hand || !recording->streams().empty())
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID,
             "the modelRI was not made by aclmdlRIAddCondTask, or is "
             "captured already");
  if (!found->Record(recording))
    ACL_FAIL(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is recorded already");
  recording->Join(found);
  return ACL_SUCCESS;
}
