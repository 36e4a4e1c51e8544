// FloorDiv and Mod: a = quotient * b + remainder, both found together so that they stay a pair.
//
//   floordiv(16*i + c, 16) = i             0 <= c < 16, from numeric bounds or symbolic extents
//   floordiv(16*i + c, 64) = floordiv(i, 4)           mod: 16*mod(i, 4) + c
//   floordiv(floordiv(x, a) + c, b) = floordiv(x + a*c, a*b)
//   floordiv(mod(x, a*b), b) = mod(floordiv(x, b), a)
#include <numeric>

#include "base/check.h"
#include "expr/node.h"

namespace ge {
namespace {

// b as one term, or coefficient 0 if it is a sum.
Term AsTerm(Expr b) {
  if (b.IsConst()) return {Expr(1), b.value()};
  Sum s = TermsOf(b);
  if (s.terms.size() == 1 && s.constant == 0) return s.terms[0];
  return {Expr(1), 0};
}

Expr Value(const Term& t) { return t.key * t.coefficient; }

// Sums beyond this are divided as they are: each rewriting step costs their length.
constexpr size_t kMaxTerms = 24;

bool InRange(Expr r, Expr b) {
  if (!r.IsValid()) return false;
  const Interval x = Bounds(r), y = Bounds(b);
  if (x.lo >= 0 && x.hi < y.lo) return true;
  if (r.IsConst() && b.IsConst()) return false;
  return ProvablyNonNegative(r) && ProvablyNonNegative(b - r - 1);
}

// Moves what b divides from `r` to `q`, by a constant.
void SplitConstant(Sum& r, Sum& q, int64_t b) {
  std::vector<Term> rest;
  for (const Term& t : r.terms) {
    if (t.coefficient / b != 0) q.terms.push_back({t.key, t.coefficient / b});
    if (t.coefficient % b != 0) rest.push_back({t.key, t.coefficient % b});
  }
  r.terms = std::move(rest);
  q.constant = FloorDivInt(r.constant, b);
  r.constant -= q.constant * b;
}

// The same for a product of symbols.
Expr SplitProduct(Sum& r, const Term& b) {
  Expr q = 0;
  std::vector<Term> rest;
  for (const Term& t : r.terms) {
    const Term d = DivideTerm(t, b);
    if (d.coefficient != 0) {
      q = q + Value(d);
    } else {
      rest.push_back(t);
    }
  }
  r.terms = std::move(rest);
  return q;
}

// Long division by a sum. Nullopt unless the remainder is provably in [0, b).
std::optional<DivMod> DivideBySum(Expr a, Expr b) {
  const Sum divisor = TermsOf(b);
  // The leading term: most factors.
  Term lead{Expr(1), 0};
  size_t most = 0;
  for (const Term& t : divisor.terms) {
    if (FactorsOf(t.key).size() > most) {
      most = FactorsOf(t.key).size();
      lead = t;
    }
  }
  Expr q = 0, r = a;
  for (int step = 0; step < 16; ++step) {
    Term d{Expr(1), 0};
    for (const Term& t : TermsOf(r).terms) {
      d = DivideTerm(t, lead);
      if (d.coefficient != 0) break;
    }
    if (d.coefficient == 0) break;
    q = q + Value(d);
    r = r - Value(d) * b;
    if (!r.IsValid() || !q.IsValid()) return std::nullopt;
    if (r.IsConst(0)) return DivMod{q, 0};
  }
  if (!q.IsConst(0) && InRange(r, b)) return DivMod{q, r};
  return std::nullopt;
}

// The largest product that divides both t and b; its symbols are never negative.
Term CommonFactor(const Term& t, const Term& b) {
  Term g{Expr(1), std::gcd(t.coefficient, b.coefficient)};
  if (t.coefficient == INT64_MIN || t.key.IsConst() || b.key.IsConst()) return g;
  const std::span<const Expr> x = FactorsOf(t.key), y = FactorsOf(b.key);
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const int c = Compare(x[i], y[j]);
    if (c == 0 && Bounds(x[i]).lo >= 0) g.key = g.key * x[i];
    i += c <= 0;
    j += c >= 0;
  }
  return g;
}

// r = g*x + y with 0 <= y < g and g a proper factor of b.
std::optional<DivMod> TakeFactor(const Sum& r, const Term& b) {
  std::vector<Term> tried;
  for (const Term& candidate : r.terms) {
    const Term g = CommonFactor(candidate, b);
    if (g.key.IsConst() && g.coefficient == 1) continue;
    bool seen = false;
    for (const Term& t : tried) seen |= t.key == g.key && t.coefficient == g.coefficient;
    if (seen || tried.size() >= 4) continue;
    tried.push_back(g);
    Expr x = 0, y = 0;
    for (const Term& t : r.terms) {
      const Term d = DivideTerm(t, g);
      (d.coefficient != 0 ? x : y) += Value(d.coefficient != 0 ? d : t);
    }
    const int64_t whole = g.key.IsConst() ? FloorDivInt(r.constant, g.coefficient) : 0;
    x += whole;
    y += r.constant - whole * g.coefficient;
    if (x.IsConst() || !InRange(y, Value(g))) continue;
    const Expr rest = Value(DivideTerm(b, g));
    return DivMod{FloorDiv(x, rest), Mod(x, rest) * Value(g) + y};
  }
  return std::nullopt;
}

// r = x + y where every term of x has b as a factor by the facts of its symbols, and 0 <= y < b.
std::optional<DivMod> TakeMultiples(const Sum& r, int64_t b) {
  Expr x = 0, y = r.constant;
  for (const Term& t : r.terms) {
    const Expr value = FromTerm(t);
    (KnownFactor(value) % b == 0 ? x : y) += value;
  }
  if (x.IsConst() || !InRange(y, b)) return std::nullopt;
  if (y.IsConst(0)) return DivMod{Make(ExprKind::kFloorDiv, {x, Expr(b)}), 0};
  return DivMod{FloorDiv(x, b), y};
}

Expr RawMod(Expr r, const Sum& sum, Expr b, const Term& b_term) {
  // mod(c*mod(x, m) + y, b) = mod(c*x + y, b) where b divides c*m.
  for (const Term& t : sum.terms) {
    if (t.key.kind() != ExprKind::kMod || b_term.coefficient == 0) continue;
    const Expr x = t.key.node()->args[0];
    if (x.kind() == ExprKind::kAdd && x.node()->args.size() + sum.terms.size() > kMaxTerms)
      continue;
    const Term period = AsTerm(t.key.node()->args[1] * t.coefficient);
    if (period.coefficient == 0 || DivideTerm(period, b_term).coefficient == 0) continue;
    return Mod(r - FromTerm(t) + x * t.coefficient, b);
  }
  return Make(ExprKind::kMod, {r, b});
}

Expr RawQuotient(Expr r, const Sum& sum, Expr b, const Term& b_term) {
  const bool positive = Bounds(b).lo >= 0;
  if (positive && sum.terms.size() == 1 && sum.terms[0].coefficient == 1) {
    const Expr key = sum.terms[0].key;
    if (key.kind() == ExprKind::kFloorDiv && Bounds(key.node()->args[1]).lo >= 0) {
      const Expr x = key.node()->args[0], a = key.node()->args[1];
      const Expr numerator = x + a * sum.constant, product = a * b;
      if (numerator.IsValid() && product.IsValid()) return FloorDiv(numerator, product);
    }
    if (key.kind() == ExprKind::kMod && sum.constant == 0 && b_term.coefficient != 0) {
      const Term m = AsTerm(key.node()->args[1]);
      const Term d = DivideTerm(m, b_term);
      if (d.coefficient != 0 && Bounds(key.node()->args[1]).lo >= 0) {
        return Mod(FloorDiv(key.node()->args[0], b), Value(d));
      }
    }
  }
  return Make(ExprKind::kFloorDiv, {r, b});
}

DivMod Reduce(Sum sum, Expr b, const Term& b_term) {
  const Expr r = FromSum(sum);
  if (!r.IsValid()) return {r, r};
  if (r.IsConst(0)) return {0, 0};
  if (InRange(r, b)) return {0, r};
  if (Bounds(r).hi < 0 && ProvablyNonNegative(r + b)) return {-1, r + b};
  sum = TermsOf(r);
  if (b_term.coefficient > 0 && sum.terms.size() <= kMaxTerms) {
    if (auto d = TakeFactor(sum, b_term)) return *d;
  }
  if (b.IsConst()) {
    if (auto d = TakeMultiples(sum, b.value())) return *d;
  }
  return {RawQuotient(r, sum, b, b_term), RawMod(r, sum, b, b_term)};
}

DivMod Compute(Expr a, Expr b) {
  const Term b_term = AsTerm(b);
  Sum r = TermsOf(a);
  Expr q = 0;
  if (b.IsConst()) {
    Sum quotient;
    SplitConstant(r, quotient, b.value());
    q = FromSum(std::move(quotient));
  } else if (b_term.coefficient != 0) {
    q = SplitProduct(r, b_term);
  } else if (auto d = DivideBySum(a, b)) {
    return *d;
  }
  DivMod d = Reduce(std::move(r), b, b_term);
  return {q + d.quotient, d.remainder};
}

Expr DivideConstants(int64_t a, int64_t b, bool quotient) {
  if (b == -1) return quotient ? (a == INT64_MIN ? Expr::Invalid() : Expr(-a)) : Expr(0);
  int64_t q = a / b, r = a % b;
  if (r != 0 && (r < 0) != (b < 0)) {
    --q;
    r += b;
  }
  return quotient ? q : r;
}

}  // namespace

