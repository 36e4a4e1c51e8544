// For the tests of tile/: the meaning of TileIR once more, as slowly and plainly as possible, one
// element at a time over a tree. Shares the storage conversions with the interpreter, nothing else.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "abi/convert.h"
#include "tile/tile.h"

namespace ge::tile::testing {

// A value of any compute type.
struct Scalar {
  DType type = DType::kF32;
  double f = 0;   // floats (f32: representable)
  int64_t i = 0;  // i32 (sign-extended), i64, u64 (bits), bool
};

struct Memory {
  DType dtype;
  int64_t elements;
  std::vector<uint8_t> bytes;
};

class TreeWalker {
 public:
  TreeWalker(const Kernel& k, std::map<std::string, int64_t> sizes) : k_(k) {
    for (auto& [name, value] : sizes) by_name_[name] = value;
  }
  std::vector<Memory> memory;  // per kernel buffer
  bool out_of_range = false;

  void Run() {
    memory.resize(k_.buffers.size());
    Body(k_.body.body);
  }
  int64_t Eval(Expr e) const {
    auto v = Evaluate(e, [this](Expr s) -> std::optional<int64_t> {
      auto it = symbols_.find(s.node());
      if (it != symbols_.end()) return it->second;
      auto named = by_name_.find(s.node()->name);
      return named == by_name_.end() ? std::nullopt : std::optional(named->second);
    });
    return v.value_or(INT64_MIN / 4);
  }

 private:
  Scalar Load(int buffer, int64_t at) {
    const Memory& m = memory[buffer];
    Scalar s;
    s.type = ComputeType(m.dtype);
    if (at < 0 || at >= m.elements) {
      out_of_range = true;
      return s;
    }
    if (IsFloat(s.type))
      s.f = LoadElement<double>(m.dtype, m.bytes.data(), at);
    else if (s.type == DType::kU64)
      s.i = static_cast<int64_t>(LoadElement<uint64_t>(m.dtype, m.bytes.data(), at));
    else
      s.i = LoadElement<int64_t>(m.dtype, m.bytes.data(), at);
    return s;
  }
  void Store(int buffer, int64_t at, const Scalar& v) {
    Memory& m = memory[buffer];
    if (at < 0 || at >= m.elements) {
      out_of_range = true;
      return;
    }
    if (v.type == DType::kF64)
      StoreElement(m.dtype, m.bytes.data(), at, v.f);
    else if (v.type == DType::kF32)
      StoreElement(m.dtype, m.bytes.data(), at, static_cast<float>(v.f));
    else
      StoreElement(m.dtype, m.bytes.data(), at, v.i);
  }
  static Scalar Rounded(DType type, double f) {
    return {type, type == DType::kF32 ? static_cast<double>(static_cast<float>(f)) : f, 0};
  }
  static Scalar Wrapped(DType type, int64_t i) {
    if (type == DType::kI32) i = static_cast<int32_t>(i);
    if (type == DType::kBool) i = i != 0;
    return {type, 0, i};
  }
  Scalar Binary(const ValueNode& n, const Scalar& a, const Scalar& b);
  Scalar Unary(const ValueNode& n, const Scalar& a);
  Scalar Convert(const ValueNode& n, const Scalar& a);
  Scalar Value(ExprId id);
  void Body(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) Statement(s);
  }
  void Statement(const Stmt& s);
  void Reduce(const Stmt& s);
  void Gemm(const Stmt& s);
  void Axes(const std::vector<std::pair<Expr, Expr>>& axes, size_t d,
            const std::function<void()>& f) {
    if (d == axes.size()) return f();
    const int64_t extent = Eval(axes[d].second);
    for (int64_t i = 0; i < extent; ++i) {
      symbols_[axes[d].first.node()] = i;
      Axes(axes, d + 1, f);
    }
  }
  void BindVar(VarId v, const Scalar& value) {
    vars_[v] = value;
    if (k_.vars[v].index.IsSymbol()) symbols_[k_.vars[v].index.node()] = value.i;
  }

  const Kernel& k_;
  std::map<std::string, int64_t> by_name_;
  std::map<const ExprNode*, int64_t> symbols_;
  std::map<VarId, Scalar> vars_;
};

