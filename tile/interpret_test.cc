// The interpreter against a plain tree walk (tile/testing.h): every operation on special values of
// every type, random kernels, BrGemm, bounds, poison and speed.
#include "tile/interpret.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "tile/builder.h"
#include "tile/fold.h"
#include "tile/op_names.h"
#include "tile/testing.h"

namespace ge::tile {
namespace {

using testing::Memory;
using testing::TreeWalker;

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI32,
                            DType::kI64, DType::kU64, DType::kBool};

Memory Filled(DType dtype, int64_t elements) {
  return {dtype, elements,
          std::vector<uint8_t>(static_cast<size_t>(BytesFor(dtype, elements)) + 8)};
}

// Runs the kernel on copies of `memory`'s args, the grid cut into `chunks` pieces.
std::vector<Memory> Interpreted(const Kernel& k, const std::map<std::string, int64_t>& sizes,
                                std::vector<Memory> memory, int chunks = 1) {
  Interpreter interpreter(k);
  std::vector<void*> buffers;
  for (Memory& m : memory) buffers.push_back(m.bytes.data());
  std::vector<int64_t> values;
  for (Expr s : k.symbols) values.push_back(sizes.at(s.node()->name));
  ge_kernel_call call{};
  call.buffers = buffers.data();
  call.sizes = values.data();
  call.self = &interpreter;
  const int64_t grid = interpreter.Grid(values.data());
  for (int c = chunks; c-- > 0;)
    GeInterpretKernel(&call, grid * c / chunks, grid * (c + 1) / chunks);
  return memory;
}

std::vector<double> SpecialValues(DType t) {
  const double inf = INFINITY;
  switch (t) {
    case DType::kF32:
      return {0,    -0.0, 1,     -1,      0.5,          1.5,           2.5,
              -2.5, 3,    1e30f, -1e30f,  2147483648.0, -2147483648.0, 9.3e18f,
              inf,  -inf, NAN,   16777216};
    case DType::kF64:
      return {0, -0.0, 1, -1, 0.5, 2.5, -3.5, 1e300, 9.3e18, -9.3e18, 1.9e19, inf, -inf, NAN};
    case DType::kI32: return {0, 1, -1, 2, 5, -7, 31, 32, 40, 2147483647.0, -2147483648.0};
    case DType::kI64: return {0, 1, -1, 3, -9, 63, 64, 9.2e18, -9223372036854775808.0};
    case DType::kU64: return {0, 1, 2, 63, 64, 9.3e18, 18446744073709549568.0};
    default: return {0, 1};
  }
}

Memory Special(DType t, const std::vector<double>& values) {
  Memory m = Filled(t, static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (t == DType::kU64)
      StoreElement(t, m.bytes.data(), at, static_cast<uint64_t>(values[i]));
    else if (IsFloat(t))
      StoreElement(t, m.bytes.data(), at, values[i]);
    else
      StoreElement(t, m.bytes.data(), at, static_cast<int64_t>(values[i]));
  }
  return m;
}

bool SameElement(DType t, const Memory& a, const Memory& b, int64_t i, double ulps) {
  if (!IsFloat(t)) {
    return LoadElement<int64_t>(t, a.bytes.data(), i) == LoadElement<int64_t>(t, b.bytes.data(), i);
  }
  const double x = LoadElement<double>(t, a.bytes.data(), i),
               y = LoadElement<double>(t, b.bytes.data(), i);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  const double unit = t == DType::kF64 ? 0x1p-52 : 0x1p-23;
  return std::fabs(x - y) <= ulps * unit * std::fabs(y);
}

void ExpectSame(const Kernel& k, const std::vector<Memory>& got, const std::vector<Memory>& want,
                double ulps = 0) {
  for (int b = 0; b < k.NumArgs(); ++b) {
    if (!k.buffers[b].written) continue;
    for (int64_t i = 0; i < want[b].elements; ++i) {
      ASSERT_TRUE(SameElement(want[b].dtype, got[b], want[b], i, ulps))
          << k.buffers[b].name << "[" << i << "]: got "
          << LoadElement<double>(want[b].dtype, got[b].bytes.data(), i) << ", want "
          << LoadElement<double>(want[b].dtype, want[b].bytes.data(), i) << "\n"
          << ToString(k);
    }
  }
}

// y[i] = f(x[i], z[i]) over all pairs of special values.
void CheckOperation(DType from, DType to, const std::function<Val(Builder&, Val, Val)>& f,
                    double ulps) {
  const std::vector<double> values = SpecialValues(from);
  std::vector<double> xs, zs;
  for (double x : values) {
    for (double z : values) xs.push_back(x), zs.push_back(z);
  }
  const auto n = static_cast<int64_t>(xs.size());
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int x = b.Arg("x", from, n, false), z = b.Arg("z", from, n, false),
            y = b.Arg("y", to, n, true);
  b.For("i", n, LoopKind::kVector,
        [&](Expr i) { b.Store(y, i, f(b, b.Load(x, i), b.Load(z, i))); });
  ASSERT_TRUE(Verify(k).ok()) << Verify(k).message();
  std::vector<Memory> memory{Special(from, xs), Special(from, zs), Filled(to, n)};
  TreeWalker walker(k, {});
  walker.memory = memory;
  walker.Run();
  ExpectSame(k, Interpreted(k, {}, memory), walker.memory, ulps);
}

bool WalkerKnows(Op op) {
  switch (op) {
    case Op::kLog:
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtan:
    case Op::kSinh:
    case Op::kCosh:
    case Op::kAsinh:
    case Op::kAcosh:
    case Op::kAtanh:
    case Op::kErf:
    case Op::kGelu:
    case Op::kLgamma:
    case Op::kExpm1:
    case Op::kLog1p: return false;
    default: return true;
  }
}

TEST(Interpreter, EveryOperationOnSpecialValues) {
  int tested = 0;
  for (int o = static_cast<int>(Op::kNeg); o <= static_cast<int>(Op::kNe); ++o) {
    const Op op = static_cast<Op>(o);
    for (DType t : kTypes) {
      if (!HasOp(op, t) || !WalkerKnows(op)) continue;
      SCOPED_TRACE(std::string(Name(op)) + " " + std::string(ge::Name(t)));
      ++tested;
      // Integer powers are defined by repeated multiplication; checked apart.
      if (op == Op::kPow && !IsFloat(t)) continue;
      CheckOperation(
          t, ResultType(op, t),
          [&](Builder& b, Val x, Val z) {
            return op >= Op::kAdd ? b.Binary(op, x, z) : b.Unary(op, x);
          },
          op == Op::kPow || op == Op::kExp || op == Op::kTanh || op == Op::kAtan2 ? 4 : 0);
    }
  }
  EXPECT_GT(tested, 90);
}

TEST(Interpreter, Casts) {
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      SCOPED_TRACE(std::string(ge::Name(from)) + " to " + std::string(ge::Name(to)));
      CheckOperation(from, to, [&](Builder& b, Val x, Val) { return b.Cast(x, to); }, 0);
      if (BitWidth(from) == BitWidth(to) && IsFloat(from) != IsFloat(to)) {
        CheckOperation(from, to, [&](Builder& b, Val x, Val) { return b.BitCast(x, to); }, 0);
      }
    }
  }
}

