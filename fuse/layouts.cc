// Layout choice: convolutions and what lies between them work in NC1HWC0, all else in ND.
//
//   1. A value is blocked if a convolution makes it, or an operator that works in any order
//   (pointwise,
//      pool, resize, concat, split) makes it of blocked values.
//   2. A convolution wants its input blocked with a halo of its pads (depthwise ones need none:
//      lower/cube_depthwise.cc); one of fewer channels than C0 takes ND with that halo. Inputs that
//      cannot be so get a ge.TransData before them.
//   3. What the caller, a host kernel, control flow or a reshape reads gets a ge.TransData to ND.
//
// Values of fewer than kFewChannels channels stay ND: pad lanes would be most of them.
#include "fuse/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "abi/convert.h"
#include "base/check.h"
#include "fuse/fuse.h"
#include "fuse/growth.h"
#include "ir/opdef.h"
#include "lower/cube_conv.h"
#include "ops/window.h"

namespace ge {
namespace {

constexpr int64_t kFewChannels = 8;
constexpr int64_t kNoHalo = INT64_MIN;

int64_t ChannelsOf(const Graph& g, ValueId v) {
  const TensorType& type = g.value(v).type;
  return type.rank() == 4 && type.dims[1].IsConst() ? type.dims[1].value() : -1;
}

bool Blockable(const Graph& g, ValueId v) {
  if (v == kNone || g.value(v).kind != ValueKind::kTensor) return false;
  const DType t = g.value(v).type.dtype;
  const bool works = t == DType::kF32 || t == DType::kBF16 || t == DType::kU8 || t == DType::kI8 ||
                     t == DType::kI32;
  return works && ChannelsOf(g, v) >= kFewChannels;
}

class LayoutChoice {
 public:
  LayoutChoice(Graph& g, const SocSpec& soc) : g_(g), soc_(soc), c0_(soc.F32Lanes()) {}

  void Run() {
    blocked_.assign(g_.values.size(), false);
    bool any = false;
    for (NodeId n : g_.order) any |= AsBlockedConv(g_, g_.node(n), nullptr);
    if (!any) return;
    uses_ = Uses(g_);
    for (NodeId n : g_.order) Forward(g_.node(n));
    for (size_t v = 0; v < blocked_.size(); ++v)
      if (blocked_[v]) g_.values[v].type.layout = Blocks(static_cast<ValueId>(v));
    const std::vector<NodeId> order = g_.order;
    for (NodeId n : order) ConvInputs(n);
    for (auto n = order.rbegin(); n != order.rend(); ++n) ShareHalo(*n);
    for (NodeId n : order) NdInputs(n);
    Outputs();
    GE_CHECK(SortTopologically(g_), "layout made a cycle");
  }

 private:
  void Forward(const Node& n) {
    bool make = false;
    if (IsAlias(n)) return;
    if (AsBlockedConv(g_, n, nullptr))
      make = true;
    else if (n.op->name == "Concat" && AttrOr<int64_t>(n, "axis", 0) == 1)
      make = All(n) && !OnlyReadAsNd(n.outputs[0]);
    else if (n.op->name == "Repeat")
      make = IsBlocked(n.inputs[0]) && RepeatsSpace(n);
    else if (n.op->name == "Split" && AttrOr<int64_t>(n, "axis", 0) == 1)
      make = IsBlocked(n.inputs[0]) && PartsFit(n);
    else if (n.op->element && n.op->fusion == Fusion::kPointwise)
      make = Any(n);
    else if (n.op->name == "MaxPool" || n.op->name == "AveragePool" || n.op->name == "Resize")
      make = IsBlocked(n.inputs[0]) && n.outputs.size() == 1;
    else if (n.op->name == "GlobalAveragePool" || n.op->name == "GlobalMaxPool")
      make = IsBlocked(n.inputs[0]) &&
             (FeedsConv(n.outputs[0]) || ChannelsOf(g_, n.outputs[0]) % c0_ != 0);
    if (!make) return;
    for (ValueId v : n.outputs)
      if (Blockable(g_, v)) blocked_[v] = true;
  }

