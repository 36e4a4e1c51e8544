// See test_data.h. Tensors, sequences and optionals are read straight off the wire format.

#include "tests/conformance/test_data.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "abi/convert.h"
#include "base/file_map.h"
#include "import/onnx/tensor.h"
#include "import/onnx/wire.h"
#include "om/size.h"
#include "rt/host_kernel.h"
#include "tools/session.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
using onnx::WireReader;

std::string_view Text(const FileMap& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

enum class Proto { kTensor, kSequence, kOptional };

// What the model declares for an input or output: TypeProto has tensor_type 1, sequence_type 4,
// optional_type 9.
Proto ProtoOf(std::string_view value_info) {
  for (WireReader info(value_info); info.Next();) {
    if (info.field() != 2) {
      info.Skip();
      continue;
    }
    for (WireReader type(info.Bytes()); type.Next(); type.Skip()) {
      if (type.field() == 4) return Proto::kSequence;
      if (type.field() == 9) return Proto::kOptional;
    }
  }
  return Proto::kTensor;
}

struct Signature {
  std::vector<Proto> inputs, outputs;
  std::vector<std::string> input_names;
  std::set<std::string, std::less<>> initializers;
};

// A string field of a message.
std::string TextField(std::string_view body, uint32_t field) {
  for (WireReader r(body); r.Next();) {
    if (r.field() == field) return std::string(r.Bytes());
    r.Skip();
  }
  return {};
}

Result<Signature> ReadSignature(const fs::path& model) {
  GE_ASSIGN(FileMap file, FileMap::Open(model.string()));
  Signature s;
  for (WireReader m(Text(file)); m.Next();) {
    if (m.field() != 7) {
      m.Skip();
      continue;
    }
    for (WireReader g(m.Bytes()); g.Next();) {
      if (g.field() == 11) {
        const std::string_view info = g.Bytes();
        s.inputs.push_back(ProtoOf(info));
        s.input_names.push_back(TextField(info, 1));
      } else if (g.field() == 12) {
        s.outputs.push_back(ProtoOf(g.Bytes()));
      } else if (g.field() == 5) {
        s.initializers.insert(TextField(g.Bytes(), 8));
      } else {
        g.Skip();
      }
    }
  }
  return s;
}

Result<rt::Object> ReadTensor(std::string_view body) {
  onnx::TensorSource source("", nullptr);
  onnx::TensorProto proto;
  proto.body = body;
  GE_ASSIGN(Constant c, source.Read(proto));
  rt::Object o;
  o.kind = rt::Object::Kind::kTensor;
  o.dtype = static_cast<uint8_t>(c.dtype);
  o.dims = c.dims;
  o.bytes.assign(c.bytes.begin(), c.bytes.end());
  o.strings = c.strings;
  return o;
}

Result<rt::Object> ReadSequence(std::string_view body) {
  rt::Object o;
  o.kind = rt::Object::Kind::kSequence;
  for (WireReader r(body); r.Next();) {
    if (r.field() == 2) {
      const int64_t kind = r.Int();
      if (kind != 1) return Unsupported("a sequence of something else than tensors");
    } else if (r.field() == 3) {
      GE_ASSIGN(rt::Object item, ReadTensor(r.Bytes()));
      o.dtype = item.dtype;
      o.items.push_back(std::move(item));
    } else {
      r.Skip();
    }
  }
  return o;
}

Result<rt::Object> ReadOptional(std::string_view body) {
  for (WireReader r(body); r.Next();) {
    if (r.field() == 3) return ReadTensor(r.Bytes());
    if (r.field() == 5) return ReadSequence(r.Bytes());
    r.Skip();
  }
  return rt::Object();
}

Result<rt::Object> ReadFileAs(const fs::path& path, Proto proto) {
  GE_ASSIGN(FileMap file, FileMap::Open(path.string()));
  switch (proto) {
    case Proto::kTensor: return ReadTensor(Text(file));
    case Proto::kSequence: return ReadSequence(Text(file));
    case Proto::kOptional: return ReadOptional(Text(file));
  }
  return rt::Object();
}

// units: what integers may differ by, where a tie of float arithmetic may fall to either side.
struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
  int units = 0;
};

Tolerance ToleranceOf(const fs::path& folder) {
  Tolerance t;
  std::ifstream file(folder / "tolerance.json");
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return t;
  t.rtol = json.value("rtol", t.rtol);
  t.atol = json.value("atol", t.atol);
  t.units = json.value("units", t.units);
  return t;
}

bool CloseEnough(double got, double want, const Tolerance& t) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  if (!std::isfinite(want)) return false;
  return std::abs(got - want) <= t.atol + t.rtol * std::abs(want);
}

