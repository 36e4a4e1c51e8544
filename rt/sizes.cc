// Sizes, symbols and addresses of a Run, and what follows when one changes.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "rt/state.h"

namespace ge::rt {

namespace {
constexpr size_t kShapeCacheBytes = 1 << 20;  // of a Run; the shapes used last are kept
constexpr size_t kMostShapes = 256;           // they are looked at one by one

size_t BytesOf(const Shape& s) {
  return sizeof(Shape) + 8 * (s.symbols.capacity() + s.sizes.capacity() + s.offsets.capacity());
}
}  // namespace

void Run::State::SetSize(om::SizeRef size, int64_t value) {
  const auto s = static_cast<size_t>(size);
  if (sizes[s] == value) return;
  sizes[s] = value;
  for (const int32_t slot : model.size_slots[s]) sizev[static_cast<size_t>(slot)] = value;
}

// Kernels may load from an input without elements and leave the value out: zeros that cost nothing
// until they are read, as far as the index of another axis can reach.
void* EmptyTensor() {
  static void* const at = [] {
    constexpr size_t kReach = size_t{1} << 30;
    void* p = mmap(nullptr, kReach, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    alignas(64) static std::byte few[4096];
    return p == MAP_FAILED ? static_cast<void*>(few) : p;
  }();
  return at;
}

void Run::State::SetAddress(int32_t buffer, void* to) {
  const auto b = static_cast<size_t>(buffer);
  if (address[b] != to) {
    address[b] = to;
    for (const int32_t slot : model.arg_slots[b]) argv[static_cast<size_t>(slot)] = to;
  }
  for (const int32_t alias : model.aliases[b]) Refresh(alias);
}

// Null if the alias has no place in its root: then a task that uses it is an error.
void Run::State::Refresh(int32_t alias) {
  const om::Buffer& buffer = plan.buffers[static_cast<size_t>(alias)];
  const auto root = static_cast<size_t>(buffer.alias);
  const int64_t room = sizes[static_cast<size_t>(plan.buffers[root].bytes)];
  const int64_t bytes = sizes[static_cast<size_t>(buffer.bytes)];
  const int64_t offset =
      buffer.alias_offset < 0 ? 0 : sizes[static_cast<size_t>(buffer.alias_offset)];
  const bool fits = offset >= 0 && bytes >= 0 && offset <= room && bytes <= room - offset;
  auto* base = static_cast<std::byte*>(address[root]);
  SetAddress(alias, base != nullptr && fits ? base + offset : nullptr);
}

Status Run::State::UseShape(bool* changed) {
  *changed = shapes.empty() || shapes[0].symbols != wanted_symbols;
  if (!*changed) return {};
  const auto known = std::find_if(shapes.begin(), shapes.end(),
                                  [&](const Shape& s) { return s.symbols == wanted_symbols; });
  if (known != shapes.end()) {
    std::rotate(shapes.begin(), known, known + 1);
  } else {
    GE_ASSIGN(Shape shape, MakeShape(model, wanted_symbols));
    // All shapes of a model take the same.
    const size_t most = std::clamp<size_t>(kShapeCacheBytes / BytesOf(shape), 2, kMostShapes);
    while (shapes.size() >= most) shapes.pop_back();
    shapes.insert(shapes.begin(), std::move(shape));
  }
  Status status = ApplyShape(shapes[0]);
  if (!status.ok()) shapes.clear();  // the first one is taken as applied
  return status;
}

Status Run::State::ApplyShape(const Shape& shape) {
  symbols = shape.symbols;
  for (size_t s = 0; s < sizes.size(); ++s) SetSize(static_cast<om::SizeRef>(s), shape.sizes[s]);
  if (work == nullptr && source.take) {
    GE_TRY(TakeArena(shape.arena_bytes).In("arena"));
  } else if (work == nullptr) {
    GE_TRY(arena.Grow(shape.arena_bytes, 0).In("arena"));
    arena_base = arena.data();
  }
  for (size_t b = 0; b < address.size(); ++b) {
    const om::Buffer& buffer = plan.buffers[b];
    const auto index = static_cast<int32_t>(b);
    if (buffer.alias >= 0) continue;
    if (buffer.kind == om::BufferKind::kArena) {
      SetAddress(index, shape.offsets[b] < 0 ? nullptr : arena_base + shape.offsets[b]);
    } else if (buffer.kind == om::BufferKind::kPool) {
      GE_TRY(Provide(index, sizes[static_cast<size_t>(buffer.bytes)]));
    } else if (buffer.kind == om::BufferKind::kConst) {
      SetAddress(index, address[b]);  // for its aliases, whose offsets may have changed
    }
  }
  return GrowScratch(shape.scratch_bytes);
}

Status Run::State::TakeArena(int64_t bytes) {
  if (taken != nullptr) source.give_back(taken);
  taken = bytes > 0 ? source.take(bytes) : nullptr;
  arena_base = static_cast<std::byte*>(taken);
  if (bytes <= 0 || taken != nullptr) return {};
  return Error(Code::kResourceExhausted,
               "the caller's allocator has no " + std::to_string(bytes) + " bytes");
}

Status Run::State::GrowScratch(int64_t bytes) {
  if (bytes <= scratch_stride) return {};
  if (work == nullptr) {
    GE_TRY(scratch.Grow(bytes * model.pool->size(), 0).In("scratch"));
    scratch_base = scratch.data();
  }
  scratch_stride = bytes;
  for (ge_kernel_call& call : calls) call.scratch = scratch_base;
  return {};
}

void Run::State::Trim() {
  arena.Trim(shapes.empty() ? 0 : shapes[0].arena_bytes);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const om::SizeRef bytes = plan.buffers[b].bytes;
    if (blocks[b].bytes() > 0)
      blocks[b].Trim(bytes < 0 ? 0 : std::max<int64_t>(0, sizes[static_cast<size_t>(bytes)]));
  }
  for (Block& result : results) result.Trim(0);  // asked for in each run
}

Status Run::State::Provide(int32_t buffer, int64_t bytes) {
  const auto b = static_cast<size_t>(buffer);
  const om::Buffer& record = plan.buffers[b];
  if (bytes < 0) {
    SetAddress(buffer, nullptr);
    return {};
  }
  const void* before = address[b];
  int64_t keep = before != nullptr && before == blocks[b].data() ? blocks[b].bytes() : 0;
  if (record.kind == om::BufferKind::kOutput) {
    const IoMemory& given = OutputMemory(static_cast<size_t>(record.index));
    const bool direct =
        given.data != nullptr && stage_output[static_cast<size_t>(record.index)] == 0;
    if (direct && bytes <= given.bytes) {
      SetAddress(buffer, given.data);
      return {};
    }
    GE_TRY(blocks[b].Grow(bytes, keep).In("output " + record.name));
    // What was written to the caller's memory moves with the output.
    if (direct && before == given.data) {
      std::memcpy(blocks[b].data(), given.data, static_cast<size_t>(std::min(given.bytes, bytes)));
    }
  } else {
    GE_TRY(blocks[b].Grow(bytes, keep).In("buffer " + record.name));
  }
  SetAddress(buffer, blocks[b].data());
  return {};
}

// Forgets what the last run bound; memory stays for the next one.
void Run::State::ResetLate() {
  if (model.late_sizes.empty()) return;
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (plan.symbols[s].input < 0) symbols[s] = om::kNoSize;
  }
  for (const om::SizeRef size : model.late_sizes) SetSize(size, om::kNoSize);
  for (size_t b = 0; b < address.size(); ++b) {
    const om::SizeRef bytes = plan.buffers[b].bytes, offset = plan.buffers[b].alias_offset;
    const bool late = (bytes >= 0 && model.is_late[static_cast<size_t>(bytes)] != 0) ||
                      (offset >= 0 && model.is_late[static_cast<size_t>(offset)] != 0);
    if (late) SetAddress(static_cast<int32_t>(b), nullptr);
  }
}

Status Run::State::Bind(int32_t symbol, int64_t value) {
  const auto s = static_cast<size_t>(symbol);
  const om::Symbol& record = plan.symbols[s];
  // A model's data may hold the least number ("to the start" of a Slice), which means "not known"
  // here.
  if (value == om::kNoSize) ++value;
  if (value < record.lo || value > record.hi || value % record.multiple_of != 0) {
    return CheckSymbolValue(record, value, "a size");
  }
  symbols[s] = value;
  for (const int32_t size : model.sizes_of[s]) SetSize(size, om::EvalSize(plan, size, symbols));
  for (const int32_t b : model.buffers_of[s]) {
    const om::Buffer& buffer = plan.buffers[static_cast<size_t>(b)];
    if (buffer.alias >= 0) {
      Refresh(b);
    } else {
      GE_TRY(Provide(b, sizes[static_cast<size_t>(buffer.bytes)]));
    }
  }
  return {};
}

Status Run::State::RunChecks(std::span<const int32_t> checks) {
  for (const int32_t c : checks) {
    const om::Check& check = plan.checks[static_cast<size_t>(c)];
    if (sizes[static_cast<size_t>(check.condition)] == 0) return Invalid(check.message);
  }
  return {};
}

}  // namespace ge::rt
