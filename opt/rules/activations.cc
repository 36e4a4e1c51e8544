// Rules that find activations in the way exporters write them.
//
//   Mul(Mul(x, Add(Erf(Div(x, sqrt(2))), 1)), 0.5)    ->  Gelu(x)
//   Mul(x, Mul(Add(Erf(Div(x, sqrt(2))), 1), 0.5))    ->  Gelu(x)
//   Mul(Mul(x, 0.5), Add(Erf(Div(x, sqrt(2))), 1))    ->  Gelu(x)
//
// each also with Mul(x, sqrt(1/2)). One polynomial takes the place of a division, a branch and an
// exponential function.
#include <cmath>

#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

bool IsAbout(const Match& m, std::string_view name, double wanted) {
  const Constant& c = m.constant(name);
  const auto values = Numbers(c);
  return values && values->size() == 1 && static_cast<int>(c.dims.size()) <= m.type("x").rank() &&
         std::fabs((*values)[0] - wanted) < 1e-6;
}

std::string GeluGuard(const Match& m, double factor) {
  if (m.type("x").dtype != DType::kF32) return "not f32";
  if (!IsAbout(m, "one", 1) || !IsAbout(m, "half", 0.5)) return "other constants";
  return IsAbout(m, "r", factor) ? "" : "erf of another multiple";
}
std::string DividesByRoot(const Match& m) { return GeluGuard(m, M_SQRT2); }
std::string TimesRoot(const Match& m) { return GeluGuard(m, M_SQRT1_2); }

ValueId MakeGelu(const Match& m, Patch& p) { return p.Add("Gelu", {m["x"]}); }

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "gelu_half_last",
     .pattern = "Mul(Mul(x, Add(Erf(Div(x, #r)), #one)), #half)",
     .guard = DividesByRoot,
     .replace = MakeGelu,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,19]) -> (%y) {
  %r = const f32[] {1.41421354}
  %o = const f32[] {1.0}
  %h = const f32[] {0.5}
  %a: f32[2,19] = Div(%x, %r) @"a"
  %b: f32[2,19] = Erf(%a) @"b"
  %c: f32[2,19] = Add(%b, %o) @"c"
  %d: f32[2,19] = Mul(%x, %c) @"d"
  %y: f32[2,19] = Mul(%d, %h) @"y"
})"}},
    {.name = "gelu_half_last_mul",
     .pattern = "Mul(Mul(x, Add(Erf(Mul(x, #r)), #one)), #half)",
     .guard = TimesRoot,
     .replace = MakeGelu,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,19]) -> (%y) {
  %r = const f32[] {0.707106769}
  %o = const f32[1] {1.0}
  %h = const f32[1,1] {0.5}
  %a: f32[2,19] = Mul(%r, %x) @"a"
  %b: f32[2,19] = Erf(%a) @"b"
  %c: f32[2,19] = Add(%o, %b) @"c"
  %d: f32[2,19] = Mul(%c, %x) @"d"
  %y: f32[2,19] = Mul(%h, %d) @"y"
})"}},
    {.name = "gelu_half_inside",
     .pattern = "Mul(x, Mul(Add(Erf(Div(x, #r)), #one), #half))",
     .guard = DividesByRoot,
     .replace = MakeGelu,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,19]) -> (%y) {
  %r = const f32[] {1.41421354}
  %o = const f32[] {1.0}
  %h = const f32[] {0.5}
  %a: f32[2,19] = Div(%x, %r) @"a"
  %b: f32[2,19] = Erf(%a) @"b"
  %c: f32[2,19] = Add(%b, %o) @"c"
  %d: f32[2,19] = Mul(%h, %c) @"d"
  %y: f32[2,19] = Mul(%d, %x) @"y"
})"}},
    {.name = "gelu_half_inside_mul",
     .pattern = "Mul(x, Mul(Add(Erf(Mul(x, #r)), #one), #half))",
     .guard = TimesRoot,
     .replace = MakeGelu,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,19]) -> (%y) {
  %r = const f32[] {0.707106769}
  %o = const f32[] {1.0}
  %h = const f32[] {0.5}
  %a: f32[2,19] = Mul(%x, %r) @"a"
  %b: f32[2,19] = Erf(%a) @"b"
  %c: f32[2,19] = Add(%b, %o) @"c"
  %d: f32[2,19] = Mul(%h, %c) @"d"
  %y: f32[2,19] = Mul(%x, %d) @"y"
})"}},
    {.name = "gelu_half_first",
     .pattern = "Mul(Mul(x, #half), Add(Erf(Div(x, #r)), #one))",
     .guard = DividesByRoot,
     .replace = MakeGelu,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,19]) -> (%y) {
  %r = const f32[] {1.41421354}
  %o = const f32[] {1.0}
  %h = const f32[] {0.5}
  %a: f32[2,19] = Div(%x, %r) @"a"
  %b: f32[2,19] = Erf(%a) @"b"
  %c: f32[2,19] = Add(%o, %b) @"c"
  %d: f32[2,19] = Mul(%x, %h) @"d"
  %y: f32[2,19] = Mul(%d, %c) @"y"
})"}},
    {.name = "gelu_half_first_mul",
     .pattern = "Mul(Mul(x, #half), Add(Erf(Mul(x, #r)), #one))",
     .guard = TimesRoot,
     .replace = MakeGelu,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,19]) -> (%y) {
  %r = const f32[] {0.707106769}
  %o = const f32[] {1.0}
  %h = const f32[] {0.5}
  %a: f32[2,19] = Mul(%x, %r) @"a"
  %b: f32[2,19] = Erf(%a) @"b"
  %c: f32[2,19] = Add(%b, %o) @"c"
  %d: f32[2,19] = Mul(%h, %x) @"d"
  %y: f32[2,19] = Mul(%c, %d) @"y"
})"}},
});

}  // namespace
}  // namespace ge
