// Changes of a graph that are tried for a smaller arena: parts of channels where sizes are not
// known (channel_parts.cc), results over inputs (write_over.cc). The bits stay the same; what gains
// too little, or cannot be, is taken back.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "driver/compile.h"
#include "om/file.h"
#include "plan/interpreted.h"
#include "rt/runtime.h"

namespace ge {
namespace {

std::string Weights(const char* name, int o, int c, int k) {
  std::vector<int> values(static_cast<size_t>(o * c * k * k));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7 % 11) - 5;
  return fmt::format("  %{} = const f32[{},{},{},{}] {{{}}}\n", name, o, c, k, k,
                     fmt::join(values, ", "));
}

// Wide in the middle: x -> 16 -> 64 channels -> 64 of half the size -> 8.
std::string Wide() {
  std::vector<int> scale(64);
  for (size_t i = 0; i < scale.size(); ++i) scale[i] = static_cast<int>(i % 5) - 2;
  return "symbol n hint=1\nsymbol h hint=128\nsymbol w hint=128\n"
         "graph \"wide\" (%x: f32[n,3,h,w]) -> (%y) {\n" +
         Weights("w0", 16, 3, 9) + Weights("w1", 64, 16, 1) + Weights("w2", 64, 1, 3) +
         Weights("w3", 8, 64, 1) +
         fmt::format("  %s = const f32[64,1,1] {{{}}}\n  %b = const f32[64] {{{}}}\n",
                     fmt::join(scale, ", "), fmt::join(scale, ", ")) +
         "  %a0 = Conv(%x, %w0) {kernel_shape=[9,9], pads=[4,4,4,4]}\n"
         "  %a1 = Conv(%a0, %w1, %b) {kernel_shape=[1,1]}\n  %a2 = Mul(%a1, %s)\n"
         "  %a3 = Relu(%a2)\n"
         "  %a4 = Conv(%a3, %w2, %b) {group=64, kernel_shape=[3,3], pads=[1,1,1,1], "
         "strides=[2,2]}\n"
         "  %a5 = Relu(%a4)\n  %y = Conv(%a5, %w3) {kernel_shape=[1,1]}\n}\n";
}

struct Made {
  std::vector<std::string> outputs;
  int parts = 0;  // buffers
  int64_t arena = 0;
  std::string plan;
  std::vector<std::string> log;  // of the step that is tested

  int Logged(std::string_view what) const {
    return static_cast<int>(std::count_if(log.begin(), log.end(), [&](const std::string& line) {
      return line.find(what) != std::string::npos;
    }));
  }
};

// Compiled with the step, or without it, and run with inputs of each of these dims.
Made Compiled(const std::string& text, const std::string& step, bool with,
              const std::vector<std::vector<int64_t>>& inputs) {
  Made made;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("ge_lean_{}", getpid());
  std::filesystem::create_directories(folder);
  CompileRequest request;
  request.model = folder / "m.ir";
  request.output = folder / "m.om";
  request.soc_version = "x86-64-v3";
  std::ofstream(request.model) << text;
  request.policy.interpret_kernels = true;
  if (!with) request.policy.disabled = {step};
  request.log = [&](const std::string& line) {
    if (line.starts_with(step)) made.log.push_back(line);
  };
  const auto report = Compile(request);
  EXPECT_TRUE(report.ok()) << report.status().message();
  rt::LoadOptions options;
  options.threads = 2;
  options.text_kernel = InterpretedKernel;
  auto model = rt::Model::Load(request.output, options);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(model.ok()) << model.status().message();
  made.arena = (*model)->plan().arena_bytes;
  made.plan = om::ToString((*model)->plan());
  for (const om::Buffer& b : (*model)->plan().buffers)
    made.parts += b.kind == om::BufferKind::kArena && b.name.find(".part") != std::string::npos;
  auto run = rt::Run::Create(*model);
  EXPECT_TRUE(run.ok());
  for (const std::vector<int64_t>& dims : inputs) {
    std::vector<float> data;
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>(i * 5 % 9 - 4));
    rt::Tensor x{.dtype = static_cast<uint8_t>(DType::kF32)};
    x.dims = dims, x.data = data.data(), x.bytes = 4 * count;
    std::vector<rt::Tensor> outputs((*model)->plan().outputs.size());
    const Status status = (*run)->Execute(std::vector<rt::Tensor>{x}, outputs);
    EXPECT_TRUE(status.ok()) << status.message();
    for (const rt::Tensor& y : outputs)
      made.outputs.emplace_back(static_cast<const char*>(y.data), static_cast<size_t>(y.bytes));
  }
  return made;
}

