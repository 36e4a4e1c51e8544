// "did you mean": the nearest of some names.
#pragma once

#include <string>
#include <vector>

namespace ge {
// A sentence with the nearest known name, or with a pointer to --help if none is near.
std::string Suggestion(const std::string& given, const std::vector<std::string>& known);
}  // namespace ge
