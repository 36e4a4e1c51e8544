// Loads and stores of every storage type: ld widens to the compute type, st rounds, nar does both.
//
// Byte-sized types: dec and enc between raw bits and compute values, the rest follows from them.
// Sub-byte types are read and written one element at a time; a write replaces its byte atomically,
// because two workers may own neighbouring elements.
#include <fmt/format.h>

#include "abi/convert.h"
#include "emit/prelude.h"

namespace ge::emit {

namespace {

constexpr const char* kCodecs = R"(
FN $i32 $_dec_u8($u8 r) { return $_wide(r); }
FN $u8 $_enc_u8($i32 x) { return $_cvt(x, u8); }
FN $i32 $_dec_i8($u8 r) { return $_wide(($i8)r); }
FN $u8 $_enc_i8($i32 x) { return $_cvt(x, u8); }
FN $i32 $_dec_u16($u16 r) { return $_wide(r); }
FN $u16 $_enc_u16($i32 x) { return $_cvt(x, u16); }
FN $i32 $_dec_i16($u16 r) { return $_wide(($i16)r); }
FN $u16 $_enc_i16($i32 x) { return $_cvt(x, u16); }
FN $i32 $_dec_i32($u32 r) { return ($i32)r; }
FN $u32 $_enc_i32($i32 x) { return ($u32)x; }
FN $i64 $_dec_u32($u32 r) { return $_cvt(r, i64); }
FN $u32 $_enc_u32($i64 x) { return $_cvt(x, u32); }
FN $i64 $_dec_i64($u64 r) { return ($i64)r; }
FN $u64 $_enc_i64($i64 x) { return ($u64)x; }
FN $u64 $_dec_u64($u64 r) { return r; }
FN $u64 $_enc_u64($u64 x) { return x; }
FN $f32 $_dec_f32($u32 r) { return $_as_f32(r); }
FN $u32 $_enc_f32($f32 x) { return $_as_u32(x); }
FN $f64 $_dec_f64($u64 r) { return $_as_f64(r); }
FN $u64 $_enc_f64($f64 x) { return $_as_u64(x); }
FN $bool $_dec_bool($u8 r) { return $_cmp4($_wide(r) != 0); }
FN $u8 $_enc_bool($bool m) { return $_cvt(m & 1, u8); }
FN $f32 $_dec_f16($u16 r) { return $_half(r); }
FN $u16 $_enc_f16($f32 x) { return $_unhalf($_sel_f32($_cmp4(x != x), $_as_f32($_as_i32(x) & (si32)0xffc00000), x)); }
FN $f32 $_dec_bf16($u16 r) { return $_as_f32($_as_u32($_wide(r)) << 16); }
#ifndef BF16_OF
FN $u16 $_enc_bf16($f32 x) {
  $u32 u = $_as_u32(x);
  $i32 nan = $_cmp4($_as_i32(u & 0x7fffffffu) > 0x7f800000);
  $u32 r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return $_cvt((($u32)nan & ((u >> 16) | 0x40u)) | (~($u32)nan & r), u16);
}
#endif
)";

constexpr const char* kAccess = R"(
FN $@C $_ld_@D(const void* p, si64 i) { return $_dec_@D($_ld@B((const char*)p + i * @B)); }
FN void $_st_@D(void* p, si64 i, $@C x) { $_st@B((char*)p + i * @B, $_enc_@D(x)); }
FN $@C $_nar_@D($@C x) { return $_dec_@D($_enc_@D(x)); }
)";
constexpr const char* kTailAccess = R"(
FN v@C v_ldn_@D(const void* p, si64 i, si64 n) { return v_dec_@D(v_ld@Bn((const char*)p + i * @B, n)); }
FN void v_stn_@D(void* p, si64 i, v@C x, si64 n) { v_st@Bn((char*)p + i * @B, v_enc_@D(x), n); }
)";

// Of types of at most four bytes: every @S-th element; and where the chip has masks, the first n of
// them, and those lanes of a vector for which m is true.
constexpr const char* kStrided = R"(
FN v@C v_lds@S_@D(const void* p, si64 i) { return v_dec_@D(v_ld@Bs@S((const char*)p + i * @B)); }
#ifdef MASK_OF
FN v@C v_ldns@S_@D(const void* p, si64 i, si64 n) { return v_dec_@D(v_ld@Bns@S((const char*)p + i * @B, n)); }
#endif
)";
constexpr const char* kMasked = R"(
#ifdef MASK_OF
FN v@C v_ldm_@D(const void* p, si64 i, vbool m) { return v_dec_@D(v_ld@Bk((const char*)p + i * @B, MASK_OF(m))); }
#endif
)";
// The first n elements at i + x[l].
constexpr const char* kGathered = R"(
#ifdef MASK_OF
FN v@C v_gat_@D(const void* p, si64 i, vi32 x, si64 n) { return v_dec_@D(v_gather4((const char*)p + i * 4, x, MASK(n))); }
FN v@C v_near_@D(const void* p, si64 i, vi32 x, si64 n) { return v_dec_@D(v_near4((const char*)p + i * 4, x, MASK(n))); }
#endif
)";

