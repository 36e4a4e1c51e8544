// See model_io.h.

#include "tools/model_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/expand.h"

namespace ge {
namespace {

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"FP32", DType::kF32},   {"FP16", DType::kF16},          {"UINT8", DType::kU8},
    {"INT8", DType::kI8},    {"UINT16", DType::kU16},        {"INT16", DType::kI16},
    {"UINT32", DType::kU32}, {"INT32", DType::kI32},         {"UINT64", DType::kU64},
    {"INT64", DType::kI64},  {"DOUBLE", DType::kF64},        {"FP8E5M2", DType::kF8E5M2},
    {"BF16", DType::kBF16},  {"FP8E4M3FN", DType::kF8E4M3FN}};

Fault ReadType(const std::string& text, DType* dtype) {
  if (text == "HIF8")
    return {"E10055", "[--output_type=HIF8] is not supported", "FP16 or FP8E4M3FN"};
  for (const auto& [name, type] : kTypes)
    if (name == text) *dtype = type;
  if (*dtype != DType::kNone) return {};
  return {
      "E10001", fmt::format("Value [{}] for parameter [--output_type] is invalid", text),
      "FP32, FP16, UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64, DOUBLE, FP8E5M2 or "
      "FP8E4M3FN"};
}

}  // namespace

Fault ReadOutputTypes(const AtcOptions& options, std::vector<OutputType>* types) {
  const std::string text = options.Get("output_type");
  if (text.empty()) return {};
  if (text.find(':') == std::string::npos) return ReadType(text, &types->emplace_back().dtype);
  if (!options.Has("out_nodes"))
    return {"E10057", "[--output_type] for single outputs needs [--out_nodes]", "give both"};
  const std::vector<std::string> outputs = SplitList(options.Get("out_nodes"), ';');
  for (const std::string& part : SplitList(text, ';')) {
    if (part.empty()) continue;
    const size_t colon = part.rfind(':');
    const std::string name = part.substr(0, colon);
    const auto it = std::find(outputs.begin(), outputs.end(), name);
    if (colon == std::string::npos || it == outputs.end())
      return {
          "E10003",
          fmt::format("[{}] in [--output_type] is not an entry of [--out_nodes] and a type", part),
          "node:0:FP16;..."};
    OutputType& type = types->emplace_back();
    type.output = static_cast<int>(it - outputs.begin());
    if (Fault f = ReadType(part.substr(colon + 1), &type.dtype); f.any()) return f;
    for (const OutputType& other : *types)
      if (other.output == type.output && other.dtype != type.dtype)
        return {"E10003", fmt::format("[--output_type] gives [{}] two types", name),
                "one type for each output"};
  }
  return {};
}

Fault ApplyOutputTypes(const std::vector<OutputType>& types, Graph* g) {
  for (size_t i = 0; i < g->outputs.size(); ++i) {
    for (const OutputType& t : types) {
      if (t.output >= 0 && t.output != static_cast<int>(i)) continue;
      const ValueId v = g->outputs[i];
      if (g->value(v).kind != ValueKind::kTensor || g->value(v).type.dtype == t.dtype) continue;
      const std::string name = g->value(v).name;
      if (g->value(v).type.dtype == DType::kString)
        return {"E10003", fmt::format("output [{}] holds strings: it has no other type", name),
                "leave it out"};
      g->value(v).name = name + ".uncast";
      const NodeId n = g->AddNode(*FindOp("", "Cast"), name + "_output_type", {v}, 1);
      g->node(n).attrs["to"] = static_cast<int64_t>(t.dtype);
      if (Status s = Infer(*g, g->node(n)); !s.ok()) return {"E10003", s.message(), "another type"};
      g->outputs[i] = g->node(n).outputs[0];
      g->value(g->outputs[i]).name = name;
    }
  }
  return {};
}

Fault ApplyFp16Inputs(const std::vector<std::string>& names, Graph* g) {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    size_t at = 0;
    while (at < g->inputs.size() && g->value(g->inputs[at]).name != name) ++at;
    if (at == g->inputs.size()) {
      const bool node = std::any_of(g->order.begin(), g->order.end(),
                                    [&](NodeId n) { return g->node(n).name == name; });
      std::string all;
      for (ValueId v : g->inputs) all += (all.empty() ? "" : ", ") + g->value(v).name;
      return {node ? "E10017" : "E10016",
              fmt::format("[--input_fp16_nodes]: [{}] is {}", name,
                          node ? "a node and no input" : "not in the model"),
              "inputs are " + all};
    }
    const ValueId old = g->inputs[at];
    if (!IsFloat(g->value(old).type.dtype))
      return {"E10003",
              fmt::format("[--input_fp16_nodes]: input [{}] holds {}", name,
                          Name(g->value(old).type.dtype)),
              "inputs of floating-point type"};
    TensorType type = g->value(old).type;
    if (type.dtype == DType::kF16) continue;
    const DType was = type.dtype;
    type.dtype = DType::kF16;
    g->value(old).name = name + ".cast";
    const ValueId half = g->AddInput(name, type);
    g->inputs.pop_back();
    g->inputs[at] = half;
    const NodeId n = g->AddNode(*FindOp("", "Cast"), name + "_fp16", {half}, 0);
    g->node(n).attrs["to"] = static_cast<int64_t>(was);
    g->node(n).outputs = {old};
    g->value(old).producer = n;
    g->order.pop_back();
    g->order.insert(g->order.begin(), n);
  }
  return {};
}

Fault ReadOpNames(const AtcOptions& options, std::map<std::string, std::string>* names) {
  if (!options.Has("op_name_map")) return {};
  std::string text;
  if (Fault f = ReadSmallFile("op_name_map", options.Get("op_name_map"), &text); f.any()) return f;
  int number = 0;
  for (const std::string& line : SplitList(text, '\n')) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const auto parts = SplitList(line, ':');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty())
      return {"E10014",
              fmt::format("[--op_name_map] line {}: [{}] is not Custom:Standard", number, line),
              "Custom:Standard"};
    if (FindOp("", parts[1]) == nullptr)
      return {"E13010",
              fmt::format("[--op_name_map] line {}: no operator is called {}", number, parts[1]),
              "names of ONNX operators"};
    if (const auto [at, fresh] = names->emplace(parts[0], parts[1]);
        !fresh && at->second != parts[1])
      return {"E10014",
              fmt::format("[--op_name_map] line {}: {} is {} and {}", number, parts[0], at->second,
                          parts[1]),
              "one operator for each name"};
  }
  return {};
}

std::string TensorsJson(const Graph& g, const std::vector<ValueId>& values,
                        const std::string& format) {
  auto list = nlohmann::json::array();
  for (ValueId v : values) {
    const TensorType& type = g.value(v).type;
    auto dims = nlohmann::json::array();
    for (Expr d : type.dims) dims.push_back(d.IsConst() ? d.value() : -1);
    list.push_back({{"name", g.value(v).name},
                    {"dtype", Name(type.dtype)},
                    {"dims", dims},
                    {"format", type.dims.size() == 4 ? format : "ND"}});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ge
