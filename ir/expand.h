// ExpandBuilder: how an OpDef::expand function replaces a node by simpler ones.
//
//   bool ExpandHardSwish(Graph& g, NodeId n) {
//     ExpandBuilder e(g, n);
//     ValueId gate = e.Op("HardSigmoid", {e.In(0)}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
//     return e.Done({e.Op("Mul", {e.In(0), gate})});
//   }
//
// New nodes are inferred at once, take the place of the old one in the order and carry its origins.
// The old node's output values live on under their ids and names, with new producers, so no
// consumer is touched. If an inference fails, everything after gives kNone, and Done undoes all and
// returns false. References into the graph's nodes and values do not survive a call of Op or
// Constant.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/opdef.h"

namespace ge {

using Attrs = std::map<std::string, Attr, std::less<>>;

class ExpandBuilder {
 public:
  ExpandBuilder(Graph& g, NodeId node);
  ~ExpandBuilder();  // undoes what was added if Done was not called
  ExpandBuilder(const ExpandBuilder&) = delete;
  ExpandBuilder& operator=(const ExpandBuilder&) = delete;

  Graph& graph() { return graph_; }
  // The node that is replaced (a copy without subgraphs).
  const Node& node() const { return node_; }
  bool Has(int i) const { return i < NumInputs() && node_.inputs[i] != kNone; }
  int NumInputs() const { return static_cast<int>(node_.inputs.size()); }
  int NumOutputs() const { return static_cast<int>(node_.outputs.size()); }
  bool Wants(int o) const { return o < NumOutputs() && node_.outputs[o] != kNone; }
  ValueId In(int i) const { return Has(i) ? node_.inputs[i] : kNone; }
  const TensorType& OutType(int o) const {  // an empty type if not wanted
    static const TensorType kAbsent;
    return Wants(o) ? graph_.value(node_.outputs[o]).type : kAbsent;
  }
  int64_t Int(std::string_view attr, int64_t otherwise) const {
    return AttrOr<int64_t>(node_, attr, otherwise);
  }
  float Float(std::string_view attr, float otherwise) const {
    return AttrOr<float>(node_, attr, otherwise);
  }
  std::string Str(std::string_view attr, std::string otherwise) const {
    return AttrOr<std::string>(node_, attr, otherwise);
  }
  std::vector<int64_t> Ints(std::string_view attr) const {
    return AttrOr<std::vector<int64_t>>(node_, attr, {});
  }

  // Facts of any value; of kNone no dims, or many of 1 after a failure. Copies: safe to keep.
  DType Type(ValueId v) const;
  std::vector<Expr> Dims(ValueId v) const;
  int Rank(ValueId v) const { return static_cast<int>(Dims(v).size()); }
  const std::vector<Expr>* Elems(ValueId v) const;  // known elements, or null
  const ge::Constant* Const(ValueId v) const;       // bytes, or null

  // A new node with one output. `op` is "Mul", or with a domain "ge.Exprs".
  ValueId Op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  // The same with any number of outputs.
  std::vector<ValueId> Ops(std::string_view op, std::vector<ValueId> inputs, int num_outputs,
                           Attrs attrs = {});

  // Constants. Values are converted to dtype (any numeric dtype of at least 8 bits).
  ValueId Constant(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values);
  ValueId Constant(ge::Constant constant);
  ValueId Scalar(DType dtype, double value) { return Constant(dtype, {}, {value}); }
  ValueId ScalarLike(ValueId v, double value) { return Scalar(Type(v), value); }
  ValueId Ints(const std::vector<int64_t>& values);  // i64[n]
  // i64[n] with these elements: a constant if they are, else a node ge.Exprs.
  ValueId Exprs(const std::vector<Expr>& elements);
  // Reshape and Expand to dims that are known only as Exprs.
  ValueId Reshape(ValueId v, const std::vector<Expr>& dims) {
    return Op("Reshape", {v, Exprs(dims)}, {{"allowzero", int64_t{1}}});
  }
  ValueId Expand(ValueId v, const std::vector<Expr>& dims) {
    return Op("Expand", {v, Exprs(dims)});
  }
  ValueId Cast(ValueId v, DType to);  // v itself if it has that type

  // Replaces the node: outputs[o] is what output o becomes (kNone where it is not wanted). True, or
  // false after a failure; Model::expand_fault then says which.
  bool Done(const std::vector<ValueId>& outputs);

 private:
  void Undo();
  void Fail(std::string message);

  Graph& graph_;
  NodeId id_;
  Node node_;
  std::vector<std::string> origin_;
  size_t first_node_, first_value_, first_order_;
  bool failed_ = false, done_ = false;
};

// Expands node n by its OpDef, and what that gives in turn. Ok if it was not expandable; an error
// if an expansion failed and the operator has no other meaning.
Status ExpandNode(Graph& g, NodeId n);

}  // namespace ge
