#include "fuse/fuse.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>

#include "fuse/growth.h"
#include "ir/opdef.h"
#include "ir/samples.h"
#include "lower/region_fixture.h"

namespace ge {
namespace {

using testing::ElementsAre;

std::unique_ptr<Graph> Parse(const std::string& text) {
  auto g = ParseGraph(text);
  EXPECT_TRUE(g.ok()) << g.status().message();
  return g.ok() ? std::move(*g) : nullptr;
}

SocSpec TestSoc() {
  SocSpec soc;
  soc.name = "test";
  soc.vector_bytes = 64;
  return soc;
}

Policy Level(int level) {
  Policy policy;
  policy.opt_level = level;
  return policy;
}

// "conv relu: x w -> r": nodes, inputs and outputs of each region by name.
std::vector<std::string> Text(const Graph& g, const std::vector<Region>& regions) {
  std::vector<std::string> lines;
  for (const Region& r : regions) {
    std::string line;
    for (NodeId n : r.nodes) line += g.node(n).op->name + " ";
    line += ":";
    for (ValueId v : r.inputs) line += " " + g.value(v).name;
    line += " ->";
    for (ValueId v : r.outputs) line += " " + g.value(v).name;
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> Regions(const std::string& text, int level) {
  auto g = Parse(text);
  return Text(*g, FormRegions(*g, TestSoc(), Level(level)).at(g.get()));
}

TEST(Fuse, AtLevelZeroEachNodeStandsAlone) {
  EXPECT_THAT(Regions(R"(graph g(%x: f32[4]) -> (%b) { %a = Relu(%x) %b = Exp(%a) })", 0),
              ElementsAre("Relu : x -> a", "Exp : a -> b"));
}

TEST(Fuse, PointwiseChainsAndTreesAreOneRegion) {
  EXPECT_THAT(Regions(R"(graph g(%x: f32[4], %y: f32[4]) -> (%c) {
    %a = Exp(%x) %b = Exp(%y) %c = Add(%a, %b) })",
                      1),
              ElementsAre("Exp Exp Add : x y -> c"));
}

TEST(Fuse, AnExtraOutputOfTheGraphIsStored) {
  EXPECT_THAT(Regions(R"(graph g(%x: f32[4]) -> (%a, %b) { %a = Relu(%x) %b = Exp(%a) })", 1),
              ElementsAre("Relu Exp : x -> a b"));
}

TEST(Fuse, ConsumersJoinTheLatestLoopNest) {
  EXPECT_THAT(Regions(R"(graph g(%x: f32[1,4,5,5], %w: f32[4,4,1,1]) -> (%r) {
    %p = Conv(%x, %w)
    %q = Conv(%x, %w)
    %s = Add(%p, %q)
    %r = Relu(%s) })",
                      1),
              ElementsAre("Conv : x w -> p", "Conv Add Relu : x w p -> r"));
}

// The residual of a quantised network is read as bytes, wherever its conversion stands.
TEST(Fuse, BytesBecomeFloatsWhereTheyAreRead) {
  const std::string
      head = R"(graph g(%x: f32[1,4,5,5], %w: f32[4,4,1,1], %s: f32[], %z: u8[]) -> (%r) {
    %p = Relu(%x)
    %q = QuantizeLinear(%p, %s, %z) )",
      dot = R"( %f = Cast(%q) {to=1} %c = Conv(%f, %w) )",
      floats = R"( %d = DequantizeLinear(%q, %s, %z) )",
      tail = R"( %a = Add(%c, %d) %r = Relu(%a) })";
  for (const std::string& text : {head + dot + floats + tail, head + floats + dot + tail}) {
    const std::vector<std::string> regions = Regions(text, 1);
    ASSERT_EQ(regions.size(), 2u) << regions[0];
    EXPECT_THAT(regions[0], testing::StartsWith("Relu QuantizeLinear Cast : x s z -> "));
    EXPECT_THAT(regions[0], testing::Not(testing::HasSubstr(" d")));
    EXPECT_THAT(regions[1], testing::HasSubstr("DequantizeLinear"));
    EXPECT_THAT(regions[1], testing::EndsWith("-> r"));
  }
}