inline Scalar TreeWalker::Unary(const ValueNode& n, const Scalar& a) {
  if (!IsFloat(a.type)) {
    const auto u = static_cast<uint64_t>(a.i);
    switch (n.op) {
      case Op::kNeg: return Wrapped(n.type, static_cast<int64_t>(0 - u));
      case Op::kAbs:
        return Wrapped(n.type,
                       a.type != DType::kU64 && a.i < 0 ? static_cast<int64_t>(0 - u) : a.i);
      case Op::kSign:
        return Wrapped(n.type, a.i == 0 ? 0 : (a.type != DType::kU64 && a.i < 0 ? -1 : 1));
      case Op::kBitNot: return Wrapped(n.type, ~a.i);
      default: return Wrapped(n.type, a.i == 0);  // kNot
    }
  }
  const double x = a.f;
  const bool f32 = a.type == DType::kF32;
  switch (n.op) {
    case Op::kNeg: return Rounded(n.type, -x);
    case Op::kAbs: return Rounded(n.type, std::fabs(x));
    case Op::kSign: return Rounded(n.type, x > 0 ? 1 : (x < 0 ? -1 : x));
    case Op::kSqrt: return Rounded(n.type, std::sqrt(x));
    case Op::kRcp: return Rounded(n.type, f32 ? 1.0f / static_cast<float>(x) : 1 / x);
    case Op::kFloor: return Rounded(n.type, std::floor(x));
    case Op::kCeil: return Rounded(n.type, std::ceil(x));
    case Op::kRound: return Rounded(n.type, std::rint(x));
    case Op::kTrunc: return Rounded(n.type, std::trunc(x));
    case Op::kIsNan: return Wrapped(n.type, std::isnan(x));
    case Op::kIsInf: return Wrapped(n.type, std::isinf(x));
    case Op::kExp: return Rounded(n.type, std::exp(x));
    case Op::kTanh: return Rounded(n.type, std::tanh(x));
    default: return Rounded(n.type, NAN);
  }
}

inline Scalar TreeWalker::Convert(const ValueNode& n, const Scalar& a) {
  if (n.op == Op::kNarrow) {
    uint8_t cell[8] = {};
    Scalar r = a;
    if (a.type == DType::kF32) {
      StoreElement(n.storage, cell, 0, static_cast<float>(a.f));
      r.f = LoadElement<float>(n.storage, cell, 0);
    } else {
      StoreElement(n.storage, cell, 0, a.i);
      r.i = LoadElement<int64_t>(n.storage, cell, 0);
    }
    return r;
  }
  if (n.op == Op::kBitCast) {
    uint64_t bits = static_cast<uint64_t>(a.i);
    if (a.type == DType::kF32) bits = std::bit_cast<uint32_t>(static_cast<float>(a.f));
    if (a.type == DType::kF64) bits = std::bit_cast<uint64_t>(a.f);
    if (n.type == DType::kF32)
      return {n.type, std::bit_cast<float>(static_cast<uint32_t>(bits)), 0};
    if (n.type == DType::kF64) return {n.type, std::bit_cast<double>(bits), 0};
    return Wrapped(n.type, static_cast<int64_t>(bits));
  }
  if (IsFloat(n.type)) {
    if (IsFloat(a.type)) return Rounded(n.type, a.f);
    if (a.type == DType::kU64) {
      const auto u = static_cast<uint64_t>(a.i);
      return {n.type, n.type == DType::kF32 ? static_cast<float>(u) : static_cast<double>(u), 0};
    }
    return {n.type, n.type == DType::kF32 ? static_cast<float>(a.i) : static_cast<double>(a.i), 0};
  }
  if (!IsFloat(a.type)) return Wrapped(n.type, a.i);
  if (n.type == DType::kBool) return Wrapped(n.type, a.f != 0);
  if (std::isnan(a.f)) return Wrapped(n.type, 0);
  const double lo = n.type == DType::kI32 ? -0x1p31 : (n.type == DType::kI64 ? -0x1p63 : 0);
  const double hi = n.type == DType::kI32 ? 0x1p31 : (n.type == DType::kI64 ? 0x1p63 : 0x1p64);
  if (a.f <= lo) return {n.type, 0, static_cast<int64_t>(lo)};
  if (a.f >= hi) {
    return {n.type, 0,
            n.type == DType::kI32 ? INT32_MAX : (n.type == DType::kI64 ? INT64_MAX : -1)};
  }
  if (n.type == DType::kU64) return {n.type, 0, static_cast<int64_t>(static_cast<uint64_t>(a.f))};
  return {n.type, 0, static_cast<int64_t>(a.f)};
}

