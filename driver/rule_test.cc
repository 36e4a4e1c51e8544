// Every rule of opt/rules/ on random graphs: each sample graph gets random constants and inputs,
// and all outputs are computed before and after the rewrite.
//
// Draws: small integers and powers of two (sums are exact, so exact rules must agree to the bit);
// special values (NaN, signed zeros, infinities) for exact rules; every inner value also an output;
// inputs of one type made the same value. The pass dead_channels is tried in the same way.
#include "opt/rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "abi/convert.h"
#include "driver/evaluate.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

enum class Draw { kPlain, kSpecial, kAllOutputs, kRepeated };

double Number(std::mt19937& random, DType type, bool special, bool positive) {
  if (type == DType::kBool) return random() % 2;
  if (IsInteger(type)) return static_cast<double>(random() % 7) - (IsSigned(type) ? 3 : 0);
  if (special && random() % 2) {
    const double values[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    return values[random() % 5];
  }
  const double magnitudes[] = {0.25, 0.5, 1, 2, 3, 4};
  const double v = magnitudes[random() % 6];
  return positive || random() % 2 ? v : -v;
}

Constant RandomConstant(std::mt19937& random, const TensorType& type, bool special, bool positive) {
  std::vector<int64_t> dims;
  for (const Expr& d : type.dims) dims.push_back(d.value());
  std::vector<double> values(static_cast<size_t>(type.Elements().value()));
  for (double& v : values) v = Number(random, type.dtype, special, positive);
  return FromNumbers(type.dtype, dims, values);
}

void MakeConstant(Graph& g, ValueId v, Constant c) {
  g.value(v).constant = static_cast<ConstId>(g.model->constants.size());
  g.model->constants.push_back(std::move(c));
}

// The sample with its c... inputs as constants; the other inputs are left.
std::unique_ptr<Graph> Instance(std::string_view sample, Draw draw, uint32_t seed) {
  auto g = std::move(ParseGraph(sample)).value();
  std::mt19937 random(seed);
  std::vector<ValueId> inputs;
  for (ValueId v : g->inputs) {
    const std::string& name = g->value(v).name;
    if (!name.starts_with("c_")) {
      inputs.push_back(v);
      continue;
    }
    MakeConstant(*g, v, RandomConstant(random, g->value(v).type, false, name.ends_with("_v")));
  }
  g->inputs = inputs;
  if (draw == Draw::kAllOutputs) {
    for (NodeId id : g->order) {
      for (ValueId v : g->node(id).outputs) {
        if (v != kNone && std::find(g->outputs.begin(), g->outputs.end(), v) == g->outputs.end()) {
          g->outputs.push_back(v);
        }
      }
    }
  }
  if (draw == Draw::kRepeated && inputs.size() > 1) {
    for (NodeId id : g->order) {
      for (ValueId& v : g->node(id).inputs) {
        if (v == inputs[1] && g->value(v).type == g->value(inputs[0]).type) v = inputs[0];
      }
    }
  }
  return g;
}

std::vector<Constant> Outputs(Graph& g, bool special, uint32_t seed) {
  std::mt19937 random(seed + 1000);
  for (ValueId v : g.inputs)
    MakeConstant(g, v, RandomConstant(random, g.value(v).type, special, false));
  for (NodeId id : g.order) {
    std::vector<Constant> results = EvaluateConstant(g, g.node(id));
    EXPECT_EQ(results.size(), g.node(id).outputs.size()) << g.node(id).op->name;
    if (results.size() != g.node(id).outputs.size()) return {};
    for (size_t o = 0; o < results.size(); ++o) {
      if (g.node(id).outputs[o] != kNone)
        MakeConstant(g, g.node(id).outputs[o], std::move(results[o]));
    }
  }
  std::vector<Constant> outputs;
  for (ValueId v : g.outputs) outputs.push_back(*g.ConstantOf(v));
  return outputs;
}

void ExpectEqual(const Constant& want, const Constant& got, bool exact) {
  ASSERT_EQ(want.dtype, got.dtype);
  ASSERT_EQ(want.dims, got.dims);
  const std::vector<double> x = *Numbers(want), y = *Numbers(got);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (exact) {
      ASSERT_EQ(x[i], y[i]) << "element " << i;
      ASSERT_EQ(std::signbit(x[i]), std::signbit(y[i])) << "element " << i;
    } else if (x[i] != y[i]) {
      const double tolerance = BitWidth(want.dtype) < 32 ? 1e-2 : 2e-5;
      ASSERT_NEAR(x[i], y[i], tolerance * std::max(1.0, std::fabs(x[i]))) << "element " << i;
    }
  }
}

