// Import: the file, the graph's inputs with their symbols, the body, the outputs.
#include "import/onnx/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "base/file_map.h"
#include "import/onnx/build.h"
#include "ir/opdef.h"
#include "ir/symbol_uses.h"

namespace ge::onnx {

namespace {

constexpr size_t kMostFaults = 20;  // named in a message
constexpr int64_t kBatchHint = 1, kSizeHint = 128;

// What input_shapes says of one dim.
struct GivenDim {
  std::optional<int64_t> value;
  std::optional<std::pair<int64_t, int64_t>> range;
};

bool ParseNumber(std::string_view text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

Result<GivenDim> ParseDim(const std::string& text) {
  GivenDim given;
  if (text.empty() || text == "-1") return given;
  int64_t a = 0, b = 0;
  if (ParseNumber(text, a) && a >= 0) {
    given.value = a;
    return given;
  }
  const size_t tilde = text.find('~');
  if (tilde != std::string::npos && ParseNumber(std::string_view(text).substr(0, tilde), a) &&
      ParseNumber(std::string_view(text).substr(tilde + 1), b) && a >= 0 && a <= b) {
    given.range = {a, b};
    return given;
  }
  return Invalid(fmt::format("dim '{}' given, a number, a range like 1~64, or -1 allowed", text));
}

// A name that reads as a symbol in text.
std::string SymbolName(std::string_view raw) {
  std::string name;
  for (unsigned char c : raw)
    name += std::isalnum(c) || c == '_' || c == '.' ? static_cast<char>(c) : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) || name[0] == '.')
    name = "d" + name;
  return name;
}

// Nodes that no output needs, for their values or for a size that they find, die.
void Sweep(Graph& g, const SymbolSet& sizes) {
  std::vector<char> needed(g.values.size(), 0);
  for (ValueId v : g.outputs) needed[v] = 1;
  std::vector<NodeId> live;
  for (auto it = g.order.rbegin(); it != g.order.rend(); ++it) {
    Node& n = g.node(*it);
    n.dead = std::none_of(n.outputs.begin(), n.outputs.end(),
                          [&](ValueId v) { return v != kNone && needed[v]; }) &&
             !GivesSize(n, sizes);
    if (n.dead) continue;
    live.push_back(*it);
    for (ValueId v : n.inputs)
      if (v != kNone) needed[v] = 1;
    for (auto& sub : n.subgraphs) Sweep(*sub, sizes);
  }
  g.order.assign(live.rbegin(), live.rend());
}

class Importer {
 public:
  Importer(const ModelProto& model, const ImportOptions& options, TensorSource& tensors,
           const Functions& functions, Unknown unknown)
      : model_(model), options_(options), builder_(functions, tensors, std::move(unknown)) {
    graph_ = std::make_unique<Graph>();
    graph_->model = std::make_shared<Model>();
    graph_->name = model.graph.name;
    scope_.graph = graph_.get();
  }

  Result<std::unique_ptr<Graph>> Run() {
    Frame frame;
    GE_ASSIGN(frame.opsets, ReadOpsets(model_.opsets));
    GE_TRY(Inputs());
    const Status body = builder_.Body(model_.graph, scope_, frame);
    if (!builder_.faults().empty()) return AllFaults();
    GE_TRY(body);
    if (options_.out_nodes.empty()) {
      for (const ValueInfoProto& o : model_.graph.outputs)
        GE_TRY(AddOutput(o).In(fmt::format("output '{}'", o.name)));
    } else {
      for (const std::string& name : options_.out_nodes) GE_TRY(AddOutNode(name));
    }
    Sweep(*graph_, SizesInUse(*graph_));
    return std::move(graph_);
  }

 private:
  bool IsFed(std::string_view name) const {
    return !initializers_.contains(name) || options_.input_shapes.contains(std::string(name)) ||
           options_.keep_overridable.contains(std::string(name));
  }

