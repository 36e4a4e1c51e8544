// Rules that find activations in the way exporters write them.
//
//   half of x times (1 + erf(x / sqrt(2)))            ->  Gelu(x)
//   half of x times (1 + tanh(u))                     ->  x * Sigmoid(2 u)     (Gelu by tanh)
//     the half last, inside or first; the root as divisor or factor
//   Clip(x + 3, 0, 6), over 6 or times 1/6            ->  HardSigmoid(x)
//   x * one of these                                  ->  HardSwish(x)
//
// One polynomial takes the place of a division, a branch and an exponential function; a sigmoid is
// cheaper than a tanh; and a constant divisor becomes a factor. SiLU, x * Sigmoid(x), needs no
// rule: its two nodes are one kernel's instructions anyway.
#include <cmath>

#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

// A graph of x: constants as "name number", nodes as "name Op(%a, %b) {attributes}"; the last is y.
std::string_view Sample(const SampleLines& constants, const SampleLines& nodes) {
  SampleLines lines;
  for (const auto& [name, number] : constants)
    lines.emplace_back(name, "const f32[] {" + number + "}");
  for (const auto& [name, node] : nodes) lines.emplace_back(name + ": f32[2,19]", node);
  return SampleOf("%x: f32[2,19]", lines);
}

bool IsAbout(const Match& m, std::string_view name, double wanted) {
  const std::optional<double> number = OneNumber(m.g, m[name]);
  return number && m.type(name).rank() <= m.type("x").rank() && std::fabs(*number - wanted) < 1e-6;
}

std::string IsF32(const Match& m) { return m.type("x").dtype == DType::kF32 ? "" : "not f32"; }

// --- Gelu

std::string HalfOfOnePlus(const Match& m) {
  if (m.type("x").dtype != DType::kF32) return "not f32";
  return IsAbout(m, "one", 1) && IsAbout(m, "half", 0.5) ? "" : "other constants";
}
std::string DividesByRoot(const Match& m) {
  if (std::string why = HalfOfOnePlus(m); !why.empty()) return why;
  return IsAbout(m, "r", M_SQRT2) ? "" : "erf of another multiple";
}
std::string TimesRoot(const Match& m) {
  if (std::string why = HalfOfOnePlus(m); !why.empty()) return why;
  return IsAbout(m, "r", M_SQRT1_2) ? "" : "erf of another multiple";
}

ValueId MakeGelu(const Match& m, Patch& p) { return p.Add("Gelu", {m["x"]}); }

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u))
ValueId BySigmoid(const Match& m, Patch& p) {
  const ValueId two = p.Const(FromNumbers(DType::kF32, {}, {2.0}));
  return p.Add("Mul", {m["x"], p.Add("Sigmoid", {p.Add("Mul", {m["u"], two})})});
}

// `t` is the erf or tanh; `before` are the nodes that make it from x.
std::vector<Rule> GeluRules(const std::string& suffix, const std::string& t,
                            std::string (*guard)(const Match&),
                            ValueId (*replace)(const Match&, Patch&), const std::string& root,
                            const SampleLines& before) {
  const std::string sum = "Add(" + t + ", #one)";
  auto rule = [&](const std::string& name, const std::string& pattern, const SampleLines& after) {
    SampleLines nodes = before;
    nodes.insert(nodes.end(), after.begin(), after.end());
    return Rule{.name = Kept(name + suffix),
                .pattern = Kept(pattern),
                .guard = guard,
                .replace = replace,
                .exact = false,
                .samples = {Sample({{"r", root}, {"o", "1.0"}, {"h", "0.5"}}, nodes)}};
  };
  return {rule("gelu_half_last", "Mul(Mul(x, " + sum + "), #half)",
               {{"c", "Add(%b, %o)"}, {"d", "Mul(%x, %c)"}, {"y", "Mul(%d, %h)"}}),
          rule("gelu_half_inside", "Mul(x, Mul(" + sum + ", #half))",
               {{"c", "Add(%b, %o)"}, {"d", "Mul(%h, %c)"}, {"y", "Mul(%d, %x)"}}),
          rule("gelu_half_first", "Mul(Mul(x, #half), " + sum + ")",
               {{"c", "Add(%o, %b)"}, {"d", "Mul(%x, %h)"}, {"y", "Mul(%d, %c)"}})};
}

[[maybe_unused]] const bool kGelu =
    RegisterRules(GeluRules("", "Erf(Div(x, #r))", DividesByRoot, MakeGelu, "1.41421354",
                            {{"a", "Div(%x, %r)"}, {"b", "Erf(%a)"}}));
