// The caller's memory: used directly where that is safe, else through copies of the Run's own.
// Inputs are never written, outputs never past the bytes that were given.
#include <cstring>
#include <functional>

#include "abi/dtype.h"
#include "rt/state.h"

namespace ge::rt {
namespace {

bool Aligned(const void* data, uint8_t dtype) {
  const auto type = static_cast<DType>(dtype);
  const int64_t bytes =
      type == DType::kC128 || type == DType::kC64 ? BitWidth(type) / 16 : BitWidth(type) / 8;
  return bytes <= 1 || reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

Status TooSmall(const std::string& what, int64_t given, int64_t needed) {
  return Invalid(what + ": " + std::to_string(given) + " bytes given, " + std::to_string(needed) +
                 " needed");
}

std::string OutputName(const om::IoTensor& io) { return "output \"" + io.name + "\""; }

}  // namespace

// True if the output's buffer is the output's memory, so that nothing is copied at the end.
bool Run::State::IsDirect(size_t output) const {
  const om::Buffer& b = plan.buffers[static_cast<size_t>(plan.outputs[output].buffer)];
  return b.kind == om::BufferKind::kOutput && b.alias < 0 &&
         b.index == static_cast<int32_t>(output);
}

bool Run::State::Overlaps(size_t output) const {
  const size_t self = plan.inputs.size() + output;
  const auto begin = reinterpret_cast<uintptr_t>(io[self].data);
  const uintptr_t end = begin + static_cast<uintptr_t>(io[self].bytes);
  for (size_t i = 0; i < io.size(); ++i) {
    const auto other = reinterpret_cast<uintptr_t>(io[i].data);
    const bool apart = i == self || io[i].data == nullptr || io[i].bytes == 0 || end <= other ||
                       other + static_cast<uintptr_t>(io[i].bytes) <= begin;
    if (!apart) return true;
  }
  return false;
}

// An output that was lent to the caller may come back as an input, and will be written again.
bool Run::State::IsOwn(const void* data) const {
  const auto inside = [data](const Block& block) {
    return std::less_equal<const void*>()(block.data(), data) &&
           std::less<const void*>()(data, block.data() + block.bytes());
  };
  for (size_t i = 0; i < results.size(); ++i) {
    if (inside(results[i]) || inside(blocks[static_cast<size_t>(plan.outputs[i].buffer)]))
      return true;
  }
  return false;
}

Status Run::State::PlaceInput(size_t input, const Tensor& tensor) {
  const om::IoTensor& record = plan.inputs[input];
  const om::Buffer& buffer = plan.buffers[static_cast<size_t>(record.buffer)];
  if (buffer.kind == om::BufferKind::kSlot) return {};
  const int64_t needed = sizes[static_cast<size_t>(buffer.bytes)];
  const int64_t dense = DenseBytes(record.dtype, tensor.dims);
  const std::string name = "input \"" + record.name + "\"";
  if (needed < 0 || dense < 0 || needed > dense)
    return Error(Code::kDataLoss, name + ": the plan's size is wrong");
  if (needed == 0) {
    SetAddress(record.buffer, EmptyTensor());
    return {};
  }
  if (tensor.data == nullptr) return Invalid(name + ": no data");
  if (tensor.bytes < dense) return TooSmall(name, tensor.bytes, dense);
  if (Aligned(tensor.data, record.dtype) && !IsOwn(tensor.data)) {
    SetAddress(record.buffer, tensor.data);
    return {};
  }
  Block& block = blocks[static_cast<size_t>(record.buffer)];
  GE_TRY(block.Grow(needed, 0).In(name));
  SetAddress(record.buffer, block.data());
  std::memcpy(block.data(), tensor.data, static_cast<size_t>(needed));
  staged_inputs.push_back(static_cast<int32_t>(input));
  return {};
}

Status Run::State::PlaceOutput(size_t output, const Tensor& tensor) {
  const om::IoTensor& record = plan.outputs[output];
  const om::Buffer& buffer = plan.buffers[static_cast<size_t>(record.buffer)];
  if (buffer.kind == om::BufferKind::kSlot) return {};
  const IoMemory& given = OutputMemory(output);
  stage_output[output] =
      given.data != nullptr && (!Aligned(given.data, tensor.dtype) || Overlaps(output));
  if (given.data == nullptr) return {};
  int64_t elements = 1;
  for (const om::SizeRef dim : record.dims) {
    const int64_t d = sizes[static_cast<size_t>(dim)];
    if (d < 0 || __builtin_mul_overflow(elements, d, &elements)) return {};  // not known yet
  }
  if (elements > (int64_t{1} << 50)) return {};
  const int64_t needed = BytesFor(static_cast<DType>(record.dtype), elements);
  return given.bytes < needed ? TooSmall(OutputName(record), given.bytes, needed) : Status();
}

void Run::State::FillStaged(std::span<const Tensor> inputs) {
  for (const int32_t i : staged_inputs) {
    const auto buffer = static_cast<size_t>(plan.inputs[static_cast<size_t>(i)].buffer);
    const int64_t bytes = sizes[static_cast<size_t>(plan.buffers[buffer].bytes)];
    std::memcpy(blocks[buffer].data(), inputs[static_cast<size_t>(i)].data,
                static_cast<size_t>(bytes));
  }
}

Status Run::State::PlaceIo(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                           bool changed) {
  wanted_io.clear();
  for (const Tensor& t : inputs) wanted_io.push_back({t.data, t.bytes});
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Memory that the last run lent to the caller is not the caller's.
    const auto b = static_cast<size_t>(plan.outputs[i].buffer);
    void* data = outputs[i].data;
    if (data == blocks[b].data() || data == results[i].data()) data = nullptr;
    wanted_io.push_back({data, data != nullptr ? outputs[i].bytes : 0});
  }
  if (!changed && wanted_io == io) {
    FillStaged(inputs);
  } else {
    io = wanted_io;
    staged_inputs.clear();
    for (size_t i = 0; i < inputs.size(); ++i) GE_TRY(PlaceInput(i, inputs[i]));
    for (size_t i = 0; i < outputs.size(); ++i) GE_TRY(PlaceOutput(i, outputs[i]));
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      const om::Buffer& buffer = plan.buffers[b];
      if (buffer.kind != om::BufferKind::kOutput || buffer.alias >= 0) continue;
      if (model.is_late[static_cast<size_t>(buffer.bytes)] != 0) continue;
      GE_TRY(Provide(static_cast<int32_t>(b), sizes[static_cast<size_t>(buffer.bytes)]));
    }
  }
  for (Object& slot : slots) slot = Object();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const om::Buffer& buffer = plan.buffers[static_cast<size_t>(plan.inputs[i].buffer)];
    if (buffer.kind != om::BufferKind::kSlot) continue;
    if (inputs[i].data == nullptr)
      return Invalid("input \"" + plan.inputs[i].name + "\": no object");
    slots[static_cast<size_t>(buffer.index)] = *static_cast<const Object*>(inputs[i].data);
  }
  return {};
}

