// Control flow, which the planner turns into jumps. Inference of If, Loop and Scan goes through
// their subgraphs:
//   If(cond, captures..)                     then, else: (captures..) -> outputs
//   Loop(M, cond, carried.., captures..)     body: (i, cond, carried.., captures..) -> (cond,
//   carried.., scans..) Scan(states.., scanned.., captures..)    body: (states.., slices..,
//   captures..) -> (states.., scans..)
// The attribute `captures` says how many inputs at the end are captured values.
//
// A dim that differs between branches is a select on the condition if that is known as an Expr,
// else a fresh symbol. A carried dim that changes from one iteration to the next is a fresh symbol
// in the body.
#include <fmt/format.h>

#include <algorithm>

#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

Status InferSubgraph(Graph& sub) {
  for (NodeId id : sub.order) {
    Node& n = sub.node(id);
    GE_TRY(Infer(sub, n).In(fmt::format("node '{}' ({})", n.name, n.op->name)));
  }
  return {};
}

void Feed(Graph& sub, size_t input, const Value& from, bool with_facts) {
  Value& to = sub.value(sub.inputs[input]);
  to.kind = from.kind;
  to.type = from.type;
  to.type.layout = {};
  to.elems = with_facts ? from.elems : std::nullopt;
}

const Value& OutputOf(const Graph& sub, size_t o) { return sub.value(sub.outputs[o]); }

void SetOutput(InferContext& c, int o, const Value& from, const Dims& dims) {
  if (!c.Wants(o)) return;
  Value& to = c.graph.value(c.node.outputs[o]);
  to.kind = from.kind;
  to.type.dtype = from.type.dtype;
  to.type.dims = dims;
}

Status CheckArityOf(const Graph& sub, size_t inputs, size_t outputs, const char* what) {
  if (sub.inputs.size() != inputs)
    return Invalid(
        fmt::format("the {} has {} inputs, but is fed {}", what, sub.inputs.size(), inputs));
  if (sub.outputs.size() < outputs)
    return Invalid(
        fmt::format("the {} has {} outputs, but {} are needed", what, sub.outputs.size(), outputs));
  return {};
}

Expr JoinDims(InferContext& c, std::optional<Expr> condition, Expr a, Expr b) {
  if (a == b) return a;
  if (condition) return Select(Ne(*condition, 0), a, b);
  const Interval x = Bounds(a), y = Bounds(b);
  return c.Fresh("if", std::max<int64_t>(0, std::min(x.lo, y.lo)), std::max(x.hi, y.hi),
                 std::max(HintValue(a), HintValue(b)));
}

// Branches of unequal rank (as TorchScript's squeeze(dim) gives: If(dim == 1) Squeeze else
// Identity) have no common type. If the condition hangs on sizes alone, the branch of lower rank is
// taken for granted, and a run-time check refuses sizes for which it is the other.
Status AssumeBranch(InferContext& c, int o, Expr condition) {
  const bool taken =
      OutputOf(*c.node.subgraphs[0], o).type.rank() < OutputOf(*c.node.subgraphs[1], o).type.rank();
  const Value& v = OutputOf(*c.node.subgraphs[taken ? 0 : 1], o);
  c.Check(taken ? Ne(condition, 0) : Eq(condition, 0),
          fmt::format("output {} has another rank unless {} is {}", o, ToString(condition), taken));
  SetOutput(c, o, v, v.type.dims);
  if (v.elems) c.OutElems(o, *v.elems);
  return {};
}

