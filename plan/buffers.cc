// Buffers of values, constants and slices, and which of them share memory.
#include "base/check.h"
#include "plan/plan_builder.h"
#include "type/layout.h"

namespace ge {
namespace {

Expr BytesOf(DType t, Expr elements) {
  const int bits = BitWidth(t);
  return bits >= 8 ? elements * (bits / 8) : CeilDiv(elements * bits, 8);
}

}  // namespace

bool IsObject(const Value& v) {
  return v.kind != ValueKind::kTensor || v.type.dtype == DType::kString;
}

Expr PlanBuilder::StorageBytes(const Value& v) const {
  return BytesOf(v.type.dtype, DenseView(v.type.layout, v.type.dims, v.halo).Elements());
}

int PlanBuilder::NewBuffer(std::string name, DType dtype, const std::vector<Expr>& dims,
                           Expr bytes) {
  om::Buffer b;
  b.name = std::move(name);
  b.kind = DependsOnLate(bytes) ? om::BufferKind::kPool : om::BufferKind::kArena;
  b.dtype = static_cast<uint8_t>(dtype);
  b.bytes = Size(bytes);
  b.dims = Sizes(dims);
  plan_.buffers.push_back(std::move(b));
  bytes_.push_back(bytes);
  same_.push_back(-1);
  slice_of_.push_back(-1);
  slice_offset_.emplace_back(0);
  out_.is_value.push_back(false);
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int PlanBuilder::NewLike(const Value& v, std::string name) {
  if (!IsObject(v)) {
    const int b = NewBuffer(std::move(name), v.type.dtype, v.type.dims, StorageBytes(v));
    out_.is_value[static_cast<size_t>(b)] = true;
    if (!IsPlain(v)) out_.views.emplace(b, DenseView(v.type.layout, v.type.dims, v.halo));
    return b;
  }
  const int b = NewBuffer(std::move(name), v.type.dtype,
                          v.kind == ValueKind::kTensor ? v.type.dims : std::vector<Expr>(), 0);
  plan_.buffers[b].kind = om::BufferKind::kSlot;
  plan_.buffers[b].bytes = -1;
  plan_.buffers[b].index = plan_.slots++;
  return b;
}

int PlanBuilder::NewSlice(int of, const Value& like, Expr offset) {
  const int b = NewLike(like, like.name);
  const int parent = Find(of);
  slice_of_[b] = slice_of_[parent] >= 0 ? slice_of_[parent] : parent;
  slice_offset_[b] = slice_offset_[parent] + offset;
  return b;
}

int PlanBuilder::WeightBuffer(const Graph& g, ValueId v, const Pack* pack) {
  const Constant& c = *g.ConstantOf(v);
  const int64_t size = pack ? pack->bytes : static_cast<int64_t>(c.bytes.size());
  const auto key =
      std::make_tuple(static_cast<const void*>(c.bytes.data()),
                      static_cast<int64_t>(c.bytes.size()), pack ? pack->key : std::string());
  auto [it, is_new] = weight_of_.emplace(key, static_cast<int>(out_.weights.size()));
  if (is_new) {
    out_.weights.push_back({&g, v, pack, out_.weight_bytes, size});
    out_.weight_bytes = (out_.weight_bytes + size + 63) / 64 * 64;
  }
  const Value& value = g.value(v);
  auto [at, is_first] =
      weight_buffer_.emplace(std::make_tuple(it->second, static_cast<int>(c.dtype),
                                             pack ? std::string() : ToString(value.type)),
                             -1);
  if (is_first) {
    at->second = pack ? NewBuffer(value.name, DType::kU8, {size}, size)
                      : NewBuffer(value.name, c.dtype, value.type.dims, size);
    out_.is_value[static_cast<size_t>(at->second)] = pack == nullptr;
    plan_.buffers[at->second].kind = om::BufferKind::kConst;
    plan_.buffers[at->second].offset = out_.weights[it->second].offset;
  }
  return at->second;
}

std::vector<int>& PlanBuilder::BuffersOf(const Graph& g) {
  std::vector<int>& list = buffer_of_[&g];
  if (list.size() < g.values.size()) list.resize(g.values.size(), -1);
  return list;
}

Result<int> PlanBuilder::Readable(const Graph& g, ValueId v) {
  if (const int b = BuffersOf(g)[v]; b >= 0) return b;
  const Value& value = g.value(v);
  if (const Constant* c = g.ConstantOf(v)) {
    if (c->dtype == DType::kString) {
      const int slot = Writable(g, v);
      AddHost(value.name, "ConstantStrings", {}, {slot});
      plan_.tasks.back().attrs = EncodeStrings(*c);
      return slot;
    }
    const int b = WeightBuffer(g, v, nullptr);
    BuffersOf(g)[v] = b;
    return b;
  }
  if (value.elems) return EmitKnown(g, v);
  return Error(Code::kInternal, "value " + value.name + " is read before any task makes it");
}

int PlanBuilder::Writable(const Graph& g, ValueId v) {
  int b = BuffersOf(g)[v];
  if (b < 0) {
    b = NewLike(g.value(v), g.value(v).name);
    BuffersOf(g)[v] = b;
  }
  return b;
}

int PlanBuilder::Find(int buffer) {
  int root = buffer;
  while (same_[root] >= 0) root = same_[root];
  while (same_[buffer] >= 0) {
    const int next = same_[buffer];
    same_[buffer] = root;
    buffer = next;
  }
  return root;
}

int PlanBuilder::RootOf(int buffer) {
  int root = Find(buffer);
  while (slice_of_[root] >= 0) root = Find(slice_of_[root]);
  return root;
}

void PlanBuilder::Join(int buffer, int root) {
  GE_CHECK(same_[buffer] < 0 && slice_of_[buffer] < 0, "a buffer gets a second home");
  GE_CHECK(Find(root) != buffer, "a buffer becomes its own alias");
  same_[buffer] = root;
}

}  // namespace ge
