// The cube engine against the general path (policy with cube disabled), through the interpreter:
// operands of every kind, sizes around the tiles, layouts and halos. Inputs are small exact
// numbers, so results are equal bit for bit.
#include "lower/cube.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "abi/convert.h"
#include "ir/opdef.h"
#include "lower/region_fixture.h"

namespace ge {
namespace {

SocSpec Soc(int vector_bytes, bool amx = false) {
  SocSpec soc = VectorSoc(vector_bytes);
  soc.amx = amx;
  soc.bf16 = vector_bytes == 64;
  return soc;
}

// Weights are small exact numbers.
void MakeWeights(Graph& g) {
  ge::MakeWeights(g, [](DType type, std::byte* data, int64_t i) {
    StoreElement<float>(type, data, i, static_cast<float>(i * 13 % 29 - 14) / 8);
  });
}

void ExpectNear(const std::string& text, const std::map<std::string, int64_t>& symbols,
                float tolerance, const std::function<void(Graph&)>& change = {}) {
  auto parsed = ParseGraph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  Graph& g = **parsed;
  MakeWeights(g);
  GraphRun plain(g, symbols);
  Policy general;
  general.disabled = {"cube"};
  int seed = 1;
  for (ValueId v : g.inputs) plain.FillInput(v, seed++);
  plain.Run(WholeGraph(g), Soc(64), general);
  std::vector<std::vector<float>> want;
  for (ValueId v : g.outputs) want.push_back(plain.Values(v));
  if (change) change(g);
  for (const SocSpec& soc : {Soc(32), Soc(64), Soc(64, true)}) {
    Region region = WholeGraph(g);
    ASSERT_TRUE(CubeSupports(g, region, soc, Policy{})) << text;
    GraphRun run(g, symbols);
    seed = 1;
    for (ValueId v : g.inputs) run.FillInput(v, seed++);
    Policy direct;
    direct.conv_tolerance = 0;
    run.Run(region, soc, direct, 3);
    for (size_t o = 0; o < g.outputs.size(); ++o) {
      std::vector<float> got = run.Values(g.outputs[o]);
      ASSERT_EQ(got.size(), want[o].size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], want[o][i], tolerance) << text << " element " << i << " of output " << o
                                                   << ", " << soc.vector_bytes << " bytes";
      }
      run.ExpectZeroBorders(g.outputs[o]);
    }
  }
}

void ExpectSame(const std::string& text, const std::map<std::string, int64_t>& symbols = {},
                const std::function<void(Graph&)>& change = {}) {
  ExpectNear(text, symbols, 0, change);
}

TEST(CubeMatMul, ConstantWeightsOfManySizes) {
  for (const char* sizes : {"1 5 7", "3 40 33", "16 16 64", "29 3 48", "50 24 100"}) {
    int m, k, n;
    sscanf(sizes, "%d %d %d", &m, &k, &n);
    ExpectSame("graph g(%x: f32[" + std::to_string(m) + "," + std::to_string(k) + "], %w: f32[" +
               std::to_string(k) + "," + std::to_string(n) + "], %b: f32[" + std::to_string(n) +
               "]) -> (%z) { %y = MatMul(%x, %w) %a = Add(%y, %b) %z = Relu(%a) }");
  }
}

TEST(CubeMatMul, BatchAndRowsAreOneAxis) {
  ExpectSame(
      "graph g(%x: f32[2,9,20], %w: f32[20,32], %r: f32[2,9,32]) -> (%z) { %y = MatMul(%x, %w) %z "
      "= Add(%y, %r) }");
  ExpectSame(
      "graph g(%x: f32[b,s,20], %w: f32[20,40], %r: f32[b,s,40]) -> (%z) { %y = MatMul(%x, %w) %z "
      "= Add(%y, %r) }",
      {{"b", 3}, {"s", 11}});
}

TEST(CubeMatMul, SymbolicRowsOfEveryRemainder) {
  for (int64_t m = 1; m <= 20; ++m) {
    ExpectSame("graph g(%x: f32[m,12], %w: f32[12,64]) -> (%y) { %y = MatMul(%x, %w) }",
               {{"m", m}});
  }
}

