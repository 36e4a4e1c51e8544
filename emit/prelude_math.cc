// Mathematics on f32 as polynomials, one text for vectors and scalars, so that both give the same
// bits.
//
//   exp(x)  = 2^n * (1 + r + r^2 P(r)),         x = n ln2 + r, |r| <= ln2/2
//   log(x)  = e ln2 + f - f^2/2 + f^3 P(f),     x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
//   tanh(x) = x + x^3 P(x^2) below 0.625, else 1 - 2 / (exp(2|x|) + 1)
//   erf(x)  = x + x P(x^2) below 0.92, else 1 - exp(-Q(|x|))
//   gelu(x) = x min(max(0.5 + x P(min(x^2, 5.3^2)), 0), 1), P in four chains: one would wait for
//   itself
//
// Coefficients: minimax fits made for this file; errors are at most 2 ulp (emit/math_test.cc); of
// gelu at most 2^-20 (the usual formula with erf has 2^-21). NaN and the sign of zero are kept.
// Constants are broadcast by lists, never by adding to zero, which loses -0.
#include "emit/prelude.h"

namespace ge::emit {

namespace {

constexpr const char* kScale = R"(
FN sf32 s_scale2(sf32 p, sf32 k, si32 n) { si32 h = n >> 1; return p * s_as_f32((h + 127) << 23) * s_as_f32((n - h + 127) << 23); }
#ifdef SCALEF_PS
FN vf32 v_scale2(vf32 p, vf32 k, vi32 n) { return SCALEF_PS(p, k); }
#else
FN vf32 v_scale2(vf32 p, vf32 k, vi32 n) { vi32 h = n >> 1; return p * v_as_f32((h + 127) << 23) * v_as_f32((n - h + 127) << 23); }
#endif
)";

constexpr const char* kExp = R"(
// exp(x) / 2^halvings, for x up to `top`.
FN $f32 $_exphalved($f32 x, float top, int halvings) {
  x = $_pickmin_f32($_bc_f32(top), x);
  x = $_pickmax_f32($_bc_f32(-110.0f), x);
  $f32 z = $_fma(x, $_bc_f32(1.44269504f), $_bc_f32(12582912.0f));
  $i32 n = $_as_i32(z) - 0x4b400000;
  $f32 k = z - 12582912.0f;
  $f32 r = $_fma(k, $_bc_f32(-0.693147182f), x);
  r = $_fma(k, $_bc_f32(1.904654323e-9f), r);
  $f32 p = $_fma(r, $_bc_f32(1.978926157e-04f), $_bc_f32(1.394575229e-03f));
  p = $_fma(p, r, $_bc_f32(8.333504200e-03f));
  p = $_fma(p, r, $_bc_f32(4.166628048e-02f));
  p = $_fma(p, r, $_bc_f32(1.666666567e-01f));
  p = $_fma(p, r, $_bc_f32(0.5f));
  p = $_fma(r * r, p, r) + 1.0f;
  return halvings ? $_scale2(p, k - (float)halvings, n - halvings) : $_scale2(p, k, n);
}
FN $f32 $_exp_f32($f32 x) { return $_exphalved(x, 89.0f, 0); }
// Does not overflow before sinh does.
FN $f32 $_exphalf_f32($f32 x) { return $_exphalved(x, 90.0f, 1); }
// 1 / (1 + exp(-x)). What the exponential errs by counts less here: fewer terms and one step of
// reduction do for 5 ulp.
FN $f32 $_sigmoid_f32($f32 x) {
  $f32 c = $_pickmin_f32($_bc_f32(87.0f), x);
  c = $_pickmax_f32($_bc_f32(-89.0f), c);
  $f32 z = $_fma(c, $_bc_f32(-1.44269504f), $_bc_f32(12582912.0f));
  $i32 n = $_as_i32(z) - 0x4b400000;
  $f32 k = z - 12582912.0f;
  $f32 r = $_fma(k, $_bc_f32(-0.693147182f), -c);
  $f32 p = $_fma(r, $_bc_f32(8.290265687e-03f), $_bc_f32(4.189819470e-02f));
  p = $_fma(p, r, $_bc_f32(1.666763872e-01f));
  p = $_fma(p, r, $_bc_f32(4.999914765e-01f));
  p = $_fma(p, r, $_bc_f32(9.999997020e-01f));
  p = $_fma(p, r, $_bc_f32(1.0f));
  return 1.0f / ($_scale2(p, k, n) + 1.0f);
}
FN $f32 $_expm1_f32($f32 x) {
  $f32 c = $_pickmin_f32($_bc_f32(89.0f), x);
  c = $_pickmax_f32($_bc_f32(-20.0f), c);
  $f32 z = $_fma(c, $_bc_f32(1.44269504f), $_bc_f32(12582912.0f));
  $i32 n = $_as_i32(z) - 0x4b400000;
  $f32 k = z - 12582912.0f;
  $f32 r = $_fma(k, $_bc_f32(-0.693147182f), c);
  r = $_fma(k, $_bc_f32(1.904654323e-9f), r);
  $f32 p = $_fma(r, $_bc_f32(1.990612363e-04f), $_bc_f32(1.388898934e-03f));
  p = $_fma(p, r, $_bc_f32(8.333287202e-03f));
  p = $_fma(p, r, $_bc_f32(4.166666418e-02f));
  p = $_fma(p, r, $_bc_f32(1.666666716e-01f));
  p = $_fma(p, r, $_bc_f32(0.5f));
  p = $_fma(r * r, p, r);
  $f32 s = $_as_f32((n + 126) << 23);
  $f32 y = $_fma(s, p, s - 0.5f) * 2.0f;
  y = $_sel_f32($_cmp4(x > 88.7228394f), $_bc_f32(__builtin_inff()), y);
  return $_sel_f32($_cmp4(x == 0.0f) | $_cmp4(x != x), x, y);
}
)";

