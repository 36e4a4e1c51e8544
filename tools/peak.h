// The limits of this machine, measured now.
#pragma once

namespace ge {

// f32 GFLOP/s of one thread on independent multiply-add chains with the widest vectors of the CPU.
double MeasureFmaPeak();
// GB/s at which one thread reads memory that no cache holds.
double MeasureReadRate();

}  // namespace ge
