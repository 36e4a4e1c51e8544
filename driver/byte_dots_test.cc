// A dot of bytes is computed in bytes or in floats, whichever the estimate for the chip has faster;
// the results are those of the model as it was, but for ties.
#include "driver/byte_dots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "driver/evaluate.h"
#include "driver/pipeline.h"
#include "ir/opdef.h"
#include "opt/facts.h"

namespace ge {
namespace {

constexpr const char* kQdq =
    R"(graph "g" (%x: u8[1,32,16,16], %c_w: i8[32,32,KERNEL], %c_b: f32[32]) -> (%y) {
  %s = const f32[] {0.02}
  %z = const u8[] {3}
  %sw = const f32[] {0.002}
  %t = const f32[] {0.05}
  %zt = const u8[] {100}
  %f: f32[1,32,16,16] = DequantizeLinear(%x, %s, %z) @"f"
  %v: f32[32,32,KERNEL] = DequantizeLinear(%c_w, %sw) @"v"
  %d: f32[1,32,16,16] = Conv(%f, %v, %c_b) {pads=[PADS]} @"d"
  %y: u8[1,32,16,16] = QuantizeLinear(%d, %t, %zt) @"y"
})";
constexpr const char* kQLinear =
    R"(graph "g" (%x: u8[1,32,16,16], %c_w: i8[32,WIDTH,3,3], %c_i: i32[32]) -> (%y) {
  %s = const f32[] {0.02}
  %z = const u8[] {3}
  %sw = const f32[] {0.002}
  %zw = const i8[] {0}
  %t = const f32[] {0.05}
  %zt = const u8[] {100}
  %y: u8[1,32,16,16] = QLinearConv(%x, %s, %z, %c_w, %sw, %zw, %t, %zt, %c_i) {group=GROUP, pads=[1,1,1,1]} @"y"
})";

std::string With(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), value);
  return text;
}

// The graph with its inputs named c_... as constants.
std::unique_ptr<Graph> Parsed(const std::string& text) {
  auto g = std::move(ParseGraph(text)).value();
  std::mt19937 random(1);
  std::vector<ValueId> inputs;
  for (ValueId v : g->inputs) {
    const TensorType& type = g->value(v).type;
    std::vector<int64_t> dims;
    for (const Expr& d : type.dims) dims.push_back(d.value());
    std::vector<double> values(static_cast<size_t>(type.Elements().value()));
    for (double& value : values)
      value = type.dtype == DType::kF32  ? static_cast<double>(random() % 100) / 50 - 1
              : type.dtype == DType::kU8 ? static_cast<double>(random() % 256)
                                         : static_cast<double>(random() % 255) - 127;
    g->value(v).constant = static_cast<ConstId>(g->model->constants.size());
    g->model->constants.push_back(FromNumbers(type.dtype, dims, values));
    if (!g->value(v).name.starts_with("c_")) {
      inputs.push_back(v);
      g->value(v).constant = kNone;
    }
  }
  g->inputs = inputs;
  return g;
}

std::vector<double> Result(Graph& g) {
  std::mt19937 random(2);
  for (ValueId v : g.inputs) {
    std::vector<double> values(static_cast<size_t>(g.value(v).type.Elements().value()));
    for (double& value : values) value = static_cast<double>(random() % 256);
    g.value(v).constant = static_cast<ConstId>(g.model->constants.size());
    std::vector<int64_t> dims;
    for (const Expr& d : g.value(v).type.dims) dims.push_back(d.value());
    g.model->constants.push_back(FromNumbers(g.value(v).type.dtype, dims, values));
  }
  for (NodeId id : g.order) {
    std::vector<Constant> results = EvaluateConstant(g, g.node(id));
    EXPECT_EQ(results.size(), g.node(id).outputs.size()) << g.node(id).op->name;
    for (size_t o = 0; o < results.size(); ++o) {
      g.value(g.node(id).outputs[o]).constant = static_cast<ConstId>(g.model->constants.size());
      g.model->constants.push_back(std::move(results[o]));
    }
  }
  return *Numbers(*g.ConstantOf(g.outputs[0]));
}

bool Has(const Graph& g, const std::string& op) {
  return std::any_of(g.order.begin(), g.order.end(),
                     [&](NodeId n) { return g.node(n).op->name == op; });
}

