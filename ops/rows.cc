// Loops over rows of several axes, and their moments.
#include "ops/rows.h"

#include <limits>

#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

void Nest(tile::Builder& b, const std::vector<Expr>& extents, Index& i,
          const std::function<void(const Index&)>& body) {
  if (i.size() == extents.size()) return body(i);
  const bool last = i.size() + 1 == extents.size();
  b.For("j", extents[i.size()], last ? LoopKind::kVector : LoopKind::kSerial, [&](Expr j) {
    i.push_back(j);
    Nest(b, extents, i, body);
    i.pop_back();
  });
}

}  // namespace

void ForAxes(tile::Builder& b, const std::vector<Expr>& extents,
             const std::function<void(const Index&)>& body) {
  Index i;
  Nest(b, extents, i, body);
}

Index Join(const Index& a, const Index& b) {
  Index j = a;
  j.insert(j.end(), b.begin(), b.end());
  return j;
}

Val Row::At(tile::Builder& b, const Index& i) const { return b.Load(buffer, Linear(i, extents)); }

Row FillRow(tile::Builder& b, DType t, const std::vector<Expr>& extents,
            const std::function<Val(const Index&)>& load) {
  const Row row{b.Alloc("row", t, Product(extents)), extents};
  ForAxes(b, extents, [&](const Index& i) { b.Store(row.buffer, Linear(i, extents), load(i)); });
  return row;
}

Moments MomentsOf(tile::Builder& b, const Row& row) {
  const Expr n = Product(row.extents);
  const Val sum = b.Reduce(ReduceOp::kSum, {n}, [&](auto& i) { return b.Load(row.buffer, i[0]); });
  const Val count = b.Cast(b.Index(n), sum.type());
  const Val mean = b.Let(sum / count);
  const Val squares = b.Reduce(ReduceOp::kSum, {n}, [&](auto& i) {
    const Val d = b.Let(b.Load(row.buffer, i[0]) - mean);
    return d * d;
  });
  return {mean, b.Let(squares / count)};
}

Val Largest(tile::Builder& b, int buffer, Expr first, Expr n) {
  return b.Let(
      b.Reduce(ReduceOp::kMax, {n}, [&](auto& j) { return b.Load(buffer, first + j[0]); }));
}

Val Exponentials(tile::Builder& b, int buffer, Expr first, Expr n, Val top) {
  auto at = [&](Expr j) { return b.Load(buffer, first + j); };
  top = b.Let(top);
  b.For("j", n, LoopKind::kVector,
        [&](Expr j) { b.Store(buffer, first + j, b.Unary(Op::kExp, at(j) - top)); });
  const Val sum = b.Reduce(ReduceOp::kSum, {n}, [&](auto& j) { return at(j[0]); });
  // The largest gives 1: a smaller sum is that of no elements, and the product with it is to be 0.
  return b.Let(Like(sum, 1) / b.Binary(Op::kMax, sum, Like(sum, 1)));
}

Val Finite(Val x) {
  return x.b->Binary(Op::kMax, x,
                     Like(x, static_cast<double>(std::numeric_limits<float>::lowest())));
}

Val InverseDeviation(tile::Builder& b, Val variance, double epsilon) {
  const Val root = b.Unary(Op::kSqrt, variance + epsilon);
  return b.Let(Like(root, 1) / root);
}

}  // namespace ge
