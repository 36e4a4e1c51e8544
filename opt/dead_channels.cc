// dead_channels: channels that meet zero weights only are not computed.
//
//   %h = Conv(%x, #w [257,1,k])  %t = Transpose(Mul(%h, %h))  %y = MatMul(%t, #m [257,32])
//     with rows 120 to 256 of #m zero
//   ->  %h = Conv(%x, #w [120,1,k])  ..  %y = MatMul(%t, #m [120,32])
//
// Such are filter banks, which reach over a part of the spectrum, and networks whose channels were
// pruned to zeros. A channel is followed from the dot through nodes that keep channels apart, up
// to the dots with constant weights that make it; nothing is done if anything else makes or reads
// it. The numbers stay the same as long as they are finite: 0 * infinity is not computed.
#include <fmt/format.h>

#include <map>
#include <set>

#include "ir/opdef.h"
#include "ir/patch.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

constexpr int64_t kBlock = 16;  // fewer blocks of so many channels are worth the change

// The axis of a dot's constant weights along which its input channels lie (rows), or its output
// channels (columns); -1 if the node is no such dot.
int WeightAxis(const Graph& g, const Node& n, bool rows) {
  const bool conv = IsPlain(n, "Conv"), gemm = IsPlain(n, "Gemm");
  if (!conv && !gemm && !IsPlain(n, "MatMul")) return -1;
  const Constant* w = g.ConstantOf(n.inputs[1]);
  if (w == nullptr || w->bytes.empty() || AttrOr<int64_t>(n, "group", 1) != 1) return -1;
  if (conv) return rows ? 1 : 0;
  if (w->dims.size() != 2 || AttrOr<int64_t>(n, "transA", 0) != 0) return -1;
  return (AttrOr<int64_t>(n, "transB", 0) != 0) == rows ? 1 : 0;
}

// Input channels of a dot for which not all weights are zero.
std::vector<int64_t> LiveRows(const Constant& w, int axis) {
  const auto rows = static_cast<size_t>(w.dims[static_cast<size_t>(axis)]);
  size_t outer = 1;
  for (size_t i = 0; i < static_cast<size_t>(axis); ++i) outer *= static_cast<size_t>(w.dims[i]);
  const size_t inner = w.bytes.size() / (outer * rows);  // bytes
  const std::byte sign{static_cast<unsigned char>(IsInteger(w.dtype) ? 0 : 0x80)};
  const size_t size = w.bytes.size() / static_cast<size_t>(w.Elements());
  const auto live = [&](size_t row) {
    for (size_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < inner; ++i) {
        const std::byte b = w.bytes[(o * rows + row) * inner + i];
        if ((i % size == size - 1 ? b & ~sign : b) != std::byte{0}) return true;
      }
    }
    return false;
  };
  std::vector<int64_t> result;
  for (size_t row = 0; row < rows; ++row)
    if (live(row)) result.push_back(static_cast<int64_t>(row));
  return result;
}

// What changes if a value keeps some of its channels only.
class Narrowing {
 public:
  Narrowing(UseLists& uses, NodeId root) : uses_(uses), g_(uses.graph()), root_(root) {}

  bool Run(const Policy& policy) {
    const int rows = WeightAxis(g_, g_.node(root_), true);
    if (rows < 0) return false;
    const std::vector<ValueId> inputs = g_.node(root_).inputs;
    const Constant& w = *g_.ConstantOf(inputs[1]);
    live_ = LiveRows(w, rows);
    const int64_t all = w.dims[static_cast<size_t>(rows)];
    if (live_.empty() || Blocks(static_cast<int64_t>(live_.size())) >= Blocks(all)) return false;
    const bool conv = IsPlain(g_.node(root_), "Conv");
    if (!Follow(root_, 0, conv ? 1 : g_.value(inputs[0]).type.rank() - 1) || !OnlyHere())
      return false;
    std::vector<NodeId> replaced = nodes_;
    replaced.push_back(root_);
    Patch p(uses_, replaced);
    for (NodeId id : nodes_) Remake(p, id);
    const Node n = Copy(root_);
    std::vector<ValueId> operands = n.inputs;
    operands[0] = Narrow(p, root_, 0, operands[0]);
    operands[1] = p.Const(Taken(w, rows, live_));
    p.Replace(n.outputs[0], p.Add(n.op->name, operands, n.attrs));
    if (!p.Apply()) return false;
    if (policy.report)
      policy.report(fmt::format("dead_channels: {}: {} of {} channels meet zero weights only",
                                g_.node(root_).name, all - static_cast<int64_t>(live_.size()),
                                all));
    return true;
  }

 private:
  static int64_t Blocks(int64_t channels) { return (channels + kBlock - 1) / kBlock; }

  // A patch that adds nodes may move those of the graph.
  Node Copy(NodeId id) const {
    const Node& n = g_.node(id);
    Node copy;
    copy.op = n.op, copy.inputs = n.inputs, copy.outputs = n.outputs, copy.attrs = n.attrs;
    return copy;
  }

  // Whether what the operand holds can lose channels on this axis; nodes_ grows, producers first.
  bool Follow(NodeId reader, int operand, int axis) {
    edges_.insert({reader, operand});
    const ValueId v = g_.node(reader).inputs[static_cast<size_t>(operand)];
    if (auto it = axis_.find(v); it != axis_.end()) return it->second == axis;
    axis_[v] = axis;
    if (g_.IsConstant(v)) return g_.ConstantOf(v)->dtype != DType::kString;
    const NodeId id = g_.value(v).producer;
    if (id == kNone || uses_.IsOutput(v)) return false;
    const Node& n = g_.node(id);
    if (n.outputs.size() != 1 || !n.subgraphs.empty()) return false;
    if (!FollowInputs(id, n, axis)) return false;
    nodes_.push_back(id);
    return true;
  }

