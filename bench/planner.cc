// Memory planner on problems given as CSV files: id,lower,upper,size with lifetimes [lower, upper).
// Prints height, lower bound and seconds of each; every layout is checked. --random N makes a
// problem of N buffers and places it by the heuristics alone.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
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

// As models have them: most values live for a few tasks, some for long; one begins at each task.
std::vector<ge::ArenaBuffer> RandomProblem(size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<ge::ArenaBuffer> buffers;
  for (size_t i = 0; i < count; ++i) {
    const auto first = static_cast<int32_t>(i);
    const unsigned most = random() % 16 ? 8 : 200;
    const auto last = first + static_cast<int32_t>(random() % most);
    buffers.push_back({first, last, 64 + 64 * static_cast<int64_t>(random() % 1024)});
  }
  return buffers;
}

// Sweeps over time with the buffers of the moment in order of offset: neighbours must not touch.
bool IsSound(const std::vector<ge::ArenaBuffer>& buffers, const ge::ArenaLayout& layout) {
  std::vector<std::tuple<int64_t, bool, size_t>> events;  // time, starts, buffer
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (layout.offsets[i] < 0 || layout.offsets[i] + buffers[i].bytes > layout.height) return false;
    if (buffers[i].bytes == 0) continue;
    events.emplace_back(buffers[i].first, true, i);
    events.emplace_back(int64_t{buffers[i].last} + 1, false, i);
  }
  std::sort(events.begin(), events.end());
  std::set<std::pair<int64_t, size_t>> now;
  const auto apart = [&](size_t low, size_t high) {
    return layout.offsets[low] + buffers[low].bytes <= layout.offsets[high];
  };
  for (const auto& [time, starts, i] : events) {
    const std::pair key(layout.offsets[i], i);
    if (!starts) {
      now.erase(key);
      continue;
    }
    const auto at = now.insert(key).first;
    if (at != now.begin() && !apart(std::prev(at)->second, i)) return false;
    if (std::next(at) != now.end() && !apart(i, std::next(at)->second)) return false;
  }
  return true;
}

// False if the layout is not sound.
bool Solve(const std::string& name, const std::vector<ge::ArenaBuffer>& buffers, int64_t alignment,
           int64_t work) {
  const auto start = std::chrono::steady_clock::now();
  const ge::ArenaLayout layout = ge::PlanArena(buffers, alignment, work);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const bool sound = IsSound(buffers, layout);
  std::printf("%s height=%lld lower_bound=%lld seconds=%.4f%s\n", name.c_str(),
              static_cast<long long>(layout.height), static_cast<long long>(layout.lower_bound),
              seconds.count(), sound ? "" : " UNSOUND");
  return sound;
}

int Usage(bool asked) {
  std::fprintf(asked ? stdout : stderr,
               "usage: planner [--work N] FILE.csv ... | --random BUFFERS\n");
  return asked ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool asked = argc == 2 && std::string_view(argv[1]) == "--help";
  if (argc < 2) return Usage(asked);
  int64_t work = kWork;
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--work" && i + 1 < argc) {
      work = std::atoll(argv[++i]);
      continue;
    }
    if (argument == "--random" && i + 1 < argc) {  // heuristics alone
      const auto count = static_cast<size_t>(std::clamp(std::atoll(argv[++i]), 1LL, 10'000'000LL));
      failures += !Solve("random " + std::to_string(count), RandomProblem(count), 64, 0);
      continue;
    }
    if (argument.starts_with('-')) return Usage(asked);
    std::vector<ge::ArenaBuffer> buffers;
    if (!ReadProblem(argv[i], buffers)) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      ++failures;
      continue;
    }
    failures += !Solve(argv[i], buffers, 1, work);
  }
  return failures > 0 ? 1 : 0;
}
