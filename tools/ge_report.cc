// ge report: one self-contained page about a compiled model, measured here and now.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_map.h"
#include "om/file.h"
#include "om/live.h"
#include "om/size.h"
#include "rt/placement.h"
#include "rt/trace.h"
#include "soc/model.h"
#include "tools/numbers.h"
#include "tools/peak.h"
#include "tools/report_page.h"
#include "tools/session.h"
#include "tools/simulate.h"
#include "tools/verbs.h"

namespace ge {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostTextBytes = 1 << 20;  // of the graph's text
constexpr int64_t kMostMeasuringNs = 2'000'000'000;
constexpr int kMostRounds = 20;

struct ReportOptions {
  std::string model, output = "report.html";
  InputOptions inputs;
  std::vector<std::string> shapes;
  int threads = 0;
  bool no_run = false;
};

// Values of the symbols that inputs bind.
std::vector<int64_t> Symbols(const om::Plan& plan, const std::vector<Array>& inputs) {
  std::vector<int64_t> values;
  for (const om::Symbol& s : plan.symbols) {
    const bool known = s.input >= 0 && static_cast<size_t>(s.input) < inputs.size() &&
                       static_cast<size_t>(s.dim) < inputs[s.input].dims.size();
    values.push_back(known ? inputs[s.input].dims[s.dim] : om::kNoSize);
  }
  return values;
}

Json SizeJson(const om::Plan& plan, om::SizeRef size, const std::vector<int64_t>& symbols) {
  const int64_t v = size < 0 ? om::kNoSize : om::EvalSize(plan, size, symbols);
  return v == om::kNoSize ? Json(nullptr) : Json(v);
}

Json DimsJson(const om::Plan& plan, const std::vector<om::SizeRef>& dims,
              const std::vector<int64_t>& symbols) {
  Json out = Json::array();
  for (om::SizeRef d : dims) out.push_back(SizeJson(plan, d, symbols));
  return out;
}

// The arena at these sizes: what the file says, or what the runtime would do.
Json ArenaJson(const om::Plan& plan, const std::vector<int64_t>& symbols) {
  std::vector<rt::Placed> placed;
  std::vector<size_t> which;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const om::Buffer& buffer = plan.buffers[b];
    if (buffer.kind != om::BufferKind::kArena || buffer.alias >= 0 || buffer.first < 0) continue;
    const int64_t bytes = om::EvalSize(plan, buffer.bytes, symbols);
    if (bytes <= 0) continue;
    placed.push_back({buffer.first, buffer.last, bytes, buffer.offset});
    which.push_back(b);
  }
  const int64_t height = rt::PlaceArena(&placed);
  Json list = Json::array();
  om::LiveBytes lives;
  int64_t apart = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    const rt::Placed& p = placed[i];
    apart += (p.bytes + 63) / 64 * 64;
    lives.Add(p.first, p.last, p.bytes);
    list.push_back({plan.buffers[which[i]].name, p.first, p.last, p.offset, p.bytes});
  }
  std::vector<int64_t> live = lives.ByTask();
  live.resize(plan.tasks.size(), 0);
  return {{"buffers", list},
          {"live", live},
          {"height", height},
          {"bound", lives.Most()},
          {"apart", apart}};
}

// What one worker has in use at once: its scratch and a chunk's part of the results.
Json OnChipJson(const om::Plan& plan, const om::Task& task, const std::vector<int64_t>& symbols) {
  if (task.kind != om::TaskKind::kLaunch) return nullptr;
  const int64_t grid = std::max<int64_t>(1, om::EvalSize(plan, task.grid, symbols));
  int64_t bytes =
      task.scratch < 0 ? 0 : std::max<int64_t>(0, om::EvalSize(plan, task.scratch, symbols));
  for (const int32_t b : task.outs) {
    const om::SizeRef size = b < 0 ? -1 : plan.buffers[static_cast<size_t>(b)].bytes;
    if (size >= 0) bytes += std::max<int64_t>(0, om::EvalSize(plan, size, symbols)) / grid;
  }
  return bytes;
}

// Of a task that spills a value or fetches it.
Json MovedBytes(const om::Plan& plan, const om::Task& t) {
  if (t.kind != om::TaskKind::kSpill && t.kind != om::TaskKind::kFetch) return 0;
  return SizeJson(plan, plan.buffers[static_cast<size_t>(t.outs[0])].bytes, {});
}

Json TasksJson(const om::Plan& plan, const std::vector<int64_t>& symbols) {
  static constexpr const char* kKinds[] = {"kernel", "host",  "jump", "jump",
                                           "bind",   "spill", "fetch"};
  Json list = Json::array();
  for (const om::Task& t : plan.tasks) {
    int64_t bytes = 0;
    for (int32_t b : t.args) {
      if (b < 0) continue;
      const om::SizeRef size = plan.buffers[static_cast<size_t>(b)].bytes;
      if (size >= 0) bytes += std::max<int64_t>(0, om::EvalSize(plan, size, symbols));
    }
    const std::string runs =
        t.kernel >= 0 ? plan.kernels[static_cast<size_t>(t.kernel)].name : t.host;
    list.push_back({{"name", t.name},
                    {"kind", kKinds[static_cast<int>(t.kind)]},
                    {"runs", runs},
                    {"kernel", t.kernel},
                    {"grid", SizeJson(plan, t.grid, symbols)},
                    {"on_chip", OnChipJson(plan, t, symbols)},
                    {"estimate", t.cost},
                    {"touched", bytes},
                    {"moved", MovedBytes(plan, t)},
                    {"lane", t.lane},
                    {"waits", t.waits}});
  }
  return list;
}

