// AscendIR: text round trips, verifier, patches, expansion, and their cost on a long chain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <limits>

#include "ir/expand.h"
#include "ir/graph.h"
#include "ir/opdef.h"
#include "ir/patch.h"
#include "ir/policy.h"
#include "ir/text.h"

namespace ge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Operators of this test only: the real ones are on a higher floor.
Status InferSame(InferContext& c) {
  for (int i = 1; i < c.NumInputs(); ++i)
    if (c.Has(i) && c.In(i).dtype != c.In(0).dtype)
      return c.Fault("operands are " + ToString(c.In(0)) + " and " + ToString(c.In(i)));
  c.Out(0, c.In(0).dtype, c.In(0).dims);
  if (const auto* e = c.Elems(0); e && c.NumInputs() == 1) c.OutElems(0, *e);
  return Status();
}
Status InferCount(InferContext& c) {
  c.Out(0, DType::kI64, {c.Fresh("found", 0, 10)});
  return Status();
}
Status InferReshape(InferContext& c) {
  if (!c.Elems(1)) return c.Fault("shape is not known");
  c.Out(0, c.In(0).dtype, *c.Elems(1));
  c.Check(Eq(Product(*c.Elems(1)), c.In(0).Elements()), "element counts differ");
  return Status();
}
Status InferBody(InferContext& c) {
  const Graph& body = *c.node.subgraphs[0];
  c.Out(0, body.value(body.outputs[0]).type.dtype, body.value(body.outputs[0]).type.dims);
  return Status();
}
// Twice(x) = Add(x, x); refuses f64.
bool ExpandTwice(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  if (e.Type(e.In(0)) == DType::kF64) return false;
  return e.Done({e.Op("Add", {e.In(0), e.In(0)})});
}
// Fails inside: mixes types.
bool ExpandWrong(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId y = e.Op("Add", {e.In(0), e.Scalar(DType::kI32, 1)});
  return e.Done({e.Op("Neg", {y})});
}
bool ExpandNested(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  return e.Done({e.Op("Twice", {e.Op("Twice", {e.In(0)})})});
}

[[maybe_unused]] const OpDef* const kOps[] = {
    &Register({.name = "Add", .min_inputs = 2, .max_inputs = 2, .infer = InferSame}),
    &Register({.name = "Neg", .infer = InferSame}),
    &Register({.name = "Identity", .infer = InferSame}),
    &Register({.name = "Count", .infer = InferCount}),
    &Register({.name = "Reshape", .min_inputs = 2, .max_inputs = 2, .infer = InferReshape}),
    &Register({.name = "Loop", .max_inputs = -1, .infer = InferBody, .control = true}),
    &Register({.name = "Twice", .infer = InferSame, .expand = ExpandTwice}),
    &Register({.name = "Wrong", .infer = InferSame, .expand = ExpandWrong}),
    &Register(
        {.name = "Nested", .domain = "test.deep", .infer = InferSame, .expand = ExpandNested}),
};

std::unique_ptr<Graph> Parsed(std::string_view text) {
  auto g = ParseGraph(text);
  EXPECT_TRUE(g.ok()) << g.status().message() << "\n" << text;
  if (!g.ok()) std::abort();
  EXPECT_EQ(Verify(**g).message(), "");
  return std::move(*g);
}

std::vector<std::string> OpsInOrder(const Graph& g) {
  std::vector<std::string> ops;
  for (NodeId id : g.order) ops.push_back(g.node(id).op->name);
  return ops;
}

