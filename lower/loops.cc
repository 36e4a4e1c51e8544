#include "lower/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace ge {
namespace {

using tile::LoopKind;

constexpr double kChunkNs = 4000;     // work of one chunk, where there is enough
constexpr double kLanesNs = 20000;    // the same where a chunk is a part of many long lines
constexpr double kLeastNs = 1000;     // and the least that is worth a turn
constexpr int64_t kVectorChunk = 64;  // chunks of the vector axis are multiples of this
constexpr int64_t kSquare = 16;       // of crossed axes

// Axes before `axis` and blocks of `rows` of it are the grid; the rest is inside a chunk.
struct Split {
  int axis = -1;  // -1: one chunk
  int64_t rows = 1;
};

double HintOf(Expr extent) { return static_cast<double>(std::max<int64_t>(HintValue(extent), 1)); }

int64_t RowsOf(double ns, double of_one, bool lanes) {
  int64_t rows = static_cast<int64_t>(std::ceil(ns / std::max(of_one, 1e-3)));
  if (lanes) rows = (rows + kVectorChunk - 1) / kVectorChunk * kVectorChunk;
  return std::max<int64_t>(rows, 1);
}

// Small at typical sizes, but these are not known: chunks of the last axis that may be larger,
// where they would be worth a worker's turn.
Split SplitOfUnknown(const std::vector<Expr>& extents, bool vector, double ns) {
  const int last = static_cast<int>(extents.size()) - 1;
  for (int k = last; k >= 0; --k) {
    const double extent = HintOf(extents[k]);
    if (extents[k].IsConst()) {
      ns *= extent;
      continue;
    }
    const int64_t rows = RowsOf(kChunkNs, ns, vector && k == last);
    const bool whole =
        std::all_of(extents.begin(), extents.begin() + k, [](Expr e) { return HintValue(e) <= 1; });
    if (whole || ns * std::min(extent, static_cast<double>(rows)) >= kLeastNs) return {k, rows};
    ns *= extent;
  }
  return {};
}

// One chunk for each image would be one chunk in all for most callers: the last axis of unknown
// size behind it that is worth it is cut instead, or else the next one.
Split SplitImage(const std::vector<Expr>& extents, int image, bool vector, double ns) {
  const int last = static_cast<int>(extents.size()) - 1;
  const auto open = [&](int k) { return !extents[k].IsConst() && !(vector && k == last); };
  bool any = false;
  for (int k = last; k > image; ns *= HintOf(extents[k--])) {
    any |= open(k);
    if (!open(k) && (any || k > image + 1)) continue;
    const int64_t rows = RowsOf(kLeastNs, ns, vector && k == last);
    if (static_cast<double>(rows) < HintOf(extents[k])) return {k, rows};
  }
  return {image, 1};
}

Split ChooseSplit(const std::vector<Expr>& extents, bool vector, double ns) {
  const double of_one = ns;
  int last = static_cast<int>(extents.size()) - 1;
  for (int k = last; k >= 0; --k) {
    double extent = HintOf(extents[k]);
    bool lanes = vector && k == last;
    if (ns >= kChunkNs && !lanes) {
      if (extent > 1 || extents[k].IsConst() || k == last) return {k, 1};
      return SplitImage(extents, k, vector, of_one);
    }
    if (ns * extent >= 2 * kChunkNs && (!lanes || extent >= 2 * kVectorChunk)) {
      int64_t chunks = static_cast<int64_t>(ns * extent / kChunkNs);
      int64_t rows = static_cast<int64_t>(std::ceil(extent / static_cast<double>(chunks)));
      if (lanes) rows = (rows + kVectorChunk - 1) / kVectorChunk * kVectorChunk;
      return {k, std::max<int64_t>(rows, 1)};
    }
    ns *= extent;
  }
  return SplitOfUnknown(extents, vector, of_one);
}

class Nest {
 public:
  Nest(tile::Builder& b, const std::vector<Expr>& extents, bool vector, const LoopPolicy& policy,
       const std::function<void(const Index&)>& body)
      : b_(b), extents_(extents), vector_(vector), policy_(policy), body_(body) {
    idx_.assign(extents.size(), Expr(0));
    for (size_t i = 0; i < extents.size(); ++i)
      if (!extents[i].IsConst(1)) axes_.push_back(static_cast<int>(i));
    if (const int c = policy.crossed; c >= 0 && c + 1 < static_cast<int>(axes_.size()))
      std::rotate(axes_.begin() + c, axes_.begin() + c + 1, axes_.end() - 1);
  }

  std::string Run() {
    std::vector<Expr> used;
    for (int a : axes_) used.push_back(extents_[a]);
    Split split;
    if (policy_.parallel && policy_.ns_per_iteration > 0 && policy_.vector_store)
      split = ChooseSplit(used, vector_, policy_.ns_per_iteration);
    const int inner = static_cast<int>(axes_.size()) - 2;
    if (policy_.crossed >= 0 && inner >= 0 && split.axis >= inner) {
      const std::string lanes = SplitLanes(used);
      if (!lanes.empty()) return lanes;
      split = {inner, (std::max<int64_t>(split.axis == inner ? split.rows : 1, 1) + kSquare - 1) /
                          kSquare * kSquare};
    }
    if (split.axis < 0) {
      Inner(0);
      return fmt::format("1 chunk of {}", ToString(Product(used)));
    }
    Expr axis = used[split.axis];
    Expr blocks = CeilDiv(axis, split.rows);
    Expr grid = blocks;
    for (int i = 0; i < split.axis; ++i) grid *= used[i];
    b_.For("p", grid, LoopKind::kParallel, [&](Expr p) { Chunk(p, split, blocks); });
    return fmt::format("grid {}, {} of axis {}", ToString(grid), split.rows, axes_[split.axis]);
  }

