// Survey: what can be said of a model before anything is built. Names every unsupported operator,
// every domain without an imported operator set, and functions that call themselves.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
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

Status Survey(const ModelProto& model, const Functions& functions);

// "node 'x' (Op)": the node's name, or its first output's if it has none.
std::string Describe(const NodeProto& node);

}  // namespace ge::onnx
