// DotShape: which element of A and B meet in an element of a matrix product (MatMul and its
// quantised kin), under numpy's broadcasting of the batch axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/opdef.h"

namespace ge {

struct DotShape {
  std::vector<Expr> a, b, out;
  Expr k, k_b;  // inner dim as A and as B have it
  bool has_m = true, has_n = true;
  std::vector<std::pair<Expr, std::string>> checks;

  Index IndexA(const Index& o, Expr k) const;
  Index IndexB(const Index& o, Expr k) const;
  // Row and column of output `o` (0 for an operand of rank 1).
  Expr Row(const Index& o) const;
  Expr Col(const Index& o) const;
};

Result<DotShape> MatMulShape(const std::vector<Expr>& a, const std::vector<Expr>& b);

// The broadcast of two dims; null if two constants clash. Symbolic pairs that must agree append a
// check.
Result<Expr> BroadcastDim(Expr a, Expr b, std::vector<std::pair<Expr, std::string>>& checks);

// Where an operand of `dims`, which broadcasts to `full`, has what belongs to element `at` of that.
Index BroadcastIndex(const std::vector<Expr>& dims, const std::vector<Expr>& full, const Index& at);

// An operand whose batch may be 1 at run time beside a constant is expanded, so that the kernels
// know which axes are repeated. False: there is none.
bool ExpandBatchOf(Graph& g, NodeId n, int a, int b);
template <int a, int b>
bool ExpandBatch(Graph& g, NodeId n) {
  return ExpandBatchOf(g, n, a, b);
}

}  // namespace ge