TEST(Interpreter, StorageTypes) {
  for (int t = static_cast<int>(DType::kF32); t <= static_cast<int>(DType::kI2); ++t) {
    const DType storage = static_cast<DType>(t);
    const DType compute = ComputeType(storage);
    if (compute == DType::kNone) continue;
    SCOPED_TRACE(std::string(ge::Name(storage)));
    CheckOperation(
        compute, compute, [&](Builder& b, Val x, Val) { return b.Narrow(x, storage); }, 0);
    CheckOperation(compute, storage, [&](Builder&, Val x, Val) { return x; }, 0);
  }
}

TEST(Interpreter, Libm) {
  const std::pair<Op, double (*)(double)> functions[] = {
      {Op::kLog, std::log},     {Op::kSin, std::sin},       {Op::kCos, std::cos},
      {Op::kTan, std::tan},     {Op::kAsin, std::asin},     {Op::kAcos, std::acos},
      {Op::kAtan, std::atan},   {Op::kSinh, std::sinh},     {Op::kCosh, std::cosh},
      {Op::kAsinh, std::asinh}, {Op::kAcosh, std::acosh},   {Op::kAtanh, std::atanh},
      {Op::kErf, std::erf},     {Op::kLgamma, std::lgamma}, {Op::kExpm1, std::expm1},
      {Op::kLog1p, std::log1p}};
  std::vector<double> xs{0, 1, 0.5f, 0.25f, 0.75f, 2, 3.5, 7, 30, INFINITY, NAN, 0.0001f};
  const auto n = static_cast<int64_t>(xs.size());
  for (auto [op, f] : functions) {
    ExprArena arena;
    Kernel k;
    Builder b(k, arena);
    const int x = b.Arg("x", DType::kF32, n, false), y = b.Arg("y", DType::kF32, n, true);
    b.For("i", n, LoopKind::kVector, [&](Expr i) { b.Store(y, i, b.Unary(op, b.Load(x, i))); });
    std::vector<Memory> out =
        Interpreted(k, {}, {Special(DType::kF32, xs), Filled(DType::kF32, n)});
    for (int64_t i = 0; i < n; ++i) {
      const double want = f(xs[static_cast<size_t>(i)]);
      const double got = LoadElement<double>(DType::kF32, out[1].bytes.data(), i);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << Name(op);
      else if (std::isinf(want))
        EXPECT_EQ(got, want) << Name(op);
      else
        EXPECT_NEAR(got, want, 3e-7 * std::fabs(want) + 1e-12)
            << Name(op) << xs[static_cast<size_t>(i)];
    }
  }
}

