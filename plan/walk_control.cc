// If, Loop and Scan as jumps in the one task list.
//
//   If       jump-unless cond else; <then>; jump end; else: <else>; end:
//   Loop     counter = 0; keep = ...; head: jump-unless keep end; <body>; keep = ...; jump head; end:
//
// Values that a loop carries live in buffers of their own: the body reads them, and at its end the new values are
// copied over (through slots if one of them moves or changes its size, so that no copy overwrites what
// another still reads).

#include <algorithm>

#include "fmt/format.h"
#include "ir/host_attrs.h"
#include "ir/opdef.h"
#include "plan/walk.h"

namespace ge {
namespace {

bool SameType(const Value& a, const Value& b) {
  return a.kind == b.kind && a.type.dtype == b.type.dtype && a.type.dims == b.type.dims && a.type.layout == b.type.layout;
}

std::string AxisAttrs(int64_t axis, bool reverse) {
  Node holder;
  holder.attrs["axis"] = axis;
  holder.attrs["reverse"] = static_cast<int64_t>(reverse);
  return EncodeHostAttrs(holder);
}

int64_t At(const std::vector<int64_t>& v, size_t i) { return i < v.size() ? v[i] : 0; }

}  // namespace

Status PlanWalk::AddControl(const Graph& g, const Node& n) {
  Materialise(g, n.inputs);
  for (ValueId v : n.outputs)
    if (v != kNone) written_[{&g, v}] = true;
  if (n.op->name == "If") return AddIf(g, n);
  if (n.op->name == "Loop") return AddLoop(g, n);
  if (n.op->name == "Scan") return AddScan(g, n);
  return Error(Code::kInternal, fmt::format("no plan for the control operator {}", n.op->name));
}

// Fresh symbols of the outer value's dims take the branch's sizes; then the bytes are copied, unless the branch
// wrote straight into the outer buffer.
void PlanWalk::Deliver(const Graph& sub, const Graph& g, const Node& n, size_t first_output) {
  std::vector<Expr> symbols, sizes;
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    if (n.outputs[o] == kNone) continue;
    const auto& outer = g.value(n.outputs[o]).type.dims;
    const auto& inner = sub.value(sub.outputs[first_output + o]).type.dims;
    for (size_t d = 0; d < outer.size() && d < inner.size(); ++d) {
      if (!outer[d].IsSymbol() || outer[d] == inner[d]) continue;
      if (std::find(symbols.begin(), symbols.end(), outer[d]) != symbols.end()) continue;
      symbols.push_back(outer[d]);
      sizes.push_back(inner[d]);
    }
  }
  b_.AddBinds(n.name, symbols, sizes);
  Materialise(sub, sub.outputs);
  for (size_t o = 0; o < n.outputs.size(); ++o)
    if (n.outputs[o] != kNone)
      Copy(n.name, BufferOf(sub, sub.outputs[first_output + o]), BufferOf(g, n.outputs[o]));
}

Status PlanWalk::AddIf(const Graph& g, const Node& n) {
  const int32_t condition = BufferOf(g, n.inputs[0]);
  om::Plan& plan = b_.plan();
  const int32_t jump_else = b_.NextTask();
  b_.AddTask(om::TaskKind::kJumpUnless, n.name).args = {condition};
  int32_t jump_end = -1;
  for (int k = 0; k < 2; ++k) {
    const Graph& sub = *n.subgraphs[k];
    for (size_t i = 0; i < sub.inputs.size(); ++i) {
      SetBuffer(sub, sub.inputs[i], BufferOf(g, n.inputs[i + 1]));
      written_[{&sub, sub.inputs[i]}] = true;
    }
    std::vector<bool> used(sub.values.size(), false);
    for (size_t o = 0; o < n.outputs.size(); ++o) {
      const ValueId inner = sub.outputs[o];
      if (n.outputs[o] == kNone) continue;
      const Value& v = sub.value(inner);
      const bool own = v.producer != kNone && v.constant == kNone && !v.elems && !used[inner] && !HasBuffer(sub, inner);
      used[inner] = true;
      if (own && SameType(v, g.value(n.outputs[o]))) SetBuffer(sub, inner, BufferOf(g, n.outputs[o]));
    }
    GE_TRY(Walk(sub).In(k ? "else_branch" : "then_branch"));
    Deliver(sub, g, n, 0);
    if (k == 0) {
      jump_end = b_.NextTask();
      b_.AddTask(om::TaskKind::kJump, n.name);
      plan.tasks[jump_else].target = b_.NextTask();
    }
  }
  plan.tasks[jump_end].target = b_.NextTask();
  return {};
}

