// BuildPlan: needs, tasks, then memory.
#include "plan/planner.h"

#include "plan/lanes.h"
#include "plan/plan_builder.h"

namespace ge {

Result<Planned> PlanBuilder::Run() {
  FindBinders(root_);
  Need(root_, std::vector<bool>(root_.outputs.size(), true));
  GE_TRY(BindInputDims());
  for (size_t i = 0; i < root_.inputs.size(); ++i) {
    const Value& v = root_.value(root_.inputs[i]);
    const int b = NewLike(v, v.name);
    if (!IsSlot(b)) {
      plan_.buffers[b].kind = om::BufferKind::kInput;
      plan_.buffers[b].index = static_cast<int32_t>(i);
    }
    BuffersOf(root_)[root_.inputs[i]] = b;
    plan_.inputs[i].buffer = b;
  }
  GE_TRY(EmitGraph(root_));
  for (ValueId v : root_.outputs) {
    GE_ASSIGN(const int b, Readable(root_, v));
    output_buffer_.push_back(b);
  }
  PromoteOutputs();
  MeasureUnaliased();
  MeasureValues();
  ComputeLives();
  if (policy_.reuse_memory) JoinInPlace();
  DropCopies();
  FinishBuffers();
  AssignLanes(plan_, policy_, lane_of_kernel_);
  ComputeLives();
  GE_TRY(PlaceArena());
  for (size_t o = 0; o < root_.outputs.size(); ++o) {
    const Value& v = root_.value(root_.outputs[o]);
    std::vector<om::SizeRef> dims;
    if (v.kind == ValueKind::kTensor) dims = Sizes(v.type.dims);
    plan_.outputs.push_back(
        {v.name, static_cast<uint8_t>(v.type.dtype), std::move(dims), output_buffer_[o]});
  }
  AddChecks();
  GE_TRY(CheckAllBound());
  return std::move(out_);
}

Result<Planned> BuildPlan(const Graph& root, const RegionMap& regions, const LoweredMap& lowered,
                          const Policy& policy) {
  return PlanBuilder(root, regions, lowered, policy).Run();
}

}  // namespace ge
