// Rules that find normalisations in the way exporters write them.
//
//   d = Sub(x, m = ReduceMean(x));  r = Sqrt(Add(ReduceMean(Mul(d, d)), e))
//   Add(Mul(Div(d, r), g), b)               Add(Mul(Mul(d, Reciprocal(r)), g), b)
//   Add(Mul(d, Mul(Reciprocal(r), g)), b)   Add(Mul(x, s), Sub(b, Mul(m, s))), s =
//   Mul(Reciprocal(r), g)
//     ->  LayerNormalization(x, g, b)
//   Mul(Mul(x, Reciprocal(Sqrt(Add(ReduceMean(Mul(x, x)), e)))), g), also Mul(Div(x, Sqrt(..)), g)
//     ->  RMSNormalization(x, g)
//
// The last axis only, which is what one kernel computes row by row. (Pow(d, 2) has become Mul(d, d)
// by its own rule before.)
#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

// The constant's one number.
std::optional<double> Scalar(const Match& m, std::string_view name) {
  const auto values = Numbers(m.constant(name));
  if (!values || values->size() != 1) return {};
  return (*values)[0];
}

bool IsLastAxis(const Match& m, std::string_view name) {
  const std::optional<double> axis = Scalar(m, name);
  return axis && (*axis == -1 || *axis == m.type("x").rank() - 1);
}

// A vector over the last axis (leading ones do not matter).
bool IsRow(const Match& m, std::string_view name) {
  const Constant& c = m.constant(name);
  const TensorType& x = m.type("x");
  if (c.dims.empty() || static_cast<int>(c.dims.size()) > x.rank()) return false;
  return c.Elements() == c.dims.back() && x.dims.back().IsConst(c.dims.back());
}

std::string KeepsDims(const Match& m) {
  for (size_t i = 0; i < m.nodes.size(); ++i) {
    const Node& n = m.node(i);
    if (n.op->name == "ReduceMean" && AttrOr<int64_t>(n, "keepdims", 1) != 1)
      return "a mean drops its axis";
  }
  return "";
}

std::string Common(const Match& m) {
  const DType t = m.type("x").dtype;
  if (t != DType::kF32 && t != DType::kF64) return "not f32 or f64";
  const std::optional<double> e = Scalar(m, "e");
  if (!e || !(*e > 0) || *e > 1) return "epsilon is odd";
  if (!IsRow(m, "g")) return "the scale is not a vector over the last axis";
  return KeepsDims(m);
}

std::string LayerNormGuard(const Match& m) {
  if (!IsLastAxis(m, "a1") || !IsLastAxis(m, "a2")) return "the means are not over the last axis";
  if (!IsRow(m, "b")) return "the bias is not a vector over the last axis";
  return Common(m);
}

// x less its own mean is the business of LayerNormalization, which has a bias as well.
bool IsCentred(const Match& m) {
  const auto maker = [&](ValueId value, std::string_view op) -> const Node* {
    const NodeId id = m.g.value(value).producer;
    return id != kNone && m.g.node(id).op->name == op ? &m.g.node(id) : nullptr;
  };
  const Node* sub = maker(m["x"], "Sub");
  const Node* mean = sub == nullptr ? nullptr : maker(sub->inputs[1], "ReduceMean");
  return mean != nullptr && mean->inputs[0] == sub->inputs[0];
}

std::string RmsNormGuard(const Match& m) {
  if (IsCentred(m)) return "its input is centred: a part of LayerNormalization";
  return IsLastAxis(m, "a") ? Common(m) : "the mean is not over the last axis";
}

ValueId Row(const Match& m, Patch& p, std::string_view name) {
  const Constant& c = m.constant(name);
  if (c.dims.size() == 1) return m[name];
  Constant flat = c;
  flat.dims = {c.Elements()};
  return p.Const(std::move(flat));
}

ValueId LayerNorm(const Match& m, Patch& p) {
  return p.Add("LayerNormalization", {m["x"], Row(m, p, "g"), Row(m, p, "b")},
               {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(*Scalar(m, "e"))}});
}

