// From input dims to symbols, sizes and an arena.
#include <algorithm>

#include "abi/dtype.h"
#include "rt/placement.h"
#include "rt/state.h"

namespace ge::rt {
namespace {

std::string Shown(std::span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    out.append(i == 0 ? "" : ", ").append(std::to_string(dims[i]));
  return out + "]";
}

std::string Allowed(const om::Symbol& s) {
  std::string out = std::to_string(s.lo) + " to " + std::to_string(s.hi);
  if (s.multiple_of > 1) out += ", a multiple of " + std::to_string(s.multiple_of);
  return out;
}

std::string Quoted(const std::string& name) { return "input \"" + name + "\""; }

Status CheckOneInput(const om::IoTensor& io, const Tensor& given) {
  if (given.dtype != io.dtype) {
    return Invalid(Quoted(io.name) + ": element type " +
                   std::string(Name(static_cast<DType>(given.dtype))) + ", the model takes " +
                   std::string(Name(static_cast<DType>(io.dtype))));
  }
  if (given.dims.size() != io.dims.size()) {
    return Invalid(Quoted(io.name) + ": dims " + Shown(given.dims) + ", the model takes " +
                   std::to_string(io.dims.size()) + " dims");
  }
  return {};
}

bool IsSlot(const om::Plan& plan, const om::IoTensor& io) {
  return plan.buffers[static_cast<size_t>(io.buffer)].kind == om::BufferKind::kSlot;
}

// Strings carry their dims in the object.
const std::vector<int64_t>& GivenDims(const om::Plan& plan, const om::IoTensor& io,
                                      const Tensor& given) {
  const bool object = IsSlot(plan, io) && given.data != nullptr;
  return object ? static_cast<const Object*>(given.data)->dims : given.dims;
}

// After all symbols are bound: dims that are constants, or symbols that another dim binds.
Status CheckDims(const om::Plan& plan, const om::IoTensor& io, const Tensor& given,
                 std::span<const int64_t> symbols) {
  for (size_t d = 0; d < io.dims.size(); ++d) {
    const int64_t expected = om::EvalSize(plan, io.dims[d], symbols);
    if (given.dims[d] == expected) continue;
    return Invalid(Quoted(io.name) + ": dim " + std::to_string(d) + " is " +
                   std::to_string(given.dims[d]) + ", the model takes " + std::to_string(expected));
  }
  return {};
}

void PlaceBuffers(const Model::State& m, Shape* shape) {
  std::vector<Placed> placed;
  std::vector<size_t> which;
  const auto& buffers = m.plan().buffers;
  shape->offsets.assign(buffers.size(), -1);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const om::Buffer& b = buffers[i];
    if (b.kind != om::BufferKind::kArena || b.alias >= 0 || m.life[i].first < 0) continue;
    const int64_t bytes = shape->sizes[static_cast<size_t>(b.bytes)];
    constexpr int64_t kLimit = int64_t{1} << 46;
    if (bytes < 0 || bytes > kLimit)
      continue;  // of a branch that this shape cannot take, or an error on use
    placed.push_back({m.life[i].first, m.life[i].second, bytes, b.offset});
    which.push_back(i);
  }
  shape->arena_bytes = std::max(PlaceArena(&placed), m.plan().arena_bytes);
  for (size_t k = 0; k < placed.size(); ++k) shape->offsets[which[k]] = placed[k].offset;
}

}  // namespace

int64_t DenseBytes(uint8_t dtype, std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t d : dims) {
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) return om::kNoSize;
  }
  if (count > std::numeric_limits<int64_t>::max() / 128) return om::kNoSize;
  return BytesFor(static_cast<DType>(dtype), count);
}

Status CheckSymbolValue(const om::Symbol& symbol, int64_t value, const std::string& where) {
  if (value >= symbol.lo && value <= symbol.hi && value % symbol.multiple_of == 0) return {};
  return Invalid(where + " is " + std::to_string(value) + "; allowed: " + Allowed(symbol) + " (" +
                 symbol.name + ")");
}

Status BindInputs(const Model::State& m, std::span<const Tensor> inputs,
                  std::vector<int64_t>* symbols) {
  const om::Plan& plan = m.plan();
  if (inputs.size() != plan.inputs.size()) {
    return Invalid(std::to_string(inputs.size()) + " inputs given, the model takes " +
                   std::to_string(plan.inputs.size()));
  }
  symbols->assign(plan.symbols.size(), om::kNoSize);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsSlot(plan, plan.inputs[i])) GE_TRY(CheckOneInput(plan.inputs[i], inputs[i]));
  }
  for (size_t s = 0; s < plan.symbols.size(); ++s) {
    const om::Symbol& symbol = plan.symbols[s];
    if (symbol.input < 0) continue;
    const auto input = static_cast<size_t>(symbol.input);
    const auto& dims = GivenDims(plan, plan.inputs[input], inputs[input]);
    if (static_cast<size_t>(symbol.dim) >= dims.size())
      return Invalid("symbol " + symbol.name + ": no dim");
    const int64_t value = dims[static_cast<size_t>(symbol.dim)];
    if (value < symbol.lo || value > symbol.hi || value % symbol.multiple_of != 0) {
      return CheckSymbolValue(symbol, value,
                              Quoted(plan.inputs[static_cast<size_t>(symbol.input)].name) +
                                  ": dim " + std::to_string(symbol.dim));
    }
    (*symbols)[s] = value;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsSlot(plan, plan.inputs[i])) GE_TRY(CheckDims(plan, plan.inputs[i], inputs[i], *symbols));
  }
  return {};
}

Result<Shape> MakeShape(const Model::State& m, std::vector<int64_t> symbols) {
  const om::Plan& plan = m.plan();
  Shape shape;
  shape.symbols = std::move(symbols);
  shape.sizes.assign(plan.sizes.size(), om::kNoSize);
  for (size_t s = 0; s < plan.sizes.size(); ++s) {
    if (!m.is_late[s])
      shape.sizes[s] = om::EvalSize(plan, static_cast<om::SizeRef>(s), shape.symbols);
  }
  for (const int32_t c : m.early_checks) {
    const om::Check& check = plan.checks[static_cast<size_t>(c)];
    const int64_t holds = shape.sizes[static_cast<size_t>(check.condition)];
    if (holds == 0 || holds == om::kNoSize) return Invalid(check.message);
  }
  PlaceBuffers(m, &shape);
  for (const Step& step : m.steps) {
    if (step.scratch < 0) continue;
    shape.scratch_bytes =
        std::max(shape.scratch_bytes, shape.sizes[static_cast<size_t>(step.scratch)]);
  }
  constexpr int64_t kScratchLine = 128;  // two lines: the prefetcher fetches pairs
  shape.scratch_bytes = (shape.scratch_bytes + kScratchLine - 1) / kScratchLine * kScratchLine;
  return shape;
}

}  // namespace ge::rt
