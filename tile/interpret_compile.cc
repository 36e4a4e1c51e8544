// Compiles a kernel into interpreter steps.
//
// Invariant: a value is uniform if it is the same for all lanes; it is then computed once, in lane
// 0 of its row, and spread only where a varying operation needs it. Rows of a statement's
// intermediate values are reused by the next statement; rows of variables and constants are their
// own.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "tile/fold.h"
#include "tile/interpret_steps.h"
#include "tile/walk.h"

namespace ge::tile::interpret {
namespace {

bool Contains(const std::vector<Stmt>& body, StmtKind kind, const LoopKind* loop = nullptr) {
  bool found = false;
  for (const Stmt& s : body) {
    ForEachStmt(s, [&](const Stmt& c) {
      found = found || (c.kind == kind && (loop == nullptr || c.loop == *loop));
    });
  }
  return found;
}

bool ContainsVector(const std::vector<Stmt>& body) {
  constexpr LoopKind kVector = LoopKind::kVector;
  return Contains(body, StmtKind::kLoop, &kVector);
}

class Compiler {
 public:
  explicit Compiler(const Kernel& k) : k_(k), vars_(k.vars.size()) {}
  CompiledKernel Run();

 private:
  struct VarPlace {
    int row = -1;
    bool varying = false;
  };
  // Where a value of the current statement is.
  struct Place {
    int uniform = -1, varying = -1;  // rows
    bool owned = true;               // its rows return to the free list after the last use
    int uses = 0;
  };

  // Exprs.
  int Slot(Expr symbol);
  bool Varies(Expr e) const;
  bool Linearise(Expr e, int64_t scale, ExprCode& out);
  void Post(Expr e, ExprCode& out);
  ExprCode Uniform(Expr e);
  bool Affine(Expr e, ExprCode& base, ExprCode& stride);
  int RowOf(Expr e, Code& code, bool& owned);
  Access AccessOf(int buffer, Expr index, Code& code);

  // Values.
  int NewRow();
  void Free(int row) { free_.push_back(row); }
  int ConstantRow(ExprId id);
  void CountUses(ExprId id);
  Place& Compute(ExprId id, Code& code);
  int Operand(ExprId id, bool varying, Code& code);
  void Release(ExprId id);
  int Emit(Code& code, RowFn fn, bool uniform, int a = -1, int b = -1, int c = -1, int dst = -1);
  // Computes the root of a statement; its row is valid until the next statement.
  int Root(ExprId id, Code& code, bool want_varying, bool* uniform);
  void Finish(ExprId id);

  // Statements.
  Steps Body(const std::vector<Stmt>& body);
  std::unique_ptr<Step> Compile(const Stmt& s);
  std::unique_ptr<Step> CompileLoop(const Stmt& s);
  std::unique_ptr<Step> CompileStore(const Stmt& s);
  std::unique_ptr<Step> CompileCopy(const Stmt& s);
  std::unique_ptr<Step> CompileLet(const Stmt& s);
  std::unique_ptr<Step> CompileReduce(const Stmt& s);
  std::unique_ptr<Step> CompileGemm(const Stmt& s);
  bool Laneable(const std::vector<Stmt>& body, Expr lane) const;
  size_t LaneAxis(const Stmt& s) const;
  template <class F>
  void InLanes(Expr lane, F&& f);
  void BindVar(VarId var, bool varying, int row, int& slot);
  bool in_lanes() const { return lane_.IsSymbol(); }

