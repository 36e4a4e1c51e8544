// The table of element types, indexed by the enum's value.
#include "abi/dtype.h"

namespace ge {
namespace {

struct Row {
  std::string_view name;
  uint8_t bits;
  bool is_float, is_integer, is_signed;
  DType compute;
};

constexpr Row kRows[] = {
    {"none", 0, false, false, false, DType::kNone},
    {"f32", 32, true, false, true, DType::kF32},
    {"u8", 8, false, true, false, DType::kI32},
    {"i8", 8, false, true, true, DType::kI32},
    {"u16", 16, false, true, false, DType::kI32},
    {"i16", 16, false, true, true, DType::kI32},
    {"i32", 32, false, true, true, DType::kI32},
    {"i64", 64, false, true, true, DType::kI64},
    {"string", 0, false, false, false, DType::kNone},
    {"bool", 8, false, false, false, DType::kBool},
    {"f16", 16, true, false, true, DType::kF32},
    {"f64", 64, true, false, true, DType::kF64},
    {"u32", 32, false, true, false, DType::kI64},
    {"u64", 64, false, true, false, DType::kU64},
    {"c64", 64, false, false, false, DType::kNone},
    {"c128", 128, false, false, false, DType::kNone},
    {"bf16", 16, true, false, true, DType::kF32},
    {"f8e4m3fn", 8, true, false, true, DType::kF32},
    {"f8e4m3fnuz", 8, true, false, true, DType::kF32},
    {"f8e5m2", 8, true, false, true, DType::kF32},
    {"f8e5m2fnuz", 8, true, false, true, DType::kF32},
    {"u4", 4, false, true, false, DType::kI32},
    {"i4", 4, false, true, true, DType::kI32},
    {"f4e2m1", 4, true, false, true, DType::kF32},
    {"f8e8m0", 8, true, false, true, DType::kF32},
    {"u2", 2, false, true, false, DType::kI32},
    {"i2", 2, false, true, true, DType::kI32},
};
constexpr int kCount = static_cast<int>(sizeof kRows / sizeof kRows[0]);

// A number outside the enum (a damaged file) behaves as kNone.
const Row& RowOf(DType t) {
  const int i = static_cast<int>(t);
  return kRows[i < kCount ? i : 0];
}

}  // namespace

int BitWidth(DType t) { return RowOf(t).bits; }

int64_t BytesFor(DType t, int64_t elements) {
  const int bits = BitWidth(t);
  if (bits >= 8) return elements * (bits / 8);
  return bits == 0 ? 0 : (elements * bits + 7) / 8;
}

bool IsFloat(DType t) { return RowOf(t).is_float; }
bool IsInteger(DType t) { return RowOf(t).is_integer; }
bool IsSigned(DType t) { return RowOf(t).is_signed; }
DType ComputeType(DType t) { return RowOf(t).compute; }
std::string_view Name(DType t) { return RowOf(t).name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 0; i < kCount; ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace ge
