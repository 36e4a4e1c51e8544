// TileIR as text.
//
//   kernel "relu" (n)
//   arg x: f32[n]
//   arg y: f32[n] out
//   parallel i in n {
//     store y[i] = max(load(x, i), 0:f32)
//   }
//
// A value that occurs more than once is named where it occurs first: "%0 = exp(load(x, i))". That
// is notation only: it is computed where a statement uses it. Canonical text numbers everything in
// the order of appearance (size symbols and args: in ABI order), sorts the operands of symmetric
// Exprs, and leaves out the kernel's name.
#include "base/text.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tile/op_names.h"
#include "tile/tile.h"
#include "tile/walk.h"

namespace ge::tile {
namespace {

bool IsLeaf(Op op) { return op == Op::kConst || op == Op::kVar; }

class Printer {
 public:
  Printer(const Kernel& k, bool canonical) : k_(k), canonical_(canonical) {}
  std::string Run();

 private:
  void CountUses();
  void NameEverything();
  std::string Exp(Expr e);
  std::string Canonical(Expr e);
  std::string Joined(const ExprNode& n, const char* op);
  std::string Called(const char* function, const ExprNode& n);
  std::string Bind(Expr symbol);
  std::string BufferName(int b);
  std::string VarName(VarId v);
  std::string BufferType(const Buffer& b);
  // Text of a value; prints definitions of shared values that it needs first.
  std::string Use(ExprId id);
  std::string Formula(ExprId id);
  void Line(const std::string& text) { out_ += std::string(indent_ * 2, ' ') + text + "\n"; }
  void Nested(const std::vector<Stmt>& body);
  void Print(const Stmt& s);
  void PrintReduce(const Stmt& s);
  void PrintGemm(const Stmt& s);

