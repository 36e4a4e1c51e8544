// The FMA peak of this core, measured now.
#pragma once

namespace ge {
// f32 GFLOP/s of one thread on independent multiply-add chains with the widest vectors of the CPU.
double MeasureFmaPeak();
}  // namespace ge
