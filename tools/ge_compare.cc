// ge compare: is the optimised model the same function as the unoptimised one? Compiles both, runs
// them on the same inputs, and shows how far values are apart. Named values in the middle are made
// outputs of both, so that the first one that differs is seen; passes and rules are then enabled
// one after the other, by bisection, until the one is found with which the difference appears.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "abi/convert.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "opt/rule.h"
#include "tools/numbers.h"
#include "tools/session.h"
#include "tools/verbs.h"

namespace ge {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::string model, against;
  InputOptions inputs;
  std::vector<std::string> shapes;
  bool levels = false, outputs_only = false;
  double tolerance = 1e-3;
  int threads = 0, most = 200;
};

using Values = std::vector<std::pair<std::string, Array>>;  // in the order of the outputs

// A folder that is gone at the end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / fmt::format("ge_compare_{}", getpid());
  Scratch() { fs::create_directories(path); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// How far `got` is from `want`: relative to the largest magnitude of `want`.
struct Distance {
  double largest = 0, mean = 0, relative = 0;
  int64_t elements = 0;
  std::string fault;  // shapes or types differ
  bool Within(double tolerance) const { return fault.empty() && relative <= tolerance; }
};

Distance Measure(const Array& want, const Array& got) {
  Distance d;
  if (want.dtype != got.dtype || want.dims != got.dims) {
    d.fault = fmt::format("{}{} against {}{}", Name(got.dtype), DimsText(got.dims),
                          Name(want.dtype), DimsText(want.dims));
    return d;
  }
  if (BitWidth(want.dtype) == 0) return d;  // strings are not compared
  d.elements = 1;
  for (int64_t dim : want.dims) d.elements *= dim;
  double magnitude = 0, total = 0;
  for (int64_t i = 0; i < d.elements; ++i) {
    const double a = LoadElement<double>(want.dtype, want.bytes.data(), i);
    const double b = LoadElement<double>(got.dtype, got.bytes.data(), i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(a)) magnitude = std::max(magnitude, std::abs(a));
      continue;
    }
    if (std::isfinite(a)) magnitude = std::max(magnitude, std::abs(a));
    const double error = std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : INFINITY;
    d.largest = std::max(d.largest, error);
    total += error;
  }
  d.mean = d.elements ? total / static_cast<double>(d.elements) : 0;
  d.relative = d.largest == 0 ? 0 : d.largest / std::max(magnitude, 1e-30);
  return d;
}

// Makes named values in the middle outputs, at most `most` of them, evenly spread.
void Expose(Graph& g, int most) {
  const std::set<ValueId> already(g.outputs.begin(), g.outputs.end());
  std::vector<ValueId> named;
  for (NodeId n : g.order) {
    for (ValueId v : g.node(n).outputs) {
      if (v == kNone || already.contains(v) || g.IsConstant(v)) continue;
      const Value& value = g.value(v);
      if (value.kind != ValueKind::kTensor || value.type.dtype == DType::kString) continue;
      if (value.elems) continue;  // known while compiling
      named.push_back(v);
    }
  }
  const size_t step = most > 0 ? (named.size() + most - 1) / most : 0;
  for (size_t i = 0; step > 0 && i < named.size(); i += step) g.outputs.push_back(named[i]);
}

class Comparison {
 public:
  explicit Comparison(CompareOptions options) : o_(std::move(options)) {}
  Status Run();

 private:
  Result<Values> Execute(const Policy& policy, bool expose);
  Result<Values> Peer();
  // Index of the first value that is too far, or -1. Prints every output, and what is too far.
  int Show(const char* title, const Values& want, const Values& got, size_t outputs) const;
  int FirstFar(const Values& want, const Values& got) const;
  Status Blame(const Values& want, bool expose);

  CompareOptions o_;
  Scratch scratch_;
  std::vector<Array> inputs_;
  std::vector<std::string> input_names_;
  size_t outputs_ = 0;  // of the model itself
};

