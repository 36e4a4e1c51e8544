// --mode=0: from options to a CompileRequest, and what is said about the result.

#include "tools/atc_compile.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/compile.h"
#include "opt/rule.h"
#include "soc/soc.h"
#include "tools/aipp_config.h"
#include "tools/atc_tune.h"
#include "tools/gears.h"
#include "tools/model_io.h"
#include "tools/npy.h"
#include "tools/precision.h"
#include "tools/shape_option.h"
#include "tools/singleop.h"
#include "tools/switches.h"

namespace ge {
namespace {

// One line that is rewritten on a terminal; plain lines elsewhere. Silent for the first two
// seconds.
class ProgressLine {
 public:
  void operator()(const std::string& stage, double fraction) {
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::seconds(2) || now - last_ < std::chrono::milliseconds(200))
      return;
    last_ = now;
    if (isatty(STDERR_FILENO)) {
      std::fprintf(stderr, "\r\033[K[%3.0f%%] %s", fraction * 100, stage.c_str());
      open_ = true;
    } else if (stage != stage_ || fraction >= next_) {
      std::fprintf(stderr, "[%3.0f%%] %s\n", fraction * 100, stage.c_str());
      next_ = fraction + 0.25;
    }
    stage_ = stage;
  }
  ~ProgressLine() {
    if (open_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_{};
  std::string stage_;
  double next_ = 0;
  bool open_ = false;
};

// The output may neither be hidden in a folder nor replace the model.
Fault CheckPaths(const std::string& model, const std::string& output) {
  const std::filesystem::path path(output);
  std::error_code ignored;
  // "." and ".." with the suffix are "..om" and "...om".
  const std::string name = path.filename();
  if (name == ".om" || name == "..om" || name == "...om" ||
      std::filesystem::is_directory(path, ignored))
    return {"E10022", fmt::format("[--output] {} is a folder", output),
            "give --output=FOLDER/NAME"};
  if (std::filesystem::equivalent(path, model, ignored))
    return {"E10001", fmt::format("[--output] {} would replace the model", output),
            "give another --output"};
  if (const auto parent = path.parent_path();
      !parent.empty() && !std::filesystem::is_directory(parent, ignored))
    return {"E13000", fmt::format("[--output] folder {} does not exist", parent.string()),
            "make the folder first"};
  return {};
}

void PrintReport(const CompileReport& r) {
  std::printf("nodes %d -> %d, regions %d, kernels %d (%d compiled, others cached or shared)\n",
              r.nodes_in, r.nodes_out, r.regions, r.kernels, r.kernels_compiled);
  for (const auto& [rule, count] : r.rules)
    std::printf("rule %s applied %d times\n", rule.c_str(), count);
  if (r.arena_bytes < 0) {
    std::printf("memory: weights %.1f MB, arena placed for each shape, code %.1f KB\n",
                r.weight_bytes / 1e6, r.code_bytes / 1e3);
  } else {
    std::printf("memory: weights %.1f MB, arena %.3f MB (lower bound %.3f MB), code %.1f KB\n",
                r.weight_bytes / 1e6, r.arena_bytes / 1e6, r.arena_lower_bound / 1e6,
                r.code_bytes / 1e3);
  }
  std::printf(
      "import %.2f s, optimise %.2f s, lower %.2f s, plan %.2f s, code %.2f s, write %.2f s\n",
      r.import_s, r.optimise_s, r.lower_s, r.plan_s, r.code_s, r.write_s);
}

// What is known before the model is read, and the request made of it.
struct Plan {
  CompileRequest request;
  Gears gears;
  std::vector<OutputType> output_types;
  std::vector<std::string> fp16_inputs;
  std::vector<AippConfig> aipp;
  Precision precision;
  Fault fault;  // of adapting the graph
};

Fault ApplyAipp(const AtcOptions& o, Plan* p, Graph* g) {
  for (const AippConfig& c : p->aipp) {
    const int input = AippInput(c, *g);
    if (input < 0) continue;
    for (const std::string& name : p->fp16_inputs)
      if (g->value(g->inputs[input]).name == name)
        return {"E10034", fmt::format("input [{}] has AIPP and is in [--input_fp16_nodes]", name),
                "drop one"};
  }
  for (AippConfig& c : p->aipp)
    if (Fault f = InsertAipp(c, o.Get("input_format"), g); f.any()) return f;
  return {};
}

Fault Adapt(const AtcOptions& o, Plan* p, Graph* g) {
  const std::string format = o.Get("input_format");
  auto& description = *p->request.description;
  if (Fault f = ApplyGears(p->gears, p->request.input_shapes, g); f.any()) return f;
  if (Fault f = ApplyAipp(o, p, g); f.any()) return f;
  if (Fault f = ApplyFp16Inputs(p->fp16_inputs, g); f.any()) return f;
  if (Fault f = ApplyOutputTypes(p->output_types, g); f.any()) return f;
  description["inputs"] = TensorsJson(*g, g->inputs, format);
  description["outputs"] = TensorsJson(*g, g->outputs, format);
  if (!p->aipp.empty()) description["aipp"] = AippJson(p->aipp, format, *g);
  if (p->gears.kind != GearKind::kNone) description["gears"] = p->gears.Json();
  description["input_format"] = "\"" + format + "\"";
  return {};
}

// high_precision for all operators, or for Conv: no algorithm that rounds more than the plain one.
Fault ApplyPrecision(const AtcOptions& o, Policy* policy) {
  const auto names_conv = [](const std::string& list, char separator) {
    for (const std::string& op : SplitList(list, separator))
      if (op == "Conv" || op == "Conv2D" || op == "Convolution") return true;
    return false;
  };
  if (o.Get("op_select_implmode").starts_with("high_precision") &&
      (!o.Has("optypelist_for_implmode") || names_conv(o.Get("optypelist_for_implmode"), ',')))
    policy->conv_tolerance = 0;
  if (!o.Has("op_precision_mode")) return {};
  std::string text;
  if (Fault f = ReadSmallFile("op_precision_mode", o.Get("op_precision_mode"), &text); f.any())
    return f;
  int number = 0;
  for (const std::string& line : SplitList(text, '\n')) {
    ++number;
    if (line.empty() || line[0] == '#' || line[0] == '[' || line[0] == ';') continue;
    const auto parts = SplitList(line, '=');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty())
      return {"E10014",
              fmt::format("[--op_precision_mode] line {}: [{}] is not Op=mode", number, line),
              "Conv=high_precision"};
    if (parts[1] == "high_precision" && names_conv(parts[0], ',')) policy->conv_tolerance = 0;
  }
  return {};
}

// Kernels are not kept in a folder that cannot be written: that is no fault, but it is slow.
void NoteCache(const std::string& given, std::vector<std::string>* notes) {
  const char* environment = std::getenv("GE_CACHE_DIR");
  const std::string folder = given.empty() && environment != nullptr ? environment : given;
  if (folder.empty() || folder == "off") return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || access(folder.c_str(), W_OK | X_OK) != 0)
    notes->push_back(fmt::format("[{}] {} cannot be written: kernels are not kept",
                                 given.empty() ? "GE_CACHE_DIR" : "--cache_dir", folder));
}

Fault FillRequest(const AtcOptions& o, Plan* p, std::vector<std::string>* notes) {
  CompileRequest& r = p->request;
  if (Fault f = ReadImportOptions(o, &r); f.any()) return f;
  const std::string output = o.Get("output");
  r.output = output.ends_with(".om") ? output : output + ".om";
  if (Fault f = CheckPaths(r.model, r.output); f.any()) return f;
  r.description = std::make_shared<std::map<std::string, std::string>>();
  r.soc_version = ChipOf(o);
  r.compiler = o.Get("cc");
  r.cache_dir = o.Get("cache_dir");
  NoteCache(r.cache_dir, notes);
  r.external_weight = std::stoi(o.Get("external_weight"));
  r.count_rewrites = o.Is("export_compile_stat", "2");
  r.policy.opt_level = o.Has("opt_level")       ? std::stoi(o.Get("opt_level"))
                       : o.Is("oo_level", "O1") ? 1
                                                : 2;
  if (o.Has("topo_sorting_mode"))
    r.node_order = o.Is("topo_sorting_mode", "0")   ? NodeOrder::kBreadth
                   : o.Is("topo_sorting_mode", "1") ? NodeOrder::kDepth
                   : o.Is("topo_sorting_mode", "2") ? NodeOrder::kReverseDepth
                                                    : NodeOrder::kModel;
  r.policy.interpret_kernels = o.Has("interpret");
  r.policy.reuse_memory = !o.Is("disable_reuse_memory", "1");
  if (Fault f = ApplySwitches(o, &r.policy, notes); f.any()) return f;
  if (Fault f = ApplyPrecision(o, &r.policy); f.any()) return f;
  if (Fault f = ReadPrecision(o, &p->precision); f.any()) return f;
  // Where dots in bf16 are faster, they are all that a bf16 mode changes.
  const bool exceptions =
      o.Has("keep_dtype") || o.Has("modify_mixlist") || o.Has("customize_dtypes");
  if (p->precision.mode == Precision::Mode::kMixed && p->precision.half == DType::kBF16 &&
      !exceptions) {
    const auto soc = FindSoc(ChipOf(o), nullptr);
    r.policy.bf16 = soc.ok() && soc->HasPairs();
    if (r.policy.bf16) p->precision.mode = Precision::Mode::kOrigin;
  }
  // What is asked to have its own type, or roundings, keeps them.
  if (p->precision.Changes() || o.Is("precision_mode", "must_keep_origin_dtype") ||
      (o.Has("precision_mode_v2") && o.Is("precision_mode_v2", "origin")))
    r.policy.disabled.emplace("widen");
  // Values between steps are what the mode rounds.
  if (p->precision.Changes())
    for (const Rule* rule : AllRules())
      if (rule->joins_steps) r.policy.disabled.emplace(rule->name);
  if (Fault f = ReadGears(o, r.input_shapes, &p->gears); f.any()) return f;
  if (Fault f = ReadOutputTypes(o, &p->output_types); f.any()) return f;
  for (const std::string& name : SplitList(o.Get("input_fp16_nodes"), ';'))
    if (!name.empty()) p->fp16_inputs.push_back(name);
  if (!o.Has("insert_op_conf")) return {};
  std::string text;
  if (Fault f = ReadSmallFile("insert_op_conf", o.Get("insert_op_conf"), &text); f.any()) return f;
  return ParseAipp(text, &p->aipp);
}

// The code that names a failure of the compiler.
Fault FaultOf(const Status& status) {
  const std::string& m = status.message();
  const auto has = [&](const char* text) { return m.find(text) != std::string::npos; };
  if (has("out_nodes names")) return {"E11017", m, "names of nodes with :index, or of values"};
  if (has("stream_labels: ")) return {"E10016", m, "names of the model's nodes"};
  if (has("tiles.txt line "))
    return {"E10014", m, "another choice of tiling (docs/speed.md), or a # before the line"};
  if (has("memory_limit: ")) return {"E10001", m, "a larger limit, or none"};
  if (has("input_shape names")) return {"E10016", m, "names of the model's inputs"};
  if (has(" dims given, the model has ")) return {"E10049", m, "as many dims as the model has"};
  if (has(", the model fixes it to ")) return {"E10050", m, "the model's own size, or -1"};
  if (has("not a regular file")) return {"E16001", m, "a plain file, no folder"};
  if (has("holds no graph")) return {"E16004", m, "another export"};
  switch (status.code()) {
    case Code::kNotFound: return {has("cannot create") ? "E13004" : "E10410", m, "check the path"};
    case Code::kUnsupported:
      return {"E16002", m, "another export, or --op_name_map for custom operators"};
    case Code::kResourceExhausted: return {"E13004", m, "check memory and disk"};
    case Code::kInternal: return {"E19999", m, ""};
    default: return {has("cannot write") ? "E13004" : "E16001", m, ""};
  }
}

// fusion_result.json in the current folder.
Fault WriteFusionResult(const CompileReport& report) {
  nlohmann::json graph = nlohmann::json::object();
  for (const auto& [rule, count] : report.misses)
    graph[rule] = {{"match_times", std::to_string(count)}, {"effect_times", "0"}};
  for (const auto& [rule, count] : report.rules) {
    const auto miss = report.misses.find(rule);
    const int matched = count + (miss == report.misses.end() ? 0 : miss->second);
    graph[rule] = {{"match_times", std::to_string(matched)},
                   {"effect_times", std::to_string(count)}};
  }
  nlohmann::json regions = nlohmann::json::object();
  if (graph.contains("fuse")) graph.erase("fuse");
  regions["region_growth"] = {{"match_times", std::to_string(report.nodes_out)},
                              {"effect_times", std::to_string(report.nodes_out - report.regions)}};
  const nlohmann::json result = nlohmann::json::array(
      {{{"session_and_graph_id_0_0", {{"graph_fusion", graph}, {"ub_fusion", regions}}}}});
  const Status written = WriteFile("fusion_result.json", result.dump(2) + "\n");
  return written.ok() ? Fault{} : Fault{"E13004", written.message(), "check the current folder"};
}

// Tiles of --op_bank_path, measured first with --tune.
Fault ApplyTiles(const AtcOptions& o, CompileRequest* request) {
  if (!o.Has("op_bank_path")) return {};
  const std::string folder = o.Get("op_bank_path"), path = folder + "/tiles.txt";
  if (!std::filesystem::is_directory(folder))
    return {"E13000", fmt::format("[--op_bank_path] folder {} does not exist", folder),
            "make the folder first"};
  auto tiles = ReadTiles(path);
  if (!tiles.ok())
    return {"E10014", tiles.status().message(), "gemm f32 128x768x768 = 13x2 rows=64 order=nm"};
  request->policy.tiles = std::move(*tiles);
  if (!o.Has("tune")) return {};
  const Status tuned = Tune(*request, path);
  return tuned.ok() ? Fault{} : FaultOf(tuned);
}

}  // namespace

