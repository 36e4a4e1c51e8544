// TreeEnsembleRegressor and TreeEnsembleClassifier (ai.onnx.ml 1 to 4) as ge.Forest
// (ops/ml/walk.h). What that cannot say becomes TreeEnsemble of version 5: its leaves have one
// target each, so a leaf with weights for several targets becomes one tree per target. Base values
// and the transform of scores come after; a classifier takes the label of the greatest score, or,
// where weights exist for one of two classes only, the second label if its score is over 0.5 (all
// weights positive) or over 0.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "ops/ml/scores.h"
#include "ops/ml/walk.h"
#include "ops/shapes.h"

namespace ge::ml {
namespace {

using Ints = std::vector<int64_t>;

struct OldForest {
  Ints tree, node, feature, yes, no, missing;
  std::vector<std::string> modes;
  std::vector<float> values;
  Ints w_tree, w_node, w_target;
  std::vector<float> weights;
  int64_t targets = 1;
  std::map<std::pair<int64_t, int64_t>, size_t> at;                      // node by (tree, node)
  std::map<std::pair<int64_t, int64_t>, std::map<int64_t, float>> leaf;  // weights by target
};

Result<OldForest> ReadForest(const Node& n, bool classifier) {
  OldForest f;
  const auto ints = [&](const char* name) { return AttrOr<Ints>(n, name, {}); };
  const std::string prefix = classifier ? "class_" : "target_";
  f.tree = ints("nodes_treeids");
  f.node = ints("nodes_nodeids");
  f.feature = ints("nodes_featureids");
  f.yes = ints("nodes_truenodeids");
  f.no = ints("nodes_falsenodeids");
  f.missing = ints("nodes_missing_value_tracks_true");
  f.modes = AttrOr<std::vector<std::string>>(n, "nodes_modes", {});
  f.values = AttrOr<std::vector<float>>(n, "nodes_values", {});
  f.w_tree = ints((prefix + "treeids").c_str());
  f.w_node = ints((prefix + "nodeids").c_str());
  f.w_target = ints((prefix + "ids").c_str());
  f.weights = AttrOr<std::vector<float>>(n, prefix + "weights", {});
  f.targets =
      classifier ? static_cast<int64_t>(LabelsOf(n).size()) : AttrOr<int64_t>(n, "n_targets", 1);
  if (f.targets > kMostTargets)
    return Invalid(fmt::format("n_targets is {}; allowed: 1 to {}", f.targets, kMostTargets));
  const size_t count = f.tree.size();
  if (count == 0) return Invalid("nodes_treeids is missing");
  for (size_t size : {f.node.size(), f.feature.size(), f.yes.size(), f.no.size(), f.modes.size(),
                      f.values.size()})
    if (size != count)
      return Invalid(fmt::format("a list of nodes has {} values, not {}", size, count));
  if (!f.missing.empty() && f.missing.size() != count)
    return Invalid("nodes_missing_value_tracks_true has another length");
  if (f.w_tree.size() != f.weights.size() || f.w_node.size() != f.weights.size() ||
      f.w_target.size() != f.weights.size())
    return Invalid("the lists of weights differ in length");
  for (size_t i = 0; i < count; ++i) f.at[{f.tree[i], f.node[i]}] = i;
  for (size_t i = 0; i < f.weights.size(); ++i) {
    if (f.w_target[i] < 0 || f.w_target[i] >= f.targets)
      return Invalid(
          fmt::format("target {} given; allowed: 0 to {}", f.w_target[i], f.targets - 1));
    f.leaf[{f.w_tree[i], f.w_node[i]}][f.w_target[i]] += f.weights[i];
  }
  for (size_t i = 0; i < count; ++i) {
    if (f.modes[i] == "LEAF") continue;
    if (f.feature[i] < 0 || f.feature[i] >= INT32_MAX)
      return Invalid(fmt::format("node {} of tree {} asks for feature {}; allowed: 0 to {}",
                                 f.node[i], f.tree[i], f.feature[i], INT32_MAX - 1));
    if (!f.at.contains({f.tree[i], f.yes[i]}) || !f.at.contains({f.tree[i], f.no[i]}))
      return Invalid(
          fmt::format("node {} of tree {} has a child that does not exist", f.node[i], f.tree[i]));
  }
  return f;
}

Result<int64_t> ModeOf(const std::string& name) {
  constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                    "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (int64_t i = 0; i < 6; ++i)
    if (name == kModes[i]) return i;
  return Invalid(
      fmt::format("mode '{}' given; allowed: BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, "
                  "BRANCH_GT, BRANCH_EQ, BRANCH_NEQ, LEAF",
                  name));
}

// Lists of version 5.
class Rewrite {
 public:
  // `apart`: every tree once per target that its leaves weigh; else once, its leaves with a row of
  // weights, or one and its target if none has more. `absent`: the weight of a leaf for a target
  // that it does not name.
  Rewrite(const OldForest& f, bool apart, float absent = 0)
      : f_(f), apart_(apart), absent_(absent) {
    out.targets = f.targets;
    for (const auto& [place, weights] : f.leaf) rows_ |= weights.size() > 1;
    rows_ = rows_ && !apart;
  }

