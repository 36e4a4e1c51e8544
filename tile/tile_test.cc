// Builder, canonical text, scratch plan and verifier.
#include "tile/tile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tile/builder.h"

namespace ge::tile {
namespace {

Kernel Relu(ExprArena& arena, const std::string& name, const std::string& size,
            const std::string& loop) {
  Kernel k;
  k.name = name;
  Builder b(k, arena);
  Expr n = arena.Symbol(size);
  const int x = b.Arg(name + "_in", DType::kF32, n * 4, false);
  const int y = b.Arg(name + "_out", DType::kF32, n * 4, true);
  b.For(loop, n, LoopKind::kParallel, [&](Expr i) {
    b.For(loop + "2", 4, LoopKind::kVector, [&](Expr j) {
      Val v = b.Load(x, i * 4 + j);
      b.Store(y, i * 4 + j, b.Binary(Op::kMax, v * v, b.F(0)));
    });
  });
  CollectSizeSymbols(k);
  return k;
}

TEST(Text, Prints) {
  ExprArena arena;
  EXPECT_EQ(ToString(Relu(arena, "relu", "n", "i"), true),
            "kernel (s0)\n"
            "arg a0: f32[(4*s0)]\n"
            "arg a1: f32[(4*s0)] out\n"
            "parallel i0 in s0 {\n"
            "  vector i1 in 4 {\n"
            "    %0 = load(a0, ((4*i0) + i1))\n"
            "    store a1[((4*i0) + i1)] = max(mul(%0, %0), 0:f32)\n"
            "  }\n"
            "}\n");
}

TEST(Text, CanonicalTextIsFreeOfNames) {
  ExprArena one, two;
  // Other symbols first, so that ids and the order of operands differ.
  Expr z = two.Symbol("zz") + two.Symbol("aa");
  EXPECT_TRUE(z.IsValid());
  Kernel a = Relu(one, "relu", "batch", "i"), b = Relu(two, "act", "aa", "zz");
  EXPECT_EQ(ToString(a, true), ToString(b, true));
  EXPECT_NE(ToString(a), ToString(b));
  // Values that nothing uses are not part of the identity.
  ValueNode unused;
  unused.f = 42;
  b.Add(unused);
  EXPECT_EQ(ToString(a, true), ToString(b, true));
}

TEST(Text, Faults) {
  ExprArena arena;
  auto message = [&](const char* text) { return ParseKernel(text, arena).status().message(); };
  EXPECT_NE(message("kernel ()\nstore y[0] = 1:f32\n").find("unknown buffer y"), std::string::npos);
  EXPECT_NE(message("kernel ()\narg y: f32[1] out\nstore y[0] = add(1:f32, 1:i32)\n")
                .find("different types"),
            std::string::npos);
  EXPECT_NE(message("kernel ()\nfrob\n").find("unknown statement frob"), std::string::npos);
  EXPECT_NE(message("kernel ()\narg y: f99[1]\n").find("unknown type f99"), std::string::npos);
  EXPECT_FALSE(ParseKernel("kernel ()\nserial i in 4 {", arena).ok());
}

TEST(Kernel, ConstantsAreKeptApartByTheirBits) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  EXPECT_NE(b.F(0.0).id, b.F(-0.0).id);
  EXPECT_EQ(b.F(NAN).id, b.F(NAN).id);
  EXPECT_EQ((b.F(2) + b.F(3)).id, b.F(5).id);
  EXPECT_EQ(b.F(0.1).id, b.Const(DType::kF32, 0.1f).id);
}

TEST(Builder, FoldsNeutralOperandsOnly) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int x = b.Arg("x", DType::kF32, 8, false), i = b.Arg("i", DType::kI32, 8, false);
  Val f = b.Load(x, 0), n = b.Load(i, 0);
  EXPECT_EQ((f * 1).id, f.id);
  EXPECT_NE((f + 0).id, f.id);  // -0.0 + 0.0 is 0.0
  EXPECT_EQ((n + 0).id, n.id);
  EXPECT_NE((f * 0).id, b.F(0).id);
  EXPECT_EQ(b.Narrow(b.Narrow(f, DType::kF16), DType::kF16).id, b.Narrow(f, DType::kF16).id);
  EXPECT_EQ(b.Index(Expr(3)).id, b.ConstInt(DType::kI64, 3).id);
}

TEST(Builder, LoadsOfWrittenBuffersAreBoundWhereTheyStand) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int y = b.Arg("y", DType::kF32, 2, true);
  Val before = b.Load(y, 0);
  b.Store(y, 0, b.F(1));
  b.Store(y, 1, before);
  ASSERT_EQ(k.body.body.size(), 3u);
  EXPECT_EQ(k.body.body[0].kind, StmtKind::kLet);
}

TEST(Builder, LoopsOfOneStepVanish) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int y = b.Arg("y", DType::kF32, 1, true);
  b.For("i", 1, LoopKind::kParallel, [&](Expr i) { b.Store(y, i, b.F(1)); });
  EXPECT_EQ(k.body.body.at(0).kind, StmtKind::kStore);
  EXPECT_EQ(k.Grid(), Expr(1));
}

