// Labels, and streams that start one another: jumps within a recording that was built by hand.
//
// On a card each bound stream has its own place in its tasks. Here one stream runs them all, so
// that RunSteps keeps those places: of the streams that run it takes the task that was submitted
// first. A jump moves a place; a stream that is not a head stream sleeps until it is started.
#include <algorithm>
#include <map>

#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/recording.h"

namespace ge::acl {
namespace {

struct Label {
  static constexpr int kHandleKind = 31;
  std::mutex mutex;
  std::weak_ptr<Recording> where;
};

struct LabelList {
  static constexpr int kHandleKind = 32;
  std::vector<std::shared_ptr<Label>> labels;
};

// The tasks of one stream, and where it is.
struct Place {
  std::vector<size_t> steps;
  size_t next = 0;
  bool awake = true;
  bool Busy() const { return awake && next < steps.size(); }
};
using Places = std::map<const void*, Place>;

bool GoTo(const void* label, const Recording::Steps& steps, Places* places) {
  for (auto& [stream, place] : *places)
    for (size_t i = 0; i < place.steps.size(); ++i) {
      if (steps[place.steps[i]].label.get() != label) continue;
      place.next = i;
      place.awake = true;
      return true;
    }
  return false;
}

aclError Follow(const Recording::Turn& turn, const Recording::Steps& steps, Places* places,
                Place* from) {
  if (turn.leave) from->awake = false;
  if (turn.label != nullptr && !GoTo(turn.label, steps, places)) return ACL_ERROR_RT_MODEL_EXECUTE;
  const auto started = turn.stream == nullptr ? places->end() : places->find(turn.stream);
  if (started == places->end() || started->second.Busy()) return ACL_SUCCESS;
  started->second.next = 0;
  started->second.awake = true;
  return ACL_SUCCESS;
}

// The bound stream of a handle: null, after Fail, if it is none.
std::shared_ptr<Recording> BoundTo(aclrtStream handle, const char* function, aclError* code) {
  const auto stream = handle == nullptr ? nullptr : Live<Stream>().Get(handle);
  if (!stream) {
    *code = Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "not a live stream");
    return nullptr;
  }
  auto recording = stream->recording();
  if (recording && recording->by_hand) return recording;
  *code = Fail(ACL_ERROR_RT_STREAM_MODEL, function,
               "the stream is not bound to a modelRI that is being built");
  return nullptr;
}

// What device memory holds; a closure that reads it keeps its block.
template <class T>
T Now(const std::shared_ptr<MemoryBlock>&, const void* p) {
  return *static_cast<const volatile T*>(p);
}

bool Holds(aclrtCondition condition, int64_t left, int64_t right) {
  switch (condition) {
    case ACL_RT_EQUAL: return left == right;
    case ACL_RT_NOT_EQUAL: return left != right;
    case ACL_RT_GREATER: return left > right;
    case ACL_RT_GREATER_OR_EQUAL: return left >= right;
    case ACL_RT_LESS: return left < right;
    case ACL_RT_LESS_OR_EQUAL: return left <= right;
  }
  return false;
}

}  // namespace

