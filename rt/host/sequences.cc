// Sequences and optionals: objects in slots. Positions may be negative: -1 is the last element.
#include <algorithm>
#include <cstring>

#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

Status SequenceIn(const HostCall& call, size_t i, const Object** seq) {
  static const Object kEmpty = {.kind = Object::Kind::kSequence};
  if (i >= call.inputs.size() || call.inputs[i].object == nullptr)
    return Invalid("operand " + std::to_string(i) + " is not a sequence");
  const Object* o = call.inputs[i].object;
  if (o->kind == Object::Kind::kTensor)
    return Invalid("operand " + std::to_string(i) + " is a tensor, not a sequence");
  *seq = o->kind == Object::Kind::kNone ? &kEmpty : o;
  return {};
}

Status ObjectOut(HostCall& call, size_t o, Object** out) {
  *out = nullptr;
  if (o >= call.outputs.size()) return {};
  *out = call.outputs[o].object;
  return *out ? Status() : Invalid("output " + std::to_string(o) + " has no object slot");
}

// A copy of operand i, whatever it is.
Status CopyIn(const HostCall& call, size_t i, Object* copy) {
  if (!Present(call, i)) return Invalid("operand " + std::to_string(i) + " is missing");
  const HostTensor& t = call.inputs[i];
  if (t.object != nullptr) {
    *copy = *t.object;
    return {};
  }
  *copy = {};
  copy->kind = Object::Kind::kTensor;
  copy->dtype = t.dtype;
  copy->dims.assign(t.dims.begin(), t.dims.end());
  copy->bytes.resize(static_cast<size_t>(BytesFor(TypeOf(t), Count(t.dims))));
  if (!copy->bytes.empty()) std::memcpy(copy->bytes.data(), t.data, copy->bytes.size());
  return {};
}

// Gives output 0 a tensor, and the call the sizes of the dims that inference did not know.
Status GiveTensor(HostCall& call, const Object& t) {
  if (t.kind != Object::Kind::kTensor) return Invalid("the element is not a tensor");
  for (int64_t d : call.attrs.Ints("fresh_dims")) {
    if (d < 0 || d >= static_cast<int64_t>(t.dims.size()))
      return Invalid("the element " + Text(t.dims) + " has another rank than expected");
    call.sizes.push_back(t.dims[d]);
  }
  if (!Wanted(call, 0)) return {};
  if (call.outputs[0].object != nullptr) {
    *call.outputs[0].object = t;
    return {};
  }
  if (call.outputs[0].dtype != t.dtype)
    return Invalid("the element is " + std::string(Name(static_cast<DType>(t.dtype))) + ", not " +
                   std::string(Name(static_cast<DType>(call.outputs[0].dtype))));
  // Dims that inference knew must hold: memory was planned by them.
  const auto known = call.outputs[0].dims;
  if (known.size() != t.dims.size())
    return Invalid("the element " + Text(t.dims) + " has another rank than expected");
  void* y;
  GE_TRY(Claim(call, 0, t.dims, &y));
  if (y != nullptr && !t.bytes.empty()) std::memcpy(y, t.bytes.data(), t.bytes.size());
  return {};
}

// Operand `i` as a position in [-n, n) or, to insert, [-n, n].
Status PositionIn(const HostCall& call, size_t i, int64_t n, int64_t otherwise, bool insert,
                  int64_t* at) {
  *at = otherwise;
  if (!Present(call, i)) return {};
  HostTensor t;
  GE_TRY(TensorIn(call, i, &t));
  GE_TRY(CheckIndexType(t, "position"));
  if (Count(t.dims) != 1) return Invalid("position " + Text(t.dims) + " must have one element");
  *at = IntAt(t, 0);
  if (insert && *at == n) return {};
  return WrapIndex(at, n, "position");
}

Status SequenceEmpty(HostCall& call) {
  Object* out;
  GE_TRY(ObjectOut(call, 0, &out));
  if (out)
    *out = {.kind = Object::Kind::kSequence,
            .dtype = static_cast<uint8_t>(call.attrs.Int("dtype", 1))};
  return {};
}

Status SequenceConstruct(HostCall& call) {
  Object seq = {.kind = Object::Kind::kSequence};
  for (size_t i = 0; i < call.inputs.size(); ++i)
    GE_TRY(CopyIn(call, i, &seq.items.emplace_back()));
  if (!seq.items.empty()) seq.dtype = seq.items[0].dtype;
  Object* out;
  GE_TRY(ObjectOut(call, 0, &out));
  if (out) *out = std::move(seq);
  return {};
}

