// Greedy by size: the largest buffer first, each at the lowest offset where it overlaps no placed
// buffer that is alive at the same time. Which placed buffers those are is looked up by blocks of
// tasks, so that buffers of short lives cost little in long plans.

#include "plan/arena.h"

#include <algorithm>
#include <numeric>

namespace ge {
namespace {

constexpr int32_t kBlock = 64;  // tasks per block of the index

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

class Placer {
 public:
  Placer(const std::vector<ArenaBuffer>& buffers, int64_t alignment)
      : buffers_(buffers),
        alignment_(alignment),
        offsets_(buffers.size(), 0),
        seen_(buffers.size(), -1) {
    int32_t last = 0;
    for (const ArenaBuffer& b : buffers) last = std::max(last, b.last);
    blocks_.resize(static_cast<size_t>(last / kBlock) + 1);
  }

  void Place(int32_t i) {
    const ArenaBuffer& b = buffers_[i];
    taken_.clear();
    for (int32_t k = b.first / kBlock; k <= b.last / kBlock; ++k)
      for (int32_t other : blocks_[k]) {
        const ArenaBuffer& o = buffers_[other];
        if (seen_[other] == i || o.last < b.first || b.last < o.first) continue;
        seen_[other] = i;
        taken_.emplace_back(offsets_[other], offsets_[other] + o.bytes);
      }
    std::sort(taken_.begin(), taken_.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken_) {
      if (at + b.bytes <= begin) break;
      at = std::max(at, RoundUp(end, alignment_));
    }
    offsets_[i] = at;
    height_ = std::max(height_, at + b.bytes);
    for (int32_t k = b.first / kBlock; k <= b.last / kBlock; ++k) blocks_[k].push_back(i);
  }

  std::vector<int64_t> offsets() && { return std::move(offsets_); }
  int64_t height() const { return height_; }

 private:
  const std::vector<ArenaBuffer>& buffers_;
  int64_t alignment_, height_ = 0;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> seen_;
  std::vector<std::vector<int32_t>> blocks_;
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

// Sum of sizes alive at each task, by differences.
int64_t LowerBound(const std::vector<ArenaBuffer>& buffers) {
  int32_t last = 0;
  for (const ArenaBuffer& b : buffers) last = std::max(last, b.last);
  std::vector<int64_t> change(static_cast<size_t>(last) + 2, 0);
  for (const ArenaBuffer& b : buffers) {
    change[b.first] += b.bytes;
    change[b.last + 1] -= b.bytes;
  }
  int64_t alive = 0, most = 0;
  for (int64_t c : change) most = std::max(most, alive += c);
  return most;
}

}  // namespace

ArenaLayout PlanArena(const std::vector<ArenaBuffer>& buffers, int64_t alignment) {
  ArenaLayout best;
  if (buffers.empty()) return best;
  best.lower_bound = LowerBound(buffers);
  best.height = -1;
  auto life = [&](int32_t i) {
    return static_cast<int64_t>(buffers[i].last) - buffers[i].first + 1;
  };
  using Order = bool (*)(int64_t, int64_t, int64_t, int64_t);  // bytes and life of a, of b
  static constexpr Order kOrders[] = {
      [](int64_t a, int64_t la, int64_t b, int64_t lb) { return a != b ? a > b : la > lb; },
      [](int64_t a, int64_t la, int64_t b, int64_t lb) { return a * la > b * lb; },
      [](int64_t a, int64_t la, int64_t b, int64_t lb) { return la != lb ? la > lb : a > b; }};
  for (Order less : kOrders) {
    std::vector<int32_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return less(buffers[a].bytes, life(a), buffers[b].bytes, life(b));
    });
    Placer placer(buffers, alignment);
    for (int32_t i : order) placer.Place(i);
    if (best.height < 0 || placer.height() < best.height) {
      best.height = placer.height();
      best.offsets = std::move(placer).offsets();
    }
    if (best.height <= best.lower_bound || buffers.size() > 5000) break;
  }
  return best;
}

}  // namespace ge
