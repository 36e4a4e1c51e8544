// Structural legality of a kernel: every fault is listed, a line each.
#include <string>
#include <unordered_set>
#include <vector>

#include "tile/fold.h"
#include "tile/op_names.h"
#include "tile/tile.h"
#include "tile/walk.h"

namespace ge::tile {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& k) : k_(k) {}
  Status Run();

 private:
  void Fault(const std::string& message) {
    if (num_faults_++ < 50) faults_ += (faults_.empty() ? "" : "\n") + message;
  }
  bool IsBuffer(int b) const { return b >= 0 && b < static_cast<int>(k_.buffers.size()); }
  bool IsValue(ExprId v) const { return v >= 0 && v < static_cast<ExprId>(k_.values.size()); }
  bool IsVar(VarId v) const { return v >= 0 && v < static_cast<VarId>(k_.vars.size()); }
  void CheckBuffers();
  void CheckValue(ExprId id);
  void CheckOperation(const ValueNode& n, const std::string& where);
  void InScope(Expr e, const std::string& where);
  void BufferInScope(int buffer, const std::string& where);
  void UseInScope(ExprId root, const std::string& where);
  void Open(Expr symbol, const std::string& where);
  void Bind(VarId v, const std::string& where);
  void Statement(const Stmt& s, bool top);
  void Scope(const std::vector<Stmt>& body, bool top = false);
  void Reduce(const Stmt& s);
  void Gemm(const Stmt& s);

  const Kernel& k_;
  std::string faults_;
  int num_faults_ = 0;
  std::unordered_set<const ExprNode*> sizes_;
  // What is open, innermost last; a scope ends by cutting them back.
  std::vector<const ExprNode*> symbols_;
  std::vector<VarId> vars_;
  std::vector<int> locals_;
  std::vector<bool> checked_;  // values whose types are known to be right
};

void Verifier::CheckBuffers() {
  bool local = false;
  for (const Buffer& b : k_.buffers) {
    if (b.is_arg && local) Fault("buffer " + b.name + ": args come before locals");
    local = local || !b.is_arg;
    if (!b.elements.IsValid()) Fault("buffer " + b.name + ": invalid size");
    if (BitWidth(b.dtype) == 0 || ComputeType(b.dtype) == DType::kNone) {
      Fault("buffer " + b.name + ": kernels have no type " + std::string(ge::Name(b.dtype)));
    }
    InScope(b.elements, "size of buffer " + b.name);
  }
}

void Verifier::CheckOperation(const ValueNode& n, const std::string& where) {
  const DType a = k_.values[n.a].type;
  const DType b = n.b >= 0 ? k_.values[n.b].type : a;
  switch (n.op) {
    case Op::kSelect:
      if (a != DType::kBool) Fault(where + ": condition is not bool");
      if (b != n.type || k_.values[n.c].type != n.type) Fault(where + ": operands differ in type");
      return;
    case Op::kCast: return;
    case Op::kBitCast:
      if (BitWidth(a) != BitWidth(n.type)) Fault(where + ": widths differ");
      return;
    case Op::kNarrow:
      if (a != n.type || ComputeType(n.storage) != n.type) Fault(where + ": storage does not fit");
      return;
    default:
      if (a != b || (n.c >= 0 && k_.values[n.c].type != a))
        Fault(where + ": operands differ in type");
      if (!HasOp(n.op, a))
        Fault(where + ": does not exist for " + std::string(ge::Name(a)));
      else if (n.type != ResultType(n.op, a))
        Fault(where + ": wrong result type");
  }
}

void Verifier::CheckValue(ExprId id) {
  const ValueNode& n = k_.values[id];
  const std::string where = "value " + std::to_string(id) + " (" + std::string(Name(n.op)) + ")";
  if (!IsComputeType(n.type)) return Fault(where + ": not of a compute type");
  const int want = NumOperands(n.op);
  const ExprId operands[] = {n.a, n.b, n.c};
  for (int i = 0; i < want; ++i) {
    if (!IsValue(operands[i]) || operands[i] >= id) return Fault(where + ": bad operand");
  }
  for (int i = want; i < 3; ++i) {
    if (operands[i] >= 0) return Fault(where + ": too many operands");
  }
  if (want > 0) return CheckOperation(n, where);
  if (n.op == Op::kIndex && n.type != DType::kI64) Fault(where + ": not i64");
  if (n.op == Op::kVar && (!IsVar(n.var) || k_.vars[n.var].type != n.type)) {
    Fault(where + ": wrong variable");
  }
  if (n.op == Op::kLoad &&
      (!IsBuffer(n.buffer) || ComputeType(k_.buffers[n.buffer].dtype) != n.type)) {
    Fault(where + ": wrong buffer");
  }
}

