#include "lower/lower.h"

#include <gmock/gmock.h>

#include "ir/opdef.h"
#include "lower/cost.h"
#include "lower/loops.h"
#include "lower/region_fixture.h"

namespace ge {
namespace {

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

// Runs the whole graph as one region, with the grid in 3 parts.
GraphRun RunWhole(const Graph& g, std::map<std::string, int64_t> symbols = {}) {
  GraphRun run(g, std::move(symbols));
  int seed = 1;
  for (ValueId v : g.inputs) run.FillInput(v, seed++);
  run.Run(WholeGraph(g), TestSoc(), Policy{}, 3);
  return run;
}

TEST(Lower, PointwiseChainWithBroadcastsOfSymbolicDims) {
  auto g = Parse(R"(graph g(%x: f32[n,5,m], %y: f32[5,1]) -> (%b) {
    %a = Add(%x, %y)
    %b = Relu(%a)
  })");
  GraphRun run = RunWhole(*g, {{"n", 3}, {"m", 7}});
  ValueId x = g->inputs[0], y = g->inputs[1], b = g->outputs[0];
  for (const auto& i : run.Indices(b))
    EXPECT_EQ(run.F32(b, i), std::max(0.0f, run.F32(x, i) + run.F32(y, {i[1], 0})));
}

TEST(Lower, LargePointwiseIsCutIntoChunksOfAFlatSpace) {
  auto g = Parse("graph g(%x: f32[100,1003], %y: f32[100,1003]) -> (%a) { %a = Mul(%x, %y) }");
  Lowered lowered = LowerRegion(*g, WholeGraph(*g), TestSoc(), Policy{});
  ASSERT_EQ(lowered.kernels.size(), 1u);
  std::string text = tile::ToString(lowered.kernels[0].kernel);
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("floordiv"))) << text;
  EXPECT_GT(lowered.kernels[0].grid.value(), 2) << text;
  GraphRun run = RunWhole(*g);
  ValueId x = g->inputs[0], y = g->inputs[1], a = g->outputs[0];
  for (const auto& i : run.Indices(a)) ASSERT_EQ(run.F32(a, i), run.F32(x, i) * run.F32(y, i));
}

// Squares of a short axis that crosses a long one lie side by side: chunks are parts of the long
// one.
TEST(Lower, FewRowsOfACrossedAxisAreCutAlongTheOther) {
  auto g = Parse("graph g(%x: f32[24000,12]) -> (%a) { %a = Transpose(%x) {perm=[1,0]} }");
  const Lowered lowered = LowerRegion(*g, WholeGraph(*g), TestSoc(), Policy{});
  ASSERT_EQ(lowered.kernels.size(), 1u);
  EXPECT_GT(lowered.kernels[0].grid.value(), 1) << lowered.kernels[0].schedule;
  GraphRun run = RunWhole(*g);
  const auto* x = static_cast<const float*>(run.Buffer(g->inputs[0]));
  const auto* a = static_cast<const float*>(run.Buffer(g->outputs[0]));
  for (int i = 0; i < 12; ++i)
    for (int k = 0; k < 24000; ++k) ASSERT_EQ(a[i * 24000 + k], x[k * 12 + i]) << i << ", " << k;
}

TEST(Lower, SeveralOutputsOfOneRegion) {
  auto g = Parse(R"(graph g(%x: f32[4,6]) -> (%a, %c) {
    %a = Relu(%x)
    %b = Mul(%a, %x)
    %c = Add(%b, %a)
  })");
  GraphRun run = RunWhole(*g);
  ValueId x = g->inputs[0];
  for (const auto& i : run.Indices(x)) {
    float v = run.F32(x, i), r = std::max(v, 0.0f);
    EXPECT_EQ(run.F32(g->outputs[0], i), r);
    EXPECT_EQ(run.F32(g->outputs[1], i), r * v + r);
  }
}

TEST(Lower, IntermediateHalfFloatsAreRounded) {
  auto g = Parse(R"(graph g(%x: f32[8]) -> (%c) {
    %a = Cast(%x) {to=10}
    %b = Add(%a, %a)
    %c = Cast(%b) {to=1}
  })");
  GraphRun run(*g);
  ValueId x = g->inputs[0];
  for (int64_t i = 0; i < 8; ++i) run.F32(x, {i}) = 1.0f + static_cast<float>(i) * 0.0001f;
  run.Run(WholeGraph(*g), TestSoc(), Policy{});
  for (int64_t i = 0; i < 8; ++i) {
    float v = 1.0f + static_cast<float>(i) * 0.0001f;
    float rounded = std::nearbyint(v * 1024) / 1024;  // the 11 bits of f16 in [1, 2)
    EXPECT_EQ(run.F32(g->outputs[0], {i}), 2 * rounded);
  }
}

