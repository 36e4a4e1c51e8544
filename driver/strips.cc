// See strips.h.
//
//   %v = A(%x)  %y = B(%v)   ->   %y = Concat of, for each strip s of y's rows,
//                                 B(A(the rows of x that it needs))
//
// A and B are convolutions, max pools and pointwise nodes, of whose outputs each row needs few rows
// of the inputs. Rows near the seams are computed twice. Layouts and halos are those of the whole
// values; strips are computed one after the other, so that one of v is alive at a time.
#include "driver/strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "driver/recompute.h"
#include "ir/opdef.h"
#include "om/size.h"
#include "ops/window.h"

namespace ge {
namespace {

constexpr int kRows = 2;  // the axis that is cut
constexpr int64_t kStrips = 5, kLeastRows = 8;
constexpr size_t kMostAbove = 4;  // makers of what A reads that become strips too

bool IsWindow(const Node& n) {
  return n.op->name == "Conv" || (n.op->name == "MaxPool" && n.outputs.size() == 1);
}

std::optional<Window> WindowOf(const Graph& g, const Node& n) {
  const std::vector<Expr> in = Tail(g.value(n.inputs[0]).type.dims, 2);
  const std::vector<Expr> kernel =
      n.op->name == "Conv" ? Tail(g.value(n.inputs[1]).type.dims, 2)
                           : Constants(AttrOr<std::vector<int64_t>>(n, "kernel_shape", {}));
  if (kernel.size() != in.size()) return std::nullopt;
  auto window = ForwardWindow(n, in, kernel);
  if (!window.ok()) return std::nullopt;
  for (int i = 0; i < window->rank(); ++i) {
    const bool known = window->pad_lo[i].IsConst() && window->pad_hi[i].IsConst() &&
                       window->Reach(i).IsConst() && window->pad_lo[i].value() >= 0 &&
                       window->pad_hi[i].value() >= 0;
    if (!known) return std::nullopt;
  }
  // Rows whose windows hold nothing but padding would be made of no rows.
  const int64_t reach = window->Reach(0).value();
  if (window->pad_lo[0].value() >= reach || window->pad_hi[0].value() >= reach) return std::nullopt;
  return *window;
}

bool IsRepeat(const Node& n) {
  return n.op->name == "Repeat" && AttrOr<std::vector<int64_t>>(n, "repeats", {}).size() == 4;
}

// Can rows of this node's output be made of rows of its inputs?
bool Splits(const Graph& g, const Node& n) {
  if (n.outputs.size() != 1 || n.outputs[0] == kNone || HasAttr(n, "strip")) return false;
  const Value& out = g.value(n.outputs[0]);
  if (!HasRows(out)) return false;
  if (IsWindow(n)) {
    return HasRows(g.value(n.inputs[0])) && g.IsConstant(n.inputs[0]) == false &&
           WindowOf(g, n).has_value();
  }
  if (IsRepeat(n)) return true;
  if (n.op->name == "Concat") {
    const int64_t axis = AttrOr<int64_t>(n, "axis", 0);
    return axis != kRows && axis != kRows - 4 &&
           std::none_of(n.inputs.begin(), n.inputs.end(),
                        [&](ValueId v) { return g.IsConstant(v); });
  }
  if (n.op->fusion != Fusion::kPointwise || !n.op->element) return false;
  return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
    if (v == kNone) return true;
    const TensorType& t = g.value(v).type;
    const bool broadcast = t.rank() < 2 || t.dims[static_cast<size_t>(t.rank() - 2)].IsConst(1);
    return broadcast || (t.rank() == 4 && t.dims[kRows] == out.type.dims[kRows]);
  });
}

// Is this operand read in rows that follow those of the output? Else each strip reads it whole.
bool ReadInRows(const Graph& g, const Node& n, size_t operand) {
  const ValueId v = n.inputs[operand];
  if (v == kNone) return false;
  if (IsWindow(n) || IsRepeat(n)) return operand == 0;
  const TensorType& t = g.value(v).type;
  return t.rank() == 4 && t.dims[kRows] == g.value(n.outputs[0]).type.dims[kRows];
}

