// Operators that have a loop nest of their own and expand into faster nodes where they can: both
// compute the same.
#include "ir/expand.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "driver/evaluate.h"
#include "opt/facts.h"

namespace ge {
namespace {

void Fix(Graph& g, ValueId v, Constant c) {
  g.value(v).constant = static_cast<ConstId>(g.model->constants.size());
  g.model->constants.push_back(std::move(c));
}

// All outputs, with inputs by a formula.
std::vector<std::vector<double>> Evaluated(const std::string& text, bool expand) {
  auto parsed = ParseGraph(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  Graph& g = **parsed;
  double seed = 1;
  for (ValueId v : g.inputs) {
    std::vector<int64_t> dims;
    for (Expr d : g.value(v).type.dims) dims.push_back(d.value());
    std::vector<double> values(static_cast<size_t>(g.value(v).type.Elements().value()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(seed * static_cast<double>(i + 1) * 1.7) * 0.5;
    for (size_t i = 0; g.value(v).elems && i < values.size(); ++i)
      values[i] = static_cast<double>((*g.value(v).elems)[i].value());
    Fix(g, v, FromNumbers(g.value(v).type.dtype, dims, values));
    seed += 1;
  }
  if (expand) {
    const NodeId node = g.order.back();
    EXPECT_TRUE(ExpandNode(g, node).ok());
    EXPECT_TRUE(g.node(node).dead) << "was not expanded: " << text;
  }
  for (NodeId n : g.order) {
    std::vector<Constant> results = EvaluateConstant(g, g.node(n));
    for (size_t o = 0; o < results.size(); ++o)
      if (g.node(n).outputs[o] != kNone) Fix(g, g.node(n).outputs[o], std::move(results[o]));
  }
  std::vector<std::vector<double>> all;
  for (ValueId v : g.outputs) {
    const Constant* c = g.ConstantOf(v);
    EXPECT_NE(c, nullptr) << text;
    all.push_back(c ? *Numbers(*c) : std::vector<double>{});
  }
  return all;
}

void ExpectSame(const std::string& text, double tolerance) {
  const auto want = Evaluated(text, false), got = Evaluated(text, true);
  ASSERT_EQ(want.size(), got.size());
  for (size_t o = 0; o < want.size(); ++o) {
    ASSERT_EQ(want[o].size(), got[o].size()) << text;
    double most = 1;
    for (double x : want[o]) most = std::max(most, std::fabs(x));
    for (size_t i = 0; i < want[o].size(); ++i)
      ASSERT_NEAR(want[o][i], got[o][i], tolerance * most) << text << " element " << i;
  }
}

std::string Dft(int n, int channels, const std::string& attrs) {
  return fmt::format("graph g(%x: f32[2,{},{}]) -> (%y) {{ %y = DFT(%x) {{{}}} }}", n, channels,
                     attrs);
}

TEST(Expand, TransformsOfManyLengths) {
  // One product; by factors, once and more often; prime.
  for (int n : {1, 2, 7, 12, 600, 1031}) {
    ExpectSame(Dft(n, 1, ""), 2e-6);
    ExpectSame(Dft(n, 1, "onesided=1"), 2e-6);
    ExpectSame(Dft(n, 2, "inverse=1"), 2e-6);
    if (n > 1) ExpectSame(Dft(n, 2, "inverse=1, onesided=1"), 2e-6);
  }
  ExpectSame(Dft(2062, 2, ""), 4e-6);
}

TEST(Expand, TransformsAlongOtherAxes) {
  ExpectSame(
      "graph g(%x: f32[2,9,5,2], %n: i64[] elems[12], %a: i64[] elems[1]) -> (%y) { %y = "
      "DFT(%x, %n, %a) }",
      2e-6);
  ExpectSame(
      "graph g(%x: f64[3,9,2], %n: i64[] elems[5], %a: i64[] elems[0]) -> (%y) { %y = "
      "DFT(%x, %n, %a) {inverse=1} }",
      1e-12);
}

TEST(Expand, FramesOfASignal) {
  for (const char* x : {"f32[2,50]", "f32[2,50,1]", "f32[1,50,2]"})
    ExpectSame(fmt::format("graph g(%x: {}, %s: i64[] elems[7], %w: f32[16]) -> (%y) {{ %y = "
                           "STFT(%x, %s, %w) {{onesided={}}} }}",
                           x, x[9] == '2' ? 0 : 1),
               2e-6);
  ExpectSame(
      "graph g(%x: f32[1,1800,1], %s: i64[] elems[600], %w: f32[600]) -> (%y) { %y = "
      "STFT(%x, %s, %w) }",
      2e-6);
}

TEST(Expand, ConvolutionsOfVolumes) {
  for (const char* attrs : {"", "pads=[1,1,0,1,2,1]", "strides=[2,1,2], pads=[1,0,1,0,1,1]",
                            "dilations=[2,1,2], pads=[2,1,0,1,1,2]", "auto_pad=\"SAME_LOWER\""}) {
    for (int group : {1, 2})
      ExpectSame(
          fmt::format("graph g(%x: f32[2,4,6,5,7], %w: f32[6,{},3,2,3], %b: f32[6]) -> (%y) {{ "
                      "%y = Conv(%x, %w, %b) {{group={}, kernel_shape=[3,2,3]{}{}}} }}",
                      4 / group, group, attrs[0] ? ", " : "", attrs),
          2e-6);
  }
  for (const char* attrs :
       {"", "pads=[1,1,0,1,0,1]", "strides=[2,1,2], output_padding=[1,0,1]",
        "strides=[3,2,1], pads=[2,1,1,2,0,0], dilations=[2,1,1]", "pads=[2,0,0,2,0,0]"}) {
    for (int group : {1, 2})
      ExpectSame(
          fmt::format("graph g(%x: f32[2,4,3,4,5], %w: f32[4,{},3,2,3], %b: f32[{}]) -> (%y) {{ "
                      "%y = ConvTranspose(%x, %w, %b) {{group={}, kernel_shape=[3,2,3]{}{}}} }}",
                      6 / group, 6, group, attrs[0] ? ", " : "", attrs),
          2e-6);
  }
}

TEST(Expand, TransposedConvolutionsWithGaps) {
  for (const char* attrs :
       {"group=4, strides=[2,2], pads=[1,1,1,1]", "group=2, output_padding=[1,0], strides=[2,3]",
        "dilations=[2,3], strides=[2,1], pads=[1,0,2,1]",
        "group=8, dilations=[1,2], output_shape=[9,12], strides=[2,2]"}) {
    const int groups = attrs[0] == 'g' ? attrs[6] - '0' : 1;
    ExpectSame(fmt::format("graph g(%x: f32[2,8,4,5], %w: f32[8,3,3,2], %b: f32[{}]) -> (%y) {{ %y "
                           "= ConvTranspose(%x, %w, %b) {{{}}} }}",
                           3 * groups, attrs),
               2e-6);
  }
  ExpectSame(
      "graph g(%x: f32[1,40,7], %w: f32[40,1,4]) -> (%y) { %y = ConvTranspose(%x, %w) "
      "{group=40, strides=[2], pads=[1,1]} }",
      2e-6);
}

// 50 to 15: positions are those of f32, and what it cannot tell from a middle is one.
TEST(Expand, NearestAtMiddles) {
  for (const auto& [rounding, at4, at7] :
       {std::tuple("round_prefer_ceil", 15, 24), std::tuple("round_prefer_floor", 14, 24),
        std::tuple("floor", 14, 24), std::tuple("ceil", 15, 25)}) {
    const auto got = Evaluated(
        fmt::format("graph g(%x: f32[50], %s: i64[1] elems[15]) -> (%y) {{ %y = Resize(%x, _, _, "
                    "%s) {{axes=[0], nearest_mode=\"{}\"}} }}",
                    rounding),
        true);
    const auto x = [](int i) { return std::sin((i + 1) * 1.7) * 0.5; };
    ASSERT_EQ(got[0].size(), 15U);
    EXPECT_NEAR(got[0][4], x(at4), 1e-6) << rounding;
    EXPECT_NEAR(got[0][7], x(at7), 1e-6) << rounding;
  }
}

// Rows first, then columns; a line that is read in part.
TEST(Expand, LinearOverTwoAxes) {
  const auto got = Evaluated(
      "graph g(%x: f32[1,4,40], %s: i64[2] elems[8,3]) -> (%y) { %y = Resize(%x, _, _, %s) "
      "{axes=[1,2], mode=\"linear\", coordinate_transformation_mode=\"align_corners\"} }",
      true);
  const auto x = [](int r, int c) { return std::sin((r * 40 + c + 1) * 1.7) * 0.5; };
  ASSERT_EQ(got[0].size(), 24U);
  for (int r = 0; r < 8; ++r) {
    const double at = r * 3 / 7.0;
    const int low = std::min(static_cast<int>(at), 2);
    for (int c = 0; c < 3; ++c) {
      const int left = c * 39 / 2, right = std::min(left + 1, 39);  // 0, 19.5, 39
      auto line = [&](int row) {
        return c == 1 ? (x(row, left) + x(row, right)) / 2 : x(row, left);
      };
      EXPECT_NEAR(got[0][r * 3 + c], line(low) + (at - low) * (line(low + 1) - line(low)), 1e-6)
          << r << ", " << c;
    }
  }
}

}  // namespace
}  // namespace ge
