// Copy: output = input, byte for byte (tensors and object slots).
// BindSizes: the symbols that the task binds = values of its size expressions, all at once.
// Sizes: output[i] = value of the task's i-th size expression, in the output's integer type.
#include <algorithm>
#include <cstring>

#include "abi/dtype.h"
#include "rt/host_kernel.h"

namespace ge::rt {
namespace {

int64_t Elements(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

Status Copy(HostCall& call) {
  if (call.inputs.size() != 1 || call.outputs.size() != 1) {
    return Invalid("Copy takes one input and gives one output");
  }
  const HostTensor& in = call.inputs[0];
  HostOutput& out = call.outputs[0];
  if (in.object != nullptr && out.object != nullptr) {
    if (in.object != out.object) *out.object = *in.object;
    return {};
  }
  // Storage of one size has one layout: halo and pad lanes are copied too.
  const bool whole = in.bytes > 0 && in.bytes == out.bytes;
  const int64_t bytes =
      whole ? in.bytes : BytesFor(static_cast<DType>(in.dtype), Elements(in.dims));
  if (out.allocate != nullptr) out.data = out.allocate(out.context, bytes);
  if (bytes == 0) return {};
  if (in.data == nullptr || out.data == nullptr || (out.allocate == nullptr && bytes > out.bytes)) {
    return Invalid("Copy: " + std::to_string(bytes) + " bytes do not fit the output's " +
                   std::to_string(out.bytes));
  }
  std::memmove(out.data, in.data, static_cast<size_t>(bytes));
  return {};
}

template <class T>
void WriteAll(std::span<const int64_t> values, void* out) {
  std::transform(values.begin(), values.end(), static_cast<T*>(out),
                 [](int64_t v) { return static_cast<T>(v); });
}

Status Sizes(HostCall& call) {
  if (call.outputs.size() != 1) return Invalid("Sizes gives one output");
  HostOutput& out = call.outputs[0];
  const auto type = static_cast<DType>(out.dtype);
  const int64_t bytes = BytesFor(type, static_cast<int64_t>(call.values.size()));
  if (out.allocate != nullptr) {
    out.data = out.allocate(out.context, bytes);
  } else if (bytes > out.bytes) {
    return Invalid("Sizes: the output holds " + std::to_string(out.bytes) + " bytes, not " +
                   std::to_string(bytes));
  }
  if (out.data == nullptr) return {};
  switch (type) {
    case DType::kI64: WriteAll<int64_t>(call.values, out.data); return {};
    case DType::kU64: WriteAll<uint64_t>(call.values, out.data); return {};
    case DType::kI32: WriteAll<int32_t>(call.values, out.data); return {};
    case DType::kU32: WriteAll<uint32_t>(call.values, out.data); return {};
    case DType::kI16: WriteAll<int16_t>(call.values, out.data); return {};
    case DType::kU16: WriteAll<uint16_t>(call.values, out.data); return {};
    case DType::kI8: WriteAll<int8_t>(call.values, out.data); return {};
    case DType::kU8: WriteAll<uint8_t>(call.values, out.data); return {};
    case DType::kBool: WriteAll<bool>(call.values, out.data); return {};
    case DType::kF32: WriteAll<float>(call.values, out.data); return {};
    case DType::kF64: WriteAll<double>(call.values, out.data); return {};
    default: return Unsupported("Sizes: output type " + std::string(Name(type)));
  }
}

Status BindSizes(HostCall& call) {
  call.sizes.assign(call.values.begin(), call.values.end());
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("Copy", Copy) &&
                                          RegisterHost("Sizes", Sizes) &&
                                          RegisterHost("BindSizes", BindSizes);

}  // namespace
}  // namespace ge::rt
