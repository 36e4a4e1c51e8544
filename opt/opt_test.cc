// Passes and rules: text IR in, text IR out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>

#include "ir/opdef.h"
#include "ir/patch.h"
#include "opt/facts.h"
#include "opt/pass.h"
#include "opt/pattern.h"
#include "opt/rule.h"

namespace ge {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Graph> Parsed(std::string_view text) {
  auto g = ParseGraph(text);
  EXPECT_TRUE(g.ok()) << g.status().message() << "\n" << text;
  if (!g.ok()) std::abort();
  return std::move(*g);
}

// Stands for the evaluator of a higher floor: negates f32 constants.
std::vector<Constant> EvaluateNeg(const Graph& g, const Node& n) {
  if (n.op->name != "Neg") return {};
  const Constant& c = *g.ConstantOf(n.inputs[0]);
  auto values = *Numbers(c);
  for (double& v : values) v = -v;
  return {FromNumbers(c.dtype, c.dims, values)};
}

std::string After(std::string_view pass, std::string_view text, const Policy& policy = {}) {
  auto g = Parsed(text);
  FindPass(pass)->run(*g, policy, {.evaluate = EvaluateNeg});
  EXPECT_EQ(Verify(*g).message(), "") << ToString(*g);
  return ToString(*g);
}

std::string Same(std::string_view text) { return ToString(*Parsed(text)); }

TEST(DeadCode, SweepsWhatNobodyReads) {
  EXPECT_EQ(After("dead_code", R"(graph "g" (%x: f32[4]) -> (%y) {
  %u: f32[4] = Exp(%x) @"u"
  %v: f32[4] = Neg(%u) @"v"
  %y: f32[4] = Neg(%x) @"y"
})"),
            Same(R"(graph "g" (%x: f32[4]) -> (%y) {
  %y: f32[4] = Neg(%x) @"y"
})"));
}

constexpr std::string_view kNestedIf = R"(graph "g" (%x: f32[4], %q: bool[]) -> (%y) {
  %c = const bool[] {1}
  %y: f32[4] = If(%c, %x, %q) {captures=2} @"if"
    graph "then" (%x: f32[4], %q: bool[]) -> (%o) {
      %no = const bool[] {0}
      %o: f32[4] = If(%no, %x) {captures=1} @"inner"
        graph "then" (%x: f32[4]) -> (%a) {
          %a: f32[4] = Exp(%x) @"a"
        }
        graph "else" (%x: f32[4]) -> (%a) {
          %a: f32[4] = Neg(%x) @"b"
        }
    }
    graph "else" (%x: f32[4], %q: bool[]) -> (%o) {
      %o: f32[4] = Sin(%x) @"o"
    }
})";

TEST(DeadCode, InlinesNestedIfsOfKnownConditions) {
  auto g = Parsed(kNestedIf);
  FindPass("dead_code")->run(*g, {}, {});
  EXPECT_EQ(Verify(*g).message(), "") << ToString(*g);
  const std::string text = ToString(*g);
  EXPECT_THAT(text, HasSubstr("Neg(%x)"));
  EXPECT_THAT(text, Not(HasSubstr("If(")));
  EXPECT_THAT(text, Not(HasSubstr("Exp")));
  EXPECT_EQ(g->value(g->outputs[0]).name, "y");
  FindPass("rules")->run(*g, {}, {});
  EXPECT_EQ(g->order.size(), 1u) << ToString(*g);
  EXPECT_EQ(g->value(g->outputs[0]).name, "y");
}

TEST(DeadCode, DropsCapturesThatNoBranchReads) {
  const std::string text =
      After("dead_code", R"(graph "g" (%c: bool[], %x: f32[4], %z: f32[4]) -> (%y) {
  %u: f32[4] = Exp(%z) @"u"
  %y: f32[4] = If(%c, %u, %x) {captures=2} @"if"
    graph "then" (%u: f32[4], %x: f32[4]) -> (%o) {
      %o: f32[4] = Neg(%x) @"o"
    }
    graph "else" (%u: f32[4], %x: f32[4]) -> (%o) {
      %w: f32[4] = Sin(%u) @"w"
      %o: f32[4] = Cos(%x) @"o"
    }
})");
  EXPECT_THAT(text, HasSubstr("If(%c, %x) {captures=1}"));
  EXPECT_THAT(text, Not(HasSubstr("Exp")));
}

