// UseLists and Patch.
#include "ir/patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "ir/opdef.h"
#include "ir/text.h"

namespace ge {

namespace {

constexpr int64_t kGap = int64_t{1} << 32;

}  // namespace

UseLists::UseLists(Graph& g) : graph_(g), uses_(Uses(g)) {
  Grow();
  for (ValueId v : g.outputs) ++output_count_[v];
  for (NodeId n : g.order)
    if (!g.node(n).dead) InsertAfter(n, last_);
}

void UseLists::Grow() {
  uses_.resize(graph_.values.size());
  output_count_.resize(graph_.values.size(), 0);
  next_.resize(graph_.nodes.size(), kNone);
  previous_.resize(graph_.nodes.size(), kNone);
  position_.resize(graph_.nodes.size(), 0);
}

void UseLists::InsertAfter(NodeId n, NodeId place) {
  const NodeId after = place == kNone ? first_ : next_[place];
  previous_[n] = place;
  next_[n] = after;
  (place == kNone ? first_ : next_[place]) = n;
  (after == kNone ? last_ : previous_[after]) = n;
  const int64_t lo =
      place == kNone ? (after == kNone ? 0 : position_[after] - 2 * kGap) : position_[place];
  const int64_t hi = after == kNone ? lo + 2 * kGap : position_[after];
  if (hi - lo < 2) return Relabel();
  position_[n] = lo + (hi - lo) / 2;
}

void UseLists::Relabel() {
  int64_t p = 0;
  for (NodeId n = first_; n != kNone; n = next_[n]) position_[n] = p += kGap;
}

void UseLists::Unlink(NodeId n) {
  (previous_[n] == kNone ? first_ : next_[previous_[n]]) = next_[n];
  (next_[n] == kNone ? last_ : previous_[next_[n]]) = previous_[n];
}

std::vector<NodeId> UseLists::Order() const {
  std::vector<NodeId> order;
  for (NodeId n = first_; n != kNone; n = next_[n]) order.push_back(n);
  return order;
}

void UseLists::Flush() {
  graph_.order = Order();
  if (needs_sort_) GE_CHECK(SortTopologically(graph_), "a patch made a cycle in " + graph_.name);
  needs_sort_ = false;
}

void UseLists::RemoveUse(ValueId v, NodeId n, int operand) {
  auto& list = uses_[v];
  auto it = std::find_if(list.begin(), list.end(),
                         [&](const Use& u) { return u.node == n && u.operand == operand; });
  GE_CHECK(it != list.end(), "use lists do not know an operand of " + graph_.node(n).name);
  list.erase(it);
}

void UseLists::SetInput(NodeId n, int operand, ValueId v) {
  ValueId& slot = graph_.node(n).inputs[operand];
  if (slot == v) return;
  if (slot != kNone) RemoveUse(slot, n, operand);
  slot = v;
  if (v == kNone) return;
  uses_[v].push_back({n, operand});
  const NodeId p = graph_.value(v).producer;
  if (p != kNone && !Before(p, n)) needs_sort_ = true;
}

void UseLists::RedirectOutputs(ValueId from, ValueId to) {
  std::replace(graph_.outputs.begin(), graph_.outputs.end(), from, to);
  output_count_[to] += output_count_[from];
  output_count_[from] = 0;
}

bool UseLists::KillIfUnused(NodeId n) {
  std::vector<NodeId> todo = {n};
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    Node& node = graph_.node(id);
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId v) { return v != kNone && !IsUnused(v); });
    if (node.dead || used) continue;
    node.dead = true;
    Unlink(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNone) continue;
      RemoveUse(v, id, static_cast<int>(i));
      if (graph_.value(v).producer != kNone && IsUnused(v))
        todo.push_back(graph_.value(v).producer);
    }
  }
  return graph_.node(n).dead;
}

Patch::Patch(UseLists& uses, std::vector<NodeId> replaced)
    : uses_(uses),
      graph_(uses.graph()),
      replaced_(std::move(replaced)),
      first_value_(graph_.values.size()) {
  for (NodeId n : replaced_) {
    const Node& node = graph_.node(n);
    if (node.origin.empty()) {
      origin_.push_back(node.name);
    } else {
      origin_.insert(origin_.end(), node.origin.begin(), node.origin.end());
    }
    if (place_ == kNone || uses_.Before(place_, n)) place_ = n;
  }
  std::sort(origin_.begin(), origin_.end());
  origin_.erase(std::unique(origin_.begin(), origin_.end()), origin_.end());
  name_ = place_ == kNone ? "patch" : graph_.node(place_).name;
}

Patch::~Patch() {
  if (!done_) Undo();
}

void Patch::Undo() {
  for (auto it = added_.rbegin(); it != added_.rend(); ++it) uses_.KillIfUnused(*it);
  done_ = true;
}

