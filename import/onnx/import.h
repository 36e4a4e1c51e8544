// ONNX model file to Graph: versions upgraded to the newest opset's meaning, functions inlined,
// subgraph captures made explicit, types and facts inferred, composite operators expanded.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace ge::onnx {

// What keeps a model from being imported.
struct NodeFault {
  std::string kind;  // "operator" (there is none), "version", "attribute", "type", "node"
  std::string node, domain, op;  // of an input or initialiser: its name, no operator
  int64_t opset = 0;
  Code code = Code::kUnsupported;
  std::string message;
};

struct ImportOptions {
  // By input name; a dim is a number, a range "1~64" of a symbol, or "" or "-1" to keep the model's
  // own. A dynamic dim stays symbolic if not given; dims of one name in the model get one value.
  std::map<std::string, std::vector<std::string>> input_shapes;
  // An initialiser that is also a graph input is a constant, unless it is named here or above: then
  // it is an input and its default value is not used.
  std::set<std::string> keep_overridable;
  // What becomes the outputs instead of the model's: "node:index", or names of values.
  std::vector<std::string> out_nodes;
  std::map<std::string, std::string> op_names;  // operators of any domain -> those of ONNX
  int max_depth = 256;                          // of subgraphs and function calls
  std::vector<NodeFault>* faults = nullptr;     // if given: receives all of them
};
// `path` is mapped, not read. External data must lie in the model's folder. An error names every
// fault that was found; what depends on a faulty node is checked if the model declares its type.
Result<std::unique_ptr<Graph>> Import(const std::string& path, const ImportOptions& options = {});

}  // namespace ge::onnx
