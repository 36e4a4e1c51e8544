// Which passes and rules run: --fusion_switch_file, --optimization_switch, --disable_passes,
// --oo_*.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/policy.h"
#include "tools/atc_options.h"

namespace ge {

// What can be left out besides passes and rules.
inline constexpr std::string_view kSteps[] = {"layout", "cube",       "winograd",
                                              "order",  "strips",     "recompute",
                                              "spill",  "write_over", "channel_parts"};

// Names are GE's own, or CANN's where a rule does the same. The file first, then the command line.
Fault ApplySwitches(const AtcOptions& options, Policy* policy, std::vector<std::string>* notes);

}  // namespace ge
