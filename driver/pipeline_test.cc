#include "driver/pipeline.h"

#include <gtest/gtest.h>

namespace ge {
namespace {

TEST(Pipeline, OrderSatisfiesNeeds) {
  for (int level = 0; level <= 2; ++level) {
    Policy policy;
    policy.opt_level = level;
    const Status status = CheckOrder(PassNames(policy));
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(Pipeline, LevelZeroOptimisesNothing) {
  Policy policy;
  policy.opt_level = 0;
  EXPECT_TRUE(PassNames(policy).empty());
}

TEST(Pipeline, DisabledPassesAreLeftOut) {
  Policy policy;
  policy.disabled = {"cse"};
  for (std::string_view name : PassNames(policy)) EXPECT_NE(name, "cse");
  EXPECT_EQ(PassNames(policy).size() + 1, PassNames(Policy()).size());
}

}  // namespace
}  // namespace ge
