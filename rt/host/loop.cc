// What plans of Loop and Scan call, and moving values between buffers and slots.
//
// LoopStart (limit?, condition?) -> (counter = 0, keep)     keep = (no limit or 0 < limit) and (no
// condition or condition) LoopNext  (limit?, condition?) -> (counter + 1, keep)     counter is read
// and written ScanLoad  (whole, counter) -> slice       whole[.., counter, ..] along `axis` (from
// the end if `reverse`) ScanStore (slice, counter) -> whole       the other way ScanStart () ->
// slot; ScanAppend (value) -> slot; ScanTake (slot) -> tensor or sequence, size result: the count
// ToObject (tensor) -> slot; FromObject (slot) -> tensor; ConstantStrings () -> slot
#include <cstring>

#include "abi/dtype.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

bool Truth(const HostTensor& t) { return *static_cast<const uint8_t*>(t.data) != 0; }

Status Decide(HostCall& call, int64_t counter) {
  bool keep = true;
  if (Present(call, 0)) {
    HostTensor limit;
    GE_TRY(TensorIn(call, 0, &limit));
    keep = counter < IntAt(limit, 0);
  }
  if (Present(call, 1)) {
    HostTensor condition;
    GE_TRY(TensorIn(call, 1, &condition));
    keep = keep && Truth(condition);
  }
  std::memcpy(call.outputs[0].data, &counter, sizeof counter);
  *static_cast<uint8_t*>(call.outputs[1].data) = keep ? 1 : 0;
  return {};
}

Status CheckDecision(const HostCall& call) {
  const bool fits = call.inputs.size() == 2 && call.outputs.size() == 2 &&
                    call.outputs[0].bytes >= 8 && call.outputs[1].bytes >= 1 &&
                    call.outputs[0].data != nullptr && call.outputs[1].data != nullptr;
  return fits ? Status() : Invalid("a loop's counter and condition need buffers of 8 and 1 bytes");
}

Status LoopStart(HostCall& call) {
  GE_TRY(CheckDecision(call));
  return Decide(call, 0);
}

Status LoopNext(HostCall& call) {
  GE_TRY(CheckDecision(call));
  int64_t counter = 0;
  std::memcpy(&counter, call.outputs[0].data, sizeof counter);
  return Decide(call, counter + 1);
}

// The slice [.., counter, ..] of a whole tensor as `outer` pieces of `inner` elements.
struct Slice {
  DType dtype = DType::kNone;
  int64_t outer = 0, inner = 0, length = 0, at = 0;
};

Status FindSlice(const HostCall& call, uint8_t dtype, std::span<const int64_t> whole, Slice* s) {
  HostTensor counter;
  GE_TRY(TensorIn(call, 1, &counter));
  int64_t axis = call.attrs.Int("axis", 0);
  const auto rank = static_cast<int64_t>(whole.size());
  GE_TRY(WrapAxis(&axis, rank));
  s->dtype = static_cast<DType>(dtype);
  s->outer = CountOf(whole, 0, axis);
  s->inner = CountOf(whole, axis + 1, rank);
  s->length = whole[static_cast<size_t>(axis)];
  s->at = IntAt(counter, 0);
  if (call.attrs.Int("reverse", 0) != 0) s->at = s->length - 1 - s->at;
  if (s->at < 0 || s->at >= s->length)
    return Invalid("step " + std::to_string(s->at) + " of a scan over " +
                   std::to_string(s->length));
  return {};
}

Status ScanLoad(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 1));
  HostTensor whole;
  GE_TRY(TensorIn(call, 0, &whole));
  Slice s;
  GE_TRY(FindSlice(call, whole.dtype, whole.dims, &s));
  void* out = nullptr;
  GE_TRY(Claim(call, 0, call.outputs[0].dims, &out));
  if (out == nullptr) return {};
  if (call.outputs[0].allocate == nullptr &&
      BytesFor(s.dtype, s.outer * s.inner) > call.outputs[0].bytes)
    return Invalid("a scanned slice does not fit its buffer");
  for (int64_t o = 0; o < s.outer; ++o)
    CopyElements(s.dtype, whole.data, (o * s.length + s.at) * s.inner, out, o * s.inner, s.inner);
  return {};
}

Status ScanStore(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 1));
  HostTensor slice;
  GE_TRY(TensorIn(call, 0, &slice));
  HostOutput& whole = call.outputs[0];
  Slice s;
  GE_TRY(FindSlice(call, whole.dtype, whole.dims, &s));
  if (whole.data == nullptr || whole.bytes < BytesFor(s.dtype, s.outer * s.inner * s.length))
    return Invalid("a scanned result does not fit its buffer");
  if (Count(slice.dims) != s.outer * s.inner)
    return Invalid("a scan step gives " + Text(slice.dims) + " for " + Text(whole.dims));
  for (int64_t o = 0; o < s.outer; ++o)
    CopyElements(s.dtype, slice.data, o * s.inner, whole.data, (o * s.length + s.at) * s.inner,
                 s.inner);
  return {};
}

