// Types of generated code, and what depends on the instruction set: fused multiply-add, rounding,
// masked access. Everything else of the prelude is written once for vectors and scalars.
#include "emit/prelude.h"

namespace ge::emit {

namespace {

constexpr const char* kScalarTypes = R"(
#define FN static inline __attribute__((always_inline, unused))
typedef float sf32; typedef double sf64; typedef int si32; typedef long si64; typedef unsigned long su64;
typedef int sbool; typedef unsigned su32; typedef unsigned char su8; typedef signed char si8;
typedef unsigned short su16; typedef short si16;
#define VT(e, b) typedef s##e v##e __attribute__((vector_size((b) * W))); \
  typedef s##e v##e##_m __attribute__((vector_size((b) * W), aligned(1), may_alias));
VT(f32, 4) VT(f64, 8) VT(i32, 4) VT(i64, 8) VT(u64, 8) VT(u32, 4) VT(u8, 1) VT(i8, 1) VT(u16, 2) VT(i16, 2)
typedef vi32 vbool;
typedef sf32 sf32_m __attribute__((aligned(1), may_alias));
typedef sf64 sf64_m __attribute__((aligned(1), may_alias));
typedef sf64 half64 __attribute__((vector_size(4 * W), aligned(1), may_alias));
typedef su8 su8_m; typedef su16 su16_m __attribute__((aligned(1), may_alias));
typedef su32 su32_m __attribute__((aligned(1), may_alias)); typedef su64 su64_m __attribute__((aligned(1), may_alias));
typedef struct { unsigned count1, count2; double (*f1[19])(double); double (*f2[3])(double, double); } ge_math_table;
typedef struct { void* const* buffers; const si64* sizes; void* scratch; const ge_math_table* math; const void* self; } ge_kernel_call;
#define v_cmp4(e) ((vbool)(e))
#define v_cmp8(e) __builtin_convertvector((e), vi32)
#define s_cmp4(e) (-(int)(e))
#define s_cmp8(e) (-(int)(e))
#define v_cvt(x, T) __builtin_convertvector((x), v##T)
#define s_cvt(x, T) ((s##T)(x))
#define v_as_f32(x) ((vf32)(x))
#define v_as_i32(x) ((vi32)(x))
#define v_as_u32(x) ((vu32)(x))
#define v_as_f64(x) ((vf64)(x))
#define v_as_i64(x) ((vi64)(x))
#define v_as_u64(x) ((vu64)(x))
#define PUN(T, F) FN s##T pun_##T##_##F(s##F x) { union { s##F a; s##T b; } u; u.a = x; return u.b; }
PUN(f32, u32) PUN(u32, f32) PUN(f64, u64) PUN(u64, f64)
#define s_as_f32(x) _Generic((x), float: (x), default: pun_f32_u32((su32)(x)))
#define s_as_i32(x) ((si32)s_as_u32(x))
#define s_as_u32(x) _Generic((x), float: pun_u32_f32(x), default: (su32)(x))
#define s_as_f64(x) _Generic((x), double: (x), default: pun_f64_u64((su64)(x)))
#define s_as_i64(x) ((si64)s_as_u64(x))
#define s_as_u64(x) _Generic((x), double: pun_u64_f64(x), default: (su64)(x))
#define LANES for (int l = 0; l < W; l++)
#define s_bc_f32(x) (x)
#define s_bc_f64(x) (x)
#define s_bc_i32(x) (x)
#define s_bc_i64(x) (x)
#define s_bc_u64(x) (x)
#define s_bc_bool(x) (x)
#define BC(e) FN v##e v_bc_##e(s##e x) { return (v##e){SPLAT(x)}; }
BC(f32) BC(f64) BC(i32) BC(i64) BC(u64) BC(u32) BC(u8) BC(u16)
#define v_bc_bool v_bc_i32
FN su8 s_ld1(const void* p) { return *(const su8*)p; }
FN su16 s_ld2(const void* p) { return *(const su16_m*)p; }
FN su32 s_ld4(const void* p) { return *(const su32_m*)p; }
FN su64 s_ld8(const void* p) { return *(const su64_m*)p; }
FN void s_st1(void* p, su8 x) { *(su8*)p = x; }
FN void s_st2(void* p, su16 x) { *(su16_m*)p = x; }
FN void s_st4(void* p, su32 x) { *(su32_m*)p = x; }
FN void s_st8(void* p, su64 x) { *(su64_m*)p = x; }
FN vu8 v_ld1(const void* p) { return *(const vu8_m*)p; }
FN vu16 v_ld2(const void* p) { return *(const vu16_m*)p; }
FN vu32 v_ld4(const void* p) { return *(const vu32_m*)p; }
FN vu64 v_ld8(const void* p) { return *(const vu64_m*)p; }
FN void v_st1(void* p, vu8 x) { *(vu8_m*)p = x; }
FN void v_st2(void* p, vu16 x) { *(vu16_m*)p = x; }
FN void v_st4(void* p, vu32 x) { *(vu32_m*)p = x; }
FN void v_st8(void* p, vu64 x) { *(vu64_m*)p = x; }
FN si64 ge_min(si64 a, si64 b) { return a < b ? a : b; }
FN si64 ge_max(si64 a, si64 b) { return a > b ? a : b; }
FN si64 ge_fdiv(si64 a, si64 b) { if (b == 0) return 0; si64 q = a / b; return q - ((a % b != 0) & ((a < 0) != (b < 0))); }
FN si64 ge_mod(si64 a, si64 b) { if (b == 0) return 0; si64 r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
FN sf32 s_fma(sf32 a, sf32 b, sf32 c) { return __builtin_fmaf(a, b, c); }
FN sf64 s_fma64(sf64 a, sf64 b, sf64 c) { return __builtin_fma(a, b, c); }
FN sf32 s_sqrt_f32(sf32 x) { return __builtin_sqrtf(x); }
FN sf64 s_sqrt_f64(sf64 x) { return __builtin_sqrt(x); }
#define RND(N) FN sf32 s_##N##_f32(sf32 x) { return __builtin_##N##f(x); } FN sf64 s_##N##_f64(sf64 x) { return __builtin_##N(x); }
RND(floor) RND(ceil) RND(trunc)
FN sf32 s_round_f32(sf32 x) { return __builtin_rintf(x); }
FN sf64 s_round_f64(sf64 x) { return __builtin_rint(x); }
#define s_any(m) (m)
)";

// clang has element-wise builtins for every vector; gcc 12 gets the instruction's builtin for f32
// and lanes for f64.
constexpr const char* kVectorMath = R"(
#ifdef __clang__
FN vf32 v_fma(vf32 a, vf32 b, vf32 c) { return __builtin_elementwise_fma(a, b, c); }
FN vf64 v_fma64(vf64 a, vf64 b, vf64 c) { return __builtin_elementwise_fma(a, b, c); }
FN vf32 v_sqrt_f32(vf32 x) { return __builtin_elementwise_sqrt(x); }
FN vf64 v_sqrt_f64(vf64 x) { return __builtin_elementwise_sqrt(x); }
#define VRND(N, B) FN vf32 v_##N##_f32(vf32 x) { return __builtin_elementwise_##B(x); } \
  FN vf64 v_##N##_f64(vf64 x) { return __builtin_elementwise_##B(x); }
VRND(floor, floor) VRND(ceil, ceil) VRND(trunc, trunc) VRND(round, roundeven)
#ifdef MASK_OF
#define v_any(m) (MASK_OF(m) != 0)
#else
#define v_any(m) __builtin_reduce_or(m)
#endif
#else
FN vf64 v_fma64(vf64 a, vf64 b, vf64 c) { vf64 r; LANES r[l] = s_fma64(a[l], b[l], c[l]); return r; }
FN vf64 v_sqrt_f64(vf64 x) { vf64 r; LANES r[l] = s_sqrt_f64(x[l]); return r; }
#define VRND(N, I) FN vf32 v_##N##_f32(vf32 x) { return ROUND_PS(x, I); } \
  FN vf64 v_##N##_f64(vf64 x) { vf64 r; LANES r[l] = s_##N##_f64(x[l]); return r; }
VRND(floor, 9) VRND(ceil, 10) VRND(trunc, 11) VRND(round, 8)
#ifdef MASK_OF
#define v_any(m) (MASK_OF(m) != 0)
#else
FN int v_any(vbool m) { int r = 0; LANES r |= m[l]; return r; }
#endif
FN vf32 v_fma(vf32 a, vf32 b, vf32 c) { return FMA_PS(a, b, c); }
FN vf32 v_sqrt_f32(vf32 x) { return SQRT_PS(x); }
#endif
// Small integers to i32. gcc 12 loads bytes one by one if it is told to convert a vector of them.
#if defined(__clang__) || !defined(__x86_64__)
#define v_wide(x) v_cvt(x, i32)
#else
#define WIDE(T, text) FN vi32 wide_##T(v##T x) { vi32 r; __asm__(text " %1, %0" : "=" VR(r) : VR(x)); return r; }
WIDE(u8, "vpmovzxbd") WIDE(i8, "vpmovsxbd") WIDE(u16, "vpmovzxwd") WIDE(i16, "vpmovsxwd")
#define v_wide(x) _Generic((x), vu8: wide_u8, vi8: wide_i8, vu16: wide_u16, vi16: wide_i16)(x)
#endif
#define s_wide(x) ((si32)(x))
// Where the instruction is not known, NaN gives any number whose lowest byte is 0.
#ifdef RINT_I32
FN vi32 v_rint_i32(vf32 x) { return RINT_I32(x); }
#else
FN vi32 v_rint_i32(vf32 x) { return v_cvt(v_round_f32(x), i32); }
#endif
)";

constexpr const char* kAvx512 = R"(
#define VR "v"
#define ROUND_PS(x, i) __builtin_ia32_rndscaleps_mask(x, i, x, -1, 4)
#define FMA_PS(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#define SQRT_PS(x) __builtin_ia32_sqrtps512_mask(x, x, -1, 4)
#ifdef __clang__
#define MAX_PS(a, b) __builtin_ia32_maxps512(a, b, 4)
#define MIN_PS(a, b) __builtin_ia32_minps512(a, b, 4)
#else
#define MAX_PS(a, b) __builtin_ia32_maxps512_mask(a, b, a, -1, 4)
#define MIN_PS(a, b) __builtin_ia32_minps512_mask(a, b, a, -1, 4)
#endif
#define RINT_I32(x) __builtin_ia32_cvtps2dq512_mask(x, (vi32){}, -1, 4)
#define SAT_U8(x) __builtin_ia32_pmovusdb512_mask(x, (qchars){}, -1)
#define SAT_I8(x) __builtin_ia32_pmovsdb512_mask(x, (qchars){}, -1)
typedef char qchars __attribute__((vector_size(16)));
#define SCALEF_PS(a, b) __builtin_ia32_scalefps512_mask(a, b, a, -1, 4)
#define F16_TO_F32(x) __builtin_ia32_vcvtph2ps512_mask(x, (vf32){}, -1, 4)
#define F32_TO_F16(x) __builtin_ia32_vcvtps2ph512_mask(x, 0, (vi16){}, -1)
typedef signed char q1 __attribute__((vector_size(16))); typedef short q2 __attribute__((vector_size(32)));
typedef int q4 __attribute__((vector_size(64))); typedef long long q8 __attribute__((vector_size(64)));
typedef char c1 __attribute__((vector_size(16)));
#define MASK(n) ((unsigned short)((1u << (n)) - 1))
FN vu8 v_ld1k(const void* p, su16 k) { return (vu8)__builtin_ia32_loaddquqi128_mask((const void*)p, (c1){}, k); }
FN vu16 v_ld2k(const void* p, su16 k) { return (vu16)__builtin_ia32_loaddquhi256_mask((const void*)p, (q2){}, k); }
FN vu32 v_ld4k(const void* p, su16 k) { return (vu32)__builtin_ia32_loaddqusi512_mask((const void*)p, (q4){}, k); }
typedef union { q8 h[2]; vu64 v; } pair8;
FN vu64 v_ld8k(const void* p, su16 k) {
  pair8 r;
  r.h[0] = __builtin_ia32_loaddqudi512_mask((const void*)p, (q8){}, (unsigned char)k);
  r.h[1] = __builtin_ia32_loaddqudi512_mask((const void*)((const char*)p + 64), (q8){}, (unsigned char)(k >> 8));
  return r.v;
}
#define LDN(b, e) FN v##e v_ld##b##n(const void* p, si64 n) { return v_ld##b##k(p, MASK(n)); }
LDN(1, u8) LDN(2, u16) LDN(4, u32) LDN(8, u64)
FN vu32 v_gather4(const void* p, vi32 x, su16 k) { return (vu32)__builtin_ia32_gathersiv16si((vi32){}, p, x, k, 4); }
#define MASK_OF(m) ((su16)__builtin_ia32_cvtd2mask512((q4)(m)))
// Where x rises by less than two vectors: these two, and a permutation.
FN vu32 v_near4(const void* p, vi32 x, su16 k) {
  const si32 first = x[0], last = x[W - 1];
  vu32 at = (vu32)(x - v_bc_i32(first));
  const su32 span = (su32)(last - first);
  if (k != 0xffff || span > 31 || MASK_OF((vi32)(at > v_bc_u32(span)))) return v_gather4(p, x, k);
  const su64 m = ((su64)2 << span) - 1;
  const char* from = (const char*)p + (si64)first * 4;
  const vu32 a = v_ld4k(from, (su16)m), b = v_ld4k(from + 64, (su16)(m >> 16));
  __asm__("vpermi2d %2, %1, %0" : "+v"(at) : "v"(a), "v"(b));
  return at;
}
FN void v_st1n(void* p, vu8 x, si64 n) { __builtin_ia32_storedquqi128_mask((void*)p, (c1)x, MASK(n)); }
FN void v_st2n(void* p, vu16 x, si64 n) { __builtin_ia32_storedquhi256_mask((void*)p, (q2)x, MASK(n)); }
FN void v_st4n(void* p, vu32 x, si64 n) { __builtin_ia32_storedqusi512_mask((void*)p, (q4)x, MASK(n)); }
FN void v_st8n(void* p, vu64 x, si64 n) {
  pair8 r; r.v = x;
  __builtin_ia32_storedqudi512_mask((void*)p, r.h[0], (unsigned char)MASK(n));
  __builtin_ia32_storedqudi512_mask((void*)((char*)p + 64), r.h[1], (unsigned char)(MASK(n) >> 8));
}
)";

