// Generated kernels against the limits of the same run, one thread: dots against the FMA peak,
// memory-bound chains against copying, weights that are denormal against weights that are not.
//
//   bench_kernels [--soc_version=CHIP] [--bf16] [MODEL.om]
//
// Dots are compiled for this CPU and, where that has wider vectors, for AVX2. Some have a bar; the
// exit code is 1 if a bar is missed. With a model: its load time without and with the weights'
// checksum.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
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

struct Options {
  std::string soc, folder, model;
  bool bf16 = false;
};

Constant RandomConstant(std::vector<int64_t> dims, float scale = 0.1f) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> u(-scale, scale);
  std::vector<float> data(static_cast<size_t>(n));
  for (float& v : data) v = u(rng);
  return MakeConstant(DType::kF32, std::move(dims), data.data());
}

struct Problem {
  std::string name, op;
  std::vector<int64_t> input, weight;
  std::map<std::string, Attr, std::less<>> attrs;
  double flops;
  double bar = 0;  // least fraction of the peak
};

Result<std::string> CompileGraph(const Graph& g, const Options& o) {
  CompileRequest request;
  request.model = o.folder + "/" + g.name + ".ir";
  request.output = o.folder + "/" + g.name + ".om";
  request.soc_version = o.soc;
  request.policy.bf16 = o.bf16;
  request.policy.conv_tolerance =
      0;  // direct: Winograd does fewer operations than are counted here
  std::ofstream(request.model) << ToString(g);
  auto report = Compile(request);
  if (!report.ok()) return report.status();
  return request.output;
}

// Input -> op(input, weight) -> Relu: a region as a network has it.
Result<std::string> CompileProblem(const Problem& p, const Options& o, float scale = 0.1f) {
  Graph g;
  g.name = p.name;
  g.model = std::make_shared<Model>();
  TensorType type{DType::kF32, {p.input.begin(), p.input.end()}, {}};
  const ValueId x = g.AddInput("x", type);
  const ValueId w = g.AddConstant("w", RandomConstant(p.weight, scale));
  const NodeId dot = g.AddNode(*FindOp("", p.op), "dot", {x, w}, 1);
  g.node(dot).attrs = p.attrs;
  GE_TRY(Infer(g, g.node(dot)));
  const NodeId relu = g.AddNode(*FindOp("", "Relu"), "relu", {g.node(dot).outputs[0]}, 1);
  GE_TRY(Infer(g, g.node(relu)));
  g.outputs = {g.node(relu).outputs[0]};
  return CompileGraph(g, o);
}

// ns of the slowest task, the least of many runs.
Result<int64_t> SlowestTask(const std::string& om, int runs) {
  GE_ASSIGN(auto model, LoadModel(om, 1));
  GE_ASSIGN(auto arrays, BindInputs(*model, {}));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(arrays), outputs(1);
  run->EnableProfile(true);
  std::vector<int64_t> best;
  for (int i = 0; i < runs; ++i) {
    outputs[0] = {};
    GE_TRY(run->Execute(inputs, outputs));
    const auto& profile = run->profile();
    best.resize(profile.size(), INT64_MAX);
    for (size_t k = 0; k < profile.size(); ++k) best[k] = std::min(best[k], profile[k]);
  }
  return *std::max_element(best.begin(), best.end());
}

const char* Verdict(bool reached, bool* all) {
  *all &= reached;
  return reached ? "ok" : "MISSED";
}

Status BenchProblem(const Problem& p, const Options& o, bool* all) {
  GE_ASSIGN(const std::string om, CompileProblem(p, o));
  GE_ASSIGN(auto model, LoadModel(om, 1));
  GE_ASSIGN(auto arrays, BindInputs(*model, {}));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(arrays), outputs(1);
  std::vector<double> seconds;
  // Narrower vectors have their share of the peak of the widest.
  const double share =
      std::min(1.0, 1.0 * FindSoc(o.soc, nullptr)->vector_bytes / HostSoc().vector_bytes);
  double peak = share * MeasureFmaPeak();
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 200; ++i) {
      const auto t = Clock::now();
      GE_TRY(run->Execute(inputs, outputs));
      seconds.push_back(Seconds(t));
    }
    peak = std::max(peak, share * MeasureFmaPeak());
  }
  std::sort(seconds.begin(), seconds.end());
  // Whole executions, layout conversions at the graph's edges included; the dot's own time is in
  // the profile.
  GE_ASSIGN(const int64_t ns, SlowestTask(om, 200));
  const auto dot_ns = static_cast<double>(ns);
  std::printf(
      "%-30s whole %8.1f us  dot %8.1f us  %6.1f GFLOP/s = %3.0f %% of the FMA peak (%.1f "
      "GFLOP/s)%s\n",
      fmt::format("{}{}", p.name, o.soc.empty() ? "" : " " + o.soc).c_str(),
      seconds[seconds.size() / 2] * 1e6, dot_ns / 1e3, p.flops / dot_ns,
      100 * p.flops / dot_ns / peak, peak,
      p.bar == 0 || o.bf16 ? ""
                           : fmt::format("  bar {:.0f} %: {}", 100 * p.bar,
                                         Verdict(p.flops / dot_ns >= p.bar * peak, all))
                                 .c_str());
  return {};
}

