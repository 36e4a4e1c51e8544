// Execution: a dataset's buffers become the tensors of a Run.
//
// Everything is checked before the run is submitted: counts, sizes, gears, that each buffer lies in
// live memory; blocks stay pinned until the run is over. An output without memory (address null,
// size 0, model with dynamic dims) gets a new device block, which the client frees.
#include <algorithm>
#include <cstring>

#include "api/acl/allocator.h"
#include "api/acl/context.h"
#include "api/acl/dump.h"
#include "api/acl/error.h"
#include "api/acl/model.h"
#include "api/acl/profile.h"
#include "api/acl/stream.h"
#include "api/acl/tensors.h"

namespace ge::acl {
namespace {

struct Call {
  std::shared_ptr<LoadedModel> model;
  std::vector<rt::Tensor> inputs, outputs;
  std::vector<std::shared_ptr<MemoryBlock>> pins;
  std::vector<const void*> output_buffers;  // handles
  const void* output = nullptr;             // the dataset's handle
  bool describe = false;                    // outputs' shapes are to be written into the dataset
  // scratch of Prepare
  std::vector<const void*> handles;
  std::vector<MemoryRange> ranges;
  std::vector<int64_t> gear;
  std::vector<std::vector<int64_t>> shapes;  // set by tensor descriptions; empty = not set
  std::vector<bool> shaped;
};

struct Names {
  const char* function;
  uint32_t model;
};

aclError Wrong(const Names& names, aclError code, const std::string& what) {
  return Fail(code, names.function, "model " + std::to_string(names.model) + ": " + what);
}

std::string Counts(const char* what, size_t given, size_t wanted) {
  return "the dataset has " + std::to_string(given) + " " + what + ", the model " +
         std::to_string(wanted);
}

// Reads both datasets and their data buffers: one lock for each kind.
aclError ReadDatasets(Call* call, const aclmdlDataset* input, const aclmdlDataset* output,
                      const Names& names) {
  const ClientModel& info = *call->model->info;
  const size_t n = info.inputs.size(), m = info.outputs.size();
  call->handles.clear();
  call->gear.clear();
  {
    auto& datasets = Live<Dataset>();
    const auto lock = datasets.Lock();
    const Dataset* in = datasets.Peek(input);
    const Dataset* out = datasets.Peek(output);
    if (in == nullptr || out == nullptr)
      return Wrong(names, ACL_ERROR_INVALID_PARAM, "a dataset is not live");
    if (in->entries.size() != info.num_inputs())
      return Wrong(names, ACL_ERROR_MODEL_INPUT_NOT_MATCH,
                   Counts("inputs", in->entries.size(), info.num_inputs()));
    if (out->entries.size() != m)
      return Wrong(names, ACL_ERROR_MODEL_OUTPUT_NOT_MATCH,
                   Counts("outputs", out->entries.size(), m));
    for (const auto& entry : in->entries) call->handles.push_back(entry.buffer);
    for (const auto& entry : out->entries) call->handles.push_back(entry.buffer);
    call->describe = info.dynamic;
    for (const auto& entry : out->entries) call->describe = call->describe || !entry.desc;
    if (info.dynamic) {
      if (in->gear_model == call->model->id) call->gear = in->gear;
      call->shapes.assign(n, {});
      call->shaped.assign(n, false);
      for (size_t i = 0; i < n; ++i) {
        if (!in->entries[i].desc) continue;
        call->shapes[i] = in->entries[i].desc->dims;
        call->shaped[i] = true;
      }
    }
  }
  call->inputs.resize(n);
  call->outputs.resize(m);
  call->output_buffers.assign(call->handles.end() - static_cast<ptrdiff_t>(m), call->handles.end());
  auto& buffers = Live<DataBuffer>();
  const auto lock = buffers.Lock();
  const size_t skipped = info.num_inputs() - n;
  for (size_t i = 0; i < n + m; ++i) {
    const size_t at = i < n ? i : i + skipped;
    const DataBuffer* buffer = buffers.Peek(call->handles[at]);
    if (buffer == nullptr)
      return Wrong(names, ACL_ERROR_INVALID_PARAM,
                   (i < n ? "the data buffer of input " + std::to_string(i)
                          : "the data buffer of output " + std::to_string(i - n)) +
                       " is not live");
    rt::Tensor& t = i < n ? call->inputs[i] : call->outputs[i - n];
    t.data = buffer->data;
    t.bytes = static_cast<int64_t>(std::min<size_t>(buffer->bytes, size_t{1} << 60));
  }
  return ACL_SUCCESS;
}

aclError ShapeInputs(Call* call, const Names& names) {
  const ClientModel& info = *call->model->info;
  std::vector<std::vector<int64_t>> at_gear;
  if (info.dynamic) {
    if (!info.gears.empty() && call->gear.empty())
      return Wrong(names, ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID,
                   "no gear was set: call aclmdlSetDynamicBatchSize, aclmdlSetDynamicHWSize or "
                   "aclmdlSetInputDynamicDims on the input dataset");
    if (!call->gear.empty()) {
      at_gear = DimsAt(info, info.gears.empty() ? GearMode::kDims : info.gear_mode, call->gear);
    }
  }
  for (size_t i = 0; i < info.inputs.size(); ++i) {
    const ClientTensor& io = info.inputs[i];
    rt::Tensor& t = call->inputs[i];
    t.dtype = static_cast<uint8_t>(io.type);
    if (!at_gear.empty()) {
      t.dims = at_gear[i];
    } else if (info.dynamic && call->shaped[i]) {
      t.dims = call->shapes[i];
    } else {
      t.dims = io.dims;
    }
    const int64_t needed = TensorBytes(io.dtype, t.dims);
    if (needed < 0)
      return Wrong(names, ACL_ERROR_GE_PARAM_INVALID,
                   "input \"" + io.name +
                       "\" has dynamic dims: set them with "
                       "aclmdlSetDatasetTensorDesc or a gear");
    if (t.bytes < needed)
      return Wrong(names, ACL_ERROR_GE_PARAM_INVALID,
                   "input \"" + io.name + "\": " + std::to_string(t.bytes) + " bytes given, " +
                       std::to_string(needed) + " needed");
    if (t.data == nullptr && needed > 0)
      return Wrong(names, ACL_ERROR_INVALID_PARAM, "input \"" + io.name + "\" has no memory");
    t.bytes = needed;
  }
  return ACL_SUCCESS;
}

aclError ShapeOutputs(Call* call, const Names& names) {
  const ClientModel& info = *call->model->info;
  for (size_t i = 0; i < info.outputs.size(); ++i) {
    rt::Tensor& t = call->outputs[i];
    const ClientTensor& io = info.outputs[i];
    t.dtype = static_cast<uint8_t>(io.type);
    const int64_t needed = TensorBytes(io.dtype, io.dims);  // -1: a run finds out
    if (needed >= 0 && t.bytes < needed)
      return Wrong(names, ACL_ERROR_GE_PARAM_INVALID,
                   "output \"" + io.name + "\": " + std::to_string(t.bytes) + " bytes given, " +
                       std::to_string(needed) + " needed");
    if (t.data == nullptr && (t.bytes > 0 || needed > 0))
      return Wrong(names, ACL_ERROR_INVALID_PARAM, "output \"" + io.name + "\" has no memory");
  }
  return ACL_SUCCESS;
}

aclError PinAll(Call* call, const Names& names) {
  call->ranges.clear();
  for (const auto* list : {&call->inputs, &call->outputs})
    for (const rt::Tensor& t : *list)
      call->ranges.push_back({t.data, static_cast<size_t>(t.bytes)});
  call->pins.clear();
  const int bad = PinBlocks(call->ranges, &call->pins);
  if (bad < 0) return ACL_SUCCESS;
  const ClientModel& info = *call->model->info;
  const auto at = static_cast<size_t>(bad);
  const bool in = at < info.inputs.size();
  const ClientTensor& io = in ? info.inputs[at] : info.outputs[at - info.inputs.size()];
  return Wrong(names, ACL_ERROR_GE_PARAM_INVALID,
               std::string(in ? "input" : "output") + " \"" + io.name +
                   "\" does not lie (wholly) in live device memory");
}

aclError Prepare(Call* call, uint32_t id, const aclmdlDataset* input, aclmdlDataset* output,
                 const char* function) {
  const Names names{function, id};
  if (input == nullptr || output == nullptr)
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                input == nullptr ? "input is null" : "output is null");
  call->model = FindModel(id);
  if (!call->model)
    return Fail(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, function,
                "no model has the id " + std::to_string(id));
  call->output = output;
  if (aclError code = ReadDatasets(call, input, output, names)) return code;
  if (aclError code = ShapeInputs(call, names)) return code;
  if (aclError code = ShapeOutputs(call, names)) return code;
  return PinAll(call, names);
}

// What the run owns goes into new device blocks.
aclError GiveMemory(Call* call, const std::vector<bool>& owned, const Names& names) {
  for (size_t i = 0; i < call->outputs.size(); ++i) {
    rt::Tensor& t = call->outputs[i];
    if (!owned[i]) continue;
    const auto bytes = static_cast<size_t>(std::max<int64_t>(0, t.bytes));
    void* block = AllocateBlock(std::max<size_t>(bytes, 1), Place::kDevice, true);
    if (block == nullptr)
      return Wrong(names, ACL_ERROR_RT_MEMORY_ALLOCATION, "no memory for an output");
    if (bytes > 0) std::memcpy(block, t.data, bytes);
    if (!Live<DataBuffer>().With(call->output_buffers[i],
                                 [&](DataBuffer& b) { b = {block, bytes}; }))
      ReleaseBlock(block, Place::kDevice);  // the client has destroyed the buffer meanwhile
  }
  return ACL_SUCCESS;
}

void WriteShapes(const Call& call) {
  Live<Dataset>().With(call.output, [&](Dataset& d) {
    if (d.entries.size() != call.outputs.size()) return;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!d.entries[i].desc) d.entries[i].desc = std::make_shared<TensorDesc>();
      TensorDesc& desc = *d.entries[i].desc;
      const ClientTensor& io = call.model->info->outputs[i];
      desc.dtype = io.dtype;
      desc.format = io.format;
      desc.name = io.shown;
      desc.dims = call.outputs[i].dims;
    }
  });
}

