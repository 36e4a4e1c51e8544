// CheckPlan: everything that the runtime takes for granted about a plan. Afterwards no index,
// target or size code of it can lead outside its tables, and constants and planned buffers lie
// inside their memory. (Lifetimes and overlaps are the compiler's to prove, in plan/validate.)
#include "abi/dtype.h"
#include "om/file.h"
#include "om/lanes.h"
#include "om/size.h"

namespace ge::om {
namespace {

constexpr int64_t kAlignment = 64;  // of constants and planned buffers
constexpr int64_t kMostStore = int64_t{1} << 46;
constexpr size_t kMaxRecords = std::numeric_limits<int32_t>::max();

class PlanCheck {
 public:
  PlanCheck(const Plan& plan, int64_t weight_bytes, int64_t code_kernels)
      : plan_(plan), weight_bytes_(weight_bytes), code_kernels_(code_kernels) {}
  Status Run();

 private:
  Status Fault(std::string what) const { return Error(Code::kDataLoss, where_ + ": " + what); }
  template <class T, class One>
  Status Each(const char* kind, const std::vector<T>& records, One one);

  Status CheckSizes();
  Status CheckSymbol(const Symbol& symbol);
  Status CheckBuffer(const Buffer& buffer, int64_t self);
  Status CheckMemory(const Buffer& buffer);
  Status CheckAlias(const Buffer& buffer, int64_t self);
  Status CheckTask(const Task& task);
  Status CheckLane(const Task& task, int64_t index);
  Status CheckLaunch(const Task& task);
  Status CheckHost(const Task& task);
  Status CheckBind(const Task& task);
  Status CheckJump(const Task& task);
  Status CheckStore(const Task& task);
  Status CheckIo(const IoTensor& io, const char* kind, int64_t index);

  bool Holds(SizeRef size) const {
    return size >= 0 && static_cast<size_t>(size) < plan_.sizes.size();
  }
  bool HoldsOrNone(SizeRef size) const { return size == -1 || Holds(size); }
  bool HoldsAll(const std::vector<SizeRef>& sizes) const {
    for (const SizeRef s : sizes) {
      if (!Holds(s)) return false;
    }
    return true;
  }
  bool IsBuffer(int32_t b) const { return b >= 0 && static_cast<size_t>(b) < plan_.buffers.size(); }
  bool IsSymbol(int32_t s) const { return s >= 0 && static_cast<size_t>(s) < plan_.symbols.size(); }
  bool IsLate(int32_t s) const { return plan_.symbols[static_cast<size_t>(s)].input == -1; }
  const Buffer& BufferOf(int32_t b) const { return plan_.buffers[static_cast<size_t>(b)]; }
  const Buffer& Root(int32_t b) const {
    const Buffer& buffer = BufferOf(b);
    return buffer.alias >= 0 ? BufferOf(buffer.alias) : buffer;
  }
  bool IsInteger(int32_t b) const;
  // The value, if no symbol is in it; else kNoSize.
  int64_t Constant(SizeRef size) const;
  bool DependsOnLate(SizeRef size) const;

