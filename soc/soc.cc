// Finds a chip by the name a user gives. Invariant: an unknown name is refused with the known ones.
#include "soc/soc.h"

#include "soc/chips.h"

namespace ge {

std::vector<std::string> SocNames() {
  return {"host", "x86-64-v3", "x86-64-v4", "sapphirerapids", "Ascend*"};
}

Result<SocSpec> FindSoc(std::string_view soc_version, std::string* note) {
  if (soc_version.empty() || soc_version == "host") return HostSoc();
  if (soc_version == "x86-64-v3") return X86Level(3);
  if (soc_version == "x86-64-v4") return X86Level(4);
  if (soc_version == "sapphirerapids") return SapphireRapids();
  if (auto ascend = Ascend(soc_version, note)) return *std::move(ascend);
  std::string known;
  for (const std::string& name : SocNames()) known += (known.empty() ? "" : ", ") + name;
  return Invalid("soc_version " + std::string(soc_version) + " is not known (known: " + known +
                 ")");
}

}  // namespace ge