// `allocator`: of the stream that it runs on, or null.
aclError RunCall(Call* call, const char* function, std::shared_ptr<const Allocator> allocator) {
  const Names names{function, call->model->id};
  const bool apart = allocator != nullptr && !call->model->one_run;
  auto run = apart ? rt::Run::Create(call->model->model, nullptr, SourceOf(std::move(allocator)))
                   : call->model->Take();
  if (!run.ok()) return Fail(run.status(), ACL_ERROR_RT_MODEL_EXECUTE, function);
  thread_local std::vector<bool> owned;
  owned.clear();
  bool any_owned = false;
  for (const rt::Tensor& t : call->outputs) {
    owned.push_back(t.data == nullptr);
    any_owned = any_owned || owned.back();
  }
  const int64_t begin = profiling.load(std::memory_order_relaxed) ? ProfileNowNs() : 0;
  const bool dumped = call->model->dump != nullptr, subscribed = Subscribed(call->model->id);
  if (dumped || subscribed)
    (*run)->Watch([call, subscribed, now = run->get()](size_t task, bool done) {
      if (subscribed) TimeTask(task, done);
      if (call->model->dump) call->model->dump(*now, task, done);
    });
  const Status status = (*run)->Execute(call->inputs, call->outputs);
  if (dumped || subscribed) (*run)->Watch({});
  if (subscribed) SendTimes(call->model->id);
  if (begin != 0) KeepSpan(call->model->info->name, "model", begin);
  aclError code = ACL_SUCCESS;
  if (!status.ok()) {
    code = status.code() == Code::kInvalidArgument
               ? static_cast<aclError>(ACL_ERROR_GE_PARAM_INVALID)
               : ACL_ERROR_RT_MODEL_EXECUTE;
    code = Fail(status, code, function);
    DumpFailure(*call->model->model, call->model->id, call->inputs);
  } else if (any_owned) {
    code = GiveMemory(call, owned, names);
  }
  if (!apart) call->model->Return(std::move(run).value());
  // What was the run's own is not kept: a recorded call runs again.
  for (size_t i = 0; any_owned && i < call->outputs.size(); ++i) {
    if (owned[i]) call->outputs[i].data = nullptr;
    if (owned[i]) call->outputs[i].bytes = 0;
  }
  if (code == ACL_SUCCESS && call->describe) WriteShapes(*call);
  return code;
}

