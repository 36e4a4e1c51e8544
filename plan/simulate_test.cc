// Simulated times follow from the model's numbers; independent thin tasks overlap; events and hits
// are counted.
#include "plan/simulate.h"

#include <gtest/gtest.h>

#include "om/size.h"

namespace ge {
namespace {

ChipModel Chip() {
  ChipModel chip;
  chip.name = "test";
  chip.cores = 4;
  chip.cube_tflops = 4;  // 1 TFLOP/s for each core
  chip.vector_tflops = 0.4;
  chip.on_chip_bytes = 1 << 20;
  chip.on_chip_gb_s = 4000;
  chip.memory_gb_s = 400;
  chip.launch_us = 2;
  chip.event_us = 1;
  chip.bytes_per_core = 1 << 16;
  return chip;
}

// Tasks that write one buffer of `bytes` each and read others; -1 is the input.
om::Plan PlanOf(const std::vector<std::vector<int>>& reads, int64_t bytes) {
  om::Plan plan;
  const om::SizeRef size = om::AddConstSize(&plan, bytes), one = om::AddConstSize(&plan, 1);
  for (size_t t = 0; t <= reads.size(); ++t) {
    om::Buffer b;
    b.kind = t == 0 ? om::BufferKind::kInput : om::BufferKind::kArena;
    b.dtype = 1;
    b.bytes = size;
    plan.buffers.push_back(b);
    if (t == 0) continue;
    om::Task task;
    task.kind = om::TaskKind::kLaunch;
    task.kernel = 0;
    for (int r : reads[t - 1]) task.args.push_back(r + 1);
    task.args.push_back(static_cast<int32_t>(t));
    task.outs = {static_cast<int32_t>(t)};
    task.grid = one;
    plan.tasks.push_back(task);
  }
  return plan;
}

TEST(Simulate, TaskIsLaunchAndTheLongerOfTwo) {
  const om::Plan plan = PlanOf({{-1}}, 1 << 16);  // on two cores
  const std::vector<TaskWork> cube = {{20e6, true}}, idle = {{0, true}};
  // 20 MFLOP at 2 TFLOP/s; 64 KB from memory at 200 GB/s and 64 KB to the chip at 2000.
  EXPECT_NEAR(Simulate(plan, cube, Chip(), {}, 4).total_us, 2 + 10, 1e-6);
  EXPECT_NEAR(Simulate(plan, idle, Chip(), {}, 4).total_us, 2 + 65.536 / 200 + 65.536 / 2000, 1e-6);
}

TEST(Simulate, ThinBranchesOverlap) {
  // Each of the middle tasks takes one core for 100 us.
  const om::Plan plan = PlanOf({{-1}, {0}, {0}, {1, 2}}, 64);
  const std::vector<TaskWork> work = {{0, true}, {100e6, true}, {100e6, true}, {0, true}};
  const Simulation two = Simulate(plan, work, Chip(), {}, 4);
  const Simulation one = Simulate(plan, work, Chip(), {}, 1);
  EXPECT_NEAR(one.total_us, 4 * 2 + 200, 0.1);
  EXPECT_NEAR(two.total_us, 3 * 2 + 100 + 2 * 1, 0.1);  // to the second stream and back
  EXPECT_EQ(two.streams, 2);
  EXPECT_EQ(two.events, 2);
  EXPECT_EQ(one.events, 0);
  EXPECT_NEAR(two.launch_us, 8, 1e-9);
}

TEST(Simulate, HitsWhatWasUsedLast) {
  const om::Plan small = PlanOf({{-1}, {0}, {1}}, 1000), large = PlanOf({{-1}, {0}, {1}}, 2 << 20);
  const std::vector<TaskWork> work(3);
  const Simulation hits = Simulate(small, work, Chip(), {}, 1);
  EXPECT_NEAR(hits.hit_rate, 2.0 / 3, 1e-9);  // the input comes from outside
  EXPECT_EQ(hits.reads, 2);
  EXPECT_EQ(hits.writes, 3);
  EXPECT_EQ(Simulate(large, work, Chip(), {}, 1).hit_rate, 0);
}

TEST(Simulate, ChipsHaveSources) {
  for (const std::string name : {"Ascend310", "Ascend310P3", "Ascend910A", "Ascend910B4"}) {
    const auto chip = FindChipModel(name);
    ASSERT_TRUE(chip.ok()) << name;
    EXPECT_TRUE(name.starts_with(chip->name)) << name << " is " << chip->name;
    EXPECT_GE(chip->sources.size(), 8u);
    EXPECT_LT(chip->memory_gb_s, chip->on_chip_gb_s);
  }
  EXPECT_EQ(FindChipModel("Ascend310P3")->name, "Ascend310P");
  EXPECT_NE(FindChipModel("z80").status().message().find("Ascend910B"), std::string::npos);
}

}  // namespace
}  // namespace ge
