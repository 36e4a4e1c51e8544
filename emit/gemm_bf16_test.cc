// BrGemm of bf16 pairs, compiled: every tile against the interpreter, with and without vdpbf16ps;
// no spills where the tile is one that lowering chooses.
#include <cmath>

#include "base/fp_state.h"
#include "emit/gemm_fixture.h"

namespace ge::emit {
namespace {

std::vector<GroupedTile> Tiles(const SocSpec& soc) {
  std::vector<GroupedTile> tiles;
  for (int nv = 1; nv <= (soc.bf16 ? 4 : 1); ++nv) {
    int most = soc.bf16 ? (soc.vector_registers - 1 - nv) / nv : 4;
    if (nv == 3) most = 8;
    for (int m : {1, 2, most}) tiles.push_back({m, nv, m == 2 ? 16 : 6, 0});
    tiles.push_back({most, nv, 2, 3});
    tiles.push_back({.m = most, .nv = nv, .k = 6, .missing_columns = 0, .line = 2});
  }
  return tiles;
}

void Check(const Target& target) {
  const SocSpec soc = FindSoc(target.soc, nullptr).value();
  const std::vector<GroupedTile> tiles = Tiles(soc);
  std::vector<tile::Kernel> kernels(tiles.size());
  ExprArena arena;
  for (size_t i = 0; i < tiles.size(); ++i)
    BuildGrouped(kernels[i], arena, tiles[i], soc.F32Lanes(), DType::kBF16, DType::kBF16,
                 DType::kF32, 2, 5);
  ExpectLikeInterpreter(kernels, target, RandomPairs(),
                        [&](size_t i, const TestBuffer& a, const TestBuffer& b) {
                          const auto got = a.As<float>(), want = b.As<float>();
                          ASSERT_EQ(got.size(), want.size());
                          for (size_t j = 0; j < got.size(); ++j)
                            ASSERT_NEAR(got[j], want[j], 1e-5F * static_cast<float>(tiles[i].k))
                                << tiles[i].m << "x" << tiles[i].nv;
                        });
}

TEST(EmitGemmPairs, EveryTileOnBothCompilers) {
  FpState state;
  for (const Target& target : TestTargetsAndHost()) Check(target);
}

// What rounds to bf16, by the instruction or in integers: ties, both zeros, infinities, NaN, whole
// vectors and the rest.
TEST(EmitGemmPairs, RoundsLikeTheInterpreter) {
  FpState state;
  std::vector<float> x;
  for (int i = 0; i < 77; ++i)
    x.push_back(std::ldexp(1 + static_cast<float>(i * 5) / 1024, i % 60 - 30) * (i % 3 ? 1 : -1));
  const float inf = std::numeric_limits<float>::infinity();
  for (float v : {0.0F, -0.0F, inf, -inf, std::nanf(""), 3.39e38F, 1.00390625F, 1.01171875F})
    x.push_back(v);
  const auto n = static_cast<int64_t>(x.size());
  ExprArena arena;
  std::vector<tile::Kernel> kernels(2);
  for (size_t k = 0; k < 2; ++k) {
    tile::Builder b(kernels[k], arena);
    const int in = b.Arg("x", DType::kF32, n, false), out = b.Arg("y", DType::kBF16, n, true);
    b.For("i", n, tile::LoopKind::kVector, [&](Expr i) {
      tile::Val v = b.Load(in, i);
      b.Store(out, i, k == 0 ? v : b.Narrow(v * 3.0, DType::kBF16));
    });
  }
  for (const Target& target : TestTargetsAndHost()) {
    const auto fill = [&](const tile::Buffer& buffer) {
      if (buffer.dtype == DType::kF32) return TestBuffer::Of(x);
      return TestBuffer::Of(std::vector<uint16_t>(x.size()));
    };
    ExpectLikeInterpreter(
        kernels, target, fill,
        [&](size_t, const TestBuffer& got, const TestBuffer& want) {
          EXPECT_EQ(got.As<uint16_t>(), want.As<uint16_t>()) << target.soc;
        },
        false);
  }
}

}  // namespace
}  // namespace ge::emit
