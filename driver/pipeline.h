// The written order of the passes. The order is a design decision: read pipeline.cc in one screen.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/policy.h"
#include "opt/pass.h"

namespace ge {

// Names of the passes that run at this policy's level, in order, without the disabled ones.
std::vector<std::string_view> PassNames(const Policy& policy);

// Runs the named passes once each. `after`, if set, is called with the name and whether the pass
// changed the graph. Dumps as $GE_DUMP asks.
void RunPasses(Graph& g, const Policy& policy, const std::vector<std::string_view>& names,
               const std::function<void(std::string_view, bool)>& after = {});

}  // namespace ge
