// Which passes and rules run: --fusion_switch_file, --optimization_switch, --oo_*.
#pragma once

#include <string>
#include <vector>

#include "ir/policy.h"
#include "tools/atc_options.h"

namespace ge {

// Names are GE's own, or CANN's where a rule does the same. The file first, then the command line.
Fault ApplySwitches(const AtcOptions& options, Policy* policy, std::vector<std::string>* notes);

}  // namespace ge
