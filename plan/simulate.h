// Simulation of a plan on a modelled chip: when each task would run, on which stream, and what that
// costs. Independent tasks overlap while there are cores for both.
//
// A task takes its launch, and then the longer of arithmetic and traffic. Traffic goes through the
// on-chip memory, which keeps the buffers that were used last. On the CPU of this process, tasks
// take the plan's own estimates instead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "om/plan.h"
#include "soc/model.h"

namespace ge {

struct TaskWork {
  double flops = 0;
  bool cube = false;  // matrix work
  double bytes = 0;   // that it touches of its arguments; 0: all of them
};

struct SimulatedTask {
  int task = -1, stream = 0, cores = 0;
  double begin_us = 0, end_us = 0;
};

struct Simulation {
  std::vector<SimulatedTask> tasks;    // in order of begin_us; what does not run is not there
  double total_us = 0, launch_us = 0;  // launch_us: in sum over all tasks
  int streams = 0, events = 0;
  int reads = 0, writes = 0;  // of intermediate values
  double read_bytes = 0, written_bytes = 0;
  int spills = 0, fetches = 0;  // of values to and from the backing store
  double moved_bytes = 0;       // by them
  double memory_bytes = 0;      // moved to and from the chip's main memory
  double hit_rate = 0;          // bytes of all reads that were on the chip, weights included
  double value_hit_rate = 0;    // the same of intermediate values
};

// work: per task. symbols: values of the plan's symbols, om::kNoSize where not known.
// streams: the most that may be used.
Simulation Simulate(const om::Plan& plan, std::span<const TaskWork> work, const ChipModel& chip,
                    std::span<const int64_t> symbols, int streams);

}  // namespace ge