TEST(ConstantFolding, ByEvaluation) {
  EXPECT_EQ(After("constant_folding", R"(graph "g" (%x: f32[2]) -> (%y) {
  %k = const f32[2] {1.0, 2.0}
  %n: f32[2] = Neg(%k) @"n"
  %m: f32[2] = Neg(%n) @"m"
  %y: f32[2] = Add(%x, %m) @"y"
})"),
            Same(R"(graph "g" (%x: f32[2]) -> (%y) {
  %m = const f32[2] {1.0, 2.0}
  %y: f32[2] = Add(%x, %m) @"y"
})"));
}

TEST(ConstantFolding, ByFacts) {
  const std::string text = After("constant_folding", R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %s: i64[2] elems[2, 3] = Shape(%x) @"s"
  %y: f32[2,3] = Expand(%x, %s) @"y"
})");
  EXPECT_THAT(text, HasSubstr("const i64[2] {2, 3}"));
  EXPECT_THAT(text, Not(HasSubstr("Shape(")));
}

TEST(ConstantFolding, RespectsTheLimit) {
  Policy policy;
  policy.fold_limit_bytes = 4;
  std::vector<std::string> lines;
  policy.report = [&](const std::string& line) { lines.push_back(line); };
  const char* text = R"(graph "g" (%x: f32[2]) -> (%y) {
  %k = const f32[2] {1.0, 2.0}
  %n: f32[2] = Neg(%k) @"n"
  %y: f32[2] = Add(%x, %n) @"y"
})";
  EXPECT_EQ(After("constant_folding", text, policy), Same(text));
  EXPECT_THAT(lines, Contains("constant_folding: n: its 8 bytes exceed the limit of 4"));
}

TEST(ConstantFolding, SinksCapturedConstants) {
  const std::string text = After("constant_folding", R"(graph "g" (%c: bool[], %x: f32[2]) -> (%y) {
  %k = const f32[2] {1.0, 2.0}
  %y: f32[2] = If(%c, %k, %x) {captures=2} @"if"
    graph "then" (%k: f32[2], %x: f32[2]) -> (%o) {
      %n: f32[2] = Neg(%k) @"n"
      %o: f32[2] = Add(%x, %n) @"o"
    }
    graph "else" (%k: f32[2], %x: f32[2]) -> (%o) {
      %o: f32[2] = Mul(%x, %k) @"o"
    }
})");
  EXPECT_THAT(text, HasSubstr("If(%c, %x) {captures=1}"));
  EXPECT_THAT(text, HasSubstr("{-1.0, -2.0}"));
}

TEST(LoopInvariants, CapturesWhatTheBodyHandsOn) {
  const std::string text =
      After("loop_invariants",
            R"(graph "g" (%n: i64[], %x: f32[2], %w: f32[2], %u: f32[2]) -> (%last, %same) {
  %go = const bool[] {1}
  %last, %same, %unread = Loop(%n, %go, %x, %w, %u) {captures=0} @"loop"
    graph "body" (%i: i64[], %c: bool[], %a: f32[2], %v: f32[2], %z: f32[2]) -> (%c, %b, %v, %b) {
      %b: f32[2] = Add(%a, %v) @"add"
    }
})");
  EXPECT_THAT(text, HasSubstr("%last: f32[2] = Loop(%n, %go, %x, %w) {captures=1}"));
  EXPECT_THAT(text,
              HasSubstr("(%i: i64[], %c: bool[] elems[1], %a: f32[2], %v: f32[2]) -> (%c, %b)"));
  EXPECT_THAT(text, HasSubstr("%same: f32[2] = Identity(%w)"));
}