inline Scalar TreeWalker::Binary(const ValueNode& n, const Scalar& a, const Scalar& b) {
  if (IsFloat(a.type)) {
    const double x = a.f, y = b.f;
    switch (n.op) {
      // Sums, products and quotients of floats are exact enough in double to round once more.
      case Op::kAdd: return Rounded(n.type, x + y);
      case Op::kSub: return Rounded(n.type, x - y);
      case Op::kMul: return Rounded(n.type, x * y);
      case Op::kDiv: return Rounded(n.type, x / y);
      case Op::kFmod: return Rounded(n.type, std::fmod(x, y));
      case Op::kMin: return Rounded(n.type, std::isnan(x) || std::isnan(y) ? NAN : (x < y ? x : y));
      case Op::kMax: return Rounded(n.type, std::isnan(x) || std::isnan(y) ? NAN : (x > y ? x : y));
      case Op::kPow: return Rounded(n.type, std::pow(x, y));
      case Op::kAtan2: return Rounded(n.type, std::atan2(x, y));
      case Op::kLt: return Wrapped(n.type, x < y);
      case Op::kLe: return Wrapped(n.type, x <= y);
      case Op::kEq: return Wrapped(n.type, x == y);
      case Op::kNe: return Wrapped(n.type, x != y);
      case Op::kFloorMod: {
        double r = std::fmod(x, y);
        return Rounded(n.type, r != 0 && (r < 0) != (y < 0) ? r + y : r);
      }
      default: return Rounded(n.type, NAN);
    }
  }
  const bool is_unsigned = a.type == DType::kU64;
  const auto x = static_cast<uint64_t>(a.i), y = static_cast<uint64_t>(b.i);
  auto less = [&](uint64_t p, uint64_t q) {
    return is_unsigned ? p < q : static_cast<int64_t>(p) < static_cast<int64_t>(q);
  };
  __int128 wide_x = is_unsigned ? static_cast<__int128>(x) : a.i;
  __int128 wide_y = is_unsigned ? static_cast<__int128>(y) : b.i;
  const unsigned width = a.type == DType::kI32 ? 32 : 64;
  switch (n.op) {
    case Op::kAdd: return Wrapped(n.type, static_cast<int64_t>(x + y));
    case Op::kSub: return Wrapped(n.type, static_cast<int64_t>(x - y));
    case Op::kMul: return Wrapped(n.type, static_cast<int64_t>(x * y));
    case Op::kDiv: return Wrapped(n.type, y == 0 ? 0 : static_cast<int64_t>(wide_x / wide_y));
    case Op::kFmod: return Wrapped(n.type, y == 0 ? 0 : static_cast<int64_t>(wide_x % wide_y));
    case Op::kFloorMod: {
      if (y == 0) return Wrapped(n.type, 0);
      __int128 r = wide_x % wide_y;
      return Wrapped(n.type,
                     static_cast<int64_t>(r != 0 && (r < 0) != (wide_y < 0) ? r + wide_y : r));
    }
    case Op::kMin: return Wrapped(n.type, less(x, y) ? a.i : b.i);
    case Op::kMax: return Wrapped(n.type, less(y, x) ? a.i : b.i);
    case Op::kAnd: return Wrapped(n.type, a.i & b.i);
    case Op::kOr: return Wrapped(n.type, a.i | b.i);
    case Op::kXor: return Wrapped(n.type, a.i ^ b.i);
    case Op::kShl:
      return Wrapped(n.type, wide_y < 0 || wide_y >= width ? 0 : static_cast<int64_t>(x << y));
    case Op::kShr: {
      const bool out = wide_y < 0 || wide_y >= width;
      if (is_unsigned) return Wrapped(n.type, out ? 0 : static_cast<int64_t>(x >> y));
      return Wrapped(n.type, out ? (a.i < 0 ? -1 : 0) : a.i >> b.i);
    }
    case Op::kLt: return Wrapped(n.type, less(x, y));
    case Op::kLe: return Wrapped(n.type, !less(y, x));
    case Op::kEq: return Wrapped(n.type, x == y);
    case Op::kNe: return Wrapped(n.type, x != y);
    default: return Wrapped(n.type, 0);
  }
}

