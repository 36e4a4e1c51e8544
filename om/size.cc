// A stack machine; its stack is on the stack.
#include "om/size.h"

#include <algorithm>
#include <array>

namespace ge::om {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == 0 || (a == kNoSize + 1 && b == -1)) return kNoSize;
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t Mod(int64_t a, int64_t b) {
  if (b == 0) return kNoSize;
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t And(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == kNoSize || b == kNoSize ? kNoSize : 1;
}

int64_t Or(int64_t a, int64_t b) {
  if ((a != kNoSize && a != 0) || (b != kNoSize && b != 0)) return 1;
  return a == kNoSize || b == kNoSize ? kNoSize : 0;
}

int64_t Binary(SizeOp op, int64_t a, int64_t b) {
  if (op == SizeOp::kAnd) return And(a, b);
  if (op == SizeOp::kOr) return Or(a, b);
  if (a == kNoSize || b == kNoSize) return kNoSize;
  int64_t result = 0;
  switch (op) {
    case SizeOp::kAdd: return __builtin_add_overflow(a, b, &result) ? kNoSize : result;
    case SizeOp::kMul: return __builtin_mul_overflow(a, b, &result) ? kNoSize : result;
    case SizeOp::kFloorDiv: return FloorDiv(a, b);
    case SizeOp::kMod: return Mod(a, b);
    case SizeOp::kMin: return std::min(a, b);
    case SizeOp::kMax: return std::max(a, b);
    case SizeOp::kLt: return a < b;
    case SizeOp::kLe: return a <= b;
    case SizeOp::kEq: return a == b;
    case SizeOp::kNe: return a != b;
    default: return kNoSize;
  }
}

int64_t Select(int64_t condition, int64_t a, int64_t b) {
  if (condition == kNoSize) return kNoSize;
  return condition != 0 ? a : b;
}

}  // namespace

int SizeArity(SizeOp op) {
  switch (op) {
    case SizeOp::kConst:
    case SizeOp::kSymbol: return 0;
    case SizeOp::kNot: return 1;
    case SizeOp::kSelect: return 3;
    default: return 2;
  }
}

int64_t EvalSizeCode(std::span<const SizeCode> code, std::span<const int64_t> symbols) {
  std::array<int64_t, kMaxSizeDepth> stack;
  size_t top = 0;
  for (const SizeCode& c : code) {
    switch (c.op) {
      case SizeOp::kConst: stack[top++] = c.value; break;
      case SizeOp::kSymbol: stack[top++] = symbols[static_cast<size_t>(c.value)]; break;
      case SizeOp::kNot:
        stack[top - 1] = stack[top - 1] == kNoSize ? kNoSize : stack[top - 1] == 0;
        break;
      case SizeOp::kSelect:
        top -= 2;
        stack[top - 1] = Select(stack[top - 1], stack[top], stack[top + 1]);
        break;
      default: top -= 1; stack[top - 1] = Binary(c.op, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

int64_t EvalSize(const Plan& plan, SizeRef size, std::span<const int64_t> symbols) {
  return EvalSizeCode(CodeOf(plan, size), symbols);
}

bool SizeCodeIsSound(std::span<const SizeCode> code, int64_t symbols) {
  int depth = 0;
  for (const SizeCode& c : code) {
    if (c.op > SizeOp::kNot) return false;
    if (c.op == SizeOp::kSymbol && (c.value < 0 || c.value >= symbols)) return false;
    const int arity = SizeArity(c.op);
    if (depth < arity) return false;
    depth += 1 - arity;
    if (depth > kMaxSizeDepth) return false;
  }
  return depth == 1;
}

SizeRef AddSize(Plan* plan, std::span<const SizeCode> code) {
  const auto begin = static_cast<uint32_t>(plan->size_code.size());
  plan->size_code.insert(plan->size_code.end(), code.begin(), code.end());
  plan->sizes.push_back({begin, static_cast<uint32_t>(plan->size_code.size())});
  return static_cast<SizeRef>(plan->sizes.size()) - 1;
}

SizeRef AddConstSize(Plan* plan, int64_t value) {
  const SizeCode code{SizeOp::kConst, value};
  return AddSize(plan, std::span(&code, 1));
}

}  // namespace ge::om
