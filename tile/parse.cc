// Reads the text form of TileIR (see text.cc). Names that the kernel binds become symbols of their
// own, even if the arena has symbols of those names with other facts.
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "tile/fold.h"
#include "tile/op_names.h"
#include "tile/tile.h"
#include "tile/walk.h"

namespace ge::tile {
namespace {

class Parser {
 public:
  Parser(std::string_view text, ExprArena& arena) : r_(text), arena_(arena) {}
  Result<Kernel> Run();

 private:
  Status Header();
  Status Args();
  Result<Expr> Exp();
  Result<int64_t> ConstExp();
  Result<Expr> Bind(const std::string& name, Expr extent, bool is_loop);
  Result<std::pair<Expr, Expr>> Axis();  // NAME in EXPR
  Result<std::vector<std::pair<Expr, Expr>>> Axes();
  Result<DType> Type(std::string_view name);
  Result<Buffer> BufferType(std::string name);
  Result<int> BufferId();
  Result<VarId> NewVar();
  Result<ExprId> Value();
  Result<ExprId> Number();
  Result<ExprId> Call(const std::string& name);
  Status Operands(ValueNode& n);
  Status CheckOperands(const ValueNode& n);
  Status Body(std::vector<Stmt>& out);  // statements up to and including "}"
  Status Define();
  Result<Stmt> Statement();
  Status Loop(Stmt& s, LoopKind kind);
  Status Let(Stmt& s);
  Status Reduce(Stmt& s);
  Status If(Stmt& s);
  Status Store(Stmt& s);
  Status Alloc(Stmt& s);
  Status Gemm(Stmt& s);

