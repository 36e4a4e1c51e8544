// Extrema of whole tensors are found in two steps, so that the first has work for all threads, and
// for lanes that lie side by side in any layout:
//
//   ReduceMax(x)  ->  ReduceMax(ReduceMax(x, axes))            and so ReduceMin
//
// with axes from 2 on; axis 1 of a matrix.
// Max and min do not round, so the order of their operands has no effect. Sums keep theirs.
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

constexpr int64_t kWorthwhile = 8192;  // elements; fewer cost less than another kernel

std::string Guard(const Match& m) {
  const TensorType& x = m.type("x");
  if (x.rank() < 2 || HintValue(x.Elements()) < kWorthwhile) return "little to reduce";
  if (m["axes"] != kNone)
    return m.constant("axes").Elements() == x.rank() ? "" : "not of the whole tensor";
  const auto axes = AttrOr<std::vector<int64_t>>(m.node(0), "axes", {});
  if (!axes.empty() && static_cast<int>(axes.size()) != x.rank()) return "not of the whole tensor";
  if (axes.empty() && AttrOr<int64_t>(m.node(0), "noop_with_empty_axes", 0) != 0)
    return "no reduction";
  return "";
}

ValueId InTwoSteps(const Match& m, Patch& p) {
  const std::string op(m.node(0).op->name);
  const int64_t rank = m.type("x").rank(), keep = AttrOr<int64_t>(m.node(0), "keepdims", 1);
  std::vector<int64_t> inner;
  for (int64_t axis = rank == 2 ? 1 : 2; axis < rank; ++axis) inner.push_back(axis);
  const ValueId part = p.Add(op, {m["x"], p.Ints(inner)}, {{"keepdims", keep}});
  return p.Add(op, {part}, {{"keepdims", keep}});
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "max_in_two_steps",
     .pattern = "ReduceMax(x, #axes?)",
     .guard = Guard,
     .replace = InTwoSteps,
     .samples = {R"(graph "g" (%x: f32[2,64,9,8]) -> (%y) {
  %y: f32[] = ReduceMax(%x) {keepdims=0} @"y"
})",
                 R"(graph "g" (%x: f32[32,300]) -> (%y) {
  %a = const i64[2] {0, -1}
  %y: f32[1,1] = ReduceMax(%x, %a) @"y"
})"}},
    {.name = "min_in_two_steps",
     .pattern = "ReduceMin(x, #axes?)",
     .guard = Guard,
     .replace = InTwoSteps,
     .samples = {R"(graph "g" (%x: i32[96,10,10]) -> (%y) {
  %y: i32[1,1,1] = ReduceMin(%x) @"y"
})"}},
});

}  // namespace
}  // namespace ge
