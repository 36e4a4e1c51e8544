// Which regions the cube engine takes, by the anchor's operator.
#include "lower/cube.h"

#include "lower/cube_gemm.h"

namespace ge {

namespace {

bool IsMatMul(const Node& n) {
  return (n.op->domain.empty() || n.op->domain == "ge") &&
         (n.op->name == "MatMul" || n.op->name == "Gemm");
}
bool IsBytes(const Node& n) {
  return n.op->domain.empty() && (n.op->name == "ConvInteger" || n.op->name == "MatMulInteger");
}
bool IsConv(const Node& n) {
  return (n.op->domain.empty() || n.op->domain == "ge") &&
         (n.op->name == "Conv" || n.op->name == "ConvTranspose");
}

bool IsRecurrent(const Node& n) {
  return n.op->domain == "ge" &&
         (n.op->name == "LSTM" || n.op->name == "GRU" || n.op->name == "RNN");
}

bool IsAttend(const Node& n) { return n.op->domain == "ge" && n.op->name == "Attend"; }

bool IsNBits(const Node& n) { return n.op->domain == "ge" && n.op->name == "MatMulNBits"; }

}  // namespace

bool CubeSupports(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy) {
  if (policy.opt_level == 0 || policy.disabled.contains("cube") || region.anchor == kNone)
    return false;
  const Node& node = g.node(region.anchor);
  for (ValueId v : region.outputs) {
    if (BitWidth(g.value(v).type.dtype) < 8) return false;
  }
  if (IsBytes(node)) return SupportsBytes(g, region);
  if (IsAttend(node)) return SupportsAttend(g, region, soc);
  if (IsNBits(node)) return SupportsNBits(g, region, soc);
  if (IsRecurrent(node)) return SupportsRecurrent(g, region);
  if (IsMatMul(node)) return SupportsMatMul(g, region);
  return IsConv(node) && SupportsConv(g, region, soc);
}

Lowered LowerCube(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy) {
  if (IsBytes(g.node(region.anchor))) return LowerCubeBytes(g, region, soc, policy);
  if (IsAttend(g.node(region.anchor))) return LowerCubeAttend(g, region, soc, policy);
  if (IsNBits(g.node(region.anchor))) return LowerCubeNBits(g, region, soc);
  if (IsRecurrent(g.node(region.anchor))) return LowerCubeRecurrent(g, region, soc);
  if (IsConv(g.node(region.anchor))) return LowerCubeConv(g, region, soc, policy);
  return LowerCubeMatMul(g, region, soc, policy);
}

}  // namespace ge
