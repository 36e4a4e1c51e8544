// How many CPUs this process may use: affinity mask and cgroup quota (versions 1 and 2).
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/thread_pool.h"

namespace ge {
namespace {

int AffinityCount() {
  // The kernel refuses a mask smaller than its own, so try larger ones.
  for (int cpus = 1024; cpus <= 1 << 16; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const int count = ok ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (ok) return std::max(1, count);
  }
  return 1;
}

// Quota over period, rounded up; a large number if there is no limit.
constexpr double kNoLimit = 1e9;

double ReadMax(const std::string& file) {  // version 2: "max 100000" or "150000 100000"
  std::ifstream in(file);
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return kNoLimit;
  return std::strtod(quota.c_str(), nullptr) / period;
}

double ReadV1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0)
    return kNoLimit;
  return quota / period;
}

// The limit of a group and of every group above it.
template <class Read>
double Smallest(const std::string& root, std::string group, Read read) {
  double limit = read(root);
  while (!group.empty() && group != "/") {
    limit = std::min(limit, read(root + group));
    group.resize(group.rfind('/'));
  }
  return limit;
}

double QuotaCpus() {
  double limit = kNoLimit;
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      limit = std::min(limit, Smallest("/sys/fs/cgroup", group, [](const std::string& folder) {
                         return ReadMax(folder + "/cpu.max");
                       }));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      limit = std::min(limit, Smallest("/sys/fs/cgroup/cpu", group, ReadV1));
    }
  }
  return limit;
}

}  // namespace

int AvailableCpus() {
  const int affinity = AffinityCount();
  const double quota = QuotaCpus();
  if (quota >= affinity) return affinity;
  return std::max(1, static_cast<int>(quota + 0.99));
}

}  // namespace ge
