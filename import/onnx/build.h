// GraphBuilder: the nodes of an ONNX graph, in dependence order, into a Graph. Names are resolved
// lexically (locals, then outer graphs); what a subgraph takes from outside becomes an explicit
// capture. Calls of model functions are inlined; an If whose condition is known is replaced by its
// branch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "import/onnx/emit.h"
#include "import/onnx/survey.h"
#include "import/onnx/tensor.h"

namespace ge::onnx {

// What the nodes of one function body (or of the model) have in common.
struct Frame {
  Opsets opsets;
  std::string prefix;                                            // of node and value names
  std::unordered_map<std::string_view, const AttrProto*> attrs;  // a function's, bound by its call
  const Frame* caller = nullptr;
};

// The attribute of that name that is a graph; null if there is none.
const AttrProto* FindGraph(const auto& attrs, std::string_view name) {
  for (const auto& a : attrs)
    if (a.name == name && a.proto->graph) return a.proto;
  return nullptr;
}

// Names of one graph, function body or inlined branch.
struct Scope {
  Graph* graph = nullptr;
  const GraphProto* proto = nullptr;  // null: a function body
  Scope* parent = nullptr;            // null: the model's graph, a function body
  std::unordered_map<std::string_view, ValueId> names;
  // Of the scope that opens a subgraph: values of the parent's graph and their stand-ins here.
  std::vector<std::pair<ValueId, ValueId>> captures;
};

// Today's Scan in a body whose opset had another one. Only BatchedScan makes such nodes: the survey
// refuses a model's own.
inline constexpr std::string_view kScanOfOne = "ge.Scan";

// In place of a value that a faulty node would have given.
inline constexpr ValueId kFaulty = kNone - 1;

// A faulty node does not end the work: its fault is noted and its outputs are what the model
// declares them to be, else kFaulty, which what depends on them inherits. The caller looks at the
// faults in the end.
class GraphBuilder {
 public:
  GraphBuilder(const Functions& functions, TensorSource& tensors, Unknown unknown)
      : functions_(functions), tensors_(tensors), unknown_(std::move(unknown)) {}

  std::vector<NodeFault>& faults() { return unknown_.faults; }
  // An input or initialiser of a type that is not supported.
  void NoteType(std::string_view name, const Status& status, Scope& scope);

  // Adds initialisers (those not named in the scope yet) and nodes of `proto`.
  Status Body(const GraphProto& proto, Scope& scope, const Frame& frame);
  // The value of a graph output.
  Result<ValueId> Output(std::string_view name, Scope& scope);

 private:
  struct Attribute {
    const AttrProto* proto;  // after function attributes are bound
    std::string_view name;
  };
  Status Nodes(const std::vector<NodeProto>& nodes, Scope& scope, const Frame& frame);
  Status OneNode(const NodeProto& node, Scope& scope, const Frame& frame);
  Result<std::vector<ValueId>> KnownNode(const NodeProto& node, Scope& scope, const Frame& frame);
  void NoteFaultsOf(const NodeProto& node, size_t known, const Status& status, const Frame& frame);
  ValueId Declared(std::string_view name, Scope& scope) const;
  Result<std::vector<ValueId>> Build(const NodeProto& node, Scope& scope, const Frame& frame);
  Result<std::vector<ValueId>> ConstantNode(const std::vector<Attribute>& attrs,
                                            const std::string& name, Scope& scope);
  Result<std::vector<ValueId>> Call(const FunctionProto& f, const NodeProto& node, Scope& scope,
                                    const Frame& frame);
  Result<std::vector<ValueId>> IfNode(NodeDraft draft, const std::vector<Attribute>& attrs,
                                      Scope& scope, const Frame& frame);
  Result<std::vector<ValueId>> Branch(const AttrProto& taken, const NodeDraft& draft, Scope& scope,
                                      const Frame& frame);
  Result<std::vector<ValueId>> OnlyBranch(const AttrProto& taken, bool when, const std::string& why,
                                          const NodeDraft& draft, Scope& scope, const Frame& frame);
  Result<std::vector<ValueId>> LoopNode(NodeDraft draft, const std::vector<Attribute>& attrs,
                                        Scope& scope, const Frame& frame);
  Result<std::vector<ValueId>> Loop(NodeDraft draft, const AttrProto& body, Scope& scope,
                                    const Frame& frame);
  Result<std::vector<ValueId>> Inline(const GraphProto& g, const std::vector<ValueId>& arguments,
                                      Scope& scope, const Frame& frame);
  Result<std::vector<ValueId>> FlexAttention(NodeDraft draft, const std::vector<Attribute>& attrs,
                                             Scope& scope, const Frame& frame);
  Result<std::vector<ValueId>> SequenceMap(NodeDraft draft, const NodeProto& node,
                                           const std::vector<Attribute>& attrs, Scope& scope,
                                           const Frame& frame);
  Result<std::vector<ValueId>> Gradient(const NodeDraft& draft, Scope& scope);
  Result<std::vector<ValueId>> BatchedScan(NodeDraft draft, const std::vector<Attribute>& attrs,
                                           Scope& scope, const Frame& frame);
  Result<std::unique_ptr<Graph>> Subgraph(const GraphProto& proto,
                                          const std::vector<Value>& formals, Scope& inner,
                                          Scope& scope, const Frame& frame, Expr guard);

  std::vector<Attribute> Attributes(const NodeProto& node, const Frame& frame) const;
  Result<Attr> Convert(const AttrProto& a);
  std::optional<ValueId> Lookup(std::string_view name, Scope& scope);
  Result<std::vector<ValueId>> Operands(const NodeProto& node, Scope& scope);
  std::string NodeName(const NodeProto& node, const Frame& frame);
  Result<std::vector<size_t>> SortNodes(const std::vector<NodeProto>& nodes,
                                        const Scope& scope) const;

  const Functions& functions_;
  TensorSource& tensors_;
  Unknown unknown_;        // and the faults found since
  std::string_view step_;  // of building a node: "attribute", "version", "node"
  std::unordered_map<std::string_view, int64_t> unnamed_;  // counters by operator
  int64_t built_ = 0;
  int loop_depth_ = 0;
};

}  // namespace ge::onnx
