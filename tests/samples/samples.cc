// Every sample of every operator as a model of one node (or of what it expands to): through the
// interpreter and generated code, without and with optimisation, for AVX2 and for this CPU, with
// static and with symbolic shapes, on one worker and two. Results must agree with those of the
// unoptimised interpreter (dots also for a matrix unit whose instructions are C), and nothing may
// be written beside the tensors and the work memory: each lies between canaries.
//
//   samples [--filter TEXT] [--work FOLDER]     the last line is "N samples, N runs in N ways, N
//   failed"

#include "ir/samples.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "abi/convert.h"
#include "driver/compile.h"
#include "ir/expand.h"
#include "ir/text.h"
#include "rt/cpu.h"
#include "soc/soc.h"
#include "tools/session.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
constexpr size_t kGuard = 256, kAlign = 64;
constexpr std::byte kCanary{0xa5};

// Memory of `bytes` between two guards.
class Guarded {
 public:
  explicit Guarded(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)),
        memory_(static_cast<std::byte*>(
            std::aligned_alloc(kAlign, (bytes_ + 2 * kGuard + kAlign - 1) / kAlign * kAlign))) {
    std::memset(memory_, static_cast<int>(kCanary), bytes_ + 2 * kGuard);
  }
  ~Guarded() { std::free(memory_); }
  Guarded(Guarded&& o) noexcept : bytes_(o.bytes_), memory_(std::exchange(o.memory_, nullptr)) {}
  Guarded& operator=(Guarded&&) = delete;
  std::byte* data() const { return memory_ + kGuard; }
  size_t bytes() const { return bytes_; }
  bool Intact() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (memory_[i] != kCanary || memory_[kGuard + bytes_ + i] != kCanary) return false;
    return true;
  }

 private:
  size_t bytes_;
  std::byte* memory_;
};

// How a sample is compiled and run.
struct Way {
  const char* name;
  const char* soc;
  int level, threads;
  bool interpret, symbolic;
  bool dots = false;  // only operators with products of matrices, and only where the code can run
};
constexpr Way kReference = {"interpreter, level 0", "", 0, 1, true, false};
constexpr Way kWays[] = {
    {"interpreter, level 2", "", 2, 1, true, false},
    {"code, level 0", "", 0, 1, false, false},
    {"code, level 2, 2 threads", "", 2, 2, false, false},
    {"code, level 2, symbolic, 2 threads", "", 2, 2, false, true},
    {"code for AVX2, level 2", "x86-64-v3", 2, 1, false, false},
    {"code for AVX2, level 0, symbolic", "x86-64-v3", 0, 1, false, true},
    {"code for AMX in C, level 2, 2 threads", "sapphirerapids-emulated", 2, 2, false, false, true},
};

struct Sample {
  const OpDef* op;
  std::string text;
  std::string files[2];                    // static, symbolic ("" = there is none)
  std::vector<std::vector<int64_t>> dims;  // of inputs
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::vector<std::byte>> want;
  std::vector<std::vector<int64_t>> want_dims;
};

// Floats over both signs; integers small enough to be positions.
std::vector<std::byte> Values(DType t, int64_t count, int seed, bool zeros) {
  std::vector<std::byte> bytes(static_cast<size_t>(BytesFor(t, count)));
  if (zeros) return bytes;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = (i * 37 + seed * 11) % 29;
    if (IsFloat(t))
      StoreElement<double>(t, bytes.data(), i, static_cast<double>(k - 14) / 8);
    else if (BitWidth(t) <= 8 && t != DType::kBool)
      StoreElement<int64_t>(t, bytes.data(), i, k % (1 << std::min(BitWidth(t) - 1, 5)));
    else
      StoreElement<int64_t>(t, bytes.data(), i, k % 2);
  }
  return bytes;
}

// The sample's inputs from its graph; false if it has any that is no plain tensor of known size.
bool MakeInputs(const Graph& g, bool zeros, Sample* s) {
  s->dims.clear();
  s->inputs.clear();
  int seed = 0;
  for (ValueId v : g.inputs) {
    const Value& value = g.value(v);
    if (value.kind != ValueKind::kTensor || value.type.dtype == DType::kString) return false;
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (Expr d : value.type.dims) {
      if (!d.IsConst()) return false;
      dims.push_back(d.value());
      count *= d.value();
    }
    s->inputs.push_back(Values(value.type.dtype, count, ++seed, zeros));
    s->dims.push_back(std::move(dims));
  }
  return true;
}

