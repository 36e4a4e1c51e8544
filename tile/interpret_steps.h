// The statements of an interpreted kernel: what interpret_compile.cc builds and Interpreter::Run
// runs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tile/interpret_frame.h"

namespace ge::tile::interpret {

struct Step {
  virtual ~Step() = default;
  virtual void Run(Frame& f) const = 0;
};
using Steps = std::vector<std::unique_ptr<Step>>;

inline void RunSteps(const Steps& steps, Frame& f) {
  for (const auto& s : steps) s->Run(f);
}

// A slot that is filled once its scope is entered.
struct SlotValue {
  int slot;
  ExprCode value;
};

inline void Fill(const std::vector<SlotValue>& values, Frame& f) {
  for (const SlotValue& v : values) f.slots[v.slot] = v.value.Eval(f);
}

struct LetStep : Step {
  Code code;
  int row = -1, slot = -1;  // slot: of a uniform index symbol
  void Run(Frame& f) const override;
};

struct StoreStep : Step {
  Code code;
  Access access;
  StoreFn store = nullptr;
  int row = -1;
  bool uniform = false;
  void Run(Frame& f) const override;
};

struct CopyStep : Step {  // Store(Load) of one storage type: the bits move as they are
  Code code;
  Access from, to;
  int bytes = 0;
  bool uniform = false;
  void Run(Frame& f) const override;
};

struct IfStep : Step {
  Code code;
  int row = -1;
  bool uniform = false;
  Steps then, otherwise;
  void Run(Frame& f) const override;
};

struct LoopStep : Step {  // one iteration after the other
  bool is_grid = false;   // iterate over the chunk instead
  int slot = -1;
  ExprCode extent;
  std::vector<SlotValue> values;  // of each iteration
  Steps body;
  void Run(Frame& f) const override;
};

struct LaneLoopStep : Step {  // kLanes iterations at once
  bool is_grid = false;
  ExprCode extent;
  Steps body;
  void Run(Frame& f) const override;
};

struct AllocStep : Step {
  int buffer = -1;
  DType dtype = DType::kF32;
  ExprCode elements;
  Steps body;
  void Run(Frame& f) const override;
};

struct ReduceStep : Step {
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;
  struct Axis {
    int slot;
    ExprCode extent;
  };
  std::vector<Axis> axes;  // the serial ones
  Code prefix;             // what does not depend on the last of them: once for all of its steps
  bool by_lanes = false;   // `lane_extent` is an axis whose values are lanes
  ExprCode lane_extent;
  Steps lets;
  Code code;  // ends with the accumulation into `row`
  int row = -1, slot = -1;
  void Run(Frame& f) const override;

 private:
  void RunAxes(Frame& f) const;
  void RunLastAxis(Frame& f) const;
};

struct GemmStep : Step {
  GemmCode gemm;
  ExprCode n_valid;
  int row_slot = -1, col_slot = -1;  // col_slot: -1 if columns are lanes
  int acc_row = -1;
  Steps body;
  void Run(Frame& f) const override;
};

struct CompiledKernel {
  Steps steps;
  int num_rows = 0, num_slots = 0;
  std::vector<int> size_slots;    // per size symbol of the kernel
  std::vector<SlotValue> values;  // of the sizes alone
  std::vector<ExprCode> arg_elements;
  ExprCode grid;
  struct ConstantRow {
    int row;
    DType type;
    double f;
    int64_t i;
  };
  std::vector<ConstantRow> constants;
};

CompiledKernel CompileForRows(const Kernel& k);

}  // namespace ge::tile::interpret
