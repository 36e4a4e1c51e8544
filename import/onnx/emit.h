// Emitter: adds one node of the newest opset to a graph: infers it, turns what is known into
// constants and symbolic sizes, expands composites.
//
// Invariant: every node in the graph is inferred. A node whose outputs are all known elements is
// never added: its outputs become constants, or one ge.Exprs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/expand.h"
#include "ir/graph.h"

namespace ge::onnx {

struct NodeDraft {
  std::string name, domain, op;
  std::vector<ValueId> inputs;
  Attrs attrs;
  std::vector<std::string> outputs;  // value names; "" = not wanted
  std::vector<std::unique_ptr<Graph>> subgraphs;
};

// A fault if operands of a node differ in type where ONNX has one type for them.
Status CheckSharedTypes(const Graph& g, const Node& n);

class Emitter {
 public:
  explicit Emitter(Graph& g) : graph_(g) {}
  Graph& graph() { return graph_; }

  // The outputs' values, kNone where not wanted.
  Result<std::vector<ValueId>> Emit(NodeDraft draft);
  // Emit in steps, for nodes whose subgraphs depend on what inference says of them.
  Result<NodeId> Add(NodeDraft draft);
  Status Finish(NodeId n);
  // A node with one output, on behalf of `name`. `op` may have a domain: "ge.After".
  Result<ValueId> One(const std::string& name, std::string_view op, std::vector<ValueId> inputs,
                      Attrs attrs = {});
  ValueId Ints(const std::string& name, const std::vector<int64_t>& values);
  // i64[n]: a constant, or ge.Exprs.
  Result<ValueId> Sizes(const std::string& name, const std::vector<Expr>& sizes);

 private:
  bool FoldKnown(NodeId n);

  Graph& graph_;
};

}  // namespace ge::onnx