Status JoinBranches(InferContext& c, int o, std::optional<Expr> condition) {
  const Value &a = OutputOf(*c.node.subgraphs[0], o), &b = OutputOf(*c.node.subgraphs[1], o);
  if (a.type.dtype != b.type.dtype || a.kind != b.kind)
    return c.Fault(fmt::format("output {} is {} in one branch and {} in the other", o,
                               ToString(a.type), ToString(b.type)));
  if (a.type.rank() != b.type.rank() && a.kind == ValueKind::kTensor) {
    if (condition) return AssumeBranch(c, o, *condition);
    // The same elements in memory: the shape with more axes stands for both.
    if (a.type.Elements() == b.type.Elements()) {
      const Value& longer = a.type.rank() > b.type.rank() ? a : b;
      SetOutput(c, o, longer, longer.type.dims);
      return {};
    }
    return Unsupported(
        fmt::format("output {} is {} in one branch and {} in the other: ranks differ", o,
                    ToString(a.type), ToString(b.type)));
  }
  Dims dims;
  for (int d = 0; d < std::min(a.type.rank(), b.type.rank()); ++d)
    dims.push_back(JoinDims(c, condition, a.type.dims[d], b.type.dims[d]));
  if (a.type.rank() != b.type.rank()) dims.clear();
  SetOutput(c, o, a, dims);
  if (!a.elems || !b.elems || a.elems->size() != b.elems->size()) return {};
  std::vector<Expr> elems;
  for (size_t i = 0; i < a.elems->size(); ++i) {
    if ((*a.elems)[i] != (*b.elems)[i] && !condition) return {};
    elems.push_back((*a.elems)[i] == (*b.elems)[i]
                        ? (*a.elems)[i]
                        : Select(Ne(*condition, 0), (*a.elems)[i], (*b.elems)[i]));
  }
  c.OutElems(o, elems);
  return {};
}

Status InferIf(InferContext& c) {
  auto& branches = c.node.subgraphs;
  if (branches.size() != 2) return c.Fault("If needs a then_branch and an else_branch");
  const size_t captures = c.node.inputs.size() - 1;
  std::optional<Expr> condition;
  if (const auto* e = c.Elems(0); e && e->size() == 1) condition = (*e)[0];
  const bool known = condition && condition->IsConst();
  for (int k = 0; k < 2; ++k) {
    if (known && k == (condition->value() ? 1 : 0)) continue;  // never runs
    Graph& sub = *branches[k];
    GE_TRY(CheckArityOf(sub, captures, c.node.outputs.size(), k ? "else_branch" : "then_branch"));
    for (size_t i = 0; i < captures; ++i)
      if (c.Has(static_cast<int>(i) + 1)) Feed(sub, i, c.InValue(static_cast<int>(i) + 1), true);
    GE_TRY(InferSubgraph(sub).In(k ? "else_branch" : "then_branch"));
  }
  for (int o = 0; o < c.NumOutputs(); ++o) {
    if (!known) {
      GE_TRY(JoinBranches(c, o, condition));
      continue;
    }
    const Value& v = OutputOf(*branches[condition->value() ? 0 : 1], o);
    SetOutput(c, o, v, v.type.dims);
    if (v.elems) c.OutElems(o, *v.elems);
  }
  return {};
}

const OpDef& kIf = Register({.name = "If",
                             .max_inputs = -1,
                             .min_outputs = 0,
                             .max_outputs = -1,
                             .infer = InferIf,
                             .control = true});

// Feeds the carried values and infers the body until no dim of theirs changes: those that do become
// symbols. `first_in`, `first_out`: the first carried value among the body's inputs and outputs.
struct Carried {
  size_t count, first_in, first_out;
  int node_input;  // of the first one
};

// The element type of a carried sequence grows to hold what the body puts in: an empty one (rank 0)
// takes the other's dims, dims that differ become unknown ("?", see sequences.cc).
bool WidenElements(InferContext& c, TensorType& held, const TensorType& given) {
  if (held == given) return false;
  if (held.rank() != given.rank() || held.dtype != given.dtype) {
    const bool empty = held.rank() == 0;
    if (!empty) return false;
    held = given;
    // A symbol may be the body's own, with another value in each iteration.
    for (Expr& d : held.dims)
      if (!d.IsConst()) d = c.graph.arena().Symbol("?");
    return true;
  }
  bool changed = false;
  const Expr any = c.graph.arena().Symbol("?");
  for (int d = 0; d < held.rank(); ++d) {
    changed |= held.dims[d] != given.dims[d] && held.dims[d] != any;
    if (held.dims[d] != given.dims[d]) held.dims[d] = any;
  }
  return changed;
}