constexpr const char* kLog = R"(
FN $f32 $_log_f32($f32 x) {
  $i32 i = $_as_i32(x);
  $i32 e = (i - 0x3f3504f3) >> 23;
  $f32 f = $_as_f32(i - (e << 23)) - 1.0f;
  $f32 k = $_cvt(e, f32);
  $f32 p = $_fma(f, $_bc_f32(6.746651232e-02f), $_bc_f32(-1.167565435e-01f));
  p = $_fma(p, f, $_bc_f32(1.188815907e-01f));
  p = $_fma(p, f, $_bc_f32(-1.240558848e-01f));
  p = $_fma(p, f, $_bc_f32(1.421955228e-01f));
  p = $_fma(p, f, $_bc_f32(-1.666799635e-01f));
  p = $_fma(p, f, $_bc_f32(2.000211924e-01f));
  p = $_fma(p, f, $_bc_f32(-2.500000894e-01f));
  p = $_fma(p, f, $_bc_f32(3.333331347e-01f));
  $f32 q = f * f;
  $f32 y = $_fma(q * f, p, k * -2.12194440e-4f);
  y = f + $_fma(q, $_bc_f32(-0.5f), y);
  y = $_fma(k, $_bc_f32(0.693359375f), y);
  y = $_sel_f32($_cmp4(x < 1.17549435e-38f), $_bc_f32(-__builtin_inff()), y);
  y = $_sel_f32($_cmp4(x < 0.0f), $_bc_f32(__builtin_nanf("")), y);
  return $_sel_f32($_cmp4(i >= 0x7f800000), x, $_sel_f32($_cmp4(x != x), x, y));
}
FN $f32 $_log1p_f32($f32 x) {
  $f32 u = x + 1.0f;
  $f32 y = $_log_f32(u) + (x - (u - 1.0f)) / u;
  y = $_sel_f32($_cmp4(x == -1.0f), $_bc_f32(-__builtin_inff()), y);
  return $_sel_f32($_cmp4(x == 0.0f) | $_cmp4(x > 3e38f), $_sel_f32($_cmp4(x == 0.0f), x, $_log_f32(x)), y);
}
)";