// Chains of pointwise operators and of rows over more than the caches hold, against copying the
// same bytes in the same run.
Status BenchChain(const std::string& name, const std::vector<std::string>& ops, const Options& o,
                  bool* all) {
  constexpr int64_t kRows = 4096, kColumns = 4096;
  Graph g;
  g.name = name;
  g.model = std::make_shared<Model>();
  ValueId v = g.AddInput("x", TensorType{DType::kF32, {kRows, kColumns}, {}});
  const ValueId first = v;
  for (const std::string& op : ops) {
    std::vector<ValueId> inputs = {v};
    if (op == "Add") inputs.push_back(first);
    if (op == "Mul") inputs.push_back(g.AddConstant("scale", RandomConstant({kColumns})));
    const NodeId n = g.AddNode(*FindOp("", op), op, inputs, 1);
    GE_TRY(Infer(g, g.node(n)));
    v = g.node(n).outputs[0];
  }
  g.outputs = {v};
  GE_ASSIGN(const std::string om, CompileGraph(g, o));
  GE_ASSIGN(const int64_t ns, SlowestTask(om, 12));
  std::vector<char> from(kRows * kColumns * 4, 1), to(from.size());
  double copy_ns = 1e18;
  for (int i = 0; i < 12; ++i) {
    const auto t = Clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" : : "r"(to.data()) : "memory");
    copy_ns = std::min(copy_ns, Seconds(t) * 1e9);
  }
  const double part = copy_ns / static_cast<double>(ns);
  std::printf("%-30s %8.1f us, copying %8.1f us: %3.0f %% of copy speed%s%s\n", name.c_str(),
              static_cast<double>(ns) / 1e3, copy_ns / 1e3, 100 * part, all ? "  bar 80 %: " : "",
              all ? Verdict(part >= 0.8, all) : "");
  return {};
}

Status BenchDenormals(const Problem& p, const Options& o, bool* all) {
  double ns[2];
  for (int denormal : {0, 1}) {
    GE_ASSIGN(const std::string om, CompileProblem(p, o, denormal ? 1e-39f : 0.1f));
    GE_ASSIGN(const int64_t least, SlowestTask(om, 100));
    ns[denormal] = static_cast<double>(least);
  }
  std::printf("%-30s %8.1f us, with denormal weights %8.1f us: %.2f times  bar 2 times: %s\n",
              p.name.c_str(), ns[0] / 1e3, ns[1] / 1e3, ns[1] / ns[0],
              Verdict(ns[1] <= 2 * ns[0], all));
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

Status BenchAll(const Options& o, bool* all) {
  const std::vector<int64_t> same = {1, 1, 1, 1};
  const Problem problems[] = {
      {"conv3x3_64_at_56",
       "Conv",
       {1, 64, 56, 56},
       {64, 64, 3, 3},
       {{"pads", same}},
       2.0 * 64 * 64 * 9 * 56 * 56,
       0.8},
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
      {"gemm_128x768x768", "MatMul", {128, 768}, {768, 768}, {}, 2.0 * 128 * 768 * 768, 0.8},
      {"gemm_128x768x3072", "MatMul", {128, 768}, {768, 3072}, {}, 2.0 * 128 * 768 * 3072},
  };
  for (const Problem& p : problems) GE_TRY(BenchProblem(p, o, all).In(p.name));
  if (o.soc.empty() && HostSoc().machine == "x86_64" && HostSoc().vector_bytes > 32) {
    Options avx2 = o;
    avx2.soc = "x86-64-v3";
    for (const Problem& p : problems) GE_TRY(BenchProblem(p, avx2, all).In(p.name));
  }
  GE_TRY(BenchDenormals(problems[0], o, all));
  GE_TRY(BenchDenormals(problems[3], o, all));
  GE_TRY(BenchChain("chain_mul_relu_neg_abs", {"Mul", "Relu", "Neg", "Abs"}, o, all));
  GE_TRY(BenchChain("chain_hardswish_add", {"HardSwish", "Mul", "Add", "LeakyRelu"}, o, all));
  GE_TRY(BenchChain("chain_sigmoid_mul", {"Sigmoid", "Mul"}, o, all));
  // Five passes over each row in the first cache take as long as memory does: no bar.
  GE_TRY(BenchChain("softmax_4096x4096", {"Softmax"}, o, nullptr));
  return o.model.empty() ? Status() : BenchLoad(o.model);
}

int Main(int argc, char** argv) {
  Options o;
  constexpr std::string_view kSoc = "--soc_version=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with(kSoc)) {
      o.soc = word.substr(kSoc.size());
    } else if (word == "--bf16") {
      o.bf16 = true;
    } else if (word.starts_with('-')) {
      const bool asked = word == "--help";
      std::fprintf(asked ? stdout : stderr,
                   "usage: bench_kernels [--soc_version=CHIP] [--bf16] [MODEL.om]\n");
      return asked ? 0 : 1;
    } else {
      o.model = word;
    }
  }
  bool all = true;
  Status s = FindSoc(o.soc, nullptr).status();
  o.folder = std::filesystem::temp_directory_path() / fmt::format("ge_bench_kernels_{}", getpid());
  std::filesystem::create_directories(o.folder);
  if (s.ok()) s = BenchAll(o, &all);
  std::filesystem::remove_all(o.folder);
  if (!s.ok()) std::fprintf(stderr, "bench_kernels: %s\n", s.message().c_str());
  return s.ok() && all ? 0 : 1;
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) { return ge::Main(argc, argv); }