const std::vector<std::vector<int64_t>> kSmall = {{1, 3, 5, 7}, {2, 3, 8, 4}};

TEST(ChannelParts, OfUnknownSizesKeepEveryBit) {
  const Made whole = Compiled(Wide(), "channel_parts", false, kSmall),
             parts = Compiled(Wide(), "channel_parts", true, kSmall);
  EXPECT_EQ(whole.parts, 0);
  EXPECT_GE(parts.parts, 2);
  EXPECT_TRUE(parts.outputs == whole.outputs);
}

// Two such pairs of one size: parts of one of them leave the arena as large as it was.
TEST(ChannelParts, WhatGainsNothingIsTakenBack) {
  std::string text = Wide();
  text.resize(text.find("  %y = Conv(%a5"));
  text +=
      "  %y = GlobalAveragePool(%a5)\n  %b0 = Conv(%x, %w4) {kernel_shape=[1,1]}\n"
      "  %b1 = Conv(%b0, %w1) {kernel_shape=[1,1]}\n"
      "  %b2 = Conv(%b1, %w2, %b) {group=64, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]}\n"
      "  %z = GlobalAveragePool(%b2)\n}\n";
  text.replace(text.find("(%y) {\n"), 7, "(%y, %z) {\n" + Weights("w4", 16, 3, 1));
  const Made whole = Compiled(text, "channel_parts", false, kSmall),
             tried = Compiled(text, "channel_parts", true, kSmall);
  EXPECT_EQ(whole.Logged(""), 0);
  EXPECT_EQ(tried.Logged("step 1"), 1);
  EXPECT_EQ(tried.parts, 0);
  EXPECT_EQ(tried.plan, whole.plan);
  EXPECT_TRUE(tried.outputs == whole.outputs);
}

// Two chains, one after the other, of a convolution and one of as many channels. The second, of 16
// channels and smaller pictures, ends in a depthwise one, which would have too few tasks if it
// wrote over its input.
std::string TwoChains(int channels) {
  return "graph \"chains\" (%x: f32[1,3,128,128]) -> (%y, %z) {\n" + Weights("w0", channels, 3, 3) +
         Weights("w1", channels, channels, 1) + Weights("w2", 16, 3, 3) + Weights("w3", 16, 1, 3) +
         "  %a0 = Conv(%x, %w0) {kernel_shape=[3,3], pads=[1,1,1,1]}\n"
         "  %a1 = Conv(%a0, %w1) {kernel_shape=[1,1]}\n  %y = GlobalAveragePool(%a1)\n"
         "  %b0 = Conv(%x, %w2) {kernel_shape=[3,3], dilations=[12,12]}\n"
         "  %b1 = Conv(%b0, %w3) {group=16, kernel_shape=[3,3], pads=[1,1,1,1]}\n"
         "  %z = GlobalAveragePool(%b1)\n}\n";
}
const std::vector<std::vector<int64_t>> kPicture = {{1, 3, 128, 128}};

TEST(WriteOver, WhoseKernelCannotIsAskedNoMore) {
  const Made apart = Compiled(TwoChains(16), "write_over", false, kPicture),
             over = Compiled(TwoChains(16), "write_over", true, kPicture);
  EXPECT_EQ(apart.Logged(""), 0);
  EXPECT_EQ(over.Logged("write_over"), 2);  // with the depthwise one, and without
  EXPECT_LT(over.arena, apart.arena * 9 / 10);
  EXPECT_TRUE(over.outputs == apart.outputs);
}

// Of 32 channels to 32 the copies weigh more than 2 %.
TEST(WriteOver, WhatTakesLongerIsTakenBack) {
  const Made apart = Compiled(TwoChains(32), "write_over", false, kPicture),
             tried = Compiled(TwoChains(32), "write_over", true, kPicture);
  EXPECT_EQ(tried.Logged("write_over"), 1);
  EXPECT_EQ(tried.plan, apart.plan);
  EXPECT_TRUE(tried.outputs == apart.outputs);
}

}  // namespace
}  // namespace ge
