// Products with packed weights of unknown many rows against their loop nest, through the
// interpreter: few rows and many, groups that fill no panel, zero points of every kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/opdef.h"
#include "lower/cube.h"
#include "lower/region_fixture.h"

namespace ge {
namespace {

std::vector<float> Run(const std::string& text, int64_t rows, bool cube, const SocSpec& soc) {
  auto parsed = ParseGraph(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  const Graph& g = **parsed;
  GraphRun run(g, {{"s", rows}});
  int seed = 1;
  for (ValueId v : g.inputs) run.FillInput(v, seed++);
  Policy policy;
  if (!cube) policy.disabled = {"cube"};
  EXPECT_EQ(CubeSupports(g, WholeGraph(g), soc, policy), cube);
  run.Run(WholeGraph(g), soc, policy, 2);
  return run.Values(g.outputs[0]);
}

void ExpectSame(const std::string& text) {
  for (int64_t rows : {1, 4, 5, 40}) {
    const std::vector<float> want = Run(text, rows, false, VectorSoc(64));
    for (int bytes : {32, 64}) {
      const std::vector<float> got = Run(text, rows, true, VectorSoc(bytes));
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-3 * (1 + std::abs(want[i]))) << rows << " rows, " << i;
    }
  }
}

TEST(PackedWeights, UnknownManyRows) {
  const std::string zeros[] = {"", ", %z", ", %f"};
  for (int64_t n : {5, 32, 47, 80}) {
    for (const auto& [bits, bytes] : {std::pair{2, 16}, {4, 32}, {8, 64}}) {
      for (const std::string& zero : zeros) {
        const int64_t groups = (n + 15) / 16;
        ExpectSame(fmt::format(
            "graph g(%x: f32[s,64], %b: u8[{0},{1},16], %q: f32[{0},4,16], %z: u8[{0},4,16], %f: "
            "f32[{0},4,16], %c: f32[{2}]) -> (%y) {{ %d = ge.MatMulNBits(%x, %b, %q{3}) {{N={2}, "
            "bits={4}}} %y = Add(%d, %c) }}",
            groups, bytes, n, zero, bits));
      }
    }
  }
}

}  // namespace
}  // namespace ge