  Status Inputs() {
    for (const TensorProto& t : model_.graph.initializers) initializers_.insert(t.name);
    for (const SparseTensorProto& t : model_.graph.sparse_initializers)
      initializers_.insert(t.values.name);
    std::unordered_set<std::string_view> names;
    for (const ValueInfoProto& v : model_.graph.inputs) {
      if (v.name.empty() || !names.insert(v.name).second)
        return Invalid(fmt::format("input '{}' has no name or is given twice", v.name));
    }
    for (const auto& [name, dims] : options_.input_shapes)
      if (!names.contains(name)) {
        std::vector<std::string_view> known;
        for (const ValueInfoProto& v : model_.graph.inputs)
          if (!initializers_.contains(v.name)) known.push_back(v.name);
        return Invalid(fmt::format("input_shape names '{}', the model's inputs are '{}'", name,
                                   fmt::join(known, "', '")));
      }
    for (const ValueInfoProto& v : model_.graph.inputs)
      if (IsFed(v.name)) GE_TRY(BindParams(v).In(fmt::format("input '{}'", v.name)));
    for (const ValueInfoProto& v : model_.graph.inputs) {
      if (!IsFed(v.name)) continue;
      Status added = AddInput(v).In(fmt::format("input '{}'", v.name));
      if (added.ok()) continue;
      if (added.code() != Code::kUnsupported) return added;
      builder_.NoteType(v.name, added, scope_);
    }
    return Status();
  }

  // One sentence about all that is wrong. Unknown operators first, each with its nodes.
  Status AllFaults() {
    std::vector<NodeFault>& faults = builder_.faults();
    if (options_.faults != nullptr) *options_.faults = faults;
    std::map<std::string, std::vector<std::string>> unknown;
    std::vector<std::string> parts;
    size_t hidden = 0;
    for (const NodeFault& f : faults) {
      if (f.kind != "operator") {
        parts.size() < kMostFaults ? parts.push_back(f.message) : void(++hidden);
        continue;
      }
      auto& nodes = unknown[fmt::format("{}{}{} (opset {})", f.domain, f.domain.empty() ? "" : ".",
                                        f.op, f.opset)];
      nodes.push_back(fmt::format("'{}'", f.node));
    }
    std::vector<std::string> lines;
    for (auto& [op, nodes] : unknown) {
      const size_t all = nodes.size(), shown = std::min(all, kMostFaults);
      nodes.resize(shown);
      lines.push_back(fmt::format("{}: {}", op, fmt::join(nodes, ", ")));
      if (shown < all) lines.back() += fmt::format(" and {} more", all - shown);
    }
    if (!lines.empty())
      parts.insert(parts.begin(), fmt::format("unsupported operators: {}", fmt::join(lines, "; ")));
    std::string text = fmt::format("{}", fmt::join(parts, "; "));
    if (hidden > 0) text += fmt::format("; and {} more", hidden);
    return Error(lines.empty() ? faults[0].code : Code::kUnsupported, std::move(text));
  }

  // What input_shapes gives for a named dim holds for that name everywhere.
  Status BindParams(const ValueInfoProto& v) {
    const auto it = options_.input_shapes.find(std::string(v.name));
    if (it == options_.input_shapes.end()) return Status();
    const auto& dims = v.type.dims;
    if (v.type.has_shape && dims.size() != it->second.size())
      return Invalid(
          fmt::format("{} dims given, the model has {}", it->second.size(), dims.size()));
    for (size_t d = 0; d < it->second.size(); ++d) {
      GE_ASSIGN(const GivenDim given, ParseDim(it->second[d]));
      if (!v.type.has_shape) continue;
      const DimProto& dim = dims[d];
      if (dim.value && *dim.value > 0) {
        if (given.value && *given.value != *dim.value)
          return Invalid(fmt::format("dim {} given as {}, the model fixes it to {}", d,
                                     *given.value, *dim.value));
        continue;
      }
      if (dim.param.empty() || !(given.value || given.range)) continue;
      const auto [at, fresh] = params_.emplace(dim.param, given);
      if (!fresh && at->second.value != given.value)
        return Invalid(fmt::format("dim '{}' is given two values", dim.param));
    }
    return Status();
  }