Fault ReadImportOptions(const AtcOptions& o, CompileRequest* r) {
  r->model = o.Get("model");
  const bool old = o.Has("input_shape_range");
  if (Fault f =
          ParseInputShape(o.Get(old ? "input_shape_range" : "input_shape"), old, &r->input_shapes);
      f.any())
    return f;
  for (const std::string& name : SplitList(o.Get("out_nodes"), ';'))
    if (!name.empty()) r->out_nodes.push_back(name);
  return ReadOpNames(o, &r->op_names);
}

Fault CompileWith(const AtcOptions& o, const std::string& command_line,
                  const std::vector<std::string>& given_notes) {
  Plan plan;
  std::vector<std::string> notes = given_notes;
  if (Fault f = FillRequest(o, &plan, &notes); f.any()) return f;
  CompileRequest& request = plan.request;
  request.command_line = command_line;
  request.adapt = [&](Graph& g) -> Status {
    plan.fault = Adapt(o, &plan, &g);
    return plan.fault.any() ? Invalid(plan.fault.message) : Status();
  };
  const bool info = o.Is("log", "info") || o.Is("log", "debug");
  int halves = 0;
  if (plan.precision.Changes())
    request.refine = [&](Graph& g) -> Status {
      halves = RoundToHalf(plan.precision, &g, request.log);
      return {};
    };
  if (info) request.log = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  for (const std::string& note : notes) std::printf("note: %s\n", note.c_str());
  std::fflush(stdout);
  if (Fault f = ApplyTiles(o, &request); f.any()) return f;
  if (plan.fault.any()) return plan.fault;
  auto report = [&] {
    ProgressLine progress;
    request.progress = [&progress](const std::string& stage, double f) { progress(stage, f); };
    return Compile(request);
  }();
  if (plan.fault.any()) return plan.fault;
  if (!report.ok()) return FaultOf(report.status());
  for (const std::string& note : report->notes) std::printf("note: %s\n", note.c_str());
  if (plan.precision.Changes()) std::printf("note: %d nodes compute in half precision\n", halves);
  if (info) PrintReport(*report);
  const std::string stat = o.Get("export_compile_stat");
  if (stat == "2" || (stat == "1" && info))
    if (Fault f = WriteFusionResult(*report); f.any()) return f;
  return o.Is("display_model_info", "1") ? DisplayModel(request.output) : Fault{};
}

Fault CompileSingleOps(const AtcOptions& o, const std::string& command_line,
                       const std::vector<std::string>& notes) {
  std::vector<SingleOp> ops;
  if (Fault f = ReadSingleOps(o, &ops); f.any()) return f;
  const std::filesystem::path folder(o.Get("output"));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path text =
      std::filesystem::temp_directory_path(error) / fmt::format("ge_singleop_{}.ir", getpid());
  for (const SingleOp& op : ops) {
    if (const Status written = WriteFile(text, op.text); !written.ok())
      return {"E13004", written.message(), "check the folder for temporary files"};
    AtcOptions one;
    for (const auto& [name, value] : o.given())
      if (name != "singleop") one.Set(name, value);
    one.Set("model", text.string());
    one.Set("output", (folder / op.file).string());
    Fault f =
        CompileWith(one, command_line, &op == &ops.front() ? notes : std::vector<std::string>());
    std::filesystem::remove(text, error);
    if (f.code == "E16001")
      f = {"E10032", fmt::format("[--singleop] {}: {}", op.file, f.message),
           "shapes and types as the operator has them"};
    if (f.any()) return f;
    std::printf("%s.om\n", (folder / op.file).c_str());
  }
  return {};
}

}  // namespace ge
