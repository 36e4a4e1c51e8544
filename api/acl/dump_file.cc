// See dump_file.h. Tensors are small enough messages that the wire format is written by hand.
#include "api/acl/dump_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "abi/convert.h"
#include "abi/dtype.h"

namespace ge::acl {
namespace {

void Varint(std::string* to, uint64_t value) {
  for (; value >= 128; value >>= 7) *to += static_cast<char>(value | 128);
  *to += static_cast<char>(value);
}
void Number(std::string* to, uint32_t field, uint64_t value) {
  Varint(to, field << 3);
  Varint(to, value);
}
void Text(std::string* to, uint32_t field, const std::string& value) {
  Varint(to, field << 3 | 2);
  Varint(to, value.size());
  *to += value;
}

// The numbers of the message's OutputDataType; 0 for what it has no name for.
uint32_t TypeNumber(DType type) {
  switch (type) {
    case DType::kF32: return 1;
    case DType::kF16: return 2;
    case DType::kI8: return 3;
    case DType::kU8: return 4;
    case DType::kI16: return 5;
    case DType::kU16: return 6;
    case DType::kI32: return 7;
    case DType::kI64: return 8;
    case DType::kU32: return 9;
    case DType::kU64: return 10;
    case DType::kBool: return 11;
    case DType::kF64: return 12;
    case DType::kC64: return 16;
    case DType::kC128: return 17;
    case DType::kBF16: return 27;
    default: return 0;
  }
}

constexpr uint32_t kNchw = 0, kNd = 2;

std::string Shape(const std::vector<int64_t>& dims) {
  std::string packed, shape;
  for (const int64_t d : dims) Varint(&packed, static_cast<uint64_t>(d));
  if (!dims.empty()) Text(&shape, 1, packed);
  return shape;
}

}  // namespace

void AddToDump(const rt::Tensor& tensor, bool input, uint32_t index, const std::string& name,
               std::string* fields, std::string* data) {
  const auto type = static_cast<DType>(tensor.dtype);
  // Packed and 8-bit float types: as bytes.
  const bool named = TypeNumber(type) != 0;
  const uint32_t number = TypeNumber(named ? type : DType::kU8);
  const auto dims = named ? tensor.dims : std::vector<int64_t>{tensor.bytes};
  const uint32_t format = dims.size() == 4 ? kNchw : kNd;
  std::string message;
  Number(&message, 1, number);
  Number(&message, 2, format);
  Text(&message, 3, Shape(dims));
  if (!input) {
    std::string original;
    Text(&original, 1, name);
    Number(&original, 2, index);
    Number(&original, 3, number);
    Number(&original, 4, format);
    Text(&message, 4, original);
  }
  Number(&message, input ? 5 : 6, static_cast<uint64_t>(tensor.bytes));
  Text(&message, input ? 6 : 7, Shape(dims));
  Text(fields, input ? 4 : 3, message);
  data->append(static_cast<const char*>(tensor.data), static_cast<size_t>(tensor.bytes));
}

std::string DumpHeader(const std::string& op, uint64_t time_us, const std::string& fields) {
  std::string header;
  Text(&header, 1, "1.0");
  Number(&header, 2, time_us);
  header += fields;
  Text(&header, 6, op);
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header;
}

std::string DumpStatistics(const rt::Tensor& tensor, bool input, uint32_t index) {
  const auto type = static_cast<DType>(tensor.dtype);
  const bool numbers = TypeNumber(type) != 0 && type != DType::kC64 && type != DType::kC128;
  const int64_t count = numbers ? tensor.bytes * 8 / BitWidth(type) : 0;
  double most = -std::numeric_limits<double>::infinity(), least = -most, sum = 0;
  int64_t nan = 0, inf = 0, finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto v = LoadElement<double>(type, static_cast<const std::byte*>(tensor.data), i);
    nan += std::isnan(v);
    inf += std::isinf(v);
    if (!std::isfinite(v)) continue;
    ++finite;
    most = std::max(most, v);
    least = std::min(least, v);
    sum += v;
  }
  std::string shape;
  for (const int64_t d : tensor.dims) shape += (shape.empty() ? "" : "x") + std::to_string(d);
  char line[512];
  const auto shown = [&](double v) { return finite == 0 ? std::nan("") : v; };
  std::snprintf(line, sizeof line, "%s,%u,%lld,%s,%s,%s,%.9g,%.9g,%.9g,%lld,%lld\n",
                input ? "Input" : "Output", index, static_cast<long long>(tensor.bytes),
                std::string(Name(type)).c_str(), tensor.dims.size() == 4 ? "NCHW" : "ND",
                shape.c_str(), shown(most), shown(least),
                shown(sum / static_cast<double>(std::max<int64_t>(finite, 1))),
                static_cast<long long>(nan), static_cast<long long>(inf));
  return line;
}

}  // namespace ge::acl