[[maybe_unused]] const bool kGeluTimes =
    RegisterRules(GeluRules("_mul", "Erf(Mul(x, #r))", TimesRoot, MakeGelu, "0.707106769",
                            {{"a", "Mul(%r, %x)"}, {"b", "Erf(%a)"}}));
[[maybe_unused]] const bool kGeluByTanh =
    RegisterRules(GeluRules("_tanh", "Tanh(u)", HalfOfOnePlus, BySigmoid, "0.0447149985",
                            {{"s", "Mul(%x, %x)"},
                             {"q", "Mul(%s, %x)"},
                             {"k", "Mul(%q, %r)"},
                             {"a", "Add(%x, %k)"},
                             {"b", "Tanh(%a)"}}));

// --- HardSigmoid, HardSwish

std::string IsSixth(const Match& m, double scale) {
  if (m.type("x").dtype != DType::kF32) return "not f32";
  const bool clip = IsAbout(m, "three", 3) && IsAbout(m, "lo", 0) && IsAbout(m, "hi", 6);
  return clip && IsAbout(m, "d", scale) ? "" : "other constants";
}
std::string OverSix(const Match& m) { return IsSixth(m, 6); }
std::string TimesSixth(const Match& m) { return IsSixth(m, 1.0 / 6); }

std::string SlopeOfSixth(const Match& m) {
  for (size_t i = 0; i < m.nodes.size(); ++i) {
    const Node& n = m.node(i);
    if (n.op->name != "HardSigmoid") continue;
    if (std::fabs(AttrOr<float>(n, "alpha", 0.2F) - 1.0 / 6) > 1e-6 ||
        std::fabs(AttrOr<float>(n, "beta", 0.5F) - 0.5) > 1e-6)
      return "another slope";
  }
  return IsF32(m);
}

ValueId MakeHardSigmoid(const Match& m, Patch& p) {
  return p.Add("HardSigmoid", {m["x"]}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
}
ValueId MakeHardSwish(const Match& m, Patch& p) { return p.Add("HardSwish", {m["x"]}); }

std::string_view ClipSample(const std::string& scale, const SampleLines& after) {
  SampleLines nodes = {{"a", "Add(%x, %t)"}, {"b", "Clip(%a, %l, %h)"}};
  nodes.insert(nodes.end(), after.begin(), after.end());
  return Sample({{"t", "3.0"}, {"l", "0.0"}, {"h", "6.0"}, {"d", scale}}, nodes);
}

[[maybe_unused]] const bool kOthers = RegisterRules({
    {.name = "hard_sigmoid_over",
     .pattern = "Div(Clip(Add(x, #three), #lo, #hi), #d)",
     .guard = OverSix,
     .replace = MakeHardSigmoid,
     .exact = false,
     .samples = {ClipSample("6.0", {{"y", "Div(%b, %d)"}})}},
    {.name = "hard_sigmoid_times",
     .pattern = "Mul(Clip(Add(x, #three), #lo, #hi), #d)",
     .guard = TimesSixth,
     .replace = MakeHardSigmoid,
     .exact = false,
     .samples = {ClipSample("0.166666672", {{"y", "Mul(%b, %d)"}})}},
    {.name = "hard_swish_over",
     .pattern = "Div(Mul(x, Clip(Add(x, #three), #lo, #hi)), #d)",
     .guard = OverSix,
     .replace = MakeHardSwish,
     .exact = false,
     .samples = {ClipSample("6.0", {{"c", "Mul(%x, %b)"}, {"y", "Div(%c, %d)"}})}},
    {.name = "hard_swish_times",
     .pattern = "Mul(Mul(x, Clip(Add(x, #three), #lo, #hi)), #d)",
     .guard = TimesSixth,
     .replace = MakeHardSwish,
     .exact = false,
     .samples = {ClipSample("0.166666672", {{"c", "Mul(%b, %x)"}, {"y", "Mul(%c, %d)"}})}},
    {.name = "hard_swish",
     .pattern = "Mul(x, HardSigmoid(x))",
     .guard = SlopeOfSixth,
     .replace = MakeHardSwish,
     .exact = false,
     .samples = {Sample(
         {}, {{"s", "HardSigmoid(%x) {alpha=0.16666667, beta=0.5}"}, {"y", "Mul(%x, %s)"}})}},
});

}  // namespace
}  // namespace ge
