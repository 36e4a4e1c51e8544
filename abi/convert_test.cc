// Storage conversions, exhaustively: every code of every small float decodes to what its definition
// says, and encoding finds the nearest code, ties to even.
#include "abi/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace ge {
namespace {

struct Named {
  const char* name;
  FloatFormat format;
  bool saturate;
};

const Named kFormats[] = {
    {"f16", kF16Format, false},
    {"e4m3fn", kF8E4M3FNFormat, true},
    {"e4m3fnuz", kF8E4M3FNUZFormat, true},
    {"e5m2", kF8E5M2Format, true},
    {"e5m2fnuz", kF8E5M2FNUZFormat, true},
    {"e2m1", kF4E2M1Format, true},
    {"e5m2 wide", kF8E5M2Format, false},
    {"e4m3fn wide", kF8E4M3FNFormat, false},
};

// The value of a finite code by its definition.
double ByDefinition(const FloatFormat& f, uint32_t code) {
  const uint32_t magnitude = code & (f.sign_bit() - 1);
  const int e = static_cast<int>(magnitude >> f.mantissa_bits);
  const double m = std::ldexp(magnitude & ((1u << f.mantissa_bits) - 1), -f.mantissa_bits);
  const double v = e == 0 ? std::ldexp(m, 1 - f.bias) : std::ldexp(1 + m, e - f.bias);
  return code & f.sign_bit() ? -v : v;
}

TEST(Convert, DecodesEveryCode) {
  for (const Named& n : kFormats) {
    const FloatFormat& f = n.format;
    for (uint32_t code = 0; code < 2 * f.sign_bit(); ++code) {
      const float v = DecodeFloat(f, code);
      const uint32_t magnitude = code & (f.sign_bit() - 1);
      if (f.unsigned_zero && code == f.sign_bit()) {
        EXPECT_TRUE(std::isnan(v)) << n.name;
      } else if (magnitude <= f.max_code) {
        EXPECT_EQ(v, ByDefinition(f, code)) << n.name << " " << code;
        EXPECT_EQ(std::signbit(v), (code & f.sign_bit()) != 0);
      } else if (f.inf_code != 0 && magnitude == f.inf_code) {
        EXPECT_TRUE(std::isinf(v));
        EXPECT_EQ(v < 0, (code & f.sign_bit()) != 0);
      } else {
        EXPECT_TRUE(std::isnan(v)) << n.name << " " << code;
      }
    }
  }
}

TEST(Convert, EveryCodeComesBack) {
  for (const Named& n : kFormats) {
    for (uint32_t code = 0; code < 2 * n.format.sign_bit(); ++code) {
      const float v = DecodeFloat(n.format, code);
      const uint32_t back = EncodeFloat(n.format, v, n.saturate);
      if (std::isnan(v)) {
        EXPECT_TRUE(std::isnan(DecodeFloat(n.format, back))) << n.name;
      } else if (std::isinf(v) && n.saturate) {
        EXPECT_EQ(back & (n.format.sign_bit() - 1), n.format.max_code);
      } else {
        EXPECT_EQ(back, code) << n.name;
      }
    }
  }
}

// Floats near every code, near every midpoint, and at random.
std::vector<float> Candidates(const FloatFormat& f) {
  std::vector<float> v{0.0f,   -0.0f, std::numeric_limits<float>::denorm_min(),
                       1e-45f, 1e38f, -3e38f};
  auto around = [&](double x) {
    const float c = static_cast<float>(x);
    for (float y : {c, std::nextafter(c, INFINITY), std::nextafter(c, -INFINITY)}) {
      v.push_back(y);
      v.push_back(-y);
    }
  };
  for (uint32_t code = 0; code <= f.max_code; ++code) {
    around(ByDefinition(f, code));
    around((ByDefinition(f, code) + ByDefinition(f, code + 1)) / 2);
  }
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(x)) v.push_back(x);
  }
  return v;
}

