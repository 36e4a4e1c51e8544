// Loop and Scan: a counter symbol, a condition buffer, carried values that are copied back after
// each iteration, scan slices as aliases of the whole at an offset that depends on the counter.
//
//   copy the initial values; condition = start; bind iter = 0
//   top:  jump_unless iter < limit -> end;  jump_unless condition -> end
//         body; slices; condition and carried values for the next round; bind iter = iter + 1
//         jump top
//   end:  bind final sizes; copy the results that changed their size
//
// A counted loop over small kernels becomes one kernel instead (native_loop.cc).
#include "base/check.h"
#include "ir/opdef.h"
#include "plan/plan_builder.h"

namespace ge {

// Mark of a Bind whose symbol has not its last value yet.
constexpr std::string_view kGrows = "grows=i:1\n";

// Carried value k is body input first_carried + k and body output first_state + k.
struct PlanBuilder::Loop {
  const Graph* body = nullptr;
  size_t carried = 0, captures = 0;
  size_t first_carried = 0, first_state = 0;
  Expr iter, limit;      // the counter, and where it ends
  Expr one_more;         // whether another round is due
  bool counted = false;  // `one_more` decides
  int condition = -1;    // buffer, or -1
  int counter = -1;      // buffer of the counter, if the body reads it
  bool updates_condition = false;
  Expr trips;  // unknown number of rounds: this symbol grows with them; else 0
  struct Carried {
    int buffer = -1;
    bool changes = false;  // its size may differ from round to round
  };
  std::vector<Carried> values;
  struct Scanned {  // an input that a host task cuts, as no alias can
    int whole, slice;
    int64_t axis;
    bool reverse;
  };
  std::vector<Scanned> cuts;
  std::vector<std::pair<size_t, int>> collected;  // scan outputs that are objects: (output, slot)
};

namespace {

int64_t At(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }

int64_t AxisOf(const Node& n, const char* attr, size_t i, int rank) {
  const int64_t axis = At(AttrOr<std::vector<int64_t>>(n, attr, {}), i);
  return axis < 0 ? axis + rank : axis;
}

std::string ScanAttrs(int64_t axis, bool reverse) {
  return "axis=i:" + std::to_string(axis) + "\nreverse=i:" + (reverse ? "1" : "0") + "\n";
}

bool IsConstTrue(const std::optional<std::vector<Expr>>& elems) {
  return elems && elems->size() == 1 && (*elems)[0].IsConst() && !(*elems)[0].IsConst(0);
}

}  // namespace

Status PlanBuilder::StartCarried(const Graph& g, const Node& n, Loop& loop) {
  const Graph& body = *loop.body;
  loop.values.resize(loop.carried);
  for (size_t k = 0; k < loop.carried; ++k) {
    const TensorType& outer = g.value(n.inputs[loop.first_carried + k]).type;
    const TensorType& inner = body.value(body.inputs[loop.first_carried + k]).type;
    if (body.value(body.inputs[loop.first_carried + k]).kind != ValueKind::kTensor) continue;
    for (size_t d = 0; d < inner.dims.size() && d < outer.dims.size(); ++d) {
      if (inner.dims[d] == outer.dims[d]) continue;
      loop.values[k].changes = true;
      if (inner.dims[d].IsSymbol() && !IsBound(inner.dims[d]))
        AddBind(inner.dims[d], outer.dims[d]);
    }
  }
  for (size_t k = 0; k < loop.carried; ++k) {
    const ValueId inside = body.inputs[loop.first_carried + k];
    GE_ASSIGN(const int from, Readable(g, n.inputs[loop.first_carried + k]));
    const int to = Writable(body, inside);
    loop.values[k].buffer = to;
    AddCopy(body.value(inside).name, from, to);
  }
  return {};
}

// Copies the carried results back. What another carried value still reads, or what changes its
// size, goes through a stage.
Status PlanBuilder::EndIteration(Loop& loop) {
  const Graph& body = *loop.body;
  struct Move {
    int from, to;
    std::string name;
  };
  std::vector<Move> moves;
  std::vector<std::pair<Expr, Expr>> binds;
  for (size_t k = 0; k < loop.carried; ++k) {
    Loop::Carried& c = loop.values[k];
    const Value& in = body.value(body.inputs[loop.first_carried + k]);
    const ValueId result = body.outputs[loop.first_state + k];
    const Value& out = body.value(result);
    GE_ASSIGN(int from, Readable(body, result));
    if (c.changes) {
      std::vector<Expr> dims;
      for (size_t d = 0; d < in.type.dims.size(); ++d) {
        dims.push_back(in.type.dims[d]);
        if (!in.type.dims[d].IsSymbol() || in.type.dims[d] == out.type.dims[d]) continue;
        dims[d] = body.arena().Fresh("next", {.lo = 0});
        AddBind(dims[d], out.type.dims[d]);
        binds.emplace_back(in.type.dims[d], dims[d]);
      }
      Value staged = in;
      staged.type.dims = dims;
      const int stage = NewLike(staged, in.name + ".next");
      AddCopy(in.name, from, stage);
      from = stage;
    } else {
      bool shared = false;
      for (const Loop::Carried& other : loop.values) {
        shared |= &other != &c && RootOf(from) == RootOf(other.buffer);
      }
      if (shared) {
        const int stage = NewLike(in, in.name + ".next");
        AddCopy(in.name, from, stage);
        from = stage;
      }
    }
    if (RootOf(from) != RootOf(c.buffer)) moves.push_back({from, c.buffer, in.name});
  }
  for (const auto& [symbol, value] : binds) AddBind(symbol, value);
  for (const Move& m : moves) AddCopy(m.name, m.from, m.to);
  return {};
}

Status PlanBuilder::FinishLoop(const Graph& g, const Node& n, Loop& loop) {
  const Graph& body = *loop.body;
  for (size_t k = 0; k < loop.carried && k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    const Value& out = g.value(n.outputs[k]);
    const Value& in = body.value(body.inputs[loop.first_carried + k]);
    const bool tensor = out.kind == ValueKind::kTensor;
    for (size_t d = 0; tensor && d < out.type.dims.size() && d < in.type.dims.size(); ++d) {
      if (out.type.dims[d].IsSymbol() && !IsBound(out.type.dims[d]))
        AddBind(out.type.dims[d], in.type.dims[d]);
    }
    if (!NeedsValue(g, n.outputs[k])) continue;
    const int to = Writable(g, n.outputs[k]);
    if (!IsSlot(to) && out.type.dims == in.type.dims) {
      Join(to, Find(loop.values[k].buffer));
    } else {
      AddCopy(out.name, loop.values[k].buffer, to);
    }
  }
  if (!loop.trips.IsConst()) AddBind(loop.trips, loop.trips);  // checks of it are due now
  for (const auto& [output, slot] : loop.collected) {
    AddHost(n.name, "ScanTake", {slot}, {Writable(g, n.outputs[output])});
  }
  return {};
}

// Slices of this round go into the scan outputs.
Status PlanBuilder::EmitScans(const Graph& g, const Node& n, Loop& loop) {
  const Graph& body = *loop.body;
  if (!loop.trips.IsConst()) {
    AddBind(loop.trips, loop.iter + 1);
    plan_.tasks.back().attrs = kGrows;
  }
  const auto directions = AttrOr<std::vector<int64_t>>(n, "scan_output_directions", {});
  for (size_t o = loop.carried; o < n.outputs.size(); ++o) {
    if (!NeedsValue(g, n.outputs[o])) continue;
    const ValueId slice = body.outputs[o + loop.first_state];
    const Value& value = body.value(slice);
    GE_ASSIGN(const int from, Readable(body, slice));
    for (const auto& [output, slot] : loop.collected) {
      if (output == o) AddHost(value.name, "ScanAppend", {from}, {slot});
    }
    const int whole = Writable(g, n.outputs[o]);
    if (IsSlot(whole)) continue;
    const size_t scan = o - loop.carried;
    const bool reverse = At(directions, scan) == 1;
    const TensorType& type = g.value(n.outputs[o]).type;
    const int64_t axis = AxisOf(n, "scan_output_axes", scan, type.rank());
    if (axis != 0 || BitWidth(type.dtype) < 8) {
      AddHost(value.name, "ScanStore", {from, loop.counter}, {whole});
      plan_.tasks.back().attrs = ScanAttrs(axis, reverse);
      continue;
    }
    const Expr at = reverse ? type.dims[0] - 1 - loop.iter : loop.iter;
    AddCopy(value.name, from, NewSlice(whole, value, at * StorageBytes(value)));
  }
  return {};
}

// What the scan outputs need before the first round.
void PlanBuilder::StartScans(const Graph& g, const Node& n, Loop& loop) {
  for (size_t o = loop.carried; o < n.outputs.size(); ++o) {
    if (!NeedsValue(g, n.outputs[o])) continue;
    const int whole = Writable(g, n.outputs[o]);
    const TensorType& type = g.value(n.outputs[o]).type;
    if (IsSlot(whole)) {
      const int slot = NewLike(g.value(n.outputs[o]), g.value(n.outputs[o]).name + ".parts");
      AddHost(n.name, "ScanStart", {}, {slot});
      loop.collected.emplace_back(o, slot);
      continue;
    }
    const bool host = BitWidth(type.dtype) < 8 ||
                      AxisOf(n, "scan_output_axes", o - loop.carried, type.rank()) != 0;
    if (host && loop.counter < 0)
      loop.counter = NewBuffer(n.name + ".iteration", DType::kI64, {}, 8);
  }
}

Status PlanBuilder::RunLoop(const Graph& g, const Node& n, Loop& loop) {
  const Graph& body = *loop.body;
  GE_TRY(Capture(g, n, n.inputs.size() - loop.captures, body, body.inputs.size() - loop.captures));
  StartScans(g, n, loop);
  int more = -1;
  if (loop.counted) more = NewBuffer(n.name + ".more", DType::kBool, {}, 1);
  const auto start = static_cast<int64_t>(plan_.tasks.size());
  AddBind(loop.iter, 0);
  const auto top = static_cast<int32_t>(plan_.tasks.size());
  std::vector<int> to_end;
  if (loop.counted) {
    AddSizes(n.name + ".more", {loop.one_more}, more);
    to_end.push_back(AddJump(more));
  }
  if (loop.condition >= 0) to_end.push_back(AddJump(loop.condition));
  const size_t body_begin = plan_.tasks.size();
  if (loop.counter >= 0) AddSizes(n.name + ".iteration", {loop.iter}, loop.counter);
  for (const Loop::Scanned& cut : loop.cuts) {
    AddHost(n.name, "ScanLoad", {cut.whole, loop.counter}, {cut.slice});
    plan_.tasks.back().attrs = ScanAttrs(cut.axis, cut.reverse);
  }
  GE_TRY(EmitGraph(body));
  GE_TRY(EmitScans(g, n, loop));
  if (loop.updates_condition) {
    GE_ASSIGN(const int next, Readable(body, body.outputs[0]));
    if (RootOf(next) != RootOf(loop.condition))
      AddCopy(n.name + ".condition", next, loop.condition);
  }
  GE_TRY(EndIteration(loop));
  const bool only_counts = loop.counted && loop.condition < 0;
  if (only_counts && MakeNative(n.name, g.arena(), loop.iter, loop.limit, body_begin)) {
    plan_.tasks.erase(plan_.tasks.begin() + start,
                      plan_.tasks.begin() + static_cast<int64_t>(body_begin));
    return FinishLoop(g, n, loop);
  }
  AddBind(loop.iter, loop.iter + 1);
  const int back = AddJump(-1);
  plan_.tasks[back].target = top;
  for (int jump : to_end) {
    SetTarget(jump);
    plan_.tasks[jump].name = n.name;
  }
  return FinishLoop(g, n, loop);
}

Status PlanBuilder::EmitLoop(const Graph& g, const Node& n) {
  Loop loop;
  const Graph& body = *n.subgraphs[0];
  loop.body = &body;
  loop.captures = static_cast<size_t>(AttrOr<int64_t>(n, "captures", 0));
  loop.carried = n.inputs.size() - 2 - loop.captures;
  loop.first_carried = 2;
  loop.first_state = 1;
  loop.iter = g.arena().Fresh("iter", {.lo = 0});
  Expr limit = 0;
  loop.counted = n.inputs[0] != kNone;
  if (loop.counted) {
    const auto& known = g.value(n.inputs[0]).elems;
    if (known && known->size() == 1) {
      limit = (*known)[0];
    } else {
      limit = g.arena().Fresh("limit", {.lo = INT64_MIN});
      GE_ASSIGN(const int count, Readable(g, n.inputs[0]));
      om::Task& t = AddTask(om::TaskKind::kBind, limit.node()->name);
      t.args = {count};
      t.binds = {SymbolIndex(limit)};
      bound_.insert(limit.node());
    }
  }
  // Not simplified away: the counter's facts do not say where the loop ends.
  loop.limit = limit;
  loop.one_more = Lt(loop.iter, limit);
  const auto start = n.inputs[1] == kNone ? std::vector<Expr>{1} : g.value(n.inputs[1]).elems;
  loop.updates_condition = !IsConstTrue(body.value(body.outputs[0]).elems);
  const bool conditional = !IsConstTrue(start) || loop.updates_condition;
  for (size_t o = loop.carried; o < n.outputs.size(); ++o) {
    if (n.outputs[o] == kNone) continue;
    const Expr rounds = g.value(n.outputs[o]).type.dims[0];
    if (!rounds.IsSymbol() || (IsBound(rounds) && !(rounds == loop.trips))) continue;
    const bool ahead = loop.counted && !conditional;
    if (!IsBound(rounds)) {
      AddBind(rounds, ahead ? Max(limit, 0) : Expr(0));
      if (!ahead) plan_.tasks.back().attrs = kGrows;
    }
    if (!ahead) loop.trips = rounds;
  }
  if (conditional) {
    loop.condition = NewBuffer(n.name + ".condition", DType::kBool, {}, 1);
    if (start) {
      AddSizes(n.name + ".condition", *start, loop.condition);
    } else {
      GE_ASSIGN(const int from, Readable(g, n.inputs[1]));
      AddCopy(n.name + ".condition", from, loop.condition);
    }
  }
  GE_TRY(StartCarried(g, n, loop));
  const ValueId counter = body.inputs[0], condition = body.inputs[1];
  if (loop.condition >= 0) BuffersOf(body)[condition] = loop.condition;
  if (NeedsValue(body, counter)) loop.counter = Writable(body, counter);
  return RunLoop(g, n, loop);
}

Status PlanBuilder::EmitScan(const Graph& g, const Node& n) {
  Loop loop;
  const Graph& body = *n.subgraphs[0];
  loop.body = &body;
  loop.captures = static_cast<size_t>(AttrOr<int64_t>(n, "captures", 0));
  const auto scanned = static_cast<size_t>(AttrOr<int64_t>(n, "num_scan_inputs", 0));
  loop.carried = n.inputs.size() - loop.captures - scanned;
  loop.iter = g.arena().Fresh("iter", {.lo = 0});
  const TensorType& first = g.value(n.inputs[loop.carried]).type;
  const Expr length = first.dims[AxisOf(n, "scan_input_axes", 0, first.rank())];
  loop.counted = true;
  loop.limit = length;
  loop.one_more = Lt(loop.iter, length);
  GE_TRY(StartCarried(g, n, loop));
  const auto directions = AttrOr<std::vector<int64_t>>(n, "scan_input_directions", {});
  for (size_t i = 0; i < scanned; ++i) {
    const ValueId slice = body.inputs[loop.carried + i];
    if (!NeedsValue(body, slice)) continue;
    const Value& value = body.value(slice);
    GE_ASSIGN(const int whole, Readable(g, n.inputs[loop.carried + i]));
    if (IsSlot(whole)) return Unsupported("scan input " + value.name + " of objects");
    const bool reverse = At(directions, i) == 1;
    const int64_t axis = AxisOf(n, "scan_input_axes", i, value.type.rank() + 1);
    if (axis != 0 || BitWidth(value.type.dtype) < 8) {
      if (loop.counter < 0) loop.counter = NewBuffer(n.name + ".iteration", DType::kI64, {}, 8);
      loop.cuts.push_back({whole, Writable(body, slice), axis, reverse});
      continue;
    }
    const Expr at = reverse ? length - 1 - loop.iter : loop.iter;
    BuffersOf(body)[slice] = NewSlice(whole, value, at * StorageBytes(value));
  }
  return RunLoop(g, n, loop);
}

}  // namespace ge
