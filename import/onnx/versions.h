// Upgrade: an operator of an older opset in terms of the newest one.
#pragma once

#include <string>

#include "base/status.h"
#include "import/onnx/emit.h"

namespace ge::onnx {

inline constexpr int64_t kNewestOpset = 27;

// Name under which the operator is registered today: "Upsample" is "Resize".
std::string_view NewestName(std::string_view op);
// Rewrites the draft (of the default domain, as opset `version` meant it). Steps before it are
// emitted. If `results` is not empty afterwards, all is done and these are the outputs.
Status Upgrade(NodeDraft& draft, int64_t version, Emitter& emitter, std::vector<ValueId>& results);

}  // namespace ge::onnx
