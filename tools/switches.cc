// See switches.h.

#include "tools/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "om/lanes.h"
#include "opt/pass.h"
#include "opt/rule.h"

namespace ge {
namespace {

using Switch = std::pair<std::string, bool>;

// CANN's names of what has a twin here.
constexpr std::pair<std::string_view, std::string_view> kTwins[] = {
    {"AABiasaddConvFusion", "conv_add"},
    {"ConvBatchnormFusionPass", "conv_batch_norm"},
    {"BatchNormBnInferFusionPass", "conv_batch_norm"},
    {"HostBNFusionPass", "conv_batch_norm"},
    {"Conv2DQuantProcessFusionPass", "quantised_conv"},
    {"MatmulV2QuantProcessFusionPass", "quantised_matmul"},
    {"LayerNormONNXFusionPass", "layer_norm"},
    {"PermuteFusionPass", "transpose_chain"},
    {"PermutePass", "transpose_chain"},
    {"UnchangedTransposeRemovePass", "transpose_identity"},
    {"Dim1TransposeToSqueezePass", "transpose_as_reshape"},
    {"CastRemovePass", "cast_same"},
    {"CastRemoveFusionPass", "cast_same"},
    {"IdentityPass", "identity"},
    {"ReshapeRemovePass", "reshape_same"},
    {"NoUseReshapeRemovePass", "reshape_same"},
    {"ReshapeRecoveryPass", "reshape_reshape"},
    {"ConstantFoldingPass", "constant_folding"},
    {"CommonSubexpressionEliminationPass", "cse"},
    {"PrunePass", "dead_code"},
    {"UnusedConstPass", "dead_code"},
    {"TransOpSymmetryEliminationPass", "layout"},
    {"TbeConvCommonRules0FusionPass", "cube"},
    {"TbeConvCommonRules2FusionPass", "cube"},
};

std::string Own(const std::string& name) {
  for (const auto& [theirs, own] : kTwins)
    if (theirs == name) return std::string(own);
  return name;
}

bool Known(const std::string& name) {
  if (std::ranges::count(kSteps, name) > 0 || FindPass(name) != nullptr) return true;
  for (const Rule* r : AllRules())
    if (r->name == name) return true;
  return false;
}

void Apply(const Switch& s, bool regions, Policy* policy, std::vector<std::string>* notes) {
  if (s.first == "ALL" && regions) {
    policy->max_region_nodes = s.second ? Policy().max_region_nodes : 1;
    return;
  }
  if (s.first == "ALL") {
    for (const Rule* r : AllRules()) {
      if (s.second)
        policy->disabled.erase(std::string(r->name));
      else
        policy->disabled.insert(std::string(r->name));
    }
    return;
  }
  const std::string name = Own(s.first);
  if (!Known(name)) {
    notes->push_back(fmt::format(
        "[{}] names no pass or rule of this version; ge opt --list prints all", s.first));
  } else if (s.second) {
    policy->disabled.erase(name);
  } else {
    policy->disabled.insert(name);
  }
}

// "Name:off", separated by lines or ';'.
Fault ReadLines(const std::string& text, char separator, const std::string& option,
                std::vector<Switch>* switches) {
  int number = 0;
  for (const std::string& line : SplitList(text, separator)) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const size_t colon = line.rfind(':');
    const std::string name = SplitList(line.substr(0, colon), '\n')[0];
    const std::string value =
        colon == std::string::npos ? "" : SplitList(line.substr(colon + 1), '\n')[0];
    if (name.empty() || (value != "on" && value != "off"))
      return {option == "optimization_switch" ? "E10003" : "E10014",
              fmt::format("[--{}] entry {}: [{}] is not Name:on or Name:off", option, number, line),
              "Name:off"};
    switches->emplace_back(name, value == "on");
  }
  return {};
}

// {"Switch": {"GraphFusion": {"ALL": "off", "X": "on"}, "UBFusion": {...}}}; ALL first.
Fault ReadJson(const std::string& text, std::vector<Switch>* graph, std::vector<Switch>* regions) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("Switch") || !json["Switch"].is_object())
    return {"E13005", "[--fusion_switch_file] is not JSON with a member \"Switch\"",
            "{\"Switch\": {\"GraphFusion\": {\"Name\": \"off\"}, \"UBFusion\": {}}}"};
  for (const auto& [section, list] :
       {std::pair{"GraphFusion", graph}, std::pair{"UBFusion", regions}}) {
    const auto it = json["Switch"].find(section);
    if (it == json["Switch"].end()) continue;
    for (const auto& [name, value] : it->items()) {
      if (value != "on" && value != "off")
        return {"E10014",
                fmt::format("[--fusion_switch_file] {}: {} is neither on nor off", section, name),
                "\"on\" or \"off\""};
      list->insert(name == "ALL" ? list->begin() : list->end(), Switch{name, value == "on"});
    }
  }
  return {};
}

