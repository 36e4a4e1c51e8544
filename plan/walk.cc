// Straight-line regions. See walk.h.

#include "plan/walk.h"

#include <algorithm>

#include "base/check.h"
#include "fmt/format.h"
#include "ir/host_attrs.h"
#include "ir/opdef.h"

namespace ge {
namespace {

bool IsString(const Value& v) { return v.type.dtype == DType::kString; }

}  // namespace

int32_t PlanWalk::BufferOf(const Graph& g, ValueId v) {
  if (v == kNone) return -1;
  auto it = buffers_.find({&g, v});
  if (it != buffers_.end()) return it->second;
  const Value& value = g.value(v);
  const int32_t buffer = value.constant != kNone && !IsString(value)
                             ? b_.Constant(g, v, nullptr)
                             : b_.AddBuffer(om::BufferKind::kArena, value);
  buffers_[{&g, v}] = buffer;
  return buffer;
}

void PlanWalk::Copy(const std::string& name, int32_t from, int32_t to) {
  if (from != to) b_.AddHost("Copy", name, {from}, {to});
}

void PlanWalk::Materialise(const Graph& g, const std::vector<ValueId>& values) {
  for (ValueId v : values) {
    if (v == kNone || written_[{&g, v}]) continue;
    const Value& value = g.value(v);
    written_[{&g, v}] = true;
    if (value.constant != kNone && IsString(value)) {
      const Constant& c = *g.ConstantOf(v);
      om::Task& t = b_.AddHost("ConstantStrings", value.name, {}, {BufferOf(g, v)});
      Node holder;
      holder.attrs["dims"] = c.dims;
      holder.attrs["strings"] = c.strings;
      t.attrs = EncodeHostAttrs(holder);
      continue;
    }
    if (value.constant != kNone || !value.elems) continue;
    const std::vector<om::SizeRef> sizes = b_.Sizes(*value.elems);
    b_.AddHost("Sizes", value.name, {}, {BufferOf(g, v)}).sizes = sizes;
  }
}

std::vector<bool> PlanWalk::Needed(const Graph& g, const std::vector<Region>& list,
                                   const std::vector<Lowered>& lowered) const {
  std::vector<bool> value(g.values.size(), false), needed(list.size(), false);
  for (ValueId v : g.outputs)
    if (v != kNone) value[v] = true;
  for (size_t i = list.size(); i-- > 0;) {
    const Region& r = list[i];
    bool keep = r.engine == Engine::kControl;
    for (ValueId v : r.outputs) {
      keep |= value[v];
      if (r.engine != Engine::kHost) continue;
      for (const Expr& d : g.value(v).type.dims) keep |= !d.IsConst();
      if (g.value(v).elems)
        for (const Expr& e : *g.value(v).elems) keep |= !e.IsConst();
    }
    needed[i] = keep;
    if (!keep) continue;
    if (r.engine == Engine::kHost || r.engine == Engine::kControl) {
      for (ValueId v : g.node(r.nodes[0]).inputs)
        if (v != kNone) value[v] = true;
    }
    for (const LoweredKernel& k : lowered[i].kernels)
      for (const KernelArg& a : k.args)
        if (a.kind == KernelArg::Kind::kValue) value[a.id] = true;
  }
  return needed;
}

Status PlanWalk::Walk(const Graph& g) {
  const std::vector<Region>& list = regions_.at(&g);
  const std::vector<Lowered>& lowered = lowered_.at(&g);
  const std::vector<bool> needed = Needed(g, list, lowered);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!needed[i]) continue;
    const Region& r = list[i];
    switch (r.engine) {
      case Engine::kVector:
      case Engine::kCube: AddRegion(g, r, lowered[i]); break;
      case Engine::kHost: AddHostNode(g, g.node(r.nodes[0])); break;
      case Engine::kControl:
        GE_TRY(AddControl(g, g.node(r.nodes[0])).In(fmt::format("node '{}'", g.node(r.nodes[0]).name)));
        break;
    }
  }
  return {};
}

