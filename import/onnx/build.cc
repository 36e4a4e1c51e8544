// Names, constants and ordinary nodes. Control flow and calls are in build_control.cc.
#include "import/onnx/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>

#include "import/onnx/versions.h"

namespace ge::onnx {

namespace {

constexpr int64_t kMaxNodes = 1'000'000;  // after inlining of functions

// Names that a subgraph takes from outside.
void FreeNames(const GraphProto& g, std::vector<std::string_view>& out) {
  std::unordered_set<std::string_view> local;
  for (const ValueInfoProto& v : g.inputs) local.insert(v.name);
  for (const TensorProto& t : g.initializers) local.insert(t.name);
  for (const SparseTensorProto& t : g.sparse_initializers) local.insert(t.values.name);
  std::vector<std::string_view> used;
  for (const NodeProto& n : g.nodes) {
    local.insert(n.outputs.begin(), n.outputs.end());
    used.insert(used.end(), n.inputs.begin(), n.inputs.end());
    for (const AttrProto& a : n.attrs)
      if (a.graph) FreeNames(*a.graph, used);
  }
  for (const ValueInfoProto& o : g.outputs) used.push_back(o.name);
  for (std::string_view name : used)
    if (!local.contains(name)) out.push_back(name);
}

// Walks back from a node that waits for ever until a node comes up twice.
std::string NameCycle(const std::vector<NodeProto>& nodes,
                      const std::vector<std::vector<size_t>>& needs,
                      const std::vector<int>& waits) {
  size_t at = 0;
  while (waits[at] == 0) ++at;
  std::vector<size_t> path;
  std::vector<char> seen(nodes.size(), 0);
  while (!seen[at]) {
    seen[at] = 1;
    path.push_back(at);
    at = *std::find_if(needs[at].begin(), needs[at].end(), [&](size_t p) { return waits[p] > 0; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::reverse(path.begin(), path.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < path.size() && i < 10; ++i) names.push_back(Describe(nodes[path[i]]));
  return fmt::format("cycle of {} nodes: {}{}", path.size(), fmt::join(names, " -> "),
                     names.size() < path.size() ? " -> ..." : "");
}

// What follows from a fault that has been noted.
Status DependsOnFault() {
  return Error(Code::kUnavailable, "it depends on a node that is not supported");
}

std::string TypeText(const TypeProto& t) {
  if (t.element && t.kind == TypeProto::Kind::kSequence) return "seq " + TypeText(*t.element);
  if (t.element && t.kind == TypeProto::Kind::kOptional) return "opt " + TypeText(*t.element);
  const Result<DType> dtype = ReadDType(t.elem_type);
  return dtype.ok() ? std::string(Name(*dtype)) : "none";
}

}  // namespace

std::optional<ValueId> GraphBuilder::Lookup(std::string_view name, Scope& scope) {
  if (auto it = scope.names.find(name); it != scope.names.end()) return it->second;
  if (scope.parent == nullptr) return std::nullopt;
  const std::optional<ValueId> outer = Lookup(name, *scope.parent);
  if (!outer || *outer < 0 || scope.graph == scope.parent->graph) return outer;
  Graph& g = *scope.graph;
  const Value& from = scope.parent->graph->value(*outer);
  ValueId inner;
  if (from.constant != kNone) {  // constants belong to the model: no capture
    inner = g.AddValue(from.name, from.type);
    g.value(inner).constant = from.constant;
  } else {
    inner = g.AddInput(from.name, from.type);
    scope.captures.emplace_back(*outer, inner);
  }
  g.value(inner).kind = from.kind;
  g.value(inner).elems = from.elems;
  scope.names.emplace(name, inner);
  return inner;
}

Result<std::vector<ValueId>> GraphBuilder::Operands(const NodeProto& node, Scope& scope) {
  std::vector<ValueId> operands;
  for (std::string_view name : node.inputs) {
    if (name.empty()) {
      operands.push_back(kNone);
      continue;
    }
    const std::optional<ValueId> v = Lookup(name, scope);
    if (!v)
      return Invalid(
          fmt::format("input '{}' is not defined by any input, initializer or node", name));
    if (*v == kFaulty) return DependsOnFault();
    operands.push_back(*v);
  }
  return operands;
}

std::string GraphBuilder::NodeName(const NodeProto& node, const Frame& frame) {
  if (!node.name.empty()) return frame.prefix + std::string(node.name);
  return fmt::format("{}{}_{}", frame.prefix, node.op_type, unnamed_[node.op_type]++);
}

std::vector<GraphBuilder::Attribute> GraphBuilder::Attributes(const NodeProto& node,
                                                              const Frame& frame) const {
  std::vector<Attribute> bound;
  for (const AttrProto& a : node.attrs) {
    if (a.ref.empty()) {
      bound.push_back({&a, a.name});
    } else if (auto it = frame.attrs.find(a.ref); it != frame.attrs.end()) {
      bound.push_back({it->second, a.name});
    }
  }
  return bound;
}

Result<Attr> GraphBuilder::Convert(const AttrProto& a) {
  switch (a.kind) {
    case AttrKind::kFloat: return Attr(a.f);
    case AttrKind::kInt: return Attr(a.i);
    case AttrKind::kString: return Attr(std::string(a.s));
    case AttrKind::kFloats: return Attr(a.floats);
    case AttrKind::kInts: return Attr(a.ints);
    case AttrKind::kStrings:
      return Attr(std::vector<std::string>(a.strings.begin(), a.strings.end()));
    case AttrKind::kTensor: {
      GE_ASSIGN(Constant c, tensors_.Read(a.tensor));
      return Attr(std::make_shared<const Constant>(std::move(c)));
    }
    case AttrKind::kSparse: {
      if (!a.sparse) return Invalid("sparse tensor attribute without value");
      GE_ASSIGN(Constant c, tensors_.Read(*a.sparse));
      return Attr(std::make_shared<const Constant>(std::move(c)));
    }
    case AttrKind::kType:
      if (!a.type) return Invalid("type attribute without value");
      return Attr(TypeText(*a.type));
    default:
      return Unsupported(
          fmt::format("attributes of kind {} are not supported", static_cast<int>(a.kind)));
  }
}

Result<std::vector<ValueId>> GraphBuilder::ConstantNode(const std::vector<Attribute>& attrs,
                                                        const std::string& name, Scope& scope) {
  for (const Attribute& attribute : attrs) {
    const AttrProto& a = *attribute.proto;
    const std::string_view what = attribute.name;
    Constant c;
    if ((what == "value" && a.kind == AttrKind::kTensor) ||
        (what == "sparse_value" && a.kind == AttrKind::kSparse)) {
      GE_ASSIGN(Attr attr, Convert(a));
      c = *std::get<std::shared_ptr<const Constant>>(attr);
    } else if (what == "value_int" && a.kind == AttrKind::kInt) {
      c = MakeConstant(DType::kI64, {}, &a.i);
    } else if (what == "value_float" && a.kind == AttrKind::kFloat) {
      c = MakeConstant(DType::kF32, {}, &a.f);
    } else if (what == "value_ints" && a.kind == AttrKind::kInts) {
      c = MakeConstant(DType::kI64, {static_cast<int64_t>(a.ints.size())}, a.ints.data());
    } else if (what == "value_floats" && a.kind == AttrKind::kFloats) {
      c = MakeConstant(DType::kF32, {static_cast<int64_t>(a.floats.size())}, a.floats.data());
    } else if (what == "value_string" && a.kind == AttrKind::kString) {
      c.dtype = DType::kString;
      c.strings = {std::string(a.s)};
    } else if (what == "value_strings" && a.kind == AttrKind::kStrings) {
      c.dtype = DType::kString;
      c.dims = {static_cast<int64_t>(a.strings.size())};
      c.strings.assign(a.strings.begin(), a.strings.end());
    } else {
      continue;
    }
    return std::vector<ValueId>{scope.graph->AddConstant(name, std::move(c))};
  }
  return Invalid("a Constant needs one attribute that holds its value");
}

Result<std::vector<ValueId>> GraphBuilder::Build(const NodeProto& node, Scope& scope,
                                                 const Frame& frame) {
  const std::vector<Attribute> attrs = Attributes(node, frame);
  const std::string_view domain = PlainDomain(node.domain);
  if (domain.empty() && node.op_type == "Constant")
    return ConstantNode(
        attrs, frame.prefix + std::string(node.outputs.empty() ? node.name : node.outputs[0]),
        scope);
  if (const FunctionProto* f = functions_.Find(node)) return Call(*f, node, scope, frame);

  NodeDraft draft;
  draft.name = NodeName(node, frame);
  draft.domain = domain;
  draft.op = node.op_type;
  step_ = "node";
  GE_ASSIGN(draft.inputs, Operands(node, scope));
  for (std::string_view o : node.outputs)
    draft.outputs.push_back(o.empty() ? std::string() : frame.prefix + std::string(o));
  for (const Attribute& a : attrs) {
    if (a.proto->kind == AttrKind::kGraph) continue;
    Result<Attr> attr = Convert(*a.proto);
    if (!attr.ok()) {
      step_ = "attribute";
      return std::move(attr).In(fmt::format("attribute '{}'", a.name)).status();
    }
    draft.attrs[std::string(a.name)] = std::move(attr).value();
  }
  const int64_t version = frame.opsets.find(domain)->second;
  if (domain.empty()) {
    if (draft.op == "If") return IfNode(std::move(draft), attrs, scope, frame);
    if (draft.op == "Scan" && version < 9)
      return BatchedScan(std::move(draft), attrs, scope, frame);
    if (draft.op == kScanOfOne) draft.op = "Scan";
    if (draft.op == "Loop" || draft.op == "Scan")
      return LoopNode(std::move(draft), attrs, scope, frame);
    if (draft.op == "SequenceMap") return SequenceMap(std::move(draft), node, attrs, scope, frame);
    // Only SequenceMap makes such nodes: the survey refuses a model's own.
    if (draft.op == "ge.Inline")
      return Inline(*attrs.at(0).proto->graph, draft.inputs, scope, frame);
  }
  if (domain == "ai.onnx.preview" && draft.op == "FlexAttention")
    return FlexAttention(std::move(draft), attrs, scope, frame);
  if (domain == "ai.onnx.preview.training" && draft.op == "Gradient") return Gradient(draft, scope);
  Emitter emitter(*scope.graph);
  if (domain.empty()) {
    std::vector<ValueId> results;
    step_ = "version";
    GE_TRY(Upgrade(draft, version, emitter, results));
    step_ = "node";
    if (!results.empty()) return results;
  }
  return emitter.Emit(std::move(draft));
}

Status GraphBuilder::OneNode(const NodeProto& node, Scope& scope, const Frame& frame) {
  if (++built_ > kMaxNodes)
    return Error(Code::kResourceExhausted, fmt::format("more than {} nodes", kMaxNodes));
  const size_t known = faults().size();
  Result<std::vector<ValueId>> outputs = KnownNode(node, scope, frame);
  if (!outputs.ok()) {
    const Code code = outputs.status().code();
    const bool about_node = code == Code::kInvalidArgument || code == Code::kUnsupported;
    if (about_node || faults().size() > known) NoteFaultsOf(node, known, outputs.status(), frame);
    if (!about_node && code != Code::kUnavailable)
      return std::move(outputs).In(Describe(node)).status();
  }
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o].empty()) continue;
    scope.names[node.outputs[o]] = outputs.ok() ? (*outputs)[o] : Declared(node.outputs[o], scope);
  }
  return Status();
}

// All outputs that the node wants, or the reason why not.
Result<std::vector<ValueId>> GraphBuilder::KnownNode(const NodeProto& node, Scope& scope,
                                                     const Frame& frame) {
  if (unknown_.nodes.contains(&node)) return DependsOnFault();
  GE_ASSIGN(std::vector<ValueId> outputs, Build(node, scope, frame));
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const bool given = o < outputs.size() && outputs[o] != kNone;
    if (!node.outputs[o].empty() && !given)
      return Invalid(fmt::format("it has no output {} ('{}')", o, node.outputs[o]));
  }
  outputs.resize(std::max(outputs.size(), node.outputs.size()), kNone);
  return outputs;
}