TEST(Convert, EncodesToNearestEven) {
  for (const Named& n : kFormats) {
    const FloatFormat& f = n.format;
    const double step = ByDefinition(f, f.max_code) - ByDefinition(f, f.max_code - 1);
    for (float x : Candidates(f)) {
      const uint32_t code = EncodeFloat(f, x, n.saturate);
      const double magnitude = std::fabs(static_cast<double>(x));
      const double max = ByDefinition(f, f.max_code);
      // The rounding step past the largest value decides what overflows; ties go to the even code.
      const double limit = max + step / 2;
      const bool over = magnitude > limit || (magnitude == limit && (f.max_code & 1));
      if (over && !n.saturate) {
        const float back = DecodeFloat(f, code);
        EXPECT_TRUE(f.inf_code ? std::isinf(back) : std::isnan(back)) << n.name << " " << x;
        continue;
      }
      const uint32_t m = code & (f.sign_bit() - 1);
      ASSERT_LE(m, f.max_code) << n.name << " " << x;
      if (m != 0 || !f.unsigned_zero) {
        EXPECT_EQ((code & f.sign_bit()) != 0, std::signbit(x)) << n.name << " " << x;
      }
      if (magnitude >= max) {
        EXPECT_EQ(m, f.max_code) << n.name << " " << x;
        continue;
      }
      const double error = std::fabs(ByDefinition(f, m) - magnitude);
      for (uint32_t other : {m - 1, m + 1}) {
        if (other > f.max_code) continue;
        const double other_error = std::fabs(ByDefinition(f, other) - magnitude);
        EXPECT_LE(error, other_error) << n.name << " " << x;
        EXPECT_TRUE(error != other_error || (m & 1) == 0) << n.name << " " << x;
      }
    }
    EXPECT_EQ(std::isnan(DecodeFloat(f, EncodeFloat(f, NAN, n.saturate))), f.nan_code != 0)
        << n.name;
  }
}

TEST(Convert, Float8SpecialValues) {
  EXPECT_EQ(DecodeFloat(DType::kF8E4M3FN, EncodeFloat(DType::kF8E4M3FN, 1e6f)), 448.0f);
  EXPECT_EQ(DecodeFloat(DType::kF8E4M3FN, EncodeFloat(DType::kF8E4M3FN, -INFINITY)), -448.0f);
  EXPECT_EQ(DecodeFloat(DType::kF8E5M2, EncodeFloat(DType::kF8E5M2, 1e9f)), 57344.0f);
  EXPECT_EQ(DecodeFloat(DType::kF8E5M2, EncodeFloat(DType::kF8E5M2, INFINITY)), INFINITY);
  EXPECT_EQ(DecodeFloat(DType::kF8E4M3FNUZ, EncodeFloat(DType::kF8E4M3FNUZ, 300.0f)), 240.0f);
  EXPECT_EQ(EncodeFloat(DType::kF8E4M3FNUZ, -0.0f), 0u);
  EXPECT_EQ(EncodeFloat(DType::kF8E5M2FNUZ, NAN), 0x80u);
}

TEST(Convert, BFloat16) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float v = BF16ToF32(static_cast<uint16_t>(code));
    const uint16_t back = F32ToBF16(v);
    if (std::isnan(v))
      EXPECT_TRUE(std::isnan(BF16ToF32(back)));
    else
      EXPECT_EQ(back, code);
  }
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie, to even
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(F32ToBF16(std::numeric_limits<float>::max()), 0x7f80);  // rounds to infinity
  EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Convert, E8M0) {
  for (uint32_t code = 0; code < 255; ++code) {
    const float v = E8M0ToF32(static_cast<uint8_t>(code));
    EXPECT_EQ(v, std::ldexp(1.0, static_cast<int>(code) - 127));
    for (E8M0Round r : {E8M0Round::kUp, E8M0Round::kDown, E8M0Round::kNearest}) {
      EXPECT_EQ(F32ToE8M0(v, r), code);
    }
  }
  EXPECT_TRUE(std::isnan(E8M0ToF32(255)));
  EXPECT_EQ(F32ToE8M0(NAN), 255);
  EXPECT_EQ(F32ToE8M0(3.0f), 129);  // up to 4
  EXPECT_EQ(F32ToE8M0(3.0f, E8M0Round::kDown), 128);
  EXPECT_EQ(F32ToE8M0(2.9f, E8M0Round::kNearest), 128);
  EXPECT_EQ(F32ToE8M0(3.0f, E8M0Round::kNearest), 129);
  EXPECT_EQ(F32ToE8M0(INFINITY), 254);
  EXPECT_EQ(F32ToE8M0(INFINITY, E8M0Round::kUp, false), 255);
}

TEST(Convert, PackedElements) {
  for (DType t : {DType::kU4, DType::kI4, DType::kU2, DType::kI2}) {
    const int bits = t == DType::kU4 || t == DType::kI4 ? 4 : 2;
    const int n = 1 << bits;
    const bool is_signed = t == DType::kI4 || t == DType::kI2;
    std::vector<uint8_t> bytes(static_cast<size_t>(n * bits / 8), 0xff);
    for (int i = 0; i < n; ++i) StoreElement(t, bytes.data(), i, is_signed ? i - n / 2 : i);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(LoadElement<int>(t, bytes.data(), i), is_signed ? i - n / 2 : i);
    }
  }
  uint8_t two[1] = {};
  StoreElement(DType::kU4, two, 0, 0x3);
  StoreElement(DType::kU4, two, 1, 0x1a);  // wraps to 0xa
  EXPECT_EQ(two[0], 0xa3);
}

}  // namespace
}  // namespace ge
