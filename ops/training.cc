// Optimisers of ai.onnx.preview.training, one step: inputs R (learning rate), T (step number), then
// n tensors X, n gradients G and n of each state; outputs the new X and states.
//   Momentum  g = G + norm_coefficient * X; b = T > 0 ? beta : 1; V' = alpha * V + b * g
//             standard: X' = X - R * V'    nesterov: X' = X - R * (g + alpha * V')
//   Adagrad   r = R / (1 + T * decay_factor); g as above; H' = H + g^2; X' = X - r * g / (sqrt(H')
//   + epsilon) Adam      g as above; V' = alpha * V + (1 - alpha) * g; H' = beta * H + (1 - beta) *
//   g^2
//             r = T > 0 ? R * sqrt(1 - beta^T) / (1 - alpha^T) : R
//             X' = (1 - norm_coefficient_post) * (X - r * V' / (sqrt(H') + epsilon))
#include <fmt/format.h>

#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

// Inputs: R, T, then `groups` groups of n; outputs: X' and the states, groups - 1 of n.
Status InferStep(InferContext& c, int groups) {
  const int n = (c.NumInputs() - 2) / groups;
  if (n < 1 || n * groups + 2 != c.NumInputs())
    return c.Fault(fmt::format("{} inputs given, but 2 and {} for each tensor are needed",
                               c.NumInputs(), groups));
  for (int i = 0; i < n; ++i)
    for (int o = 0; o + 1 < groups; ++o) {
      const int from = 2 + (o == 0 ? 0 : o + 1) * n + i;
      c.Out(o * n + i, c.In(from).dtype, c.In(from).dims);
    }
  return {};
}

Status InferMomentum(InferContext& c) { return InferStep(c, 3); }
Status InferAdagrad(InferContext& c) { return InferStep(c, 3); }
Status InferAdam(InferContext& c) { return InferStep(c, 4); }

// Arithmetic on values, for formulas as they are written above.
struct Formula {
  ExpandBuilder& e;
  ValueId Op(const char* op, ValueId a, ValueId b) { return e.Op(op, {a, b}); }
  ValueId Add(ValueId a, ValueId b) { return Op("Add", a, b); }
  ValueId Sub(ValueId a, ValueId b) { return Op("Sub", a, b); }
  ValueId Mul(ValueId a, ValueId b) { return Op("Mul", a, b); }
  ValueId Div(ValueId a, ValueId b) { return Op("Div", a, b); }
  ValueId Scale(ValueId a, double k) { return Mul(a, e.ScalarLike(a, k)); }
  ValueId Plus(ValueId a, double k) { return Add(a, e.ScalarLike(a, k)); }
  ValueId Sqrt(ValueId a) { return e.Op("Sqrt", {a}); }
  ValueId First() { return e.Op("Equal", {e.In(1), e.ScalarLike(e.In(1), 0)}); }  // T == 0
  // k^T in x's type.
  ValueId PowerOfStep(double k, ValueId x) {
    return Op("Pow", e.ScalarLike(x, k), e.Cast(e.In(1), e.Type(x)));
  }
  ValueId Gradient(ValueId g, ValueId x) {
    return Add(g, Scale(x, e.Float("norm_coefficient", 0)));
  }
};

bool Finish(ExpandBuilder& e, std::vector<ValueId> out) {
  out.resize(e.NumOutputs());
  for (int o = 0; o < e.NumOutputs(); ++o)
    if (!e.Wants(o)) out[o] = kNone;
  return e.Done(out);
}

