// The registry of passes, and the check of an order of passes.
#include "opt/pass.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/check.h"

namespace ge {
namespace {

std::map<std::string_view, Pass>& Registry() {
  static std::map<std::string_view, Pass> passes;
  return passes;
}

}  // namespace

bool RegisterPass(const Pass& pass) {
  GE_CHECK(Registry().emplace(pass.name, pass).second, "pass registered twice");
  return true;
}

const Pass* FindPass(std::string_view name) {
  auto it = Registry().find(name);
  return it == Registry().end() ? nullptr : &it->second;
}

std::vector<const Pass*> AllPasses() {
  std::vector<const Pass*> all;
  for (const auto& [name, pass] : Registry()) all.push_back(&pass);
  return all;
}

Status CheckOrder(std::span<const std::string_view> names) {
  std::set<std::string_view> given;
  std::string faults;
  for (std::string_view name : names) {
    const Pass* pass = FindPass(name);
    if (pass == nullptr) {
      faults += fmt::format("{}there is no pass '{}'", faults.empty() ? "" : "\n", name);
      continue;
    }
    for (std::string_view need : pass->needs) {
      if (given.contains(need)) continue;
      faults += fmt::format("{}pass '{}' needs '{}', which no pass before it gives",
                            faults.empty() ? "" : "\n", name, need);
    }
    given.insert(pass->gives.begin(), pass->gives.end());
  }
  return faults.empty() ? Status() : Invalid(faults);
}

}  // namespace ge