// Reshape and its kin of a row-major value only give the same bytes another name.
bool PlanWalk::AliasReshape(const Graph& g, const Region& r) {
  if (policy_.opt_level < 1 || r.nodes.size() != 1) return false;
  const Node& n = g.node(r.nodes[0]);
  static constexpr const char* kNames[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"};
  if (std::none_of(std::begin(kNames), std::end(kNames), [&](const char* s) { return n.op->name == s; }))
    return false;
  const ValueId in = n.inputs[0], out = n.outputs[0];
  const Value &x = g.value(in), &y = g.value(out);
  if (x.elems || y.elems || x.kind != ValueKind::kTensor || IsString(x) || HasBuffer(g, out)) return false;
  if (!x.type.layout.IsNd() || !y.type.layout.IsNd() || !x.halo.empty() || !y.halo.empty()) return false;
  if (x.type.dtype != y.type.dtype) return false;
  const int32_t from = BufferOf(g, in);
  om::Plan& plan = b_.plan();
  const om::Buffer& source = plan.buffers[from];
  // The caller's memory is not lent under another name; pools may move.
  if (source.kind != om::BufferKind::kArena && source.kind != om::BufferKind::kConst) return false;
  const int32_t root = source.alias >= 0 ? source.alias : from;
  const int32_t to = b_.AddBuffer(om::BufferKind::kArena, y);
  plan.buffers[to].kind = plan.buffers[root].kind;
  plan.buffers[to].offset = plan.buffers[root].offset;
  plan.buffers[to].alias = root;
  SetBuffer(g, out, to);
  return true;
}

void PlanWalk::AddRegion(const Graph& g, const Region& r, const Lowered& lowered) {
  if (AliasReshape(g, r)) {
    written_[{&g, g.node(r.nodes[0]).outputs[0]}] = true;
    return;
  }
  std::vector<int32_t> temps;
  for (size_t i = 0; i < lowered.temps.size(); ++i)
    temps.push_back(b_.AddBytes(fmt::format("{}.temp{}", r.name, i), lowered.temps[i].bytes));
  for (ValueId v : r.outputs) written_[{&g, v}] = true;
  for (const LoweredKernel& k : lowered.kernels) {
    std::vector<ValueId> read;
    for (const KernelArg& a : k.args)
      if (a.kind == KernelArg::Kind::kValue) read.push_back(a.id);
    Materialise(g, read);
    std::vector<int32_t> args, written;
    for (const KernelArg& a : k.args) switch (a.kind) {
        case KernelArg::Kind::kValue: args.push_back(BufferOf(g, a.id)); break;
        case KernelArg::Kind::kTemp: args.push_back(temps[a.id]); break;
        case KernelArg::Kind::kPack:
          args.push_back(b_.Constant(g, lowered.packs[a.id].source, &lowered.packs[a.id]));
          break;
      }
    for (size_t i = 0; i < args.size(); ++i)
      if (k.kernel.buffers[i].written) written.push_back(args[i]);
    const std::vector<om::SizeRef> sizes = b_.Sizes(k.kernel.symbols);
    const om::SizeRef grid = b_.Size(k.grid);
    const om::SizeRef scratch = b_.Size(tile::PlanScratch(k.kernel).bytes);
    om::Plan& plan = b_.plan();
    om::Task& t = b_.AddTask(om::TaskKind::kLaunch, r.name);
    t.kernel = static_cast<int32_t>(plan.kernels.size());
    t.args = std::move(args);
    t.outs = std::move(written);
    t.sizes = sizes;
    t.grid = grid;
    t.scratch = scratch;
    t.cost = static_cast<int64_t>(k.cost_ns);
    plan.kernels.push_back({.name = k.kernel.name});
    out_.kernels.push_back(&k);
  }
}

void PlanWalk::AddHostNode(const Graph& g, const Node& n) {
  Materialise(g, n.inputs);
  std::vector<int32_t> args, outs, binds;
  std::vector<Expr> results;
  for (ValueId v : n.inputs) args.push_back(BufferOf(g, v));
  for (ValueId v : n.outputs) {
    if (v == kNone) continue;
    written_[{&g, v}] = true;
    const Value& value = g.value(v);
    if (value.kind == ValueKind::kTensor)
      results.insert(results.end(), value.type.dims.begin(), value.type.dims.end());
  }
  for (ValueId v : n.outputs)
    if (v != kNone && g.value(v).elems)
      results.insert(results.end(), g.value(v).elems->begin(), g.value(v).elems->end());
  for (const Expr& s : b_.Unbound(results)) binds.push_back(b_.BindSymbol(s, -1, -1));
  for (ValueId v : n.outputs) outs.push_back(BufferOf(g, v));
  om::Task& t = b_.AddHost(n.op->host, n.name, std::move(args), std::move(outs));
  t.attrs = EncodeHostAttrs(n);
  t.binds = std::move(binds);
}

Status PlanWalk::Inputs(const Graph& g) {
  om::Plan& plan = b_.plan();
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    const Value& v = g.value(g.inputs[i]);
    const auto number = static_cast<int32_t>(i);
    for (int d = 0; d < v.type.rank(); ++d)
      if (v.type.dims[d].IsSymbol() && !b_.IsBound(v.type.dims[d])) b_.BindSymbol(v.type.dims[d], number, d);
    const int32_t buffer = b_.AddBuffer(om::BufferKind::kInput, v);
    if (plan.buffers[buffer].kind == om::BufferKind::kInput) plan.buffers[buffer].index = number;
    SetBuffer(g, g.inputs[i], buffer);
    written_[{&g, g.inputs[i]}] = true;
    plan.inputs.push_back({v.name, static_cast<uint8_t>(v.type.dtype), plan.buffers[buffer].dims, buffer});
  }
  return {};
}

// An output that a region writes goes straight to the caller's buffer; one that is an input, a constant or
// known integers, or that is asked for twice, is copied at the end.
Status PlanWalk::Outputs(const Graph& g) {
  om::Plan& plan = b_.plan();
  std::map<ValueId, int> seen;
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    const ValueId id = g.outputs[i];
    const Value& v = g.value(id);
    const int32_t buffer = b_.AddBuffer(om::BufferKind::kOutput, v);
    if (plan.buffers[buffer].kind == om::BufferKind::kOutput)
      plan.buffers[buffer].index = static_cast<int32_t>(i);
    const bool direct = v.producer != kNone && v.constant == kNone && seen[id]++ == 0 && !HasBuffer(g, id);
    if (direct) SetBuffer(g, id, buffer);
    plan.outputs.push_back({v.name, static_cast<uint8_t>(v.type.dtype), b_.plan().buffers[buffer].dims, buffer});
  }
  return {};
}

Status PlanWalk::Run(const Graph& root) {
  GE_TRY(Inputs(root));
  GE_TRY(Outputs(root));
  GE_TRY(Walk(root));
  Materialise(root, root.outputs);
  for (size_t i = 0; i < root.outputs.size(); ++i)
    Copy(root.value(root.outputs[i]).name, BufferOf(root, root.outputs[i]), b_.plan().outputs[i].buffer);
  for (const Model::Check& c : root.model->checks)
    if (b_.Unbound({c.condition}).empty()) b_.plan().checks.push_back({b_.Size(c.condition), c.message});
  return b_.Finish();
}

}  // namespace ge
