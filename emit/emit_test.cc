// Emitted code against the interpreter: every operation on special values, loops with tails,
// reductions, storage types, gathers; both compilers, AVX2 and AVX-512.
#include <algorithm>
#include <limits>
#include <random>

#include "emit/case_test.h"
#include "emit/quotient.h"
#include "tile/builder.h"
#include "tile/fold.h"

namespace ge::emit {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::LoopKind;
using tile::Op;
using tile::Val;

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> SpecialFloats() {
  return {0.0f,           -0.0f, 1.0f,     -1.0f,  0.5f,           -0.5f, 1.5f,    -1.5f,
          2.5f,           3.0f,  -2.0f,    1e-10f, -1e-10f,        1e10f, -1e10f,  1e30f,
          kInf,           -kInf, kNan,     88.0f,  -88.0f,         89.5f, -104.0f, 0.9f,
          -0.3f,          7.25f, 100.75f,  3e9f,   -3e9f,          1e19f, -1e19f,  2147483648.0f,
          -2147483648.0f, 0.25f, 40000.0f, 12.0f,  1.17549435e-38f};
}
std::vector<double> SpecialDoubles() {
  std::vector<double> v;
  for (float f : SpecialFloats()) v.push_back(f);
  v.insert(v.end(), {1e300, -1e300, 1e-300, 9223372036854775808.0});
  return v;
}
template <class T>
std::vector<T> SpecialInts() {
  std::vector<T> v = {0, 1, 2, 3, 5, 7, 12, 31, 32, 63, 64, 65, 100, 1000, 123456789};
  v.push_back(std::numeric_limits<T>::max());
  v.push_back(std::numeric_limits<T>::min());
  if (std::is_signed_v<T>)
    v.insert(v.end(), {static_cast<T>(-1), static_cast<T>(-2), static_cast<T>(-7)});
  return v;
}

TestBuffer Specials(DType t) {
  switch (t) {
    case DType::kF32: return TestBuffer::Of(SpecialFloats());
    case DType::kF64: return TestBuffer::Of(SpecialDoubles());
    case DType::kI32: return TestBuffer::Of(SpecialInts<int32_t>());
    case DType::kI64: return TestBuffer::Of(SpecialInts<int64_t>());
    case DType::kU64: return TestBuffer::Of(SpecialInts<uint64_t>());
    default: return TestBuffer::Of(std::vector<uint8_t>{0, 1, 1, 0, 2, 255, 0});
  }
}

bool IsApproximate(Op op) {
  return (op >= Op::kExp && op <= Op::kGelu) || op == Op::kLgamma || op == Op::kExpm1 ||
         op == Op::kLog1p || op == Op::kPow || op == Op::kAtan2;
}

const DType kTypes[] = {DType::kF32, DType::kF64, DType::kI32,
                        DType::kI64, DType::kU64, DType::kBool};

TEST(Emit, UnaryOpsOnSpecialValues) {
  ExprArena arena;
  std::vector<Case> cases;
  for (int op = static_cast<int>(Op::kNeg); op <= static_cast<int>(Op::kLog1p); ++op) {
    for (DType t : kTypes) {
      if (!tile::HasOp(static_cast<Op>(op), t)) continue;
      Case c;
      c.name = "unary " + std::to_string(op) + " " + std::string(Name(t));
      TestBuffer in = Specials(t);
      const int64_t n = static_cast<int64_t>(in.size * 8 / static_cast<size_t>(BitWidth(t)));
      c.out = tile::ResultType(static_cast<Op>(op), t);
      c.tolerance = IsApproximate(static_cast<Op>(op)) ? 3e-7 : 0;
      if (static_cast<Op>(op) == Op::kGelu) c.tolerance = 1e-6;  // absolute: emit/math_test.cc
      Builder b(c.kernel, arena);
      int x = b.Arg("x", t, n, false), y = b.Arg("y", c.out, n, true);
      b.For("i", n, LoopKind::kVector,
            [&](Expr i) { b.Store(y, i, b.Unary(static_cast<Op>(op), b.Load(x, i))); });
      c.buffers = {in,
                   TestBuffer::Of(std::vector<uint8_t>(static_cast<size_t>(BytesFor(c.out, n))))};
      cases.push_back(std::move(c));
    }
  }
  ASSERT_GT(cases.size(), 40u);
  RunCases(cases);
}

TEST(Emit, BinaryOpsOnSpecialValues) {
  ExprArena arena;
  std::vector<Case> cases;
  for (int op = static_cast<int>(Op::kAdd); op <= static_cast<int>(Op::kNe); ++op) {
    for (DType t : kTypes) {
      if (!tile::HasOp(static_cast<Op>(op), t)) continue;
      Case c;
      c.name = "binary " + std::to_string(op) + " " + std::string(Name(t));
      TestBuffer in = Specials(t);
      const int64_t n = static_cast<int64_t>(in.size * 8 / static_cast<size_t>(BitWidth(t)));
      c.out = tile::ResultType(static_cast<Op>(op), t);
      c.tolerance = IsApproximate(static_cast<Op>(op)) ? 3e-7 : 0;
      Builder b(c.kernel, arena);
      int x = b.Arg("x", t, n, false), z = b.Arg("z", t, n, false),
          y = b.Arg("y", c.out, n * n, true);
      b.For("j", n, LoopKind::kParallel, [&](Expr j) {
        b.For("i", n, LoopKind::kVector, [&](Expr i) {
          b.Store(y, j * n + i, b.Binary(static_cast<Op>(op), b.Load(x, j), b.Load(z, i)));
        });
      });
      c.buffers = {
          in, in,
          TestBuffer::Of(std::vector<uint8_t>(static_cast<size_t>(BytesFor(c.out, n * n))))};
      cases.push_back(std::move(c));
    }
  }
  ASSERT_GT(cases.size(), 60u);
  RunCases(cases);
}

TEST(Emit, Casts) {
  ExprArena arena;
  std::vector<Case> cases;
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      Case c;
      c.name = "cast " + std::string(Name(from)) + " " + std::string(Name(to));
      TestBuffer in = Specials(from);
      const int64_t n = static_cast<int64_t>(in.size * 8 / static_cast<size_t>(BitWidth(from)));
      c.out = to;
      Builder b(c.kernel, arena);
      int x = b.Arg("x", from, n, false), y = b.Arg("y", to, n, true);
      b.For("i", n, LoopKind::kVector, [&](Expr i) { b.Store(y, i, b.Cast(b.Load(x, i), to)); });
      c.buffers = {in, TestBuffer::Of(std::vector<uint8_t>(static_cast<size_t>(BytesFor(to, n))))};
      cases.push_back(std::move(c));
    }
  }
  RunCases(cases);
}

