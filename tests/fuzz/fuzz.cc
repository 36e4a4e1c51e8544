// Mutates files and feeds them to the readers: every mutation must be refused with a message or
// handled, never crash, hang or take unbounded memory.
//
//   fuzz onnx FILE      import and optimise each mutation of a model
//   fuzz compile FILE   the same, and lower, plan and write what is accepted (kernels as text)
//   fuzz om FILE        load (and where it loads, run) each mutation of an .om
//   fuzz plan FILE      decode and check mutations of the plan itself, past the checksum; print,
//                       simulate and validate those that pass
//   fuzz lies FILE      look at an .om whose description has other types and numbers than it should
//   fuzz ir FILE        parse mutations of AscendIR text
//
// A crash names the seed of the mutation: `--first K --count 1` repeats it.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "driver/compile.h"
#include "om/file.h"
#include "om/size.h"
#include "plan/simulate.h"
#include "plan/validate.h"
#include "soc/model.h"
#include "tools/session.h"
#include "tools/simulate.h"

namespace ge {
namespace {

struct Options {
  std::string kind, file;
  int count = 500, first = 0;
  unsigned seconds = 20;
};

using Bytes = std::vector<std::byte>;

// The mutation in hand, named when the process dies of it.
volatile sig_atomic_t current = 0;

extern "C" void NameMutation(int signal) {
  char text[64];
  const int n = std::snprintf(text, sizeof text, "mutation %d: signal %d\n",
                              static_cast<int>(current), signal);
  if (write(STDERR_FILENO, text, static_cast<size_t>(n)) < 0) _exit(3);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// One to eight edits: flipped bits, changed bytes, cut ends, repeated or removed pieces, extreme
// varints.
Bytes Mutate(const Bytes& original, uint64_t seed) {
  std::mt19937_64 rng(seed * 0x9e3779b97f4a7c15ull + 1);
  Bytes b = original;
  const int edits = 1 + static_cast<int>(rng() % 8);
  for (int e = 0; e < edits && !b.empty(); ++e) {
    const size_t at = rng() % 4 ? rng() % b.size() : rng() % std::min<size_t>(b.size(), 4096);
    switch (rng() % 7) {
      case 0: b[at] ^= static_cast<std::byte>(1u << (rng() % 8)); break;
      case 1: b[at] = static_cast<std::byte>(rng()); break;
      case 2: b.resize(at); break;
      case 3: {
        const size_t n = std::min<size_t>(b.size() - at, 1 + rng() % 64);
        b.erase(b.begin() + static_cast<long>(at), b.begin() + static_cast<long>(at + n));
        break;
      }
      case 4: {
        const size_t n = std::min<size_t>(b.size() - at, 1 + rng() % 64);
        const Bytes piece(b.begin() + static_cast<long>(at), b.begin() + static_cast<long>(at + n));
        b.insert(b.begin() + static_cast<long>(rng() % b.size()), piece.begin(), piece.end());
        break;
      }
      case 5:
        for (size_t i = at; i < std::min(b.size(), at + 10); ++i) b[i] = std::byte{0xff};
        break;
      case 6:
        for (size_t i = at; i < std::min(b.size(), at + 4); ++i) b[i] = std::byte{0};
        break;
    }
  }
  return b;
}

Status FuzzOnnx(const Bytes& bytes, const std::string& path) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  CompileRequest request;
  request.model = path;
  GE_ASSIGN(auto graph, ImportModel(request));
  Optimise(*graph, HostSoc(), request.policy);
  return {};
}

Status FuzzCompile(const Bytes& bytes, const std::string& path) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  CompileRequest request;
  request.model = path;
  request.output = path + ".om";
  request.policy.interpret_kernels = true;
  auto report = Compile(request);
  std::filesystem::remove(request.output);
  return report.ok() ? Status() : report.status();
}

Status FuzzIr(const Bytes& bytes, const std::string&) {
  auto graph =
      ParseGraph(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return graph.ok() ? Status() : graph.status();
}

Status FuzzPlan(const Bytes& bytes, const std::string&) {
  GE_ASSIGN(om::Plan plan, om::DecodePlan(bytes));
  GE_TRY(om::CheckPlan(plan, int64_t{1} << 40, static_cast<int64_t>(plan.kernels.size())));
  // What looks at plans without running them: a lie that the check lets pass is no crash.
  GE_TRY(om::ParsePlan(om::ToString(plan)).status());
  const std::vector<int64_t> unknown(plan.symbols.size(), om::kNoSize);
  GE_ASSIGN(const ChipModel chip, FindChipModel("Ascend910"));
  Simulate(plan, std::vector<TaskWork>(plan.tasks.size()), chip, unknown, 8);
  return ValidatePlan(plan);
}

Status FuzzOm(const Bytes& bytes, const std::string&) {
  rt::LoadOptions options;
  options.threads = 1;
  GE_ASSIGN(auto model,
            rt::Model::LoadFromMemory(bytes.data(), static_cast<int64_t>(bytes.size()), options));
  GE_ASSIGN(auto arrays, BindInputs(*model, {}));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(arrays), outputs(model->plan().outputs.size());
  return run->Execute(inputs, outputs);
}

// One member of the description, somewhere, becomes something else; then what reads it is asked.
Status FuzzLies(const Bytes& bytes, const std::string&) {
  static const char* const kLies[] = {"null", "-1", "1e300", "\"text\"",
                                      "[]",   "{}", "true",  "[[3]]"};
  GE_ASSIGN(om::OmView view, om::ReadOm(bytes, false));
  auto json = nlohmann::json::parse(view.description, nullptr, /*allow_exceptions=*/false);
  std::mt19937_64 random(static_cast<uint64_t>(current));
  nlohmann::json* at = &json;
  for (size_t depth = random() % 5; depth-- > 0 && at->is_structured() && !at->empty();) {
    auto member = at->begin();
    std::advance(member, static_cast<ptrdiff_t>(random() % at->size()));
    at = &*member;
  }
  *at = nlohmann::json::parse(kLies[random() % std::size(kLies)]);
  const std::vector<int64_t> unknown(view.plan.symbols.size(), om::kNoSize);
  GE_ASSIGN(const ChipModel chip, FindChipModel("Ascend910"));
  const auto work = WorkOf(json.dump(), view.plan.tasks.size());
  const Simulation sim = Simulate(view.plan, work, chip, unknown, 8);
  const bool finite = std::isfinite(sim.total_us) && sim.total_us >= 0;
  return finite ? Status() : Error(Code::kInternal, "");
}

int Run(const Options& o) {
  auto original = ReadFile(o.file);
  if (!original.ok()) {
    std::fprintf(stderr, "fuzz: %s\n", original.status().message().c_str());
    return 1;
  }
  Bytes bytes = *original;
  std::function<Status(const Bytes&, const std::string&)> target;
  if (o.kind == "onnx") target = FuzzOnnx;
  if (o.kind == "compile") target = FuzzCompile;
  if (o.kind == "ir") target = FuzzIr;
  if (o.kind == "om") target = FuzzOm;
  if (o.kind == "lies") target = FuzzLies;
  if (o.kind == "plan") {
    target = FuzzPlan;
    auto view = om::ReadOm(bytes, false);
    if (!view.ok()) {
      std::fprintf(stderr, "fuzz: %s\n", view.status().message().c_str());
      return 1;
    }
    const std::string plan = om::EncodePlan(view->plan);
    const auto* p = reinterpret_cast<const std::byte*>(plan.data());
    bytes.assign(p, p + plan.size());
  }
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("ge_fuzz_{}.onnx", getpid())).string();
  for (int signal : {SIGSEGV, SIGABRT, SIGALRM, SIGFPE, SIGBUS}) std::signal(signal, NameMutation);
  int refused = 0, silent = 0;
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  for (int i = o.first; i < o.first + o.count; ++i) {
    current = i;
    alarm(o.seconds);
    const bool whole = o.kind == "lies";
    const Status status = target(whole ? bytes : Mutate(bytes, static_cast<uint64_t>(i)), path);
    refused += !status.ok();
    silent += !status.ok() && status.message().empty();
  }
  std::filesystem::remove(path);
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  const double grown_mb = static_cast<double>(after.ru_maxrss - before.ru_maxrss) / 1024;
  std::printf(
      "fuzz %s: %d mutations, %d refused with a message, %d accepted, peak memory grew by %.0f "
      "MB\n",
      o.kind.c_str(), o.count, refused - silent, o.count - refused, grown_mb);
  return silent > 0 || grown_mb > 2000 ? 1 : 0;
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) {
  CLI::App app{"feeds mutated files to the readers"};
  ge::Options o;
  app.add_option("kind", o.kind, "onnx, compile, om, plan, lies or ir")
      ->required()
      ->check(CLI::IsMember({"onnx", "compile", "om", "plan", "lies", "ir"}));
  app.add_option("file", o.file, "file to mutate")->required();
  app.add_option("--count", o.count, "mutations");
  app.add_option("--first", o.first, "number of the first mutation (its seed)");
  app.add_option("--seconds", o.seconds, "time limit of one mutation");
  CLI11_PARSE(app, argc, argv);
  return ge::Run(o);
}