inline Scalar TreeWalker::Value(ExprId id) {
  const ValueNode& n = k_.values[id];
  switch (n.op) {
    case Op::kConst: return {n.type, n.f, n.i};
    case Op::kIndex: return {n.type, 0, Eval(n.index)};
    case Op::kVar: return vars_.at(n.var);
    case Op::kLoad: return Load(n.buffer, Eval(n.index));
    case Op::kCast:
    case Op::kNarrow:
    case Op::kBitCast: return Convert(n, Value(n.a));
    case Op::kSelect: {
      // Both sides are computed, as everywhere.
      Scalar c = Value(n.a), a = Value(n.b), b = Value(n.c);
      return c.i ? a : b;
    }
    case Op::kFma: {
      const Scalar a = Value(n.a), b = Value(n.b), c = Value(n.c);
      return {n.type,
              std::fmaf(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f)),
              0};
    }
    default: return n.b >= 0 ? Binary(n, Value(n.a), Value(n.b)) : Unary(n, Value(n.a));
  }
}

inline void TreeWalker::Reduce(const Stmt& s) {
  const DType type = k_.vars[s.var].type;
  bool first = true;
  Scalar acc;
  ValueNode n;
  n.type = type;
  n.op = s.reduce == ReduceOp::kSum    ? Op::kAdd
         : s.reduce == ReduceOp::kProd ? Op::kMul
         : s.reduce == ReduceOp::kMin  ? Op::kMin
         : s.reduce == ReduceOp::kMax  ? Op::kMax
         : s.reduce == ReduceOp::kAnd  ? Op::kAnd
                                       : Op::kOr;
  Axes(s.axes, 0, [&] {
    Body(s.body);
    Scalar v = Value(s.value);
    acc = first ? v : Binary(n, acc, v);
    first = false;
  });
  if (first) {
    const bool is_float = IsFloat(type);
    acc.type = type;
    switch (s.reduce) {
      case ReduceOp::kProd: acc.f = acc.i = 1; break;
      case ReduceOp::kMin:
        acc.f = INFINITY;
        acc.i = type == DType::kI32 ? INT32_MAX : (type == DType::kI64 ? INT64_MAX : -1);
        break;
      case ReduceOp::kMax:
        acc.f = -INFINITY;
        acc.i = type == DType::kI32 ? INT32_MIN : (type == DType::kI64 ? INT64_MIN : 0);
        break;
      case ReduceOp::kAnd: acc.i = -1; break;
      default: break;
    }
    if (type == DType::kBool) acc.i = acc.i != 0;
    if (!is_float) acc.f = 0;
  }
  BindVar(s.var, acc);
}

inline void TreeWalker::Gemm(const Stmt& s) {
  const BrGemm& g = s.gemm;
  const int64_t columns = Eval(g.n_valid);
  for (int64_t r = 0; r < g.m; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      double f = 0;
      int64_t i = 0;
      symbols_[g.row.node()] = r;
      Axes(g.batch, 0, [&] {
        const int64_t a0 = Eval(g.a) + r * Eval(g.a_row), b0 = Eval(g.b) + c;
        for (int64_t k = 0; k < Eval(g.k); ++k) {
          Scalar a = Load(g.a_buffer, a0 + k * Eval(g.a_k));
          Scalar b = Load(g.b_buffer, b0 + k * Eval(g.b_k));
          f = k_.vars[g.acc].type == DType::kF64
                  ? f + a.f * b.f
                  : static_cast<float>(f + static_cast<float>(a.f * b.f));
          i += a.i * b.i;
        }
      });
      symbols_[g.col.node()] = c;
      const DType type = k_.vars[g.acc].type;
      vars_[g.acc] = IsFloat(type) ? Rounded(type, f) : Wrapped(type, i);
      Body(s.body);
    }
  }
}

inline void TreeWalker::Statement(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kBlock: return Body(s.body);
    case StmtKind::kLoop: return Axes({{s.symbol, s.extent}}, 0, [&] { Body(s.body); });
    case StmtKind::kAlloc: {
      const Buffer& b = k_.buffers[s.buffer];
      const int64_t n = Eval(b.elements);
      memory[s.buffer] = {b.dtype, n,
                          std::vector<uint8_t>(static_cast<size_t>(BytesFor(b.dtype, n)))};
      return Body(s.body);
    }
    case StmtKind::kLet: return BindVar(s.var, Value(s.value));
    case StmtKind::kReduce: return Reduce(s);
    case StmtKind::kIf: return Body(Value(s.value).i ? s.body : s.orelse);
    case StmtKind::kStore: return Store(s.buffer, Eval(s.index), Value(s.value));
    case StmtKind::kBrGemm: return Gemm(s);
  }
}

}  // namespace ge::tile::testing
