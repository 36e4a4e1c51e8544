// Evaluation of SizeExprs: postfix code on checked int64, without allocation.
//
// Every operator takes its operands in the order in which they were pushed: FloorDiv pops b, then
// a, and gives floor(a / b); Mod gives a - b * floor(a / b); Select pops b, a, c and gives c ? a :
// b. Overflow, division by zero and unbound symbols give kNoSize, which passes through every
// operator but Select (the branch not taken), And (false) and Or (true).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "om/plan.h"

namespace ge::om {

inline constexpr int64_t kNoSize = std::numeric_limits<int64_t>::min();
inline constexpr int kMaxSizeDepth = 256;  // of the evaluation stack

// The plan must have passed CheckPlan. `symbols` holds kNoSize for symbols that are not bound.
int64_t EvalSize(const Plan& plan, SizeRef size, std::span<const int64_t> symbols);
int64_t EvalSizeCode(std::span<const SizeCode> code, std::span<const int64_t> symbols);

// Operands that an operator takes: 0, 1, 2 or 3.
int SizeArity(SizeOp op);
// True if every intermediate result is there and one value is left, within kMaxSizeDepth.
bool SizeCodeIsSound(std::span<const SizeCode> code, int64_t symbols);

// The code of one size.
inline std::span<const SizeCode> CodeOf(const Plan& plan, SizeRef size) {
  const SizeExpr& e = plan.sizes[static_cast<size_t>(size)];
  return std::span(plan.size_code).subspan(e.begin, e.end - e.begin);
}
// Appends a size; returns its reference.
SizeRef AddSize(Plan* plan, std::span<const SizeCode> code);
SizeRef AddConstSize(Plan* plan, int64_t value);

}  // namespace ge::om