Status Run::State::FinishOne(size_t output, Tensor* tensor) {
  const om::IoTensor& record = plan.outputs[output];
  const auto b = static_cast<size_t>(record.buffer);
  tensor->dtype = record.dtype;
  if (plan.buffers[b].kind == om::BufferKind::kSlot) {
    Object& slot = slots[static_cast<size_t>(plan.buffers[b].index)];
    tensor->dims = slot.dims;
    if (tensor->data == nullptr) tensor->data = &slot;
    if (tensor->data != &slot) *static_cast<Object*>(tensor->data) = slot;
    return {};
  }
  tensor->dims.resize(record.dims.size());
  for (size_t d = 0; d < record.dims.size(); ++d)
    tensor->dims[d] = sizes[static_cast<size_t>(record.dims[d])];
  const int64_t bytes = DenseBytes(record.dtype, tensor->dims);
  void* source = address[b];
  if (bytes > sizes[static_cast<size_t>(plan.buffers[b].bytes)]) source = nullptr;
  if (bytes < 0 || (source == nullptr && bytes > 0))
    return Invalid(OutputName(record) + ": its size is not known");
  void* given = OutputMemory(output).data;
  if (given == nullptr) {
    if (!IsDirect(output)) {  // the arena is reused, constants and inputs are not ours to lend
      GE_TRY(results[output].Grow(bytes, 0).In(OutputName(record)));
      given = results[output].data();
    }
    tensor->data = given != nullptr ? given : source;
    tensor->bytes = bytes;
  } else if (OutputMemory(output).bytes < bytes) {
    return TooSmall(OutputName(record), OutputMemory(output).bytes, bytes);
  }
  if (given != nullptr && given != source && bytes > 0)
    std::memmove(given, source, static_cast<size_t>(bytes));
  return {};
}

Status Run::State::Finish(std::span<Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) GE_TRY(FinishOne(i, &outputs[i]));
  return {};
}

}  // namespace ge::rt
