// Compile: model file in, .om file out. The whole flow in one readable function (compile.cc).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/node_order.h"
#include "ir/graph.h"
#include "ir/policy.h"
#include "soc/soc.h"

namespace ge {

namespace onnx {
struct NodeFault;
}

struct CompileRequest {
  std::string model;   // path of an .onnx file, or of AscendIR text (.ir)
  std::string output;  // path of the .om file
  std::map<std::string, std::vector<std::string>> input_shapes;
  std::vector<std::string> out_nodes;              // see onnx::ImportOptions
  std::map<std::string, std::string> op_names;     // see onnx::ImportOptions
  std::vector<onnx::NodeFault>* faults = nullptr;  // see onnx::ImportOptions
  // Changes the imported graph (types of inputs and outputs, preprocessing) before all passes.
  std::function<Status(Graph&)> adapt;
  // Changes the graph as the passes leave it (types of arithmetic); the passes run once more.
  std::function<Status(Graph&)> refine;
  NodeOrder node_order = NodeOrder::kModel;
  std::string soc_version;
  Policy policy;
  std::string cache_dir;     // of compiled kernels; "" = default, "off"
  std::string compiler;      // C compiler; "" = search
  std::string command_line;  // recorded in the .om
  // Further members of the description: JSON texts by key. Read when the file is written.
  std::shared_ptr<std::map<std::string, std::string>> description;
  // Where weights lie: 0 in the .om, 1 a file for each, 2 one file of all, in weight/ beside it.
  int external_weight = 0;
  bool count_rewrites = false;  // fill CompileReport::rules and misses; always done with a log
  int jobs = 0;
  std::function<void(const std::string& stage, double fraction)> progress;
  std::function<void(const std::string& line)> log;  // info lines
};

struct CompileReport {
  double import_s = 0, optimise_s = 0, lower_s = 0, code_s = 0, plan_s = 0, write_s = 0;
  int nodes_in = 0, nodes_out = 0, regions = 0, kernels = 0, kernels_compiled = 0;
  int64_t weight_bytes = 0, arena_bytes = -1, code_bytes = 0;
  int64_t arena_lower_bound = -1;  // the largest sum of sizes alive at one task, if all are static
  int64_t arena_unaliased = -1;    // the same if no two values shared bytes
  std::map<std::string, int> rules;   // how often each rewrite applied
  std::map<std::string, int> misses;  // and nearly did
  // By problem: what was chosen for it, then other choices, the best by the cost model first.
  std::map<std::string, std::vector<DotChoice>> choices;
  std::vector<std::string> notes;
};

Result<CompileReport> Compile(const CompileRequest& request);
// Many models at once: their missing kernels are compiled together. One result per request.
std::vector<Result<CompileReport>> CompileMany(const std::vector<CompileRequest>& requests);

// Import, passes, layout: the graph as it would be lowered (ge opt, tests).
Result<std::unique_ptr<Graph>> ImportModel(const CompileRequest& request);
void Optimise(Graph& g, const SocSpec& soc, const Policy& policy);

}  // namespace ge