template <typename T>
bool WithinUnits(int64_t n, const void* got, const void* want, int units) {
  for (int64_t i = 0; i < n; ++i)
    if (std::abs(static_cast<int>(static_cast<const T*>(got)[i]) -
                 static_cast<int>(static_cast<const T*>(want)[i])) > units)
      return false;
  return true;
}

bool WithinUnits(DType t, int64_t n, const void* got, const void* want, int units) {
  switch (t) {
    case DType::kU8: return WithinUnits<uint8_t>(n, got, want, units);
    case DType::kI8: return WithinUnits<int8_t>(n, got, want, units);
    case DType::kU16: return WithinUnits<uint16_t>(n, got, want, units);
    case DType::kI16: return WithinUnits<int16_t>(n, got, want, units);
    default: return false;
  }
}

Status CompareFloats(DType t, int64_t n, const void* got, const void* want, Tolerance tolerance) {
  if (BitWidth(t) <= 16) tolerance.rtol *= 2;
  int64_t bad = 0, first = -1;
  for (int64_t i = 0; i < n; ++i) {
    const bool wide = t == DType::kF64;
    const double g = wide ? LoadElement<double>(t, got, i) : LoadElement<float>(t, got, i);
    const double w = wide ? LoadElement<double>(t, want, i) : LoadElement<float>(t, want, i);
    if (CloseEnough(g, w, tolerance)) continue;
    if (bad++ == 0) first = i;
  }
  if (!bad) return {};
  const double g =
      t == DType::kF64 ? LoadElement<double>(t, got, first) : LoadElement<float>(t, got, first);
  const double w =
      t == DType::kF64 ? LoadElement<double>(t, want, first) : LoadElement<float>(t, want, first);
  return Invalid(
      fmt::format("{} of {} elements differ; element {}: got {} want {}", bad, n, first, g, w));
}

Status CompareTensor(DType t, const std::vector<int64_t>& dims, const void* got,
                     const std::vector<std::string>& strings, const rt::Object& want,
                     const Tolerance& tolerance = {}) {
  if (t != static_cast<DType>(want.dtype))
    return Invalid(fmt::format("dtype {} want {}", Name(t), Name(static_cast<DType>(want.dtype))));
  if (dims != want.dims)
    return Invalid(fmt::format("dims {} want {}", DimsText(dims), DimsText(want.dims)));
  if (t == DType::kString) return strings == want.strings ? Status() : Invalid("strings differ");
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  if (IsFloat(t)) return CompareFloats(t, n, got, want.bytes.data(), tolerance);
  if (t == DType::kC64) return CompareFloats(DType::kF32, 2 * n, got, want.bytes.data(), tolerance);
  if (t == DType::kC128)
    return CompareFloats(DType::kF64, 2 * n, got, want.bytes.data(), tolerance);
  // The unused bits of a last byte of packed elements mean nothing.
  const size_t whole = static_cast<size_t>(n * BitWidth(t) / 8);
  const int rest = static_cast<int>(n * BitWidth(t) % 8);
  bool same = whole == 0 || std::memcmp(got, want.bytes.data(), whole) == 0;
  if (rest != 0) {
    const auto last = [&](const void* p) {
      return static_cast<const uint8_t*>(p)[whole] & ((1 << rest) - 1);
    };
    same = same && last(got) == last(want.bytes.data());
  }
  if (!same && tolerance.units > 0)
    same = WithinUnits(t, n, got, want.bytes.data(), tolerance.units);
  return same ? Status() : Invalid(fmt::format("{} elements differ", Name(t)));
}

Status CompareObject(const rt::Object& got, const rt::Object& want, const Tolerance& tolerance) {
  if (got.kind != want.kind) return Invalid("another kind of object");
  if (got.kind == rt::Object::Kind::kTensor)
    return CompareTensor(static_cast<DType>(got.dtype), got.dims, got.bytes.data(), got.strings,
                         want, tolerance);
  if (got.items.size() != want.items.size())
    return Invalid(fmt::format("{} items, want {}", got.items.size(), want.items.size()));
  for (size_t i = 0; i < got.items.size(); ++i)
    GE_TRY(CompareObject(got.items[i], want.items[i], tolerance).In(fmt::format("item {}", i)));
  return {};
}

}  // namespace

std::string FirstOperator(const fs::path& model) {
  auto file = FileMap::Open(model.string());
  if (!file.ok()) return "unreadable";
  std::string type;
  int nodes = 0;
  for (WireReader m(Text(*file)); m.Next();) {
    if (m.field() != 7) {
      m.Skip();
      continue;
    }
    for (WireReader g(m.Bytes()); g.Next();) {
      if (g.field() != 1) {
        g.Skip();
        continue;
      }
      ++nodes;
      for (WireReader n(g.Bytes()); n.Next();)
        if (n.field() == 4)
          type = n.Bytes();
        else
          n.Skip();
    }
  }
  return nodes == 1 ? type : "several";
}