TEST(LoopInvariants, DotsOfCapturedValuesAreComputedOnce) {
  const std::string text =
      After("loop_invariants",
            R"(graph "g" (%n: i64[], %x: f32[2,2], %f: f32[2,2], %w: f32[2,2]) -> (%last) {
  %go = const bool[] {1}
  %last = Loop(%n, %go, %x, %f, %w) {captures=2} @"loop"
    graph "body" (%i: i64[], %c: bool[], %a: f32[2,2], %f: f32[2,2], %w: f32[2,2]) -> (%c, %b) {
      %t: f32[2,2] = Neg(%f) @"t"
      %p: f32[2,2] = MatMul(%t, %w) @"p"
      %e: f32[2,2] = Exp(%w) @"e"
      %q: f32[2,2] = MatMul(%a, %e) @"q"
      %b: f32[2,2] = Add(%p, %q) @"b"
    }
})");
  const size_t loop = text.find("Loop(");
  EXPECT_LT(text.find("Neg("), loop);
  EXPECT_LT(text.find("MatMul(%t, %w)"), loop);
  EXPECT_GT(text.find("Exp("), loop);  // alone it costs less where it is fused
  EXPECT_GT(text.find("MatMul(%a, %e)"), loop);
  EXPECT_THAT(text, HasSubstr("{captures=3}"));
}

TEST(LoopInvariants, ScanHasCarriedValuesToo) {
  const std::string text =
      After("loop_invariants",
            R"(graph "g" (%s: f32[2], %w: f32[2], %x: f32[3,2]) -> (%last, %same, %all) {
  %last, %same, %all = Scan(%s, %w, %x) {captures=0, num_scan_inputs=1} @"scan"
    graph "body" (%a: f32[2], %v: f32[2], %x: f32[2]) -> (%b, %v, %y) {
      %b: f32[2] = Add(%a, %x) @"b"
      %y: f32[2] = Mul(%b, %v) @"y"
    }
})");
  EXPECT_THAT(text, HasSubstr("%all: f32[3,2] = Scan(%s, %x, %w) {captures=1, num_scan_inputs=1}"));
  EXPECT_THAT(text, HasSubstr("%same: f32[2] = Identity(%w)"));
}

TEST(ConcatParts, WholeForItsParts) {
  EXPECT_EQ(After("concat_parts", R"(graph "g" (%x: f32[4,2], %z: f32[1,2]) -> (%y, %b) {
  %a: f32[2,2], %b: f32[2,2] = Split(%x) {axis=0, num_outputs=2} @"s"
  %y: f32[5,2] = Concat(%a, %b, %z) {axis=0} @"y"
})"),
            Same(R"(graph "g" (%x: f32[4,2], %z: f32[1,2]) -> (%y, %b) {
  %a: f32[2,2], %b: f32[2,2] = Split(%x) {axis=0, num_outputs=2} @"s"
  %y: f32[5,2] = Concat(%x, %z) {axis=0} @"y"
})"));
}

// Another order, another axis, a part missing.
TEST(ConcatParts, KeepsWhatIsNotTheWhole) {
  for (const std::string concat :
       {"Concat(%b, %a) {axis=0}", "Concat(%a, %b) {axis=1}", "Concat(%b, %z) {axis=0}"}) {
    const std::string text = R"(graph "g" (%x: f32[4,2], %z: f32[2,2]) -> (%y) {
  %a, %b = Split(%x) {axis=0, num_outputs=2} @"s"
  %y = )" + concat + " @\"y\"\n}";
    EXPECT_EQ(After("concat_parts", text), Same(text));
  }
}