constexpr const char* kAvx2 = R"(
#define VR "x"
#define ROUND_PS(x, i) __builtin_ia32_roundps256(x, i)
#define FMA_PS(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define SQRT_PS(x) __builtin_ia32_sqrtps256(x)
#define MAX_PS(a, b) __builtin_ia32_maxps256(a, b)
#define MIN_PS(a, b) __builtin_ia32_minps256(a, b)
#define RINT_I32(x) __builtin_ia32_cvtps2dq256(x)
#define F16_TO_F32(x) __builtin_ia32_vcvtph2ps256(x)
#define F32_TO_F16(x) __builtin_ia32_vcvtps2ph256(x, 0)
)";

// Where there are no masks: one element at a time.
constexpr const char* kTails = R"(
#define TAIL(b, e) \
FN v##e v_ld##b##n(const void* p, si64 n) { v##e r = {}; for (int l = 0; l < n; l++) r[l] = s_ld##b((const char*)p + l * b); return r; } \
FN void v_st##b##n(void* p, v##e x, si64 n) { for (int l = 0; l < n; l++) s_st##b((char*)p + l * b, x[l]); }
TAIL(1, u8) TAIL(2, u16) TAIL(4, u32) TAIL(8, u64)
)";

// NEON. The maximum is written as a choice: b if unordered, as on x86; the instruction gives NaN.
constexpr const char* kNeon = R"(
#define NEON1(name, text, T, F) FN T name(F x) { T r; __asm__(text : "=w"(r) : "w"(x)); return r; }
NEON1(neon_floor, "frintm %0.4s, %1.4s", vf32, vf32) NEON1(neon_ceil, "frintp %0.4s, %1.4s", vf32, vf32)
NEON1(neon_trunc, "frintz %0.4s, %1.4s", vf32, vf32) NEON1(neon_round, "frintn %0.4s, %1.4s", vf32, vf32)
NEON1(neon_sqrt, "fsqrt %0.4s, %1.4s", vf32, vf32)
NEON1(neon_half, "fcvtl %0.4s, %1.4h", vf32, vi16) NEON1(neon_unhalf, "fcvtn %0.4h, %1.4s", vi16, vf32)
FN vf32 neon_fma(vf32 a, vf32 b, vf32 c) { __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b)); return c; }
FN vf32 neon_pick(vi32 m, vf32 a, vf32 b) { return (vf32)(((vi32)a & m) | ((vi32)b & ~m)); }
#define ROUND_PS(x, i) ((i) == 9 ? neon_floor(x) : (i) == 10 ? neon_ceil(x) : (i) == 11 ? neon_trunc(x) : neon_round(x))
#define FMA_PS(a, b, c) neon_fma(a, b, c)
#define SQRT_PS(x) neon_sqrt(x)
#define MAX_PS(a, b) neon_pick((vi32)(a > b), a, b)
#define MIN_PS(a, b) neon_pick((vi32)(a < b), a, b)
#define F16_TO_F32(x) neon_half(x)
#define F32_TO_F16(x) neon_unhalf(x)
)";

