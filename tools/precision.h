// --precision_mode, --precision_mode_v2, --modify_mixlist, --keep_dtype, --customize_dtypes: which
// nodes compute as in half precision.
//
// Kernels compute in f32. A node of half precision gets its f32 operands rounded to f16 or bf16,
// and rounds its results: the values are those of a machine that stores halves and accumulates in
// f32.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tools/atc_options.h"

namespace ge {

struct Precision {
  // kMixed: by the lists; kOperands: convolutions and matrix products round what they read only.
  enum class Mode : char { kOrigin, kAll, kMixed, kOperands };
  Mode mode = Mode::kOrigin;
  DType half = DType::kF16;
  std::set<std::string> white, black;  // operators of kMixed; others follow their operands
  std::set<std::string> keep;          // operators, and names of nodes, that stay as they are
  struct Types {
    std::vector<DType> inputs, outputs;  // kNone: as it is
  };
  std::map<std::string, Types> custom;  // by operator or node
  bool clip_weights = true;             // constants beyond f16 become its largest, not infinite
  bool Changes() const { return mode != Mode::kOrigin || !custom.empty(); }
};

Fault ReadPrecision(const AtcOptions& options, Precision* precision);
// Rounds; the number of nodes that compute in half precision. A line for each to `log`, if set.
int RoundToHalf(const Precision& precision, Graph* g,
                const std::function<void(const std::string&)>& log);

}  // namespace ge
