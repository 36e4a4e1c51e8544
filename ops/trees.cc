// TreeEnsemble (ai.onnx.ml): Y[n, target] = sum (mean, least, greatest) over trees of the leaf that
// X[n] reaches. Sums over f32 become ge.Forest. Else a host kernel (rt/host/trees.cc) walks the
// trees; tensor attributes become lists for it, floats as the bits of doubles.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/opdef.h"
#include "ops/ml/walk.h"
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
  if (targets < 1 || targets > ml::kMostTargets)
    return c.Fault(fmt::format("n_targets is {}; allowed: 1 to {}", targets, ml::kMostTargets));
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

std::vector<float> FloatsOf(const Constant* c) {
  std::vector<float> out;
  if (c)
    for (double v : FloatElements(*c)) out.push_back(static_cast<float>(v));
  return out;
}

// Whether all numbers of a list are in [0, limit), as many as there have to be.
bool InRange(const std::vector<int64_t>& v, size_t count, size_t limit) {
  return v.size() == count && std::all_of(v.begin(), v.end(), [&](int64_t i) {
           return i >= 0 && static_cast<size_t>(i) < limit;
         });
}

// The lists say what they should: the host kernel reports what they do not.
bool IsSound(const ml::Trees& t) {
  const size_t n = t.modes.size(), leaves = t.weights.size();
  if (t.splits.size() != n || t.yes_leaf.size() != n || t.no_leaf.size() != n) return false;
  if (!t.missing.empty() && t.missing.size() != n) return false;
  for (size_t i = 0; i < n && i < t.yes.size() && i < t.no.size(); ++i) {
    if (static_cast<size_t>(t.yes[i]) >= (t.yes_leaf[i] ? leaves : n)) return false;
    if (static_cast<size_t>(t.no[i]) >= (t.no_leaf[i] ? leaves : n)) return false;
  }
  return InRange(t.modes, n, ml::kMember) && InRange(t.feature, n, INT32_MAX) &&
         InRange(t.yes, n, INT32_MAX) && InRange(t.no, n, INT32_MAX) &&
         InRange(t.roots, t.roots.size(), n) &&
         InRange(t.leaf_target, leaves, static_cast<size_t>(t.targets));
}

bool ExpandTreeEnsemble(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  if (e.Type(e.In(0)) != DType::kF32 || e.Int("aggregate_function", 1) != 1) return false;
  ml::Trees t;
  t.feature = e.Ints("nodes_featureids");
  t.yes = e.Ints("nodes_truenodeids");
  t.no = e.Ints("nodes_falsenodeids");
  t.yes_leaf = e.Ints("nodes_trueleafs");
  t.no_leaf = e.Ints("nodes_falseleafs");
  t.modes = e.Ints("nodes_mode_list");
  t.missing = e.Ints("nodes_missing_value_tracks_true");
  t.leaf_target = e.Ints("leaf_targetids");
  t.roots = e.Ints("tree_roots");
  t.splits = FloatsOf(TensorAttr(e.node(), "nodes_splits"));
  t.weights = FloatsOf(TensorAttr(e.node(), "leaf_weights"));
  t.targets = e.Int("n_targets", 1);
  if (!IsSound(t)) return false;
  const ValueId y = ml::Walk(e, e.In(0), t);
  return y != kNone && e.Done({y});
}

const OpDef& kTreeEnsemble = Register({.name = "TreeEnsemble",
                                       .domain = "ai.onnx.ml",
                                       .infer = InferTreeEnsemble,
                                       .expand = ExpandTreeEnsemble,
                                       .host = "TreeEnsemble"});

}  // namespace
}  // namespace ge
