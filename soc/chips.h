// How a chip becomes known: one file per family, which registers its names. Used by soc/ only.
#pragma once

#include <string>
#include <string_view>

#include "soc/soc.h"

namespace ge {

struct Chip {
  std::string name;  // as a user writes it; a last '*' stands for any ending
  // The chip of that name; may leave a sentence for the user in *note (which may be null).
  SocSpec (*make)(std::string_view name, std::string* note) = nullptr;
};
// `static const bool kKnown = RegisterChip({...});` at namespace scope.
bool RegisterChip(Chip chip);

// Vector width, compiler flags and load-time features of an x86-64 level (3 or 4): what others
// start from.
SocSpec X86Level(int level);
SocSpec Aarch64();
// The matrix unit of that chip, and the rounding to bf16 that every chip with one has.
void AddAmx(SocSpec& soc);

}  // namespace ge
