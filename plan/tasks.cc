// Regions become tasks: kernels are launched, host nodes called, reshapes are aliases, and known
// elements are written by the host kernel Sizes where something reads them as memory.
#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "ir/opdef.h"
#include "plan/plan_builder.h"

namespace ge {
namespace {

std::string Hex(std::string_view s) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (char c : s) {
    out += kDigits[static_cast<unsigned char>(c) / 16];
    out += kDigits[static_cast<unsigned char>(c) % 16];
  }
  return out;
}

template <class T, class F>
std::string List(const std::vector<T>& v, F text) {
  std::string out;
  for (size_t i = 0; i < v.size(); ++i) out += (i ? "," : "") + text(v[i]);
  return out;
}

std::string AttrText(const Attr& a) {
  const auto integer = [](int64_t v) { return std::to_string(v); };
  const auto number = [](float v) { return FloatText(v); };
  if (auto* i = std::get_if<int64_t>(&a)) return "i:" + std::to_string(*i);
  if (auto* f = std::get_if<float>(&a)) return "f:" + FloatText(*f);
  if (auto* s = std::get_if<std::string>(&a)) return "s:" + Hex(*s);
  if (auto* v = std::get_if<std::vector<int64_t>>(&a)) return "is:" + List(*v, integer);
  if (auto* v = std::get_if<std::vector<float>>(&a)) return "fs:" + List(*v, number);
  if (auto* v = std::get_if<std::vector<std::string>>(&a)) return "ss:" + List(*v, Hex);
  return "";
}

}  // namespace

std::string EncodeStrings(const Constant& c) {
  return "dims=" + AttrText(c.dims) + "\nstrings=" + AttrText(c.strings) + "\n";
}

bool IsPlain(const Value& v) {
  return v.kind == ValueKind::kTensor && v.type.layout.IsNd() && v.halo.empty();
}

std::string EncodeAttrs(const Node& n) {
  std::string out;
  for (const auto& [name, value] : n.attrs) {
    const std::string text = AttrText(value);
    if (!text.empty()) out += name + "=" + text + "\n";
  }
  return out;
}

bool IsReshape(const Node& n) {
  if (!n.op->domain.empty()) return false;
  const std::string& name = n.op->name;
  return name == "Reshape" || name == "Squeeze" || name == "Unsqueeze" || name == "Flatten" ||
         name == "Identity";
}

om::Task& PlanBuilder::AddTask(om::TaskKind kind, std::string name) {
  om::Task& t = plan_.tasks.emplace_back();
  t.kind = kind;
  t.name = std::move(name);
  return t;
}

void PlanBuilder::AddHost(std::string name, std::string host, std::vector<int32_t> args,
                          std::vector<int32_t> outs) {
  om::Task& t = AddTask(om::TaskKind::kHost, std::move(name));
  t.host = std::move(host);
  t.args = std::move(args);
  t.outs = std::move(outs);
}

void PlanBuilder::AddSizes(std::string name, const std::vector<Expr>& values, int out) {
  std::vector<om::SizeRef> sizes = Sizes(values);
  AddHost(std::move(name), "Sizes", {}, {out});
  plan_.tasks.back().sizes = std::move(sizes);
  size_values_[plan_.tasks.size() - 1] = values;
}

void PlanBuilder::AddCopy(std::string name, int from, int to) {
  AddHost(std::move(name), "Copy", {from}, {to});
}

void PlanBuilder::AddBind(Expr symbol, Expr value) {
  const om::SizeRef size = Size(value);
  const int32_t index = SymbolIndex(symbol);
  om::Task& t = AddTask(om::TaskKind::kBind, symbol.node()->name);
  t.sizes = {size};
  t.binds = {index};
  bound_.insert(symbol.node());
}

int PlanBuilder::AddJump(int condition) {
  om::Task& t = AddTask(condition < 0 ? om::TaskKind::kJump : om::TaskKind::kJumpUnless, "");
  if (condition >= 0) t.args = {condition};
  return static_cast<int>(plan_.tasks.size()) - 1;
}

Result<int> PlanBuilder::EmitKnown(const Graph& g, ValueId v) {
  const int b = Writable(g, v);
  AddSizes(g.value(v).name, *g.value(v).elems, b);
  return b;
}

