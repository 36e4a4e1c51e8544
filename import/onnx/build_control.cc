// Calls of model functions, If, Loop and Scan. Captured values stand at the end of a node's inputs;
// the attribute `captures` counts them.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/build.h"
#include "ir/opdef.h"

namespace ge::onnx {

namespace {

constexpr int kMaxRounds = 6;      // of typing a loop body
constexpr int kMaxLoopDepth = 10;  // each level infers its body more than once

// Inlined bodies give the call's outputs new producers: keep the names that the outside knows.
void NameOutputs(Graph& g, const std::vector<ValueId>& outputs,
                 const std::vector<std::string>& names, ValueId first_new) {
  for (size_t o = 0; o < outputs.size() && o < names.size(); ++o)
    if (outputs[o] >= first_new && !names[o].empty()) g.value(outputs[o]).name = names[o];
}

Value Scalar(DType dtype) {
  Value v;
  v.type.dtype = dtype;
  return v;
}

// Not about the file as a whole.
bool IsAboutTheBranch(const Status& s) {
  return s.code() == Code::kInvalidArgument || s.code() == Code::kUnsupported;
}

bool SameFormals(const Graph& body, const std::vector<Value>& formals) {
  for (size_t i = 0; i < formals.size(); ++i) {
    const Value& v = body.value(body.inputs[i]);
    if (v.kind != formals[i].kind || !(v.type == formals[i].type)) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<ValueId>> GraphBuilder::Call(const FunctionProto& f, const NodeProto& node,
                                                Scope& scope, const Frame& frame) {
  if (node.inputs.size() > f.inputs.size())
    return Invalid(fmt::format("{} inputs given, function '{}' has {}", node.inputs.size(), f.name,
                               f.inputs.size()));
  if (node.outputs.size() > f.outputs.size())
    return Invalid(fmt::format("{} outputs wanted, function '{}' has {}", node.outputs.size(),
                               f.name, f.outputs.size()));
  Frame inner_frame;
  GE_ASSIGN(inner_frame.opsets, ReadOpsets(f.opsets));
  inner_frame.prefix = NodeName(node, frame) + "/";
  inner_frame.caller = &frame;
  for (const AttrProto& a : f.default_attrs) inner_frame.attrs[a.name] = &a;
  for (const Attribute& a : Attributes(node, frame)) {
    if (a.proto->graph) return Unsupported("graphs as attributes of functions are not supported");
    inner_frame.attrs[a.name] = a.proto;
  }
  GE_ASSIGN(const std::vector<ValueId> operands, Operands(node, scope));
  Scope inner;
  inner.graph = scope.graph;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    inner.names[f.inputs[i]] = i < operands.size() ? operands[i] : kNone;
  const ValueId first_new = static_cast<ValueId>(scope.graph->values.size());
  const std::string where = fmt::format("function '{}'", f.name);
  GE_TRY(Nodes(f.nodes, inner, inner_frame).In(where));
  std::vector<ValueId> outputs;
  std::vector<std::string> names;
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    outputs.push_back(kNone);
    names.push_back(node.outputs[o].empty() ? "" : frame.prefix + std::string(node.outputs[o]));
    if (node.outputs[o].empty()) continue;
    GE_ASSIGN(outputs.back(), Output(f.outputs[o], inner));
  }
  NameOutputs(*scope.graph, outputs, names, first_new);
  return outputs;
}

Result<std::unique_ptr<Graph>> GraphBuilder::Subgraph(const GraphProto& proto,
                                                      const std::vector<Value>& formals,
                                                      Scope& inner, Scope& scope,
                                                      const Frame& frame, Expr guard) {
  if (proto.inputs.size() != formals.size())
    return Invalid(fmt::format("subgraph '{}' has {} inputs, {} are fed", proto.name,
                               proto.inputs.size(), formals.size()));
  auto g = std::make_unique<Graph>();
  g->name = proto.name;
  g->model = scope.graph->model;
  g->guard = guard;
  inner.graph = g.get();
  inner.parent = &scope;
  for (size_t i = 0; i < formals.size(); ++i) {
    const ValueId v =
        g->AddInput(frame.prefix + std::string(proto.inputs[i].name), formals[i].type);
    g->value(v).kind = formals[i].kind;
    if (!inner.names.emplace(proto.inputs[i].name, v).second)
      return Invalid(fmt::format("input '{}' of subgraph '{}' is given twice", proto.inputs[i].name,
                                 proto.name));
  }
  GE_TRY(Body(proto, inner, frame).In(fmt::format("subgraph '{}'", proto.name)));
  for (const ValueInfoProto& o : proto.outputs) {
    GE_ASSIGN(const ValueId v, Output(o.name, inner));
    g->outputs.push_back(v);
  }
  return g;
}

// The nodes of one branch, as if they stood in place of the If.
Result<std::vector<ValueId>> GraphBuilder::Branch(const AttrProto& taken, const NodeDraft& draft,
                                                  Scope& scope, const Frame& frame) {
  if (!taken.graph->inputs.empty()) return Invalid("a branch of If has no inputs");
  Scope inner;
  inner.graph = scope.graph;
  inner.parent = &scope;
  const ValueId first_new = static_cast<ValueId>(scope.graph->values.size());
  GE_TRY(Body(*taken.graph, inner, frame).In(std::string(taken.name)));
  std::vector<ValueId> outputs;
  for (size_t o = 0; o < draft.outputs.size(); ++o) {
    GE_ASSIGN(const ValueId v, Output(taken.graph->outputs[o].name, inner));
    outputs.push_back(v);
  }
  NameOutputs(*scope.graph, outputs, draft.outputs, first_new);
  return outputs;
}

namespace {

// The condition of an If as an Expr, so that checks of its branches can be tied to it: its fact, or
// a symbol that ge.ReadSizes reads. `read` is that node's output, else kNone.
struct KnownCondition {
  Expr value;
  ValueId read = kNone;
};

Result<KnownCondition> ReadCondition(Graph& g, const std::string& name, ValueId condition) {
  if (const auto& known = g.value(condition).elems; known && known->size() == 1)
    return KnownCondition{(*known)[0]};
  Emitter e(g);
  GE_ASSIGN(const ValueId number,
            e.One(name, "Cast", {condition}, {{"to", static_cast<int64_t>(DType::kI64)}}));
  GE_ASSIGN(const ValueId read, e.One(name, "ge.ReadSizes", {number}));
  const auto& elems = g.value(read).elems;
  if (!elems || elems->size() != 1) return Invalid("a condition must be one element");
  return KnownCondition{(*elems)[0], read};
}

// Gives a branch an input for each value that one of the branches captures, in their order.
void TakeCaptures(Graph& branch, const Scope& inner, const std::vector<ValueId>& captured,
                  const Graph& outer) {
  branch.inputs.clear();
  for (ValueId v : captured) {
    const auto it = std::find_if(inner.captures.begin(), inner.captures.end(),
                                 [&](const auto& c) { return c.first == v; });
    if (it != inner.captures.end()) {
      branch.inputs.push_back(it->second);
      continue;
    }
    const Value& from = outer.value(v);
    Value& input = branch.value(branch.AddInput(from.name, from.type));
    input.kind = from.kind;
    input.elems = from.elems;
  }
}

}  // namespace

// The other branch cannot be built for these shapes (`why`): this one stands, and at run time the
// condition must be `when`.
Result<std::vector<ValueId>> GraphBuilder::OnlyBranch(const AttrProto& taken, bool when,
                                                      const std::string& why,
                                                      const NodeDraft& draft, Scope& scope,
                                                      const Frame& frame) {
  Graph& g = *scope.graph;
  const std::string message = fmt::format(
      "node '{}' (If): its condition must be {} for the shapes given ({})", draft.name, when, why);
  GE_ASSIGN(std::vector<ValueId> outputs, Branch(taken, draft, scope, frame));
  GE_ASSIGN(const KnownCondition condition, ReadCondition(g, draft.name, draft.inputs[0]));
  const Expr holds = when ? Ne(condition.value, 0) : Eq(condition.value, 0);
  g.model->checks.push_back({Or(Eq(g.guard, 0), holds), message});
  if (condition.read == kNone) return outputs;
  const ValueId read = condition.read;
  Emitter e(g);
  for (ValueId& v : outputs) {
    if (g.value(v).kind != ValueKind::kTensor) continue;
    const std::string name = g.value(v).name;
    GE_ASSIGN(v, e.One(draft.name, "ge.After", {v, read}));
    g.value(v).name = name;
  }
  return outputs;
}

Result<std::vector<ValueId>> GraphBuilder::IfNode(NodeDraft draft,
                                                  const std::vector<Attribute>& attrs, Scope& scope,
                                                  const Frame& frame) {
  const AttrProto* branches[] = {FindGraph(attrs, "then_branch"), FindGraph(attrs, "else_branch")};
  if (!branches[0] || !branches[1]) return Invalid("If needs a then_branch and an else_branch");
  if (draft.inputs.size() != 1 || draft.inputs[0] == kNone)
    return Invalid("If needs one condition");
  for (const AttrProto* b : branches)
    if (b->graph->outputs.size() < draft.outputs.size())
      return Invalid(fmt::format("{} outputs wanted, {} has {}", draft.outputs.size(), b->name,
                                 b->graph->outputs.size()));
  const auto& known = scope.graph->value(draft.inputs[0]).elems;
  if (known && known->size() == 1 && (*known)[0].IsConst()) {
    return Branch(*branches[(*known)[0].value() ? 0 : 1], draft, scope, frame);
  }

  Graph& outer_graph = *scope.graph;
  const size_t checks = outer_graph.model->checks.size(), known_faults = faults().size();
  const size_t nodes = outer_graph.order.size();
  GE_ASSIGN(const KnownCondition condition,
            ReadCondition(outer_graph, draft.name, draft.inputs[0]));
  auto forget_condition = [&] {
    while (outer_graph.order.size() > nodes) {
      outer_graph.node(outer_graph.order.back()).dead = true;
      outer_graph.order.pop_back();
    }
  };
  Scope inner[2];
  std::vector<ValueId> captured;
  for (int k = 0; k < 2; ++k) {
    Result<std::unique_ptr<Graph>> g =
        Subgraph(*branches[k]->graph, {}, inner[k], scope, frame,
                 And(outer_graph.guard, k == 0 ? Ne(condition.value, 0) : Eq(condition.value, 0)));
    if (!g.ok()) {
      forget_condition();
      scope.graph->model->checks.resize(checks);
      const Status fault = std::move(g).In(std::string(branches[k]->name)).status();
      if (!IsAboutTheBranch(fault)) {
        if (k == 0) {  // what the other one lacks is to be known too
          Scope unused;
          (void)Subgraph(*branches[1]->graph, {}, unused, scope, frame, outer_graph.guard);
        }
        return fault;
      }
      Result<std::vector<ValueId>> other =
          OnlyBranch(*branches[1 - k], k == 1, fault.message(), draft, scope, frame);
      if (!other.ok()) return fault;
      faults().resize(known_faults);
      return other;
    }
    draft.subgraphs.push_back(std::move(g).value());
    for (const auto& [outer, here] : inner[k].captures)
      if (std::find(captured.begin(), captured.end(), outer) == captured.end())
        captured.push_back(outer);
  }
  bool tied = false;
  for (size_t i = checks; i < outer_graph.model->checks.size(); ++i)
    tied |= condition.read != kNone &&
            DependsOn(outer_graph.model->checks[i].condition, condition.value);
  if (tied) {
    GE_ASSIGN(draft.inputs[0],
              Emitter(outer_graph).One(draft.name, "ge.After", {draft.inputs[0], condition.read}));
  } else {
    forget_condition();
  }
  for (int k = 0; k < 2; ++k) TakeCaptures(*draft.subgraphs[k], inner[k], captured, outer_graph);
  draft.inputs.insert(draft.inputs.end(), captured.begin(), captured.end());
  draft.attrs["captures"] = static_cast<int64_t>(captured.size());
  return Emitter(*scope.graph).Emit(std::move(draft));
}

namespace {

// What the body of Scan sees of a scanned input: one slice.
Result<Value> SliceOf(const Value& v, int64_t axis) {
  const int64_t rank = v.type.rank();
  if (axis < -rank || axis >= rank)
    return Invalid(fmt::format("scan axis {} given for {}", axis, ToString(v.type)));
  Value slice;
  slice.type = v.type;
  slice.type.dims.erase(slice.type.dims.begin() + (axis < 0 ? axis + rank : axis));
  return slice;
}

// Types of the body's inputs, before inference generalises carried dims.
Result<std::vector<Value>> Formals(const Graph& g, const NodeDraft& d) {
  std::vector<Value> formals;
  size_t first_slice = d.inputs.size(), i = 0;
  std::vector<int64_t> axes;
  if (d.op == "Loop") {
    if (d.inputs.size() < 2)
      return Invalid("Loop needs a trip count and a condition, each may be absent");
    formals = {Scalar(DType::kI64), Scalar(DType::kBool)};
    i = 2;
  } else {
    const auto count = d.attrs.find("num_scan_inputs");
    const int64_t* scanned =
        count == d.attrs.end() ? nullptr : std::get_if<int64_t>(&count->second);
    if (!scanned || *scanned < 1 || *scanned > static_cast<int64_t>(d.inputs.size()))
      return Invalid("Scan needs num_scan_inputs between 1 and its number of inputs");
    first_slice -= static_cast<size_t>(*scanned);
    if (auto it = d.attrs.find("scan_input_axes"); it != d.attrs.end())
      if (const auto* list = std::get_if<std::vector<int64_t>>(&it->second)) axes = *list;
  }
  for (; i < d.inputs.size(); ++i) {
    if (d.inputs[i] == kNone) return Invalid(fmt::format("input {} is absent", i));
    const Value& v = g.value(d.inputs[i]);
    if (i >= first_slice) {
      const size_t k = i - first_slice;
      GE_ASSIGN(Value slice, SliceOf(v, k < axes.size() ? axes[k] : 0));
      formals.push_back(std::move(slice));
    } else {
      Value carried;
      carried.kind = v.kind;
      carried.type = v.type;
      formals.push_back(std::move(carried));
    }
  }
  return formals;
}

bool HasName(const std::vector<ValueInfoProto>& values, std::string_view name) {
  return std::ranges::any_of(values, [&](const ValueInfoProto& v) { return v.name == name; });
}

bool Mentions(const std::vector<NodeProto>& nodes, std::string_view name) {
  for (const NodeProto& n : nodes) {
    if (std::ranges::count(n.inputs, name)) return true;
    for (const AttrProto& a : n.attrs)
      if (a.graph && (Mentions(a.graph->nodes, name) || HasName(a.graph->outputs, name)))
        return true;
  }
  return false;
}

// Makes sure that a Loop has at least one iteration, by facts or by a check at run time; false if
// that cannot be said of its trip count. `read` is what the check waits for, else kNone.
Result<bool> SurelyRuns(Graph& g, const NodeDraft& d, ValueId& read) {
  if (d.inputs[0] != kNone) {
    const auto& most = g.value(d.inputs[0]).elems;
    if (!most || most->size() != 1 || !(*most)[0].IsConst() || (*most)[0].value() < 1) return false;
  }
  if (d.inputs[1] == kNone) return true;
  GE_ASSIGN(const KnownCondition starts, ReadCondition(g, d.name, d.inputs[1]));
  if (starts.value.IsConst()) return starts.value.value() != 0;
  read = starts.read;
  g.model->checks.push_back(
      {Or(Eq(g.guard, 0), Ne(starts.value, 0)),
       fmt::format(
           "node '{}' (Loop): its first condition must be true, because what it starts with "
           "has another rank than what it gives",
           d.name)});
  return true;
}

// Carried values that start with another rank than the body gives (as Paddle's exporter writes
// them), if the loop surely runs: one element is reshaped; what the body never reads becomes an
// empty tensor of the right rank, because nobody sees it. Returns whether there were such.
Result<bool> ReplaceStarts(Graph& g, const GraphProto& proto, const Graph& body, NodeDraft& d,
                           std::vector<Value>& formals) {
  if (d.op != "Loop") return false;
  const auto one_element = [](const TensorType& t) {
    return std::ranges::all_of(t.dims, [](Expr dim) { return dim.IsConst(1); });
  };
  std::vector<size_t> single, unread;
  for (size_t i = 2; i < d.inputs.size() && i <= body.outputs.size(); ++i) {
    const Value& out = body.value(body.outputs[i - 1]);
    if (out.kind != ValueKind::kTensor || formals[i].kind != ValueKind::kTensor) continue;
    if (out.type.rank() == formals[i].type.rank()) continue;
    const std::string_view name = proto.inputs[i].name;
    if (one_element(out.type) && one_element(formals[i].type)) {
      single.push_back(i);
    } else if (!Mentions(proto.nodes, name) && !HasName(proto.outputs, name)) {
      unread.push_back(i);
    }
  }
  if (single.empty() && unread.empty()) return false;
  ValueId read = kNone;
  GE_ASSIGN(const bool runs, SurelyRuns(g, d, read));
  if (!runs) return false;
  Emitter e(g);
  const auto size = [&](size_t i) { return body.value(body.outputs[i - 1]).type.dims.size(); };
  for (const size_t i : single) {
    const ValueId shape = e.Ints(d.name, std::vector<int64_t>(size(i), 1));
    GE_ASSIGN(d.inputs[i], e.One(d.name, "Reshape", {d.inputs[i], shape}));
  }
  for (const size_t i : unread) {
    const std::vector<int64_t> none(size(i), 0);
    d.inputs[i] = g.AddConstant(fmt::format("{}.start{}", d.name, i - 2),
                                MakeConstant(formals[i].type.dtype, none, ""));
  }
  single.insert(single.end(), unread.begin(), unread.end());
  for (const size_t i : single) {
    if (read != kNone) {
      GE_ASSIGN(d.inputs[i], e.One(d.name, "ge.After", {d.inputs[i], read}));
    }
    formals[i].type = g.value(d.inputs[i]).type;
  }
  return true;
}

}  // namespace

// The body is built for the types of the first iteration; inference of the node then says which
// carried dims vary, and the body is built again for those, because expansions follow the types.
Result<std::vector<ValueId>> GraphBuilder::LoopNode(NodeDraft draft,
                                                    const std::vector<Attribute>& attrs,
                                                    Scope& scope, const Frame& frame) {
  const AttrProto* body = FindGraph(attrs, "body");
  if (!body) return Invalid("a loop needs a body");
  if (loop_depth_ >= kMaxLoopDepth)
    return Error(Code::kResourceExhausted,
                 fmt::format("loops nested deeper than {}", kMaxLoopDepth));
  ++loop_depth_;
  Result<std::vector<ValueId>> outputs = Loop(std::move(draft), *body, scope, frame);
  --loop_depth_;
  return outputs;
}

Result<std::vector<ValueId>> GraphBuilder::Loop(NodeDraft draft, const AttrProto& body,
                                                Scope& scope, const Frame& frame) {
  Graph& g = *scope.graph;
  GE_ASSIGN(std::vector<Value> formals, Formals(g, draft));
  std::vector<ValueId> operands = draft.inputs;
  const size_t wanted = draft.outputs.size();
  size_t checks = g.model->checks.size();
  Emitter emitter(g);
  NodeId id = kNone;
  bool starts_seen = false;
  for (int round = 0;; ++round) {
    g.model->checks.resize(checks);
    Scope inner;
    GE_ASSIGN(auto built, Subgraph(*body.graph, formals, inner, scope, frame, g.guard));
    std::vector<ValueId> inputs = operands;
    for (const auto& [outer, here] : inner.captures) inputs.push_back(outer);
    const int64_t captures = static_cast<int64_t>(inner.captures.size());
    if (id == kNone && !starts_seen) {
      starts_seen = true;
      g.model->checks.resize(checks);  // the body's
      GE_ASSIGN(const bool replaced, ReplaceStarts(g, *body.graph, *built, draft, formals));
      if (replaced) {
        operands = draft.inputs;
        checks = g.model->checks.size();
        continue;
      }
    }
    if (id == kNone) {
      // The first round alone comes here: it moves the draft away and gives the id.
      // NOLINTNEXTLINE(bugprone-use-after-move)
      draft.inputs = std::move(inputs);
      draft.attrs["captures"] = captures;
      draft.subgraphs.push_back(std::move(built));
      GE_ASSIGN(id, emitter.Add(std::move(draft)));
    } else {
      Node& n = g.node(id);
      n.inputs = std::move(inputs);
      n.attrs["captures"] = captures;
      n.subgraphs[0] = std::move(built);
      GE_TRY(Infer(g, n));
    }
    const Graph& now = *g.node(id).subgraphs[0];
    if (SameFormals(now, formals)) break;
    if (round == kMaxRounds) return Unsupported("types of the carried values do not settle");
    for (size_t i = 0; i < formals.size(); ++i) {
      formals[i].kind = now.value(now.inputs[i]).kind;
      formals[i].type = now.value(now.inputs[i]).type;
    }
  }
  std::vector<ValueId> outputs = g.node(id).outputs;
  outputs.resize(wanted, kNone);
  GE_TRY(emitter.Finish(id));
  return outputs;
}

}  // namespace ge::onnx
