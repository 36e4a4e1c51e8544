// ReadSizes: the elements of an integer tensor become the task's size results, and its output (if
// one is wanted) a copy of it. The compiler inserts it where a shape is computed at run time.
#include <cstring>

#include "abi/dtype.h"
#include "rt/host_kernel.h"

namespace ge::rt {
namespace {

template <class T>
void Append(const void* data, int64_t count, std::vector<int64_t>& sizes) {
  const T* p = static_cast<const T*>(data);
  for (int64_t i = 0; i < count; ++i) sizes.push_back(static_cast<int64_t>(p[i]));
}

Status AppendAll(DType type, const void* data, int64_t count, std::vector<int64_t>& sizes) {
  switch (type) {
    case DType::kI64: Append<int64_t>(data, count, sizes); return {};
    case DType::kU64: Append<uint64_t>(data, count, sizes); return {};
    case DType::kI32: Append<int32_t>(data, count, sizes); return {};
    case DType::kU32: Append<uint32_t>(data, count, sizes); return {};
    case DType::kI16: Append<int16_t>(data, count, sizes); return {};
    case DType::kU16: Append<uint16_t>(data, count, sizes); return {};
    case DType::kI8: Append<int8_t>(data, count, sizes); return {};
    case DType::kU8: Append<uint8_t>(data, count, sizes); return {};
    case DType::kBool: Append<bool>(data, count, sizes); return {};
    default: return Unsupported("ReadSizes: sizes of type " + std::string(Name(type)));
  }
}

Status ReadSizes(HostCall& call) {
  if (call.inputs.size() != 1) return Invalid("ReadSizes takes one input");
  const HostTensor& in = call.inputs[0];
  int64_t count = 1;
  for (const int64_t d : in.dims) count *= d;
  const auto type = static_cast<DType>(in.dtype);
  if (auto status = AppendAll(type, in.data, count, call.sizes); !status.ok()) return status;
  if (call.outputs.empty()) return {};
  HostOutput& out = call.outputs[0];
  const int64_t bytes = BytesFor(type, count);
  if (out.allocate != nullptr) out.data = out.allocate(out.context, bytes);
  if (out.data != nullptr && bytes > 0) std::memmove(out.data, in.data, static_cast<size_t>(bytes));
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("ReadSizes", ReadSizes);

}  // namespace
}  // namespace ge::rt