// So are bytes that nothing else reads; where the reader makes them, nothing is stored.
TEST(Fuse, BytesOfOneReaderStayBytes) {
  EXPECT_THAT(
      Regions(R"(graph g(%x: f32[1,4,5,5], %w: f32[4,4,1,1], %s: f32[], %z: u8[]) -> (%r) {
    %p = Relu(%x) %q = QuantizeLinear(%p, %s, %z) %d = DequantizeLinear(%q, %s, %z)
    %c = Conv(%x, %w) %k = QuantizeLinear(%c, %s, %z) %e = DequantizeLinear(%k, %s, %z)
    %r = Add(%d, %e) })",
              1),
      ElementsAre("Relu QuantizeLinear : x s z -> q",
                  "DequantizeLinear Conv QuantizeLinear DequantizeLinear Add : q s z x w -> r"));
}

TEST(Fuse, NoCycleThroughANodeOutside) {
  // Add may not join the softmax of a: it would need m, which needs a's region.
  EXPECT_THAT(Regions(R"(graph g(%x: f32[4,4]) -> (%c) {
    %a = Softmax(%x)
    %m = MatMul(%a, %x)
    %c = Add(%a, %m) })",
                      1),
              ElementsAre("Softmax : x -> a", "MatMul Add : a x -> c"));
}

TEST(Fuse, CheapProducersGoIntoReductionsButNotIntoDots) {
  EXPECT_THAT(Regions(R"(graph g(%x: f32[4,4]) -> (%d) {
    %a = Relu(%x)
    %b = Softmax(%a)
    %c = Relu(%b)
    %d = MatMul(%c, %x) })",
                      1),
              ElementsAre("Relu Softmax Relu : x -> c", "MatMul : c x -> d"));
  EXPECT_THAT(Regions(R"(graph g(%x: f32[4,4]) -> (%d) {
    %a = Relu(%x)
    %t = Transpose(%x) {perm=[1,0]}
    %d = MatMul(%a, %t) })",
                      1),
              ElementsAre("Relu : x -> a", "Transpose MatMul : x a -> d"));
}

TEST(Fuse, AliasesStandAlone) {
  EXPECT_THAT(Regions(R"(graph g(%x: f32[4,4]) -> (%c) {
    %a = Relu(%x)
    %b = Flatten(%a)
    %c = Relu(%b) })",
                      1),
              ElementsAre("Relu : x -> a", "Flatten : a -> b", "Relu : b -> c"));
}

TEST(Fuse, FactsAreNotComputed) {
  EXPECT_THAT(Regions(R"(graph g(%x: f32[n,4]) -> (%c) {
    %s = Shape(%x)
    %c = Expand(%x, %s) })",
                      1),
              ElementsAre("Expand : x -> c"));
}

TEST(Fuse, LongChainsAreCutInNearLinearTime) {
  std::string text = "graph g(%v0: f32[8]) -> (%v20000) {\n";
  for (int i = 0; i < 20000; ++i) text += fmt::format("%v{} = Relu(%v{})\n", i + 1, i);
  auto g = Parse(text + "}");
  auto regions = FormRegions(*g, TestSoc(), Level(2)).at(g.get());
  EXPECT_EQ(regions.size(), (20000u + 63) / 64);
}

