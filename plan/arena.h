// Arena: offsets for buffers with fixed sizes and lifetimes. Units: bytes; lifetimes are inclusive
// task numbers. Works for any problem (also the CSV files of hard planner problems).
#pragma once

#include <cstdint>
#include <vector>

namespace ge {

struct ArenaBuffer {
  int32_t first = 0, last = 0;
  int64_t bytes = 0;
};
struct ArenaLayout {
  std::vector<int64_t> offsets;
  int64_t height = 0;
  int64_t lower_bound = 0;  // largest sum of sizes alive at one task
};

// Work of the exact search (plan/arena_search.h) that is allowed while the heuristics' layout is
// above the lower bound; 0: heuristics alone.
inline constexpr int64_t kArenaWork = 100'000'000;
ArenaLayout PlanArena(const std::vector<ArenaBuffer>& buffers, int64_t alignment = 64,
                      int64_t search_work = kArenaWork);

}  // namespace ge
