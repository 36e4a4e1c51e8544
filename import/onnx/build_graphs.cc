// Operators whose attributes are graphs that stand for a function of values: their bodies are put
// where they are called.
//   FlexAttention (ai.onnx.preview)  prob_mod(softmax(score_mod(scale * Q K^T))) V
//   SequenceMap                      a Loop over the sequences' elements with the body inside
//   Scan of opset 8                  a Scan over the batch whose body is today's Scan
#include <fmt/format.h>

#include <cmath>
#include <deque>

#include "import/onnx/build.h"
#include "ir/opdef.h"

namespace ge::onnx {

namespace {

constexpr std::string_view kBody = "body";

AttrProto Reference(std::string_view name, std::string_view to) {
  AttrProto a;
  a.name = name;
  a.ref = to;
  return a;
}

AttrProto GraphAttribute(std::string_view name, GraphProto graph) {
  AttrProto a;
  a.name = name;
  a.kind = AttrKind::kGraph;
  a.graph = std::make_unique<GraphProto>(std::move(graph));
  return a;
}

template <class T>
T Get(const NodeDraft& d, std::string_view name, T otherwise) {
  const auto it = d.attrs.find(name);
  if (it == d.attrs.end()) return otherwise;
  const T* v = std::get_if<T>(&it->second);
  return v ? *v : otherwise;
}

}  // namespace

// The outputs of `g` applied to `arguments`; its nodes go to the scope's graph.
Result<std::vector<ValueId>> GraphBuilder::Inline(const GraphProto& g,
                                                  const std::vector<ValueId>& arguments,
                                                  Scope& scope, const Frame& frame) {
  if (g.inputs.size() != arguments.size())
    return Invalid(fmt::format("graph '{}' has {} inputs, {} are given", g.name, g.inputs.size(),
                               arguments.size()));
  Scope inner;
  inner.graph = scope.graph;
  inner.parent = &scope;
  for (size_t i = 0; i < arguments.size(); ++i) inner.names[g.inputs[i].name] = arguments[i];
  GE_TRY(Body(g, inner, frame).In(fmt::format("graph '{}'", g.name)));
  std::vector<ValueId> outputs;
  for (const ValueInfoProto& o : g.outputs) {
    GE_ASSIGN(const ValueId v, Output(o.name, inner));
    outputs.push_back(v);
  }
  return outputs;
}

namespace {

// Emits one node after another; the first failure makes the rest no-ops.
struct Chain {
  Emitter e;
  const std::string& name;
  Status fault;

  ValueId Keep(Result<ValueId> v) {
    if (!v.ok() && fault.ok()) fault = v.status();
    return v.ok() ? *v : kNone;
  }
  ValueId Op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return fault.ok() ? Keep(e.One(name, op, std::move(inputs), std::move(attrs))) : kNone;
  }
  const TensorType& Type(ValueId v) { return e.graph().value(v).type; }
  ValueId Cast(ValueId v, DType t) {
    if (!fault.ok() || Type(v).dtype == t) return v;
    return Op("Cast", {v}, {{"to", static_cast<int64_t>(t)}});
  }
  ValueId Reshape(ValueId v, const std::vector<Expr>& dims) {
    if (!fault.ok()) return kNone;
    const ValueId sizes = Keep(e.Sizes(name, dims));
    return Op("Reshape", {v, sizes}, {{"allowzero", int64_t{1}}});
  }
  ValueId Times(ValueId v, double factor) {
    const auto x = static_cast<float>(factor);
    const ValueId k = e.graph().AddConstant(name + ".scale", MakeConstant(DType::kF32, {}, &x));
    return fault.ok() ? Op("Mul", {v, Cast(k, Type(v).dtype)}) : kNone;
  }
};

}  // namespace

