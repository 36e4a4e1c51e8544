// Weights in files of their own, in weight/ beside the .om. Files of single weights are named by
// their contents: models that share a weight share its file.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "om/file.h"
#include "plan/planner.h"

namespace ge {

void FillWeight(const WeightSource& weight, std::byte* out);
// mode 1: a file for each weight, whose places in the plan move to starts of pages; 2: one file.
Result<std::vector<om::ExternalWeight>> WriteExternalWeights(const std::string& om_path, int mode,
                                                             Planned* planned);

}  // namespace ge