constexpr const char* kNeonGemm = R"(
#define GEMM_LOAD(x, p, i) __asm__ volatile("ldr %q0, %1" : "=w"(x) : "m"(*(const vf32_m*)((p) + (i) * 4)))
#define GEMM_BROADCAST(x, p, i) __asm__ volatile("ld1r {%0.4s}, %1" : "=w"(x) : "Q"(*(const sf32_m*)((p) + (i) * 4)))
#define GEMM_FMA(c, a, b) __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b))
#define GEMM_LOAD64(x, p, i) __asm__ volatile("ldr %q0, %1" : "=w"(x) : "m"(*(const half64*)((p) + (i) * 8)))
#define GEMM_BROADCAST64(x, p, i) __asm__ volatile("ld1r {%0.2d}, %1" : "=w"(x) : "Q"(*(const sf64_m*)((p) + (i) * 8)))
#define GEMM_FMA64(c, a, b) __asm__ volatile("fmla %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(a), "w"(b))
)";

// Rounds as the integer form does, but for denormals, which count as zero here as everywhere.
constexpr const char* kBf16 = R"(
#define BF16_OF
FN vu16 v_enc_bf16(vf32 x) { vu16 r; __asm__("vcvtneps2bf16 %1, %0" : "=v"(r) : "v"(x)); return r; }
FN su16 s_enc_bf16(sf32 x) { return v_enc_bf16(v_bc_f32(x))[0]; }
)";