TEST(Interpreter, FlushesDenormals) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int x = b.Arg("x", DType::kF32, 1, false), y = b.Arg("y", DType::kF32, 1, true);
  b.Store(y, 0, b.Load(x, 0) * 0.5);
  Memory in = Special(DType::kF32, {1.2e-38});
  std::vector<Memory> out = Interpreted(k, {}, {in, Filled(DType::kF32, 1)});
  EXPECT_EQ(LoadElement<float>(DType::kF32, out[1].bytes.data(), 0), 0.0f);
}

// ---- Random kernels ----

class RandomKernel {
 public:
  RandomKernel(uint32_t seed, ExprArena& arena) : random_(seed), arena_(arena), b_(k_, arena) {}

  Kernel Make() {
    type_ = Pick({DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU64});
    n_ = arena_.Symbol("n");
    m_ = arena_.Symbol("m");
    for (int i = 0; i < 2; ++i)
      inputs_.push_back(b_.Arg("x" + std::to_string(i), Storage(), n_ * m_, false));
    positions_ = b_.Arg("at", DType::kI32, n_, false);
    y_ = b_.Arg("y", Storage(), n_ * m_, true);
    switch (Below(4)) {
      case 0: Rows(LoopKind::kParallel); break;
      case 1: Flat(); break;
      case 2: Local(); break;
      default: Rows(LoopKind::kSerial); break;
    }
    CollectSizeSymbols(k_);
    k_.name = "random";
    return std::move(k_);
  }
  DType type() const { return type_; }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  DType Pick(std::vector<DType> of) {
    return of[static_cast<size_t>(Below(static_cast<int>(of.size())))];
  }
  DType Storage() {
    if (type_ == DType::kF32)
      return Pick({DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E5M2});
    if (type_ == DType::kI32)
      return Pick({DType::kI32, DType::kU8, DType::kI8, DType::kI16, DType::kI4, DType::kU2});
    if (type_ == DType::kI64) return Pick({DType::kI64, DType::kU32});
    return type_;
  }
  // An offset in [0, n*m) from indices i < m and j < n.
  Expr Offset(Expr i, Expr j) {
    switch (Below(6)) {
      case 0: return Mod(i * n_ + j * 3 + 1, n_ * m_);
      case 1: return j * m_ + i;
      case 2: return i * n_ + (n_ - 1 - j);
      case 3: return ge::Min(i * n_ + j + 2, n_ * m_ - 1);
      case 4: return i * n_;
      default: return i * n_ + j;
    }
  }
  Val Leaf(Expr i, Expr j) {
    switch (Below(6)) {
      case 0: return b_.Const(type_, Below(4));
      case 1: return b_.Cast(b_.Index(ge::Select(Lt(i, j), 1, Mod(i + j, 3))), type_);
      case 2:
        if (!lets_.empty())
          return lets_[static_cast<size_t>(Below(static_cast<int>(lets_.size())))];
        [[fallthrough]];
      default: return b_.Load(inputs_[static_cast<size_t>(Below(2))], Offset(i, j));
    }
  }
  Val Value(Expr i, Expr j, int depth) {
    if (depth == 0) return Leaf(i, j);
    Val a = Value(i, j, depth - 1);
    Val c = Below(3) ? Leaf(i, j) : Value(i, j, depth - 1);
    switch (Below(8)) {
      case 0: return a + c;
      case 1: return a - c;
      case 2: return depth < 3 ? a * c : a + c;
      case 3: return b_.Binary(Op::kMin, a, c);
      case 4: return b_.Binary(Op::kMax, a, c);
      case 5: return b_.Select(b_.Binary(Op::kLt, a, c), c, a);
      case 6:
        return type_ == DType::kF32 && depth < 3 ? b_.Fma(a, c, Leaf(i, j)) : b_.Unary(Op::kAbs, a);
      default: return b_.Select(b_.Binary(Op::kLe, b_.Index(i), b_.Index(j)), a, c);
    }
  }
  Val Reduced(Expr i, Expr j) {
    const ReduceOp ops[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin};
    std::vector<Expr> extents{m_};
    if (Below(2)) extents.push_back(Expr(3));
    if (Below(3) == 0) extents.push_back(n_);
    return b_.Reduce(ops[Below(3)], extents, [&](const std::vector<Expr>& r) {
      std::vector<Val> outer = lets_;
      if (Below(2)) lets_.push_back(b_.Let(Value(r[0], j, 1)));
      Val v = Below(2) ? Value(r[0], j, 1) : Value(i, Mod(r.back(), n_), 1);
      lets_ = outer;
      return v;
    });
  }
  void Point(Expr i, Expr j) {
    std::vector<Val> outer = lets_;
    if (Below(2)) lets_.push_back(b_.Let(Value(i, j, 2)));
    if (Below(3) == 0) {
      Expr at = b_.LetIndex(b_.Cast(b_.Load(positions_, j), DType::kI64), 0, INT64_MAX - 1, n_);
      lets_.push_back(b_.Let(b_.Load(inputs_[0], i * n_ + at)));
    }
    if (Below(2)) lets_.push_back(Reduced(i, j));
    Val v = Value(i, j, 3);
    Expr to = Below(4) ? i * n_ + j : (m_ - 1 - i) * n_ + j;
    if (Below(3)) {
      b_.Store(y_, to, v);
    } else {
      b_.If(
          b_.Binary(Op::kLt, b_.Load(inputs_[1], i * n_ + j), b_.Const(type_, 1)),
          [&] { b_.Store(y_, to, v); },
          [&] {
            Val w = b_.Let(Leaf(i, j));
            b_.Store(y_, to, b_.Binary(Op::kMax, w, b_.Const(type_, 1)));
          });
    }
    lets_ = outer;
  }
  void Rows(LoopKind kind) {
    b_.For("i", m_, kind, [&](Expr i) {
      if (Below(2)) lets_.push_back(Reduced(i, Mod(i, n_)));
      b_.For("j", n_, LoopKind::kVector, [&](Expr j) { Point(i, j); });
      lets_.clear();
    });
  }
  void Flat() {
    b_.For("f", m_ * n_, LoopKind::kParallel, [&](Expr f) { Point(FloorDiv(f, n_), Mod(f, n_)); });
  }
  void Local() {
    b_.For("i", m_, LoopKind::kParallel, [&](Expr i) {
      const int t = b_.Alloc("t", type_, n_);
      b_.For("j", n_, LoopKind::kVector, [&](Expr j) { b_.Store(t, n_ - 1 - j, Value(i, j, 2)); });
      b_.For("j", n_, LoopKind::kSerial,
             [&](Expr j) { b_.Store(t, j, b_.Load(t, j) + b_.Load(t, ge::Max(j - 1, 0))); });
      b_.For("j", n_, LoopKind::kVector, [&](Expr j) { b_.Store(y_, i * n_ + j, b_.Load(t, j)); });
    });
  }

