// TreeEnsemble: from each root down by comparisons of one feature with a split, to a leaf; leaves
// of one target are added, averaged over the trees, or their least or greatest is taken.
#include <algorithm>
#include <bit>
#include <cmath>

#include "abi/convert.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

enum Mode { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };
enum Aggregate { kAverage, kSum, kLeast, kGreatest };

struct Forest {
  Shape feature, true_id, false_id, true_leaf, false_leaf, mode, missing_true, target, roots;
  std::vector<double> split, weight;
  std::vector<std::vector<double>> members;  // per node

  bool Goes(size_t node, double x) const {
    if (std::isnan(x) && mode[node] != kNotEqual)  // NaN is not equal to any split
      return !missing_true.empty() && missing_true[node] != 0;
    switch (mode[node]) {
      case kLessEqual: return x <= split[node];
      case kLess: return x < split[node];
      case kGreaterEqual: return x >= split[node];
      case kGreater: return x > split[node];
      case kEqual: return x == split[node];
      case kNotEqual: return x != split[node];
      default:
        return std::find(members[node].begin(), members[node].end(), x) != members[node].end();
    }
  }
};

std::vector<double> Doubles(const HostAttrs& attrs, const std::string& name) {
  std::vector<double> out;
  for (int64_t bits : attrs.Ints(name)) out.push_back(std::bit_cast<double>(bits));
  return out;
}

Status InRange(const Shape& v, int64_t limit, const char* what) {
  for (int64_t k : v)
    if (k < 0 || k >= limit)
      return Invalid(std::string(what) + " " + std::to_string(k) + " is outside [0, " +
                     std::to_string(limit - 1) + "]");
  return {};
}

Status CheckChildren(const Forest& f, const Shape& ids, const Shape& leaf, const char* what) {
  for (size_t i = 0; i < ids.size(); ++i)
    GE_TRY(
        InRange({ids[i]}, static_cast<int64_t>(leaf[i] ? f.weight.size() : f.mode.size()), what));
  return {};
}

Status ReadForest(const HostAttrs& attrs, int64_t features, int64_t targets, Forest* f) {
  f->feature = attrs.Ints("nodes_featureids");
  f->true_id = attrs.Ints("nodes_truenodeids");
  f->false_id = attrs.Ints("nodes_falsenodeids");
  f->true_leaf = attrs.Ints("nodes_trueleafs");
  f->false_leaf = attrs.Ints("nodes_falseleafs");
  f->mode = attrs.Ints("nodes_mode_list");
  f->missing_true = attrs.Ints("nodes_missing_value_tracks_true");
  f->target = attrs.Ints("leaf_targetids");
  f->roots = attrs.Ints("tree_roots");
  f->split = Doubles(attrs, "nodes_splits_bits");
  f->weight = Doubles(attrs, "leaf_weights_bits");
  const size_t n = f->mode.size();
  for (const Shape* list : {&f->feature, &f->true_id, &f->false_id, &f->true_leaf, &f->false_leaf})
    if (list->size() != n) return Invalid("the lists of nodes differ in length");
  if (f->split.size() != n || (!f->missing_true.empty() && f->missing_true.size() != n) ||
      f->target.size() != f->weight.size())
    return Invalid("the lists of nodes or leaves differ in length");
  GE_TRY(InRange(f->mode, kMember + 1, "mode"));
  GE_TRY(InRange(f->feature, features, "feature"));
  GE_TRY(InRange(f->target, targets, "target"));
  GE_TRY(InRange(f->roots, static_cast<int64_t>(n), "root"));
  GE_TRY(CheckChildren(*f, f->true_id, f->true_leaf, "child"));
  GE_TRY(CheckChildren(*f, f->false_id, f->false_leaf, "child"));
  // Sets of the member nodes, in their order, each ended by NaN.
  const std::vector<double> values = Doubles(attrs, "membership_values_bits");
  size_t at = 0;
  f->members.resize(n);
  for (size_t i = 0; i < n; ++i) {
    if (f->mode[i] != kMember) continue;
    while (at < values.size() && !std::isnan(values[at])) f->members[i].push_back(values[at++]);
    ++at;
  }
  return {};
}

// The leaf that a row reaches; -1 if the nodes run in a circle.
int64_t LeafOf(const Forest& f, int64_t root, const std::vector<double>& row) {
  auto node = static_cast<size_t>(root);
  for (size_t steps = 0; steps <= f.mode.size(); ++steps) {
    const bool yes = f.Goes(node, row[f.feature[node]]);
    const int64_t next = yes ? f.true_id[node] : f.false_id[node];
    if (yes ? f.true_leaf[node] : f.false_leaf[node]) return next;
    node = static_cast<size_t>(next);
  }
  return -1;
}

Status TreeEnsemble(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  HostTensor x;
  GE_TRY(TensorIn(call, 0, &x));
  GE_TRY(CheckRank(x, 2, "X"));
  const int64_t targets = call.attrs.Int("n_targets", 1),
                how = call.attrs.Int("aggregate_function", kSum);
  Forest f;
  GE_TRY(ReadForest(call.attrs, x.dims[1], targets, &f));
  void* y;
  GE_TRY(Claim(call, 0, Shape{x.dims[0], targets}, &y));
  std::vector<double> row(x.dims[1]), sums(targets);
  std::vector<char> hit(targets);
  for (int64_t n = 0; y && n < x.dims[0]; ++n) {
    for (int64_t k = 0; k < x.dims[1]; ++k)
      row[k] = LoadElement<double>(TypeOf(x), x.data, n * x.dims[1] + k);
    std::fill(sums.begin(), sums.end(), 0.0);
    std::fill(hit.begin(), hit.end(), 0);
    for (int64_t root : f.roots) {
      const int64_t leaf = LeafOf(f, root, row);
      if (leaf < 0) return Invalid("the nodes of a tree run in a circle");
      const int64_t t = f.target[leaf];
      const double w = f.weight[leaf];
      if (std::isnan(w) && (how == kLeast || how == kGreatest)) continue;  // has none
      if (how == kLeast)
        sums[t] = hit[t] ? std::min(sums[t], w) : w;
      else if (how == kGreatest)
        sums[t] = hit[t] ? std::max(sums[t], w) : w;
      else
        sums[t] += w;
      hit[t] = 1;
    }
    for (int64_t t = 0; t < targets; ++t)
      StoreElement<double>(static_cast<DType>(call.outputs[0].dtype), y, n * targets + t,
                           how == kAverage && !f.roots.empty()
                               ? sums[t] / static_cast<double>(f.roots.size())
                               : sums[t]);
  }
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("TreeEnsemble", TreeEnsemble);

}  // namespace
}  // namespace ge::rt