TEST(Scratch, SiblingsShare) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  Expr n = arena.Symbol("n");
  const int y = b.Arg("y", DType::kF32, n, true);
  int small = -1, first = -1, second = -1, nested = -1;
  b.For("i", n, LoopKind::kParallel, [&](Expr i) {
    small = b.Alloc("small", DType::kF32, 1024);
    b.For("j", 2, LoopKind::kSerial, [&](Expr) { first = b.Alloc("first", DType::kF32, 2048); });
    b.For("j", 2, LoopKind::kSerial, [&](Expr) {
      second = b.Alloc("second", DType::kI4, n);
      nested = b.Alloc("nested", DType::kF64, 1000);
    });
    b.Store(y, i, b.F(0));
  });
  ScratchPlan plan = PlanScratch(k);
  EXPECT_EQ(plan.offset[y], Expr(-1));
  EXPECT_EQ(plan.offset[small], Expr(-1));
  EXPECT_EQ(plan.offset[first], Expr(0));
  EXPECT_EQ(plan.offset[second], Expr(0));
  EXPECT_EQ(plan.offset[nested], RoundUp(CeilDiv(n * 4, 8), 64));
  auto bytes = Evaluate(plan.bytes, [](Expr) { return std::optional<int64_t>(1000); });
  EXPECT_EQ(bytes, 512 + 8000);
}

std::string Faults(const Kernel& k) { return Verify(k).message(); }

TEST(Verify, ListsEveryFault) {
  ExprArena arena;
  Kernel k = Relu(arena, "relu", "n", "i");
  EXPECT_EQ(Faults(k), "");
  Kernel inner = k;
  inner.body.body[0].loop = LoopKind::kSerial;
  inner.body.body[0].body[0].loop = LoopKind::kParallel;
  EXPECT_NE(Faults(inner).find("is not the outermost statement"), std::string::npos);
  Kernel no_size = k;
  no_size.symbols.clear();
  EXPECT_NE(Faults(no_size).find("symbol n is not in scope"), std::string::npos);
  Kernel read_only = k;
  read_only.buffers[1].written = false;
  EXPECT_NE(Faults(read_only).find("relu_out is read-only"), std::string::npos);
  Kernel two = k;
  two.buffers[1].dtype = DType::kI32;
  two.buffers[0].dtype = DType::kString;
  const std::string faults = Faults(two);
  EXPECT_NE(faults.find("value of another type"), std::string::npos);
  EXPECT_NE(faults.find("kernels have no type"), std::string::npos);
  EXPECT_NE(faults.find('\n'), std::string::npos);
}

TEST(Verify, Scopes) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int y = b.Arg("y", DType::kF32, 8, true);
  Expr escaped;
  Val inside;
  b.For("i", 8, LoopKind::kSerial, [&](Expr i) {
    escaped = i;
    inside = b.Let(b.Cast(b.Index(i), DType::kF32));
  });
  b.Store(y, escaped, inside);
  const std::string faults = Faults(k);
  EXPECT_NE(faults.find("is not in scope"), std::string::npos);
  EXPECT_NE(faults.find("variable"), std::string::npos);
}

// sum over i < 7, j < 5 of x[at(i, j)] * 2: the number of axes that are left.
size_t AxesOf(const std::function<Expr(Expr, Expr)>& at, bool index = false) {
  ExprArena arena;
  Kernel k;
  Builder b(k, arena);
  const int x = b.Arg("x", DType::kF32, 1000, false), y = b.Arg("y", DType::kF32, 1, true);
  b.Store(y, 0, b.Reduce(ReduceOp::kSum, {7, 5}, [&](const std::vector<Expr>& r) {
    Val v = b.Let(b.Load(x, at(r[0], r[1])) * 2.0);
    return index ? v * b.Cast(b.Index(r[1]), DType::kF32) : v;
  }));
  CollectSizeSymbols(k);
  EXPECT_TRUE(Verify(k).ok()) << ToString(k);
  return k.body.body[0].axes.size();
}

TEST(Reduce, AxesThatWalkMemoryAsOneAreOne) {
  EXPECT_EQ(AxesOf([](Expr i, Expr j) { return i * 5 + j + 3; }), 1u);
  EXPECT_EQ(AxesOf([](Expr i, Expr j) { return i * 80 + j * 16; }), 1u);
  EXPECT_EQ(AxesOf([](Expr i, Expr j) { return i * 6 + j; }), 2u);
  EXPECT_EQ(AxesOf([](Expr i, Expr j) { return j * 7 + i; }), 2u);
  EXPECT_EQ(AxesOf([](Expr i, Expr) { return i; }), 2u);
  EXPECT_EQ(AxesOf([](Expr i, Expr j) { return i * 5 + j; }, true), 2u);
}

}  // namespace
}  // namespace ge::tile