// Conversions stay where halves enter and leave; the constant is f32.
TEST(Widen, ComputesInF32BetweenInputsAndOutputs) {
  EXPECT_EQ(After("widen", R"(graph "g" (%x: f16[2,3]) -> (%y) {
  %w = const f16[3,2] hex "003c00400038004400480034"
  %a: f16[2,2] = MatMul(%x, %w) @"a"
  %t: f16[2,2] = Transpose(%a) @"t"
  %y: f16[2,2] = Relu(%t) @"y"
})"),
            Same(R"(graph "g" (%x: f16[2,3]) -> (%y) {
  %a.const1 = const f32[3,2] {1.0, 2.0, 0.5, 4.0, 8.0, 0.25}
  %a: f32[2,3] = Cast(%x) {to=1} @"a"
  %a.f32: f32[2,2] = MatMul(%a, %a.const1) @"a.MatMul1" from["a"]
  %t.f32: f32[2,2] = Transpose(%a.f32) @"t"
  %y.f32: f32[2,2] = Relu(%t.f32) @"y"
  %y: f16[2,2] = Cast(%y.f32) {to=10} @"y.Cast1" from["y"]
})"));
}

// A table of which some rows are taken, and what is cast back at once, stay as they are.
TEST(Widen, KeepsTablesAndRoundings) {
  const std::string text = After("widen", R"(graph "g" (%x: f32[4], %i: i64[2]) -> (%y, %z) {
  %table = const f16[3,2] hex "003c00400038004400480034"
  %g: f16[2,2] = Gather(%table, %i) @"g"
  %y: f16[2,2] = Neg(%g) @"y"
  %h: f16[4] = Cast(%x) {to=10} @"h"
  %z: f32[4] = Cast(%h) {to=1} @"z"
})");
  EXPECT_THAT(text, HasSubstr("%g: f16[2,2] = Gather(%table, %i)"));
  EXPECT_THAT(text, HasSubstr("= Cast(%g) {to=1}"));
  EXPECT_THAT(text, HasSubstr("%h: f16[4] = Cast(%x) {to=10}"));
  EXPECT_THAT(text, HasSubstr("%z: f32[4] = Cast(%h) {to=1}"));
}

// A part computed in f32 by the model's own Casts is no island any more.
TEST(Widen, DropsCastsBetweenComputations) {
  const std::string text = After("widen", R"(graph "g" (%x: f32[4]) -> (%y) {
  %h: f16[4] = Cast(%x) {to=10} @"h"
  %a: f16[4] = Exp(%h) @"a"
  %b: f32[4] = Cast(%a) {to=1} @"b"
  %c: f32[4] = Neg(%b) @"c"
  %d: f16[4] = Cast(%c) {to=10} @"d"
  %e: f16[4] = Add(%d, %a) @"e"
  %y: f32[4] = Cast(%e) {to=1} @"y"
})");
  EXPECT_THAT(text, Not(HasSubstr("Cast")));
  EXPECT_THAT(text, Not(HasSubstr("f16")));
}

TEST(Cse, MergesEqualNodes) {
  EXPECT_EQ(After("cse", R"(graph "g" (%x: f32[2]) -> (%y, %b) {
  %k = const f32[2] {1.0, 2.0}
  %l = const f32[2] {1.0, 2.0}
  %a: f32[2] = Add(%x, %k) @"a"
  %b: f32[2] = Add(%x, %l) @"b"
  %d: f32[2] = Elu(%x) {alpha=0.5} @"d"
  %e: f32[2] = Elu(%x) {alpha=0.25} @"e"
  %s: f32[2] = Sum(%a, %b, %d, %e) @"s"
  %y: f32[2] = Neg(%s) @"y"
})"),
            Same(R"(graph "g" (%x: f32[2]) -> (%y, %b) {
  %k = const f32[2] {1.0, 2.0}
  %b: f32[2] = Add(%x, %k) @"a" from["a", "b"]
  %d: f32[2] = Elu(%x) {alpha=0.5} @"d"
  %e: f32[2] = Elu(%x) {alpha=0.25} @"e"
  %s: f32[2] = Sum(%b, %b, %d, %e) @"s"
  %y: f32[2] = Neg(%s) @"y"
})"));
}

