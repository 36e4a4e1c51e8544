// Rules that find normalisations in the way exporters write them.
//
//   Mul(Mul(x, Reciprocal(r)), g)   Mul(Div(x, r), g)   Mul(x, Mul(Reciprocal(r), g))
//   with r = Sqrt(Add(ReduceMean(Mul(x, x)), e))            ->  RMSNormalization(x, g)
//   RMSNormalization(Sub(x, ReduceMean(x)), g)              ->  LayerNormalization(x, g)
//   Add(LayerNormalization(x, g), b)                        ->  LayerNormalization(x, g, b)
//   Add(Mul(x, s), Sub(b, Mul(m, s))), s = Mul(Reciprocal(r of x - m), g), m = ReduceMean(x)
//                                                           ->  LayerNormalization(x, g, b)
//
// The last axis only, which is what one kernel computes row by row. (Pow(d, 2) has become Mul(d, d)
// by its own rule before.)
#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

bool IsLastAxis(const Match& m, std::string_view name) {
  const std::optional<double> axis = OneNumber(m.g, m[name]);
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
  const std::optional<double> e = OneNumber(m.g, m["e"]);
  if (!e || !(*e > 0) || *e > 1) return "epsilon is odd";
  if (!IsRow(m, "g")) return "the scale is not a vector over the last axis";
  return KeepsDims(m);
}

std::string IsRmsNorm(const Match& m) {
  return IsLastAxis(m, "a") ? Common(m) : "the mean is not over the last axis";
}

std::string IsFolded(const Match& m) {
  if (!IsLastAxis(m, "a1") || !IsLastAxis(m, "a2")) return "the means are not over the last axis";
  if (!IsRow(m, "b")) return "the bias is not a vector over the last axis";
  return Common(m);
}

// The first node of the match of this operator.
const Node& Matched(const Match& m, std::string_view op) {
  size_t i = 0;
  while (m.node(i).op->name != op) ++i;
  return m.node(i);
}

bool NormalisesLastAxis(const Match& m, const Node& norm) {
  const int64_t axis = AttrOr<int64_t>(norm, "axis", -1);
  return axis == -1 || axis == m.type("x").rank() - 1;
}

std::string IsOfCentred(const Match& m) {
  if (!IsLastAxis(m, "a") || !NormalisesLastAxis(m, Matched(m, "RMSNormalization")))
    return "the means are not over the last axis";
  return IsRow(m, "g") ? KeepsDims(m) : "the scale is not a vector over the last axis";
}

std::string IsBiased(const Match& m) {
  if (!NormalisesLastAxis(m, Matched(m, "LayerNormalization"))) return "not over the last axis";
  return IsRow(m, "b") ? "" : "the bias is not a vector over the last axis";
}

ValueId Row(const Match& m, Patch& p, std::string_view name) {
  const Constant& c = m.constant(name);
  if (c.dims.size() == 1) return m[name];
  Constant flat = c;
  flat.dims = {c.Elements()};
  return p.Const(std::move(flat));
}

ValueId RmsNorm(const Match& m, Patch& p) {
  return p.Add("RMSNormalization", {m["x"], Row(m, p, "g")},
               {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(*OneNumber(m.g, m["e"]))}});
}

