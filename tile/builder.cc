// Builder: see builder.h. Statements are appended to the innermost open block; an outer block never
// grows while an inner one is open, so that the addresses in `blocks_` stay valid.
#include "tile/builder.h"

#include <cmath>

#include "base/check.h"
#include "tile/fold.h"
#include "tile/merge_axes.h"

namespace ge::tile {
namespace {

bool IsConstant(const ValueNode& n) { return n.op == Op::kConst; }

bool Equals(const ValueNode& n, double x) {
  if (!IsConstant(n)) return false;
  return IsFloat(n.type) ? n.f == x : n.i == static_cast<int64_t>(x);
}

bool IsCompare(Op op) { return op >= Op::kLt && op <= Op::kNe; }

// Facts of a loop variable.
SymbolFacts Within(Expr extent) {
  SymbolFacts facts;
  facts.lo = 0;
  int64_t hi = Bounds(extent).hi;
  facts.hi = hi == INT64_MAX ? hi : (hi > 0 ? hi - 1 : 0);
  facts.extent = extent;
  return facts;
}

}  // namespace

DType Val::type() const { return b->kernel().values[id].type; }

Builder::Builder(Kernel& kernel, ExprArena& arena) : kernel_(kernel), arena_(arena) {
  blocks_.push_back(&kernel_.body);
}

Val Builder::Const(DType type, double x) {
  if (!IsFloat(type)) return ConstInt(type, static_cast<int64_t>(x));
  GE_CHECK(IsComputeType(type), "constant of a storage type");
  ValueNode n;
  n.type = type;
  n.f = type == DType::kF32 ? static_cast<float>(x) : x;
  return {this, kernel_.Add(n)};
}

Val Builder::ConstInt(DType type, int64_t x) {
  GE_CHECK(IsComputeType(type), "constant of a storage type");
  if (IsFloat(type)) return Const(type, static_cast<double>(x));
  ValueNode n;
  n.type = type;
  n.i = type == DType::kI32 ? static_cast<int32_t>(x) : (type == DType::kBool ? x != 0 : x);
  return {this, kernel_.Add(n)};
}

// Inside a loop of no steps. Index arithmetic there may divide by an extent of 0; it never runs.
static bool NeverRuns(const std::vector<Stmt*>& blocks) {
  for (const Stmt* s : blocks) {
    if (s->kind == StmtKind::kLoop && s->extent.IsConst(0)) return true;
    if (s->kind == StmtKind::kReduce)
      for (const auto& [symbol, extent] : s->axes)
        if (extent.IsConst(0)) return true;
  }
  return false;
}

static Expr ValidOrUnused(Expr e, const std::vector<Stmt*>& blocks) {
  return !e.IsValid() && NeverRuns(blocks) ? Expr(0) : e;
}

Val Builder::Index(Expr e) {
  e = ValidOrUnused(e, blocks_);
  GE_CHECK(e.IsValid(), "index value is invalid");
  if (e.IsConst()) return ConstInt(DType::kI64, e.value());
  ValueNode n;
  n.op = Op::kIndex;
  n.type = DType::kI64;
  n.index = e;
  return {this, kernel_.Add(n)};
}

Val Builder::Load(int buffer, Expr offset) {
  GE_CHECK(buffer >= 0 && buffer < static_cast<int>(kernel_.buffers.size()), "load of no buffer");
  offset = ValidOrUnused(offset, blocks_);
  GE_CHECK(offset.IsValid(), "load offset is invalid");
  ValueNode n;
  n.op = Op::kLoad;
  n.type = ComputeType(kernel_.buffers[buffer].dtype);
  n.buffer = buffer;
  n.index = offset;
  // A load from a buffer that this kernel writes depends on when it happens; it is bound here.
  const Buffer& from = kernel_.buffers[buffer];
  Val v{this, kernel_.Add(n)};
  return from.is_arg && !from.written ? v : Let(v);
}

Val Builder::Unary(Op op, Val a) {
  GE_CHECK(op >= Op::kNeg && op <= Op::kLog1p, "not a unary operation");
  GE_CHECK(HasOp(op, a.type()), "operation does not exist for this type");
  ValueNode n;
  n.op = op;
  n.a = a.id;
  n.type = ResultType(op, a.type());
  if (auto folded = Fold(n, &kernel_.values[a.id], nullptr)) return {this, kernel_.Add(*folded)};
  return {this, kernel_.Add(n)};
}

Val Builder::Binary(Op op, Val a, Val b) {
  GE_CHECK(a.type() == b.type(), "operands of different types");
  GE_CHECK(HasOp(op, a.type()), "operation does not exist for this type");
  const ValueNode& x = kernel_.values[a.id];
  const ValueNode& y = kernel_.values[b.id];
  const bool integer = IsInteger(x.type);
  ValueNode n;
  n.op = op;
  n.a = a.id;
  n.b = b.id;
  n.type = ResultType(op, a.type());
  if (IsConstant(x) && IsConstant(y)) {
    if (auto folded = Fold(n, &x, &y)) return {this, kernel_.Add(*folded)};
  }
  // Index arithmetic stays in Exprs, where it simplifies and gives linear addresses.
  if (x.type == DType::kI64 && (x.op == Op::kIndex || y.op == Op::kIndex)) {
    auto expr_of = [](const ValueNode& v) -> std::optional<Expr> {
      if (v.op == Op::kIndex) return v.index;
      if (v.op == Op::kConst) return Expr(v.i);
      return std::nullopt;
    };
    auto ea = expr_of(x), eb = expr_of(y);
    if (ea && eb) {
      Expr e = Expr::Invalid();
      if (op == Op::kAdd) e = *ea + *eb;
      if (op == Op::kSub) e = *ea - *eb;
      if (op == Op::kMul) e = *ea * *eb;
      if (op == Op::kMin) e = ge::Min(*ea, *eb);
      if (op == Op::kMax) e = ge::Max(*ea, *eb);
      if (e.IsValid()) return Index(e);
      if (IsCompare(op)) {
        Expr c = op == Op::kLt   ? Lt(*ea, *eb)
                 : op == Op::kLe ? Le(*ea, *eb)
                 : op == Op::kEq ? Eq(*ea, *eb)
                                 : Ne(*ea, *eb);
        if (c.IsConst()) return ConstInt(DType::kBool, c.value());
      }
    }
  }
  // Neutral operands. x + 0.0 stays: it changes -0.0.
  switch (op) {
    case Op::kAdd:
      if (integer && Equals(y, 0)) return a;
      if (integer && Equals(x, 0)) return b;
      break;
    case Op::kSub:
      if (Equals(y, 0) && !std::signbit(y.f)) return a;
      break;
    case Op::kMul:
      if (Equals(y, 1)) return a;
      if (Equals(x, 1)) return b;
      break;
    case Op::kDiv:
      if (Equals(y, 1)) return a;
      break;
    case Op::kAnd:
      if (x.type == DType::kBool && IsConstant(x)) return x.i ? b : a;
      if (x.type == DType::kBool && IsConstant(y)) return y.i ? a : b;
      break;
    case Op::kOr:
      if (x.type == DType::kBool && IsConstant(x)) return x.i ? a : b;
      if (x.type == DType::kBool && IsConstant(y)) return y.i ? b : a;
      break;
    case Op::kMin:
    case Op::kMax:
      if (a.id == b.id) return a;
      break;
    default: break;
  }
  return {this, kernel_.Add(n)};
}

Val Builder::Select(Val condition, Val a, Val b) {
  GE_CHECK(condition.type() == DType::kBool, "select by a value that is not bool");
  GE_CHECK(a.type() == b.type(), "select between different types");
  const ValueNode& c = kernel_.values[condition.id];
  if (IsConstant(c)) return c.i ? a : b;
  if (a.id == b.id) return a;
  ValueNode n;
  n.op = Op::kSelect;
  n.a = condition.id;
  n.b = a.id;
  n.c = b.id;
  n.type = a.type();
  return {this, kernel_.Add(n)};
}

Val Builder::Fma(Val a, Val b, Val c) {
  GE_CHECK(a.type() == DType::kF32 && b.type() == DType::kF32 && c.type() == DType::kF32,
           "fma of values that are not f32");
  ValueNode n;
  n.op = Op::kFma;
  n.a = a.id;
  n.b = b.id;
  n.c = c.id;
  n.type = DType::kF32;
  return {this, kernel_.Add(n)};
}

Val Builder::Cast(Val a, DType compute_type) {
  GE_CHECK(IsComputeType(compute_type), "cast to a storage type");
  if (a.type() == compute_type) return a;
  ValueNode n;
  n.op = Op::kCast;
  n.a = a.id;
  n.type = compute_type;
  if (auto folded = Fold(n, &kernel_.values[a.id], nullptr)) return {this, kernel_.Add(*folded)};
  return {this, kernel_.Add(n)};
}

Val Builder::Narrow(Val a, DType storage) {
  GE_CHECK(a.type() == ComputeType(storage), "narrow to a storage of another compute type");
  if (storage == a.type()) return a;
  ValueNode n;
  n.op = Op::kNarrow;
  n.a = a.id;
  n.type = a.type();
  n.storage = storage;
  const ValueNode& x = kernel_.values[a.id];
  if (x.op == Op::kNarrow && x.storage == storage) return a;
  if (x.op == Op::kLoad && kernel_.buffers[x.buffer].dtype == storage) return a;
  if (auto folded = Fold(n, &x, nullptr)) return {this, kernel_.Add(*folded)};
  return {this, kernel_.Add(n)};
}

Val Builder::Convert(Val a, DType to) { return Narrow(Cast(a, ComputeType(to)), to); }

Val Builder::BitCast(Val a, DType compute_type) {
  GE_CHECK(IsComputeType(compute_type) && BitWidth(compute_type) == BitWidth(a.type()),
           "bit cast between different widths");
  if (a.type() == compute_type) return a;
  ValueNode n;
  n.op = Op::kBitCast;
  n.a = a.id;
  n.type = compute_type;
  if (auto folded = Fold(n, &kernel_.values[a.id], nullptr)) return {this, kernel_.Add(*folded)};
  return {this, kernel_.Add(n)};
}

int Builder::Arg(std::string_view name, DType dtype, Expr elements, bool written) {
  GE_CHECK(kernel_.buffers.empty() || kernel_.buffers.back().is_arg, "args come before locals");
  kernel_.buffers.push_back({std::string(name), dtype, true, written, elements});
  return static_cast<int>(kernel_.buffers.size()) - 1;
}

void Builder::For(std::string_view name, Expr extent, LoopKind kind,
                  const std::function<void(Expr)>& body) {
  extent = ValidOrUnused(extent, blocks_);
  GE_CHECK(extent.IsValid(), "loop extent is invalid");
  const size_t depth = blocks_.size();
  if (extent.IsConst(1)) {
    // Locals of the single step stay alive to the end of the enclosing block, which is harmless.
    body(Expr(0));
    return;
  }
  Expr symbol = arena_.Fresh(name, Within(extent));
  {
    Stmt s;
    s.kind = StmtKind::kLoop;
    s.loop = kind;
    s.symbol = symbol;
    s.extent = extent;
    blocks_.back()->body.push_back(std::move(s));
  }
  blocks_.push_back(&blocks_.back()->body.back());
  body(symbol);
  blocks_.resize(depth);
}

int Builder::Alloc(std::string_view name, DType dtype, Expr elements) {
  int id = static_cast<int>(kernel_.buffers.size());
  kernel_.buffers.push_back({std::string(name), dtype, false, true, elements});
  Stmt s;
  s.kind = StmtKind::kAlloc;
  s.buffer = id;
  blocks_.back()->body.push_back(std::move(s));
  blocks_.push_back(&blocks_.back()->body.back());
  return id;
}

Val Builder::Let(Val value) {
  const ValueNode& v = kernel_.values[value.id];
  if (v.op == Op::kConst || v.op == Op::kVar) return value;
  ValueNode n;
  n.op = Op::kVar;
  n.type = v.type;
  n.var = static_cast<VarId>(kernel_.vars.size());
  kernel_.vars.push_back({n.type, 0});
  Stmt s;
  s.kind = StmtKind::kLet;
  s.value = value.id;
  s.var = n.var;
  blocks_.back()->body.push_back(std::move(s));
  return {this, kernel_.Add(n)};
}

Expr Builder::LetIndex(Val value, int64_t lo, int64_t hi, Expr extent, int64_t hint) {
  GE_CHECK(value.type() == DType::kI64, "an index symbol needs an i64 value");
  const ValueNode& v = kernel_.values[value.id];
  if (v.op == Op::kConst) return v.i;
  if (v.op == Op::kIndex) return v.index;
  SymbolFacts facts;
  facts.lo = lo;
  facts.hi = hi;
  facts.extent = extent;
  facts.hint = hint;
  Expr symbol = arena_.Fresh("x", facts);
  Stmt s;
  s.kind = StmtKind::kLet;
  s.value = value.id;
  s.var = static_cast<VarId>(kernel_.vars.size());
  kernel_.vars.push_back({DType::kI64, symbol});
  blocks_.back()->body.push_back(std::move(s));
  return symbol;
}

void Builder::If(Val condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise) {
  GE_CHECK(condition.type() == DType::kBool, "If of a value that is not bool");
  if (const ValueNode c = kernel_.values[condition.id]; c.op == Op::kConst) {
    if (c.i) then();
    if (!c.i && otherwise) otherwise();
    return;
  }
  // Built apart, since both branches may open blocks of their own.
  Stmt branch, other;
  const size_t depth = blocks_.size();
  blocks_.push_back(&branch);
  then();
  blocks_.resize(depth);
  if (otherwise) {
    blocks_.push_back(&other);
    otherwise();
    blocks_.resize(depth);
  }
  Stmt s;
  s.kind = StmtKind::kIf;
  s.value = condition.id;
  s.body = std::move(branch.body);
  s.orelse = std::move(other.body);
  blocks_.back()->body.push_back(std::move(s));
}

void Builder::Store(int buffer, Expr offset, Val value) {
  GE_CHECK(buffer >= 0 && buffer < static_cast<int>(kernel_.buffers.size()), "store to no buffer");
  offset = ValidOrUnused(offset, blocks_);
  GE_CHECK(offset.IsValid(), "store offset is invalid");
  const Buffer& to = kernel_.buffers[buffer];
  GE_CHECK(to.written, "store to a read-only buffer");
  GE_CHECK(value.type() == ComputeType(to.dtype), "store of another type");
  Stmt s;
  s.kind = StmtKind::kStore;
  s.buffer = buffer;
  s.index = offset;
  s.value = value.id;
  blocks_.back()->body.push_back(std::move(s));
}

Val Builder::Reduce(ReduceOp op, const std::vector<Expr>& extents,
                    const std::function<Val(const std::vector<Expr>&)>& f) {
  Stmt s;
  s.kind = StmtKind::kReduce;
  s.reduce = op;
  std::vector<Expr> indices;
  for (Expr e : extents) {
    e = ValidOrUnused(e, blocks_);
    GE_CHECK(e.IsValid(), "reduce extent is invalid");
    indices.push_back(e.IsConst(1) ? Expr(0) : arena_.Fresh("r", Within(e)));
    if (!e.IsConst(1)) s.axes.push_back({indices.back(), e});
  }
  if (s.axes.empty()) return Let(f(indices));
  const size_t depth = blocks_.size();
  blocks_.push_back(&s);
  Val v = f(indices);
  GE_CHECK(blocks_.size() == depth + 1, "a Reduce's step may not allocate");
  blocks_.resize(depth);
  s.value = v.id;
  MergeAxes(kernel_, s, [&](Expr extent) { return arena_.Fresh("r", Within(extent)); });
  s.var = static_cast<VarId>(kernel_.vars.size());
  kernel_.vars.push_back({v.type(), 0});
  ValueNode n;
  n.op = Op::kVar;
  n.type = v.type();
  n.var = s.var;
  blocks_.back()->body.push_back(std::move(s));
  return {this, kernel_.Add(n)};
}

void Builder::Gemm(BrGemm gemm, const std::function<void(Expr row, Expr col, Val acc)>& epilogue) {
  if (!gemm.row.IsSymbol()) gemm.row = arena_.Fresh("row", Within(gemm.m));
  gemm.col = arena_.Fresh("col", Within(gemm.n_valid));
  const DType type = ComputeType(kernel_.buffers[gemm.a_buffer].dtype);
  gemm.acc = static_cast<VarId>(kernel_.vars.size());
  kernel_.vars.push_back({type, 0});
  ValueNode n;
  n.op = Op::kVar;
  n.type = type;
  n.var = gemm.acc;
  Val acc{this, kernel_.Add(n)};
  Stmt body;
  const size_t depth = blocks_.size();
  blocks_.push_back(&body);
  epilogue(gemm.row, gemm.col, acc);
  blocks_.resize(depth);
  Stmt s;
  s.kind = StmtKind::kBrGemm;
  s.gemm = std::move(gemm);
  s.body = std::move(body.body);
  blocks_.back()->body.push_back(std::move(s));
}

Val operator+(Val a, double x) { return a + a.b->Const(a.type(), x); }
Val operator-(Val a, double x) { return a - a.b->Const(a.type(), x); }
Val operator*(Val a, double x) { return a * a.b->Const(a.type(), x); }
Val operator/(Val a, double x) { return a / a.b->Const(a.type(), x); }
Val operator-(double x, Val a) { return a.b->Const(a.type(), x) - a; }
Val operator/(double x, Val a) { return a.b->Const(a.type(), x) / a; }

}  // namespace ge::tile