TEST(Cse, KeepsWhatIsRandom) {
  const char* text = R"(graph "g" () -> (%a, %b) {
  %a: f32[2] = RandomUniform() {shape=[2]} @"a"
  %b: f32[2] = RandomUniform() {shape=[2]} @"b"
})";
  EXPECT_EQ(After("cse", text), Same(text));
}

// One rounding for all readers of a value; small weights stay.
TEST(Bf16, RoundsFactorsOnce) {
  Graph g;
  g.name = "g";
  g.model = std::make_shared<Model>();
  const ValueId x = g.AddInput("x", {DType::kF32, {8, 16}, {}});
  auto weights = [&](const char* name, int64_t columns) {
    return g.AddConstant(name, FromNumbers(DType::kF32, {16, columns},
                                           std::vector<double>(16 * columns, 1.00390625)));
  };
  for (int64_t columns : {16, 32, 4}) {
    const NodeId dot = g.AddNode(*FindOp("", "MatMul"), "dot" + std::to_string(columns),
                                 {x, weights("w", columns)}, 1);
    ASSERT_TRUE(Infer(g, g.node(dot)).ok());
    g.outputs.push_back(g.node(dot).outputs[0]);
  }
  Policy policy;
  EXPECT_FALSE(FindPass("bf16")->run(g, policy, {}));
  policy.bf16 = true;
  EXPECT_TRUE(FindPass("bf16")->run(g, policy, {}));
  EXPECT_EQ(Verify(g).message(), "");
  int casts = 0, rounded = 0, plain = 0;
  for (NodeId n : g.order) {
    casts += g.node(n).op->name == "Cast";
    rounded += g.node(n).op->name == "MatMul" && g.node(n).op->domain == "ge";
    plain += g.node(n).op->name == "MatMul" && g.node(n).op->domain.empty();
  }
  EXPECT_EQ(casts, 1);
  EXPECT_EQ(rounded, 2);
  EXPECT_EQ(plain, 1);
  for (ValueId v : g.outputs) EXPECT_EQ(g.value(v).type.dtype, DType::kF32);
}

TEST(Rules, EachAppliesToItsSamples) {
  EXPECT_GT(AllRules().size(), 25u);
  for (const Rule* rule : AllRules()) {
    EXPECT_FALSE(rule->samples.empty()) << rule->name;
    for (std::string_view sample : rule->samples) {
      auto g = Parsed(sample);
      EXPECT_EQ(Verify(*g).message(), "") << sample;
      // Inputs c... are constants.
      std::vector<ValueId> inputs;
      for (ValueId v : g->inputs) {
        if (!g->value(v).name.starts_with("c_")) {
          inputs.push_back(v);
          continue;
        }
        std::vector<int64_t> dims;
        int64_t n = 1;
        for (const Expr& d : g->value(v).type.dims) dims.push_back(d.value()), n *= d.value();
        const Constant c = FromNumbers(g->value(v).type.dtype, dims,
                                       std::vector<double>(static_cast<size_t>(n), 0.75));
        g->model->constants.push_back(c);
        g->value(v).constant = static_cast<ConstId>(g->model->constants.size()) - 1;
      }
      g->inputs = inputs;
      std::map<std::string_view, int> counts;
      std::vector<std::string> lines;
      Policy policy;
      policy.report = [&](const std::string& line) { lines.push_back(line); };
      EXPECT_TRUE(ApplyRules(*g, {rule}, policy, &counts)) << rule->name << "\n" << sample;
      EXPECT_GE(counts[rule->name], 1) << rule->name << ": " << ::testing::PrintToString(lines);
      EXPECT_EQ(Verify(*g).message(), "") << rule->name << "\n" << ToString(*g);
      policy.disabled = {std::string(rule->name)};
      EXPECT_FALSE(ApplyRules(*Parsed(sample), {rule}, policy));
    }
  }
}