Status SequenceInsert(HostCall& call) {
  const Object* seq;
  GE_TRY(SequenceIn(call, 0, &seq));
  Object element;
  GE_TRY(CopyIn(call, 1, &element));
  if (!seq->items.empty() && seq->items[0].dtype != element.dtype)
    return Invalid("the element's type differs from the sequence's");
  const auto n = static_cast<int64_t>(seq->items.size());
  int64_t at;
  GE_TRY(PositionIn(call, 2, n, n, true, &at));
  Object* out;
  GE_TRY(ObjectOut(call, 0, &out));
  if (!out) return {};
  Object copy = *seq;
  copy.dtype = element.dtype;
  copy.items.insert(copy.items.begin() + at, std::move(element));
  *out = std::move(copy);
  return {};
}

Status SequenceErase(HostCall& call) {
  const Object* seq;
  GE_TRY(SequenceIn(call, 0, &seq));
  const auto n = static_cast<int64_t>(seq->items.size());
  if (n == 0) return Invalid("an empty sequence has nothing to erase");
  int64_t at;
  GE_TRY(PositionIn(call, 1, n, n - 1, false, &at));
  Object* out;
  GE_TRY(ObjectOut(call, 0, &out));
  if (!out) return {};
  Object copy = *seq;
  copy.items.erase(copy.items.begin() + at);
  *out = std::move(copy);
  return {};
}

Status SequenceAt(HostCall& call) {
  const Object* seq;
  GE_TRY(SequenceIn(call, 0, &seq));
  int64_t at;
  GE_TRY(PositionIn(call, 1, static_cast<int64_t>(seq->items.size()), -1, false, &at));
  if (at < 0) return Invalid("position is missing");
  return GiveTensor(call, seq->items[at]);
}

Status SequenceLength(HostCall& call) {
  const Object* seq;
  GE_TRY(SequenceIn(call, 0, &seq));
  void* y;
  GE_TRY(Claim(call, 0, Shape{}, &y));
  if (y) *static_cast<int64_t*>(y) = static_cast<int64_t>(seq->items.size());
  return {};
}

// Part [from, from + size) of an axis. `drop`: without the axis.
Object Part(const Object& x, int64_t axis, int64_t from, int64_t size, bool drop) {
  Object part = {.kind = Object::Kind::kTensor, .dtype = x.dtype, .dims = x.dims};
  part.dims[axis] = size;
  const auto t = static_cast<DType>(x.dtype);
  const auto rank = static_cast<int64_t>(x.dims.size());
  const int64_t outer = CountOf(x.dims, 0, axis), inner = CountOf(x.dims, axis + 1, rank),
                n = x.dims[axis];
  if (t == DType::kString) {
    for (int64_t o = 0; o < outer; ++o)
      part.strings.insert(part.strings.end(), x.strings.begin() + (o * n + from) * inner,
                          x.strings.begin() + (o * n + from + size) * inner);
  } else {
    part.bytes.resize(static_cast<size_t>(BytesFor(t, Count(part.dims))));
    for (int64_t o = 0; o < outer; ++o)
      CopyElements(t, x.bytes.data(), (o * n + from) * inner, part.bytes.data(), o * size * inner,
                   size * inner);
  }
  if (drop) part.dims.erase(part.dims.begin() + axis);
  return part;
}

// Sizes of the parts of an axis of n.
Status PartSizes(const HostCall& call, int64_t n, Shape* sizes) {
  if (!Present(call, 1)) {
    sizes->assign(n, 1);
    return {};
  }
  HostTensor split;
  GE_TRY(TensorIn(call, 1, &split));
  GE_TRY(CheckIndexType(split, "split"));
  if (split.dims.size() > 1)
    return Invalid("split " + Text(split.dims) + " must be a scalar or of rank 1");
  if (split.dims.empty()) {
    const int64_t size = IntAt(split, 0);
    if (size < 1) return Invalid("split " + std::to_string(size) + " must be at least 1");
    for (int64_t at = 0; at < n; at += size) sizes->push_back(std::min(size, n - at));
    return {};
  }
  int64_t left = n;
  for (int64_t i = 0; i < split.dims[0]; ++i) {
    const int64_t size = IntAt(split, i);
    if (size < 0 || size > left)
      return Invalid("split sizes do not sum to the axis' " + std::to_string(n));
    left -= size;
    sizes->push_back(size);
  }
  return left == 0 ? Status() : Invalid("split sizes do not sum to the axis' " + std::to_string(n));
}

