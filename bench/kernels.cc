// Generated kernels against the FMA peak of the same run, one thread; loading; cost of a task.
//
//   bench_kernels [MODEL.om]       with a model: its load time without and with the weights'
//   checksum

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "driver/compile.h"
#include "ir/opdef.h"
#include "tools/peak.h"
#include "tools/session.h"

namespace ge {
namespace {

using Clock = std::chrono::steady_clock;
double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

Constant RandomConstant(std::vector<int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> u(-0.1f, 0.1f);
  std::vector<float> data(static_cast<size_t>(n));
  for (float& v : data) v = u(rng);
  return MakeConstant(DType::kF32, std::move(dims), data.data());
}

struct Problem {
  std::string name, op;
  std::vector<int64_t> input, weight;
  std::map<std::string, Attr, std::less<>> attrs;
  double flops;
};

// Input -> op(input, weight) -> Relu: a region as a network has it.
Result<std::string> CompileProblem(const Problem& p, const std::string& folder) {
  Graph g;
  g.name = p.name;
  g.model = std::make_shared<Model>();
  TensorType type{DType::kF32, {p.input.begin(), p.input.end()}, {}};
  const ValueId x = g.AddInput("x", type);
  const ValueId w = g.AddConstant("w", RandomConstant(p.weight));
  const NodeId dot = g.AddNode(*FindOp("", p.op), "dot", {x, w}, 1);
  g.node(dot).attrs = p.attrs;
  GE_TRY(Infer(g, g.node(dot)));
  const NodeId relu = g.AddNode(*FindOp("", "Relu"), "relu", {g.node(dot).outputs[0]}, 1);
  GE_TRY(Infer(g, g.node(relu)));
  g.outputs = {g.node(relu).outputs[0]};
  CompileRequest request;
  request.model = folder + "/" + p.name + ".ir";
  request.output = folder + "/" + p.name + ".om";
  request.policy.conv_tolerance =
      0;  // direct: Winograd does fewer operations than are counted here
  std::ofstream(request.model) << ToString(g);
  auto report = Compile(request);
  if (!report.ok()) return report.status();
  return request.output;
}

Status BenchProblem(const Problem& p, const std::string& folder) {
  GE_ASSIGN(const std::string om, CompileProblem(p, folder));
  GE_ASSIGN(auto model, LoadModel(om, 1));
  GE_ASSIGN(auto arrays, BindInputs(*model, {}));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(arrays), outputs(1);
  std::vector<double> seconds;
  double peak = MeasureFmaPeak();
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 200; ++i) {
      const auto t = Clock::now();
      GE_TRY(run->Execute(inputs, outputs));
      seconds.push_back(Seconds(t));
    }
    peak = std::max(peak, MeasureFmaPeak());
  }
  std::sort(seconds.begin(), seconds.end());
  // Whole executions, layout conversions at the graph's edges included; the dot's own time is in
  // the profile.
  run->EnableProfile(true);
  std::vector<int64_t> best;
  for (int i = 0; i < 200; ++i) {
    GE_TRY(run->Execute(inputs, outputs));
    const auto& profile = run->profile();
    best.resize(profile.size(), INT64_MAX);
    for (size_t k = 0; k < profile.size(); ++k) best[k] = std::min(best[k], profile[k]);
  }
  const int64_t dot_ns = *std::max_element(best.begin(), best.end());
  std::printf(
      "%-24s whole %8.1f us  dot %8.1f us  %6.1f GFLOP/s = %3.0f %% of the FMA peak (%.1f "
      "GFLOP/s)\n",
      p.name.c_str(), seconds[seconds.size() / 2] * 1e6, dot_ns / 1e3, p.flops / dot_ns,
      100 * p.flops / dot_ns / peak, peak);
  return {};
}

Status BenchLoad(const std::string& path) {
  for (bool verify : {false, true}) {
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
      const auto t = Clock::now();
      GE_ASSIGN(auto model, LoadModel(path, 1, verify));
      best = std::min(best, Seconds(t));
    }
    std::printf("load %s %s: %.2f ms\n", path.c_str(),
                verify ? "with the weights' checksum" : "without", best * 1e3);
  }
  return {};
}

int Main(int argc, char** argv) {
  const std::string folder = std::filesystem::temp_directory_path() / "ge_bench_kernels";
  std::filesystem::create_directories(folder);
  const std::vector<int64_t> same = {1, 1, 1, 1};
  const Problem problems[] = {
      {"conv3x3_64_at_56",
       "Conv",
       {1, 64, 56, 56},
       {64, 64, 3, 3},
       {{"pads", same}},
       2.0 * 64 * 64 * 9 * 56 * 56},
      {"conv3x3_256_at_14",
       "Conv",
       {1, 256, 14, 14},
       {256, 256, 3, 3},
       {{"pads", same}},
       2.0 * 256 * 256 * 9 * 14 * 14},
      {"conv1x1_256_64_at_56",
       "Conv",
       {1, 256, 56, 56},
       {64, 256, 1, 1},
       {},
       2.0 * 64 * 256 * 56 * 56},
      {"gemm_128x768x768", "MatMul", {128, 768}, {768, 768}, {}, 2.0 * 128 * 768 * 768},
      {"gemm_128x768x3072", "MatMul", {128, 768}, {768, 3072}, {}, 2.0 * 128 * 768 * 3072},
  };
  for (const Problem& p : problems)
    if (Status s = BenchProblem(p, folder); !s.ok()) {
      std::fprintf(stderr, "%s: %s\n", p.name.c_str(), s.message().c_str());
      return 1;
    }
  if (argc > 1)
    if (Status s = BenchLoad(argv[1]); !s.ok()) {
      std::fprintf(stderr, "%s\n", s.message().c_str());
      return 1;
    }
  return 0;
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) { return ge::Main(argc, argv); }