constexpr std::string_view kEverything = R"(symbol batch lo=1 hi=64 multiple=2 hint=8
symbol found hi=10
check batch <= 50: "batch is \"large\""
graph "all of it" (%x: f32[batch,3], %"odd:name 0": i64[2] elems[batch, batch*3], %s: seq f32[], %o: opt f32[2]) -> (%y, %a) {
  %w = const f32[2,3] {1.0, -0.0, 0.1, inf, -inf, 3e-45}
  %n = const f32[2] hex "0000c07f0000c0ff"
  %b = const bool[2] {1, 0}
  %t = const string[2] {"a\"b", "\x00c"}
  %h = const f16[1] hex "003c"
  %u = const u64[1] {18446744073709551615}
  %a: f32[batch,3]{[1:1 0:1]} halo[1:1:2] = Add(%x, %x) {alpha=0.5, axis=-1, e=ints[], f=[1.0, 2.5], g=strings[], h=floats[], mode="linear", names=["p", "q"], pads=[0, 1], value=const i64[1] {7}} @"node a" from["n1", "n2"]
  %k: i64[found] = Count(%b) @"k" fresh[found]
  %y: f32[batch,3] = Loop(%a, %w, _, %n, %t, %h, %u)
    graph "body" (%i: f32[batch,3], %c: f32[2,3], %x: f32[], %e: f32[2], %p: string[2], %q: f16[1], %r: u64[1]) -> (%out) {
      %out: f32[batch,3] = Neg(%i)
    }
}
)";

TEST(Text, PrintsWhatItParsed) {
  auto first = ParseGraph(kEverything);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::string text = ToString(**first);
  auto second = ParseGraph(text);
  ASSERT_TRUE(second.ok()) << second.status().message() << "\n" << text;
  EXPECT_EQ(ToString(**second), text);
  const Graph& g = **second;
  EXPECT_EQ(g.name, "all of it");
  EXPECT_EQ(g.value(g.inputs[1]).name, "odd:name 0");
  EXPECT_EQ(g.value(g.inputs[1]).elems->size(), 2u);
  EXPECT_EQ(g.value(g.inputs[2]).kind, ValueKind::kSequence);
  EXPECT_EQ(g.value(g.inputs[3]).kind, ValueKind::kOptional);
  const Node& a = g.node(g.order[0]);
  EXPECT_EQ(a.name, "node a");
  EXPECT_THAT(a.origin, ElementsAre("n1", "n2"));
  EXPECT_EQ(AttrOr<float>(a, "alpha", 0), 0.5f);
  EXPECT_EQ(AttrOr<int64_t>(a, "axis", 0), -1);
  EXPECT_TRUE(std::holds_alternative<std::vector<std::string>>(a.attrs.at("g")));
  EXPECT_EQ(g.value(a.outputs[0]).halo.size(), 1u);
  EXPECT_FALSE(g.value(a.outputs[0]).type.layout.IsNd());
  EXPECT_EQ(g.node(g.order[2]).subgraphs.size(), 1u);
  EXPECT_EQ(g.model->checks.size(), 1u);
  EXPECT_EQ(g.arena().Find("batch")->node()->facts.hi, 64);
}

TEST(Text, LargeConstantsAreHexOrElided) {
  Graph g;
  g.model = std::make_shared<Model>();
  std::vector<float> data(100, 1.5f);
  g.outputs = {g.AddConstant("c", MakeConstant(DType::kF32, {100}, data.data()))};
  const std::string text = ToString(g);
  auto again = ParseGraph(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  const Constant* c = (*again)->ConstantOf((*again)->outputs[0]);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(std::memcmp(c->bytes.data(), data.data(), 400), 0);
  const std::string elided = ToString(g, 64);
  EXPECT_LT(elided.size(), 200u);
  EXPECT_THAT(ParseGraph(elided).status().message(), HasSubstr("without its large constants"));
}

TEST(Text, NamesThatClashAreMadeUnique) {
  Graph g;
  g.model = std::make_shared<Model>();
  TensorType t;
  t.dtype = DType::kF32;
  g.AddInput("x", t);
  g.AddInput("x", t);
  g.AddInput("", t);
  auto again = ParseGraph(ToString(g));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->inputs.size(), 3u);
}

TEST(Text, InfersTypesThatAreLeftOut) {
  auto g = Parsed("graph (%x: f32[2]) -> (%z) { %y = Neg(%x) %z = Add(%y, %x) }");
  EXPECT_EQ(ToString(g->value(g->outputs[0]).type), "f32[2]");
}