bool ExpandMomentum(Graph& graph, NodeId id) {
  ExpandBuilder e(graph, id);
  Formula f{e};
  const int n = (e.NumInputs() - 2) / 3;
  const bool nesterov = e.Str("mode", "standard") == "nesterov";
  std::vector<ValueId> out(2 * n);
  for (int i = 0; i < n; ++i) {
    const ValueId x = e.In(2 + i), g = f.Gradient(e.In(2 + n + i), x), v = e.In(2 + 2 * n + i);
    const ValueId beta =
        e.Op("Where", {f.First(), e.ScalarLike(x, 1), e.ScalarLike(x, e.Float("beta", 1))});
    const double alpha = e.Float("alpha", 0);
    const ValueId next = f.Add(f.Scale(v, alpha), f.Mul(beta, g));
    const ValueId step = nesterov ? f.Add(g, f.Scale(next, alpha)) : next;
    out[i] = f.Sub(x, f.Mul(e.Cast(e.In(0), e.Type(x)), step));
    out[n + i] = next;
  }
  return Finish(e, out);
}

bool ExpandAdagrad(Graph& graph, NodeId id) {
  ExpandBuilder e(graph, id);
  Formula f{e};
  const int n = (e.NumInputs() - 2) / 3;
  std::vector<ValueId> out(2 * n);
  for (int i = 0; i < n; ++i) {
    const ValueId x = e.In(2 + i), g = f.Gradient(e.In(2 + n + i), x);
    const ValueId decay =
        f.Plus(f.Scale(e.Cast(e.In(1), e.Type(x)), e.Float("decay_factor", 0)), 1);
    const ValueId rate = f.Div(e.Cast(e.In(0), e.Type(x)), decay);
    const ValueId h = f.Add(e.In(2 + 2 * n + i), f.Mul(g, g));
    out[i] = f.Sub(x, f.Div(f.Mul(rate, g), f.Plus(f.Sqrt(h), e.Float("epsilon", 1e-6F))));
    out[n + i] = h;
  }
  return Finish(e, out);
}

bool ExpandAdam(Graph& graph, NodeId id) {
  ExpandBuilder e(graph, id);
  Formula f{e};
  const int n = (e.NumInputs() - 2) / 4;
  const double alpha = e.Float("alpha", 0.9F), beta = e.Float("beta", 0.999F);
  std::vector<ValueId> out(3 * n);
  for (int i = 0; i < n; ++i) {
    const ValueId x = e.In(2 + i), g = f.Gradient(e.In(2 + n + i), x);
    const ValueId v = f.Add(f.Scale(e.In(2 + 2 * n + i), alpha), f.Scale(g, 1 - alpha));
    const ValueId h = f.Add(f.Scale(e.In(2 + 3 * n + i), beta), f.Scale(f.Mul(g, g), 1 - beta));
    const ValueId r = e.Cast(e.In(0), e.Type(x)), one = e.ScalarLike(x, 1);
    const ValueId adjusted = f.Div(f.Mul(r, f.Sqrt(f.Sub(one, f.PowerOfStep(beta, x)))),
                                   f.Sub(one, f.PowerOfStep(alpha, x)));
    const ValueId rate = e.Op("Where", {f.First(), r, adjusted});
    const ValueId moved =
        f.Sub(x, f.Div(f.Mul(rate, v), f.Plus(f.Sqrt(h), e.Float("epsilon", 1e-6F))));
    out[i] = f.Scale(moved, 1 - e.Float("norm_coefficient_post", 0));
    out[n + i] = v;
    out[2 * n + i] = h;
  }
  return Finish(e, out);
}

constexpr const char* kDomain = "ai.onnx.preview.training";

const OpDef& kMomentum = Register({.name = "Momentum",
                                   .domain = kDomain,
                                   .min_inputs = 3,
                                   .max_inputs = -1,
                                   .max_outputs = -1,
                                   .infer = InferMomentum,
                                   .expand = ExpandMomentum});
const OpDef& kAdagrad = Register({.name = "Adagrad",
                                  .domain = kDomain,
                                  .min_inputs = 3,
                                  .max_inputs = -1,
                                  .max_outputs = -1,
                                  .infer = InferAdagrad,
                                  .expand = ExpandAdagrad});
const OpDef& kAdam = Register({.name = "Adam",
                               .domain = kDomain,
                               .min_inputs = 3,
                               .max_inputs = -1,
                               .max_outputs = -1,
                               .infer = InferAdam,
                               .expand = ExpandAdam});

}  // namespace
}  // namespace ge
