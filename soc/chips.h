// The chips known by name: one function per family, each in a file of its own. Used by soc/ only.
#pragma once

#include <optional>
#include <string_view>

#include "soc/soc.h"

namespace ge {

// Fills vector width, compiler flags and load-time features of an x86-64 level (3 or 4).
SocSpec X86Level(int level);  // soc/x86.cc
SocSpec SapphireRapids();     // soc/sapphirerapids.cc
// Any Ascend name: the host's numbers under that name, with a note for the user.
std::optional<SocSpec> Ascend(std::string_view name, std::string* note);  // soc/ascend.cc

}  // namespace ge
