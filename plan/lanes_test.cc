// Lanes: forks get them where the prediction gains, waits are the fewest, and what may run at the
// same time is known.
#include "plan/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "om/lanes.h"
#include "om/size.h"

namespace ge {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Tasks that write one buffer each and read others: reads[t] are tasks; -1 is the input.
om::Plan PlanOf(const std::vector<std::vector<int>>& reads, int64_t cost) {
  om::Plan plan;
  const om::SizeRef bytes = om::AddConstSize(&plan, 64), one = om::AddConstSize(&plan, 1);
  const auto add = [&](om::BufferKind kind) {
    om::Buffer b;
    b.kind = kind;
    b.bytes = bytes;
    plan.buffers.push_back(b);
  };
  add(om::BufferKind::kInput);
  for (size_t t = 0; t < reads.size(); ++t) {
    add(om::BufferKind::kArena);
    om::Task task;
    task.kind = om::TaskKind::kLaunch;
    task.kernel = 0;
    for (int r : reads[t]) task.args.push_back(r + 1);
    task.args.push_back(static_cast<int32_t>(t) + 1);
    task.outs = {static_cast<int32_t>(t) + 1};
    task.grid = one;
    task.cost = cost;
    plan.tasks.push_back(task);
  }
  return plan;
}

std::vector<int32_t> LanesOf(const om::Plan& plan) {
  std::vector<int32_t> lanes;
  for (const om::Task& t : plan.tasks) lanes.push_back(t.lane);
  return lanes;
}

// 0 forks into 1-2-3 and 4-5-6, which 7 joins.
const std::vector<std::vector<int>> kFork = {{-1}, {0}, {1}, {2}, {0}, {4}, {5}, {3, 6}};

TEST(Lanes, ForkAndJoin) {
  om::Plan plan = PlanOf(kFork, 100'000);
  AssignLanes(plan, {});
  EXPECT_THAT(LanesOf(plan), ElementsAre(-1, 0, 0, 0, 1, 1, 1, -1));
  for (const om::Task& t : plan.tasks) EXPECT_TRUE(t.waits.empty());
  EXPECT_THAT(ConcurrentTasks(plan), ElementsAre(Pair(0, 0), Pair(1, 6), Pair(2, 6), Pair(3, 6),
                                                 Pair(1, 4), Pair(1, 5), Pair(1, 6), Pair(7, 7)));
}

TEST(Lanes, NotForTinyTasksNorForOneStream) {
  om::Plan tiny = PlanOf(kFork, 100);
  AssignLanes(tiny, {});
  EXPECT_THAT(LanesOf(tiny), ::testing::Each(-1));
  om::Plan plan = PlanOf(kFork, 100'000);
  Policy single;
  single.max_streams = 1;
  AssignLanes(plan, single);
  EXPECT_THAT(LanesOf(plan), ::testing::Each(-1));
}

TEST(Lanes, NotAcrossControlFlow) {
  om::Plan plan = PlanOf(kFork, 100'000);
  plan.tasks[4].kind = om::TaskKind::kHost;
  AssignLanes(plan, {});
  EXPECT_THAT(LanesOf(plan), ::testing::Each(-1));
}

// 3 needs 1 and 2, 2 needs 1: one wait is enough for both.
TEST(Lanes, WaitsAreReduced) {
  om::Plan plan = PlanOf({{-1}, {0}, {1}, {0}, {1, 2, 3}, {2}, {3}, {4, 5, 6}}, 100'000);
  Policy policy;
  policy.stream_gain = 0;
  AssignLanes(plan, policy);
  for (const om::Task& t : plan.tasks) EXPECT_LE(t.waits.size(), 1u);
  EXPECT_GE(plan.tasks[4].lane, 0);
}

}  // namespace
}  // namespace ge
