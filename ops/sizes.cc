// ge.ReadSizes and its use; see sizes.h.
#include "ops/sizes.h"

#include <fmt/format.h>

#include "ops/shapes.h"

namespace ge {
namespace {

constexpr int64_t kMostSizes = 64;

Status InferReadSizes(InferContext& ctx) {
  CopyType(ctx, 0, 0);
  Expr count = ctx.In(0).Elements();
  if (!IsInteger(ctx.In(0).dtype) && ctx.In(0).dtype != DType::kBool) {
    return ctx.Fault(fmt::format("operand has type {}, must be integers", Name(ctx.In(0).dtype)));
  }
  if (!count.IsConst() || count.value() > kMostSizes) {
    return Unsupported(fmt::format("sizes from a tensor of {} elements", ToString(count)));
  }
  std::vector<Expr> elems;
  for (int64_t i = 0; i < count.value(); ++i) elems.push_back(ctx.Fresh("n", INT64_MIN));
  ctx.OutElems(0, std::move(elems));
  return {};
}

const OpDef& kReadSizes =
    Register({.name = "ReadSizes", .domain = "ge", .infer = InferReadSizes, .host = "ReadSizes"});

}  // namespace

bool ExpandWithSizes(Graph& g, NodeId n, const std::vector<int>& operands) {
  ExpandBuilder e(g, n);
  std::vector<ValueId> inputs = e.node().inputs;
  bool changed = false;
  for (int i : operands) {
    if (!e.Has(i) || e.Elems(e.In(i)) || e.Const(e.In(i))) continue;
    inputs[i] = e.Op("ge.ReadSizes", {inputs[i]});
    changed = true;
  }
  if (!changed) return false;
  std::vector<ValueId> outputs = e.Ops(e.node().op->name, inputs, e.NumOutputs(), e.node().attrs);
  for (int o = 0; o < e.NumOutputs(); ++o) {
    if (!e.Wants(o)) outputs[o] = kNone;
  }
  return e.Done(outputs);
}

Result<std::vector<Expr>> SizesOf(InferContext& ctx, int operand) {
  const DType given = ctx.In(operand).dtype;
  if (!IsInteger(given) && given != DType::kBool)
    return Invalid(fmt::format("operand {} is {}, must be integers", operand, Name(given)));
  if (const auto* elems = ctx.Elems(operand)) return *elems;
  if (auto ints = IntsOf(ctx.graph, ctx.node, operand)) {
    return std::vector<Expr>(ints->begin(), ints->end());
  }
  Expr count = ctx.In(operand).Elements();
  if (!count.IsConst() || count.value() > kMostSizes) {
    return Unsupported(
        fmt::format("operand {} holds {} sizes; the number must be constant and at most {}",
                    operand, ToString(count), kMostSizes));
  }
  std::vector<Expr> out;
  for (int64_t i = 0; i < count.value(); ++i) out.push_back(ctx.Fresh("n", INT64_MIN));
  return out;
}

std::vector<Expr> SizesOf(const Lowering& l, int operand) {
  if (const auto* elems = l.Elems(operand)) return *elems;
  auto ints = IntsOf(l.graph, l.node, operand);
  return ints ? std::vector<Expr>(ints->begin(), ints->end()) : std::vector<Expr>();
}

}  // namespace ge
