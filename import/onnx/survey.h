// Survey: what can be said of a model before anything is built. Names every unsupported operator,
// every domain without an imported operator set, and functions that call themselves.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "import/onnx/import.h"
#include "import/onnx/proto.h"

namespace ge::onnx {

using Opsets = std::map<std::string, int64_t, std::less<>>;  // by domain; "" = ai.onnx

std::string_view PlainDomain(std::string_view domain);  // "ai.onnx" is ""
Result<Opsets> ReadOpsets(const std::vector<OpsetProto>& opsets);

// Model-local functions by domain, name and overload.
class Functions {
 public:
  explicit Functions(const ModelProto& model);
  const FunctionProto* Find(const NodeProto& call) const;

 private:
  std::map<std::string, const FunctionProto*, std::less<>> by_key_;
};

// Nodes whose operator nobody knows, and a fault for each. An error: nothing more can be said.
struct Unknown {
  std::unordered_set<const NodeProto*> nodes;
  std::vector<NodeFault> faults;
};
Result<Unknown> Survey(const ModelProto& model, const Functions& functions);

std::string_view NameOf(const NodeProto& node);  // or its first output's, if it has none

// "node 'x' (Op)".
std::string Describe(const NodeProto& node);

}  // namespace ge::onnx
