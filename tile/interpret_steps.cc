// Running the statements of an interpreted kernel.
#include "tile/interpret_steps.h"

#include <algorithm>
#include <cstring>

namespace ge::tile::interpret {
namespace {

int ElementBytes(DType compute) { return BitWidth(compute) / 8; }

// Opens a lane scope and closes it again.
struct LaneScope {
  explicit LaneScope(Frame& frame) : f(frame) {}
  ~LaneScope() {
    f.first = 0;
    f.count = 1;
    f.lane_base = 0;
  }
  void Set(int64_t base, int64_t count) {
    f.lane_base = base;
    f.first = 0;
    f.count = static_cast<int>(count);
  }
  Frame& f;
};

}  // namespace

void LetStep::Run(Frame& f) const {
  RunCode(code, f);
  if (slot >= 0) f.slots[slot] = *f.Row<int64_t>(row);
}

void StoreStep::Run(Frame& f) const {
  RunCode(code, f);
  if (uniform)
    store(access, f, f.Row<std::byte>(row), 0, 1);
  else
    store(access, f, f.Row<std::byte>(row), f.first, f.count);
}

void CopyStep::Run(Frame& f) const {
  RunCode(code, f);
  if (uniform)
    CopyRow(from, to, bytes, f, 0, 1);
  else
    CopyRow(from, to, bytes, f, f.first, f.count);
}

void IfStep::Run(Frame& f) const {
  RunCode(code, f);
  if (uniform) {
    RunSteps(*f.Row<uint8_t>(row) ? then : otherwise, f);
    return;
  }
  // Runs of lanes that agree go together. The condition's row may be reused by the branches.
  const int begin = f.first, end = f.first + f.count;
  uint8_t mask[kLanes];
  std::memcpy(mask + begin, f.Row<uint8_t>(row) + begin, static_cast<size_t>(f.count));
  for (int j = begin; j < end;) {
    int e = j + 1;
    while (e < end && mask[e] == mask[j]) ++e;
    f.first = j;
    f.count = e - j;
    RunSteps(mask[j] ? then : otherwise, f);
    j = e;
  }
  f.first = begin;
  f.count = end - begin;
}

void LoopStep::Run(Frame& f) const {
  const int64_t begin = is_grid ? f.grid_begin : 0;
  const int64_t end = is_grid ? f.grid_end : extent.Eval(f);
  for (int64_t i = begin; i < end; ++i) {
    f.slots[slot] = i;
    Fill(values, f);
    RunSteps(body, f);
  }
}

void LaneLoopStep::Run(Frame& f) const {
  const int64_t begin = is_grid ? f.grid_begin : 0;
  const int64_t end = is_grid ? f.grid_end : extent.Eval(f);
  LaneScope lanes(f);
  for (int64_t i = begin; i < end; i += kLanes) {
    lanes.Set(i, std::min<int64_t>(kLanes, end - i));
    RunSteps(body, f);
  }
}

void AllocStep::Run(Frame& f) const {
  const int64_t n = elements.Eval(f);
  std::vector<std::byte>& store = (*f.locals)[buffer];
  const size_t bytes = static_cast<size_t>(BytesFor(dtype, std::max<int64_t>(n, 0)));
  if (store.size() < bytes) store.resize(bytes);
  // All ones is NaN in every float format; integers get a pattern that is unlikely to look right.
  std::memset(store.data(), IsFloat(dtype) ? 0xff : 0xa5, bytes);
  f.buffers[buffer] = store.data();
  f.elements[buffer] = n;
  RunSteps(body, f);
}

// All steps of the innermost serial axis, or the lanes.
void ReduceStep::RunLastAxis(Frame& f) const {
  if (by_lanes) {
    const int64_t end = lane_extent.Eval(f);
    for (int64_t i = 0; i < end; i += kLanes) {
      f.lane_base = i;
      f.first = 0;
      f.count = static_cast<int>(std::min<int64_t>(kLanes, end - i));
      RunSteps(lets, f);
      RunCode(code, f);
    }
    return;
  }
  const Axis& last = axes.back();
  const int64_t end = last.extent.Eval(f);
  if (end <= 0) return;
  f.slots[last.slot] = 0;
  RunCode(prefix, f);
  for (int64_t i = 0; i < end; ++i) {
    f.slots[last.slot] = i;
    RunSteps(lets, f);
    RunCode(code, f);
  }
}

void ReduceStep::RunAxes(Frame& f) const {
  constexpr size_t kMaxAxes = 16;
  int64_t extents[kMaxAxes];
  const size_t depth = axes.size() - (by_lanes ? 0 : 1);  // of the outer axes
  for (size_t d = 0; d < depth; ++d) {
    extents[d] = axes[d].extent.Eval(f);
    if (extents[d] <= 0) return;
    f.slots[axes[d].slot] = 0;
  }
  for (;;) {
    RunLastAxis(f);
    size_t d = depth;
    while (d > 0 && ++f.slots[axes[d - 1].slot] == extents[d - 1]) f.slots[axes[--d].slot] = 0;
    if (d == 0) return;
  }
}

void ReduceStep::Run(Frame& f) const {
  if (!by_lanes) {
    FillIdentity(op, type, f.Row<std::byte>(row) + f.first * ElementBytes(type), f.count);
    RunAxes(f);
  } else {
    LaneScope lanes(f);
    const int64_t used = std::clamp<int64_t>(lane_extent.Eval(f), 1, kLanes);
    FillIdentity(op, type, f.Row<std::byte>(row), static_cast<int>(used));
    RunAxes(f);
    FoldLanes(op, type, f.Row<std::byte>(row), static_cast<int>(used));
  }
  if (slot >= 0) f.slots[slot] = *f.Row<int64_t>(row);
}

void GemmStep::Run(Frame& f) const {
  const size_t bytes = gemm.a_type == DType::kF64 ? 8 : 4;
  std::vector<uint64_t> acc((static_cast<size_t>(gemm.m) * gemm.n * bytes + 7) / 8);
  RunGemm(gemm, f, acc.data());
  const int64_t columns = n_valid.Eval(f);
  for (int64_t r = 0; r < gemm.m; ++r) {
    f.slots[row_slot] = r;
    const std::byte* values = reinterpret_cast<const std::byte*>(acc.data()) +
                              static_cast<size_t>(r) * static_cast<size_t>(gemm.n) * bytes;
    if (col_slot >= 0) {
      for (int64_t c = 0; c < columns; ++c) {
        f.slots[col_slot] = c;
        std::memcpy(f.Row<std::byte>(acc_row), values + static_cast<size_t>(c) * bytes, bytes);
        RunSteps(body, f);
      }
      continue;
    }
    LaneScope lanes(f);
    for (int64_t c = 0; c < columns; c += kLanes) {
      lanes.Set(c, std::min<int64_t>(kLanes, columns - c));
      std::memcpy(f.Row<std::byte>(acc_row), values + static_cast<size_t>(c) * bytes,
                  static_cast<size_t>(f.count) * bytes);
      RunSteps(body, f);
    }
  }
}

}  // namespace ge::tile::interpret