Result<Values> Comparison::Execute(const Policy& policy, bool expose) {
  CompileRequest request;
  request.model = o_.model;
  request.output = (scratch_.path / "model.om").string();
  request.policy = policy;
  for (const auto& [name, dims] : o_.inputs.shapes)
    for (int64_t d : dims) request.input_shapes[name].push_back(std::to_string(d));
  request.adapt = [this, expose](Graph& g) -> Status {
    outputs_ = g.outputs.size();
    if (expose) Expose(g, o_.most);
    return {};
  };
  GE_TRY(Compile(request).status());
  GE_ASSIGN(auto model, LoadModel(request.output, o_.threads));
  if (inputs_.empty()) {
    GE_ASSIGN(inputs_, BindInputs(*model, o_.inputs));
    for (const om::IoTensor& io : model->plan().inputs) input_names_.push_back(io.name);
  }
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(inputs_);
  std::vector<rt::Tensor> outputs(model->plan().outputs.size());
  GE_TRY(Executed(run->Execute(inputs, outputs), *model, o_.inputs));
  Values values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const rt::Tensor& t = outputs[i];
    Array a{static_cast<DType>(t.dtype), t.dims, {}};
    if (BitWidth(a.dtype) > 0) {
      const auto* data = static_cast<const std::byte*>(t.data);
      a.bytes.assign(data, data + t.bytes);
    }
    values.emplace_back(model->plan().outputs[i].name, std::move(a));
  }
  return values;
}

constexpr char kPeerScript[] = R"py(
import sys
try:
    import numpy, onnxruntime
except ImportError as fault:
    sys.exit(f"ge: {sys.executable}: {fault}")
model, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
names = [i.name for i in session.get_inputs()]
feed = {n: numpy.load(f"{folder}/in{i}.npy") for i, n in enumerate(sys.argv[4:]) if n in names}
for i, value in enumerate(session.run(None, feed)):
    if i < count: numpy.save(f"{folder}/out{i}.npy", numpy.ascontiguousarray(value))
)py";

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// The same inputs through ONNX Runtime, by Python ($GE_PYTHON, else python3).
Result<Values> Comparison::Peer() {
  for (size_t i = 0; i < inputs_.size(); ++i)
    GE_TRY(WriteNpy((scratch_.path / fmt::format("in{}.npy", i)).string(), inputs_[i]));
  const char* python = std::getenv("GE_PYTHON");
  std::string command =
      fmt::format("{} -c {} {} {} {}", python ? Quoted(python) : "python3", Quoted(kPeerScript),
                  Quoted(o_.model), Quoted(scratch_.path.string()), outputs_);
  for (const std::string& name : input_names_) command += " " + Quoted(name);
  if (std::system(command.c_str()) != 0)
    return Error(Code::kUnavailable,
                 "ONNX Runtime did not run: it must be installed for python3 or $GE_PYTHON");
  Values values;
  for (size_t i = 0; i < outputs_; ++i) {
    GE_ASSIGN(Array a, ReadNpy((scratch_.path / fmt::format("out{}.npy", i)).string()));
    values.emplace_back(fmt::format("output {}", i), std::move(a));
  }
  return values;
}

int Comparison::FirstFar(const Values& want, const Values& got) const {
  // Values in the middle first: they stand after the outputs, in the order of the graph.
  for (size_t i = outputs_; i < want.size() && i < got.size(); ++i)
    if (!Measure(want[i].second, got[i].second).Within(o_.tolerance)) return static_cast<int>(i);
  for (size_t i = 0; i < outputs_ && i < want.size() && i < got.size(); ++i)
    if (!Measure(want[i].second, got[i].second).Within(o_.tolerance)) return static_cast<int>(i);
  return -1;
}

int Comparison::Show(const char* title, const Values& want, const Values& got,
                     size_t outputs) const {
  std::printf("%s\n%12s %12s %12s %10s  value\n", title, "max error", "mean error", "relative",
              "elements");
  const int first = FirstFar(want, got);
  for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
    const Distance d = Measure(want[i].second, got[i].second);
    if (i >= outputs && static_cast<int>(i) != first) continue;
    const std::string& name = got[i].first;
    if (!d.fault.empty())
      std::printf("%50s  %s: %s\n", "", name.c_str(), d.fault.c_str());
    else
      std::printf("%12.3g %12.3g %12.3g %10lld  %s%s\n", d.largest, d.mean, d.relative,
                  static_cast<long long>(d.elements), name.c_str(),
                  d.Within(o_.tolerance) ? "" : "   <- too far");
  }
  if (want.size() > outputs)
    std::printf("%zu values in the middle compared: %s\n", want.size() - outputs,
                first < 0 ? "all within the tolerance"
                          : fmt::format("the first that differs is {}", got[first].first).c_str());
  return first;
}