TEST(Text, FaultsSayWhere) {
  auto fault = [](std::string_view text) {
    auto g = ParseGraph(text);
    return g.ok() ? std::string("parsed") : g.status().message();
  };
  EXPECT_THAT(fault("graph (%x: f32[2]) -> (%y) {\n  %y = Nag(%x)\n}"),
              HasSubstr("unknown operator Nag"));
  EXPECT_THAT(fault("graph (%x: f32[2]) -> (%y) {\n  %y = Neg(%z)\n}"),
              HasSubstr("%z is not defined"));
  EXPECT_THAT(fault("graph (%x: f32[2]) -> (%x) {\n  %x = Neg(%x)\n}"), HasSubstr("defined twice"));
  EXPECT_THAT(fault("graph () -> (%c) { %c = const f32[3] {1, 2} }"), HasSubstr("8 bytes given"));
  EXPECT_THAT(fault("graph () -> (%c) { %c = const i8[1] {300} }"), HasSubstr("out of range"));
  EXPECT_THAT(fault("graph () -> (%c) { %c = const f32[1099511627776,1099511627776] hex \"\" }"),
              HasSubstr("too large"));
  EXPECT_THAT(fault("graph (%x: f32[2], %i: i32[]) -> (%y) { %y = Add(%x, %i) }"),
              HasSubstr("operands are f32[2] and i32[]"));
  EXPECT_NE(fault("graph"), "parsed");
  EXPECT_NE(fault(""), "parsed");
}

TEST(Text, EveryTruncationIsAFault) {
  const std::string text(kEverything);
  for (size_t n = 0; n + 2 < text.size(); n += 3)
    EXPECT_FALSE(ParseGraph(std::string_view(text).substr(0, n)).ok()) << n;
}

TEST(Text, Attributes) {
  auto attrs = ParseAttrs("{axis=1, alpha=1e-05, names=[\"a\"], pads=[1, -2]}");
  ASSERT_TRUE(attrs.ok()) << attrs.status().message();
  EXPECT_EQ(ToString(*attrs), "{alpha=1e-05, axis=1, names=[\"a\"], pads=[1, -2]}");
  EXPECT_TRUE(ParseAttrs("")->empty());
  EXPECT_FALSE(ParseAttrs("{axis=1, axis=2}").ok());
  EXPECT_FALSE(ParseAttrs("{x=[1, 2.5]}").ok());
}

TEST(Verify, ListsFaults) {
  auto g = Parsed("graph (%x: f32[2]) -> (%z) { %y = Neg(%x) %z = Add(%y, %x) }");
  std::swap(g->order[0], g->order[1]);
  EXPECT_THAT(Verify(*g).message(), HasSubstr("uses 'y' before it is defined"));
  std::swap(g->order[0], g->order[1]);
  g->value(g->node(g->order[0]).outputs[0]).type.dims = {3};
  EXPECT_THAT(Verify(*g).message(), HasSubstr("'y' is f32[3] but inference says f32[2]"));
  g->value(g->node(g->order[0]).outputs[0]).type.dims = {2};
  g->node(g->order[0]).dead = true;
  EXPECT_THAT(Verify(*g).message(), HasSubstr("is dead but in the order"));
  g->node(g->order[0]).dead = false;
  g->node(g->order[1]).inputs[0] = 77;
  EXPECT_THAT(Verify(*g).message(), HasSubstr("uses '77'"));
}

TEST(Verify, SubgraphInputs) {
  auto g = Parsed(R"(graph (%x: f32[2]) -> (%y) {
    %y: f32[2] = Loop(%x) graph "b" (%i: f32[2]) -> (%i) {} })");
  g->node(0).subgraphs[0]->inputs.clear();
  EXPECT_THAT(Verify(*g).message(), HasSubstr("feeds 1 inputs to a subgraph with 0"));
}

