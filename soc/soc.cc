// Finds a chip by the name a user gives. Invariant: an unknown name is refused with the known ones.
#include "soc/soc.h"

#include <map>

#include "soc/chips.h"

namespace ge {
namespace {

std::map<std::string, Chip>& Chips() {
  static std::map<std::string, Chip> chips;
  return chips;
}

bool Names(const std::string& pattern, std::string_view name) {
  if (pattern.ends_with('*'))
    return name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
  return pattern == name;
}

}  // namespace

bool RegisterChip(Chip chip) { return Chips().emplace(chip.name, chip).second; }

Result<SocSpec> FindSoc(std::string_view soc_version, std::string* note) {
  if (soc_version.empty()) return HostSoc();
  std::string known;
  for (const auto& [name, chip] : Chips()) {
    if (Names(name, soc_version)) return chip.make(soc_version, note);
    known += (known.empty() ? "" : ", ") + name;
  }
  return Invalid("soc_version " + std::string(soc_version) + " is not known (known: " + known +
                 ")");
}

}  // namespace ge