// Every float result of the graph, region by region.
std::vector<float> RunAll(const Graph& g, const RegionMap& regions,
                          const std::map<std::string, int64_t>& symbols,
                          const SocSpec& soc = TestSoc()) {
  GraphRun run(g, symbols);
  int seed = 1;
  for (ValueId v : g.inputs) run.FillInput(v, seed++);
  for (const Region& r : regions.at(&g)) run.Run(r, soc, Policy{});
  std::vector<float> all;
  for (ValueId v : g.outputs) {
    auto values = run.Values(v);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Fuse, FusedEqualsUnfused) {
  for (const char* text : {
           R"(graph g(%x: f32[2,n,6], %y: f32[n,6], %w: f32[6,6]) -> (%f, %e) {
             %a = Add(%x, %y)
             %b = Transpose(%a) {perm=[2,0,1]}
             %c = Relu(%b)
             %d = Softmax(%c)
             %e = MatMul(%a, %w)
             %g = Transpose(%d) {perm=[1,2,0]}
             %f = Mul(%e, %g) })",
           R"(graph g(%x: f32[2,4,n,6], %w: f32[4,4,3,3], %s: f32[4]) -> (%f) {
             %a = Conv(%x, %w, %s) {pads=[1,1,1,1]}
             %b = Sigmoid(%a)
             %c = Mul(%a, %b)
             %d = GlobalAveragePool(%c)
             %e = Mul(%c, %d)
             %f = Add(%e, %x) })",
           R"(graph g(%x: f32[2,4,6]) -> (%f, %d) {
             %a, %b = Split(%x) {axis=1, num_outputs=2}
             %c = Sigmoid(%b)
             %d = Mul(%a, %c)
             %e = Concat(%d, %x, %c) {axis=1}
             %f = Relu(%e) })",
       }) {
    auto g = Parse(text);
    std::map<std::string, int64_t> symbols = {{"n", 5}};
    auto dull = RunAll(*g, FormRegions(*g, TestSoc(), Level(0)), symbols);
    auto fused = RunAll(*g, FormRegions(*g, TestSoc(), Level(1)), symbols);
    EXPECT_EQ(dull, fused) << text;
    EXPECT_LT(FormRegions(*g, TestSoc(), Level(1)).at(g.get()).size(),
              FormRegions(*g, TestSoc(), Level(0)).at(g.get()).size());
  }
}

// Weights of a convolution in text: small numbers that repeat.
std::string Weights(int64_t m, int64_t c, int64_t k) {
  std::string text = fmt::format("const f32[{},{},{},{}] {{", m, c, k, k);
  for (int64_t i = 0; i < m * c * k * k; ++i)
    text += fmt::format("{}{}", i ? ", " : "", static_cast<double>(i * 5 % 7 - 3) / 8);
  return text + "}";
}

// The same in bf16, which text has in hex: exact numbers, so the upper half of the f32.
std::string RoundedWeights(int64_t m, int64_t c, int64_t k) {
  std::string text = fmt::format("const bf16[{},{},{},{}] hex \"", m, c, k, k);
  for (int64_t i = 0; i < m * c * k * k; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(i * 5 % 7 - 3) / 8);
    text += fmt::format("{:02x}{:02x}", bits >> 16 & 0xff, bits >> 24);
  }
  return text + "\"";
}

std::vector<std::string> Layouts(const std::string& text) {
  auto g = Parse(text);
  AssignLayouts(*g, TestSoc(), Level(2));
  EXPECT_TRUE(Verify(*g).ok()) << Verify(*g).message();
  std::vector<std::string> lines;
  for (NodeId n : g->order)
    for (ValueId v : g->node(n).outputs) {
      std::string line = g->node(n).op->name + " " + ToString(g->value(v).type);
      for (const Halo& h : g->value(v).halo) line += fmt::format(" {}:{}:{}", h.axis, h.lo, h.hi);
      lines.push_back(line);
    }
  return lines;
}

std::string ConvNet() {
  return fmt::format(R"(graph g(%x: f32[n,3,h,12]) -> (%c, %e) {{
    %w1 = {}
    %w2 = {}
    %w3 = {}
    %a = Conv(%x, %w1) {{pads=[1,1,1,1], strides=[2,2]}}
    %b = Relu(%a)
    %c = Conv(%b, %w2) {{pads=[1,1,1,1], group=20}}
    %d = Add(%b, %c)
    %e = Conv(%d, %w3)
  }})",
                     Weights(20, 3, 3), Weights(20, 1, 3), Weights(4, 20, 1));
}

TEST(Layout, ConvolutionsAreBlockedBetweenNdEnds) {
  EXPECT_THAT(Layouts(ConvNet()), ElementsAre("TransData f32[n,3,h,12] 2:1:1 3:1:1",
                                              "Conv f32[n,20,floordiv(h + 1, 2),6]{nc1hwc0:16}",
                                              "Relu f32[n,20,floordiv(h + 1, 2),6]{nc1hwc0:16}",
                                              "Conv f32[n,20,floordiv(h + 1, 2),6]{nc1hwc0:16}",
                                              "Add f32[n,20,floordiv(h + 1, 2),6]{nc1hwc0:16}",
                                              "Conv f32[n,4,floordiv(h + 1, 2),6]",
                                              "TransData f32[n,20,floordiv(h + 1, 2),6]"));
}

