// Compiles Exprs and values into rows: see interpret_compiler.h.
#include <algorithm>

#include "base/check.h"
#include "tile/interpret_compiler.h"

namespace ge::tile::interpret {

// ---- Exprs ----

// e with the loops of a flattened nest written in its lane.
Expr Compiler::Flat(Expr e) const {
  if (flat_ == nullptr) return e;
  return Substitute(e, [this](Expr symbol) -> std::optional<Expr> {
    for (const auto& [loop, value] : flat_->index) {
      if (loop == symbol) return value;
    }
    return std::nullopt;
  });
}

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

// An e that is not linear, but made of symbols of loops and sizes alone, has a slot of its own,
// filled where the innermost of them is bound.
bool Compiler::Precomputed(Expr e, int64_t scale, ExprCode& out) {
  auto it = precomputed_.find(e.node());
  if (it == precomputed_.end()) {
    if (!e.IsValid()) return false;
    std::vector<Expr> used;
    CollectSymbols(e, used);
    size_t depth = 0;
    for (Expr symbol : used) {
      auto bound = depth_.find(symbol.node());
      if (bound == depth_.end()) return false;
      depth = std::max(depth, bound->second);
    }
    ExprCode code;
    Post(e, code);
    const int slot = out_.num_slots++;
    scopes_[depth].push_back({slot, std::move(code)});
    it = precomputed_.emplace(e.node(), slot).first;
  }
  out.terms.push_back({it->second, scale});
  return true;
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
  if (e.kind() != ExprKind::kMul) return Precomputed(e, scale, out);
  const int64_t outer_scale = scale;
  Expr rest = 1;
  bool has_rest = false;
  for (Expr a : e.node()->args) {
    if (a.IsConst()) {
      scale *= a.value();
    } else if (has_rest) {
      return Precomputed(e, outer_scale, out);
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
  if (Affine(index, access.base, access.stride)) return access;
  // What is the same for all lanes stays out of the row, which then serves more steps.
  Expr uniform = 0, varying = 0;
  if (index.kind() == ExprKind::kAdd) {
    for (Expr a : index.node()->args) (Varies(a) ? varying : uniform) += a;
  } else {
    varying = index;
  }
  access.base = Uniform(uniform);
  access.stride = ExprCode{};
  bool owned;
  access.index_row = RowOf(varying, code, owned);
  if (owned) pending_.push_back(access.index_row);
  access.bounds_row = Emit(code, BoundsRow(), false, access.index_row);
  pending_.push_back(access.bounds_row);
  return access;
}

// ---- Values ----

int Compiler::NewRow() {
  // What is kept must not meet the rows of lets, which run in between.
  if (keep_rows_ || free_.empty()) return out_.num_rows++;
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
    const Expr index = Flat(n.index);
    const bool varies = Varies(index);
    const int row = RowOf(index, code, owned);
    if (!varies) code.back().uniform = true;
    Place& q = places_[id];
    q.owned = owned;
    (varies ? q.varying : q.uniform) = row;
    return q;
  }
  if (n.op == Op::kLoad) {
    const Expr index = Flat(n.index);
    Access access = AccessOf(n.buffer, index, code);
    const bool varies = Varies(index);
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
             : n.op == Op::kFma     ? FmaRow()
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

}  // namespace ge::tile::interpret