DivMod Divide(Expr a, Expr b) {
  ExprArena* arena = a.node() ? a.node()->arena : b.node()->arena;
  const ExprPair key{a, b};
  auto& memo = arena->tables().divisions;
  if (auto it = memo.find(key); it != memo.end()) return it->second;
  const DivMod d = Compute(a, b);
  memo.emplace(key, d);
  return d;
}

Expr FloorDiv(Expr a, Expr b) {
  if (!a.IsValid() || !b.IsValid() || b.IsConst(0)) return Expr::Invalid();
  if (b.IsConst()) {
    if (a.IsConst()) return DivideConstants(a.value(), b.value(), true);
    if (b.IsConst(1)) return a;
    if (b.value() < 0) return FloorDiv(a * -1, b * -1);
  }
  if (a.IsConst(0)) return 0;
  if (a == b) return 1;
  return Divide(a, b).quotient;
}

Expr Mod(Expr a, Expr b) {
  if (!a.IsValid() || !b.IsValid() || b.IsConst(0)) return Expr::Invalid();
  if (b.IsConst()) {
    if (a.IsConst()) return DivideConstants(a.value(), b.value(), false);
    if (b.IsConst(1)) return 0;
    if (b.value() < 0) return Mod(a * -1, b * -1) * -1;
  }
  if (a.IsConst(0) || a == b) return 0;
  return Divide(a, b).remainder;
}

Expr CeilDiv(Expr a, Expr b) {
  if (Bounds(b).lo < 0) return FloorDiv(a * -1, b) * -1;
  return FloorDiv(a + b - 1, b);
}
Expr RoundUp(Expr a, Expr multiple) { return CeilDiv(a, multiple) * multiple; }

Expr TruncDiv(Expr a, Expr b) {
  if (a.IsConst() && b.IsConst()) {
    if (b.value() == 0 || (b.value() == -1 && a.value() == INT64_MIN)) return Expr::Invalid();
    return a.value() / b.value();
  }
  if (Bounds(b).hi < 0) return TruncDiv(a * -1, b * -1);
  if (Bounds(b).lo < 0)
    return Select(Lt(b, 0), TruncDiv(a * -1, Max(b * -1, 1)), TruncDiv(a, Max(b, 1)));
  return Select(Lt(a, 0), FloorDiv(a * -1, b) * -1, FloorDiv(a, b));
}

}  // namespace ge