  TextReader r_;
  ExprArena& arena_;
  ExprArena scratch_;
  Kernel k_;
  std::unordered_map<std::string, std::string> bound_;  // name in the text -> symbol's name
  std::unordered_map<std::string, int> buffers_;
  std::unordered_map<std::string, VarId> vars_;
  std::unordered_map<int64_t, ExprId> shared_;
};

// The extent of the Expr is found by parsing it once into a scratch arena; then its bound names are
// replaced by those of their symbols.
Result<Expr> Parser::Exp() {
  const size_t begin = r_.position();
  GE_TRY(ParseExpr(r_, scratch_).status());
  std::string_view text = r_.text().substr(begin, r_.position() - begin);
  std::string renamed;
  TextReader inner(text);
  size_t done = 0;
  while (!inner.AtEnd()) {
    const size_t at = inner.position();
    Token t = inner.Next();
    if (t.kind != TokenKind::kName && t.kind != TokenKind::kQuoted) continue;
    auto it = bound_.find(t.kind == TokenKind::kName ? std::string(t.text) : t.string);
    if (it == bound_.end()) continue;
    renamed += text.substr(done, at - done);
    renamed += QuoteName(it->second);
    done = at + t.text.size();
  }
  renamed += text.substr(done);
  GE_ASSIGN(Expr e, ParseExpr(renamed, arena_));
  if (!e.IsValid()) return r_.Fault("invalid expression");
  return e;
}

Result<int64_t> Parser::ConstExp() {
  GE_ASSIGN(Expr e, Exp());
  if (!e.IsConst()) return r_.Fault("a constant is expected");
  return e.value();
}

Result<Expr> Parser::Bind(const std::string& name, Expr extent, bool is_loop) {
  SymbolFacts facts;
  if (is_loop) {
    const int64_t hi = Bounds(extent).hi;
    facts.extent = extent;
    facts.hi = hi == INT64_MAX ? hi : (hi > 0 ? hi - 1 : 0);
  } else {
    facts.lo = INT64_MIN;
  }
  Expr symbol = arena_.Find(name) ? arena_.Fresh(name, facts) : arena_.Symbol(name, facts);
  bound_[name] = symbol.node()->name;
  return symbol;
}

Result<std::pair<Expr, Expr>> Parser::Axis() {
  GE_ASSIGN(std::string name, r_.Name());
  GE_TRY(r_.Expect("in"));
  GE_ASSIGN(Expr extent, Exp());
  GE_ASSIGN(Expr symbol, Bind(name, extent, true));
  return std::pair<Expr, Expr>{symbol, extent};
}

Result<std::vector<std::pair<Expr, Expr>>> Parser::Axes() {
  std::vector<std::pair<Expr, Expr>> axes;
  GE_TRY(r_.Expect("("));
  while (!r_.Is(")")) {
    if (!axes.empty()) GE_TRY(r_.Expect(","));
    GE_ASSIGN(auto axis, Axis());
    axes.push_back(axis);
  }
  GE_TRY(r_.Expect(")"));
  return axes;
}

Result<DType> Parser::Type(std::string_view name) {
  std::optional<DType> type = ParseDType(name);
  if (!type) return r_.Fault("unknown type " + std::string(name));
  return *type;
}

Result<Buffer> Parser::BufferType(std::string name) {
  GE_TRY(r_.Expect(":"));
  GE_ASSIGN(std::string type_name, r_.Name());
  Buffer b;
  b.name = std::move(name);
  GE_ASSIGN(b.dtype, Type(type_name));
  GE_TRY(r_.Expect("["));
  GE_ASSIGN(b.elements, Exp());
  GE_TRY(r_.Expect("]"));
  return b;
}

Result<int> Parser::BufferId() {
  GE_ASSIGN(std::string name, r_.Name());
  auto it = buffers_.find(name);
  if (it == buffers_.end()) return r_.Fault("unknown buffer " + name);
  return it->second;
}

Result<VarId> Parser::NewVar() {
  GE_ASSIGN(std::string name, r_.Name());
  VarId id = static_cast<VarId>(k_.vars.size());
  k_.vars.push_back({});
  vars_[name] = id;
  return id;
}

Result<ExprId> Parser::Number() {
  ValueNode n;
  const Token first = r_.Peek();
  const bool negative = r_.Accept("-");
  const Token t = r_.Next();
  GE_TRY(r_.Expect(":"));
  GE_ASSIGN(std::string type_name, r_.Name());
  GE_ASSIGN(n.type, Type(type_name));
  if (!IsComputeType(n.type)) return r_.Fault("constants are of compute types");
  if (IsFloat(n.type)) {
    double v = t.number;
    if (t.kind == TokenKind::kName) v = t.text == "nan" ? __builtin_nan("") : __builtin_inf();
    n.f = negative ? -v : v;
  } else {
    if (t.kind != TokenKind::kInt) return r_.Fault("an integer is expected");
    n.i = static_cast<int64_t>(negative ? 0 - t.magnitude : t.magnitude);
  }
  return k_.Add(n);
}

// nullptr-free check of what Verify would refuse and what would break evaluation of the text.
Status Parser::CheckOperands(const ValueNode& n) {
  const DType type = k_.values[n.a].type;
  if (n.op == Op::kSelect) {
    if (type != DType::kBool || k_.values[n.b].type != k_.values[n.c].type) {
      return r_.Fault("operands of select do not fit");
    }
    return {};
  }
  for (ExprId other : {n.b, n.c}) {
    if (other >= 0 && k_.values[other].type != type) return r_.Fault("operands of different types");
  }
  if (n.op == Op::kCast || n.op == Op::kNarrow || n.op == Op::kBitCast) return {};
  if (!HasOp(n.op, type)) {
    return r_.Fault(std::string(Name(n.op)) + " does not exist for " + std::string(ge::Name(type)));
  }
  return {};
}

Status Parser::Operands(ValueNode& n) {
  const int count = NumOperands(n.op);
  ExprId* into[] = {&n.a, &n.b, &n.c};
  for (int i = 0; i < count; ++i) {
    if (i) GE_TRY(r_.Expect(","));
    GE_ASSIGN(*into[i], Value());
  }
  return {};
}

Result<ExprId> Parser::Call(const std::string& name) {
  ValueNode n;
  std::string op_name = name, suffix;
  if (size_t dot = name.find('.'); dot != std::string::npos) {
    op_name = name.substr(0, dot);
    suffix = name.substr(dot + 1);
  }
  std::optional<Op> op = ParseOp(op_name);
  if (!op || *op == Op::kConst || *op == Op::kVar) return r_.Fault("unknown operation " + name);
  n.op = *op;
  GE_TRY(r_.Expect("("));
  if (n.op == Op::kIndex) {
    n.type = DType::kI64;
    GE_ASSIGN(n.index, Exp());
  } else if (n.op == Op::kLoad) {
    GE_ASSIGN(n.buffer, BufferId());
    n.type = ComputeType(k_.buffers[n.buffer].dtype);
    GE_TRY(r_.Expect(","));
    GE_ASSIGN(n.index, Exp());
  } else {
    GE_TRY(Operands(n));
    GE_TRY(CheckOperands(n));
    const DType from = k_.values[n.a].type;
    if (n.op == Op::kCast || n.op == Op::kBitCast) {
      GE_ASSIGN(n.type, Type(suffix));
    } else if (n.op == Op::kNarrow) {
      n.type = from;
      GE_ASSIGN(n.storage, Type(suffix));
    } else {
      n.type = n.op == Op::kSelect ? k_.values[n.b].type : ResultType(n.op, from);
    }
  }
  GE_TRY(r_.Expect(")"));
  return k_.Add(n);
}

Result<ExprId> Parser::Value() {
  TextReader::Nest nest(r_);
  GE_TRY(nest.status());
  if (r_.Accept("%")) {
    GE_ASSIGN(int64_t number, r_.Int());
    auto it = shared_.find(number);
    if (it == shared_.end()) return r_.Fault("unknown value %" + std::to_string(number));
    return it->second;
  }
  if (r_.AtNumber() || r_.Is("nan") || r_.Is("inf")) return Number();
  GE_ASSIGN(std::string name, r_.Name());
  if (!r_.Is("(")) {
    auto it = vars_.find(name);
    if (it == vars_.end()) return r_.Fault("unknown variable " + name);
    ValueNode n;
    n.op = Op::kVar;
    n.var = it->second;
    n.type = k_.vars[n.var].type;
    return k_.Add(n);
  }
  return Call(name);
}

Status Parser::Define() {
  GE_ASSIGN(int64_t number, r_.Int());
  GE_TRY(r_.Expect("="));
  GE_ASSIGN(shared_[number], Value());
  return {};
}

Status Parser::Body(std::vector<Stmt>& out) {
  GE_TRY(r_.Expect("{"));
  while (!r_.Accept("}")) {
    if (r_.Accept("%")) {
      GE_TRY(Define());
      continue;
    }
    GE_ASSIGN(Stmt s, Statement());
    out.push_back(std::move(s));
  }
  return {};
}

Status Parser::Loop(Stmt& s, LoopKind kind) {
  s.kind = StmtKind::kLoop;
  s.loop = kind;
  GE_ASSIGN(auto axis, Axis());
  s.symbol = axis.first;
  s.extent = axis.second;
  return Body(s.body);
}

Status Parser::Let(Stmt& s) {
  s.kind = StmtKind::kLet;
  GE_ASSIGN(s.var, NewVar());
  std::string symbol;
  if (r_.Accept("as")) {
    GE_ASSIGN(symbol, r_.Name());
  }
  GE_TRY(r_.Expect("="));
  GE_ASSIGN(s.value, Value());
  k_.vars[s.var].type = k_.values[s.value].type;
  if (!symbol.empty()) {
    GE_ASSIGN(k_.vars[s.var].index, Bind(symbol, 0, false));
  }
  return {};
}

Status Parser::Reduce(Stmt& s) {
  s.kind = StmtKind::kReduce;
  GE_ASSIGN(s.var, NewVar());
  std::string symbol;
  if (r_.Accept("as")) {
    GE_ASSIGN(symbol, r_.Name());
  }
  GE_TRY(r_.Expect("="));
  GE_ASSIGN(std::string name, r_.Name());
  std::optional<ReduceOp> op = ParseReduceOp(name);
  if (!op) return r_.Fault("unknown reduction " + name);
  s.reduce = *op;
  GE_ASSIGN(s.axes, Axes());
  GE_TRY(r_.Expect("{"));
  while (!r_.Accept("yield")) {
    if (r_.Accept("%")) {
      GE_TRY(Define());
      continue;
    }
    GE_ASSIGN(Stmt inner, Statement());
    s.body.push_back(std::move(inner));
  }
  GE_ASSIGN(s.value, Value());
  GE_TRY(r_.Expect("}"));
  k_.vars[s.var].type = k_.values[s.value].type;
  if (!symbol.empty()) {
    GE_ASSIGN(k_.vars[s.var].index, Bind(symbol, 0, false));
  }
  return {};
}

Status Parser::If(Stmt& s) {
  s.kind = StmtKind::kIf;
  GE_ASSIGN(s.value, Value());
  GE_TRY(Body(s.body));
  return r_.Accept("else") ? Body(s.orelse) : Status();
}

Status Parser::Store(Stmt& s) {
  s.kind = StmtKind::kStore;
  GE_ASSIGN(s.buffer, BufferId());
  GE_TRY(r_.Expect("["));
  GE_ASSIGN(s.index, Exp());
  GE_TRY(r_.Expect("]"));
  GE_TRY(r_.Expect("="));
  GE_ASSIGN(s.value, Value());
  return {};
}

Status Parser::Alloc(Stmt& s) {
  s.kind = StmtKind::kAlloc;
  GE_ASSIGN(std::string name, r_.Name());
  GE_ASSIGN(Buffer b, BufferType(name));
  b.is_arg = false;
  b.written = true;
  s.buffer = static_cast<int>(k_.buffers.size());
  buffers_[name] = s.buffer;
  k_.buffers.push_back(std::move(b));
  return Body(s.body);
}

Status Parser::Gemm(Stmt& s) {
  s.kind = StmtKind::kBrGemm;
  BrGemm& g = s.gemm;
  GE_ASSIGN(g.acc, NewVar());
  GE_TRY(r_.Expect("("));
  GE_ASSIGN(int64_t m, ConstExp());
  GE_TRY(r_.Expect(","));
  GE_ASSIGN(int64_t n, ConstExp());
  GE_TRY(r_.Expect(","));
  g.m = static_cast<int>(m);
  g.n = static_cast<int>(n);
  GE_ASSIGN(g.k, Exp());
  if (r_.Accept(",")) {
    GE_TRY(r_.Expect("by"));
    GE_ASSIGN(int64_t group, ConstExp());
    g.k_group = static_cast<int>(group);
    g.signed_a = r_.Accept("signed");
  }
  GE_TRY(r_.Expect(")"));
  GE_TRY(r_.Expect("valid"));
  GE_ASSIGN(g.n_valid, Exp());
  const auto bind = [&]() -> Status {
    GE_ASSIGN(std::string row, r_.Name());
    GE_TRY(r_.Expect(","));
    GE_ASSIGN(std::string col, r_.Name());
    GE_ASSIGN(g.row, Bind(row, g.m, true));
    GE_ASSIGN(g.col, Bind(col, g.n_valid, true));
    return {};
  };
  const bool uneven = r_.Accept("at");
  if (uneven) GE_TRY(bind());
  GE_TRY(r_.Expect("batch"));
  GE_ASSIGN(g.batch, Axes());
  GE_TRY(r_.Expect("a"));
  GE_ASSIGN(g.a_buffer, BufferId());
  GE_TRY(r_.Expect("["));
  GE_ASSIGN(g.a, Exp());
  GE_TRY(r_.Expect(","));
  GE_ASSIGN(g.a_row, Exp());
  GE_TRY(r_.Expect(","));
  GE_ASSIGN(g.a_k, Exp());
  GE_TRY(r_.Expect("]"));
  GE_TRY(r_.Expect("b"));
  GE_ASSIGN(g.b_buffer, BufferId());
  GE_TRY(r_.Expect("["));
  GE_ASSIGN(g.b, Exp());
  GE_TRY(r_.Expect(","));
  GE_ASSIGN(g.b_k, Exp());
  GE_TRY(r_.Expect("]"));
  GE_TRY(r_.Expect("prefetch"));
  GE_ASSIGN(int64_t prefetch, ConstExp());
  g.prefetch = static_cast<int>(prefetch);
  if (!uneven) {
    GE_TRY(r_.Expect("at"));
    GE_TRY(bind());
  }
  k_.vars[g.acc].type = ComputeType(k_.buffers[g.a_buffer].dtype);
  return Body(s.body);
}

Result<Stmt> Parser::Statement() {
  TextReader::Nest nest(r_);
  GE_TRY(nest.status());
  Stmt s;
  if (r_.Is("{")) {
    GE_TRY(Body(s.body));
    return s;
  }
  GE_ASSIGN(std::string word, r_.Name());
  Status status;
  if (std::optional<LoopKind> kind = ParseLoopKind(word))
    status = Loop(s, *kind);
  else if (word == "let")
    status = Let(s);
  else if (word == "reduce")
    status = Reduce(s);
  else if (word == "if")
    status = If(s);
  else if (word == "store")
    status = Store(s);
  else if (word == "alloc")
    status = Alloc(s);
  else if (word == "gemm")
    status = Gemm(s);
  else
    status = r_.Fault("unknown statement " + word);
  GE_TRY(status);
  return s;
}

Status Parser::Header() {
  GE_TRY(r_.Expect("kernel"));
  if (r_.Peek().kind == TokenKind::kQuoted) {
    GE_ASSIGN(k_.name, r_.Quoted());
  }
  GE_TRY(r_.Expect("("));
  while (!r_.Is(")")) {
    if (!k_.symbols.empty()) GE_TRY(r_.Expect(","));
    GE_ASSIGN(std::string name, r_.Name());
    k_.symbols.push_back(arena_.Symbol(name, {.lo = INT64_MIN}));
  }
  return r_.Expect(")");
}

Status Parser::Args() {
  while (r_.Accept("arg")) {
    GE_ASSIGN(std::string name, r_.Name());
    GE_ASSIGN(Buffer b, BufferType(name));
    b.written = r_.Accept("out");
    if (r_.Accept("within")) {
      GE_ASSIGN(b.within, r_.Float());
    }
    buffers_[name] = static_cast<int>(k_.buffers.size());
    k_.buffers.push_back(std::move(b));
  }
  return {};
}

Result<Kernel> Parser::Run() {
  GE_TRY(Header());
  GE_TRY(Args());
  while (!r_.AtEnd()) {
    if (r_.Accept("%")) {
      GE_TRY(Define());
      continue;
    }
    GE_ASSIGN(Stmt s, Statement());
    k_.body.body.push_back(std::move(s));
  }
  return std::move(k_);
}

}  // namespace

Result<Kernel> ParseKernel(std::string_view text, ExprArena& arena) {
  return Parser(text, arena).Run();
}

}  // namespace ge::tile
