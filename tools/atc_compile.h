// The modes of atc.
#pragma once

#include <string>
#include <vector>

#include "driver/compile.h"
#include "tools/atc_options.h"

namespace ge {

// --mode=0. Prints notes and, with --log=info, decisions.
Fault CompileWith(const AtcOptions& options, const std::string& command_line,
                  const std::vector<std::string>& notes);
// What is asked of the importer: the model, shapes, outputs, names of operators.
Fault ReadImportOptions(const AtcOptions& options, CompileRequest* request);
// --mode=3: imports the model and writes --check_report: {"result", "message", "operators" by type,
// "unsupported": every fault with its node}.
Fault PreCheck(const AtcOptions& options);
// --mode=1: an .om or a model as JSON. --mode=5: a text dump as JSON. --mode=6: facts of an .om.
// --singleop: one file for each operator of the list.
Fault CompileSingleOps(const AtcOptions& options, const std::string& command_line,
                       const std::vector<std::string>& notes);
Fault ModelToJson(const AtcOptions& options);
Fault TextToJson(const AtcOptions& options);
Fault DisplayModel(const std::string& path);

}  // namespace ge