// Does one of the nodes read whole what another one makes (the weights of a convolution)?
bool ReadsWhole(const Graph& g, const std::set<NodeId>& nodes) {
  for (NodeId id : nodes) {
    const Node& n = g.node(id);
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const NodeId maker = n.inputs[i] == kNone ? kNone : g.value(n.inputs[i]).producer;
      if (maker != kNone && nodes.contains(maker) && !ReadInRows(g, n, i)) return true;
    }
  }
  return false;
}

class Rewriting {
 public:
  Rewriting(Graph& g, std::set<NodeId> nodes) : g_(g), nodes_(std::move(nodes)) {}

  // Gives what undoes it.
  std::function<void()> Run(ValueId y, int64_t wanted) {
    const int64_t rows = g_.value(y).type.dims[kRows].value();
    const int64_t by_size = std::clamp<int64_t>(rows / kLeastRows, 2, kStrips);
    const int64_t strips = wanted > 0 ? std::clamp<int64_t>(wanted, 2, rows) : by_size;
    return ReplaceByParts(g_, nodes_, y, kRows, "strips", [&] {
      std::vector<ValueId> parts;
      for (int64_t s = 0; s < strips; ++s) {
        strip_ = static_cast<int>(s);
        made_.clear();
        parts.push_back(Rows(y, rows * s / strips, rows * (s + 1) / strips));
      }
      return parts;
    });
  }

 private:
  // Rows [lo, hi) of a value.
  ValueId Rows(ValueId v, int64_t lo, int64_t hi) {
    const auto [it, is_new] = made_.emplace(std::tuple(v, lo, hi), kNone);
    if (!is_new) return it->second;
    const NodeId producer = g_.value(v).producer;
    const bool inside = producer != kNone && nodes_.contains(producer);
    const ValueId rows = inside ? RowsOf(producer, lo, hi) : Slice(v, lo, hi);
    return made_[{v, lo, hi}] = rows;
  }

  ValueId RowsOf(NodeId id, int64_t lo, int64_t hi) {
    std::vector<ValueId> inputs = g_.node(id).inputs;
    auto attrs = g_.node(id).attrs;
    const ValueId out = g_.node(id).outputs[0];
    if (IsRepeat(g_.node(id))) {
      // Whole repetitions, of which the wanted rows are cut.
      const int64_t times = AttrOr<std::vector<int64_t>>(g_.node(id), "repeats", {})[kRows];
      const int64_t from = lo / times, to = (hi + times - 1) / times;
      inputs[0] = Rows(inputs[0], from, to);
      const ValueId all =
          Add(*g_.node(id).op, id, out, inputs, std::move(attrs), from * times, to * times);
      const bool even = from * times == lo && to * times == hi;
      return even ? all : Slice(all, lo - from * times, hi - from * times);
    }
    if (IsWindow(g_.node(id))) {
      const Window w = *WindowOf(g_, g_.node(id));
      const int64_t height = w.in[0].value(), first = lo * w.stride[0] - w.pad_lo[0].value(),
                    end = (hi - 1) * w.stride[0] - w.pad_lo[0].value() + w.Reach(0).value();
      attrs.erase("auto_pad");
      attrs.erase("ceil_mode");
      attrs["pads"] = std::vector<int64_t>{std::max<int64_t>(0, -first), w.pad_lo[1].value(),
                                           std::max<int64_t>(0, end - height), w.pad_hi[1].value()};
      inputs[0] = Rows(inputs[0], std::max<int64_t>(0, first), std::min<int64_t>(height, end));
    } else {
      for (size_t i = 0; i < inputs.size(); ++i)
        if (ReadInRows(g_, g_.node(id), i)) inputs[i] = Rows(inputs[i], lo, hi);
    }
    return Add(*g_.node(id).op, id, out, inputs, std::move(attrs), lo, hi);
  }

  ValueId Slice(ValueId v, int64_t lo, int64_t hi) {
    const auto list = [&](const char* what, int64_t value) {
      return g_.AddConstant(
          fmt::format("{}.{}{}_{}", g_.value(v).name, what, strip_, g_.values.size()),
          MakeConstant(DType::kI64, {1}, &value));
    };
    const std::vector<ValueId> inputs = {v, list("first", lo), list("end", hi),
                                         list("axis", kRows)};
    return Add(*FindOp("", "Slice"), g_.value(v).producer, v, inputs, {}, lo, hi);
  }

