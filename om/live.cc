// A sweep: what begins is added at its first task and taken away behind its last one.
#include "om/live.h"

#include <algorithm>

#include "om/size.h"

namespace ge::om {

void LiveBytes::Add(int32_t first, int32_t last, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const int64_t lines = (std::max<int64_t>(bytes, 0) + kLine - 1) / kLine * kLine;
  const size_t end = static_cast<size_t>(last) + 1;
  if (change_.size() <= end) change_.resize(end + 1, 0);
  change_[static_cast<size_t>(first)] += lines;
  change_[end] -= lines;
}

std::vector<int64_t> LiveBytes::ByTask() const {
  std::vector<int64_t> live;
  int64_t now = 0;
  for (size_t t = 0; t + 1 < change_.size(); ++t) live.push_back(now += change_[t]);
  return live;
}

int64_t LiveBytes::Most() const {
  int64_t now = 0, most = 0;
  for (const int64_t change : change_) most = std::max(most, now += change);
  return most;
}

LiveBytes ArenaLives(const Plan& plan, std::span<const int64_t> symbols) {
  LiveBytes lives;
  for (const Buffer& b : plan.buffers) {
    if (b.kind != BufferKind::kArena || b.alias >= 0 || b.first < 0) continue;
    lives.Add(b.first, b.last, EvalSize(plan, b.bytes, symbols));
  }
  return lives;
}

}  // namespace ge::om
