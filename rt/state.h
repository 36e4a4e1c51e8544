// What a Model and a Run hold. Internal to the runtime's own files.
//
// Model::State is the plan with everything that can be computed once: resolved kernels, who uses
// which buffer and size, and what a late symbol changes. Run::State is the same in numbers:
// addresses, sizes, argument arrays. Invariant: argv and sizev always equal address[] and sizes[]
// at every use.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "base/thread_pool.h"
#include "om/file.h"
#include "om/lanes.h"
#include "om/size.h"
#include "rt/block.h"
#include "rt/code.h"
#include "rt/host_kernel.h"
#include "rt/runtime.h"
#include "rt/store.h"
#include "rt/trace.h"

namespace ge::rt {

// A task as the loop reads it.
struct Step {
  om::TaskKind kind;
  bool alone = false;   // too small to share
  int32_t target = -1;  // jumps
  ge_kernel_fn fn = nullptr;
  om::SizeRef grid = -1, scratch = -1;
  uint32_t args = 0, arg_count = 0;    // range in Run::State::argv
  uint32_t sizes = 0, size_count = 0;  // range in Run::State::sizev
  int32_t section = -1;                // of lanes that begins here and is worth it, in sections
  int32_t next_in_lane = -1;           // task
};

struct LaneSection {
  int32_t first = 0, end = 0;  // tasks
  std::vector<int32_t> heads;  // first task of each lane
};

// Lists of int32, one for each key, in one array.
class Lists {
 public:
  Lists() = default;
  // `pairs`: {key, value}, keys below `keys`.
  Lists(size_t keys, const std::vector<std::pair<int32_t, int32_t>>& pairs);
  std::span<const int32_t> operator[](size_t key) const {
    return std::span(values_).subspan(begin_[key], begin_[key + 1] - begin_[key]);
  }

 private:
  std::vector<uint32_t> begin_;
  std::vector<int32_t> values_;
};

struct HostTask {
  HostFn fn = nullptr;
  std::unique_ptr<HostAttrs> attrs;
};

// External weights, mapped side by side in one range of addresses: the page cache shares them
// between processes.
class ExternalRange {
 public:
  ExternalRange() = default;
  ~ExternalRange();
  ExternalRange(const ExternalRange&) = delete;
  ExternalRange& operator=(const ExternalRange&) = delete;
  Status Map(const std::vector<om::ExternalWeight>& weights, const LoadOptions& options,
             bool verify);
  std::span<const std::byte> bytes() const { return {base_, size_}; }

 private:
  std::byte* base_ = nullptr;
  size_t size_ = 0;
};

struct Model::State {
  FileMap map;
  ExternalRange external;
  Block copy;  // of a model that was given in memory
  om::OmView file;
  CodeObject code;
  std::vector<LoadOptions::TextKernel> kernels;
  std::vector<Step> steps;
  std::vector<LaneSection> sections;
  std::vector<HostTask> hosts;  // per task; empty records where not a host task
  std::shared_ptr<ThreadPool> pool;
  size_t arg_total = 0, size_total = 0;
  std::vector<const void*> selves;  // per task
  Lists arg_slots, size_slots;      // buffer -> argv, size -> sizev
  Lists aliases;                    // root -> aliases of it
  Lists sizes_of, buffers_of;       // late symbol -> what depends on it
  Lists checks_at;                  // task that binds -> checks due then
  std::vector<int32_t> early_checks;
  std::vector<om::SizeRef> late_sizes;
  std::vector<uint8_t> is_late;                   // per size
  std::vector<std::pair<int32_t, int32_t>> life;  // per root buffer: its and its aliases' tasks
  int64_t work_bytes = -1;

  const om::Plan& plan() const { return file.plan; }
};

// Fills what follows from the plan alone.
Status Prepare(Model::State* model);

// The sizes and arena of one set of input dims.
struct Shape {
  std::vector<int64_t> symbols, sizes;  // late ones are om::kNoSize
  std::vector<int64_t> offsets;         // per buffer: arena offset, -1 if it is not an arena root
                                        // or its size makes no sense
  int64_t arena_bytes = 0, scratch_bytes = 0;  // scratch: one worker's
};
// Fails if a check is false or the arena is too large.
Result<Shape> MakeShape(const Model::State& model, std::vector<int64_t> symbols);
// Values of the early symbols; what the dims must satisfy is checked.
Status BindInputs(const Model::State& model, std::span<const Tensor> inputs,
                  std::vector<int64_t>* symbols);
Status CheckSymbolValue(const om::Symbol& symbol, int64_t value, const std::string& where);
int64_t DenseBytes(uint8_t dtype, std::span<const int64_t> dims);  // om::kNoSize if it overflows

void* EmptyTensor();  // the address of tensors without elements (sizes.cc)

struct Run::State {
  std::shared_ptr<const Model> owner;
  const Model::State& model;
  const om::Plan& plan;

