// Finds a chip model by name; the CPU that runs this process is one, with the speed of its memory
// as it is measured here.
#include "soc/model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "soc/models.h"
#include "soc/soc.h"

namespace ge {
namespace {

std::vector<ChipModel (*)()>& Makers() {
  static std::vector<ChipModel (*)()> makers;
  return makers;
}

// Bytes read and written in a second by copies of `bytes` within one core, the best of some.
double CopySpeed(size_t bytes, int rounds) {
  const auto from = std::make_unique<char[]>(bytes), to = std::make_unique<char[]>(bytes);
  std::memset(from.get(), 1, bytes);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) {
      std::memcpy(to.get(), from.get(), bytes);
      asm volatile("" : : "r"(to.get()) : "memory");
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * static_cast<double>(bytes) * rounds / took.count());
  }
  return best;
}

ChipModel Host() {
  const SocSpec soc = HostSoc();
  ChipModel m;
  m.name = "host";
  m.runs_here = true;
  m.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const double gflops = soc.ghz * soc.fma_per_cycle * 2 * soc.F32Lanes();
  m.cube_tflops = m.cores * gflops / 1e3;
  m.vector_tflops = m.cube_tflops / 2;
  m.on_chip_bytes = soc.l2_bytes * m.cores;
  m.on_chip_gb_s = m.cores * CopySpeed(static_cast<size_t>(soc.l2_bytes) / 4, 200) / 1e9;
  m.memory_gb_s = CopySpeed(64 << 20, 1) / 1e9;
  m.launch_us = 0.1;
  m.event_us = 0.2;
  m.bytes_per_core = 4 << 10;
  m.sources = {
      {"cores", "the operating system"},
      {"cube and vector TFLOPS", "vector width x fused multiply-adds a cycle x nominal clock"},
      {"on-chip bytes", "the level-2 caches of all cores"},
      {"GB/s", "copies within the cache and in main memory, measured now"}};
  return m;
}

[[maybe_unused]] const bool kKnown = RegisterModel(Host);

}  // namespace

bool RegisterModel(ChipModel (*make)()) {
  Makers().push_back(make);
  return true;
}

// A name that begins with a known one is that chip: Ascend310P3, Ascend910A, Ascend910B2. The
// longest wins.
Result<ChipModel> FindChipModel(std::string_view name) {
  std::string known;
  ChipModel best;
  for (const std::string& candidate : ChipModelNames()) {
    known += (known.empty() ? "" : ", ") + candidate;
    if (name.starts_with(candidate) && candidate.size() > best.name.size()) best.name = candidate;
  }
  for (const auto make : Makers()) {
    if (best.name == "host" ? make == Host : make != Host && make().name == best.name)
      return make();
  }
  return Invalid("chip " + std::string(name) + " has no model (known: " + known + ")");
}

std::vector<std::string> ChipModelNames() {
  std::vector<std::string> names;
  for (const auto make : Makers()) names.push_back(make == Host ? "host" : make().name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ge