  Status Run() {
    std::map<int64_t, std::set<int64_t>> wanted;
    std::map<int64_t, std::vector<size_t>> nodes;  // by tree
    std::vector<int64_t> order;                    // trees as they come
    for (size_t i = 0; i < f_.tree.size(); ++i) {
      if (nodes[f_.tree[i]].empty()) order.push_back(f_.tree[i]);
      nodes[f_.tree[i]].push_back(i);
    }
    for (size_t i = 0; i < f_.w_tree.size(); ++i) wanted[f_.w_tree[i]].insert(f_.w_target[i]);
    trees_ = static_cast<int64_t>(order.size());
    for (int64_t tree : order) {
      if (!apart_) GE_TRY(Tree(tree, nodes[tree], kAny));
      if (!apart_) continue;
      for (int64_t target : wanted[tree]) GE_TRY(Tree(tree, nodes[tree], target));
    }
    return {};
  }
  Trees out;
  int64_t trees() const { return trees_; }

 private:
  static constexpr int64_t kAny = -1;

  Status Tree(int64_t tree, const std::vector<size_t>& nodes, int64_t target) {
    std::map<int64_t, int64_t> place;  // old node id to new interior number
    std::vector<size_t> inner;
    std::set<int64_t> children;
    for (size_t i : nodes) {
      if (f_.modes[i] == "LEAF") continue;
      place[f_.node[i]] = static_cast<int64_t>(out.feature.size() + inner.size());
      inner.push_back(i);
      children.insert(f_.yes[i]);
      children.insert(f_.no[i]);
    }
    const auto root = std::find_if(nodes.begin(), nodes.end(),
                                   [&](size_t i) { return !children.contains(f_.node[i]); });
    if (root == nodes.end()) return Invalid(fmt::format("tree {} has no root", tree));
    if (inner.empty()) {  // a leaf alone: both ways lead to it
      out.roots.push_back(static_cast<int64_t>(out.feature.size()));
      const int64_t leaf = Leaf(tree, f_.node[*root], target);
      Node(0, 0, 0, 0, leaf, true, leaf, true);
      return {};
    }
    out.roots.push_back(place[f_.node[*root]]);
    for (size_t i : inner) {
      GE_ASSIGN(const int64_t mode, ModeOf(f_.modes[i]));
      const auto child = [&](int64_t id, bool* leaf) {
        const auto it = place.find(id);
        *leaf = it == place.end();
        return *leaf ? Leaf(tree, id, target) : it->second;
      };
      bool yes_leaf, no_leaf;
      const int64_t yes = child(f_.yes[i], &yes_leaf), no = child(f_.no[i], &no_leaf);
      Node(f_.feature[i], mode, f_.values[i], f_.missing.empty() ? 0 : f_.missing[i], yes, yes_leaf,
           no, no_leaf);
    }
    return {};
  }

