// Selects, casts and simple operations of every compute type: the meaning is that of tile/scalar.h.
//
// Integer division has no vector instruction and goes through f64, or lane by lane where numbers
// are larger than f64 holds exactly; rare mathematics goes through the ABI's math table, in double,
// lane by lane.
#include <fmt/format.h>

#include "emit/prelude.h"

namespace ge::emit {

namespace {

constexpr const char* kSelects = R"(
FN $i32 $_sel_i32($bool m, $i32 a, $i32 b) { return (a & m) | (b & ~m); }
FN $bool $_sel_bool($bool m, $bool a, $bool b) { return (a & m) | (b & ~m); }
FN $f32 $_sel_f32($bool m, $f32 a, $f32 b) { return $_as_f32(($_as_i32(a) & m) | ($_as_i32(b) & ~m)); }
FN $i64 $_sel_i64($bool m, $i64 a, $i64 b) { $i64 w = $_cvt(m, i64); return (a & w) | (b & ~w); }
FN $u64 $_sel_u64($bool m, $u64 a, $u64 b) { $u64 w = ($u64)$_cvt(m, i64); return (a & w) | (b & ~w); }
FN $f64 $_sel_f64($bool m, $f64 a, $f64 b) { $i64 w = $_cvt(m, i64); return $_as_f64(($_as_i64(a) & w) | ($_as_i64(b) & ~w)); }
)";

constexpr const char* kFloat32 = R"(
FN $f32 $_abs_f32($f32 x) { return $_as_f32($_as_i32(x) & 0x7fffffff); }
FN $f32 $_neg_f32($f32 x) { return $_as_f32($_as_i32(x) ^ (si32)0x80000000); }
FN $f32 $_copysign_f32($f32 x, $f32 s) { return $_as_f32(($_as_i32(x) & 0x7fffffff) | ($_as_i32(s) & (si32)0x80000000)); }
FN $f32 $_sign_f32($f32 x) { return $_sel_f32($_cmp4(x > 0.0f), $_bc_f32(1.0f), $_sel_f32($_cmp4(x < 0.0f), $_bc_f32(-1.0f), x)); }
FN $f32 $_min_f32($f32 a, $f32 b) { return $_sel_f32($_cmp4(a != a), a, $_pickmin_f32(a, b)); }
FN $f32 $_max_f32($f32 a, $f32 b) { return $_sel_f32($_cmp4(a != a), a, $_pickmax_f32(a, b)); }
FN $bool $_isnan_f32($f32 x) { return $_cmp4(x != x); }
FN $bool $_isinf_f32($f32 x) { return $_cmp4(($_as_i32(x) & 0x7fffffff) == 0x7f800000); }
)";
constexpr const char* kFloat64 = R"(
FN $f64 $_abs_f64($f64 x) { return $_as_f64($_as_i64(x) & 0x7fffffffffffffffL); }
FN $f64 $_neg_f64($f64 x) { return $_as_f64($_as_i64(x) ^ (si64)0x8000000000000000L); }
FN $f64 $_sign_f64($f64 x) { return $_sel_f64($_cmp8(x > 0.0), $_bc_f64(1.0), $_sel_f64($_cmp8(x < 0.0), $_bc_f64(-1.0), x)); }
FN $f64 $_min_f64($f64 a, $f64 b) { return $_sel_f64($_cmp8(a < b) | $_cmp8(a != a), a, b); }
FN $f64 $_max_f64($f64 a, $f64 b) { return $_sel_f64($_cmp8(a > b) | $_cmp8(a != a), a, b); }
FN $bool $_isnan_f64($f64 x) { return $_cmp8(x != x); }
FN $bool $_isinf_f64($f64 x) { return $_cmp8(($_as_i64(x) & 0x7fffffffffffffffL) == 0x7ff0000000000000L); }
)";
// Without these gcc makes compares and blends of what is one instruction. b is returned if
// unordered.
constexpr const char* kPick = R"(
FN sf32 s_pickmin_f32(sf32 a, sf32 b) { return a < b ? a : b; }
FN sf32 s_pickmax_f32(sf32 a, sf32 b) { return a > b ? a : b; }
FN vf32 v_pickmin_f32(vf32 a, vf32 b) { return MIN_PS(a, b); }
FN vf32 v_pickmax_f32(vf32 a, vf32 b) { return MAX_PS(a, b); }
)";

