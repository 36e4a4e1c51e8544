// Concat, Split and Slice without copies: a part that lies in the whole as one block is a slice of
// the whole's buffer. The producers of a concatenation then write straight into it, and the readers
// of a split read it where it lies.
//
//   x = Conv(..)  y = Conv(..)  z = Concat(x, y)   ->   x = z[0..], y = z[n..], no task for z
//
// Invariant: a buffer becomes a slice only if nothing but this plan's tasks makes it, and if its
// bytes are those of the part. What cannot be so is copied by the region's kernels as before.
#include <algorithm>
#include <optional>

#include "ir/opdef.h"
#include "plan/plan_builder.h"

namespace ge {
namespace {

// Element offset in the whole's buffer of a part that starts at a logical index, if the part's
// buffer, with its halo and pad lanes, is one block of it.
std::optional<Expr> BlockOffset(const Value& whole, const Value& part,
                                const std::vector<Expr>& start) {
  if (whole.type.dtype != part.type.dtype || BitWidth(part.type.dtype) < 8) return std::nullopt;
  if (whole.type.layout != part.type.layout) return std::nullopt;
  const View w = DenseView(whole.type.layout, whole.type.dims, whole.halo);
  const View p = DenseView(part.type.layout, part.type.dims, part.halo);
  if (w.halo_lo != p.halo_lo || w.halo_hi != p.halo_hi) return std::nullopt;
  if (w.HasHalo() && whole.halo[0].fill != part.halo[0].fill) return std::nullopt;
  size_t cut = 0;  // the innermost dim of which the part has fewer elements
  for (size_t d = 0; d < w.extents.size(); ++d) {
    if (!(w.extents[d] == p.extents[d])) cut = d;
  }
  for (size_t d = 0; d < cut; ++d) {
    if (!p.extents[d].IsConst(1)) return std::nullopt;
  }
  for (size_t d = 0; d < w.order.size(); ++d) {
    const int axis = w.order[d].axis;
    const int64_t tile = w.order[d].tile;
    const bool whole_axis = start[axis].IsConst(0) && w.dims[axis] == p.dims[axis];
    if (whole_axis) continue;
    if (w.halo_lo[d] || w.halo_hi[d]) return std::nullopt;
    if (tile == 1) continue;
    // Whole tiles; a ragged last one only where the whole has it too.
    const bool ends = DivisibleBy(p.dims[axis], tile) || start[axis] + p.dims[axis] == w.dims[axis];
    if (!DivisibleBy(start[axis], tile) || !ends) return std::nullopt;
  }
  Expr offset = 0;
  for (size_t d = 0; d < w.order.size(); ++d) {
    if (w.modulo[d] == 0)
      offset += FloorDiv(start[w.order[d].axis], w.order[d].tile) * w.strides[d];
  }
  return offset;
}

int AxisOf(const Node& n, int64_t otherwise, int rank) {
  const int64_t axis = AttrOr<int64_t>(n, "axis", otherwise);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// The logical start of a Slice with constant starts and steps of 1.
std::optional<std::vector<Expr>> SliceStart(const Graph& g, const Node& n) {
  const Value& x = g.value(n.inputs[0]);
  const auto list = [&](size_t input) -> const std::vector<Expr>* {
    const bool has = input < n.inputs.size() && n.inputs[input] != kNone;
    return has && g.value(n.inputs[input]).elems ? &*g.value(n.inputs[input]).elems : nullptr;
  };
  const std::vector<Expr>*starts = list(1), *axes = list(3), *steps = list(4);
  const bool axes_unknown = n.inputs.size() > 3 && n.inputs[3] != kNone && axes == nullptr;
  const bool steps_unknown = n.inputs.size() > 4 && n.inputs[4] != kNone && steps == nullptr;
  if (starts == nullptr || axes_unknown || steps_unknown) return std::nullopt;
  std::vector<Expr> at(x.type.dims.size(), Expr(0));
  for (size_t k = 0; k < starts->size(); ++k) {
    const Expr axis_of = axes ? (*axes)[k] : Expr(static_cast<int64_t>(k));
    const Expr step = steps ? (*steps)[k] : Expr(1), start = (*starts)[k];
    if (!axis_of.IsConst() || !step.IsConst(1) || !start.IsConst()) return std::nullopt;
    const int64_t axis = axis_of.value() < 0 ? axis_of.value() + x.type.rank() : axis_of.value();
    const Expr dim = x.type.dims[static_cast<size_t>(axis)];
    int64_t from = start.value();
    if (from < 0 && !dim.IsConst()) return std::nullopt;
    if (from < 0) from = std::max<int64_t>(from + dim.value(), 0);
    if (!ProvablyLe(from, dim)) return std::nullopt;
    at[static_cast<size_t>(axis)] = from;
  }
  return at;
}

}  // namespace

// A root of the arena that tasks of this graph alone make.
bool PlanBuilder::CanMove(int buffer) const {
  const om::Buffer& b = plan_.buffers[buffer];
  return b.kind == om::BufferKind::kArena && same_[buffer] < 0 && slice_of_[buffer] < 0;
}

void PlanBuilder::LeaveOut(const Graph& g, const Node& n) {
  for (const auto* list : {&n.inputs, &n.outputs}) {
    for (ValueId v : *list) {
      if (v == kNone || BuffersOf(g)[v] < 0) continue;
      left_out_.emplace_back(static_cast<int32_t>(plan_.tasks.size()), BuffersOf(g)[v]);
    }
  }
}

// The parts i.. of `n` that are together one buffer, cut into slices in this order; else 0.
size_t PlanBuilder::WholeRun(const Graph& g, const Node& n, size_t i) {
  const int root = slice_of_[Find(BuffersOf(g)[n.inputs[i]])];
  Expr filled = 0;
  for (size_t k = i; k < n.inputs.size(); ++k) {
    const int b = BuffersOf(g)[n.inputs[k]];
    if (b < 0) return 0;
    const int at = Find(b);
    if (slice_of_[at] != root || !(slice_offset_[at] == filled)) return 0;
    filled += bytes_[at];
    if (filled == bytes_[root]) return k - i + 1;
  }
  return 0;
}

std::vector<ValueId> PlanBuilder::PlaceParts(const Graph& g, const Node& n) {
  std::vector<ValueId> placed;
  const Value& whole = g.value(n.outputs[0]);
  if (IsObject(whole)) return placed;
  const int to = Writable(g, n.outputs[0]);
  if (!CanMove(to)) return placed;
  const auto outside = [&](ValueId v) {
    const NodeId producer = g.value(v).producer;
    return producer == kNone || g.node(producer).op->control ||
           std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
  };
  const int axis = AxisOf(n, 0, whole.type.rank());
  const int64_t width = BitWidth(whole.type.dtype) / 8;
  std::vector<Expr> start(whole.type.dims.size(), Expr(0));
  std::vector<std::optional<Expr>> offsets;
  for (ValueId v : n.inputs) {
    offsets.push_back(BlockOffset(whole, g.value(v), start));
    start[axis] += g.value(v).type.dims[axis];
  }
  const auto fits = [&](size_t i) {
    const bool once = std::count(n.inputs.begin(), n.inputs.end(), n.inputs[i]) == 1;
    return once && offsets[i] && !outside(n.inputs[i]);
  };
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const ValueId v = n.inputs[i];
    if (!fits(i) || BuffersOf(g)[v] < 0) continue;
    const int own = Find(BuffersOf(g)[v]);
    int moved = own;
    size_t run = 1;
    if (slice_of_[own] >= 0) {
      moved = slice_of_[own];
      run = WholeRun(g, n, i);
      for (size_t k = i; k < i + run; ++k) {
        if (!fits(k)) run = 0;
      }
    } else if (!(bytes_[own] == StorageBytes(g.value(v)))) {
      continue;
    }
    if (run == 0 || !CanMove(moved) || moved == to) continue;
    slice_of_[moved] = to;
    slice_offset_[moved] = *offsets[i] * width;
    placed.insert(placed.end(), n.inputs.begin() + static_cast<ptrdiff_t>(i),
                  n.inputs.begin() + static_cast<ptrdiff_t>(i + run));
    i += run - 1;
  }
  return placed;
}

// Outputs of a Split or a Slice that lie in its input: all that are needed, or none.
Result<std::vector<ValueId>> PlanBuilder::SliceOutputs(const Graph& g, const Node& n) {
  const Value& whole = g.value(n.inputs[0]);
  std::vector<Expr> start(whole.type.dims.size(), Expr(0));
  if (n.op->name == "Slice") {
    const auto at = SliceStart(g, n);
    if (!at) return std::vector<ValueId>();
    start = *at;
  }
  if (IsObject(whole)) return std::vector<ValueId>();
  const int axis = AxisOf(n, 0, whole.type.rank());
  GE_ASSIGN(const int from, Readable(g, n.inputs[0]));
  const om::BufferKind kind = plan_.buffers[RootOf(from)].kind;
  if (kind != om::BufferKind::kArena && kind != om::BufferKind::kInput)
    return std::vector<ValueId>();
  std::vector<ValueId> placed;
  std::vector<Expr> offsets;
  for (ValueId v : n.outputs) {
    if (v == kNone) continue;
    const bool leaves = std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
    const std::optional<Expr> offset = BlockOffset(whole, g.value(v), start);
    if (n.op->name == "Split") start[axis] += g.value(v).type.dims[axis];
    if (!NeedsValue(g, v)) continue;
    if (leaves || !offset || BuffersOf(g)[v] >= 0) return std::vector<ValueId>();
    if (DependsOnLate(StorageBytes(g.value(v))) || DependsOnLate(*offset))
      return std::vector<ValueId>();
    placed.push_back(v);
    offsets.push_back(*offset * (BitWidth(whole.type.dtype) / 8));
  }
  for (size_t i = 0; i < placed.size(); ++i)
    BuffersOf(g)[placed[i]] = NewSlice(from, g.value(placed[i]), offsets[i]);
  return placed;
}

}  // namespace ge