// cv, LoadBalance:N, MainStream:N (checked when the options are read): streams for independent
// tasks.
void ApplyStreams(const AtcOptions& options, Policy* policy) {
  if (options.Is("enable_single_stream", "true")) policy->max_streams = 1;
  const std::string mode = options.Get("multi_stream_parallel_mode");
  if (const size_t colon = mode.find(':'); colon != std::string::npos)
    policy->max_streams = std::atoi(mode.c_str() + colon + 1);
}

// "Node:label;Other:label"; names of nodes may hold colons.
Fault ReadLabels(const std::string& text, Policy* policy) {
  std::set<std::string> labels;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == part.size())
      return {"E10003", fmt::format("Value [{}] in [--stream_labels] is not node:label", part),
              "/encoder/conv1:left;/encoder/conv2:right"};
    const std::string node = part.substr(0, colon), label = part.substr(colon + 1);
    if (const auto [at, fresh] = policy->stream_labels.emplace(node, label);
        !fresh && at->second != label)
      return {"E10003",
              fmt::format("[--stream_labels] gives [{}] the labels [{}] and [{}]", node, at->second,
                          label),
              "one label for each node"};
    labels.insert(label);
  }
  if (labels.size() > om::kMostLanes)
    return {"E10001", fmt::format("[--stream_labels] has {} labels", labels.size()),
            fmt::format("at most {}", om::kMostLanes)};
  return {};
}

}  // namespace

Fault ApplySwitches(const AtcOptions& options, Policy* policy, std::vector<std::string>* notes) {
  std::vector<Switch> graph, regions, last;
  if (options.Has("fusion_switch_file")) {
    std::string text;
    if (Fault f = ReadSmallFile("fusion_switch_file", options.Get("fusion_switch_file"), &text);
        f.any())
      return f;
    const size_t first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string::npos && text[first] == '{';
    if (Fault f = json ? ReadJson(text, &graph, &regions)
                       : ReadLines(text, '\n', "fusion_switch_file", &graph);
        f.any())
      return f;
  }
  if (Fault f = ReadLines(options.Get("optimization_switch"), ';', "optimization_switch", &last);
      f.any())
    return f;
  for (const std::string& name : SplitList(options.Get("disable_passes"), ','))
    if (!name.empty()) Apply({name, false}, false, policy, notes);
  if (options.Is("oo_constant_folding", "false")) policy->disabled.insert("constant_folding");
  if (options.Is("oo_dead_code_elimination", "false")) policy->disabled.insert("dead_code");
  ApplyStreams(options, policy);
  if (Fault f = ReadLabels(options.Get("stream_labels"), policy); f.any()) return f;
  if (options.Has("memory_limit")) {
    const std::string text = options.Get("memory_limit");
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), policy->memory_limit);
    if (error != std::errc() || end != text.data() + text.size() || policy->memory_limit <= 0)
      return {"E10001", fmt::format("Value [{}] for [--memory_limit] is no number of bytes", text),
              "a positive integer"};
  }
  for (const Switch& s : graph) Apply(s, false, policy, notes);
  for (const Switch& s : regions) Apply(s, true, policy, notes);
  for (const Switch& s : last) Apply(s, false, policy, notes);
  return {};
}

}  // namespace ge
