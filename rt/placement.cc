// Greedy: large buffers are placed first, each in the lowest gap between those that live at the
// same time. If that misses the lower bound, the first buffer that rose above it is placed before
// all others, and so on a few times; the lowest arena is kept. Invariant: by_offset is sorted and
// holds no two that share time and bytes.
#include "rt/placement.h"

#include <algorithm>
#include <numeric>

#include "om/live.h"

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

// Places in this order what has no offset; the arena's height.
int64_t PlaceInOrder(const std::vector<size_t>& order, std::vector<Placed>* buffers) {
  std::vector<const Placed*> by_offset;
  by_offset.reserve(order.size());
  int64_t height = 0;
  for (const size_t i : order) {
    Placed* const b = &(*buffers)[i];
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

// The most bytes that live at once.
int64_t LowerBound(const std::vector<Placed>& buffers) {
  om::LiveBytes lives;
  for (const Placed& b : buffers) lives.Add(b.first, b.last, b.bytes);
  return lives.Most();
}

constexpr size_t kFew = 512;  // one order suffices for more
constexpr int kTries = 24;

}  // namespace

int64_t PlaceArena(std::vector<Placed>* buffers) {
  std::vector<Placed> given = *buffers;
  std::vector<size_t> order(given.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    const Placed &a = given[x], &b = given[y];
    if ((a.offset >= 0) != (b.offset >= 0)) return a.offset >= 0;
    return a.bytes > b.bytes;
  });
  const auto fixed =
      std::count_if(given.begin(), given.end(), [](const Placed& b) { return b.offset >= 0; });
  const bool few = given.size() <= kFew;
  const int64_t bound = few ? LowerBound(given) : 0;
  int64_t best = -1;
  for (int i = 0; i < (few ? kTries : 1); ++i) {
    std::vector<Placed> trial = given;
    const int64_t height = PlaceInOrder(order, &trial);
    const auto above = std::find_if(order.begin() + fixed, order.end(), [&](size_t at) {
      return trial[at].offset + trial[at].bytes > bound;
    });
    if (best < 0 || height < best) {
      best = height;
      *buffers = std::move(trial);
    }
    if (best <= bound || above == order.end()) break;
    std::rotate(order.begin() + fixed, above, above + 1);
  }
  return best;
}

}  // namespace ge::rt
