// See describe.h.
#include "driver/describe.h"

#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "ir/opdef.h"
#include "type/layout.h"

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
  std::set<std::string> origins;
  bool dot = false;  // work for a matrix unit, whatever engine does it here
  for (NodeId n : region.nodes) {
    nodes.push_back(g.node(n).name);
    origins.insert(g.node(n).origin.begin(), g.node(n).origin.end());
    const std::string& op = g.node(n).op->name;
    dot |= op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm" ||
           op == "ConvInteger" || op == "MatMulInteger" || op == "Attend";
  }
  for (NodeId n : region.nodes) origins.erase(g.node(n).name);
  const NodeId main = region.anchor == kNone ? region.nodes.back() : region.anchor;
  return {{"name", region.name}, {"engine", EngineName(region.engine)},
          {"dot", dot},          {"op", g.node(main).op->name},
          {"nodes", nodes},      {"origins", origins}};
}

// Where the elements of a buffer lie: axes and tiles from the outermost, rows before and after.
nlohmann::json DescribeStorage(size_t buffer, const View& view) {
  nlohmann::json order = nlohmann::json::array(), halo = nlohmann::json::array();
  for (size_t k = 0; k < view.order.size(); ++k) {
    order.push_back({view.order[k].axis, view.order[k].tile});
    if (view.halo_lo[k] != 0 || view.halo_hi[k] != 0)
      halo.push_back({view.order[k].axis, view.halo_lo[k], view.halo_hi[k]});
  }
  return {{"buffer", buffer}, {"order", order}, {"halo", halo}};
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
      if (k->tiles > 0) record["tiles"] = k->tiles, record["on_chip"] = k->on_chip_bytes;
      if (!k->problem.empty()) record["problem"] = k->problem, record["tile"] = ToString(k->chosen);
      if (const auto it = region_of.find(k); it != region_of.end()) record["region"] = it->second;
    }
    tasks.push_back(std::move(record));
  }
  nlohmann::json storage = nlohmann::json::array(), temporaries = nlohmann::json::array();
  for (size_t b = 0; b < planned.is_value.size(); ++b)
    if (!planned.is_value[b]) temporaries.push_back(b);
  for (const auto& [buffer, view] : planned.views) storage.push_back(DescribeStorage(buffer, view));
  nlohmann::json lines = nlohmann::json::array();
  for (size_t i = 0; i < rewrites.size() && i < kMostRewrites; ++i) lines.push_back(rewrites[i]);
  return {{"regions", std::move(all)},
          {"tasks", std::move(tasks)},
          {"storage", std::move(storage)},
          {"temporaries", std::move(temporaries)},
          {"rewrites", std::move(lines)}};
}

}  // namespace ge
