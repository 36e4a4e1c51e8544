// Greedy placement: buffers in some order, each into a gap between those that live at the same
// time. Small problems try several orders and then move what made the arena high to the front; the
// lowest result wins. Invariant of a layout: no two buffers share time and bytes.
#include "plan/arena.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace ge {
namespace {

constexpr size_t kTryAll = 2000;           // buffers up to which several orders are tried
constexpr int64_t kSearchWork = 12 << 20;  // neighbours that the search may look at

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
  int64_t work() const { return work_; }

 private:
  int64_t Find(const ArenaBuffer& buffer, Fit fit) {
    near_.clear();
    index_.Overlapping(buffer.first, buffer.last, near_);
    work_ += static_cast<int64_t>(near_.size()) + 8;
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
  int64_t work_ = 0;
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

  ArenaLayout Run() {
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
    if (small) Improve();
    return best_;
  }

 private:
  void Try(const std::vector<int>& order, Fit fit) {
    const int64_t height = placer_.Place(order, fit, best_.height);
    if (height >= best_.height) return;
    best_.height = height;
    best_.offsets = placer_.offsets();
    best_order_ = order;
    best_fit_ = fit;
  }

  // Moves a buffer at the top, or one by chance, to another place of the order: to the front
  // mostly.
  void Improve() {
    std::mt19937 random(1);
    const auto n = static_cast<uint32_t>(all_.size());
    std::vector<int> order = best_order_;
    std::vector<int64_t> offsets = best_.offsets;
    int64_t height = best_.height;
    while (placer_.work() < kSearchWork && best_.height > best_.lower_bound) {
      std::vector<int> next = order;
      std::vector<size_t> top;
      for (size_t i = 0; i < next.size(); ++i) {
        if (offsets[next[i]] + placer_.RoundUp(buffers_[next[i]].bytes) == height) top.push_back(i);
      }
      const size_t from = !top.empty() && random() % 2 ? top[random() % top.size()] : random() % n;
      const size_t to = from > 0 && random() % 4 ? random() % from : random() % n;
      const int moved = next[from];
      next.erase(next.begin() + static_cast<std::ptrdiff_t>(from));
      next.insert(next.begin() + static_cast<std::ptrdiff_t>(to), moved);
      const int64_t now = placer_.Place(next, best_fit_, height + 1);
      if (now > height) continue;
      order = std::move(next);
      height = now;
      offsets = placer_.offsets();
      if (now >= best_.height) continue;
      best_.height = now;
      best_.offsets = offsets;
    }
  }

  const std::vector<ArenaBuffer>& buffers_;
  Placer placer_;
  std::vector<int> all_, best_order_;
  Fit best_fit_ = Fit::kLowest;
  ArenaLayout best_;
};

}  // namespace

ArenaLayout PlanArena(const std::vector<ArenaBuffer>& buffers, int64_t alignment) {
  return Search(buffers, alignment).Run();
}

}  // namespace ge
