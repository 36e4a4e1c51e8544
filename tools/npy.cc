// The header is a Python dict literal: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }.
// dtypes that NumPy lacks (bf16, float8, int4) are written as unsigned integers of their width.

#include "tools/npy.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ge {
namespace {

struct Descr {
  const char* text;
  DType dtype;
};
constexpr Descr kDescr[] = {{"<f4", DType::kF32}, {"<f8", DType::kF64},  {"<f2", DType::kF16},
                            {"|i1", DType::kI8},  {"<i2", DType::kI16},  {"<i4", DType::kI32},
                            {"<i8", DType::kI64}, {"|u1", DType::kU8},   {"<u2", DType::kU16},
                            {"<u4", DType::kU32}, {"<u8", DType::kU64},  {"|b1", DType::kBool},
                            {"<c8", DType::kC64}, {"<c16", DType::kC128}};

std::string DescrOf(DType t) {
  for (const Descr& d : kDescr)
    if (d.dtype == t) return d.text;
  return BitWidth(t) == 16 ? "<u2" : "|u1";
}

// The text after "'key':" in the header, or empty.
std::string_view Field(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  return at == std::string_view::npos ? std::string_view() : header.substr(at + key.size() + 3);
}

Result<std::vector<int64_t>> ParseShape(std::string_view text) {
  const size_t open = text.find('('), close = text.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return Invalid("no shape in the header");
  std::vector<int64_t> dims;
  const char* p = text.data() + open + 1;
  const char* end = text.data() + close;
  while (p < end) {
    while (p < end && (*p == ' ' || *p == ',')) ++p;
    if (p == end) break;
    int64_t d = 0;
    auto [next, error] = std::from_chars(p, end, d);
    if (error != std::errc() || d < 0) return Invalid("a bad shape in the header");
    dims.push_back(d);
    p = next;
  }
  return dims;
}

}  // namespace

Result<std::vector<std::byte>> ReadFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Invalid(path + ": is a folder");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Error(Code::kNotFound, path + ": cannot open the file");
  if (file.tellg() < 0) return Invalid(path + ": not a regular file");
  std::vector<std::byte> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) return Error(Code::kDataLoss, path + ": cannot read the file");
  return bytes;
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  const bool opened = file.is_open();
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();  // the last bytes may meet a full disk
  if (file) return {};
  const int error = errno;
  std::error_code ignored;
  if (opened && std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored)))
    std::filesystem::remove(path, ignored);
  return Error(Code::kUnavailable,
               fmt::format("{}: cannot write the file{}{}", path, error ? ": " : "",
                           error ? std::strerror(error) : ""));
}

Result<Array> ReadNpy(const std::string& path) {
  GE_ASSIGN(std::vector<std::byte> bytes, ReadFile(path));
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  if (bytes.size() < 12 || std::memcmp(text, "\x93NUMPY", 6) != 0)
    return Invalid(path + ": not an .npy file");
  const bool wide = text[6] >= 2;
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, text + 8, wide ? 4 : 2);
  const size_t begin = wide ? 12 : 10;
  if (begin + header_bytes > bytes.size())
    return Error(Code::kDataLoss, path + ": truncated header");
  const std::string_view header(text + begin, header_bytes);
  if (Field(header, "fortran_order").substr(0, 5).find("True") != std::string_view::npos)
    return Unsupported(path + ": Fortran order; save it with numpy.ascontiguousarray");
  Array a;
  const std::string_view descr = Field(header, "descr");
  for (const Descr& d : kDescr)
    if (descr.find(fmt::format("'{}'", d.text)) != std::string_view::npos && descr.find(d.text) < 4)
      a.dtype = d.dtype;
  if (a.dtype == DType::kNone)
    return Unsupported(
        fmt::format("{}: element type{} is not read", path, descr.substr(0, descr.find(','))));
  auto shape = ParseShape(Field(header, "shape"));
  if (!shape.ok()) return Status(shape.status()).In(path);
  a.dims = *shape;
  int64_t elements = 1;
  for (int64_t d : a.dims)
    if (__builtin_mul_overflow(elements, d, &elements)) return Invalid(path + ": shape overflows");
  if (BytesFor(a.dtype, elements) != static_cast<int64_t>(bytes.size() - begin - header_bytes))
    return Error(Code::kDataLoss, path + ": data and shape differ in size");
  a.bytes.assign(bytes.begin() + static_cast<int64_t>(begin + header_bytes), bytes.end());
  return a;
}

Status WriteNpy(const std::string& path, const Array& a) {
  std::string shape;
  for (int64_t d : a.dims) shape += fmt::format("{}, ", d);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   DescrOf(a.dtype), shape);
  header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const auto size = static_cast<uint16_t>(header.size());
  std::string text("\x93NUMPY\x01\x00", 8);
  text.append(reinterpret_cast<const char*>(&size), 2);
  text += header;
  text.append(reinterpret_cast<const char*>(a.bytes.data()), a.bytes.size());
  return WriteFile(path, text);
}

}  // namespace ge
