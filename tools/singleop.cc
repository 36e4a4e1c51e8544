// See singleop.h. Operators whose AscendIR form differs from ONNX's are written as a few nodes.
#include "tools/singleop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "abi/dtype.h"
#include "ir/opdef.h"
#include "tools/op_names.h"

namespace ge {
namespace {

using nlohmann::json;

struct Type {
  std::string_view name, ir;  // as in the file, as in AscendIR text
  int ascend;                 // its number in AscendIR
};
constexpr Type kTypes[] = {{"float", "f32", 0},  {"float32", "f32", 0},   {"float16", "f16", 1},
                           {"half", "f16", 1},   {"fp16", "f16", 1},      {"fp32", "f32", 0},
                           {"int8", "i8", 2},    {"int32", "i32", 3},     {"uint8", "u8", 4},
                           {"int16", "i16", 6},  {"uint16", "u16", 7},    {"uint32", "u32", 8},
                           {"int64", "i64", 9},  {"uint64", "u64", 10},   {"double", "f64", 11},
                           {"bool", "bool", 12}, {"bfloat16", "bf16", 27}};
struct Format {
  std::string_view name;
  int number;
};
constexpr Format kFormats[] = {{"NCHW", 0}, {"NHWC", 1}, {"ND", 2}, {"NCDHW", 30}, {"NDHWC", 27}};

const Type* TypeNamed(const std::string& name) {
  for (const Type& t : kTypes)
    if (t.name == name) return &t;
  return nullptr;
}
const Type* TypeNumbered(int64_t number) {
  for (const Type& t : kTypes)
    if (t.ascend == number) return &t;
  return nullptr;
}

// Writes one operator of the list.
class Writer {
 public:
  Writer(const json& entry, size_t index) : entry_(entry), index_(index) {}

  Fault Run(SingleOp* out) {
    if (!entry_.is_object()) return Bad("E10032", "it is no object", "an object for each operator");
    op_ = entry_.value("op", json()).is_string() ? entry_["op"].get<std::string>() : "";
    if (op_.empty()) return Bad("E10026", "[op] is empty", "give the operator's name");
    onnx_ = OnnxName(op_);
    file_ = fmt::format("{}_{}", index_, op_);
    for (const char* list : {"input_desc", "output_desc"})
      if (Fault f = ReadDescs(list); f.any()) return f;
    if (Fault f = ReadAttrs(); f.any()) return f;
    if (Fault f = WriteNodes(); f.any()) return f;
    const std::string& name = entry_.contains("name") && entry_["name"].is_string()
                                  ? entry_["name"].get_ref<const std::string&>()
                                  : file_;
    if (name.empty() || name.find('/') != std::string::npos)
      return Bad("E10032", fmt::format("[{}] is no name of a file", name),
                 "a name without folders");
    *out = {name, fmt::format("graph \"{}\" ({}) -> ({}) {{\n{}}}\n", name,
                              fmt::join(inputs_, ", "), fmt::join(outputs_, ", "), body_)};
    return {};
  }

 private:
  Fault Bad(const char* code, const std::string& what, const std::string& how) const {
    return {code, fmt::format("[--singleop] operator {} ({}): {}", index_, op_, what), how};
  }

