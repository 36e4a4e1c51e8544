// Min, max, comparisons, 0/1 logic and select. Comparisons are canonical in the difference of their
// sides: positive terms left, negative terms right; a <= b is a < b + 1.
#include <algorithm>

#include "expr/node.h"

namespace ge {
namespace {

void Flatten(Expr e, ExprKind kind, std::vector<Expr>& out) {
  if (e.kind() != kind) {
    out.push_back(e);
  } else {
    out.insert(out.end(), e.node()->args.begin(), e.node()->args.end());
  }
}

void SortUnique(std::vector<Expr>& v) {
  std::sort(v.begin(), v.end(), Before);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

Expr Extreme(ExprKind kind, Expr a, Expr b) {
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  if (a == b) return a;
  const bool min = kind == ExprKind::kMin;
  if (a.IsConst() && b.IsConst()) {
    return min ? std::min(a.value(), b.value()) : std::max(a.value(), b.value());
  }
  std::vector<Expr> all;
  Flatten(a, kind, all);
  Flatten(b, kind, all);
  SortUnique(all);
  std::vector<Expr> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    bool wins = true;  // all[i] stays unless another operand is always at least as extreme
    for (size_t j = 0; j < all.size() && wins && all.size() <= 8; ++j) {
      if (i == j) continue;
      const bool beaten = min ? ProvablyLe(all[j], all[i]) : ProvablyLe(all[i], all[j]);
      const bool beats = min ? ProvablyLe(all[i], all[j]) : ProvablyLe(all[j], all[i]);
      wins = !beaten || (beats && i < j);
    }
    if (wins) kept.push_back(all[i]);
  }
  if (kept.empty()) return all[0];
  return kept.size() == 1 ? kept[0] : Make(kind, kept);
}

struct Sides {
  Expr left, right;
};

// left - right = d; constants go right.
Sides SidesOf(Expr d) {
  const Sum s = TermsOf(d);
  Sides out;
  for (const Term& t : s.terms) {
    const Expr value = FromTerm(t);
    (t.coefficient > 0 ? out.left : out.right) += t.coefficient > 0 ? value : value * -1;
  }
  out.right = out.right - s.constant;
  return out;
}

Expr Equality(ExprKind kind, Expr a, Expr b) {
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  const bool eq = kind == ExprKind::kEq;
  if (a == b) return eq ? 1 : 0;
  if (a.IsConst() && b.IsConst()) return eq ? 0 : 1;
  Expr d = a - b;
  if (!d.IsValid())
    return Make(
        kind, Before(a, b) ? std::initializer_list<Expr>{a, b} : std::initializer_list<Expr>{b, a});
  if (d.IsConst()) return d.IsConst(0) == eq ? 1 : 0;
  const Interval r = Bounds(d);
  if (r.lo > 0 || r.hi < 0) return eq ? 0 : 1;
  if (ProvablyNonNegative(d - 1) || ProvablyNonNegative(d * -1 - 1)) return eq ? 0 : 1;
  if (TermsOf(d).terms[0].coefficient < 0) d = d * -1;
  const Sides sides = SidesOf(d);
  if (!sides.left.IsValid() || !sides.right.IsValid()) return Make(kind, {a, b});
  return Make(kind, {sides.left, sides.right});
}

// An operand of logic as 0 or 1.
Expr Truth(Expr e) {
  const Interval r = Bounds(e);
  return r.lo >= 0 && r.hi <= 1 ? e : Ne(e, 0);
}

Expr Logic(ExprKind kind, Expr a, Expr b) {
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  const int64_t neutral = kind == ExprKind::kAnd ? 1 : 0;
  a = Truth(a);
  b = Truth(b);
  if (a.IsConst()) return a.IsConst(neutral) ? b : a;
  if (b.IsConst()) return b.IsConst(neutral) ? a : b;
  std::vector<Expr> all;
  Flatten(a, kind, all);
  Flatten(b, kind, all);
  SortUnique(all);
  return all.size() == 1 ? all[0] : Make(kind, all);
}

}  // namespace

Expr Min(Expr a, Expr b) { return Extreme(ExprKind::kMin, a, b); }
Expr Max(Expr a, Expr b) { return Extreme(ExprKind::kMax, a, b); }

Expr Lt(Expr a, Expr b) {
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  if (a.IsConst() && b.IsConst()) return a.value() < b.value() ? 1 : 0;
  const Interval x = Bounds(a), y = Bounds(b);
  if (x.hi != INT64_MAX && x.hi < y.lo) return 1;
  if (x.lo != INT64_MIN && x.lo >= y.hi && y.hi != INT64_MAX) return 0;
  const Expr d = a - b;
  if (!d.IsValid()) return Make(ExprKind::kLt, {a, b});
  if (ProvablyNonNegative(d)) return 0;
  if (ProvablyNonNegative(d * -1 - 1)) return 1;
  const Sides sides = SidesOf(d);
  if (!sides.left.IsValid() || !sides.right.IsValid()) return Make(ExprKind::kLt, {a, b});
  return Make(ExprKind::kLt, {sides.left, sides.right});
}

Expr Le(Expr a, Expr b) {
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  if (a.IsConst() && b.IsConst()) return a.value() <= b.value() ? 1 : 0;
  if (b.IsConst(INT64_MAX) || a.IsConst(INT64_MIN)) return 1;
  const Expr next = b + 1;
  return next.IsValid() ? Lt(a, next) : Make(ExprKind::kLe, {a, b});
}

Expr Eq(Expr a, Expr b) { return Equality(ExprKind::kEq, a, b); }
Expr Ne(Expr a, Expr b) { return Equality(ExprKind::kNe, a, b); }
Expr And(Expr a, Expr b) { return Logic(ExprKind::kAnd, a, b); }
Expr Or(Expr a, Expr b) { return Logic(ExprKind::kOr, a, b); }

Expr Not(Expr a) {
  if (!a.IsValid()) return a;
  a = Truth(a);
  if (a.IsConst()) return a.IsConst(0) ? 1 : 0;
  const ExprNode& n = *a.node();
  switch (n.kind) {
    case ExprKind::kNot: return n.args[0];
    case ExprKind::kLt: return Le(n.args[1], n.args[0]);
    case ExprKind::kLe: return Lt(n.args[1], n.args[0]);
    case ExprKind::kEq: return Ne(n.args[0], n.args[1]);
    case ExprKind::kNe: return Eq(n.args[0], n.args[1]);
    default: return Make(ExprKind::kNot, {a});
  }
}

Expr Select(Expr condition, Expr then, Expr otherwise) {
  if (condition.IsConst()) return condition.IsConst(0) ? otherwise : then;
  if (!condition.IsValid() || !then.IsValid() || !otherwise.IsValid()) return Expr::Invalid();
  if (then == otherwise) return then;
  condition = Truth(condition);
  if (condition.IsConst()) return condition.IsConst(0) ? otherwise : then;
  if (then.IsConst(1) && otherwise.IsConst(0)) return condition;
  if (then.IsConst(0) && otherwise.IsConst(1)) return Not(condition);
  if (condition.kind() == ExprKind::kNot) {
    condition = condition.node()->args[0];
    std::swap(then, otherwise);
  }
  // a < b ? a : b
  if (condition.kind() == ExprKind::kLt) {
    if (Lt(then, otherwise) == condition) return Min(then, otherwise);
    if (Lt(otherwise, then) == condition) return Max(then, otherwise);
  }
  return Make(ExprKind::kSelect, {condition, then, otherwise});
}

}  // namespace ge
