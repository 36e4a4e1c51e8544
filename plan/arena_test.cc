// Arena layouts: never two buffers at one place and time; heights of known hard problems are
// printed.
#include "plan/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

namespace ge {
namespace {

void ExpectSound(const std::vector<ArenaBuffer>& buffers, const ArenaLayout& layout,
                 int64_t alignment) {
  ASSERT_EQ(layout.offsets.size(), buffers.size());
  int64_t top = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_GE(layout.offsets[i], 0);
    ASSERT_EQ(layout.offsets[i] % alignment, 0);
    top = std::max(top, layout.offsets[i] + buffers[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool apart = layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                         layout.offsets[j] + buffers[j].bytes <= layout.offsets[i];
      const bool empty = buffers[i].bytes == 0 || buffers[j].bytes == 0;
      ASSERT_TRUE(!together || apart || empty) << i << " and " << j;
    }
  }
  ASSERT_LE(top, layout.height);
  ASSERT_GE(layout.height, layout.lower_bound);
}

int64_t LargestSum(const std::vector<ArenaBuffer>& buffers, int64_t alignment) {
  int64_t most = 0;
  for (const ArenaBuffer& at : buffers) {
    int64_t sum = 0;
    for (const ArenaBuffer& b : buffers) {
      if (b.first <= at.first && at.first <= b.last)
        sum += (b.bytes + alignment - 1) / alignment * alignment;
    }
    most = std::max(most, sum);
  }
  return most;
}

// GE_PROBLEMS says how many.
TEST(Arena, RandomProblems) {
  std::mt19937 random(1);
  const char* wanted = std::getenv("GE_PROBLEMS");
  const int problems = wanted ? std::atoi(wanted) : 100000;
  for (int problem = 0; problem < problems; ++problem) {
    const int count = static_cast<int>(random() % 12), tasks = 1 + static_cast<int>(random() % 20);
    const int64_t alignment = random() % 2 ? 64 : 1;
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < count; ++i) {
      const auto a = static_cast<int32_t>(random() % tasks),
                 b = static_cast<int32_t>(random() % tasks);
      buffers.push_back({std::min(a, b), std::max(a, b), static_cast<int64_t>(random() % 1000)});
    }
    const ArenaLayout layout = PlanArena(buffers, alignment);
    ExpectSound(buffers, layout, alignment);
    ASSERT_EQ(layout.lower_bound, LargestSum(buffers, alignment));
  }
}

// The lowest height of all: some order of placing every buffer as low as it goes gives it.
int64_t LowestOfAllOrders(const std::vector<ArenaBuffer>& buffers) {
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t lowest = INT64_MAX;
  do {
    std::vector<int64_t> offsets(buffers.size(), -1);
    int64_t height = 0;
    for (int b : order) {
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t o = 0; o < buffers.size(); ++o) {
          const bool together =
              buffers[o].first <= buffers[b].last && buffers[b].first <= buffers[o].last;
          if (offsets[o] < 0 || !together || at >= offsets[o] + buffers[o].bytes ||
              offsets[o] >= at + buffers[b].bytes)
            continue;
          at = offsets[o] + buffers[o].bytes;
          moved = true;
        }
      }
      offsets[b] = at;
      height = std::max(height, at + buffers[b].bytes);
    }
    lowest = std::min(lowest, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return lowest;
}

// GE_ARENA_PROBLEMS sets how many.
TEST(Arena, SmallProblemsAreSolvedExactly) {
  const char* wish = std::getenv("GE_ARENA_PROBLEMS");
  const int problems = wish ? std::atoi(wish) : 20000;
  std::mt19937 random(3);
  int above = 0;
  for (int problem = 0; problem < problems; ++problem) {
    const int count = 7 + static_cast<int>(random() % 3), tasks = 20, largest = 2;
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < count; ++i) {
      const auto a = static_cast<int32_t>(random() % tasks),
                 b = static_cast<int32_t>(random() % tasks);
      buffers.push_back(
          {std::min(a, b), std::max(a, b), static_cast<int64_t>(1 + random() % largest)});
    }
    const ArenaLayout layout = PlanArena(buffers, 1);
    ExpectSound(buffers, layout, 1);
    if (layout.height == layout.lower_bound) continue;
    ASSERT_EQ(layout.height, LowestOfAllOrders(buffers)) << "problem " << problem;
    ++above;
  }
  printf("%d problems, %d of them above the lower bound\n", problems, above);
}

