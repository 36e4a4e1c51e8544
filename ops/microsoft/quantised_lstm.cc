// DynamicQuantizeLSTM of com.microsoft: an LSTM whose weights are bytes,
//   W = (Wq - zero) * scale, Wq of [directions, inputs, 4 * hidden], the transpose of LSTM's W; R
//   alike.
// A scale is of [directions] or, by column, [directions, 4 * hidden]. The definition rounds the
// activations to bytes as well, in each step, for the sake of speed; that rounding is left out
// here, so that results are those of the dequantised LSTM.
#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "ops/microsoft/formula.h"
#include "ops/shapes.h"

namespace ge::microsoft {
namespace {

enum Input { kX, kW, kR, kB, kLens, kH, kC, kPeepholes, kWScale, kWZero, kRScale, kRZero };

Status InferDynamicQuantizeLstm(InferContext& c) {
  for (const int i : {kX, kW, kR, kWScale, kWZero, kRScale, kRZero})
    if (!c.Has(i)) return c.Fault("input " + std::to_string(i) + " is missing");
  if (c.In(kW).rank() != 3 || c.In(kR).rank() != 3)
    return c.Fault("W and R must be [directions, inputs, 4 * hidden]");
  for (const auto& [input, rank] : std::initializer_list<std::pair<int, int>>{
           {kX, 3}, {kB, 2}, {kLens, 1}, {kH, 3}, {kC, 3}, {kPeepholes, 2}})
    if (c.Has(input)) GE_TRY(CheckRank(c, input, rank));
  for (const int i : {kWScale, kWZero, kRScale, kRZero})
    if (c.In(i).rank() != 1 && c.In(i).rank() != 2)
      return c.Fault(fmt::format("operand {} has rank {}, must be 1 or 2", i, c.In(i).rank()));
  for (int o = 0; o < c.NumOutputs(); ++o)
    c.Out(o, DType::kF32,
          std::vector<Expr>(o == 0 ? 4 : 3, Expr(1)));  // the expansion says the sizes
  return {};
}

ValueId Dequantised(ExpandBuilder& e, int weights, int scale, int zero) {
  Formula f{e};
  const auto by_column = [&](int input) {
    const ValueId v = e.In(input);
    return f.Unsqueeze(v, e.Rank(v) == 2 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2});
  };
  const auto real = [&](ValueId v) {
    return e.Op("Cast", {v}, {{"to", static_cast<int64_t>(DType::kF32)}});
  };
  const ValueId from_zero = f.Sub(real(e.In(weights)), real(by_column(zero)));
  return f.Transpose(f.Mul(from_zero, by_column(scale)), {0, 2, 1});
}

bool ExpandDynamicQuantizeLstm(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId w = Dequantised(e, kW, kWScale, kWZero), r = Dequantised(e, kR, kRScale, kRZero);
  const std::vector<ValueId> inputs = {e.In(kX),    w,        r,        e.In(kB),
                                       e.In(kLens), e.In(kH), e.In(kC), e.In(kPeepholes)};
  return Finish(e, e.Ops("LSTM", inputs, 3, e.node().attrs));
}

const OpDef& kDynamicQuantizeLstm =
    Register({.name = "DynamicQuantizeLSTM",
              .domain = kDomain,
              .min_inputs = 3,  // what else must be there, inference says
              .max_inputs = 12,
              .min_outputs = 0,
              .max_outputs = 3,
              .infer = InferDynamicQuantizeLstm,
              .expand = ExpandDynamicQuantizeLstm});

}  // namespace
}  // namespace ge::microsoft