  ValueId Add(const OpDef& op, NodeId like, ValueId whole, const std::vector<ValueId>& inputs,
              std::map<std::string, Attr, std::less<>> attrs, int64_t lo, int64_t hi) {
    const std::string name =
        fmt::format("{}.strip{}_{}", g_.value(whole).name, strip_, g_.nodes.size());
    const NodeId n = g_.AddNode(op, name, inputs, 1);
    Node& node = g_.node(n);
    node.attrs = std::move(attrs);
    node.attrs["strip"] = int64_t{1};
    if (like != kNone) node.origin = g_.node(like).origin;
    // A strip is for its readers, not for who made its inputs.
    if (op.fusion != Fusion::kPointwise) node.attrs["recomputed"] = int64_t{1};
    Value& value = g_.value(node.outputs[0]);
    value.name = name;
    value.type = g_.value(whole).type;
    value.type.dims[kRows] = hi - lo;
    value.halo = g_.value(whole).halo;
    return node.outputs[0];
  }

  Graph& g_;
  const std::set<NodeId> nodes_;
  int strip_ = 0;
  std::map<std::tuple<ValueId, int64_t, int64_t>, ValueId> made_;
};

// Which regions become strips together, if v is to be gone: its maker and its only reader, and the
// makers of what the first one reads.
class Choice {
 public:
  Choice(const Graph& g, const std::vector<Region>& regions, const Policy& policy)
      : g_(g), regions_(regions), policy_(policy) {
    for (size_t r = 0; r < regions.size(); ++r) {
      for (ValueId v : regions[r].outputs) maker_[v] = r;
      for (ValueId v : regions[r].inputs) readers_[v].push_back(r);
    }
    for (ValueId v : g.outputs) leaves_.insert(v);
  }

  // The nodes; empty if it cannot be. y: the value that the last region makes.
  std::set<NodeId> Nodes(ValueId v, ValueId* y) const {
    const auto at = maker_.find(v);
    if (at == maker_.end() || !Inner(v)) return {};
    const Region& last = regions_[readers_.at(v)[0]];
    const Region& top = regions_[at->second];
    if (!Fits(top) || !Fits(last)) return {};
    std::set<NodeId> nodes(last.nodes.begin(), last.nodes.end());
    nodes.insert(top.nodes.begin(), top.nodes.end());
    if (ReadsWhole(g_, nodes)) return {};
    const std::vector<const Region*> above = Above(top);
    if (above.size() <= kMostAbove) {
      for (const Region* r : above) {
        std::set<NodeId> more = nodes;
        more.insert(r->nodes.begin(), r->nodes.end());
        if (!ReadsWhole(g_, more)) nodes = std::move(more);
      }
    }
    *y = last.outputs[0];
    return nodes;
  }

 private:
  // Made by one region, read by one other, and nowhere else.
  bool Inner(ValueId v) const {
    const auto readers = readers_.find(v);
    return !leaves_.contains(v) && readers != readers_.end() && readers->second.size() == 1;
  }

  bool Fits(const Region& r) const {
    const bool code = r.engine == Engine::kVector || r.engine == Engine::kCube;
    return code && r.outputs.size() == 1 &&
           std::all_of(r.nodes.begin(), r.nodes.end(), [&](NodeId n) {
             const DotChoice* choice = policy_.ChoiceFor(g_.node(n));
             return Splits(g_, g_.node(n)) && (choice == nullptr || choice->strips != 1);
           });
  }

  // Makers of what a region reads, as far as they can be strips too.
  std::vector<const Region*> Above(const Region& r) const {
    std::vector<const Region*> found;
    for (ValueId v : r.inputs) {
      const auto at = maker_.find(v);
      if (at != maker_.end() && HasRows(g_.value(v)) && Inner(v) && Fits(regions_[at->second]))
        found.push_back(&regions_[at->second]);
    }
    return found;
  }

  const Graph& g_;
  const std::vector<Region>& regions_;
  const Policy& policy_;
  std::map<ValueId, size_t> maker_;
  std::map<ValueId, std::vector<size_t>> readers_;
  std::set<ValueId> leaves_;
};

}  // namespace

