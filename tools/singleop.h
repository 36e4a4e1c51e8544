// --singleop: operators of a JSON list, one .om for each in the folder --output.
#pragma once

#include <string>
#include <vector>

#include "tools/atc_options.h"

namespace ge {

// One operator of the list: the name of its file without suffix, and its graph as AscendIR text.
struct SingleOp {
  std::string file, text;
};
// [{"op", "name"?, "input_desc": [{"format", "type", "shape"}], "output_desc": [..],
//   "attr": [{"name", "type", "value"}]}]. Names and attributes are AscendIR's or ONNX's.
Fault ReadSingleOps(const AtcOptions& options, std::vector<SingleOp>* ops);

}  // namespace ge
