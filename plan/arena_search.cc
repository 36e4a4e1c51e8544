// Depth-first search over canonical layouts: buffers are placed at offsets that never fall, each on
// top of a placed one that lives at the same time (or at 0). Invariant: `floor_[b]` of a buffer
// that is not placed is the top of what is placed during its life; the trail undoes every change.
//
// A branch ends early when
//  - some buffer would have fitted below the place where the next one goes (dominance: another
//    layout of the same height has it there),
//  - the lowest floor at some time plus all that is still to be placed at that time is too high,
//  - the same rest with the same floors has failed before (a table of 64-bit hashes; a false hit
//  can
//    only miss a layout, never make a wrong one).
// Rests that do not meet in time are solved one by one.
#include "plan/arena_search.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <numeric>

namespace ge {
namespace {

enum class ArenaVerdict { kFound, kImpossible, kGaveUp };

constexpr int kTableBits = 20;
constexpr int kRankings = 3;
constexpr int64_t kFirstWork = 400'000;  // of one attempt in the first round

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Lifetimes as half-open ranges of sections: the spans between neighbouring births and deaths.
struct Problem {
  struct Item {
    int begin = 0, end = 0;  // sections
    int32_t size = 0;        // units
    int64_t span = 0;        // tasks
  };
  std::vector<Item> items;
  std::vector<std::vector<int>> neighbours;  // alive at the same time
  std::vector<int32_t> load;                 // of each section: sum of sizes

