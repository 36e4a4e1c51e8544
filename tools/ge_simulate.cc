// ge simulate: what a compiled model would take on a modelled chip.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file_map.h"
#include "om/file.h"
#include "om/size.h"
#include "tools/json_member.h"
#include "tools/numbers.h"
#include "tools/session.h"
#include "tools/simulate.h"
#include "tools/verbs.h"

namespace ge {
namespace {

using Json = nlohmann::json;

struct SimulateOptions {
  std::string model, chip = "Ascend910", trace;
  std::vector<std::string> shapes;
  int streams = 8;
  bool sources = false, json = false;
};

// In the form of GE_TRACE: one row for each stream.
Status WriteTrace(const std::string& path, const om::Plan& plan, const Simulation& sim) {
  Json events = Json::array();
  for (const SimulatedTask& t : sim.tasks) {
    events.push_back({{"name", plan.tasks[static_cast<size_t>(t.task)].name},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", t.stream},
                      {"ts", t.begin_us},
                      {"dur", t.end_us - t.begin_us},
                      {"args", {{"task", t.task}, {"cores", t.cores}}}});
  }
  return WriteFile(path, Json{{"traceEvents", events}}.dump());
}

void Print(const om::OmView& view, const ChipModel& chip, const Simulation& sim) {
  const om::Plan& plan = view.plan;
  const auto mb = [](double bytes) { return fmt::format("{:.2f} MB", bytes / 1e6); };
  int launched = 0;
  for (const om::Task& t : plan.tasks)
    launched += t.kind == om::TaskKind::kLaunch || t.kind == om::TaskKind::kHost;
  const double scale = chip.bytes_per_f32 / 4;
  fmt::print("model {} on {}\n", plan.model_name, chip.name);
  fmt::print("operators launched     {}\n", launched);
  fmt::print("intermediate reads     {}, {}\n", sim.reads, mb(sim.read_bytes));
  fmt::print("intermediate writes    {}, {}\n", sim.writes, mb(sim.written_bytes));
  fmt::print("on-chip hit rate       {:.1f} % of values, {:.1f} % with weights\n",
             100 * sim.value_hit_rate, 100 * sim.hit_rate);
  if (sim.spills > 0)
    fmt::print("spilled and fetched    {} and {}, {} to and from the host\n", sim.spills,
               sim.fetches, mb(sim.moved_bytes));
  fmt::print("main memory traffic    {}\n", mb(sim.memory_bytes));
  fmt::print("peak memory            {}\n",
             plan.arena_bytes < 0 ? "placed for each shape"
                                  : mb(scale * static_cast<double>(plan.arena_bytes) +
                                       scale * static_cast<double>(view.weights.size())));
  fmt::print("streams, events        {}, {}\n", sim.streams, sim.events);
  fmt::print("dispatch share         {:.1f} %\n",
             sim.total_us > 0 ? 100 * sim.launch_us / sim.total_us : 0);
  fmt::print("latency                {:.1f} us\n", sim.total_us);
}

void PrintJson(const om::OmView& view, const ChipModel& chip, const Simulation& sim) {
  int launched = 0;
  for (const om::Task& t : view.plan.tasks)
    launched += t.kind == om::TaskKind::kLaunch || t.kind == om::TaskKind::kHost;
  const Json out = {{"chip", chip.name},
                    {"launched", launched},
                    {"reads", sim.reads},
                    {"writes", sim.writes},
                    {"read_bytes", sim.read_bytes},
                    {"written_bytes", sim.written_bytes},
                    {"hit_rate", sim.hit_rate},
                    {"value_hit_rate", sim.value_hit_rate},
                    {"memory_bytes", sim.memory_bytes},
                    {"spills", sim.spills},
                    {"fetches", sim.fetches},
                    {"moved_bytes", sim.moved_bytes},
                    {"arena_bytes", view.plan.arena_bytes},
                    {"weight_bytes", view.weights.size()},
                    {"bytes_scale", chip.bytes_per_f32 / 4},
                    {"streams", sim.streams},
                    {"events", sim.events},
                    {"launch_us", sim.launch_us},
                    {"total_us", sim.total_us}};
  fmt::print("{}\n", out.dump());
}

Status Run(const SimulateOptions& o) {
  GE_ASSIGN(const ChipModel chip, FindChipModel(o.chip));
  if (o.sources) {
    for (const auto& s : chip.sources) fmt::print("{}: {}\n", s.number, s.from);
    if (o.model.empty()) return {};
  }
  if (o.model.empty()) return Invalid("no model given");
  GE_ASSIGN(FileMap file, FileMap::Open(o.model));
  GE_ASSIGN(om::OmView view, om::ReadOm(file.bytes(), false));
  GE_ASSIGN(const std::vector<int64_t> symbols, SymbolsFor(view.plan, o.shapes));
  const std::vector<TaskWork> work = WorkOf(view.description, view.plan.tasks.size());
  const Simulation sim = Simulate(view.plan, work, chip, symbols, o.streams);
  if (o.json)
    PrintJson(view, chip, sim);
  else
    Print(view, chip, sim);
  return o.trace.empty() ? Status() : WriteTrace(o.trace, view.plan, sim);
}

}  // namespace

std::vector<TaskWork> WorkOf(std::string_view description, size_t tasks) {
  std::vector<TaskWork> work(tasks);
  const Json json = Json::parse(description, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("tasks") || !json.contains("regions")) return work;
  for (size_t t = 0; t < tasks; ++t) {
    const Json& task = ElementOrNull(json["tasks"], t);
    work[t].flops = std::max(0.0, MemberOr(task, "flops", 0.0));
    work[t].bytes = std::max(0.0, MemberOr(task, "bytes", 0.0));
    const auto region = static_cast<size_t>(MemberOr(task, "region", int64_t{-1}));
    work[t].cube = MemberOr(ElementOrNull(json["regions"], region), "dot", false);
  }
  return work;
}

void AddSimulateVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("simulate", "what a model would take on a modelled chip");
  auto o = std::make_shared<SimulateOptions>();
  verb->add_option("model", o->model, ".om file");
  verb->add_option("--soc", o->chip, "Ascend310, Ascend310P, Ascend910, Ascend910B or host");
  verb->add_option("--streams", o->streams, "the most streams that may be used")->check(AtLeast(1));
  verb->add_option("--shape", o->shapes, "NAME:dims of a dynamic input")->expected(1, 1 << 16);
  verb->add_option("--trace", o->trace, "writes the timeline in Chrome's form");
  verb->add_flag("--sources", o->sources, "where each number of the chip is from");
  verb->add_flag("--json", o->json, "one line of JSON");
  verb->callback([o, &exit_code] { exit_code = ExitCode(Run(*o), o->model); });
}

}  // namespace ge
