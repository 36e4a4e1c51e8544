// Rules that find attention in the way exporters write it.
//
//   MatMul(Softmax(s), v)  ->  ge.Attend(q, k, v, m)      with scores s one of
//     MatMul(q, k)          Mul(MatMul(q, k), c)          Div(MatMul(q, k), c)
//     Add(one of these, m)
//
// One kernel then keeps the scores of some rows in cache (lower/cube_attend.cc). A scale on q or k,
// and transposed heads, are the business of region growth.
#include <fmt/format.h>

#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

constexpr int64_t kFewRows = 8;             // then the keys would be packed for little
constexpr int64_t kMostPacked = 512 << 10;  // elements of a head's keys
constexpr int64_t kLanes = 16;              // columns of v in whole vectors of any chip

std::vector<Expr> Front(const std::vector<Expr>& dims) { return {dims.begin(), dims.end() - 2}; }

std::optional<double> Factor(const Match& m) {
  if (!m.values.contains("c")) return 1.0;
  const auto values = Numbers(m.constant("c"));
  if (!values || values->size() != 1) return {};
  return (*values)[0];
}

std::string IsAttention(const Match& m) {
  const std::vector<Expr>&q = m.type("q").dims, &k = m.type("k").dims, &v = m.type("v").dims;
  if (m.type("q").dtype != DType::kF32) return "not f32";
  if (q.size() < 3 || k.size() != q.size() || v.size() != q.size()) return "no heads";
  if (Front(q) != Front(k) || Front(q) != Front(v)) return "heads of q, k and v differ";
  if (!v.back().IsConst() || v.back().value() % kLanes != 0 || v.back().IsConst(0))
    return fmt::format("the columns of v are no multiple of {}", kLanes);
  if (HintValue(q[q.size() - 2]) < kFewRows) return "few rows";
  if (HintValue(k.back() * q.back()) > kMostPacked) return "too many keys for a core's cache";
  if (!Factor(m)) return "the scale is not one number";
  std::vector<Expr> scores = q;
  scores.back() = k.back();
  for (size_t i = 0; i < m.nodes.size(); ++i) {
    const Node& n = m.node(i);
    const TensorType& in = m.g.value(n.inputs[0]).type;
    if (n.op->name != "Softmax") continue;
    const int64_t axis = AttrOr<int64_t>(n, "axis", -1);
    if (axis != -1 && axis != in.rank() - 1) return "the softmax is not over the keys";
    if (in.dims != scores) return "the mask is larger than the scores";
  }
  return "";
}

ValueId Attend(const Match& m, Patch& p, double scale) {
  std::vector<ValueId> inputs = {m["q"], m["k"], m["v"]};
  if (m.values.contains("m")) inputs.push_back(m["m"]);
  return p.Add("ge.Attend", inputs, {{"scale", static_cast<float>(scale)}});
}
ValueId Multiplied(const Match& m, Patch& p) { return Attend(m, p, *Factor(m)); }
ValueId Divided(const Match& m, Patch& p) {
  return *Factor(m) == 0 ? kNone : Attend(m, p, 1 / *Factor(m));
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "attention",
     .pattern = "MatMul(Softmax(MatMul(q, k)), v)",
     .guard = IsAttention,
     .replace = Multiplied,
     .exact = false,
     .samples = {R"(graph "g" (%q: f32[2,9,4], %k: f32[2,4,7], %v: f32[2,7,16]) -> (%y) {
  %s: f32[2,9,7] = MatMul(%q, %k) @"s"
  %w: f32[2,9,7] = Softmax(%s) {axis=-1} @"w"
  %y: f32[2,9,16] = MatMul(%w, %v) @"y"
})"}},
    {.name = "attention_masked",
     .pattern = "MatMul(Softmax(Add(MatMul(q, k), m)), v)",
     .guard = IsAttention,
     .replace = Multiplied,
     .exact = false,
     .samples =
         {R"(graph "g" (%q: f32[2,9,4], %k: f32[2,4,7], %v: f32[2,7,16], %m: f32[2,1,7]) -> (%y) {
  %s: f32[2,9,7] = MatMul(%q, %k) @"s"
  %t: f32[2,9,7] = Add(%m, %s) @"t"
  %w: f32[2,9,7] = Softmax(%t) {axis=2} @"w"
  %y: f32[2,9,16] = MatMul(%w, %v) @"y"
})"}},
    {.name = "attention_times",
     .pattern = "MatMul(Softmax(Mul(MatMul(q, k), #c)), v)",
     .guard = IsAttention,
     .replace = Multiplied,
     .exact = false,
     .samples = {R"(graph "g" (%q: f32[1,2,9,4], %k: f32[1,2,4,9], %v: f32[1,2,9,32]) -> (%y) {
  %c = const f32[] {0.5}
  %s: f32[1,2,9,9] = MatMul(%q, %k) @"s"
  %t: f32[1,2,9,9] = Mul(%s, %c) @"t"
  %w: f32[1,2,9,9] = Softmax(%t) {axis=-1} @"w"
  %y: f32[1,2,9,32] = MatMul(%w, %v) @"y"
})"}},
    {.name = "attention_over",
     .pattern = "MatMul(Softmax(Div(MatMul(q, k), #c)), v)",
     .guard = IsAttention,
     .replace = Divided,
     .exact = false,
     .samples = {R"(graph "g" (%q: f32[1,2,9,4], %k: f32[1,2,4,9], %v: f32[1,2,9,32]) -> (%y) {
  %c = const f32[] {2.0}
  %s: f32[1,2,9,9] = MatMul(%q, %k) @"s"
  %t: f32[1,2,9,9] = Div(%s, %c) @"t"
  %w: f32[1,2,9,9] = Softmax(%t) {axis=-1} @"w"
  %y: f32[1,2,9,32] = MatMul(%w, %v) @"y"
})"}},
    {.name = "attention_times_masked",
     .pattern = "MatMul(Softmax(Add(Mul(MatMul(q, k), #c), m)), v)",
     .guard = IsAttention,
     .replace = Multiplied,
     .exact = false,
     .samples =
         {R"(graph "g" (%q: f32[3,9,4], %k: f32[3,4,9], %v: f32[3,9,16], %m: f32[9,9]) -> (%y) {
  %c = const f32[1] {0.5}
  %s: f32[3,9,9] = MatMul(%q, %k) @"s"
  %t: f32[3,9,9] = Mul(%c, %s) @"t"
  %u: f32[3,9,9] = Add(%t, %m) @"u"
  %w: f32[3,9,9] = Softmax(%u) {axis=-1} @"w"
  %y: f32[3,9,16] = MatMul(%w, %v) @"y"
})"}},
    {.name = "attention_over_masked",
     .pattern = "MatMul(Softmax(Add(Div(MatMul(q, k), #c), m)), v)",
     .guard = IsAttention,
     .replace = Divided,
     .exact = false,
     .samples =
         {R"(graph "g" (%q: f32[3,9,4], %k: f32[3,4,9], %v: f32[3,9,16], %m: f32[9,9]) -> (%y) {
  %c = const f32[] {2.0}
  %s: f32[3,9,9] = MatMul(%q, %k) @"s"
  %t: f32[3,9,9] = Div(%s, %c) @"t"
  %u: f32[3,9,9] = Add(%t, %m) @"u"
  %w: f32[3,9,9] = Softmax(%u) {axis=-1} @"w"
  %y: f32[3,9,16] = MatMul(%w, %v) @"y"
})"}},
});

}  // namespace
}  // namespace ge