Json IoJson(const om::Plan& plan, const std::vector<om::IoTensor>& list,
            const std::vector<int64_t>& symbols) {
  Json out = Json::array();
  for (const om::IoTensor& io : list)
    out.push_back({{"name", io.name},
                   {"dtype", Name(static_cast<DType>(io.dtype))},
                   {"dims", DimsJson(plan, io.dims, symbols)}});
  return out;
}

// The graph's text without the values of constants.
std::string GraphText(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size() && out.size() < kMostTextBytes;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (const size_t constant = line.find(" = const "); constant != std::string_view::npos)
      line = line.substr(0, std::min(line.find_first_of(" {", constant + 9), line.size()));
    out.append(line.substr(0, 1000));
    out += '\n';
  }
  return out;
}

// Slices of the last execution that the trace saw: [task, worker, begin us, length us].
Json LastExecution(const Json& trace) {
  double first = 0;
  int first_task = -1;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    const int task = e["args"]["task"];
    if (first_task < 0 || task < first_task) first_task = task;
  }
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == "X" && e["args"]["task"] == first_task)
      first = std::max(first, e["ts"].get<double>() - 0.001);
  // Several workers share the first task: the earliest slice within its own length.
  double start = first;
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == "X" && e["args"]["task"] == first_task &&
        e["ts"].get<double>() + e["dur"].get<double>() >= first)
      start = std::min(start, e["ts"].get<double>());
  Json slices = Json::array();
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] != "X" || e["ts"].get<double>() < start) continue;
    slices.push_back({e["args"]["task"], e["tid"], e["ts"].get<double>() - start, e["dur"]});
  }
  return slices;
}

Result<Json> Timeline(const std::shared_ptr<const rt::Model>& model, std::vector<Array>& arrays) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("ge_report_{}.json", getpid()))
          .string();
  {
    GE_ASSIGN(auto run, rt::Run::Create(model));
    run->StartTrace(path);
    std::vector<rt::Tensor> inputs = Tensors(arrays);
    std::vector<rt::Tensor> outputs(model->plan().outputs.size());
    for (int i = 0; i < 3; ++i) {
      for (rt::Tensor& t : outputs) t = rt::Tensor{};
      GE_TRY(run->Execute(inputs, outputs));
    }
  }
  std::ifstream file(path);
  Json trace = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!trace.is_object())
    return Error(Code::kUnavailable, path + ": the trace cannot be read back");
  return LastExecution(trace);
}

// Whole runs, and the least time of each task.
Status Measure(const std::shared_ptr<const rt::Model>& model, std::vector<Array>& arrays,
               Json& out) {
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(arrays);
  std::vector<rt::Tensor> outputs(model->plan().outputs.size());
  std::vector<int64_t> all, least(model->plan().tasks.size(), 0);
  const int64_t begin = rt::NowNs();
  for (int round = 0; round < kMostRounds; ++round) {
    if (round == kMostRounds / 2) run->EnableProfile(true);
    for (rt::Tensor& t : outputs) t = rt::Tensor{};
    const int64_t start = rt::NowNs();
    GE_TRY(run->Execute(inputs, outputs));
    if (round < kMostRounds / 2) {
      all.push_back(rt::NowNs() - start);
      if (rt::NowNs() - begin > kMostMeasuringNs) round = kMostRounds / 2 - 1;
      continue;
    }
    for (size_t t = 0; t < least.size(); ++t) {
      const int64_t ns = run->profile()[t];
      least[t] = round == kMostRounds / 2 ? ns : std::min(least[t], ns);
    }
    if (rt::NowNs() - begin > 2 * kMostMeasuringNs) break;
  }
  std::sort(all.begin(), all.end());
  out["median_ns"] = all[all.size() / 2];
  out["least_ns"] = all[0];
  out["rounds"] = all.size();
  out["measured"] = least;
  out["threads"] = model->threads();
  GE_ASSIGN(out["slices"], Timeline(model, arrays));
  return {};
}

// The rooflines of one core here: arithmetic and the caches, as measured now. Nothing passes them.
Json PeaksJson(const ChipModel& host) {
  return {{"gflops", MeasureFmaPeak()}, {"gb_per_s", host.on_chip_gb_s}};
}

