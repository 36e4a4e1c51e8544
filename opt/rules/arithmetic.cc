// Rules of arithmetic with constants.
//
//   Mul(x, 1), Div(x, 1), Pow(x, 1), Sub(x, 0)   ->  x
//   Add(x, 0)                                    ->  x   (integers, or -0.0: x + 0.0 changes -0.0)
//   Div(x, 4)                                    ->  Mul(x, 0.25)      (powers of two: exact)
//   Mul(Mul(x, a), b)                            ->  Mul(x, a * b)
//   Div(1, x)                                    ->  Reciprocal(x)
//   Pow(x, 2), Pow(x, 3)                         ->  Mul(x, x), Mul(Mul(x, x), x)
//   Pow(x, 0.5)                                  ->  Sqrt(x)           (differs at -0.0 and -inf)
//   Neg(Neg(x)), Not(Not(x))                     ->  x
#include <cmath>

#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

ValueId TakeX(const Match& m, Patch&) { return m["x"]; }

// x has the type of the result: the constant does not broadcast it.
std::string Neutral(const Match& m, double c) {
  if (!AllAre(m.constant("c"), c)) return "the constant is not neutral";
  const TensorType &x = m.type("x"), &y = m.type("");
  if (x.rank() != y.rank()) return "the constant broadcasts x";
  for (int d = 0; d < x.rank(); ++d) {
    if (!ProvablyEq(x.dims[d], y.dims[d])) return "the constant may broadcast x";
  }
  return "";
}

std::string IsOne(const Match& m) { return Neutral(m, 1.0); }
std::string IsZero(const Match& m) { return Neutral(m, 0.0); }
std::string IsAddedZero(const Match& m) {
  return Neutral(m, IsFloat(m.type("x").dtype) ? -0.0 : 0.0);
}

bool IsPowerOfTwo(double v) {
  int exponent;
  const double m = std::frexp(v, &exponent);
  // Far from where the reciprocal would overflow or lose bits.
  return std::fabs(m) == 0.5 && exponent > -100 && exponent < 100;
}

std::string PowersOfTwo(const Match& m) {
  const DType t = m.type("x").dtype;
  if (t != DType::kF32 && t != DType::kF64) return "not f32 or f64";
  const auto values = Numbers(m.constant("c"));
  if (!values || values->empty()) return "no numbers";
  for (double v : *values) {
    if (!IsPowerOfTwo(v)) return "the divisor is not a power of two";
  }
  return "";
}

ValueId MulByReciprocal(const Match& m, Patch& p) {
  const Constant& c = m.constant("c");
  std::vector<double> values = *Numbers(c);
  for (double& v : values) v = 1 / v;
  return p.Add("Mul", {m["x"], p.Const(FromNumbers(c.dtype, c.dims, values))});
}

// Elementwise f of two constants under numpy broadcasting, if that is small.
std::optional<Constant> Broadcast(const Constant& a, const Constant& b,
                                  double (*f)(double, double)) {
  const auto x = Numbers(a), y = Numbers(b);
  if (!x || !y) return {};
  const size_t rank = std::max(a.dims.size(), b.dims.size());
  auto dim = [&](const Constant& c, size_t d) {
    const size_t skip = rank - c.dims.size();
    return d < skip ? int64_t{1} : c.dims[d - skip];
  };
  std::vector<int64_t> dims(rank);
  int64_t n = 1;
  for (size_t d = 0; d < rank; ++d) {
    dims[d] = dim(a, d) == 1 ? dim(b, d) : dim(a, d);
    n *= dims[d];
  }
  if (n > std::max(a.Elements(), b.Elements())) return {};
  std::vector<double> out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, ia = 0, ib = 0, sa = 1, sb = 1;
    for (size_t d = rank; d-- > 0;) {
      const int64_t at = rest % dims[d];
      rest /= dims[d];
      ia += (dim(a, d) == 1 ? 0 : at) * sa;
      ib += (dim(b, d) == 1 ? 0 : at) * sb;
      sa *= dim(a, d);
      sb *= dim(b, d);
    }
    out[static_cast<size_t>(i)] = f((*x)[static_cast<size_t>(ia)], (*y)[static_cast<size_t>(ib)]);
  }
  return FromNumbers(a.dtype, dims, out);
}

constexpr double kLeastFactor = 0x1p-60, kMostFactor = 0x1p60;

// Factors so far from the limits that their product neither overflows nor underflows on its own.
std::string MulChainGuard(const Match& m) {
  const DType t = m.type("x").dtype;
  if (t != DType::kF32 && t != DType::kF64) return "not f32 or f64";
  for (std::string_view name : {"a", "b"}) {
    const auto values = Numbers(m.constant(name));
    if (!values || values->empty()) return "no numbers";
    for (double v : *values) {
      if (!(std::fabs(v) >= kLeastFactor && std::fabs(v) <= kMostFactor))
        return "a factor is extreme";
    }
  }
  return "";
}

ValueId MulChain(const Match& m, Patch& p) {
  auto c = Broadcast(m.constant("a"), m.constant("b"), [](double a, double b) { return a * b; });
  return c ? p.Add("Mul", {m["x"], p.Const(std::move(*c))}) : kNone;
}

std::string Exponent(const Match& m, double e) {
  const DType t = m.type("x").dtype;
  if (!IsFloat(t)) return "not a float";
  return AllAre(m.constant("c"), e) && m.constant("c").Elements() == 1 &&
                 m.constant("c").dims.size() <= 1
             ? ""
             : "another exponent";
}
std::string IsSquare(const Match& m) { return Exponent(m, 2.0); }
std::string IsRoot(const Match& m) { return Exponent(m, 0.5); }
std::string IsFirstPower(const Match& m) { return Neutral(m, 1.0); }