  const Kernel& k_;
  CompiledKernel out_;
  std::unordered_map<const ExprNode*, int> slots_;
  std::unordered_map<const ExprNode*, int> symbol_rows_;  // index symbols that vary over lanes
  std::vector<VarPlace> vars_;
  std::unordered_map<ExprId, int> constant_rows_;
  std::unordered_map<ExprId, Place> places_;
  std::vector<int> free_;
  std::vector<int> pending_;                    // index rows, free after their access
  std::vector<std::pair<ExprId, int>> spread_;  // spread rows of variables
  Expr lane_;
};

// ---- Exprs ----

int Compiler::Slot(Expr symbol) {
  auto [it, fresh] = slots_.try_emplace(symbol.node(), out_.num_slots);
  out_.num_slots += fresh;
  return it->second;
}

bool Compiler::Varies(Expr e) const {
  if (e.IsConst() || !in_lanes()) return false;
  if (e.IsSymbol()) return e == lane_ || symbol_rows_.count(e.node()) != 0;
  for (Expr a : e.node()->args) {
    if (Varies(a)) return true;
  }
  return false;
}

bool Compiler::Linearise(Expr e, int64_t scale, ExprCode& out) {
  if (e.IsConst()) {
    out.constant += scale * e.value();
    return true;
  }
  if (e.IsSymbol()) {
    out.terms.push_back({Slot(e), scale});
    return true;
  }
  if (e.kind() == ExprKind::kAdd) {
    for (Expr a : e.node()->args) {
      if (!Linearise(a, scale, out)) return false;
    }
    return true;
  }
  if (e.kind() != ExprKind::kMul) return false;
  Expr rest = 1;
  bool has_rest = false;
  for (Expr a : e.node()->args) {
    if (a.IsConst()) {
      scale *= a.value();
    } else if (has_rest) {
      return false;
    } else {
      rest = a;
      has_rest = true;
    }
  }
  return Linearise(rest, scale, out);
}

void Compiler::Post(Expr e, ExprCode& out) {
  if (e.IsConst()) {
    out.post.push_back({ExprKind::kConst, e.value()});
    return;
  }
  GE_CHECK(e.IsValid(), "invalid index expression in kernel " + k_.name);
  if (e.IsSymbol()) {
    out.post.push_back({ExprKind::kSymbol, Slot(e)});
    return;
  }
  const std::vector<Expr>& args = e.node()->args;
  const bool by_position = e.kind() == ExprKind::kSelect || e.kind() == ExprKind::kNot;
  for (size_t i = 0; i < args.size(); ++i) {
    Post(args[i], out);
    if (!by_position && i > 0) out.post.push_back({e.kind()});
  }
  if (by_position) out.post.push_back({e.kind()});
}

ExprCode Compiler::Uniform(Expr e) {
  ExprCode linear;
  if (Linearise(e, 1, linear)) return linear;
  ExprCode general;
  Post(e, general);
  return general;
}

// e = base + stride * lane with both uniform.
bool Compiler::Affine(Expr e, ExprCode& base, ExprCode& stride) {
  if (!Varies(e)) {
    base = Uniform(e);
    stride = ExprCode{};
    return true;
  }
  std::optional<Linear> linear = AsLinear(e, lane_);
  if (!linear || Varies(linear->coefficient) || Varies(linear->rest)) return false;
  base = Uniform(linear->rest);
  stride = Uniform(linear->coefficient);
  return true;
}

// A row of i64 with e for each lane.
int Compiler::RowOf(Expr e, Code& code, bool& owned) {
  owned = true;
  Instr iota;
  if (Affine(e, iota.access.base, iota.access.stride)) {
    iota.fn = IotaRow();
    iota.dst = NewRow();
    iota.uniform = !in_lanes();
    code.push_back(std::move(iota));
    return code.back().dst;
  }
  if (e.IsSymbol()) {
    owned = false;
    return symbol_rows_.at(e.node());
  }
  std::vector<Expr> args = e.node()->args;
  if (e.kind() == ExprKind::kAdd) {
    // What is affine goes into one row.
    Expr affine = 0;
    std::vector<Expr> rest;
    for (Expr a : args) {
      ExprCode base, stride;
      if (Affine(a, base, stride))
        affine = affine + a;
      else
        rest.push_back(a);
    }
    if (!affine.IsConst(0)) rest.push_back(affine);
    args = std::move(rest);
  }
  std::vector<std::pair<int, bool>> rows;
  for (Expr a : args) {
    bool own;
    int row = RowOf(a, code, own);
    rows.push_back({row, own});
  }
  RowFn fn = ExprRow(e.kind());
  GE_CHECK(fn != nullptr, "index expression of an unknown kind");
  int row = rows[0].first;
  if (e.kind() == ExprKind::kNot || e.kind() == ExprKind::kSelect) {
    const bool three = e.kind() == ExprKind::kSelect;
    row = Emit(code, fn, false, row, three ? rows[1].first : -1, three ? rows[2].first : -1);
    for (auto [r, own] : rows) {
      if (own) Free(r);
    }
    return row;
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    int next = Emit(code, fn, false, row, rows[i].first);
    if (i > 1 || rows[0].second) Free(row);
    if (rows[i].second) Free(rows[i].first);
    row = next;
  }
  if (rows.size() == 1) owned = rows[0].second;
  return row;
}

Access Compiler::AccessOf(int buffer, Expr index, Code& code) {
  Access access;
  access.buffer = buffer;
  if (!Affine(index, access.base, access.stride)) {
    bool owned;
    access.index_row = RowOf(index, code, owned);
    if (owned) pending_.push_back(access.index_row);
  }
  return access;
}

// ---- Values ----

int Compiler::NewRow() {
  if (free_.empty()) return out_.num_rows++;
  int row = free_.back();
  free_.pop_back();
  return row;
}

int Compiler::ConstantRow(ExprId id) {
  auto [it, fresh] = constant_rows_.try_emplace(id, out_.num_rows);
  if (fresh) {
    const ValueNode& n = k_.values[id];
    out_.constants.push_back({out_.num_rows++, n.type, n.f, n.i});
  }
  return it->second;
}

void Compiler::CountUses(ExprId id) {
  if (places_[id].uses++ > 0) return;
  const ValueNode& n = k_.values[id];
  for (ExprId operand : {n.a, n.b, n.c}) {
    if (operand >= 0) CountUses(operand);
  }
}

int Compiler::Emit(Code& code, RowFn fn, bool uniform, int a, int b, int c, int dst) {
  GE_CHECK(fn != nullptr, "kernel " + k_.name + " uses an operation that its type does not have");
  Instr i;
  i.fn = fn;
  i.a = a;
  i.b = b;
  i.c = c;
  i.uniform = uniform;
  i.dst = dst >= 0 ? dst : NewRow();
  code.push_back(std::move(i));
  return code.back().dst;
}

Compiler::Place& Compiler::Compute(ExprId id, Code& code) {
  Place& p = places_[id];
  if (p.uniform >= 0 || p.varying >= 0) return p;
  const ValueNode& n = k_.values[id];
  if (n.op == Op::kConst) {
    p.owned = false;
    p.uniform = p.varying = ConstantRow(id);
    return p;
  }
  if (n.op == Op::kVar) {
    const VarPlace& v = vars_[n.var];
    GE_CHECK(v.row >= 0, "kernel " + k_.name + " uses a variable before it is bound");
    p.owned = false;
    (v.varying && in_lanes() ? p.varying : p.uniform) = v.row;
    return p;
  }
  if (n.op == Op::kIndex) {
    bool owned;
    const bool varies = Varies(n.index);
    const int row = RowOf(n.index, code, owned);
    if (!varies) code.back().uniform = true;
    Place& q = places_[id];
    q.owned = owned;
    (varies ? q.varying : q.uniform) = row;
    return q;
  }
  if (n.op == Op::kLoad) {
    Access access = AccessOf(n.buffer, n.index, code);
    const bool varies = Varies(n.index);
    const int row = Emit(code, LoadRow(k_.buffers[n.buffer].dtype), !varies);
    code.back().access = std::move(access);
    for (int r : pending_) Free(r);
    pending_.clear();
    Place& q = places_[id];
    (varies ? q.varying : q.uniform) = row;
    return q;
  }
  bool varies = false;
  for (ExprId operand : {n.a, n.b, n.c}) {
    if (operand >= 0 && Compute(operand, code).uniform < 0) varies = true;
  }
  const int a = Operand(n.a, varies, code);
  const int b = n.b >= 0 ? Operand(n.b, varies, code) : -1;
  const int c = n.c >= 0 ? Operand(n.c, varies, code) : -1;
  const DType from = k_.values[n.a].type;
  RowFn fn = n.op == Op::kSelect    ? SelectRow(n.type)
             : n.op == Op::kCast    ? CastRow(from, n.type)
             : n.op == Op::kBitCast ? BitCastRow(from, n.type)
             : n.op == Op::kNarrow  ? NarrowRow(from)
             : n.b >= 0             ? BinaryRow(n.op, from)
                                    : UnaryRow(n.op, from);
  const int row = Emit(code, fn, !varies, a, b, c);
  code.back().storage = n.storage;
  for (ExprId operand : {n.a, n.b, n.c}) {
    if (operand >= 0) Release(operand);
  }
  Place& q = places_[id];
  (varies ? q.varying : q.uniform) = row;
  return q;
}

int Compiler::Operand(ExprId id, bool varying, Code& code) {
  Place& p = Compute(id, code);
  if (!varying || p.varying >= 0) return varying ? p.varying : p.uniform;
  const int from = p.uniform;
  const int row = Emit(code, SplatRow(k_.values[id].type), false, from);
  Place& q = places_[id];
  q.varying = row;
  if (!q.owned) spread_.push_back({id, row});
  return row;
}

void Compiler::Release(ExprId id) {
  Place& p = places_[id];
  if (--p.uses > 0 || !p.owned) return;
  if (p.uniform >= 0) Free(p.uniform);
  if (p.varying >= 0 && p.varying != p.uniform) Free(p.varying);
}

int Compiler::Root(ExprId id, Code& code, bool want_varying, bool* uniform) {
  places_.clear();
  CountUses(id);
  const bool varies = Compute(id, code).uniform < 0;
  if (uniform) *uniform = !varies && !want_varying;
  return Operand(id, varies || want_varying, code);
}

// Returns the rows of the statement whose root was `id`.
void Compiler::Finish(ExprId id) {
  Release(id);
  for (auto [value, row] : spread_) Free(row);
  spread_.clear();
  for (int r : pending_) Free(r);
  pending_.clear();
  places_.clear();
}

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

// Whether `body` may run for many values of `lane` at once: loops inside must be the same for all.
bool Compiler::Laneable(const std::vector<Stmt>& body, Expr lane) const {
  std::vector<Expr> varying{lane};
  bool ok = true;
  auto uniform = [&](Expr e) {
    for (Expr v : varying) ok = ok && !DependsOn(e, v);
  };
  for (const Stmt& top : body) {
    ForEachStmt(top, [&](const Stmt& s) {
      if (s.kind == StmtKind::kAlloc || s.kind == StmtKind::kBrGemm) ok = false;
      if (s.kind == StmtKind::kLoop) uniform(s.extent);
      if (s.kind == StmtKind::kReduce) {
        for (const auto& axis : s.axes) uniform(axis.second);
      }
      if ((s.kind == StmtKind::kLet || s.kind == StmtKind::kReduce) &&
          k_.vars[s.var].index.IsSymbol()) {
        varying.push_back(k_.vars[s.var].index);
      }
    });
  }
  return ok;
}

std::unique_ptr<Step> Compiler::CompileLoop(const Stmt& s) {
  const bool grid = s.loop == LoopKind::kParallel;
  bool lanes = !in_lanes() && (grid || s.loop == LoopKind::kVector) && !ContainsVector(s.body) &&
               Laneable(s.body, s.symbol);
  // Rows of a reduction are better walked along its own axis.
  if (grid && Contains(s.body, StmtKind::kReduce)) lanes = false;
  if (!lanes) {
    auto step = std::make_unique<LoopStep>();
    step->is_grid = grid;
    step->slot = Slot(s.symbol);
    step->extent = Uniform(s.extent);
    step->body = Body(s.body);
    return step;
  }
  auto step = std::make_unique<LaneLoopStep>();
  step->is_grid = grid;
  step->extent = Uniform(s.extent);
  InLanes(s.symbol, [&] { step->body = Body(s.body); });
  return step;
}

std::unique_ptr<Step> Compiler::CompileCopy(const Stmt& s) {
  const ValueNode& v = k_.values[s.value];
  auto step = std::make_unique<CopyStep>();
  step->from = AccessOf(v.buffer, v.index, step->code);
  step->to = AccessOf(s.buffer, s.index, step->code);
  step->bytes = BitWidth(k_.buffers[s.buffer].dtype) / 8;
  step->uniform = !Varies(s.index);
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
  const bool varies = Varies(s.index);
  step->row = Root(s.value, step->code, varies, &step->uniform);
  step->access = AccessOf(s.buffer, s.index, step->code);
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

// The axis that becomes lanes: the innermost, unless it is short and another is much longer.
size_t Compiler::LaneAxis(const Stmt& s) const {
  size_t best = s.axes.size() - 1;
  auto size = [&](size_t i) {
    Expr e = s.axes[i].second;
    return e.IsConst() ? e.value() : int64_t{64};
  };
  for (size_t i = s.axes.size(); i-- > 0;) {
    if (size(best) < 16 && size(i) >= 4 * size(best)) best = i;
  }
  return best;
}

std::unique_ptr<Step> Compiler::CompileReduce(const Stmt& s) {
  auto step = std::make_unique<ReduceStep>();
  step->op = s.reduce;
  step->type = k_.values[s.value].type;
  const size_t lane_axis = s.axes.empty() ? 0 : LaneAxis(s);
  step->by_lanes = !in_lanes() && !s.axes.empty() && Laneable(s.body, s.axes[lane_axis].first);
  for (size_t i = 0; i < s.axes.size(); ++i) {
    ExprCode extent = Uniform(s.axes[i].second);
    if (step->by_lanes && i == lane_axis)
      step->lane_extent = std::move(extent);
    else
      step->axes.push_back({Slot(s.axes[i].first), std::move(extent)});
  }
  GE_CHECK(step->axes.size() < 16, "too many axes in a Reduce");
  step->row = out_.num_rows++;
  auto inside = [&] {
    step->lets = Body(s.body);
    const int row = Root(s.value, step->code, in_lanes(), nullptr);
    Emit(step->code, ReduceRow(s.reduce, step->type), !in_lanes(), row, -1, -1, step->row);
    Finish(s.value);
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
                {}};
  for (const auto& [symbol, extent] : g.batch) {
    step->gemm.batch.push_back({Slot(symbol), Uniform(extent)});
  }
  step->n_valid = Uniform(g.n_valid);
  step->row_slot = Slot(g.row);
  step->acc_row = out_.num_rows++;
  const bool lanes = !ContainsVector(s.body) && Laneable(s.body, g.col);
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
  for (Expr s : k_.symbols) out_.size_slots.push_back(Slot(s));
  for (const Buffer& b : k_.buffers) {
    if (b.is_arg) out_.arg_elements.push_back(Uniform(b.elements));
  }
  out_.grid = Uniform(k_.Grid());
  out_.steps = Body(k_.body.body);
  return std::move(out_);
}

}  // namespace

CompiledKernel CompileForRows(const Kernel& k) { return Compiler(k).Run(); }

}  // namespace ge::tile::interpret
