// Accuracy of the generated mathematics: the error in units of the last place against libm's
// double, over many points of each function's range; special values exactly.
#include <cmath>
#include <functional>
#include <limits>

#include "base/fp_state.h"
#include "emit/run_code_test.h"
#include "tile/builder.h"

namespace ge::emit {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::LoopKind;
using tile::Op;

struct Function {
  const char* name;
  Op op;
  double (*exact)(double);
  float lo, hi;
  double max_ulp;
};

const Function kFunctions[] = {
    {"exp", Op::kExp, std::exp, -87, 88.7f, 2},
    {"tanh", Op::kTanh, std::tanh, -12, 12, 2},
    {"erf", Op::kErf, std::erf, -5, 5, 2},
    {"log", Op::kLog, std::log, 1e-6f, 100, 2},
    {"sin", Op::kSin, std::sin, -100, 100, 2},
    {"cos", Op::kCos, std::cos, -100, 100, 2},
    {"expm1", Op::kExpm1, std::expm1, -20, 20, 2.5},
    {"log1p", Op::kLog1p, std::log1p, -0.99f, 50, 2.5},
    {"atan", Op::kAtan, std::atan, -40, 40, 3},
    {"asin", Op::kAsin, std::asin, -1, 1, 3},
    {"acos", Op::kAcos, std::acos, -1, 1, 3},
    {"tan", Op::kTan, std::tan, -100, 100, 4},
    {"sinh", Op::kSinh, std::sinh, -89, 89, 4},
    {"cosh", Op::kCosh, std::cosh, -89, 89, 3},
    {"asinh", Op::kAsinh, std::asinh, -20000, 20000, 4},
    {"acosh", Op::kAcosh, std::acosh, 1, 20000, 4},
    {"atanh", Op::kAtanh, std::atanh, -0.9999f, 0.9999f, 4},
    {"half tanh", Op::kAbs, [](double x) { return 1 / (1 + std::exp(-2 * x)); }, -43, 10, 6},
    {"sigmoid", Op::kRcp, [](double x) { return 1 / (1 + std::exp(-x)); }, -86, 20, 6},
};

// Formulas that are printed as one function: kRcp stands for 1 / (exp(-x) + 1), kAbs for
// (tanh(x) + 1) / 2.
tile::Val Of(Op op, tile::Val x) {
  if (op == Op::kAbs) return (x.b->Unary(Op::kTanh, x) + 1.0) * 0.5;
  if (op != Op::kRcp) return x.b->Unary(op, x);
  return x.b->Unary(op, x.b->Unary(Op::kExp, -x) + 1.0);
}

// Distance in units of the last place of the exact value; near zero in units of the smallest
// normal.
double Ulps(float got, double exact) {
  float nearest = std::fabs(static_cast<float>(exact));
  double unit = static_cast<double>(
                    std::nextafter(std::max(nearest, std::numeric_limits<float>::min()), 3e38f)) -
                static_cast<double>(std::max(nearest, std::numeric_limits<float>::min()));
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

TEST(EmitMath, UlpErrors) {
  FpState state;
  constexpr int64_t kPoints = 1 << 20;
  ExprArena arena;
  std::vector<Kernel> kernels(std::size(kFunctions));
  std::vector<const Kernel*> pointers;
  for (size_t f = 0; f < kernels.size(); ++f) {
    Builder b(kernels[f], arena);
    int x = b.Arg("x", DType::kF32, kPoints, false), y = b.Arg("y", DType::kF32, kPoints, true);
    b.For("i", kPoints, LoopKind::kVector,
          [&](Expr i) { b.Store(y, i, Of(kFunctions[f].op, b.Load(x, i))); });
    pointers.push_back(&kernels[f]);
  }
  for (const Target& target : TestTargets()) {
    CodeObject code = MustCompile(pointers, target);
    LoadedCode loaded(code.bytes);
    for (size_t f = 0; f < kernels.size(); ++f) {
      const Function& function = kFunctions[f];
      std::vector<float> x(kPoints);
      for (int64_t i = 0; i < kPoints; ++i) {
        // Half of the points evenly, half towards zero in powers.
        float t = static_cast<float>(i) / static_cast<float>(kPoints - 1);
        x[static_cast<size_t>(i)] =
            i % 2 ? function.lo + t * (function.hi - function.lo)
                  : std::max(function.lo, std::ldexp((i % 4 ? -1.0f : 1.0f) * (1 + t),
                                                     -static_cast<int>(i % 30)));
        if (function.op == Op::kLog)
          x[static_cast<size_t>(i)] = std::fabs(x[static_cast<size_t>(i)]);
      }
      auto got =
          CallKernel(loaded.kernel(code.index[f]), {TestBuffer::Of(x), TestBuffer::Of(x)}, {}, 1, 0)
              .back()
              .As<float>();
      double worst = 0;
      float at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        double u = Ulps(got[i], function.exact(static_cast<double>(x[i])));
        if (!(u <= worst)) worst = u, at = x[i];
      }
      EXPECT_LE(worst, function.max_ulp)
          << function.name << "(" << at << ") " << target.soc << " " << target.compiler;
    }
  }
}

// Powers in ulp and remainders exactly, for all pairs of many numbers, special ones included.
TEST(EmitMath, PowersAndRemainders) {
  FpState state;
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> points = {0.0f,   -0.0f,  1.0f,  -1.0f,  2.0f,       -2.0f, 3.0f,
                               -3.0f,  0.5f,   -0.5f, inf,    -inf,       nan,   1e30f,
                               -1e30f, 1e-30f, -2.5f, 127.0f, 16777217.0f};
  for (int i = 0; i < 237; ++i)
    points.push_back(std::ldexp(1 + static_cast<float>(i) / 237, i % 23 - 11) * (i % 3 ? 1 : -1));
  const int64_t n = static_cast<int64_t>(points.size());
  std::vector<float> x, y;
  for (float a : points)
    for (float b : points) x.push_back(a), y.push_back(b);
  ExprArena arena;
  std::vector<Kernel> kernels(3);
  std::vector<const Kernel*> pointers;
  const Op ops[] = {Op::kPow, Op::kFmod, Op::kFloorMod};
  for (size_t k = 0; k < 3; ++k) {
    Builder b(kernels[k], arena);
    int p = b.Arg("x", DType::kF32, n * n, false), q = b.Arg("y", DType::kF32, n * n, false),
        z = b.Arg("z", DType::kF32, n * n, true);
    b.For("i", n * n, LoopKind::kVector,
          [&](Expr i) { b.Store(z, i, b.Binary(ops[k], b.Load(p, i), b.Load(q, i))); });
    pointers.push_back(&kernels[k]);
  }
  for (const Target& target : TestTargets()) {
    CodeObject code = MustCompile(pointers, target);
    LoadedCode loaded(code.bytes);
    for (size_t k = 0; k < 3; ++k) {
      auto got = CallKernel(loaded.kernel(code.index[k]),
                            {TestBuffer::Of(x), TestBuffer::Of(y), TestBuffer::Of(x)}, {}, 1, 0)
                     .back()
                     .As<float>();
      int faults = 0;
      for (size_t i = 0; i < x.size() && faults < 5; ++i) {
        const double a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
        double want = k == 0 ? std::pow(a, b) : std::fmod(a, b);
        if (k == 2 && want != 0 && (want < 0) != (b < 0))
          want = static_cast<double>(static_cast<float>(want) + y[i]);
        const float w = static_cast<float>(want), g = got[i];
        const bool tiny = std::fabs(want) < 1.2e-38;  // flushed
        const bool same = std::isnan(w) ? std::isnan(g)
                          : std::isinf(w) || tiny || k > 0
                              ? (tiny ? std::fabs(g) < 1.2e-38f : g == w)
                              : Ulps(g, want) <= 1;
        if (same) continue;
        ++faults;
        ADD_FAILURE() << k << " of " << x[i] << ", " << y[i] << " = " << g << ", want " << want
                      << " " << target.soc << " " << target.compiler;
      }
    }
  }
}

// Its error counts beside the other terms of the sum that it goes into, so it is absolute.
TEST(EmitMath, GeluError) {
  FpState state;
  constexpr int64_t kPoints = 1 << 18;
  ExprArena arena;
  Kernel kernel;
  Builder b(kernel, arena);
  int in = b.Arg("x", DType::kF32, kPoints, false), out = b.Arg("y", DType::kF32, kPoints, true);
  b.For("i", kPoints, LoopKind::kVector,
        [&](Expr i) { b.Store(out, i, b.Unary(Op::kGelu, b.Load(in, i))); });
  std::vector<float> x(kPoints);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (static_cast<float>(i) / static_cast<float>(kPoints) - 0.5f) * (i % 2 ? 16.0f : 2e-3f);
  for (const Target& target : TestTargets()) {
    CodeObject code = MustCompile({&kernel}, target);
    LoadedCode loaded(code.bytes);
    auto got =
        CallKernel(loaded.kernel(code.index[0]), {TestBuffer::Of(x), TestBuffer::Of(x)}, {}, 1, 0)
            .back()
            .As<float>();
    double worst = 0, relative = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double a = static_cast<double>(x[i]), y = a * 0.5 * std::erfc(-a * M_SQRT1_2);
      const double error = std::fabs(static_cast<double>(got[i]) - y);
      worst = std::max(worst, error);
      if (a > 0 || std::fabs(a) < 0.01) relative = std::max(relative, error / std::fabs(y));
      if (a == 0) relative = 0;
    }
    EXPECT_LE(worst, 0x1p-20) << target.soc << " " << target.compiler;
    EXPECT_LE(relative, 0x1p-21) << target.soc << " " << target.compiler;
  }
}

