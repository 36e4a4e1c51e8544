// ge.ReadSizes: integers that are only known at run time become size symbols.
//
//   %s = ge.ReadSizes(%shape)      facts of %s: one fresh symbol per element
//
// An operator whose inference needs the elements of an operand (Reshape, Slice, Range, ...) expands
// into itself on what ge.ReadSizes gives. The host kernel of the same name returns the elements as
// its size results, so that the plan binds the symbols before anything that depends on them.
#pragma once

#include <vector>

#include "ir/expand.h"

namespace ge {

// The expansion: true if one of these operands has no facts and was given some. False: nothing to
// do.
bool ExpandWithSizes(Graph& g, NodeId n, const std::vector<int>& operands);

// For OpDef::expand.
template <int... kOperands>
bool ExpandSizes(Graph& g, NodeId n) {
  return ExpandWithSizes(g, n, {kOperands...});
}

// Elements of integer operand `i` as Exprs: facts, or fresh symbols until ExpandSizes has run.
// A fault if the number of elements is not constant.
Result<std::vector<Expr>> SizesOf(InferContext& ctx, int operand);
// The same where inference has succeeded; empty if the operand is absent.
std::vector<Expr> SizesOf(const Lowering& l, int operand);

}  // namespace ge