  std::mt19937 random_;
  ExprArena& arena_;
  Kernel k_;
  Builder b_;
  DType type_ = DType::kF32;
  Expr n_, m_;
  std::vector<int> inputs_;
  int positions_ = -1, y_ = -1;
  std::vector<Val> lets_;
};

std::vector<Memory> RandomMemory(const Kernel& k, TreeWalker& walker, std::mt19937& random,
                                 int64_t n) {
  std::vector<Memory> memory;
  for (int i = 0; i < k.NumArgs(); ++i) {
    const Buffer& buffer = k.buffers[i];
    Memory m = Filled(buffer.dtype, walker.Eval(buffer.elements));
    for (int64_t e = 0; e < m.elements; ++e) {
      int64_t v = static_cast<int64_t>(random() % 4);
      if (buffer.name == "at")
        v = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
      else if (IsSigned(buffer.dtype) && buffer.dtype != DType::kI4)
        v -= 2;
      StoreElement(buffer.dtype, m.bytes.data(), e, v);
    }
    memory.push_back(std::move(m));
  }
  return memory;
}

TEST(Interpreter, RandomKernelsAgreeWithTheTreeWalk) {
  int out_of_range = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ExprArena arena;
    Kernel k = RandomKernel(seed, arena).Make();
    ASSERT_TRUE(Verify(k).ok()) << Verify(k).message() << ToString(k);
    std::mt19937 random(seed);
    const int64_t widths[] = {1, 2, 3, 7, 16, 33, 255, 256, 257, 300};
    const int64_t n = widths[random() % 10],
                  m = n > 200 ? 2 : 1 + static_cast<int64_t>(random() % 6);
    std::map<std::string, int64_t> sizes{{"n", n}, {"m", m}};
    TreeWalker walker(k, sizes);
    walker.memory = RandomMemory(k, walker, random, n);
    std::vector<Memory> inputs = walker.memory;
    walker.Run();
    out_of_range += walker.out_of_range;
    if (walker.out_of_range) continue;
    ExpectSame(k, Interpreted(k, sizes, inputs, 1), walker.memory);
    ExpectSame(k, Interpreted(k, sizes, inputs, 3), walker.memory);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(out_of_range, 20);
}

