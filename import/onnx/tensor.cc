// TensorProto, SparseTensorProto and external data to Constant. Every declared size is compared
// with what is there before anything is allocated.
#include "import/onnx/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <filesystem>

#include "import/onnx/wire.h"

namespace ge::onnx {

namespace {

constexpr int64_t kMaxElementBytes = int64_t{1} << 48;
constexpr int64_t kMaxDenseBytes = int64_t{1} << 30;  // of an expanded sparse tensor
constexpr int64_t kMaxAlignedCopy = int64_t{64} << 20;

struct Parts {
  std::vector<int64_t> dims;
  int64_t type = 0;
  bool has_raw = false, external = false;
  std::string_view raw;
  std::string_view location, offset, length;
};

Status Damaged(std::string message) { return Error(Code::kDataLoss, std::move(message)); }

Result<Parts> Split(std::string_view body) {
  Parts p;
  WireReader r(body);
  while (r.Next()) {
    switch (r.field()) {
      case 1: r.EachInt([&](int64_t d) { p.dims.push_back(d); }); break;
      case 2: p.type = r.Int(); break;
      case 9:
        p.raw = r.Bytes();
        p.has_raw = true;
        break;
      case 13: {
        std::string_view key, value;
        WireReader entry(r.Bytes());
        while (entry.Next()) {
          if (entry.field() == 1) {
            key = entry.Bytes();
          } else if (entry.field() == 2) {
            value = entry.Bytes();
          } else {
            entry.Skip();
          }
        }
        if (!entry.ok()) return Damaged("damaged external data entry");
        if (key == "location") p.location = value;
        if (key == "offset") p.offset = value;
        if (key == "length") p.length = value;
        break;
      }
      case 14: p.external = r.Int() == 1; break;
      default: r.Skip();
    }
  }
  if (!r.ok()) return Damaged("damaged tensor");
  return p;
}

// Appends the low bytes of integers, or floats, of the typed fields.
class TypedData {
 public:
  TypedData(DType dtype, size_t bytes) : dtype_(dtype), limit_(bytes) {}

  Status Read(std::string_view body) {
    WireReader r(body);
    while (r.Next()) {
      switch (r.field()) {
        case 4: r.EachFixed<float>([&](float x) { Append(x, TakesFloat()); }); break;
        case 5: r.EachInt([&](int64_t x) { AppendInt(x, Int32Bytes()); }); break;
        case 7: r.EachInt([&](int64_t x) { AppendInt(x, dtype_ == DType::kI64 ? 8 : 0); }); break;
        case 10: r.EachFixed<double>([&](double x) { Append(x, TakesDouble()); }); break;
        case 11: r.EachInt([&](int64_t x) { AppendInt(x, Uint64Bytes()); }); break;
        default: r.Skip();
      }
      if (wrong_) return Damaged(fmt::format("data of another type than {}", Name(dtype_)));
    }
    return r.ok() ? Status() : Damaged("damaged tensor");
  }
  std::vector<std::byte>& bytes() { return bytes_; }
  bool too_many() const { return too_many_; }

 private:
  bool TakesFloat() const { return dtype_ == DType::kF32 || dtype_ == DType::kC64; }
  bool TakesDouble() const { return dtype_ == DType::kF64 || dtype_ == DType::kC128; }
  size_t Uint64Bytes() const { return dtype_ == DType::kU64 ? 8 : dtype_ == DType::kU32 ? 4 : 0; }
  size_t Int32Bytes() const {
    switch (dtype_) {
      case DType::kF32:
      case DType::kF64:
      case DType::kI64:
      case DType::kU64:
      case DType::kU32:
      case DType::kC64:
      case DType::kC128: return 0;
      default: return static_cast<size_t>(std::max(BitWidth(dtype_), 8)) / 8;  // sub-byte: packed
    }
  }
  template <class T>
  void Append(T x, bool fits) {
    if (!fits) wrong_ = true;
    Push(&x, sizeof(x));
  }
  void AppendInt(int64_t x, size_t size) {
    if (size == 0) wrong_ = true;
    Push(&x, size);
  }
  void Push(const void* x, size_t size) {
    if (wrong_) return;
    if (bytes_.size() + size > limit_) {
      too_many_ = true;
      return;
    }
    const auto* p = static_cast<const std::byte*>(x);
    bytes_.insert(bytes_.end(), p, p + size);
  }

