// BrGemm on tiles: every shape of tiles against the interpreter, by the instructions' model in C;
// and the code with the instructions themselves: what it holds, and that no vector is spilled.
#include <fmt/format.h>

#include <random>

#include "base/fp_state.h"
#include "emit/gemm_fixture.h"

namespace ge::emit {
namespace {

// Rows that divide and that do not, one to four tiles, depths with and without a rest; one block,
// and several in a loop, whose epilogues run between the steps of the next.
std::vector<GroupedTile> Tiles(int group) {
  static constexpr int64_t kGroups[] = {1, 16, 17, 5, 32, 67, 50};
  std::vector<GroupedTile> tiles;
  for (int nv = 1; nv <= 4; ++nv) {
    for (int m : {1, 7, 16, 17, 29, 32, 49, 64}) {
      if ((m + 15) / 16 * nv > 4) continue;
      for (size_t i = 0; i < 3; ++i) {
        const int64_t k = kGroups[(tiles.size() + i) % std::size(kGroups)] * group;
        tiles.push_back({m, nv, k, m % 3 == 1 ? 3 : 0, i == 0 ? 1 : m % 4 + 1});
      }
    }
  }
  return tiles;
}

struct Types {
  DType a, b, y;
  int group;
};
constexpr Types kPairs{DType::kBF16, DType::kBF16, DType::kF32, 2};

void Build(std::vector<tile::Kernel>& kernels, ExprArena& arena,
           const std::vector<GroupedTile>& tiles, const Types& types) {
  kernels.resize(tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i)
    BuildGrouped(kernels[i], arena, tiles[i], 16, types.a, types.b, types.y, types.group,
                 2 * types.group, types.a == DType::kI8);
}

TEST(EmitGemmTiles, PairsLikeTheInterpreter) {
  if (!RunsHere(kEmulatedTiles)) GTEST_SKIP() << "no AVX-512 with VNNI and bf16";
  FpState state;
  const std::vector<GroupedTile> tiles = Tiles(2);
  std::vector<tile::Kernel> kernels;
  ExprArena arena;
  Build(kernels, arena, tiles, kPairs);
  for (const char* cc : {"clang-19", "gcc"}) {
    if (!FindCompiler(cc).ok()) continue;
    ExpectLikeInterpreter(kernels, {kEmulatedTiles, cc}, RandomPairs(),
                          [&](size_t i, const TestBuffer& a, const TestBuffer& b) {
                            const auto got = a.As<float>(), want = b.As<float>();
                            for (size_t j = 0; j < got.size(); ++j)
                              ASSERT_NEAR(got[j], want[j], 1e-5F * static_cast<float>(tiles[i].k))
                                  << tiles[i].m << "x" << tiles[i].nv << "x" << tiles[i].k;
                          });
  }
}

TEST(EmitGemmTiles, BytesLikeTheInterpreter) {
  if (!RunsHere(kEmulatedTiles)) GTEST_SKIP() << "no AVX-512 with VNNI and bf16";
  FpState state;
  const std::vector<GroupedTile> tiles = Tiles(4);
  std::mt19937 random(1);
  const auto fill = [&](const tile::Buffer& buffer) {
    std::vector<uint8_t> data(static_cast<size_t>(BytesFor(buffer.dtype, buffer.elements.value())));
    for (uint8_t& x : data) x = static_cast<uint8_t>(random());
    return TestBuffer::Of(data);
  };
  for (DType a : {DType::kU8, DType::kI8}) {
    std::vector<tile::Kernel> kernels;
    ExprArena arena;
    Build(kernels, arena, tiles, {a, DType::kI8, DType::kI32, 4});
    const auto again = tile::ParseKernel(ToString(kernels[0]), arena);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(ToString(*again, true), ToString(kernels[0], true));
    ExpectLikeInterpreter(kernels, {kEmulatedTiles, "clang-19"}, fill,
                          [&](size_t i, const TestBuffer& got, const TestBuffer& want) {
                            ASSERT_EQ(got.As<int32_t>(), want.As<int32_t>())
                                << tiles[i].m << "x" << tiles[i].nv << "x" << tiles[i].k;
                          });
  }
}

// The code for the real chip, which cannot run here: each kernel sets its shapes, multiplies tiles,
// stores each tile of C once, and lets the unit go; steps move no vector through the stack.
TEST(EmitGemmTiles, InstructionsOfEachKernel) {
  for (const char* cc : {"clang-19", "gcc"}) {
    if (!FindCompiler(cc).ok()) continue;
    for (int64_t k : {1280, 1300}) {  // whole steps, and a rest
      std::vector<tile::Kernel> kernels;
      ExprArena arena;
      Build(kernels, arena,
            {{16, 1, k, 0}, {32, 2, k, 0}, {29, 2, k, 3}, {61, 1, k, 0}, {5, 4, k, 0}}, kPairs);
      std::vector<const tile::Kernel*> pointers;
      for (const tile::Kernel& kernel : kernels) pointers.push_back(&kernel);
      const CodeObject code = MustCompile(pointers, {"sapphirerapids", cc});
      const auto use = FindTileUse(code.bytes);
      if (!use.ok()) GTEST_SKIP() << use.status().message();
      SCOPED_TRACE(fmt::format("{} {}", cc, k));
      const int tiles = 1 + 4 + 4 + 4 + 4, count = static_cast<int>(kernels.size());
      EXPECT_GE(use->products, k == 1280 ? tiles : 2 * tiles);
      EXPECT_EQ(use->stores, tiles);
      EXPECT_EQ(use->shapes, count);
      EXPECT_EQ(use->releases, count);
      const auto spills = FindSpills(code.bytes);
      ASSERT_TRUE(spills.ok());
      EXPECT_GE(spills->loops, count);
      EXPECT_TRUE(spills->spills.empty()) << spills->spills.front();
    }
  }
}

}  // namespace
}  // namespace ge::emit
