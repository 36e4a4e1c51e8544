// See atc_tune.h. A problem is what LoweredKernel::problem says: kernels of one problem share their
// choice.
#include "tools/atc_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file_map.h"
#include "om/file.h"
#include "tools/session.h"

namespace ge {
namespace {

constexpr int kWarmups = 2, kRuns = 9;
constexpr double kGain = 0.98;  // of the cost model's time, to be replaced

// A compiled model, ready to run.
struct Candidate {
  std::shared_ptr<const rt::Model> model;
  std::unique_ptr<rt::Run> run;
  std::vector<Array> arrays;
  std::vector<rt::Tensor> inputs, outputs;
  nlohmann::json tasks;  // as the description has them

  Status Execute() {
    for (rt::Tensor& t : outputs) t = rt::Tensor{};
    return run->Execute(inputs, outputs);
  }
};

Result<Candidate> Load(const std::string& path) {
  Candidate c;
  GE_ASSIGN(FileMap file, FileMap::Open(path));
  GE_ASSIGN(om::OmView view, om::ReadOm(file.bytes(), false));
  auto description = nlohmann::json::parse(view.description, nullptr, /*allow_exceptions=*/false);
  if (description.is_object()) c.tasks = description.value("tasks", nlohmann::json::array());
  GE_ASSIGN(c.model, LoadModel(path, 1));
  GE_ASSIGN(c.arrays, BindInputs(*c.model, {}));
  GE_ASSIGN(c.run, rt::Run::Create(c.model));
  c.inputs = Tensors(c.arrays);
  c.outputs.resize(c.model->plan().outputs.size());
  return c;
}

// {problem: ns of all tasks of its regions}; the least of several runs for each task.
Result<std::map<std::string, int64_t>> Measure(const std::string& path) {
  GE_ASSIGN(Candidate c, Load(path));
  c.run->EnableProfile(true);
  std::vector<int64_t> ns;
  for (int i = -kWarmups; i < kRuns; ++i) {
    GE_TRY(c.Execute());
    const std::vector<int64_t>& now = c.run->profile();
    if (ns.empty() || i == 0) ns = now;
    for (size_t t = 0; t < ns.size(); ++t) ns[t] = std::min(ns[t], now[t]);
  }
  std::map<int, std::string> problem_of;
  for (const auto& task : c.tasks)
    if (task.contains("problem")) problem_of[task.value("region", -1)] = task["problem"];
  std::map<std::string, int64_t> times;
  for (size_t t = 0; t < ns.size() && t < c.tasks.size(); ++t) {
    const auto at = problem_of.find(c.tasks[t].value("region", -1));
    if (at != problem_of.end()) times[at->second] += ns[t];
  }
  return times;
}

// Medians in ms, the two models in turns.
Result<std::pair<double, double>> Race(const std::string& a, const std::string& b) {
  GE_ASSIGN(Candidate first, Load(a));
  GE_ASSIGN(Candidate second, Load(b));
  std::vector<double> ms[2];
  for (int i = -kWarmups; i < kRuns; ++i) {
    for (int side = 0; side < 2; ++side) {
      const auto t = std::chrono::steady_clock::now();
      GE_TRY((side == 0 ? first : second).Execute());
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - t;
      if (i >= 0) ms[side].push_back(took.count());
    }
  }
  for (auto& m : ms) std::sort(m.begin(), m.end());
  return std::pair(ms[0][kRuns / 2], ms[1][kRuns / 2]);
}

Status WriteTiles(const std::string& path, const TileChoices& tiles) {
  std::string text =
      "# Tiling of dots by problem or by node (docs/speed.md). Made by atc --tune.\n";
  for (const auto& [what, choice] : tiles) text += fmt::format("{} = {}\n", what, ToString(choice));
  return WriteFile(path, text);
}

// What is known of a problem while it is tuned.
struct Tuned {
  std::vector<DotChoice> choices;  // the first one is the cost model's
  size_t best = 0;
  int64_t least_ns = 0, first_ns = 0;
};

// Compiles and runs the model with choice `round` of each problem that has so many.
Status TryRound(const CompileRequest& request, const std::string& om, size_t round,
                std::map<std::string, Tuned>* problems) {
  CompileRequest one = request;
  one.output = om;
  one.external_weight = 0;
  one.log = {};
  for (const auto& [problem, tuned] : *problems)
    if (round < tuned.choices.size()) one.policy.tiles[problem] = tuned.choices[round];
  auto compiled = Compile(one);
  if (!compiled.ok()) return compiled.status();
  if (round == 0)
    for (auto& [problem, choices] : compiled->choices)
      (*problems)[problem].choices = std::move(choices);
  auto times = Measure(om);
  if (!times.ok()) return std::move(times).In("tuning runs the model").status();
  for (const auto& [problem, ns] : *times) {
    Tuned& tuned = (*problems)[problem];
    if (round == 0) tuned.first_ns = tuned.least_ns = ns;
    // The cost model's choice stays unless another is faster by more than noise.
    const double needed = kGain * static_cast<double>(tuned.first_ns);
    if (round >= tuned.choices.size() || static_cast<double>(ns) >= needed || ns >= tuned.least_ns)
      continue;
    tuned.best = round;
    tuned.least_ns = ns;
  }
  return {};
}

}  // namespace

Result<TileChoices> ReadTiles(const std::string& path) {
  TileChoices tiles;
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    const std::string where = fmt::format("{} line {}", path, number);
    const size_t equals = line.rfind(" = ");
    if (equals == std::string::npos)
      return Invalid(fmt::format("{}: [{}] is not \"problem or node = choices\"", where, line));
    GE_ASSIGN(DotChoice choice, ParseDotChoice(line.substr(equals + 3)).In(where));
    choice.where = where;
    const std::string name = line.substr(0, equals);
    const auto [first, fresh] = tiles.emplace(name, std::move(choice));
    if (!fresh)
      return Invalid(fmt::format("{}: {} has a line already: {}; one is allowed", where, name,
                                 first->second.where));
  }
  return tiles;
}

