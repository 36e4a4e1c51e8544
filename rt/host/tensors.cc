// Shared pieces of the host kernels.
#include "rt/host/tensors.h"

#include <cstring>

#include "abi/convert.h"

namespace ge::rt {

int64_t CountOf(std::span<const int64_t> dims, int64_t from, int64_t to) {
  int64_t n = 1;
  for (int64_t i = from; i < to; ++i) n *= dims[i];
  return n;
}

int64_t Count(std::span<const int64_t> dims) {
  return CountOf(dims, 0, static_cast<int64_t>(dims.size()));
}

std::string Text(std::span<const int64_t> dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) s += (i ? ", " : "") + std::to_string(dims[i]);
  return s + "]";
}

bool Present(const HostCall& call, size_t i) {
  if (i >= call.inputs.size()) return false;
  const HostTensor& t = call.inputs[i];
  return t.object != nullptr || t.data != nullptr ||
         (t.dtype != 0 && !t.dims.empty() && Count(t.dims) == 0);
}

bool Wanted(const HostCall& call, size_t o) {
  if (o >= call.outputs.size()) return false;
  const HostOutput& out = call.outputs[o];
  return out.data != nullptr || out.object != nullptr || out.allocate != nullptr;
}

Status CheckCall(const HostCall& call, size_t inputs, size_t outputs) {
  for (size_t i = 0; i < inputs; ++i)
    if (!Present(call, i)) return Invalid("operand " + std::to_string(i) + " is missing");
  if (call.outputs.size() > outputs)
    return Invalid(std::to_string(call.outputs.size()) + " outputs, but at most " +
                   std::to_string(outputs) + " exist");
  return {};
}

Status TensorIn(const HostCall& call, size_t i, HostTensor* tensor) {
  if (!Present(call, i)) return Invalid("operand " + std::to_string(i) + " is missing");
  *tensor = call.inputs[i];
  if (tensor->object == nullptr) return {};
  const Object& o = *tensor->object;
  if (o.kind != Object::Kind::kTensor)
    return Invalid("operand " + std::to_string(i) + " is not a tensor");
  tensor->dtype = o.dtype;
  tensor->dims = o.dims;
  tensor->data = o.bytes.data();
  return {};
}

Status CheckRank(const HostTensor& t, size_t rank, std::string_view what) {
  if (t.dims.size() == rank) return {};
  return Invalid(std::string(what) + " " + Text(t.dims) + " must have rank " +
                 std::to_string(rank));
}

Status CheckIndexType(const HostTensor& t, std::string_view what) {
  if (TypeOf(t) == DType::kI64 || TypeOf(t) == DType::kI32) return {};
  return Invalid(std::string(what) + " of type " + std::string(Name(TypeOf(t))) +
                 " must be i32 or i64");
}

Status WrapAxis(int64_t* axis, int64_t rank) {
  if (*axis < -rank || *axis >= rank)
    return Invalid("axis " + std::to_string(*axis) + " is outside [" + std::to_string(-rank) +
                   ", " + std::to_string(rank - 1) + "]");
  if (*axis < 0) *axis += rank;
  return {};
}

Status WrapIndex(int64_t* i, int64_t n, std::string_view what) {
  if (*i < -n || *i >= n)
    return Invalid(std::string(what) + " " + std::to_string(*i) + " is outside [" +
                   std::to_string(-n) + ", " + std::to_string(n - 1) + "]");
  if (*i < 0) *i += n;
  return {};
}

Status Claim(HostCall& call, size_t o, std::span<const int64_t> dims, void** data) {
  *data = nullptr;
  if (!Wanted(call, o)) return {};
  HostOutput& out = call.outputs[o];
  const auto t = static_cast<DType>(out.dtype);
  const int64_t bytes = BytesFor(t, Count(dims));
  if (out.object != nullptr) {
    Object& object = *out.object;
    object = {};
    object.kind = Object::Kind::kTensor;
    object.dtype = out.dtype;
    object.dims.assign(dims.begin(), dims.end());
    if (t == DType::kString) {
      object.strings.resize(static_cast<size_t>(Count(dims)));
    } else {
      object.bytes.resize(static_cast<size_t>(bytes));
      *data = object.bytes.data();
    }
    return {};
  }
  if (out.allocate != nullptr) {
    out.data = out.allocate(out.context, bytes);
    if (out.data == nullptr && bytes > 0)
      return Error(Code::kResourceExhausted, "no memory for " + std::to_string(bytes) + " bytes");
  } else if (bytes > out.bytes) {
    return Invalid("output " + std::to_string(o) + " of " + Text(dims) + " needs " +
                   std::to_string(bytes) + " bytes, but has " + std::to_string(out.bytes));
  }
  *data = out.data;
  return {};
}

Status StringsIn(const HostCall& call, size_t i, const Object** t) {
  static const Object kEmpty = {
      .kind = Object::Kind::kTensor, .dtype = static_cast<uint8_t>(DType::kString), .dims = {0}};
  if (i >= call.inputs.size() || call.inputs[i].object == nullptr)
    return Invalid("operand " + std::to_string(i) + " is not a string tensor");
  const Object* o = call.inputs[i].object;
  if (o->kind == Object::Kind::kNone) o = &kEmpty;
  if (o->kind != Object::Kind::kTensor || static_cast<DType>(o->dtype) != DType::kString ||
      static_cast<int64_t>(o->strings.size()) != Count(o->dims))
    return Invalid("operand " + std::to_string(i) + " is not a string tensor");
  *t = o;
  return {};
}

Status GiveStrings(HostCall& call, size_t o, Shape dims, std::vector<std::string> strings) {
  if (!Wanted(call, o)) return {};
  if (call.outputs[o].object == nullptr)
    return Invalid("output " + std::to_string(o) + " has no object slot");
  *call.outputs[o].object = {.kind = Object::Kind::kTensor,
                             .dtype = static_cast<uint8_t>(DType::kString),
                             .dims = std::move(dims),
                             .bytes = {},
                             .strings = std::move(strings)};
  return {};
}

int64_t IntAt(const HostTensor& t, int64_t i) { return LoadElement<int64_t>(TypeOf(t), t.data, i); }

void CopyElements(DType t, const void* from, int64_t from_at, void* to, int64_t to_at,
                  int64_t count) {
  const int bits = BitWidth(t);
  if (count <= 0) return;
  if (bits < 8) {
    for (int64_t i = 0; i < count; ++i)
      WritePacked(static_cast<uint8_t*>(to), bits, to_at + i,
                  ReadPacked(static_cast<const uint8_t*>(from), bits, from_at + i));
    return;
  }
  const int64_t size = bits / 8;
  std::memmove(static_cast<char*>(to) + to_at * size,
               static_cast<const char*>(from) + from_at * size, static_cast<size_t>(count * size));
}

}  // namespace ge::rt
