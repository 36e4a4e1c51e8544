// Trees of decisions whose leaves are added, and the node ge.Forest that walks them all.
#pragma once

#include <vector>

#include "ir/expand.h"

namespace ge::ml {

// Lists as TreeEnsemble of version 5 has them: one entry per inner node, children by number of an
// inner node or of a leaf.
struct Trees {
  std::vector<int64_t> feature, yes, no, yes_leaf, no_leaf, modes, missing, roots;
  std::vector<float> splits;
  // Either each leaf has a weight for one target, or (no `leaf_target`) a row of one for each.
  std::vector<int64_t> leaf_target;
  std::vector<float> weights;
  int64_t targets = 1;
  size_t leaves() const { return weights.size() / (leaf_target.empty() ? targets : 1); }
};

inline constexpr int64_t kMostTargets = int64_t{1} << 20;  // a block of rows keeps 32 sums of each

enum Mode : int64_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };

// [N, targets], the sums over the trees of the leaves that rows of x (f32) reach. kNone if some
// node asks for membership in a set, or is reached in more ways than one.
ValueId Walk(ExpandBuilder& e, ValueId x, const Trees& trees);

}  // namespace ge::ml