struct PlanWalk::LoopState {
  std::string name;
  size_t carried = 0, node_first = 0, body_in = 0, body_out = 0;  // of the carried values
  int32_t counter = -1, keep = -1, limit = -1, head = -1;
};

void PlanWalk::StartCarried(const Graph& g, const Node& n, const Graph& body, LoopState& s) {
  std::vector<Expr> symbols, sizes;
  for (size_t i = 0; i < s.carried; ++i) {
    const auto& inside = body.value(body.inputs[s.body_in + i]).type.dims;
    const auto& before = g.value(n.inputs[s.node_first + i]).type.dims;
    for (size_t d = 0; d < inside.size() && d < before.size(); ++d)
      if (inside[d] != before[d] && inside[d].IsSymbol()) {
        symbols.push_back(inside[d]);
        sizes.push_back(before[d]);
      }
  }
  b_.AddBinds(n.name, symbols, sizes);
  for (size_t i = 0; i < s.carried; ++i) {
    const ValueId inner = body.inputs[s.body_in + i];
    const int32_t state = b_.AddBuffer(om::BufferKind::kArena, body.value(inner));
    SetBuffer(body, inner, state);
    written_[{&body, inner}] = true;
    Copy(n.name, BufferOf(g, n.inputs[s.node_first + i]), state);
  }
}

void PlanWalk::NextCarried(const Graph& body, LoopState& s) {
  std::vector<Expr> symbols, sizes;
  bool moves = false;
  std::vector<int32_t> from(s.carried), to(s.carried);
  for (size_t i = 0; i < s.carried; ++i) {
    const Value& in = body.value(body.inputs[s.body_in + i]);
    const Value& out = body.value(body.outputs[s.body_out + i]);
    for (size_t d = 0; d < in.type.dims.size() && d < out.type.dims.size(); ++d)
      if (in.type.dims[d] != out.type.dims[d] && in.type.dims[d].IsSymbol()) {
        symbols.push_back(in.type.dims[d]);
        sizes.push_back(out.type.dims[d]);
      }
    from[i] = BufferOf(body, body.outputs[s.body_out + i]);
    to[i] = BufferOf(body, body.inputs[s.body_in + i]);
  }
  auto root = [&](int32_t b) {
    const int32_t alias = b_.plan().buffers[b].alias;
    return alias >= 0 ? alias : b;
  };
  for (size_t i = 0; i < s.carried; ++i)
    for (size_t k = 0; k < s.carried; ++k) moves |= i != k && root(from[i]) == to[k];
  if (symbols.empty() && !moves) {
    for (size_t i = 0; i < s.carried; ++i) Copy(s.name, from[i], to[i]);
    return;
  }
  std::vector<int32_t> slots;
  for (size_t i = 0; i < s.carried; ++i) {
    slots.push_back(b_.AddSlot(s.name, body.value(body.inputs[s.body_in + i]).type.dtype));
    b_.AddHost("ToObject", s.name, {from[i]}, {slots[i]});
  }
  b_.AddBinds(s.name, symbols, sizes);
  for (size_t i = 0; i < s.carried; ++i) b_.AddHost("FromObject", s.name, {slots[i]}, {to[i]});
}

