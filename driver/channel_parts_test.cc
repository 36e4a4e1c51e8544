// Parts of channels where sizes are not known: other buffers, the same bits.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "driver/compile.h"
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
};

Made Compiled(bool parts) {
  Made made;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("ge_parts_{}", getpid());
  std::filesystem::create_directories(folder);
  CompileRequest request;
  request.model = folder / "m.ir";
  request.output = folder / "m.om";
  request.soc_version = "x86-64-v3";
  std::ofstream(request.model) << Wide();
  request.policy.interpret_kernels = true;
  if (!parts) request.policy.disabled = {"channel_parts"};
  const auto report = Compile(request);
  EXPECT_TRUE(report.ok()) << report.status().message();
  rt::LoadOptions options;
  options.threads = 2;
  options.text_kernel = InterpretedKernel;
  auto model = rt::Model::Load(request.output, options);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(model.ok()) << model.status().message();
  for (const om::Buffer& b : (*model)->plan().buffers)
    made.parts += b.kind == om::BufferKind::kArena && b.name.find(".part") != std::string::npos;
  auto run = rt::Run::Create(*model);
  EXPECT_TRUE(run.ok());
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1, 3, 5, 7}, {2, 3, 8, 4}}) {
    std::vector<float> data;
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>(i * 5 % 9 - 4));
    rt::Tensor x{.dtype = static_cast<uint8_t>(DType::kF32)};
    x.dims = dims, x.data = data.data(), x.bytes = 4 * count;
    std::vector<rt::Tensor> outputs(1);
    const Status status = (*run)->Execute(std::vector<rt::Tensor>{x}, outputs);
    EXPECT_TRUE(status.ok()) << status.message();
    made.outputs.emplace_back(static_cast<const char*>(outputs[0].data),
                              static_cast<size_t>(outputs[0].bytes));
  }
  return made;
}

TEST(ChannelParts, OfUnknownSizesKeepEveryBit) {
  const Made whole = Compiled(false), parts = Compiled(true);
  EXPECT_EQ(whole.parts, 0);
  EXPECT_GE(parts.parts, 2);
  EXPECT_TRUE(parts.outputs == whole.outputs);
}

}  // namespace
}  // namespace ge