Status PlanBuilder::EmitGraph(const Graph& g) {
  const std::vector<Region>& regions = regions_.at(&g);
  const std::vector<Lowered>& lowered = lowered_.at(&g);
  if (regions.size() != lowered.size()) return Error(Code::kInternal, "regions without kernels");
  for (size_t i = 0; i < regions.size(); ++i) {
    GE_TRY(EmitRegion(g, regions[i], lowered[i]).In("region " + regions[i].name));
  }
  return {};
}

Status PlanBuilder::EmitRegion(const Graph& g, const Region& r, const Lowered& lowered) {
  const Node& n = g.node(r.nodes[0]);
  bool needed = binders_.contains(&n), known = true;
  for (ValueId v : r.outputs) {
    if (!NeedsValue(g, v)) continue;
    needed = true;
    known &= g.value(v).elems && IsPlain(g.value(v));
  }
  for (ValueId v : n.outputs) {
    if (r.engine == Engine::kHost || r.engine == Engine::kControl) needed |= NeedsValue(g, v);
  }
  if (!needed) return {};
  if (r.engine == Engine::kControl) return EmitControl(g, n);
  if (r.engine == Engine::kHost) return EmitHost(g, n);
  if (known) {
    for (ValueId v : r.outputs) {
      if (NeedsValue(g, v)) GE_TRY(Readable(g, v).status());
    }
    return {};
  }
  if (r.nodes.size() == 1 && IsReshape(n)) {
    GE_ASSIGN(const bool done, EmitAlias(g, n));
    if (done) return {};
  }
  std::vector<ValueId> placed;
  const bool alone = r.nodes.size() == 1 && n.op->domain.empty() && policy_.alias_parts;
  if (alone && n.op->name == "Concat") {
    placed = PlaceParts(g, n);
    if (!placed.empty()) LeaveOut(g, n);
    if (placed.size() == n.inputs.size()) return {};
  }
  if (alone && (n.op->name == "Split" || n.op->name == "Slice")) {
    GE_ASSIGN(placed, SliceOutputs(g, n));
    if (!placed.empty()) return LeaveOut(g, n), Status();
  }
  return EmitKernels(g, r, lowered, placed);
}

// False: the memory orders differ, and a kernel must do it.
Result<bool> PlanBuilder::EmitAlias(const Graph& g, const Node& n) {
  const Value &in = g.value(n.inputs[0]), &out = g.value(n.outputs[0]);
  const bool same_order =
      in.type.dims == out.type.dims && in.type.layout == out.type.layout && in.halo == out.halo;
  if (in.kind == ValueKind::kTensor && !same_order && !(IsPlain(in) && IsPlain(out))) return false;
  GE_ASSIGN(const int from, Readable(g, n.inputs[0]));
  if (IsSlot(from)) {
    AddCopy(n.name, from, Writable(g, n.outputs[0]));
    return true;
  }
  int& to = BuffersOf(g)[n.outputs[0]];
  if (to >= 0) return Error(Code::kInternal, "a reshaped value has a buffer already");
  to = NewLike(out, out.name);
  Join(to, Find(from));
  return true;
}

// A region goes where its first labelled node wants to be.
void PlanBuilder::UseLabel(const Graph& g, const Region& r, int32_t kernel) {
  if (policy_.stream_labels.empty()) return;
  for (NodeId n : r.nodes) {
    const Node& node = g.node(n);
    const auto& sources = node.origin.empty() ? std::vector<std::string>{node.name} : node.origin;
    for (const std::string& source : sources) {
      const auto label = policy_.stream_labels.find(source);
      if (label == policy_.stream_labels.end()) continue;
      const auto lane = static_cast<int32_t>(lane_of_label_.size());
      lane_of_kernel_[kernel] = lane_of_label_.emplace(label->second, lane).first->second;
      return;
    }
  }
}

