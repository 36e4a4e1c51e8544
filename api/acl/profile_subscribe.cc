// Subscriptions of profiling: after each run of a model, a record for each of its tasks is written
// to the client's pipe. Steps: spans that a stream begins and ends.
//
// A record refers to texts that are kept for good, so that it has one size and a made-up one gives
// an error. A client that does not read loses records; it does not stop the model.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "api/acl/dump.h"
#include "api/acl/error.h"
#include "api/acl/handles.h"
#include "api/acl/include/acl/acl_prof.h"
#include "api/acl/model.h"
#include "api/acl/profile.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

constexpr uint32_t kMagic = 0x4f504447;
constexpr int kPatienceMs = 1000;  // with a pipe that is full

struct Record {
  uint32_t magic = kMagic, model = 0;
  uint32_t type = 0, name = 0;  // into Texts
  uint64_t begin_ns = 0, end_ns = 0;
};
static_assert(4096 % sizeof(Record) == 0 || sizeof(Record) == 32);

struct SubscribeConfig {
  static constexpr int kHandleKind = 28;
  int fd = -1;
  bool times = false;
};
struct Step {
  static constexpr int kHandleKind = 29;
  std::mutex mutex;
  int64_t begin_ns = 0;
  int number = 0;
};

struct Subscription {
  int fd = -1;
  bool times = false;
  std::vector<std::pair<uint32_t, uint32_t>> texts;  // of each task; name 0: no record
};
struct Subscriptions {
  std::mutex mutex;
  std::atomic<size_t> count{0};
  std::map<uint32_t, std::shared_ptr<const Subscription>> list;
  std::vector<std::string> texts{""};
  std::map<std::string, uint32_t> index;
};
Subscriptions& All() {
  static auto* all = new Subscriptions;
  return *all;
}

uint32_t TextIndex(Subscriptions& all, const std::string& text) {
  const auto [it, added] = all.index.emplace(text, static_cast<uint32_t>(all.texts.size()));
  if (added) all.texts.push_back(text);
  return it->second;
}

std::shared_ptr<const Subscription> Find(uint32_t model) {
  Subscriptions& all = All();
  std::lock_guard lock(all.mutex);
  const auto it = all.list.find(model);
  return it == all.list.end() ? nullptr : it->second;
}

// What one thread has seen of the run that it makes.
struct Timed {
  size_t task;
  int64_t begin_ns, end_ns;
};
std::vector<Timed>& Mine() {
  thread_local std::vector<Timed> mine;
  return mine;
}