  static bool RepeatsSpace(const Node& n) {
    auto repeats = AttrOr<std::vector<int64_t>>(n, "repeats", {});
    return repeats.size() == 4 && repeats[1] == 1;
  }

  // Then its producer might as well write ND.
  bool OnlyReadAsNd(ValueId v) const {
    return std::all_of(uses_[v].begin(), uses_[v].end(), [&](const Use& use) {
      const Node& n = g_.node(use.node);
      return n.op->control || !n.op->host.empty() || IsAlias(n);
    });
  }

  bool FeedsConv(ValueId v) const {
    return std::any_of(uses_[v].begin(), uses_[v].end(), [&](const Use& use) {
      return AsBlockedConv(g_, g_.node(use.node), nullptr);
    });
  }

  bool IsBlocked(ValueId v) const { return v != kNone && blocked_[v]; }

  bool All(const Node& n) const {
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return IsBlocked(v); });
  }
  // Some operand of the output's size is blocked.
  bool Any(const Node& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
      return IsBlocked(v) && g_.value(v).type.dims == g_.value(n.outputs[0]).type.dims;
    });
  }
  bool PartsFit(const Node& n) const {
    return std::all_of(n.outputs.begin(), n.outputs.end(),
                       [&](ValueId v) { return v == kNone || ChannelsOf(g_, v) % c0_ == 0; });
  }

  // May the value lie in memory as its reader likes? Not what others own or alias.
  bool Free(ValueId v) const {
    NodeId producer = g_.value(v).producer;
    if (producer == kNone) return false;
    const Node& n = g_.node(producer);
    return !n.op->control && n.op->host.empty() && !IsAlias(n);
  }

  // The same tensor with this layout and at least this halo, made once.
  ValueId Converted(ValueId v, const Layout& layout, const std::vector<Halo>& halo) {
    auto key = std::tuple(v, ToString(layout), halo.empty() ? kNoHalo : halo[0].fill);
    auto it = converted_.find(key);
    if (it == converted_.end()) {
      const OpDef* op = FindOp("ge", "TransData");
      GE_CHECK(op != nullptr);
      std::string name = g_.value(v).name + (layout.IsNd() ? ".nd" : ".c1");
      NodeId node = g_.AddNode(*op, name, {v}, 1);
      ValueId made = g_.node(node).outputs[0];
      g_.value(made).type = g_.value(v).type;
      g_.value(made).type.layout = layout;
      if (g_.value(v).producer != kNone)
        g_.node(node).origin = g_.node(g_.value(v).producer).origin;
      it = converted_.emplace(key, made).first;
      blocked_.resize(g_.values.size(), false);
    }
    Widen(it->second, halo);
    return it->second;
  }

  void Widen(ValueId v, const std::vector<Halo>& halo) {
    for (const Halo& wanted : halo) {
      auto& own = g_.value(v).halo;
      auto it = std::find_if(own.begin(), own.end(),
                             [&](const Halo& h) { return h.axis == wanted.axis; });
      if (it == own.end()) it = own.insert(own.end(), {wanted.axis, 0, 0, wanted.fill});
      it->lo = std::max(it->lo, wanted.lo);
      it->hi = std::max(it->hi, wanted.hi);
    }
  }

  void ConvInputs(NodeId n) {
    BlockedConv conv;
    if (!AsBlockedConv(g_, g_.node(n), &conv)) return;
    if (conv.depthwise) PackDepthwise(n);
    ValueId x = g_.node(n).inputs[0];
    bool wants_blocked = conv.channels_in >= c0_ || IsBlocked(x);
    std::vector<Halo> halo;
    for (int i = 0; i < 2; ++i)
      if ((conv.pad_lo[i] || conv.pad_hi[i]) && !(conv.cuts && wants_blocked))
        halo.push_back({2 + i, conv.pad_lo[i], conv.pad_hi[i], conv.fill});
    // Copied with its pads, and all channels beside each other, by the kernel before.
    if ((conv.bytes || g_.value(x).type.dtype == DType::kBF16) && !wants_blocked) return;
    const std::vector<Halo>& own = g_.value(x).halo;
    bool clash = !own.empty() && !halo.empty() && own[0].fill != halo[0].fill;
    if (wants_blocked == IsBlocked(x) && !clash && (halo.empty() || Free(x))) return Widen(x, halo);
    Layout layout = wants_blocked ? Blocks(x) : Nd();
    g_.node(n).inputs[0] = Converted(x, layout, halo);
  }

  // A wide result of a pointwise node lies as its operand does, if nothing reads that one later: it
  // may then take over the operand's bytes (plan/in_place.cc).
  void ShareHalo(NodeId id) {
    constexpr int64_t kWide = int64_t{1} << 16;  // elements
    const Node& n = g_.node(id);
    if (!n.op->element || n.op->fusion != Fusion::kPointwise || n.outputs.size() != 1) return;
    const Value& y = g_.value(n.outputs[0]);
    if (y.halo.empty() || HintValue(y.type.Elements()) < kWide) return;
    for (ValueId x : n.inputs) {
      if (x == kNone || !(g_.value(x).type == y.type) || !IsBlocked(x) || !Free(x)) continue;
      const bool leaves = std::find(g_.outputs.begin(), g_.outputs.end(), x) != g_.outputs.end();
      const bool view = g_.node(g_.value(x).producer).op->fusion == Fusion::kView;
      if (leaves || view || !g_.value(x).halo.empty() || !ReadLastBy(x, id)) continue;
      return Widen(x, y.halo);
    }
  }

  bool ReadLastBy(ValueId v, NodeId reader) const {
    const auto place = [&](NodeId n) {
      return std::find(g_.order.begin(), g_.order.end(), n) - g_.order.begin();
    };
    return std::all_of(uses_[v].begin(), uses_[v].end(),
                       [&](const Use& use) { return place(use.node) <= place(reader); });
  }

  // Weights [C, 1, kh, kw] with the channels of one block innermost, as the loops run.
  void PackDepthwise(NodeId n) {
    ValueId w = g_.node(n).inputs[1];
    auto [it, added] = packed_.emplace(w, kNone);
    if (added) {
      it->second = g_.AddConstant(g_.value(w).name + ".c1", *g_.ConstantOf(w));
      g_.value(it->second).type.layout.dims = {{0, c0_}, {1, 1}, {2, 1}, {3, 1}, {0, 1}};
      blocked_.resize(g_.values.size(), false);
    }
    g_.node(n).inputs[1] = it->second;
  }

  bool IsPlain(ValueId v) const {
    return g_.value(v).type.layout.IsNd() && g_.value(v).halo.empty();
  }

  void NdInputs(NodeId n) {
    const OpDef& op = *g_.node(n).op;
    if (!op.control && op.host.empty() && !IsAlias(g_.node(n))) return;
    for (size_t i = 0; i < g_.node(n).inputs.size(); ++i) {
      ValueId v = g_.node(n).inputs[i];
      if (v != kNone && !IsPlain(v)) {
        ValueId plain = Converted(v, Nd(), {});
        g_.node(n).inputs[i] = plain;
      }
    }
  }

  // A graph output keeps its id and name; its producer writes another value.
  void Outputs() {
    std::vector<ValueId> done;
    for (ValueId out : g_.outputs) {
      if (out == kNone || IsPlain(out) || std::find(done.begin(), done.end(), out) != done.end())
        continue;
      done.push_back(out);
      ValueId inner = g_.AddValue(g_.value(out).name + ".c1", g_.value(out).type);
      g_.value(inner).halo = std::move(g_.value(out).halo);
      g_.value(inner).producer = g_.value(out).producer;
      for (Node& node : g_.nodes) {
        std::replace(node.inputs.begin(), node.inputs.end(), out, inner);
        std::replace(node.outputs.begin(), node.outputs.end(), out, inner);
      }
      NodeId node = g_.AddNode(*FindOp("ge", "TransData"), g_.value(out).name, {inner}, 0);
      g_.node(node).outputs = {out};
      g_.node(node).origin = g_.node(g_.value(inner).producer).origin;
      g_.value(out).producer = node;
      g_.value(out).type.layout = Nd();
      g_.value(out).halo.clear();
    }
  }

  // Whole numbers of c0_ channels: more of small types where a matrix unit takes more at once.
  Layout Blocks(ValueId v) const {
    return Nc1hwc0(4, BlockChannels(soc_, g_.value(v).type.dtype, ChannelsOf(g_, v)));
  }

  Graph& g_;
  const SocSpec& soc_;
  const int64_t c0_;
  std::vector<std::vector<Use>> uses_;
  std::vector<bool> blocked_;
  std::map<ValueId, ValueId> packed_;
  std::map<std::tuple<ValueId, std::string, int64_t>, ValueId> converted_;
};

}  // namespace

