// DType: element types. Values are those of ONNX's TensorProto.DataType, so that nothing is mapped.
// Compute types of TileIR are f32, f64, i32, i64, u64 and bool; all others are storage only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ge {

enum class DType : uint8_t {
  kNone = 0,
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kU16 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kString = 8,
  kBool = 9,
  kF16 = 10,
  kF64 = 11,
  kU32 = 12,
  kU64 = 13,
  kC64 = 14,
  kC128 = 15,
  kBF16 = 16,
  kF8E4M3FN = 17,
  kF8E4M3FNUZ = 18,
  kF8E5M2 = 19,
  kF8E5M2FNUZ = 20,
  kU4 = 21,
  kI4 = 22,
  kF4E2M1 = 23,
  kF8E8M0 = 24,
  kU2 = 25,
  kI2 = 26,
};

int BitWidth(DType t);                        // 4 for sub-byte i4; 0 for kString, kNone
int64_t BytesFor(DType t, int64_t elements);  // sub-byte types are packed, rounded up to a byte
bool IsFloat(DType t);                        // f8 to f64, bf16
bool IsInteger(DType t);                      // signed or unsigned, not bool
constexpr bool IsByte(DType t) { return t == DType::kU8 || t == DType::kI8; }
bool IsSigned(DType t);  // signed integers and floats
// The TileIR type in which elements of t are computed: f32 for small floats, f64, i32 for integers
// up to 32 bits signed / 16 unsigned, i64 (also for u32), u64, bool.
DType ComputeType(DType t);
std::string_view Name(DType t);  // "f32", "bf16", "i64", "bool", "f8e4m3fn", ...
std::optional<DType> ParseDType(std::string_view name);

}  // namespace ge
