// The limits of this machine, measured now.
#pragma once

#include <cstdint>

namespace ge {

// f32 GFLOP/s of one thread on independent multiply-add chains with the widest vectors of the CPU.
double MeasureFmaPeak();
// GB/s at which one thread reads so many bytes over and over: those of a cache that holds them.
double MeasureReadRate(int64_t bytes);
// More than any cache holds.
inline constexpr int64_t kMemoryBytes = int64_t{96} << 20;

}  // namespace ge
