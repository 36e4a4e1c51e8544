// Activations of com.microsoft:
//   Gelu       x Phi(x)                      BiasGelu   gelu(x + bias)
//   FastGelu   gelu by tanh, of x + bias     QuickGelu  x sigmoid(alpha x)
//   BiasSplitGelu  (x + bias) halves a, b along the last axis: a gelu(b)
#include "ops/microsoft/formula.h"

namespace ge::microsoft {
namespace {

bool ExpandGelu(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  return e.Done({e.Op("Gelu", {f.AddIf(e.In(0), e.In(1))})});
}

bool ExpandFastGelu(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  return e.Done(
      {e.Op("Gelu", {f.AddIf(e.In(0), e.In(1))}, {{"approximate", std::string("tanh")}})});
}

bool ExpandQuickGelu(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  return e.Done({e.Op("Swish", {e.In(0)}, {{"alpha", e.Float("alpha", 1.702F)}})});
}

bool ExpandBiasSplitGelu(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId x = f.Add(e.In(0), e.In(1));
  const Expr width = e.Dims(x).back(), half = FloorDiv(width, 2);
  return e.Done({f.Mul(f.Slice(x, -1, 0, half), e.Op("Gelu", {f.Slice(x, -1, half, width)}))});
}

OpDef Activation(const char* name, int inputs, bool (*expand)(Graph&, NodeId), const char* sample) {
  return {.name = name,
          .domain = kDomain,
          .max_inputs = inputs,
          .infer = InferLikeInput<0>,
          .expand = expand,
          .samples = {sample},
          .tolerance = 1e-4};
}

const OpDef& kGelu = Register(Activation("Gelu", 1, ExpandGelu, "(f32[2,3])"));
const OpDef& kBiasGelu = Register(Activation("BiasGelu", 2, ExpandGelu, "(f32[2,3], f32[3])"));
const OpDef& kFastGelu = Register(Activation("FastGelu", 2, ExpandFastGelu, "(f32[2,3], f32[3])"));
const OpDef& kQuickGelu = Register(Activation("QuickGelu", 1, ExpandQuickGelu, "(f32[2,3])"));
const OpDef& kBiasSplitGelu =
    Register(Activation("BiasSplitGelu", 2, ExpandBiasSplitGelu, "(f32[2,3,8], f32[8])"));

}  // namespace
}  // namespace ge::microsoft
