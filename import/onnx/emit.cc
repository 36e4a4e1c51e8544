// Emitter: one node in, facts out.
#include "import/onnx/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/opdef.h"

namespace ge::onnx {

namespace {

bool AllConst(const std::vector<Expr>& elems) {
  for (const Expr& e : elems)
    if (!e.IsConst()) return false;
  return true;
}

// Little-endian integers: the low bytes are the element.
Constant Encode(const TensorType& type, const std::vector<Expr>& elems) {
  std::vector<int64_t> dims;
  for (const Expr& d : type.dims) dims.push_back(d.value());
  const size_t unit = static_cast<size_t>(BitWidth(type.dtype)) / 8;
  std::vector<std::byte> bytes(elems.size() * unit + 1);
  for (size_t i = 0; i < elems.size(); ++i) {
    const int64_t x = elems[i].value();
    std::memcpy(bytes.data() + i * unit, &x, unit);
  }
  return MakeConstant(type.dtype, std::move(dims), bytes.data());
}

bool CanEncode(const Value& v) {
  const DType t = v.type.dtype;
  if (v.kind != ValueKind::kTensor || !v.elems || !AllConst(*v.elems)) return false;
  if (!(t == DType::kBool || IsInteger(t)) || BitWidth(t) < 8) return false;
  int64_t count = 1;
  for (const Expr& d : v.type.dims) {
    if (!d.IsConst() || d.value() > 64) return false;
    count *= d.value();
  }
  return count == static_cast<int64_t>(v.elems->size());
}

}  // namespace

Result<NodeId> Emitter::Add(NodeDraft draft) {
  const OpDef* op = FindOp(draft.domain, draft.op);
  if (op == nullptr) return Unsupported(fmt::format("operator {} is not supported", draft.op));
  while (!draft.inputs.empty() && draft.inputs.back() == kNone) draft.inputs.pop_back();
  while (!draft.outputs.empty() && draft.outputs.back().empty()) draft.outputs.pop_back();
  // Inference and lowering go by the first output: it exists even where only a later one is wanted.
  if (!op->control && (draft.outputs.empty() || draft.outputs[0].empty())) {
    draft.outputs.resize(std::max<size_t>(draft.outputs.size(), 1));
    draft.outputs[0] = draft.name + ".unused";
  }
  const NodeId id = static_cast<NodeId>(graph_.nodes.size());
  Node n;
  n.op = op;
  n.name = std::move(draft.name);
  n.inputs = std::move(draft.inputs);
  n.attrs = std::move(draft.attrs);
  n.subgraphs = std::move(draft.subgraphs);
  n.origin = {n.name};
  for (std::string& name : draft.outputs) {
    const ValueId v = name.empty() ? kNone : graph_.AddValue(std::move(name), {});
    if (v != kNone) graph_.value(v).producer = id;
    n.outputs.push_back(v);
  }
  graph_.nodes.push_back(std::move(n));
  graph_.order.push_back(id);
  GE_TRY(CheckSharedTypes(graph_, graph_.node(id)));
  GE_TRY(Infer(graph_, graph_.node(id)));
  return id;
}

bool Emitter::FoldKnown(NodeId id) {
  Node& n = graph_.node(id);
  if (n.outputs.empty()) return false;
  bool constants = true;
  for (ValueId v : n.outputs) constants = constants && (v == kNone || CanEncode(graph_.value(v)));
  if (constants) {
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      Value& value = graph_.value(v);
      value.constant = static_cast<ConstId>(graph_.model->constants.size());
      value.producer = kNone;
      graph_.model->constants.push_back(Encode(value.type, *value.elems));
    }
    n.dead = true;
    n.inputs.clear();
    n.outputs.clear();
    graph_.order.pop_back();
    return true;
  }
  const Value& out = graph_.value(n.outputs[0] == kNone ? 0 : n.outputs[0]);
  const DType t = out.type.dtype;
  if (n.outputs.size() != 1 || n.outputs[0] == kNone || !out.elems || out.type.rank() > 1 ||
      out.elems->empty() || !(t == DType::kI64 || t == DType::kI32) || n.op->domain == "ge")
    return false;
  std::vector<std::string> texts;
  for (const Expr& e : *out.elems) texts.push_back(ToString(e));
  n.op = FindOp("ge", "Exprs");
  n.inputs.clear();
  n.subgraphs.clear();
  n.fresh.clear();
  n.attrs = Attrs{{"elems", std::move(texts)}, {"to", static_cast<int64_t>(t)}};
  if (out.type.rank() == 0) n.attrs["scalar"] = int64_t{1};
  return true;
}

Status Emitter::Finish(NodeId n) {
  if (FoldKnown(n)) return Status();
  return ExpandNode(graph_, n);
}

Result<std::vector<ValueId>> Emitter::Emit(NodeDraft draft) {
  const size_t wanted = draft.outputs.size();
  GE_ASSIGN(const NodeId id, Add(std::move(draft)));
  std::vector<ValueId> outputs = graph_.node(id).outputs;
  outputs.resize(std::max(wanted, outputs.size()), kNone);
  GE_TRY(Finish(id));
  return outputs;
}

Result<ValueId> Emitter::One(const std::string& name, std::string_view op,
                             std::vector<ValueId> inputs, Attrs attrs) {
  NodeDraft draft;
  draft.name = name;
  const size_t dot = op.rfind('.');
  if (dot != std::string_view::npos) draft.domain = op.substr(0, dot);
  draft.op = dot == std::string_view::npos ? op : op.substr(dot + 1);
  draft.inputs = std::move(inputs);
  draft.attrs = std::move(attrs);
  draft.outputs = {fmt::format("{}.{}", name, op)};
  GE_ASSIGN(const std::vector<ValueId> outputs, Emit(std::move(draft)));
  return outputs[0];
}

ValueId Emitter::Ints(const std::string& name, const std::vector<int64_t>& values) {
  return graph_.AddConstant(
      name, MakeConstant(DType::kI64, {static_cast<int64_t>(values.size())}, values.data()));
}

Result<ValueId> Emitter::Sizes(const std::string& name, const std::vector<Expr>& sizes) {
  if (AllConst(sizes)) {
    std::vector<int64_t> numbers;
    for (const Expr& e : sizes) numbers.push_back(e.value());
    return Ints(name + ".shape", numbers);
  }
  NodeDraft draft;
  draft.name = name;
  draft.domain = "ge";
  draft.op = "Exprs";
  std::vector<std::string> texts;
  for (const Expr& e : sizes) texts.push_back(ToString(e));
  draft.attrs = Attrs{{"elems", std::move(texts)}};
  draft.outputs = {name + ".shape"};
  GE_ASSIGN(const std::vector<ValueId> outputs, Emit(std::move(draft)));
  return outputs[0];
}

}  // namespace ge::onnx
