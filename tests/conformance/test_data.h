// Test data of ONNX's backend tests: protobuf tensors in, comparison out.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "rt/runtime.h"

namespace ge {

// Type of the model's only node, or "several".
std::string FirstOperator(const std::filesystem::path& model);
// Runs the model on one test_data_set folder and compares every output: floats within rtol 1e-3 +
// atol 1e-7 (f16 and narrower: rtol 2e-3), NaN equal to NaN, all else exactly.
Status RunDataSet(const rt::Model& model, rt::Run& run, const std::filesystem::path& folder);
// The same for a model without input files: each input is 0/n, 1/n, ... of its n elements (a dim
// that is not fixed is 1), output k is in <prefix>_output_k.pb.
Status RunRamp(const rt::Model& model, rt::Run& run, const std::string& prefix, double rtol);
// What must be said of input shapes for this data: inputs that have a default value (an initialiser
// of the same name) but are fed.
std::map<std::string, std::vector<std::string>> ShapesFor(const std::filesystem::path& folder);

}  // namespace ge