  Status AddInput(const ValueInfoProto& v) {
    Value value;
    const TypeProto* type = &v.type;
    using Kind = TypeProto::Kind;
    if (type->kind == Kind::kOptional) {
      value.kind = ValueKind::kOptional;
      type = type->element.get();
    }
    if (type != nullptr && type->kind == Kind::kSequence) {  // one that may be absent is the same
      value.kind = ValueKind::kSequence;
      type = type->element.get();
    }
    if (type == nullptr || type->kind != Kind::kTensor)
      return Unsupported("only tensors, and sequences and optionals of tensors, are supported");
    GE_ASSIGN(const DType dtype, ReadDType(type->elem_type));
    const ValueId id = graph_->AddInput(std::string(v.name), {});
    graph_->value(id).kind = value.kind;
    graph_->value(id).type.dtype = dtype;
    GE_ASSIGN(graph_->value(id).type.dims, InputDims(v.name, *type, value.kind));
    if (!graph_->value(id).type.Elements().IsValid()) return Invalid("dims overflow");
    scope_.names[v.name] = id;
    return Status();
  }

  Result<std::vector<Expr>> InputDims(std::string_view name, const TypeProto& type,
                                      ValueKind kind) {
    const auto it = options_.input_shapes.find(std::string(name));
    const std::vector<std::string>* texts =
        it == options_.input_shapes.end() ? nullptr : &it->second;
    if (!type.has_shape && !texts) {
      if (kind != ValueKind::kTensor) return std::vector<Expr>{};
      return Invalid("the model gives no rank: give its shape by input_shape");
    }
    const size_t rank = type.has_shape ? type.dims.size() : texts->size();
    const bool is_list = rank == 1 && type.elem_type == static_cast<int64_t>(DType::kI64);
    std::vector<Expr> dims;
    for (size_t d = 0; d < rank; ++d) {
      GivenDim given;
      if (texts && d < texts->size()) {
        GE_ASSIGN(given, ParseDim((*texts)[d]));
      }
      static const DimProto kUnknown;
      dims.push_back(InputDim(name, d, type.has_shape ? type.dims[d] : kUnknown, given, is_list));
    }
    return dims;
  }

  Expr InputDim(std::string_view name, size_t axis, const DimProto& dim, GivenDim given,
                bool is_list) {
    if (dim.value && *dim.value > 0) return *dim.value;
    if (auto it = params_.find(dim.param); it != params_.end()) given = it->second;
    if (given.value) return *given.value;
    // A declared 0 means 0 for lists of axes, sizes and the like, and "unknown" elsewhere.
    const bool declared_zero = dim.value && *dim.value == 0;
    if (declared_zero && is_list) return 0;
    SymbolFacts facts;
    facts.lo = 0;  // empty inputs are inputs
    facts.hint = axis == 0 ? kBatchHint : kSizeHint;
    if (given.range) {
      facts.lo = given.range->first;
      facts.hi = given.range->second;
      facts.hint = std::min(std::max(facts.hint, facts.lo), facts.hi);
    }
    if (dim.param.empty()) return NewSymbol(SymbolName(fmt::format("{}.{}", name, axis)), facts);
    auto [at, fresh] = symbols_.emplace(dim.param, Expr());
    if (fresh) at->second = NewSymbol(SymbolName(dim.param), facts);
    return at->second;
  }

  Expr NewSymbol(const std::string& name, const SymbolFacts& facts) {
    ExprArena& arena = graph_->arena();
    return arena.Find(name) ? arena.Fresh(name, facts) : arena.Symbol(name, facts);
  }

