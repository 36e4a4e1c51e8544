// What this CPU can do, by the feature names that an .om file lists ("avx2", "avx512f",
// "amx_tile").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ge::rt {

bool CpuHas(std::string_view feature);  // false for unknown names; '_' and '-' do not count
// Ok if code that needs these features can run here. Asks the kernel for AMX if it is among them.
Status CheckCpu(const std::vector<std::string>& features);

}  // namespace ge::rt