// `status` is the node's own, or that of the first of its body's faults: those after `known`.
void GraphBuilder::NoteFaultsOf(const NodeProto& node, size_t known, const Status& status,
                                const Frame& frame) {
  const std::string where = Describe(node);
  if (faults().size() > known) {
    for (size_t i = known; i < faults().size(); ++i) {
      NodeFault& f = faults()[i];
      const bool whole = i == known && status.code() != Code::kUnavailable;
      f.message = where + ": " + (whole ? status.message() : f.message);
    }
    return;
  }
  NodeFault f;
  f.kind = step_;
  f.node = frame.prefix + std::string(NameOf(node));
  f.domain = PlainDomain(node.domain);
  f.op = node.op_type;
  if (const auto it = frame.opsets.find(f.domain); it != frame.opsets.end()) f.opset = it->second;
  f.code = status.code();
  f.message = where + ": " + status.message();
  faults().push_back(std::move(f));
}

void GraphBuilder::NoteType(std::string_view name, const Status& status, Scope& scope) {
  NodeFault f;
  f.kind = "type";
  f.node = name;
  f.message = status.message();
  faults().push_back(std::move(f));
  scope.names[name] = kFaulty;
}

// A value of the type that the model declares, so that what uses it can be checked; kFaulty if it
// declares none.
ValueId GraphBuilder::Declared(std::string_view name, Scope& scope) const {
  if (scope.proto == nullptr) return kFaulty;
  ValueInfoProto found;
  for (std::string_view info : scope.proto->value_infos) {
    Result<ValueInfoProto> v = ReadValueInfo(info);
    if (v.ok() && v->name == name) found = std::move(v).value();
  }
  const bool tensor = found.type.kind == TypeProto::Kind::kTensor && found.type.has_shape;
  const Result<DType> dtype = ReadDType(found.type.elem_type);
  if (!tensor || !dtype.ok()) return kFaulty;
  TensorType type;
  type.dtype = *dtype;
  for (const DimProto& d : found.type.dims)
    type.dims.push_back(d.value && *d.value >= 0
                            ? Expr(*d.value)
                            : scope.graph->arena().Fresh("declared", {.lo = 0}));
  return scope.graph->AddValue(std::string(name), type);
}