  Problem(const std::vector<ArenaBuffer>& buffers, int64_t unit) {
    std::vector<int64_t> times;
    for (const ArenaBuffer& b : buffers) {
      times.push_back(b.first);
      times.push_back(int64_t{b.last} + 1);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto section = [&](int64_t t) {
      return static_cast<int>(std::lower_bound(times.begin(), times.end(), t) - times.begin());
    };
    load.assign(times.size(), 0);
    for (const ArenaBuffer& b : buffers) {
      const Item item{section(b.first), section(int64_t{b.last} + 1),
                      static_cast<int32_t>((b.bytes + unit - 1) / unit),
                      int64_t{b.last} - b.first + 1};
      for (int s = item.begin; s < item.end; ++s) load[s] += item.size;
      items.push_back(item);
    }
    neighbours.resize(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      for (size_t j = 0; j < items.size(); ++j) {
        if (i != j && items[i].begin < items[j].end && items[j].begin < items[i].end)
          neighbours[i].push_back(static_cast<int>(j));
      }
    }
  }

  // Among buffers at the same offset the one with the lower rank goes first.
  std::vector<int> Ranks(int ranking) const {
    std::vector<std::array<int64_t, 3>> keys;
    for (const Item& item : items) {
      const int64_t most = *std::max_element(load.begin() + item.begin, load.begin() + item.end);
      const int64_t area = item.span * item.size;
      const std::array<std::array<int64_t, 3>, kRankings> all = {
          {{0, area, item.span}, {most, item.span, area}, {0, item.span, area}}};
      keys.push_back(all[ranking]);
    }
    std::vector<int> order(items.size()), ranks(items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
    for (size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<int>(i);
    return ranks;
  }
};

class CanonicalSearch {
 public:
  explicit CanonicalSearch(const Problem& problem)
      : problem_(problem), items_(problem.items), failed_(size_t{1} << kTableBits) {
    for (int r = 0; r < kRankings; ++r) rankings_.push_back(problem.Ranks(r));
  }

  // Looks for a layout of at most `height`, within `work`, which it lowers by what it used.
  ArenaVerdict Run(int32_t height, int ranking, int64_t& work) {
    rank_ = rankings_[ranking].data();
    height_ = height;
    work_ = work;
    gave_up_ = false;
    trail_.clear();
    rest_ = problem_.load;
    offsets_.assign(items_.size(), -1);
    floor_.assign(items_.size(), 0);
    hash_.resize(items_.size());
    std::vector<int> all(items_.size());
    std::iota(all.begin(), all.end(), 0);
    for (int i : all) SetFloor(i, 0);
    std::stable_sort(all.begin(), all.end(),
                     [&](int a, int b) { return items_[a].begin < items_[b].begin; });
    const bool found = Solve(all, 0, -1, 0);
    work = work_;
    return found      ? ArenaVerdict::kFound
           : gave_up_ ? ArenaVerdict::kGaveUp
                      : ArenaVerdict::kImpossible;
  }

  const std::vector<int32_t>& offsets() const { return offsets_; }

 private:
  struct Candidate {
    int32_t offset;
    int rank, item;
    bool operator<(const Candidate& o) const {
      return offset != o.offset ? offset < o.offset : rank < o.rank;
    }
  };
  struct Frame {  // scratch of one depth, kept to save allocations
    std::vector<int32_t> lowest;
    std::vector<Candidate> candidates;
    std::vector<int> rest;
  };
  struct Change {
    int item;  // ~item: it was placed
    int32_t floor;
  };

  void SetFloor(int item, int32_t floor) {
    floor_[item] = floor;
    hash_[item] = Mix(static_cast<uint64_t>(item) << 32 | static_cast<uint32_t>(floor));
  }

  void Place(int item, int32_t offset) {
    const Problem::Item& it = items_[item];
    const int32_t top = offset + it.size;
    offsets_[item] = offset;
    for (int j : problem_.neighbours[item]) {
      if (offsets_[j] >= 0 || floor_[j] >= top) continue;
      trail_.push_back({j, floor_[j]});
      SetFloor(j, top);
    }
    for (int s = it.begin; s < it.end; ++s) rest_[s] -= it.size;
    trail_.push_back({~item, 0});
  }

  void UndoTo(size_t mark) {
    while (trail_.size() > mark) {
      const Change change = trail_.back();
      trail_.pop_back();
      if (change.item >= 0) {
        SetFloor(change.item, change.floor);
        continue;
      }
      const Problem::Item& it = items_[~change.item];
      offsets_[~change.item] = -1;
      for (int s = it.begin; s < it.end; ++s) rest_[s] += it.size;
    }
  }

  // A buffer whose turn at this offset is over: something must still come below it.
  bool Passed(int item, int32_t offset, int rank) const {
    return floor_[item] < offset || (floor_[item] == offset && rank_[item] < rank);
  }

  // `part` is sorted by birth; the last buffer was placed at `offset` and had `rank`.
  bool Solve(const std::vector<int>& part, int32_t offset, int rank, size_t depth) {
    if (part.empty()) return true;
    work_ -= static_cast<int64_t>(part.size()) + 8;
    if (work_ < 0) {
      gave_up_ = true;
      return false;
    }
    int end = items_[part[0]].end;
    for (int i : part) {
      if (items_[i].begin >= end) return SolveParts(part, offset, rank, depth);
      end = std::max(end, items_[i].end);
    }
    if (frames_.size() <= depth) frames_.resize(depth + 1);
    Frame& frame = frames_[depth];
    uint64_t key = 0;
    if (!FindCandidates(part, end, offset, rank, frame, key)) return false;
    const size_t mark = trail_.size();
    for (const Candidate& c : frame.candidates) {
      frame.rest.clear();
      for (int j : part) {
        if (j != c.item) frame.rest.push_back(j);
      }
      Place(c.item, c.offset);
      if (Solve(frame.rest, c.offset, c.rank, depth + 1)) return true;
      UndoTo(mark);
      if (gave_up_) return false;
    }
    failed_[key >> (64 - kTableBits)] = key;
    return false;
  }

  bool SolveParts(const std::vector<int>& part, int32_t offset, int rank, size_t depth) {
    std::vector<std::vector<int>> parts;
    int end = -1;
    for (int i : part) {
      if (items_[i].begin >= end) parts.emplace_back();
      parts.back().push_back(i);
      end = std::max(end, items_[i].end);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (const std::vector<int>& p : parts) {
      if (!Solve(p, offset, rank, depth + 1)) return false;  // the caller undoes the others
    }
    return true;
  }

  // What may be placed next, lowest offset first; false if the rest cannot be placed at all.
  bool FindCandidates(const std::vector<int>& part, int end, int32_t offset, int rank, Frame& frame,
                      uint64_t& key) {
    constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
    int32_t ceiling = kMost, next = kMost, smallest = kMost;
    key = Mix(static_cast<uint64_t>(height_));
    for (int i : part) {
      const bool passed = Passed(i, offset, rank);
      key += passed ? hash_[i] * 0x9e3779b97f4a7c15 : hash_[i];
      ceiling = std::min(ceiling, floor_[i] + items_[i].size);
      if (passed) continue;
      next = std::min(next, floor_[i]);
      smallest = std::min(smallest, items_[i].size);
    }
    if (next >= ceiling || failed_[key >> (64 - kTableBits)] == key) return false;
    const int begin = items_[part[0]].begin;
    frame.lowest.resize(rest_.size());
    std::fill(frame.lowest.begin() + begin, frame.lowest.begin() + end, kMost);
    frame.candidates.clear();
    for (int i : part) {
      const Problem::Item& it = items_[i];
      const bool passed = Passed(i, offset, rank);
      const int32_t at = passed ? next + smallest : floor_[i];
      if (at > height_ - it.size) return false;
      int32_t* lowest = frame.lowest.data();
      for (int s = it.begin; s < it.end; ++s) lowest[s] = std::min(lowest[s], at);
      work_ -= (it.end - it.begin) / 8;
      if (!passed && at < ceiling) frame.candidates.push_back({at, rank_[i], i});
    }
    for (int s = begin; s < end; ++s) {
      if (frame.lowest[s] != kMost && frame.lowest[s] > height_ - rest_[s]) return false;
    }
    std::sort(frame.candidates.begin(), frame.candidates.end());
    return true;
  }

  const Problem& problem_;
  const std::vector<Problem::Item>& items_;
  std::vector<std::vector<int>> rankings_;
  const int* rank_ = nullptr;
  int32_t height_ = 0;
  int64_t work_ = 0;
  bool gave_up_ = false;
  std::vector<int32_t> rest_;             // of each section: bytes still to be placed
  std::vector<int32_t> offsets_, floor_;  // of each item; offset -1: not placed
  std::vector<uint64_t> hash_, failed_;
  std::vector<Change> trail_;
  std::deque<Frame> frames_;
};

// Heights between which the best layout lies, and the attempts to bring them together.
class Descent {
 public:
  Descent(const std::vector<ArenaBuffer>& buffers, int64_t unit, int64_t work, ArenaLayout& layout)
      : buffers_(buffers),
        unit_(unit),
        work_(work),
        problem_(buffers, unit),
        search_(problem_),
        layout_(layout),
        low_(static_cast<int32_t>((layout.lower_bound + unit - 1) / unit)),
        high_(static_cast<int32_t>(layout.height / unit)) {}

  void Run() {
    for (int64_t budget = kFirstWork; low_ < high_ && work_ > 0; budget *= 2) {
      Attempt(low_, budget);
      for (int eighths : {4, 6, 7}) {
        while (
            low_ < high_ && work_ > 0 &&
            Attempt(low_ + static_cast<int32_t>(int64_t{high_ - low_} * eighths / 8), budget / 8)) {
        }
      }
    }
  }

 private:
  // Every ranking in turn; true if low_ or high_ has moved.
  bool Attempt(int32_t height, int64_t budget) {
    for (int ranking = 0; ranking < kRankings && work_ > 0; ++ranking) {
      int64_t left = std::min(budget, work_);
      const int64_t before = left;
      const ArenaVerdict verdict = search_.Run(height, ranking, left);
      work_ -= before - left;
      if (verdict == ArenaVerdict::kGaveUp) continue;
      if (verdict == ArenaVerdict::kImpossible) low_ = height + 1;
      if (verdict == ArenaVerdict::kFound) Keep();
      return true;
    }
    return false;
  }

  void Keep() {
    high_ = 0;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const int32_t offset = search_.offsets()[i];
      layout_.offsets[i] = offset * unit_;
      high_ = std::max(high_, offset + problem_.items[i].size);
    }
    layout_.height = high_ * unit_;
  }

  const std::vector<ArenaBuffer>& buffers_;
  int64_t unit_, work_;
  Problem problem_;
  CanonicalSearch search_;
  ArenaLayout& layout_;
  int32_t low_, high_;  // no layout is lower than low_; there is one of high_
};

}  // namespace

void LowerArena(const std::vector<ArenaBuffer>& buffers, int64_t alignment, int64_t work,
                ArenaLayout& layout) {
  int64_t unit = 0;
  for (const ArenaBuffer& b : buffers) {
    unit = std::gcd(unit, (b.bytes + alignment - 1) / alignment * alignment);
  }
  // A layout of the heuristics lies at sums of sizes: its height is a multiple of the unit too.
  if (unit == 0 || layout.height / unit > std::numeric_limits<int32_t>::max() / 2) return;
  Descent(buffers, unit, work, layout).Run();
}

}  // namespace ge
