// The loop over the plan's tasks. A launch on the steady path reads its step, its grid and its
// arguments, and calls the kernel; nothing is allocated.
#include "abi/dtype.h"
#include "rt/state.h"

namespace ge::rt {
namespace {

struct SharedLaunch {
  ge_kernel_fn fn;
  ge_kernel_call call;
  std::byte* scratch;
  int64_t stride;
  Trace* trace;
  size_t task;
  static void Run(void* context, int worker, int64_t begin, int64_t end) {
    const auto* launch = static_cast<const SharedLaunch*>(context);
    ge_kernel_call call = launch->call;
    call.scratch = launch->scratch + worker * launch->stride;
    const int64_t start = launch->trace != nullptr ? NowNs() : 0;
    launch->fn(&call, begin, end);
    if (launch->trace != nullptr)
      launch->trace->Add(worker, launch->task, end - begin, start, NowNs());
  }
};

}  // namespace

// Every size is known and every argument has memory.
bool Run::State::Ready(const Step& step, int64_t grid) const {
  bool ready = grid >= 0;
  for (uint32_t i = 0; i < step.arg_count; ++i) ready &= argv[step.args + i] != nullptr;
  for (uint32_t i = 0; i < step.size_count; ++i) ready &= sizev[step.sizes + i] != om::kNoSize;
  return ready;
}

Status Run::State::WhyNotReady(size_t t) const {
  const om::Task& task = plan.tasks[t];
  for (const int32_t b : task.args) {
    const om::Buffer& buffer = plan.buffers[static_cast<size_t>(b)];
    if (address[static_cast<size_t>(b)] == nullptr) {
      return Invalid("the size of " + buffer.name + " is negative, too large or not known");
    }
  }
  return Invalid("a size overflows, is negative or is not known");
}

void Run::State::Share(size_t task, int64_t grid) {
  SharedLaunch launch{model.steps[task].fn, calls[task], scratch_base,
                      scratch_stride,       trace.get(), task};
  model.pool->Run(SharedLaunch::Run, &launch, grid);
}

Result<int64_t> Run::State::IntegerAt(int32_t buffer, int64_t element) const {
  const auto b = static_cast<size_t>(buffer);
  const auto type = static_cast<DType>(plan.buffers[b].dtype);
  const int64_t width = BitWidth(type) / 8,
                bytes = sizes[static_cast<size_t>(plan.buffers[b].bytes)];
  const auto* data = static_cast<const std::byte*>(address[b]);
  if (data == nullptr || element >= bytes / width)
    return Invalid("reads a value that is not there");
  data += element * width;
  switch (type) {
    case DType::kBool:
    case DType::kU8: return static_cast<int64_t>(*data);
    case DType::kI8: return *reinterpret_cast<const int8_t*>(data);
    case DType::kI16: return *reinterpret_cast<const int16_t*>(data);
    case DType::kU16: return *reinterpret_cast<const uint16_t*>(data);
    case DType::kI32: return *reinterpret_cast<const int32_t*>(data);
    case DType::kU32: return *reinterpret_cast<const uint32_t*>(data);
    case DType::kI64: return *reinterpret_cast<const int64_t*>(data);
    case DType::kU64: return static_cast<int64_t>(*reinterpret_cast<const uint64_t*>(data));
    default: return Invalid("reads a value that is no integer");
  }
}

Status Run::State::RunBind(size_t t) {
  const om::Task& task = plan.tasks[t];
  int64_t value = om::kNoSize;
  if (task.args.empty()) {
    value = sizes[static_cast<size_t>(task.sizes[0])];
    if (value == om::kNoSize) return Invalid("a size overflows or is not known");
  } else {
    GE_ASSIGN(value, IntegerAt(task.args[0], task.element));
  }
  GE_TRY(Bind(task.binds[0], value));
  return RunChecks(model.checks_at[t]);
}

// Between a value in the arena and its place in the backing store.
Status Run::State::RunMove(size_t t) {
  const om::Task& task = plan.tasks[t];
  const bool spill = task.kind == om::TaskKind::kSpill;
  const auto value = static_cast<size_t>(spill ? task.args[0] : task.outs[0]),
             place = static_cast<size_t>(spill ? task.outs[0] : task.args[0]);
  auto* data = static_cast<std::byte*>(address[value]);
  if (data == nullptr) return Invalid("the value " + plan.buffers[value].name + " has no memory");
  const int64_t offset = plan.buffers[place].offset,
                bytes = sizes[static_cast<size_t>(plan.buffers[place].bytes)];
  return spill ? store.Write(offset, data, bytes) : store.Read(offset, data, bytes);
}

// Anything but a launch.
Status Run::State::RunOther(size_t task, size_t* next) {
  const Step& step = model.steps[task];
  switch (step.kind) {
    case om::TaskKind::kHost: return RunHost(task);
    case om::TaskKind::kBind: return RunBind(task);
    case om::TaskKind::kSpill:
    case om::TaskKind::kFetch: return RunMove(task);
    case om::TaskKind::kJumpUnless: {
      GE_ASSIGN(const int64_t condition, IntegerAt(plan.tasks[task].args[0], 0));
      if (condition == 0) *next = static_cast<size_t>(step.target);
      return {};
    }
    default: *next = static_cast<size_t>(step.target); return {};
  }
}

Status Run::State::RunTasks() {
  const bool one_worker = model.pool->size() == 1, timed = profiling || trace != nullptr;
  const size_t count = model.steps.size();
  for (size_t task = 0, next = 0; task < count; task = next) {
    const Step& step = model.steps[task];
    next = task + 1;
    if (step.section >= 0 && !watch) {
      const LaneSection& section = model.sections[static_cast<size_t>(step.section)];
      GE_TRY(RunLanes(section));
      next = static_cast<size_t>(section.end);
      continue;
    }
    if (watch) watch(task, false);
    const int64_t start = timed ? NowNs() : 0;
    bool shared = false;
    if (step.kind == om::TaskKind::kLaunch) {
      const int64_t grid = sizes[static_cast<size_t>(step.grid)];
      if (!Ready(step, grid)) return WhyNotReady(task).In("task " + plan.tasks[task].name);
      if (step.scratch >= 0 && sizes[static_cast<size_t>(step.scratch)] > scratch_stride) {
        GE_TRY(GrowScratch((sizes[static_cast<size_t>(step.scratch)] + 127) / 128 * 128));
      }
      if (one_worker || step.alone || grid <= 1) {
        if (grid > 0) step.fn(&calls[task], 0, grid);
      } else {
        shared = true;
        Share(task, grid);
      }
    } else if (Status status = RunOther(task, &next); !status.ok()) {
      return std::move(status).In("task " + plan.tasks[task].name);
    }
    if (watch) watch(task, true);
    if (!timed) continue;
    const int64_t end = NowNs();
    if (profiling) profile[task] += end - start;
    if (trace != nullptr && !shared) {
      const bool launch = step.kind == om::TaskKind::kLaunch;
      trace->Add(0, task, launch ? sizes[static_cast<size_t>(step.grid)] : 1, start, end);
    }
  }
  return {};
}

}  // namespace ge::rt