TEST(Infer, KeepsFreshSymbolsAndChecks) {
  auto g = Parsed(
      "symbol n\ngraph (%x: f32[n], %s: i64[1] elems[4]) -> (%r) { %c = Count(%x) %r = Reshape(%x, "
      "%s) }");
  const Expr before = g->value(g->node(0).outputs[0]).type.dims[0];
  ASSERT_TRUE(Infer(*g, g->node(0)).ok());
  EXPECT_EQ(g->value(g->node(0).outputs[0]).type.dims[0], before);
  ASSERT_TRUE(Infer(*g, g->node(1)).ok());
  EXPECT_EQ(g->model->checks.size(), 1u);
  g->value(g->inputs[0]).type.dims = {5};
  EXPECT_THAT(Infer(*g, g->node(1)).message(), HasSubstr("element counts differ"));
}

TEST(Infer, ArityAndOverflow) {
  auto g = Parsed(
      "graph (%x: f32[2], %s: i64[2] elems[4294967296, 4294967296]) -> (%y) { %y = Neg(%x) }");
  g->node(0).inputs.push_back(g->inputs[0]);
  EXPECT_THAT(Infer(*g, g->node(0)).message(), HasSubstr("2 inputs given, 1 to 1 allowed"));
  const NodeId n = g->AddNode(*FindOp("", "Reshape"), "r", {g->inputs[0], g->inputs[1]}, 1);
  EXPECT_FALSE(Infer(*g, g->node(n)).ok());
}

TEST(Expand, ReplacesInPlace) {
  auto g = Parsed("graph (%x: f32[2]) -> (%z) { %y = test.deep.Nested(%x) %z = Neg(%y) }");
  ASSERT_TRUE(ExpandNode(*g, g->order[0]).ok());
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_THAT(OpsInOrder(*g), ElementsAre("Add", "Add", "Neg"));
  const Node& last = g->node(g->order[1]);
  EXPECT_EQ(g->value(last.outputs[0]).name, "y");
  EXPECT_THAT(last.origin, ElementsAre("y"));
}

TEST(Expand, FailureLeavesTheGraphAsItWas) {
  auto g = Parsed("graph (%x: f32[2]) -> (%y) { %y = Wrong(%x) }");
  const std::string before = ToString(*g);
  EXPECT_THAT(ExpandNode(*g, 0).message(), HasSubstr("operands are f32[2] and i32[]"));
  EXPECT_EQ(ToString(*g), before);
  EXPECT_EQ(Verify(*g).message(), "");
  auto h = Parsed("graph (%x: f64[2]) -> (%y) { %y = Twice(%x) }");
  EXPECT_THAT(ExpandNode(*h, 0).message(), HasSubstr("this form of Twice is not supported"));
}

TEST(Expand, ConstantsOfEveryWidth) {
  auto g = Parsed("graph (%x: f32[2]) -> (%y) { %y = Neg(%x) }");
  ExpandBuilder e(*g, 0);
  auto bits = [&](DType t, double x) {
    const Constant& c = *e.Const(e.Scalar(t, x));
    uint64_t b = 0;
    std::memcpy(&b, c.bytes.data(), c.bytes.size());
    return b;
  };
  EXPECT_EQ(bits(DType::kF16, 1), 0x3c00u);
  EXPECT_EQ(bits(DType::kF16, -2), 0xc000u);
  EXPECT_EQ(bits(DType::kF16, 65504), 0x7bffu);
  EXPECT_EQ(bits(DType::kF16, 65520), 0x7c00u);
  EXPECT_EQ(bits(DType::kF16, 5.9604644775390625e-08), 1u);
  EXPECT_EQ(bits(DType::kF16, 6.103515625e-05), 0x400u);
  EXPECT_EQ(bits(DType::kF16, 1.00048828125), 0x3c00u);  // a tie, to even
  EXPECT_EQ(bits(DType::kBF16, 1.00390625), 0x3f80u);    // a tie, to even
  EXPECT_EQ(bits(DType::kBF16, std::numeric_limits<double>::quiet_NaN()) & 0x7fc0, 0x7fc0u);
  EXPECT_EQ(bits(DType::kBool, 0.5), 1u);
  EXPECT_EQ(bits(DType::kI8, -1), 0xffu);
  EXPECT_EQ(ToString((*e.Elems(e.Ints({3, 4})))[1]), "4");
}

