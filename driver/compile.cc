// The whole flow: import, passes, layout, regions, kernels, plan, code, file.

#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <unordered_map>

#include "driver/byte_dots.h"
#include "driver/compilation.h"
#include "driver/describe.h"
#include "driver/external_weights.h"
#include "driver/pipeline.h"
#include "driver/strips.h"
#include "emit/emit.h"
#include "fuse/fuse.h"
#include "import/onnx/import.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "om/file.h"
#include "om/size.h"
#include "plan/planner.h"
#include "plan/validate.h"

namespace ge {
namespace {

// Adds the time between two calls to one field.
class Stopwatch {
 public:
  void Lap(double& seconds) {
    const auto now = std::chrono::steady_clock::now();
    seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// "rule: node + node: applied", or ": reason".
void CountRewrite(const std::string& line, CompileReport* report) {
  const size_t colon = line.find(": ");
  if (colon == std::string::npos) return;
  const std::string name = line.substr(0, colon);
  ++(line.ends_with(": applied") ? report->rules : report->misses)[name];
}

// Which nodes a region fuses, and which of its outputs are not stored row by row.
void LogRegion(const Graph& g, const Region& r, const Compilation& c) {
  if (!c.request.log) return;
  std::string nodes;
  for (NodeId n : r.nodes) nodes += (nodes.empty() ? "" : " + ") + g.node(n).name;
  if (r.nodes.size() > 1) c.Log(fmt::format("region {}: fused {}", r.name, nodes));
  for (ValueId v : r.outputs)
    if (!g.value(v).type.layout.IsNd())
      c.Log(fmt::format("region {}: layout of {} is {}", r.name, g.value(v).name,
                        ToString(g.value(v).type.layout)));
}

constexpr size_t kLargestBuffers = 5;

// The largest buffers of the arena: offset, size, the tasks between which they live.
void LogMemory(const Compilation& c) {
  const om::Plan& plan = c.planned.plan;
  if (!c.request.log || plan.arena_bytes < 0) return;
  std::vector<std::pair<int64_t, const om::Buffer*>> buffers;
  for (const om::Buffer& b : plan.buffers)
    if (b.kind == om::BufferKind::kArena && b.offset >= 0)
      buffers.emplace_back(om::EvalSize(plan, b.bytes, {}), &b);
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  buffers.resize(std::min(buffers.size(), kLargestBuffers));
  for (const auto& [bytes, b] : buffers)
    c.Log(fmt::format("memory: {} has {} bytes at {}, tasks {} to {}", b->name, bytes, b->offset,
                      b->first, b->last));
}

// Choices of tiling: what is open, for who tunes; a choice of the user's that cannot be is an error
// if it is about a node, and a note if it is about a problem.
void NoteChoices(const Graph& g, const Region& r, const Lowered& lowered, Compilation& c) {
  const DotChoice* of_node =
      r.anchor == kNone ? nullptr : c.request.policy.ChoiceFor(g.node(r.anchor));
  for (const LoweredKernel& k : lowered.kernels) {
    if (k.problem.empty()) continue;
    if (of_node != nullptr) c.used.insert(of_node->where);
    std::vector<DotChoice> choices = k.others;
    choices.insert(choices.begin(), k.chosen);
    c.report.choices.emplace(k.problem, std::move(choices));
  }
  if (!lowered.faults.empty() && c.choice_fault.ok()) c.choice_fault = Invalid(lowered.faults[0]);
  for (const std::string& note : lowered.notes)
    if (std::find(c.report.notes.begin(), c.report.notes.end(), note) == c.report.notes.end())
      c.report.notes.push_back(note);
}

void LowerGraph(const Graph& g, Compilation& c) {
  std::vector<Lowered>& out = c.lowered[&g];
  for (const Region& r : c.regions[&g]) {
    LogRegion(g, r, c);
    const bool code = r.engine == Engine::kVector || r.engine == Engine::kCube;
    out.push_back(code ? LowerRegion(g, r, c.soc, c.request.policy) : Lowered{});
    if (c.choices_open) NoteChoices(g, r, out.back(), c);
    for (const LoweredKernel& k : out.back().kernels)
      c.Log(fmt::format(
          "region {}: kernel {} [{}]{} est {:.1f} us", r.name, k.kernel.name, k.schedule,
          (k.problem.empty() ? "" : fmt::format(" {} = {},", k.problem, ToString(k.chosen))) +
              (k.tiles > 0 ? fmt::format(" {:.0f} tiles, on chip {:.1f} KB,", k.tiles,
                                         k.on_chip_bytes / 1024)
                           : ""),
          k.cost_ns / 1000));
  }
  for (NodeId n : g.order)
    for (const auto& sub : g.node(n).subgraphs) LowerGraph(*sub, c);
}

void FormKernels(Compilation& c) {
  c.regions = FormRegions(*c.graph, c.soc, c.request.policy);
  c.lowered.clear();
  c.report.regions = 0;
  for (const auto& [g, list] : c.regions) c.report.regions += static_cast<int>(list.size());
  LowerGraph(*c.graph, c);
}

}  // namespace

Status PlanAgain(Compilation& c) {
  c.planned = Planned();
  FormKernels(c);
  GE_ASSIGN(c.planned, BuildPlan(*c.graph, c.regions, c.lowered, c.request.policy));
  return {};
}

namespace {

// A node of that name for which `fits` holds, in the graph or below.
bool AnyNode(const Graph& g, const std::string& name,
             const std::function<bool(const Graph&, const Node&)>& fits) {
  return std::any_of(g.order.begin(), g.order.end(), [&](NodeId n) {
    const Node& node = g.node(n);
    return (node.name == name && fits(g, node)) ||
           std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                       [&](const auto& sub) { return AnyNode(*sub, name, fits); });
  });
}

bool HasNode(const Graph& g, const std::string& name) {
  return AnyNode(g, name, [](const Graph&, const Node&) { return true; });
}

bool MakesPicture(const Graph& g, const Node& n) {
  return std::any_of(n.outputs.begin(), n.outputs.end(),
                     [&](ValueId v) { return v != kNone && HasRows(g.value(v)); });
}

// Every node that has a label is there.
Status CheckLabels(const Graph& g, const Policy& policy) {
  for (const auto& [name, label] : policy.stream_labels) {
    if (!HasNode(g, name))
      return Invalid(fmt::format("stream_labels: the model has no node {}", name));
  }
  return {};
}

// Lines about nodes that the model has not are notes; a dot's choice for what is none is an error.
Status CheckChoices(const std::map<std::string, DotChoice>& of_nodes, Compilation& c) {
  c.choices_open = false;
  GE_TRY(std::move(c.choice_fault));
  for (const auto& [name, choice] : of_nodes) {
    DotChoice rest = choice;
    rest.strips = 0;
    if (ToString(rest).empty() || c.used.contains(choice.where)) continue;
    return Invalid(fmt::format(
        "{}: node {} has no tiling to choose: it is no product or convolution; strips=N is allowed",
        choice.where, name));
  }
  return {};
}

// The choices for nodes that the model has; a note for each other one.
std::map<std::string, DotChoice> ChoicesOfNodes(Compilation& c) {
  std::map<std::string, DotChoice> found;
  for (const auto& [name, choice] : c.request.policy.tiles) {
    if (IsProblem(name)) continue;
    if (HasNode(*c.graph, name)) {
      found.emplace(name, choice);
      if (choice.strips > 0 && c.choice_fault.ok() && !AnyNode(*c.graph, name, MakesPicture))
        c.choice_fault = Invalid(fmt::format(
            "{}: strips={} of node {} is not possible: it makes no picture of a known height",
            choice.where, choice.strips, name));
    } else {
      c.report.notes.push_back(fmt::format("{}: the model has no node {}", choice.where, name));
    }
  }
  return found;
}

// Large constants appear as hashes only.
std::string TextForPeople(const Graph& g) {
  constexpr size_t kMostNodes = 5000;
  return g.order.size() <= kMostNodes ? ToString(g, 1024) : std::string();
}

Status Prepare(Compilation& c) {
  Stopwatch watch;
  std::string note;
  GE_ASSIGN(c.soc, FindSoc(c.request.soc_version, &note));
  if (!note.empty()) c.report.notes.push_back(note);
  c.Progress("import", 0);
  GE_ASSIGN(c.graph, ImportModel(c.request));
  if (c.request.adapt) GE_TRY(c.request.adapt(*c.graph));
  GE_TRY(CheckLabels(*c.graph, c.request.policy));
  const std::map<std::string, DotChoice> of_nodes = ChoicesOfNodes(c);
  c.report.nodes_in = static_cast<int>(c.graph->order.size());
  c.imported_text = TextForPeople(*c.graph);
  watch.Lap(c.report.import_s);

  c.Progress("optimise", 0);
  Policy& policy = c.request.policy;
  if (!policy.report)
    policy.report = [&c](const std::string& line) {
      if (c.rewrites.size() < kMostRewrites) c.rewrites.push_back(line);
      CountRewrite(line, &c.report);
      c.Log(line);
    };
  if (!policy.floats_pay && policy.opt_level > 1)
    policy.floats_pay = CompareByteDots(c.soc, policy);
  if (c.request.refine) {
    RunPasses(*c.graph, policy, PassNames(policy));
    GE_TRY(c.request.refine(*c.graph));
  }
  Optimise(*c.graph, c.soc, policy);
  OrderNodes(*c.graph, c.request.node_order);
  c.report.nodes_out = static_cast<int>(c.graph->order.size());
  watch.Lap(c.report.optimise_s);

  c.Progress("lower", 0);
  FormKernels(c);
  GE_TRY(CheckChoices(of_nodes, c));
  watch.Lap(c.report.lower_s);

  c.Progress("plan", 0);
  GE_ASSIGN(c.planned, BuildPlan(*c.graph, c.regions, c.lowered, policy).In("plan"));
  GE_TRY(UseLeanOrder(c).In("plan"));
  GE_TRY(UseWriteOver(c).In("plan"));
  GE_TRY(UseChannelParts(c).In("plan"));
  GE_TRY(UseStrips(c).In("plan"));
  GE_TRY(KeepLimit(c).In("plan"));
  c.planned.plan.model_name = std::filesystem::path(c.request.model).stem().string();
  c.planned.plan.chip = c.soc.name;
  GE_TRY(ValidatePlan(c.planned.plan));
  c.details = Describe(c.regions, c.lowered, c.planned, c.rewrites);
  LogMemory(c);
  c.report.weight_bytes = c.planned.weight_bytes;
  c.report.arena_bytes = c.planned.plan.arena_bytes;
  c.report.arena_lower_bound = c.planned.arena_lower_bound;
  c.report.arena_unaliased = c.planned.arena_unaliased;
  c.ir_text = TextForPeople(*c.graph);
  watch.Lap(c.report.plan_s);
  return {};
}

// Renumbers the plan's kernels: task.kernel = index[task.kernel], one record per distinct kernel.
void UseDistinctKernels(om::Plan& plan, const std::vector<int>& index,
                        std::vector<om::Kernel> distinct) {
  for (om::Task& t : plan.tasks)
    if (t.kernel >= 0) t.kernel = index[t.kernel];
  plan.kernels = std::move(distinct);
}

void UseKernelText(Planned& p) {
  std::unordered_map<std::string, int> seen;
  std::vector<int> index;
  std::vector<om::Kernel> distinct;
  for (const LoweredKernel* k : p.kernels) {
    std::string text = tile::ToString(k->kernel, /*canonical=*/true);
    auto [it, added] = seen.emplace(text, static_cast<int>(distinct.size()));
    if (added)
      distinct.push_back({.name = k->kernel.name, .hash = "text", .text = std::move(text)});
    index.push_back(it->second);
  }
  UseDistinctKernels(p.plan, index, std::move(distinct));
}

std::vector<const tile::Kernel*> KernelsOf(const Planned& p) {
  std::vector<const tile::Kernel*> kernels;
  for (const LoweredKernel* k : p.kernels) kernels.push_back(&k->kernel);
  return kernels;
}

Result<std::string> GenerateCode(Compilation& c, const emit::CompileOptions& options) {
  GE_ASSIGN(emit::CodeObject object, emit::CompileKernels(KernelsOf(c.planned), c.soc, options));
  std::vector<om::Kernel> distinct(object.hash.size());
  for (size_t i = 0; i < object.index.size(); ++i) {
    om::Kernel& k = distinct[object.index[i]];
    k.name = c.planned.kernels[i]->kernel.name;
    k.hash = object.hash[object.index[i]];
  }
  UseDistinctKernels(c.planned.plan, object.index, std::move(distinct));
  c.report.kernels_compiled += object.compiled;
  return std::move(object.bytes);
}

std::string Description(const Compilation& c) {
  nlohmann::json json{{"command", c.request.command_line},
                      {"model", c.request.model},
                      {"soc", c.soc.name},
                      {"policy", c.request.policy.Key()},
                      {"nodes_in", c.report.nodes_in},
                      {"nodes_out", c.report.nodes_out},
                      {"imported", c.imported_text},
                      {"arena_unaliased", c.report.arena_unaliased},
                      {"arena_values", c.planned.arena_values}};
  if (c.request.description)
    for (const auto& [key, text] : *c.request.description)
      json[key] = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  json.update(c.details);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status Write(Compilation& c, std::string code) {
  om::OmContents file;
  if (c.request.external_weight != 0) {
    GE_ASSIGN(file.external,
              WriteExternalWeights(c.request.output, c.request.external_weight, &c.planned));
  }
  file.plan = c.planned.plan;
  file.code = std::move(code);
  file.cpu_features = c.soc.features;
  file.description = Description(c);
  file.ir_text = std::move(c.ir_text);
  file.weight_bytes = c.planned.weight_bytes;
  file.fill_weights = [&c](std::byte* weights) -> Status {
    for (const WeightSource& w : c.planned.weights) FillWeight(w, weights + w.offset);
    return {};
  };
  return om::WriteOm(c.request.output, file);
}

emit::CompileOptions CodeOptions(const CompileRequest& request) {
  emit::CompileOptions options;
  options.cache_dir = request.cache_dir;
  options.jobs = request.jobs;
  if (request.progress)
    options.progress = [&request](int done, int total) {
      request.progress("compile kernels", total ? static_cast<double>(done) / total : 1);
    };
  return options;
}

Status Finish(Compilation& c) {
  Stopwatch watch;
  std::string code;
  c.report.kernels = static_cast<int>(c.planned.kernels.size());
  if (c.request.policy.interpret_kernels) {
    UseKernelText(c.planned);
  } else if (!c.planned.kernels.empty()) {
    emit::CompileOptions options = CodeOptions(c.request);
    auto compiler = emit::FindCompiler(c.request.compiler);
    if (compiler.ok()) {
      options.compiler = *compiler;
      GE_ASSIGN(code, GenerateCode(c, options));
    } else {
      c.report.notes.push_back(compiler.status().message() +
                               ": the .om holds TileIR text, which only 'ge run' interprets");
      UseKernelText(c.planned);
    }
  }
  c.report.code_bytes = static_cast<int64_t>(code.size());
  watch.Lap(c.report.code_s);
  c.Progress("write", 0);
  GE_TRY(Write(c, std::move(code)));
  watch.Lap(c.report.write_s);
  return {};
}

Result<CompileReport> ReportOf(Compilation& c, Status status) {
  const std::filesystem::path model(c.request.model);
  const auto names = [&](const std::string& file) {
    return status.message().starts_with(file + ": ");
  };
  if (!status.ok() && !names(model.filename().string()) && !names(c.request.model))
    return std::move(status).In(c.request.model);
  if (!status.ok()) return status;
  return std::move(c.report);
}

}  // namespace

Result<std::unique_ptr<Graph>> ImportModel(const CompileRequest& request) {
  if (request.model.ends_with(".ir")) {
    std::ifstream file(request.model);
    if (!file) return Error(Code::kNotFound, request.model + ": cannot open the file");
    std::stringstream text;
    text << file.rdbuf();
    GE_ASSIGN(std::unique_ptr<Graph> graph, ParseGraph(text.str()).In(request.model));
    if (Status s = Verify(*graph); !s.ok()) return Invalid(request.model + ": " + s.message());
    return graph;
  }
  onnx::ImportOptions options;
  options.input_shapes = request.input_shapes;
  options.out_nodes = request.out_nodes;
  options.op_names = request.op_names;
  options.faults = request.faults;
  return onnx::Import(request.model, options);
}

void Optimise(Graph& g, const SocSpec& soc, const Policy& policy) {
  RunPasses(g, policy, PassNames(policy));
  AssignLayouts(g, soc, policy);
}

Result<CompileReport> Compile(const CompileRequest& request) {
  Compilation c;
  c.request = request;
  Status status = Prepare(c);
  if (status.ok()) status = Finish(c);
  return ReportOf(c, std::move(status));
}

std::vector<Result<CompileReport>> CompileMany(const std::vector<CompileRequest>& requests) {
  std::vector<std::unique_ptr<Compilation>> all;
  std::vector<Status> status;
  std::map<std::string, std::vector<const tile::Kernel*>> by_chip;
  std::map<std::string, const Compilation*> first;
  for (const CompileRequest& request : requests) {
    all.push_back(std::make_unique<Compilation>());
    all.back()->request = request;
    status.push_back(Prepare(*all.back()));
    if (!status.back().ok() || request.policy.interpret_kernels) continue;
    auto& kernels = by_chip[all.back()->soc.name];
    for (const tile::Kernel* k : KernelsOf(all.back()->planned)) kernels.push_back(k);
    first.emplace(all.back()->soc.name, all.back().get());
  }
  // Fills the cache in large batches; each model then only links.
  for (auto& [chip, kernels] : by_chip) {
    const CompileRequest& request = first[chip]->request;
    auto compiler = emit::FindCompiler(request.compiler);
    if (!compiler.ok() || request.cache_dir == "off") continue;
    emit::CompileOptions options = CodeOptions(request);
    options.compiler = *compiler;
    auto unused = emit::CompileKernels(kernels, first[chip]->soc, options);
    // A failure is reported by the model that it belongs to, when it is finished.
    (void)unused;
  }
  std::vector<Result<CompileReport>> results;
  for (size_t i = 0; i < all.size(); ++i) {
    if (status[i].ok()) status[i] = Finish(*all[i]);
    results.push_back(ReportOf(*all[i], std::move(status[i])));
    all[i].reset();
  }
  return results;
}

}  // namespace ge