namespace {

// The one constant zero point of a ConvInteger's input.
bool ZeroPoint(const Graph& g, const Node& n, int64_t* zero) {
  *zero = 0;
  if (n.inputs.size() < 3 || n.inputs[2] == kNone) return true;
  const Constant* c = g.ConstantOf(n.inputs[2]);
  if (c == nullptr || c->Elements() != 1) return false;
  *zero = LoadElement<int64_t>(c->dtype, c->bytes.data(), 0);
  return true;
}

}  // namespace

bool AsBlockedConv(const Graph& g, const Node& n, BlockedConv* conv) {
  BlockedConv found;
  found.bytes = n.op->name == "ConvInteger";
  const bool transposed = n.op->name == "ConvTranspose";
  if (n.dead || (n.op->name != "Conv" && !found.bytes && !transposed)) return false;
  const bool rounded = n.op->domain == "ge";  // bf16 in, f32 out
  if (!n.op->domain.empty() && !rounded) return false;
  const Value &x = g.value(n.inputs[0]), &w = g.value(n.inputs[1]);
  if (x.type.rank() != 4 || !g.ConstantOf(n.inputs[1])) return false;
  if (found.bytes ? !ZeroPoint(g, n, &found.fill)
                  : x.type.dtype != (rounded ? DType::kBF16 : DType::kF32))
    return false;
  found.channels_in = ChannelsOf(g, n.inputs[0]);
  found.channels_out = w.type.dims[transposed ? 1 : 0].value();
  if (found.channels_in < 1 || found.channels_out < (transposed ? 1 : kFewChannels)) return false;
  int64_t group = AttrOr<int64_t>(n, "group", 1);
  found.depthwise = group > 1 && group == found.channels_in && group == found.channels_out;
  if (group != 1 &&
      (found.bytes || transposed ||
       GroupsTogether(group, found.channels_in / group, found.channels_out / group) == 0))
    return false;
  // As lower/cube_depthwise.cc unrolls them.
  found.cuts = found.depthwise && ProvablyLe(w.type.Elements(), 49 * found.channels_in);
  std::vector<int64_t> cut;
  auto window = transposed ? PhaseWindow(n, Tail(x.type.dims, 2), Tail(w.type.dims, 2), &cut)
                           : ForwardWindow(n, Tail(x.type.dims, 2), Tail(w.type.dims, 2));
  if (!window.ok()) return false;
  for (int i = 0; i < 2; ++i) {
    Expr lo = window->pad_lo[i], hi = window->pad_hi[i];
    if (!lo.IsConst() || !hi.IsConst() || lo.value() < 0 || hi.value() < 0) return false;
    found.pad_lo.push_back(lo.value());
    found.pad_hi.push_back(hi.value());
  }
  if (conv) *conv = std::move(found);
  return true;
}

void AssignLayouts(Graph& g, const SocSpec& soc, const Policy& policy) {
  if (policy.opt_level < 2 || policy.disabled.contains("layout")) return;
  std::vector<Graph*> rest = {&g};
  while (!rest.empty()) {
    Graph* graph = rest.back();
    rest.pop_back();
    LayoutChoice(*graph, soc).Run();
    for (NodeId n : graph->order)
      for (const auto& sub : graph->node(n).subgraphs) rest.push_back(sub.get());
  }
}

}  // namespace ge
