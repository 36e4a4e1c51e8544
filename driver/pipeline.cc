// The pass list. Each line says why it stands where it stands; opt/pass.h checks that what a pass
// needs was given by one before it. A pass that finds nothing to do is cheap: the second and third
// constant_folding walk all nodes in 0.02 to 0.6 ms (BERT-base in bytes), so nothing is kept to
// start them from what changed.

#include "driver/pipeline.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/check.h"
#include "driver/evaluate.h"

namespace ge {
namespace {

struct Step {
  std::string_view pass;
  int level;  // the lowest opt_level at which it runs
};

constexpr Step kPipeline[] = {
    {"constant_folding", 1},  // first: exporters' Constant chains and constant conditions
    {"dead_code", 1},         // inlines Ifs with constant conditions, drops what folding freed
    {"loop_invariants",
     1},  // weights that loops carry become captured, which rules and folding see
    {"constant_folding", 1},  // puts captured constants into the bodies
    {"widen", 1},             // before the rules: their patterns have no conversions in between
    {"rules", 1},             // algebra: Conv+BN before anything could split the pair
    {"cse", 1},               // after the rules have made equal things look equal
    {"constant_folding", 1},  // the rules' arithmetic on weights
    {"rules", 1},             // what folding has turned into constants
    {"dead_channels", 2},     // while weights are whole: before bf16 rounds them
    {"bf16", 1},              // after the last rule: they know the operators of the model only
    {"concat_parts", 2},      // before dead code: a Split may lose its readers
    {"dead_code", 1},         // last: regions and plan see live nodes only
};

// $GE_DUMP=stage[,stage]: "all" or names of passes; files NN_pass.ir in the current folder.
bool WantsDump(std::string_view pass) {
  const char* wanted = std::getenv("GE_DUMP");
  if (!wanted) return false;
  const std::string list = std::string(",") + wanted + ",";
  return list.find(",all,") != std::string::npos ||
         list.find("," + std::string(pass) + ",") != std::string::npos;
}

}  // namespace

std::vector<std::string_view> PassNames(const Policy& policy) {
  std::vector<std::string_view> names;
  for (const Step& step : kPipeline) {
    if (step.level > policy.opt_level || policy.disabled.contains(std::string(step.pass))) continue;
    names.push_back(step.pass);
  }
  return names;
}

void RunPasses(Graph& g, const Policy& policy, const std::vector<std::string_view>& names,
               const std::function<void(std::string_view, bool)>& after) {
  if (const Status order = CheckOrder(names); !order.ok()) {
    // A list that a user gave or thinned out may lack a pass on purpose; say so and go on.
    if (policy.report) policy.report("passes: " + order.message());
  }
  const PassServices services{.evaluate = EvaluateConstant};
  int number = 0;
  for (std::string_view name : names) {
    const Pass* pass = FindPass(name);
    GE_CHECK(pass != nullptr, fmt::format("no pass '{}'", name));
    CrashScope scope(std::string(name), [&g] { return ToString(g); });
    const bool changed = pass->run(g, policy, services);
    ++number;
    if (changed && WantsDump(name))
      std::ofstream(fmt::format("{:02}_{}.ir", number, name)) << ToString(g);
    if (after) after(name, changed);
  }
}

}  // namespace ge