aclError ExecuteNow(uint32_t id, const aclmdlDataset* input, aclmdlDataset* output,
                    const char* function) {
  if (!CurrentContext()) return Fail(ACL_ERROR_RT_CONTEXT_NULL, function, kNoContext);
  // Kept per thread, so that its vectors keep their memory.
  thread_local Call call;
  aclError code = Prepare(&call, id, input, output, function);
  if (code == ACL_SUCCESS) code = RunCall(&call, function, nullptr);
  call.pins.clear();
  call.model = nullptr;
  return code;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output) {
  return ExecuteNow(modelId, input, output, __func__);
}

GE_ACL aclError aclmdlExecuteV2(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output,
                                aclrtStream stream, const aclmdlExecConfigHandle*) {
  // In the order of the stream: after what was submitted to it.
  if (stream != nullptr) {
    if (aclError code = aclrtSynchronizeStream(stream)) return code;
  }
  return ExecuteNow(modelId, input, output, __func__);
}

GE_ACL aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset* input,
                                   aclmdlDataset* output, aclrtStream stream) {
  if (!CurrentContext()) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  auto call = std::make_shared<Call>();
  if (aclError code = Prepare(call.get(), modelId, input, output, __func__)) return code;
  return SubmitTo(stream, __func__, [call](const Stream& self) -> aclError {
    auto allocator = self.allocator();
    // It may call the interface itself.
    if (const auto context = allocator ? self.context.lock() : nullptr)
      aclrtSetCurrentContext(context->handle);
    return RunCall(call.get(), "aclmdlExecuteAsync", std::move(allocator));
  });
}
