// Ascend chips: accepted by name so that command lines of the Ascend stack run unchanged; the code
// is made for the host.
#include "soc/chips.h"

namespace ge {
namespace {

SocSpec Ascend(std::string_view name, std::string* note) {
  SocSpec soc = HostSoc();
  if (note != nullptr) {
    *note = "soc_version " + std::string(name) + ": code is made for this CPU (" +
            (soc.masks ? "AVX-512" : "AVX2") + ")";
  }
  return soc;
}

[[maybe_unused]] const bool kKnown = RegisterChip({"Ascend*", Ascend});

}  // namespace
}  // namespace ge