constexpr const char* kSaturate = R"(
// i32 to bytes, with saturation.
#ifdef SAT_U8
FN vu8 v_sat_u8(vi32 x) { return (vu8)SAT_U8(v_max_i32(x, (vi32){})); }
FN vu8 v_sat_i8(vi32 x) { return (vu8)SAT_I8(x); }
#else
FN vu8 v_sat_u8(vi32 x) { return v_cvt(v_min_i32(v_max_i32(x, (vi32){}), v_bc_i32(255)), u8); }
FN vu8 v_sat_i8(vi32 x) { return v_cvt(v_min_i32(v_max_i32(x, v_bc_i32(-128)), v_bc_i32(127)), u8); }
#endif
)";

// Formats of a few bits: sign, exponent, mantissa. The numbers are those of abi/convert.h.
constexpr const char* kSmallFloat = R"(
typedef struct { int m, bias; su32 sign, max, inf, nan, fnuz; } small_float;
FN su32 enc_small(small_float f, sf32 v) {
  su32 bits = s_as_u32(v), mag = bits & 0x7fffffffu, sign = bits >> 31 ? f.sign : 0;
  if (mag > 0x7f800000u) return f.nan == 0 ? f.max : f.fnuz ? f.nan : (sign | f.nan);
  if (mag == 0x7f800000u) return sign | (f.inf != 0 ? f.inf : f.max);
  int e = (int)(mag >> 23) - 127 + f.bias, shift = 23 - f.m;
  su64 sig = (mag & 0x7fffffu) | 0x800000u;
  if (e >= 1) sig = (su64)e << 23 | (mag & 0x7fffffu);
  else { shift += 1 - e; if (shift > 25) shift = 25; }
  su64 code = sig >> shift, rest = sig & ((1ul << shift) - 1), half = 1ul << (shift - 1);
  code += (rest > half) | ((rest == half) & (code & 1));
  if (code > f.max) code = f.max;
  return code == 0 && f.fnuz ? 0 : (sign | (su32)code);
}
FN sf32 dec_small(small_float f, su32 code) {
  su32 mag = code & (f.sign - 1), high = code & f.sign ? 0x80000000u : 0;
  if (f.fnuz && code == f.nan) return pun_f32_u32(0x7fc00000u);
  if (mag > f.max) {
    if (f.inf != 0 && mag == f.inf) return pun_f32_u32(high | 0x7f800000u);
    return pun_f32_u32(high | 0x7fc00000u | ((mag << (23 - f.m)) & 0x7fffffu));
  }
  int e = (int)(mag >> f.m);
  su32 man = mag & ((1u << f.m) - 1);
  if (e == 0) {
    if (man == 0) return pun_f32_u32(high);
    for (e = 1; !(man >> f.m); e--) man <<= 1;
    man &= (1u << f.m) - 1;
  }
  return pun_f32_u32(high | (su32)(e - f.bias + 127) << 23 | man << (23 - f.m));
}
FN su32 enc_f8e8m0_code(sf32 v) {
  su32 mag = s_as_u32(v) & 0x7fffffffu;
  if (mag > 0x7f800000u) return 255;
  if (mag == 0x7f800000u) return 254;
  su32 code = mag >> 23;
  code += (mag & 0x7fffffu) > (code == 0 ? 0x400000u : 0u);
  return code > 254 ? 254 : code;
}
FN sf32 dec_f8e8m0_code(su32 c) {
  return pun_f32_u32(c == 255 ? 0x7fc00000u : c == 0 ? 0x400000u : c << 23);
}
FN su32 ld_bits(const void* p, si64 i, int bits) {
  return (((const su8*)p)[i * bits / 8] >> (i * bits % 8)) & ((1u << bits) - 1);
}
FN void st_bits(void* p, si64 i, int bits, su32 code) {
  su8* at = (su8*)p + i * bits / 8;
  int shift = (int)(i * bits % 8);
  su8 mask = (su8)(((1u << bits) - 1) << shift), old = __atomic_load_n(at, __ATOMIC_RELAXED), now;
  do now = (su8)((old & ~mask) | ((code << shift) & mask));
  while (!__atomic_compare_exchange_n(at, &old, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
)";

// One lane at a time: types whose scalar functions are all there is. `@V` is the scalar expression.
constexpr const char* kByLanes = R"(
FN v@C v_ld_@D(const void* p, si64 i) { v@C r; LANES r[l] = s_ld_@D(p, i + l); return r; }
FN v@C v_ldn_@D(const void* p, si64 i, si64 n) { v@C r = {}; for (int l = 0; l < n; l++) r[l] = s_ld_@D(p, i + l); return r; }
FN void v_st_@D(void* p, si64 i, v@C x) { LANES s_st_@D(p, i + l, x[l]); }
FN void v_stn_@D(void* p, si64 i, v@C x, si64 n) { for (int l = 0; l < n; l++) s_st_@D(p, i + l, x[l]); }
FN v@C v_nar_@D(v@C x) { v@C r; LANES r[l] = s_nar_@D(x[l]); return r; }
)";

std::string Fill(std::string text, DType t, int bytes) {
  auto replace = [&](std::string_view what, std::string_view by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
      text.replace(at, what.size(), by);
    }
  };
  replace("@C", Name(ComputeType(t)));
  replace("@D", Name(t));
  replace("@B", std::to_string(bytes));
  return text;
}

