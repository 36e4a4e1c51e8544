// Builder: how TileIR is written. Val is a value of the kernel under construction; the usual
// operators work on it. Statements go to the current block; scopes are opened by the *Scope calls
// with a lambda.
//
//   Builder b(kernel);
//   b.For("i", n, LoopKind::kParallel, [&](Expr i) { b.Store(y, i, b.Max(b.Load(x, i), b.F(0)));
//   });
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "tile/tile.h"

namespace ge::tile {

class Builder;

struct Val {
  Builder* b = nullptr;
  ExprId id = -1;
  DType type() const;
  bool valid() const { return id >= 0; }
};

class Builder {
 public:
  Builder(Kernel& kernel, ExprArena& arena);
  Kernel& kernel() { return kernel_; }
  ExprArena& arena() { return arena_; }

  // Values. Operands of binary operations must have equal compute types (constants made by
  // Const(type, x) follow). Const folding of constants is done here.
  Val Const(DType type, double x);  // of a compute type; integers: exact up to 2^53
  Val ConstInt(DType type, int64_t x);
  Val F(double x) { return Const(DType::kF32, x); }
  Val Index(Expr e);  // i64
  Val Load(int buffer, Expr offset);
  Val Unary(Op op, Val a);
  Val Binary(Op op, Val a, Val b);
  Val Select(Val condition, Val a, Val b);
  Val Fma(Val a, Val b, Val c);  // a * b + c, rounded once
  Val Cast(Val a, DType compute_type);
  Val Narrow(Val a, DType storage);  // no-op where storage == compute type
  // Cast between storage types as ONNX means it: to `to`'s compute type, rounded to `to`.
  Val Convert(Val a, DType to);
  Val BitCast(Val a, DType compute_type);

  // Statements, appended to the current block.
  int Arg(std::string_view name, DType dtype, Expr elements, bool written);
  void For(std::string_view name, Expr extent, LoopKind kind,
           const std::function<void(Expr)>& body);
  int Alloc(std::string_view name, DType dtype, Expr elements);  // scope: the rest of this block
  Val Let(Val value);  // names a value (evaluated here, once)
  // i64 value -> index symbol; `hint`: a typical value, for estimates.
  Expr LetIndex(Val value, int64_t lo, int64_t hi, Expr extent = 0, int64_t hint = 0);
  void If(Val condition, const std::function<void()>& then,
          const std::function<void()>& otherwise = {});
  void Store(int buffer, Expr offset, Val value);
  // var = reduce over axes (extents) of f(axis symbols). Lets made inside f go into the Reduce.
  Val Reduce(ReduceOp op, const std::vector<Expr>& extents,
             const std::function<Val(const std::vector<Expr>&)>& f);
  // The epilogue gets (row, col, acc).
  void Gemm(BrGemm gemm, const std::function<void(Expr row, Expr col, Val acc)>& epilogue);

 private:
  friend struct Val;
  Kernel& kernel_;
  ExprArena& arena_;
  std::vector<Stmt*> blocks_;
};

inline Val operator+(Val a, Val b) { return a.b->Binary(Op::kAdd, a, b); }
inline Val operator-(Val a, Val b) { return a.b->Binary(Op::kSub, a, b); }
inline Val operator*(Val a, Val b) { return a.b->Binary(Op::kMul, a, b); }
inline Val operator/(Val a, Val b) { return a.b->Binary(Op::kDiv, a, b); }
inline Val operator-(Val a) { return a.b->Unary(Op::kNeg, a); }
// With a number on one side: the constant takes the other side's type.
Val operator+(Val a, double x);
Val operator-(Val a, double x);
Val operator*(Val a, double x);
Val operator/(Val a, double x);
Val operator-(double x, Val a);
Val operator/(double x, Val a);

}  // namespace ge::tile