TEST(Interpreter, TextRoundTripsAndRunsTheSame) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ExprArena arena;
    Kernel k = RandomKernel(seed, arena).Make();
    const std::string canonical = ToString(k, true);
    ExprArena other;
    Result<Kernel> parsed = ParseKernel(ToString(k), other);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message() << "\n" << ToString(k);
    EXPECT_EQ(ToString(*parsed, true), canonical);
    // Into an arena that has symbols of the same names already.
    Result<Kernel> again = ParseKernel(canonical, other);
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << canonical;
    EXPECT_EQ(ToString(*again, true), canonical);
    ASSERT_TRUE(Verify(*again).ok()) << Verify(*again).message();
  }
}

// ---- BrGemm ----

Kernel GemmKernel(ExprArena& arena, DType in, int m, int n, Expr n_valid, Expr k_extent,
                  bool lanes) {
  Kernel k;
  Builder b(k, arena);
  const DType acc_type = ComputeType(in);
  const int a = b.Arg("a", in, Expr(3) * m * k_extent, false);
  const int w = b.Arg("b", in, Expr(3) * k_extent * n, false);
  const int bias = b.Arg("bias", acc_type, n, false);
  const int c = b.Arg("c", acc_type, Expr(m) * n, true);
  BrGemm g;
  g.m = m;
  g.n = n;
  g.n_valid = n_valid;
  g.k = k_extent;
  Expr batch = arena.Fresh("p", {.lo = 0, .hi = 2});
  g.batch = {{batch, 3}};
  g.a_buffer = a;
  g.b_buffer = w;
  g.a = batch * m * k_extent;
  g.a_row = k_extent;
  g.a_k = 1;
  g.b = batch * k_extent * n;
  g.b_k = n;
  b.Gemm(g, [&](Expr row, Expr col, Val acc) {
    if (!lanes) {
      const int t = b.Alloc("t", acc_type, 1);
      b.Store(t, 0, acc);
      acc = b.Load(t, 0);
    }
    b.Store(c, row * n + col, b.Binary(Op::kMax, acc + b.Load(bias, col), b.Const(acc_type, 0)));
  });
  CollectSizeSymbols(k);
  return k;
}

TEST(Interpreter, BrGemm) {
  for (DType in : {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kU8}) {
    for (int m : {1, 4, 7}) {
      for (int n : {8, 16, 12}) {
        for (bool lanes : {true, false}) {
          ExprArena arena;
          Kernel k = GemmKernel(arena, in, m, n, n - 1, arena.Symbol("k"), lanes);
          ASSERT_TRUE(Verify(k).ok()) << Verify(k).message();
          std::map<std::string, int64_t> sizes{{"k", 19}};
          std::mt19937 random(1);
          TreeWalker walker(k, sizes);
          walker.memory = RandomMemory(k, walker, random, 1);
          std::vector<Memory> inputs = walker.memory;
          walker.Run();
          ExpectSame(k, Interpreted(k, sizes, inputs), walker.memory);
          ExprArena other;
          Result<Kernel> parsed = ParseKernel(ToString(k), other);
          ASSERT_TRUE(parsed.ok()) << parsed.status().message() << ToString(k);
          EXPECT_EQ(ToString(*parsed, true), ToString(k, true));
        }
      }
    }
  }
}