// Every storage type: each code of up to 16 bits is decoded, and floats are encoded.
TEST(Emit, StorageTypes) {
  ExprArena arena;
  std::vector<Case> cases;
  std::mt19937 random(7);
  std::vector<float> floats = SpecialFloats();
  for (int i = 0; i < 2000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 2) bits = (bits & 0x807fffff) | ((110 + bits % 30) << 23);
    float f;
    std::memcpy(&f, &bits, 4);
    if (std::fabs(f) < 1.2e-38f) f = 0;
    floats.push_back(f);
  }
  for (DType t :
       {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kF16, DType::kBF16, DType::kU32,
        DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ, DType::kF8E8M0,
        DType::kF4E2M1, DType::kI4, DType::kU4, DType::kI2, DType::kU2}) {
    const int64_t codes = int64_t{1} << std::min(BitWidth(t), 16);
    std::vector<uint8_t> raw(static_cast<size_t>(BytesFor(t, codes)));
    for (size_t i = 0; i < raw.size(); ++i) {
      raw[i] = static_cast<uint8_t>(BitWidth(t) == 16  ? (i % 2 ? i / 2 >> 8 : i / 2)
                                    : BitWidth(t) == 8 ? i
                                                       : random());
    }
    Case c;
    c.name = "decode " + std::string(Name(t));
    c.out = ComputeType(t);
    Builder b(c.kernel, arena);
    int x = b.Arg("x", t, codes, false), y = b.Arg("y", c.out, codes, true);
    b.For("i", codes, LoopKind::kVector, [&](Expr i) { b.Store(y, i, b.Load(x, i)); });
    c.buffers = {TestBuffer::Of(raw),
                 TestBuffer::Of(std::vector<uint8_t>(static_cast<size_t>(BytesFor(c.out, codes))))};
    cases.push_back(std::move(c));
    Case e;
    e.name = "encode " + std::string(Name(t));
    e.out = DType::kU8;
    const int64_t n = static_cast<int64_t>(floats.size());
    Builder be(e.kernel, arena);
    int fx = be.Arg("x", DType::kF32, n, false), fy = be.Arg("y", t, n, true);
    be.For("i", n, LoopKind::kVector,
           [&](Expr i) { be.Store(fy, i, be.Convert(be.Load(fx, i), t)); });
    e.buffers = {TestBuffer::Of(floats),
                 TestBuffer::Of(std::vector<uint8_t>(static_cast<size_t>(BytesFor(t, n))))};
    cases.push_back(std::move(e));
  }
  RunCases(cases);
}

