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

}  // namespace ge::om
