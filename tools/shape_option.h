// --input_shape and --input_shape_range of atc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/atc_options.h"

namespace ge {

using InputShapes = std::map<std::string, std::vector<std::string>>;

// "a:1,3,-1,1~10;b:" -> {a: {"1","3","","1~10"}, b: {}}: "" keeps the model's own dim. The last ':'
// of a part splits it, so that names may hold ':'. Names may be quoted with '"'. `brackets`: the
// older form "a:[1~2,3]".
Fault ParseInputShape(const std::string& text, bool brackets, InputShapes* shapes);

}  // namespace ge