// The instruction template of BrGemm. Volatile: the order of the text is the order of the code.
constexpr const char* kGemm = R"(
#define GEMM_LOAD(x, p, i) __asm__ volatile("vmovups %1, %0" : "=" VR(x) : "m"(*(const vf32_m*)((p) + (i) * 4)))
#define GEMM_BROADCAST(x, p, i) __asm__ volatile("vbroadcastss %1, %0" : "=" VR(x) : "m"(*(const sf32_m*)((p) + (i) * 4)))
#define GEMM_FMA(c, a, b) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+" VR(c) : VR(a), VR(b))
#define GEMM_LOAD64(x, p, i) __asm__ volatile("vmovupd %1, %0" : "=" VR(x) : "m"(*(const half64*)((p) + (i) * 8)))
#define GEMM_BROADCAST64(x, p, i) __asm__ volatile("vbroadcastsd %1, %0" : "=" VR(x) : "m"(*(const sf64_m*)((p) + (i) * 8)))
#define GEMM_FMA64(c, a, b) __asm__ volatile("vfmadd231pd %1, %2, %0" : "+" VR(c) : VR(a), VR(b))
)";

}  // namespace

std::string PreludeTypes(const SocSpec& soc) {
  const int w = soc.F32Lanes();
  std::string splat, iota;
  for (int l = 0; l < w; ++l) {
    splat += l ? ", x" : "x";
    iota += (l ? ", " : "") + std::to_string(l);
  }
  std::string text = "#define W " + std::to_string(w) + "\n#define SPLAT(x) " + splat + "\n";
  text += kScalarTypes;
  text += "FN vi32 v_iota_i32(void) { return (vi32){" + iota + "}; }\n";
  text += "FN vi64 v_iota_i64(void) { return (vi64){" + iota + "}; }\n";
  text += soc.IsArm() ? kNeon : soc.masks ? kAvx512 : kAvx2;
  if (soc.masks && (soc.bf16 || soc.amx)) text += kBf16;
  if (!soc.masks) text += kTails;
  text += kVectorMath;
  text += soc.IsArm() ? kNeonGemm : kGemm;
  // The half conversions as functions with one name for both widths. clang knows what the builtin
  // means, and would compare the halves themselves, one by one, where their values are compared.
  text +=
      "#if defined(__clang__) && defined(__x86_64__)\n"
      "FN vf32 v_half(vu16 x) { vf32 r; __asm__(\"vcvtph2ps %1, %0\" : \"=\" VR(r) : VR(x)); "
      "return r; }\n"
      "#else\n"
      "FN vf32 v_half(vu16 x) { return F16_TO_F32((vi16)x); }\n"
      "#endif\n"
      "FN vu16 v_unhalf(vf32 x) { return (vu16)F32_TO_F16(x); }\n"
      "FN sf32 s_half(su16 x) { return F16_TO_F32((vi16)v_bc_u16(x))[0]; }\n"
      "FN su16 s_unhalf(sf32 x) { return v_unhalf(v_bc_f32(x))[0]; }\n";
  return text;
}

}  // namespace ge::emit
