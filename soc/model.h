// ChipModel: a chip as the simulator (plan/simulate.h) sees it: cores, rates, memory, latencies.
// Each number comes with where it is from, so that a reader can judge a prediction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ge {

struct ChipModel {
  std::string name;
  int cores = 1;              // that a kernel can be spread over
  int vector_cores = 0;       // of their own for vector work; 0: the same cores
  double cube_tflops = 1;     // all cores, matrix work in the chip's usual type
  double vector_tflops = 1;   // all vector units, float32
  double bytes_per_f32 = 4;   // as floats are stored there: 2 where models run in float16
  int64_t on_chip_bytes = 0;  // the last memory level on the chip, shared by all cores
  double on_chip_gb_s = 1, memory_gb_s = 1;
  double host_gb_s = 1;  // to the backing store of spilled values: the host's memory
  int64_t memory_bytes = 0;
  double launch_us = 1, event_us = 1;  // of a task in a sunk model; between two streams
  int64_t bytes_per_core = 32 << 10;   // output below which one more core is not used
  bool runs_here = false;              // times of tasks are those of the plan's own estimates
  struct Source {
    std::string number, from;
  };
  std::vector<Source> sources;
};

Result<ChipModel> FindChipModel(std::string_view name);  // "host", Ascend310, 310P, 910, 910B
std::vector<std::string> ChipModelNames();

}  // namespace ge