aclError RunSteps(const Recording::Steps& steps, const Stream& stream,
                  const std::vector<const void*>& asleep) {
  const auto turns = [](const Recording::Step& step) { return step.turn != nullptr; };
  if (asleep.empty() && std::none_of(steps.begin(), steps.end(), turns)) {
    for (const Recording::Step& step : steps) {
      if (stream.cut_off()) return ACL_SUCCESS;
      if (aclError code = step.task(stream)) return code;
    }
    return ACL_SUCCESS;
  }
  Places places;
  for (size_t i = 0; i < steps.size(); ++i) places[steps[i].stream].steps.push_back(i);
  for (const void* handle : asleep)
    if (const auto at = places.find(handle); at != places.end()) at->second.awake = false;
  const auto first = [](const auto& a, const auto& b) {
    if (a.second.Busy() != b.second.Busy()) return a.second.Busy();
    return a.second.Busy() && a.second.steps[a.second.next] < b.second.steps[b.second.next];
  };
  for (;;) {
    const auto now = std::min_element(places.begin(), places.end(), first);
    if (now == places.end() || !now->second.Busy() || stream.cut_off()) return ACL_SUCCESS;
    const Recording::Step& step = steps[now->second.steps[now->second.next++]];
    const aclError code =
        step.turn ? Follow(step.turn(), steps, &places, &now->second) : step.task(stream);
    if (code != ACL_SUCCESS) return code;
  }
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclrtCreateLabel(aclrtLabel* label) {
  ACL_NEEDS(label != nullptr, "label is null");
  if (!CurrentContext()) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  *label = Live<Label>().Add(std::make_shared<Label>());
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDestroyLabel(aclrtLabel label) {
  ACL_NEEDS(label != nullptr, "label is null");
  if (!Live<Label>().Remove(label)) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live label");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream) {
  ACL_NEEDS(label != nullptr, "label is null");
  const auto found = Live<Label>().Get(label);
  if (!found) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live label");
  aclError code = ACL_SUCCESS;
  const auto recording = BoundTo(stream, __func__, &code);
  if (!recording) return code;
  std::lock_guard lock(found->mutex);
  if (found->where.lock()) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the label is set already");
  found->where = recording;
  recording->Add(
      {__func__, stream, [](const Stream&) -> aclError { return ACL_SUCCESS; }, found, nullptr});
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtCreateLabelList(aclrtLabel* labels, size_t num, aclrtLabelList* labelList) {
  ACL_NEEDS(labels != nullptr && labelList != nullptr, "a null pointer");
  ACL_NEEDS(num > 0 && num <= UINT16_MAX, "num must be from 1 to 65535");
  auto made = std::make_shared<LabelList>();
  for (size_t i = 0; i < num; ++i) {
    made->labels.push_back(Live<Label>().Get(labels[i]));
    if (!made->labels.back())
      ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "label " + std::to_string(i) + " is not live");
  }
  *labelList = Live<LabelList>().Add(std::move(made));
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtDestroyLabelList(aclrtLabelList labelList) {
  ACL_NEEDS(labelList != nullptr, "labelList is null");
  if (!Live<LabelList>().Remove(labelList))
    ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live list of labels");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSwitchLabelByIndex(void* ptr, uint32_t maxValue, aclrtLabelList labelList,
                                        aclrtStream stream) {
  ACL_NEEDS(ptr != nullptr && labelList != nullptr, "a null pointer");
  const auto list = Live<LabelList>().Get(labelList);
  if (!list) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live list of labels");
  ACL_NEEDS(maxValue > 0 && maxValue <= list->labels.size(),
            "maxValue is not a number of labels of the list");
  const auto pin = PinBlock(ptr, sizeof(uint32_t));
  if (!pin) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "ptr is not in live device memory");
  aclError code = ACL_SUCCESS;
  const auto recording = BoundTo(stream, __func__, &code);
  if (!recording) return code;
  recording->Add({__func__, stream, nullptr, nullptr, [=]() -> Recording::Turn {
                    const auto index = std::min(Now<uint32_t>(pin, ptr), maxValue - 1);
                    return {true, list->labels[index].get(), nullptr};
                  }});
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream) {
  aclError code = ACL_SUCCESS;
  const auto recording = BoundTo(stream, __func__, &code);
  if (!recording) return code;
  const auto started = BoundTo(activeStream, __func__, &code);
  if (!started) return code;
  if (started != recording)
    ACL_FAIL(ACL_ERROR_RT_STREAM_MODEL, "the streams are bound to different modelRIs");
  recording->Add({__func__, stream, nullptr, nullptr,
                  [=]() -> Recording::Turn { return {false, nullptr, activeStream}; }});
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond, void* rightValue,
                                  aclrtCompareDataType dataType, aclrtStream trueStream,
                                  aclrtStream falseStream, aclrtStream stream) {
  ACL_NEEDS(leftValue != nullptr && rightValue != nullptr, "a null pointer");
  ACL_NEEDS(cond >= ACL_RT_EQUAL && cond <= ACL_RT_LESS_OR_EQUAL, "unknown condition");
  ACL_NEEDS(dataType == ACL_RT_SWITCH_INT32 || dataType == ACL_RT_SWITCH_INT64, "unknown type");
  const size_t bytes = dataType == ACL_RT_SWITCH_INT64 ? 8 : 4;
  const auto left = PinBlock(leftValue, bytes), right = PinBlock(rightValue, bytes);
  if (!left || !right) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "a value is not in live device memory");
  aclError code = ACL_SUCCESS;
  const auto recording = BoundTo(stream, __func__, &code);
  if (!recording) return code;
  for (aclrtStream target : {trueStream, falseStream}) {
    if (target == nullptr && target == falseStream) continue;
    const auto started = BoundTo(target, __func__, &code);
    if (!started) return code;
    if (started != recording)
      ACL_FAIL(ACL_ERROR_RT_STREAM_MODEL, "the streams are bound to different modelRIs");
  }
  recording->Add({__func__, stream, nullptr, nullptr, [=]() -> Recording::Turn {
                    const auto value = [&](const auto& pin, const void* p) -> int64_t {
                      return bytes == 8 ? Now<int64_t>(pin, p) : Now<int32_t>(pin, p);
                    };
                    const bool holds =
                        Holds(cond, value(left, leftValue), value(right, rightValue));
                    aclrtStream target = holds ? trueStream : falseStream;
                    return {target != nullptr, nullptr, target};
                  }});
  return ACL_SUCCESS;
}