// Loops of every length around the vector width; strided, reversed, constant and table-driven
// loads.
TEST(Emit, LoopsWithTails) {
  ExprArena arena;
  std::vector<Case> cases;
  for (int64_t n : {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 100}) {
    for (bool symbolic : {false, true}) {
      Case c;
      c.name = "loop " + std::to_string(n) + (symbolic ? " symbolic" : "");
      Expr e = symbolic ? arena.Symbol("len") : Expr(n);
      if (symbolic) c.sizes = {n};
      Builder b(c.kernel, arena);
      int x = b.Arg("x", DType::kF32, e * 2, false), idx = b.Arg("idx", DType::kI64, e, false);
      int y = b.Arg("y", DType::kF32, e * 3, true);
      b.For("i", e, LoopKind::kVector, [&](Expr i) {
        Expr at = b.LetIndex(b.Load(idx, i), 0, 1000, e);
        Val strided = b.Load(x, i * 2), reversed = b.Load(x, e - i - 1), gathered = b.Load(x, at);
        Val half = b.Load(x, FloorDiv(i, 2)) + b.Cast(b.Index(i * 3), DType::kF32);
        b.Store(y, i, strided * reversed + gathered);
        b.Store(y, e + i * 2, half * b.Load(x, 0));
      });
      std::vector<int64_t> table;
      for (int64_t i = 0; i < n; ++i) table.push_back((i * 7) % n);
      c.buffers = {TestBuffer::Of(Randoms(n * 2, 1)), TestBuffer::Of(table),
                   TestBuffer::Of(std::vector<float>(static_cast<size_t>(3 * n)))};
      cases.push_back(std::move(c));
    }
  }
  RunCases(cases);
}

TEST(Emit, Reductions) {
  ExprArena arena;
  std::vector<Case> cases;
  for (int64_t n : {1, 5, 16, 17, 64, 100, 131}) {
    for (tile::ReduceOp op : {tile::ReduceOp::kSum, tile::ReduceOp::kProd, tile::ReduceOp::kMin,
                              tile::ReduceOp::kMax}) {
      Case c;
      c.name = "reduce " + std::to_string(n) + " op " + std::to_string(static_cast<int>(op));
      c.tolerance = 2e-4;
      Builder b(c.kernel, arena);
      int x = b.Arg("x", DType::kF32, n * n, false), y = b.Arg("y", DType::kF32, 3 * n, true);
      b.For("j", n, LoopKind::kParallel, [&](Expr j) {  // rows: lanes inside the reduction
        Val s = b.Reduce(op, {n}, [&](const std::vector<Expr>& i) {
          return b.Load(x, j * n + i[0]) * b.F(1.25);
        });
        Val t = b.Reduce(op, {n}, [&](const std::vector<Expr>& i) {
          return b.Unary(Op::kTanh, b.Load(x, j * n + i[0]));
        });
        b.Store(y, j, s);
        b.Store(y, n + j, t);
        // Columns through a vector loop.
        b.For("v", 1, LoopKind::kVector, [&](Expr v) {
          Val u = b.Reduce(op, {n},
                           [&](const std::vector<Expr>& i) { return b.Load(x, i[0] * n + j + v); });
          b.Store(y, 2 * n + j + v, u);
        });
      });
      c.buffers = {TestBuffer::Of(Randoms(n * n, 3)),
                   TestBuffer::Of(std::vector<float>(static_cast<size_t>(3 * n)))};
      cases.push_back(std::move(c));
    }
  }
  RunCases(cases);
}

