// Inverse, hyperbolic and two-argument functions, in the manner of prelude_math.cc.
//
//   atan(x)  = x + x^3 P(x^2) up to 1, else pi/2 - atan(1/x)
//   asin(x)  = x + x^3 P(x^2) up to 1/2, else pi/2 - 2 asin(sqrt((1 - x) / 2)); acos from the same
//   tan(x)   = sin(r) / cos(r) or the negative inverse, x = k pi/2 + r
//   sinh(x)  = x + x^3 P(x^2) up to 1, else h - 1/(4h), cosh(x) = h + 1/(4h), with h = exp(|x|)/2
//
//   asinh(x) = log1p(x + x^2 / (1 + sqrt(x^2 + 1)))
//   acosh(x) = log1p(t + sqrt(2t + t^2)), t = x - 1
//   atanh(x) = log1p(2x / (1 - x)) / 2
//
//   pow(x,y)  = 2^(y log2|x|) in f64, where polynomials do for half an ulp of f32
//   fmod(x,y) = x - y trunc(x / y) in f64, exact while the quotient is below 2^28
//
// Errors are at most 4 ulp (emit/math_test.cc).
#include "emit/prelude.h"

namespace ge::emit {

namespace {

constexpr const char* kArcs = R"(
FN $f32 $_atan_f32($f32 x) {
  $f32 a = $_abs_f32(x);
  $bool big = $_cmp4(a > 1.0f);
  $f32 t = $_sel_f32(big, 1.0f / a, a), u = t * t;
  $f32 p = $_fma(u, $_bc_f32(-1.790405833e-03f), $_bc_f32(1.089969650e-02f));
  p = $_fma(p, u, $_bc_f32(-3.114893660e-02f));
  p = $_fma(p, u, $_bc_f32(5.792722851e-02f));
  p = $_fma(p, u, $_bc_f32(-8.401581645e-02f));
  p = $_fma(p, u, $_bc_f32(1.095150635e-01f));
  p = $_fma(p, u, $_bc_f32(-1.426410228e-01f));
  p = $_fma(p, u, $_bc_f32(1.999853402e-01f));
  p = $_fma(p, u, $_bc_f32(-3.333329856e-01f));
  p = $_fma(u * t, p, t);
  $f32 far = (1.57079637f - p) - 4.37113883e-08f;
  return $_copysign_f32($_sel_f32(big, far, p), x);
}
// asin of 0 to 1/2
FN $f32 $_asinlow($f32 t) {
  $f32 u = t * t;
  $f32 p = $_fma(u, $_bc_f32(3.770211712e-02f), $_bc_f32(1.431217417e-02f));
  p = $_fma(p, u, $_bc_f32(3.183952346e-02f));
  p = $_fma(p, u, $_bc_f32(4.451335222e-02f));
  p = $_fma(p, u, $_bc_f32(7.500521839e-02f));
  p = $_fma(p, u, $_bc_f32(1.666665971e-01f));
  return $_fma(u * t, p, t);
}
FN $f32 $_asin_f32($f32 x) {
  $f32 a = $_abs_f32(x);
  $bool big = $_cmp4(a > 0.5f);
  $f32 p = $_asinlow($_sel_f32(big, $_sqrt_f32((1.0f - a) * 0.5f), a));
  $f32 far = (1.57079637f - 2.0f * p) - 4.37113883e-08f;
  return $_copysign_f32($_sel_f32(big, far, p), x);
}
FN $f32 $_acos_f32($f32 x) {
  $f32 a = $_abs_f32(x);
  $bool big = $_cmp4(a > 0.5f), low = $_cmp4(x < 0.0f);
  $f32 p = $_asinlow($_sel_f32(big, $_sqrt_f32((1.0f - a) * 0.5f), a));
  $f32 near = (1.57079637f - $_copysign_f32(p, x)) - 4.37113883e-08f;
  $f32 far = $_sel_f32(low, (3.14159274f - 2.0f * p) - 8.74227766e-08f, 2.0f * p);
  return $_sel_f32(big, far, near);
}
FN $f32 $_tan_f32(const ge_math_table* M, $f32 x) {
  if ($_any(~$_cmp4($_abs_f32(x) < 32768.0f))) return $_slowtan_f32(M, x);
  return $_sel_f32($_cmp4(x == 0.0f), x, $_sincos(x, 0) / $_sincos(x, 1));
}
)";

constexpr const char* kHyperbolic = R"(
FN $f32 $_sinh_f32($f32 x) {
  $f32 a = $_abs_f32(x), u = x * x;
  $f32 p = $_fma(u, $_bc_f32(2.782213187e-06f), $_bc_f32(1.984289556e-04f));
  p = $_fma(p, u, $_bc_f32(8.333310485e-03f));
  p = $_fma(p, u, $_bc_f32(1.666666716e-01f));
  p = $_fma(u * x, p, x);
  $f32 h = $_exphalf_f32(a);
  return $_sel_f32($_cmp4(a < 1.0f), p, $_copysign_f32(h - 0.25f / h, x));
}
FN $f32 $_cosh_f32($f32 x) {
  $f32 h = $_exphalf_f32($_abs_f32(x));
  return h + 0.25f / h;
}
FN $f32 $_asinh_f32($f32 x) {
  $f32 a = $_abs_f32(x), c = $_pickmin_f32(a, $_bc_f32(1e4f)), u = c * c;
  $f32 y = $_log1p_f32(c + u / (1.0f + $_sqrt_f32(u + 1.0f)));
  y = $_sel_f32($_cmp4(a > 1e4f), $_log_f32(a) + 0.693147182f, y);
  return $_copysign_f32($_sel_f32($_cmp4(x == x), y, x), x);
}
FN $f32 $_acosh_f32($f32 x) {
  $f32 t = $_pickmin_f32(x, $_bc_f32(1e4f)) - 1.0f;
  $f32 y = $_log1p_f32(t + $_sqrt_f32($_fma(t, t, t + t)));
  y = $_sel_f32($_cmp4(x > 1e4f), $_log_f32(x) + 0.693147182f, y);
  return $_sel_f32($_cmp4(x >= 1.0f), y, $_bc_f32(__builtin_nanf("")));
}
FN $f32 $_atanh_f32($f32 x) {
  $f32 a = $_abs_f32(x);
  $f32 y = 0.5f * $_log1p_f32((a + a) / (1.0f - a));
  return $_copysign_f32(y, x);
}
)";

