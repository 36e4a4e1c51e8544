// BrGemm of bf16 pairs, compiled: every tile against the interpreter, with and without vdpbf16ps;
// no spills where the tile is one that lowering chooses.
#include <cmath>
#include <random>

#include "base/fp_state.h"
#include "emit/gates.h"
#include "emit/run_code_test.h"
#include "tile/builder.h"

namespace ge::emit {
namespace {

using tile::BrGemm;
using tile::Builder;
using tile::Kernel;
using tile::Val;

struct Shape {
  int m, nv;
  int64_t k, missing_columns;
};

// Y = sum of 3 batches of A B, rows of A at a stride of their own.
void Build(Kernel& kernel, ExprArena& arena, const Shape& s, int lanes) {
  Builder b(kernel, arena);
  const int n = s.nv * lanes;
  const int64_t row = 3 * s.k + 5, valid = n - s.missing_columns;
  int a = b.Arg("a", DType::kBF16, s.m * row, false),
      w = b.Arg("w", DType::kBF16, 3 * s.k * n, false);
  int y = b.Arg("y", DType::kF32, s.m * valid, true);
  BrGemm g;
  Expr batch = arena.Fresh("batch", {.lo = 0, .hi = 2, .extent = 3});
  g.m = s.m, g.n = n, g.n_valid = valid, g.k = s.k, g.k_group = 2, g.batch = {{batch, 3}};
  g.a_buffer = a, g.a = batch * s.k, g.a_row = row, g.a_k = 1;
  g.b_buffer = w, g.b = batch * (s.k * n), g.b_k = n * 2;
  b.Gemm(g, [&](Expr r, Expr c, Val acc) { b.Store(y, r * valid + c, acc); });
}

void Check(const Target& target) {
  const SocSpec soc = FindSoc(target.soc, nullptr).value();
  std::vector<Shape> shapes;
  for (int nv = 1; nv <= (soc.bf16 ? 4 : 1); ++nv) {
    int most = soc.bf16 ? (soc.vector_registers - 1 - nv) / nv : 4;
    if (nv == 3) most = 8;
    for (int m : {1, 2, most}) shapes.push_back({m, nv, m == 2 ? 16 : 6, 0});
    shapes.push_back({most, nv, 2, 3});
  }
  std::vector<Kernel> kernels(shapes.size());
  std::vector<const Kernel*> pointers;
  ExprArena arena;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Build(kernels[i], arena, shapes[i], soc.F32Lanes());
    ASSERT_TRUE(Verify(kernels[i]).ok()) << Verify(kernels[i]).message();
    pointers.push_back(&kernels[i]);
  }
  CodeObject code = MustCompile(pointers, target);
  LoadedCode loaded(code.bytes);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::vector<TestBuffer> buffers;
    for (const tile::Buffer& buffer : kernels[i].buffers) {
      std::vector<uint16_t> data(
          static_cast<size_t>(BytesFor(buffer.dtype, buffer.elements.value())) / 2);
      for (uint16_t& x : data) {
        const float value = uniform(random);
        uint32_t bits = 0;
        std::memcpy(&bits, &value, 4);
        x = static_cast<uint16_t>(bits >> 16);
      }
      buffers.push_back(TestBuffer::Of(data));
    }
    tile::Interpreter interpreter(kernels[i]);
    auto want =
        CallKernel(tile::GeInterpretKernel, buffers, {}, 1, 0, &interpreter).back().As<float>();
    auto got = CallKernel(loaded.kernel(code.index[i]), buffers, {}, 1, 0).back().As<float>();
    ASSERT_EQ(got.size(), want.size());
    for (size_t j = 0; j < got.size(); ++j)
      ASSERT_NEAR(got[j], want[j], 1e-5F * static_cast<float>(shapes[i].k))
          << target.soc << " " << target.compiler << " " << shapes[i].m << "x" << shapes[i].nv;
  }
  auto spills = FindSpills(code.bytes);
  if (!spills.ok()) GTEST_SKIP() << spills.status().message();
  EXPECT_TRUE(spills->empty()) << target.soc << " " << target.compiler << " "
                               << (spills->empty() ? "" : spills->front());
}

TEST(EmitGemmPairs, EveryTileOnBothCompilers) {
  FpState state;
  std::vector<Target> targets = TestTargets();
  for (const char* cc : {"clang-19", "gcc"})
    if (FindCompiler(cc).ok()) targets.push_back({"host", cc});
  for (const Target& target : targets) Check(target);
}

}  // namespace
}  // namespace ge::emit
