// ge.Forest  Y[n, target] = sum over trees of the leaf's weight that X[n] reaches
//   X f32 [N, features]
//   nodes i32 [nodes, 4]: feature, bits of the split, number of the first of two adjacent children,
//     flags. Next is the first child if X[n, feature] <= split (kIsEqual: ==), or, with
//     kMissingFirst, if that is NaN; else the second. A leaf's split is NaN and its second child is
//     the leaf itself, so that a walk may take more steps than it needs: its flags are the number
//     of the leaf, and not negative.
//   weights f32 [leaves, targets], or [leaves, 1] with `of` i32 [trees]: the target of each tree
//   roots and steps i32 [trees, rounded up to whole vectors if `trees_as_lanes`]
// Rows and trees are walked in blocks, one step of all at a time: the steps of one walk wait for
// each other, those of different walks do not. Lanes are rows, or trees where rows are few.
#include "ops/ml/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/ml/scores.h"
#include "ops/shapes.h"

namespace ge::ml {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::Val;

constexpr int64_t kRows = 32, kTrees = 4;  // of a block whose lanes are rows
constexpr int64_t kFewRows = 8,
                  kLanes = 16;    // fewer rows, and trees, of a block whose lanes are trees
constexpr int64_t kFewTrees = 2;  // that are never lanes
constexpr int32_t kInner = INT32_MIN, kMissingFirst = 1, kIsEqual = 2;
enum Operand { kX, kNodes, kWeights, kRoots, kSteps, kOf };
enum Field { kFeature, kSplit, kChild, kFlags, kFields };

// Every float below s, as an upper limit that belongs to it. Kernels take denormals for zeros.
float Before(float s) {
  const float least = std::numeric_limits<float>::min();
  if (s == -std::numeric_limits<float>::infinity()) return std::numeric_limits<float>::quiet_NaN();
  if (std::abs(s) < least) return -least;
  const float before = std::nextafter(s, -std::numeric_limits<float>::infinity());
  return std::abs(before) < least ? 0 : before;
}

struct Tables {
  std::vector<int32_t> nodes, roots, steps, of;
  std::vector<float> weights;
  bool missing = false, equal = false;
};

// One tree after the other, level by level.
class Packing {
 public:
  Packing(const Trees& trees, Tables& out) : t_(trees), out_(out) {}

  bool Run() {
    if (t_.roots.empty()) return false;
    out_.weights = t_.weights;
    const auto open = [&] {
      return t_.roots.size() > kFewTrees && out_.roots.size() % kLanes != 0;
    };
    const bool one_each = OneTargetEach();
    if (!one_each) Widen();
    for (size_t i = 0; i < t_.roots.size(); ++i) {
      const int64_t depth = Tree(t_.roots[i]);
      if (depth < 0) return false;
      End(static_cast<int32_t>(depth), one_each ? target_of_[i] : 0);
    }
    // What fills the last block gives 0.
    const size_t columns = one_each ? 1 : static_cast<size_t>(t_.targets);
    const auto nothing = static_cast<int64_t>(out_.weights.size() / columns);
    if (open()) out_.weights.insert(out_.weights.end(), columns, 0);
    while (open()) {
      out_.roots.push_back(static_cast<int32_t>(Count()));
      Leaf(Grow(1), nothing);
      End(0, 0);
    }
    if (!one_each) out_.of.clear();
    return Count() < INT32_MAX;
  }

 private:
  size_t Count() const { return out_.nodes.size() / kFields; }
  size_t Grow(size_t n) {
    out_.nodes.resize(out_.nodes.size() + n * kFields);
    return Count() - n;
  }
  void End(int32_t depth, int32_t target) {
    out_.steps.push_back(depth);
    out_.of.push_back(target);
  }
  void Set(size_t at, int32_t feature, float split, size_t child, int32_t flags) {
    int32_t* node = &out_.nodes[at * kFields];
    node[kFeature] = feature;
    node[kSplit] = std::bit_cast<int32_t>(split);
    node[kChild] = static_cast<int32_t>(child);
    node[kFlags] = flags;
  }
  void Leaf(size_t at, int64_t leaf) {
    Set(at, 0, std::numeric_limits<float>::quiet_NaN(), at - 1, static_cast<int32_t>(leaf));
  }