  bool FollowInputs(NodeId id, const Node& n, int axis) {
    const int rank = g_.value(n.outputs[0]).type.rank();
    if (IsDot(n)) return axis == (IsPlain(n, "Conv") ? 1 : rank - 1) && FollowBias(id, n, axis);
    if (IsDepthwise(n)) {
      if (axis != 1) return false;
      return Follow(id, 0, 1) && Follow(id, 1, 0) && (!HasInput(n, 2) || Follow(id, 2, 0));
    }
    if (IsPool(n)) return axis == 1 && Follow(id, 0, 1);
    if (IsPlain(n, "Transpose")) {
      const auto perm = AttrOr<std::vector<int64_t>>(n, "perm", {});
      return Follow(
          id, 0,
          perm.empty() ? rank - 1 - axis : static_cast<int>(perm[static_cast<size_t>(axis)]));
    }
    if (IsPlain(n, "Unsqueeze")) return FollowUnsqueeze(id, n, axis, rank);
    if (!n.op->by_element) return false;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (HasInput(n, i) && !FollowBroadcast(id, n, i, axis, rank)) return false;
    return true;
  }

  // They keep channels (axis 1) apart.
  static bool IsPool(const Node& n) {
    return IsPlain(n, "AveragePool") || IsPlain(n, "GlobalAveragePool") ||
           IsPlain(n, "GlobalMaxPool") || IsPlain(n, "MaxPool");
  }
  bool IsDot(const Node& n) const { return WeightAxis(g_, n, false) >= 0; }
  static bool HasInput(const Node& n, size_t i) {
    return i < n.inputs.size() && n.inputs[i] != kNone;
  }

  bool IsDepthwise(const Node& n) const {
    const Constant* w = IsPlain(n, "Conv") ? g_.ConstantOf(n.inputs[1]) : nullptr;
    return w != nullptr && w->dims[1] == 1 && AttrOr<int64_t>(n, "group", 1) == w->dims[0];
  }

  // The weights of a dot that makes the channels are taken apart in Remake.
  bool FollowBias(NodeId id, const Node& n, int axis) {
    if (!HasInput(n, 2)) return true;
    if (!g_.IsConstant(n.inputs[2])) return false;
    return IsPlain(n, "Conv") ? Follow(id, 2, 0) : FollowBroadcast(id, n, 2, axis, 2);
  }

  bool FollowUnsqueeze(NodeId id, const Node& n, int axis, int rank) {
    const auto& elems = g_.value(n.inputs[1]).elems;
    if (!elems) return false;
    int before = 0;
    for (Expr e : *elems) {
      if (!e.IsConst()) return false;
      const int64_t at = e.value() < 0 ? e.value() + rank : e.value();
      if (at == axis) return false;
      before += at < axis;
    }
    return Follow(id, 0, axis - before);
  }

  // An operand that is repeated along the axis stays as it is.
  bool FollowBroadcast(NodeId id, const Node& n, size_t operand, int axis, int rank) {
    const TensorType& type = g_.value(n.inputs[operand]).type;
    const int own = axis - (rank - type.rank());
    if (own < 0 || type.dims[static_cast<size_t>(own)].IsConst(1)) return true;
    const Expr wanted = g_.value(n.outputs[0]).type.dims[static_cast<size_t>(axis)];
    return type.dims[static_cast<size_t>(own)] == wanted &&
           Follow(id, static_cast<int>(operand), own);
  }

  // No other node reads what loses channels.
  bool OnlyHere() const {
    for (const auto& [v, axis] : axis_) {
      if (g_.IsConstant(v)) continue;
      for (const Use& use : uses_.Of(v))
        if (!edges_.contains({use.node, use.operand})) return false;
    }
    return true;
  }

  ValueId Narrow(Patch& p, NodeId reader, int operand, ValueId v) {
    if (!edges_.contains({reader, operand})) return v;
    auto it = made_.find(v);
    if (it == made_.end())
      it = made_.emplace(v, p.Const(Taken(*g_.ConstantOf(v), axis_.at(v), live_))).first;
    return it->second;
  }

  void Remake(Patch& p, NodeId id) {
    Node n = Copy(id);
    const std::vector<ValueId> old = n.inputs;
    const bool depthwise = IsDepthwise(n);
    const int columns = WeightAxis(g_, n, false);
    for (size_t i = 0; i < old.size(); ++i)
      n.inputs[i] = Narrow(p, id, static_cast<int>(i), old[i]);
    if (columns >= 0) n.inputs[1] = p.Const(Taken(*g_.ConstantOf(old[1]), columns, live_));
    if (depthwise) n.attrs["group"] = static_cast<int64_t>(live_.size());
    made_[n.outputs[0]] = p.Add(n.op->name, n.inputs, n.attrs);
  }

  UseLists& uses_;
  Graph& g_;
  NodeId root_;
  std::vector<int64_t> live_;
  std::map<ValueId, int> axis_;             // values that lose channels, and where
  std::set<std::pair<NodeId, int>> edges_;  // the operands through which they were found
  std::vector<NodeId> nodes_;               // that make them
  std::map<ValueId, ValueId> made_;         // what takes their place
};

bool RunOn(Graph& g, const Policy& policy) {
  UseLists uses(g);
  bool changed = false;
  for (NodeId id : uses.Order())
    if (!uses.Dead(id)) changed |= Narrowing(uses, id).Run(policy);
  return changed;
}

bool Run(Graph& g, const Policy& policy, const PassServices&) {
  bool changed = false;
  ForEachGraph(g, [&](Graph& each) { changed |= RunOn(each, policy); });
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "dead_channels", .needs = {}, .gives = {}, .run = Run});

}  // namespace
}  // namespace ge
