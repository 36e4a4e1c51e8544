// Inference of dots, convolutions, pools, normalisations, gathers, resizing, recurrent cells and
// control flow: what comes out, and what is refused with which words.
#include "ops/window.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "ir/opdef.h"
#include "ir/text.h"

namespace ge {
namespace {

using testing::HasSubstr;

// Types of the outputs of `op`, or "fault: ...". Operands: "f32[2,n]", constants "i64[2]=[1,2]", ""
// absent.
std::string Outcome(std::string_view op, const std::vector<std::string>& operands,
                    const std::string& attrs = "{}", int outputs = 1) {
  Graph g;
  g.model = std::make_shared<Model>();
  std::vector<ValueId> inputs;
  for (const std::string& text : operands) {
    const size_t equals = text.find('=');
    if (text.empty()) {
      inputs.push_back(kNone);
    } else if (equals != std::string::npos) {
      auto c = ParseAttrs("{v=const " + text.substr(0, equals) + " {" +
                          text.substr(equals + 2, text.size() - equals - 3) + "}}");
      if (!c.ok()) return "bad operand " + text + ": " + c.status().message();
      inputs.push_back(
          g.AddConstant("c", *std::get<std::shared_ptr<const Constant>>(c->begin()->second)));
    } else {
      auto t = ParseTensorType(text, g.arena());
      if (!t.ok()) return "bad operand " + text;
      inputs.push_back(g.AddInput("x", *t));
    }
  }
  auto parsed = ParseAttrs(attrs);
  if (!parsed.ok()) return "bad attributes " + attrs;
  const NodeId n = g.AddNode(*FindOp("", op), "node", inputs, outputs);
  for (auto& [name, value] : *parsed) g.node(n).attrs[name] = value;
  const Status s = Infer(g, g.node(n));
  if (!s.ok()) return "fault: " + s.message();
  std::string text;
  for (ValueId v : g.node(n).outputs) text += (text.empty() ? "" : " ") + ToString(g.value(v).type);
  return text;
}

TEST(Dots, Shapes) {
  EXPECT_EQ(Outcome("MatMul", {"f32[2,1,3,4]", "f32[5,4,6]"}), "f32[2,5,3,6]");
  EXPECT_EQ(Outcome("MatMul", {"f32[4]", "f32[4]"}), "f32[]");
  EXPECT_EQ(Outcome("MatMul", {"f32[b,4]", "f32[4]"}), "f32[b]");
  EXPECT_THAT(Outcome("MatMul", {"f32[2,3]", "f32[4,5]"}),
              HasSubstr("fault: inner dims differ: [2,3] times [4,5]"));
  EXPECT_EQ(Outcome("Gemm", {"f32[4,3]", "f32[5,4]", "f32[5]"}, "{transA=1, transB=1}"),
            "f32[3,5]");
  EXPECT_THAT(Outcome("Gemm", {"f32[3,4]", "f32[4,5]", "f32[2,5]"}),
              HasSubstr("does not broadcast"));
  EXPECT_EQ(Outcome("MatMulInteger", {"u8[4,3]", "i8[3,2]"}), "i32[4,2]");
}

TEST(Windows, Convolution) {
  EXPECT_EQ(Outcome("Conv", {"f32[2,3,8,9]", "f32[4,3,3,3]"}, "{pads=[1,1,1,1], strides=[2,2]}"),
            "f32[2,4,4,5]");
  EXPECT_EQ(Outcome("Conv", {"f32[1,3,w]", "f32[4,3,3]"}, "{auto_pad=\"SAME_UPPER\"}"),
            "f32[1,4,w]");
  EXPECT_THAT(Outcome("Conv", {"f32[1,3,8,8]", "f32[4,3,3,3,3]"}),
              HasSubstr("W has rank 5, but X has rank 4"));
  EXPECT_THAT(Outcome("Conv", {"f32[1,3,2,2]", "f32[4,3,3,3]"}), HasSubstr("does not fit"));
  EXPECT_THAT(Outcome("Conv", {"f32[1,4,8,8]", "f32[4,3,3,3]"}), HasSubstr("channels"));
  EXPECT_THAT(Outcome("Conv", {"f32[1,3,8,8]", "f32[4,3,3,3]"}, "{strides=[1,0]}"),
              HasSubstr("strides must be at least 1, got 0"));
  // SAME: the output is the input times the stride.
  EXPECT_EQ(Outcome("ConvTranspose", {"f32[1,1,2,2]", "f32[1,1,3,3]"}, "{auto_pad=\"SAME_UPPER\"}"),
            "f32[1,1,2,2]");
  EXPECT_EQ(Outcome("ConvTranspose", {"f32[1,2,3,3]", "f32[2,4,3,3]"},
                    "{strides=[2,2], output_padding=[1,1], pads=[1,1,1,1]}"),
            "f32[1,4,6,6]");
  EXPECT_EQ(Outcome("ConvTranspose", {"f32[1,1,3,3]", "f32[1,2,3,3]"},
                    "{strides=[3,2], output_shape=[10,8]}"),
            "f32[1,2,10,8]");
}

// The forward form of a transposed convolution reaches every output and no more than a stride
// beyond.
TEST(Windows, PhasesOfTransposedConvolution) {
  for (int64_t kernel : {1, 2, 3, 4, 5, 7})
    for (int64_t stride : {1, 2, 3})
      for (int64_t pad : {0, 1, 2})
        for (int64_t extra : {0, 1}) {
          Node n;
          n.attrs = *ParseAttrs(fmt::format("{{strides=[{}], pads=[{}, {}], output_padding=[{}]}}",
                                            stride, pad, pad / 2, extra));
          const int64_t in = 9;
          std::vector<int64_t> cut;
          auto whole = TransposedWindow(n, {in}, {kernel});
          auto w = PhaseWindow(n, {in}, {kernel}, &cut);
          ASSERT_TRUE(whole.ok());
          if (!w.ok()) {
            EXPECT_TRUE(pad >= kernel || whole->out[0].value() <= (in - 1) * stride - pad)
                << kernel << " " << stride << " " << pad;
            continue;
          }
          const int64_t out = w->out[0].value(), reached = out * stride - cut[0];
          EXPECT_EQ(out,
                    in + w->pad_lo[0].value() + w->pad_hi[0].value() + 1 - w->kernel[0].value());
          EXPECT_GE(reached, whole->out[0].value());
          EXPECT_LT(reached - whole->out[0].value(), stride);
          EXPECT_EQ((pad - cut[0]) % stride, 0);
        }
}

TEST(Windows, CeilModeDropsAWindowThatStartsInThePadding) {
  EXPECT_EQ(
      Outcome("MaxPool", {"f32[1,1,2,2]"}, "{kernel_shape=[1,1], strides=[2,2], ceil_mode=1}"),
      "f32[1,1,1,1]");
  EXPECT_EQ(
      Outcome("MaxPool", {"f32[1,1,5,5]"}, "{kernel_shape=[2,2], strides=[2,2], ceil_mode=1}"),
      "f32[1,1,3,3]");
  EXPECT_EQ(Outcome("AveragePool", {"f32[1,1,5,5]"}, "{kernel_shape=[2,2], strides=[2,2]}"),
            "f32[1,1,2,2]");
  EXPECT_THAT(Outcome("MaxPool", {"f32[1,1,5,5]"}), HasSubstr("kernel_shape is missing"));
}

TEST(Gathers, ConstantPositionsAreChecked) {
  EXPECT_EQ(Outcome("Gather", {"f32[3,4]", "i64[2,2]"}, "{axis=1}"), "f32[3,2,2]");
  EXPECT_EQ(Outcome("Gather", {"f32[3,4]", "i64[1]=[-3]"}), "f32[1,4]");
  EXPECT_THAT(Outcome("Gather", {"f32[3,4]", "i64[1]=[3]"}),
              HasSubstr("index 3 is outside [-3, 2]"));
  EXPECT_EQ(Outcome("GatherND", {"f32[2,3,4]", "i64[2,5,1]"}, "{batch_dims=1}"), "f32[2,5,4]");
  EXPECT_THAT(Outcome("GatherElements", {"f32[3,4]", "f32[3,4]"}), HasSubstr("indices are f32"));
}

TEST(Resizes, Sizes) {
  EXPECT_EQ(Outcome("Resize", {"f32[1,1,3,3]", "", "f32[4]=[1,1,2.5,2.5]"}), "f32[1,1,7,7]");
  EXPECT_EQ(Outcome("Resize", {"f32[1,1,h,3]", "", "f32[4]=[1,1,2,2]"}), "f32[1,1,2*h,6]");
  EXPECT_EQ(Outcome("Resize", {"f32[1,1,4,8]", "", "", "i64[2]=[6,6]"},
                    "{axes=[2,3], keep_aspect_ratio_policy=\"not_larger\"}"),
            "f32[1,1,3,6]");
  EXPECT_THAT(Outcome("Resize", {"f32[1,1,4,8]", "", "f32[2]=[1,2]"}),
              HasSubstr("2 scales for 4 axes"));
  EXPECT_THAT(Outcome("Resize", {"f32[4]", "", "f32[1]=[2]"}, "{mode=\"square\"}"),
              HasSubstr("mode is 'square'"));
}

TEST(Recurrent, Shapes) {
  EXPECT_EQ(Outcome("LSTM", {"f32[s,2,4]", "f32[2,20,4]", "f32[2,20,5]"},
                    "{direction=\"bidirectional\"}", 3),
            "f32[s,2,2,5] f32[2,2,5] f32[2,2,5]");
  EXPECT_EQ(Outcome("GRU", {"f32[2,s,4]", "f32[1,15,4]", "f32[1,15,5]"}, "{layout=1}", 2),
            "f32[2,s,1,5] f32[2,1,5]");
  EXPECT_THAT(
      Outcome("RNN", {"f32[3,2,4]", "f32[1,5,4]", "f32[1,5,5]"}, "{activations=[\"Cube\"]}"),
      HasSubstr("activation 'Cube'"));
  EXPECT_THAT(Outcome("LSTM", {"f32[3,2,4]", "f32[1,20,4]", "f32[1,15,5]"}), HasSubstr("fault"));
}

TEST(Selection, SizesThatDependOnData) {
  EXPECT_EQ(Outcome("TopK", {"f32[3,8]", "i64[1]=[2]"}, "{}", 2), "f32[3,2] i64[3,2]");
  EXPECT_THAT(Outcome("TopK", {"f32[3,8]", "i64[1]=[9]"}, "{}", 2), HasSubstr("k = 9"));
  EXPECT_THAT(Outcome("NonZero", {"f32[3,8]"}), testing::StartsWith("i64[2,nonzero"));
  EXPECT_THAT(Outcome("ScatterElements", {"f32[3]", "i64[2]", "f32[2]"}, "{reduction=\"sub\"}"),
              HasSubstr("reduction is 'sub'"));
}

TEST(Attention, Heads) {
  EXPECT_EQ(Outcome("Attention", {"f32[2,4,72]", "f32[2,6,24]", "f32[2,6,30]"},
                    "{q_num_heads=9, kv_num_heads=3}"),
            "f32[2,4,90]");
  EXPECT_THAT(Outcome("Attention", {"f32[2,4,72]", "f32[2,6,24]", "f32[2,6,24]"}),
              HasSubstr("q_num_heads and kv_num_heads are needed"));
}

// If whose branches are one node each: then `then_op`, else Identity.
std::string IfOutcome(const std::string& condition, const std::string& x, std::string_view then_op,
                      const std::vector<int64_t>& axes, size_t* checks) {
  Graph g;
  g.model = std::make_shared<Model>();
  const ValueId v = g.AddInput("x", *ParseTensorType(x, g.arena())),
                c = g.AddInput("c", *ParseTensorType("bool[]", g.arena()));
  if (!condition.empty()) g.value(c).elems = std::vector<Expr>{*ParseExpr(condition, g.arena())};
  const NodeId n = g.AddNode(*FindOp("", "If"), "if", {c, v}, 1);
  for (int k = 0; k < 2; ++k) {
    auto sub = std::make_unique<Graph>();
    sub->model = g.model;
    std::vector<ValueId> inputs = {sub->AddInput("x", {})};
    if (k == 0 && !axes.empty())
      inputs.push_back(sub->AddConstant(
          "axes", MakeConstant(DType::kI64, {static_cast<int64_t>(axes.size())}, axes.data())));
    const NodeId node = sub->AddNode(*FindOp("", k == 0 ? then_op : "Identity"), "n", inputs, 1);
    sub->outputs = sub->node(node).outputs;
    g.node(n).subgraphs.push_back(std::move(sub));
  }
  const Status s = Infer(g, g.node(n));
  *checks = g.model->checks.size();
  return s.ok() ? ToString(g.value(g.node(n).outputs[0]).type) : "fault: " + s.message();
}

TEST(Control, BranchesOfUnequalRank) {
  size_t checks = 0;
  // The condition hangs on sizes: the branch of lower rank holds, and a check guards it.
  EXPECT_EQ(IfOutcome("n == 1", "f32[3,n]", "Squeeze", {1}, &checks), "f32[3]");
  EXPECT_GE(checks, 1u);
  EXPECT_EQ(IfOutcome("1", "f32[3,1]", "Squeeze", {1}, &checks), "f32[3]");
  EXPECT_EQ(IfOutcome("0", "f32[3,1]", "Squeeze", {1}, &checks), "f32[3,1]");
  // Nothing is known of the condition, but the elements are the same.
  EXPECT_EQ(IfOutcome("", "f32[3,1]", "Squeeze", {1}, &checks), "f32[3,1]");
  EXPECT_EQ(checks, 0u);
  EXPECT_EQ(IfOutcome("", "f32[3,4]", "Relu", {}, &checks), "f32[3,4]");
}

}  // namespace
}  // namespace ge
