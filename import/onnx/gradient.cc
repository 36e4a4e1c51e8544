// Gradient (ai.onnx.preview.training): the derivatives of a tensor y by tensors xs, as nodes. The
// graph is walked back from y; each operator says what it hands on to its operands. What is written
// here once per operator are its derivatives; that shapes broadcast is undone in one place.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

#include "import/onnx/build.h"
#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge::onnx {
namespace {

// Nodes of the derivative of one node. The first failure makes the rest no-ops.
class Derivative {
 public:
  Derivative(Graph& g, std::string name) : g_(g), emitter_(g), name_(std::move(name)) {}
  Status fault;

  ValueId Op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return Keep([&] { return emitter_.One(name_, op, std::move(inputs), std::move(attrs)); });
  }
  ValueId Add(ValueId a, ValueId b) { return Op("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Op("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Op("Mul", {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return Op("Div", {a, b}); }
  ValueId Neg(ValueId a) { return Op("Neg", {a}); }
  // A number in v's type.
  ValueId Number(double x, ValueId v) {
    if (!fault.ok()) return kNone;
    const auto f = static_cast<float>(x);
    const ValueId k = g_.AddConstant(name_ + ".number", MakeConstant(DType::kF32, {}, &f));
    return Op("Cast", {k}, {{"to", static_cast<int64_t>(Type(v).dtype)}});
  }
  ValueId Filled(double x, ValueId v) { return Op("Expand", {Number(x, v), Shape(v)}); }
  ValueId Sizes(const std::vector<Expr>& dims) {
    return Keep([&] { return emitter_.Sizes(name_, dims); });
  }
  ValueId Shape(ValueId v) { return fault.ok() ? Sizes(Type(v).dims) : kNone; }
  ValueId Swapped(ValueId v) {
    if (!fault.ok()) return kNone;
    std::vector<int64_t> perm;
    for (int d = 0; d < Type(v).rank(); ++d) perm.push_back(d);
    if (perm.size() >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return Op("Transpose", {v}, {{"perm", perm}});
  }
  // d summed over the dims in which v was repeated to reach d's shape.
  ValueId Unbroadcast(ValueId d, ValueId v) {
    if (!fault.ok()) return kNone;
    const auto &from = Type(d).dims, &to = Type(v).dims;
    std::vector<int64_t> axes;
    const size_t more = from.size() - std::min(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i)
      if (i < more || (to[i - more].IsConst(1) && !from[i].IsConst(1)))
        axes.push_back(static_cast<int64_t>(i));
    if (!axes.empty())
      d = Op("ReduceSum", {d, emitter_.Ints(name_, axes)}, {{"keepdims", int64_t{1}}});
    return more > 0 ? Op("Reshape", {d, Shape(v)}, {{"allowzero", int64_t{1}}}) : d;
  }
  const TensorType& Type(ValueId v) const { return g_.value(v).type; }
  const Graph& graph() const { return g_; }

 private:
  template <class F>
  ValueId Keep(F make) {
    if (!fault.ok()) return kNone;
    Result<ValueId> v = make();
    if (!v.ok()) fault = v.status();
    return v.ok() ? *v : kNone;
  }
  Graph& g_;
  Emitter emitter_;
  std::string name_;
};

using Values = std::vector<ValueId>;
// The derivatives by the operands (kNone: none), before broadcasting is undone. d: by the output.
using Rule = std::function<Values(Derivative&, const Node&, ValueId d)>;

// d times f(x, y), for an operator of one operand.
Rule Times(std::function<ValueId(Derivative&, ValueId x, ValueId y)> f) {
  return [f](Derivative& b, const Node& n, ValueId d) -> Values {
    return {b.Mul(d, f(b, n.inputs[0], n.outputs[0]))};
  };
}

Values Reshaped(Derivative& b, const Node& n, ValueId d) {
  return {b.Op("Reshape", {d, b.Shape(n.inputs[0])}, {{"allowzero", int64_t{1}}})};
}

Values OfMatMul(Derivative& b, const Node& n, ValueId d) {
  const ValueId x = n.inputs[0], y = n.inputs[1];
  if (b.Type(x).rank() < 2 || b.Type(y).rank() < 2) {
    b.fault = Unsupported("the derivative of MatMul with a vector; ranks of 2 or more are allowed");
    return {};
  }
  return {b.Op("MatMul", {d, b.Swapped(y)}), b.Op("MatMul", {b.Swapped(x), d})};
}

Values OfTranspose(Derivative& b, const Node& n, ValueId d) {
  const int rank = b.Type(n.inputs[0]).rank();
  auto perm = AttrOr<std::vector<int64_t>>(n, "perm", {});
  for (int i = 0; perm.size() < static_cast<size_t>(rank); ++i) perm.push_back(rank - 1 - i);
  std::vector<int64_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return {b.Op("Transpose", {d}, {{"perm", back}})};
}

// Of ReduceSum and, over the number of elements that one result has, ReduceMean.
Values OfReduce(Derivative& b, const Node& n, ValueId d) {
  const ValueId x = n.inputs[0];
  const TensorType& type = b.Type(x);
  std::vector<int64_t> axes;
  if (n.inputs.size() > 1 && n.inputs[1] != kNone) {
    const auto known = IntsOf(b.graph(), n, 1);
    if (!known) {
      b.fault = Unsupported("the derivative of a reduction over axes that are not known");
      return {};
    }
    axes = *known;
  }
  const bool all = axes.empty() && AttrOr<int64_t>(n, "noop_with_empty_axes", 0) == 0;
  std::vector<Expr> kept = type.dims;
  Expr count = 1;
  for (int64_t i = 0; i < type.rank(); ++i) {
    const bool reduced = all || std::find(axes.begin(), axes.end(), i) != axes.end() ||
                         std::find(axes.begin(), axes.end(), i - type.rank()) != axes.end();
    if (!reduced) continue;
    count = count * kept[static_cast<size_t>(i)];
    kept[static_cast<size_t>(i)] = 1;
  }
  if (n.op->name == "ReduceMean") {
    if (!count.IsConst()) {
      b.fault = Unsupported("the derivative of a mean over a dynamic number of elements");
      return {};
    }
    d = b.Mul(d, b.Number(1.0 / static_cast<double>(count.value()), d));
  }
  d = b.Op("Reshape", {d, b.Sizes(kept)}, {{"allowzero", int64_t{1}}});
  return {b.Op("Expand", {d, b.Shape(x)})};
}

Values OfPow(Derivative& b, const Node& n, ValueId d) {
  const ValueId x = n.inputs[0], p = n.inputs[1], y = n.outputs[0];
  const ValueId power = b.Op("Pow", {x, b.Sub(p, b.Number(1, p))});
  return {b.Mul(d, b.Mul(p, power)), b.Mul(d, b.Mul(y, b.Op("Log", {x})))};
}

const std::map<std::string, Rule, std::less<>>& Rules() {
  using B = Derivative;
  static const std::map<std::string, Rule, std::less<>> rules = {
      {"Add", [](B&, const Node&, ValueId d) -> Values { return {d, d}; }},
      {"Sub", [](B& b, const Node&, ValueId d) -> Values { return {d, b.Neg(d)}; }},
      {"Mul",
       [](B& b, const Node& n, ValueId d) -> Values {
         return {b.Mul(d, n.inputs[1]), b.Mul(d, n.inputs[0])};
       }},
      {"Div",
       [](B& b, const Node& n, ValueId d) -> Values {
         const ValueId by = b.Div(d, n.inputs[1]);
         return {by, b.Neg(b.Mul(by, n.outputs[0]))};
       }},
      {"Pow", OfPow},
      {"MatMul", OfMatMul},
      {"Transpose", OfTranspose},
      {"ReduceSum", OfReduce},
      {"ReduceMean", OfReduce},
      {"Reshape", Reshaped},
      {"Squeeze", Reshaped},
      {"Unsqueeze", Reshaped},
      {"Flatten", Reshaped},
      {"Identity", [](B&, const Node&, ValueId d) -> Values { return {d}; }},
      {"Neg", [](B& b, const Node&, ValueId d) -> Values { return {b.Neg(d)}; }},
      {"Exp", Times([](B&, ValueId, ValueId y) { return y; })},
      {"Log", Times([](B& b, ValueId x, ValueId) { return b.Op("Reciprocal", {x}); })},
      {"Sin", Times([](B& b, ValueId x, ValueId) { return b.Op("Cos", {x}); })},
      {"Cos", Times([](B& b, ValueId x, ValueId) { return b.Neg(b.Op("Sin", {x})); })},
      {"Abs", Times([](B& b, ValueId x, ValueId) { return b.Op("Sign", {x}); })},
      {"Sqrt", Times([](B& b, ValueId, ValueId y) { return b.Div(b.Number(0.5, y), y); })},
      {"Reciprocal", Times([](B& b, ValueId, ValueId y) { return b.Neg(b.Mul(y, y)); })},
      {"Tanh", Times([](B& b, ValueId, ValueId y) { return b.Sub(b.Number(1, y), b.Mul(y, y)); })},
      {"Sigmoid",
       Times([](B& b, ValueId, ValueId y) { return b.Mul(y, b.Sub(b.Number(1, y), y)); })},
      {"Relu", Times([](B& b, ValueId, ValueId y) { return b.Op("Sign", {y}); })},
  };
  return rules;
}

template <class T>
std::optional<T> Named(const NodeDraft& d, std::string_view name) {
  const auto it = d.attrs.find(name);
  const T* v = it == d.attrs.end() ? nullptr : std::get_if<T>(&it->second);
  return v ? std::optional<T>(*v) : std::nullopt;
}

}  // namespace

// Inputs: the tensors that xs and zs name, by value. y is a function of xs; zs stay as they are.
Result<std::vector<ValueId>> GraphBuilder::Gradient(const NodeDraft& draft, Scope& scope) {
  const auto y_name = Named<std::string>(draft, "y");
  const auto xs = Named<std::vector<std::string>>(draft, "xs");
  auto names = xs;
  if (!y_name || !xs) return Invalid("Gradient needs the attributes 'y' and 'xs'");
  if (const auto zs = Named<std::vector<std::string>>(draft, "zs"))
    names->insert(names->end(), zs->begin(), zs->end());
  for (size_t i = 0; i < names->size(); ++i) {
    const auto v = Lookup((*names)[i], scope);
    if (!v || i >= draft.inputs.size() || draft.inputs[i] != *v)
      return Unsupported(fmt::format(
          "input {} of Gradient is not the tensor '{}'; derivatives elsewhere than at the tensors "
          "themselves are not supported",
          i, (*names)[i]));
  }
  GE_ASSIGN(const ValueId y, Output(*y_name, scope));
  Graph& g = *scope.graph;
  Derivative b(g, draft.name);
  std::unordered_map<ValueId, ValueId> by;  // derivatives of y, so far
  by[y] = b.Filled(1, y);
  // Only what lies between xs and y matters.
  std::vector<char> depends(g.values.size(), 0);
  for (size_t i = 0; i < xs->size(); ++i) depends[draft.inputs[i]] = 1;
  const std::vector<NodeId> order = g.order;
  for (NodeId id : order)
    for (ValueId v : g.node(id).inputs)
      if (v != kNone && depends[v])
        for (ValueId o : g.node(id).outputs)
          if (o != kNone) depends[o] = 1;
  for (auto it = order.rbegin(); it != order.rend() && b.fault.ok(); ++it) {
    const Node n = {.op = g.node(*it).op,
                    .name = g.node(*it).name,
                    .inputs = g.node(*it).inputs,
                    .outputs = g.node(*it).outputs,
                    .attrs = g.node(*it).attrs};  // nodes are added meanwhile
    const bool wanted = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId o) {
      return o != kNone && depends[o] && by.contains(o);
    });
    if (!wanted) continue;
    const auto rule = n.op->domain.empty() ? Rules().find(n.op->name) : Rules().end();
    if (rule == Rules().end())
      return Unsupported(
          fmt::format("the derivative of node '{}' ({}) is not known", n.name, n.op->name));
    const Values d = rule->second(b, n, by.at(n.outputs[0]));
    for (size_t i = 0; i < d.size() && i < n.inputs.size() && b.fault.ok(); ++i) {
      const ValueId x = n.inputs[i];
      if (x == kNone || !depends[x]) continue;
      const ValueId part = b.Unbroadcast(d[i], x);
      const auto [sum, fresh] = by.emplace(x, part);
      if (!fresh) sum->second = b.Add(sum->second, part);
    }
  }
  std::vector<ValueId> out;
  for (size_t i = 0; i < xs->size(); ++i) {
    const ValueId x = draft.inputs[i];
    const auto found = by.find(x);
    out.push_back(b.Op("Identity", {found == by.end() ? b.Filled(0, x) : found->second}));
    if (b.fault.ok() && i < draft.outputs.size() && !draft.outputs[i].empty())
      g.value(out.back()).name = draft.outputs[i];
  }
  if (!b.fault.ok()) return b.fault;
  return out;
}

}  // namespace ge::onnx