// Outputs of one run with all memory between canaries.
Status Run(const Sample& s, const std::string& om, const Way& way,
           std::vector<std::vector<std::byte>>* outputs, std::vector<std::vector<int64_t>>* dims) {
  GE_ASSIGN(auto model, LoadModel(om, way.threads));
  Guarded work(std::max<int64_t>(model->work_bytes(), 0));
  GE_ASSIGN(auto run, rt::Run::Create(model, model->work_bytes() > 0 ? work.data() : nullptr));
  const om::Plan& plan = model->plan();
  std::vector<Guarded> memory;
  std::vector<rt::Tensor> in;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    memory.emplace_back(static_cast<int64_t>(s.inputs[i].size()));
    std::memcpy(memory.back().data(), s.inputs[i].data(), s.inputs[i].size());
    in.push_back({plan.inputs[i].dtype, s.dims[i], memory.back().data(),
                  static_cast<int64_t>(s.inputs[i].size())});
  }
  GE_ASSIGN(const auto known, run->OutputDims(in));
  std::vector<rt::Tensor> out(plan.outputs.size());
  for (size_t o = 0; o < out.size(); ++o) {
    int64_t count = 1;
    for (int64_t d : known[o]) count = d < 0 || count < 0 ? -1 : count * d;
    if (count < 0) continue;  // the run finds out and owns the memory
    const int64_t bytes = BytesFor(static_cast<DType>(plan.outputs[o].dtype), count);
    memory.emplace_back(bytes);
    out[o].data = memory.back().data();
    out[o].bytes = bytes;
  }
  GE_TRY(run->Execute(in, out));
  for (size_t i = 0; i < memory.size(); ++i)
    if (!memory[i].Intact())
      return Invalid(fmt::format("wrote beside {} {}", i < in.size() ? "input" : "output",
                                 i < in.size() ? i : i - in.size()));
  if (!work.Intact()) return Invalid("wrote beside the work memory");
  for (size_t i = 0; i < in.size(); ++i)
    if (std::memcmp(in[i].data, s.inputs[i].data(), s.inputs[i].size()) != 0)
      return Invalid(fmt::format("wrote to input {}", i));
  for (const rt::Tensor& t : out) {
    int64_t count = 1;
    for (int64_t d : t.dims) count *= d;
    const auto* p = static_cast<const std::byte*>(t.data);
    outputs->emplace_back(p, p + BytesFor(static_cast<DType>(t.dtype), count));
    dims->push_back(t.dims);
  }
  return {};
}

Status Compare(const Sample& s, const om::Plan& plan,
               const std::vector<std::vector<std::byte>>& got,
               const std::vector<std::vector<int64_t>>& dims) {
  for (size_t o = 0; o < got.size(); ++o) {
    if (dims[o] != s.want_dims[o])
      return Invalid(
          fmt::format("output {} is {}, not {}", o, DimsText(dims[o]), DimsText(s.want_dims[o])));
    const auto t = static_cast<DType>(plan.outputs[o].dtype);
    if (!IsFloat(t)) {
      if (got[o] != s.want[o]) return Invalid(fmt::format("output {} differs", o));
      continue;
    }
    // One rounding of the storage, and sums in another order.
    const double step = t == DType::kBF16   ? 1.0 / 128
                        : BitWidth(t) == 16 ? 1.0 / 1024
                        : BitWidth(t) < 16  ? 0.25
                                            : 0;
    const double tolerance = std::max(s.op->tolerance * 4, step);
    int64_t count = 1;
    for (int64_t d : dims[o]) count *= d;
    for (int64_t i = 0; i < count; ++i) {
      const double a = LoadElement<double>(t, got[o].data(), i),
                   b = LoadElement<double>(t, s.want[o].data(), i);
      const bool equal = a == b || (std::isnan(a) && std::isnan(b)) ||
                         std::abs(a - b) <= tolerance * (1 + std::abs(b));
      if (!equal) return Invalid(fmt::format("output {}[{}] is {}, not {}", o, i, a, b));
    }
  }
  return {};
}

