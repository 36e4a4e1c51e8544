// The page of ge report: everything but the data, which stands between the two halves as JSON.
#pragma once

#include <string>
#include <string_view>

namespace ge {

// `json` may hold any text: what could end a script element is escaped.
std::string ReportPage(std::string_view title, std::string_view json);

}  // namespace ge