// @T: i32, i64 or u64; @U its unsigned type; @B bits; @K 4 or 8 (which compare).
constexpr const char* kInteger = R"(
FN $@T $_min_@T($@T a, $@T b) { return $_sel_@T($_cmp@K(a < b), a, b); }
FN $@T $_max_@T($@T a, $@T b) { return $_sel_@T($_cmp@K(a > b), a, b); }
FN $@T $_shl_@T($@T a, $@T b) { $bool m = $_cmp@K(($@U)b < @Bu); return $_sel_@T(m, a << (b & (@B - 1)), $_bc_@T(0)); }
)";
constexpr const char* kSigned = R"(
FN $@T $_abs_@T($@T a) { return $_sel_@T($_cmp@K(a < 0), -a, a); }
FN $@T $_sign_@T($@T a) { return $_sel_@T($_cmp@K(a > 0), $_bc_@T(1), $_sel_@T($_cmp@K(a < 0), $_bc_@T(-1), a)); }
FN $@T $_shr_@T($@T a, $@T b) { $bool m = $_cmp@K(($@U)b < @Bu); return a >> $_sel_@T(m, b & (@B - 1), $_bc_@T(@B - 1)); }
)";
constexpr const char* kUnsigned = R"(
FN $@T $_abs_@T($@T a) { return a; }
FN $@T $_sign_@T($@T a) { return $_sel_@T($_cmp@K(a > 0), $_bc_@T(1), a); }
FN $@T $_shr_@T($@T a, $@T b) { $bool m = $_cmp@K(b < @Bu); return $_sel_@T(m, a >> (b & (@B - 1)), $_bc_@T(0)); }
)";
constexpr const char* kScalarDivision = R"(
FN s@T s_div_@T(s@T a, s@T b) { return b == 0 ? 0 : @N ? -a : a / b; }
FN s@T s_fmod_@T(s@T a, s@T b) { return b == 0 || @N ? 0 : a % b; }
FN s@T s_floormod_@T(s@T a, s@T b) { s@T r = s_fmod_@T(a, b); return r != 0 && @D ? r + b : r; }
FN s@T s_pow_@T(s@T a, s@T b) {
  if (@M) return a == 1 ? 1 : a == (s@T)-1 ? ((b & 1) ? a : 1) : 0;
  s@T r = 1;
  for (s@U e = (s@U)b; e != 0; e >>= 1, a *= a) if (e & 1) r *= a;
  return r;
}
LANE2(pow, @T)
)";

// The quotient of whole numbers below 2^53 is never rounded up to the next whole number.
constexpr const char* kDivision = R"(
LANE2(div, u64) LANE2(fmod, u64) LANE2(floormod, u64)
FN vi64 v_lanediv_i64(vi64 a, vi64 b) { vi64 r; LANES r[l] = s_div_i64(a[l], b[l]); return r; }
FN vi32 v_div_i32(vi32 a, vi32 b) {
  vbool zero = v_cmp4(b == 0), one = v_cmp4(b == -1);
  vi32 q = v_cvt(v_cvt(a, f64) / v_cvt(v_sel_i32(zero | one, v_bc_i32(1), b), f64), i32);
  return v_sel_i32(one, -a, q & ~zero);
}
FN vi64 v_div_i64(vi64 a, vi64 b) {
  const su64 most = 1ul << 53;
  if (v_any(v_cmp8(((vu64)a + most > 2 * most) | ((vu64)b + most > 2 * most)))) return v_lanediv_i64(a, b);
  vbool zero = v_cmp8(b == 0);
  vi64 q = v_cvt(v_cvt(a, f64) / v_cvt(v_sel_i64(zero, v_bc_i64(1), b), f64), i64);
  return v_sel_i64(zero, v_bc_i64(0), q);
}
)";
constexpr const char* kRemainder = R"(
FN v@T v_fmod_@T(v@T a, v@T b) { return v_sel_@T(v_cmp@K(b == 0), v_bc_@T(0), a - v_div_@T(a, b) * b); }
FN v@T v_floormod_@T(v@T a, v@T b) {
  v@T r = v_fmod_@T(a, b);
  return v_sel_@T(v_cmp@K(r != 0) & v_cmp@K((r ^ b) < 0), r + b, r);
}
)";

constexpr const char* kTables = R"(
#define LANE2(op, T) FN v##T v_##op##_##T(v##T a, v##T b) { v##T r; LANES r[l] = s_##op##_##T(a[l], b[l]); return r; }
#define TAB1(op, id, T) FN s##T s_##op##_##T(const ge_math_table* M, s##T x) { return (s##T)M->f1[id]((double)x); } \
  FN v##T v_##op##_##T(const ge_math_table* M, v##T x) { v##T r = x; LANES r[l] = s_##op##_##T(M, x[l]); return r; }
#define TAB2(op, id, T) FN s##T s_##op##_##T(const ge_math_table* M, s##T a, s##T b) { return (s##T)M->f2[id]((double)a, (double)b); } \
  FN v##T v_##op##_##T(const ge_math_table* M, v##T a, v##T b) { v##T r = a; LANES r[l] = s_##op##_##T(M, a[l], b[l]); return r; }