  DType dtype_;
  size_t limit_;
  bool wrong_ = false, too_many_ = false;
  std::vector<std::byte> bytes_;
};

Result<std::vector<std::string>> ReadStrings(std::string_view body, int64_t count) {
  std::vector<std::string> strings;
  WireReader r(body);
  while (r.Next()) {
    if (r.field() == 6) {
      strings.emplace_back(r.Bytes());
    } else {
      r.Skip();
    }
  }
  if (!r.ok()) return Damaged("damaged string tensor");
  if (static_cast<int64_t>(strings.size()) != count)
    return Damaged(fmt::format("{} strings declared, {} present", count, strings.size()));
  return strings;
}

Result<int64_t> Number(std::string_view text, int64_t otherwise, std::string_view what) {
  if (text.empty()) return otherwise;
  int64_t x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size() || x < 0)
    return Invalid(fmt::format("external data: {} '{}' is no size", what, text));
  return x;
}

// Readers of constants may assume natural alignment up to kMaxAlignedCopy.
void Align(Constant& c) {
  const size_t unit = static_cast<size_t>(std::max(BitWidth(c.dtype), 8)) / 8;
  if (reinterpret_cast<uintptr_t>(c.bytes.data()) % unit == 0) return;
  if (static_cast<int64_t>(c.bytes.size()) > kMaxAlignedCopy) return;
  c = MakeConstant(c.dtype, c.dims, c.bytes.data());
}

template <class T>
int64_t IndexAt(const Constant& c, int64_t i) {
  T x;
  std::memcpy(&x, c.bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<int64_t>(x);
}

}  // namespace

Result<DType> ReadDType(int64_t onnx_type) {
  if (onnx_type < 1 || onnx_type > static_cast<int64_t>(DType::kI2))
    return Unsupported(fmt::format("element type {} given, 1 to {} known", onnx_type,
                                   static_cast<int64_t>(DType::kI2)));
  return static_cast<DType>(onnx_type);
}

Result<int64_t> CheckedElements(const std::vector<int64_t>& dims, DType dtype) {
  int64_t count = 1;
  const int64_t most = kMaxElementBytes / std::max<int64_t>(1, BitWidth(dtype) / 8);
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) return Invalid(fmt::format("dims [{}]: negative", fmt::join(dims, ", ")));
    if (d == 0) {
      empty = true;
    } else if (count > most / d) {
      return Invalid(fmt::format("dims [{}] overflow", fmt::join(dims, ", ")));
    } else {
      count *= d;
    }
  }
  return empty ? 0 : count;
}