constexpr const char* kPower = R"(
FN $f32 $_pow_f32($f32 x, $f32 y) {
  $f32 a = $_abs_f32(x);
  // log2 of a = 2^e (1 + f)
  $i32 i = $_as_i32(a), e = (i - 0x3f3504f3) >> 23;
  $f64 f = $_cvt($_as_f32(i - (e << 23)), f64) - 1.0;
  $f64 l = f * -6.80628759039059589e-02 + 1.31137437536866824e-01;
  l = l * f - 1.34789287383660417e-01;
  l = l * f + 1.30628902560210952e-01;
  l = l * f - 1.42523407554100173e-01;
  l = l * f + 1.60182261302960260e-01;
  l = l * f - 1.80432685210201171e-01;
  l = l * f + 2.06108695283066246e-01;
  l = l * f - 2.40446626777273048e-01;
  l = l * f + 2.88538762329967446e-01;
  l = l * f - 3.60673789771006947e-01;
  l = l * f + 4.80898349072796105e-01;
  l = l * f - 7.21347520343086357e-01;
  l = l * f + 1.44269504088620337e+00;
  l = l * f + $_cvt(e, f64);
  l = $_sel_f64($_cmp4(a < 1.17549435e-38f), $_bc_f64(-1e300), l);
  l = $_sel_f64($_cmp4(a > 3.40282347e38f), $_bc_f64(1e300), l);
  $f64 t = $_cvt(y, f64) * l;
  t = $_sel_f64($_cmp8(t > 200.0), $_bc_f64(200.0), t);
  t = $_sel_f64($_cmp8(t > -200.0), t, $_bc_f64(-200.0));
  $f64 k = (t + 6755399441055744.0) - 6755399441055744.0, r = t - k;
  $f64 p = r * 1.54614446985691293e-04 + 1.34004281776158377e-03;
  p = p * r + 9.61805667852463735e-03;
  p = p * r + 5.55032722667030201e-02;
  p = p * r + 2.40226509222887574e-01;
  p = p * r + 6.93147206702832586e-01;
  p = p * r + 1.00000000000000000e+00;
  $i32 n = $_cvt(k, i32);
  $f64 scale = $_as_f64($_cvt(n + 1023, i64) << 52);
  $f32 z = $_cvt(p * scale, f32);
  // Signs: a negative base needs a whole exponent.
  $bool whole = $_cmp4($_floor_f32(y) == y), even = $_cmp4($_floor_f32(y * 0.5f) == y * 0.5f);
  $bool minus = $_cmp4($_as_i32(x) < 0) & whole & ~even;
  z = $_as_f32($_as_i32(z) | ((si32)0x80000000 & minus));
  z = $_sel_f32($_cmp4(x < 0.0f) & ~whole & $_cmp4(a < __builtin_inff()), $_bc_f32(__builtin_nanf("")), z);
  z = $_sel_f32($_cmp4(x != x) | $_cmp4(y != y), x + y, z);
  $bool one = $_cmp4(y == 0.0f) | $_cmp4(x == 1.0f) | ($_cmp4(x == -1.0f) & $_isinf_f32(y));
  return $_sel_f32(one, $_bc_f32(1.0f), z);
}
// Of a quotient that is rounded up to the next whole number the remainder has the other sign.
FN $f32 $_fmod_f32(const ge_math_table* M, $f32 x, $f32 y) {
  $f32 a = $_abs_f32(x), b = $_abs_f32(y);
  $bool zero = $_cmp4(b == 0.0f);
  if ($_any(~($_cmp4(a < b * 268435456.0f) | zero))) return $_slowfmod_f32(M, x, y);
  $f64 wa = $_cvt(a, f64), wb = $_cvt($_sel_f32(zero, $_bc_f32(1.0f), b), f64);
  $f64 q = $_cvt($_cvt(wa / wb, i32), f64), r = wa - q * wb;
  r = $_sel_f64($_cmp8(r < 0.0), r + wb, r);
  $f32 z = $_sel_f32($_cmp4(b == __builtin_inff()), a, $_cvt(r, f32));
  return $_sel_f32(zero, $_bc_f32(__builtin_nanf("")), $_copysign_f32(z, x));
}
FN $f32 $_floormod_f32(const ge_math_table* M, $f32 x, $f32 y) {
  $f32 r = $_fmod_f32(M, x, y);
  $bool other = $_cmp4(r != 0.0f) & ($_cmp4(r < 0.0f) ^ $_cmp4(y < 0.0f));
  return $_sel_f32(other, r + y, r);
}
)";

}  // namespace

std::string PreludeArcs() { return std::string(kArcs) + kHyperbolic + kPower; }

}  // namespace ge::emit