Status NeedSlot(Object* object) {
  return object != nullptr ? Status() : Invalid("the value must lie in a slot");
}

Status ToObject(const HostTensor& in, Object* out) {
  if (in.object != nullptr) {
    *out = *in.object;
    return {};
  }
  const auto type = static_cast<DType>(in.dtype);
  const int64_t bytes = BytesFor(type, Count(in.dims));
  if (in.data == nullptr && bytes > 0) return Invalid("the value is absent");
  out->kind = Object::Kind::kTensor;
  out->dtype = in.dtype;
  out->dims.assign(in.dims.begin(), in.dims.end());
  const auto* p = static_cast<const std::byte*>(in.data);
  out->bytes.assign(p, p + bytes);
  return {};
}

Status ToObjectTask(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  GE_TRY(NeedSlot(call.outputs[0].object));
  return ToObject(call.inputs[0], call.outputs[0].object);
}

Status FromObjectTask(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  GE_TRY(NeedSlot(call.inputs[0].object));
  const Object& in = *call.inputs[0].object;
  if (call.outputs[0].object != nullptr) {
    *call.outputs[0].object = in;
    return {};
  }
  void* out = nullptr;
  GE_TRY(Claim(call, 0, in.dims, &out));
  if (out == nullptr || in.bytes.empty()) return {};
  if (call.outputs[0].allocate == nullptr &&
      call.outputs[0].bytes < static_cast<int64_t>(in.bytes.size()))
    return Invalid("a value of " + Text(in.dims) + " does not fit its buffer");
  std::memcpy(out, in.bytes.data(), in.bytes.size());
  return {};
}

Status ScanStart(HostCall& call) {
  if (call.outputs.size() != 1) return Invalid("ScanStart gives one output");
  GE_TRY(NeedSlot(call.outputs[0].object));
  *call.outputs[0].object = Object();
  call.outputs[0].object->kind = Object::Kind::kSequence;
  return {};
}

Status ScanAppend(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  GE_TRY(NeedSlot(call.outputs[0].object));
  Object& all = *call.outputs[0].object;
  all.items.emplace_back();
  return ToObject(call.inputs[0], &all.items.back());
}

Status ScanTake(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  GE_TRY(NeedSlot(call.inputs[0].object));
  const Object& all = *call.inputs[0].object;
  HostOutput& out = call.outputs[0];
  // An empty result keeps the rank: its other dims are what the plan says, or 0.
  Shape dims = {static_cast<int64_t>(all.items.size())};
  if (!all.items.empty())
    dims.insert(dims.end(), all.items[0].dims.begin(), all.items[0].dims.end());
  else
    for (size_t d = 1; d < out.dims.size(); ++d) dims.push_back(std::max<int64_t>(out.dims[d], 0));
  call.sizes.assign(dims.begin(), dims.end());
  for (const Object& item : all.items)
    if (item.dims != all.items[0].dims)
      return Invalid("scanned results of " + Text(all.items[0].dims) + " and " + Text(item.dims));
  if (out.object != nullptr) {
    Object& whole = *out.object;
    whole = Object();
    whole.kind = Object::Kind::kTensor;
    whole.dtype = out.dtype;
    whole.dims = dims;
    for (const Object& item : all.items)
      whole.strings.insert(whole.strings.end(), item.strings.begin(), item.strings.end());
    return {};
  }
  void* data = nullptr;
  GE_TRY(Claim(call, 0, dims, &data));
  if (data == nullptr) return {};
  auto* at = static_cast<std::byte*>(data);
  for (const Object& item : all.items) {
    if (!item.bytes.empty()) std::memcpy(at, item.bytes.data(), item.bytes.size());
    at += item.bytes.size();
  }
  return {};
}

Status ConstantStrings(HostCall& call) {
  if (call.outputs.size() != 1) return Invalid("ConstantStrings gives one output");
  GE_TRY(NeedSlot(call.outputs[0].object));
  Object& o = *call.outputs[0].object;
  o.kind = Object::Kind::kTensor;
  o.dtype = static_cast<uint8_t>(DType::kString);
  o.dims = call.attrs.Ints("dims");
  o.strings = call.attrs.Strs("strings");
  if (o.strings.empty() && Count(o.dims) == 1) o.strings = {""};  // both are empty text
  if (Count(o.dims) != static_cast<int64_t>(o.strings.size()))
    return Invalid("a constant's strings do not fit its dims");
  return {};
}

[[maybe_unused]] const bool kRegistered =
    RegisterHost("LoopStart", LoopStart) && RegisterHost("LoopNext", LoopNext) &&
    RegisterHost("ScanLoad", ScanLoad) && RegisterHost("ScanStore", ScanStore) &&
    RegisterHost("ScanStart", ScanStart) && RegisterHost("ScanAppend", ScanAppend) &&
    RegisterHost("ScanTake", ScanTake) && RegisterHost("ToObject", ToObjectTask) &&
    RegisterHost("FromObject", FromObjectTask) && RegisterHost("ConstantStrings", ConstantStrings);

}  // namespace
}  // namespace ge::rt
