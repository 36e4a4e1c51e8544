// Questions about an Expr, and rebuilding it: symbols, linear form, substitution, evaluation. Small
// expressions recurse; large ones (a DAG may stand for an exponential tree) go bottom up with a
// table.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "expr/node.h"
#include "expr/select.h"

namespace ge {
namespace {

constexpr uint32_t kSmall = 200;  // tree nodes up to which recursion without a table is right

// Calls visit(node) for each distinct node below and including root, operands first, in order.
template <class Visit>
void PostOrder(const ExprNode* root, const Visit& visit) {
  struct Frame {
    const ExprNode* node;
    size_t next;
  };
  std::unordered_set<const ExprNode*> seen{root};
  std::vector<Frame> stack{{root, 0}};
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.next == f.node->args.size()) {
      const ExprNode* n = f.node;
      stack.pop_back();
      visit(n);
      continue;
    }
    const ExprNode* child = f.node->args[f.next++].node();
    if (child && seen.insert(child).second) stack.push_back({child, 0});
  }
}

using Number = std::optional<int64_t>;

// Value of one node from its operands' values. arg(i) gives operand i.
template <class Arg>
Number Apply(const ExprNode& n, const Arg& arg) {
  if (n.kind == ExprKind::kSelect) {
    const Number c = arg(0);
    return c ? arg(*c != 0 ? 1 : 2) : std::nullopt;
  }
  if (n.args.empty()) return std::nullopt;
  Number r = arg(0);
  if (!r) return r;
  if (n.kind == ExprKind::kNot) return *r == 0;
  for (size_t i = 1; i < n.args.size(); ++i) {
    const Number b = arg(i);
    if (!b) return b;
    int64_t v = 0;
    switch (n.kind) {
      case ExprKind::kAdd:
        if (__builtin_add_overflow(*r, *b, &v)) return std::nullopt;
        break;
      case ExprKind::kMul:
        if (__builtin_mul_overflow(*r, *b, &v)) return std::nullopt;
        break;
      case ExprKind::kFloorDiv:
      case ExprKind::kMod: {
        const Expr e =
            n.kind == ExprKind::kMod ? Mod(Expr(*r), Expr(*b)) : FloorDiv(Expr(*r), Expr(*b));
        if (!e.IsValid()) return std::nullopt;
        v = e.value();
        break;
      }
      case ExprKind::kMin: v = std::min(*r, *b); break;
      case ExprKind::kMax: v = std::max(*r, *b); break;
      case ExprKind::kLt: v = *r < *b; break;
      case ExprKind::kLe: v = *r <= *b; break;
      case ExprKind::kEq: v = *r == *b; break;
      case ExprKind::kNe: v = *r != *b; break;
      case ExprKind::kAnd: v = *r != 0 && *b != 0; break;
      case ExprKind::kOr: v = *r != 0 || *b != 0; break;
      default: return std::nullopt;
    }
    r = v;
  }
  return r;
}

using ValueFn = std::function<Number(Expr)>;

Number EvaluateSmall(Expr e, const ValueFn& value) {
  if (e.IsConst()) return e.value();
  if (e.IsSymbol()) return value(e);
  return Apply(*e.node(), [&](size_t i) { return EvaluateSmall(e.node()->args[i], value); });
}

// The node with other operands, simplified again.
Expr Rebuild(const ExprNode& n, const std::vector<Expr>& args) {
  const auto fold = [&](Expr (*f)(Expr, Expr)) {
    Expr r = args[0];
    for (size_t i = 1; i < args.size(); ++i) r = f(r, args[i]);
    return r;
  };
  switch (n.kind) {
    case ExprKind::kAdd: return fold([](Expr a, Expr b) { return a + b; });
    case ExprKind::kMul: return fold([](Expr a, Expr b) { return a * b; });
    case ExprKind::kFloorDiv: return FloorDiv(args[0], args[1]);
    case ExprKind::kMod: return Mod(args[0], args[1]);
    case ExprKind::kMin: return fold(Min);
    case ExprKind::kMax: return fold(Max);
    case ExprKind::kSelect: return Select(args[0], args[1], args[2]);
    case ExprKind::kLt: return Lt(args[0], args[1]);
    case ExprKind::kLe: return Le(args[0], args[1]);
    case ExprKind::kEq: return Eq(args[0], args[1]);
    case ExprKind::kNe: return Ne(args[0], args[1]);
    case ExprKind::kAnd: return fold(And);
    case ExprKind::kOr: return fold(Or);
    case ExprKind::kNot: return Not(args[0]);
    default: return Expr::Invalid();
  }
}

bool DependsSmall(const ExprNode* n, const ExprNode* symbol) {
  if (n == symbol) return true;
  for (Expr a : n->args) {
    if (a.node() && DependsSmall(a.node(), symbol)) return true;
  }
  return false;
}

