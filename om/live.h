// How many bytes are alive at each task, from lifetimes: what bounds an arena from below.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "om/plan.h"

namespace ge::om {

class LiveBytes {
 public:
  // From task `first` to task `last`, both included; rounded up to cache lines.
  void Add(int32_t first, int32_t last, int64_t bytes);
  // One sum per task, up to the last one at which anything lives.
  std::vector<int64_t> ByTask() const;
  int64_t Most() const;

 private:
  std::vector<int64_t> change_;
};

// What the arena of a plan holds, with its aliases; sizes that are not known count as nothing.
LiveBytes ArenaLives(const Plan& plan, std::span<const int64_t> symbols);

// The buffer whose bytes these are: itself, or the one that it is an alias of.
inline int32_t RootOf(const Plan& plan, int32_t buffer) {
  const int32_t alias = plan.buffers[static_cast<size_t>(buffer)].alias;
  return alias >= 0 ? alias : buffer;
}

}  // namespace ge::om
