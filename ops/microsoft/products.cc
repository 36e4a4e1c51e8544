// Products with what follows them, of com.microsoft:
//   FusedMatMul, TransposeMatMul  alpha op(A) op(B); op exchanges the last two axes (transA), and
//                                 before that moves the first axis in front of the last
//                                 (transBatchA)
//   FusedGemm                     activation(alpha A B + beta C)
//   FusedConv                     activation(Conv(X, W, B) + Z)
//   NhwcMaxPool                   MaxPool of channels-last data
#include <fmt/format.h>

#include "ops/microsoft/formula.h"

namespace ge::microsoft {
namespace {

ValueId MatMulOperand(ExpandBuilder& e, ValueId v, const char* batch, const char* last) {
  Formula f{e};
  const int rank = e.Rank(v);
  if (rank < 2) return v;
  if (e.Int(batch, 0) != 0 && rank > 2) {
    std::vector<int64_t> perm;
    for (int i = 1; i + 1 < rank; ++i) perm.push_back(i);
    perm.insert(perm.end(), {0, rank - 1});
    v = f.Transpose(v, perm);
  }
  return e.Int(last, 0) != 0 ? f.Transpose(v, SwapLast(rank)) : v;
}

bool ExpandFusedMatMul(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId y = e.Op("MatMul", {MatMulOperand(e, e.In(0), "transBatchA", "transA"),
                                    MatMulOperand(e, e.In(1), "transBatchB", "transB")});
  const float alpha = e.Float("alpha", 1);
  return e.Done({alpha == 1 ? y : f.Scale(y, alpha)});
}

Status InferFusedMatMul(InferContext& c) {
  // The rank of the product: of the larger operand, less what a vector takes away.
  const int a = c.In(0).rank(), b = c.In(1).rank();
  if (a == 0 || b == 0) return c.Fault("A and B must have rank 1 at least");
  const int rank = std::max(std::max(a, b), 2) - (a == 1) - (b == 1);
  c.Out(0, c.In(0).dtype, std::vector<Expr>(rank, Expr(1)));
  return {};
}

// The activation that attributes name; kNone after a fault.
ValueId Activate(ExpandBuilder& e, ValueId x, const std::vector<float>& params) {
  const std::string name = e.Str("activation", "");
  const auto param = [&](size_t i, float otherwise) {
    return i < params.size() ? params[i] : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid") return e.Op(name, {x});
  if (name == "LeakyRelu") return e.Op(name, {x}, {{"alpha", param(0, 0.01F)}});
  if (name == "HardSigmoid")
    return e.Op(name, {x}, {{"alpha", param(0, 0.2F)}, {"beta", param(1, 0.5F)}});
  if (name == "Clip")
    return e.Op(name, {x, e.ScalarLike(x, param(0, -3.4028235e38F)),
                       e.ScalarLike(x, param(1, 3.4028235e38F))});
  return kNone;
}

Status CheckActivation(const InferContext& c) {
  const std::string name = c.Str("activation", "");
  for (const char* known : {"", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Clip"})
    if (name == known) return {};
  return Unsupported(
      fmt::format("activation '{}' given; allowed: Relu, Tanh, Sigmoid, LeakyRelu, "
                  "HardSigmoid, Clip",
                  name));
}

Status InferFused(InferContext& c) {
  GE_TRY(CheckActivation(c));
  return InferLikeInput<0>(c);
}

// Attributes of the node but those of the activation.
Attrs Without(const Node& n, std::initializer_list<const char*> names) {
  Attrs attrs(n.attrs.begin(), n.attrs.end());
  for (const char* name : names) attrs.erase(name);
  return attrs;
}

bool ExpandFusedGemm(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId y = e.Op(
      "Gemm", {e.In(0), e.In(1), e.In(2)},
      Without(e.node(), {"activation", "activation_alpha", "activation_beta", "activation_gamma"}));
  std::vector<float> params;
  if (HasAttr(e.node(), "activation_alpha")) {
    params.push_back(e.Float("activation_alpha", 0));
    if (HasAttr(e.node(), "activation_beta")) params.push_back(e.Float("activation_beta", 0));
  }
  return e.Done({Activate(e, y, params)});
}

bool ExpandFusedConv(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId y = e.Op("Conv", {e.In(0), e.In(1), e.In(2)},
                         Without(e.node(), {"activation", "activation_params"}));
  return e.Done({Activate(e, f.AddIf(y, e.In(3)),
                          AttrOr<std::vector<float>>(e.node(), "activation_params", {}))});
}

bool ExpandNhwcMaxPool(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const int rank = e.Rank(e.In(0));
  if (rank < 3) return false;
  std::vector<int64_t> in = {0, rank - 1}, out = {0};
  for (int i = 1; i + 1 < rank; ++i) in.push_back(i);
  for (int i = 2; i < rank; ++i) out.push_back(i);
  out.push_back(1);
  return e.Done(
      {f.Transpose(e.Op("MaxPool", {f.Transpose(e.In(0), in)}, Without(e.node(), {})), out)});
}

OpDef Product(const char* name, int inputs, Status (*infer)(InferContext&),
              bool (*expand)(Graph&, NodeId), const char* sample) {
  return {.name = name,
          .domain = kDomain,
          .min_inputs = 2,
          .max_inputs = inputs,
          .infer = infer,
          .expand = expand,
          .samples = {sample},
          .tolerance = 1e-4};
}

const OpDef& kFusedMatMul =
    Register(Product("FusedMatMul", 2, InferFusedMatMul, ExpandFusedMatMul,
                     "(f32[2,4,3], f32[2,5,4]) {alpha=0.5, transA=1, transB=1}"));
const OpDef& kTransposeMatMul =
    Register(Product("TransposeMatMul", 2, InferFusedMatMul, ExpandFusedMatMul,
                     "(f32[2,4,3], f32[2,4,5]) {transA=1}"));
const OpDef& kFusedGemm = Register(Product("FusedGemm", 3, InferFused, ExpandFusedGemm,
                                           "(f32[4,3], f32[3,5], f32[5]) {activation=\"Relu\"}"));
const OpDef& kFusedConv =
    Register(Product("FusedConv", 4, InferFused, ExpandFusedConv,
                     "(f32[1,3,6,6], f32[4,3,3,3], f32[4], f32[1,4,4,4]) {activation=\"Relu\"}"));
const OpDef& kNhwcMaxPool = Register({.name = "NhwcMaxPool",
                                      .domain = kDomain,
                                      .infer = InferLikeInput<0>,
                                      .expand = ExpandNhwcMaxPool,
                                      .samples = {"(u8[1,6,6,3]) {kernel_shape=[2,2]}"}});

}  // namespace
}  // namespace ge::microsoft
