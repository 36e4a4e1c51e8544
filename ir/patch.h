// Patch: the only way a pass changes a graph. UseLists: who uses which value, and the order, kept
// up to date by patches, so that a pass over n nodes costs about n.
//
//   UseLists uses(g);
//   for (NodeId id : uses.Order()) {
//     if (uses.Dead(id) || !IsDoubleNeg(g, id)) continue;      // y = Neg(Neg(x))
//     Patch p(uses, {inner, id});
//     p.Replace(y, x);
//     changed |= p.Apply();
//   }
//   // ~UseLists writes g.order
//
// Between construction and Flush, g.order is stale: iterate over Order().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/expand.h"
#include "ir/graph.h"

namespace ge {

class UseLists {
 public:
  explicit UseLists(Graph& g);
  ~UseLists() { Flush(); }
  UseLists(const UseLists&) = delete;
  UseLists& operator=(const UseLists&) = delete;

  Graph& graph() { return graph_; }
  const std::vector<Use>& Of(ValueId v) const { return uses_[v]; }
  bool IsOutput(ValueId v) const { return output_count_[v] > 0; }
  // Used by exactly one operand and not a graph output.
  bool HasOneUse(ValueId v) const { return uses_[v].size() == 1 && !IsOutput(v); }
  bool IsUnused(ValueId v) const { return uses_[v].empty() && !IsOutput(v); }
  bool Dead(NodeId n) const { return graph_.node(n).dead; }
  // True if a stands before b in the order.
  bool Before(NodeId a, NodeId b) const { return position_[a] < position_[b]; }
  std::vector<NodeId> Order() const;  // live nodes, now
  // Kills `n` if nothing uses its outputs, then producers that lose their last use. True if it
  // died.
  bool KillIfUnused(NodeId n);
  void SetInput(NodeId n, int operand, ValueId v);
  void Flush();  // writes g.order

 private:
  friend class Patch;
  void Grow();                               // after new values and nodes
  void InsertAfter(NodeId n, NodeId place);  // place kNone: at the front
  void Unlink(NodeId n);
  void Relabel();
  void RemoveUse(ValueId v, NodeId n, int operand);
  void RedirectOutputs(ValueId from, ValueId to);

  Graph& graph_;
  std::vector<std::vector<Use>> uses_;
  std::vector<int> output_count_;
  std::vector<NodeId> next_, previous_;
  std::vector<int64_t> position_;  // grows along the list
  NodeId first_ = kNone, last_ = kNone;
  bool needs_sort_ = false;
};

class Patch {
 public:
  // `replaced`: the nodes that the new ones stand for; those left without use die in Apply.
  Patch(UseLists& uses, std::vector<NodeId> replaced);
  ~Patch();  // undoes what was added if Apply was not called
  Patch(const Patch&) = delete;
  Patch& operator=(const Patch&) = delete;

  // A new node, inferred at once; it stands after the replaced nodes and after its inputs. kNone,
  // and Apply does nothing, if inference refuses it.
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  std::vector<ValueId> AddMulti(std::string_view op, std::vector<ValueId> inputs, int num_outputs,
                                Attrs attrs = {});
  ValueId Const(Constant constant);
  ValueId Ints(const std::vector<int64_t>& values);  // i64[n]
  ValueId Exprs(const std::vector<Expr>& elements);  // constant or ge.Exprs
  // At Apply: every use of `old` becomes a use of `by`, which takes over its name if it is new.
  // If `old` is a graph output and `by` an input, a constant or output of its own that is not new,
  // the graph keeps `old` as its output.
  void Replace(ValueId old, ValueId by);
  // At Apply: one operand of a node that stays becomes `by`.
  void SetInput(NodeId n, int operand, ValueId by);
  // True if something changed.
  bool Apply();

 private:
  bool IsNew(ValueId v) const { return v >= static_cast<ValueId>(first_value_); }
  void Undo();
  bool ReplaceUses(ValueId old, ValueId by);
  bool CanBeOutput(ValueId v) const;

  UseLists& uses_;
  Graph& graph_;
  std::vector<NodeId> replaced_, added_;
  std::vector<std::pair<ValueId, ValueId>> replacements_;
  struct Edge {
    NodeId node;
    int operand;
    ValueId value;
  };
  std::vector<Edge> edges_;
  std::vector<std::string> origin_;
  std::string name_;
  size_t first_value_;
  NodeId place_ = kNone;
  bool failed_ = false, done_ = false;
};

}  // namespace ge