Status SplitToSequence(HostCall& call) {
  Object x;
  GE_TRY(CopyIn(call, 0, &x));
  if (x.kind != Object::Kind::kTensor) return Invalid("operand 0 is not a tensor");
  int64_t axis = call.attrs.Int("axis", 0);
  GE_TRY(WrapAxis(&axis, static_cast<int64_t>(x.dims.size())));
  Shape sizes;
  GE_TRY(PartSizes(call, x.dims[axis], &sizes));
  const bool drop = !Present(call, 1) && call.attrs.Int("keepdims", 1) == 0;
  Object* out;
  GE_TRY(ObjectOut(call, 0, &out));
  if (!out) return {};
  Object seq = {.kind = Object::Kind::kSequence, .dtype = x.dtype};
  int64_t at = 0;
  for (int64_t size : sizes) {
    seq.items.push_back(Part(x, axis, at, size, drop));
    at += size;
  }
  *out = std::move(seq);
  return {};
}

Status ConcatFromSequence(HostCall& call) {
  const Object* seq;
  GE_TRY(SequenceIn(call, 0, &seq));
  if (seq->items.empty()) return Invalid("an empty sequence cannot be joined");
  const bool stack = call.attrs.Int("new_axis", 0) != 0;
  const Object& first = seq->items[0];
  int64_t axis = call.attrs.Int("axis", 0), total = 0;
  GE_TRY(WrapAxis(&axis, static_cast<int64_t>(first.dims.size()) + (stack ? 1 : 0)));
  for (const Object& item : seq->items) {
    bool same = item.dtype == first.dtype && item.dims.size() == first.dims.size();
    for (size_t d = 0; same && d < item.dims.size(); ++d)
      same = item.dims[d] == first.dims[d] || (!stack && static_cast<int64_t>(d) == axis);
    if (!same)
      return Invalid("elements " + Text(first.dims) + " and " + Text(item.dims) +
                     " do not fit together");
    total += stack ? 1 : item.dims[axis];
  }
  Object joined = {.kind = Object::Kind::kTensor, .dtype = first.dtype, .dims = first.dims};
  if (stack)
    joined.dims.insert(joined.dims.begin() + axis, total);
  else
    joined.dims[axis] = total;
  const auto t = static_cast<DType>(first.dtype);
  const int64_t outer = CountOf(joined.dims, 0, axis),
                row = CountOf(joined.dims, axis, static_cast<int64_t>(joined.dims.size()));
  if (t == DType::kString)
    joined.strings.resize(Count(joined.dims));
  else
    joined.bytes.resize(static_cast<size_t>(BytesFor(t, Count(joined.dims))));
  int64_t at = 0;
  for (const Object& item : seq->items) {
    const int64_t part = outer == 0 ? 0 : Count(item.dims) / outer;
    for (int64_t o = 0; o < outer; ++o) {
      if (t == DType::kString)
        std::copy_n(item.strings.begin() + o * part, part, joined.strings.begin() + o * row + at);
      else
        CopyElements(t, item.bytes.data(), o * part, joined.bytes.data(), o * row + at, part);
    }
    at += part;
  }
  return GiveTensor(call, joined);
}

Status Optional(HostCall& call) {
  Object* out;
  GE_TRY(ObjectOut(call, 0, &out));
  if (!out) return {};
  Object content;
  if (Present(call, 0)) GE_TRY(CopyIn(call, 0, &content));
  *out = std::move(content);
  return {};
}

Status OptionalHasElement(HostCall& call) {
  const bool has = Present(call, 0) && (call.inputs[0].object == nullptr ||
                                        call.inputs[0].object->kind != Object::Kind::kNone);
  void* y;
  GE_TRY(Claim(call, 0, Shape{}, &y));
  if (y) *static_cast<uint8_t*>(y) = has;
  return {};
}

Status OptionalGetElement(HostCall& call) {
  Object content;
  GE_TRY(CopyIn(call, 0, &content));
  if (content.kind == Object::Kind::kNone) return Invalid("the optional is empty");
  if (content.kind == Object::Kind::kTensor) return GiveTensor(call, content);
  Object* out;
  GE_TRY(ObjectOut(call, 0, &out));
  if (out) *out = std::move(content);
  return {};
}

[[maybe_unused]] const bool kRegistered =
    RegisterHost("SequenceEmpty", SequenceEmpty) &
    RegisterHost("SequenceConstruct", SequenceConstruct) &
    RegisterHost("SequenceInsert", SequenceInsert) & RegisterHost("SequenceErase", SequenceErase) &
    RegisterHost("SequenceAt", SequenceAt) & RegisterHost("SequenceLength", SequenceLength) &
    RegisterHost("SplitToSequence", SplitToSequence) &
    RegisterHost("ConcatFromSequence", ConcatFromSequence) & RegisterHost("Optional", Optional) &
    RegisterHost("OptionalHasElement", OptionalHasElement) &
    RegisterHost("OptionalGetElement", OptionalGetElement);

}  // namespace
}  // namespace ge::rt
