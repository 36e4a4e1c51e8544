// Profiling (aclprof*): spans of time, kept between start and stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "api/acl/json.h"

namespace ge::acl {

extern std::atomic<bool> profiling;  // between aclprofStart and aclprofStop
int64_t ProfileNowNs();
// Keeps [begin_ns, now] under a name; forgotten if nothing is profiled.
void KeepSpan(const std::string& name, const char* category, int64_t begin_ns);

// By the member "profiler" of aclInit's configuration, until aclFinalize.
aclError StartProfile(const Json& config, const char* function);
void FinishProfile(const char* function);
bool Profiles();  // between aclprofInit and aclprofFinalize

// Subscriptions (profile_subscribe.cc). Around each task of a run, by the thread that runs it:
bool Subscribed(uint32_t model);
void TimeTask(size_t task, bool done);
void SendTimes(uint32_t model);    // what TimeTask has kept since the last time
void Unsubscribe(uint32_t model);  // nothing if there is no subscription
bool AnySubscription();

}  // namespace ge::acl