  void Node(int64_t feature, int64_t mode, float split, int64_t missing, int64_t yes, bool yes_leaf,
            int64_t no, bool no_leaf) {
    out.feature.push_back(feature);
    out.modes.push_back(mode);
    out.splits.push_back(split);
    out.missing.push_back(missing);
    out.yes.push_back(yes);
    out.no.push_back(no);
    out.yes_leaf.push_back(yes_leaf);
    out.no_leaf.push_back(no_leaf);
  }

  int64_t Leaf(int64_t tree, int64_t node, int64_t target) {
    const auto it = f_.leaf.find({tree, node});
    const std::map<int64_t, float> none, &weights = it == f_.leaf.end() ? none : it->second;
    if (rows_) {
      for (int64_t t = 0; t < f_.targets; ++t) out.weights.push_back(WeightOf(weights, t));
      return static_cast<int64_t>(out.leaves()) - 1;
    }
    if (target == kAny) target = weights.empty() ? 0 : weights.begin()->first;
    out.leaf_target.push_back(target);
    out.weights.push_back(WeightOf(weights, target));
    return static_cast<int64_t>(out.weights.size()) - 1;
  }

  float WeightOf(const std::map<int64_t, float>& weights, int64_t target) const {
    const auto it = weights.find(target);
    return it == weights.end() ? absent_ : it->second;
  }

