// See atc_tune.h. A problem is what LoweredKernel::problem says: kernels of one problem share their
// choice. The tile of the cost model stays unless another one is faster by more than noise.
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

constexpr int kWidest = 8;  // vectors of columns in a tile
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

// {problem: (tile, ns of all its kernels)}; the least of several runs for each kernel.
Result<std::map<std::string, std::pair<std::string, int64_t>>> Measure(const std::string& path) {
  GE_ASSIGN(Candidate c, Load(path));
  c.run->EnableProfile(true);
  std::vector<int64_t> ns;
  for (int i = -kWarmups; i < kRuns; ++i) {
    GE_TRY(c.Execute());
    const std::vector<int64_t>& now = c.run->profile();
    if (ns.empty() || i == 0) ns = now;
    for (size_t t = 0; t < ns.size(); ++t) ns[t] = std::min(ns[t], now[t]);
  }
  std::map<std::string, std::pair<std::string, int64_t>> times;
  for (size_t t = 0; t < ns.size() && t < c.tasks.size(); ++t) {
    const std::string problem = c.tasks[t].value("problem", "");
    if (problem.empty()) continue;
    auto& [tile, sum] = times[problem];
    tile = c.tasks[t].value("tile", "");
    sum += ns[t];
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

bool ParseTile(const std::string& text, std::pair<int, int>* tile) {
  return std::sscanf(text.c_str(), "%dx%d", &tile->first, &tile->second) == 2 && tile->first > 0 &&
         tile->second > 0;
}

Status WriteTiles(const std::string& path, const TileChoices& tiles) {
  std::ofstream file(path);
  file << "# Register tiles, rows x vectors of columns, by problem or by node. Made by atc "
          "--tune.\n";
  for (const auto& [what, tile] : tiles)
    file << fmt::format("{} = {}x{}\n", what, tile.first, tile.second);
  file.close();
  return file ? Status() : Error(Code::kUnavailable, path + ": cannot write the file");
}

}  // namespace

Result<TileChoices> ReadTiles(const std::string& path) {
  TileChoices tiles;
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    const size_t equals = line.rfind(" = ");
    std::pair<int, int> tile;
    if (equals == std::string::npos || !ParseTile(line.substr(equals + 3), &tile))
      return Invalid(fmt::format("{} line {}: [{}] is not \"problem or node = ROWSxVECTORS\"", path,
                                 number, line));
    tiles[line.substr(0, equals)] = tile;
  }
  return tiles;
}

Status Tune(CompileRequest& request, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  const auto trial = [&](int vectors) { return fmt::format("{}/trial{}.om", folder, vectors); };
  struct Best {
    std::string tile;
    int64_t ns = 0;
  };
  std::map<std::string, Best> best;
  Status fault;
  for (int vectors = 0; vectors <= kWidest && fault.ok(); ++vectors) {
    CompileRequest one = request;
    one.output = trial(vectors);
    one.external_weight = 0;
    one.policy.try_vectors = vectors;
    one.log = {};
    auto compiled = Compile(one);
    if (!compiled.ok()) return compiled.status();
    auto times = Measure(one.output);
    if (!times.ok()) fault = std::move(times).In("tuning runs the model").status();
    if (vectors > 0) std::filesystem::remove(one.output);
    if (!fault.ok()) break;
    for (const auto& [problem, measured] : *times) {
      Best& b = best[problem];
      const double needed = b.tile.empty() ? 0 : vectors == 0 ? 1 : kGain;
      if (b.tile.empty() ||
          static_cast<double>(measured.second) < needed * static_cast<double>(b.ns))
        b = {measured.first, measured.second};
    }
    std::printf("tune: %s, %zu problems\n",
                vectors == 0 ? "tiles of the cost model"
                             : fmt::format("tiles of {} vectors", vectors).c_str(),
                times->size());
    std::fflush(stdout);
  }
  if (!fault.ok()) {
    std::filesystem::remove(trial(0));
    return fault;
  }
  GE_ASSIGN(TileChoices tiles, ReadTiles(path));
  for (const auto& [problem, b] : best) {
    std::pair<int, int> tile;
    if (ParseTile(b.tile, &tile)) tiles[problem] = request.policy.tiles[problem] = tile;
  }
  GE_TRY(WriteTiles(path, tiles));
  CompileRequest tuned = request;
  tuned.output = trial(1);
  tuned.external_weight = 0;
  tuned.log = {};
  auto compiled = Compile(tuned);
  if (!compiled.ok()) return compiled.status();
  auto race = Race(trial(0), tuned.output);
  for (int i : {0, 1}) std::filesystem::remove(trial(i));
  if (!race.ok()) return race.status();
  std::printf("tune: untuned %.3f ms, tuned %.3f ms, ratio %.3f; choices in %s\n", race->first,
              race->second, race->first / race->second, path.c_str());
  return {};
}

}  // namespace ge