TEST(EmitMath, SpecialValues) {
  FpState state;
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  struct Point {
    Op op;
    float x, y;
  };
  const std::vector<Point> points = {{Op::kExp, -inf, 0},
                                     {Op::kExp, inf, inf},
                                     {Op::kExp, nan, nan},
                                     {Op::kExp, 0, 1},
                                     {Op::kExp, -104, 0},
                                     {Op::kExp, 89, inf},
                                     {Op::kTanh, -0.0f, -0.0f},
                                     {Op::kTanh, inf, 1},
                                     {Op::kTanh, -inf, -1},
                                     {Op::kTanh, nan, nan},
                                     {Op::kErf, -0.0f, -0.0f},
                                     {Op::kErf, inf, 1},
                                     {Op::kErf, -inf, -1},
                                     {Op::kErf, nan, nan},
                                     {Op::kLog, 0, -inf},
                                     {Op::kLog, -1, nan},
                                     {Op::kLog, inf, inf},
                                     {Op::kLog, 1, 0},
                                     {Op::kSin, -0.0f, -0.0f},
                                     {Op::kCos, 0, 1},
                                     {Op::kSin, inf, nan},
                                     {Op::kExpm1, -0.0f, -0.0f},
                                     {Op::kExpm1, -inf, -1},
                                     {Op::kLog1p, -1, -inf},
                                     {Op::kAtan, inf, 1.57079637f},
                                     {Op::kAtan, -0.0f, -0.0f},
                                     {Op::kAtan, nan, nan},
                                     {Op::kAsin, 1, 1.57079637f},
                                     {Op::kAsin, 1.5f, nan},
                                     {Op::kAsin, -0.0f, -0.0f},
                                     {Op::kAcos, 1, 0},
                                     {Op::kAcos, -1, 3.14159274f},
                                     {Op::kAcos, -2, nan},
                                     {Op::kTan, -0.0f, -0.0f},
                                     {Op::kTan, inf, nan},
                                     {Op::kSinh, -0.0f, -0.0f},
                                     {Op::kSinh, -inf, -inf},
                                     {Op::kSinh, nan, nan},
                                     {Op::kCosh, -inf, inf},
                                     {Op::kCosh, 0, 1},
                                     {Op::kAsinh, -0.0f, -0.0f},
                                     {Op::kAsinh, -inf, -inf},
                                     {Op::kAsinh, 3e38f, 89.2899933f},
                                     {Op::kAcosh, 1, 0},
                                     {Op::kAcosh, 0.5f, nan},
                                     {Op::kAcosh, inf, inf},
                                     {Op::kAcosh, -2, nan},
                                     {Op::kAtanh, 1, inf},
                                     {Op::kAtanh, -1, -inf},
                                     {Op::kAtanh, 2, nan},
                                     {Op::kAtanh, -0.0f, -0.0f},
                                     {Op::kLog1p, -0.0f, -0.0f},
                                     {Op::kGelu, -0.0f, -0.0f},
                                     {Op::kGelu, inf, inf},
                                     {Op::kGelu, -inf, nan},
                                     {Op::kGelu, nan, nan},
                                     {Op::kGelu, -1e30f, -0.0f},
                                     {Op::kGelu, 1e30f, 1e30f},
                                     {Op::kRcp, -inf, 0},
                                     {Op::kRcp, inf, 1},
                                     {Op::kRcp, nan, nan},
                                     {Op::kRcp, 0, 0.5f},
                                     {Op::kRcp, -1000, 0},
                                     {Op::kRcp, 1000, 1}};
  ExprArena arena;
  std::vector<Kernel> kernels(points.size());
  std::vector<const Kernel*> pointers;
  for (size_t f = 0; f < kernels.size(); ++f) {
    Builder b(kernels[f], arena);
    int x = b.Arg("x", DType::kF32, 17, false), y = b.Arg("y", DType::kF32, 17, true);
    b.For("i", 17, LoopKind::kVector,
          [&](Expr i) { b.Store(y, i, Of(points[f].op, b.Load(x, i))); });
    pointers.push_back(&kernels[f]);
  }
  for (const Target& target : TestTargets()) {
    CodeObject code = MustCompile(pointers, target);
    LoadedCode loaded(code.bytes);
    for (size_t f = 0; f < points.size(); ++f) {
      std::vector<float> x(17, points[f].x);
      auto got =
          CallKernel(loaded.kernel(code.index[f]), {TestBuffer::Of(x), TestBuffer::Of(x)}, {}, 1, 0)
              .back()
              .As<float>();
      for (float g : got) {
        bool same = std::isnan(points[f].y)
                        ? std::isnan(g)
                        : g == points[f].y && std::signbit(g) == std::signbit(points[f].y);
        ASSERT_TRUE(same) << "op " << static_cast<int>(points[f].op) << "(" << points[f].x
                          << ") = " << g << ", want " << points[f].y << " " << target.soc << " "
                          << target.compiler;
      }
    }
  }
}

}  // namespace
}  // namespace ge::emit
