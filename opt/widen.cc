// widen: values of f16 that nodes compute are f32 in memory and between kernels; no node rounds.
//
//   %a: f16 = Conv(%x: f16, #w: f16)  %y: f16 = Relu(%a)
//   ->  %b: f32 = Conv(Cast(%x), #w: f32)  %c: f32 = Relu(%b)  %y: f16 = Cast(%c)
//
// Kernels compute in f32 in any case: what is left are conversions of the model's inputs and
// outputs, which join the first and the last kernel. Constants are converted here, except tables
// of which a node only takes some elements. A Cast to f16 in the model is dropped as well where
// nodes compute with what it makes; where that is cast again, or leaves the graph, it rounds.
#include <unordered_map>
#include <unordered_set>

#include "ir/opdef.h"
#include "ir/patch.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

class Widening {
 public:
  explicit Widening(Graph& g) : g_(g), uses_(g) {}

  bool Run() {
    bool changed = false;
    for (NodeId n : uses_.Order()) changed |= !uses_.Dead(n) && Visit(n);
    for (NodeId n : casts_) uses_.KillIfUnused(n);
    return changed;
  }

 private:
  bool IsHalf(ValueId v) const {
    return v != kNone && g_.value(v).kind == ValueKind::kTensor &&
           g_.value(v).type.dtype == DType::kF16;
  }

  bool Visit(NodeId id) {
    const Node& n = g_.node(id);
    if (n.op->domain.empty() && n.op->name == "Cast") return VisitCast(id);
    bool halves = false, widened = false;
    for (ValueId v : n.inputs) {
      halves |= IsHalf(v);
      widened |= wide_.contains(v) && !rounds_.contains(v) && !g_.IsConstant(v);
    }
    const Halves how = n.op->halves;
    if (how == Halves::kRound || (how == Halves::kFollow && !widened)) return false;
    return halves && n.subgraphs.empty() && Remake(id);
  }

  // A Cast to f16 counts as none for nodes that compute; one from f16 reads what was computed.
  bool VisitCast(NodeId id) {
    const ValueId x = g_.node(id).inputs[0], y = g_.node(id).outputs[0];
    if (IsHalf(y) && g_.value(x).type.dtype == DType::kF32) {
      wide_[y] = x;
      rounds_.insert(y);
      casts_.push_back(id);
      return false;
    }
    if (!IsHalf(x) || IsHalf(y) || rounds_.contains(x) || !wide_.contains(x)) return false;
    const Attrs attrs = g_.node(id).attrs;
    const ValueId wide = wide_.at(x);
    Patch p(uses_, {id});
    p.Replace(y, g_.value(y).type.dtype == DType::kF32 ? wide : p.Add("Cast", {wide}, attrs));
    return p.Apply();
  }

  bool Remake(NodeId id) {
    // Copies: what a patch adds may move the graph's nodes.
    std::vector<ValueId> inputs = g_.node(id).inputs;
    const std::vector<ValueId> old = g_.node(id).outputs;
    const Attrs attrs = g_.node(id).attrs;
    const OpDef& def = *g_.node(id).op;
    const std::string op = (def.domain.empty() ? "" : def.domain + ".") + def.name;
    std::unordered_map<ValueId, ValueId> fresh;
    Patch p(uses_, {id});
    for (ValueId& v : inputs) {
      if (!IsHalf(v)) continue;
      const ValueId half = v;
      const auto known = wide_.find(half);
      v = known != wide_.end() ? known->second : Converted(p, half);
      if (v == kNone) return false;
      fresh[half] = v;
    }
    const std::vector<ValueId> made = p.AddMulti(op, inputs, static_cast<int>(old.size()), attrs);
    if (made.size() != old.size()) return false;
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i] == kNone) continue;
      ValueId by = made[i];
      if (by == kNone) return false;
      if (IsHalf(old[i]) && !IsHalf(by)) {
        g_.value(by).name = g_.value(old[i]).name + ".f32";  // its own name goes to the Cast's
        by = p.Add("Cast", {by}, {{"to", static_cast<int64_t>(DType::kF16)}});
        if (by == kNone) return false;
        fresh[by] = made[i];
      }
      p.Replace(old[i], by);
    }
    if (!p.Apply()) return false;
    for (const auto& [half, wide] : fresh) {
      wide_[half] = wide;
      if (g_.value(half).producer != kNone && !rounds_.contains(half) && IsCastOf(half, wide))
        casts_.push_back(g_.value(half).producer);
    }
    return true;
  }

  bool IsCastOf(ValueId half, ValueId wide) const {
    const Node& n = g_.node(g_.value(half).producer);
    return n.op->name == "Cast" && n.inputs[0] == wide;
  }

  ValueId Converted(Patch& p, ValueId half) {
    if (const Constant* c = g_.ConstantOf(half)) {
      const auto numbers = Numbers(*c);
      return numbers ? p.Const(FromNumbers(DType::kF32, c->dims, *numbers)) : kNone;
    }
    return p.Add("Cast", {half}, {{"to", static_cast<int64_t>(DType::kF32)}});
  }

  Graph& g_;
  UseLists uses_;
  std::unordered_map<ValueId, ValueId> wide_;  // an f16 value: the same in f32
  std::unordered_set<ValueId> rounds_;         // f16 values that a Cast of the model makes
  std::vector<NodeId> casts_;                  // to f16, which may have lost their readers
};

bool Run(Graph& g, const Policy&, const PassServices&) {
  bool changed = false;
  ForEachGraph(g, [&](Graph& each) { changed |= Widening(each).Run(); });
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "widen", .needs = {}, .gives = {}, .run = Run});

}  // namespace
}  // namespace ge