// Of one image whose rows are too short to be cut, groups of rows are the chunks.
TEST(Lower, ImagesOfUnknownSizeAreCutWhereItIsWorthIt) {
  auto g = Parse(R"(symbol n
  symbol h hint=64
  symbol w hint=64
  graph g(%x: f32[n,h,w,8]) -> (%a) { %a = Neg(%x) })");
  const std::vector<Expr>& dims = g->value(g->inputs[0]).type.dims;
  tile::Kernel kernel;
  tile::Builder b(kernel, g->arena());
  LoopReport report;
  const double ns = 4000.0 / static_cast<double>(HintValue(dims[1]) * HintValue(dims[2]) * 8);
  NestLoops(b, dims, true, {.ns_per_iteration = ns}, [](const Index&) {}, &report);
  EXPECT_THAT(report.schedule, testing::EndsWith(" of axis 1"));
}

TEST(Lower, BlockedOutputWithPadLanesAndHalo) {
  auto g = Parse(R"(graph g(%x: f32[2,19,3,4]) -> (%a) {
    %a: f32[2,19,3,4]{nc1hwc0:16} halo[2:1:2, 3:1:1] = Sigmoid(%x)
  })");
  GraphRun run = RunWhole(*g);
  ValueId x = g->inputs[0], a = g->outputs[0];
  for (const auto& i : run.Indices(a))
    ASSERT_NEAR(run.F32(a, i), 1 / (1 + std::exp(-run.F32(x, i))), 1e-6);
  run.ExpectZeroBorders(a);
}

TEST(Lower, PoolWithFusedConsumersOverBlockedValues) {
  auto g = Parse(R"(graph g(%x: f32[1,20,6,6]{nc1hwc0:16}, %s: f32[1,20,1,1]{nc1hwc0:16}) -> (%c) {
    %a: f32[1,20,3,3] = MaxPool(%x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}
    %b: f32[1,20,3,3] = Mul(%a, %s)
    %c: f32[1,20,3,3]{nc1hwc0:16} halo[3:1:1] = Sigmoid(%b)
  })");
  GraphRun run = RunWhole(*g);
  ValueId x = g->inputs[0], s = g->inputs[1], c = g->outputs[0];
  for (const auto& i : run.Indices(c)) {
    float top = -1e30f;
    for (int64_t h = 2 * i[2] - 1; h < 2 * i[2] + 2; ++h)
      for (int64_t w = 2 * i[3] - 1; w < 2 * i[3] + 2; ++w)
        if (h >= 0 && h < 6 && w >= 0 && w < 6) top = std::max(top, run.F32(x, {0, i[1], h, w}));
    float y = top * run.F32(s, {0, i[1], 0, 0});
    ASSERT_NEAR(run.F32(c, i), 1 / (1 + std::exp(-y)), 1e-6);
  }
  run.ExpectZeroBorders(c);
}

TEST(Lower, ReductionTakesProducerAndConsumer) {
  auto g = Parse(R"(graph g(%x: f32[n,33]) -> (%c) {
    %a = Relu(%x)
    %b = Softmax(%a)
    %c = Add(%b, %x)
  })");
  GraphRun run = RunWhole(*g, {{"n", 5}});
  ValueId x = g->inputs[0], c = g->outputs[0];
  for (int64_t n = 0; n < 5; ++n) {
    double sum = 0;
    for (int64_t i = 0; i < 33; ++i) sum += std::exp(std::max(0.0f, run.F32(x, {n, i})));
    for (int64_t i = 0; i < 33; ++i) {
      float v = run.F32(x, {n, i});
      EXPECT_NEAR(run.F32(c, {n, i}), std::exp(std::max(0.0f, v)) / sum + v, 1e-5);
    }
  }
}