// ---- Bounds, poison, canonical names, speed ----

TEST(InterpreterDeathTest, AccessOutsideOfABufferAborts) {
  ExprArena arena;
  Kernel k;
  k.name = "bad";
  Builder b(k, arena);
  const int x = b.Arg("x", DType::kF32, 4, false), y = b.Arg("y", DType::kF32, 8, true);
  b.For("i", 8, LoopKind::kVector, [&](Expr i) { b.Store(y, i, b.Load(x, i)); });
  std::vector<Memory> memory{Filled(DType::kF32, 8), Filled(DType::kF32, 8)};
  const auto run = [&] {
    setenv("TMPDIR", "/nowhere", 1);  // no crash file is wanted here
    Interpreted(k, {}, memory);
  };
  EXPECT_DEATH(run(), "kernel bad: load of x\\[7\\], capacity 4");
}

TEST(Interpreter, PoisonsLocals) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int y = b.Arg("y", DType::kF32, 2, true);
  const int t = b.Alloc("t", DType::kF32, 2);
  b.Store(t, 0, b.F(1));
  b.For("i", 2, LoopKind::kVector, [&](Expr i) { b.Store(y, i, b.Load(t, i) + 1); });
  std::vector<Memory> out = Interpreted(k, {}, {Filled(DType::kF32, 2)});
  EXPECT_EQ(LoadElement<float>(DType::kF32, out[0].bytes.data(), 0), 2);
  EXPECT_TRUE(std::isnan(LoadElement<float>(DType::kF32, out[0].bytes.data(), 1)));
}

TEST(Interpreter, IntegerPowers) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  auto pow = [&](DType t, int64_t x, int64_t y) {
    return k.values[b.Binary(Op::kPow, b.ConstInt(t, x), b.ConstInt(t, y)).id].i;
  };
  EXPECT_EQ(pow(DType::kI32, 3, 4), 81);
  EXPECT_EQ(pow(DType::kI32, -2, 3), -8);
  EXPECT_EQ(pow(DType::kI32, 2, 32), 0);
  EXPECT_EQ(pow(DType::kI64, 2, -1), 0);
  EXPECT_EQ(pow(DType::kI64, -1, -3), -1);
  EXPECT_EQ(pow(DType::kI64, 7, 0), 1);
}

// How many times as long the tree walk takes as the interpreter, of the CPU's time.
[[maybe_unused]] double WalkOverInterpreter(const Kernel& k) {
  TreeWalker walker(k, {});
  std::mt19937 random(1);
  walker.memory = RandomMemory(k, walker, random, 1);
  Interpreter interpreter(k);
  std::vector<void*> buffers;
  for (Memory& m : walker.memory) buffers.push_back(m.bytes.data());
  ge_kernel_call call{};
  call.buffers = buffers.data();
  const int64_t grid = interpreter.Grid(nullptr);
  interpreter.Run(call, 0, grid);
  std::clock_t start = std::clock();
  for (int i = 0; i < 20; ++i) interpreter.Run(call, 0, grid);
  const auto ours = static_cast<double>(std::clock() - start) / 20;
  start = std::clock();
  walker.Run();
  const auto walked = static_cast<double>(std::clock() - start);
  std::printf("interpreter %.0f us, tree walk %.0f us\n", ours * 1e6 / CLOCKS_PER_SEC,
              walked * 1e6 / CLOCKS_PER_SEC);
  return walked / std::max(ours, 1.0);
}

TEST(Interpreter, IsNotATreeWalk) {
#ifndef GE_SANITIZED
  ExprArena arena;
  EXPECT_GT(WalkOverInterpreter(GemmKernel(arena, DType::kF32, 16, 64, 64, 128, true)), 20);
  Kernel copy;
  Builder b(copy, arena);
  const int n = 1 << 18;
  const int x = b.Arg("x", DType::kF32, n, false), y = b.Arg("y", DType::kF32, n, true);
  b.For("i", n / 64, LoopKind::kParallel, [&](Expr i) {
    b.For("j", 64, LoopKind::kVector,
          [&](Expr j) { b.Store(y, i * 64 + j, b.Load(x, i * 64 + j)); });
  });
  EXPECT_GT(WalkOverInterpreter(copy), 5);
#endif
}

}  // namespace
}  // namespace ge::tile