// What the simulator says of this plan on a chip: [task, stream, begin us, length us], and totals.
Json SimulatedJson(const om::OmView& view, const ChipModel& chip,
                   const std::vector<int64_t>& symbols) {
  constexpr int kStreams = 8;
  const std::vector<TaskWork> work = WorkOf(view.description, view.plan.tasks.size());
  const Simulation sim = Simulate(view.plan, work, chip, symbols, kStreams);
  Json slices = Json::array();
  for (const SimulatedTask& t : sim.tasks)
    slices.push_back({t.task, t.stream, t.begin_us, t.end_us - t.begin_us});
  Json sources = Json::array();
  for (const ChipModel::Source& s : chip.sources) sources.push_back(s.number + ": " + s.from);
  return {{"name", chip.name},
          {"slices", slices},
          {"total_us", sim.total_us},
          {"streams", sim.streams},
          {"events", sim.events},
          {"hit_rate", sim.hit_rate},
          {"memory_bytes", sim.memory_bytes},
          {"dispatch", sim.total_us > 0 ? sim.launch_us / sim.total_us : 0},
          {"sources", sources}};
}

Result<Json> ChipsJson(const om::OmView& view, const std::vector<int64_t>& symbols) {
  Json chips = Json::array();
  for (const std::string& name : ChipModelNames()) {
    if (name == "host") continue;
    GE_ASSIGN(const ChipModel chip, FindChipModel(name));
    chips.push_back(SimulatedJson(view, chip, symbols));
  }
  return chips;
}

Result<Json> Collect(ReportOptions& o) {
  for (const std::string& s : o.shapes) {
    GE_ASSIGN(auto shape, ParseShapeOption(s));
    o.inputs.shapes[shape.first] = shape.second;
  }
  GE_ASSIGN(FileMap file, FileMap::Open(o.model));
  GE_ASSIGN(om::OmView view, om::ReadOm(file.bytes(), false));
  GE_ASSIGN(auto model, LoadModel(o.model, o.threads));
  GE_ASSIGN(std::vector<Array> arrays, BindInputs(*model, o.inputs));
  const om::Plan& plan = model->plan();
  const std::vector<int64_t> symbols = Symbols(plan, arrays);
  Json out = {{"model", plan.model_name},       {"chip", plan.chip},
              {"weights", view.weights.size()}, {"code", view.code.size()},
              {"kernels", plan.kernels.size()}, {"file", file.bytes().size()}};
  out["description"] = Json::parse(view.description, nullptr, /*allow_exceptions=*/false);
  if (!out["description"].is_object()) out["description"] = Json::object();
  const auto imported = out["description"].find("imported");
  if (imported != out["description"].end() && imported->is_string()) {
    out["before"] = GraphText(imported->get<std::string>());
    out["description"].erase(imported);
  }
  GE_ASSIGN(ChipModel host, FindChipModel("host"));
  out["peaks"] = PeaksJson(host);
  host.cores = model->threads();
  out["predicted"] = SimulatedJson(view, host, symbols);
  GE_ASSIGN(out["chips"], ChipsJson(view, symbols));
  out["tasks"] = TasksJson(plan, symbols);
  out["arena"] = ArenaJson(plan, symbols);
  out["inputs"] = IoJson(plan, plan.inputs, symbols);
  out["outputs"] = IoJson(plan, plan.outputs, symbols);
  out["graph"] = GraphText(view.ir_text);
  out["symbols"] = Json::array();
  for (size_t i = 0; i < plan.symbols.size(); ++i) {
    const om::Symbol& s = plan.symbols[i];
    out["symbols"].push_back(
        {{"name", s.name},
         {"lo", s.lo},
         {"hi", s.hi},
         {"multiple_of", s.multiple_of},
         {"bound_by",
          s.input < 0 ? "a task" : fmt::format("dim {} of {}", s.dim, plan.inputs[s.input].name)},
         {"value", symbols[i] == om::kNoSize ? Json(nullptr) : Json(symbols[i])}});
  }
  out["checks"] = Json::array();
  for (const om::Check& c : plan.checks) out["checks"].push_back(c.message);
  if (!o.no_run) GE_TRY(Executed(Measure(model, arrays, out), *model, o.inputs));
  return out;
}

Status Report(ReportOptions& o) {
  GE_ASSIGN(const Json data, Collect(o));
  const std::string page = ReportPage(data["model"].get<std::string>(),
                                      data.dump(-1, ' ', false, Json::error_handler_t::replace));
  GE_TRY(WriteFile(o.output, page));
  std::printf("%s: %.2f MB\n", o.output.c_str(), static_cast<double>(page.size()) / 1e6);
  return {};
}

}  // namespace

void AddReportVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("report", "one HTML page about a model; runs it to measure");
  auto o = std::make_shared<ReportOptions>();
  verb->add_option("model", o->model, ".om file")->required();
  verb->add_option("-o,--output", o->output, "the page (report.html)");
  verb->add_option("--threads", o->threads, "workers (0 = CPUs available)")
      ->check(Between(0, kMostThreads));
  verb->add_option("--input", o->inputs.files, "as for ge run")->expected(1, 1 << 16);
  verb->add_option("--shape", o->shapes, "NAME:dims of a dynamic input that is random")
      ->expected(1, 1 << 16);
  verb->add_flag("--no-run", o->no_run, "do not run the model: no measured times");
  verb->callback([o, &exit_code] { exit_code = ExitCode(Report(*o), o->model); });
}

}  // namespace ge