constexpr const char* kTanhErf = R"(
FN $f32 $_tanh_f32($f32 x) {
  $f32 a = $_abs_f32(x), u = x * x;
  $f32 p = $_fma(u, $_bc_f32(-5.704986863e-03f), $_bc_f32(2.063908800e-02f));
  p = $_fma(p, u, $_bc_f32(-5.373971537e-02f));
  p = $_fma(p, u, $_bc_f32(1.333144158e-01f));
  p = $_fma(p, u, $_bc_f32(-3.333328068e-01f));
  p = $_fma(u * x, p, x);
  $f32 big = 1.0f - 2.0f / ($_exp_f32(a + a) + 1.0f);
  return $_sel_f32($_cmp4(a < 0.625f), $_copysign_f32(p, x), $_copysign_f32(big, x));
}
FN $f32 $_erf_f32($f32 x) {
  $f32 a = $_abs_f32(x), u = x * x;
  $f32 p = $_fma(u, $_bc_f32(8.382389933e-05f), $_bc_f32(-8.145597531e-04f));
  p = $_fma(p, u, $_bc_f32(5.201286171e-03f));
  p = $_fma(p, u, $_bc_f32(-2.685949951e-02f));
  p = $_fma(p, u, $_bc_f32(1.128369719e-01f));
  p = $_fma(p, u, $_bc_f32(-3.761263490e-01f));
  p = $_fma($_fma(p, u, $_bc_f32(1.283791671e-01f)), x, x);
  $f32 c = $_pickmin_f32($_bc_f32(3.93f), a);
  $f32 q = $_fma(c, $_bc_f32(-1.959366491e-04f), $_bc_f32(3.043211764e-03f));
  q = $_fma(q, c, $_bc_f32(-2.222689800e-02f));
  q = $_fma(q, c, $_bc_f32(1.039315537e-01f));
  q = $_fma(q, c, $_bc_f32(6.371822953e-01f));
  q = $_fma(q, c, $_bc_f32(1.127675653e+00f));
  q = $_fma(q, c, $_bc_f32(1.956822671e-04f));
  $f32 big = 1.0f - $_exp_f32($_neg_f32(q));
  return $_sel_f32($_cmp4(a < 0.92f), p, $_copysign_f32(big, x));
}
FN $f32 $_gelu_f32($f32 x) {
  $f32 u = $_pickmin_f32($_bc_f32(28.0900021f), x * x);
  $f32 t = $_fma(u, $_bc_f32(7.119970769e-02f), $_bc_f32(-1.0f));
  $f32 t2 = t * t, t4 = t2 * t2;
  $f32 p0 = $_fma(t4, $_bc_f32(7.319317665e-04f), $_bc_f32(8.828076534e-03f));
  p0 = $_fma(p0, t4, $_bc_f32(3.207951784e-02f));
  p0 = $_fma(p0, t4, $_bc_f32(1.333925575e-01f));
  $f32 p1 = $_fma(t4, $_bc_f32(-7.646056474e-04f), $_bc_f32(-5.849674344e-03f));
  p1 = $_fma(p1, t4, $_bc_f32(-2.529831789e-02f));
  p1 = $_fma(p1, t4, $_bc_f32(-6.651850045e-02f));
  $f32 p2 = $_fma(t4, $_bc_f32(2.836798085e-04f), $_bc_f32(3.135100938e-03f));
  p2 = $_fma(p2, t4, $_bc_f32(1.892586425e-02f));
  p2 = $_fma(p2, t4, $_bc_f32(4.926416278e-02f));
  $f32 p3 = $_fma(t4, $_bc_f32(-1.095835352e-03f), $_bc_f32(-1.318541262e-02f));
  p3 = $_fma(p3, t4, $_bc_f32(-3.958892822e-02f));
  $f32 p = $_fma($_fma(p3, t, p2), t2, $_fma(p1, t, p0));
  p = $_pickmax_f32($_bc_f32(0.0f), $_fma(p, x, $_bc_f32(0.5f)));
  return x * $_pickmin_f32($_bc_f32(1.0f), p);
}
)";

// x = k pi/2 + r in three steps; above 2^15 and for infinities the double table is used.
constexpr const char* kSinCos = R"(
FN $f32 $_sincos($f32 x, int shift) {
  $f32 z = $_fma(x, $_bc_f32(0.636619772f), $_bc_f32(12582912.0f));
  $i32 n = $_as_i32(z) - 0x4b400000 + shift;
  $f32 k = z - 12582912.0f;
  $f32 r = $_fma(k, $_bc_f32(-1.57079637e+00f), x);
  r = $_fma(k, $_bc_f32(4.37113883e-08f), r);
  r = $_fma(k, $_bc_f32(1.71512451e-15f), r);
  $f32 u = r * r;
  $f32 s = $_fma(u, $_bc_f32(2.717366669e-06f), $_bc_f32(-1.983923285e-04f));
  s = $_fma(s, u, $_bc_f32(8.333329111e-03f));
  s = $_fma(s, u, $_bc_f32(-1.666666716e-01f));
  s = $_fma(s * u, r, r);
  $f32 c = $_fma(u, $_bc_f32(-2.719862948e-07f), $_bc_f32(2.479937211e-05f));
  c = $_fma(c, u, $_bc_f32(-1.388888340e-03f));
  c = $_fma(c, u, $_bc_f32(4.166666791e-02f));
  c = $_fma(c * u, u, $_fma(u, $_bc_f32(-0.5f), $_bc_f32(1.0f)));
  $f32 y = $_sel_f32($_cmp4((n & 1) != 0), c, s);
  return $_as_f32($_as_i32(y) ^ ((n & 2) << 30));
}
FN $f32 $_sin_f32(const ge_math_table* M, $f32 x) {
  if ($_any(~$_cmp4($_abs_f32(x) < 32768.0f))) return $_slowsin_f32(M, x);
  return $_sel_f32($_cmp4(x == 0.0f), x, $_sincos(x, 0));
}
FN $f32 $_cos_f32(const ge_math_table* M, $f32 x) {
  if ($_any(~$_cmp4($_abs_f32(x) < 32768.0f))) return $_slowcos_f32(M, x);
  return $_sincos(x, 1);
}
)";

}  // namespace

std::string PreludeMathOnce() { return kScale; }
std::string PreludeMath() { return std::string(kExp) + kLog + kTanhErf + kSinCos + PreludeArcs(); }

}  // namespace ge::emit