bool HasDots(const OpDef& op) {
  const std::string name(op.name);
  for (const char* part : {"Conv", "MatMul", "Gemm", "Attention", "LSTM", "GRU"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

std::vector<Sample> FindSamples(const std::string& filter, const fs::path& work) {
  std::vector<Sample> samples;
  for (const OpDef* op : AllOps()) {
    if (op->control || op->name.find(filter) == std::string::npos) continue;
    for (const std::string& text : op->samples) {
      Sample s{.op = op, .text = text};
      for (int symbolic = 0; symbolic < 2; ++symbolic) {
        auto graph = ParseGraph(SampleGraph(*op, text, symbolic != 0));
        bool usable = graph.ok() && (symbolic != 0 || MakeInputs(**graph, false, &s));
        if (usable)
          for (const NodeId n : std::vector<NodeId>((*graph)->order))
            usable = usable && ExpandNode(**graph, n).ok();
        if (!usable) {  // not a use by tensors alone, or one that needs its sizes
          if (symbolic == 0) break;
          continue;
        }
        s.files[symbolic] =
            (work / fmt::format("{}_{}.ir", samples.size(), symbolic ? "symbolic" : "static"))
                .string();
        std::ofstream(s.files[symbolic]) << ToString(**graph);
      }
      if (!s.files[0].empty()) samples.push_back(std::move(s));
    }
  }
  return samples;
}

std::vector<Result<CompileReport>> CompileAll(const std::vector<Sample>& samples, const Way& way,
                                              const fs::path& work) {
  std::vector<CompileRequest> requests;
  for (size_t i = 0; i < samples.size(); ++i) {
    CompileRequest r;
    r.model = samples[i].files[way.symbolic ? 1 : 0];
    if (r.model.empty()) r.model = samples[i].files[0];
    r.output = (work / fmt::format("{}.om", i)).string();
    r.cache_dir = (work / "cache").string();
    r.soc_version = way.soc;
    r.policy.opt_level = way.level;
    r.policy.interpret_kernels = way.interpret;
    r.policy.conv_tolerance = 0;
    requests.push_back(std::move(r));
  }
  return CompileMany(requests);
}

int Main(const std::string& filter, const fs::path& work) {
  std::vector<Sample> samples = FindSamples(filter, work);
  int failed = 0, runs = 0;
  std::vector<char> usable(samples.size(), 0);
  auto reports = CompileAll(samples, kReference, work);
  for (size_t i = 0; i < samples.size(); ++i) {
    Sample& s = samples[i];
    const std::string om = (work / fmt::format("{}.om", i)).string();
    Status status =
        reports[i].ok() ? Run(s, om, kReference, &s.want, &s.want_dims) : reports[i].status();
    if (!status.ok() && reports[i].ok()) {  // values that the operator refuses: zeros are fine
      auto graph = ParseGraph(SampleGraph(*s.op, s.text));
      s.want.clear();
      s.want_dims.clear();
      if (graph.ok() && MakeInputs(**graph, true, &s))
        status = Run(s, om, kReference, &s.want, &s.want_dims);
    }
    usable[i] = status.ok();
    if (status.ok()) continue;
    ++failed;
    std::printf("FAIL %s %s [%s]: %s\n", s.op->name.c_str(), s.text.c_str(), kReference.name,
                status.message().c_str());
  }
  std::vector<Sample> dots;
  for (size_t i = 0; i < samples.size(); ++i)
    if (usable[i] && HasDots(*samples[i].op)) dots.push_back(samples[i]);
  for (const Way& way : kWays) {
    if (way.dots && !rt::CheckCpu(FindSoc(way.soc, nullptr)->features).ok()) continue;
    const std::vector<Sample>& tried = way.dots ? dots : samples;
    reports = CompileAll(tried, way, work);
    for (size_t i = 0; i < tried.size(); ++i) {
      const Sample& s = tried[i];
      if ((!way.dots && !usable[i]) || (way.symbolic && s.files[1].empty())) continue;
      const std::string om = (work / fmt::format("{}.om", i)).string();
      const auto check = [&]() -> Status {
        GE_TRY(reports[i].status());
        std::vector<std::vector<std::byte>> got;
        std::vector<std::vector<int64_t>> dims;
        GE_TRY(Run(s, om, way, &got, &dims));
        GE_ASSIGN(auto model, LoadModel(om, 1));
        return Compare(s, model->plan(), got, dims);
      };
      const Status status = check();
      ++runs;
      if (status.ok()) continue;
      ++failed;
      std::printf("FAIL %s %s [%s]: %s\n", s.op->name.c_str(), s.text.c_str(), way.name,
                  status.message().c_str());
    }
  }
  std::printf("%zu samples, %d runs in %zu ways, %d failed\n", samples.size(), runs,
              std::size(kWays), failed);
  return failed || (filter.empty() && samples.size() < 100) ? 1 : 0;
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) {
  CLI::App app{"runs the samples of all operators in every way"};
  std::string filter, work;
  app.add_option("--filter", filter, "only operators whose name holds this text");
  app.add_option("--work", work, "folder for models and kernels");
  CLI11_PARSE(app, argc, argv);
  const bool own = work.empty();
  if (own)
    work =
        (std::filesystem::temp_directory_path() / fmt::format("ge_samples_{}", getpid())).string();
  std::filesystem::create_directories(work);
  const int status = ge::Main(filter, work);
  std::error_code ignored;
  if (own) std::filesystem::remove_all(work, ignored);
  return status;
}
