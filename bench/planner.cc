// Memory planner on problems given as CSV files: id,lower,upper,size with lifetimes [lower, upper).
// Prints height, lower bound and seconds of each; the layout is checked pair by pair.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "plan/arena.h"

namespace {

constexpr int64_t kWork = 520'000'000;  // of the exact search, unless --work says otherwise

bool ReadLine(std::string_view line, ge::ArenaBuffer& buffer) {
  int64_t v[4] = {};
  const char* at = line.data();
  const char* end = at + line.size();
  for (int64_t& x : v) {
    const auto [next, error] = std::from_chars(at, end, x);
    if (error != std::errc()) return false;
    at = next < end ? next + 1 : end;
  }
  if (v[1] < 0 || v[2] <= v[1] || v[2] > INT32_MAX || v[3] < 0) return false;
  buffer = {static_cast<int32_t>(v[1]), static_cast<int32_t>(v[2] - 1), v[3]};
  return true;
}

bool ReadProblem(const char* path, std::vector<ge::ArenaBuffer>& buffers) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return false;
  while (std::getline(in, line)) {
    if (line.empty() || line == "\r") continue;
    ge::ArenaBuffer buffer;
    if (!ReadLine(line, buffer)) {
      std::fprintf(stderr, "%s: not id,lower,upper,size: %s\n", path, line.c_str());
      return false;
    }
    buffers.push_back(buffer);
  }
  return true;
}

bool IsSound(const std::vector<ge::ArenaBuffer>& buffers, const ge::ArenaLayout& layout) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t begin = layout.offsets[i], end = begin + buffers[i].bytes;
    if (begin < 0 || end > layout.height) return false;
    for (size_t j = 0; j < i; ++j) {
      if (buffers[i].first > buffers[j].last || buffers[j].first > buffers[i].last) continue;
      if (begin < layout.offsets[j] + buffers[j].bytes && layout.offsets[j] < end) return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t work = kWork;
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--work" && i + 1 < argc) {
      work = std::atoll(argv[++i]);
      continue;
    }
    std::vector<ge::ArenaBuffer> buffers;
    if (!ReadProblem(argv[i], buffers)) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      ++failures;
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    const ge::ArenaLayout layout = ge::PlanArena(buffers, 1, work);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const bool sound = IsSound(buffers, layout);
    failures += !sound;
    std::printf("%s height=%lld lower_bound=%lld seconds=%.3f%s\n", argv[i],
                static_cast<long long>(layout.height), static_cast<long long>(layout.lower_bound),
                seconds.count(), sound ? "" : " UNSOUND");
  }
  if (argc < 2) std::fprintf(stderr, "usage: planner [--work N] FILE.csv ...\n");
  return argc < 2 || failures > 0 ? 1 : 0;
}
