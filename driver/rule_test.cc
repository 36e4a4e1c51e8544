// Every rule of opt/rules/ on random graphs: each sample graph gets random constants and inputs,
// and all outputs are computed before and after the rewrite.
//
// Draws: small integers and powers of two (sums are exact, so exact rules must agree to the bit);
// special values (NaN, signed zeros, infinities) for exact rules; every inner value also an output;
// inputs of one type made the same value.
#include "opt/rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "abi/convert.h"
#include "driver/evaluate.h"
#include "opt/facts.h"

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
    } else {
      ASSERT_NEAR(x[i], y[i], 2e-5 * std::max(1.0, std::fabs(x[i]))) << "element " << i;
    }
  }
}

class RuleOnRandomGraphs : public ::testing::TestWithParam<const Rule*> {};

TEST_P(RuleOnRandomGraphs, KeepsEveryOutput) {
  const Rule& rule = *GetParam();
  int applied = 0;
  for (std::string_view sample : rule.samples) {
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
  }
  EXPECT_GE(applied, 4);
}

std::string NameOf(const ::testing::TestParamInfo<const Rule*>& info) {
  return std::string(info.param->name);
}

INSTANTIATE_TEST_SUITE_P(All, RuleOnRandomGraphs, ::testing::ValuesIn(AllRules()), NameOf);

}  // namespace
}  // namespace ge
