// Greedy placement: buffers in some order, each into a gap between those that live at the same
// time. Small problems try several orders; above the lower bound, the exact search follows
// (plan/arena_search.h). The lowest result wins. Invariant of a layout: no two buffers share time
// and bytes.
#include "plan/arena.h"

#include <algorithm>
#include <numeric>

#include "plan/arena_search.h"

namespace ge {
namespace {

constexpr size_t kTryAll = 2000;  // buffers up to which several orders are tried

enum class Fit { kLowest, kTightest };

// Placed buffers, to be enumerated by time: a tree over buffers sorted by `first`, holding the
// largest `last` of those that are placed.
class TimeIndex {
 public:
  explicit TimeIndex(const std::vector<ArenaBuffer>& buffers) {
    by_first_.resize(buffers.size());
    std::iota(by_first_.begin(), by_first_.end(), 0);
    std::stable_sort(by_first_.begin(), by_first_.end(),
                     [&](int a, int b) { return buffers[a].first < buffers[b].first; });
    position_.resize(buffers.size());
    for (size_t i = 0; i < by_first_.size(); ++i) {
      position_[by_first_[i]] = static_cast<int>(i);
      first_.push_back(buffers[by_first_[i]].first);
    }
    while (leaves_ < buffers.size()) leaves_ *= 2;
    last_.assign(2 * leaves_, -1);
  }

  void Clear() { std::fill(last_.begin(), last_.end(), -1); }

  void Insert(int buffer, int32_t last) {
    size_t i = leaves_ + position_[buffer];
    for (last_[i] = last; i > 1; i /= 2) last_[i / 2] = std::max(last_[i / 2], last);
  }

  // Appends the placed buffers that live at a task of [first, last].
  void Overlapping(int32_t first, int32_t last, std::vector<int>& out) const {
    const size_t end = std::upper_bound(first_.begin(), first_.end(), last) - first_.begin();
    Collect(1, 0, leaves_, end, first, out);
  }

 private:
  void Collect(size_t node, size_t begin, size_t size, size_t end, int32_t first,
               std::vector<int>& out) const {
    if (begin >= end || last_[node] < first) return;
    if (size == 1) {
      out.push_back(by_first_[begin]);
      return;
    }
    Collect(2 * node, begin, size / 2, end, first, out);
    Collect(2 * node + 1, begin + size / 2, size / 2, end, first, out);
  }

  std::vector<int> by_first_, position_;
  std::vector<int32_t> first_, last_;
  size_t leaves_ = 1;
};

class Placer {
 public:
  Placer(const std::vector<ArenaBuffer>& buffers, int64_t alignment)
      : buffers_(buffers), alignment_(alignment), index_(buffers), offsets_(buffers.size()) {}

  int64_t RoundUp(int64_t v) const { return (v + alignment_ - 1) / alignment_ * alignment_; }

