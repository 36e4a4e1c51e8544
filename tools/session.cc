// See session.h.

#include "tools/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>

#include "abi/convert.h"
#include "plan/interpreted.h"
#include "tools/picture.h"
#include "tools/verbs.h"

namespace ge {
namespace {

// The dims of an input as far as they are constants; -1 where symbolic.
std::vector<int64_t> KnownDims(const om::Plan& plan, const om::IoTensor& io) {
  std::vector<int64_t> dims;
  for (om::SizeRef r : io.dims) {
    const om::SizeExpr& e = plan.sizes[r];
    const om::SizeCode& code = plan.size_code[e.begin];
    dims.push_back(e.end - e.begin == 1 && code.op == om::SizeOp::kConst ? code.value : -1);
  }
  return dims;
}

std::string InputNames(const om::Plan& plan) {
  std::vector<std::string> names;
  for (const om::IoTensor& io : plan.inputs) names.push_back(io.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Status NoSuchInput(const om::Plan& plan, const std::string& name) {
  return Invalid(
      fmt::format("--shape {}: the model has no such input; it has {}", name, InputNames(plan)));
}

void FillRandom(Array& a, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal;
  int64_t n = 1;
  for (int64_t d : a.dims) n *= d;
  a.bytes.resize(static_cast<size_t>(BytesFor(a.dtype, n)));
  if (a.dtype == DType::kF32) {
    auto* p = reinterpret_cast<float*>(a.bytes.data());
    for (int64_t i = 0; i < n; ++i) p[i] = normal(rng);
  } else if (a.dtype == DType::kF64) {
    auto* p = reinterpret_cast<double*>(a.bytes.data());
    for (int64_t i = 0; i < n; ++i) p[i] = normal(rng);
  } else {
    // Small non-negative integers are valid indices nearly everywhere; small floats stay finite.
    const int width = std::max(1, BitWidth(a.dtype) / 8);
    for (size_t i = 0; i < a.bytes.size(); i += width)
      a.bytes[i] = static_cast<std::byte>(rng() & 1);
  }
}

Result<Array> ReadPictureInput(const std::string& path, std::vector<int64_t> dims,
                               const InputOptions& o) {
  if (dims.size() != 4) return Invalid(path + ": a picture needs an input of rank 4");
  PictureFormat f;
  f.mean = o.mean;
  f.std = o.std;
  f.bgr = o.bgr;
  f.channels_first = !(dims[3] == 1 || dims[3] == 3);
  const int64_t channels = f.channels_first ? dims[1] : dims[3];
  f.channels = channels == 1 ? 1 : 3;
  f.height = std::max<int64_t>(f.channels_first ? dims[2] : dims[1], 0);
  f.width = std::max<int64_t>(f.channels_first ? dims[3] : dims[2], 0);
  GE_ASSIGN(std::vector<float> pixels, ReadPicture(path, f));
  Array a;
  a.dtype = DType::kF32;
  a.dims = f.channels_first ? std::vector<int64_t>{1, f.channels, f.height, f.width}
                            : std::vector<int64_t>{1, f.height, f.width, f.channels};
  a.bytes.resize(pixels.size() * 4);
  std::memcpy(a.bytes.data(), pixels.data(), a.bytes.size());
  return a;
}

Result<Array> ReadInput(const std::string& path, DType dtype, const std::vector<int64_t>& dims,
                        const InputOptions& o) {
  if (path.ends_with(".npy")) return ReadNpy(path);
  if (IsPicture(path)) {
    if (dtype != DType::kF32) return Unsupported(path + ": pictures feed f32 inputs only");
    return ReadPictureInput(path, dims, o);
  }
  Array a;
  a.dtype = dtype;
  a.dims = dims;
  GE_ASSIGN(a.bytes, ReadFile(path));
  if (std::count(dims.begin(), dims.end(), -1))
    return Invalid(path + ": the input has dynamic dims; give them with --shape NAME:dims");
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  if (BytesFor(dtype, n) != static_cast<int64_t>(a.bytes.size()))
    return Invalid(fmt::format("{}: {} bytes given, {} needed for {}{}", path, a.bytes.size(),
                               BytesFor(dtype, n), Name(dtype), DimsText(dims)));
  return a;
}

// The file of each input, in the model's order; "" where none was given. Files without a name go
// to the inputs that none names, in order.
Result<std::vector<std::string>> FilesOf(const om::Plan& plan, const InputOptions& options) {
  std::vector<std::string> files(plan.inputs.size()), in_order;
  std::vector<bool> named(plan.inputs.size());
  for (const std::string& f : options.files) {
    const auto io = std::find_if(plan.inputs.begin(), plan.inputs.end(), [&](const auto& input) {
      return f.starts_with(input.name + "=");
    });
    const size_t equal = f.find('=');
    std::error_code ignored;
    if (io == plan.inputs.end() && equal != std::string::npos &&
        !std::filesystem::exists(f, ignored))
      return Invalid(
          fmt::format("--input {}: no such file, and no input is called {}; the model has {}", f,
                      f.substr(0, equal), InputNames(plan)));
    if (io == plan.inputs.end()) {
      in_order.push_back(f);
      continue;
    }
    const auto i = static_cast<size_t>(io - plan.inputs.begin());
    if (named[i]) return Invalid(fmt::format("--input {}: {} has a file already", f, io->name));
    files[i] = f.substr(io->name.size() + 1);
    if (files[i].empty()) return Invalid(fmt::format("--input {}: no file is named", f));
    named[i] = true;
  }
  if (options.files.size() > files.size())
    return Invalid(fmt::format("{} input files given, the model has {} inputs",
                               options.files.size(), files.size()));
  size_t i = 0;
  for (const std::string& f : in_order) {
    while (named[i]) ++i;
    files[i++] = f;
  }
  return files;
}

}  // namespace

int Printed(int exit_code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && !std::ferror(stdout)) return exit_code;
  std::fprintf(stderr, "standard output: cannot write%s%s\n", errno ? ": " : "",
               errno ? std::strerror(errno) : "");
  return exit_code == 0 ? 1 : exit_code;
}

void SayOutOfMemory(int argc, char** argv) {
  static char** words = argv;
  static int count = argc;
  std::set_new_handler([] {
    std::fputs("out of memory: a shape, a file or a model needs more than this machine has:",
               stderr);
    for (int i = 0; i < count; ++i) {
      std::fputs(" ", stderr);
      std::fputs(words[i], stderr);
    }
    std::fputs("\n", stderr);
    std::_Exit(1);
  });
}

std::string DimsText(const std::vector<int64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

Result<std::pair<std::string, std::vector<int64_t>>> ParseShapeOption(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return Invalid(fmt::format("'{}': want NAME:dim,dim,...", text));
  std::vector<int64_t> dims;
  const char* p = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  while (p < end) {
    int64_t d = 0;
    auto [next, error] = std::from_chars(p, end, d);
    if (error != std::errc() || d < 0 || (next < end && *next != ','))
      return Invalid(fmt::format("'{}': want NAME:dim,dim,... with dims of at least 0", text));
    dims.push_back(d);
    p = next < end ? next + 1 : next;
  }
  return std::make_pair(text.substr(0, colon), std::move(dims));
}

Result<std::shared_ptr<const rt::Model>> LoadModel(const std::string& path, int threads,
                                                   bool verify_weights) {
  rt::LoadOptions options;
  options.threads = threads;
  options.verify_weights = verify_weights;
  options.text_kernel = InterpretedKernel;
  return rt::Model::Load(path, options);
}

Result<std::vector<Array>> BindInputs(const rt::Model& model, const InputOptions& options) {
  const om::Plan& plan = model.plan();
  GE_ASSIGN(const std::vector<std::string> files, FilesOf(plan, options));
  for (const auto& [name, dims] : options.shapes) {
    const auto named = [&name](const om::IoTensor& io) { return io.name == name; };
    if (std::none_of(plan.inputs.begin(), plan.inputs.end(), named)) return NoSuchInput(plan, name);
  }
  std::vector<Array> arrays;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const om::IoTensor& io = plan.inputs[i];
    std::vector<int64_t> dims = KnownDims(plan, io);
    if (auto it = options.shapes.find(io.name); it != options.shapes.end()) dims = it->second;
    if (!files[i].empty()) {
      GE_ASSIGN(Array a, ReadInput(files[i], static_cast<DType>(io.dtype), dims, options));
      arrays.push_back(std::move(a));
      continue;
    }
    Array a;
    a.dtype = static_cast<DType>(io.dtype);
    for (int64_t& d : dims) d = d < 0 ? 1 : d;
    a.dims = dims;
    int64_t bits = BitWidth(a.dtype);
    for (int64_t d : dims)
      if (__builtin_mul_overflow(bits, std::max<int64_t>(d, 1), &bits))
        return Invalid(fmt::format("input \"{}\": {} overflows", io.name, DimsText(dims)));
    FillRandom(a, i + 1);
    arrays.push_back(std::move(a));
  }
  return arrays;
}

Status Executed(Status status, const rt::Model& model, const InputOptions& options) {
  if (status.ok()) return status;
  const auto files = FilesOf(model.plan(), options);
  std::string random;
  for (size_t i = 0; files.ok() && i < files->size(); ++i)
    if ((*files)[i].empty()) random += (random.empty() ? "" : ", ") + model.plan().inputs[i].name;
  if (random.empty()) return status;
  return Error(status.code(),
               fmt::format("{}; random values were given to {}: --input gives real ones, --shape "
                           "other dims",
                           status.message(), random));
}

std::vector<rt::Tensor> Tensors(std::vector<Array>& arrays) {
  std::vector<rt::Tensor> t;
  for (Array& a : arrays)
    t.push_back({static_cast<uint8_t>(a.dtype), a.dims, a.bytes.data(),
                 static_cast<int64_t>(a.bytes.size())});
  return t;
}

namespace {

// As running would: an input of this name with these dims.
Status CheckShape(const om::Plan& plan, const std::string& name, const std::vector<int64_t>& dims) {
  const auto io = std::find_if(plan.inputs.begin(), plan.inputs.end(),
                               [&](const om::IoTensor& i) { return i.name == name; });
  if (io == plan.inputs.end()) return NoSuchInput(plan, name);
  const std::vector<int64_t> known = KnownDims(plan, *io);
  bool fits = dims.size() == known.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = known[i] < 0 || known[i] == dims[i];
  if (fits) return {};
  return Invalid(fmt::format("--shape {}: dims {}, the model takes {}", name, DimsText(dims),
                             DimsText(known)));
}

}  // namespace

Result<std::vector<int64_t>> SymbolsFor(const om::Plan& plan,
                                        const std::vector<std::string>& shapes) {
  std::map<std::string, std::vector<int64_t>> given;
  for (const std::string& s : shapes) {
    GE_ASSIGN(auto shape, ParseShapeOption(s));
    GE_TRY(CheckShape(plan, shape.first, shape.second));
    given[shape.first] = shape.second;
  }
  std::vector<int64_t> values;
  for (const om::Symbol& s : plan.symbols) {
    int64_t value = std::max<int64_t>(1, s.lo);
    if (s.input >= 0) {
      const auto it = given.find(plan.inputs[static_cast<size_t>(s.input)].name);
      const bool has = it != given.end() && static_cast<size_t>(s.dim) < it->second.size();
      if (has) value = it->second[static_cast<size_t>(s.dim)];
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace ge