bool HasRows(const Value& v) {
  return v.type.rank() == 4 && v.type.dims[kRows].IsConst() && v.type.dims[kRows].value() > 1;
}

std::function<void()> ReplaceByParts(Graph& g, const std::set<NodeId>& nodes, ValueId y, int axis,
                                     std::string_view suffix,
                                     const std::function<std::vector<ValueId>()>& make) {
  const std::vector<NodeId> old_order = g.order;
  const NodeId old_producer = g.value(y).producer;
  const std::vector<ValueId> parts = make();
  const NodeId joined = g.AddNode(
      *FindOp("", "Concat"), fmt::format("{}.{}", g.node(old_producer).name, suffix), parts, 0);
  Node& node = g.node(joined);
  node.attrs["axis"] = int64_t{axis};
  node.attrs["strip"] = int64_t{1};
  node.origin = g.node(old_producer).origin;
  node.outputs = {y};
  g.value(y).producer = joined;
  // New nodes stand at the end of the order: they belong where the last old one was.
  const auto end_of_old = g.order.begin() + static_cast<ptrdiff_t>(old_order.size());
  const std::vector<NodeId> added(end_of_old, g.order.end());
  g.order.resize(old_order.size());
  const auto is_replaced = [&](NodeId n) { return nodes.contains(n); };
  const auto last = std::find_if(g.order.rbegin(), g.order.rend(), is_replaced);
  g.order.insert(last.base(), added.begin(), added.end());
  std::erase_if(g.order, is_replaced);
  for (const NodeId n : nodes) g.node(n).dead = true;
  return [&g, nodes, added, old_order, old_producer, y] {
    for (const NodeId n : added) g.node(n).dead = true;
    for (const NodeId n : nodes) g.node(n).dead = false;
    g.order = old_order;
    g.value(y).producer = old_producer;
  };
}

bool SplitIntoStrips(Graph& g, const RegionMap& regions, const LoweredMap& lowered,
                     const Planned& planned, const Policy& policy, std::function<void()>* undo) {
  const om::Plan& plan = planned.plan;
  if (plan.arena_bytes < 0) return false;
  const auto full = static_cast<int32_t>(FullestTask(plan));
  std::map<std::string, int64_t> alive;
  for (const om::Buffer& b : plan.buffers) {
    if (b.kind == om::BufferKind::kArena && b.alias < 0 && b.first >= 0 && b.first <= full &&
        full <= b.last)
      alive[b.name] = om::EvalSize(plan, b.bytes, {});
  }
  const std::vector<Region>& list = regions.at(&g);
  const Choice choice(g, list, policy);
  // The nodes that work at the fullest moment.
  std::set<NodeId> busy;
  const int32_t kernel = plan.tasks[static_cast<size_t>(full)].kernel;
  for (size_t r = 0; kernel >= 0 && r < list.size(); ++r) {
    for (const LoweredKernel& k : lowered.at(&g)[r].kernels)
      if (&k == planned.kernels[static_cast<size_t>(kernel)])
        busy.insert(list[r].nodes.begin(), list[r].nodes.end());
  }
  std::pair<bool, int64_t> most;
  std::set<NodeId> best;
  ValueId best_y = kNone;
  for (const Region& r : list) {
    for (ValueId v : r.outputs) {
      const auto at = alive.find(g.value(v).name);
      ValueId y = kNone;
      std::set<NodeId> nodes = choice.Nodes(v, &y);
      if (nodes.empty()) continue;
      const bool works =
          std::any_of(nodes.begin(), nodes.end(), [&](NodeId n) { return busy.contains(n); });
      const std::pair<bool, int64_t> now(works, at == alive.end() ? 0 : at->second);
      if ((!works && at == alive.end()) || (!best.empty() && now <= most)) continue;
      most = now;
      best = std::move(nodes);
      best_y = y;
    }
  }
  if (best.empty()) return false;
  const DotChoice* fixed = policy.ChoiceFor(g.node(g.value(best_y).producer));
  auto back = Rewriting(g, std::move(best)).Run(best_y, fixed == nullptr ? 0 : fixed->strips);
  if (undo != nullptr) *undo = std::move(back);
  return true;
}

}  // namespace ge
