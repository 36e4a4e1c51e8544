// Policy::Key: the part of a cache key that choices make.
#include "ir/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ge {

std::string Policy::Key() const {
  std::string chosen;
  for (const auto& [what, tile] : tiles)
    chosen += fmt::format(" {}={}x{}", what, tile.first, tile.second);
  return fmt::format("opt={} off={} conv_tolerance={} bf16={} region={}/{} interpret={} fold={}{}",
                     opt_level, fmt::join(disabled, ","), conv_tolerance, bf16 ? 1 : 0,
                     max_region_nodes, max_region_inputs, interpret_kernels ? 1 : 0,
                     fold_limit_bytes, chosen);
}

}  // namespace ge