Status InferBody(InferContext& c, Graph& body, const Carried& k, std::vector<Dims>& dims) {
  for (size_t i = 0; i < k.count; ++i) {
    Feed(body, k.first_in + i, c.InValue(k.node_input + static_cast<int>(i)), false);
    dims.push_back(body.value(body.inputs[k.first_in + i]).type.dims);
  }
  for (int round = 0;; ++round) {
    GE_TRY(InferSubgraph(body).In("body"));
    bool changed = false;
    for (size_t i = 0; i < k.count; ++i) {
      Value& in = body.value(body.inputs[k.first_in + i]);
      const Value& out = OutputOf(body, k.first_out + i);
      if (in.kind != out.kind || (in.kind == ValueKind::kTensor && in.type.dtype != out.type.dtype))
        return c.Fault(fmt::format("carried value {} is {} and becomes {}", i, ToString(in.type),
                                   ToString(out.type)));
      if (in.kind != ValueKind::kTensor) {
        changed |= WidenElements(c, in.type, out.type);
        continue;
      }
      if (in.type.rank() != out.type.rank())
        return Unsupported(fmt::format("carried value {} changes its rank from {} to {}", i,
                                       ToString(in.type), ToString(out.type)));
      for (int d = 0; d < in.type.rank(); ++d) {
        if (in.type.dims[d] == out.type.dims[d] || round > 0) continue;
        in.type.dims[d] = c.Fresh("carried", 0, INT64_MAX, HintValue(in.type.dims[d]));
        changed = true;
      }
    }
    if (!changed || round > 3) break;
  }
  for (size_t i = 0; i < k.count; ++i) dims[i] = body.value(body.inputs[k.first_in + i]).type.dims;
  return {};
}

// Final carried values: dims that change in the body have yet another size at the end.
void CarriedOutputs(InferContext& c, const Graph& body, const Carried& k) {
  for (size_t i = 0; i < k.count; ++i) {
    const Value& in = c.InValue(k.node_input + static_cast<int>(i));
    const Value& inside = body.value(body.inputs[k.first_in + i]);
    Dims dims = inside.type.dims;
    if (inside.kind == ValueKind::kTensor)
      for (size_t d = 0; d < dims.size(); ++d)
        if (dims[d] != in.type.dims[d])
          dims[d] = c.Fresh("final", 0, INT64_MAX, HintValue(dims[d]));
    SetOutput(c, static_cast<int>(i), inside, dims);
  }
}

Status InferLoop(InferContext& c) {
  if (c.node.subgraphs.size() != 1) return c.Fault("Loop needs a body");
  Graph& body = *c.node.subgraphs[0];
  const int64_t captures = c.Int("captures", 0), carried = c.NumInputs() - 2 - captures;
  if (carried < 0) return c.Fault("fewer inputs than captures");
  const size_t n = carried;
  GE_TRY(CheckArityOf(body, c.node.inputs.size(), n + 1, "body"));
  if (body.outputs.size() < c.node.outputs.size() + 1)
    return c.Fault(fmt::format("the body gives {} outputs for {} of the loop",
                               body.outputs.size() - 1, c.NumOutputs()));
  auto scalar = [&](size_t i, DType t) {
    Value& v = body.value(body.inputs[i]);
    v.kind = ValueKind::kTensor;
    v.type = {t, {}, {}};
    v.elems.reset();
  };
  scalar(0, DType::kI64);
  scalar(1, DType::kBool);
  // If the loop starts with true and every iteration gives true when it had true, only M ends it.
  const auto* start = c.Elems(1);
  const bool starts = !c.Has(1) || (start && start->size() == 1 && (*start)[0].IsConst(1));
  if (starts) body.value(body.inputs[1]).elems = std::vector<Expr>{1};
  for (size_t i = n + 2; i < c.node.inputs.size(); ++i)
    if (c.Has(static_cast<int>(i))) Feed(body, i, c.InValue(static_cast<int>(i)), true);
  const Carried k{n, 2, 1, 2};
  std::vector<Dims> dims;
  GE_TRY(InferBody(c, body, k, dims));
  CarriedOutputs(c, body, k);
  const auto& ends = OutputOf(body, 0).elems;
  const bool counted = starts && ends && ends->size() == 1 && (*ends)[0].IsConst(1);
  if (starts && !counted) {  // what was inferred under "the condition is true" does not hold
    body.value(body.inputs[1]).elems.reset();
    GE_TRY(InferSubgraph(body).In("body"));
  }
  const auto* limit = c.Elems(0);
  std::optional<Expr> most;
  if (limit && limit->size() == 1) most = Max((*limit)[0], 0);
  if (c.NumOutputs() <= carried) return {};
  const Expr trips =
      counted && most ? *most : c.Fresh("trips", 0, most ? Bounds(*most).hi : INT64_MAX);
  for (int o = static_cast<int>(carried); o < c.NumOutputs(); ++o) {
    const Value& v = OutputOf(body, o + 1);
    Dims out = {trips};
    out.insert(out.end(), v.type.dims.begin(), v.type.dims.end());
    SetOutput(c, o, v, out);
  }
  return {};
}