  std::vector<Shape> shapes;  // most recent first
  std::vector<int64_t> symbols, sizes, wanted_symbols;
  std::vector<void*> address;  // per buffer
  std::vector<void*> argv;
  std::vector<int64_t> sizev;
  std::vector<ge_kernel_call> calls;            // per task
  std::vector<std::atomic<uint8_t>> lane_done;  // per task of a section that runs
  Block arena, scratch;
  Store store;
  std::byte* arena_base = nullptr;
  std::byte* scratch_base = nullptr;
  int64_t scratch_stride = 0;
  std::byte* work = nullptr;   // the caller's
  ArenaSource source;          // empty: `arena`
  void* taken = nullptr;       // from the source
  std::vector<Block> blocks;   // per buffer: pool memory, own outputs, staging copies
  std::vector<Block> results;  // per output: what is copied out of the arena
  std::vector<Object> slots;

  struct IoMemory {
    void* data = nullptr;
    int64_t bytes = 0;
    bool operator==(const IoMemory&) const = default;
  };
  std::vector<IoMemory> io, wanted_io;  // inputs, then outputs, of the last Execute
  std::vector<int32_t> staged_inputs;
  std::vector<uint8_t> stage_output;  // the caller's memory cannot be used directly

  int64_t runs = 0;
  bool profiling = false;
  std::vector<int64_t> profile;
  std::unique_ptr<Trace> trace;  // null: none is wanted
  std::function<void(size_t, bool)> watch;

  // Scratch of host tasks, kept so that a steady run does not allocate.
  struct Growing {  // context of HostOutput::allocate
    State* run;
    int32_t buffer;
  };
  std::vector<HostTensor> host_inputs;
  std::vector<HostOutput> host_outputs;
  std::vector<Growing> host_growing;
  std::vector<int64_t> host_dims, host_values, host_results;

  explicit State(std::shared_ptr<const Model> m);
  Status Start(void* memory);  // once: constants, work memory, a static shape
  Status Execute(std::span<const Tensor> inputs, std::span<Tensor> outputs);

  // sizes.cc: values and addresses
  void SetSize(om::SizeRef size, int64_t value);
  void SetAddress(int32_t buffer, void* to);
  void Refresh(int32_t alias);     // its address from its root's
  Status UseShape(bool* changed);  // that of wanted_symbols
  Status ApplyShape(const Shape& shape);
  Status GrowScratch(int64_t bytes);
  Status TakeArena(int64_t bytes);
  void Trim();  // memory that shapes of long ago needed
  // Memory for a pool or output buffer of this size; contents are kept.
  Status Provide(int32_t buffer, int64_t bytes);
  void ResetLate();
  Status Bind(int32_t symbol, int64_t value);
  Status RunChecks(std::span<const int32_t> checks);

  // run_io.cc: the caller's memory
  Status PlaceIo(std::span<const Tensor> inputs, std::span<const Tensor> outputs, bool changed);
  Status PlaceInput(size_t input, const Tensor& tensor);
  Status PlaceOutput(size_t output, const Tensor& tensor);
  void FillStaged(std::span<const Tensor> inputs);
  bool Overlaps(size_t output) const;
  bool IsDirect(size_t output) const;
  bool IsOwn(const void* data) const;
  Status Finish(std::span<Tensor> outputs);
  Status FinishOne(size_t output, Tensor* tensor);
  const IoMemory& OutputMemory(size_t output) const { return io[plan.inputs.size() + output]; }

  // run_tasks.cc
  Status RunTasks();
  bool Ready(const Step& step, int64_t grid) const;
  Status WhyNotReady(size_t task) const;
  void Share(size_t task, int64_t grid);
  Status RunOther(size_t task, size_t* next);
  Status RunBind(size_t task);
  Status RunMove(size_t task);
  Result<int64_t> IntegerAt(int32_t buffer, int64_t element) const;

  // run_lanes.cc
  Status RunLanes(const LaneSection& section);

  // run_host.cc
  Status RunHost(size_t task);
  void GatherHost(const om::Task& task);
  bool SizeComesFrom(const om::Task& task, om::SizeRef size) const;
};

}  // namespace ge::rt
