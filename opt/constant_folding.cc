// constant_folding: nodes of constants become constants.
//
//   %s = Shape(%x: f32[2,3])               ->  %s = const i64[2] {2, 3}
//   %w = Transpose(const)                  ->  %w = const
//   If(%c, const) then (%k) {..}           ->  the constant stands in the branch itself
//
// First by facts (elements that are all known), then by evaluation. Nothing that would grow the
// model beyond policy.fold_limit_bytes, or that makes much out of little, is folded; nor what is an
// output of the graph, since outputs are computed; nor the weights of what will be an integer dot.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "abi/convert.h"
#include "ir/opdef.h"
#include "ir/patch.h"
#include "opt/facts.h"
#include "opt/pass.h"
#include "opt/quantised.h"

namespace ge {
namespace {

constexpr int64_t kAlwaysFold = 64 << 10;  // bytes
constexpr int64_t kMostGrowth = 4;         // output bytes per input byte beyond that

std::optional<Constant> FromElems(const Value& v) {
  if (!v.elems || v.kind != ValueKind::kTensor || !v.type.IsStatic()) return {};
  if (!IsInteger(v.type.dtype) && v.type.dtype != DType::kBool) return {};
  Constant c;
  for (const Expr& d : v.type.dims) c.dims.push_back(d.value());
  c.dtype = v.type.dtype;
  if (c.Elements() != static_cast<int64_t>(v.elems->size())) return {};
  auto bytes = std::make_shared<std::vector<std::byte>>(
      static_cast<size_t>(BytesFor(c.dtype, c.Elements())));
  for (size_t i = 0; i < v.elems->size(); ++i) {
    if (!(*v.elems)[i].IsConst()) return {};
    StoreElement(c.dtype, bytes->data(), static_cast<int64_t>(i), (*v.elems)[i].value());
  }
  c.bytes = *bytes;
  c.keep = bytes;
  return c;
}

class Folder {
 public:
  Folder(Graph& g, const Policy& policy, const PassServices& services)
      : g_(g), policy_(policy), services_(services), uses_(g) {}

  bool Run() {
    for (NodeId id : uses_.Order()) {
      if (!uses_.Dead(id)) Visit(id);
    }
    return changed_;
  }

 private:
  void Miss(const Node& n, const std::string& reason) {
    if (policy_.report) policy_.report(fmt::format("constant_folding: {}: {}", n.name, reason));
  }

  void Visit(NodeId id) {
    Refresh(id);
    const Node& n = g_.node(id);
    bool any_output = false;
    for (ValueId v : n.outputs) any_output = any_output || (v != kNone && uses_.IsOutput(v));
    if (any_output || IsRandom(n) || FeedsIntegerDot(n)) return;
    std::vector<Constant> results;
    if (n.subgraphs.empty() && ByFacts(n, results)) return Replace(id, std::move(results));
    if (MayEvaluate(n)) {
      results = services_.evaluate(g_, n);
      if (results.size() == n.outputs.size()) Replace(id, std::move(results));
    }
  }

  // The rules turn the dot into one of integers: its weights stay bytes.
  bool FeedsIntegerDot(const Node& n) const {
    if (n.op->name != "DequantizeLinear") return false;
    for (const Use& use : uses_.Of(n.outputs[0])) {
      const Node& dot = g_.node(use.node);
      if (use.operand == 1 && QuantisedDotFault(g_, dot).empty() &&
          (!policy_.floats_pay || policy_.floats_pay(g_, dot).empty()))
        return true;
    }
    return false;
  }