ValueId LayerNorm(const Match& m, Patch& p, float epsilon) {
  std::vector<ValueId> inputs = {m["x"], Row(m, p, "g")};
  if (m.values.contains("b")) inputs.push_back(Row(m, p, "b"));
  return p.Add("LayerNormalization", inputs, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}
ValueId OfCentred(const Match& m, Patch& p) {
  return LayerNorm(m, p, AttrOr<float>(Matched(m, "RMSNormalization"), "epsilon", 1e-5F));
}
ValueId Biased(const Match& m, Patch& p) {
  return LayerNorm(m, p, AttrOr<float>(Matched(m, "LayerNormalization"), "epsilon", 1e-5F));
}
ValueId Unfolded(const Match& m, Patch& p) {
  return LayerNorm(m, p, static_cast<float>(*OneNumber(m.g, m["e"])));
}

// --- Samples: nodes of f32[2,3,8], or f32[2,3,1] if their names are r... or m...

std::string_view Sample(const SampleLines& nodes) {
  SampleLines lines = {{"a", "const i64[1] {-1}"}, {"e", "const f32[] {0.25}"}};
  for (const auto& [name, node] : nodes) {
    const bool one = name[0] == 'r' || name[0] == 'm';
    lines.emplace_back(name + (one ? ": f32[2,3,1]" : ": f32[2,3,8]"), node);
  }
  return SampleOf("%x: f32[2,3,8], %v: f32[8], %c_g: f32[8], %c_b: f32[1,8]", lines);
}

// r is the root of the mean of squares of `x`; then `nodes`.
SampleLines OverRoot(const std::string& x, const SampleLines& nodes) {
  SampleLines lines = {{"s", "Mul(%" + x + ", %" + x + ")"},
                       {"r1", "ReduceMean(%s, %a)"},
                       {"r2", "Add(%r1, %e)"},
                       {"r", "Sqrt(%r2)"}};
  lines.insert(lines.end(), nodes.begin(), nodes.end());
  return lines;
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "rms_norm",
     .pattern = "[Mul(Mul(x, Reciprocal(Sqrt(Add(ReduceMean(Mul(x, x), #a), #e)))), #g) | "
                "Mul(Div(x, Sqrt(Add(ReduceMean(Mul(x, x), #a), #e))), #g) | "
                "Mul(x, Mul(Reciprocal(Sqrt(Add(ReduceMean(Mul(x, x), #a), #e))), #g))]",
     .guard = IsRmsNorm,
     .replace = RmsNorm,
     .exact = false,
     .samples =
         {Sample(OverRoot(
              "x", {{"ri", "Reciprocal(%r)"}, {"n", "Mul(%x, %ri)"}, {"y", "Mul(%c_g, %n)"}})),
          Sample(OverRoot("x", {{"n", "Div(%x, %r)"}, {"y", "Mul(%n, %c_g)"}})),
          Sample(OverRoot(
              "x", {{"ri", "Reciprocal(%r)"}, {"n", "Mul(%ri, %c_g)"}, {"y", "Mul(%n, %x)"}}))},
     .near_misses = {Sample(OverRoot("x", {{"n", "Div(%x, %r)"}, {"y", "Mul(%n, %v)"}}))}},
    {.name = "layer_norm",
     .pattern = "RMSNormalization(Sub(x, ReduceMean(x, #a)), #g)",
     .guard = IsOfCentred,
     .replace = OfCentred,
     .exact = false,
     .samples = {Sample({{"m", "ReduceMean(%x, %a)"},
                         {"d", "Sub(%x, %m)"},
                         {"y", "RMSNormalization(%d, %c_g) {axis=-1, epsilon=0.25}"}})},
     .near_misses = {Sample({{"m", "ReduceMean(%x, %a)"},
                             {"d", "Sub(%x, %m)"},
                             {"y", "RMSNormalization(%d, %v) {axis=-1, epsilon=0.25}"}})}},
    {.name = "layer_norm_bias",
     .pattern = "Add(LayerNormalization(x, #g), #b)",
     .guard = IsBiased,
     .replace = Biased,
     .exact = false,
     .samples = {Sample(
         {{"n", "LayerNormalization(%x, %c_g) {axis=-1, epsilon=0.25}"}, {"y", "Add(%c_b, %n)"}})},
     .near_misses = {Sample(
         {{"n", "LayerNormalization(%x, %c_g) {axis=-1, epsilon=0.25}"}, {"y", "Add(%n, %v)"}})}},
    {.name = "layer_norm_folded",
     .pattern =
         "Add(Mul(x, s=Mul(Reciprocal(Sqrt(Add(ReduceMean(Mul(d=Sub(x, m=ReduceMean(x, #a1)), d), "
         "#a2), #e))), #g)), Sub(#b, Mul(m, s)))",
     .guard = IsFolded,
     .replace = Unfolded,
     .exact = false,
     .samples = {[] {
       SampleLines lines = {{"m", "ReduceMean(%x, %a)"}, {"d", "Sub(%x, %m)"}};
       const SampleLines rest = OverRoot("d", {{"ri", "Reciprocal(%r)"},
                                               {"n", "Mul(%ri, %c_g)"},
                                               {"t", "Mul(%x, %n)"},
                                               {"o", "Mul(%n, %m)"},
                                               {"p", "Sub(%c_b, %o)"},
                                               {"y", "Add(%t, %p)"}});
       lines.insert(lines.end(), rest.begin(), rest.end());
       return Sample(lines);
     }()}},
});

}  // namespace
}  // namespace ge