// Chunks of equal sizes, none of them empty.
TEST(CubeMatMul, SymbolicRowsOfManyChunks) {
  for (int m : {0, 511, 513, 600, 1025, 1100}) {
    ExpectSame("graph g(%x: f32[m,3], %w: f32[3,64]) -> (%y) { %y = MatMul(%x, %w) }", {{"m", m}});
  }
  ExpectSame("graph g(%x: f32[m,9000], %w: f32[9000,16]) -> (%y) { %y = MatMul(%x, %w) }",
             {{"m", 67}});
}

TEST(CubeMatMul, BatchedWithoutConstants) {
  ExpectSame("graph g(%x: f32[2,3,17,8], %k: f32[2,3,8,32]) -> (%y) { %y = MatMul(%x, %k) }");
  ExpectSame("graph g(%x: f32[2,3,17,8], %k: f32[2,3,8,19]) -> (%y) { %y = MatMul(%x, %k) }");
  ExpectSame("graph g(%x: f32[2,3,5,8], %k: f32[3,8,s]) -> (%y) { %y = MatMul(%x, %k) }",
             {{"s", 21}});
}

TEST(CubeMatMul, AttentionReadsHeadsInPlace) {
  ExpectSame(
      "graph g(%x: f32[2,7,24], %k: f32[2,7,24], %s: i64[4] elems[2,7,3,8]) -> (%y) {"
      " %a = Reshape(%x, %s) %q = Transpose(%a) {perm=[0,2,1,3]}"
      " %t = Reshape(%k, %s) %kt = Transpose(%t) {perm=[0,2,3,1]}"
      " %y = MatMul(%q, %kt) }");
}

TEST(CubeGemm, TransposedWithAlphaAndBeta) {
  ExpectSame(
      "graph g(%x: f32[6,10], %w: f32[33,10], %c: f32[33]) -> (%y) { %y = Gemm(%x, %w, %c) "
      "{transB=1, alpha=0.5, beta=2.0} }");
  ExpectSame(
      "graph g(%x: f32[10,6], %w: f32[10,33], %c: f32[6,1]) -> (%y) { %y = Gemm(%x, %w, %c) "
      "{transA=1} }");
  // Packed along k, with columns that fill no panel.
  ExpectSame("graph g(%x: f32[6,21], %k: f32[37,21]) -> (%y) { %y = Gemm(%x, %k) {transB=1} }");
  ExpectSame("graph g(%x: f32[6,40], %k: f32[n,40]) -> (%y) { %y = Gemm(%x, %k) {transB=1} }",
             {{"n", 35}});
}

// A user's choice for the anchor is what is done, and the result stays the same.
Lowered LowerWith(Graph& g, const std::string& fields, const SocSpec& soc, Policy* policy) {
  DotChoice choice = *ParseDotChoice(fields);
  choice.where = "tiles.txt line 1";
  const Region region = WholeGraph(g);
  policy->tiles[g.node(region.anchor).name] = choice;
  return LowerCube(g, region, soc, *policy);
}

void ExpectChoice(const std::string& text, const std::string& fields,
                  const std::function<void(Graph&)>& change = {}) {
  auto parsed = ParseGraph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  Graph& g = **parsed;
  MakeWeights(g);
  if (change) change(g);
  std::vector<float> results[2];
  for (int chosen = 0; chosen < 2; ++chosen) {
    Policy policy;
    policy.conv_tolerance = 0;
    if (chosen == 1) {
      const Lowered lowered = LowerWith(g, fields, Soc(64), &policy);
      EXPECT_TRUE(lowered.faults.empty()) << lowered.faults[0];
      std::string done;
      for (const LoweredKernel& k : lowered.kernels) done += ToString(k.chosen) + " ";
      std::istringstream words(fields);
      for (std::string word; words >> word;)
        EXPECT_NE(done.find(word + " "), std::string::npos) << done;
    }
    GraphRun run(g, {});
    int seed = 1;
    for (ValueId v : g.inputs) run.FillInput(v, seed++);
    run.Run(WholeGraph(g), Soc(64), policy, 3);
    results[chosen] = run.Values(g.outputs[0]);
  }
  EXPECT_EQ(results[0], results[1]) << fields;
}