// Control flow that differs by lane is printed element by element; locals live on the stack or in
// scratch.
TEST(Emit, ScalarFallbackAndLocals) {
  ExprArena arena;
  std::vector<Case> cases;
  for (int64_t n : {5, 40, 3000}) {
    Case c;
    c.name = "locals " + std::to_string(n);
    Builder b(c.kernel, arena);
    int x = b.Arg("x", DType::kF32, n, false), y = b.Arg("y", DType::kF32, n, true);
    int local = b.Alloc("local", DType::kF32, n);
    b.For("i", n, LoopKind::kVector, [&](Expr i) { b.Store(local, i, b.Load(x, i) * b.F(2)); });
    b.For("i", n, LoopKind::kVector, [&](Expr i) {
      b.If(
          b.Binary(Op::kLt, b.Load(x, i), b.F(0)), [&] { b.Store(y, i, b.Load(local, i)); },
          [&] { b.Store(y, i, b.Load(local, n - 1 - i)); });
    });
    c.buffers = {TestBuffer::Of(Randoms(n, 5)),
                 TestBuffer::Of(std::vector<float>(static_cast<size_t>(n)))};
    cases.push_back(std::move(c));
  }
  RunCases(cases);
}

// A random value of type f32 or i32 from loads at (row, col) and exact operations, so that every
// backend gives the same bits.
class RandomValue {
 public:
  RandomValue(Builder& b, std::mt19937& random, const std::vector<int>& floats,
              const std::vector<int>& ints, const std::vector<Expr>& places)
      : b_(b), random_(random), floats_(floats), ints_(ints), places_(places) {}