void PlanWalk::FinishCarried(const Graph& g, const Node& n, const Graph& body, LoopState& s) {
  std::vector<Expr> symbols, sizes;
  for (size_t i = 0; i < s.carried && i < n.outputs.size(); ++i) {
    if (n.outputs[i] == kNone) continue;
    const auto& after = g.value(n.outputs[i]).type.dims;
    const auto& inside = body.value(body.inputs[s.body_in + i]).type.dims;
    for (size_t d = 0; d < after.size() && d < inside.size(); ++d)
      if (after[d] != inside[d] && after[d].IsSymbol()) {
        symbols.push_back(after[d]);
        sizes.push_back(inside[d]);
      }
  }
  b_.AddBinds(n.name, symbols, sizes);
  for (size_t i = 0; i < s.carried && i < n.outputs.size(); ++i)
    if (n.outputs[i] != kNone) Copy(n.name, BufferOf(body, body.inputs[s.body_in + i]), BufferOf(g, n.outputs[i]));
}

Status PlanWalk::AddLoop(const Graph& g, const Node& n) {
  const Graph& body = *n.subgraphs[0];
  const size_t captures = static_cast<size_t>(AttrOr<int64_t>(n, "captures", 0));
  LoopState s;
  s.name = n.name;
  s.carried = n.inputs.size() - 2 - captures;
  s.node_first = 2;
  s.body_in = 2;
  s.body_out = 1;
  s.counter = b_.AddScalar(n.name + ".i", DType::kI64);
  s.keep = b_.AddScalar(n.name + ".keep", DType::kBool);
  s.limit = BufferOf(g, n.inputs[0]);
  const int32_t condition = BufferOf(g, n.inputs[1]);
  b_.AddHost("LoopStart", n.name, {s.limit, condition}, {s.counter, s.keep});
  StartCarried(g, n, body, s);
  // Scanned results: in place where the trip count is known, else collected in slots.
  const size_t scans = n.outputs.size() > s.carried ? n.outputs.size() - s.carried : 0;
  std::vector<int32_t> slots(scans, -1);
  for (size_t k = 0; k < scans; ++k) {
    const ValueId out = n.outputs[s.carried + k];
    if (out == kNone) continue;
    const Value& v = g.value(out);
    std::vector<Expr> dims = v.type.dims;
    const bool slot = v.kind != ValueKind::kTensor || v.type.dtype == DType::kString || !b_.Unbound(dims).empty();
    if (!slot) continue;
    slots[k] = b_.AddSlot(n.name + ".scan", v.type.dtype);
    b_.AddHost("ScanStart", n.name, {}, {slots[k]});
  }
  SetBuffer(body, body.inputs[0], s.counter);
  SetBuffer(body, body.inputs[1], s.keep);
  written_[{&body, body.inputs[0]}] = written_[{&body, body.inputs[1]}] = true;
  for (size_t i = 2 + s.carried; i < n.inputs.size(); ++i) {
    SetBuffer(body, body.inputs[i], BufferOf(g, n.inputs[i]));
    written_[{&body, body.inputs[i]}] = true;
  }
  om::Plan& plan = b_.plan();
  s.head = b_.NextTask();
  b_.AddTask(om::TaskKind::kJumpUnless, n.name).args = {s.keep};
  GE_TRY(Walk(body).In("body"));
  Materialise(body, body.outputs);
  for (size_t k = 0; k < scans; ++k) {
    const ValueId out = n.outputs[s.carried + k];
    if (out == kNone) continue;
    const int32_t value = BufferOf(body, body.outputs[s.body_out + s.carried + k]);
    if (slots[k] >= 0)
      b_.AddHost("ScanAppend", n.name, {value}, {slots[k]});
    else
      b_.AddHost("ScanStore", n.name, {value, s.counter}, {BufferOf(g, out)}).attrs = AxisAttrs(0, false);
  }
  // The next condition is read before the carried values move.
  b_.AddHost("LoopNext", n.name, {s.limit, BufferOf(body, body.outputs[0])}, {s.counter, s.keep});
  NextCarried(body, s);
  b_.AddTask(om::TaskKind::kJump, n.name).target = s.head;
  plan.tasks[s.head].target = b_.NextTask();
  FinishCarried(g, n, body, s);
  for (size_t k = 0; k < scans; ++k) {
    const ValueId out = n.outputs[s.carried + k];
    if (out == kNone || slots[k] < 0) continue;
    std::vector<int32_t> binds;
    for (const Expr& symbol : b_.Unbound(g.value(out).type.dims)) binds.push_back(b_.BindSymbol(symbol, -1, -1));
    const int32_t buffer = BufferOf(g, out);
    b_.AddHost("ScanTake", n.name, {slots[k]}, {buffer}).binds = binds;
  }
  return {};
}

