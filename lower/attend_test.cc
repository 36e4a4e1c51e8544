// Attention as one kernel against its loop nest, through the interpreter, with masks that hide
// whole stretches of keys: those are left out, and rows of hidden keys alone come to what they did.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "abi/convert.h"
#include "ir/opdef.h"
#include "lower/cube.h"
#include "lower/region_fixture.h"

namespace ge {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

using Visible = std::function<bool(int64_t row, int64_t key)>;
using Results = std::vector<float>;

// Of the node's output, computed on `soc` by the cube engine or without it. Elements of %m are
// `hidden` or 0, those of %b whether the key is visible.
Results Attended(const std::string& text, const Visible& visible, float hidden, bool cube,
                 const SocSpec& soc, const std::map<std::string, int64_t>& symbols,
                 const std::function<void(GraphRun&)>& change) {
  auto parsed = ParseGraph(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  Graph& g = **parsed;
  GraphRun run(g, symbols);
  int seed = 1;
  for (ValueId v : g.inputs) {
    run.FillInput(v, seed++);
    const std::string& name = g.value(v).name;
    if (name != "m" && name != "b") continue;
    for (const auto& idx : run.Indices(v)) {
      const std::vector<Expr> index(idx.begin(), idx.end());
      const bool sees = visible(idx[idx.size() - 2], idx.back());
      StoreElement<float>(g.value(v).type.dtype, run.Buffer(v),
                          run.Size(run.ViewOf(v).Offset(index)),
                          name == "b" ? static_cast<float>(sees)
                          : sees      ? 0.0f
                                      : hidden);
    }
  }
  if (change) change(run);
  Policy policy;
  if (!cube) policy.disabled = {"cube"};
  EXPECT_EQ(CubeSupports(g, WholeGraph(g), soc, policy), cube);
  run.Run(WholeGraph(g), soc, policy, 2);
  return run.Values(g.outputs[0]);
}

void ExpectNear(const Results& got, const Results& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i] << ", not NaN";
    } else {
      ASSERT_NEAR(got[i], want[i], 2e-5) << "element " << i;
    }
  }
}

constexpr int64_t kRows = 70, kKeys = 150;
const Visible kCausal = [](int64_t row, int64_t key) { return key <= row + kKeys - kRows; };
const Visible kWindow = [](int64_t row, int64_t key) { return key <= row && key > row - 9; };
const Visible kLeftPadded = [](int64_t row, int64_t key) { return key <= row && key > 65; };
const Visible kBlocks = [](int64_t row, int64_t key) { return row > 66 && key >= 64 && key < 70; };
const Visible kNoKey = [](int64_t, int64_t) { return false; };
const Visible kFew = [](int64_t, int64_t key) { return key < 20; };

std::string Node(const std::string& inputs, const std::string& names, const std::string& attrs) {
  return fmt::format(
      "graph g(%q: f32[2,2,70,8], %k: f32[2,1,8,150], %v: f32[2,1,150,16]{}) -> (%y) {{ %y = "
      "ge.Attend(%q, %k, %v{}) {{shared=2, scale=0.25{}}} }}",
      inputs, names, attrs);
}

void ForMasks(const std::string& text, float hidden) {
  for (const Visible& visible : {kCausal, kWindow, kLeftPadded, kBlocks, kNoKey, kFew}) {
    const Results want = Attended(text, visible, hidden, false, VectorSoc(64), {}, {});
    for (int bytes : {32, 64})
      ExpectNear(Attended(text, visible, hidden, true, VectorSoc(bytes), {}, {}), want);
  }
}

TEST(Attend, MasksThatAreAdded) {
  for (float hidden : {-kInf, kLowest, -1e4f}) {
    ForMasks(Node(", %m: f32[70,150]", ", %m", ""), hidden);
    ForMasks(Node(", %m: f32[2,1,1,150]", ", %m", ""), hidden);
  }
  ForMasks(Node(", %m: f32[2,2,70,150]", ", %m", ", empty=1"), -kInf);
}

TEST(Attend, MasksThatChoose) {
  for (const char* low : {"-inf", "-3.4028235e38", "-10000.0", "-3.0"}) {
    const std::string attr = fmt::format(", low={}", low);
    ForMasks(Node(", %b: bool[70,150]", ", _, %b", attr), 0);
    ForMasks(Node(", %b: bool[1,2,1,150]", ", _, %b", attr + ", hides=1"), 0);
    ForMasks(Node(", %m: f32[70,150], %b: bool[70,150]", ", %m, %b", attr), -kInf);
    ForMasks(Node(", %m: f32[70,150], %b: bool[70,150]", ", %m, %b", attr), 5);
  }
}

TEST(Attend, MasksOfUnknownSize) {
  const std::string text =
      "graph g(%q: f32[2,s,8], %k: f32[2,8,t], %v: f32[2,t,16], %m: f32[s,t]) -> (%y) { %y = "
      "ge.Attend(%q, %k, %v, %m) }";
  const Visible causal = [](int64_t row, int64_t key) { return key <= row + 65; };
  for (const auto& [s, t] : {std::pair<int64_t, int64_t>{70, 135}, {1, 200}, {3, 20}, {130, 66}}) {
    const std::map<std::string, int64_t> sizes = {{"s", s}, {"t", t}};
    for (const Visible& visible : {causal, kWindow, kNoKey})
      ExpectNear(Attended(text, visible, kLowest, true, VectorSoc(64), sizes, {}),
                 Attended(text, visible, kLowest, false, VectorSoc(64), sizes, {}));
  }
}

// What all rows of a block leave out is not even read.
TEST(Attend, HiddenKeysAreNotRead) {
  const std::string text = Node(", %m: f32[70,150]", ", %m", "");
  for (const Visible& visible : {kWindow, kFew}) {
    const Results want = Attended(text, visible, -kInf, true, VectorSoc(64), {}, {});
    const auto spoil = [](GraphRun& run) {
      for (int64_t key = 128; key < kKeys; ++key)
        for (int64_t c = 0; c < 16; ++c) run.F32(run.g.inputs[2], {0, 0, key, c}) = NAN;
    };
    ASSERT_EQ(Attended(text, visible, -kInf, true, VectorSoc(64), {}, spoil), want);
  }
}

}  // namespace
}  // namespace ge