TEST(CubeChoice, MatMul) {
  const std::string text =
      "graph g(%x: f32[29,50], %w: f32[50,48], %b: f32[48]) -> (%z) { %y = MatMul(%x, %w) %a = "
      "Add(%y, %b) %z = Relu(%a) }";
  for (const char* fields :
       {"7x2", "7x2 rows=3", "5x1 rows=29 order=mn", "4x3 rows=10 order=nm k=16", "k=49 rows=8",
        "6x2 k=7 order=mn", "pack=a", "k=24 pack=a rows=28 3x1"})
    ExpectChoice(text, fields);
  const std::string factors =
      "graph g(%x: f32[3,9,20], %k: f32[3,20,32]) -> (%y) { %y = MatMul(%x, %k) }";
  for (const char* fields : {"pack=b", "pack=ab 4x1 k=8", "rows=4 order=mn 3x2", "k=5"})
    ExpectChoice(factors, fields);
}

TEST(CubeChoice, NamesWhatCannotBe) {
  auto g = ParseGraph("graph g(%x: f32[29,50], %w: f32[50,48]) -> (%y) { %y = MatMul(%x, %w) }");
  MakeWeights(**g);
  for (const auto& [fields, text] :
       std::map<std::string, std::string>{{"40x9", "it takes 370 of 32 vector registers"},
                                          {"rows=30", "there are 29"},
                                          {"k=51", "a block is a part of 50"},
                                          {"winograd", "it is no convolution"},
                                          {"pack=b", "always packed"}}) {
    Policy policy;
    const Lowered lowered = LowerWith(**g, fields, Soc(64), &policy);
    ASSERT_EQ(lowered.faults.size(), 1) << fields;
    EXPECT_THAT(lowered.faults[0], testing::HasSubstr(text));
    EXPECT_THAT(lowered.faults[0], testing::StartsWith("tiles.txt line 1: "));
    // A problem's choice may come from another chip: said, and passed over.
    Policy other;
    other.tiles[lowered.kernels.back().problem] = *ParseDotChoice(fields);
    const Lowered passed = LowerCube(**g, WholeGraph(**g), Soc(64), other);
    EXPECT_TRUE(passed.faults.empty());
    EXPECT_EQ(passed.notes.size(), 1);
  }
  for (const char* wrong :
       {"", "13x", "x2", "0x1", "rows=0", "rows=a", "order=ab", "pack=c", "k=-1", "fast"})
    EXPECT_FALSE(ParseDotChoice(wrong).ok()) << wrong;
}

// What tuning tries fits the chip, is no two times the same, and is what it says.
TEST(CubeChoice, OthersFit) {
  auto g = ParseGraph("graph g(%x: f32[128,768], %w: f32[768,96]) -> (%y) { %y = MatMul(%x, %w) }");
  MakeWeights(**g);
  const std::vector<DotChoice> others =
      LowerCube(**g, WholeGraph(**g), Soc(64), Policy{}).kernels.back().others;
  ASSERT_GE(others.size(), 3);
  for (const DotChoice& c : others) {
    EXPECT_LE(c.m * c.nv + c.nv + 1, 32) << ToString(c);
    EXPECT_EQ(std::count(others.begin(), others.end(), c), 1) << ToString(c);
    Policy policy;
    const Lowered lowered = LowerWith(**g, ToString(c), Soc(64), &policy);
    EXPECT_TRUE(lowered.faults.empty()) << ToString(c);
    EXPECT_EQ(ToString(lowered.kernels.back().chosen), ToString(c));
  }
}

// The same graph with the convolution's input and outputs blocked by 16, and halos.
std::function<void(Graph&)> Blocked(int64_t halo_in, int64_t halo_out) {
  return [=](Graph& g) {
    auto block = [&](ValueId v, int64_t halo) {
      Value& value = g.value(v);
      if (value.type.rank() != 4) return;
      value.type.layout = Nc1hwc0(4, 16);
      if (halo) value.halo = {{2, halo, halo}, {3, halo, halo}};
    };
    for (ValueId v : g.inputs) block(v, halo_in);
    for (ValueId v : g.outputs) block(v, halo_out);
  };
}

std::string Conv(int c, int o, int h, int w, int k, const std::string& attrs, int group = 1) {
  return "graph g(%x: f32[2," + std::to_string(c) + "," + std::to_string(h) + "," +
         std::to_string(w) + "], %w: f32[" + std::to_string(o) + "," + std::to_string(c / group) +
         "," + std::to_string(k) + "," + std::to_string(k) + "], %bias: f32[" + std::to_string(o) +
         "]) -> (%z) { %y = Conv(%x, %w, %bias) {" + attrs + "} %z = Relu(%y) }";
}