void Verifier::InScope(Expr e, const std::string& where) {
  if (!e.IsValid()) return Fault(where + ": invalid expression");
  if (e.IsConst()) return;
  std::vector<Expr> used;
  CollectSymbols(e, used);
  for (Expr s : used) {
    if (sizes_.count(s.node())) continue;
    bool open = false;
    for (size_t i = symbols_.size(); i-- > 0 && !open;) open = symbols_[i] == s.node();
    if (!open) Fault(where + ": symbol " + s.node()->name + " is not in scope");
  }
}

void Verifier::BufferInScope(int buffer, const std::string& where) {
  if (!IsBuffer(buffer)) return Fault(where + ": no such buffer");
  if (k_.buffers[buffer].is_arg) return;
  for (int local : locals_) {
    if (local == buffer) return;
  }
  Fault(where + ": buffer " + k_.buffers[buffer].name + " is not in scope");
}

// Everything that the DAG under `root` uses must be in scope here.
void Verifier::UseInScope(ExprId root, const std::string& where) {
  if (!IsValue(root)) return Fault(where + ": no value");
  std::vector<ExprId> todo{root};
  std::unordered_set<ExprId> seen{root};
  while (!todo.empty()) {
    const ExprId id = todo.back();
    todo.pop_back();
    if (!checked_[id]) CheckValue(id);
    checked_[id] = true;
    const ValueNode& n = k_.values[id];
    if (n.op == Op::kIndex || n.op == Op::kLoad) InScope(n.index, where);
    if (n.op == Op::kLoad) BufferInScope(n.buffer, where);
    if (n.op == Op::kVar) {
      bool open = false;
      for (VarId v : vars_) open = open || v == n.var;
      if (!open) Fault(where + ": variable " + std::to_string(n.var) + " is not in scope");
    }
    for (ExprId operand : {n.a, n.b, n.c}) {
      if (IsValue(operand) && operand < id && seen.insert(operand).second) todo.push_back(operand);
    }
  }
}

void Verifier::Open(Expr symbol, const std::string& where) {
  if (!symbol.IsSymbol()) return Fault(where + ": binds no symbol");
  for (const ExprNode* s : symbols_) {
    if (s == symbol.node()) Fault(where + ": symbol " + s->name + " is bound twice");
  }
  if (sizes_.count(symbol.node()))
    Fault(where + ": size symbol " + symbol.node()->name + " is bound");
  symbols_.push_back(symbol.node());
}

void Verifier::Bind(VarId v, const std::string& where) {
  for (VarId open : vars_) {
    if (open == v) Fault(where + ": variable is bound twice");
  }
  vars_.push_back(v);
  if (k_.vars[v].index.IsConst()) return;
  if (k_.vars[v].type != DType::kI64) Fault(where + ": an index symbol needs i64");
  Open(k_.vars[v].index, where);
}

void Verifier::Scope(const std::vector<Stmt>& body, bool top) {
  const size_t symbols = symbols_.size(), vars = vars_.size(), locals = locals_.size();
  for (const Stmt& s : body) Statement(s, top);
  symbols_.resize(symbols);
  vars_.resize(vars);
  locals_.resize(locals);
}

void Verifier::Reduce(const Stmt& s) {
  const std::string where = "reduce";
  if (!IsVar(s.var)) return Fault(where + ": no variable");
  for (const auto& axis : s.axes) InScope(axis.second, where);
  const size_t symbols = symbols_.size(), vars = vars_.size();
  for (const auto& axis : s.axes) Open(axis.first, where);
  for (const Stmt& c : s.body) {
    if (c.kind != StmtKind::kLet && c.kind != StmtKind::kReduce) {
      Fault(where + ": only lets and reduces may stand in a step");
    }
    Statement(c, false);
  }
  UseInScope(s.value, where);
  symbols_.resize(symbols);
  vars_.resize(vars);
  if (!IsValue(s.value)) return;
  const DType type = k_.values[s.value].type;
  if (type != k_.vars[s.var].type) Fault(where + ": variable of another type");
  const bool bits = s.reduce == ReduceOp::kAnd || s.reduce == ReduceOp::kOr;
  if (bits && IsFloat(type)) Fault(where + ": and, or of floats");
  if (!bits && type == DType::kBool && s.reduce != ReduceOp::kMin && s.reduce != ReduceOp::kMax) {
    Fault(where + ": sum or product of bools");
  }
  Bind(s.var, where);
}

