#include "lower/region_walk.h"

#include "base/check.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::Val;

Val And(tile::Builder& b, Val a, Val c) { return a.valid() ? b.Binary(Op::kAnd, a, c) : c; }

Val AsBool(tile::Builder& b, Expr condition) { return b.Cast(b.Index(condition), DType::kBool); }

class StorageWalk {
 public:
  StorageWalk(LoweringContext& context, const View& view, const std::vector<ValueId>& outputs,
              const std::function<void(const Index&)>& body)
      : context_(context), b_(context.b()), outputs_(outputs), body_(body), view_(view) {
    context_.walk.emplace();
    context_.walk->view = view_;
  }
  ~StorageWalk() { context_.walk.reset(); }

  void Run(const LoopPolicy& policy, LoopReport* report) {
    int n = static_cast<int>(view_.extents.size());
    for (int d = 0; d < n; ++d)
      if (view_.halo_lo[d] || view_.halo_hi[d]) last_halo_ = d;
    policy_ = &policy;
    if (last_halo_ >= 0) return WithHalo(policy, report);
    auto groups = CollapsedDims(context_, view_);
    std::vector<Expr> extents;
    for (auto [first, last] : groups) {
      Expr extent = 1;
      for (int d = first; d <= last; ++d) extent *= view_.extents[d];
      extents.push_back(extent);
    }
    NestLoops(
        b_, extents, true, policy, [&](const Index& flat) { AtGroups(groups, flat); }, report);
  }

 private:
  void AtGroups(const std::vector<std::pair<int, int>>& groups, const Index& flat) {
    std::vector<Expr> physical(view_.extents.size(), Expr(0));
    context_.walk->groups.clear();
    for (size_t g = 0; g < groups.size(); ++g) {
      auto [first, last] = groups[g];
      // A group may begin with dims of one element: the loop belongs to the first real one.
      int begin = first;
      while (begin < last && view_.extents[begin].IsConst(1)) ++begin;
      Expr rest = flat[g];
      for (int d = last; d > begin; --d) {
        if (view_.extents[d].IsConst(1)) continue;
        physical[d] = Mod(rest, view_.extents[d]);
        rest = FloorDiv(rest, view_.extents[d]);
      }
      physical[begin] = rest;
      if (last > first) context_.walk->groups.push_back({begin, last, flat[g]});
    }
    At(physical);
  }

  // The body at one physical place that is not in a halo.
  void At(const std::vector<Expr>& physical) {
    Walk& walk = *context_.walk;
    walk.physical = physical;
    walk.logical = view_.Logical(physical);
    Expr inside = 1;
    for (size_t d = 0; d < view_.order.size(); ++d) {
      int axis = view_.order[d].axis;
      if (view_.order[d].tile == 1) continue;
      int64_t tile = view_.order[d].tile;
      if (DivisibleBy(view_.dims[axis], tile)) continue;
      inside = ge::And(inside, Lt(walk.logical[axis], view_.dims[axis]));
      walk.logical[axis] = Min(walk.logical[axis], view_.dims[axis] - 1);
    }
    walk.interior = inside.IsConst(1) ? Val{} : AsBool(b_, inside);
    body_(walk.logical);
  }

  void WithHalo(const LoopPolicy& policy, LoopReport* report) {
    std::vector<Expr> outer(view_.extents.begin(), view_.extents.begin() + last_halo_);
    NestLoops(b_, outer, false, policy, [&](const Index& place) { Row(place); }, report);
  }

  // One line along the last axis with a halo; `place` are the physical dims before it.
  void Row(const Index& place) {
    Val inside;
    for (int d = 0; d < last_halo_; ++d) {
      Expr lo = view_.halo_lo[d], hi = view_.extents[d] - view_.halo_hi[d];
      if (!ProvablyLe(lo, place[d])) inside = And(b_, inside, AsBool(b_, Le(lo, place[d])));
      if (!ProvablyLt(place[d], hi)) inside = And(b_, inside, AsBool(b_, Lt(place[d], hi)));
    }
    Expr lo = view_.halo_lo[last_halo_], hi = view_.halo_hi[last_halo_];
    Expr extent = view_.extents[last_halo_];
    auto interior = [&] {
      Span(place, 0, lo, false);
      Span(place, lo, extent - lo - hi, true);
      Span(place, extent - hi, hi, false);
    };
    if (!inside.valid()) return interior();
    b_.If(inside, interior, [&] { Span(place, 0, extent, false); });
  }

  // Steps [begin, begin + count) of the last halo axis: the body, or zeros.
  void Span(const Index& place, Expr begin, Expr count, bool interior) {
    if (count.IsConst(0)) return;
    int n = static_cast<int>(view_.extents.size());
    std::vector<Expr> physical = place;
    physical.resize(n, Expr(0));
    Steps(physical, last_halo_, begin, count, interior);
  }

  void Steps(std::vector<Expr>& physical, int d, Expr begin, Expr count, bool interior) {
    int n = static_cast<int>(view_.extents.size());
    bool lanes = d + 1 == n && policy_->vector_store;
    b_.For("i", count, lanes ? LoopKind::kVector : LoopKind::kSerial, [&](Expr i) {
      physical[d] = begin + i;
      if (d + 1 < n) return Steps(physical, d + 1, 0, view_.extents[d + 1], interior);
      interior ? At(physical) : context_.StoreZero(outputs_, physical);
    });
  }

  LoweringContext& context_;
  tile::Builder& b_;
  const std::vector<ValueId>& outputs_;
  const std::function<void(const Index&)>& body_;
  const View view_;
  const LoopPolicy* policy_ = nullptr;
  int last_halo_ = -1;
};

