// TreeEnsemble (ai.onnx.ml): Y[n, target] = sum (mean, least, greatest) over trees of the leaf that
// X[n] reaches. A host kernel (rt/host/trees.cc) walks the trees; tensor attributes become lists
// for it, floats as the bits of doubles.
#include <fmt/format.h>

#include <bit>

#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

const Constant* TensorAttr(const Node& n, std::string_view name) {
  const auto it = n.attrs.find(name);
  if (it == n.attrs.end()) return nullptr;
  const auto* held = std::get_if<std::shared_ptr<const Constant>>(&it->second);
  return held ? held->get() : nullptr;
}

void FlattenFloats(Node& n, const std::string& name) {
  const Constant* c = TensorAttr(n, name);
  if (!c) return;
  std::vector<int64_t> bits;
  for (double v : FloatElements(*c)) bits.push_back(std::bit_cast<int64_t>(v));
  n.attrs[name + "_bits"] = bits;
}

Status InferTreeEnsemble(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 2));
  const int64_t targets = c.Int("n_targets", 0);
  if (targets < 1) return c.Fault(fmt::format("n_targets is {}, but must be at least 1", targets));
  if (!TensorAttr(c.node, "nodes_splits") || !TensorAttr(c.node, "nodes_modes") ||
      !TensorAttr(c.node, "leaf_weights"))
    return c.Fault("nodes_splits, nodes_modes or leaf_weights is missing");
  const int64_t aggregate = c.Int("aggregate_function", 1), transform = c.Int("post_transform", 0);
  if (aggregate < 0 || aggregate > 3)
    return c.Fault(fmt::format("aggregate_function is {}, but must be 0 to 3", aggregate));
  if (transform != 0) return Unsupported(fmt::format("post_transform {}", transform));
  for (const char* name : {"nodes_splits", "leaf_weights", "membership_values"})
    FlattenFloats(c.node, name);
  c.node.attrs["nodes_mode_list"] = IntElements(*TensorAttr(c.node, "nodes_modes"));
  c.Out(0, c.In(0).dtype, {c.In(0).dims[0], targets});
  return {};
}

const OpDef& kTreeEnsemble = Register({.name = "TreeEnsemble",
                                       .domain = "ai.onnx.ml",
                                       .infer = InferTreeEnsemble,
                                       .host = "TreeEnsemble"});

}  // namespace
}  // namespace ge