void Verifier::Gemm(const Stmt& s) {
  const BrGemm& g = s.gemm;
  const std::string where = "gemm";
  BufferInScope(g.a_buffer, where);
  BufferInScope(g.b_buffer, where);
  if (!IsBuffer(g.a_buffer) || !IsBuffer(g.b_buffer) || !IsVar(g.acc))
    return Fault(where + ": ids");
  const bool floats = IsFloat(k_.buffers[g.a_buffer].dtype);
  if (floats != IsFloat(k_.buffers[g.b_buffer].dtype)) Fault(where + ": inputs differ in kind");
  const DType sum = ComputeType(k_.buffers[g.a_buffer].dtype);
  if (sum != ComputeType(k_.buffers[g.b_buffer].dtype) || BitWidth(sum) > (floats ? 64 : 32))
    Fault(where + ": inputs whose sums differ, or wide integers");
  if (k_.vars[g.acc].type != sum) Fault(where + ": accumulator type");
  if (g.m < 1 || g.n < 1) Fault(where + ": empty tile");
  const bool bytes = BitWidth(k_.buffers[g.a_buffer].dtype) == 8 && !floats &&
                     k_.buffers[g.b_buffer].dtype == DType::kI8;
  const bool pairs =
      k_.buffers[g.a_buffer].dtype == DType::kBF16 && k_.buffers[g.b_buffer].dtype == DType::kBF16;
  const bool grouped = (g.k_group == 4 && bytes) || (g.k_group == 2 && pairs);
  if (g.k_group != 1 && !(grouped && g.a_k.IsConst(1) && DivisibleBy(g.k, g.k_group)))
    Fault(where +
          ": groups of k need four bytes (B i8) or two bf16, a_k 1 and a k that the group divides");
  if (g.signed_a && (g.k_group != 4 || k_.buffers[g.a_buffer].dtype != DType::kI8))
    Fault(where + ": signed is for i8 in groups of four");
  if (g.n_valid.IsConst() && g.n_valid.value() > g.n) Fault(where + ": n_valid exceeds n");
  for (const auto& batch : g.batch) InScope(batch.second, where);
  for (Expr e : {g.n_valid, g.k, g.a_row, g.a_k, g.b_k}) InScope(e, where);
  const size_t symbols = symbols_.size(), vars = vars_.size();
  for (const auto& batch : g.batch) Open(batch.first, where);
  InScope(g.b, where);
  Open(g.row, where);
  InScope(g.a, where);
  symbols_.resize(symbols);
  Open(g.row, where);
  Open(g.col, where);
  vars_.push_back(g.acc);
  Scope(s.body);
  symbols_.resize(symbols);
  vars_.resize(vars);
}

void Verifier::Statement(const Stmt& s, bool top) {
  switch (s.kind) {
    case StmtKind::kBlock: Scope(s.body, top); break;
    case StmtKind::kLoop: {
      InScope(s.extent, "loop");
      if (s.loop == LoopKind::kParallel && !top) {
        Fault("parallel loop " + ToString(s.symbol) + " is not the outermost statement");
      }
      const size_t symbols = symbols_.size();
      Open(s.symbol, "loop");
      Scope(s.body);
      symbols_.resize(symbols);
      break;
    }
    case StmtKind::kAlloc:
      if (!IsBuffer(s.buffer) || k_.buffers[s.buffer].is_arg) return Fault("alloc: not a local");
      locals_.push_back(s.buffer);
      Scope(s.body);
      locals_.pop_back();
      break;
    case StmtKind::kLet:
      if (!IsVar(s.var)) return Fault("let: no variable");
      UseInScope(s.value, "let");
      if (IsValue(s.value) && k_.values[s.value].type != k_.vars[s.var].type) {
        Fault("let: variable of another type");
      }
      Bind(s.var, "let");
      break;
    case StmtKind::kReduce: Reduce(s); break;
    case StmtKind::kIf:
      UseInScope(s.value, "if");
      if (IsValue(s.value) && k_.values[s.value].type != DType::kBool) Fault("if: not bool");
      Scope(s.body);
      Scope(s.orelse);
      break;
    case StmtKind::kStore:
      BufferInScope(s.buffer, "store");
      InScope(s.index, "store");
      UseInScope(s.value, "store");
      if (!IsBuffer(s.buffer) || !IsValue(s.value)) return;
      if (!k_.buffers[s.buffer].written)
        Fault("store: " + k_.buffers[s.buffer].name + " is read-only");
      if (k_.values[s.value].type != ComputeType(k_.buffers[s.buffer].dtype)) {
        Fault("store: value of another type");
      }
      break;
    case StmtKind::kBrGemm: Gemm(s); break;
  }
}

Status Verifier::Run() {
  for (Expr s : k_.symbols) sizes_.insert(s.node());
  checked_.assign(k_.values.size(), false);
  CheckBuffers();
  if (k_.body.kind != StmtKind::kBlock) Fault("the kernel's body is not a block");
  // A parallel loop stands alone, possibly in nested blocks.
  const std::vector<Stmt>* body = &k_.body.body;
  while (body->size() == 1 && (*body)[0].kind == StmtKind::kBlock) body = &(*body)[0].body;
  Scope(*body, body->size() == 1);
  return faults_.empty() ? Status() : Error(Code::kInternal, faults_);
}

}  // namespace

Status Verify(const Kernel& k) { return Verifier(k).Run(); }

}  // namespace ge::tile