  Fault ReadDescs(const char* list) {
    const bool in = std::string_view(list) == "input_desc";
    if (!entry_.contains(list) || !entry_[list].is_array())
      return Bad("E10032", fmt::format("[{}] is no list", list), "a list of descriptions");
    for (const json& desc : entry_[list]) {
      const size_t i = in ? inputs_.size() : outputs_.size();
      const auto text = [&](const char* key) {
        return desc.is_object() && desc.contains(key) && desc[key].is_string()
                   ? desc[key].get<std::string>()
                   : std::string();
      };
      const Type* type = TypeNamed(text("type"));
      const auto format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                       [&](const Format& f) { return f.name == text("format"); });
      if (type == nullptr || format == std::end(kFormats))
        return Bad("E10027",
                   fmt::format("{} {} has type [{}] and format [{}]", list, i, text("type"),
                               text("format")),
                   "types float, float16, int32, ...; formats NCHW, NHWC, ND, NCDHW, NDHWC");
      std::vector<std::string> dims;
      file_ += fmt::format("_{}_{}", type->ascend, format->number);
      if (!desc.contains("shape") || !desc["shape"].is_array())
        return Bad("E10028", fmt::format("{} {} has no shape", list, i), "\"shape\": [8, 16]");
      for (const json& d : desc["shape"]) {
        if (!d.is_number_integer() || d.get<int64_t>() < -1)
          return Bad("E10028", fmt::format("{} {} has the dim [{}]", list, i, d.dump()),
                     "numbers, or -1");
        const int64_t size = d.get<int64_t>();
        dims.push_back(size < 0 ? fmt::format("d{}_{}", i, dims.size()) : std::to_string(size));
        file_ += "_" + std::to_string(size);
      }
      if (in) {
        inputs_.push_back(fmt::format("%x{}: {}[{}]", i, type->ir, fmt::join(dims, ",")));
        ranks_.push_back(dims.size());
      } else {
        outputs_.push_back(fmt::format("%y{}", i));
        // Checked against inference, unless a dim is open.
        const bool open = std::any_of(dims.begin(), dims.end(),
                                      [](const std::string& d) { return d.starts_with("d"); });
        results_.push_back(open ? outputs_.back()
                                : fmt::format("%y{}: {}[{}]", i, type->ir, fmt::join(dims, ",")));
      }
    }
    return {};
  }

  // Attributes as text of AscendIR, by their names.
  Fault ReadAttrs() {
    for (const json& attr : entry_.value("attr", json::array())) {
      const std::string name =
          attr.is_object()
              ? attr.value("name", json("")).is_string() ? attr.value("name", std::string()) : ""
              : "";
      if (name.empty()) return Bad("E10029", "an attribute has no name", "give \"name\"");
      const json value = attr.value("value", json());
      const std::string type =
          attr.contains("type") && attr["type"].is_string() ? attr["type"].get<std::string>() : "";
      const auto scalar = [](const json& v) -> std::string {
        if (v.is_boolean()) return v.get<bool>() ? "1" : "0";
        if (v.is_number_integer()) return std::to_string(v.get<int64_t>());
        if (v.is_number_float()) return fmt::format("{:#}", v.get<double>());
        return v.is_string() ? "\"" + v.get<std::string>() + "\"" : "";
      };
      const bool wants_list = type.starts_with("list");
      std::string text;
      bool fits = value.is_array() == wants_list && !type.empty();
      if (value.is_array()) {
        std::vector<std::string> parts;
        for (const json& v : value) {
          parts.push_back(scalar(v));
          fits = fits && !parts.back().empty();
        }
        text = parts.empty() ? "ints[]" : fmt::format("[{}]", fmt::join(parts, ", "));
      } else if (type == "data_type" && value.is_string() && TypeNamed(value.get<std::string>())) {
        text = std::to_string(TypeNamed(value.get<std::string>())->ascend);
      } else {
        text = scalar(value);
        fits = fits && !text.empty() && (type != "string" || value.is_string()) &&
               (type != "int" || value.is_number_integer()) &&
               (type != "bool" || value.is_boolean());
        if (type == "float" && value.is_number_integer()) text += ".0";
      }
      if (!fits)
        return Bad(
            "E10030",
            fmt::format("attribute {} of type [{}] has the value {}", name, type, value.dump()),
            "bool, int, float, string, data_type, list_int, ...");
      attrs_[name] = text;
    }
    return {};
  }

  std::string Take(const char* name, const std::string& otherwise) {
    const auto it = attrs_.find(name);
    if (it == attrs_.end()) return otherwise;
    std::string text = it->second;
    attrs_.erase(it);
    return text;
  }
  bool Flag(const char* name) { return Take(name, "0") == "1"; }

  std::string Node(const std::string& op, const std::string& operands,
                   const std::string& attrs = "", std::string result = "") {
    if (result.empty()) result = fmt::format("%t{}", next_++);
    body_ += fmt::format("  {} = {}({}){}\n", result, op, operands,
                         attrs.empty() ? "" : " {" + attrs + "}");
    return result;
  }
  // The two last axes exchanged.
  std::string Transposed(size_t input) {
    std::vector<size_t> perm(ranks_[input]);
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = i;
    if (perm.size() > 1) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return Node("Transpose", fmt::format("%x{}", input),
                fmt::format("perm=[{}]", fmt::join(perm, ", ")));
  }
  std::string Product(const char* left, const char* right, const std::string& result = "") {
    const std::string a = Flag(left) ? Transposed(0) : "%x0";
    const std::string b = Flag(right) ? Transposed(1) : "%x1";
    return Node("MatMul", a + ", " + b, "", result);
  }