TEST(CubeConv, NdInputIsCopiedWithItsBorder) {
  ExpectSame(Conv(3, 20, 9, 11, 3, "pads=[1,1,1,1]"));
  ExpectSame(Conv(3, 16, 14, 10, 7, "pads=[3,3,3,3], strides=[2,2]"));
  ExpectSame(Conv(20, 33, 6, 7, 3, "pads=[1,0,1,2], dilations=[2,1]"));
  ExpectSame(Conv(40, 24, 5, 5, 1, "strides=[2,2]"));
}

TEST(CubeConv, PadsBelowZeroCutTheInput) {
  for (const char* pads : {"pads=[-1,-2,0,-1]", "pads=[-2,1,1,-3]", "pads=[1,-1,-1,2]"}) {
    ExpectSame(Conv(3, 20, 9, 11, 3, pads));
    ExpectSame(Conv(20, 33, 9, 10, 3, pads));
    ExpectSame(Conv(32, 24, 9, 10, 3, pads), {}, Blocked(1, 1));
    ExpectSame(Conv(1, 40, 9, 10, 3, pads));
  }
  ExpectSame(
      "graph g(%x: f32[2,1,n], %w: f32[17,1,9]) -> (%y) { %y = Conv(%x, %w) {pads=[-7,-6], "
      "strides=[4]} }",
      {{"n", 61}});
}

TEST(CubeConv, BlockedInputAndOutput) {
  ExpectSame(Conv(32, 48, 9, 16, 3, "pads=[1,1,1,1]"), {}, Blocked(1, 0));
  ExpectSame(Conv(32, 24, 7, 7, 3, "pads=[1,1,1,1]"), {}, Blocked(1, 1));
  ExpectSame(Conv(24, 64, 8, 8, 1, ""), {}, Blocked(0, 0));
  ExpectSame(Conv(24, 64, 8, 8, 1, ""), {}, Blocked(1, 1));
  ExpectSame(Conv(16, 32, 12, 12, 3, "pads=[1,1,1,1], strides=[2,2]"), {}, Blocked(2, 0));
  ExpectSame(Conv(16, 32, 12, 12, 3, "pads=[1,1,1,1]"), {}, Blocked(0, 0));
}

TEST(CubeConv, DepthwiseAndGroups) {
  ExpectSame(Conv(32, 32, 9, 7, 3, "pads=[1,1,1,1], group=32", 32), {}, Blocked(1, 0));
  ExpectSame(Conv(24, 24, 9, 7, 3, "pads=[1,1,1,1], strides=[2,2], group=24", 24), {},
             Blocked(1, 1));
  ExpectSame(Conv(10, 10, 6, 7, 5, "pads=[2,2,2,2], group=10", 10));
  ExpectSame(Conv(64, 32, 5, 6, 3, "pads=[1,1,1,1], group=2", 2), {}, Blocked(1, 0));
}

// Large results of rank 3 in ND are turned by a kernel of their own.
TEST(CubeConv, RowsAreTurned) {
  for (auto [c, o, group, k] : {std::tuple{20, 40, 1, 3},
                                {16, 33, 1, 4},
                                {48, 48, 48, 5},
                                {32, 64, 4, 1},
                                {3, 50, 1, 10}}) {
    auto text = [&, c = c, o = o, group = group, k = k](const std::string& n) {
      return fmt::format(
          "graph g(%x: f32[2,{0},{4}], %w: f32[{1},{5},{3}], %wb: f32[{1}], %r: f32[2,{1},{4}]) -> "
          "(%y, %z) {{ %y = Conv(%x, %w, %wb) {{group={2}, auto_pad=\"SAME_UPPER\"}} %a = Add(%y, "
          "%r) %z = Relu(%a) }}",
          c, o, group, k, n, c / group);
    };
    ExpectSame(text("133"));
    ExpectSame(text("n"), {{"n", 37}});
  }
}

// Groups of few channels are computed together; their outputs may fill no vector.
TEST(CubeConv, SmallGroups) {
  for (auto [c, o, group] : {std::tuple{32, 32, 8},
                             {32, 64, 16},
                             {48, 24, 4},
                             {32, 48, 2},
                             {32, 96, 32},
                             {12, 18, 6},
                             {10, 20, 10},
                             {80, 40, 5}}) {
    const std::string attrs = fmt::format("pads=[1,1,1,1], group={}", group);
    ExpectSame(Conv(c, o, 6, 9, 3, attrs + ", strides=[2,1]", group), {}, Blocked(1, 0));
    ExpectSame(Conv(c, o, 7, 5, 3, attrs, group), {}, Blocked(1, 1));
    ExpectSame(Conv(c, o, 5, 8, 3, attrs + ", dilations=[1,2]", group));
    ExpectSame(
        fmt::format("graph g(%x: f32[2,{},11], %w: f32[{},{},4]) -> (%y) {{ %y = Conv(%x, %w) "
                    "{{group={}, strides=[2]}} }}",
                    c, o, c / group, group));
  }
}