Result<std::vector<ValueId>> GraphBuilder::FlexAttention(NodeDraft draft,
                                                         const std::vector<Attribute>& attrs,
                                                         Scope& scope, const Frame& frame) {
  if (draft.inputs.size() != 3) return Invalid("FlexAttention needs Q, K and V");
  Graph& g = *scope.graph;
  std::vector<TensorType> t;
  for (ValueId v : draft.inputs) {
    if (v == kNone || g.value(v).type.rank() != 4) return Invalid("Q, K and V must have rank 4");
    t.push_back(g.value(v).type);
  }
  const auto &q_dims = t[0].dims, &k_dims = t[1].dims, &v_dims = t[2].dims;
  if (!q_dims[1].IsConst() || !k_dims[1].IsConst() || !q_dims[3].IsConst() || k_dims[1].IsConst(0))
    return Unsupported("FlexAttention needs constant numbers of heads and of values in a head");
  const int64_t group = q_dims[1].value() / k_dims[1].value();
  if (group * k_dims[1].value() != q_dims[1].value())
    return Invalid(fmt::format("{} query heads are no multiple of {} key heads", q_dims[1].value(),
                               k_dims[1].value()));
  const double scale = Get<float>(
      draft, "scale", static_cast<float>(1 / std::sqrt(static_cast<double>(q_dims[3].value()))));
  const DType natural = t[0].dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto precision =
      static_cast<DType>(Get<int64_t>(draft, "softmax_precision", static_cast<int64_t>(natural)));

  Chain c{Emitter(g), draft.name, {}};
  auto modify = [&](const char* attr, ValueId v) -> ValueId {
    const AttrProto* graph = FindGraph(attrs, attr);
    if (!graph || !c.fault.ok()) return v;
    Result<std::vector<ValueId>> out = Inline(*graph->graph, {v}, scope, frame);
    if (out.ok() && out->size() == 1) return (*out)[0];
    c.fault = out.ok() ? Invalid(fmt::format("{} must have one output", attr))
                       : std::move(out).In(attr).status();
    return kNone;
  };
  const std::vector<Expr> all = {q_dims[0], q_dims[1], q_dims[2], k_dims[2]};
  const Expr rows = q_dims[2] * group;
  // Half of the scale on either side, so that products of small floats do not overflow. Heads that
  // share keys are rows of one product.
  ValueId q = c.Times(draft.inputs[0], std::sqrt(scale));
  const ValueId k = c.Op("Transpose", {c.Times(draft.inputs[1], std::sqrt(scale))},
                         {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  if (group > 1) q = c.Reshape(q, {q_dims[0], k_dims[1], rows, q_dims[3]});
  ValueId scores = c.Op("MatMul", {q, k});
  if (group > 1) scores = c.Reshape(scores, all);
  scores = modify("score_mod", c.Cast(scores, precision));
  ValueId weights = modify("prob_mod", c.Op("Softmax", {scores}, {{"axis", int64_t{-1}}}));
  if (group > 1) weights = c.Reshape(weights, {q_dims[0], k_dims[1], rows, k_dims[2]});
  ValueId y = c.Op("MatMul", {weights, c.Cast(draft.inputs[2], precision)});
  if (group > 1) y = c.Reshape(y, {q_dims[0], q_dims[1], q_dims[2], v_dims[3]});
  y = c.Cast(y, t[0].dtype);
  if (!c.fault.ok()) return c.fault;
  if (!draft.outputs.empty() && !draft.outputs[0].empty()) g.value(y).name = draft.outputs[0];
  return std::vector<ValueId>{y};
}

// for i in 0 .. length(first sequence): out_k = SequenceInsert(out_k, body(SequenceAt(in_j, i)
// ..)_k), written as a Loop whose body calls the map's body by reference.
Result<std::vector<ValueId>> GraphBuilder::SequenceMap(NodeDraft draft, const NodeProto& node,
                                                       const std::vector<Attribute>& attrs,
                                                       Scope& scope, const Frame& frame) {
  const AttrProto* body = FindGraph(attrs, kBody);
  if (!body) return Invalid("SequenceMap needs a body");
  Graph& g = *scope.graph;
  if (draft.inputs.empty() || draft.inputs[0] == kNone ||
      g.value(draft.inputs[0]).kind != ValueKind::kSequence)
    return Invalid("the first input of SequenceMap must be a sequence");
  std::deque<std::string> text;  // what the views below show
  auto name = [&](const char* what, size_t i) -> std::string_view {
    return text.emplace_back(fmt::format("#{}{}", what, i));
  };
  auto make = [](std::string_view op, std::vector<std::string_view> inputs,
                 std::vector<std::string_view> outputs) {
    NodeProto n;
    n.op_type = op;
    n.inputs = std::move(inputs);
    n.outputs = std::move(outputs);
    return n;
  };
  GraphProto loop;
  loop.name = body->graph->name;
  auto add_input = [&](std::string_view n) { loop.inputs.emplace_back().name = n; };
  auto add_output = [&](std::string_view n) { loop.outputs.emplace_back().name = n; };
  add_input("#i");
  add_input("#condition");
  NodeProto call = make("ge.Inline", {}, {});
  for (size_t j = 0; j < draft.inputs.size(); ++j) {
    const bool sequence =
        draft.inputs[j] != kNone && g.value(draft.inputs[j]).kind == ValueKind::kSequence;
    call.inputs.push_back(sequence ? name("element", j) : node.inputs[j]);
    if (sequence)
      loop.nodes.push_back(make("SequenceAt", {node.inputs[j], "#i"}, {call.inputs.back()}));
  }
  const size_t results = body->graph->outputs.size();
  std::vector<NodeProto> inserts;
  for (size_t k = 0; k < results; ++k) {
    call.outputs.push_back(name("result", k));
    add_input(name("held", k));
    inserts.push_back(
        make("SequenceInsert", {loop.inputs.back().name, call.outputs.back()}, {name("next", k)}));
  }
  call.attrs.push_back(Reference(kBody, "#map"));
  loop.nodes.push_back(std::move(call));
  loop.nodes.push_back(make("Identity", {"#condition"}, {"#goes_on"}));
  add_output("#goes_on");
  for (NodeProto& n : inserts) {
    add_output(n.outputs[0]);
    loop.nodes.push_back(std::move(n));
  }

  Emitter e(g);
  NodeDraft d;
  d.name = draft.name;
  d.op = "Loop";
  d.outputs = draft.outputs;
  GE_ASSIGN(const ValueId length, e.One(draft.name, "SequenceLength", {draft.inputs[0]}));
  d.inputs = {length, kNone};
  for (const ValueInfoProto& o : body->graph->outputs) {
    const int64_t dtype =
        o.type.elem_type > 0 ? o.type.elem_type : static_cast<int64_t>(DType::kF32);
    GE_ASSIGN(const ValueId empty, e.One(draft.name, "SequenceEmpty", {}, {{"dtype", dtype}}));
    d.inputs.push_back(empty);
  }
  const AttrProto loop_body = GraphAttribute(kBody, std::move(loop));
  Frame inner = frame;
  inner.attrs["#map"] = body;
  return LoopNode(std::move(d), {{&loop_body, kBody}}, scope, inner);
}

// Before opset 9 all states and scanned values had a batch axis in front, and Scan a first input
// with the lengths of the sequences.
Result<std::vector<ValueId>> GraphBuilder::BatchedScan(NodeDraft draft,
                                                       const std::vector<Attribute>& attrs,
                                                       Scope& scope, const Frame& frame) {
  const AttrProto* body = FindGraph(attrs, kBody);
  if (!body) return Invalid("a loop needs a body");
  if (draft.inputs.size() < 2) return Invalid("Scan of opset 8 needs sequence_lens and a sequence");
  if (draft.inputs[0] != kNone)
    return Unsupported("input 0 of Scan of opset 8, sequence_lens, is given; it must be absent");
  std::deque<std::string> text;  // what the views below show
  auto name = [&](const char* what, size_t i) -> std::string_view {
    return text.emplace_back(fmt::format("#{}{}", what, i));
  };
  GraphProto batch;
  batch.name = body->graph->name;
  NodeProto step;
  step.name = draft.name;
  step.op_type = kScanOfOne;
  draft.inputs.erase(draft.inputs.begin());
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    step.inputs.push_back(name("in", i));
    batch.inputs.emplace_back().name = step.inputs.back();
  }
  for (size_t o = 0; o < body->graph->outputs.size(); ++o) {
    step.outputs.push_back(name("out", o));
    batch.outputs.emplace_back().name = step.outputs.back();
  }
  step.attrs.push_back(Reference(kBody, "#scan"));
  Frame inner = frame;
  inner.attrs["#scan"] = body;
  for (const Attribute& a : attrs) {
    if (a.name != "num_scan_inputs" && a.name != "directions") continue;
    const bool count = a.name == "num_scan_inputs";
    step.attrs.push_back(Reference(count ? a.name : "scan_input_directions", a.name));
    inner.attrs[a.name] = a.proto;
  }
  batch.nodes.push_back(std::move(step));
  const AttrProto whole = GraphAttribute(kBody, std::move(batch));
  draft.attrs = {{"num_scan_inputs", static_cast<int64_t>(draft.inputs.size())}};
  return LoopNode(std::move(draft), {{&whole, kBody}}, scope, inner);
}

}  // namespace ge::onnx