TEST(Expand, SymbolicSizes) {
  auto g = Parsed("symbol n lo=1\ngraph (%x: f32[n,4]) -> (%y) { %y = Identity(%x) }");
  ExpandBuilder e(*g, 0);
  const Expr n = e.Dims(e.In(0))[0];
  ASSERT_TRUE(
      e.Done({e.Op("Reshape", {e.Op("Reshape", {e.In(0), e.Exprs({n * 4})}), e.Exprs({n, 4})})}));
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_THAT(OpsInOrder(*g), ElementsAre("Exprs", "Reshape", "Exprs", "Reshape"));
  auto again = ParseGraph(ToString(*g));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(Verify(**again).message(), "");
}

// y = Neg(Neg(x)) => x
bool RemoveDoubleNeg(Graph& g) {
  bool changed = false;
  UseLists uses(g);
  for (NodeId id : uses.Order()) {
    if (uses.Dead(id) || g.node(id).op->name != "Neg") continue;
    const NodeId inner = g.value(g.node(id).inputs[0]).producer;
    if (inner == kNone || g.node(inner).op->name != "Neg") continue;
    Patch p(uses, {inner, id});
    p.Replace(g.node(id).outputs[0], g.node(inner).inputs[0]);
    changed |= p.Apply();
  }
  return changed;
}

TEST(Patch, RemovesNodes) {
  auto g = Parsed(
      "graph (%x: f32[2]) -> (%d) { %a = Neg(%x) %b = Neg(%a) %c = Add(%b, %x) %d = Neg(%c) }");
  EXPECT_TRUE(RemoveDoubleNeg(*g));
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_THAT(OpsInOrder(*g), ElementsAre("Add", "Neg"));
  EXPECT_FALSE(RemoveDoubleNeg(*g));
}

TEST(Patch, KeepsAGraphOutputThatWouldBecomeAnInput) {
  auto g = Parsed("graph (%x: f32[2]) -> (%b) { %a = Neg(%x) %b = Neg(%a) }");
  EXPECT_FALSE(RemoveDoubleNeg(*g));  // nothing to do, so that a pass ends
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_EQ(g->value(g->outputs[0]).name, "b");
}

TEST(Patch, NewNodesTakeNamesAndOrigins) {
  auto g = Parsed("graph (%x: f32[2]) -> (%b, %c) { %a = Neg(%x) %b = Neg(%a) %c = Add(%b, %b) }");
  {
    UseLists uses(*g);
    Patch p(uses, {0, 1});
    const ValueId t = p.Add("Twice", {g->inputs[0]}, {{"k", 3}});
    p.Replace(g->node(1).outputs[0], p.Add("Identity", {t}));
    EXPECT_TRUE(p.Apply());
    EXPECT_TRUE(uses.Dead(0));
    EXPECT_FALSE(uses.HasOneUse(g->outputs[0]));
  }
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_THAT(OpsInOrder(*g), ElementsAre("Twice", "Identity", "Add"));
  EXPECT_EQ(g->value(g->outputs[0]).name, "b");
  EXPECT_THAT(g->node(g->order[0]).origin, ElementsAre("a", "b"));
  EXPECT_EQ(g->node(g->order[2]).inputs[1], g->outputs[0]);
}

TEST(Patch, WrapsAValueThatItReads) {  // y => Neg(y) for all other users
  auto g = Parsed("graph (%x: f32[2]) -> (%z) { %y = Neg(%x) %z = Add(%y, %y) }");
  {
    UseLists uses(*g);
    const ValueId y = g->node(0).outputs[0];
    Patch p(uses, {});
    p.Replace(y, p.Add("Identity", {y}));
    EXPECT_TRUE(p.Apply());
  }
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_THAT(OpsInOrder(*g), ElementsAre("Neg", "Identity", "Add"));
}