 private:
  // Where blocks of the crossed axis, and what is around it, would be one chunk: squares lie side
  // by side along the lanes, which are split. Else "".
  std::string SplitLanes(const std::vector<Expr>& used) {
    double outer = std::ceil(HintOf(used[used.size() - 2]) / static_cast<double>(kSquare));
    double ns = policy_.ns_per_iteration * HintOf(used[used.size() - 2]);
    for (size_t i = 0; i + 2 < used.size(); ++i) outer *= HintOf(used[i]), ns *= HintOf(used[i]);
    const Expr lanes = used.back();
    if (outer > 1 || !vector_ || !lanes.IsConst()) return "";
    // Parts of one length only: squares of a length that is not known are printed less well.
    const int64_t most = RowsOf(kLanesNs, ns, true);
    int64_t rows = most;
    while (rows > most / 2 && lanes.value() % rows != 0) rows -= kSquare;
    if (rows <= most / 2 || lanes.value() < 2 * rows) return "";
    const int64_t grid = lanes.value() / rows;
    b_.For("p", grid, LoopKind::kParallel, [&](Expr p) {
      first_ = p * rows, size_ = rows;
      Inner(0);
    });
    return fmt::format("grid {}, {} of axis {}", grid, rows, axes_.back());
  }

  void Chunk(Expr p, const Split& split, Expr blocks) {
    Expr rest = p;
    Expr block = split.axis == 0 ? p : Mod(rest, blocks);
    if (split.axis > 0) rest = FloorDiv(rest, blocks);
    for (int i = split.axis - 1; i >= 0; --i) {
      idx_[axes_[i]] = i == 0 ? rest : Mod(rest, extents_[axes_[i]]);
      if (i > 0) rest = FloorDiv(rest, extents_[axes_[i]]);
    }
    int axis = axes_[split.axis];
    if (split.rows == 1) {
      idx_[axis] = block;
      return Inner(split.axis + 1);
    }
    Expr begin = block * split.rows;
    Expr size = DivisibleBy(extents_[axis], split.rows) ? Expr(split.rows)
                                                        : Min(split.rows, extents_[axis] - begin);
    b_.For("i", size, KindOf(split.axis), [&](Expr i) {
      idx_[axis] = begin + i;
      Inner(split.axis + 1);
    });
  }

  LoopKind KindOf(int position) const {
    bool last = position + 1 == static_cast<int>(axes_.size());
    return vector_ && last && policy_.vector_store ? LoopKind::kVector : LoopKind::kSerial;
  }

  void Inner(int position) {
    if (position == static_cast<int>(axes_.size())) return body_(idx_);
    int axis = axes_[position];
    const bool part = !size_.IsConst(0) && position + 1 == static_cast<int>(axes_.size());
    b_.For("i", part ? size_ : extents_[axis], KindOf(position), [&](Expr i) {
      idx_[axis] = part ? first_ + i : i;
      Inner(position + 1);
    });
  }

  tile::Builder& b_;
  const std::vector<Expr>& extents_;
  bool vector_;
  const LoopPolicy& policy_;
  const std::function<void(const Index&)>& body_;
  std::vector<int> axes_;  // those of more than one element
  Expr first_, size_;      // of the part of the lanes that a chunk has; 0: all
  Index idx_;
};

}  // namespace

int CrossedAxis(const tile::Kernel& trial) {
  std::vector<const tile::Stmt*> loops;
  const std::vector<tile::Stmt>* body = &trial.body.body;
  while (body->size() == 1 && body->front().kind == tile::StmtKind::kLoop) {
    loops.push_back(&body->front());
    body = &body->front().body;
  }
  if (loops.size() < 2 || loops.back()->loop != LoopKind::kVector || body->size() != 1 ||
      body->front().kind != tile::StmtKind::kStore)
    return -1;
  auto small = [](Expr e) { return e.IsConst() && e.value() < kSquare / 2; };
  const Expr lane = loops.back()->symbol;
  if (small(loops.back()->extent)) return -1;
  std::vector<tile::ExprId> stack = {body->front().value};
  std::unordered_set<tile::ExprId> seen;
  int crossed = -1;
  while (!stack.empty()) {
    const tile::ExprId id = stack.back();
    stack.pop_back();
    if (id < 0 || !seen.insert(id).second) continue;
    const tile::ValueNode& n = trial.values[id];
    for (tile::ExprId operand : {n.a, n.b, n.c}) stack.push_back(operand);
    if (n.op != tile::Op::kLoad || !DependsOn(n.index, lane)) continue;
    const std::optional<Linear> along = AsLinear(n.index, lane);
    if (!along || along->coefficient.IsConst(1)) continue;
    for (size_t k = 0; k + 1 < loops.size(); ++k) {
      const std::optional<Linear> across = AsLinear(n.index, loops[k]->symbol);
      if (across && across->coefficient.IsConst(1) && !small(loops[k]->extent))
        crossed = static_cast<int>(k);
    }
  }
  return crossed;
}

void NestLoops(tile::Builder& b, const std::vector<Expr>& extents, bool vector,
               const LoopPolicy& policy, const std::function<void(const Index&)>& body,
               LoopReport* report) {
  std::string text = Nest(b, extents, vector, policy, body).Run();
  report->schedule = std::move(text);
  report->iterations += static_cast<double>(std::max<int64_t>(HintValue(Product(extents)), 0));
}

}  // namespace ge