  // Height of the arena, or `limit` as soon as it is reached.
  int64_t Place(const std::vector<int>& order, Fit fit, int64_t limit) {
    index_.Clear();
    int64_t height = 0;
    for (int b : order) {
      offsets_[b] = Find(buffers_[b], fit);
      index_.Insert(b, buffers_[b].last);
      height = std::max(height, offsets_[b] + RoundUp(buffers_[b].bytes));
      if (height >= limit) return limit;
    }
    return height;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t alignment() const { return alignment_; }

 private:
  int64_t Find(const ArenaBuffer& buffer, Fit fit) {
    near_.clear();
    index_.Overlapping(buffer.first, buffer.last, near_);
    std::sort(near_.begin(), near_.end(), [&](int a, int b) { return offsets_[a] < offsets_[b]; });
    int64_t at = 0, best = -1, best_gap = INT64_MAX;
    for (int other : near_) {
      const int64_t gap = offsets_[other] - at;
      if (gap >= buffer.bytes && gap < best_gap) {
        if (fit == Fit::kLowest) return at;
        best = at;
        best_gap = gap;
      }
      at = std::max(at, RoundUp(offsets_[other] + buffers_[other].bytes));
    }
    return best >= 0 ? best : at;
  }

  const std::vector<ArenaBuffer>& buffers_;
  int64_t alignment_;
  TimeIndex index_;
  std::vector<int64_t> offsets_;
  std::vector<int> near_;
};

int64_t LowerBound(const std::vector<ArenaBuffer>& buffers, const std::vector<int>& order,
                   const Placer& placer) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // (time, change)
  for (int b : order) {
    const int64_t bytes = placer.RoundUp(buffers[b].bytes);
    steps.emplace_back(buffers[b].first, bytes);
    steps.emplace_back(static_cast<int64_t>(buffers[b].last) + 1, -bytes);
  }
  std::sort(steps.begin(), steps.end());
  int64_t now = 0, most = 0;
  for (const auto& [time, change] : steps) most = std::max(most, now += change);
  return most;
}

// Keys by which buffers are placed, smallest first.
double Span(const ArenaBuffer& b) { return static_cast<double>(b.last) - b.first + 1; }
double BySize(const ArenaBuffer& b) { return -static_cast<double>(b.bytes); }
double ByArea(const ArenaBuffer& b) { return -static_cast<double>(b.bytes) * Span(b); }
double BySpan(const ArenaBuffer& b) { return -Span(b); }
double ByFirst(const ArenaBuffer& b) { return b.first; }
double ByLast(const ArenaBuffer& b) { return -static_cast<double>(b.last); }

class Search {
 public:
  Search(const std::vector<ArenaBuffer>& buffers, int64_t alignment)
      : buffers_(buffers), placer_(buffers, alignment) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].bytes > 0) all_.push_back(static_cast<int>(i));
    }
    best_.offsets.assign(buffers.size(), 0);
    best_.height = all_.empty() ? 0 : INT64_MAX;
    best_.lower_bound = LowerBound(buffers, all_, placer_);
  }

  ArenaLayout Run(int64_t search_work) {
    const bool small = all_.size() <= kTryAll;
    for (double (*key)(const ArenaBuffer&) : {BySize, ByArea, BySpan, ByFirst, ByLast}) {
      std::vector<int> order = all_;
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        const double x = key(buffers_[a]), y = key(buffers_[b]);
        return x != y ? x < y : buffers_[a].bytes > buffers_[b].bytes;
      });
      for (Fit fit : {Fit::kLowest, Fit::kTightest}) {
        if (best_.height == best_.lower_bound) return best_;
        Try(order, fit);
      }
      if (!small) break;
    }
    if (small && search_work > 0 && best_.height > best_.lower_bound) Lower(search_work);
    return best_;
  }

 private:
  void Try(const std::vector<int>& order, Fit fit) {
    const int64_t height = placer_.Place(order, fit, best_.height);
    if (height >= best_.height) return;
    best_.height = height;
    best_.offsets = placer_.offsets();
  }

  // The exact search sees only buffers that have bytes.
  void Lower(int64_t work) {
    std::vector<ArenaBuffer> buffers;
    for (int b : all_) buffers.push_back(buffers_[b]);
    ArenaLayout layout{std::vector<int64_t>(all_.size()), best_.height, best_.lower_bound};
    LowerArena(buffers, placer_.alignment(), work, layout);
    if (layout.height >= best_.height) return;
    best_.height = layout.height;
    for (size_t i = 0; i < all_.size(); ++i) best_.offsets[all_[i]] = layout.offsets[i];
  }

  const std::vector<ArenaBuffer>& buffers_;
  Placer placer_;
  std::vector<int> all_;
  ArenaLayout best_;
};

}  // namespace

ArenaLayout PlanArena(const std::vector<ArenaBuffer>& buffers, int64_t alignment,
                      int64_t search_work) {
  return Search(buffers, alignment).Run(search_work);
}

}  // namespace ge