TEST(Rules, ReportsNearMisses) {
  std::vector<std::string> lines;
  Policy policy;
  policy.report = [&](const std::string& line) { lines.push_back(line); };
  const char* text = R"(graph "g" (%x: f32[1,3,5,5], %w: f32[4,3,3,3]) -> (%y, %i) {
  %k = const f32[] {3.0}
  %v = const f32[4,3,1,1] {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}
  %a: f32[1,4,3,3] = Conv(%x, %w) @"a"
  %b: f32[1,4,3,3] = Mul(%a, %k) @"b"
  %i: f32[1,4,5,5] = Conv(%x, %v) @"i"
  %d: f32[1,4,5,5] = Mul(%i, %k) @"d"
  %m: f32[1,4,1,1] = GlobalMaxPool(%d) @"m"
  %y: f32[1,4,3,3] = Mul(%b, %m) @"y"
})";
  After("rules", text, policy);
  EXPECT_THAT(lines, Contains("conv_mul: b: w is not a constant"));
  EXPECT_THAT(lines, Contains("conv_mul: d: value i is used elsewhere"));
}

// Found step by step: an RMSNorm of what is centred, then with a bias.
TEST(Rules, LayerNormIsTakenWhole) {
  const char* text = R"(graph "g" (%x: f32[2,4]) -> (%y) {
  %a = const i64[1] {-1}
  %e = const f32[] {0.25}
  %g = const f32[4] {1.0, 2.0, 3.0, 4.0}
  %b = const f32[4] {1.0, 2.0, 3.0, 4.0}
  %m: f32[2,1] = ReduceMean(%x, %a) @"m"
  %d: f32[2,4] = Sub(%x, %m) @"d"
  %s: f32[2,4] = Mul(%d, %d) @"s"
  %v: f32[2,1] = ReduceMean(%s, %a) @"v"
  %w: f32[2,1] = Add(%v, %e) @"w"
  %r: f32[2,1] = Sqrt(%w) @"r"
  %n: f32[2,4] = Div(%d, %r) @"n"
  %t: f32[2,4] = Mul(%n, %g) @"t"
  %y: f32[2,4] = Add(%t, %b) @"y"
})";
  const std::string after = After("rules", text);
  EXPECT_THAT(after, HasSubstr("LayerNormalization(%x, %g, %b)"));
  EXPECT_THAT(after, Not(HasSubstr("RMS")));
}

// Heads of keys and values that are repeated side by side are shared; those that are repeated as a
// whole are not. Numbers before the product are part of the scale.
TEST(Rules, AttentionSharesRepeatedHeads) {
  const std::string text =
      R"(graph "g" (%q: f32[1,6,5,4], %k: f32[1,2,7,4], %v: f32[1,2,7,16]) -> (%y) {
  %a = const i64[1] {AXIS}
  %c = const f32[] {0.5}
  %kn = const i64[5] {1, MANY, 7, 4}
  %vn = const i64[5] {1, MANY, 7, 16}
  %ks = const i64[4] {1, 6, 7, 4}
  %vs = const i64[4] {1, 6, 7, 16}
  %k1: f32[1,ONE,7,4] = Unsqueeze(%k, %a) @"k1"
  %k2: f32[1,MANY,7,4] = Expand(%k1, %kn) @"k2"
  %k3: f32[1,6,7,4] = Reshape(%k2, %ks) @"k3"
  %v1: f32[1,ONE,7,16] = Unsqueeze(%v, %a) @"v1"
  %v2: f32[1,MANY,7,16] = Expand(%v1, %vn) @"v2"
  %v3: f32[1,6,7,16] = Reshape(%v2, %vs) @"v3"
  %t: f32[1,6,4,7] = Transpose(%k3) {perm=[0,1,3,2]} @"t"
  %u: f32[1,6,4,7] = Mul(%t, %c) @"u"
  %p: f32[1,6,5,4] = Mul(%q, %c) @"p"
  %s: f32[1,6,5,7] = MatMul(%p, %u) @"s"
  %w: f32[1,6,5,7] = Softmax(%s) {axis=-1} @"w"
  %y: f32[1,6,5,16] = MatMul(%w, %v3) @"y"
})";
  auto with = [&](const std::string& axis, const std::string& one, const std::string& many) {
    std::string t = text;
    for (const auto& [from, to] : {std::pair{"AXIS", axis}, {"ONE", one}, {"MANY", many}})
      for (size_t at; (at = t.find(from)) != std::string::npos;) t.replace(at, strlen(from), to);
    return After("rules", t);
  };
  const std::string together = with("2", "2,1", "2,3"), apart = with("1", "1,2", "3,2");
  EXPECT_THAT(together, HasSubstr("scale=0.25, shared=3"));
  EXPECT_THAT(together, Not(HasSubstr("Expand")));
  EXPECT_THAT(apart, HasSubstr("ge.Attend"));
  EXPECT_THAT(apart, Not(HasSubstr("shared")));
}

