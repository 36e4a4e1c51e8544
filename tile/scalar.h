// The meaning of each TileIR operation on one element, for the compute types float, double,
// int32_t, int64_t, uint64_t and uint8_t (bool: 0 or 1). The interpreter's rows and the builder's
// folding both use these, and nothing else says what an operation means.
//
// Must be compiled without contraction of multiply and add.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tile/tile.h"

namespace ge::tile::scalar {

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool kIsBool = std::is_same_v<T, uint8_t>;
// Integer arithmetic wraps: it is done in the unsigned type.
template <class T>
using Wrap = std::make_unsigned_t<T>;

template <class T>
inline T Add(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
}
template <class T>
inline T Sub(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a - b;
  else
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
}
template <class T>
inline T Mul(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
}
template <class T>
inline T Neg(T a) {
  if constexpr (kIsFloat<T>)
    return -a;
  else
    return Sub<T>(0, a);
}
template <class T>
inline bool DividesBadly(T a, T b) {  // b == 0, or INT_MIN / -1
  if constexpr (std::is_signed_v<T>)
    return b == 0 || (b == -1 && a == std::numeric_limits<T>::min());
  else
    return b == 0;
}
template <class T>
inline T Div(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a / b;
  else if (DividesBadly(a, b))
    return b == 0 ? T(0) : a;
  else
    return static_cast<T>(a / b);
}
template <class T>
inline T Fmod(T a, T b) {
  if constexpr (kIsFloat<T>)
    return std::fmod(a, b);
  else
    return DividesBadly(a, b) ? T(0) : static_cast<T>(a % b);
}
template <class T>
inline T FloorMod(T a, T b) {
  T r = Fmod(a, b);
  if constexpr (std::is_signed_v<T> || kIsFloat<T>) {
    if (r != 0 && (r < 0) != (b < 0)) r = Add(r, b);
  }
  return r;
}
template <class T>
inline T Pow(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return std::pow(a, b);
  } else {
    if (b < 0) return a == 1 ? T(1) : (a == T(-1) ? ((b & 1) ? a : T(1)) : T(0));
    T r = 1;
    for (; b != 0; b = static_cast<T>(static_cast<Wrap<T>>(b) >> 1), a = Mul(a, a)) {
      if (b & 1) r = Mul(r, a);
    }
    return r;
  }
}
template <class T>
inline T Min(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a < b || a != a ? a : b;
  else
    return a < b ? a : b;
}
template <class T>
inline T Max(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a > b || a != a ? a : b;
  else
    return a > b ? a : b;
}
template <class T>
inline T Shl(T a, T b) {
  constexpr unsigned kBits = sizeof(T) * 8;
  return static_cast<Wrap<T>>(b) >= kBits ? T(0) : static_cast<T>(static_cast<Wrap<T>>(a) << b);
}
template <class T>
inline T Shr(T a, T b) {
  constexpr unsigned kBits = sizeof(T) * 8;
  if (static_cast<Wrap<T>>(b) >= kBits) return a < 0 ? T(-1) : T(0);
  return static_cast<T>(a >> b);
}
template <class T>
inline T Abs(T a) {
  if constexpr (kIsFloat<T>)
    return std::fabs(a);
  else
    return a < 0 ? Neg(a) : a;
}
template <class T>
inline T Sign(T a) {
  return a > 0 ? T(1) : (a < 0 ? T(-1) : a);  // zero and NaN are their own sign
}
// By erfc: 1 + erf would lose the small values below zero.
template <class T>
inline T Gelu(T a) {
  return a * (T(0.5) * std::erfc(a * T(-M_SQRT1_2)));
}
inline float Lgamma(float a) {
  int sign;
  return lgammaf_r(a, &sign);
}
inline double Lgamma(double a) {
  int sign;
  return lgamma_r(a, &sign);
}

// Float to integer saturates and NaN gives 0; integers wrap; to bool: not zero.
template <class To, class From>
inline To Cast(From a) {
  if constexpr (kIsBool<To>) {
    return a != 0;
  } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    if (a != a) return 0;
    // The bounds as powers of two, which every float type holds exactly.
    constexpr From kEnd = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (a >= kEnd) return std::numeric_limits<To>::max();
    if (a <= (std::is_signed_v<To> ? -kEnd : From(0))) return std::numeric_limits<To>::min();
    return static_cast<To>(a);
  } else {
    return static_cast<To>(a);
  }
}

template <class To, class From>
inline To BitCast(From a) {
  static_assert(sizeof(To) == sizeof(From));
  To r;
  std::memcpy(&r, &a, sizeof r);
  return r;
}

