// See describe.h.
#include "driver/describe.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ir/opdef.h"

namespace ge {
namespace {

const char* EngineName(Engine engine) {
  switch (engine) {
    case Engine::kVector: return "vector";
    case Engine::kCube: return "cube";
    case Engine::kHost: return "host";
    case Engine::kControl: return "control";
  }
  return "";
}

nlohmann::json DescribeRegion(const Graph& g, const Region& region) {
  nlohmann::json nodes = nlohmann::json::array();
  bool dot = false;  // work for a matrix unit, whatever engine does it here
  for (NodeId n : region.nodes) {
    nodes.push_back(g.node(n).name);
    const std::string& op = g.node(n).op->name;
    dot |= op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm" ||
           op == "ConvInteger" || op == "MatMulInteger";
  }
  return {
      {"name", region.name}, {"engine", EngineName(region.engine)}, {"dot", dot}, {"nodes", nodes}};
}

}  // namespace

nlohmann::json Describe(const RegionMap& regions, const LoweredMap& lowered, const Planned& planned,
                        const std::vector<std::string>& rewrites) {
  nlohmann::json all = nlohmann::json::array(), tasks = nlohmann::json::array();
  std::unordered_map<const LoweredKernel*, size_t> region_of;
  for (const auto& [g, list] : regions) {
    const std::vector<Lowered>& code = lowered.at(g);
    for (size_t r = 0; r < list.size(); ++r) {
      for (const LoweredKernel& k : code[r].kernels) region_of[&k] = all.size();
      all.push_back(DescribeRegion(*g, list[r]));
    }
  }
  for (const om::Task& task : planned.plan.tasks) {
    nlohmann::json record = nlohmann::json::object();
    if (task.kernel >= 0) {
      const LoweredKernel* k = planned.kernels[static_cast<size_t>(task.kernel)];
      record = {{"schedule", k->schedule}, {"flops", k->flops}, {"bytes", k->bytes}};
      if (!k->problem.empty()) record["problem"] = k->problem, record["tile"] = k->tile;
      if (const auto it = region_of.find(k); it != region_of.end()) record["region"] = it->second;
    }
    tasks.push_back(std::move(record));
  }
  nlohmann::json lines = nlohmann::json::array();
  for (size_t i = 0; i < rewrites.size() && i < kMostRewrites; ++i) lines.push_back(rewrites[i]);
  return {{"regions", std::move(all)}, {"tasks", std::move(tasks)}, {"rewrites", std::move(lines)}};
}

}  // namespace ge
