// Loaded models: what clients see of them, and the Runs that execute them.
//
// A model whose dims are symbolic may have gears (declared points); then clients see one more
// input, the last, of which only the gear that they set matters. Runs are taken from a list of idle
// ones; with work memory of the client there is one Run, and callers queue for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "abi/dtype.h"
#include "api/acl/handles.h"
#include "api/acl/include/acl/acl.h"
#include "api/acl/memory.h"
#include "rt/runtime.h"

namespace ge::acl {

// An input or output as clients see it.
struct ClientTensor {
  std::string name;        // the plan's
  std::string shown;       // what clients see: <node>:0:<name> for outputs
  std::string short_name;  // fits aclmdlIODims
  DType type = DType::kNone;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_NCHW;
  std::vector<int64_t> dims;                       // -1: symbolic, or known only after a run
  std::vector<std::pair<int64_t, int64_t>> range;  // per dim
  int64_t bytes = 0;                               // of the largest shape; 0: not bounded
};

enum class GearMode : uint8_t { kNone, kBatch, kImage, kDims };

// A model as clients see it.
struct ClientModel {
  std::string name;
  std::vector<ClientTensor> inputs, outputs;  // inputs without the gear's
  GearMode gear_mode = GearMode::kNone;
  std::vector<std::vector<int64_t>> gears;
  bool dynamic = false;                        // an input dim is symbolic
  std::vector<int> static_aipp, dynamic_aipp;  // inputs with preprocessing
  int aipp_input = -1;                         // plan input that holds dynamic AIPP parameters

  size_t num_inputs() const { return inputs.size() + (gears.empty() ? 0 : 1); }
  bool IsGearInput(size_t index) const { return !gears.empty() && index == inputs.size(); }
};

struct LoadedModel {
  uint32_t id = 0;
  std::shared_ptr<const rt::Model> model;
  std::shared_ptr<ClientModel> info;
  std::function<void(const rt::Run&, size_t task, bool done)> dump;  // empty: see dump.h

  std::mutex mutex;
  std::condition_variable returned;
  std::vector<std::unique_ptr<rt::Run>> idle;
  std::shared_ptr<MemoryBlock> work_pin;  // the client's work memory
  void* work = nullptr;
  bool one_run = false;
  std::vector<std::vector<int64_t>> current_outputs;  // dims at the gear that was set last

  Result<std::unique_ptr<rt::Run>> Take();
  void Return(std::unique_ptr<rt::Run> run);
};

std::shared_ptr<LoadedModel> FindModel(uint32_t id);
// Builds what clients see; runs OutputDims, so that `model` must have a model already.
Status Describe(LoadedModel* model);
// Input dims at a gear (or at values for the symbolic dims, in their order). Empty if the count of
// values does not fit.
std::vector<std::vector<int64_t>> DimsAt(const ClientModel& info, GearMode mode,
                                         const std::vector<int64_t>& values);
// Output dims for input dims; -1 where only a run knows.
Result<std::vector<std::vector<int64_t>>> OutputDimsAt(
    LoadedModel* model, const std::vector<std::vector<int64_t>>& input_dims);

void PutDims(const std::string& name, const std::vector<int64_t>& dims, aclmdlIODims* to);

struct Desc {
  static constexpr int kHandleKind = 8;
  std::shared_ptr<const ClientModel> info;  // null until aclmdlGetDesc
  std::shared_ptr<LoadedModel> model;       // null if read from a file
};

struct LoadArguments {
  const char* path = nullptr;
  const void* data = nullptr;
  size_t bytes = 0;
  void* work = nullptr;
  size_t work_bytes = 0;
  void* weights = nullptr;
  size_t weight_bytes = 0;
  std::string weight_dir;  // of external weights; "" = the model's
  std::vector<rt::LoadOptions::GivenWeights> given_weights;
};
aclError LoadModel(const LoadArguments& from, uint32_t* id, const char* function);
aclError UnloadModel(uint32_t id, const char* function);
// Opens without registering.
Result<std::shared_ptr<LoadedModel>> OpenModel(const LoadArguments& from);
int DeviceThreads();  // workers of a model that is loaded now; 0 = all CPUs

}  // namespace ge::acl