Result<std::shared_ptr<FileMap>> TensorSource::Open(const std::string& location) {
  namespace fs = std::filesystem;
  if (auto it = external_.find(location); it != external_.end()) return it->second;
  const fs::path relative(location);
  bool inside =
      !location.empty() && relative.is_relative() && location.find('\0') == std::string::npos;
  for (const auto& part : relative) inside = inside && part != "..";
  if (!inside)
    return Invalid(fmt::format("external data '{}' does not lie in the model's folder", location));
  std::error_code error;
  const fs::path folder = fs::canonical(folder_.empty() ? "." : folder_, error);
  if (error) return Error(Code::kNotFound, fmt::format("{}: {}", folder_, error.message()));
  const fs::path path = fs::canonical(folder / relative, error);
  if (error)
    return Error(Code::kNotFound, fmt::format("external data '{}': {}", location, error.message()));
  const auto [rest, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (rest != folder.end())
    return Invalid(
        fmt::format("external data '{}' leads out of the model's folder by a link", location));
  if (!fs::is_regular_file(path, error))
    return Invalid(fmt::format("external data '{}' is not a regular file", location));
  Result<FileMap> map = FileMap::Open(path.string());
  if (!map.ok()) return std::move(map).In("external data").status();
  auto shared = std::make_shared<FileMap>(std::move(map).value());
  external_.emplace(location, shared);
  return shared;
}

Result<Constant> TensorSource::Read(const TensorProto& tensor) {
  GE_ASSIGN(Parts p, Split(tensor.body));
  Constant c;
  GE_ASSIGN(c.dtype, ReadDType(p.type));
  GE_ASSIGN(const int64_t count, CheckedElements(p.dims, c.dtype));
  c.dims = std::move(p.dims);
  const int64_t need = BytesFor(c.dtype, count);
  if (c.dtype == DType::kString) {
    if (p.external || p.has_raw) return Invalid("string tensor with raw data");
    GE_ASSIGN(c.strings, ReadStrings(tensor.body, count));
    return c;
  }
  if (p.external) {
    GE_ASSIGN(auto file, Open(std::string(p.location)));
    const int64_t size = static_cast<int64_t>(file->bytes().size());
    GE_ASSIGN(const int64_t offset, Number(p.offset, 0, "offset"));
    if (offset > size)
      return Damaged(fmt::format("external data '{}' ends before offset {}", p.location, offset));
    GE_ASSIGN(const int64_t length, Number(p.length, need, "length"));
    if (length != need || need > size - offset)
      return Damaged(fmt::format("{} bytes declared by dims [{}] of {}, external data '{}' has {}",
                                 need, fmt::join(c.dims, ", "), Name(c.dtype), p.location,
                                 std::min(length, size - offset)));
    c.bytes = file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(need));
    c.keep = file;
    Align(c);
    return c;
  }
  if (p.has_raw && !(p.raw.empty() && need > 0)) {
    if (static_cast<int64_t>(p.raw.size()) != need)
      return Damaged(fmt::format("{} bytes declared by dims [{}] of {}, {} present", need,
                                 fmt::join(c.dims, ", "), Name(c.dtype), p.raw.size()));
    c.bytes = {reinterpret_cast<const std::byte*>(p.raw.data()), p.raw.size()};
    c.keep = file_;
    Align(c);
    return c;
  }
  TypedData data(c.dtype, static_cast<size_t>(need));
  GE_TRY(data.Read(tensor.body));
  if (data.too_many() || static_cast<int64_t>(data.bytes().size()) != need)
    return Damaged(fmt::format("{} bytes declared by dims [{}] of {}, {} present", need,
                               fmt::join(c.dims, ", "), Name(c.dtype),
                               data.too_many() ? "more" : std::to_string(data.bytes().size())));
  auto owned = std::make_shared<std::vector<std::byte>>(std::move(data.bytes()));
  c.bytes = *owned;
  c.keep = std::move(owned);
  return c;
}

// values[k] stands at indices[k]: flat positions, or one row of coordinates each.
Result<Constant> TensorSource::Read(const SparseTensorProto& tensor) {
  GE_ASSIGN(Constant values, Read(tensor.values));
  GE_ASSIGN(Constant indices, Read(tensor.indices));
  GE_ASSIGN(const int64_t count, CheckedElements(tensor.dims, values.dtype));
  const int64_t unit = BitWidth(values.dtype) / 8;
  if (unit == 0 || values.dims.size() != 1 || indices.dtype != DType::kI64)
    return Unsupported("sparse tensor of this form");
  if (count > kMaxDenseBytes / unit)
    return Error(Code::kResourceExhausted, "sparse tensor too large");
  const int64_t entries = values.dims[0];
  const int64_t rank = static_cast<int64_t>(tensor.dims.size());
  const bool flat = indices.dims.size() == 1;
  const bool rows = indices.dims.size() == 2 && indices.dims[1] == rank;
  if (!(flat || rows) || indices.dims[0] != entries)
    return Invalid("sparse tensor: values and indices differ in number");
  auto dense = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(count * unit));
  for (int64_t k = 0; k < entries; ++k) {
    int64_t at = flat ? IndexAt<int64_t>(indices, k) : 0;
    for (int64_t d = 0; rows && d < rank; ++d) {
      const int64_t i = IndexAt<int64_t>(indices, k * rank + d);
      if (i < 0 || i >= tensor.dims[d]) return Invalid("sparse tensor: index out of range");
      at = at * tensor.dims[d] + i;
    }
    if (at < 0 || at >= count) return Invalid("sparse tensor: index out of range");
    std::memcpy(dense->data() + at * unit, values.bytes.data() + k * unit,
                static_cast<size_t>(unit));
  }
  Constant c;
  c.dtype = values.dtype;
  c.dims = tensor.dims;
  c.bytes = *dense;
  c.keep = std::move(dense);
  return c;
}

}  // namespace ge::onnx