  Val Of(DType type, int depth) {
    if (depth == 0 || Pick(8) == 0) return Leaf(type);
    if (type == DType::kBool) return Condition(depth);
    if (Pick(6) == 0) return b_.Select(Condition(depth), Of(type, depth - 1), Of(type, depth - 1));
    if (type == DType::kF32 && Pick(6) == 0)
      return b_.Fma(Of(type, depth - 1), Of(type, depth - 1), Of(type, depth - 1));
    if (Pick(8) == 0) return b_.Cast(Of(Other(type), depth - 1), type);
    if (Pick(6) == 0) return b_.Let(Of(type, depth - 1));
    if (Pick(5) == 0) return b_.Unary(Pick(2) ? Op::kNeg : Op::kAbs, Of(type, depth - 1));
    static constexpr Op kOps[] = {Op::kAdd, Op::kSub, Op::kMul,      Op::kMin,
                                  Op::kMax, Op::kXor, Op::kFloorMod, Op::kShr};
    Op op = kOps[Pick(type == DType::kF32 ? 5 : 8)];
    return b_.Binary(op, Of(type, depth - 1), Of(type, depth - 1));
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  DType Other(DType t) { return t == DType::kF32 ? DType::kI32 : DType::kF32; }
  Val Condition(int depth) {
    DType t = Pick(2) ? DType::kF32 : DType::kI32;
    Val c = b_.Binary(Pick(2) ? Op::kLt : Op::kEq, Of(t, depth - 1), Of(t, depth - 1));
    return Pick(3) ? c : b_.Unary(Op::kNot, c);
  }
  Val Leaf(DType type) {
    if (type == DType::kBool) return b_.Binary(Op::kLe, Leaf(DType::kI32), Leaf(DType::kI32));
    if (Pick(4) == 0) return b_.Const(type, Pick(9) - 4);
    const auto& buffers = type == DType::kF32 ? floats_ : ints_;
    return b_.Load(buffers[static_cast<size_t>(Pick(static_cast<int>(buffers.size())))],
                   places_[static_cast<size_t>(Pick(static_cast<int>(places_.size())))]);
  }
  Builder& b_;
  std::mt19937& random_;
  const std::vector<int>&floats_, &ints_;
  const std::vector<Expr>& places_;
};

TEST(Emit, RandomKernels) {
  std::mt19937 random(11);
  ExprArena arena;
  std::vector<Case> cases;
  for (int n = 0; n < 60; ++n) {
    const int64_t rows = 1 + static_cast<int64_t>(random() % 5),
                  cols = 1 + static_cast<int64_t>(random() % 50);
    const int64_t size = rows * cols * 2 + 3;
    Case c;
    c.name = "random " + std::to_string(n);
    Builder b(c.kernel, arena);
    std::vector<int> floats = {b.Arg("f", DType::kF32, size, false),
                               b.Arg("h", DType::kF16, size, false)};
    std::vector<int> ints = {b.Arg("i", DType::kI32, size, false),
                             b.Arg("c", DType::kI8, size, false)};
    const bool reduces = n % 3 == 0;
    int y = b.Arg("y", DType::kF32, rows * cols, true);
    b.For("r", rows, n % 2 ? LoopKind::kParallel : LoopKind::kSerial, [&](Expr r) {
      b.For("v", cols, LoopKind::kVector, [&](Expr v) {
        std::vector<Expr> places = {r * cols + v,   r * cols, v, v * 2, r * cols + cols - 1 - v,
                                    FloorDiv(v, 3), Mod(v, 4)};
        RandomValue value(b, random, floats, ints, places);
        Val x = value.Of(DType::kF32, 5);
        if (reduces) {
          x = x + b.Reduce(tile::ReduceOp::kMax, {3}, [&](const std::vector<Expr>& k) {
            std::vector<Expr> inner = {k[0] + v, v, k[0]};
            return RandomValue(b, random, floats, ints, inner).Of(DType::kF32, 2);
          });
        }
        b.Store(y, r * cols + v, x);
      });
    });
    std::vector<float> f(static_cast<size_t>(size));
    std::vector<uint16_t> h(f.size());
    std::vector<int32_t> i(f.size());
    std::vector<int8_t> i8(f.size());
    for (size_t k = 0; k < f.size(); ++k) {
      f[k] = static_cast<float>(static_cast<int>(random() % 33) - 16) / 4;
      h[k] = static_cast<uint16_t>(0x3c00 + (random() % 4) * 0x400 + (random() % 2) * 0x8000);
      i[k] = static_cast<int32_t>(random() % 41) - 20;
      i8[k] = static_cast<int8_t>(random() % 21 - 10);
    }
    c.buffers = {TestBuffer::Of(f), TestBuffer::Of(h), TestBuffer::Of(i), TestBuffer::Of(i8),
                 TestBuffer::Of(std::vector<float>(static_cast<size_t>(rows * cols)))};
    cases.push_back(std::move(c));
  }
  RunCases(cases);
}

// Rounded quotients by a constant, around every tie of the range and at special values: the form
// without a division gives the same integers. Where the range is too wide the division stays.
TEST(Emit, RoundedQuotientsByAConstant) {
  float reciprocal, rest;
  EXPECT_FALSE(RoundsLikeDivision(0.0247f, -1e6, 1e6, &reciprocal, &rest));
  EXPECT_FALSE(RoundsLikeDivision(-1.0f, -10, 10, &reciprocal, &rest));
  ExprArena arena;
  std::vector<Case> cases;
  int without = 0;
  for (float s : {0.0247f, 0.023528f, 0.003921569f, 0.5f, 3.7f, 0.039215688f, 1e-3f}) {
    Case c;
    c.name = "quotient by " + std::to_string(s);
    std::vector<float> in = SpecialFloats();
    for (int tie = -130; tie < 130; ++tie) {
      float x = static_cast<float>(tie + 0.5) * s;
      for (int i = 0; i < 5; ++i) x = std::nextafter(x, -1e30f);
      for (int i = 0; i < 11; ++i, x = std::nextafter(x, 1e30f)) in.push_back(x);
    }
    const int64_t n = static_cast<int64_t>(in.size());
    const double end = 128.6 * static_cast<double>(s);
    without += RoundsLikeDivision(s, -end, end, &reciprocal, &rest);
    Builder b(c.kernel, arena);
    int x = b.Arg("x", DType::kF32, n, false), y = b.Arg("y", DType::kI32, n, true);
    b.For("i", n, LoopKind::kVector, [&](Expr i) {
      Val v = b.Binary(Op::kMin, b.Binary(Op::kMax, b.Load(x, i), b.F(-end)), b.F(end));
      b.Store(y, i, b.Cast(b.Unary(Op::kRound, v / b.F(static_cast<double>(s))), DType::kI32));
    });
    c.out = DType::kI32;
    c.buffers = {TestBuffer::Of(in), TestBuffer::Of(std::vector<int32_t>(in.size()))};
    cases.push_back(std::move(c));
  }
  EXPECT_GE(without, 6);
  RunCases(cases);
}

// Bytes of rounded quotients and what is read of them again, NaN and both ends included.
TEST(Emit, QuantisedAndReadAgain) {
  struct To {
    float step;
    int zero;
    DType type;
  };
  ExprArena arena;
  std::vector<Case> cases;
  for (const To to : {To{0.0247f, 0, DType::kU8}, To{0.02352941f, 128, DType::kU8},
                      To{0.5f, -3, DType::kI8}, To{0.0039215f, 200, DType::kU8}}) {
    for (const bool again : {false, true}) {
      Case c;
      c.name = "bytes by " + std::to_string(to.step) + (again ? " again" : "");
      std::vector<float> in = SpecialFloats();
      for (int q = -1200; q < 1200; ++q) in.push_back(static_cast<float>(q) / 4 * to.step);
      const int64_t n = static_cast<int64_t>(in.size());
      const double least = to.type == DType::kI8 ? -128 : 0, step = static_cast<double>(to.step);
      Builder b(c.kernel, arena);
      c.out = again ? DType::kF32 : DType::kI32;
      int x = b.Arg("x", DType::kF32, n, false), y = b.Arg("y", c.out, n, true);
      b.For("i", n, LoopKind::kVector, [&](Expr i) {
        Val v = b.Binary(Op::kMax, b.Load(x, i), b.F(-1e4));  // the second bound is tighter
        v = b.Binary(Op::kMax, v, b.F((least - to.zero) * step));
        v = b.Binary(Op::kMin, v, b.F((least - to.zero + 255) * step));
        Val q = b.Cast(b.Unary(Op::kRound, v / b.F(step)), DType::kI32);
        const Val zero = b.ConstInt(DType::kI32, to.zero);
        q = b.Narrow(to.zero ? q + zero : q, to.type);
        if (again) q = b.Cast(to.zero ? q - zero : q, DType::kF32) * 2.0;
        b.Store(y, i, q);
      });
      c.buffers = {TestBuffer::Of(in), TestBuffer::Of(std::vector<int32_t>(in.size()))};
      cases.push_back(std::move(c));
    }
  }
  RunCases(cases);
}

// Rows of a matrix, exponentials of them through a local buffer.
void Exponentials(Kernel& k, ExprArena& arena, int64_t rows, int64_t columns, bool slow) {
  Builder b(k, arena);
  const int x = b.Arg("x", DType::kF32, rows * columns, false),
            y = b.Arg("y", DType::kF32, rows * columns, true);
  b.For("r", rows, LoopKind::kParallel, [&](Expr r) {
    const int row = b.Alloc("row", DType::kF32, columns);
    b.For("i", columns, LoopKind::kVector,
          [&](Expr i) { b.Store(row, i, b.Load(x, r * columns + i)); });
    b.For("i", columns, LoopKind::kVector, [&](Expr i) {
      const Val v = b.Load(row, i);
      b.Store(row, i, slow ? b.Unary(Op::kExp, v) : v * 2.0);
    });
    b.For("i", columns, LoopKind::kVector,
          [&](Expr i) { b.Store(y, r * columns + i, b.Load(row, i) + 1.0); });
  });
}

// Only loops that are slow themselves fetch, and only from what the caches do not hold.
TEST(EmitTest, SlowLoopsFetchLinesAhead) {
  ExprArena arena;
  SocSpec soc = HostSoc();
  auto fetches = [&](int64_t rows, bool slow) {
    Kernel k;
    Exponentials(k, arena, rows, 100, slow);
    const std::string code = EmitKernel(k, soc, "k");
    size_t count = 0;
    for (size_t at = 0; (at = code.find("__builtin_prefetch", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  const int64_t rows = soc.l2_bytes / 400 + 1;
  EXPECT_EQ(fetches(rows, true), 2u);
  EXPECT_EQ(fetches(rows, false), 0u);
  EXPECT_EQ(fetches(rows - 1, true), 0u);
  // What a sum inside the loop reads has no place before the loop over its terms.
  Kernel sums;
  {
    Builder b(sums, arena);
    const int x = b.Arg("x", DType::kF32, rows * 100, false),
              y = b.Arg("y", DType::kF32, 100, true);
    b.For("i", 100, LoopKind::kVector, [&](Expr i) {
      const Val sum = b.Reduce(tile::ReduceOp::kSum, {Expr(rows)}, [&](const std::vector<Expr>& k) {
        return b.Load(x, k[0] * 100 + i);
      });
      b.Store(y, i, b.Unary(Op::kExp, sum));
    });
  }
  EXPECT_EQ(EmitKernel(sums, soc, "k").find("__builtin_prefetch"), std::string::npos);
  // The last row has none after it.
  Case c;
  c.name = "exponentials of rows";
  c.tolerance = 1e-6;
  Exponentials(c.kernel, arena, rows, 100, true);
  std::vector<float> in(static_cast<size_t>(rows) * 100);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 37) / 8 - 2;
  c.buffers = {TestBuffer::Of(in), TestBuffer::Of(std::vector<float>(in.size()))};
  std::vector<Case> cases;
  cases.push_back(std::move(c));
  RunCases(cases);
}

}  // namespace
}  // namespace ge::emit
