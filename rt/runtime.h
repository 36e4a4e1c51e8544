// The runtime: maps an .om file, binds inputs and runs its plan on a thread pool.
//
// A Model is immutable and may be shared by threads. A Run owns arena, scratch, slots, symbols and
// the cache of shapes; one thread uses it at a time. Needs libc, libstdc++ and threads only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_abi.h"
#include "base/status.h"
#include "om/plan.h"

namespace ge::rt {

struct LoadOptions {
  int threads = 0;              // workers, the caller included; 0 = CPUs of the cpuset and quota
  bool verify_weights = false;  // check the weights' checksum too (also $GE_VERIFY=weights)
  // Folder that external weights are looked up from, or that holds them; "" = that of the .om file.
  std::string weight_dir;
  // External weights that the caller holds, by the name of their file; copied. Others: from files.
  struct GivenWeights {
    std::string file;
    std::span<const std::byte> bytes;
  };
  std::vector<GivenWeights> given_weights;
  // For kernels that are TileIR text (compiled without a C compiler): gives code and its `self`.
  // Null: such a file is refused.
  struct TextKernel {
    ge_kernel_fn fn;
    std::shared_ptr<const void> self;
  };
  std::function<Result<TextKernel>(const std::string& tile_ir)> text_kernel;
};

// A tensor in the caller's memory: dense ND, element-aligned. Strings: see Object.
struct Tensor {
  uint8_t dtype = 0;
  std::vector<int64_t> dims;
  void* data = nullptr;
  int64_t bytes = 0;  // capacity
};

class Run;
class Model {
 public:
  static Result<std::shared_ptr<const Model>> Load(const std::string& path,
                                                   const LoadOptions& options = {});
  static Result<std::shared_ptr<const Model>> LoadFromMemory(const void* data, int64_t bytes,
                                                             const LoadOptions& options = {});
  ~Model();
  const om::Plan& plan() const;
  int64_t weight_bytes() const;
  std::string_view description() const;  // JSON text of whoever made the file; may be empty
  int threads() const;
  // Arena + scratch of a Run if all sizes are static, else -1.
  int64_t work_bytes() const;

  struct State;
  explicit Model(std::unique_ptr<State> state);
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

struct RunStats {
  int64_t arena_bytes = 0, pool_bytes = 0, scratch_bytes = 0;
};

// Where a Run has its arena from, if not from the system. take: 64-byte aligned memory, or null.
struct ArenaSource {
  std::function<void*(int64_t bytes)> take;
  std::function<void(void*)> give_back;
};

class Run {
 public:
  // work: caller's memory of model->work_bytes(), 64-byte aligned; null = the Run allocates, the
  // arena from `source` if that is given.
  static Result<std::unique_ptr<Run>> Create(std::shared_ptr<const Model> model,
                                             void* work = nullptr, ArenaSource source = {});
  ~Run();
  // Dims that the outputs have for these input dims, where known before running; -1 where not.
  Result<std::vector<std::vector<int64_t>>> OutputDims(std::span<const Tensor> inputs);
  // outputs: data may be null: then the Run owns the memory until its next Execute and sets data,
  // dims and bytes. Given memory must hold the result, and dims are set.
  Status Execute(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  RunStats stats() const;
  // Nanoseconds per task of the last Execute if profiling was on (index = task).
  void EnableProfile(bool on);
  const std::vector<int64_t>& profile() const;
  // From now on `seen` is called before each task (done = false) and after it, by the thread that
  // executes; tasks of lanes then run one after the other. An empty function: no more.
  void Watch(std::function<void(size_t task, bool done)> seen);
  // A buffer of the plan as it is now: dims and stored bytes (layout and halo included, see the
  // description's "storage"). No data: it has no memory, or holds an object.
  Tensor Now(int32_t buffer) const;
  // From now on a timeline is kept (rt/trace.h), written to `path` when the Run ends.
  void StartTrace(const std::string& path);

  struct State;
  explicit Run(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ge::rt