  const Kernel& k_;
  const bool canonical_;
  std::string out_;
  size_t indent_ = 0;
  std::vector<int> uses_;
  std::unordered_map<ExprId, std::string> shared_;
  std::unordered_map<const ExprNode*, std::string> symbols_;
  std::unordered_map<const ExprNode*, std::string> exprs_;
  std::unordered_map<VarId, std::string> vars_;
  std::vector<std::string> buffers_;
  std::unordered_set<std::string> taken_;
  int num_bound_ = 0, num_locals_ = 0;
};

void Printer::CountUses() {
  uses_.assign(k_.values.size(), 0);
  std::vector<bool> live = Reachable(k_);
  ForEachStmt(k_.body, [&](const Stmt& s) {
    if (ExprId root = RootOf(s); root >= 0) ++uses_[root];
  });
  for (size_t i = 0; i < k_.values.size(); ++i) {
    if (!live[i]) continue;
    for (ExprId operand : {k_.values[i].a, k_.values[i].b, k_.values[i].c}) {
      if (operand >= 0) ++uses_[operand];
    }
  }
}

void Printer::NameEverything() {
  for (size_t i = 0; i < k_.symbols.size(); ++i) {
    symbols_[k_.symbols[i].node()] =
        canonical_ ? "s" + std::to_string(i) : k_.symbols[i].node()->name;
  }
  for (size_t i = 0; i < k_.buffers.size(); ++i) {
    std::string name =
        canonical_ ? (k_.buffers[i].is_arg ? "a" + std::to_string(i) : "") : k_.buffers[i].name;
    // Buffers of one kernel may have one name; the text needs several.
    if (!canonical_ && (name.empty() || !taken_.insert(name).second)) {
      name += "_" + std::to_string(i);
      taken_.insert(name);
    }
    buffers_.push_back(name);
  }
}

std::string Printer::Bind(Expr symbol) {
  std::string name =
      canonical_ ? "i" + std::to_string(num_bound_++) : QuoteName(symbol.node()->name);
  symbols_[symbol.node()] = name;
  return name;
}

std::string Printer::BufferName(int b) {
  if (buffers_[b].empty()) buffers_[b] = "l" + std::to_string(num_locals_++);
  return QuoteName(buffers_[b]);
}

std::string Printer::VarName(VarId v) {
  auto [it, fresh] = vars_.try_emplace(v);
  if (fresh) it->second = "v" + std::to_string(canonical_ ? vars_.size() - 1 : v);
  return it->second;
}

std::string Printer::Exp(Expr e) { return canonical_ ? Canonical(e) : ge::ToString(e); }

std::string Printer::Joined(const ExprNode& n, const char* op) {
  std::vector<std::string> parts;
  for (Expr a : n.args) parts.push_back(Canonical(a));
  const bool ordered = n.kind == ExprKind::kLt || n.kind == ExprKind::kLe;
  if (!ordered) std::sort(parts.begin(), parts.end());
  std::string s = "(";
  for (size_t i = 0; i < parts.size(); ++i) s += (i ? op : "") + parts[i];
  return s + ")";
}

std::string Printer::Called(const char* function, const ExprNode& n) {
  std::vector<std::string> parts;
  for (Expr a : n.args) parts.push_back(Canonical(a));
  if (n.kind == ExprKind::kMin || n.kind == ExprKind::kMax) std::sort(parts.begin(), parts.end());
  std::string s = function;
  for (size_t i = 0; i < parts.size(); ++i) s += (i ? ", " : "(") + parts[i];
  return s + ")";
}

std::string Printer::Canonical(Expr e) {
  if (e.IsConst()) return std::to_string(e.value());
  const ExprNode& n = *e.node();
  if (n.kind == ExprKind::kSymbol) {
    auto it = symbols_.find(&n);
    return it != symbols_.end() ? it->second : QuoteName(n.name);
  }
  if (auto it = exprs_.find(&n); it != exprs_.end()) return it->second;
  std::string s;
  switch (n.kind) {
    case ExprKind::kAdd: s = Joined(n, " + "); break;
    case ExprKind::kMul: s = Joined(n, "*"); break;
    case ExprKind::kLt: s = Joined(n, " < "); break;
    case ExprKind::kLe: s = Joined(n, " <= "); break;
    case ExprKind::kEq: s = Joined(n, " == "); break;
    case ExprKind::kNe: s = Joined(n, " != "); break;
    case ExprKind::kAnd: s = Joined(n, " && "); break;
    case ExprKind::kOr: s = Joined(n, " || "); break;
    case ExprKind::kNot: s = "!" + Canonical(n.args[0]); break;
    case ExprKind::kFloorDiv: s = Called("floordiv", n); break;
    case ExprKind::kMod: s = Called("mod", n); break;
    case ExprKind::kMin: s = Called("min", n); break;
    case ExprKind::kMax: s = Called("max", n); break;
    case ExprKind::kSelect: s = Called("select", n); break;
    default: s = "invalid"; break;
  }
  // Symbols of sibling scopes are distinct nodes, so the text of a node never changes.
  exprs_[&n] = s;
  return s;
}

std::string Printer::Use(ExprId id) {
  if (auto it = shared_.find(id); it != shared_.end()) return it->second;
  if (uses_[id] < 2 || IsLeaf(k_.values[id].op)) return Formula(id);
  std::string formula = Formula(id);
  std::string name = "%" + std::to_string(shared_.size());
  shared_[id] = name;
  Line(name + " = " + formula);
  return name;
}

std::string Printer::Formula(ExprId id) {
  const ValueNode& n = k_.values[id];
  std::string name(Name(n.op));
  switch (n.op) {
    case Op::kConst: {
      std::string text;
      if (IsFloat(n.type)) {
        text = FloatText(n.f);
      } else if (n.type == DType::kU64) {
        text = std::to_string(static_cast<uint64_t>(n.i));
      } else {
        text = std::to_string(n.i);
      }
      return text + ":" + std::string(ge::Name(n.type));
    }
    case Op::kIndex: return "idx(" + Exp(n.index) + ")";
    case Op::kVar: return VarName(n.var);
    case Op::kLoad: return "load(" + BufferName(n.buffer) + ", " + Exp(n.index) + ")";
    case Op::kCast:
    case Op::kBitCast: name += "." + std::string(ge::Name(n.type)); break;
    case Op::kNarrow: name += "." + std::string(ge::Name(n.storage)); break;
    default: break;
  }
  std::string s = name + "(" + Use(n.a);
  if (n.b >= 0) s += ", " + Use(n.b);
  if (n.c >= 0) s += ", " + Use(n.c);
  return s + ")";
}

void Printer::Nested(const std::vector<Stmt>& body) {
  ++indent_;
  for (const Stmt& s : body) Print(s);
  --indent_;
}

std::string Printer::BufferType(const Buffer& b) {
  return std::string(ge::Name(b.dtype)) + "[" + Exp(b.elements) + "]";
}

void Printer::PrintReduce(const Stmt& s) {
  std::string axes;
  for (const auto& [symbol, extent] : s.axes) {
    std::string e = Exp(extent);
    axes += (axes.empty() ? "" : ", ") + Bind(symbol) + " in " + e;
  }
  std::string head = "reduce ";
  // The variable is bound after the axes, so that their text is known where it is used.
  head += VarName(s.var);
  if (k_.vars[s.var].index.IsSymbol()) head += " as " + Bind(k_.vars[s.var].index);
  Line(head + " = " + std::string(Name(s.reduce)) + "(" + axes + ") {");
  ++indent_;
  for (const Stmt& c : s.body) Print(c);
  std::string value = Use(s.value);
  Line("yield " + value);
  --indent_;
  Line("}");
}

void Printer::PrintGemm(const Stmt& s) {
  const BrGemm& g = s.gemm;
  const std::string valid = Exp(g.n_valid);
  // The symbols stand before A where its place depends on the row.
  const bool uneven = DependsOn(g.a, g.row);
  std::string at;
  const auto bind = [&] {
    at = " at " + Bind(g.row);
    at += ", " + Bind(g.col);
  };
  if (uneven) bind();
  std::string batch;
  std::vector<std::string> extents;
  for (const auto& [symbol, extent] : g.batch) {
    std::string e = Exp(extent);
    batch += (batch.empty() ? "" : ", ") + Bind(symbol) + " in " + e;
  }
  std::string a =
      BufferName(g.a_buffer) + "[" + Exp(g.a) + ", " + Exp(g.a_row) + ", " + Exp(g.a_k) + "]";
  std::string b = BufferName(g.b_buffer) + "[" + Exp(g.b) + ", " + Exp(g.b_k) + "]";
  std::string shape = std::to_string(g.m) + ", " + std::to_string(g.n) + ", " + Exp(g.k);
  if (!uneven) bind();
  std::string acc = VarName(g.acc);
  if (g.k_group != 1) shape += ", by " + std::to_string(g.k_group);
  if (g.signed_a) shape += " signed";
  Line("gemm " + acc + " (" + shape + ") valid " + valid + (uneven ? at : "") + " batch (" + batch +
       ") a " + a + " b " + b + " prefetch " + std::to_string(g.prefetch) + (uneven ? "" : at) +
       " {");
  Nested(s.body);
  Line("}");
}

void Printer::Print(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kBlock:
      Line("{");
      Nested(s.body);
      Line("}");
      break;
    case StmtKind::kLoop: {
      std::string extent = Exp(s.extent);
      Line(std::string(Name(s.loop)) + " " + Bind(s.symbol) + " in " + extent + " {");
      Nested(s.body);
      Line("}");
      break;
    }
    case StmtKind::kAlloc: {
      std::string name = BufferName(s.buffer);
      Line("alloc " + name + ": " + BufferType(k_.buffers[s.buffer]) + " {");
      Nested(s.body);
      Line("}");
      break;
    }
    case StmtKind::kLet: {
      std::string value = Use(s.value);
      std::string head = "let " + VarName(s.var);
      if (k_.vars[s.var].index.IsSymbol()) head += " as " + Bind(k_.vars[s.var].index);
      Line(head + " = " + value);
      break;
    }
    case StmtKind::kReduce: PrintReduce(s); break;
    case StmtKind::kIf: {
      std::string condition = Use(s.value);
      Line("if " + condition + " {");
      Nested(s.body);
      if (!s.orelse.empty()) {
        Line("} else {");
        Nested(s.orelse);
      }
      Line("}");
      break;
    }
    case StmtKind::kStore: {
      std::string value = Use(s.value);
      Line("store " + BufferName(s.buffer) + "[" + Exp(s.index) + "] = " + value);
      break;
    }
    case StmtKind::kBrGemm: PrintGemm(s); break;
  }
}

std::string Printer::Run() {
  CountUses();
  NameEverything();
  std::string sizes;
  for (Expr e : k_.symbols) sizes += (sizes.empty() ? "" : ", ") + Exp(e);
  Line("kernel " + (canonical_ ? "" : Quote(k_.name) + " ") + "(" + sizes + ")");
  for (size_t i = 0; i < k_.buffers.size(); ++i) {
    const Buffer& b = k_.buffers[i];
    if (!b.is_arg) continue;
    Line("arg " + BufferName(static_cast<int>(i)) + ": " + BufferType(b) +
         (b.written ? " out" : "") +
         (b.within < Buffer::kAny ? " within " + FloatText(b.within) : ""));
  }
  for (const Stmt& s : k_.body.body) Print(s);
  return std::move(out_);
}

}  // namespace

std::string ToString(const Kernel& k, bool canonical) { return Printer(k, canonical).Run(); }

}  // namespace ge::tile
