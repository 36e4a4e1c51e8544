// ge.MatMulNBits: dots of few rows with packed weights (ops/matmul_nbits.cc).
#pragma once

#include <cstdint>

namespace ge {

inline constexpr int64_t kNBitsColumns = 16;  // that lie side by side
// More rows are better off with weights that were unpacked when the model was compiled.
inline constexpr int64_t kNBitsRows = 4;

}  // namespace ge
