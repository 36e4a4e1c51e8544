// Host tasks: arguments gathered into HostTensors, memory of outputs whose size the kernel finds
// out, and symbols bound from the sizes that it returns.
#include <algorithm>

#include "rt/state.h"

namespace ge::rt {
namespace {

// For outputs that the kernel sizes. Null if there is no memory.
void* Allocate(void* context, int64_t bytes) {
  const auto* growing = static_cast<const Run::State::Growing*>(context);
  if (bytes < 0 || !growing->run->Provide(growing->buffer, bytes).ok()) return nullptr;
  return growing->run->address[static_cast<size_t>(growing->buffer)];
}

// A dim that is not known yet: its symbol's upper bound.
int64_t UpperBound(const om::Plan& plan, om::SizeRef dim) {
  const auto code = om::CodeOf(plan, dim);
  const bool symbol = code.size() == 1 && code[0].op == om::SizeOp::kSymbol;
  return symbol ? plan.symbols[static_cast<size_t>(code[0].value)].hi : -1;
}

}  // namespace

// True if the task itself binds a symbol of the size: what is known now is of an earlier round.
bool Run::State::SizeComesFrom(const om::Task& task, om::SizeRef size) const {
  for (const om::SizeCode& c : om::CodeOf(plan, size)) {
    const bool bound_here =
        std::find(task.binds.begin(), task.binds.end(), c.value) != task.binds.end();
    if (c.op == om::SizeOp::kSymbol && bound_here) return true;
  }
  return false;
}

void Run::State::GatherHost(const om::Task& task) {
  host_inputs.clear();
  host_outputs.clear();
  host_growing.clear();
  host_dims.clear();
  // All dims first: spans into the vector must not move.
  for (const auto* list : {&task.args, &task.outs}) {
    for (const int32_t b : *list) {
      if (b < 0) continue;
      for (const om::SizeRef dim : plan.buffers[static_cast<size_t>(b)].dims) {
        const int64_t value = sizes[static_cast<size_t>(dim)];
        const bool known =
            value != om::kNoSize && !(list == &task.outs && SizeComesFrom(task, dim));
        host_dims.push_back(known ? value : UpperBound(plan, dim));
      }
    }
  }
  host_growing.reserve(task.outs.size());
  size_t at = 0;
  const auto take_dims = [&](const om::Buffer& b) {
    const std::span<const int64_t> dims = std::span(host_dims).subspan(at, b.dims.size());
    at += b.dims.size();
    return dims;
  };
  for (const int32_t b : task.args) {
    HostTensor& tensor = host_inputs.emplace_back();
    if (b < 0) continue;
    const om::Buffer& buffer = plan.buffers[static_cast<size_t>(b)];
    tensor.dtype = buffer.dtype;
    tensor.dims = take_dims(buffer);
    tensor.data = address[static_cast<size_t>(b)];
    if (buffer.kind == om::BufferKind::kSlot)
      tensor.object = &slots[static_cast<size_t>(buffer.index)];
  }
  for (const int32_t b : task.outs) {
    HostOutput& out = host_outputs.emplace_back();
    if (b < 0) continue;
    const om::Buffer& buffer = plan.buffers[static_cast<size_t>(b)];
    out.dtype = buffer.dtype;
    out.dims = take_dims(buffer);
    if (buffer.kind == om::BufferKind::kSlot) {
      out.object = &slots[static_cast<size_t>(buffer.index)];
      continue;
    }
    const int64_t bytes = sizes[static_cast<size_t>(buffer.bytes)];
    const bool grows = buffer.alias < 0 && model.is_late[static_cast<size_t>(buffer.bytes)] != 0 &&
                       (bytes == om::kNoSize || SizeComesFrom(task, buffer.bytes));
    if (grows) {
      host_growing.push_back({this, b});
      out.allocate = Allocate;
      out.context = &host_growing.back();
    } else {
      out.data = address[static_cast<size_t>(b)];
      out.bytes = std::max<int64_t>(bytes, 0);
    }
  }
}

Status Run::State::RunHost(size_t t) {
  const om::Task& task = plan.tasks[t];
  for (const int32_t b : task.args) {
    if (b < 0 || plan.buffers[static_cast<size_t>(b)].kind == om::BufferKind::kSlot) continue;
    if (address[static_cast<size_t>(b)] == nullptr) return WhyNotReady(t);
  }
  GatherHost(task);
  host_values.clear();
  for (const om::SizeRef size : task.sizes) {
    host_values.push_back(sizes[static_cast<size_t>(size)]);
    if (host_values.back() == om::kNoSize) return WhyNotReady(t);
  }
  host_results.clear();
  HostCall call{*model.hosts[t].attrs, host_inputs, host_outputs, host_results, host_values};
  GE_TRY(model.hosts[t].fn(call));
  if (host_results.size() < task.binds.size()) {
    return Error(Code::kInternal, task.host + " gave " + std::to_string(host_results.size()) +
                                      " sizes, " + std::to_string(task.binds.size()) +
                                      " are needed");
  }
  for (size_t i = 0; i < task.binds.size(); ++i) GE_TRY(Bind(task.binds[i], host_results[i]));
  return RunChecks(model.checks_at[t]);
}

}  // namespace ge::rt
