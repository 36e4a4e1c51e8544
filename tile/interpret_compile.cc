// Compiles statements into interpreter steps: see interpret_compiler.h.
#include <unordered_set>

#include "base/check.h"
#include "tile/interpret_compiler.h"

namespace ge::tile::interpret {

// ---- Statements ----

Steps Compiler::Body(const std::vector<Stmt>& body) {
  Steps steps;
  for (const Stmt& s : body) steps.push_back(Compile(s));
  return steps;
}

struct BlockStep : Step {
  Steps body;
  void Run(Frame& f) const override { RunSteps(body, f); }
};

std::unique_ptr<Step> Compiler::Compile(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kBlock: {
      auto step = std::make_unique<BlockStep>();
      step->body = Body(s.body);
      return step;
    }
    case StmtKind::kLoop: return CompileLoop(s);
    case StmtKind::kAlloc: {
      auto step = std::make_unique<AllocStep>();
      step->buffer = s.buffer;
      step->dtype = k_.buffers[s.buffer].dtype;
      step->elements = Uniform(k_.buffers[s.buffer].elements);
      step->body = Body(s.body);
      return step;
    }
    case StmtKind::kLet: return CompileLet(s);
    case StmtKind::kReduce: return CompileReduce(s);
    case StmtKind::kIf: {
      auto step = std::make_unique<IfStep>();
      step->row = Root(s.value, step->code, false, &step->uniform);
      Finish(s.value);
      step->then = Body(s.body);
      step->otherwise = Body(s.orelse);
      return step;
    }
    case StmtKind::kStore: return CompileStore(s);
    case StmtKind::kBrGemm: return CompileGemm(s);
  }
  GE_CHECK(false, "unknown statement");
  return nullptr;
}

template <class F>
void Compiler::InLanes(Expr lane, F&& f) {
  GE_CHECK(!in_lanes(), "lane scopes do not nest");
  lane_ = lane;
  f();
  lane_ = Expr(0);
  symbol_rows_.clear();
}

std::unique_ptr<Step> Compiler::CompileLoop(const Stmt& s) {
  const bool grid = s.loop == LoopKind::kParallel;
  if (!in_lanes() && !grid) {
    if (auto nest = Flatten(k_, s)) return CompileNest(*nest);
  }
  bool lanes = !in_lanes() && (grid || s.loop == LoopKind::kVector) && !ContainsVector(s.body) &&
               Laneable(k_, s.body, {s.symbol});
  // Rows of a reduction are better walked along its own axis.
  if (grid && ContainsReduce(s.body)) lanes = false;
  if (!lanes) {
    auto step = std::make_unique<LoopStep>();
    step->is_grid = grid;
    step->slot = Slot(s.symbol);
    step->extent = Uniform(s.extent);
    depth_[s.symbol.node()] = scopes_.size();
    scopes_.emplace_back();
    step->body = Body(s.body);
    step->values = std::move(scopes_.back());
    scopes_.pop_back();
    return step;
  }
  auto step = std::make_unique<LaneLoopStep>();
  step->is_grid = grid;
  step->extent = Uniform(s.extent);
  InLanes(s.symbol, [&] { step->body = Body(s.body); });
  return step;
}

std::unique_ptr<Step> Compiler::CompileNest(const FlatNest& nest) {
  auto step = std::make_unique<LaneLoopStep>();
  step->extent = Uniform(nest.extent);
  flat_ = &nest;
  InLanes(nest.lane, [&] { step->body = Body(nest.innermost->body); });
  flat_ = nullptr;
  return step;
}

std::unique_ptr<Step> Compiler::CompileCopy(const Stmt& s) {
  const ValueNode& v = k_.values[s.value];
  auto step = std::make_unique<CopyStep>();
  const Expr to = Flat(s.index);
  step->from = AccessOf(v.buffer, Flat(v.index), step->code);
  step->to = AccessOf(s.buffer, to, step->code);
  step->bytes = BitWidth(k_.buffers[s.buffer].dtype) / 8;
  step->uniform = !Varies(to);
  for (int r : pending_) Free(r);
  pending_.clear();
  return step;
}

std::unique_ptr<Step> Compiler::CompileStore(const Stmt& s) {
  const ValueNode& v = k_.values[s.value];
  const DType storage = k_.buffers[s.buffer].dtype;
  if (v.op == Op::kLoad && k_.buffers[v.buffer].dtype == storage && BitWidth(storage) >= 8 &&
      storage != DType::kBool) {
    return CompileCopy(s);
  }
  auto step = std::make_unique<StoreStep>();
  step->store = StoreRow(storage);
  const Expr to = Flat(s.index);
  const bool varies = Varies(to);
  step->row = Root(s.value, step->code, varies, &step->uniform);
  step->access = AccessOf(s.buffer, to, step->code);
  Finish(s.value);
  return step;
}

void Compiler::BindVar(VarId var, bool varying, int row, int& slot) {
  vars_[var] = {row, varying};
  const Expr symbol = k_.vars[var].index;
  if (!symbol.IsSymbol()) return;
  if (varying)
    symbol_rows_[symbol.node()] = row;
  else
    slot = Slot(symbol);
}

