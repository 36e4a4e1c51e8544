// Storage conversions: elements of every dtype to and from the types that arithmetic is done in.
//
// Floats round to nearest even; float8 and float4 saturate (ONNX's saturate=1) unless told
// otherwise, NaN stays NaN where the format has one; f8e8m0 rounds up to a power of two (ONNX's
// default) and drops the sign. Integers wrap. Sub-byte elements are packed, the low bits first.
// Everything here is integer code, so that the state of the floating-point unit (FTZ, DAZ,
// rounding) has no influence. For scalars; a kernel that needs speed has its own vector form.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "abi/dtype.h"

namespace ge {

// A small float: exponent and mantissa bits, bias, the largest finite code, and its special codes.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  uint32_t max_code;   // without sign
  uint32_t inf_code;   // without sign; 0 = the format has none
  uint32_t nan_code;   // what NaN is stored as; 0 = the format has none
  bool unsigned_zero;  // "fnuz": no -0, NaN is the sign bit alone
  bool saturates;      // what is too large becomes the largest finite (default of the format)
  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
};

inline constexpr FloatFormat kF16Format{5, 10, 15, 0x7bff, 0x7c00, 0x7e00, false, false};
inline constexpr FloatFormat kF8E4M3FNFormat{4, 3, 7, 0x7e, 0, 0x7f, false, true};
inline constexpr FloatFormat kF8E4M3FNUZFormat{4, 3, 8, 0x7f, 0, 0x80, true, true};
inline constexpr FloatFormat kF8E5M2Format{5, 2, 15, 0x7b, 0x7c, 0x7e, false, true};
inline constexpr FloatFormat kF8E5M2FNUZFormat{5, 2, 16, 0x7f, 0, 0x80, true, true};
inline constexpr FloatFormat kF4E2M1Format{2, 1, 1, 0x7, 0, 0, false, true};

inline uint32_t EncodeFloat(const FloatFormat& format, float value, bool saturate) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 31 ? format.sign_bit() : 0;
  const int m = format.mantissa_bits;
  if (magnitude > 0x7f800000u) {  // NaN
    if (format.nan_code == 0) return format.max_code;
    return format.unsigned_zero ? format.nan_code : sign | format.nan_code;
  }
  const uint32_t too_large = saturate               ? format.max_code
                             : format.inf_code != 0 ? format.inf_code
                                                    : format.nan_code;
  const uint32_t overflow = !saturate && format.unsigned_zero ? format.nan_code : sign | too_large;
  if (magnitude == 0x7f800000u) return overflow;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + format.bias;
  // A source denormal lies far below every format's smallest value; its missing hidden bit is moot.
  uint64_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  int shift = 23 - m;
  if (exponent >= 1) {
    significand = static_cast<uint64_t>(exponent) << 23 | (magnitude & 0x7fffffu);
  } else {
    shift += 1 - exponent;
    if (shift > 25) shift = 25;  // rounds to zero
  }
  uint64_t code = significand >> shift;
  const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (code & 1))) ++code;
  if (code > format.max_code) return overflow;
  if (code == 0 && format.unsigned_zero) return 0;
  return sign | static_cast<uint32_t>(code);
}

inline float DecodeFloat(const FloatFormat& format, uint32_t code) {
  const uint32_t sign = code & format.sign_bit();
  const uint32_t magnitude = code & (format.sign_bit() - 1);
  const uint32_t high = sign ? 0x80000000u : 0;
  if (format.unsigned_zero && code == format.nan_code) return std::bit_cast<float>(0x7fc00000u);
  if (magnitude > format.max_code) {
    const bool infinite = format.inf_code != 0 && magnitude == format.inf_code;
    // NaN keeps its payload, as the hardware conversions of f16 do, and is quiet.
    const uint32_t payload = (magnitude << (23 - format.mantissa_bits)) & 0x7fffffu;
    return std::bit_cast<float>(high | 0x7f800000u | (infinite ? 0 : payload | 0x400000u));
  }
  const int m = format.mantissa_bits;
  int exponent = static_cast<int>(magnitude >> m);
  uint32_t mantissa = magnitude & ((1u << m) - 1);
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(high);
    exponent = 1;
    while (!(mantissa >> m)) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= (1u << m) - 1;
  }
  const uint32_t e = static_cast<uint32_t>(exponent - format.bias + 127);
  return std::bit_cast<float>(high | e << 23 | mantissa << (23 - m));
}

