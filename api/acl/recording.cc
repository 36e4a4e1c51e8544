// Running instances of models (aclmdlRI): see recording.h.
#include "api/acl/recording.h"

#include <algorithm>
#include <cstdio>

#include "api/acl/error.h"

namespace ge::acl {

void Recording::Add(Step step) {
  std::lock_guard lock(mutex_);
  steps_.push_back(std::move(step));
  snapshot_ = nullptr;
}

std::shared_ptr<const Recording::Steps> Recording::steps() const {
  std::lock_guard lock(mutex_);
  if (!snapshot_) snapshot_ = std::make_shared<Steps>(steps_);
  return snapshot_;
}

bool Recording::Replace(size_t begin, size_t end, const Steps& steps) {
  std::lock_guard lock(mutex_);
  if (end > steps_.size() || end - begin != steps.size()) return false;
  std::copy(steps.begin(), steps.end(), steps_.begin() + static_cast<ptrdiff_t>(begin));
  snapshot_ = nullptr;
  return true;
}

void Recording::Join(const std::shared_ptr<Stream>& stream, bool asleep) {
  std::lock_guard lock(mutex_);
  feeding_.push_back(stream);
  joined_.push_back(stream->handle());
  if (asleep) asleep_.push_back(stream->handle());
}

std::vector<const void*> Recording::asleep() const {
  std::lock_guard lock(mutex_);
  return asleep_;
}

void Recording::Leave(const Stream& stream) {
  std::lock_guard lock(mutex_);
  std::erase_if(feeding_, [&](const std::weak_ptr<Stream>& weak) {
    const auto found = weak.lock();
    return !found || found.get() == &stream;
  });
}

void Recording::Close() {
  std::vector<std::weak_ptr<Stream>> feeding;
  {
    std::lock_guard lock(mutex_);
    open_ = false;
    feeding.swap(feeding_);
  }
  for (const auto& weak : feeding)
    if (const auto stream = weak.lock()) stream->Record(nullptr);
}

bool Recording::open() const {
  std::lock_guard lock(mutex_);
  return open_;
}

std::vector<void*> Recording::streams() const {
  std::lock_guard lock(mutex_);
  return joined_;
}

void Recording::StreamGone(const Stream& stream) {
  // Nobody can end this capture any more.
  if (!by_hand && BeganOn(stream.handle()) && open()) {
    Live<Recording>().Remove(handle);
    Close();
  } else {
    Leave(stream);
  }
}

bool Recording::BeganOn(const void* stream) const {
  std::lock_guard lock(mutex_);
  return !joined_.empty() && joined_.front() == stream;
}

std::shared_ptr<Recording> NewRecording(bool by_hand) {
  auto recording = std::make_shared<Recording>();
  recording->by_hand = by_hand;
  recording->handle = Live<Recording>().Add(recording);
  return recording;
}

namespace {

// A range of a recording's steps, and what is to take its place.
struct TaskGroup {
  static constexpr int kHandleKind = 15;
  std::weak_ptr<Recording> recording;
  size_t begin = 0, end = 0;
};

// Groups and updates that are open, by stream.
struct OpenGroups {
  std::mutex mutex;
  struct Update {
    std::shared_ptr<TaskGroup> group;
    std::shared_ptr<Recording> steps;  // collects
  };
  std::vector<std::pair<const void*, size_t>> begun;
  std::vector<std::pair<const void*, Update>> updates;
  // Of streams that are gone.
  void Forget() {
    const auto gone = [](const auto& entry) { return !Live<Stream>().Get(entry.first); };
    std::erase_if(begun, gone);
    std::erase_if(updates, gone);
  }
};
OpenGroups& Groups() {
  static auto* groups = new OpenGroups;
  return *groups;
}

aclError RunInTurn(Recording& recording, const Recording::Steps& steps, const Stream& stream) {
  {
    std::unique_lock lock(TheSignal().mutex);
    if (recording.runner == &stream) return ACL_ERROR_RT_MODEL_RUNNING;  // one of its own steps
    if (!WaitSignal(lock, &stream, -1, [&] { return recording.runner == nullptr; }))
      return ACL_SUCCESS;  // the stream was cut off
    recording.runner = &stream;
  }
  const aclError code = RunSteps(steps, stream, recording.asleep());
  Raise([&] { recording.runner = nullptr; });
  return code;
}

std::string ToJson(const Recording& recording) {
  std::string text = "{\"streams\": [";
  const auto streams = recording.streams();
  for (size_t i = 0; i < streams.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(i);
  text += "],\n \"tasks\": [";
  const auto steps = recording.steps();
  for (size_t i = 0; i < steps->size(); ++i) {
    const auto at = std::find(streams.begin(), streams.end(), (*steps)[i].stream);
    text += (i == 0 ? "" : ",") + std::string("\n  {\"task\": ") + std::to_string(i) +
            ", \"stream\": " + std::to_string(at - streams.begin()) + ", \"kind\": \"" +
            (*steps)[i].kind + "\"}";
  }
  return text + "]}\n";
}

#define ACL_RI_STREAM(name, handle)                                      \
  ACL_NEEDS(handle != nullptr, "the default stream cannot be recorded"); \
  const auto name = Live<Stream>().Get(handle);                          \
  if (!name) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live stream")
#define ACL_RI(name, handle)                       \
  ACL_NEEDS(handle != nullptr, "modelRI is null"); \
  const auto name = Live<Recording>().Get(handle); \
  if (!name) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live modelRI")

constexpr const char* kNotRecorded = "the stream is not recorded";

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  ACL_NEEDS(mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED,
            "unknown mode");
  ACL_RI_STREAM(found, stream);
  const auto recording = NewRecording(false);
  if (!found->Record(recording)) {
    Live<Recording>().Remove(recording->handle);
    ACL_FAIL(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is recorded already");
  }
  recording->Join(found);
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                       aclmdlRI* modelRI) {
  ACL_NEEDS(status != nullptr && modelRI != nullptr, "status or modelRI is null");
  ACL_RI_STREAM(found, stream);
  const auto recording = found->recording();
  *status = recording ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE : ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  *modelRI = recording ? recording->handle : nullptr;
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  ACL_NEEDS(modelRI != nullptr, "modelRI is null");
  ACL_RI_STREAM(found, stream);
  const auto recording = found->recording();
  if (!recording || recording->by_hand) ACL_FAIL(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kNotRecorded);
  if (!recording->BeganOn(stream))
    ACL_FAIL(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, "the capture began on another stream");
  recording->Close();
  *modelRI = recording->handle;
  return ACL_SUCCESS;
}

// No call is forbidden while a stream is recorded: modes differ in what they would forbid.
GE_ACL aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  ACL_NEEDS(mode != nullptr, "mode is null");
  ACL_NEEDS(*mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && *mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED,
            "unknown mode");
  thread_local aclmdlRICaptureMode mine = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
  std::swap(mine, *mode);
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  ACL_RI_STREAM(found, stream);
  const auto recording = found->recording();
  if (!recording) ACL_FAIL(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kNotRecorded);
  OpenGroups& groups = Groups();
  std::lock_guard lock(groups.mutex);
  groups.Forget();
  for (const auto& [handle, begin] : groups.begun)
    if (handle == stream) ACL_FAIL(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "a group is open already");
  groups.begun.emplace_back(stream, recording->steps()->size());
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) {
  ACL_NEEDS(handle != nullptr, "handle is null");
  ACL_RI_STREAM(found, stream);
  OpenGroups& groups = Groups();
  std::lock_guard lock(groups.mutex);
  const auto it = std::find_if(groups.begun.begin(), groups.begun.end(),
                               [&](const auto& entry) { return entry.first == stream; });
  if (it == groups.begun.end()) ACL_FAIL(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "no group is open");
  const size_t begin = it->second;
  groups.begun.erase(it);
  const auto recording = found->recording();
  if (!recording) ACL_FAIL(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kNotRecorded);
  auto group = std::make_shared<TaskGroup>();
  group->recording = recording;
  group->begin = begin;
  group->end = std::max(begin, recording->steps()->size());
  *handle = Live<TaskGroup>().Add(std::move(group));
  recording->groups.push_back(*handle);
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
  ACL_RI_STREAM(found, stream);
  auto group = Live<TaskGroup>().Get(handle);
  if (!group) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live task group");
  auto steps = std::make_shared<Recording>();
  if (!found->Record(steps))
    ACL_FAIL(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is recorded already");
  OpenGroups& groups = Groups();
  std::lock_guard lock(groups.mutex);
  groups.Forget();
  groups.updates.push_back({stream, {std::move(group), std::move(steps)}});
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
  ACL_RI_STREAM(found, stream);
  OpenGroups::Update update;
  {
    OpenGroups& groups = Groups();
    std::lock_guard lock(groups.mutex);
    const auto it = std::find_if(groups.updates.begin(), groups.updates.end(),
                                 [&](const auto& entry) { return entry.first == stream; });
    if (it == groups.updates.end())
      ACL_FAIL(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "no update is open");
    update = std::move(it->second);
    groups.updates.erase(it);
  }
  found->Record(nullptr);
  const TaskGroup& group = *update.group;
  const auto recording = group.recording.lock();
  if (!recording) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "the group's modelRI is gone");
  if (!recording->Replace(group.begin, group.end, *update.steps->steps()))
    ACL_FAIL(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
             "the group has " + std::to_string(group.end - group.begin) + " tasks, the update " +
                 std::to_string(update.steps->steps()->size()));
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRIBuildBegin(aclmdlRI* modelRI, uint32_t) {
  ACL_NEEDS(modelRI != nullptr, "modelRI is null");
  if (!CurrentContext()) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  *modelRI = NewRecording(true)->handle;
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag) {
  ACL_NEEDS(flag == ACL_MODEL_STREAM_FLAG_HEAD || flag == ACL_MODEL_STREAM_FLAG_DEFAULT,
            "unknown flag");
  ACL_RI(recording, modelRI);
  ACL_RI_STREAM(found, stream);
  if (!recording->by_hand || !recording->open())
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the modelRI is built already");
  if (!found->Record(recording))
    ACL_FAIL(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is recorded already");
  recording->Join(found, flag == ACL_MODEL_STREAM_FLAG_DEFAULT);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream) {
  ACL_RI(recording, modelRI);
  ACL_RI_STREAM(found, stream);
  if (found->recording() != recording) ACL_FAIL(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kNotRecorded);
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void*) {
  ACL_RI(recording, modelRI);
  if (!recording->by_hand || !recording->open())
    ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the modelRI is not being built");
  recording->Close();
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream) {
  ACL_RI(recording, modelRI);
  ACL_RI_STREAM(found, stream);
  const auto streams = recording->streams();
  if (std::find(streams.begin(), streams.end(), stream) == streams.end())
    ACL_FAIL(ACL_ERROR_RT_STREAM_MODEL, "the stream is not bound to the modelRI");
  if (found->recording() == recording) found->Record(nullptr);
  recording->Leave(*found);
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  ACL_RI(recording, modelRI);
  if (recording->open()) ACL_FAIL(ACL_ERROR_RT_MODEL_CAPTURED, "the modelRI is not complete");
  return SubmitTo(stream, __func__,
                  [recording, steps = recording->steps()](const Stream& self) -> aclError {
                    return RunInTurn(*recording, *steps, self);
                  });
}
GE_ACL aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  // On the stream of the capture if it lives, in its order.
  ACL_RI(recording, modelRI);
  const auto streams = recording->streams();
  aclrtStream stream =
      !streams.empty() && Live<Stream>().Get(streams.front()) ? streams.front() : nullptr;
  if (aclError code = aclmdlRIExecuteAsync(modelRI, stream)) return code;
  return aclrtSynchronizeStreamWithTimeout(stream, timeout);
}
GE_ACL aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  ACL_NEEDS(modelRI != nullptr, "modelRI is null");
  const auto recording = Live<Recording>().Remove(modelRI);
  if (!recording) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live modelRI");
  recording->Close();
  ForgetPartsOf(*recording);
  OpenGroups& groups = Groups();
  std::lock_guard lock(groups.mutex);
  for (void* group : recording->groups) Live<TaskGroup>().Remove(group);
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream* streams, uint32_t* numStreams) {
  ACL_NEEDS(numStreams != nullptr, "numStreams is null");
  ACL_RI(recording, modelRI);
  const auto all = recording->streams();
  if (streams != nullptr) {
    ACL_NEEDS(*numStreams >= all.size(), "numStreams is too small");
    std::copy(all.begin(), all.end(), streams);
  }
  *numStreams = static_cast<uint32_t>(all.size());
  return ACL_SUCCESS;
}
// Tasks are numbered from 1 within their recording: the one that the stream fed last.
GE_ACL aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask* tasks,
                                         uint32_t* numTasks) {
  ACL_NEEDS(stream != nullptr && numTasks != nullptr, "a null pointer");
  std::vector<size_t> mine;
  for (const auto& recording : Live<Recording>().All()) {
    const auto steps = recording->steps();
    std::vector<size_t> here;
    for (size_t i = 0; i < steps->size(); ++i)
      if ((*steps)[i].stream == stream) here.push_back(i + 1);
    if (!here.empty()) mine = std::move(here);
  }
  if (tasks != nullptr) {
    ACL_NEEDS(*numTasks >= mine.size(), "numTasks is too small");
    for (size_t i = 0; i < mine.size(); ++i)
      tasks[i] = reinterpret_cast<aclmdlRITask>(static_cast<uintptr_t>(mine[i]));
  }
  *numTasks = static_cast<uint32_t>(mine.size());
  return ACL_SUCCESS;
}

GE_ACL aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
  ACL_RI(recording, modelRI);
  std::printf("%s", ToJson(*recording).c_str());
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t) {
  ACL_NEEDS(path != nullptr && path[0] != 0, "path is empty");
  ACL_RI(recording, modelRI);
  const std::string text = ToJson(*recording);
  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) ACL_FAIL(ACL_ERROR_RT_FILE_OPEN, std::string(path) + " cannot be written");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written)
    ACL_FAIL(ACL_ERROR_RT_FILE_WRITE, std::string(path) + " cannot be written");
  return ACL_SUCCESS;
}