  // The number of steps from the root to the farthest leaf; -1 if there is none.
  int64_t Tree(int64_t root) {
    struct Place {
      int64_t id;
      bool leaf;
      size_t at;
    };
    out_.roots.push_back(static_cast<int32_t>(Count()));
    std::vector<Place> level = {{root, false, Grow(1)}}, next;
    for (int64_t depth = 0; !level.empty(); ++depth) {
      next.clear();
      for (const Place& p : level) {
        if (p.leaf) {
          Leaf(p.at, p.id);
          continue;
        }
        if (++seen_ > t_.modes.size() || t_.modes[p.id] == kMember) return -1;
        const size_t child = Grow(2);
        const bool turned = Inner(p.at, p.id, child);
        next.push_back({t_.yes[p.id], t_.yes_leaf[p.id] != 0, child + (turned ? 1 : 0)});
        next.push_back({t_.no[p.id], t_.no_leaf[p.id] != 0, child + (turned ? 0 : 1)});
      }
      if (next.empty()) return depth;
      std::swap(level, next);
    }
    return -1;
  }

  // Whether the children change places: what is not less or equal is greater, or NaN.
  bool Inner(size_t at, int64_t id, size_t child) {
    const int64_t mode = t_.modes[id];
    const bool turned = mode == kGreaterEqual || mode == kGreater || mode == kNotEqual;
    const bool strict = mode == kLess || mode == kGreaterEqual;
    const bool equal = mode == kEqual || mode == kNotEqual;
    const bool missing = !t_.missing.empty() && t_.missing[id] != 0;
    const bool first = missing != turned && mode != kNotEqual;  // NaN is not equal: to the second
    out_.missing |= first;
    out_.equal |= equal;
    Set(at, static_cast<int32_t>(t_.feature[id]), strict ? Before(t_.splits[id]) : t_.splits[id],
        child, kInner | (first ? kMissingFirst : 0) | (equal ? kIsEqual : 0));
    return turned;
  }

  // Whether all leaves of each tree have one target, and there are several targets.
  bool OneTargetEach() {
    if (t_.leaf_target.empty() || t_.targets == 1) return false;
    std::vector<int64_t> of_node(t_.modes.size(), -1);
    for (int64_t root : t_.roots) {
      std::vector<int64_t> open = {root};
      int64_t target = -1;
      size_t steps = 0;
      while (!open.empty()) {
        const int64_t id = open.back();
        open.pop_back();
        if (++steps > t_.modes.size()) return false;
        for (const auto& [child, leaf] : {std::pair(t_.yes[id], t_.yes_leaf[id] != 0),
                                          std::pair(t_.no[id], t_.no_leaf[id] != 0)}) {
          if (!leaf) {
            open.push_back(child);
            continue;
          }
          if (target >= 0 && target != t_.leaf_target[child]) return false;
          target = t_.leaf_target[child];
        }
      }
      target_of_.push_back(static_cast<int32_t>(target));
    }
    return true;
  }

  // A row of weights for each leaf.
  void Widen() {
    if (t_.leaf_target.empty() || t_.targets == 1) return;
    out_.weights.assign(t_.weights.size() * static_cast<size_t>(t_.targets), 0);
    for (size_t i = 0; i < t_.weights.size(); ++i)
      out_.weights[i * static_cast<size_t>(t_.targets) + static_cast<size_t>(t_.leaf_target[i])] =
          t_.weights[i];
  }

  const Trees& t_;
  Tables& out_;
  size_t seen_ = 0;
  std::vector<int32_t> target_of_;
};

Status InferForest(InferContext& c) {
  GE_TRY(CheckRank(c, kX, 2));
  const int64_t targets = c.Int("targets", 1);
  if (targets < 1) return c.Fault(fmt::format("targets is {}, but must be at least 1", targets));
  c.Check(Le(c.Int("features", 1), c.In(kX).dims[1]),
          fmt::format("the trees ask for {} features, X is {}", c.Int("features", 1),
                      ShapeText(c.In(kX).dims)));
  c.Out(0, DType::kF32, {c.In(kX).dims[0], targets});
  return {};
}

// The walks of a block of rows through a block of trees.
class Block {
 public:
  Block(Lowering& l, Expr first, Expr rows)
      : l_(l), b_(l.b), first_(first), rows_(rows), targets_(l.Int("targets", 1)) {
    at_ = b_.Alloc("at", DType::kI32, std::max(kRows * kTrees, kFewRows * kLanes));
    sums_ = b_.Alloc("sums", DType::kF32, kRows * targets_);
  }