  Status AddOutput(const ValueInfoProto& o) {
    GE_ASSIGN(ValueId v, builder_.Output(o.name, scope_));
    Graph& g = *graph_;
    const bool taken = std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
    if (g.value(v).producer == kNone || taken) {
      NodeDraft copy;
      copy.name = std::string(o.name);
      copy.op = "Identity";
      copy.inputs = {v};
      copy.outputs = {std::string(o.name)};
      GE_ASSIGN(const NodeId n, Emitter(g).Add(std::move(copy)));
      v = g.node(n).outputs[0];
    }
    g.value(v).name = std::string(o.name);
    g.outputs.push_back(v);
    const TypeProto& declared = o.type;
    if (declared.kind != TypeProto::Kind::kTensor || declared.elem_type == 0) return Status();
    GE_ASSIGN(const DType dtype, ReadDType(declared.elem_type));
    if (g.value(v).kind != ValueKind::kTensor || g.value(v).type.dtype != dtype)
      return Invalid(fmt::format("declared as a tensor of {}, but it is {}", Name(dtype),
                                 ToString(g.value(v).type)));
    return Status();
  }

  // "node:index" or the name of a value.
  Status AddOutNode(const std::string& wanted) {
    ValueInfoProto output;
    const size_t colon = wanted.rfind(':');
    int64_t index = -1;
    if (colon != std::string::npos &&
        !ParseNumber(std::string_view(wanted).substr(colon + 1), index))
      index = -1;
    for (const NodeProto& n : model_.graph.nodes) {
      for (size_t i = 0; i < n.outputs.size(); ++i) {
        const bool by_node = static_cast<int64_t>(i) == index && !n.name.empty() &&
                             n.name == std::string_view(wanted).substr(0, colon);
        if (!n.outputs[i].empty() && (by_node || n.outputs[i] == wanted))
          output.name = n.outputs[i];
      }
    }
    if (output.name.empty())
      return Invalid(fmt::format("out_nodes names '{}', which the model does not have", wanted));
    return AddOutput(output).In(fmt::format("out_nodes '{}'", wanted));
  }

  const ModelProto& model_;
  const ImportOptions& options_;
  GraphBuilder builder_;
  std::unique_ptr<Graph> graph_;
  Scope scope_;
  std::unordered_set<std::string_view> initializers_;
  std::unordered_map<std::string_view, GivenDim> params_;
  std::unordered_map<std::string_view, Expr> symbols_;
};

// Operators under other names, in the graph, its subgraphs and functions.
void RenameOps(const std::map<std::string, std::string>& names, std::vector<NodeProto>* nodes) {
  for (NodeProto& n : *nodes) {
    if (const auto it = names.find(std::string(n.op_type)); it != names.end()) {
      n.op_type = it->second;
      n.domain = {};
    }
    for (AttrProto& a : n.attrs)
      if (a.graph) RenameOps(names, &a.graph->nodes);
  }
}

Result<std::unique_ptr<Graph>> ImportFile(const std::string& path, const ImportOptions& options) {
  Result<FileMap> map = FileMap::Open(path);
  if (!map.ok()) return map.status();
  auto file = std::make_shared<FileMap>(std::move(map).value());
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  GE_ASSIGN(ModelProto model, ReadModel(bytes, options.max_depth));
  if (!options.op_names.empty()) {
    RenameOps(options.op_names, &model.graph.nodes);
    for (FunctionProto& f : model.functions) RenameOps(options.op_names, &f.nodes);
  }
  const Functions functions(model);
  GE_ASSIGN(Unknown unknown, Survey(model, functions));
  TensorSource tensors(std::filesystem::path(path).parent_path().string(), file);
  return Importer(model, options, tensors, functions, std::move(unknown)).Run();
}

}  // namespace

Result<std::unique_ptr<Graph>> Import(const std::string& path, const ImportOptions& options) {
  auto graph = ImportFile(path, options);
  // What is wrong with the file itself says its name already.
  if (graph.status().message().starts_with(path + ": ")) return graph;
  return std::move(graph).In("import").In(std::filesystem::path(path).filename().string());
}

}  // namespace ge::onnx
