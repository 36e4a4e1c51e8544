// Import: small models written with a tiny protobuf writer, version upgrades, hostile files; and,
// where they exist, every model of $GE_MODELS (a folder) and the published conformance models of
// $GE_SHARED.
#include "import/onnx/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "import/onnx/wire_writer.h"
#include "ir/opdef.h"
#include "ir/text.h"

namespace ge::onnx {
namespace {

using namespace wire;  // NOLINT(google-build-using-namespace): the words of every model below

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              fmt::format("ge_import_{}_{}", getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(std::string_view bytes, std::string_view name = "m.onnx") {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::unique_ptr<Graph> Good(std::string_view bytes, const ImportOptions& options = {}) {
    auto g = Import(Write(bytes), options);
    EXPECT_TRUE(g.ok()) << g.status().message();
    if (!g.ok()) return nullptr;
    EXPECT_EQ(Verify(**g).message(), "") << ToString(**g);
    return std::move(*g);
  }
  std::string Fault(std::string_view bytes, const ImportOptions& options = {}) {
    auto g = Import(Write(bytes), options);
    return g.ok() ? "imported:\n" + ToString(**g) : g.status().message();
  }
  fs::path folder_;
};

std::vector<std::string> Ops(const Graph& g) {
  std::vector<std::string> ops;
  for (NodeId n : g.order) ops.push_back(g.node(n).op->name);
  return ops;
}
std::string OutType(const Graph& g, int o = 0) { return ToString(g.value(g.outputs[o]).type); }

TEST_F(ImportTest, ShapesAndSymbols) {
  const std::string graph = Node("Add", {"x", "w"}, {"s"}, {}, "first") +
                            Node("Relu", {"s"}, {"y"}) + Input("x", 1, {"batch size", "3"}) +
                            Init("w", 1, {3}, Floats({1, 2, 3})) + Output("y");
  auto g = Good(ModelOf(graph, 17));
  ASSERT_TRUE(g);
  EXPECT_EQ(OutType(*g), "f32[batch_size,3]");
  EXPECT_EQ(g->node(g->order[0]).name, "first");
  EXPECT_EQ(g->node(g->order[1]).name, "Relu_0");
  EXPECT_EQ(g->value(g->outputs[0]).name, "y");
  ImportOptions fixed;
  fixed.input_shapes["x"] = {"5", ""};
  EXPECT_EQ(OutType(*Good(ModelOf(graph, 17), fixed)), "f32[5,3]");
  fixed.input_shapes["x"] = {"2~8", "3"};
  auto ranged = Good(ModelOf(graph, 17), fixed);
  EXPECT_EQ(ranged->arena().Find("batch_size")->node()->facts.hi, 8);
  fixed.input_shapes["x"] = {"5", "4"};
  EXPECT_THAT(Fault(ModelOf(graph, 17), fixed), HasSubstr("the model fixes it to 3"));
  fixed.input_shapes["z"] = {"5"};
  EXPECT_THAT(Fault(ModelOf(graph, 17), fixed), HasSubstr("the model's inputs are 'x'"));
}

TEST_F(ImportTest, DimsWithoutANameAreNotEqual) {
  const auto type = [&](const std::string& dim) {
    return OutType(
        *Good(ModelOf(Node("Relu", {"x"}, {"y"}) + Input("x", 1, {dim, dim}) + Output("y"), 17)));
  };
  EXPECT_EQ(type("??"), "f32[x.0,x.1]");
  EXPECT_EQ(type("None"), "f32[x.0,x.1]");
  EXPECT_EQ(type("N"), "f32[N,N]");
}

TEST_F(ImportTest, ShapeArithmeticDisappears) {
  // Reshape(x, Concat(Shape(x)[0:1], [-1]))
  const std::string graph = Node("Shape", {"x"}, {"s"}) +
                            Node("Slice", {"s", "zero", "one"}, {"b"}) +
                            Node("Concat", {"b", "minus"}, {"t"}, {AInt("axis", 0)}) +
                            Node("Reshape", {"x", "t"}, {"y"}) + Input("x", 1, {"n", "3", "4"}) +
                            Init("zero", 7, {1}, I64s({0})) + Init("one", 7, {1}, I64s({1})) +
                            Init("minus", 7, {1}, I64s({-1})) + Output("y");
  auto g = Good(ModelOf(graph, 13));
  ASSERT_TRUE(g);
  EXPECT_EQ(OutType(*g), "f32[n,12]");
  ImportOptions fixed;
  fixed.input_shapes["x"] = {"2", "3", "4"};
  EXPECT_THAT(Ops(*Good(ModelOf(graph, 13), fixed)), ElementsAre("Reshape"));
}

TEST_F(ImportTest, OldFormsAreUpgraded) {
  auto ops = [&](std::string_view node, int64_t opset, std::string_view dims = "234") {
    std::vector<std::string> list;
    for (char c : dims) list.push_back(std::string(1, c));
    auto g = Good(ModelOf(std::string(node) + Input("x", 1, list) + Output("y"), opset));
    return g ? fmt::format("{} {}", fmt::join(Ops(*g), " "), OutType(*g)) : std::string();
  };
  EXPECT_EQ(ops(Node("Squeeze", {"x"}, {"y"}, {AInts("axes", {0})}), 11, "134"),
            "Squeeze f32[3,4]");
  EXPECT_EQ(ops(Node("Unsqueeze", {"x"}, {"y"}, {AInts("axes", {0, 4})}), 11),
            "Unsqueeze f32[1,2,3,4,1]");
  EXPECT_EQ(ops(Node("Slice", {"x"}, {"y"}, {AInts("starts", {1}), AInts("ends", {9})}), 9),
            "Slice f32[1,3,4]");
  EXPECT_EQ(
      ops(Node("Pad", {"x"}, {"y"}, {AInts("pads", {0, 0, 1, 0, 0, 1}), AFlt("value", 2)}), 9),
      "Pad f32[2,3,6]");
  EXPECT_THAT(ops(Node("Clip", {"x"}, {"y"}, {AFlt("min", 0), AFlt("max", 6)}), 9),
              HasSubstr("f32[2,3,4]"));
  EXPECT_THAT(ops(Node("Softmax", {"x"}, {"y"}), 11),
              ::testing::AllOf(::testing::StartsWith("Flatten"),
                               ::testing::EndsWith("Reshape f32[2,3,4]")));
  EXPECT_THAT(ops(Node("Softmax", {"x"}, {"y"}, {AInt("axis", 2)}), 11),
              ::testing::Not(HasSubstr("Flatten")));
  EXPECT_EQ(ops(Node("TopK", {"x"}, {"v", "y"}, {AInt("k", 2)}), 9), "TopK i64[2,3,2]");
  EXPECT_EQ(ops(Node("Split", {"x"}, {"y", "z"}, {AInt("axis", 2)}), 11), "Split f32[2,3,2]");
  EXPECT_THAT(ops(Node("ReduceSum", {"x"}, {"y"}, {AInts("axes", {1}), AInt("keepdims", 0)}), 11),
              HasSubstr("f32[2,4]"));
  EXPECT_THAT(ops(Node("ReduceMax", {"x"}, {"y"}, {AInts("axes", {-1})}), 13),
              HasSubstr("f32[2,3,1]"));
  EXPECT_THAT(ops(Node("Dropout", {"x"}, {"y"}, {AFlt("ratio", 0.1f)}), 7),
              HasSubstr("f32[2,3,4]"));
}

TEST_F(ImportTest, UpsampleBecomesResize) {
  const std::string graph = Node("Upsample", {"x", "s"}, {"y"}) +
                            Input("x", 1, {"1", "1", "2", "2"}) +
                            Init("s", 1, {4}, Floats({1, 1, 2, 3})) + Output("y");
  auto g = Good(ModelOf(graph, 9));
  ASSERT_TRUE(g);
  EXPECT_EQ(OutType(*g), "f32[1,1,4,6]");
  const ge::Node& n = g->node(g->order.back());
  if (n.op->name == "Resize") {
    EXPECT_EQ(AttrOr<std::string>(n, "coordinate_transformation_mode", ""), "asymmetric");
  }
}

TEST_F(ImportTest, InitializersThatAreInputs) {
  const std::string graph = Node("Add", {"x", "w"}, {"y"}) + Input("x", 1, {"2"}) +
                            Input("w", 1, {"2"}) + Init("w", 1, {2}, Floats({1, 2})) + Output("y");
  EXPECT_EQ(Good(ModelOf(graph, 13))->inputs.size(), 1u);
  ImportOptions keep;
  keep.keep_overridable = {"w"};
  EXPECT_EQ(Good(ModelOf(graph, 13), keep)->inputs.size(), 2u);
}

std::string Branch(std::string_view op, std::string_view out) {
  return Msg(2, "branch") + Node(op, {"x", "k"}, {std::string(out)}) + Output(out);
}

TEST_F(ImportTest, CapturesAreExplicit) {
  const std::string graph =
      Node("Relu", {"x"}, {"k"}) +
      Node("If", {"c"}, {"y"},
           {AGraph("then_branch", Branch("Add", "t")),
            AGraph("else_branch", Msg(2, "e") + Node("Neg", {"x"}, {"e"}) + Output("e"))}) +
      Input("c", 9, {}) + Input("x", 1, {"2"}) + Output("y");
  auto g = Good(ModelOf(graph, 13));
  ASSERT_TRUE(g);
  const ge::Node& n = g->node(g->order.back());
  EXPECT_EQ(n.inputs.size(), 3u);
  EXPECT_EQ(AttrOr<int64_t>(n, "captures", 0), 2);
  for (const auto& sub : n.subgraphs) {
    ASSERT_EQ(sub->inputs.size(), 2u);
    EXPECT_EQ(sub->value(sub->inputs[0]).name, "x");
  }
}

TEST_F(ImportTest, AnIfWithKnownConditionIsItsBranch) {
  const std::string graph =
      Node("Relu", {"x"}, {"k"}) +
      Node("If", {"c"}, {"y"},
           {AGraph("then_branch", Branch("Add", "t")), AGraph("else_branch", Branch("Mul", "e"))}) +
      Init("c", 9, {}, Raw(std::string_view("\0", 1))) + Input("x", 1, {"2"}) + Output("y");
  auto g = Good(ModelOf(graph, 13));
  ASSERT_TRUE(g);
  EXPECT_THAT(Ops(*g), ElementsAre("Relu", "Mul"));
  EXPECT_EQ(g->value(g->outputs[0]).name, "y");
}

TEST_F(ImportTest, ABranchThatCannotRunIsHeldOffByACheck) {
  const std::string bad = Msg(2, "bad") + Node("Squeeze", {"x", "zero"}, {"e"}) + Output("e");
  const std::string graph =
      Node("If", {"c"}, {"y"},
           {AGraph("then_branch", bad), AGraph("else_branch", Branch("Mul", "e"))}) +
      Init("zero", 7, {1}, I64s({0})) + Init("k", 1, {1}, Floats({2})) + Input("c", 9, {}) +
      Input("x", 1, {"2"}) + Output("y");
  auto g = Good(ModelOf(graph, 13));
  ASSERT_TRUE(g);
  EXPECT_THAT(Ops(*g), ElementsAre("Mul", "Cast", "ReadSizes", "After"));
  ASSERT_EQ(g->model->checks.size(), 1u);
  EXPECT_THAT(g->model->checks[0].message,
              HasSubstr("its condition must be false for the shapes given"));
  EXPECT_EQ(g->value(g->outputs[0]).name, "y");
}

TEST_F(ImportTest, ALoopThatGrowsItsValueGetsASymbol) {
  const std::string body =
      Msg(2, "body") + Node("Concat", {"acc", "x"}, {"more"}, {AInt("axis", 0)}) +
      Node("Identity", {"cond"}, {"go"}) + Input("i", 7, {}) + Input("cond", 9, {}) +
      Input("acc", 1, {"?"}) + Output("go") + Output("more");
  const std::string graph = Node("Loop", {"m", "", "a"}, {"y"}, {AGraph("body", body)}) +
                            Input("m", 7, {}) + Input("a", 1, {"1"}) + Input("x", 1, {"2"}) +
                            Output("y");
  auto g = Good(ModelOf(graph, 13));
  ASSERT_TRUE(g);
  const ge::Node& n = g->node(g->order.back());
  const Graph& b = *n.subgraphs[0];
  EXPECT_FALSE(b.value(b.inputs[2]).type.dims[0].IsConst());
  EXPECT_EQ(n.inputs.size(), 4u);
  EXPECT_EQ(b.inputs.size(), 4u);
  EXPECT_FALSE(g->value(g->outputs[0]).type.dims[0].IsConst());
}

// As Paddle's exporter writes a value that the body only gives: it starts with a scalar.
TEST_F(ImportTest, ACarriedValueMayStartWithAnotherRankWhereNobodySeesIt) {
  const auto loop = [](const std::string& count, const std::string& condition, std::string read,
                       const char* size = "2") {
    const std::string body = Msg(2, "body") + Node("Add", {"x", std::move(read)}, {"sum"}) +
                             Node("Identity", {"cond"}, {"go"}) + Input("i", 7, {}) +
                             Input("cond", 9, {}) + Input("last", 1, {"?"}) + Output("go") +
                             Output("sum");
    return ModelOf(Node("Loop", {count, condition, "a"}, {"y"}, {AGraph("body", body)}) +
                       Init("one", 7, {1}, I64s({1})) + Init("none", 7, {1}, I64s({0})) +
                       Input("m", 7, {}) + Input("c", 9, {}) + Input("a", 1, {}) +
                       Input("x", 1, {size}) + Output("y"),
                   13);
  };
  auto g = Good(loop("one", "c", "x"));  // the condition must be true, which is checked in each run
  ASSERT_TRUE(g);
  EXPECT_EQ(g->value(g->outputs[0]).type.rank(), 1);
  ASSERT_EQ(g->model->checks.size(), 1u);
  EXPECT_THAT(g->model->checks[0].message, HasSubstr("its first condition must be true"));
  g = Good(loop("one", "", "x"));
  ASSERT_TRUE(g);
  EXPECT_TRUE(g->model->checks.empty());
  g = Good(loop("one", "", "last", "1"));  // one element, whatever its rank
  ASSERT_TRUE(g);
  EXPECT_EQ(OutType(*g), "f32[1]");
  // What is read, or what may be asked for after no iteration, keeps its rank.
  EXPECT_THAT(Fault(loop("one", "c", "last")), HasSubstr("changes its rank"));
  EXPECT_THAT(Fault(loop("none", "c", "x")), HasSubstr("changes its rank"));
  EXPECT_THAT(Fault(loop("m", "c", "x")), HasSubstr("changes its rank"));
}

std::string Function(std::string_view name, std::vector<std::string> nodes, std::string_view in,
                     std::string_view out) {
  std::string s = Msg(1, name) + Msg(4, in) + Msg(5, out) + Msg(10, "local") +
                  Msg(9, Msg(1, "") + Int(2, 17)) + Msg(9, Msg(1, "local") + Int(2, 1)) +
                  Msg(6, "slope");
  for (const auto& n : nodes) s += Msg(7, n.substr(n[1] & 0x80 ? 3 : 2));
  return Msg(25, s);
}

TEST_F(ImportTest, FunctionsAreInlinedWithTheirAttributes) {
  const std::string f =
      Function("Leak", {Node("LeakyRelu", {"a"}, {"b"}, {ARef("alpha", "slope", 1)})}, "a", "b");
  const std::string graph = Node("Leak", {"x"}, {"t"}, {AFlt("slope", 0.5f)}, "c1", "local") +
                            Node("Leak", {"t"}, {"u"}, {AFlt("slope", 0.25f)}, "c2", "local") +
                            Node("Leak", {"u"}, {"y"}, {}, "c3", "local") + Input("x", 1, {"2"}) +
                            Output("y");
  auto g = Good(ModelOf(graph, 17, Opset(1, "local") + f));
  ASSERT_TRUE(g);
  ASSERT_THAT(Ops(*g), ElementsAre("LeakyRelu", "LeakyRelu", "LeakyRelu"));
  EXPECT_EQ(AttrOr<float>(g->node(g->order[0]), "alpha", 0), 0.5f);
  EXPECT_EQ(AttrOr<float>(g->node(g->order[1]), "alpha", 0), 0.25f);
  EXPECT_FALSE(HasAttr(g->node(g->order[2]), "alpha"));
  EXPECT_EQ(g->value(g->outputs[0]).name, "y");
}

TEST_F(ImportTest, RecursiveFunctionsAreNamed) {
  const std::string f = Function("F", {Node("G", {"a"}, {"b"}, {}, "", "local")}, "a", "b") +
                        Function("G", {Node("F", {"a"}, {"b"}, {}, "", "local")}, "a", "b");
  const std::string graph =
      Node("F", {"x"}, {"y"}, {}, "", "local") + Input("x", 1, {"2"}) + Output("y");
  EXPECT_THAT(Fault(ModelOf(graph, 17, Opset(1, "local") + f)), HasSubstr("F -> G -> F"));
}

TEST_F(ImportTest, TensorEncodings) {
  auto value = [&](int type, std::vector<int64_t> dims, std::string_view rest) {
    auto g = Good(
        ModelOf(Node("Identity", {"w"}, {"y"}) + Init("w", type, dims, rest) + Output("y"), 21));
    if (!g) return std::string();
    const std::string text = ToString(*g);
    const size_t at = text.find("const ");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(value(7, {2}, Int(7, 5) + Int(7, -1)), "const i64[2] {5, -1}");
  EXPECT_EQ(value(10, {2}, Int(5, 0x3c00) + Int(5, 0xc000)), "const f16[2] hex \"003c00c0\"");
  EXPECT_EQ(value(3, {2}, Int(5, -1) + Int(5, 7)), "const i8[2] {-1, 7}");
  EXPECT_EQ(value(22, {3}, Int(5, 0x21) + Int(5, 0x0f)), "const i4[3] hex \"210f\"");
  EXPECT_EQ(value(12, {1}, Int(11, 4000000000)), "const u32[1] {4000000000}");
  EXPECT_EQ(value(1, {1}, Flt(4, 0.5f)), "const f32[1] {0.5}");
  EXPECT_EQ(value(1, {0}, ""), "const f32[0] {}");
  EXPECT_THAT(value(8, {2}, Msg(6, "a") + Msg(6, "b")), HasSubstr("{\"a\", \"b\"}"));
  const std::string sparse = Msg(15, Msg(1, TensorBody("w", 1, {2}, Floats({5, 6}))) +
                                         Msg(2, TensorBody("", 7, {2}, I64s({1, 3}))) + Int(3, 4));
  auto g = Good(ModelOf(Node("Identity", {"w"}, {"y"}) + sparse + Output("y"), 21));
  ASSERT_TRUE(g);
  EXPECT_THAT(ToString(*g), HasSubstr("{0.0, 5.0, 0.0, 6.0}"));
}

std::string External(std::string_view location, std::string_view offset = "",
                     std::string_view length = "") {
  std::string s = Int(14, 1) + Msg(13, Msg(1, "location") + Msg(2, location));
  if (!offset.empty()) s += Msg(13, Msg(1, "offset") + Msg(2, offset));
  if (!length.empty()) s += Msg(13, Msg(1, "length") + Msg(2, length));
  return s;
}

TEST_F(ImportTest, ExternalData) {
  fs::create_directories(folder_ / "sub");
  fs::create_directories(folder_ / "in");
  std::ofstream(folder_ / "sub" / "w.bin", std::ios::binary)
      << std::string("\0\0\0\0\0\0\x80\x3f", 8);
  std::ofstream(folder_ / "secret.bin", std::ios::binary) << "12345678";
  fs::create_symlink(folder_ / "secret.bin", folder_ / "in" / "link.bin");
  auto model = [&](std::string_view rest) {
    return ModelOf(Node("Identity", {"w"}, {"y"}) + Init("w", 1, {1}, rest) + Output("y"), 13);
  };
  auto fault = [&](std::string_view rest, std::string_view name = "m.onnx") {
    auto g = Import(Write(model(rest), name));
    return g.ok() ? std::string("imported") : g.status().message();
  };
  auto g = Good(model(External("sub/w.bin", "4", "4")));
  ASSERT_TRUE(g);
  EXPECT_THAT(ToString(*g), HasSubstr("const f32[1] {1.0}"));
  EXPECT_THAT(fault(External("sub/../secret.bin")),
              HasSubstr("does not lie in the model's folder"));
  EXPECT_THAT(fault(External((folder_ / "secret.bin").string())), HasSubstr("does not lie"));
  EXPECT_THAT(fault(External("")), HasSubstr("does not lie"));
  EXPECT_THAT(fault(External("link.bin"), "in/m.onnx"), HasSubstr("by a link"));
  EXPECT_THAT(fault(External("none.bin")), HasSubstr("No such file"));
  EXPECT_THAT(fault(External("sub")), HasSubstr("not a regular file"));
  EXPECT_THAT(fault(External("sub/w.bin", "6")), HasSubstr("4 bytes declared"));
  EXPECT_THAT(fault(External("sub/w.bin", "99")), HasSubstr("ends before offset 99"));
  EXPECT_THAT(fault(External("sub/w.bin", "-4")), HasSubstr("is no size"));
  EXPECT_THAT(fault(External("sub/w.bin", "99999999999999999999")), HasSubstr("is no size"));
}

TEST_F(ImportTest, BadModelsAreRefusedByName) {
  const std::string x = Input("x", 1, {"2"}), y = Output("y");
  auto fault = [&](std::string_view nodes, std::string_view more = "") {
    return Fault(ModelOf(std::string(nodes) + x + y + std::string(more), 17));
  };
  EXPECT_THAT(fault(Node("Relu", {"b"}, {"a"}, {}, "n1") + Node("Relu", {"a"}, {"b"}, {}, "n2") +
                    Node("Add", {"b", "x"}, {"y"})),
              HasSubstr("cycle of 2 nodes: node 'n"));
  EXPECT_THAT(fault(Node("Relu", {"q"}, {"y"}, {}, "n1")),
              HasSubstr("m.onnx: import: node 'n1' (Relu): input 'q' is not defined"));
  EXPECT_THAT(fault(Node("Relu", {"x"}, {"y"}) + Node("Neg", {"x"}, {"y"}, {}, "n2")),
              HasSubstr("node 'n2' (Neg): value 'y' is defined twice"));
  EXPECT_THAT(fault(Node("Nope", {"x"}, {"t"}, {}, "n1") + Node("Never", {"t"}, {"u"}, {}, "n2") +
                    Node("Nope", {"u"}, {"y"}, {}, "n3")),
              HasSubstr("Never (opset 17): 'n2'; Nope (opset 17): 'n1', 'n3'"));
  EXPECT_THAT(fault(Node("Fuse", {"x"}, {"y"}, {}, "n1", "strange")),
              HasSubstr("domain 'strange' of node 'n1' (Fuse)"));
  EXPECT_THAT(fault(Node("Relu", {"x"}, {"z"})), HasSubstr("output 'y' is not defined"));
  EXPECT_THAT(fault(Node("Add", {"x"}, {"y"}, {}, "n1")),
              HasSubstr("1 inputs given, 2 to 2 allowed"));
  EXPECT_THAT(fault(Node("Add", {"x", "w"}, {"y"}), Init("w", 1, {65536, 65536, 65536, 65536}, "")),
              HasSubstr("overflow"));
  EXPECT_THAT(fault(Node("Add", {"x", "w"}, {"y"}), Init("w", 1, {-2}, "")), HasSubstr("negative"));
  EXPECT_THAT(fault(Node("Add", {"x", "w"}, {"y"}), Init("w", 99, {2}, "")),
              HasSubstr("element type 99"));
  EXPECT_THAT(fault(Node("Add", {"x", "w"}, {"y"}), Init("w", 1, {128}, "")),
              HasSubstr("512 bytes declared by dims [128] of f32, 0 present"));
  EXPECT_THAT(fault(Node("Add", {"x", "w"}, {"y"}), Init("w", 1, {2}, I64s({1, 2}))),
              HasSubstr("data of another type"));
  EXPECT_THAT(Fault(ModelOf(Node("Relu", {"x"}, {"y"}) + x + y, 99)),
              HasSubstr("opset 99 of ai.onnx given"));
  EXPECT_THAT(Fault(""), HasSubstr("holds no graph"));
  EXPECT_THAT(Fault("this is no model"), HasSubstr("m.onnx"));
  EXPECT_THAT(Import("/nowhere/m.onnx").status().message(), HasSubstr("m.onnx"));
}

TEST_F(ImportTest, DeepNestingIsRefused) {
  std::string branch = Node("Relu", {"x"}, {"t"}) + Output("t");
  auto wrap = [](const std::string& inner) {
    return Node("If", {"c"}, {"t"},
                {AGraph("then_branch", inner),
                 AGraph("else_branch", Node("Relu", {"x"}, {"t"}) + Output("t"))}) +
           Output("t");
  };
  for (int i = 0; i < 40; ++i) branch = wrap(branch);
  const std::string ends = Input("x", 1, {"2"}) + Input("c", 9, {});
  EXPECT_TRUE(Good(ModelOf(branch + ends, 17)));
  for (int i = 0; i < 300; ++i) branch = wrap(branch);
  EXPECT_THAT(Fault(ModelOf(branch + ends, 17)), HasSubstr("nested deeper than 256"));
  // Headers only: 100,000 lengths that promise the next level.
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep = Msg(1, Msg(5, Msg(6, deep.substr(0, 64))));
  EXPECT_NE(Fault(ModelOf(deep, 17)).find("m.onnx"), std::string::npos);
}

TEST_F(ImportTest, ManyNodesInNearLinearTime) {
  auto seconds = [&](int count) {
    std::string graph;
    for (int i = 0; i < count; ++i)
      graph += Node("Relu", {i ? fmt::format("v{}", i - 1) : "x"}, {fmt::format("v{}", i)});
    graph += Input("x", 1, {"n", "4"}) + Output(fmt::format("v{}", count - 1));
    const std::string path = Write(ModelOf(graph, 17));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(Import(path).ok());
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("import of %d nodes: %.3f s\n", count, s);
    return s;
  };
  const double small = seconds(5000);
  EXPECT_LT(seconds(20000), 10 * small + 0.2);
}

// Damage: every result is a graph or a Status; what counts is that the process lives.
void Damage(const std::string& bytes, const fs::path& path, int flips, size_t step) {
  auto attempt = [&](std::string_view damaged) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    auto g = Import(path.string());
    EXPECT_EQ(g.ok(), g.status().message().empty());
  };
  for (size_t n = 0; n < bytes.size(); n += step) attempt(std::string_view(bytes).substr(0, n));
  std::mt19937 random(1);
  for (int i = 0; i < flips; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + i % 3; ++k)
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    attempt(damaged);
  }
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST_F(ImportTest, DamagedSmallModelsNeverCrash) {
  const std::string f =
      Function("Leak", {Node("LeakyRelu", {"a"}, {"b"}, {ARef("alpha", "slope", 1)})}, "a", "b");
  const std::string graph =
      Node("Shape", {"x"}, {"s"}) + Node("Slice", {"s", "zero", "one"}, {"b"}) +
      Node("Concat", {"b", "minus"}, {"t"}, {AInt("axis", 0)}) +
      Node("Reshape", {"x", "t"}, {"r"}) +
      Node("Leak", {"r"}, {"l"}, {AFlt("slope", 0.5f)}, "c1", "local") +
      Node("Softmax", {"l"}, {"m"}) +
      Node("If", {"c"}, {"y"},
           {AGraph("then_branch", Msg(2, "b") + Node("Neg", {"m"}, {"q"}) + Output("q")),
            AGraph("else_branch", Msg(2, "e") + Node("Abs", {"m"}, {"e"}) + Output("e"))}) +
      Input("x", 1, {"n", "3", "4"}) + Input("c", 9, {}) + Init("zero", 7, {1}, I64s({0})) +
      Init("one", 7, {1}, I64s({1})) + Init("minus", 7, {1}, I64s({-1})) + Output("y");
  Damage(ModelOf(graph, 17, Opset(1, "local") + f), folder_ / "m.onnx", 3000, 1);
}

std::vector<fs::path> Models(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error))
    if (it->path().extension() == ".onnx") found.push_back(it->path());
  std::sort(found.begin(), found.end());
  return found;
}

fs::path SharedData() {
  const char* shared = std::getenv("GE_SHARED");
  return fs::path(shared ? shared : "../shared") / "data";
}

fs::path ConformanceFolder() { return SharedData() / "onnx-backend-tests"; }

TEST_F(ImportTest, ConformanceModels) {
  const std::vector<fs::path> models = Models(ConformanceFolder());
  if (models.empty()) GTEST_SKIP() << "no conformance models in " << ConformanceFolder();
  int imported = 0, refused = 0;
  std::map<std::string, int> reasons;
  for (const fs::path& path : models) {
    auto g = Import(path.string());
    if (g.ok()) {
      ++imported;
      EXPECT_EQ(Verify(**g).message(), "") << path;
    } else {
      ++refused;
      std::string reason = g.status().message();
      if (const size_t colon = reason.find(": "); colon != std::string::npos)
        reason = reason.substr(colon + 2);
      ++reasons[reason];
      if (std::getenv("GE_VERBOSE"))
        std::printf("%s: %s\n", path.parent_path().filename().c_str(),
                    g.status().message().c_str());
    }
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [reason, count] : reasons) sorted.emplace_back(-count, reason);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [count, reason] : sorted)
    std::printf("%5d  %s\n", -count, reason.substr(0, 200).c_str());
  std::printf("%d models imported, %d refused\n", imported, refused);
  EXPECT_GT(imported, refused);
}