  void Run() {
    b_.For("i", rows_ * targets_, LoopKind::kVector, [&](Expr i) { b_.Store(sums_, i, b_.F(0)); });
    if (l_.Int("trees_as_lanes", 0) == 0) {
      Walks(true);
    } else {
      const Val few = Less(b_.Index(rows_), b_.ConstInt(DType::kI64, kFewRows));
      b_.If(few, [&] { Walks(false); }, [&] { Walks(true); });
    }
    b_.For("r", rows_, LoopKind::kSerial, [&](Expr r) {
      b_.For("target", targets_, LoopKind::kVector,
             [&](Expr k) { l_.Yield(0, {first_ + r, k}, b_.Load(sums_, r * targets_ + k)); });
    });
  }

 private:
  void Walks(bool lanes_are_rows) {
    lanes_are_rows_ = lanes_are_rows;
    const int64_t all = l_.Int("trees", 1), together = lanes_are_rows ? kTrees : kLanes;
    b_.For("block", (all + together - 1) / together, LoopKind::kSerial, [&](Expr block) {
      const Expr first = block * together, trees = Min(together, all - first);
      walked_ = lanes_are_rows ? trees : Expr(together);
      Each([&](Expr r, Expr k) { b_.Store(at_, Place(r, k), l_.Load(kRoots, {first + k})); });
      const Val most = b_.Reduce(tile::ReduceOp::kMax, {trees},
                                 [&](auto& k) { return l_.Load(kSteps, {first + k[0]}); });
      const int64_t depth = l_.Int("depth", 1);
      const Expr steps =
          b_.LetIndex(b_.Cast(most, DType::kI64), 0, depth, depth + 1, std::max<int64_t>(depth, 1));
      b_.For("step", steps, LoopKind::kSerial, [&](Expr) {
        Each([&](Expr r, Expr k) { b_.Store(at_, Place(r, k), Next(r, Node(r, k))); });
      });
      b_.For("r", rows_, LoopKind::kSerial, [&](Expr r) {
        b_.For("k", trees, LoopKind::kSerial, [&](Expr k) { Add(r, first + k, Node(r, k)); });
      });
    });
  }
  void Each(const std::function<void(Expr r, Expr k)>& body) {
    const bool rows = lanes_are_rows_;
    b_.For("walk", rows ? walked_ : rows_, LoopKind::kSerial, [&](Expr i) {
      b_.For("lane", rows ? rows_ : walked_, LoopKind::kVector,
             [&](Expr j) { rows ? body(j, i) : body(i, j); });
    });
  }
  // Lanes lie side by side.
  Expr Place(Expr r, Expr k) const { return lanes_are_rows_ ? k * kRows + r : r * kLanes + k; }
  Expr Node(Expr r, Expr k) { return Int(b_.Load(at_, Place(r, k)), l_.In(kNodes).dims[0]); }
  Expr Int(Val v, Expr extent) {
    return b_.LetIndex(b_.Cast(v, DType::kI64), 0, Bounds(extent).hi - 1, extent);
  }
  Val Of(Expr node, Field f) { return l_.Load(kNodes, {node, static_cast<int64_t>(f)}); }

  Val Next(Expr r, Expr node) {
    const Expr feature = Int(Of(node, kFeature), l_.Int("features", 1));
    const Val x = b_.Let(l_.Load(kX, {first_ + r, feature}));
    const Val split = b_.BitCast(Of(node, kSplit), DType::kF32);
    const auto flag = [&](int32_t bit) {
      const Val wanted = b_.ConstInt(DType::kI32, bit | kInner);
      return Equal(And(Of(node, kFlags), wanted), wanted);
    };
    Val first = b_.Binary(Op::kLe, x, split);
    if (l_.Int("equal", 0) != 0) first = b_.Select(flag(kIsEqual), Equal(x, split), first);
    if (l_.Int("missing", 0) != 0) first = Or(first, And(flag(kMissingFirst), NotEqual(x, x)));
    const Val zero = b_.ConstInt(DType::kI32, 0), one = b_.ConstInt(DType::kI32, 1);
    return Of(node, kChild) + b_.Select(first, zero, one);
  }