Status Tune(CompileRequest& request, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  const auto trial = [&](size_t round) { return fmt::format("{}/trial{}.om", folder, round); };
  const auto begin = std::chrono::steady_clock::now();
  std::map<std::string, Tuned> problems;
  size_t rounds = 1;
  Status fault;
  for (size_t round = 0; round < rounds && fault.ok(); ++round) {
    fault = TryRound(request, trial(round), round, &problems);
    if (round > 0) std::filesystem::remove(trial(round));
    for (const auto& [problem, tuned] : problems) rounds = std::max(rounds, tuned.choices.size());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (fault.ok())
      std::printf("tune: %zu problems, choice %zu of at most %zu, %.1f s\n", problems.size(),
                  round + 1, rounds, took.count());
    std::fflush(stdout);
  }
  CompileRequest tuned = request;
  GE_ASSIGN(TileChoices tiles, ReadTiles(path));
  for (const auto& [problem, p] : problems)
    if (p.best < p.choices.size()) tiles[problem] = tuned.policy.tiles[problem] = p.choices[p.best];
  tuned.output = trial(1);
  tuned.external_weight = 0;
  tuned.log = {};
  if (fault.ok()) fault = Compile(tuned).status();
  auto race = fault.ok() ? Race(trial(0), tuned.output) : fault;
  for (size_t i : {0, 1}) std::filesystem::remove(trial(i));
  if (!race.ok()) return race.status();
  std::printf("tune: untuned %.3f ms, tuned %.3f ms, ratio %.3f; ", race->first, race->second,
              race->first / race->second);
  // What single kernels gained may be noise, or lost by others.
  if (race->second > race->first) {
    std::printf("the cost model's choices stay\n");
    return std::filesystem::exists(path) ? Status() : WriteTiles(path, {});
  }
  GE_TRY(WriteTiles(path, tiles));
  request.policy.tiles = tuned.policy.tiles;
  std::printf("choices in %s\n", path.c_str());
  return {};
}

}  // namespace ge