inline uint16_t F32ToF16(float v) {
  return static_cast<uint16_t>(EncodeFloat(kF16Format, v, false));
}
inline float F16ToF32(uint16_t code) { return DecodeFloat(kF16Format, code); }

inline uint16_t F32ToBF16(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float BF16ToF32(uint16_t code) {
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
}

// f8e8m0: an exponent, 2^(code - 127); 255 is NaN.
enum class E8M0Round { kUp, kDown, kNearest };
inline uint8_t F32ToE8M0(float v, E8M0Round round = E8M0Round::kUp, bool saturate = true) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(v) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 255;
  if (magnitude == 0x7f800000u) return saturate ? 254 : 255;
  uint32_t code = magnitude >> 23;
  const uint32_t rest = magnitude & 0x7fffffu;
  // Below 2^-126 the codes are 0 (2^-127) and 1 (2^-126); 2^-127 is the denormal 0x400000.
  const uint32_t exact = code == 0 ? 0x400000u : 0;
  const bool up = round == E8M0Round::kUp        ? rest > exact
                  : round == E8M0Round::kNearest ? rest >= (code == 0 ? 0x600000u : 0x400000u)
                                                 : false;
  if (up) ++code;
  return static_cast<uint8_t>(code > 254 ? (saturate ? 254 : 255) : code);
}
inline float E8M0ToF32(uint8_t code) {
  if (code == 255) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(code == 0 ? 0x400000u : static_cast<uint32_t>(code) << 23);
}

// Code of a storage float that fits in 16 bits.
inline uint32_t EncodeFloat(DType t, float v) {
  switch (t) {
    case DType::kF16: return F32ToF16(v);
    case DType::kBF16: return F32ToBF16(v);
    case DType::kF8E4M3FN: return EncodeFloat(kF8E4M3FNFormat, v, true);
    case DType::kF8E4M3FNUZ: return EncodeFloat(kF8E4M3FNUZFormat, v, true);
    case DType::kF8E5M2: {  // what is stored as infinity was one: only rounding saturates
      const bool infinite = (std::bit_cast<uint32_t>(v) & 0x7fffffffu) == 0x7f800000u;
      return EncodeFloat(kF8E5M2Format, v, !infinite);
    }
    case DType::kF8E5M2FNUZ: return EncodeFloat(kF8E5M2FNUZFormat, v, true);
    case DType::kF4E2M1: return EncodeFloat(kF4E2M1Format, v, true);
    case DType::kF8E8M0: return F32ToE8M0(v);
    default: return 0;
  }
}
inline float DecodeFloat(DType t, uint32_t code) {
  switch (t) {
    case DType::kF16: return F16ToF32(static_cast<uint16_t>(code));
    case DType::kBF16: return BF16ToF32(static_cast<uint16_t>(code));
    case DType::kF8E4M3FN: return DecodeFloat(kF8E4M3FNFormat, code);
    case DType::kF8E4M3FNUZ: return DecodeFloat(kF8E4M3FNUZFormat, code);
    case DType::kF8E5M2: return DecodeFloat(kF8E5M2Format, code);
    case DType::kF8E5M2FNUZ: return DecodeFloat(kF8E5M2FNUZFormat, code);
    case DType::kF4E2M1: return DecodeFloat(kF4E2M1Format, code);
    case DType::kF8E8M0: return E8M0ToF32(static_cast<uint8_t>(code));
    default: return 0;
  }
}

// Packed elements of `bits` (2 or 4): element i lies in byte i*bits/8, the low bits first.
inline uint32_t ReadPacked(const uint8_t* p, int bits, int64_t i) {
  const int per_byte = 8 / bits;
  return (p[i / per_byte] >> (i % per_byte * bits)) & ((1u << bits) - 1);
}
inline void WritePacked(uint8_t* p, int bits, int64_t i, uint32_t code) {
  const int per_byte = 8 / bits;
  const int at = static_cast<int>(i % per_byte) * bits;
  const uint32_t mask = ((1u << bits) - 1) << at;
  p[i / per_byte] = static_cast<uint8_t>((p[i / per_byte] & ~mask) | (code << at & mask));
}

