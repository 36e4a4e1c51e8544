// AscendIR: a Graph of Nodes over Values, in arrays addressed by 32-bit ids. Subgraphs (If, Loop,
// Scan) are Graphs owned by their node. What a subgraph uses of the outer scope is passed
// explicitly: the captured values stand at the end of the node's inputs and of the subgraph's
// inputs, in one order.
//
// Invariant: nodes are in topological order in `order`; a value has one producer (node, graph input
// or constant). Text form: see docs/ir.md; ToString and ParseGraph round-trip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "expr/expr.h"
#include "type/tensor_type.h"

namespace ge {

using NodeId = int32_t;
using ValueId = int32_t;
using ConstId = int32_t;
inline constexpr int32_t kNone = -1;

// Immutable bytes of a constant; `keep` holds whatever owns them (a mapped file, a vector).
struct Constant {
  DType dtype = DType::kNone;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;  // dense ND; strings: not used
  std::vector<std::string> strings;  // dtype kString
  std::shared_ptr<const void> keep;
  int64_t Elements() const;
};
Constant MakeConstant(DType dtype, std::vector<int64_t> dims, const void* data);  // copies

struct Graph;
using Attr = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                          std::vector<std::string>, std::shared_ptr<const Constant>>;

enum class ValueKind : uint8_t { kTensor, kSequence, kOptional, kOpaque };

struct Value {
  std::string name;  // the source value's name, or made unique
  ValueKind kind = ValueKind::kTensor;
  TensorType type;         // of the tensor, or of the elements
  std::vector<Halo> halo;  // of the buffer that holds it (set by layout)
  // Integer and bool tensors of at most 64 elements: the elements as Exprs, if known.
  std::optional<std::vector<Expr>> elems;
  NodeId producer = kNone;  // kNone: graph input, constant, or nothing
  ConstId constant = kNone;
};

struct OpDef;

struct Node {
  const OpDef* op = nullptr;
  std::string name;
  std::vector<ValueId> inputs;   // kNone = absent optional operand
  std::vector<ValueId> outputs;  // kNone = not wanted
  std::map<std::string, Attr, std::less<>> attrs;
  std::vector<std::unique_ptr<Graph>> subgraphs;  // If: then, else; Loop, Scan: body
  std::vector<std::string> origin;  // names of the source nodes it stands for (sorted)
  // Symbols that inference made for data-dependent sizes: running it again gives the same ones.
  std::vector<Expr> fresh;
  bool dead = false;
};

// What all graphs of one model share.
struct Model {
  ExprArena arena;
  std::deque<Constant> constants;
  struct Check {
    Expr condition;
    std::string message;
  };
  std::vector<Check> checks;  // run-time shape checks
  std::string expand_fault;   // why the last ExpandBuilder::Done returned false
};

struct Graph {
  std::string name;
  std::shared_ptr<Model> model;  // one per root graph and its subgraphs
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<NodeId> order;  // topological; dead nodes absent
  std::vector<ValueId> inputs, outputs;
  // Not 0 if this graph runs (a branch of If); run-time checks that inference makes hold only then.
  Expr guard = 1;

  ExprArena& arena() const { return model->arena; }
  Value& value(ValueId v) { return values[v]; }
  const Value& value(ValueId v) const { return values[v]; }
  Node& node(NodeId n) { return nodes[n]; }
  const Node& node(NodeId n) const { return nodes[n]; }
  bool IsConstant(ValueId v) const { return v != kNone && values[v].constant != kNone; }
  const Constant* ConstantOf(ValueId v) const;  // null if not a constant

  ValueId AddValue(std::string name, TensorType type);
  ValueId AddInput(std::string name, TensorType type);
  ValueId AddConstant(std::string name, Constant constant);  // sets type and, if small, elems
  NodeId AddNode(const OpDef& op, std::string name, std::vector<ValueId> inputs, int num_outputs);
};

// consumers[v] = (node, operand) pairs of live nodes, in order.
struct Use {
  NodeId node;
  int operand;
};
std::vector<std::vector<Use>> Uses(const Graph& g);
// Recomputes `order` topologically (stable: by node id where free). False if there is a cycle.
bool SortTopologically(Graph& g);
// Faults of structure and of types against inference: every one, a line each.
Status Verify(const Graph& g);
std::string ToString(const Graph& g);
Result<std::unique_ptr<Graph>> ParseGraph(std::string_view text);

template <class T>
T AttrOr(const Node& n, std::string_view name, T otherwise) {
  auto it = n.attrs.find(name);
  if (it == n.attrs.end()) return otherwise;
  const T* v = std::get_if<T>(&it->second);
  return v ? *v : otherwise;
}
inline bool HasAttr(const Node& n, std::string_view name) {
  return n.attrs.find(name) != n.attrs.end();
}

}  // namespace ge