// Writes to a pipe whose reader may be gone, without the signal that this would raise.
void WriteAll(int fd, const char* data, size_t bytes) {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  while (bytes > 0) {
    pollfd wait{fd, POLLOUT, 0};
    if (poll(&wait, 1, kPatienceMs) <= 0 || (wait.revents & POLLOUT) == 0) break;
    const ssize_t written =
        write(fd, data, std::min<size_t>(bytes, 4096 / sizeof(Record) * sizeof(Record)));
    if (written <= 0) break;
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  const timespec now{0, 0};
  if (!was_pending) sigtimedwait(&pipe, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The record at an index, if all of them are real.
bool ReadRecord(const void* info, size_t bytes, uint32_t index, Record* record) {
  if (info == nullptr || bytes % sizeof(Record) != 0 || index >= bytes / sizeof(Record))
    return false;
  std::memcpy(record, static_cast<const char*>(info) + index * sizeof(Record), sizeof(Record));
  Subscriptions& all = All();
  std::lock_guard lock(all.mutex);
  return record->magic == kMagic && record->type < all.texts.size() &&
         record->name < all.texts.size();
}

aclError TextOf(const void* info, size_t bytes, uint32_t index, bool type, std::string* text,
                const char* function) {
  Record record;
  if (!ReadRecord(info, bytes, index, &record))
    return Fail(ACL_ERROR_INVALID_PARAM, function, "no record of an operator at this index");
  Subscriptions& all = All();
  std::lock_guard lock(all.mutex);
  *text = all.texts[type ? record.type : record.name];
  return ACL_SUCCESS;
}

aclError GiveLength(const void* info, size_t bytes, uint32_t index, bool type, size_t* length,
                    const char* function) {
  if (length == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "a null pointer");
  std::string text;
  if (aclError code = TextOf(info, bytes, index, type, &text, function)) return code;
  *length = text.size() + 1;
  return ACL_SUCCESS;
}

aclError GiveText(const void* info, size_t bytes, uint32_t index, bool type, char* to,
                  size_t capacity, const char* function) {
  if (to == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "a null pointer");
  std::string text;
  if (aclError code = TextOf(info, bytes, index, type, &text, function)) return code;
  if (capacity <= text.size())
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                std::to_string(text.size() + 1) + " bytes are needed");
  std::memcpy(to, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
}

}  // namespace

bool AnySubscription() { return All().count.load(std::memory_order_relaxed) > 0; }

bool Subscribed(uint32_t model) { return AnySubscription() && Find(model) != nullptr; }

void TimeTask(size_t task, bool done) {
  if (!done)
    Mine().push_back({task, ProfileNowNs(), 0});
  else if (!Mine().empty())
    Mine().back().end_ns = ProfileNowNs();
}

void SendTimes(uint32_t model) {
  std::vector<Record> records;
  const auto subscription = Find(model);
  for (const Timed& t : Mine()) {
    if (!subscription || t.task >= subscription->texts.size()) break;
    const auto& [type, name] = subscription->texts[t.task];
    if (name == 0) continue;
    Record record{.model = model, .type = type, .name = name};
    if (subscription->times) {
      record.begin_ns = static_cast<uint64_t>(t.begin_ns);
      record.end_ns = static_cast<uint64_t>(t.end_ns);
    }
    records.push_back(record);
  }
  Mine().clear();
  if (!records.empty())
    WriteAll(subscription->fd, reinterpret_cast<const char*>(records.data()),
             records.size() * sizeof(Record));
}

void Unsubscribe(uint32_t model) {
  Subscriptions& all = All();
  std::lock_guard lock(all.mutex);
  all.list.erase(model);
  all.count = all.list.size();
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclprofSubscribeConfig* aclprofCreateSubscribeConfig(int8_t timeInfoSwitch,
                                                            aclprofAicoreMetrics, void* fd) {
  if (fd == nullptr || (timeInfoSwitch != 0 && timeInfoSwitch != 1)) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "fd is null, or the switch is neither 0 nor 1");
    return nullptr;
  }
  auto made = std::make_shared<SubscribeConfig>();
  std::memcpy(&made->fd, fd, sizeof made->fd);
  made->times = timeInfoSwitch == 1;
  return static_cast<aclprofSubscribeConfig*>(Live<SubscribeConfig>().Add(std::move(made)));
}
GE_ACL aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig* profSubscribeConfig) {
  ACL_NEEDS(Live<SubscribeConfig>().Remove(profSubscribeConfig) != nullptr,
            "not a live configuration");
  return ACL_SUCCESS;
}

