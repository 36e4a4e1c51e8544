// ge run: one execution with inputs from files, outputs to files.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "tools/numbers.h"
#include "tools/session.h"
#include "tools/verbs.h"

namespace ge {
namespace {

struct RunOptions {
  std::string model, output;
  InputOptions inputs;
  std::vector<std::string> shapes;
  int topk = 0, threads = 0, repeat = 1;
  bool verify = false;
};

// File name of an output: what a file system or a shell may trip over becomes '_'.
std::string FileName(const std::string& output) {
  std::string name;
  for (char c : output)
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return name;
}

void PrintTopK(const std::string& name, const rt::Tensor& t, int k) {
  if (static_cast<DType>(t.dtype) != DType::kF32 || t.dims.empty() || t.bytes == 0) return;
  const auto* v = static_cast<const float*>(t.data);
  const int64_t row = t.dims.back(), rows = t.bytes / 4 / std::max<int64_t>(row, 1);
  for (int64_t r = 0; r < std::min<int64_t>(rows, 8); ++r) {
    std::vector<int64_t> index(static_cast<size_t>(row));
    std::iota(index.begin(), index.end(), 0);
    const int64_t n = std::min<int64_t>(k, row);
    std::partial_sort(index.begin(), index.begin() + n, index.end(), [&](int64_t a, int64_t b) {
      return v[r * row + a] > v[r * row + b] || (v[r * row + a] == v[r * row + b] && a < b);
    });
    std::printf("%s row %lld:", name.c_str(), static_cast<long long>(r));
    for (int64_t i = 0; i < n; ++i)
      std::printf(" %lld:%.6g", static_cast<long long>(index[i]), v[r * row + index[i]]);
    std::printf("\n");
  }
}

Status WriteOutput(const std::string& folder, const std::string& name, const rt::Tensor& t) {
  Array a;
  a.dtype = static_cast<DType>(t.dtype);
  a.dims = t.dims;
  a.bytes.resize(static_cast<size_t>(t.bytes));
  if (t.bytes) std::memcpy(a.bytes.data(), t.data, a.bytes.size());
  return WriteNpy((std::filesystem::path(folder) / (FileName(name) + ".npy")).string(), a);
}

Status RunModel(RunOptions& o) {
  for (const std::string& s : o.shapes) {
    GE_ASSIGN(auto shape, ParseShapeOption(s));
    o.inputs.shapes[shape.first] = shape.second;
  }
  GE_ASSIGN(auto model, LoadModel(o.model, o.threads, o.verify));
  GE_ASSIGN(std::vector<Array> arrays, BindInputs(*model, o.inputs));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(arrays);
  std::vector<rt::Tensor> outputs(model->plan().outputs.size());
  for (int i = 0; i < o.repeat; ++i)
    GE_TRY(Executed(run->Execute(inputs, outputs), *model, o.inputs));
  if (!o.output.empty()) {
    std::error_code error;
    std::filesystem::create_directories(o.output, error);
    if (error)
      return Error(Code::kUnavailable, fmt::format("--output {}: cannot make this folder: {}",
                                                   o.output, error.message()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model->plan().outputs[i].name;
    std::printf("%s: %s%s\n", name.c_str(),
                std::string(Name(static_cast<DType>(outputs[i].dtype))).c_str(),
                DimsText(outputs[i].dims).c_str());
    if (o.topk > 0) PrintTopK(name, outputs[i], o.topk);
    if (!o.output.empty()) GE_TRY(WriteOutput(o.output, name, outputs[i]));
  }
  return {};
}

}  // namespace

int ExitCode(const Status& status, const std::string& model) {
  if (status.ok()) return 0;
  const bool named = model.empty() || status.message().starts_with(model + ": ");
  std::fprintf(stderr, "ge: %s%s\n", named ? "" : (model + ": ").c_str(), status.message().c_str());
  return 1;
}

void AddRunVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("run", "run a model once; inputs that are not given are random");
  auto o = std::make_shared<RunOptions>();
  verb->add_option("model", o->model, ".om file")->required();
  verb->add_option("--input", o->inputs.files,
                   "files in the model's order, or NAME=FILE (the others go to the inputs left): "
                   ".npy, raw .bin, or a picture (.png, "
                   ".jpg, .bmp)")
      ->expected(1, 1 << 16);
  verb->add_option("--output", o->output, "folder for the outputs, one .npy file each");
  verb->add_option("--shape", o->shapes, "NAME:dims of a dynamic input that is raw or random")
      ->expected(1, 1 << 16);
  verb->add_option("--topk", o->topk, "print the K largest elements of each row of f32 outputs")
      ->check(AtLeast(0));
  verb->add_option("--threads", o->threads, "workers (0 = CPUs available)")
      ->check(Between(0, kMostThreads));
  verb->add_option("--repeat", o->repeat, "number of executions")->check(AtLeast(1));
  verb->add_option("--mean", o->inputs.mean, "of pictures: (v / 255 - mean) / std")
      ->check(Finite());
  verb->add_option("--std", o->inputs.std, "of pictures")->check(AboveZero());
  verb->add_flag("--bgr", o->inputs.bgr, "pictures in BGR order");
  verb->add_flag("--verify", o->verify, "check the weights' checksum too");
  verb->callback([o, &exit_code] { exit_code = ExitCode(RunModel(*o), o->model); });
}

}  // namespace ge