std::vector<ValueId> Patch::AddMulti(std::string_view op, std::vector<ValueId> inputs,
                                     int num_outputs, Attrs attrs) {
  const std::vector<ValueId> none(num_outputs, kNone);
  if (failed_) return none;
  const size_t dot = op.rfind('.');
  const bool has_domain = dot != std::string_view::npos;
  const OpDef* def =
      FindOp(has_domain ? op.substr(0, dot) : "", op.substr(has_domain ? dot + 1 : 0));
  GE_CHECK(def != nullptr, fmt::format("patch with unknown operator {}", op));
  while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
  for (ValueId v : inputs) {
    const NodeId p = v == kNone ? kNone : graph_.value(v).producer;
    if (p != kNone && (place_ == kNone || uses_.Before(place_, p))) place_ = p;
  }
  const std::string name =
      added_.empty() ? name_ : fmt::format("{}.{}{}", name_, op, added_.size());
  const NodeId id = graph_.AddNode(*def, name, std::move(inputs), num_outputs);
  graph_.order.pop_back();  // stale until Flush; keeps it free of nodes that may be undone
  Node& n = graph_.node(id);
  n.attrs = std::move(attrs);
  n.origin = origin_;
  uses_.Grow();
  uses_.InsertAfter(id, place_);
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (n.inputs[i] != kNone) uses_.uses_[n.inputs[i]].push_back({id, static_cast<int>(i)});
  place_ = id;
  added_.push_back(id);
  if (!Infer(graph_, n).ok()) {
    failed_ = true;
    return none;
  }
  return graph_.node(id).outputs;
}

ValueId Patch::Add(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
  return AddMulti(op, std::move(inputs), 1, std::move(attrs))[0];
}

ValueId Patch::Const(Constant constant) {
  const ValueId v = graph_.AddConstant(
      fmt::format("{}.const{}", name_, graph_.values.size() - first_value_), std::move(constant));
  uses_.Grow();
  return v;
}

ValueId Patch::Ints(const std::vector<int64_t>& values) {
  return Const(MakeConstant(DType::kI64, {static_cast<int64_t>(values.size())}, values.data()));
}

ValueId Patch::Exprs(const std::vector<Expr>& elements) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  if (AsNumbers(elements, &numbers, &texts)) return Ints(numbers);
  return Add("ge.Exprs", {}, {{"elems", std::move(texts)}});
}

void Patch::Replace(ValueId old, ValueId by) {
  if (failed_) return;
  const Value& a = graph_.value(old);
  const Value& b = graph_.value(by);
  GE_CHECK(a.kind == b.kind && a.type.dtype == b.type.dtype && a.type.rank() == b.type.rank(),
           fmt::format("patch replaces {} of {} by {} of {}", a.name, ToString(a.type), b.name,
                       ToString(b.type)));
  replacements_.emplace_back(old, by);
}

void Patch::SetInput(NodeId n, int operand, ValueId by) {
  if (!failed_) edges_.push_back({n, operand, by});
}

bool Patch::CanBeOutput(ValueId v) const {
  return IsNew(v) || (graph_.value(v).producer != kNone && !uses_.IsOutput(v));
}

bool Patch::ReplaceUses(ValueId old, ValueId by) {
  if (old == by) return false;
  bool changed = false;
  Value& from = graph_.value(old);
  Value& to = graph_.value(by);
  for (int d = 0; d < to.type.rank(); ++d)
    if (!to.type.dims[d].IsConst() && from.type.dims[d].IsConst())
      to.type.dims[d] = from.type.dims[d];
  if (!to.elems && from.elems) to.elems = from.elems;
  const bool moves_output = uses_.IsOutput(old) && CanBeOutput(by);
  if (moves_output || IsNew(by)) std::swap(from.name, to.name);
  if (moves_output) {
    uses_.RedirectOutputs(old, by);
    changed = true;
  }
  // Uses by nodes of this patch stay: they build the new value from the old one.
  const std::vector<Use> uses = uses_.uses_[old];
  for (const Use& u : uses) {
    if (std::find(added_.begin(), added_.end(), u.node) != added_.end()) continue;
    uses_.SetInput(u.node, u.operand, by);
    changed = true;
  }
  return changed;
}

bool Patch::Apply() {
  GE_CHECK(!done_, "Apply called twice");
  if (failed_) {
    Undo();
    return false;
  }
  bool changed = false;
  for (const Edge& e : edges_) {
    changed |= graph_.node(e.node).inputs[e.operand] != e.value;
    uses_.SetInput(e.node, e.operand, e.value);
  }
  for (const auto& [old, by] : replacements_) changed |= ReplaceUses(old, by);
  for (auto it = replaced_.rbegin(); it != replaced_.rend(); ++it)
    if (!graph_.node(*it).dead) changed |= uses_.KillIfUnused(*it);
  for (auto it = added_.rbegin(); it != added_.rend(); ++it) uses_.KillIfUnused(*it);
  done_ = true;
  return changed;
}

}  // namespace ge