  const OldForest& f_;
  bool apart_, rows_ = false;
  float absent_;
  int64_t trees_ = 0;
};

std::shared_ptr<const Constant> TensorOf(const std::vector<float>& v) {
  return std::make_shared<Constant>(
      MakeConstant(DType::kF32, {static_cast<int64_t>(v.size())}, v.data()));
}

std::shared_ptr<const Constant> TensorOf(const Ints& v) {
  const std::vector<uint8_t> bytes(v.begin(), v.end());
  return std::make_shared<Constant>(
      MakeConstant(DType::kU8, {static_cast<int64_t>(bytes.size())}, bytes.data()));
}

// Leaves of many kinds: by the runtime's walk.
ValueId WalkApart(ExpandBuilder& e, ValueId x, const OldForest& old, int64_t how) {
  constexpr int64_t kSum = 1;
  // NaN: such a leaf takes no part in a minimum or maximum.
  Rewrite rewrite(old, true, how == kSum ? 0 : std::numeric_limits<float>::quiet_NaN());
  if (!rewrite.Run().ok()) return kNone;
  const Trees& f = rewrite.out;
  return e.Op("ai.onnx.ml.TreeEnsemble", {x},
              {{"nodes_featureids", f.feature},
               {"nodes_truenodeids", f.yes},
               {"nodes_falsenodeids", f.no},
               {"nodes_trueleafs", f.yes_leaf},
               {"nodes_falseleafs", f.no_leaf},
               {"nodes_missing_value_tracks_true", f.missing},
               {"leaf_targetids", f.leaf_target},
               {"tree_roots", f.roots},
               {"nodes_splits", TensorOf(f.splits)},
               {"nodes_modes", TensorOf(f.modes)},
               {"leaf_weights", TensorOf(f.weights)},
               {"n_targets", old.targets},
               {"aggregate_function", how}});
}

// [N, targets], base values not added.
ValueId WalkAll(ExpandBuilder& e, const OldForest& old, const std::string& aggregate) {
  const bool least = aggregate == "MIN", sums = !least && aggregate != "MAX";
  ValueId x = e.In(0), y = kNone;
  if (e.Type(x) != DType::kF64) x = e.Cast(x, DType::kF32);
  Rewrite rewrite(old, false);
  if (!rewrite.Run().ok()) return kNone;
  if (sums && e.Type(x) == DType::kF32) y = Walk(e, x, rewrite.out);
  if (y == kNone) y = WalkApart(e, x, old, sums ? 1 : least ? 2 : 3);
  y = e.Cast(y, DType::kF32);
  if (aggregate == "AVERAGE")
    y = e.Op("Div", {y, e.ScalarLike(y, static_cast<double>(rewrite.trees()))});
  return y;
}

Status CheckForest(InferContext& c, bool classifier) {
  GE_TRY(CheckRank(c, 0, 2));
  GE_TRY(CheckTransform(c));
  GE_ASSIGN(const OldForest f, ReadForest(c.node, classifier));
  const std::string aggregate = c.Str("aggregate_function", "SUM");
  if (aggregate != "SUM" && aggregate != "AVERAGE" && aggregate != "MIN" && aggregate != "MAX")
    return c.Fault(
        fmt::format("aggregate_function '{}' given; allowed: SUM, AVERAGE, MIN, MAX", aggregate));
  Rewrite rewrite(f, false);
  return rewrite.Run();
}

Status InferRegressor(InferContext& c) {
  GE_TRY(CheckForest(c, false));
  c.Out(0, DType::kF32, {c.In(0).dims[0], c.Int("n_targets", 1)});
  return {};
}

bool ExpandRegressor(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  auto forest = ReadForest(e.node(), false);
  if (!forest.ok()) return false;
  ValueId y = WalkAll(e, *forest, e.Str("aggregate_function", "SUM"));
  const auto base = AttrOr<std::vector<float>>(e.node(), "base_values", {});
  if (!base.empty()) y = e.Op("Add", {y, Floats(e, {static_cast<int64_t>(base.size())}, base)});
  return e.Done({Transformed(e, y)});
}

Status InferForestClassifier(InferContext& c) {
  GE_TRY(CheckForest(c, true));
  return InferClassifier(c, static_cast<int64_t>(LabelsOf(c.node).size()));
}

bool ExpandClassifier(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  auto forest = ReadForest(e.node(), true);
  if (!forest.ok()) return false;
  const Labels labels = LabelsOf(e.node());
  const std::set<int64_t> weighed(forest->w_target.begin(), forest->w_target.end());
  const auto base = AttrOr<std::vector<float>>(e.node(), "base_values", {});
  ValueId scores = WalkAll(e, *forest, "SUM"), at;
  if (forest->targets == 2 && weighed.size() == 1) {
    const bool positive =
        std::all_of(forest->weights.begin(), forest->weights.end(), [](float w) { return w >= 0; });
    const Expr column = *weighed.begin();
    ValueId s = e.Op("Slice", {scores, e.Exprs({column}), e.Exprs({column + 1}), e.Ints({1})});
    if (!base.empty()) s = e.Op("Add", {s, e.ScalarLike(s, base.size() == 1 ? base[0] : base[1])});
    const ValueId over = e.Op("Greater", {s, e.ScalarLike(s, positive ? 0.5 : 0)});
    at = e.Op("Squeeze", {e.Cast(over, DType::kI64), e.Ints({1})});
    const ValueId other = positive ? e.Op("Sub", {e.ScalarLike(s, 1), s}) : e.Op("Neg", {s});
    scores = Transformed(e, e.Op("Concat", {other, s}, {{"axis", int64_t{1}}}));
  } else {
    if (static_cast<int64_t>(base.size()) == forest->targets)
      scores = e.Op("Add", {scores, Floats(e, {forest->targets}, base)});
    at = e.Op("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    scores = Transformed(e, scores);
  }
  return e.Done({e.Wants(0) ? LabelsAt(e, labels, at) : kNone, e.Wants(1) ? scores : kNone});
}

const OpDef& kRegressor = Register({.name = "TreeEnsembleRegressor",
                                    .domain = kDomain,
                                    .infer = InferRegressor,
                                    .expand = ExpandRegressor});
const OpDef& kClassifier = Register({.name = "TreeEnsembleClassifier",
                                     .domain = kDomain,
                                     .min_outputs = 1,
                                     .max_outputs = 2,
                                     .infer = InferForestClassifier,
                                     .expand = ExpandClassifier});

}  // namespace
}  // namespace ge::ml
