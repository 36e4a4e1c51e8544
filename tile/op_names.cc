// Names of operations: one table per enum, in the order of the enum.
#include "tile/op_names.h"

#include <iterator>

namespace ge::tile {
namespace {

constexpr std::string_view kOps[] = {
    "const", "idx",   "var",   "load",     "neg",   "abs",   "sign",  "not",    "bitnot",  "sqrt",
    "rcp",   "floor", "ceil",  "round",    "trunc", "exp",   "log",   "sin",    "cos",     "tan",
    "asin",  "acos",  "atan",  "sinh",     "cosh",  "tanh",  "asinh", "acosh",  "atanh",   "erf",
    "gelu",  "isnan", "isinf", "lgamma",   "expm1", "log1p", "cast",  "narrow", "bitcast", "add",
    "sub",   "mul",   "div",   "floormod", "fmod",  "pow",   "min",   "max",    "and",     "or",
    "xor",   "shl",   "shr",   "atan2",    "lt",    "le",    "eq",    "ne",     "select",  "fma"};
static_assert(std::size(kOps) == static_cast<size_t>(Op::kFma) + 1);
constexpr std::string_view kLoops[] = {"serial", "parallel", "vector", "unrolled"};
constexpr std::string_view kReduces[] = {"sum", "prod", "min", "max", "and", "or"};

template <class E, size_t N>
std::optional<E> Find(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(Op op) { return kOps[static_cast<size_t>(op)]; }
std::string_view Name(LoopKind kind) { return kLoops[static_cast<size_t>(kind)]; }
std::string_view Name(ReduceOp op) { return kReduces[static_cast<size_t>(op)]; }
std::optional<Op> ParseOp(std::string_view name) { return Find<Op>(kOps, name); }
std::optional<LoopKind> ParseLoopKind(std::string_view name) {
  return Find<LoopKind>(kLoops, name);
}
std::optional<ReduceOp> ParseReduceOp(std::string_view name) {
  return Find<ReduceOp>(kReduces, name);
}

}  // namespace ge::tile