// Without a halo: windows cut at one edge, at both, or wholly outside; sizes known and not.
TEST(CubeConv, DepthwiseCutsItsWindows) {
  for (const char* attrs : {"pads=[2,2,2,2]", "pads=[2,1,2,3], strides=[2,1]",
                            "pads=[4,4,4,4], dilations=[2,2]", "pads=[1,2,2,0], strides=[2,2]",
                            "pads=[6,0,5,6]", "pads=[2,2,2,2], strides=[3,2], dilations=[1,2]"}) {
    for (auto [h, w] : {std::pair{9, 14}, {3, 12}, {1, 5}, {7, 4}, {2, 1}, {4, 37}}) {
      for (int c : {16, 24}) {
        const std::string group = fmt::format("group={}, ", c) + attrs;
        auto text = [&](const std::string& hw) {
          return fmt::format(
              "graph g(%x: f32[2,{0},{1}], %w: f32[{0},1,5,5], %wb: f32[{0}]) -> (%z) {{ %y = "
              "Conv(%x, %w, %wb) {{{2}}} %z = Relu(%y) }}",
              c, hw, group);
        };
        if (!ParseGraph(text(fmt::format("{},{}", h, w))).ok()) continue;  // no room for a window
        ExpectSame(text(fmt::format("{},{}", h, w)), {}, Blocked(0, h % 2));
        ExpectSame(text("h,w"), {{"h", h}, {"w", w}}, Blocked(0, h % 2));
      }
    }
  }
}

TEST(CubeConv, ResidualAndSymbolicWidth) {
  const std::string text =
      "graph g(%x: f32[1,16,6,n], %w: f32[32,16,3,3], %r: f32[1,32,6,n]) -> (%z) {"
      " %y = Conv(%x, %w) {pads=[1,1,1,1]} %a = Add(%y, %r) %z = Relu(%a) }";
  for (int64_t n : {1, 5, 14, 33}) {
    ExpectSame(text, {{"n", n}});
    ExpectSame(text, {{"n", n}}, Blocked(1, 1));
  }
}

TEST(CubeConv, OneSpatialAxis) {
  ExpectSame(
      "graph g(%x: f32[2,20,30], %w: f32[17,20,3]) -> (%y) { %y = Conv(%x, %w) {pads=[1,1], "
      "strides=[2]} }");
}

// Images one pixel wide are turned: their columns are what tiles run along.
TEST(CubeConv, ColumnImages) {
  const std::string column =
      "graph g(%x: f32[2,32,37,1], %w: f32[40,32,5,1], %r: f32[2,40,19,1]) -> (%z) {"
      " %y = Conv(%x, %w) {pads=[2,0,2,0], strides=[2,1]} %z = Add(%y, %r) }";
  ExpectSame(column);
  ExpectSame(column, {}, Blocked(2, 1));
  ExpectSame(
      "graph g(%x: f32[1,3,n,1], %w: f32[20,3,3,1]) -> (%y) { %y = Conv(%x, %w) {pads=[1,0,1,0]} }",
      {{"n", 23}});
  ExpectSame(
      "graph g(%x: f32[1,16,n,1], %w: f32[16,16,1,1]) -> (%y) { %y = Conv(%x, %w) {strides=[3,1]} "
      "}",
      {{"n", 23}}, Blocked(0, 0));
}

