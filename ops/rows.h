// Rows: loops over several axes at once, for operators that reduce a part of the axes and then
// write every element of that part (softmax, normalisations).
#pragma once

#include <functional>
#include <vector>

#include "ir/opdef.h"

namespace ge {

// Nested loops over `extents`, the last one a vector loop; body gets all indices.
void ForAxes(tile::Builder& b, const std::vector<Expr>& extents,
             const std::function<void(const Index&)>& body);

// a followed by b.
Index Join(const Index& a, const Index& b);

// A local row buffer of `extents` holding load(i) for every i; in the order of Linear().
struct Row {
  int buffer;
  std::vector<Expr> extents;
  tile::Val At(tile::Builder& b, const Index& i) const;
};
Row FillRow(tile::Builder& b, DType t, const std::vector<Expr>& extents,
            const std::function<tile::Val(const Index&)>& load);

// Mean and variance of a row in two passes: sum (x - mean)^2 / count, which does not cancel.
struct Moments {
  tile::Val mean, variance;
};
Moments MomentsOf(tile::Builder& b, const Row& row);

// Of elements [first, first + n) of a local buffer: the largest; and, once each is exp(x - top), 1
// over their sum.
tile::Val Largest(tile::Builder& b, int buffer, Expr first, Expr n);
tile::Val Exponentials(tile::Builder& b, int buffer, Expr first, Expr n, tile::Val top);
// x, or the lowest float instead of -inf: as `top` of a row of -inf it makes each exponential 0.
tile::Val Finite(tile::Val x);

// 1 / sqrt(v + epsilon)
tile::Val InverseDeviation(tile::Builder& b, tile::Val variance, double epsilon);

}  // namespace ge
