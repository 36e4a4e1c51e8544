// The text form of Exprs. ParseExpr(ToString(e)) == e. Precedence, weakest first: || && comparison
// + *; everything else is a function: floordiv mod min max select, and !x.
#include "expr/node.h"

namespace ge {
namespace {

constexpr int kOr = 1, kAnd = 2, kCompare = 3, kSum = 4, kProduct = 5, kAtom = 6;
constexpr uint32_t kMaxPrintDepth = 4000;

using NameFn = std::function<std::string(Expr)>;

bool IsFunctionName(std::string_view s) {
  return s == "floordiv" || s == "mod" || s == "min" || s == "max" || s == "select" ||
         s == "invalid";
}

struct Printer {
  const NameFn& name;
  std::string out;

  void Call(const char* function, const ExprNode& n) {
    out += function;
    for (size_t i = 0; i < n.args.size(); ++i) {
      out += i ? ", " : "(";
      Print(n.args[i], kOr);
    }
    out += ")";
  }

  void Infix(const char* op, int level, const ExprNode& n) {
    for (size_t i = 0; i < n.args.size(); ++i) {
      if (i) out += op;
      Print(n.args[i], level + 1);
    }
  }

  void PrintSum(const ExprNode& n) {
    for (size_t i = 0; i < n.args.size(); ++i) {
      const Expr a = n.args[i];
      const bool constant = a.IsConst();
      const bool scaled = a.kind() == ExprKind::kMul && a.node()->args[0].IsConst();
      const int64_t c = constant ? a.value() : scaled ? a.node()->args[0].value() : 1;
      if (i == 0 || c >= 0 || c == INT64_MIN) {
        if (i) out += " + ";
        Print(a, kProduct);
        continue;
      }
      out += " - ";
      if (constant || c != -1) out += std::to_string(-c);
      if (constant) continue;
      if (c != -1) out += "*";
      Print(a.node()->args[1], kProduct);
    }
  }

  void PrintProduct(const ExprNode& n) {
    if (n.args[0].IsConst(-1)) {
      out += "-";
      Print(n.args[1], kProduct);
    } else if (n.args[0].IsConst()) {
      out += std::to_string(n.args[0].value()) + "*";
      Print(n.args[1], kProduct);
    } else {
      Infix("*", kProduct, n);
    }
  }

  static int LevelOf(Expr e) {
    switch (e.kind()) {
      case ExprKind::kOr: return kOr;
      case ExprKind::kAnd: return kAnd;
      case ExprKind::kLt:
      case ExprKind::kLe:
      case ExprKind::kEq:
      case ExprKind::kNe: return kCompare;
      case ExprKind::kAdd: return kSum;
      case ExprKind::kMul: return kProduct;
      default: return kAtom;
    }
  }

  void Print(Expr e, int level) {
    if (LevelOf(e) >= level) return PrintBare(e);
    out += "(";
    PrintBare(e);
    out += ")";
  }

  void PrintBare(Expr e) {
    if (e.IsConst()) {
      out += std::to_string(e.value());
      return;
    }
    const ExprNode& n = *e.node();
    switch (n.kind) {
      case ExprKind::kSymbol: out += name(e); break;
      case ExprKind::kAdd: PrintSum(n); break;
      case ExprKind::kMul: PrintProduct(n); break;
      case ExprKind::kFloorDiv: Call("floordiv", n); break;
      case ExprKind::kMod: Call("mod", n); break;
      case ExprKind::kMin: Call("min", n); break;
      case ExprKind::kMax: Call("max", n); break;
      case ExprKind::kSelect: Call("select", n); break;
      case ExprKind::kLt: Infix(" < ", kCompare, n); break;
      case ExprKind::kLe: Infix(" <= ", kCompare, n); break;
      case ExprKind::kEq: Infix(" == ", kCompare, n); break;
      case ExprKind::kNe: Infix(" != ", kCompare, n); break;
      case ExprKind::kAnd: Infix(" && ", kAnd, n); break;
      case ExprKind::kOr: Infix(" || ", kOr, n); break;
      case ExprKind::kNot:
        out += "!";
        Print(n.args[0], kAtom);
        break;
      default: out += "invalid"; break;
    }
  }
};

struct Parser {
  TextReader& r;
  ExprArena& arena;

  Result<Expr> Or_() {
    GE_ASSIGN(Expr e, And_());
    while (r.Accept("||")) {
      GE_ASSIGN(Expr b, And_());
      e = Or(e, b);
    }
    return e;
  }