TEST(Layout, NothingChangesWithoutConvolutions) {
  EXPECT_THAT(Layouts("graph g(%x: f32[1,32,4,4]) -> (%a) { %a = Relu(%x) }"),
              ElementsAre("Relu f32[1,32,4,4]"));
}

// Parts whose channels begin or end within a block of the whole.
std::string CutConcat(const std::string& width, int64_t channels, int64_t whole) {
  return fmt::format(R"(graph g(%x: f32[1,24,6,4], %s: f32[1,{},1,1]) -> (%y) {{
    %w1 = {}
    %w2 = {}
    %a = Conv(%x, %w1) {{strides=[2,2]}}
    %b = Mul(%a, %s)
    %p = ge.Repeat(%b) {{repeats=[1,1,2,2]}}
    %c = Conv(%x, %w1)
    %q = Relu(%c)
    %t = Conv(%x, %w2) {{pads=[1,1,1,1]}}
    %d = Concat(%q, %p, %t) {{axis=1}}
    %w3 = {}
    %y = Conv(%d, %w3) {{pads=[1,1,1,1]}}
  }})",
                     width, Weights(channels, 24, 1), Weights(24, 24, 3), Weights(9, whole, 3));
}

// Where no part can lie in its place, each is made where it is read.
TEST(Fuse, ConcatTakesPartsThatBlocksCut) {
  const auto regions = [](const std::string& text) {
    auto g = Parse(text);
    AssignLayouts(*g, TestSoc(), Level(2));
    return Text(*g, FormRegions(*g, TestSoc(), Level(2)).at(g.get()));
  };
  EXPECT_THAT(regions(CutConcat("20", 20, 64)), testing::Contains("Repeat Concat : b q t -> d"));
  EXPECT_THAT(regions(CutConcat("24", 24, 72)), testing::Contains("Concat : q p t -> d"));
  EXPECT_THAT(regions(CutConcat("32", 32, 88)), testing::Contains("Concat : q p t -> d"));
}

// A wide sum that a convolution reads with a halo may take over the bytes of what it adds to.
TEST(Layout, AWideResultLiesAsItsOperandDoes) {
  for (const int64_t side : {16, 128}) {
    const std::string halo = side == 128 ? " 2:1:1 3:1:1" : "";
    const std::string dims = fmt::format("f32[1,16,{0},{0}]{{nc1hwc0:16}}", side);
    EXPECT_THAT(Layouts(fmt::format(R"(graph g(%x: f32[1,16,{0},{0}]) -> (%y) {{
      %w = {1}
      %v = {2}
      %a = Conv(%x, %w)
      %s = GlobalAveragePool(%a)
      %b = Mul(%a, %s)
      %y = Conv(%b, %v) {{pads=[1,1,1,1]}}
    }})",
                                    side, Weights(16, 16, 1), Weights(8, 16, 3))),
                ElementsAre("TransData f32[1,16," + fmt::format("{0},{0}", side) + "]{nc1hwc0:16}",
                            "Conv " + dims + halo, "GlobalAveragePool f32[1,16,1,1]",
                            "Mul " + dims + " 2:1:1 3:1:1",
                            fmt::format("Conv f32[1,8,{0},{0}]{{nc1hwc0:16}}", side),
                            fmt::format("TransData f32[1,8,{0},{0}]", side)));
  }
}