TEST(Lower, ConvolutionOfAnyLayout) {
  const std::string body = R"(%a: f32[1,6,5,5]LAYOUT = Conv(%x, %w) {pads=[1,1,1,1], group=2} })";
  std::vector<float> first;
  for (std::string layout : {"", "{nc1hwc0:16}", "{nhwc}", "{nc1hwc0:2}"}) {
    std::string text = "graph g(%x: f32[1,4,5,5]LAYOUT, %w: f32[6,2,3,3]) -> (%a) {" + body;
    for (size_t at; (at = text.find("LAYOUT")) != std::string::npos;) text.replace(at, 6, layout);
    auto g = Parse(text);
    GraphRun run = RunWhole(*g);
    std::vector<float> values = run.Values(g->outputs[0]);
    if (first.empty()) first = values;
    EXPECT_EQ(values, first) << layout;
    run.ExpectZeroBorders(g->outputs[0]);
  }
}

TEST(Lower, FactsAreStoredWithoutReading) {
  auto g = Parse("graph g(%x: f32[n,7]) -> (%s) { %s = Shape(%x) }");
  Region r = WholeGraph(*g);
  r.inputs.clear();
  GraphRun run(*g, {{"n", 12}});
  run.Run(r, TestSoc(), Policy{});
  const auto* shape = static_cast<const int64_t*>(run.Buffer(g->outputs[0]));
  EXPECT_EQ(shape[0], 12);
  EXPECT_EQ(shape[1], 7);
}

TEST(Lower, ViewsInsideAPointwiseRegion) {
  auto g = Parse(R"(graph g(%x: f32[3,4], %y: f32[4,3]) -> (%b) {
    %t = Transpose(%x) {perm=[1,0]}
    %b = Add(%t, %y)
  })");
  GraphRun run = RunWhole(*g);
  for (const auto& i : run.Indices(g->outputs[0]))
    EXPECT_EQ(run.F32(g->outputs[0], i),
              run.F32(g->inputs[0], {i[1], i[0]}) + run.F32(g->inputs[1], i));
}

// Elements that a vector takes from, or gives to, places far apart are loaded or stored one by one.
TEST(Cost, ElementsApartCostMore) {
  ExprArena arena;
  const auto ns = [&](int64_t from, int64_t to) {
    tile::Kernel kernel;
    tile::Builder b(kernel, arena);
    const int x = b.Arg("x", DType::kF32, 64 * 64, false),
              y = b.Arg("y", DType::kF32, 64 * 64, true);
    b.For("i", 64, tile::LoopKind::kSerial, [&](Expr i) {
      b.For("j", 64, tile::LoopKind::kVector, [&](Expr j) {
        b.Store(y, i * (65 - to) + j * to, b.Load(x, i * (65 - from) + j * from));
      });
    });
    return EstimateCost(kernel, TestSoc()).ns;
  };
  EXPECT_GT(ns(64, 1), 2 * ns(1, 1));
  EXPECT_GT(ns(1, 64), 2 * ns(1, 1));
}

TEST(Cost, WhatIsInARegisterIsLoadedOnce) {
  ExprArena arena;
  const auto ns = [&](int64_t apart) {
    tile::Kernel kernel;
    tile::Builder b(kernel, arena);
    const int x = b.Arg("x", DType::kF32, 64 * 80, false),
              y = b.Arg("y", DType::kF32, 64 * 64, true);
    b.For("i", 64, tile::LoopKind::kSerial, [&](Expr i) {
      b.For("j", 64, tile::LoopKind::kVector, [&](Expr j) {
        tile::Val sum = b.F(0);
        for (int64_t k = 0; k < 9; ++k) sum = b.Let(sum + b.Load(x, i * 80 + j + k * apart));
        b.Store(y, i * 64 + j, sum);
      });
    });
    return EstimateCost(kernel, TestSoc()).ns;
  };
  EXPECT_GT(ns(1), 1.3 * ns(0));
}

// How many steps a loop takes that the data bounds is not known: all that it may.
TEST(Cost, LoopsThatTheDataBounds) {
  ExprArena arena;
  const auto ns = [&](bool by_data) {
    tile::Kernel kernel;
    tile::Builder b(kernel, arena);
    const int x = b.Arg("x", DType::kF32, 4096, false), y = b.Arg("y", DType::kF32, 4096, true),
              n = b.Arg("n", DType::kI64, 1, false);
    const Expr count = by_data ? b.LetIndex(b.Let(b.Load(n, 0)), 0, 4096) : Expr(4096);
    b.For("i", count, tile::LoopKind::kVector,
          [&](Expr i) { b.Store(y, i, b.Unary(tile::Op::kExp, b.Load(x, i))); });
    return EstimateCost(kernel, TestSoc()).ns;
  };
  EXPECT_GT(ns(true), 0.9 * ns(false));
}

}  // namespace
}  // namespace ge