const OpDef& kLoop = Register({.name = "Loop",
                               .min_inputs = 0,
                               .max_inputs = -1,
                               .min_outputs = 0,
                               .max_outputs = -1,
                               .infer = InferLoop,
                               .control = true});

Status InferScan(InferContext& c) {
  if (c.node.subgraphs.size() != 1) return c.Fault("Scan needs a body");
  Graph& body = *c.node.subgraphs[0];
  const int64_t captures = c.Int("captures", 0), scanned = c.Int("num_scan_inputs", 0);
  const int64_t states = c.NumInputs() - captures - scanned;
  if (scanned < 1 || states < 0)
    return c.Fault(
        fmt::format("num_scan_inputs is {} for {} inputs", scanned, c.NumInputs() - captures));
  GE_TRY(CheckArityOf(body, c.node.inputs.size(), c.node.outputs.size(), "body"));
  const auto in_axes = c.Ints("scan_input_axes"), out_axes = c.Ints("scan_output_axes");
  auto axis_of = [](const std::vector<int64_t>& axes, int64_t i, int rank) {
    return NormaliseAxis(i < static_cast<int64_t>(axes.size()) ? axes[i] : 0, rank);
  };
  std::optional<Expr> length;
  for (int64_t i = 0; i < scanned; ++i) {
    const int at = static_cast<int>(states + i);
    const Value& v = c.InValue(at);
    GE_ASSIGN(const int axis, axis_of(in_axes, i, v.type.rank()));
    if (!length) length = v.type.dims[axis];
    GE_TRY(SameDim(c, *length, v.type.dims[axis], "the lengths of scanned inputs").status());
    Feed(body, at, v, false);
    auto& dims = body.value(body.inputs[at]).type.dims;
    dims.erase(dims.begin() + axis);
  }
  for (size_t i = states + scanned; i < c.node.inputs.size(); ++i)
    if (c.Has(static_cast<int>(i))) Feed(body, i, c.InValue(static_cast<int>(i)), true);
  const Carried k{static_cast<size_t>(states), 0, 0, 0};
  std::vector<Dims> dims;
  GE_TRY(InferBody(c, body, k, dims));
  CarriedOutputs(c, body, k);
  for (int o = static_cast<int>(states); o < c.NumOutputs(); ++o) {
    const Value& v = OutputOf(body, o);
    Dims out = v.type.dims;
    GE_ASSIGN(const int axis, axis_of(out_axes, o - states, v.type.rank() + 1));
    out.insert(out.begin() + axis, *length);
    SetOutput(c, o, v, out);
  }
  return {};
}

const OpDef& kScan = Register({.name = "Scan",
                               .max_inputs = -1,
                               .min_outputs = 0,
                               .max_outputs = -1,
                               .infer = InferScan,
                               .control = true});

}  // namespace
}  // namespace ge