TEST(Patch, SortsWhenAUserStandsBeforeTheNewNode) {
  auto g = Parsed(R"(graph (%x: f32[2], %w: f32[2]) -> (%u, %b) {
    %a = Neg(%x) %u = Neg(%a) %v = Identity(%w) %b = Neg(%v) })");
  {
    UseLists uses(*g);
    Patch p(uses, {0});
    p.Replace(g->node(0).outputs[0], p.Add("Add", {g->inputs[0], g->node(2).outputs[0]}));
    EXPECT_TRUE(p.Apply());
  }
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_THAT(OpsInOrder(*g), ElementsAre("Identity", "Neg", "Add", "Neg"));
}

TEST(Patch, ARefusedInferenceUndoesAll) {
  auto g = Parsed("graph (%x: f32[2], %i: i32[2]) -> (%y) { %y = Neg(%x) }");
  const std::string before = ToString(*g);
  {
    UseLists uses(*g);
    Patch p(uses, {0});
    const ValueId a = p.Add("Neg", {g->inputs[0]});
    EXPECT_EQ(p.Add("Add", {a, g->inputs[1]}), kNone);
    EXPECT_FALSE(p.Apply());
    Patch unused(uses, {0});
    unused.Add("Neg", {g->inputs[0]});
  }
  EXPECT_EQ(ToString(*g), before);
  EXPECT_EQ(Verify(*g).message(), "");
}

TEST(Patch, ConstantsReplaceNodes) {
  auto g = Parsed("graph (%x: i64[2] elems[1, 2]) -> (%y) { %y = Neg(%x) }");
  {
    UseLists uses(*g);
    Patch p(uses, {0});
    p.Replace(g->node(0).outputs[0], p.Ints({-1, -2}));
    EXPECT_TRUE(p.Apply());
  }
  EXPECT_EQ(Verify(*g).message(), "");
  EXPECT_TRUE(g->order.empty());
  EXPECT_TRUE(g->IsConstant(g->outputs[0]));
  EXPECT_EQ(g->value(g->outputs[0]).name, "y");
}

TEST(Sort, FindsCycles) {
  auto g = Parsed("graph (%x: f32[2]) -> (%z) { %y = Neg(%x) %z = Add(%y, %x) }");
  EXPECT_TRUE(SortTopologically(*g));
  g->node(0).inputs[0] = g->outputs[0];
  EXPECT_FALSE(SortTopologically(*g));
}

// Replaces every node of a chain by two and half of these by one: near-linear, so that four times
// the nodes take well under sixteen times as long.
double ChainSeconds(int nodes) {
  Graph g;
  g.model = std::make_shared<Model>();
  TensorType t;
  t.dtype = DType::kF32;
  t.dims = {4};
  ValueId v = g.AddInput("x", t);
  for (int i = 0; i < nodes; ++i) {
    const NodeId n = g.AddNode(*FindOp("", "Neg"), "n" + std::to_string(i), {v}, 1);
    EXPECT_TRUE(Infer(g, g.node(n)).ok());
    v = g.node(n).outputs[0];
  }
  g.outputs = {v};
  const auto start = std::chrono::steady_clock::now();
  {
    UseLists uses(g);
    for (NodeId id : uses.Order()) {
      Patch p(uses, {id});
      p.Replace(g.node(id).outputs[0], p.Add("Neg", {p.Add("Twice", {g.node(id).inputs[0]})}));
      EXPECT_TRUE(p.Apply());
    }
    EXPECT_EQ(uses.Order().size(), 2u * nodes);
  }
  EXPECT_EQ(Verify(g).message(), "");
  auto again = ParseGraph(ToString(g));
  EXPECT_TRUE(again.ok());
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("chain of %d nodes: patched, verified, printed, parsed in %.3f s\n", nodes, s);
  return s;
}

TEST(Patch, IsNearLinear) {
  const double small = ChainSeconds(5000);
  const double large = ChainSeconds(20000);
  EXPECT_LT(large, 10 * small + 0.2);
}

TEST(Policy, KeyFollowsChoices) {
  Policy a, b;
  EXPECT_EQ(a.Key(), b.Key());
  b.disabled = {"cse"};
  EXPECT_NE(a.Key(), b.Key());
  b = a;
  b.conv_tolerance = 0;
  EXPECT_NE(a.Key(), b.Key());
}

}  // namespace
}  // namespace ge
