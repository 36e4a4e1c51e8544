// Profiling (aclprof*). Spans are runs of models and the program's own marks; a trace in the Chrome
// format is written when profiling is finalised. There are no counters of Ascend cores.
#include "api/acl/profile.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "api/acl/context.h"
#include "api/acl/error.h"
#include "api/acl/include/acl/acl_prof.h"

namespace ge::acl {

std::atomic<bool> profiling{false};

int64_t ProfileNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

constexpr size_t kMaxSpans = 1 << 20;  // 64 MB; what comes later is counted

struct Span {
  std::string name;
  const char* category;
  int64_t begin_ns, end_ns;
  long thread;
};

struct Profile {
  std::mutex mutex;
  bool initialized = false;
  const void* running = nullptr;  // the configuration's handle
  std::string folder;
  std::vector<Span> spans;
  size_t lost = 0;
  uint32_t next_range = 1;
  std::map<uint32_t, std::pair<std::string, int64_t>> ranges;
};
Profile& The() {
  static auto* profile = new Profile;
  return *profile;
}

struct ProfileConfig {
  static constexpr int kHandleKind = 18;
  uint64_t types = 0;
};
struct Stamp {
  static constexpr int kHandleKind = 19;
  std::string text;
};

std::vector<std::pair<std::string, int64_t>>& Pushed() {
  thread_local std::vector<std::pair<std::string, int64_t>> pushed;
  return pushed;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

aclError WriteTrace(const Profile& p, const char* function) {
  const std::string folder = p.folder + "/PROF_" + std::to_string(getpid());
  mkdir(p.folder.c_str(), 0777);
  mkdir(folder.c_str(), 0777);
  const std::string path = folder + "/trace.json";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return Fail(ACL_ERROR_PROFILING_FAILURE, function, path + " cannot be written");
  std::fprintf(file, "{\"lost\": %zu, \"traceEvents\": [", p.lost);
  const char* comma = "\n";
  for (const Span& s : p.spans) {
    std::fprintf(
        file,
        "%s{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, "
        "\"pid\": %d, \"tid\": %ld}",
        comma, Escaped(s.name).c_str(), s.category, static_cast<double>(s.begin_ns) * 1e-3,
        static_cast<double>(s.end_ns - s.begin_ns) * 1e-3, getpid(), s.thread);
    comma = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  const bool failed = std::ferror(file) != 0;
  if (std::fclose(file) != 0 || failed)
    return Fail(ACL_ERROR_PROFILING_FAILURE, function, path + " cannot be written");
  return ACL_SUCCESS;
}

bool TextOf(void* stamp, std::string* text) {
  return Live<Stamp>().With(stamp, [&](Stamp& s) { *text = s.text; });
}

constexpr const char* kNoStamp = "not a live stamp";
constexpr const char* kNoConfig = "not a live configuration";
constexpr const char* kNotInitialized = "aclprofInit was not called";

}  // namespace

aclError StartProfile(const Json& config, const char* function) {
  const Json& profiler = config["profiler"];
  const std::string& on = profiler["switch"].string;
  if (profiler.IsNull() || on == "off") return ACL_SUCCESS;
  const std::string& output = profiler["output"].string;
  if (profiler.kind != Json::Kind::kObject || on != "on" || output.size() > 4096)
    return Fail(ACL_ERROR_INVALID_PROFILING_CONFIG, function,
                "profiler needs a switch, on or off, and an output folder");
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  p.initialized = true;
  p.running = &p;  // no client's configuration
  p.folder = output.empty() ? "." : output;
  p.spans.clear();
  p.lost = 0;
  profiling = true;
  return ACL_SUCCESS;
}

void FinishProfile(const char* function) {
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  if (p.running != &p) return;
  profiling = false;
  p.running = nullptr;
  p.initialized = false;
  WriteTrace(p, function);
  p.spans.clear();
  p.ranges.clear();
}

bool Profiles() {
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  return p.initialized;
}

void KeepSpan(const std::string& name, const char* category, int64_t begin_ns) {
  if (!profiling.load(std::memory_order_relaxed)) return;
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  if (p.spans.size() >= kMaxSpans) {
    ++p.lost;
    return;
  }
  p.spans.push_back({name, category, begin_ns, ProfileNowNs(), syscall(SYS_gettid)});
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclprofInit(const char* profilerResultPath, size_t length) {
  ACL_NEEDS(profilerResultPath != nullptr && length > 0 && length < 4096, "no result path");
  const std::string folder(profilerResultPath, strnlen(profilerResultPath, length));
  ACL_NEEDS(!folder.empty(), "no result path");
  if (!Initialized()) ACL_FAIL(ACL_ERROR_UNINITIALIZE, "aclInit was not called");
  if (AnySubscription()) ACL_FAIL(ACL_ERROR_PROF_API_CONFLICT, "a model is subscribed");
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  if (p.initialized) ACL_FAIL(ACL_ERROR_REPEAT_INITIALIZE, "aclprofInit was called already");
  p.initialized = true;
  p.folder = folder;
  p.spans.clear();
  p.lost = 0;
  return ACL_SUCCESS;
}

GE_ACL aclError aclprofFinalize() {
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  if (!p.initialized) ACL_FAIL(ACL_ERROR_UNINITIALIZE, kNotInitialized);
  if (p.running != nullptr) ACL_FAIL(ACL_ERROR_PROF_ALREADY_RUN, "aclprofStop was not called");
  p.initialized = false;
  const aclError code = WriteTrace(p, __func__);
  p.spans.clear();
  p.ranges.clear();
  return code;
}

GE_ACL aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                          aclprofAicoreMetrics, const aclprofAicoreEvents*,
                                          uint64_t dataTypeConfig) {
  bool known = deviceNums == 0 || deviceIdList != nullptr;
  for (uint32_t i = 0; known && i < deviceNums; ++i)
    known = i < 1024 && deviceIdList[i] < static_cast<uint32_t>(DeviceCount());
  if (!known) {
    Fail(ACL_ERROR_INVALID_DEVICE, __func__, "a device of the list does not exist");
    return nullptr;
  }
  auto made = std::make_shared<ProfileConfig>();
  made->types = dataTypeConfig;
  return static_cast<aclprofConfig*>(Live<ProfileConfig>().Add(std::move(made)));
}
GE_ACL aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  ACL_NEEDS(profilerConfig != nullptr, "profilerConfig is null");
  ACL_NEEDS(Live<ProfileConfig>().Remove(profilerConfig) != nullptr, kNoConfig);
  return ACL_SUCCESS;
}
// Frequencies and limits of a card's sampling: checked, without effect.
GE_ACL aclError aclprofSetConfig(aclprofConfigType configType, const char* config,
                                 size_t configLength) {
  ACL_NEEDS(configType > ACL_PROF_ARGS_MIN && configType < ACL_PROF_ARGS_MAX, "unknown type");
  ACL_NEEDS(config != nullptr && configLength > 0, "config is empty");
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofStart(const aclprofConfig* profilerConfig) {
  ACL_NEEDS(profilerConfig != nullptr, "profilerConfig is null");
  ACL_NEEDS(Live<ProfileConfig>().Get(profilerConfig) != nullptr, kNoConfig);
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  if (!p.initialized) ACL_FAIL(ACL_ERROR_UNINITIALIZE, kNotInitialized);
  if (p.running != nullptr) ACL_FAIL(ACL_ERROR_PROF_ALREADY_RUN, "profiling runs already");
  p.running = profilerConfig;
  profiling = true;
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofStop(const aclprofConfig* profilerConfig) {
  ACL_NEEDS(profilerConfig != nullptr, "profilerConfig is null");
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  if (p.running == nullptr) ACL_FAIL(ACL_ERROR_PROF_NOT_RUN, "profiling does not run");
  ACL_NEEDS(p.running == profilerConfig, "not the configuration that profiling was started with");
  p.running = nullptr;
  profiling = false;
  return ACL_SUCCESS;
}

GE_ACL void* aclprofCreateStamp() { return Live<Stamp>().Add(std::make_shared<Stamp>()); }
GE_ACL void aclprofDestroyStamp(void* stamp) { Live<Stamp>().Remove(stamp); }
GE_ACL aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen) {
  ACL_NEEDS(msg != nullptr && msgLen > 0 && msgLen <= 127, "a message has 1 to 127 characters");
  ACL_NEEDS(Live<Stamp>().With(stamp, [&](Stamp& s) { s.text.assign(msg, strnlen(msg, msgLen)); }),
            kNoStamp);
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofMark(void* stamp) {
  std::string text;
  ACL_NEEDS(TextOf(stamp, &text), kNoStamp);
  KeepSpan(text, "mark", ProfileNowNs());
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofPush(void* stamp) {
  std::string text;
  ACL_NEEDS(TextOf(stamp, &text), kNoStamp);
  ACL_NEEDS(Pushed().size() < 1024, "1024 ranges are open");
  Pushed().emplace_back(std::move(text), ProfileNowNs());
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofPop() {
  ACL_NEEDS(!Pushed().empty(), "nothing was pushed by this thread");
  KeepSpan(Pushed().back().first, "range", Pushed().back().second);
  Pushed().pop_back();
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofRangeStart(void* stamp, uint32_t* rangeId) {
  ACL_NEEDS(rangeId != nullptr, "rangeId is null");
  std::string text;
  ACL_NEEDS(TextOf(stamp, &text), kNoStamp);
  Profile& p = The();
  std::lock_guard lock(p.mutex);
  ACL_NEEDS(p.ranges.size() < 65536, "65536 ranges are open");
  *rangeId = p.next_range++;
  p.ranges[*rangeId] = {std::move(text), ProfileNowNs()};
  return ACL_SUCCESS;
}
GE_ACL aclError aclprofRangeStop(uint32_t rangeId) {
  std::pair<std::string, int64_t> range;
  {
    Profile& p = The();
    std::lock_guard lock(p.mutex);
    const auto it = p.ranges.find(rangeId);
    ACL_NEEDS(it != p.ranges.end(), "no open range has this id");
    range = std::move(it->second);
    p.ranges.erase(it);
  }
  KeepSpan(range.first, "range", range.second);
  return ACL_SUCCESS;
}