class RuleOnRandomGraphs : public ::testing::TestWithParam<const Rule*> {};

TEST_P(RuleOnRandomGraphs, KeepsEveryOutput) {
  const Rule& rule = *GetParam();
  for (std::string_view sample : rule.samples) {
    int applied = 0;
    for (Draw draw : {Draw::kPlain, Draw::kSpecial, Draw::kAllOutputs, Draw::kRepeated}) {
      const bool special = draw == Draw::kSpecial;
      if (special && !rule.exact) continue;
      for (uint32_t seed = 0; seed < 4; ++seed) {
        SCOPED_TRACE(std::string(sample) + "draw " + std::to_string(static_cast<int>(draw)));
        auto before = Instance(sample, draw, seed), after = Instance(sample, draw, seed);
        std::map<std::string_view, int> counts;
        ApplyRules(*after, {&rule}, {}, &counts);
        applied += counts[rule.name];
        ASSERT_EQ(Verify(*after).message(), "") << ToString(*after);
        const std::vector<Constant> want = Outputs(*before, special, seed);
        const std::vector<Constant> got = Outputs(*after, special, seed);
        ASSERT_EQ(want.size(), got.size());
        for (size_t o = 0; o < want.size(); ++o) {
          ExpectEqual(want[o], got[o], rule.exact);
          if (HasFatalFailure()) return;
        }
      }
    }
    EXPECT_GE(applied, 4) << sample;
  }
}

TEST_P(RuleOnRandomGraphs, LeavesNearMissesAlone) {
  for (std::string_view sample : GetParam()->near_misses) {
    auto g = Instance(sample, Draw::kPlain, 0);
    EXPECT_FALSE(ApplyRules(*g, {GetParam()}, {})) << ToString(*g);
  }
}

std::string NameOf(const ::testing::TestParamInfo<const Rule*>& info) {
  return std::string(info.param->name);
}

INSTANTIATE_TEST_SUITE_P(All, RuleOnRandomGraphs, ::testing::ValuesIn(AllRules()), NameOf);

// Zeros in most slices of the constants c_rows (along axis 0) and c_columns (along axis 1).
void ZeroSlices(Graph& g, uint32_t seed) {
  std::mt19937 random(seed);
  for (const Value& v : g.values) {
    if (v.constant == kNone || (v.name != "c_rows" && v.name != "c_columns")) continue;
    Constant& c = g.model->constants[static_cast<size_t>(v.constant)];
    const size_t axis = v.name == "c_rows" ? 0 : 1, slices = static_cast<size_t>(c.dims[axis]);
    size_t inner = 1;
    for (size_t d = axis + 1; d < c.dims.size(); ++d) inner *= static_cast<size_t>(c.dims[d]);
    std::vector<bool> live(slices);
    for (int i = 0; i < 5; ++i) live[random() % slices] = true;
    std::vector<double> values = *Numbers(c);
    for (size_t i = 0; i < values.size(); ++i)
      if (!live[i / inner % slices]) values[i] = i % 2 ? 0.0 : -0.0;
    c = FromNumbers(c.dtype, c.dims, values);
  }
}

// Dots whose constants have zero slices, and what lies between them.
constexpr std::string_view kDeadChannels[] = {
    R"(graph "g" (%x: f32[2,1,9], %c_a: f32[40,1,3], %c_b: f32[40,1,3], %c_rows: f32[40,5]) -> (%y) {
  %a: f32[2,40,7] = Conv(%x, %c_a) @"a"
  %b: f32[2,40,7] = Conv(%x, %c_b) @"b"
  %s: f32[2,40,7] = Mul(%a, %a) @"s"
  %t: f32[2,40,7] = Add(%s, %b) @"t"
  %one = const i64[1] {1}
  %u: f32[2,1,40,7] = Unsqueeze(%t, %one) @"u"
  %v: f32[2,1,7,40] = Transpose(%u) {perm=[0, 1, 3, 2]} @"v"
  %y: f32[2,1,7,5] = MatMul(%v, %c_rows) @"y"
})",
    R"(graph "g" (%x: f32[1,3,8,8], %c_a: f32[36,3,3,3], %c_i: f32[36], %c_d: f32[36,1,3,3], %c_j: f32[36], %c_p: f32[36,1,1], %c_columns: f32[4,36,1,1]) -> (%y) {
  %a: f32[1,36,8,8] = Conv(%x, %c_a, %c_i) {pads=[1, 1, 1, 1]} @"a"
  %r: f32[1,36,8,8] = PRelu(%a, %c_p) @"r"
  %d: f32[1,36,8,8] = Conv(%r, %c_d, %c_j) {group=36, pads=[1, 1, 1, 1]} @"d"
  %m: f32[1,36,4,4] = MaxPool(%d) {kernel_shape=[2, 2], strides=[2, 2]} @"m"
  %y: f32[1,4,4,4] = Conv(%m, %c_columns) @"y"
})",
    R"(graph "g" (%x: f32[3,4], %c_w: f32[4,33], %c_b: f32[33], %c_columns: f32[6,33]) -> (%y) {
  %a: f32[3,33] = Gemm(%x, %c_w, %c_b) {alpha=0.5} @"a"
  %k = const f32[] {2.0}
  %r: f32[3,33] = Mul(%a, %k) @"r"
  %y: f32[3,6] = Gemm(%r, %c_columns) {transB=1} @"y"
})"};