Status Comparison::Blame(const Values& want, bool expose) {
  // Enabled from the left: passes, then the rules that they apply, then layout and kernels.
  std::vector<std::string> units;
  for (std::string_view pass : PassNames(Policy{}))
    if (std::find(units.begin(), units.end(), pass) == units.end()) units.emplace_back(pass);
  for (const Rule* rule : AllRules()) units.emplace_back(rule->name);
  for (const char* unit : {"layout", "cube", "winograd", "aliases", "streams"})
    units.emplace_back(unit);
  const auto differs = [&](size_t enabled) -> Result<bool> {
    Policy policy;
    policy.disabled.insert(units.begin() + static_cast<std::ptrdiff_t>(enabled), units.end());
    policy.alias_parts = !policy.disabled.contains("aliases");
    if (policy.disabled.contains("streams")) policy.max_streams = 1;
    GE_ASSIGN(const Values got, Execute(policy, expose));
    const bool far = FirstFar(want, got) >= 0;
    std::printf("  with %3zu of %zu enabled: %s\n", enabled, units.size(),
                far ? "differs" : "the same");
    return far;
  };
  std::printf("bisecting over %zu passes and rules\n", units.size());
  GE_ASSIGN(const bool bare, differs(0));
  if (bare) {
    std::printf("to blame: fusion or kernels; it differs without any pass or rule\n");
    return {};
  }
  size_t good = 0, bad = units.size();
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    GE_ASSIGN(const bool far, differs(middle));
    (far ? bad : good) = middle;
  }
  std::printf("to blame: %s\n", units[bad - 1].c_str());
  return {};
}

Status Comparison::Run() {
  for (const std::string& s : o_.shapes) {
    GE_ASSIGN(auto shape, ParseShapeOption(s));
    o_.inputs.shapes[shape.first] = shape.second;
  }
  Policy dull, full;
  dull.opt_level = 0;
  const bool expose = !o_.outputs_only;
  GE_ASSIGN(const Values want, Execute(dull, expose));
  // The values in the middle as outputs keep nodes apart; so the model as it is comes first.
  GE_ASSIGN(const Values real, Execute(full, false));
  const Values want_outputs(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(outputs_));
  bool far = Show("optimised against unoptimised", want_outputs, real, outputs_) >= 0;
  if (o_.levels) {
    Policy algebra;
    algebra.opt_level = 1;
    GE_ASSIGN(const Values got, Execute(algebra, false));
    Show("level 1 against unoptimised", want_outputs, got, outputs_);
  }
  bool far_inside = false;
  if (expose) {
    GE_ASSIGN(const Values got, Execute(full, true));
    far_inside = Show("the same with values in the middle as outputs", want, got, outputs_) >= 0;
  }
  if (!o_.against.empty()) {
    GE_ASSIGN(const Values peer, Peer());
    far |= Show("optimised against ONNX Runtime", peer, real, outputs_) >= 0;
    Show("unoptimised against ONNX Runtime", peer, want_outputs, outputs_);
  }
  const bool outputs_far = FirstFar(want_outputs, real) >= 0;
  if (outputs_far || far_inside)
    GE_TRY(Blame(outputs_far ? want_outputs : want, !outputs_far && far_inside));
  if (far || far_inside) return Invalid(fmt::format("values differ by more than {}", o_.tolerance));
  std::printf("all within %g\n", o_.tolerance);
  return {};
}

}  // namespace

void AddCompareVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("compare", "the optimised model against the unoptimised one");
  auto o = std::make_shared<CompareOptions>();
  verb->add_option("model", o->model, ".onnx or .ir file")->required();
  verb->add_option("--against", o->against, "a peer, if installed")
      ->check(CLI::IsMember({"onnxruntime"}));
  verb->add_flag("--levels", o->levels, "the level between the two as well");
  verb->add_flag("--outputs-only", o->outputs_only, "leave the values in the middle alone");
  verb->add_option("--tolerance", o->tolerance,
                   "largest error, relative to the largest magnitude of a value")
      ->check(AtLeast(0));
  verb->add_option("--most", o->most, "values in the middle at most")->check(AtLeast(1));
  verb->add_option("--input", o->inputs.files, "as for ge run; random if not given")
      ->expected(1, 1 << 16);
  verb->add_option("--shape", o->shapes, "NAME:dims of an input")->expected(1, 1 << 16);
  verb->add_option("--threads", o->threads, "workers (0 = CPUs available)")
      ->check(Between(0, kMostThreads));
  verb->callback([o, &exit_code] { exit_code = ExitCode(Comparison(*o).Run(), o->model); });
}

}  // namespace ge