  Result<Expr> And_() {
    GE_ASSIGN(Expr e, Comparison());
    while (r.Accept("&&")) {
      GE_ASSIGN(Expr b, Comparison());
      e = And(e, b);
    }
    return e;
  }

  Result<Expr> Comparison() {
    GE_ASSIGN(Expr e, Sum_());
    Expr (*f)(Expr, Expr) = nullptr;
    bool swap = false;
    if (r.Accept("<"))
      f = Lt;
    else if (r.Accept("<="))
      f = Le;
    else if (r.Accept("=="))
      f = Eq;
    else if (r.Accept("!="))
      f = Ne;
    else if (r.Accept(">"))
      f = Lt, swap = true;
    else if (r.Accept(">="))
      f = Le, swap = true;
    if (!f) return e;
    GE_ASSIGN(Expr b, Sum_());
    return swap ? f(b, e) : f(e, b);
  }

  Result<Expr> Sum_() {
    GE_ASSIGN(Expr e, Product_());
    for (;;) {
      const bool plus = r.Accept("+");
      if (!plus && !r.Accept("-")) return e;
      GE_ASSIGN(Expr b, Product_());
      e = plus ? e + b : e - b;
    }
  }

  Result<Expr> Product_() {
    GE_ASSIGN(Expr e, Unary());
    while (r.Accept("*")) {
      GE_ASSIGN(Expr b, Unary());
      e = e * b;
    }
    return e;
  }

  Result<Expr> Unary() {
    TextReader::Nest nest(r);
    GE_TRY(nest.status());
    if (r.Accept("!")) {
      GE_ASSIGN(Expr e, Unary());
      return Not(e);
    }
    if (r.Is("-")) {
      // The smallest integer has no positive twin: number and sign are read together.
      const size_t at = r.position();
      r.Next();
      if (r.Peek().kind == TokenKind::kInt) {
        r.Seek(at);
        GE_ASSIGN(int64_t v, r.Int());
        return Expr(v);
      }
      GE_ASSIGN(Expr e, Unary());
      return e * -1;
    }
    return Atom();
  }

  Result<Expr> Atom() {
    if (r.Peek().kind == TokenKind::kInt) {
      GE_ASSIGN(int64_t v, r.Int());
      return Expr(v);
    }
    if (r.Accept("(")) {
      GE_ASSIGN(Expr e, Or_());
      GE_TRY(r.Expect(")"));
      return e;
    }
    if (r.Peek().kind == TokenKind::kName && IsFunctionName(r.Peek().text)) return Call();
    GE_ASSIGN(std::string name, r.Name());
    return arena.Symbol(name);
  }

  Result<Expr> Call() {
    const std::string f(r.Next().text);
    if (f == "invalid") return Expr::Invalid();
    std::vector<Expr> args;
    GE_TRY(r.Expect("("));
    do {
      GE_ASSIGN(Expr e, Or_());
      args.push_back(e);
    } while (r.Accept(","));
    GE_TRY(r.Expect(")"));
    const size_t want = f == "select" ? 3 : 2;
    const bool list = f == "min" || f == "max";
    if (list ? args.size() < 2 : args.size() != want) {
      return r.Fault("wrong number of operands of " + f);
    }
    if (f == "select") return Select(args[0], args[1], args[2]);
    if (f == "floordiv") return FloorDiv(args[0], args[1]);
    if (f == "mod") return Mod(args[0], args[1]);
    Expr e = args[0];
    for (size_t i = 1; i < args.size(); ++i) e = f == "min" ? Min(e, args[i]) : Max(e, args[i]);
    return e;
  }
};

}  // namespace

std::string ToString(Expr e, const NameFn& name) {
  if (e.node() && e.node()->depth > kMaxPrintDepth) return "\"expression too deep to print\"";
  Printer p{name, {}};
  p.Print(e, kOr);
  return std::move(p.out);
}

std::string ToString(Expr e) {
  static const NameFn name = [](Expr s) {
    const std::string& n = s.node()->name;
    return IsFunctionName(n) ? Quote(n) : QuoteName(n);
  };
  return ToString(e, name);
}

Result<Expr> ParseExpr(TextReader& reader, ExprArena& arena) { return Parser{reader, arena}.Or_(); }

Result<Expr> ParseExpr(std::string_view text, ExprArena& arena) {
  TextReader reader(text);
  GE_ASSIGN(Expr e, ParseExpr(reader, arena));
  GE_TRY(reader.ExpectEnd());
  return e;
}

}  // namespace ge
