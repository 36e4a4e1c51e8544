// Folding of constant operations, by the same scalar formulas as the interpreter.
#pragma once

#include <optional>

#include "tile/tile.h"

namespace ge::tile {

bool IsComputeType(DType t);
// The type of the result of `op` on operands of type `t` (kCast and kBitCast: not asked here).
DType ResultType(Op op, DType t);
// True if `op` (unary or binary, not a cast) exists for operands of type `t`.
bool HasOp(Op op, DType t);
// n with constant operands a, b (null where absent) as a constant; nullopt if it does not fold.
std::optional<ValueNode> Fold(const ValueNode& n, const ValueNode* a, const ValueNode* b);

}  // namespace ge::tile
