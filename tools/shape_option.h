// --input_shape of atc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace ge {

// "a:1,3,-1,224;b:" -> {a: {"1","3","","224"}, b: {}}: "" keeps the model's own dim. The last ':'
// of a part splits it, so that names may hold ':'. Names may be quoted with '"'.
Result<std::map<std::string, std::vector<std::string>>> ParseInputShape(const std::string& text);

}  // namespace ge