// Kernels that read nothing but parts that lie in their place (`placed`) are left out.
Status PlanBuilder::EmitKernels(const Graph& g, const Region& r, const Lowered& lowered,
                                const std::vector<ValueId>& placed) {
  std::vector<int> temps;
  for (const Temp& t : lowered.temps) {
    temps.push_back(NewBuffer(r.name + ".temp", DType::kU8, {t.bytes}, t.bytes));
  }
  const auto is_output = [&](ValueId v) {
    return std::find(r.outputs.begin(), r.outputs.end(), v) != r.outputs.end();
  };
  const auto only_placed = [&](const LoweredKernel& k) {
    bool any = false, all = true;
    for (const KernelArg& a : k.args) {
      if (a.kind != KernelArg::Kind::kValue || is_output(a.id)) continue;
      const bool is = std::find(placed.begin(), placed.end(), a.id) != placed.end();
      any |= is;
      all &= is;
    }
    return any && all;
  };
  for (const LoweredKernel& k : lowered.kernels) {
    if (only_placed(k)) continue;
    std::vector<int32_t> args;
    for (const KernelArg& a : k.args) {
      if (a.kind == KernelArg::Kind::kTemp) {
        args.push_back(temps[a.id]);
      } else if (a.kind == KernelArg::Kind::kPack) {
        args.push_back(WeightBuffer(g, lowered.packs[a.id].source, &lowered.packs[a.id]));
      } else if (is_output(a.id)) {
        args.push_back(Writable(g, a.id));
      } else {
        GE_ASSIGN(const int b, Readable(g, a.id));
        args.push_back(b);
      }
    }
    const Expr scratch = tile::PlanScratch(k.kernel).bytes;
    om::Task t{.kind = om::TaskKind::kLaunch, .name = k.kernel.name};
    t.kernel = static_cast<int32_t>(out_.kernels.size());
    UseLabel(g, r, t.kernel);
    for (size_t i = 0; i < args.size(); ++i) {
      if (k.kernel.buffers[i].written) t.outs.push_back(args[i]);
    }
    t.args = std::move(args);
    t.sizes = Sizes(k.kernel.symbols);
    t.grid = Size(k.grid);
    t.scratch = scratch.IsConst(0) ? -1 : Size(scratch);
    t.cost = static_cast<int64_t>(k.cost_ns);
    plan_.tasks.push_back(std::move(t));
    plan_.kernels.push_back({.name = k.kernel.name});
    out_.kernels.push_back(&k);
  }
  return {};
}

// The symbols that the node's outputs bring are its size results, in order of first appearance.
Status PlanBuilder::EmitHost(const Graph& g, const Node& n) {
  std::vector<int32_t> args, outs, binds;
  for (ValueId v : n.inputs) {
    int b = -1;
    if (v != kNone) {
      GE_ASSIGN(b, Readable(g, v));
    }
    args.push_back(b);
  }
  std::vector<Expr> fresh;
  const auto see = [&](Expr e) {
    std::vector<Expr> symbols;
    CollectSymbols(e, symbols);
    for (Expr s : symbols) {
      if (!IsBound(s) && std::find(fresh.begin(), fresh.end(), s) == fresh.end())
        fresh.push_back(s);
    }
  };
  if (n.op->name == "ReadSizes") {
    // One result per element, whatever became of the element's symbol.
    for (Expr e : *g.value(n.outputs[0]).elems) {
      const bool mine =
          e.IsSymbol() && !IsBound(e) && std::find(fresh.begin(), fresh.end(), e) == fresh.end();
      fresh.push_back(mine ? e : g.arena().Fresh("read", {.lo = INT64_MIN}));
      if (!mine)
        plan_.checks.push_back(
            {Size(Eq(fresh.back(), e)), n.name + ": a size is not " + ToString(e)});
    }
  } else {
    for (ValueId v : n.outputs) {
      if (v == kNone || g.value(v).kind != ValueKind::kTensor) continue;
      for (Expr d : g.value(v).type.dims) see(d);
      if (!g.value(v).elems) continue;
      for (Expr e : *g.value(v).elems) see(e);
    }
  }
  for (Expr s : fresh) binds.push_back(SymbolIndex(s));
  for (Expr s : fresh) bound_.insert(s.node());
  for (ValueId v : n.outputs) {
    const bool wanted = v != kNone && NeedsValue(g, v);
    outs.push_back(wanted ? Writable(g, v) : -1);
  }
  AddHost(n.name, n.op->host, std::move(args), std::move(outs));
  plan_.tasks.back().attrs = EncodeAttrs(n);
  plan_.tasks.back().binds = std::move(binds);
  return {};
}

}  // namespace ge