TAB1(exp, 0, f64) TAB1(log, 1, f64) TAB1(sin, 2, f64) TAB1(cos, 3, f64) TAB1(tanh, 10, f64) TAB1(erf, 14, f64)
TAB1(expm1, 16, f64) TAB1(log1p, 17, f64) TAB1(slowsin, 2, f32) TAB1(slowcos, 3, f32) TAB1(slowtan, 4, f32)
TAB1(tan, 4, f64) TAB1(asin, 5, f64) TAB1(acos, 6, f64) TAB1(atan, 7, f64) TAB1(sinh, 8, f64) TAB1(cosh, 9, f64)
TAB1(asinh, 11, f64) TAB1(acosh, 12, f64) TAB1(atanh, 13, f64) TAB1(lgamma, 15, f32) TAB1(lgamma, 15, f64)
TAB2(pow, 0, f64) TAB2(slowfmod, 1, f32) TAB2(fmod, 1, f64) TAB2(atan2, 2, f32) TAB2(atan2, 2, f64)
#define FLOORMOD(T) FN s##T s_floormod_##T(const ge_math_table* M, s##T a, s##T b) { \
  s##T r = s_fmod_##T(M, a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; } \
  FN v##T v_floormod_##T(const ge_math_table* M, v##T a, v##T b) { v##T r = a; LANES r[l] = s_floormod_##T(M, a[l], b[l]); return r; }
FLOORMOD(f64)
FN sf64 s_gelu_f64(const ge_math_table* M, sf64 x) { return x * (s_erf_f64(M, x * 0.70710678118654752) * 0.5 + 0.5); }
FN vf64 v_gelu_f64(const ge_math_table* M, vf64 x) { vf64 r = x; LANES r[l] = s_gelu_f64(M, x[l]); return r; }
)";

// Float to integer saturates, NaN gives 0. The bounds are powers of two, exact in both float types.
std::string CastFloatToInt(std::string_view from, std::string_view to) {
  const char* k = from == "f32" ? "4" : "8";
  const char* end = to == "i32"   ? "2147483648.0"
                    : to == "i64" ? "9223372036854775808.0"
                                  : "18446744073709551616.0";
  std::string low = to == "u64" ? "0.0" : std::string("-") + end;
  const char* max = to == "i32"   ? "0x7fffffff"
                    : to == "i64" ? "0x7fffffffffffffffL"
                                  : "0xffffffffffffffffUL";
  const char* min = to == "i32"   ? "(si32)0x80000000"
                    : to == "i64" ? "(si64)0x8000000000000000L"
                                  : "0";
  std::string f = from == "f32" ? "f" : "";
  return fmt::format(
      "FN ${1} $_cast_{0}_{1}(${0} x) {{\n"
      "  $bool hi = $_cmp{2}(x >= {3}{7}), lo = $_cmp{2}(x <= {4}{7}), bad = hi | lo | $_cmp{2}(x "
      "!= x);\n"
      "  ${1} r = $_cvt($_sel_{0}(bad, $_bc_{0}(0.0{7}), x), {1});\n"
      "  return $_sel_{1}(hi, $_bc_{1}({5}), $_sel_{1}(lo, $_bc_{1}({6}), r));\n}}\n",
      from, to, k, end, low, max, min, f);
}

std::string Casts() {
  std::string text;
  const char* types[] = {"f32", "f64", "i32", "i64", "u64"};
  for (std::string_view from : types) {
    const char* k = from == "f32" || from == "i32" ? "4" : "8";
    for (std::string_view to : types) {
      if (from == to) continue;
      if (from[0] == 'f' && to[0] != 'f') {
        text += CastFloatToInt(from, to);
      } else {
        text +=
            fmt::format("FN ${1} $_cast_{0}_{1}(${0} x) {{ return $_cvt(x, {1}); }}\n", from, to);
      }
    }
    text +=
        fmt::format("FN $bool $_cast_{0}_bool(${0} x) {{ return $_cmp{1}(x != 0); }}\n", from, k);
    text += fmt::format("FN ${0} $_cast_bool_{0}($bool m) {{ return $_cvt(m & 1, {0}); }}\n", from);
  }
  return text;
}

std::string Fill(std::string text, std::string_view type) {
  const bool is64 = type != "i32", is_unsigned = type == "u64";
  auto replace = [&](std::string_view what, std::string_view by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
      text.replace(at, what.size(), by);
    }
  };
  replace("@T", type);
  replace("@U", is64 ? "u64" : "u32");
  replace("@B", is64 ? "64" : "32");
  replace("@K", is64 ? "8" : "4");
  replace("@N", is_unsigned ? "0" : "b == -1");             // divisor that may overflow
  replace("@D", is_unsigned ? "0" : "(r < 0) != (b < 0)");  // signs differ
  replace("@M", is_unsigned ? "0" : "b < 0");
  return text;
}

}  // namespace

std::string PreludeOps() {
  std::string text = std::string(kSelects) + kFloat32 + kFloat64;
  for (const char* t : {"i32", "i64", "u64"}) text += Fill(kInteger, t);
  for (const char* t : {"i32", "i64"}) text += Fill(kSigned, t);
  text += Fill(kUnsigned, "u64");
  return text + Casts();
}

std::string PreludeDivision() {
  return kDivision + Fill(kRemainder, "i32") + Fill(kRemainder, "i64");
}

std::string PreludeOpsOnce() {
  std::string text = std::string(kPick) + kTables;
  for (const char* t : {"i32", "i64", "u64"}) text += Fill(kScalarDivision, t);
  return text;
}

}  // namespace ge::emit