GE_ACL aclError aclprofModelSubscribe(uint32_t modelId,
                                      const aclprofSubscribeConfig* profSubscribeConfig) {
  const auto config = Live<SubscribeConfig>().Get(profSubscribeConfig);
  ACL_NEEDS(config != nullptr, "not a live configuration");
  const auto model = FindModel(modelId);
  if (!model) ACL_FAIL(ACL_ERROR_INVALID_MODEL_ID, "no model has this id");
  if (Profiles()) ACL_FAIL(ACL_ERROR_PROF_API_CONFLICT, "aclprofFinalize was not called");
  const auto description = ParseJson(model->model->description());
  const auto names = TaskNames(model->model->plan(), description.ok() ? *description : Json());
  auto made = std::make_shared<Subscription>();
  made->fd = config->fd;
  made->times = config->times;
  Subscriptions& all = All();
  std::lock_guard lock(all.mutex);
  if (all.list.contains(modelId))
    ACL_FAIL(ACL_ERROR_PROF_REPEAT_SUBSCRIBE, "the model is subscribed already");
  for (const auto& [type, name] : names)
    made->texts.emplace_back(name.empty() ? 0 : TextIndex(all, type),
                             name.empty() ? 0 : TextIndex(all, name));
  all.list[modelId] = std::move(made);
  all.count = all.list.size();
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofModelUnSubscribe(uint32_t modelId) {
  if (!Subscribed(modelId)) ACL_FAIL(ACL_ERROR_INVALID_MODEL_ID, "the model is not subscribed");
  Unsubscribe(modelId);
  return ACL_SUCCESS;
}

GE_ACL aclError aclprofGetOpDescSize(size_t* opDescSize) {
  ACL_NEEDS(opDescSize != nullptr, "a null pointer");
  *opDescSize = sizeof(Record);
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofGetOpNum(const void* opInfo, size_t opInfoLen, uint32_t* opNumber) {
  ACL_NEEDS(opInfo != nullptr && opNumber != nullptr, "a null pointer");
  ACL_NEEDS(opInfoLen > 0 && opInfoLen % sizeof(Record) == 0, "not a number of whole records");
  *opNumber = static_cast<uint32_t>(opInfoLen / sizeof(Record));
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofGetOpTypeLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                                    size_t* opTypeLen) {
  return GiveLength(opInfo, opInfoLen, index, true, opTypeLen, __func__);
}
GE_ACL aclError aclprofGetOpNameLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                                    size_t* opNameLen) {
  return GiveLength(opInfo, opInfoLen, index, false, opNameLen, __func__);
}
GE_ACL aclError aclprofGetOpType(const void* opInfo, size_t opInfoLen, uint32_t index, char* opType,
                                 size_t opTypeLen) {
  return GiveText(opInfo, opInfoLen, index, true, opType, opTypeLen, __func__);
}
GE_ACL aclError aclprofGetOpName(const void* opInfo, size_t opInfoLen, uint32_t index, char* opName,
                                 size_t opNameLen) {
  return GiveText(opInfo, opInfoLen, index, false, opName, opNameLen, __func__);
}
GE_ACL uint64_t aclprofGetOpStart(const void* opInfo, size_t opInfoLen, uint32_t index) {
  Record r;
  return ReadRecord(opInfo, opInfoLen, index, &r) ? r.begin_ns : 0;
}
GE_ACL uint64_t aclprofGetOpEnd(const void* opInfo, size_t opInfoLen, uint32_t index) {
  Record r;
  return ReadRecord(opInfo, opInfoLen, index, &r) ? r.end_ns : 0;
}
GE_ACL uint64_t aclprofGetOpDuration(const void* opInfo, size_t opInfoLen, uint32_t index) {
  Record r;
  return ReadRecord(opInfo, opInfoLen, index, &r) ? r.end_ns - r.begin_ns : 0;
}
GE_ACL size_t aclprofGetModelId(const void* opInfo, size_t opInfoLen, uint32_t index) {
  Record r;
  return ReadRecord(opInfo, opInfoLen, index, &r) ? r.model : 0;
}
GE_ACL aclprofSubscribeOpFlag aclprofGetOpFlag(const void* opInfo, size_t opInfoLen,
                                               uint32_t index) {
  Record r;
  return ReadRecord(opInfo, opInfoLen, index, &r) ? ACL_SUBSCRIBE_OP : ACL_SUBSCRIBE_NONE;
}

GE_ACL aclprofStepInfo* aclprofCreateStepInfo() {
  return static_cast<aclprofStepInfo*>(Live<Step>().Add(std::make_shared<Step>()));
}
GE_ACL void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo) { Live<Step>().Remove(stepinfo); }
GE_ACL aclError aclprofGetStepTimestamp(aclprofStepInfo* stepInfo, aclprofStepTag tag,
                                        aclrtStream stream) {
  ACL_NEEDS(tag == ACL_STEP_START || tag == ACL_STEP_END, "unknown tag");
  const auto step = Live<Step>().Get(stepInfo);
  ACL_NEEDS(step != nullptr, "not a live step");
  return SubmitTo(stream, __func__, [step, tag](const Stream&) -> aclError {
    std::lock_guard lock(step->mutex);
    if (tag == ACL_STEP_START)
      step->begin_ns = ProfileNowNs();
    else if (step->begin_ns != 0)
      KeepSpan("step " + std::to_string(step->number++), "step", step->begin_ns);
    return ACL_SUCCESS;
  });
}