Status PlanWalk::AddScan(const Graph& g, const Node& n) {
  const Graph& body = *n.subgraphs[0];
  const size_t captures = static_cast<size_t>(AttrOr<int64_t>(n, "captures", 0));
  const size_t scanned = static_cast<size_t>(AttrOr<int64_t>(n, "num_scan_inputs", 0));
  const auto ints = [&](const char* name) { return AttrOr<std::vector<int64_t>>(n, name, {}); };
  const auto in_axes = ints("scan_input_axes"), out_axes = ints("scan_output_axes");
  const auto in_reverse = ints("scan_input_directions"), out_reverse = ints("scan_output_directions");
  LoopState s;
  s.name = n.name;
  s.carried = n.inputs.size() - captures - scanned;
  const Value& first = g.value(n.inputs[s.carried]);
  const int64_t axis0 = At(in_axes, 0);
  const Expr length = first.type.dims[axis0 < 0 ? axis0 + first.type.rank() : axis0];
  s.counter = b_.AddScalar(n.name + ".i", DType::kI64);
  s.keep = b_.AddScalar(n.name + ".keep", DType::kBool);
  s.limit = b_.AddScalar(n.name + ".length", DType::kI64);
  const std::vector<om::SizeRef> limit = {b_.Size(length)};
  b_.AddHost("Sizes", n.name, {}, {s.limit}).sizes = limit;
  b_.AddHost("LoopStart", n.name, {s.limit, -1}, {s.counter, s.keep});
  StartCarried(g, n, body, s);
  for (size_t i = s.carried + scanned; i < n.inputs.size(); ++i) {
    SetBuffer(body, body.inputs[i], BufferOf(g, n.inputs[i]));
    written_[{&body, body.inputs[i]}] = true;
  }
  om::Plan& plan = b_.plan();
  s.head = b_.NextTask();
  b_.AddTask(om::TaskKind::kJumpUnless, n.name).args = {s.keep};
  for (size_t i = 0; i < scanned; ++i) {
    const ValueId slice = body.inputs[s.carried + i];
    written_[{&body, slice}] = true;
    b_.AddHost("ScanLoad", n.name, {BufferOf(g, n.inputs[s.carried + i]), s.counter}, {BufferOf(body, slice)}).attrs =
        AxisAttrs(At(in_axes, i), At(in_reverse, i) != 0);
  }
  GE_TRY(Walk(body).In("body"));
  Materialise(body, body.outputs);
  for (size_t o = s.carried; o < n.outputs.size(); ++o) {
    if (n.outputs[o] == kNone) continue;
    b_.AddHost("ScanStore", n.name, {BufferOf(body, body.outputs[o]), s.counter}, {BufferOf(g, n.outputs[o])}).attrs =
        AxisAttrs(At(out_axes, o - s.carried), At(out_reverse, o - s.carried) != 0);
  }
  b_.AddHost("LoopNext", n.name, {s.limit, -1}, {s.counter, s.keep});
  NextCarried(body, s);
  b_.AddTask(om::TaskKind::kJump, n.name).target = s.head;
  plan.tasks[s.head].target = b_.NextTask();
  FinishCarried(g, n, body, s);
  return {};
}

}  // namespace ge
