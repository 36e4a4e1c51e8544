// --mode=1, 3, 5 and 6: what is in an .om, a model or a text dump; what of a model is not
// supported.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "abi/dtype.h"
#include "base/file_map.h"
#include "driver/compile.h"
#include "import/onnx/import.h"
#include "ir/opdef.h"
#include "ir/text.h"
#include "om/fields.h"
#include "om/file.h"
#include "om/size.h"
#include "tools/atc_compile.h"
#include "tools/json_member.h"
#include "tools/npy.h"

namespace ge {
namespace {

using Json = nlohmann::json;

Fault CannotLoad(const std::string& path, const Status& status) {
  std::string why = status.message();
  if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
  const bool absent = status.code() == Code::kNotFound;
  return {absent ? "E13000" : "E10041",
          fmt::format("model file {} cannot be loaded: {}", path, why),
          absent                  ? "check the path"
          : path.ends_with(".om") ? "compile it again"
                                  : "an intact file"};
}

// In the file or outside.
int64_t WeightBytes(const om::OmView& view) {
  if (view.external.empty()) return static_cast<int64_t>(view.weights.size());
  int64_t bytes = 0;
  for (const om::ExternalWeight& w : view.external) bytes += w.bytes;
  return bytes;
}

Json Description(const om::OmView& view) {
  Json json = Json::parse(view.description, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

Json Tensors(const om::Plan& plan, const std::vector<om::IoTensor>& tensors) {
  Json list = Json::array();
  const std::vector<int64_t> unbound(plan.symbols.size(), om::kNoSize);
  for (const om::IoTensor& t : tensors) {
    Json dims = Json::array();
    for (om::SizeRef d : t.dims)
      dims.push_back(std::max<int64_t>(-1, om::EvalSize(plan, d, unbound)));
    list.push_back(
        {{"name", t.name}, {"dtype", Name(static_cast<DType>(t.dtype))}, {"shape", dims}});
  }
  return list;
}

Json OmJson(const om::OmView& view) {
  Json tasks = Json::array();
  for (const om::Task& t : view.plan.tasks) {
    Json task{
        {"name", t.name}, {"type", om::kTaskKinds[static_cast<size_t>(t.kind)]}, {"input", t.args}};
    if (!t.outs.empty()) task["output"] = t.outs;
    if (t.kernel >= 0) task["kernel"] = view.plan.kernels[static_cast<size_t>(t.kernel)].name;
    if (!t.host.empty()) task["kernel"] = t.host;
    tasks.push_back(std::move(task));
  }
  return {{"name", view.plan.model_name},
          {"soc_version", view.plan.chip},
          {"input", Tensors(view.plan, view.plan.inputs)},
          {"output", Tensors(view.plan, view.plan.outputs)},
          {"graph", Json::array({{{"op", tasks}}})},
          {"description", Description(view)},
          {"memory_size", view.plan.arena_bytes},
          {"weight_size", WeightBytes(view)}};
}

Json GraphJson(const Graph& g, bool shapes) {
  const auto value = [&](ValueId v) {
    if (v == kNone) return Json(nullptr);
    if (!shapes) return Json(g.value(v).name);
    const TensorType& type = g.value(v).type;
    Json dims = Json::array();
    for (Expr d : type.dims) dims.push_back(d.IsConst() ? Json(d.value()) : Json(ToString(d)));
    return Json{{"name", g.value(v).name}, {"dtype", Name(type.dtype)}, {"shape", dims}};
  };
  const auto list = [&](const std::vector<ValueId>& values) {
    Json json = Json::array();
    for (ValueId v : values) json.push_back(value(v));
    return json;
  };
  Json ops = Json::array();
  for (NodeId n : g.order) {
    const Node& node = g.node(n);
    Json op{{"name", node.name},
            {"type", node.op->name},
            {"input", list(node.inputs)},
            {"output", list(node.outputs)}};
    for (const auto& [key, attr] : node.attrs) {
      if (const auto* i = std::get_if<int64_t>(&attr)) op["attr"][key] = *i;
      if (const auto* f = std::get_if<float>(&attr)) op["attr"][key] = *f;
      if (const auto* s = std::get_if<std::string>(&attr)) op["attr"][key] = *s;
      if (const auto* is = std::get_if<std::vector<int64_t>>(&attr)) op["attr"][key] = *is;
    }
    for (const auto& sub : node.subgraphs) op["subgraph"].push_back(GraphJson(*sub, shapes));
    ops.push_back(std::move(op));
  }
  return {{"name", g.name}, {"input", list(g.inputs)}, {"output", list(g.outputs)}, {"op", ops}};
}

Fault WriteJson(const std::string& path, const Json& json, const char* option = "json") {
  const Status written =
      WriteFile(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  if (written.ok()) return {};
  return {"E13004", fmt::format("[--{}] {}", option, written.message()),
          "check the folder and the disk"};
}

}  // namespace

Fault PreCheck(const AtcOptions& o) {
  CompileRequest request;
  if (Fault f = ReadImportOptions(o, &request); f.any()) return f;
  std::vector<onnx::NodeFault> faults;
  request.faults = &faults;
  auto graph = ImportModel(request);
  Json report{{"result", graph.ok() ? "success" : "failed"},
              {"message", graph.status().message()},
              {"unsupported", Json::array()}};
  for (const onnx::NodeFault& f : faults)
    report["unsupported"].push_back(
        {{"kind", f.kind},
         {"node", f.node},
         {"domain", f.op.empty() || !f.domain.empty() ? f.domain : "ai.onnx"},
         {"operator", f.op},
         {"opset", f.opset},
         {"reason", f.message}});
  if (graph.ok())
    for (NodeId n : (*graph)->order) {
      Json& count = report["operators"][(*graph)->node(n).op->name];
      count = count.is_null() ? 1 : count.get<int>() + 1;
    }
  const std::string path = o.Has("check_report") ? o.Get("check_report") : "check_result.json";
  if (Fault f = WriteJson(path, report, "check_report"); f.any()) return f;
  if (graph.ok()) return {};
  const Code code = graph.status().code();
  return {code == Code::kNotFound      ? "E10410"
          : code == Code::kUnsupported ? "E16002"
                                       : "E16001",
          graph.status().message(), "see " + path};
}

Fault ModelToJson(const AtcOptions& o) {
  const std::string path = o.Has("om") ? o.Get("om") : o.Get("model");
  if (o.Has("framework")) {
    CompileRequest request;
    request.model = path;
    auto graph = ImportModel(request);
    if (!graph.ok()) return CannotLoad(path, graph.status());
    return WriteJson(o.Get("json"),
                     {{"graph", Json::array({GraphJson(**graph, o.Is("dump_mode", "1"))})}});
  }
  auto file = FileMap::Open(path);
  if (!file.ok()) return CannotLoad(path, file.status());
  auto view = om::ReadOm(file->bytes(), false);
  if (!view.ok()) return CannotLoad(path, view.status());
  return WriteJson(o.Get("json"), OmJson(*view));
}

Fault TextToJson(const AtcOptions& o) {
  std::string text;
  if (Fault f = ReadSmallFile("om", o.Get("om"), &text); f.any()) return f;
  auto graph = ParseGraph(text);
  if (graph.ok())
    return WriteJson(o.Get("json"), {{"graph", Json::array({GraphJson(**graph, true)})}});
  return {"E13005", fmt::format("[--om] {}: {}", o.Get("om"), graph.status().message()),
          "AscendIR text, as GE_DUMP or ge opt writes it"};
}

Fault DisplayModel(const std::string& path) {
  auto file = FileMap::Open(path);
  if (!file.ok()) return CannotLoad(path, file.status());
  auto read = om::ReadOm(file->bytes(), false);
  if (!read.ok()) return CannotLoad(path, read.status());
  const om::OmView& v = *read;
  const Json description = Description(v);
  const auto text = [&](const char* key) { return MemberOr(description, key, std::string()); };
  const auto section = [&](om::Section kind) {
    int64_t bytes = 0;
    for (const auto& s : v.sections)
      if (s.kind == kind) bytes = s.bytes;
    return bytes;
  };
  std::printf("============ Display Model Info start ============\n");
  std::printf("Original Atc command line: %s\n", text("command").c_str());
  std::printf("system   info: atc_version[%s], soc_version[%s], framework_type[%s]\n", GE_VERSION,
              v.plan.chip.c_str(), text("model").ends_with(".onnx") ? "5" : "-");
  std::printf(
      "resource info: memory_size[%lld B], weight_size[%lld B], stream_num[1], event_num[0]\n",
      static_cast<long long>(std::max<int64_t>(0, v.plan.arena_bytes)),
      static_cast<long long>(WeightBytes(v)));
  std::printf(
      "om       info: modeldef_size[%lld B], weight_data_size[%lld B], tbe_kernels_size[%lld B], "
      "cust_aicpu_kernel_store_size[0 B], task_info_size[%zu B], so_store_size[0 B]\n",
      static_cast<long long>(section(om::Section::kPlan)),
      static_cast<long long>(section(om::Section::kWeights)),
      static_cast<long long>(section(om::Section::kCode)), v.plan.tasks.size() * sizeof(om::Task));
  std::printf("============ Display Model Info end   ============\n");
  return {};
}

}  // namespace ge
