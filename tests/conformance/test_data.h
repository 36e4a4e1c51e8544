// Test data of ONNX's backend tests: protobuf tensors in, comparison out.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "rt/runtime.h"

namespace ge {

// Type of the model's only node, or "several".
std::string FirstOperator(const std::filesystem::path& model);
// Runs the model on one test_data_set folder and compares every output: floats within rtol 1e-3 +
// atol 1e-7 (f16 and narrower: rtol 2e-3), NaN equal to NaN, all else exactly.
Status RunDataSet(const rt::Model& model, rt::Run& run, const std::filesystem::path& folder);

}  // namespace ge
