// Operators as AscendIR and as ONNX name them: where a user may give either.
#pragma once

#include <string>
#include <string_view>

namespace ge {

std::string OnnxName(std::string_view name);  // of an AscendIR operator; other names stay

}  // namespace ge
