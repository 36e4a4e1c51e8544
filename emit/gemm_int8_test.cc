// BrGemm of bytes, compiled: every tile against the interpreter, over the whole range of both
// bytes, for VNNI and for the widening form; no spills where the tile is one that lowering chooses.
#include <random>

#include "base/fp_state.h"
#include "emit/gemm_fixture.h"

namespace ge::emit {
namespace {

std::vector<GroupedTile> Tiles(const SocSpec& soc, bool vnni) {
  std::vector<GroupedTile> tiles;
  for (int nv = 1; nv <= (vnni ? 4 : 2); ++nv) {
    int most =
        vnni ? (soc.vector_registers - 1 - nv) / nv : (soc.vector_registers - 2 * nv - 5) / nv;
    if (vnni && nv == 3) most = 8;
    if (vnni) most = std::min(most, 30 - nv);
    for (int m : {1, 2, most}) tiles.push_back({m, nv, m == 2 ? 16 : 12, 0});
    tiles.push_back({most, nv, 4, 3});
    tiles.push_back({.m = most, .nv = nv, .k = 8, .missing_columns = 0, .line = 3});
  }
  return tiles;
}

void Check(const Target& target, DType a_type) {
  const SocSpec soc = FindSoc(target.soc, nullptr).value();
  const std::vector<GroupedTile> tiles = Tiles(soc, soc.masks && soc.vnni);
  std::vector<tile::Kernel> kernels(tiles.size());
  ExprArena arena;
  for (size_t i = 0; i < tiles.size(); ++i)
    BuildGrouped(kernels[i], arena, tiles[i], soc.F32Lanes(), a_type, DType::kI8, DType::kI32, 4,
                 8);
  std::mt19937 random(1);
  const auto fill = [&](const tile::Buffer& buffer) {
    std::vector<uint8_t> data(static_cast<size_t>(BytesFor(buffer.dtype, buffer.elements.value())));
    for (uint8_t& x : data) x = static_cast<uint8_t>(random());
    return TestBuffer::Of(data);
  };
  ExpectLikeInterpreter(
      kernels, target, fill, [&](size_t i, const TestBuffer& got, const TestBuffer& want) {
        ASSERT_EQ(got.As<int32_t>(), want.As<int32_t>()) << tiles[i].m << "x" << tiles[i].nv;
      });
}

TEST(EmitGemmBytes, EveryTileOnBothCompilers) {
  FpState state;
  for (const Target& target : TestTargetsAndHost())
    for (DType a : {DType::kU8, DType::kI8}) Check(target, a);
}

}  // namespace
}  // namespace ge::emit