std::string SmallFloat(DType t, const FloatFormat& f) {
  std::string d(Name(t));
  std::string format =
      fmt::format("((small_float){{{}, {}, {}u, {}u, {}u, {}u, {}}})", f.mantissa_bits, f.bias,
                  f.sign_bit(), f.max_code, f.inf_code, f.nan_code, f.unsigned_zero ? 1 : 0);
  return fmt::format(
      "FN su32 enc_{0}_code(sf32 x) {{ return enc_small({1}, x); }}\n"
      "FN sf32 dec_{0}_code(su32 c) {{ return dec_small({1}, c); }}\n",
      d, format);
}

// ld, st and nar of a scalar from its code functions; bits is 8, 4 or 2.
std::string ScalarOfCode(DType t) {
  std::string_view d = Name(t), c = Name(ComputeType(t));
  int bits = BitWidth(t);
  return fmt::format(
      "FN s{1} s_ld_{0}(const void* p, si64 i) {{ return dec_{0}_code({2}); }}\n"
      "FN void s_st_{0}(void* p, si64 i, s{1} x) {{ {3}; }}\n"
      "FN s{1} s_nar_{0}(s{1} x) {{ return dec_{0}_code(enc_{0}_code(x)); }}\n",
      d, c, bits == 8 ? "((const su8*)p)[i]" : fmt::format("ld_bits(p, i, {})", bits),
      bits == 8 ? fmt::format("((su8*)p)[i] = (su8)enc_{}_code(x)", d)
                : fmt::format("st_bits(p, i, {}, enc_{}_code(x))", bits, d));
}

std::string PackedInteger(DType t) {
  int bits = BitWidth(t);
  std::string sign =
      IsSigned(t) ? fmt::format("(si32)(c ^ {0}u) - {0}", 1 << (bits - 1)) : "(si32)c";
  return fmt::format(
      "FN su32 enc_{0}_code(si32 x) {{ return (su32)x & {1}u; }}\n"
      "FN si32 dec_{0}_code(su32 c) {{ return {2}; }}\n",
      Name(t), (1 << bits) - 1, sign);
}

}  // namespace

std::string PreludeStorage() {
  std::string text = kCodecs;
  for (DType t :
       {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32, DType::kU32, DType::kI64,
        DType::kU64, DType::kF32, DType::kF64, DType::kBool, DType::kF16, DType::kBF16}) {
    text += Fill(kAccess, t, BitWidth(t) / 8);
  }
  return text;
}

std::string PreludeStorageOnce() {
  std::string text = std::string(kSaturate) + kSmallFloat;
  for (DType t :
       {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32, DType::kU32, DType::kI64,
        DType::kU64, DType::kF32, DType::kF64, DType::kBool, DType::kF16, DType::kBF16}) {
    text += Fill(std::string(kTailAccess) + kMasked, t, BitWidth(t) / 8);
    if (BitWidth(t) == 32) text += Fill(kGathered, t, 4);
    for (int step = 2; step <= kMostStep && BitWidth(t) <= 32; ++step) {
      std::string strided = kStrided;
      for (size_t at = 0; (at = strided.find("@S", at)) != std::string::npos;)
        strided.replace(at, 2, std::to_string(step));
      text += Fill(strided, t, BitWidth(t) / 8);
    }
  }
  text += SmallFloat(DType::kF8E4M3FN, kF8E4M3FNFormat);
  text += SmallFloat(DType::kF8E4M3FNUZ, kF8E4M3FNUZFormat);
  text += SmallFloat(DType::kF8E5M2, kF8E5M2Format);
  text += SmallFloat(DType::kF8E5M2FNUZ, kF8E5M2FNUZFormat);
  text += SmallFloat(DType::kF4E2M1, kF4E2M1Format);
  for (DType t : {DType::kU4, DType::kI4, DType::kU2, DType::kI2}) text += PackedInteger(t);
  for (DType t : {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
                  DType::kF8E8M0, DType::kF4E2M1, DType::kU4, DType::kI4, DType::kU2, DType::kI2}) {
    text += ScalarOfCode(t);
    text += Fill(kByLanes, t, 1);
  }
  return text;
}

}  // namespace ge::emit
