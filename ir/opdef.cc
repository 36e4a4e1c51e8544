// The operator registry, what inference and lowering functions see, and Infer.
#include "ir/opdef.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/check.h"

namespace ge {

namespace {

using Key = std::pair<std::string, std::string>;  // domain, name

struct Registry {
  std::deque<OpDef> defs;
  std::map<Key, const OpDef*> by_name;
};

Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

constexpr size_t kMaxKnownElements = 64;

Status CheckArity(const Node& n) {
  const OpDef& op = *n.op;
  const int given = static_cast<int>(n.inputs.size());
  if (given < op.min_inputs || (op.max_inputs >= 0 && given > op.max_inputs))
    return Invalid(op.max_inputs < 0
                       ? fmt::format("{} inputs given, at least {} needed", given, op.min_inputs)
                       : fmt::format("{} inputs given, {} to {} allowed", given, op.min_inputs,
                                     op.max_inputs));
  for (int i = 0; i < op.min_inputs; ++i)
    if (n.inputs[i] == kNone) return Invalid(fmt::format("input {} is absent but needed", i));
  // One of any number of equal operands (Sum, Concat) cannot be left out.
  const bool equals = op.max_inputs < 0 && !op.control && op.domain != "ge";
  for (int i = 0; equals && i < given; ++i)
    if (n.inputs[i] == kNone) return Invalid(fmt::format("input {} of {} is absent", i, given));
  const int wanted = static_cast<int>(n.outputs.size());
  if (op.max_outputs >= 0 && wanted > op.max_outputs)
    return Invalid(fmt::format("{} outputs wanted, at most {} exist", wanted, op.max_outputs));
  return Status();
}

Status CheckOutput(const Value& v, int o) {
  if (v.kind == ValueKind::kTensor && v.type.dtype == DType::kNone)
    return Error(Code::kInternal, fmt::format("inference left output {} without a type", o));
  if (v.type.dtype > DType::kI2)
    return Invalid(fmt::format("output {} would have element type {}, which does not exist", o,
                               static_cast<int>(v.type.dtype)));
  for (const Expr& d : v.type.dims) {
    if (!d.IsValid()) return Invalid(fmt::format("dims of output {} overflow", o));
    if (d.IsConst() && d.value() < 0)
      return Invalid(fmt::format("output {} would be {}: a negative dim", o, ToString(v.type)));
  }
  if (!v.type.Elements().IsValid())
    return Invalid(fmt::format("output {} would be {}: too large", o, ToString(v.type)));
  return Status();
}

}  // namespace

const OpDef& Register(OpDef def) {
  Registry& r = TheRegistry();
  Key key{def.domain, def.name};
  GE_CHECK(!r.by_name.contains(key), "operator registered twice: " + def.domain + "." + def.name);
  r.defs.push_back(std::move(def));
  r.by_name.emplace(std::move(key), &r.defs.back());
  return r.defs.back();
}

const OpDef* FindOp(std::string_view domain, std::string_view name) {
  if (domain == "ai.onnx") domain = "";
  const Registry& r = TheRegistry();
  auto it = r.by_name.find(Key{std::string(domain), std::string(name)});
  return it == r.by_name.end() ? nullptr : it->second;
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> all;
  for (const auto& [key, def] : TheRegistry().by_name) all.push_back(def);
  return all;
}

const Value& InferContext::InValue(int i) const {
  GE_CHECK(Has(i), fmt::format("inference of {} reads absent input {}", node.op->name, i));
  return graph.value(node.inputs[i]);
}

const TensorType& InferContext::In(int i) const { return InValue(i).type; }

const std::vector<Expr>* InferContext::Elems(int i) const {
  if (!Has(i)) return nullptr;
  const auto& elems = graph.value(node.inputs[i]).elems;
  return elems ? &*elems : nullptr;
}

const Constant* InferContext::Const(int i) const {
  return Has(i) ? graph.ConstantOf(node.inputs[i]) : nullptr;
}

void InferContext::Out(int o, DType dtype, std::vector<Expr> dims) {
  if (!Wants(o)) return;
  TensorType& type = graph.value(node.outputs[o]).type;
  type.dtype = dtype;
  type.dims = std::move(dims);
}

void InferContext::OutElems(int o, std::vector<Expr> elems) {
  if (!Wants(o) || elems.size() > kMaxKnownElements) return;
  for (const Expr& e : elems)
    if (!e.IsValid()) return;
  graph.value(node.outputs[o]).elems = std::move(elems);
}

Expr InferContext::Fresh(std::string_view prefix, int64_t lo, int64_t hi, int64_t hint) {
  if (num_fresh_ == node.fresh.size()) {
    SymbolFacts facts;
    facts.lo = lo;
    facts.hi = hi;
    facts.hint = hint;
    node.fresh.push_back(graph.arena().Fresh(prefix, facts));
  }
  return node.fresh[num_fresh_++];
}

void InferContext::Check(Expr condition, std::string message) {
  if (!condition.IsValid() || condition.IsConst(0)) {
    if (failed_check_.empty()) failed_check_ = std::move(message);
    return;
  }
  if (condition.IsConst()) return;
  if (!graph.guard.IsConst()) condition = Or(Eq(graph.guard, 0), condition);
  if (condition.IsConst()) return;
  for (const auto& check : graph.model->checks)
    if (check.condition == condition) return;
  graph.model->checks.push_back({condition, std::move(message)});
}

const std::vector<Expr>* Lowering::Elems(int i) const {
  if (!Has(i)) return nullptr;
  const auto& elems = graph.value(node.inputs[i]).elems;
  return elems ? &*elems : nullptr;
}

namespace {

// Inference takes dims of common symbols to be equal (a check says so), unless the output's dim was
// left open by a Select.
bool SameInBroadcast(Expr in, Expr out) {
  if (in == out) return true;
  if (out.kind() == ExprKind::kSelect) return false;
  const std::vector<Expr> symbols = Symbols(in);
  return std::ranges::any_of(symbols, [&](Expr s) { return DependsOn(out, s); });
}

}  // namespace

tile::Val Lowering::LoadBroadcast(int input, const Index& out_idx) {
  const TensorType& in = In(input);
  const size_t skip = out_idx.size() - in.dims.size();
  const bool comparable =
      !node.outputs.empty() && node.outputs[0] != kNone && Out(0).dims.size() == out_idx.size();
  Index idx;
  for (size_t d = 0; d < in.dims.size(); ++d) {
    const Expr dim = in.dims[d];
    const Expr i = out_idx[skip + d];
    if (dim.IsConst(1)) {
      idx.push_back(0);
    } else if (dim.IsConst() || !comparable || SameInBroadcast(dim, Out(0).dims[skip + d])) {
      idx.push_back(i);
    } else {
      idx.push_back(Select(Eq(dim, 1), 0, i));  // whether it is broadcast is known only at run time
    }
  }
  return Load(input, idx);
}

tile::Val Lowering::LoadOr(int input, const Index& idx, tile::Val otherwise) {
  const TensorType& in = In(input);
  Expr valid = 1;
  Index clamped;
  for (size_t d = 0; d < idx.size(); ++d) {
    const Expr dim = in.dims[d];
    if (dim.IsConst(0)) return otherwise;
    Expr i = idx[d];
    if (!ProvablyLe(0, i)) {
      valid = And(valid, Le(0, idx[d]));
      i = Max(i, 0);
    }
    if (!ProvablyLt(idx[d], dim)) {
      valid = And(valid, Lt(idx[d], dim));
      i = Min(i, Max(dim - 1, 0));
    }
    clamped.push_back(i);
  }
  const tile::Val loaded = Load(input, clamped);
  if (valid.IsConst(1)) return loaded;
  return b.Select(b.Cast(b.Index(valid), DType::kBool), loaded, otherwise);
}

Status Infer(Graph& g, Node& n) {
  GE_CHECK(n.op != nullptr && n.op->infer != nullptr, "node without inference: " + n.name);
  GE_TRY(CheckArity(n));
  for (ValueId v : n.outputs)
    if (v != kNone) g.value(v).elems.reset();
  InferContext context(g, n);
  GE_TRY(n.op->infer(context));
  if (!context.failed_check().empty()) return Invalid(context.failed_check());
  for (size_t o = 0; o < n.outputs.size(); ++o)
    if (n.outputs[o] != kNone) GE_TRY(CheckOutput(g.value(n.outputs[o]), static_cast<int>(o)));
  return Status();
}

}  // namespace ge