// Kernels shorter and longer than the stride, cut outputs, few and many channels, symbolic sizes.
TEST(CubeConv, TransposedInPhases) {
  auto text = [](int c, int o, int kernel, const std::string& attrs, const std::string& hw) {
    return fmt::format(
        "graph g(%x: f32[2,{0},{4}], %w: f32[{0},{1},{2},{2}], %b: f32[{1}]) -> (%z) {{"
        " %y = ConvTranspose(%x, %w, %b) {{{3}}} %z = Relu(%y) }}",
        c, o, kernel, attrs, hw);
  };
  ExpectSame(text(20, 24, 2, "strides=[2,2]", "5,7"));
  ExpectSame(text(24, 16, 2, "strides=[2,2]", "5,7"), {}, Blocked(0, 1));
  ExpectSame(text(24, 1, 2, "strides=[2,2]", "4,9"));
  ExpectSame(text(24, 3, 4, "strides=[2,2], pads=[1,1,1,1]", "4,5"));
  ExpectSame(text(16, 20, 4, "strides=[2,2], pads=[1,1,1,1]", "4,5"), {}, Blocked(1, 0));
  ExpectSame(text(16, 8, 3, "strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]", "5,4"));
  ExpectSame(text(16, 9, 3, "strides=[4,3], output_padding=[1,0]", "3,4"));
  ExpectSame(text(8, 16, 3, "pads=[1,0,0,1]", "6,5"));
  for (int64_t n : {1, 6, 17}) ExpectSame(text(16, 8, 2, "strides=[2,2]", "3,n"), {{"n", n}});
  ExpectSame(
      "graph g(%x: f32[1,16,9], %w: f32[16,8,5]) -> (%y) { %y = ConvTranspose(%x, %w) {pads=[2,1], "
      "strides=[3]} }");
}

// A register tile takes several short lines where the weights lie beyond L1.
TEST(Cube, TilesOfSeveralLines) {
  ExpectSame(
      "graph g(%x: f32[2,40,7,7], %w: f32[24,40,3,3], %b: f32[24]) -> (%y) {"
      " %c = Conv(%x, %w, %b) {pads=[1,1,1,1]} %y = Relu(%c) }");
  ExpectSame(
      "graph g(%x: f32[1,80,9,12], %w: f32[18,80,2,4]) -> (%y) { %y = Conv(%x, %w) {"
      "strides=[2,3], dilations=[2,1]} }");
}

// bf16 factors, f32 results: read in pairs where the chip can, else widened.
TEST(Cube, PairsOfBf16) {
  for (const char* text :
       {"graph g(%x: bf16[1,32,7,7], %w: bf16[40,32,3,3]) -> (%y) {"
        " %y = ge.Conv(%x, %w) {pads=[1,1,1,1]} }",
        "graph g(%x: bf16[3,33,72], %w: bf16[72,50]) -> (%y) { %y = ge.MatMul(%x, %w) }",
        "graph g(%x: bf16[2,7,20], %w: bf16[20,40]) -> (%y) { %y = ge.MatMul(%x, %w) }",
        "graph g(%x: bf16[n,32], %w: bf16[48,32], %c: f32[48]) -> (%z) {"
        " %y = ge.Gemm(%x, %w, %c) {transB=1, alpha=0.5} %z = Relu(%y) }",
        "graph g(%x: bf16[1,32,9,8], %w: bf16[40,32,3,3], %c: f32[40]) -> (%y) {"
        " %y = ge.Conv(%x, %w, %c) {pads=[1,1,1,1], strides=[2,2]} }",
        "graph g(%x: bf16[2,20,6,7], %w: bf16[24,20,1,1]) -> (%y) { %y = ge.Conv(%x, %w) }",
        // short lines: several in a tile
        "graph g(%x: bf16[2,64,14,13], %w: bf16[40,64,3,3], %c: f32[40]) -> (%y) {"
        " %y = ge.Conv(%x, %w, %c) {pads=[1,1,1,1], strides=[2,2]} }",
        // few channels: rows of the window, whose last pair may be half empty
        "graph g(%x: bf16[2,3,9,11], %w: bf16[20,3,7,7]) -> (%y) {"
        " %y = ge.Conv(%x, %w) {pads=[3,3,3,3], strides=[2,2]} }",
        "graph g(%x: bf16[1,4,6,n], %w: bf16[16,4,3,3]) -> (%y) { %y = ge.Conv(%x, %w) }",
        "graph g(%x: bf16[1,1,12,9], %w: bf16[16,1,5,5], %c: f32[16]) -> (%y) {"
        " %y = ge.Conv(%x, %w, %c) {pads=[2,2,2,2], dilations=[2,1]} }",
        "graph g(%x: bf16[1,3,12,9], %w: bf16[16,3,3,3]) -> (%y) {"
        " %y = ge.Conv(%x, %w) {dilations=[1,2]} }"})
    ExpectSame(text, {{"n", 19}});
}

