// Profiling (aclprof*): spans of time, kept between start and stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace ge::acl {

extern std::atomic<bool> profiling;  // between aclprofStart and aclprofStop
int64_t ProfileNowNs();
// Keeps [begin_ns, now] under a name; forgotten if nothing is profiled.
void KeepSpan(const std::string& name, const char* category, int64_t begin_ns);

}  // namespace ge::acl
