// A run from its inputs to its outputs.
#include <algorithm>

#include "base/fp_state.h"
#include "rt/state.h"

namespace ge::rt {

namespace {
alignas(64) std::byte no_weights[64];
constexpr int64_t kTrimRuns = 64;  // a large shape that comes once in so many runs keeps its memory
}  // namespace

Run::State::State(std::shared_ptr<const Model> m)
    : owner(std::move(m)), model(owner->state()), plan(model.plan()) {
  symbols.assign(plan.symbols.size(), om::kNoSize);
  sizes.assign(plan.sizes.size(), om::kNoSize);
  address.assign(plan.buffers.size(), nullptr);
  argv.assign(model.arg_total, nullptr);
  sizev.assign(model.size_total, om::kNoSize);
  blocks.resize(plan.buffers.size());
  results.resize(plan.outputs.size());
  slots.resize(static_cast<size_t>(plan.slots));
  if (!model.sections.empty()) lane_done = std::vector<std::atomic<uint8_t>>(plan.tasks.size());
  stage_output.assign(plan.outputs.size(), 0);
  trace = Trace::FromEnvironment(plan, model.pool->size());
  for (size_t t = 0; t < model.steps.size(); ++t) {
    const Step& step = model.steps[t];
    calls.push_back({argv.data() + step.args, sizev.data() + step.sizes, nullptr, &MathTable(),
                     model.selves[t]});
  }
}

Status Run::State::Start(void* memory) {
  const auto weights = model.file.weights;
  auto* base =
      weights.empty() ? no_weights : const_cast<std::byte*>(weights.data());  // never written
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const om::Buffer& buffer = plan.buffers[b];
    if (buffer.kind == om::BufferKind::kConst && buffer.alias < 0)
      address[b] = base + buffer.offset;
  }
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    for (const int32_t slot : model.arg_slots[b]) argv[static_cast<size_t>(slot)] = address[b];
  }
  int64_t spilled = 0;
  for (const om::Buffer& buffer : plan.buffers) {
    if (buffer.kind == om::BufferKind::kStore)
      spilled = std::max(spilled, buffer.offset + om::EvalSize(plan, buffer.bytes, {}));
  }
  if (spilled > 0) GE_TRY(store.Open(spilled));
  if (memory == nullptr) return {};
  if (model.work_bytes < 0)
    return Invalid("the work memory of a model with symbolic sizes is its Run's own");
  if (reinterpret_cast<uintptr_t>(memory) % 64 != 0)
    return Invalid("the work memory is not 64-byte aligned");
  GE_ASSIGN(const Shape shape, MakeShape(model, {}));
  work = static_cast<std::byte*>(memory);
  arena_base = work;
  scratch_base = work + shape.arena_bytes;
  return {};
}

Status Run::State::Execute(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (outputs.size() != plan.outputs.size()) {
    return Invalid(std::to_string(outputs.size()) + " outputs given, the model has " +
                   std::to_string(plan.outputs.size()));
  }
  GE_TRY(BindInputs(model, inputs, &wanted_symbols));
  bool changed = false;
  GE_TRY(UseShape(&changed));
  ResetLate();
  GE_TRY(PlaceIo(inputs, outputs, changed));
  std::fill(profile.begin(), profile.end(), 0);
  GE_TRY(RunTasks());
  GE_TRY(Finish(outputs));
  if (!plan.symbols.empty() && ++runs % kTrimRuns == 0) Trim();
  return {};
}

Result<std::unique_ptr<Run>> Run::Create(std::shared_ptr<const Model> model, void* work,
                                         ArenaSource source) {
  if (model == nullptr) return Invalid("no model");
  auto state = std::make_unique<State>(std::move(model));
  state->source = std::move(source);
  GE_TRY(state->Start(work));
  return std::make_unique<Run>(std::move(state));
}

Run::Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
Run::~Run() {
  if (state_ && state_->taken != nullptr) state_->source.give_back(state_->taken);
}

Result<std::vector<std::vector<int64_t>>> Run::OutputDims(std::span<const Tensor> inputs) {
  std::vector<int64_t> symbols;
  GE_TRY(BindInputs(state_->model, inputs, &symbols));
  std::vector<std::vector<int64_t>> all;
  for (const om::IoTensor& output : state_->plan.outputs) {
    auto& dims = all.emplace_back();
    for (const om::SizeRef dim : output.dims) {
      dims.push_back(std::max<int64_t>(-1, om::EvalSize(state_->plan, dim, symbols)));
    }
  }
  return all;
}

Status Run::Execute(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const FpState fp_state;
  Status status = state_->Execute(inputs, outputs);
  if (!status.ok()) state_->io.clear();  // what was placed is not to be relied upon
  return status;
}

RunStats Run::stats() const {
  RunStats stats;
  if (!state_->shapes.empty()) stats.arena_bytes = state_->shapes[0].arena_bytes;
  for (const Block& b : state_->blocks) stats.pool_bytes += b.bytes();
  stats.scratch_bytes = state_->scratch_stride * state_->model.pool->size();
  return stats;
}

void Run::EnableProfile(bool on) {
  state_->profiling = on;
  state_->profile.assign(on ? state_->plan.tasks.size() : 0, 0);
}

void Run::Watch(std::function<void(size_t task, bool done)> seen) {
  state_->watch = std::move(seen);
}

Tensor Run::Now(int32_t buffer) const {
  const auto b = static_cast<size_t>(buffer);
  const om::Buffer& record = state_->plan.buffers[b];
  Tensor now;
  now.dtype = record.dtype;
  if (record.kind == om::BufferKind::kSlot) return now;
  for (const om::SizeRef dim : record.dims)
    now.dims.push_back(state_->sizes[static_cast<size_t>(dim)]);
  now.bytes = state_->sizes[static_cast<size_t>(record.bytes)];
  if (now.bytes >= 0) now.data = state_->address[b];
  return now;
}

void Run::StartTrace(const std::string& path) {
  state_->trace = std::make_unique<Trace>(path, state_->plan, state_->model.pool->size());
}

const std::vector<int64_t>& Run::profile() const { return state_->profile; }

}  // namespace ge::rt
