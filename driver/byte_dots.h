// Whether a dot of quantised operands takes less time in integers or in floats on a chip.
#pragma once

#include <functional>
#include <string>

#include "ir/graph.h"
#include "ir/policy.h"
#include "soc/soc.h"

namespace ge {

// For Policy::floats_pay: lowers both forms of the dot alone and compares the estimates. Each
// decision is one line of policy.report. The chip and the policy must outlive the result.
std::function<std::string(const Graph&, const Node&)> CompareByteDots(const SocSpec& soc,
                                                                      const Policy& policy);

}  // namespace ge