template <class T>
inline T ReadAs(const void* base, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(base) + i * static_cast<int64_t>(sizeof(T)), sizeof v);
  return v;
}
template <class T>
inline void WriteAs(void* base, int64_t i, T v) {
  std::memcpy(static_cast<char*>(base) + i * static_cast<int64_t>(sizeof(T)), &v, sizeof v);
}

// Element i of an array of storage type t, as T (float, double or an integer). Floats to integer T
// truncate and must be in range; this is a cast in the host's arithmetic, not TileIR's.
template <class T>
inline T LoadElement(DType t, const void* base, int64_t i) {
  const uint8_t* bytes = static_cast<const uint8_t*>(base);
  switch (t) {
    case DType::kF32: return static_cast<T>(ReadAs<float>(base, i));
    case DType::kF64: return static_cast<T>(ReadAs<double>(base, i));
    case DType::kI8: return static_cast<T>(ReadAs<int8_t>(base, i));
    case DType::kU8: return static_cast<T>(bytes[i]);
    case DType::kI16: return static_cast<T>(ReadAs<int16_t>(base, i));
    case DType::kU16: return static_cast<T>(ReadAs<uint16_t>(base, i));
    case DType::kI32: return static_cast<T>(ReadAs<int32_t>(base, i));
    case DType::kU32: return static_cast<T>(ReadAs<uint32_t>(base, i));
    case DType::kI64: return static_cast<T>(ReadAs<int64_t>(base, i));
    case DType::kU64: return static_cast<T>(ReadAs<uint64_t>(base, i));
    case DType::kBool: return static_cast<T>(bytes[i] != 0);
    case DType::kU4: return static_cast<T>(ReadPacked(bytes, 4, i));
    case DType::kI4: return static_cast<T>(static_cast<int>(ReadPacked(bytes, 4, i) ^ 8) - 8);
    case DType::kU2: return static_cast<T>(ReadPacked(bytes, 2, i));
    case DType::kI2: return static_cast<T>(static_cast<int>(ReadPacked(bytes, 2, i) ^ 2) - 2);
    case DType::kF16:
    case DType::kBF16: return static_cast<T>(DecodeFloat(t, ReadAs<uint16_t>(base, i)));
    case DType::kF4E2M1: return static_cast<T>(DecodeFloat(t, ReadPacked(bytes, 4, i)));
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0: return static_cast<T>(DecodeFloat(t, bytes[i]));
    default: return T{};
  }
}

// The inverse: rounds floats, wraps integers, stores v != 0 for bool.
template <class T>
inline void StoreElement(DType t, void* base, int64_t i, T v) {
  uint8_t* bytes = static_cast<uint8_t*>(base);
  switch (t) {
    case DType::kF32: return WriteAs(base, i, static_cast<float>(v));
    case DType::kF64: return WriteAs(base, i, static_cast<double>(v));
    case DType::kI8:
    case DType::kU8: return WriteAs(base, i, static_cast<uint8_t>(static_cast<int64_t>(v)));
    case DType::kI16:
    case DType::kU16: return WriteAs(base, i, static_cast<uint16_t>(static_cast<int64_t>(v)));
    case DType::kI32:
    case DType::kU32: return WriteAs(base, i, static_cast<uint32_t>(static_cast<int64_t>(v)));
    case DType::kI64: return WriteAs(base, i, static_cast<int64_t>(v));
    case DType::kU64: return WriteAs(base, i, static_cast<uint64_t>(v));
    case DType::kBool: return WriteAs(base, i, static_cast<uint8_t>(v != T{}));
    case DType::kU4:
    case DType::kI4:
      return WritePacked(bytes, 4, i, static_cast<uint32_t>(static_cast<int64_t>(v)));
    case DType::kU2:
    case DType::kI2:
      return WritePacked(bytes, 2, i, static_cast<uint32_t>(static_cast<int64_t>(v)));
    case DType::kF16:
    case DType::kBF16:
      return WriteAs(base, i, static_cast<uint16_t>(EncodeFloat(t, static_cast<float>(v))));
    case DType::kF4E2M1: return WritePacked(bytes, 4, i, EncodeFloat(t, static_cast<float>(v)));
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
      return WriteAs(base, i, static_cast<uint8_t>(EncodeFloat(t, static_cast<float>(v))));
    default: return;
  }
}

}  // namespace ge