void CollectSmall(const ExprNode* n, std::vector<Expr>& out) {
  if (n->kind == ExprKind::kSymbol) {
    const Expr e = Expr::Of(n);
    if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
    return;
  }
  for (Expr a : n->args) {
    if (a.node()) CollectSmall(a.node(), out);
  }
}

}  // namespace

bool DependsOn(Expr e, Expr symbol) {
  if (!e.node() || !e.node()->arena) return false;
  if (e.node()->size <= kSmall) return DependsSmall(e.node(), symbol.node());
  bool found = false;
  PostOrder(e.node(), [&](const ExprNode* n) { found |= n == symbol.node(); });
  return found;
}

std::optional<Linear> AsLinear(Expr e, Expr symbol) {
  if (!e.IsValid()) return std::nullopt;
  Linear out{0, 0};
  const Sum s = TermsOf(e);
  out.rest = s.constant;
  for (const Term& t : s.terms) {
    if (!DependsOn(t.key, symbol)) {
      out.rest += FromTerm(t);
      continue;
    }
    const Term d = DivideTerm(t, {symbol, 1});
    if (d.coefficient == 0 || DependsOn(d.key, symbol)) return std::nullopt;
    out.coefficient += d.key * d.coefficient;
  }
  return out;
}

void CollectSymbols(Expr e, std::vector<Expr>& out) {
  if (!e.node() || !e.node()->arena) return;
  if (e.node()->size <= kSmall) return CollectSmall(e.node(), out);
  std::unordered_set<const ExprNode*> known;
  for (Expr s : out) known.insert(s.node());
  PostOrder(e.node(), [&](const ExprNode* n) {
    if (n->kind == ExprKind::kSymbol && known.insert(n).second) out.push_back(Expr::Of(n));
  });
}

std::vector<Expr> Symbols(Expr e) {
  std::vector<Expr> out;
  CollectSymbols(e, out);
  std::sort(out.begin(), out.end(), Before);
  return out;
}

Expr Substitute(Expr e, const std::function<std::optional<Expr>(Expr symbol)>& replace) {
  if (!e.node() || !e.node()->arena) return e;
  std::unordered_map<const ExprNode*, Expr> now;
  std::vector<Expr> args;
  PostOrder(e.node(), [&](const ExprNode* n) {
    if (n->kind == ExprKind::kSymbol) {
      const std::optional<Expr> r = replace(Expr::Of(n));
      now[n] = r ? *r : Expr::Of(n);
      return;
    }
    args.clear();
    bool same = true;
    for (Expr a : n->args) {
      args.push_back(a.node() ? now[a.node()] : a);
      same &= args.back() == a;
    }
    now[n] = same ? Expr::Of(n) : Rebuild(*n, args);
  });
  return now[e.node()];
}

std::vector<Expr> ConditionsIn(Expr e) {
  std::vector<Expr> conditions;
  if (!e.node() || !e.node()->arena) return conditions;
  PostOrder(e.node(), [&](const ExprNode* n) {
    if (n->kind == ExprKind::kSelect) conditions.push_back(n->args[0]);
  });
  return conditions;
}

Expr Decide(Expr e, Expr condition, bool holds) {
  if (!e.node() || !e.node()->arena) return e;
  std::unordered_map<const ExprNode*, Expr> now;
  PostOrder(e.node(), [&](const ExprNode* n) {
    std::vector<Expr> args;
    for (Expr a : n->args) args.push_back(a.node() ? now[a.node()] : a);
    if (n->kind == ExprKind::kSelect && n->args[0] == condition)
      now[n] = args[holds ? 1 : 2];
    else
      now[n] = args == n->args ? Expr::Of(n) : Rebuild(*n, args);
  });
  return now[e.node()];
}

std::optional<int64_t> Evaluate(Expr e, const ValueFn& value) {
  if (e.IsConst()) return e.value();
  if (!e.IsValid()) return std::nullopt;
  if (e.node()->size <= kSmall) return EvaluateSmall(e, value);
  std::unordered_map<const ExprNode*, Number> now;
  PostOrder(e.node(), [&](const ExprNode* n) {
    now[n] = n->kind == ExprKind::kSymbol ? value(Expr::Of(n)) : Apply(*n, [&](size_t i) -> Number {
      const Expr a = n->args[i];
      return a.node() ? now[a.node()] : Number(a.value());
    });
  });
  return now[e.node()];
}

int64_t HintValue(Expr e) {
  const Number v = Evaluate(e, [](Expr s) -> Number {
    const SymbolFacts& f = s.node()->facts;
    if (f.hint) return f.hint;
    return std::min(std::max<int64_t>(f.lo, 1), f.hi);
  });
  return v.value_or(1);
}

}  // namespace ge