  // A node whose inputs have become constants may know more of its outputs now.
  void Refresh(NodeId id) {
    bool affected = false;
    for (ValueId v : g_.node(id).inputs) affected = affected || (v != kNone && IsDirty(v));
    if (!affected) return;
    std::vector<Value> before;
    for (ValueId v : g_.node(id).outputs) before.push_back(v == kNone ? Value() : g_.value(v));
    const bool ok = Infer(g_, g_.node(id)).ok();
    const std::vector<ValueId>& outputs = g_.node(id).outputs;
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o] == kNone) continue;
      Value& v = g_.value(outputs[o]);
      if (!ok) {
        v.type = before[o].type;
        v.elems = before[o].elems;
        continue;
      }
      v.type.layout = before[o].type.layout;
      if (v.type == before[o].type && v.elems == before[o].elems) continue;
      SetDirty(outputs[o]);
      changed_ = true;
    }
  }

  bool ByFacts(const Node& n, std::vector<Constant>& results) const {
    for (ValueId v : n.outputs) {
      if (v == kNone) {
        results.emplace_back();
        continue;
      }
      std::optional<Constant> c = FromElems(g_.value(v));
      if (!c) return false;
      results.push_back(std::move(*c));
    }
    return true;
  }

  bool MayEvaluate(const Node& n) {
    if (!services_.evaluate || !n.subgraphs.empty() || n.op->control) return false;
    int64_t in = 0, out = 0;
    bool reads = false;  // what reads nothing is made of attributes, perhaps of size symbols
    for (ValueId v : n.inputs) {
      if (v == kNone) continue;
      reads = true;
      const Constant* c = g_.ConstantOf(v);
      if (!c) return false;
      in += static_cast<int64_t>(c->bytes.size());
    }
    if (!reads) return false;
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      const Value& value = g_.value(v);
      if (value.kind != ValueKind::kTensor || !value.type.IsStatic()) return false;
      const Expr elements = value.type.Elements();
      if (!elements.IsConst()) return false;
      out += BytesFor(value.type.dtype, elements.value());
    }
    if (out > policy_.fold_limit_bytes) {
      Miss(n, fmt::format("its {} bytes exceed the limit of {}", out, policy_.fold_limit_bytes));
      return false;
    }
    if (out > kAlwaysFold && out > kMostGrowth * in) {
      Miss(n, fmt::format("{} bytes of constants would become {}", in, out));
      return false;
    }
    return true;
  }

  void Replace(NodeId id, std::vector<Constant> results) {
    Patch p(uses_, {id});
    const std::vector<ValueId> outputs = g_.node(id).outputs;
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o] == kNone) continue;
      const ValueId c = p.Const(std::move(results[o]));
      p.Replace(outputs[o], c);
      SetDirty(c);
    }
    changed_ |= p.Apply();
  }

  bool IsDirty(ValueId v) const { return static_cast<size_t>(v) < dirty_.size() && dirty_[v]; }
  void SetDirty(ValueId v) {
    if (static_cast<size_t>(v) >= dirty_.size()) dirty_.resize(g_.values.size());
    dirty_[v] = true;
  }

  Graph& g_;
  const Policy& policy_;
  const PassServices& services_;
  UseLists uses_;
  std::vector<bool> dirty_;
  bool changed_ = false;
};

// Whether a body hands the captured value, `from_end` from the end, on as an output of its own.
bool IsOutputOfBody(const Node& n, size_t from_end) {
  for (const auto& sub : n.subgraphs) {
    const ValueId inner = sub->inputs[sub->inputs.size() - from_end];
    if (std::find(sub->outputs.begin(), sub->outputs.end(), inner) != sub->outputs.end())
      return true;
  }
  return false;
}

// Captured constants stand in the subgraph itself, where operators want to see their bytes.
bool SinkConstants(Graph& g, Node& n) {
  int64_t captures = AttrOr<int64_t>(n, "captures", 0);
  bool changed = false;
  for (size_t i = n.inputs.size(), k = static_cast<size_t>(captures); k-- > 0;) {
    --i;
    if (!g.IsConstant(n.inputs[i]) || IsOutputOfBody(n, n.inputs.size() - i)) continue;
    const Value& outer = g.value(n.inputs[i]);
    for (const auto& sub : n.subgraphs) {
      const size_t at = sub->inputs.size() - (n.inputs.size() - i);
      Value& inner = sub->value(sub->inputs[at]);
      inner.constant = outer.constant;
      inner.type = outer.type;
      inner.elems = outer.elems;
      sub->inputs.erase(sub->inputs.begin() + static_cast<int64_t>(at));
    }
    n.inputs.erase(n.inputs.begin() + static_cast<int64_t>(i));
    --captures;
    changed = true;
  }
  if (changed) n.attrs["captures"] = captures;
  return changed;
}

bool Run(Graph& g, const Policy& policy, const PassServices& services) {
  bool changed = false;
  changed |= Folder(g, policy, services).Run();
  for (NodeId id : g.order) {
    Node& n = g.node(id);
    if (n.subgraphs.empty()) continue;
    changed |= SinkConstants(g, n);
    for (size_t s = 0; s < g.node(id).subgraphs.size(); ++s) {
      changed |= Run(*g.node(id).subgraphs[s], policy, services);
    }
  }
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "constant_folding", .needs = {}, .gives = {"folded"}, .run = Run});

}  // namespace
}  // namespace ge
