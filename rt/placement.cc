// Greedy by size: large buffers are placed first, each in the lowest gap between those that live at
// the same time. Invariant: by_offset is sorted and holds no two that share time and bytes.
#include "rt/placement.h"

#include <algorithm>
#include <numeric>

namespace ge::rt {
namespace {

constexpr int64_t kLine = 64;

int64_t RoundUp(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

int64_t LowestGap(const std::vector<const Placed*>& by_offset, const Placed& buffer) {
  int64_t at = 0;
  for (const Placed* other : by_offset) {
    if (other->last < buffer.first || other->first > buffer.last) continue;
    if (at + buffer.bytes <= other->offset) break;
    at = std::max(at, RoundUp(other->offset + other->bytes));
  }
  return at;
}

}  // namespace

int64_t PlaceArena(std::vector<Placed>* buffers) {
  std::vector<Placed*> order;
  for (Placed& b : *buffers) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(), [](const Placed* a, const Placed* b) {
    if ((a->offset >= 0) != (b->offset >= 0)) return a->offset >= 0;
    return a->bytes > b->bytes;
  });
  std::vector<const Placed*> by_offset;
  int64_t height = 0;
  for (Placed* b : order) {
    if (b->offset < 0) b->offset = LowestGap(by_offset, *b);
    height = std::max(height, b->offset + b->bytes);
    if (b->bytes == 0) continue;
    const auto place =
        std::lower_bound(by_offset.begin(), by_offset.end(), b,
                         [](const Placed* x, const Placed* y) { return x->offset < y->offset; });
    by_offset.insert(place, b);
  }
  return RoundUp(height);
}

}  // namespace ge::rt