TEST(Arena, AboveTheLowerBoundWhereNothingElseFits) {
  const std::vector<ArenaBuffer> buffers = {{16, 18, 2}, {4, 14, 1},  {1, 3, 2},
                                            {9, 10, 1},  {13, 16, 2}, {5, 12, 1},
                                            {3, 8, 2},   {9, 14, 1},  {0, 19, 2}};
  const ArenaLayout layout = PlanArena(buffers, 1);
  ExpectSound(buffers, layout, 1);
  EXPECT_EQ(layout.lower_bound, 6);
  EXPECT_EQ(layout.height, LowestOfAllOrders(buffers));
}

TEST(Arena, SameResultEveryTime) {
  std::mt19937 random(4);
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < 120; ++i) {
    const auto first = static_cast<int32_t>(random() % 60);
    buffers.push_back({first, first + static_cast<int32_t>(random() % 30),
                       static_cast<int64_t>(64 * (1 + random() % 200))});
  }
  const ArenaLayout a = PlanArena(buffers, 64, 2'000'000), b = PlanArena(buffers, 64, 2'000'000);
  EXPECT_EQ(a.offsets, b.offsets);
  const ArenaLayout fast = PlanArena(buffers, 64, 0);
  ExpectSound(buffers, a, 64);
  EXPECT_LE(a.height, fast.height);
}

TEST(Arena, LargerRandomProblems) {
  std::mt19937 random(2);
  for (int count : {100, 300, 3000}) {
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < count; ++i) {
      const auto first = static_cast<int32_t>(random() % count);
      buffers.push_back({first, first + static_cast<int32_t>(random() % 20),
                         static_cast<int64_t>(1 + random() % 100000)});
    }
    const ArenaLayout layout = PlanArena(buffers);
    ExpectSound(buffers, layout, 64);
    EXPECT_LE(layout.height, layout.lower_bound * 5 / 4);
  }
}

TEST(Arena, ChainsReachTheBound) {
  std::vector<ArenaBuffer> chain;
  for (int32_t i = 0; i < 1000; ++i) chain.push_back({i, i + 1, 64 * (1 + i % 7)});
  const ArenaLayout layout = PlanArena(chain);
  ExpectSound(chain, layout, 64);
  EXPECT_EQ(layout.height, layout.lower_bound);
}

// Heuristics alone, by the time of the CPU that they take: ten times the buffers take 40 times as
// much at the most, where a quadratic one would take 100.
TEST(Arena, HeuristicsTakeNearlyLinearTime) {
  std::mt19937 random(5);
  std::vector<double> took;
  for (int count : {1000, 10000, 100000}) {
    std::vector<ArenaBuffer> buffers;
    for (int32_t i = 0; i < count; ++i)
      buffers.push_back({i, i + 1 + static_cast<int32_t>(random() % 9),
                         static_cast<int64_t>(64 * (1 + random() % 1000))});
    double least = 1e18;
    for (int run = 0; run < 3; ++run) {
      const std::clock_t start = std::clock();
      const ArenaLayout layout = PlanArena(buffers, 64, 0);
      least = std::min(least, static_cast<double>(std::clock() - start));
      EXPECT_GE(layout.height, layout.lower_bound);
    }
    printf("%d buffers: %.1f ms\n", count, least * 1e3 / CLOCKS_PER_SEC);
    if (!took.empty()) {
      EXPECT_LT(least, 40 * took.back());
    }
    took.push_back(least);
  }
}

// id,lower,upper,size with lifetimes [lower, upper).
std::vector<ArenaBuffer> ReadProblem(const std::filesystem::path& path) {
  std::vector<ArenaBuffer> buffers;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    int64_t v[4] = {};
    char comma;
    std::istringstream s(line);
    s >> v[0] >> comma >> v[1] >> comma >> v[2] >> comma >> v[3];
    buffers.push_back({static_cast<int32_t>(v[1]), static_cast<int32_t>(v[2] - 1), v[3]});
  }
  return buffers;
}

TEST(Arena, HardProblems) {
  const char* shared = std::getenv("GE_SHARED");
  const std::filesystem::path folder =
      std::filesystem::path(shared ? shared : "../shared") / "data/planner";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    if (file.extension() != ".csv") continue;
    const std::vector<ArenaBuffer> buffers = ReadProblem(file);
    const ArenaLayout layout = PlanArena(buffers, 1, 20'000'000);
    ExpectSound(buffers, layout, 1);
    printf("%s: %zu buffers, height %lld, lower bound %lld, %.3f\n", file.filename().c_str(),
           buffers.size(), static_cast<long long>(layout.height),
           static_cast<long long>(layout.lower_bound),
           static_cast<double>(layout.height) / static_cast<double>(layout.lower_bound));
    EXPECT_LE(layout.height, layout.lower_bound * 11 / 10);
  }
}

}  // namespace
}  // namespace ge
