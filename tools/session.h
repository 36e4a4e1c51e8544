// What `ge run` and `ge bench` share: a loaded model with its inputs bound.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "rt/runtime.h"
#include "tools/npy.h"

namespace ge {

struct InputOptions {
  std::vector<std::string> files;                      // in the model's order, or NAME=FILE
  std::map<std::string, std::vector<int64_t>> shapes;  // --shape, for dynamic inputs
  float mean = 0, std = 1;                             // of pictures
  bool bgr = false;
};

// Loads a model; kernels that are TileIR text are interpreted.
Result<std::shared_ptr<const rt::Model>> LoadModel(const std::string& path, int threads,
                                                   bool verify_weights = false);
// One array per model input: from the files, else seeded random values.
Result<std::vector<Array>> BindInputs(const rt::Model& model, const InputOptions& options);
// What Execute said; a failure names the inputs that hold random values and may be the reason.
Status Executed(Status status, const rt::Model& model, const InputOptions& options);
std::vector<rt::Tensor> Tensors(std::vector<Array>& arrays);
// "NAME:1,3,224,224": the last ':' splits.
Result<std::pair<std::string, std::vector<int64_t>>> ParseShapeOption(const std::string& text);
// Values of a plan's symbols for such shapes. Those of inputs that none names take the smallest
// value that is allowed, but at least 1.
Result<std::vector<int64_t>> SymbolsFor(const om::Plan& plan,
                                        const std::vector<std::string>& shapes);
std::string DimsText(const std::vector<int64_t>& dims);

}  // namespace ge