  void Add(Expr r, Expr tree, Expr node) {
    const Expr leaf = Int(Of(node, kFlags), l_.In(kWeights).dims[0]);
    const auto add = [&](Expr at, Expr column) {
      b_.Store(sums_, at, b_.Load(sums_, at) + l_.Load(kWeights, {leaf, column}));
    };
    if (l_.Has(kOf)) return add(r * targets_ + Int(l_.Load(kOf, {tree}), targets_), 0);
    b_.For("target", targets_, LoopKind::kVector, [&](Expr k) { add(r * targets_ + k, k); });
  }

  Lowering& l_;
  tile::Builder& b_;
  Expr first_, rows_, walked_;
  int64_t targets_;
  int at_ = -1, sums_ = -1;
  bool lanes_are_rows_ = true;
};

void LowerForest(Lowering& l) {
  const Expr n = l.In(kX).dims[0];
  l.ForEach({CeilDiv(n, kRows)}, false, [&](const Index& i) {
    const Expr first = i[0] * kRows;
    Block(l, first, Min(kRows, n - first)).Run();
  });
}

const OpDef& kForest = Register(
    {.name = "Forest",
     .domain = "ge",
     .min_inputs = 5,
     .max_inputs = 6,
     .infer = InferForest,
     .lower = LowerForest,
     .flops_per_element = 1000,
     .samples = {
         "(f32[41,3], i32[3,4]=[1, 1056964608, 1, -2147483648, 0, 2143289344, 0, 0, 0, 2143289344, "
         "1, 1], f32[2,1], i32[16]=[0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "
         "i32[16]=[1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]) {features=2, depth=1, trees=6, "
         "trees_as_lanes=1}",
         "(f32[5,3], i32[3,4]=[1, 1056964608, 1, -2147483645, 0, 2143289344, 0, 0, 0, 2143289344, "
         "1, 1], f32[2,2], i32[2]=[0, 0], "
         "i32[2]=[1, 1]) {features=2, depth=1, trees=2, targets=2, missing=1, equal=1}",
         "(f32[5,3], i32[3,4]=[1, 1056964608, 1, -2147483648, 0, 2143289344, 0, 0, 0, 2143289344, "
         "1, 1], f32[2,1], i32[16]=[0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "
         "i32[16]=[1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], i32[16]=[0, 1, 1, 0, 0, 0, 0, "
         "1, 0, 1, 0, 1, 0, 1, 0, 1]) {features=2, depth=1, "
         "trees=9, trees_as_lanes=1, targets=2}"}});

}  // namespace

ValueId Walk(ExpandBuilder& e, ValueId x, const Trees& trees) {
  Tables t;
  if (!Packing(trees, t).Run()) return kNone;
  const auto ints = [&](std::vector<int64_t> dims, const std::vector<int32_t>& v) {
    return e.Constant(MakeConstant(DType::kI32, std::move(dims), v.data()));
  };
  const auto size = [](const auto& v) { return static_cast<int64_t>(v.size()); };
  const int64_t columns = t.of.empty() ? trees.targets : 1;
  std::vector<ValueId> inputs = {
      x, ints({size(t.nodes) / kFields, kFields}, t.nodes),
      e.Constant(MakeConstant(DType::kF32, {size(t.weights) / columns, columns}, t.weights.data())),
      ints({size(t.roots)}, t.roots), ints({size(t.steps)}, t.steps)};
  if (!t.of.empty()) inputs.push_back(ints({size(t.of)}, t.of));
  const auto most = [](const auto& v) {
    return v.empty() ? int64_t{0} : static_cast<int64_t>(*std::max_element(v.begin(), v.end()));
  };
  return e.Op("ge.Forest", inputs,
              {{"targets", trees.targets},
               {"trees", size(trees.roots)},
               {"trees_as_lanes", int64_t{t.roots.size() % kLanes == 0}},
               {"features", most(trees.feature) + 1},
               {"depth", most(t.steps)},
               {"missing", int64_t{t.missing}},
               {"equal", int64_t{t.equal}}});
}

}  // namespace ge::ml