  Fault WriteNodes() {
    const bool product = onnx_ == "MatMul";
    const size_t count = ranks_.size();
    if (outputs_.empty()) return Bad("E10032", "[output_desc] is empty", "describe the outputs");
    if (product && count >= 2) {
      const bool adjoint = attrs_.contains("adj_x1") || attrs_.contains("adj_x2");
      const std::string y =
          Product(adjoint ? "adj_x1" : "transpose_x1", adjoint ? "adj_x2" : "transpose_x2",
                  count > 2 ? "" : results_[0]);
      if (count > 2) Node("Add", y + ", %x2", "", results_[0]);
      return {};
    }
    if (op_ == "GEMM" && count == 5) {
      const std::string y = Product("transpose_a", "transpose_b", "");
      const std::string scaled = Node("Mul", y + ", %x3");
      Node("Add", scaled + ", " + Node("Mul", "%x2, %x4"), "", results_[0]);
      return {};
    }
    if (op_ == "Cast") {
      const std::string number = Take("dst_type", Take("to", ""));
      const Type* type = number.empty() ? nullptr : TypeNumbered(std::atoll(number.c_str()));
      if (type == nullptr)
        return Bad("E10030", "dst_type is no known type", "0 is float, 1 float16");
      const auto to = ParseDType(type->ir);
      Node("Cast", "%x0", fmt::format("to={}", static_cast<int>(*to)), results_[0]);
      return {};
    }
    std::string operands;
    for (size_t i = 0; i < count; ++i) operands += fmt::format("{}%x{}", i == 0 ? "" : ", ", i);
    if (onnx_.starts_with("Reduce") && attrs_.contains("axes")) {
      const std::string axes = Take("axes", "");
      const std::string list = axes.substr(1, axes.size() - 2);
      const auto n = std::count(list.begin(), list.end(), ',') + 1;
      body_ += fmt::format("  %axes = const i64[{}] {{{}}}\n", n, list);
      operands += ", %axes";
    }
    for (const auto& [theirs, ours] :
         {std::pair{"keep_dims", "keepdims"}, {"concat_dim", "axis"}, {"axes", "axis"}})
      if (attrs_.contains(theirs)) {
        std::string text = Take(theirs, "");
        if (std::string_view(theirs) == "axes" && text.starts_with("["))
          text = text.substr(1, text.find_first_of(",]") - 1);
        attrs_[ours] = text;
      }
    attrs_.erase("N");  // of Concat: the number of its inputs
    if (FindOp("", onnx_) == nullptr)
      return Bad("E10501", "no operator has this name", "names of AscendIR or ONNX operators");
    std::vector<std::string> attrs;
    for (const auto& [name, text] : attrs_) attrs.push_back(name + "=" + text);
    Node(onnx_, operands, fmt::format("{}", fmt::join(attrs, ", ")),
         fmt::format("{}", fmt::join(results_, ", ")));
    return {};
  }

  const json& entry_;
  const size_t index_;
  std::string op_, onnx_, file_, body_;
  std::vector<std::string> inputs_, outputs_, results_;  // results_: with types
  std::vector<size_t> ranks_;
  std::map<std::string, std::string> attrs_;
  int next_ = 0;
};

}  // namespace

Fault ReadSingleOps(const AtcOptions& options, std::vector<SingleOp>* ops) {
  const std::string path = options.Get("singleop");
  std::string text;
  if (Fault f = ReadSmallFile("singleop", path, &text); f.any()) {
    f.code = f.code == "E13000" ? "E10023" : f.code == "E13001" ? "E10024" : f.code;
    return f;
  }
  const json list = json::parse(text, nullptr, false);
  if (!list.is_array() || list.empty())
    return {"E10025", fmt::format("[--singleop] {} is not a JSON list of operators", path),
            "[{\"op\": \"Add\", \"input_desc\": [...], \"output_desc\": [...]}]"};
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    SingleOp op;
    if (Fault f = Writer(list[i], i).Run(&op); f.any()) return f;
    if (!names.insert(op.file).second)
      return {"E10032", fmt::format("[--singleop] two operators are named {}", op.file),
              "give each another name"};
    ops->push_back(std::move(op));
  }
  return {};
}

}  // namespace ge
