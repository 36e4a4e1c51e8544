// BrGemm: every tile that the lowering may choose, against the interpreter; batches, strides,
// ragged columns, epilogues short and long; no spills and no undefined symbols in any of them.
#include <cstdlib>
#include <random>

#include "base/fp_state.h"
#include "emit/gemm_fixture.h"

namespace ge::emit {
namespace {

using tile::BrGemm;
using tile::Builder;
using tile::Kernel;
using tile::Op;
using tile::Val;

struct Shape {
  int m, n;
  int64_t valid, k;
  bool long_epilogue = false;
  DType type = DType::kF32;
};

// Y = act(sum of 2 batches of A B + bias), rows of A at a stride of their own.
void Build(Kernel& kernel, ExprArena& arena, const Shape& s) {
  Builder b(kernel, arena);
  const int64_t row = 2 * s.k + 3;
  int a = b.Arg("a", s.type, s.m * row, false), w = b.Arg("w", s.type, 2 * s.k * s.n, false);
  int bias = b.Arg("bias", s.type, s.n, false), y = b.Arg("y", s.type, s.m * s.valid, true);
  BrGemm g;
  Expr batch = arena.Fresh("batch", {.lo = 0, .hi = 1, .extent = 2});
  g.m = s.m, g.n = s.n, g.n_valid = s.valid, g.k = s.k, g.batch = {{batch, 2}};
  g.a_buffer = a, g.a = batch * s.k, g.a_row = row, g.a_k = 1;
  g.b_buffer = w, g.b = batch * (s.k * s.n), g.b_k = s.n;
  g.prefetch = s.k == 9 ? s.n * 3 : 0;
  b.Gemm(g, [&](Expr r, Expr c, Val acc) {
    Val v = acc + b.Load(bias, c);
    v = s.long_epilogue ? b.Unary(Op::kTanh, v) * v : b.Binary(Op::kMax, v, b.Const(s.type, 0));
    b.Store(y, r * s.valid + c, v);
  });
}

std::vector<Shape> Shapes(int lanes, int registers) {
  std::vector<Shape> shapes;
  for (int nv = 1; nv <= 4; ++nv) {
    int most = (registers - 1 - nv) / nv;
    if (nv == 3) most = registers == 32 ? 8 : 3;
    for (int m = 1; m <= most; m += m < 4 ? 1 : 3) shapes.push_back({m, nv * lanes, nv * lanes, 9});
    shapes.push_back({most, nv * lanes, nv * lanes, 16});
    shapes.push_back({most, nv * lanes, nv * lanes - 3, 5});
    shapes.push_back({most, nv * lanes, nv * lanes, 6, true});
  }
  return shapes;
}

TEST(EmitGemm, EveryTileOnBothCompilers) {
  FpState state;
  for (const Target& target : TestTargets()) {
    const SocSpec soc = FindSoc(target.soc, nullptr).value();
    std::vector<Shape> shapes = Shapes(soc.F32Lanes(), soc.vector_registers);
    std::vector<Kernel> kernels(shapes.size());
    ExprArena arena;
    for (size_t i = 0; i < shapes.size(); ++i) Build(kernels[i], arena, shapes[i]);
    std::mt19937 random(1);
    std::uniform_int_distribution<int> d(-8, 8);
    const auto fill = [&](const tile::Buffer& buffer) {
      std::vector<float> data(static_cast<size_t>(buffer.elements.value()));
      for (float& f : data) f = static_cast<float>(d(random)) / 4;
      return TestBuffer::Of(data);
    };
    ExpectLikeInterpreter(kernels, target, fill,
                          [&](size_t i, const TestBuffer& a, const TestBuffer& b) {
                            const auto got = a.As<float>(), want = b.As<float>();
                            for (size_t e = 0; e < want.size(); ++e)
                              ASSERT_NEAR(got[e], want[e], shapes[i].long_epilogue ? 1e-5 : 0)
                                  << shapes[i].m << "x" << shapes[i].n << " element " << e;
                          });
  }
}

// Doubles: a vector has half as many.
TEST(EmitGemm, Doubles) {
  FpState state;
  for (const Target& target : TestTargets()) {
    const SocSpec soc = FindSoc(target.soc, nullptr).value();
    std::vector<Shape> shapes = Shapes(soc.F32Lanes() / 2, soc.vector_registers);
    std::vector<Kernel> kernels(shapes.size());
    ExprArena arena;
    for (size_t i = 0; i < shapes.size(); ++i) {
      shapes[i].long_epilogue = false;
      shapes[i].type = DType::kF64;
      Build(kernels[i], arena, shapes[i]);
    }
    std::mt19937 random(1);
    std::uniform_int_distribution<int> d(-8, 8);
    const auto fill = [&](const tile::Buffer& buffer) {
      std::vector<double> data(static_cast<size_t>(buffer.elements.value()));
      for (double& f : data) f = 1 + d(random) * 0x1p-30;  // beyond what f32 holds
      return TestBuffer::Of(data);
    };
    ExpectLikeInterpreter(kernels, target, fill,
                          [&](size_t i, const TestBuffer& a, const TestBuffer& b) {
                            const auto got = a.As<double>(), want = b.As<double>();
                            for (size_t e = 0; e < want.size(); ++e)
                              ASSERT_NEAR(got[e], want[e], 1e-13 * want[e])
                                  << shapes[i].m << "x" << shapes[i].n << " element " << e;
                          });
  }
}

// The gate itself: a tile that cannot fit is found.
TEST(EmitGemm, GateSeesSpills) {
  if (!HostSoc().masks) GTEST_SKIP() << "no AVX-512";
  ExprArena arena;
  Kernel kernel;
  Build(kernel, arena, {20, 32, 32, 64});
  CodeObject code = MustCompile({&kernel}, {"x86-64-v4", "gcc"});
  auto spills = FindSpills(code.bytes);
  if (!spills.ok()) GTEST_SKIP() << spills.status().message();
  EXPECT_FALSE(spills->spills.empty());
}

// Sums of bytes in int32.
TEST(EmitGemm, Int8) {
  ExprArena arena;
  Kernel kernel;
  Builder b(kernel, arena);
  int a = b.Arg("a", DType::kU8, 3 * 10, false), w = b.Arg("w", DType::kI8, 10 * 16, false);
  int y = b.Arg("y", DType::kI32, 3 * 16, true);
  BrGemm g;
  g.m = 3, g.n = 16, g.n_valid = 16, g.k = 10;
  g.a_buffer = a, g.a_row = 10, g.a_k = 1, g.b_buffer = w, g.b_k = 16;
  b.Gemm(g, [&](Expr r, Expr c, Val acc) { b.Store(y, r * 16 + c, acc); });
  ASSERT_TRUE(Verify(kernel).ok()) << Verify(kernel).message();
  std::vector<uint8_t> av(30);
  std::vector<int8_t> wv(160);
  for (size_t i = 0; i < av.size(); ++i) av[i] = static_cast<uint8_t>(i * 37);
  for (size_t i = 0; i < wv.size(); ++i) wv[i] = static_cast<int8_t>(i * 53);
  for (const Target& target : TestTargets()) {
    CodeObject code = MustCompile({&kernel}, target);
    LoadedCode loaded(code.bytes);
    auto got = CallKernel(loaded.kernel(0),
                          {TestBuffer::Of(av), TestBuffer::Of(wv),
                           TestBuffer::Of(std::vector<int32_t>(48))},
                          {}, 1, 0)
                   .back()
                   .As<int32_t>();
    for (size_t r = 0; r < 3; ++r) {
      for (size_t c = 0; c < 16; ++c) {
        int32_t sum = 0;
        for (size_t k = 0; k < 10; ++k) sum += int32_t{av[r * 10 + k]} * wv[k * 16 + c];
        ASSERT_EQ(got[r * 16 + c], sum);
      }
    }
  }
}

}  // namespace
}  // namespace ge::emit