TEST(Layout, BlockedEqualsNd) {
  for (const std::string& text : {
           ConvNet(),
           fmt::format(R"(graph g(%x: f32[n,32,h,9]) -> (%i) {{
             %w1 = {}
             %w2 = {}
             %a = Conv(%x, %w1)
             %b = MaxPool(%a) {{kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}}
             %s = GlobalAveragePool(%b)
             %t = Conv(%s, %w2)
             %u = Sigmoid(%t)
             %c = Mul(%b, %u)
             %d = Concat(%b, %c) {{axis=1}}
             %e, %f = Split(%d) {{axis=1, num_outputs=2}}
             %g = Add(%e, %f)
             %w3 = {}
             %h = Conv(%g, %w3) {{pads=[2,2,2,2], dilations=[2,2]}}
             %i = Flatten(%h)
           }})",
                       Weights(32, 32, 1), Weights(32, 32, 1), Weights(18, 32, 3)),
           fmt::format(R"(graph g(%x: f32[1,24,6,5]) -> (%d) {{
             %w1 = {}
             %a = Conv(%x, %w1) {{pads=[0,1,2,0]}}
             %b = Conv(%x, %w1) {{pads=[0,1,2,0]}}
             %c = Concat(%a, %b) {{axis=1}}
             %w2 = {}
             %d = Conv(%c, %w2) {{pads=[1,1,1,1]}}
           }})",
                       Weights(24, 24, 2), Weights(9, 48, 3)),
           CutConcat("24", 24, 24 + 24 + 24),
           CutConcat("20", 20, 24 + 20 + 20),
           CutConcat("32", 32, 24 + 32 + 32),
           CutConcat("9", 9, 24 + 9 + 9),
       }) {
    std::map<std::string, int64_t> symbols = {{"n", 2}, {"h", 8}};
    auto dull = Parse(text), blocked = Parse(text);
    AssignLayouts(*blocked, TestSoc(), Level(2));
    auto want = RunAll(*dull, FormRegions(*dull, TestSoc(), Level(0)), symbols);
    auto got = RunAll(*blocked, FormRegions(*blocked, TestSoc(), Level(2)), symbols);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(want[i], got[i], 1e-4 * (1 + std::abs(want[i]))) << i << "\n"
                                                                   << ToString(*blocked);
  }
}

// Who makes a value that is read as bf16 rounds it, also where a matrix unit wants other blocks.
TEST(Layout, RoundedInTheKernelThatMakesIt) {
  const std::string text =
      fmt::format(R"(graph g(%x: f32[1,24,6,5]) -> (%e) {{
        %w1 = {}
        %a = Conv(%x, %w1)
        %b = Relu(%a)
        %h = Cast(%b) {{to={}}}
        %w2 = {}
        %c = ge.Conv(%h, %w2) {{pads=[1,1,1,1]}}
        %d = Add(%c, %b)
        %k = Cast(%d) {{to={}}}
        %w3 = {}
        %e = ge.Conv(%k, %w3)
      }})",
                  Weights(40, 24, 1), static_cast<int>(DType::kBF16), RoundedWeights(40, 40, 3),
                  static_cast<int>(DType::kBF16), RoundedWeights(24, 40, 1));
  auto dull = Parse(text);
  const auto want = RunAll(*dull, FormRegions(*dull, TestSoc(), Level(0)), {});
  for (const bool amx : {false, true}) {
    SocSpec soc = TestSoc();
    soc.amx = soc.vnni = amx;
    soc.bf16 = !amx;
    auto g = Parse(text);
    AssignLayouts(*g, soc, Level(2));
    const auto regions = FormRegions(*g, soc, Level(2));
    EXPECT_THAT(
        Text(*g, regions.at(g.get())),
        ElementsAre("TransData : x -> x.c1", "Conv Relu Cast : x.c1 w1 -> b h",
                    "Conv Add Cast : h w2 b -> k", "Conv : k w3 -> e.c1", "TransData : e.c1 -> e"));
    const auto got = RunAll(*g, regions, {}, soc);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(want[i], got[i], 2e-2 * (1 + std::abs(want[i]))) << i << "\n" << ToString(*g);
  }
}

// Every sample of every operator that has kernels: legal ones, within bounds.
TEST(Fuse, EverySampleLowersAndRuns) {
  for (const OpDef* op : AllOps())
    if (op->element || op->lower)
      for (const std::string& sample : op->samples) {
        const std::string text = SampleGraph(*op, sample);
        auto parsed = ParseGraph(text);
        if (!parsed.ok()) continue;  // other forms are the operator suite's
        const Graph& g = **parsed;
        SCOPED_TRACE(text);
        GraphRun run(g, {{"n", 3}});
        for (ValueId v : g.inputs) {
          run.Buffer(v);
          std::fill(run.storage[v].begin(), run.storage[v].end(), std::byte{0});
        }
        const RegionMap regions = FormRegions(g, TestSoc(), Level(1));
        for (const Region& r : regions.at(&g))
          if (r.engine == Engine::kVector || r.engine == Engine::kCube)
            run.Run(r, TestSoc(), Policy{}, 2);
      }
}

}  // namespace
}  // namespace ge
