#include "fuse/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fuse/layouts.h"
#include "ops/parts.h"

namespace ge {
namespace {

constexpr double kCheapFlops = 40;  // per element, to be computed again in each reader
constexpr size_t kMostUsesToScan = 16;
constexpr int64_t kFewChannels = 8;

bool Named(const Node& n, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), n.op->name) != names.end();
}

// Operators that read each input element once, so that a producer may be computed in the read.
bool ReadsOnce(const Graph& g, const Node& n, int operand) {
  if (Named(n, {"Concat"})) {
    // Copied in any case: no part can lie in the whole as it is.
    const std::vector<bool> cut = CutParts(g, n);
    return std::find(cut.begin(), cut.end(), false) == cut.end();
  }
  if (!n.op->lower) return n.op->fusion == Fusion::kPointwise || n.op->fusion == Fusion::kView;
  // Few channels of bf16 are copied, all of a pixel beside each other.
  if (Named(n, {"Conv"}) && operand == 0) {
    const TensorType& x = g.value(n.inputs[0]).type;
    return x.layout.IsNd() && x.dtype == DType::kBF16 && x.dims[1].IsConst() &&
           x.dims[1].value() < kFewChannels;
  }
  return operand == 0 &&
         Named(n, {"Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "ReduceMean",
                   "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "GlobalAveragePool",
                   "GlobalMaxPool", "InstanceNormalization", "GroupNormalization"});
}

bool SameDims(const TensorType& a, const TensorType& b) {
  return a.dims == b.dims && a.layout == b.layout;
}

bool IsPointwise(const Node& n) { return n.op->element && n.op->fusion == Fusion::kPointwise; }

}  // namespace