// Names of operators after the passes for the chip; the result is that of the graph as it was.
std::unique_ptr<Graph> Optimised(const std::string& text, const char* chip,
                                 std::vector<std::string>* lines) {
  const SocSpec soc = FindSoc(chip, nullptr).value();
  Policy policy;
  policy.report = [&](const std::string& line) {
    if (line.starts_with("bytes: ")) lines->push_back(line);
  };
  policy.floats_pay = CompareByteDots(soc, policy);
  auto g = Parsed(text);
  RunPasses(*g, policy, PassNames(policy));
  EXPECT_EQ(Verify(*g).message(), "");
  auto as_it_was = Parsed(text), now = Parsed(text);
  RunPasses(*now, policy, PassNames(policy));
  const std::vector<double> want = Result(*as_it_was), got = Result(*now);
  EXPECT_EQ(want.size(), got.size());
  int ties = 0;
  for (size_t i = 0; i < want.size() && i < got.size(); ++i) {
    ties += want[i] != got[i];
    EXPECT_NEAR(want[i], got[i], 1) << i;
  }
  EXPECT_LE(ties, static_cast<int>(want.size()) / 200);
  return g;
}

TEST(ByteDots, TheEstimateDecides) {
  struct {
    const char *chip, *kernel, *pads;
    bool bytes;
  } const cases[] = {
      // Winograd's form takes fewer multiplications than bytes save.
      {"x86-64-v3", "3,3", "1,1,1,1", false},
      {"x86-64-v3", "1,1", "0,0,0,0", true},
      {"sapphirerapids-emulated", "3,3", "1,1,1,1", true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.chip) + " " + c.kernel);
    std::vector<std::string> lines;
    const auto g = Optimised(With(kQdq, {{"KERNEL", c.kernel}, {"PADS", c.pads}}), c.chip, &lines);
    EXPECT_EQ(Has(*g, "ConvInteger"), c.bytes) << ToString(*g);
    EXPECT_EQ(Has(*g, "Conv"), !c.bytes);
    ASSERT_FALSE(lines.empty());
    EXPECT_THAT(lines[0],
                testing::MatchesRegex(
                    "bytes: d: by the estimate [0-9.]+ us in bytes, [0-9.]+ us in floats: .*"));
    EXPECT_THAT(lines[0], testing::EndsWith(c.bytes ? ": bytes" : ": floats"));
  }
}

TEST(ByteDots, QLinearInFloats) {
  std::vector<std::string> lines;
  const auto groups = Optimised(With(kQLinear, {{"WIDTH", "1"}, {"GROUP", "32"}}),
                                "sapphirerapids-emulated", &lines);
  EXPECT_TRUE(Has(*groups, "Conv") && !Has(*groups, "QLinearConv")) << ToString(*groups);
  const auto one =
      Optimised(With(kQLinear, {{"WIDTH", "32"}, {"GROUP", "1"}}), "x86-64-v3", &lines);
  EXPECT_TRUE(Has(*one, "Conv") && !Has(*one, "ConvInteger")) << ToString(*one);
}

// The sums of MatMulInteger, where only their floats are used; a zero point that is not known.
TEST(ByteDots, MatMulInteger) {
  const std::string text = R"(graph "g" (%x: u8[16,DEPTH], %z: u8[1], %c_w: u8[DEPTH,48]) -> (%y) {
  %s = const f32[] {0.001}
  %d: i32[16,48] = MatMulInteger(%x, %c_w, %z) @"d"
  %f: f32[16,48] = Cast(%d) {to=1} @"f"
  %y: f32[16,48] = Mul(%f, %s) @"y"
})";
  std::vector<std::string> lines;
  const auto deep = Optimised(With(text, {{"DEPTH", "256"}}), "sapphirerapids-emulated", &lines);
  EXPECT_TRUE(Has(*deep, "MatMulInteger")) << ToString(*deep);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], testing::EndsWith(": bytes"));
  const auto flat = Optimised(With(text, {{"DEPTH", "2"}}), "x86-64-v3", &lines);
  EXPECT_TRUE(Has(*flat, "MatMul") && !Has(*flat, "MatMulInteger")) << ToString(*flat);
}

}  // namespace
}  // namespace ge