std::unique_ptr<Step> Compiler::CompileLet(const Stmt& s) {
  auto step = std::make_unique<LetStep>();
  bool uniform = false;
  const int row = Root(s.value, step->code, false, &uniform);
  step->row = out_.num_rows++;
  Emit(step->code, MoveRow(k_.values[s.value].type), uniform, row, -1, -1, step->row);
  // Where the value was just computed, it is computed in place instead.
  const size_t n = step->code.size();
  if (n >= 2 && step->code[n - 2].dst == row && step->code[n - 2].uniform == uniform) {
    step->code.pop_back();
    step->code.back().dst = step->row;
  }
  Finish(s.value);
  BindVar(s.var, !uniform, step->row, step->slot);
  return step;
}

// Moves out of the innermost loop what it does not change.
void Compiler::HoistReduce(const Stmt& s, ReduceStep& step) {
  std::unordered_set<int> rows, slots;
  for (const Stmt& c : s.body) {
    rows.insert(vars_[c.var].row);
    if (Expr symbol = k_.vars[c.var].index; symbol.IsSymbol()) slots.insert(Slot(symbol));
  }
  Hoist(step, rows, slots);
}

std::unique_ptr<Step> Compiler::CompileReduce(const Stmt& s) {
  auto step = std::make_unique<ReduceStep>();
  step->op = s.reduce;
  step->type = k_.values[s.value].type;
  const size_t lane_axis = s.axes.empty() ? 0 : LaneAxis(s);
  step->by_lanes =
      !in_lanes() && !s.axes.empty() && Laneable(k_, s.body, {s.axes[lane_axis].first});
  for (size_t i = 0; i < s.axes.size(); ++i) {
    ExprCode extent = Uniform(s.axes[i].second);
    if (step->by_lanes && i == lane_axis)
      step->lane_extent = std::move(extent);
    else
      step->axes.push_back({Slot(s.axes[i].first), std::move(extent)});
  }
  GE_CHECK(step->axes.size() < 16, "too many axes in a Reduce");
  step->row = out_.num_rows++;
  if (step->axes.empty() && !step->by_lanes) step->axes.push_back({out_.num_slots++, Uniform(1)});
  auto inside = [&] {
    step->lets = Body(s.body);
    keep_rows_ = true;
    const int row = Root(s.value, step->code, in_lanes(), nullptr);
    Emit(step->code, ReduceRow(s.reduce, step->type), !in_lanes(), row, -1, -1, step->row);
    Finish(s.value);
    keep_rows_ = false;
    free_.insert(free_.end(), kept_.begin(), kept_.end());
    kept_.clear();
    HoistReduce(s, *step);
  };
  if (step->by_lanes)
    InLanes(s.axes[lane_axis].first, inside);
  else
    inside();
  BindVar(s.var, in_lanes(), step->row, step->slot);
  return step;
}

std::unique_ptr<Step> Compiler::CompileGemm(const Stmt& s) {
  GE_CHECK(!in_lanes(), "a BrGemm inside of lanes");
  const BrGemm& g = s.gemm;
  auto step = std::make_unique<GemmStep>();
  step->gemm = {g.m,
                g.n,
                g.a_buffer,
                g.b_buffer,
                k_.buffers[g.a_buffer].dtype,
                k_.buffers[g.b_buffer].dtype,
                Uniform(g.k),
                Uniform(g.a),
                Uniform(g.a_row),
                Uniform(g.a_k),
                Uniform(g.b),
                Uniform(g.b_k),
                g.k_group,
                g.signed_a,
                DependsOn(g.a, g.row) ? Slot(g.row) : -1,
                {}};
  for (const auto& [symbol, extent] : g.batch) {
    step->gemm.batch.push_back({Slot(symbol), Uniform(extent)});
  }
  step->n_valid = Uniform(g.n_valid);
  step->row_slot = Slot(g.row);
  step->acc_row = out_.num_rows++;
  const bool lanes = !ContainsVector(s.body) && Laneable(k_, s.body, {g.col});
  vars_[g.acc] = {step->acc_row, lanes};
  if (lanes) {
    InLanes(g.col, [&] { step->body = Body(s.body); });
  } else {
    step->col_slot = Slot(g.col);
    step->body = Body(s.body);
  }
  return step;
}

CompiledKernel Compiler::Run() {
  scopes_.emplace_back();
  for (Expr s : k_.symbols) {
    out_.size_slots.push_back(Slot(s));
    depth_[s.node()] = 0;
  }
  for (const Buffer& b : k_.buffers) {
    if (b.is_arg) out_.arg_elements.push_back(Uniform(b.elements));
  }
  out_.grid = Uniform(k_.Grid());
  out_.steps = Body(k_.body.body);
  out_.values = std::move(scopes_[0]);
  return std::move(out_);
}

CompiledKernel CompileForRows(const Kernel& k) { return Compiler(k).Run(); }

}  // namespace ge::tile::interpret
