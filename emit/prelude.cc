// Puts the prelude together: types, then each template once for scalars and once for vectors.
#include "emit/prelude.h"

#include "emit/emit.h"

namespace ge::emit {

namespace {

std::string For(char mode, std::string text) {
  for (char& c : text) {
    if (c == '$') c = mode;
  }
  return text;
}

}  // namespace

std::string Prelude(const SocSpec& soc) {
  std::string text = PreludeTypes(soc) + PreludeLanes(soc) + PreludeBytes(soc) + PreludeTiles(soc) +
                     PreludeOpsOnce() + PreludeMathOnce();
  for (char mode : {'s', 'v'}) {
    text += For(mode, PreludeOps());
    text += For(mode, PreludeStorage());
    text += For(mode, PreludeMath());
  }
  return text + PreludeDivision() + PreludeStorageOnce();
}

}  // namespace ge::emit