  const Plan& plan_;
  int64_t weight_bytes_, code_kernels_;
  std::string where_;
};

bool PlanCheck::IsInteger(int32_t b) const {
  const auto type = static_cast<DType>(BufferOf(b).dtype);
  const BufferKind kind = BufferOf(b).kind;
  return kind != BufferKind::kSlot && kind != BufferKind::kStore && BitWidth(type) >= 8 &&
         (type == DType::kBool || ge::IsInteger(type));
}

int64_t PlanCheck::Constant(SizeRef size) const {
  const auto code = CodeOf(plan_, size);
  for (const SizeCode& c : code) {
    if (c.op == SizeOp::kSymbol) return kNoSize;
  }
  return EvalSizeCode(code, {});
}

bool PlanCheck::DependsOnLate(SizeRef size) const {
  for (const SizeCode& c : CodeOf(plan_, size)) {
    if (c.op == SizeOp::kSymbol && IsLate(static_cast<int32_t>(c.value))) return true;
  }
  return false;
}

template <class T, class One>
Status PlanCheck::Each(const char* kind, const std::vector<T>& records, One one) {
  if (records.size() > kMaxRecords)
    return Error(Code::kDataLoss, std::string("too many ") + kind + "s");
  for (size_t i = 0; i < records.size(); ++i) {
    where_ = std::string("plan: ") + kind + " " + std::to_string(i);
    GE_TRY(one(records[i], static_cast<int64_t>(i)));
  }
  return {};
}

// Sizes may not share code: then checking is linear in the plan.
Status PlanCheck::CheckSizes() {
  size_t total = 0;
  return Each("size", plan_.sizes, [&](const SizeExpr& size, int64_t) -> Status {
    if (size.begin > size.end || size.end > plan_.size_code.size())
      return Fault("code out of range");
    total += size.end - size.begin;
    if (total > plan_.size_code.size()) return Fault("sizes share code");
    const auto code = std::span(plan_.size_code).subspan(size.begin, size.end - size.begin);
    if (!SizeCodeIsSound(code, static_cast<int64_t>(plan_.symbols.size())))
      return Fault("bad code");
    return {};
  });
}

Status PlanCheck::CheckSymbol(const Symbol& symbol) {
  if (symbol.lo > symbol.hi) return Fault("empty range");
  if (symbol.multiple_of < 1) return Fault("bad multiple");
  if (symbol.input == -1) return {};
  if (symbol.input < 0 || static_cast<size_t>(symbol.input) >= plan_.inputs.size())
    return Fault("bad input");
  const IoTensor& io = plan_.inputs[static_cast<size_t>(symbol.input)];
  if (symbol.dim < 0 || static_cast<size_t>(symbol.dim) >= io.dims.size()) return Fault("bad dim");
  const SizeRef dim = io.dims[static_cast<size_t>(symbol.dim)];
  if (!Holds(dim)) return Fault("bad dim");
  const auto code = CodeOf(plan_, dim);
  if (code.size() != 1 || code[0].op != SizeOp::kSymbol ||
      &plan_.symbols[static_cast<size_t>(code[0].value)] != &symbol) {
    return Fault("is bound by a dim that is another size");
  }
  return {};
}

Status PlanCheck::CheckBuffer(const Buffer& buffer, int64_t self) {
  if (buffer.kind > BufferKind::kStore) return Fault("bad kind");
  if (buffer.dtype > static_cast<uint8_t>(DType::kI2)) return Fault("bad element type");
  if (!HoldsAll(buffer.dims) || !HoldsOrNone(buffer.bytes) || !HoldsOrNone(buffer.alias_offset)) {
    return Fault("bad size");
  }
  const bool slot = buffer.kind == BufferKind::kSlot;
  if (!slot && buffer.bytes == -1) return Fault("no byte count");
  if (!slot && Constant(buffer.bytes) != kNoSize && Constant(buffer.bytes) < 0)
    return Fault("negative size");
  if (buffer.alias != -1) return CheckAlias(buffer, self);
  return CheckMemory(buffer);
}

Status PlanCheck::CheckAlias(const Buffer& buffer, int64_t self) {
  if (!IsBuffer(buffer.alias) || buffer.alias == self) return Fault("bad alias");
  const Buffer& root = BufferOf(buffer.alias);
  if (root.alias != -1) return Fault("alias of an alias");
  for (const BufferKind kind : {root.kind, buffer.kind}) {
    if (kind == BufferKind::kSlot || kind == BufferKind::kStore)
      return Fault("alias of a slot or of backing store");
  }
  if (!Holds(root.bytes)) return Fault("alias of a bad buffer");
  const int64_t offset = buffer.alias_offset == -1 ? 0 : Constant(buffer.alias_offset);
  const int64_t bytes = Constant(buffer.bytes), room = Constant(root.bytes);
  if (offset == kNoSize || bytes == kNoSize || room == kNoSize) return {};
  if (offset < 0 || offset > room || bytes > room - offset)
    return Fault("leaves the buffer it shares");
  return {};
}

Status PlanCheck::CheckMemory(const Buffer& buffer) {
  const auto index = static_cast<size_t>(buffer.index);
  switch (buffer.kind) {
    case BufferKind::kInput:
      return buffer.index >= 0 && index < plan_.inputs.size() ? Status()
                                                              : Fault("bad input number");
    case BufferKind::kOutput:
      return buffer.index >= 0 && index < plan_.outputs.size() ? Status()
                                                               : Fault("bad output number");
    case BufferKind::kSlot:
      return buffer.index >= 0 && buffer.index < plan_.slots ? Status() : Fault("bad slot number");
    case BufferKind::kPool: return {};
    case BufferKind::kStore: {
      const int64_t bytes = Constant(buffer.bytes);
      if (bytes == kNoSize) return Fault("backing store of unknown size");
      const bool sound = buffer.offset >= 0 && buffer.offset <= kMostStore;
      return sound && bytes <= kMostStore - buffer.offset ? Status() : Fault("bad offset");
    }
    case BufferKind::kConst: {
      const int64_t bytes = Constant(buffer.bytes);
      if (bytes == kNoSize) return Fault("constant of unknown size");
      if (buffer.offset < 0 || buffer.offset % kAlignment != 0) return Fault("bad offset");
      const bool fits = buffer.offset <= weight_bytes_ && bytes <= weight_bytes_ - buffer.offset;
      return fits ? Status() : Fault("lies outside the weights");
    }
    case BufferKind::kArena: break;
  }
  if (DependsOnLate(buffer.bytes)) return Fault("arena buffer whose size is bound late");
  if (buffer.first == -1 && buffer.last == -1) return {};  // nothing uses it: it gets no memory
  const auto tasks = static_cast<int64_t>(plan_.tasks.size());
  if (buffer.first < 0 || buffer.last < buffer.first || buffer.last >= tasks)
    return Fault("bad lifetime");
  if (buffer.offset < -1 || buffer.offset % kAlignment > 0) return Fault("bad offset");
  if (plan_.arena_bytes == -1) return {};
  const int64_t bytes = Constant(buffer.bytes);
  if (buffer.offset == -1 || bytes == kNoSize) return Fault("is not placed in a planned arena");
  const bool fits =
      buffer.offset <= plan_.arena_bytes && bytes <= plan_.arena_bytes - buffer.offset;
  return fits ? Status() : Fault("lies outside the arena");
}

Status PlanCheck::CheckLaunch(const Task& task) {
  if (task.kernel < 0 || static_cast<size_t>(task.kernel) >= plan_.kernels.size())
    return Fault("bad kernel");
  for (const int32_t b : task.args) {
    if (!IsBuffer(b)) return Fault("bad argument");
    if (BufferOf(b).kind == BufferKind::kSlot) return Fault("a kernel cannot use a slot");
    if (BufferOf(b).kind == BufferKind::kStore) return Fault("a kernel cannot use backing store");
  }
  if (!Holds(task.grid)) return Fault("bad grid");
  return {};
}

Status PlanCheck::CheckHost(const Task& task) {
  if (task.host.empty()) return Fault("no host kernel");
  for (const int32_t b : task.args) {
    if (b != -1 && !IsBuffer(b)) return Fault("bad input");
    if (b != -1 && BufferOf(b).kind == BufferKind::kStore)
      return Fault("a host kernel cannot use backing store");
  }
  for (const int32_t b : task.outs) {
    if (b == -1) continue;
    if (!IsBuffer(b)) return Fault("bad output");
    const BufferKind kind = Root(b).kind;
    if (kind == BufferKind::kInput || kind == BufferKind::kConst)
      return Fault("writes what is only read");
    if (kind == BufferKind::kStore) return Fault("a host kernel cannot use backing store");
  }
  return {};
}

Status PlanCheck::CheckBind(const Task& task) {
  if (task.binds.size() != 1) return Fault("binds not one symbol");
  if (task.args.empty()) return task.sizes.size() == 1 ? Status() : Fault("no value");
  if (task.args.size() != 1 || !IsBuffer(task.args[0]) || !IsInteger(task.args[0]))
    return Fault("bad argument");
  const int64_t bytes = Constant(BufferOf(task.args[0]).bytes);
  const int64_t width = BitWidth(static_cast<DType>(BufferOf(task.args[0]).dtype)) / 8;
  if (task.element < 0 || (bytes != kNoSize && task.element >= bytes / width))
    return Fault("bad element");
  return {};
}

Status PlanCheck::CheckJump(const Task& task) {
  if (task.target < 0 || static_cast<size_t>(task.target) > plan_.tasks.size())
    return Fault("bad target");
  if (task.kind == TaskKind::kJump) return {};
  if (task.args.size() != 1 || !IsBuffer(task.args[0]) || !IsInteger(task.args[0]))
    return Fault("bad condition");
  return {};
}

// A whole value of known size, from the arena to its place in the backing store, or back.
Status PlanCheck::CheckStore(const Task& task) {
  if (task.args.size() != 1 || task.outs.size() != 1 || !IsBuffer(task.args[0]) ||
      !IsBuffer(task.outs[0]))
    return Fault("bad argument");
  const bool spill = task.kind == TaskKind::kSpill;
  const int32_t value = spill ? task.args[0] : task.outs[0],
                place = spill ? task.outs[0] : task.args[0];
  if (Root(value).kind != BufferKind::kArena || BufferOf(place).kind != BufferKind::kStore)
    return Fault("moves no value between arena and backing store");
  const int64_t bytes = Constant(BufferOf(value).bytes);
  if (bytes == kNoSize || bytes != Constant(BufferOf(place).bytes))
    return Fault("its place in the backing store has another size");
  return {};
}

// What a task waits for stands before it: some order of the tasks is always possible.
Status PlanCheck::CheckLane(const Task& task, int64_t index) {
  const bool free = task.kind == TaskKind::kLaunch;
  if (task.lane < -1 || task.lane >= kMostLanes || (task.lane >= 0 && !free))
    return Fault("bad lane");
  for (const int32_t w : task.waits) {
    if (task.lane < 0 || w < 0 || w >= index || plan_.tasks[static_cast<size_t>(w)].lane < 0)
      return Fault("waits for a bad task");
  }
  return {};
}

Status PlanCheck::CheckTask(const Task& task) {
  if (task.kind > TaskKind::kFetch) return Fault("bad kind");
  if (!HoldsAll(task.sizes) || !HoldsOrNone(task.grid) || !HoldsOrNone(task.scratch))
    return Fault("bad size");
  for (const int32_t s : task.binds) {
    if (!IsSymbol(s) || !IsLate(s)) return Fault("binds a bad symbol");
  }
  switch (task.kind) {
    case TaskKind::kLaunch: return CheckLaunch(task);
    case TaskKind::kHost: return CheckHost(task);
    case TaskKind::kBind: return CheckBind(task);
    case TaskKind::kSpill:
    case TaskKind::kFetch: return CheckStore(task);
    default: return CheckJump(task);
  }
}

Status PlanCheck::CheckIo(const IoTensor& io, const char* kind, int64_t index) {
  if (!HoldsAll(io.dims)) return Fault("bad dims");
  if (!IsBuffer(io.buffer)) return Fault("bad buffer");
  const Buffer& buffer = BufferOf(io.buffer);
  if (buffer.dtype != io.dtype) return Fault("its buffer has another element type");
  if (buffer.kind == BufferKind::kStore) return Fault("its buffer is backing store");
  if (kind[0] == 'o') return {};
  for (const SizeRef dim : io.dims) {
    if (DependsOnLate(dim)) return Fault("an input dim that is bound late");
  }
  const bool mine = (buffer.kind == BufferKind::kInput && buffer.index == index) ||
                    buffer.kind == BufferKind::kSlot;
  return mine && buffer.alias == -1 ? Status() : Fault("is not its buffer's input");
}

Status PlanCheck::Run() {
  where_ = "plan";
  if (plan_.arena_bytes < -1) return Fault("negative arena");
  if (plan_.slots < 0 || static_cast<size_t>(plan_.slots) > plan_.buffers.size() + 1)
    return Fault("bad slots");
  GE_TRY(CheckSizes());
  GE_TRY(Each("symbol", plan_.symbols, [&](const Symbol& s, int64_t) { return CheckSymbol(s); }));
  GE_TRY(Each("check", plan_.checks, [&](const Check& c, int64_t) {
    return Holds(c.condition) ? Status() : Fault("bad condition");
  }));
  // Byte counts first: aliases and tasks look at other buffers'.
  GE_TRY(Each("buffer", plan_.buffers, [&](const Buffer& b, int64_t) {
    return HoldsOrNone(b.bytes) && (b.bytes != -1 || b.kind == BufferKind::kSlot)
               ? Status()
               : Fault("bad size");
  }));
  GE_TRY(
      Each("buffer", plan_.buffers, [&](const Buffer& b, int64_t i) { return CheckBuffer(b, i); }));
  GE_TRY(Each("kernel", plan_.kernels, [&](const Kernel& k, int64_t i) {
    const bool native = code_kernels_ == -1 || i < code_kernels_;
    return native || !k.text.empty() ? Status() : Fault("has no code");
  }));
  GE_TRY(Each("task", plan_.tasks, [&](const Task& t, int64_t i) {
    GE_TRY(CheckTask(t).In(t.name));
    GE_TRY(CheckLane(t, i).In(t.name));
    return static_cast<size_t>(i) < kMaxRecords ? Status() : Fault("too many tasks");
  }));
  GE_TRY(Each("input", plan_.inputs,
              [&](const IoTensor& io, int64_t i) { return CheckIo(io, "input", i); }));
  return Each("output", plan_.outputs,
              [&](const IoTensor& io, int64_t i) { return CheckIo(io, "output", i); });
}

}  // namespace

Status CheckPlan(const Plan& plan, int64_t weight_bytes, int64_t code_kernels) {
  return PlanCheck(plan, weight_bytes, code_kernels).Run();
}

}  // namespace ge::om