// Dim of `view` that walks with dim j of `walk`; -1: broadcast along it; -2: neither.
int Matching(const View& view, const View& walk, int j) {
  int shift = static_cast<int>(walk.dims.size()) - static_cast<int>(view.dims.size());
  int axis = walk.order[j].axis - shift;
  if (shift < 0) return -2;
  if (axis < 0 || view.dims[axis].IsConst(1)) return -1;
  if (!(view.dims[axis] == walk.dims[axis + shift])) return -2;
  for (size_t d = 0; d < view.order.size(); ++d)
    if (view.order[d] == LayoutDim{axis, walk.order[j].tile} && view.modulo[d] == walk.modulo[j])
      return view.halo_lo[d] || view.halo_hi[d] ? -2 : static_cast<int>(d);
  return -2;
}

// May dims i and j of the walk (nothing but single elements between them) be one loop for `view`?
bool Joins(const View& view, const View& walk, int i, int j) {
  int a = Matching(view, walk, i), c = Matching(view, walk, j);
  if (a == -1 && c == -1) return true;
  if (a < 0 || c < 0 || a >= c) return false;
  for (int d = a + 1; d < c; ++d)
    if (!view.extents[d].IsConst(1)) return false;
  return true;
}

bool IsPointwise(const LoweringContext& context) {
  for (NodeId n : context.region().nodes)
    if (context.graph().node(n).op->fusion != Fusion::kPointwise) return false;
  return context.region().anchor == kNone;
}

}  // namespace

bool HasBorder(const View& view) { return view.HasPadLanes() || view.HasHalo(); }

bool SameStorage(const View& a, const View& b) {
  return a.order == b.order && a.modulo == b.modulo && a.extents == b.extents && a.dims == b.dims &&
         a.halo_lo == b.halo_lo;
}

std::vector<std::pair<int, int>> CollapsedDims(LoweringContext& context, const View& view) {
  int n = static_cast<int>(view.extents.size());
  std::vector<std::pair<int, int>> groups;
  bool collapse = IsPointwise(context) && !HasBorder(view);
  int real = -1;  // the last dim of more than one element
  for (int d = 0; d < n; ++d) {
    bool joins = d > 0;
    if (joins && collapse && !view.extents[d].IsConst(1) && real >= 0)
      for (ValueId v : context.region().inputs) {
        const Value& value = context.graph().value(v);
        if (value.kind == ValueKind::kTensor && !Joins(context.ViewOf(v), view, real, d))
          joins = false;
      }
    if (!collapse) joins = false;
    if (joins)
      groups.back().second = d;
    else
      groups.push_back({d, d});
    if (!view.extents[d].IsConst(1)) real = d;
  }
  return groups;
}

void WalkStorage(LoweringContext& context, const View& view, const std::vector<ValueId>& outputs,
                 const LoopPolicy& policy, const std::function<void(const Index&)>& body,
                 LoopReport* report) {
  StorageWalk(context, view, outputs, body).Run(policy, report);
}

namespace {

// Zeroes physical dims d.. of `outputs`, dim `at` in [begin, begin + count) and the others whole.
void ZeroSlab(LoweringContext& context, const std::vector<ValueId>& outputs, const View& view,
              std::vector<Expr>& physical, int d, int at, Expr begin, Expr count) {
  int n = static_cast<int>(view.extents.size());
  if (d == n) return context.StoreZero(outputs, physical);
  Expr extent = d == at ? count : view.extents[d];
  if (extent.IsConst(0)) return;
  LoopKind kind = d + 1 == n ? LoopKind::kVector : LoopKind::kSerial;
  context.b().For("i", extent, kind, [&](Expr i) {
    physical[d] = d == at ? begin + i : i;
    ZeroSlab(context, outputs, view, physical, d + 1, at, begin, count);
  });
}

}  // namespace

void FillBorders(LoweringContext& context, const std::vector<ValueId>& outputs,
                 const LoopPolicy& policy, LoopReport* report) {
  const View view = context.ViewOf(outputs[0]);
  int n = static_cast<int>(view.extents.size());
  int first = n;                   // dims before the first one with a border are the grid
  std::vector<int> ragged(n, -1);  // the outer dim of a tiled axis -> its inner dim
  for (int d = n - 1; d >= 0; --d) {
    if (view.halo_lo[d] || view.halo_hi[d]) first = d;
    if (view.order[d].tile > 1 && !DivisibleBy(view.dims[view.order[d].axis], view.order[d].tile))
      for (int e = d + 1; e < n; ++e)
        if (view.order[e].axis == view.order[d].axis) ragged[d] = e, first = std::min(first, e);
  }
  std::vector<Expr> outer(view.extents.begin(), view.extents.begin() + first);
  context.walk.emplace();
  context.walk->view = view;
  NestLoops(
      context.b(), outer, false, policy,
      [&](const Index& place) {
        std::vector<Expr> physical = place;
        physical.resize(n, Expr(0));
        for (int d = first; d < n; ++d) {
          Expr lo = view.halo_lo[d], hi = view.halo_hi[d];
          ZeroSlab(context, outputs, view, physical, first, d, 0, lo);
          ZeroSlab(context, outputs, view, physical, first, d, view.extents[d] - hi, hi);
        }
        for (int d = 0; d < first; ++d) {
          if (ragged[d] < 0) continue;
          Expr valid = Mod(view.dims[view.order[d].axis], view.order[d].tile);
          context.b().If(AsBool(context.b(), Eq(place[d], view.extents[d] - 1)), [&] {
            ZeroSlab(context, outputs, view, physical, first, ragged[d], valid,
                     view.order[d].tile - valid);
          });
        }
      },
      report);
  context.walk.reset();
}

}  // namespace ge