bool IsAlias(const Node& n) {
  return Named(n, {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"});
}

RegionGrowth::RegionGrowth(const Graph& g, const Policy& policy)
    : g_(g), policy_(policy), uses_(Uses(g)), region_of_(g.nodes.size(), -1) {
  graph_outputs_.insert(g.outputs.begin(), g.outputs.end());
}

int RegionGrowth::RegionOf(ValueId v) const {
  if (v == kNone || g_.value(v).producer == kNone) return -1;
  const NodeId n = g_.value(v).producer;
  return waiting_.contains(n) ? RegionOf(g_.node(n).inputs[0]) : region_of_[n];
}

// Bytes made floats for one pointwise reader: four times less memory is moved if the reader makes
// them, and none if it joins the region of the bytes.
bool RegionGrowth::WaitsForReader(NodeId n) const {
  const Node& node = g_.node(n);
  if (node.op->name != "DequantizeLinear" || !node.op->domain.empty()) return false;
  const ValueId bytes = node.inputs[0], out = node.outputs[0];
  if (RegionOf(bytes) < 0 || graph_outputs_.contains(out) || uses_[out].size() != 1) return false;
  const Node& reader = g_.node(uses_[out][0].node);
  return IsPointwise(reader) && reader.outputs.size() == 1 &&
         SameDims(g_.value(reader.outputs[0]).type, g_.value(out).type);
}

// Conversions that waited for node n, which is in region `into`.
void RegionGrowth::TakeWaiting(int into, NodeId n) {
  for (ValueId v : g_.node(n).inputs) {
    const NodeId producer = v == kNone ? kNone : g_.value(v).producer;
    if (producer == kNone || waiting_.erase(producer) == 0) continue;
    Growing& r = regions_[into];
    r.nodes.push_back(producer);
    AddReads(r, producer);
    r.flops += g_.node(producer).op->flops_per_element;
    region_of_[producer] = into;
  }
}

void RegionGrowth::NearMiss(NodeId n, int region, const std::string& reason) const {
  if (!policy_.report || reason.empty()) return;
  policy_.report(fmt::format("fuse: {} with {}: {}", g_.node(n).name,
                             g_.node(regions_[region].nodes.back()).name, reason));
}

// Is v written, or could it be, at the region's own index?
bool RegionGrowth::Aligned(int region, ValueId v) const {
  const Growing& r = regions_[region];
  return SameDims(g_.value(v).type, g_.value(r.pilot).type);
}

// May v be stored where the region makes the same element? Kernels of convolutions go over
// channels, and blocks of other sizes are no hindrance to them.
bool RegionGrowth::Follows(int region, ValueId v) const {
  if (Aligned(region, v)) return true;
  const Growing& r = regions_[region];
  const TensorType &a = g_.value(v).type, &b = g_.value(r.pilot).type;
  auto blocked = [](const Layout& l) {
    return l.dims.size() == 5 && l == Nc1hwc0(4, l.dims[1].tile);
  };
  return r.anchor != kNone && AsBlockedConv(g_, g_.node(r.anchor), nullptr) && a.dims == b.dims &&
         blocked(a.layout) && blocked(b.layout);
}

void RegionGrowth::AddReads(Growing& r, NodeId n) {
  for (ValueId v : g_.node(n).inputs)
    if (v != kNone && g_.value(v).type.rank() > 0 && !g_.value(v).elems) r.reads.push_back(v);
}

// Too many tensors from outside, once n and region b are part of region a?
bool RegionGrowth::TooWide(const Growing& a, const Growing* b, NodeId n) const {
  std::set<ValueId> reads(a.reads.begin(), a.reads.end());
  if (b) reads.insert(b->reads.begin(), b->reads.end());
  for (ValueId v : g_.node(n).inputs)
    if (v != kNone && g_.value(v).type.rank() > 0 && !g_.value(v).elems) reads.insert(v);
  int inside = static_cast<int>(&a - regions_.data());
  int other = b ? static_cast<int>(b - regions_.data()) : -1;
  int outside = 0;
  for (ValueId v : reads) {
    int region = RegionOf(v);
    outside += region < 0 || (region != inside && region != other);
  }
  return outside > policy_.max_region_inputs;
}

void RegionGrowth::Add(NodeId n, Engine engine) {
  if (engine == Engine::kHost || engine == Engine::kControl || IsAlias(g_.node(n)))
    return AddAlone(n, engine);
  if (WaitsForReader(n)) {
    waiting_.insert(n);
    return;
  }
  // What is computed again (driver/recompute.cc) is for its readers, not for who made its inputs.
  if (HasAttr(g_.node(n), "recomputed") || !JoinLatest(n)) Start(n, engine);
  TakeWaiting(region_of_[n], n);
  TakeProducers(region_of_[n], n);
}

void RegionGrowth::AddAlone(NodeId n, Engine engine) {
  Start(n, engine);
  TakeWaiting(region_of_[n], n);
  regions_.back().closed = true;
}

void RegionGrowth::Start(NodeId n, Engine engine) {
  const Node& node = g_.node(n);
  Growing r;
  r.nodes = {n};
  r.engine = engine;
  if (node.op->lower) r.anchor = n;
  for (ValueId v : node.outputs)
    if (v != kNone && r.pilot == kNone) r.pilot = v;
  if (r.anchor == kNone) {
    AddReads(r, n);
    r.flops = node.op->flops_per_element;
  }
  // Several outputs of other shapes (Split) are kernels of their own.
  for (ValueId v : node.outputs)
    if (v != kNone && !SameDims(g_.value(v).type, g_.value(r.pilot).type) && r.anchor == kNone)
      r.closed = true;
  region_of_[n] = static_cast<int>(regions_.size());
  regions_.push_back(std::move(r));
}

// A pointwise node joins the latest of the regions that it reads.
bool RegionGrowth::JoinLatest(NodeId n) {
  const Node& node = g_.node(n);
  if (!IsPointwise(node) || node.outputs.size() != 1) return false;
  int latest = -1;
  ValueId through = kNone;
  for (ValueId v : node.inputs)
    if (RegionOf(v) > latest) latest = RegionOf(v), through = v;
  if (latest < 0) return false;
  Growing& r = regions_[latest];
  std::string refusal;
  // What is read of the region must be at the region's index: its anchor's output or what follows.
  auto reads_elsewhere = [&] {
    for (ValueId v : node.inputs)
      if (RegionOf(v) == latest &&
          (!Follows(latest, v) ||
           (r.anchor != kNone && g_.value(v).producer == r.anchor && v != r.pilot)))
        return true;
    return false;
  };
  if (r.closed)
    refusal = "takes nothing";
  else if (!Follows(latest, node.outputs[0]) || reads_elsewhere())
    refusal = "another shape or layout";
  else if (static_cast<int>(r.nodes.size()) >= policy_.max_region_nodes)
    refusal = "too many nodes";
  else if (TooWide(r, nullptr, n))
    refusal = "too many inputs";
  if (!refusal.empty()) return NearMiss(n, latest, refusal), false;
  (void)through;
  r.nodes.push_back(n);
  AddReads(r, n);
  r.flops += node.op->flops_per_element;
  region_of_[n] = latest;
  return true;
}

void RegionGrowth::TakeProducers(int into, NodeId n) {
  const Node& node = g_.node(n);
  if (regions_[into].closed) return;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId v = node.inputs[i];
    int from = RegionOf(v);
    if (from < 0 || from == into || regions_[from].closed) continue;
    if (!ReadsOnce(g_, node, static_cast<int>(i)) && !DotTakes(from, node, static_cast<int>(i)))
      continue;
    std::string refusal = Refusal(from, into, n, v);
    if (refusal.empty())
      Merge(from, into);
    else
      NearMiss(n, from, refusal);
  }
}

// The cube engine reads a transposed operand where it lies, and copies B (of attention, the keys)
// into panels in any case.
bool RegionGrowth::DotTakes(int from, const Node& n, int operand) const {
  if (!Named(n, {"MatMul", "Gemm", "Attend"}) || operand > (n.op->name == "Attend" ? 2 : 1) ||
      g_.value(n.outputs[0]).type.dtype != DType::kF32 ||
      g_.value(n.inputs[operand]).type.rank() < 2)
    return false;
  return std::all_of(regions_[from].nodes.begin(), regions_[from].nodes.end(), [&](NodeId m) {
    return g_.node(m).op->name == "Transpose" || (operand == 1 && IsPointwise(g_.node(m)));
  });
}

std::string RegionGrowth::Refusal(int from, int into, NodeId n, ValueId v) const {
  const Growing &s = regions_[from], &r = regions_[into];
  if (s.anchor != kNone) return "its producer is a loop nest";
  if (from > into) return "made later";
  if (static_cast<int>(s.nodes.size() + r.nodes.size()) > policy_.max_region_nodes)
    return "too many nodes";
  // Read at the region's own index by a pointwise node: what it makes may stay visible outside.
  bool aligned = r.anchor != n && IsPointwise(g_.node(n)) && Aligned(into, v);
  if (!UsedOnlyBy(from, into, n, aligned)) return "used elsewhere too";
  if (!aligned) {
    // Computed anew for each read: not for gathers, heavy ones, or smaller tensors of any weight.
    for (NodeId m : s.nodes)
      if (g_.node(m).op->fusion == Fusion::kGather && r.anchor != n)
        return "a gather, read elsewhere";
    Expr made = g_.value(v).type.Elements();
    const Node& node = g_.node(n);
    Expr read = node.op->lower ? made : g_.value(node.outputs[0]).type.Elements();
    bool repeats = HintValue(read) > HintValue(made);
    if (s.flops > (repeats ? 2 : kCheapFlops)) return "too much to compute again";
  }
  if (TooWide(r, &s, n)) return "too many inputs";
  return "";
}

// Are all uses of what region `from` makes in `into` (or, if aligned, in nodes still to come)?
bool RegionGrowth::UsedOnlyBy(int from, int into, NodeId n, bool aligned) const {
  for (NodeId m : regions_[from].nodes)
    for (ValueId v : g_.node(m).outputs) {
      if (v == kNone) continue;
      if (uses_[v].size() > kMostUsesToScan) return false;
      bool visible = graph_outputs_.contains(v);
      for (const Use& use : uses_[v]) {
        int region = region_of_[use.node];
        if (region == from) continue;
        if (region == into) {
          if (!aligned && use.node != n) return false;
          continue;
        }
        if (region >= 0) return false;
        visible = true;
      }
      // A loop nest stores what follows from its own result only.
      const bool stored = regions_[into].anchor == kNone && aligned && Aligned(into, v);
      if (visible && !stored) return false;
    }
  return true;
}

void RegionGrowth::Merge(int from, int into) {
  Growing &s = regions_[from], &r = regions_[into];
  for (NodeId m : s.nodes) region_of_[m] = into;
  r.nodes.insert(r.nodes.end(), s.nodes.begin(), s.nodes.end());
  r.reads.insert(r.reads.end(), s.reads.begin(), s.reads.end());
  r.flops += s.flops;
  s.dead = true;
  s.nodes.clear();
}

std::vector<Growing> RegionGrowth::Take() {
  std::vector<Growing> alive;
  for (Growing& r : regions_)
    if (!r.dead) alive.push_back(std::move(r));
  return alive;
}

}  // namespace ge