Result<std::vector<size_t>> GraphBuilder::SortNodes(const std::vector<NodeProto>& nodes,
                                                    const Scope& scope) const {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view o : nodes[i].outputs) {
      if (o.empty()) continue;
      if (scope.names.contains(o) || !producer.emplace(o, i).second)
        return Invalid(fmt::format("{}: value '{}' is defined twice", Describe(nodes[i]), o));
    }
  std::vector<std::vector<size_t>> needs(nodes.size()), feeds(nodes.size());
  std::vector<int> waits(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::string_view> names = nodes[i].inputs;
    for (const AttrProto& a : nodes[i].attrs)
      if (a.graph) FreeNames(*a.graph, names);
    for (const AttrProto& a : nodes[i].attrs)  // what is derived is named, not fed
      if (nodes[i].op_type == "Gradient" && a.name == "y") names.push_back(a.s);
    std::unordered_set<size_t> seen;
    for (std::string_view name : names) {
      const auto it = producer.find(name);
      if (it == producer.end() || !seen.insert(it->second).second) continue;
      needs[i].push_back(it->second);
      feeds[it->second].push_back(i);
      ++waits[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t c : feeds[i])
      if (--waits[c] == 0) ready.push(c);
  }
  if (order.size() < nodes.size()) return Invalid(NameCycle(nodes, needs, waits));
  return order;
}

