// Equality is that of bytes: -0.0 and 0.0 differ.
#include "lower/scalar_constant.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace ge {
namespace {

constexpr int64_t kMaxElements = 4096;  // larger splats are left to constant folding

template <class T>
T First(const Constant& constant) {
  T value;
  std::memcpy(&value, constant.bytes.data(), sizeof value);
  return value;
}

double HalfToDouble(uint16_t h) {
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                     : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                      : std::ldexp(mantissa + 1024, exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}

bool AllEqual(const Constant& constant, size_t width) {
  for (size_t i = width; i + width <= constant.bytes.size(); i += width)
    if (std::memcmp(constant.bytes.data(), constant.bytes.data() + i, width) != 0) return false;
  return true;
}

}  // namespace

std::optional<Scalar> SplatOf(const Constant& constant) {
  int64_t n = constant.Elements();
  int bits = BitWidth(constant.dtype);
  if (n < 1 || n > kMaxElements || bits < 8 || !AllEqual(constant, bits / 8)) return std::nullopt;
  auto integer = [](int64_t i) { return Scalar{.is_integer = true, .i = i}; };
  auto real = [](double f) { return Scalar{.f = f}; };
  switch (constant.dtype) {
    case DType::kF32: return real(First<float>(constant));
    case DType::kF64: return real(First<double>(constant));
    case DType::kF16: return real(HalfToDouble(First<uint16_t>(constant)));
    case DType::kBF16:
      return real(std::bit_cast<float>(static_cast<uint32_t>(First<uint16_t>(constant)) << 16));
    case DType::kBool: return integer(First<uint8_t>(constant) != 0);
    case DType::kU8: return integer(First<uint8_t>(constant));
    case DType::kI8: return integer(First<int8_t>(constant));
    case DType::kU16: return integer(First<uint16_t>(constant));
    case DType::kI16: return integer(First<int16_t>(constant));
    case DType::kI32: return integer(First<int32_t>(constant));
    case DType::kU32: return integer(First<uint32_t>(constant));
    case DType::kI64: return integer(First<int64_t>(constant));
    case DType::kU64: return integer(static_cast<int64_t>(First<uint64_t>(constant)));
    default: return std::nullopt;
  }
}

}  // namespace ge
