// ExpandBuilder, ExpandNode, and the operators ge.Exprs, which carries symbolic sizes into the
// graph, and ge.After, which ties a value to a check.
#include "ir/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "ir/text.h"

namespace ge {

namespace {

constexpr int kMaxExpandDepth = 16;

// Round to nearest even by the FPU's own float addition of bits: works for subnormals too.
uint16_t ToF16(double value) {
  const float x = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds past 65504
  if (magnitude < 0x38800000) {                                              // subnormal half
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;      // units of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

uint16_t ToBF16(double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
Constant Encode(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  std::vector<T> data;
  data.reserve(values.size());
  for (double v : values) data.push_back(static_cast<T>(v));
  return MakeConstant(dtype, std::move(dims), data.data());
}

template <uint16_t (*kConvert)(double)>
Constant EncodeWith(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  std::vector<uint16_t> data;
  for (double v : values) data.push_back(kConvert(v));
  return MakeConstant(dtype, std::move(dims), data.data());
}

std::optional<Constant> EncodeAs(DType t, std::vector<int64_t> dims, const std::vector<double>& v) {
  switch (t) {
    case DType::kF32: return Encode<float>(t, std::move(dims), v);
    case DType::kF64: return Encode<double>(t, std::move(dims), v);
    case DType::kI64: return Encode<int64_t>(t, std::move(dims), v);
    case DType::kI32: return Encode<int32_t>(t, std::move(dims), v);
    case DType::kI16: return Encode<int16_t>(t, std::move(dims), v);
    case DType::kI8: return Encode<int8_t>(t, std::move(dims), v);
    case DType::kU64: return Encode<uint64_t>(t, std::move(dims), v);
    case DType::kU32: return Encode<uint32_t>(t, std::move(dims), v);
    case DType::kU16: return Encode<uint16_t>(t, std::move(dims), v);
    case DType::kU8: return Encode<uint8_t>(t, std::move(dims), v);
    case DType::kBool: {
      std::vector<double> bits;
      for (double x : v) bits.push_back(x != 0);
      return Encode<uint8_t>(t, std::move(dims), bits);
    }
    case DType::kF16: return EncodeWith<ToF16>(t, std::move(dims), v);
    case DType::kBF16: return EncodeWith<ToBF16>(t, std::move(dims), v);
    default: return std::nullopt;
  }
}

Status InferExprs(InferContext& c) {
  std::vector<Expr> elems;
  for (const std::string& text : AttrOr<std::vector<std::string>>(c.node, "elems", {})) {
    GE_ASSIGN(Expr e, ParseExpr(text, c.graph.arena()));
    elems.push_back(e);
  }
  const bool scalar = c.Int("scalar", 0) != 0;
  if (scalar && elems.size() != 1) return c.Fault("a scalar needs one element");
  std::vector<Expr> dims;
  if (!scalar) dims.push_back(static_cast<int64_t>(elems.size()));
  c.Out(0, static_cast<DType>(c.Int("to", static_cast<int64_t>(DType::kI64))), std::move(dims));
  c.OutElems(0, std::move(elems));
  return Status();
}

// out[i] = elems[i]
tile::Val ExprsElement(Lowering& l, int, const Index& idx) {
  const auto& elems = l.graph.value(l.node.outputs[0]).elems;
  GE_CHECK(elems.has_value() && !elems->empty(), "ge.Exprs without elements");
  Expr e = elems->back();
  for (int64_t i = static_cast<int64_t>(elems->size()) - 2; i >= 0; --i)
    e = Select(Eq(idx[0], i), (*elems)[i], e);
  return l.b.Cast(l.b.Index(e), ComputeType(l.Out(0).dtype));
}

const OpDef& kExprs = Register({
    .name = "Exprs",
    .domain = "ge",
    .min_inputs = 0,
    .max_inputs = 0,
    .infer = InferExprs,
    .element = ExprsElement,
    .fusion = Fusion::kPointwise,
});

// After(x, token) = x, once token is there: keeps the producer of token alive as long as x is.
Status InferAfter(InferContext& c) {
  c.Out(0, c.In(0).dtype, c.In(0).dims);
  if (const auto* elems = c.Elems(0)) c.OutElems(0, *elems);
  return Status();
}

tile::Val AfterElement(Lowering& l, int, const Index& idx) { return l.Load(0, idx); }

const OpDef& kAfter = Register({
    .name = "After",
    .domain = "ge",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferAfter,
    .element = AfterElement,
    .fusion = Fusion::kPointwise,
    .samples = {"(f32[2,3], i64[1])"},
});

}  // namespace

ExpandBuilder::ExpandBuilder(Graph& g, NodeId node)
    : graph_(g),
      id_(node),
      first_node_(g.nodes.size()),
      first_value_(g.values.size()),
      first_order_(g.order.size()) {
  const Node& n = g.node(node);
  node_.op = n.op;
  node_.name = n.name;
  node_.inputs = n.inputs;
  node_.outputs = n.outputs;
  node_.attrs = n.attrs;
  origin_ = n.origin.empty() ? std::vector<std::string>{n.name} : n.origin;
}

ExpandBuilder::~ExpandBuilder() {
  if (!done_) Undo();
}

void ExpandBuilder::Undo() {
  graph_.order.resize(first_order_);
  graph_.nodes.resize(first_node_);
  graph_.values.resize(first_value_);
}

void ExpandBuilder::Fail(std::string message) {
  if (!failed_) graph_.model->expand_fault = std::move(message);
  failed_ = true;
}

DType ExpandBuilder::Type(ValueId v) const {
  return v == kNone ? DType::kNone : graph_.value(v).type.dtype;
}

std::vector<Expr> ExpandBuilder::Dims(ValueId v) const {
  constexpr size_t kEnough = 8;  // more than any formula picks by number
  if (v == kNone) return std::vector<Expr>(failed_ ? kEnough : 0, Expr(1));
  return graph_.value(v).type.dims;
}

const std::vector<Expr>* ExpandBuilder::Elems(ValueId v) const {
  return v != kNone && graph_.value(v).elems ? &*graph_.value(v).elems : nullptr;
}

const Constant* ExpandBuilder::Const(ValueId v) const { return graph_.ConstantOf(v); }

std::vector<ValueId> ExpandBuilder::Ops(std::string_view op, std::vector<ValueId> inputs,
                                        int num_outputs, Attrs attrs) {
  const std::vector<ValueId> none(num_outputs, kNone);
  if (failed_) return none;
  const size_t dot = op.rfind('.');
  const bool has_domain = dot != std::string_view::npos;
  const OpDef* def =
      FindOp(has_domain ? op.substr(0, dot) : "", op.substr(has_domain ? dot + 1 : 0));
  if (def == nullptr) {
    Fail(fmt::format("expansion needs operator {}, which is not registered", op));
    return none;
  }
  while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
  const NodeId id = graph_.AddNode(
      *def, fmt::format("{}.{}{}", node_.name, def->name, graph_.nodes.size() - first_node_),
      std::move(inputs), num_outputs);
  Node& n = graph_.node(id);
  n.attrs = std::move(attrs);
  n.origin = origin_;
  if (Status s = Infer(graph_, n); !s.ok()) {
    Fail(fmt::format("expansion into {}: {}", op, s.message()));
    return none;
  }
  return graph_.node(id).outputs;
}

ValueId ExpandBuilder::Op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
  return Ops(op, std::move(inputs), 1, std::move(attrs))[0];
}

ValueId ExpandBuilder::Constant(ge::Constant constant) {
  if (failed_) return kNone;
  return graph_.AddConstant(
      fmt::format("{}.const{}", node_.name, graph_.values.size() - first_value_),
      std::move(constant));
}

ValueId ExpandBuilder::Constant(DType dtype, std::vector<int64_t> dims,
                                const std::vector<double>& values) {
  if (failed_) return kNone;
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  GE_CHECK(count == static_cast<int64_t>(values.size()), "dims and values of a constant differ");
  std::optional<ge::Constant> c = EncodeAs(dtype, std::move(dims), values);
  if (!c) {
    Fail(fmt::format("expansion needs a constant of type {}", Name(dtype)));
    return kNone;
  }
  return Constant(*std::move(c));
}

ValueId ExpandBuilder::Ints(const std::vector<int64_t>& values) {
  return Constant(MakeConstant(DType::kI64, {static_cast<int64_t>(values.size())}, values.data()));
}

ValueId ExpandBuilder::Exprs(const std::vector<Expr>& elements) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  if (AsNumbers(elements, &numbers, &texts)) return Ints(numbers);
  return Op("ge.Exprs", {}, {{"elems", std::move(texts)}});
}

ValueId ExpandBuilder::Cast(ValueId v, DType to) {
  return Type(v) == to ? v : Op("Cast", {v}, {{"to", static_cast<int64_t>(to)}});
}

bool ExpandBuilder::Done(const std::vector<ValueId>& outputs) {
  GE_CHECK(!done_, "Done called twice");
  const NodeId begin = static_cast<NodeId>(first_node_);
  std::vector<ValueId> taken;  // new values whose producer already gives an old output
  for (size_t o = 0; o < node_.outputs.size() && !failed_; ++o) {
    const ValueId old = node_.outputs[o];
    if (old == kNone) continue;
    ValueId v = o < outputs.size() ? outputs[o] : kNone;
    if (v == kNone) {
      Fail(fmt::format("expansion gives no output {}", o));
      break;
    }
    if (graph_.value(v).producer < begin ||
        std::find(taken.begin(), taken.end(), v) != taken.end()) {
      v = Op("Identity", {v});
      if (failed_) break;
    }
    taken.push_back(v);
    Value& from = graph_.value(v);
    Value& to = graph_.value(old);
    if (to.type.dtype != DType::kNone &&
        (to.type.dtype != from.type.dtype || to.type.rank() != from.type.rank())) {
      Fail(fmt::format("expansion gives {} where output {} is {}", ToString(from.type), o,
                       ToString(to.type)));
      break;
    }
  }
  if (failed_) return false;  // the destructor undoes

  size_t next = 0;
  for (ValueId old : node_.outputs) {
    if (old == kNone) continue;
    const ValueId v = taken[next++];
    Value& from = graph_.value(v);
    Value& to = graph_.value(old);
    to.kind = from.kind;
    to.type = from.type;
    to.elems = from.elems;
    to.producer = from.producer;
    from.producer = kNone;
    for (size_t id = first_node_; id < graph_.nodes.size(); ++id) {
      std::replace(graph_.nodes[id].inputs.begin(), graph_.nodes[id].inputs.end(), v, old);
      std::replace(graph_.nodes[id].outputs.begin(), graph_.nodes[id].outputs.end(), v, old);
    }
  }
  Node& n = graph_.node(id_);
  n.dead = true;
  n.outputs.clear();
  n.inputs.clear();
  // The new nodes stand at the end of the order: move them to the place of the old one.
  auto& order = graph_.order;
  const auto added = order.begin() + static_cast<std::ptrdiff_t>(first_order_);
  auto place = added;
  while (place != order.begin() && *(place - 1) != id_) --place;
  GE_CHECK(place != order.begin(), "expanded node is not in the order");
  std::rotate(place, added, order.end());
  order.erase(place - 1);
  done_ = true;
  return true;
}

namespace {

bool TakesStrings(const Graph& g, NodeId id) {
  return std::ranges::any_of(g.node(id).inputs, [&](ValueId v) {
    return v != kNone && g.value(v).kind == ValueKind::kTensor &&
           g.value(v).type.dtype == DType::kString;
  });
}

// Whether the node was replaced. An operator that only moves elements does so to strings too.
bool Expand(Graph& g, NodeId id) {
  const OpDef* op = g.node(id).op;
  if (TakesStrings(g, id)) {
    const OpDef* strings = FindOp("ge", "StringsAt");
    if (strings != nullptr && strings->expand(g, id)) return true;
  }
  return op->expand != nullptr && op->expand(g, id);
}

Status ExpandAt(Graph& g, NodeId id, int depth) {
  const OpDef* op = g.node(id).op;
  if (op->expand == nullptr && !TakesStrings(g, id)) return Status();
  if (depth > kMaxExpandDepth)
    return Error(Code::kInternal, fmt::format("operator {} expands without end", op->name));
  g.model->expand_fault.clear();
  const size_t first = g.nodes.size();
  if (!Expand(g, id)) {
    const bool has_meaning =
        op->element != nullptr || op->lower != nullptr || !op->host.empty() || op->control;
    if (has_meaning) return Status();
    return Unsupported(g.model->expand_fault.empty()
                           ? fmt::format("this form of {} is not supported", op->name)
                           : g.model->expand_fault);
  }
  const size_t last = g.nodes.size();
  for (size_t i = first; i < last; ++i) GE_TRY(ExpandAt(g, static_cast<NodeId>(i), depth + 1));
  return Status();
}

}  // namespace

Status ExpandNode(Graph& g, NodeId n) { return ExpandAt(g, n, 0); }

}  // namespace ge
