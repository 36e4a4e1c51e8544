// Integer dots of the cube engine against the general path (policy with cube disabled), through the
// interpreter: u8 and i8, zero points, ragged depths and columns, pads, strides, blocked inputs
// with the zero point in the halo. Integers, so equal to the bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "ir/opdef.h"
#include "lower/cube.h"
#include "lower/region_fixture.h"

namespace ge {
namespace {

SocSpec Soc(int vector_bytes, bool vnni, bool amx = false) {
  SocSpec soc = VectorSoc(vector_bytes);
  soc.vnni = vnni;
  soc.amx = amx;
  return soc;
}

// Weights are bytes over the whole range.
void MakeWeights(Graph& g) {
  ge::MakeWeights(g, [](DType, std::byte* data, int64_t i) {
    data[i] = static_cast<std::byte>(i * 151 + i / 7);
  });
}

// Bytes in logical order over the whole range; the border holds the halo's fill.
void FillBytes(GraphRun& run, ValueId v) {
  const Value& value = run.g.value(v);
  run.Buffer(v);
  auto& bytes = run.storage[v];
  const int64_t fill = value.halo.empty() ? 0 : value.halo[0].fill;
  std::memset(bytes.data(), static_cast<int>(fill & 0xff), bytes.size() - 64);
  int64_t i = 0;
  for (const auto& idx : run.Indices(v)) {
    std::vector<Expr> index(idx.begin(), idx.end());
    bytes[run.Size(run.ViewOf(v).Offset(index))] = static_cast<std::byte>(i++ * 89 + 5);
  }
}

std::vector<int32_t> Results(const Graph& g, bool cube, const SocSpec& soc,
                             const Policy& given = {}) {
  GraphRun run(g);
  for (ValueId v : g.inputs) FillBytes(run, v);
  Policy policy = given;
  if (!cube) policy.disabled = {"cube"};
  EXPECT_EQ(CubeSupports(g, WholeGraph(g), soc, policy), cube);
  run.Run(WholeGraph(g), soc, policy, cube ? 3 : 1);
  const ValueId y = g.outputs[0];
  std::vector<int32_t> out;
  for (const auto& idx : run.Indices(y)) {
    std::vector<Expr> index(idx.begin(), idx.end());
    out.push_back(static_cast<int32_t*>(run.Buffer(y))[run.Size(run.ViewOf(y).Offset(index))]);
  }
  return out;
}

void ExpectSame(const std::string& text, const std::function<void(Graph&)>& change = {}) {
  auto parsed = ParseGraph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  Graph& g = **parsed;
  MakeWeights(g);
  const std::vector<int32_t> want = Results(g, false, Soc(64, true));
  if (change) change(g);
  for (const SocSpec& soc : {Soc(64, true), Soc(64, false), Soc(32, false), Soc(64, true, true)})
    EXPECT_EQ(Results(g, true, soc), want) << text;
}

// What a user or tuning chooses: it is done, the numbers are the same, and what cannot be is said.
TEST(CubeBytes, Choices) {
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {"graph g(%x: u8[61,48], %w: i8[48,40]) -> (%y) { %y = MatMulInteger(%x, %w) }",
       {"7x2", "13x1 rows=26 order=mn", "rows=10 order=nm", "3x2 rows=61"}},
      {"graph g(%x: u8[2,16,9,11], %w: i8[40,16,3,3]) -> (%y) { %y = ConvInteger(%x, %w) "
       "{pads=[1,1,1,1]} }",
       {"5x2", "5x1 rows=2", "rows=9 order=mn"}},
      {"graph g(%x: u8[1,96,7,5], %w: i8[40,96,3,3]) -> (%y) { %y = ConvInteger(%x, %w) "
       "{pads=[1,1,1,1]} }",
       {"5x2", "10x1 rows=4", "15x1 rows=7 order=mn"}}};
  for (const auto& [text, choices] : cases) {
    auto g = std::move(ParseGraph(text)).value();
    MakeWeights(*g);
    const std::vector<int32_t> want = Results(*g, false, Soc(64, true));
    const std::string node = g->node(WholeGraph(*g).anchor).name;
    for (const SocSpec& soc : {Soc(64, true), Soc(64, false), Soc(64, true, true)}) {
      const auto with = [&](const std::string& fields) {
        Policy policy;
        policy.tiles[node] = *ParseDotChoice(fields);
        return policy;
      };
      const auto same = [&](const std::string& fields) {
        const Lowered lowered = LowerCube(*g, WholeGraph(*g), soc, with(fields));
        EXPECT_TRUE(lowered.faults.empty()) << lowered.faults[0];
        const std::string done = ToString(lowered.kernels.back().chosen) + " ";
        std::istringstream words(fields);
        for (std::string word; words >> word;)
          EXPECT_NE(done.find(word + " "), std::string::npos) << done << " of " << fields;
        EXPECT_EQ(Results(*g, true, soc, with(fields)), want) << fields;
      };
      for (const char* fields : choices) same(fields);
      const Lowered by_model = LowerCube(*g, WholeGraph(*g), soc, Policy{});
      EXPECT_TRUE(soc.amx || !by_model.kernels.back().others.empty());
      for (const DotChoice& other : by_model.kernels.back().others) same(ToString(other));
      for (const char* wrong : {"70x9", "rows=62", "k=16", "pack=a", "winograd"})
        EXPECT_EQ(LowerCube(*g, WholeGraph(*g), soc, with(wrong)).faults.size(), 1) << wrong;
    }
  }
}

TEST(CubeBytes, MatMul) {
  for (const char* k : {"8", "13"}) {
    const std::string ks = k;
    ExpectSame("graph g(%x: u8[17," + ks + "], %w: i8[" + ks +
               ",35]) -> (%y) {"
               " %z = const u8[] {7} %y = MatMulInteger(%x, %w, %z) }");
    ExpectSame("graph g(%x: i8[2,3," + ks + "], %w: i8[" + ks +
               ",16]) -> (%y) {"
               " %z = const i8[] {-9} %y = MatMulInteger(%x, %w, %z) }");
    ExpectSame("graph g(%x: i8[1," + ks + "], %w: i8[" + ks +
               ",40]) -> (%y) {"
               " %y = MatMulInteger(%x, %w) }");
    ExpectSame("graph g(%x: u8[5," + ks + "], %w: u8[" + ks +
               ",20], %z: u8[1]) -> (%y) {"
               " %b = const u8[] {128} %y = MatMulInteger(%x, %w, %z, %b) }");
  }
}

TEST(CubeBytes, ConvCopiesItsInput) {
  ExpectSame(
      "graph g(%x: u8[2,3,9,11], %w: i8[20,3,3,3]) -> (%y) { %z = const u8[] {200}"
      " %y = ConvInteger(%x, %w, %z) {pads=[1,1,1,1], strides=[2,2]} }");
  ExpectSame(
      "graph g(%x: i8[1,20,6,7], %w: u8[5,20,3,2]) -> (%y) { %z = const i8[] {-3}"
      " %b = const u8[5] {128, 128, 128, 128, 128}"
      " %y = ConvInteger(%x, %w, %z, %b) {pads=[1,0,1,1], dilations=[1,2]} }");
  ExpectSame(
      "graph g(%x: u8[1,5,12], %w: i8[9,5,3]) -> (%y) {"
      " %y = ConvInteger(%x, %w) {pads=[1,1]} }");
  ExpectSame(
      "graph g(%x: u8[1,3,11,13], %w: u8[20,3,7,7]) -> (%y) { %z = const u8[] {9}"
      " %y = ConvInteger(%x, %w, %z) {pads=[3,3,3,3], strides=[2,2]} }");
  // tiles of several lines
  ExpectSame("graph g(%x: i8[2,96,7,7], %w: i8[40,96,3,3]) -> (%y) { %y = ConvInteger(%x, %w) }");
  ExpectSame("graph g(%x: i8[2,1,9,8], %w: i8[16,1,5,5]) -> (%y) { %y = ConvInteger(%x, %w) }");
}

TEST(CubeBytes, ConvReadsBlockedInputWithItsZeroPointInTheHalo) {
  int channels = 16;  // of a block of the input
  auto block = [&](Graph& g) {
    g.value(g.inputs[0]).type.layout = Nc1hwc0(4, channels);
    g.value(g.inputs[0]).halo = {{2, 1, 1, 77}, {3, 1, 1, 77}};
    g.value(g.outputs[0]).type.layout = Nc1hwc0(4, 16);
  };
  ExpectSame(
      "graph g(%x: u8[1,32,6,5], %w: i8[48,32,3,3]) -> (%y) { %z = const u8[] {77}"
      " %y = ConvInteger(%x, %w, %z) {pads=[1,1,1,1]} }",
      block);
  ExpectSame(
      "graph g(%x: u8[1,32,6,5], %w: i8[16,32,1,1]) -> (%y) { %z = const u8[] {77}"
      " %y = ConvInteger(%x, %w, %z) }",
      block);
  channels = 64;
  ExpectSame(
      "graph g(%x: i8[1,96,9,5], %w: i8[40,96,3,3]) -> (%y) { %z = const i8[] {77}"
      " %y = ConvInteger(%x, %w, %z) {pads=[1,1,1,1]} }",
      block);
}

TEST(CubeBytes, ColumnImages) {
  ExpectSame(
      "graph g(%x: u8[2,20,17,1], %w: i8[9,20,3,1]) -> (%y) { %z = const u8[] {200}"
      " %y = ConvInteger(%x, %w, %z) {pads=[1,0,1,0]} }");
}

// A halo with another fill is no place to read pads from.
TEST(CubeBytes, ConvCopiesAnInputWithAnotherFill) {
  ExpectSame(
      "graph g(%x: u8[1,32,6,5], %w: i8[48,32,3,3]) -> (%y) { %z = const u8[] {77}"
      " %y = ConvInteger(%x, %w, %z) {pads=[1,1,1,1]} }",
      [](Graph& g) {
        g.value(g.inputs[0]).type.layout = Nc1hwc0(4, 16);
        g.value(g.inputs[0]).halo = {{2, 1, 1, 3}, {3, 1, 1, 3}};
      });
}

// B less its zero point needs nine bits: it is the sum of two or three matrices of bytes.
TEST(CubeBytes, WeightsBeyondBytes) {
  for (const char* zero : {"3", "255"})
    ExpectSame(
        fmt::format("graph g(%x: u8[5,13], %w: u8[13,35], %z: u8[1]) -> (%y) {{"
                    " %b = const u8[] {{{}}} %y = MatMulInteger(%x, %w, %z, %b) }}",
                    zero));
  ExpectSame(
      "graph g(%x: i8[1,20,6,7], %w: i8[18,20,3,2]) -> (%y) { %z = const i8[] {-3}"
      " %b = const i8[] {-128} %y = ConvInteger(%x, %w, %z, %b) {pads=[1,0,1,1]} }");
  ExpectSame(
      "graph g(%x: u8[1,3,6,7], %w: u8[18,3,3,3]) -> (%y) {"
      " %y = ConvInteger(%x, %w) {pads=[1,1,1,1]} }");
}

// As dynamic quantisation makes it: the zero point, and so what pads count as, comes with the
// values.
TEST(CubeBytes, ConvWithAZeroPointKnownAtRunTime) {
  const auto block = [](Graph& g) {
    g.value(g.inputs[0]).type.layout = Nc1hwc0(4, 16);
    g.value(g.inputs[0]).halo = {{2, 1, 1, 0}, {3, 1, 1, 0}};
  };
  ExpectSame(
      "graph g(%x: u8[1,32,6,5], %w: i8[48,32,3,3], %z: u8[1]) -> (%y) {"
      " %y = ConvInteger(%x, %w, %z) {pads=[1,1,1,1]} }",
      block);
  ExpectSame(
      "graph g(%x: u8[1,32,6,5], %w: i8[48,32,1,1], %z: u8[1]) -> (%y) {"
      " %y = ConvInteger(%x, %w, %z) }",
      block);
  ExpectSame(
      "graph g(%x: i8[2,3,9], %w: u8[20,3,3], %z: i8[]) -> (%y) { %b = const u8[] {121}"
      " %y = ConvInteger(%x, %w, %z, %b) {pads=[1,1], strides=[2]} }");
}

// One constant scale: clamped first, then divided; equal to the formula for all numbers around the
// ties, at the ends and beyond.
TEST(Quantize, ByOneConstantScale) {
  for (const char* scale : {"0.0247", "0.003921569", "0.5", "3.7"})
    for (int zero : {0, 128, 255}) {
      auto parsed = ParseGraph(fmt::format(
          "graph g(%x: f32[2313]) -> (%y) {{ %s = const f32[] {{{}}} %z = const u8[] {{{}}}"
          " %y = QuantizeLinear(%x, %s, %z) }}",
          scale, zero));
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      const Graph& g = **parsed;
      const float s = std::stof(scale);
      GraphRun run(g);
      float* x = static_cast<float*>(run.Buffer(g.inputs[0]));
      for (int tie = 0; tie < 257; ++tie)
        for (int i = 0; i < 9; ++i) {
          float& at = x[tie * 9 + i];
          at = static_cast<float>(tie - zero - 0.5) * s;
          for (int step = 4; step < i; ++step) at = std::nextafter(at, 1e30f);
          for (int step = i; step < 4; ++step) at = std::nextafter(at, -1e30f);
        }
      x[0] = 1e30f, x[1] = -1e30f, x[2] = std::numeric_limits<float>::infinity(), x[3] = -x[2];
      run.Run(WholeGraph(g), Soc(64, true), {});
      const auto* y = static_cast<const uint8_t*>(run.Buffer(g.outputs[0]));
      for (int i = 0; i < 2313; ++i) {
        const float want =
            std::min(std::max(std::rint(x[i] / s) + static_cast<float>(zero), 0.0f), 255.0f);
        ASSERT_EQ(y[i], static_cast<uint8_t>(want)) << x[i] << " by " << s << " zero " << zero;
      }
    }
}

}  // namespace
}  // namespace ge