// Winograd against the direct form: strips and whole passes, ragged tiles, residual, halos on both
// sides, several images, channels that fill no block, a symbolic width (its value `w`).
struct WinogradCase {
  int n, c, o, h, w, halo_out;
  bool symbolic = false;
  int64_t l2_bytes = 1 << 20;
  int kh = 3, kw = 3;
  int cut = 0;  // pads are so much less than keeps the size
};
void ExpectWinogradClose(const WinogradCase& p) {
  std::string hw = fmt::format("{},{}", p.h, p.symbolic ? "w" : std::to_string(p.w));
  std::string out = p.cut ? fmt::format("{},{}", p.h - 2 * p.cut, p.w - 2 * p.cut) : hw;
  auto g = ParseGraph(
      fmt::format("graph g(%x: f32[{0},{1},{3}], %w: f32[{2},{1},{4},{5}], %wb: f32[{2}], %r: "
                  "f32[{0},{2},{8}]) -> (%z) {{ %y = Conv(%x, %w, %wb) {{pads=[{6},{7},{6},{7}]}} "
                  "%a = Add(%y, %r) %z = Relu(%a) }}",
                  p.n, p.c, p.o, hw, p.kh, p.kw, p.kh / 2 - p.cut, p.kw / 2 - p.cut, out));
  ASSERT_TRUE(g.ok()) << g.status().message();
  MakeWeights(**g);
  if (p.symbolic) {
    SymbolFacts facts;
    facts.lo = 1, facts.hint = p.kh * p.kw == 9 ? 40 : 160;
    (*g)->arena().Refine((*g)->value((*g)->inputs[0]).type.dims[3], facts);
  }
  Blocked(std::max(p.kh, p.kw) / 2, p.halo_out)(**g);
  std::vector<float> results[2];
  SocSpec soc = Soc(64);
  soc.l2_bytes = p.l2_bytes;
  for (int winograd = 0; winograd < 2; ++winograd) {
    Policy policy;
    policy.conv_tolerance = winograd ? 1e-4 : 0;
    GraphRun run(**g, p.symbolic ? std::map<std::string, int64_t>{{"w", p.w}}
                                 : std::map<std::string, int64_t>{});
    int seed = 1;
    for (ValueId v : (*g)->inputs) run.FillInput(v, seed++);
    Lowered lowered = LowerCube(**g, WholeGraph(**g), soc, policy);
    EXPECT_EQ(lowered.kernels[0].schedule.starts_with("winograd"), winograd == 1) << hw;
    EXPECT_EQ(lowered.kernels[0].schedule == "winograd input",
              winograd && p.kh * p.kw == 9 && p.l2_bytes < 1 << 20);
    EXPECT_EQ(lowered.kernels[0].schedule == "winograd row input", winograd && p.kh * p.kw != 9);
    run.Run(WholeGraph(**g), soc, policy, 3);
    run.ExpectZeroBorders((*g)->outputs[0]);
    results[winograd] = run.Values((*g)->outputs[0]);
  }
  double rms = 0, worst = 0;
  for (size_t i = 0; i < results[0].size(); ++i) {
    rms += static_cast<double>(results[0][i]) * static_cast<double>(results[0][i]);
    worst = std::max(
        worst, std::fabs(static_cast<double>(results[0][i]) - static_cast<double>(results[1][i])));
  }
  rms = std::sqrt(rms / static_cast<double>(results[0].size()));
  EXPECT_LT(worst, 1e-4 * rms);
}

TEST(CubeWinograd, CloseToDirect) {
  ExpectWinogradClose({1, 64, 64, 16, 16, 0});
  ExpectWinogradClose({1, 64, 64, 18, 15, 1});
  ExpectWinogradClose({2, 48, 40, 14, 13, 1});
  ExpectWinogradClose({1, 40, 24, 20, 37, 1});
  ExpectWinogradClose({1, 64, 64, 18, 15, 1, false, 64 << 10});
  ExpectWinogradClose({1, 64, 64, 18, 15, 1, false, 1 << 20, 3, 3, 3});
  for (int w : {3, 16, 50}) ExpectWinogradClose({1, 64, 24, 18, w, 1, true});
}