Status GraphBuilder::Nodes(const std::vector<NodeProto>& nodes, Scope& scope, const Frame& frame) {
  GE_ASSIGN(const std::vector<size_t> order, SortNodes(nodes, scope));
  const size_t known = faults().size();
  for (size_t i : order) GE_TRY(OneNode(nodes[i], scope, frame));
  if (faults().size() == known) return Status();
  return Error(faults()[known].code, faults()[known].message);
}

Status GraphBuilder::Body(const GraphProto& proto, Scope& scope, const Frame& frame) {
  scope.proto = &proto;
  std::unordered_set<std::string_view> seen;
  auto add = [&](std::string_view name, const auto& tensor) -> Status {
    if (name.empty()) return Invalid("initializer without a name");
    const std::string where = fmt::format("initializer '{}'", name);
    if (!seen.insert(name).second) return Invalid(where + " is given twice");
    if (scope.names.contains(name)) return Status();
    Result<Constant> c = tensors_.Read(tensor);
    if (!c.ok()) {
      Status fault = std::move(c).In(where).status();
      if (fault.code() != Code::kUnsupported) return fault;
      NoteType(name, fault, scope);
      return Status();
    }
    scope.names[name] =
        scope.graph->AddConstant(frame.prefix + std::string(name), std::move(c).value());
    return Status();
  };
  for (const TensorProto& t : proto.initializers) GE_TRY(add(t.name, t));
  for (const SparseTensorProto& t : proto.sparse_initializers) GE_TRY(add(t.values.name, t));
  return Nodes(proto.nodes, scope, frame);
}

Result<ValueId> GraphBuilder::Output(std::string_view name, Scope& scope) {
  const std::optional<ValueId> v = Lookup(name, scope);
  if (!v || *v == kNone) return Invalid(fmt::format("output '{}' is not defined", name));
  if (*v == kFaulty) return DependsOnFault();
  return *v;
}

}  // namespace ge::onnx