Status RunDataSet(const rt::Model& model, rt::Run& run, const fs::path& folder) {
  GE_ASSIGN(const Signature signature, ReadSignature(folder.parent_path() / "model.onnx"));
  const Tolerance tolerance = ToleranceOf(folder.parent_path());
  const om::Plan& plan = model.plan();
  std::vector<rt::Object> objects(plan.inputs.size());
  std::vector<rt::Tensor> inputs(plan.inputs.size()), outputs(plan.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Proto proto = i < signature.inputs.size() ? signature.inputs[i] : Proto::kTensor;
    GE_ASSIGN(objects[i], ReadFileAs(folder / fmt::format("input_{}.pb", i), proto));
    inputs[i].dtype = objects[i].dtype;
    inputs[i].dims = objects[i].dims;
    const bool slot = plan.buffers[plan.inputs[i].buffer].kind == om::BufferKind::kSlot;
    inputs[i].data = slot ? static_cast<void*>(&objects[i]) : objects[i].bytes.data();
    inputs[i].bytes = static_cast<int64_t>(objects[i].bytes.size());
  }
  GE_TRY(run.Execute(inputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Proto proto = i < signature.outputs.size() ? signature.outputs[i] : Proto::kTensor;
    GE_ASSIGN(const rt::Object want, ReadFileAs(folder / fmt::format("output_{}.pb", i), proto));
    const bool slot = plan.buffers[plan.outputs[i].buffer].kind == om::BufferKind::kSlot;
    const Status status =
        slot ? CompareObject(*static_cast<const rt::Object*>(outputs[i].data), want, tolerance)
             : CompareTensor(static_cast<DType>(outputs[i].dtype), outputs[i].dims, outputs[i].data,
                             {}, want, tolerance);
    GE_TRY(Status(status).In(fmt::format("output {}", plan.outputs[i].name)));
  }
  return {};
}

Status RunRamp(const rt::Model& model, rt::Run& run, const std::string& prefix, double rtol) {
  const om::Plan& plan = model.plan();
  std::vector<std::vector<float>> data(plan.inputs.size());
  std::vector<rt::Tensor> inputs(plan.inputs.size()), outputs(plan.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    int64_t n = 1;
    for (const auto& dim : plan.inputs[i].dims) {
      const std::vector<int64_t> symbols(plan.symbols.size(), 1);
      inputs[i].dims.push_back(om::EvalSize(plan, dim, symbols));
      n *= inputs[i].dims.back();
    }
    for (int64_t k = 0; k < n; ++k)
      data[i].push_back(static_cast<float>(static_cast<double>(k) / static_cast<double>(n)));
    inputs[i].dtype = static_cast<uint8_t>(DType::kF32);
    inputs[i].data = data[i].data();
    inputs[i].bytes = n * 4;
  }
  GE_TRY(run.Execute(inputs, outputs));
  for (size_t o = 0; o < outputs.size(); ++o) {
    GE_ASSIGN(const rt::Object want,
              ReadFileAs(fmt::format("{}_output_{}.pb", prefix, o), Proto::kTensor));
    GE_TRY(CompareTensor(static_cast<DType>(outputs[o].dtype), outputs[o].dims, outputs[o].data, {},
                         want, Tolerance{.rtol = rtol})
               .In(fmt::format("output {}", plan.outputs[o].name)));
  }
  return {};
}

std::map<std::string, std::vector<std::string>> ShapesFor(const fs::path& folder) {
  std::map<std::string, std::vector<std::string>> shapes;
  const auto signature = ReadSignature(folder / "model.onnx");
  if (!signature.ok()) return shapes;
  for (size_t i = 0; i < signature->inputs.size(); ++i) {
    if (signature->inputs[i] != Proto::kTensor) continue;
    const std::string& name = signature->input_names[i];
    std::vector<std::string> dims;
    bool say = signature->initializers.contains(name);
    for (int set = 0;; ++set) {
      const fs::path file =
          folder / fmt::format("test_data_set_{}", set) / fmt::format("input_{}.pb", i);
      if (!fs::exists(file)) {
        if (set == 0) say = false;
        break;
      }
      auto tensor = ReadFileAs(file, Proto::kTensor);
      if (!tensor.ok()) break;
      dims.resize(tensor->dims.size(), "-1");
    }
    if (say) shapes[name] = dims;
  }
  return shapes;
}

}  // namespace ge