ValueId RmsNorm(const Match& m, Patch& p) {
  return p.Add("RMSNormalization", {m["x"], Row(m, p, "g")},
               {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(*Scalar(m, "e"))}});
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "layer_norm",
     .pattern = "Add(Mul(Div(d=Sub(x, ReduceMean(x, #a1)), "
                "Sqrt(Add(ReduceMean(Mul(d, d), #a2), #e))), #g), #b)",
     .guard = LayerNormGuard,
     .replace = LayerNorm,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,3,8], %c_g: f32[8], %c_b: f32[8]) -> (%y) {
  %a = const i64[1] {-1}
  %e = const f32[] {0.25}
  %m: f32[2,3,1] = ReduceMean(%x, %a) @"m"
  %d: f32[2,3,8] = Sub(%x, %m) @"d"
  %s: f32[2,3,8] = Mul(%d, %d) @"s"
  %v: f32[2,3,1] = ReduceMean(%s, %a) @"v"
  %w: f32[2,3,1] = Add(%v, %e) @"w"
  %r: f32[2,3,1] = Sqrt(%w) @"r"
  %n: f32[2,3,8] = Div(%d, %r) @"n"
  %t: f32[2,3,8] = Mul(%c_g, %n) @"t"
  %y: f32[2,3,8] = Add(%t, %c_b) @"y"
})"}},
    {.name = "layer_norm_reciprocal",
     .pattern = "Add(Mul(Mul(d=Sub(x, ReduceMean(x, #a1)), "
                "Reciprocal(Sqrt(Add(ReduceMean(Mul(d, d), #a2), #e)))), #g), #b)",
     .guard = LayerNormGuard,
     .replace = LayerNorm,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,3,8], %c_g: f32[8], %c_b: f32[8]) -> (%y) {
  %a = const i64[1] {-1}
  %e = const f32[] {0.25}
  %m: f32[2,3,1] = ReduceMean(%x, %a) @"m"
  %d: f32[2,3,8] = Sub(%x, %m) @"d"
  %s: f32[2,3,8] = Mul(%d, %d) @"s"
  %v: f32[2,3,1] = ReduceMean(%s, %a) @"v"
  %w: f32[2,3,1] = Add(%v, %e) @"w"
  %r: f32[2,3,1] = Sqrt(%w) @"r"
  %i: f32[2,3,1] = Reciprocal(%r) @"i"
  %n: f32[2,3,8] = Mul(%d, %i) @"n"
  %t: f32[2,3,8] = Mul(%c_g, %n) @"t"
  %y: f32[2,3,8] = Add(%t, %c_b) @"y"
})"}},
    {.name = "layer_norm_scaled",
     .pattern = "Add(Mul(d=Sub(x, ReduceMean(x, #a1)), "
                "Mul(Reciprocal(Sqrt(Add(ReduceMean(Mul(d, d), #a2), #e))), #g)), #b)",
     .guard = LayerNormGuard,
     .replace = LayerNorm,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,3,8], %c_g: f32[8], %c_b: f32[8]) -> (%y) {
  %a = const i64[1] {-1}
  %e = const f32[] {0.25}
  %m: f32[2,3,1] = ReduceMean(%x, %a) @"m"
  %d: f32[2,3,8] = Sub(%x, %m) @"d"
  %s: f32[2,3,8] = Mul(%d, %d) @"s"
  %v: f32[2,3,1] = ReduceMean(%s, %a) @"v"
  %w: f32[2,3,1] = Add(%v, %e) @"w"
  %r: f32[2,3,1] = Sqrt(%w) @"r"
  %i: f32[2,3,1] = Reciprocal(%r) @"i"
  %n: f32[2,3,8] = Mul(%i, %c_g) @"n"
  %t: f32[2,3,8] = Mul(%n, %d) @"t"
  %y: f32[2,3,8] = Add(%t, %c_b) @"y"
})"}},
    {.name = "layer_norm_folded",
     .pattern =
         "Add(Mul(x, s=Mul(Reciprocal(Sqrt(Add(ReduceMean(Mul(d=Sub(x, m=ReduceMean(x, #a1)), d), "
         "#a2), #e))), #g)), Sub(#b, Mul(m, s)))",
     .guard = LayerNormGuard,
     .replace = LayerNorm,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,3,8], %c_g: f32[8], %c_b: f32[8]) -> (%y) {
  %a = const i64[1] {-1}
  %e = const f32[] {0.25}
  %m: f32[2,3,1] = ReduceMean(%x, %a) @"m"
  %d: f32[2,3,8] = Sub(%x, %m) @"d"
  %s: f32[2,3,8] = Mul(%d, %d) @"s"
  %v: f32[2,3,1] = ReduceMean(%s, %a) @"v"
  %w: f32[2,3,1] = Add(%v, %e) @"w"
  %r: f32[2,3,1] = Sqrt(%w) @"r"
  %i: f32[2,3,1] = Reciprocal(%r) @"i"
  %n: f32[2,3,8] = Mul(%i, %c_g) @"n"
  %t: f32[2,3,8] = Mul(%x, %n) @"t"
  %o: f32[2,3,8] = Mul(%n, %m) @"o"
  %p: f32[2,3,8] = Sub(%c_b, %o) @"p"
  %y: f32[2,3,8] = Add(%t, %p) @"y"
})"}},
    {.name = "rms_norm",
     .pattern = "Mul(Mul(x, Reciprocal(Sqrt(Add(ReduceMean(Mul(x, x), #a), #e)))), #g)",
     .guard = RmsNormGuard,
     .replace = RmsNorm,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[4,8], %c_g: f32[1,8]) -> (%y) {
  %a = const i64[1] {1}
  %e = const f32[] {0.25}
  %s: f32[4,8] = Mul(%x, %x) @"s"
  %v: f32[4,1] = ReduceMean(%s, %a) @"v"
  %w: f32[4,1] = Add(%v, %e) @"w"
  %r: f32[4,1] = Sqrt(%w) @"r"
  %i: f32[4,1] = Reciprocal(%r) @"i"
  %n: f32[4,8] = Mul(%x, %i) @"n"
  %y: f32[4,8] = Mul(%c_g, %n) @"y"
})"}},
    {.name = "rms_norm_over",
     .pattern = "Mul(Div(x, Sqrt(Add(ReduceMean(Mul(x, x), #a), #e))), #g)",
     .guard = RmsNormGuard,
     .replace = RmsNorm,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[4,8], %c_g: f32[1,8]) -> (%y) {
  %a = const i64[1] {1}
  %e = const f32[] {0.25}
  %s: f32[4,8] = Mul(%x, %x) @"s"
  %v: f32[4,1] = ReduceMean(%s, %a) @"v"
  %w: f32[4,1] = Add(%v, %e) @"w"
  %r: f32[4,1] = Sqrt(%w) @"r"
  %n: f32[4,8] = Div(%x, %r) @"n"
  %y: f32[4,8] = Mul(%c_g, %n) @"y"
})"}},
});

}  // namespace
}  // namespace ge
