// What follows a dot of bytes, compiled, against the interpreter to the bit: bias, scale, the next
// quantisation, and the sum with another tensor of bytes; sums far beyond the byte's range, ties,
// zero points at the ends and in the middle, columns that are missing.
#include <random>

#include "base/fp_state.h"
#include "emit/gemm_fixture.h"

namespace ge::emit {
namespace {

using tile::Builder;
using tile::Op;
using tile::Val;

struct Case {
  DType y = DType::kU8;
  int64_t zero = 0, missing = 0;
  float scale = 1;      // of the result
  bool bias = true;     // added to the sum as an integer
  bool bounded = true;  // the scales are known to be small
  bool relu = false;
  float first = 0, second = 0;  // scales of the two bytes that are added; 0: nothing is added
};

Val Quantised(Builder& b, Val x, float scale, int64_t zero, DType y) {
  const double low = y == DType::kI8 ? -128 : 0, s = static_cast<double>(scale);
  const double z = static_cast<double>(zero);
  x = b.Binary(Op::kMax, x, b.F(static_cast<double>(static_cast<float>((low - z) * s))));
  x = b.Binary(Op::kMin, x, b.F(static_cast<double>(static_cast<float>((low + 255 - z) * s))));
  if (scale != 1) x = x / b.F(s);
  const Val q = b.Cast(b.Unary(Op::kRound, x), DType::kI32);
  return b.Narrow(q + b.ConstInt(DType::kI32, zero), y);
}

void Build(tile::Kernel& kernel, ExprArena& arena, const Case& c, int lanes) {
  Builder b(kernel, arena);
  constexpr int64_t kRows = 3, kDepth = 64;
  const int64_t n = 2 * lanes, valid = n - c.missing;
  const int a = b.Arg("a", DType::kU8, kRows * kDepth, false);
  const int w = b.Arg("w", DType::kI8, kDepth * n, false);
  const int bias = b.Arg("bias", DType::kI32, n, false);
  const int scales = b.Arg("scales", DType::kF32, n, false);
  const int r = b.Arg("r", DType::kU8, kRows * n, false);
  const int y = b.Arg("y", c.y, kRows * valid, true);
  if (c.bounded) kernel.buffers[scales].within = 0x1p-4;
  tile::BrGemm g;
  g.m = kRows, g.n = static_cast<int>(n), g.n_valid = valid, g.k = kDepth, g.k_group = 4;
  g.a_buffer = a, g.a = 0, g.a_row = kDepth, g.a_k = 1;
  g.b_buffer = w, g.b = 0, g.b_k = n * 4;
  b.Gemm(g, [&](Expr row, Expr col, Val sum) {
    if (c.bias) sum = sum + b.Load(bias, col);
    Val x = b.Cast(sum, DType::kF32) * b.Load(scales, col);
    if (c.second != 0) {
      const Val q = Quantised(b, x, 1, 128, DType::kU8) - b.ConstInt(DType::kI32, 128);
      const Val other = b.Cast(b.Load(r, row * n + col), DType::kF32);
      x = b.Cast(q, DType::kF32) * b.F(static_cast<double>(c.first)) +
          other * b.F(static_cast<double>(c.second));
    }
    if (c.relu) x = b.Binary(Op::kMax, x, b.F(0));
    b.Store(y, row * valid + col, Quantised(b, x, c.scale, c.zero, c.y));
  });
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const std::pair<DType, int64_t> results[] = {{DType::kU8, 0},   {DType::kU8, 100},
                                               {DType::kU8, 255}, {DType::kI8, -128},
                                               {DType::kI8, 5},   {DType::kI8, 127}};
  for (size_t i = 0; i < std::size(results); ++i) {
    const auto [y, zero] = results[i];
    const bool odd = i % 2 == 1;
    cases.push_back({.y = y, .zero = zero, .missing = odd ? 3 : 0, .bias = !odd, .relu = !odd});
    cases.push_back({.y = y, .zero = zero, .scale = 0.0123F, .bounded = !odd, .relu = odd});
    for (float second : {0.0392157F, 0.0777F})
      cases.push_back({.y = y,
                       .zero = zero,
                       .missing = odd ? 1 : 0,
                       .scale = 0.0392157F,
                       .relu = zero <= 0 || odd,
                       .first = 0.0235294F,
                       .second = second});
  }
  return cases;
}

TEST(EmitRequantise, LikeTheInterpreterToTheBit) {
  FpState state;
  const std::vector<Case> cases = Cases();
  for (const Target& target : TestTargetsAndHost()) {
    const SocSpec soc = FindSoc(target.soc, nullptr).value();
    ExprArena arena;
    std::vector<tile::Kernel> kernels(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) Build(kernels[i], arena, cases[i], soc.F32Lanes());
    std::mt19937 random(1);
    const auto fill = [&](const tile::Buffer& buffer) {
      const auto count = static_cast<size_t>(buffer.elements.value());
      if (buffer.name == "scales") {
        std::vector<float> s(count);
        for (float& x : s)
          x = std::ldexp(1.0F + static_cast<float>(random() % 7) / 8,
                         -5 - static_cast<int>(random() % 9));
        return TestBuffer::Of(s);
      }
      if (buffer.dtype == DType::kI32) {
        std::vector<int32_t> v(count);
        for (int32_t& x : v) x = static_cast<int32_t>(random() % 20001) - 10000;
        v[0] = 1 << 30, v[1] = -(1 << 30);
        return TestBuffer::Of(v);
      }
      std::vector<uint8_t> v(count);
      for (uint8_t& x : v) x = static_cast<uint8_t>(random() % 8 < 2 ? random() : random() % 4);
      return TestBuffer::Of(v);
    };
    ExpectLikeInterpreter(
        kernels, target, fill,
        [&](size_t i, const TestBuffer& got, const TestBuffer& want) {
          ASSERT_EQ(got.As<uint8_t>(), want.As<uint8_t>()) << ToString(kernels[i]);
        },
        true);
  }
}

// The short forms are used: no limit but the conversion's, and sums that start with the bias.
TEST(EmitRequantise, ShortForms) {
  const SocSpec soc = FindSoc("x86-64-v4", nullptr).value();
  const auto text = [&](const Case& c) {
    ExprArena arena;
    tile::Kernel kernel;
    Build(kernel, arena, c, soc.F32Lanes());
    return EmitKernel(kernel, soc, "k");
  };
  const auto has = [](const std::string& code, const char* part) {
    return code.find(part) != std::string::npos;
  };
  const std::string plain = text({.zero = 7}), sum = text({.scale = 0.0392157F,
                                                           .relu = true,
                                                           .first = 0.0235294F,
                                                           .second = 0.0392157F});
  EXPECT_TRUE(has(plain, "v_sat_u8(") && has(plain, "S0;"));
  EXPECT_FALSE(has(plain, "v_pickmax_f32"));
  EXPECT_TRUE(has(sum, "v_sat_u8(v_rint_i32(v_fma("));
  EXPECT_FALSE(has(text({.bounded = false}), "v_sat_u8("));
  EXPECT_FALSE(has(text({.missing = 1}), "S0;"));
}

}  // namespace
}  // namespace ge::emit
