// Orders of nodes that need less memory than the model's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "driver/compile.h"

namespace ge {
namespace {

// Wide values first, all of them, and then what makes each small: one at a time would do.
std::string Branches(int count) {
  std::string wide, small, sum = "%r0";
  for (int i = 0; i < count; ++i) {
    wide += fmt::format("  %w{} = CumSum(%x, %axis{})\n", i, i % 2);
    small += fmt::format("  %r{0} = ReduceMax(%w{0}) {{keepdims=0}}\n", i);
  }
  for (int i = 1; i < count; ++i) {
    small += fmt::format("  %s{} = Add({}, %r{})\n", i, sum, i);
    sum = fmt::format("%s{}", i);
  }
  return fmt::format(
      "graph \"branches\" (%x: f32[1024,1024]) -> ({}) {{\n  %axis0 = const i64[] {{0}}\n"
      "  %axis1 = const i64[] {{1}}\n{}{}}}\n",
      sum, wide, small);
}

TEST(LeanOrder, OneWideValueAtATime) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("ge_lean_{}", getpid());
  std::filesystem::create_directories(folder);
  CompileRequest request;
  request.model = folder / "m.ir";
  request.output = folder / "m.om";
  std::ofstream(request.model) << Branches(6);
  request.policy.interpret_kernels = true;
  request.policy.disabled = {"order", "cse"};
  const auto as_written = Compile(request);
  request.policy.disabled = {"cse"};
  const auto lean = Compile(request);
  request.node_order = NodeOrder::kBreadth;
  const auto chosen = Compile(request);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(as_written.ok()) << as_written.status().message();
  ASSERT_TRUE(lean.ok()) << lean.status().message();
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_GE(as_written->arena_bytes, 6 << 22);
  EXPECT_LE(lean->arena_bytes, 2 << 22);
  EXPECT_GE(chosen->arena_bytes, 6 << 22);  // what the user wants stays
}

}  // namespace
}  // namespace ge
