// What the simulator needs to know about a compiled model beyond its plan.
#pragma once

#include <string_view>
#include <vector>

#include "plan/simulate.h"

namespace ge {

// Arithmetic of each task, from the description that the compiler left in the file.
std::vector<TaskWork> WorkOf(std::string_view description, size_t tasks);

}  // namespace ge