TEST(DeadChannels, KeepsEveryOutput) {
  for (std::string_view sample : kDeadChannels) {
    for (uint32_t seed = 0; seed < 8; ++seed) {
      auto before = Instance(sample, Draw::kPlain, seed),
           after = Instance(sample, Draw::kPlain, seed);
      ZeroSlices(*before, seed);
      ZeroSlices(*after, seed);
      EXPECT_TRUE(FindPass("dead_channels")->run(*after, {}, {})) << sample;
      ASSERT_EQ(Verify(*after).message(), "") << ToString(*after);
      const auto want = Outputs(*before, false, seed), got = Outputs(*after, false, seed);
      ExpectEqual(want[0], got[0], false);
    }
  }
}

// A channel that another node reads is needed.
TEST(DeadChannels, KeepsWhatIsReadElsewhere) {
  for (std::string_view sample : kDeadChannels) {
    auto g = Instance(sample, Draw::kAllOutputs, 1);
    ZeroSlices(*g, 1);
    const std::string text = ToString(*g);
    EXPECT_FALSE(FindPass("dead_channels")->run(*g, {}, {}));
    EXPECT_EQ(ToString(*g), text);
  }
}

// Sums of small powers of two are exact in f16 too, so nothing that is rounded there shows.
TEST(Widen, KeepsExactNumbers) {
  for (
      std::string_view sample :
      {R"(graph "g" (%x: f16[1,1,4,5], %c_w: f16[4,1,1,2], %c_b: f16[4], %c_s: f16[4,1,1]) -> (%y, %m) {
  %a: f16[1,4,4,4] = Conv(%x, %c_w, %c_b) @"a"
  %b: f16[1,4,4,4] = PRelu(%a, %c_s) @"b"
  %p: f16[1,4,2,2], %m: i64[1,4,2,2] = MaxPool(%b) {kernel_shape=[2, 2], strides=[2, 2]} @"p"
  %s: f16[1,4,2,4], %t: f16[1,4,2,4] = Split(%b) {axis=2, num_outputs=2} @"s"
  %y: f16[1,4,2,6] = Concat(%p, %s) {axis=3} @"y"
})",
       R"(graph "g" (%x: f16[2,5], %z: f32[2,5], %c_k: f16[5,3]) -> (%y, %q) {
  %h: f16[2,5] = Cast(%z) {to=10} @"h"
  %w: bool[2,5] = Less(%x, %h) @"w"
  %s: f16[2,5] = Where(%w, %x, %h) @"s"
  %a: f16[2,3] = MatMul(%s, %c_k) @"a"
  %q: f32[2,3] = Cast(%a) {to=1} @"q"
  %y: f16[2,3] = Neg(%a) @"y"
})"}) {
    for (uint32_t seed = 0; seed < 6; ++seed) {
      auto before = Instance(sample, Draw::kPlain, seed),
           after = Instance(sample, Draw::kPlain, seed);
      EXPECT_TRUE(FindPass("widen")->run(*after, {}, {})) << sample;
      ASSERT_EQ(Verify(*after).message(), "") << ToString(*after);
      const auto want = Outputs(*before, false, seed), got = Outputs(*after, false, seed);
      ASSERT_EQ(want.size(), got.size());
      for (size_t o = 0; o < want.size(); ++o) ExpectEqual(want[o], got[o], true);
    }
  }
}

}  // namespace
}  // namespace ge
