// What options say about a model's inputs and outputs: --output_type, --input_fp16_nodes,
// --out_nodes, --op_name_map.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tools/atc_options.h"

namespace ge {

struct OutputType {
  int output = -1;  // -1: all
  DType dtype = DType::kNone;
};
Fault ReadOutputTypes(const AtcOptions& options, std::vector<OutputType>* types);
Fault ApplyOutputTypes(const std::vector<OutputType>& types, Graph* g);

// Inputs become f16; a Cast gives the model what it had.
Fault ApplyFp16Inputs(const std::vector<std::string>& names, Graph* g);

Fault ReadOpNames(const AtcOptions& options, std::map<std::string, std::string>* names);

// The description's "inputs" and "outputs": names, types, dims (-1: dynamic).
std::string TensorsJson(const Graph& g, const std::vector<ValueId>& values,
                        const std::string& format);

}  // namespace ge