TEST(Rules, AddOfPositiveZeroStays) {
  const char* text = R"(graph "g" (%x: f32[4]) -> (%y) {
  %k = const f32[] {0.0}
  %y: f32[4] = Add(%x, %k) @"y"
})";
  EXPECT_EQ(After("rules", text), Same(text));
}

TEST(Pattern, TriesBothOrdersAndRepeatedNames) {
  auto g = Parsed(R"(graph "g" (%x: f32[4], %z: f32[4]) -> (%y, %w) {
  %a: f32[4] = Neg(%x) @"a"
  %y: f32[4] = Add(%x, %a) @"y"
  %b: f32[4] = Neg(%x) @"b"
  %w: f32[4] = Add(%z, %b) @"w"
})");
  UseLists uses(*g);
  Pattern p("Add(Neg(x), x)");
  std::string miss;
  Match m{*g, {}, {}};
  EXPECT_TRUE(p.At(uses, g->value(g->outputs[0]).producer, m, miss));
  EXPECT_EQ(m["x"], g->inputs[0]);
  EXPECT_FALSE(p.At(uses, g->value(g->outputs[1]).producer, m, miss));
}

TEST(Order, IsChecked) {
  const std::string_view good[] = {"constant_folding", "rules"}, bad[] = {"rules", "none"};
  EXPECT_TRUE(CheckOrder(good).ok());
  EXPECT_EQ(CheckOrder(bad).message(),
            "pass 'rules' needs 'folded', which no pass before it gives\nthere is no pass 'none'");
}

TEST(Rules, AreAboutLinear) {
#ifndef GE_SANITIZED
  auto seconds = [](int n) {
    std::string text =
        "graph \"g\" (%v0: f32[4]) -> (%v" + std::to_string(n) + ") {\n  %k = const f32[] {1.5}\n";
    for (int i = 0; i < n; ++i) {
      const std::string out = std::to_string(i + 1), in = "%v" + std::to_string(i);
      const char* op = i % 3 == 0 ? "Neg(" : (i % 3 == 1 ? "Identity(" : "Mul(%k, ");
      text += "  %v" + out + ": f32[4] = " + op + in + ") @\"n" + out + "\"\n";
    }
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      auto g = Parsed(text + "}");
      const std::clock_t t0 = std::clock();  // of this process: other load does not count
      for (const char* pass : {"constant_folding", "dead_code", "rules", "cse"})
        FindPass(pass)->run(*g, {}, {});
      best = std::min(best, static_cast<double>(std::clock() - t0) / CLOCKS_PER_SEC);
    }
    return best;
  };
  const double small = std::max(seconds(2000), 0.005), large = seconds(20000);
  EXPECT_LT(large, 50 * small);  // quadratic: 100
  EXPECT_LT(large, 5);
  std::printf("2,000 nodes %.1f ms, 20,000 nodes %.1f ms\n", small * 1e3, large * 1e3);
#endif
}

}  // namespace
}  // namespace ge
