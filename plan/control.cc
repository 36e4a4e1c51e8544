// If: JumpUnless over the then branch, Jump over the else branch. A branch result is made in place
// in the node's output where nothing else needs its memory, else copied there.
//
//   0 jump_unless cond -> 3     1 then ...     2 jump -> 4     3 else ...     4
#include "base/check.h"
#include "ir/opdef.h"
#include "plan/plan_builder.h"

namespace ge {

Status PlanBuilder::EmitControl(const Graph& g, const Node& n) {
  if (n.op->name == "If") return EmitIf(g, n);
  if (n.op->name == "Loop") return EmitLoop(g, n);
  if (n.op->name == "Scan") return EmitScan(g, n);
  return Unsupported("control operator " + n.op->name);
}

// Subgraph inputs from first_sub on are the node's inputs from first_input on, not copied.
Status PlanBuilder::Capture(const Graph& g, const Node& n, size_t first_input, const Graph& sub,
                            size_t first_sub) {
  for (size_t i = first_sub; i < sub.inputs.size(); ++i) {
    const size_t input = first_input + i - first_sub;
    if (!NeedsValue(sub, sub.inputs[i]) || input >= n.inputs.size()) continue;
    if (n.inputs[input] == kNone) continue;
    GE_ASSIGN(const int b, Readable(g, n.inputs[input]));
    BuffersOf(sub)[sub.inputs[i]] = b;
  }
  return {};
}

Status PlanBuilder::EmitIf(const Graph& g, const Node& n) {
  const auto& condition = g.value(n.inputs[0]).elems;
  if (condition && condition->size() == 1 && (*condition)[0].IsConst()) {
    const Graph& taken = *n.subgraphs[(*condition)[0].IsConst(0) ? 1 : 0];
    GE_TRY(Capture(g, n, 1, taken, 0));
    return EmitBranch(g, n, taken);
  }
  GE_ASSIGN(const int test, Readable(g, n.inputs[0]));
  // Outer values are made before the branches: what one branch makes, the other does not see.
  for (const auto& sub : n.subgraphs) GE_TRY(Capture(g, n, 1, *sub, 0));
  for (ValueId v : n.outputs) {
    if (NeedsValue(g, v)) Writable(g, v);
  }
  const int to_else = AddJump(test);
  plan_.tasks[to_else].name = n.name;
  const auto before = bound_;
  GE_TRY(EmitBranch(g, n, *n.subgraphs[0]).In("then"));
  const auto after_then = bound_;
  bound_ = before;
  const int to_end = AddJump(-1);
  SetTarget(to_else);
  GE_TRY(EmitBranch(g, n, *n.subgraphs[1]).In("else"));
  SetTarget(to_end);
  bound_.insert(after_then.begin(), after_then.end());
  return {};
}

Status PlanBuilder::EmitBranch(const Graph& g, const Node& n, const Graph& branch) {
  const int first_own = static_cast<int>(plan_.buffers.size());
  GE_TRY(EmitGraph(branch));
  // Sizes of the results that only this branch knows.
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    if (n.outputs[o] == kNone || g.value(n.outputs[o]).kind != ValueKind::kTensor) continue;
    const TensorType &outer = g.value(n.outputs[o]).type,
                     &inner = branch.value(branch.outputs[o]).type;
    for (size_t d = 0; d < outer.dims.size() && d < inner.dims.size(); ++d) {
      if (outer.dims[d].IsSymbol() && !IsBound(outer.dims[d]))
        AddBind(outer.dims[d], inner.dims[d]);
    }
  }
  // A formula over sizes of the other branch is only evaluated when one of them is bound.
  for (ValueId v : n.outputs) {
    if (v == kNone || g.value(v).kind != ValueKind::kTensor) continue;
    for (Expr dim : g.value(v).type.dims) {
      for (Expr s : Symbols(dim)) {
        const SymbolFacts& f = s.node()->facts;
        if (!IsBound(s)) AddBind(s, f.lo > 0 ? RoundUp(f.lo, f.multiple_of) : Expr(0));
      }
    }
  }
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    if (!NeedsValue(g, n.outputs[o])) continue;
    const Value& outer = g.value(n.outputs[o]);
    GE_ASSIGN(const int from, Readable(branch, branch.outputs[o]));
    const int to = Writable(g, n.outputs[o]);
    const int root = Find(from);
    const om::BufferKind kind = plan_.buffers[root].kind;
    const bool own = root >= first_own && slice_of_[root] < 0 &&
                     (kind == om::BufferKind::kArena || kind == om::BufferKind::kPool);
    if (own && bytes_[root] == bytes_[to] && Find(to) != root && !IsSlot(to)) {
      Join(root, Find(to));
    } else {
      AddCopy(outer.name, from, to);
    }
  }
  return {};
}

}  // namespace ge
