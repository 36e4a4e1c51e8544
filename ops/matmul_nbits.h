// ge.MatMulNBits: dots with packed weights (ops/matmul_nbits.cc).
#pragma once

#include <cstdint>
#include <functional>

#include "ir/opdef.h"

namespace ge {

inline constexpr int64_t kNBitsColumns = 16;  // that lie side by side
// More rows are better off with weights that are unpacked first.
inline constexpr int64_t kNBitsRows = 4;

enum NBitsInput { kNBitsA, kNBitsB, kNBitsScales, kNBitsZeros };

// Byte j of a block of column c of a group, as values of type t less their zero point.
std::vector<tile::Val> NBitsValues(tile::Builder& b, const Graph& g, const Node& n,
                                   const Index& block, Expr j, DType t,
                                   const std::function<tile::Val(int, const Index&)>& load);
// Element (row, group * 16 + c) of the product; `row`: of A, without the last index.
tile::Val NBitsDot(tile::Builder& b, const Graph& g, const Node& n, const Index& row, Expr group,
                   Expr c, const std::function<tile::Val(int, const Index&)>& load);

}  // namespace ge