ValueId Square(const Match& m, Patch& p) { return p.Add("Mul", {m["x"], m["x"]}); }
std::string IsCube(const Match& m) {  // of small floats the square would be rounded
  return BitWidth(m.type("x").dtype) < 32 ? "not f32 or f64" : Exponent(m, 3.0);
}
ValueId Cube(const Match& m, Patch& p) { return p.Add("Mul", {Square(m, p), m["x"]}); }
ValueId Root(const Match& m, Patch& p) { return p.Add("Sqrt", {m["x"]}); }
std::string IsOneOver(const Match& m) {
  const DType t = m.type("x").dtype;
  if (t != DType::kF32 && t != DType::kF64) return "not f32 or f64";
  const Constant& c = m.constant("c");
  const bool broadcasts = c.Elements() != 1 || static_cast<int>(c.dims.size()) > m.type("x").rank();
  return AllAre(c, 1.0) && !broadcasts ? "" : "the dividend is not one 1";
}
ValueId OneOver(const Match& m, Patch& p) { return p.Add("Reciprocal", {m["x"]}); }
ValueId OneRelu(const Match& m, Patch& p) { return p.Add("Relu", {m["x"]}); }

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "mul_one",
     .pattern = "Mul(x, #c)",
     .guard = IsOne,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %c = const f32[1] {1.0}
  %i: f32[2,3] = Mul(%c, %x) @"i"
  %y: f32[2,3] = Exp(%i) @"y"
})"}},
    {.name = "div_one",
     .pattern = "Div(x, #c)",
     .guard = IsOne,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: i32[2,3]) -> (%y) {
  %c = const i32[] {1}
  %i: i32[2,3] = Div(%x, %c) @"i"
  %y: i32[2,3] = Neg(%i) @"y"
})"}},
    {.name = "add_zero",
     .pattern = "Add(x, #c)",
     .guard = IsAddedZero,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: i64[4]) -> (%y) {
  %c = const i64[1] {0}
  %i: i64[4] = Add(%x, %c) @"i"
  %y: i64[4] = Neg(%i) @"y"
})",
                 R"(graph "g" (%x: f32[4]) -> (%y) {
  %c = const f32[] {-0.0}
  %i: f32[4] = Add(%x, %c) @"i"
  %y: f32[4] = Neg(%i) @"y"
})"}},
    {.name = "sub_zero",
     .pattern = "Sub(x, #c)",
     .guard = IsZero,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[4]) -> (%y) {
  %c = const f32[4] {0.0, 0.0, 0.0, 0.0}
  %i: f32[4] = Sub(%x, %c) @"i"
  %y: f32[4] = Neg(%i) @"y"
})"}},
    {.name = "div_power_of_two",
     .pattern = "Div(x, #c)",
     .guard = PowersOfTwo,
     .replace = MulByReciprocal,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %c = const f32[3] {4.0, -0.5, 2.0}
  %y: f32[2,3] = Div(%x, %c) @"y"
})"}},
    {.name = "mul_chain",
     .pattern = "Mul(Mul(x, #a), #b)",
     .guard = MulChainGuard,
     .replace = MulChain,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,3], %c_a: f32[3], %c_b: f32[]) -> (%y) {
  %i: f32[2,3] = Mul(%x, %c_a) @"i"
  %y: f32[2,3] = Mul(%c_b, %i) @"y"
})"}},
    {.name = "pow_one",
     .pattern = "Pow(x, #c)",
     .guard = IsFirstPower,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %c = const f32[] {1.0}
  %i: f32[2,3] = Pow(%x, %c) @"i"
  %y: f32[2,3] = Neg(%i) @"y"
})"}},
    {.name = "pow_square",
     .pattern = "Pow(x, #c)",
     .guard = IsSquare,
     .replace = Square,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %c = const f32[] {2.0}
  %y: f32[2,3] = Pow(%x, %c) @"y"
})"}},
    {.name = "pow_root",
     .pattern = "Pow(x, #c)",
     .guard = IsRoot,
     .replace = Root,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %c = const f32[1] {0.5}
  %a: f32[2,3] = Abs(%x) @"a"
  %y: f32[2,3] = Pow(%a, %c) @"y"
})"}},
    {.name = "pow_cube",
     .pattern = "Pow(x, #c)",
     .guard = IsCube,
     .replace = Cube,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %c = const f32[] {3.0}
  %y: f32[2,3] = Pow(%x, %c) @"y"
})"}},
    {.name = "div_of_one",
     .pattern = "Div(#c, x)",
     .guard = IsOneOver,
     .replace = OneOver,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %c = const f32[] {1.0}
  %y: f32[2,3] = Div(%c, %x) @"y"
})"}},
    {.name = "neg_neg",
     .pattern = "Neg(+Neg(x))",
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %i: f32[2,3] = Neg(%x) @"i"
  %j: f32[2,3] = Neg(%i) @"j"
  %y: f32[2,3] = Exp(%j) @"y"
})"}},
    {.name = "not_not",
     .pattern = "Not(+Not(x))",
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: bool[2,3]) -> (%y) {
  %i: bool[2,3] = Not(%x) @"i"
  %j: bool[2,3] = Not(%i) @"j"
  %y: bool[2,3] = And(%j, %i) @"y"
})"}},
    {.name = "relu_relu",
     .pattern = "Relu(+Relu(x))",
     .replace = OneRelu,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %i: f32[2,3] = Relu(%x) @"i"
  %y: f32[2,3] = Relu(%i) @"y"
})"}},
});

}  // namespace
}  // namespace ge
