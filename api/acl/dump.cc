// See dump.h. Tensors are written in the order of their dims, whatever order they have in memory:
// the .om's description tells layouts and halos ("storage").
#include "api/acl/dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>

#include "abi/dtype.h"
#include "api/acl/context.h"
#include "api/acl/dump_file.h"
#include "api/acl/error.h"
#include "api/acl/include/acl/acl_dump.h"

namespace ge::acl {
namespace {

constexpr size_t kLongestName = 200;  // of a file; the rest of an operator's name is cut off

struct Settings {
  std::string path, folder;  // folder: path/time
  bool inputs = false, outputs = true, statistics = false, failures = false;
  bool all_models = false;
  std::map<std::string, std::set<std::string>> models;  // name -> layers; none: all of them
  std::vector<std::pair<int64_t, int64_t>> steps;       // runs; none: all of them
  std::atomic<bool> ended{false};
};

struct InForce {
  std::mutex mutex;
  bool by_call = false;  // between aclmdlInitDump and aclmdlFinalizeDump
  std::shared_ptr<Settings> settings;
};
InForce& Now() {
  static auto* now = new InForce;
  return *now;
}

bool DumpsByCall() {
  InForce& now = Now();
  std::lock_guard lock(now.mutex);
  return now.by_call;
}

std::shared_ptr<Settings> CurrentSettings() {
  InForce& now = Now();
  std::lock_guard lock(now.mutex);
  return now.settings;
}

uint64_t Microseconds() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

// Dots, slashes and blanks of names become '_'.
std::string Plain(const std::string& name) {
  std::string out;
  for (const char c : name)
    out +=
        c == '.' || c == '/' || c == '\\' || std::isspace(static_cast<unsigned char>(c)) ? '_' : c;
  return out.substr(0, kLongestName);
}

bool MakeFolders(const std::string& path) {
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    if (mkdir(path.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST) return false;
  }
  return true;
}

// A failure comes out once per process: dumps must not stop the program.
void Write(const std::string& folder, const std::string& name, const std::string& end,
           const std::string& first, const std::string& second) {
  bool written = MakeFolders(folder);
  int fd = -1;
  for (uint64_t time = Microseconds(); written && fd < 0; ++time) {
    const std::string path = folder + "/" + name + "." + std::to_string(time) + end;
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    written = fd >= 0 || errno == EEXIST;
  }
  std::FILE* file = fd >= 0 ? fdopen(fd, "wb") : nullptr;
  if (file != nullptr) {
    written = std::fwrite(first.data(), 1, first.size(), file) == first.size() &&
              std::fwrite(second.data(), 1, second.size(), file) == second.size();
    written = std::fclose(file) == 0 && written;
  }
  static std::atomic<bool> said{false};
  if (!written && !said.exchange(true))
    std::fprintf(stderr, "[ERROR] ASCENDCL dump: %s: a file cannot be written\n", folder.c_str());
}

// "0|3-5|10"
bool ParseSteps(const std::string& text, std::vector<std::pair<int64_t, int64_t>>* steps) {
  for (size_t at = 0; at < text.size();) {
    char* end = nullptr;
    const char* begin = text.c_str() + at;
    const int64_t first = std::strtoll(begin, &end, 10);
    if (end == begin || first < 0) return false;
    int64_t last = first;
    if (*end == '-') {
      begin = end + 1;
      last = std::strtoll(begin, &end, 10);
      if (end == begin || last < first) return false;
    }
    steps->emplace_back(first, last);
    if (*end != 0 && *end != '|') return false;
    at = static_cast<size_t>(end - text.c_str()) + (*end == '|' ? 1 : 0);
  }
  return true;
}

// A switch or a word of a list; "" is the list's first. False: another text.
bool OneOf(const Json& value, std::initializer_list<const char*> words) {
  if (value.IsNull()) return true;
  if (value.kind != Json::Kind::kString) return false;
  return std::find(words.begin(), words.end(), value.string) != words.end();
}

// "" or what is wrong.
std::string ReadModels(const Json& dump, Settings* to) {
  const Json& list = dump["dump_list"];
  if (!list.IsNull() && list.kind != Json::Kind::kArray) return "dump_list is not a list";
  for (const Json& entry : list.items) {
    if (entry.kind != Json::Kind::kObject) return "an entry of dump_list is not an object";
    if (entry["model_name"].IsNull()) {
      if (!entry["layer"].IsNull()) return "dump_list has layers without model_name";
      to->all_models = true;
      continue;
    }
    if (entry["model_name"].string.empty()) return "model_name is not a text";
    auto& layers = to->models[entry["model_name"].string];
    for (const Json& layer : entry["layer"].items) layers.insert(layer.string);
  }
  return "";
}

std::string ReadSettings(const Json& dump, Settings* to) {
  if (dump.kind != Json::Kind::kObject) return "dump is not an object";
  const Json& scene = dump["dump_scene"];
  if (!OneOf(scene, {"", "lite_exception", "aic_err_brief_dump", "aic_err_norm_dump",
                     "aic_err_detail_dump", "watcher"}))
    return "unknown dump_scene";
  to->failures = !scene.string.empty() && scene.string != "watcher";
  if (!OneOf(dump["dump_mode"], {"output", "input", "all"}))
    return "dump_mode must be input, output or all";
  if (!OneOf(dump["dump_data"], {"tensor", "stats"})) return "dump_data must be tensor or stats";
  if (!OneOf(dump["dump_level"], {"all", "op", "kernel"}))
    return "dump_level must be op, kernel or all";
  for (const char* name : {"dump_op_switch", "dump_debug"})
    if (!OneOf(dump[name], {"on", "off"})) return std::string(name) + " must be on or off";
  const std::string& mode = dump["dump_mode"].string;
  to->inputs = mode == "input" || mode == "all";
  to->outputs = mode != "input";
  to->statistics = dump["dump_data"].string == "stats";
  if (!ParseSteps(dump["dump_step"].string, &to->steps))
    return "dump_step is not numbers and ranges such as 0|3-5";
  if (std::string wrong = ReadModels(dump, to); !wrong.empty()) return wrong;
  to->path = dump["dump_path"].string;
  const bool dumps = to->all_models || !to->models.empty();
  if (to->failures && dumps) return "dump_scene and dump_list exclude each other";
  if (dumps && to->path.empty()) return "dump_path is missing";
  if (to->path.empty()) return "";
  if (to->path.size() > 512) return "dump_path is longer than 512 characters";
  if (!MakeFolders(to->path) || access(to->path.c_str(), W_OK | X_OK) != 0)
    return "dump_path " + to->path + ": " + std::strerror(errno);
  char time[16];
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  std::strftime(time, sizeof time, "%Y%m%d%H%M%S", localtime_r(&seconds, &parts));
  to->folder = to->path + "/" + time;
  return "";
}

int CurrentDevice() {
  const auto context = CurrentContext();
  return context ? context->device : 0;
}

std::string FileStem(const char* path) {
  std::string name = path == nullptr ? "" : path;
  name = name.substr(name.rfind('/') + 1);
  return name.substr(0, name.rfind(".om"));
}

Json DescriptionOf(const rt::Model& model) {
  auto parsed = ParseJson(model.description());
  return parsed.ok() ? std::move(parsed).value() : Json();
}

// Where the elements of a buffer lie: [axis, tile] from the outermost, [axis, before, after].
struct Storage {
  std::vector<std::pair<size_t, int64_t>> order;
  std::map<size_t, std::pair<int64_t, int64_t>> halo;
};

// The elements of a tensor in the order of its dims.
bool CopyDense(const rt::Tensor& t, const Storage* storage, std::string* to) {
  const auto type = static_cast<DType>(t.dtype);
  int64_t elements = 1;
  for (const int64_t d : t.dims) {
    if (d < 0 || (d > 0 && elements > (int64_t{1} << 40) / d)) return false;
    elements *= d;
  }
  const int64_t bytes = BytesFor(type, elements), width = BitWidth(type) / 8;
  to->assign(static_cast<size_t>(bytes), 0);
  const auto* from = static_cast<const char*>(t.data);
  if (storage == nullptr || width == 0) {
    if (bytes > t.bytes) return false;
    std::memcpy(to->data(), from, static_cast<size_t>(bytes));
    return true;
  }
  const size_t n = storage->order.size();
  std::vector<int64_t> stride(n, 1), modulo(n, 0), lo(n, 0), index(t.dims.size(), 0);
  for (size_t k = n; k-- > 0;) {
    const auto& [axis, tile] = storage->order[k];
    for (size_t outer = k; outer-- > 0 && modulo[k] == 0;)
      if (storage->order[outer].first == axis) modulo[k] = storage->order[outer].second / tile;
    int64_t extent = modulo[k] != 0 ? modulo[k] : (t.dims[axis] + tile - 1) / tile;
    if (const auto h = storage->halo.find(axis); h != storage->halo.end()) {
      lo[k] = h->second.first;
      extent += h->second.first + h->second.second;
    }
    if (k > 0) stride[k - 1] = stride[k] * extent;
  }
  for (int64_t e = 0; e < elements; ++e) {
    int64_t at = 0;
    for (size_t k = 0; k < n; ++k) {
      const auto& [axis, tile] = storage->order[k];
      const int64_t i = index[axis] / tile;
      at += ((modulo[k] != 0 ? i % modulo[k] : i) + lo[k]) * stride[k];
    }
    if ((at + 1) * width > t.bytes) return false;
    std::memcpy(to->data() + e * width, from + at * width, static_cast<size_t>(width));
    for (size_t a = index.size(); a-- > 0;) {
      if (++index[a] < t.dims[a]) break;
      index[a] = 0;
    }
  }
  return true;
}

// Dumps one model. Runs may overlap: what belongs to a run is kept by its thread.
struct Dumper {
  std::shared_ptr<Settings> settings;
  const om::Plan* plan = nullptr;
  std::string folder;
  std::vector<std::pair<std::string, std::string>> names;  // of tasks; "" = not dumped
  std::map<int32_t, Storage> storage;
  std::set<int32_t> temporary;
  std::set<std::pair<size_t, int32_t>> partial;  // task and buffer: a later task writes the rest
  std::vector<std::atomic<int64_t>> times;       // that a task has run