TEST_F(ImportTest, DamagedConformanceModelsNeverCrash) {
  std::vector<fs::path> models = Models(ConformanceFolder());
  if (models.empty()) GTEST_SKIP() << "no conformance models";
  const size_t every = models.size() / 40 + 1;
  for (size_t i = 0; i < models.size(); i += every) {
    const std::string bytes = ReadFile(models[i]);
    if (bytes.size() < 200000) Damage(bytes, folder_ / "m.onnx", 50, bytes.size() / 40 + 97);
  }
}

TEST_F(ImportTest, RealModels) {
  const char* named = std::getenv("GE_MODELS");
  const std::vector<fs::path> models = Models(named ? fs::path(named) : SharedData() / "models");
  if (models.empty()) GTEST_SKIP() << "no models; GE_MODELS may name their folder";
  for (const fs::path& path : models) {
    const auto start = std::chrono::steady_clock::now();
    ImportOptions options;  // branches of different rank: its condition must be known
    if (path.filename() == "silero_vad_v5.onnx")
      options.input_shapes = {{"input", {"1", "576"}}, {"state", {"2", "1", "128"}}};
    auto g = Import(path.string(), options);
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_TRUE(g.ok()) << g.status().message();
    if (!g.ok()) continue;
    EXPECT_EQ(Verify(**g).message(), "") << path;
    std::vector<std::string> outputs;
    for (ValueId v : (*g)->outputs) outputs.push_back(ToString((*g)->value(v).type));
    std::printf("%-24s %5zu nodes, %3zu checks, %.3f s -> %s\n", path.filename().c_str(),
                (*g)->order.size(), (*g)->model->checks.size(), s,
                fmt::format("{}", fmt::join(outputs, " ")).c_str());
    const std::string text = ToString(**g, 1024);
    if (const char* dump = std::getenv("GE_IMPORT_DUMP"))
      std::ofstream(fs::path(dump) / (path.stem().string() + ".ir")) << text;
    if (path.filename() == "mnist12.onnx") Damage(ReadFile(path), folder_ / "m.onnx", 500, 97);
  }
}

}  // namespace
}  // namespace ge::onnx