// One functor per operation; `T` is the operand type. Only the types that Verify admits are used.
// clang-format off: it never comes to rest on this list.
#define GE_TILE_UNARY_FLOAT(M) \
  M(kSqrt, std::sqrt(a))       \
  M(kRcp, T(1) / a)            \
  M(kFloor, std::floor(a))     \
  M(kCeil, std::ceil(a))       \
  M(kRound, std::nearbyint(a)) \
  M(kTrunc, std::trunc(a))     \
  M(kExp, std::exp(a))         \
  M(kLog, std::log(a))         \
  M(kSin, std::sin(a))         \
  M(kCos, std::cos(a))         \
  M(kTan, std::tan(a))         \
  M(kAsin, std::asin(a))       \
  M(kAcos, std::acos(a))       \
  M(kAtan, std::atan(a))       \
  M(kSinh, std::sinh(a))       \
  M(kCosh, std::cosh(a))       \
  M(kTanh, std::tanh(a))       \
  M(kAsinh, std::asinh(a))     \
  M(kAcosh, std::acosh(a))     \
  M(kAtanh, std::atanh(a))     \
  M(kErf, std::erf(a))         \
  M(kGelu, Gelu(a))            \
  M(kLgamma, Lgamma(a))        \
  M(kExpm1, std::expm1(a))     \
  M(kLog1p, std::log1p(a))
// clang-format on
#define GE_TILE_UNARY_NUMBER(M) M(kNeg, Neg(a)) M(kAbs, Abs(a)) M(kSign, Sign(a))
#define GE_TILE_BINARY_NUMBER(M) \
  M(kAdd, Add(a, b))             \
  M(kSub, Sub(a, b))             \
  M(kMul, Mul(a, b))             \
  M(kDiv, Div(a, b)) M(kFmod, Fmod(a, b)) M(kFloorMod, FloorMod(a, b)) M(kPow, Pow(a, b))
#define GE_TILE_BINARY_ORDER(M) M(kMin, Min(a, b)) M(kMax, Max(a, b))
#define GE_TILE_BINARY_BITS(M) \
  M(kAnd, static_cast<T>(a & b)) M(kOr, static_cast<T>(a | b)) M(kXor, static_cast<T>(a ^ b))
#define GE_TILE_BINARY_SHIFT(M) M(kShl, Shl(a, b)) M(kShr, Shr(a, b))
#define GE_TILE_COMPARE(M) M(kLt, a < b) M(kLe, a <= b) M(kEq, a == b) M(kNe, a != b)

// Calls use(f) where f(T) or f(T, T) is the operation; false if T has no such operation. The result
// of f has the operation's result type (bool as uint8_t).
template <class T, class F>
bool VisitUnary(Op op, F&& use) {
#define GE_CASE(name, formula) \
  case Op::name: use([](T a) -> T { return static_cast<T>(formula); }); return true;
  if constexpr (!kIsBool<T>) {
    switch (op) {
      GE_TILE_UNARY_NUMBER(GE_CASE)
      default: break;
    }
  }
  if constexpr (kIsFloat<T>) {
    switch (op) {
      GE_TILE_UNARY_FLOAT(GE_CASE)
      case Op::kIsNan: use([](T a) -> uint8_t { return a != a; }); return true;
      case Op::kIsInf:
        use([](T a) -> uint8_t { return std::fabs(a) == std::numeric_limits<T>::infinity(); });
        return true;
      default: return false;
    }
  } else if constexpr (kIsBool<T>) {
    if (op != Op::kNot) return false;
    use([](T a) -> uint8_t { return a == 0; });
    return true;
  } else {
    if (op != Op::kBitNot) return false;
    use([](T a) -> T { return static_cast<T>(~a); });
    return true;
  }
#undef GE_CASE
}

template <class T, class F>
bool VisitBinary(Op op, F&& use) {
#define GE_CASE(name, formula) \
  case Op::name: use([](T a, T b) -> T { return static_cast<T>(formula); }); return true;
#define GE_CASE_COMPARE(name, formula) \
  case Op::name: use([](T a, T b) -> uint8_t { return formula; }); return true;
  switch (op) {
    GE_TILE_COMPARE(GE_CASE_COMPARE)
    GE_TILE_BINARY_ORDER(GE_CASE)
    default: break;
  }
  if constexpr (!kIsFloat<T>) {
    switch (op) {
      GE_TILE_BINARY_BITS(GE_CASE)
      default: break;
    }
  }
  if constexpr (!kIsBool<T>) {
    switch (op) {
      GE_TILE_BINARY_NUMBER(GE_CASE)
      default: break;
    }
  }
  if constexpr (!kIsBool<T> && !kIsFloat<T>) {
    switch (op) {
      GE_TILE_BINARY_SHIFT(GE_CASE)
      default: break;
    }
  }
  if constexpr (kIsFloat<T>) {
    if (op == Op::kAtan2) {
      use([](T a, T b) -> T { return std::atan2(a, b); });
      return true;
    }
  }
  return false;
#undef GE_CASE
#undef GE_CASE_COMPARE
}

// Calls use(T{}) with the C++ type of a compute type; false for other dtypes.
template <class F>
bool VisitType(DType t, F&& use) {
  switch (t) {
    case DType::kF32: use(float{}); return true;
    case DType::kF64: use(double{}); return true;
    case DType::kI32: use(int32_t{}); return true;
    case DType::kI64: use(int64_t{}); return true;
    case DType::kU64: use(uint64_t{}); return true;
    case DType::kBool: use(uint8_t{}); return true;
    default: return false;
  }
}

}  // namespace ge::tile::scalar