  bool Wanted(int32_t b) const {
    if (b < 0 || temporary.contains(b)) return false;
    const om::BufferKind kind = plan->buffers[static_cast<size_t>(b)].kind;
    return kind != om::BufferKind::kConst && kind != om::BufferKind::kSlot;
  }

  void Add(const rt::Run& run, int32_t b, bool input, uint32_t index, std::string* fields,
           std::string* data) const {
    rt::Tensor t = run.Now(b);
    const auto found = storage.find(b);
    std::string dense;
    if (t.data == nullptr ||
        !CopyDense(t, found == storage.end() ? nullptr : &found->second, &dense))
      return;
    t.data = dense.data();
    t.bytes = static_cast<int64_t>(dense.size());
    if (settings->statistics)
      *data += DumpStatistics(t, input, index);
    else
      AddToDump(t, input, index, plan->buffers[static_cast<size_t>(b)].name, fields, data);
  }

  void Seen(const rt::Run& run, size_t index, bool done) {
    thread_local std::string fields, data;
    if (settings->ended || names[index].second.empty()) return;
    const om::Task& task = plan->tasks[index];
    if (!done) {
      fields.clear();
      data.clear();
      uint32_t i = 0;
      for (const int32_t b : task.args) {
        const bool written = std::find(task.outs.begin(), task.outs.end(), b) != task.outs.end();
        if (settings->inputs && !written && Wanted(b)) Add(run, b, true, i, &fields, &data);
        i += !written;
      }
      return;
    }
    const int64_t time = times[index].fetch_add(1, std::memory_order_relaxed);
    const auto within = [&](const auto& range) {
      return time >= range.first && time <= range.second;
    };
    if (!settings->steps.empty() &&
        std::none_of(settings->steps.begin(), settings->steps.end(), within))
      return;
    for (size_t i = 0; settings->outputs && i < task.outs.size(); ++i)
      if (Wanted(task.outs[i]) && !partial.contains({index, task.outs[i]}))
        Add(run, task.outs[i], false, static_cast<uint32_t>(i), &fields, &data);
    if (data.empty() && fields.empty()) return;  // temporaries only, or a part of an output
    const auto& [type, name] = names[index];
    const std::string file = Plain(type) + "." + Plain(name) + "." + std::to_string(index) + "." +
                             std::to_string(std::max<int32_t>(0, task.lane));
    const std::string in = folder + "/" + std::to_string(time);
    if (settings->statistics)
      Write(in, file, ".csv",
            "Input/Output,Index,Data Size,Data Type,Format,Shape,Max,Min,Avg,Nan,Inf\n", data);
    else
      Write(in, file, "", DumpHeader(name, Microseconds(), fields), data);
  }
};

// Leaves the names of the tasks that the layers ask for; the layers that no task is part of.
std::set<std::string> KeepLayers(const std::set<std::string>& layers, const Json& description,
                                 Dumper* dumper) {
  const Json &tasks = description["tasks"], &regions = description["regions"];
  std::set<std::string> unknown = layers;
  for (size_t t = 0; t < dumper->names.size() && !layers.empty(); ++t) {
    bool keep = false;
    const auto match = [&](const std::string& name) {
      keep = layers.contains(name) || keep;
      unknown.erase(name);
    };
    match(dumper->names[t].second);
    const Json& region = t < tasks.items.size() ? tasks.items[t]["region"] : Json();
    const auto r = static_cast<size_t>(region.number);
    if (!region.IsNull() && r < regions.items.size())
      for (const char* list : {"nodes", "origins"})
        for (const Json& node : regions.items[r][list].items) match(node.string);
    if (!keep) dumper->names[t].second.clear();
  }
  return unknown;
}

// Kernels of one region may each write a part of its output: it is whole after the last of them.
void FindPartial(const Json& description, Dumper* dumper) {
  const Json& tasks = description["tasks"];
  std::map<std::pair<double, int32_t>, size_t> last;  // by region and buffer
  for (size_t t = 0; t < dumper->plan->tasks.size() && t < tasks.items.size(); ++t) {
    const Json& region = tasks.items[t]["region"];
    if (region.IsNull()) continue;
    for (const int32_t b : dumper->plan->tasks[t].outs) {
      const auto [at, first] = last.emplace(std::pair(region.number, b), t);
      if (first) continue;
      dumper->partial.insert({at->second, b});
      at->second = t;
    }
  }
}

void ReadStorage(const Json& description, Dumper* dumper) {
  for (const Json& record : description["storage"].items) {
    Storage& s = dumper->storage[static_cast<int32_t>(record["buffer"].number)];
    for (const Json& d : record["order"].items)
      if (d.items.size() == 2)
        s.order.emplace_back(static_cast<size_t>(d.items[0].number),
                             static_cast<int64_t>(d.items[1].number));
    for (const Json& h : record["halo"].items)
      if (h.items.size() == 3)
        s.halo[static_cast<size_t>(h.items[0].number)] = {static_cast<int64_t>(h.items[1].number),
                                                          static_cast<int64_t>(h.items[2].number)};
  }
  for (const Json& b : description["temporaries"].items)
    dumper->temporary.insert(static_cast<int32_t>(b.number));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> TaskNames(const om::Plan& plan,
                                                           const Json& description) {
  std::vector<std::pair<std::string, std::string>> names;
  const Json &tasks = description["tasks"], &regions = description["regions"];
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    const om::Task& task = plan.tasks[t];
    auto& [type, name] = names.emplace_back();
    if (task.kind != om::TaskKind::kLaunch && task.kind != om::TaskKind::kHost) continue;
    type = task.kind == om::TaskKind::kHost ? task.host : "Kernel";
    name = task.name;
    const Json& region = t < tasks.items.size() ? tasks.items[t]["region"] : Json();
    const auto r = static_cast<size_t>(region.number);
    if (region.IsNull() || r >= regions.items.size()) continue;
    if (const Json& op = regions.items[r]["op"]; !op.IsNull()) type = op.string;
    name = regions.items[r]["name"].string;
  }
  return names;
}

aclError StartDump(const Json& config, const char* function) {
  if (config["dump"].IsNull()) return ACL_SUCCESS;
  auto settings = std::make_shared<Settings>();
  if (const std::string wrong = ReadSettings(config["dump"], settings.get()); !wrong.empty())
    return Fail(ACL_ERROR_INVALID_DUMP_CONFIG, function, wrong);
  InForce& now = Now();
  std::lock_guard lock(now.mutex);
  now.settings = std::move(settings);
  return ACL_SUCCESS;
}

void StopDump() {
  InForce& now = Now();
  std::lock_guard lock(now.mutex);
  if (now.settings) now.settings->ended = true;
  now.settings = nullptr;
  now.by_call = false;
}

std::function<void(const rt::Run&, size_t task, bool done)> DumperOf(const rt::Model& model,
                                                                     uint32_t id,
                                                                     const char* path) {
  const auto settings = CurrentSettings();
  if (!settings || settings->folder.empty() || settings->failures) return {};
  // The file's name goes before the model's own.
  std::string name = FileStem(path);
  auto found = settings->models.find(name);
  if (found == settings->models.end() || name.empty())
    found = settings->models.find(name = model.plan().model_name);
  if (found == settings->models.end() && !settings->all_models) return {};
  if (found == settings->models.end() && path != nullptr) name = FileStem(path);
  auto dumper = std::make_shared<Dumper>();
  dumper->settings = settings;
  dumper->plan = &model.plan();
  dumper->folder = settings->folder + "/" + std::to_string(CurrentDevice()) + "/" + Plain(name) +
                   "/" + std::to_string(id);
  const Json description = DescriptionOf(model);
  dumper->names = TaskNames(model.plan(), description);
  dumper->times = std::vector<std::atomic<int64_t>>(dumper->names.size());
  ReadStorage(description, dumper.get());
  FindPartial(description, dumper.get());
  if (found != settings->models.end())
    for (const std::string& layer : KeepLayers(found->second, description, dumper.get()))
      Warn("dump", "model " + name + " has no node " + layer +
                       ", or no task makes it: nothing is dumped for it");
  return [dumper](const rt::Run& run, size_t task, bool done) { dumper->Seen(run, task, done); };
}

void DumpFailure(const rt::Model& model, uint32_t id, std::span<const rt::Tensor> inputs) {
  const auto settings = CurrentSettings();
  if (!settings || !settings->failures) return;
  const char* work = std::getenv("ASCEND_WORK_PATH");
  std::string folder = !settings->path.empty() ? settings->path : work != nullptr ? work : ".";
  folder += "/extra-info/data-dump/" + std::to_string(CurrentDevice());
  std::string fields, data;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].data != nullptr)
      AddToDump(inputs[i], true, static_cast<uint32_t>(i), model.plan().inputs[i].name, &fields,
                &data);
  const std::string& name = model.plan().model_name;
  Write(folder, "exception_info." + Plain(name) + "." + std::to_string(id), "",
        DumpHeader(name, Microseconds(), fields), data);
}

}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

