// Building a Graph, its use lists and its order.
#include "ir/graph.h"

#include <cstring>
#include <functional>
#include <queue>

#include "base/check.h"

namespace ge {

namespace {

constexpr int64_t kMaxKnownElements = 64;

template <class T>
std::optional<std::vector<Expr>> ReadElements(const Constant& c, int64_t count) {
  if (c.bytes.size() < count * sizeof(T)) return std::nullopt;
  std::vector<Expr> elems;
  for (int64_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, c.bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (x > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    }
    elems.push_back(Expr(static_cast<int64_t>(x)));
  }
  return elems;
}

std::optional<std::vector<Expr>> KnownElements(const Constant& c) {
  const int64_t count = c.Elements();
  if (count > kMaxKnownElements) return std::nullopt;
  switch (c.dtype) {
    case DType::kBool:
    case DType::kU8: return ReadElements<uint8_t>(c, count);
    case DType::kI8: return ReadElements<int8_t>(c, count);
    case DType::kU16: return ReadElements<uint16_t>(c, count);
    case DType::kI16: return ReadElements<int16_t>(c, count);
    case DType::kU32: return ReadElements<uint32_t>(c, count);
    case DType::kI32: return ReadElements<int32_t>(c, count);
    case DType::kU64: return ReadElements<uint64_t>(c, count);
    case DType::kI64: return ReadElements<int64_t>(c, count);
    default: return std::nullopt;
  }
}

}  // namespace

int64_t Constant::Elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

Constant MakeConstant(DType dtype, std::vector<int64_t> dims, const void* data) {
  Constant c;
  c.dtype = dtype;
  c.dims = std::move(dims);
  const size_t size = static_cast<size_t>(BytesFor(dtype, c.Elements()));
  auto copy = std::make_shared<std::vector<std::byte>>(size);
  if (size > 0) std::memcpy(copy->data(), data, size);
  c.bytes = *copy;
  c.keep = std::move(copy);
  return c;
}

const Constant* Graph::ConstantOf(ValueId v) const {
  return IsConstant(v) ? &model->constants[values[v].constant] : nullptr;
}

ValueId Graph::AddValue(std::string value_name, TensorType type) {
  Value v;
  v.name = std::move(value_name);
  v.type = std::move(type);
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::AddInput(std::string value_name, TensorType type) {
  const ValueId v = AddValue(std::move(value_name), std::move(type));
  inputs.push_back(v);
  return v;
}

ValueId Graph::AddConstant(std::string value_name, Constant constant) {
  TensorType type;
  type.dtype = constant.dtype;
  for (int64_t d : constant.dims) type.dims.push_back(Expr(d));
  const ValueId v = AddValue(std::move(value_name), std::move(type));
  values[v].elems = KnownElements(constant);
  values[v].constant = static_cast<ConstId>(model->constants.size());
  model->constants.push_back(std::move(constant));
  return v;
}

NodeId Graph::AddNode(const OpDef& op, std::string node_name, std::vector<ValueId> node_inputs,
                      int num_outputs) {
  const NodeId id = static_cast<NodeId>(nodes.size());
  Node n;
  n.op = &op;
  n.inputs = std::move(node_inputs);
  for (int o = 0; o < num_outputs; ++o) {
    const ValueId v =
        AddValue(num_outputs == 1 ? node_name : node_name + "." + std::to_string(o), {});
    values[v].producer = id;
    n.outputs.push_back(v);
  }
  n.name = std::move(node_name);
  nodes.push_back(std::move(n));
  order.push_back(id);
  return id;
}

std::vector<std::vector<Use>> Uses(const Graph& g) {
  std::vector<std::vector<Use>> uses(g.values.size());
  for (NodeId id : g.order) {
    const Node& n = g.node(id);
    if (n.dead) continue;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] != kNone) uses[n.inputs[i]].push_back({id, static_cast<int>(i)});
  }
  return uses;
}

bool SortTopologically(Graph& g) {
  const size_t count = g.nodes.size();
  std::vector<int> waits(count, 0);
  std::vector<std::vector<NodeId>> consumers(count);
  size_t live = 0;
  for (size_t id = 0; id < count; ++id) {
    const Node& n = g.nodes[id];
    if (n.dead) continue;
    ++live;
    for (ValueId v : n.inputs) {
      const NodeId p = v == kNone ? kNone : g.value(v).producer;
      if (p == kNone || g.node(p).dead) continue;
      consumers[p].push_back(static_cast<NodeId>(id));
      ++waits[id];
    }
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (size_t id = 0; id < count; ++id)
    if (!g.nodes[id].dead && waits[id] == 0) ready.push(static_cast<NodeId>(id));
  std::vector<NodeId> order;
  order.reserve(live);
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (NodeId c : consumers[id])
      if (--waits[c] == 0) ready.push(c);
  }
  if (order.size() != live) return false;
  g.order = std::move(order);
  return true;
}

}  // namespace ge