TEST(CubeChoice, Convolution) {
  const std::string text =
      "graph g(%x: f32[2,32,9,11], %w: f32[40,32,3,3], %b: f32[40]) -> (%z) { %y = Conv(%x, %w, "
      "%b) "
      "{pads=[1,1,1,1]} %z = Relu(%y) }";
  for (const char* fields :
       {"5x2", "5x2 rows=2", "11x1 rows=9 order=mn", "rows=4 order=mn", "3x3 order=nm"})
    ExpectChoice(text, fields, Blocked(1, 0));
  const std::string flat =
      "graph g(%x: f32[1,32,9,11], %w: f32[40,32,1,1]) -> (%y) { %y = Conv(%x, %w) }";
  for (const char* fields : {"7x2 rows=20 order=mn", "13x1 rows=99"})
    ExpectChoice(flat, fields, Blocked(0, 0));
}

TEST(CubeChoice, Depthwise) {
  const std::string text = Conv(32, 32, 9, 11, 3, "pads=[1,1,1,1], group=32", 32);
  for (const char* fields : {"2x1", "6x1 rows=3", "16x1 order=mn", "rows=9 order=nm"}) {
    ExpectChoice(text, fields, Blocked(1, 0));
    ExpectChoice(text, fields, Blocked(0, 0));
  }
  auto g = ParseGraph(text);
  MakeWeights(**g);
  Policy policy;
  ASSERT_EQ(LowerWith(**g, "17x1", Soc(64), &policy).faults.size(), 1);
  ASSERT_EQ(LowerWith(**g, "4x2", Soc(64), &policy).faults.size(), 1);
}

TEST(CubeChoice, FormOfAConvolution) {
  auto g = ParseGraph(
      "graph g(%x: f32[1,64,16,16], %w: f32[64,64,3,3]) -> (%y) { %y = Conv(%x, %w) "
      "{pads=[1,1,1,1]} }");
  MakeWeights(**g);
  for (const char* form : {"direct", "winograd"}) {
    Policy policy;
    const Lowered lowered = LowerWith(**g, form, Soc(64), &policy);
    EXPECT_TRUE(lowered.faults.empty());
    bool winograd = false;
    for (const LoweredKernel& k : lowered.kernels) winograd |= k.schedule.starts_with("winograd");
    EXPECT_EQ(winograd, form[0] == 'w');
    policy.conv_tolerance = 0;
    EXPECT_EQ(LowerCube(**g, WholeGraph(**g), Soc(64), policy).faults.size(), form[0] == 'w');
  }
}

// Windows of one row or column, in one group of tiles and in several.
TEST(CubeWinograd, RowsCloseToDirect) {
  auto row = [](WinogradCase p, int kh, int kw) {
    p.kh = kh, p.kw = kw;
    ExpectWinogradClose(p);
  };
  row({1, 64, 64, 1, 117, 0}, 1, 3);
  row({2, 64, 72, 2, 118, 1}, 1, 3);
  row({1, 72, 64, 2, 63, 1}, 1, 5);
  row({1, 64, 64, 61, 1, 0}, 5, 1);
  row({1, 128, 80, 1, 260, 0, false, 512 << 10}, 1, 5);
  for (int w : {3, 50, 130}) row({2, 64, 64, 1, w, 1, true}, 1, 3);
}

TEST(Cube, WhatItDoesNotTake) {
  auto g = ParseGraph("graph g(%x: i32[3,4], %k: i32[4,20]) -> (%y) { %y = MatMul(%x, %k) }");
  ASSERT_TRUE(g.ok());
  EXPECT_FALSE(CubeSupports(**g, WholeGraph(**g), Soc(64), Policy{}));
}

// Recurrent cells against plain sums: entries of the batch together, some left over, hidden sizes
// that fill no vector. Sums are taken in another order, so they are near.
TEST(CubeRecurrent, BatchesAndDirections) {
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    const int gates = op[0] == 'R' ? 1 : op[0] == 'G' ? 3 : 4;
    for (int batch : {1, 3, 13}) {
      for (int hidden : {5, 16, 36}) {
        for (const char* attrs : {"", "direction=\"bidirectional\", linear_before_reset=1"}) {
          const int dirs = attrs[0] ? 2 : 1;
          auto text = [&](const std::string& b) {
            return fmt::format(
                "graph g(%x: f32[3,{0},{1},{2}], %wr: f32[{1},{2},{3}], %b: f32[{1},{2}]) -> (%y, "
                "%h) {{ %y, %h = ge.{4}(%x, %wr, %b) {{{5}}} }}",
                b, dirs, gates * hidden, hidden, op, attrs);
          };
          ExpectNear(text(std::to_string(batch)), {}, 1e-5);
          ExpectNear(text("n"), {{"n", batch}}, 1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ge