// aclInit and aclFinalize take this file's lock under theirs: Initialized() comes first.
#define ACL_DUMP_RUNS()                                                           \
  if (!Initialized()) ACL_FAIL(ACL_ERROR_UNINITIALIZE, "aclInit was not called"); \
  if (!DumpsByCall()) ACL_FAIL(ACL_ERROR_DUMP_NOT_RUN, "aclmdlInitDump was not called")

GE_ACL aclError aclmdlInitDump() {
  if (!Initialized()) ACL_FAIL(ACL_ERROR_UNINITIALIZE, "aclInit was not called");
  InForce& now = Now();
  std::lock_guard lock(now.mutex);
  if (now.by_call) ACL_FAIL(ACL_ERROR_DUMP_ALREADY_RUN, "aclmdlInitDump was called already");
  now.by_call = true;
  return ACL_SUCCESS;
}
GE_ACL aclError aclmdlSetDump(const char* dumpCfgPath) {
  ACL_NEEDS(dumpCfgPath != nullptr, "dumpCfgPath is null");
  ACL_DUMP_RUNS();
  std::string text;
  Json json;
  if (aclError code = ReadConfig(dumpCfgPath, &text, &json, __func__)) return code;
  return StartDump(json, __func__);
}
GE_ACL aclError aclmdlFinalizeDump() {
  ACL_DUMP_RUNS();
  StopDump();
  return ACL_SUCCESS;
}
GE_ACL const char* acldumpGetPath(acldumpType dumpType) {
  if (dumpType < AIC_ERR_BRIEF_DUMP || dumpType > OVERFLOW_DUMP) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "unknown type");
    return nullptr;
  }
  // The caller's for as long as its thread asks for no other.
  thread_local std::string path;
  const auto settings = CurrentSettings();
  path = settings ? settings->path : "";
  return path.empty() ? nullptr : path.c_str();
}
