// Sums and products in canonical form: a constant plus coefficient * product, products in canonical
// order. Products distribute over sums (up to kMaxExpansion terms), so that equal polynomials are
// equal Exprs. k*floordiv(x, k) + mod(x, k) becomes x.
#include <algorithm>

#include "expr/node.h"

namespace ge {
namespace {

constexpr size_t kMaxExpansion = 48;

bool MulInto(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }

// True if each term of `part` stands in `whole` with the same coefficient.
bool Contains(const Sum& whole, const Sum& part) {
  for (const Term& t : part.terms) {
    const auto it = std::find_if(whole.terms.begin(), whole.terms.end(),
                                 [&](const Term& w) { return w.key == t.key; });
    if (it == whole.terms.end() || it->coefficient != t.coefficient) return false;
  }
  return part.constant == 0 && !part.terms.empty();
}

// `sum` minus a and b, plus `come`. Not through operator+, which would join a and b at once.
void Replace(Sum& sum, Expr a, Expr b, Expr come) {
  AddScaled(sum, TermsOf(a), -1);
  AddScaled(sum, TermsOf(b), -1);
  AddScaled(sum, TermsOf(come), 1);
}

// One step of: c*k*floordiv(x, k) + c*mod(x, k) -> c*x, and
// c*k*mod(floordiv(x, k), m) + c*mod(x, k) -> c*mod(x, k*m).
bool JoinRemainder(Sum& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term mod = sum.terms[i];
    if (mod.key.kind() != ExprKind::kMod) continue;
    const Expr x = mod.key.node()->args[0], k = mod.key.node()->args[1];
    const Expr quotient = FloorDiv(x, k);
    const Expr scaled = k * mod.coefficient;
    if (!quotient.IsValid() || !scaled.IsValid()) continue;
    const Expr whole = scaled * quotient;
    if (whole.IsValid() && !whole.IsConst() && Contains(sum, TermsOf(whole))) {
      Replace(sum, whole, FromTerm(mod), x * mod.coefficient);
      return true;
    }
    const Sum unit = TermsOf(scaled);
    if (unit.terms.size() + (unit.constant != 0) != 1) continue;
    const Term by = unit.terms.empty() ? Term{Expr(1), unit.constant} : unit.terms[0];
    for (const Term& t : sum.terms) {
      const Term d = DivideTerm(t, by);
      if (d.coefficient != 1 || d.key.kind() != ExprKind::kMod) continue;
      if (!(d.key.node()->args[0] == quotient)) continue;
      const Expr m = d.key.node()->args[1];
      if (Bounds(k).lo < 0 || Bounds(m).lo < 0) continue;
      Replace(sum, FromTerm(t), FromTerm(mod), Mod(x, k * m) * mod.coefficient);
      return true;
    }
  }
  return false;
}

Expr Plain(const Sum& sum) {
  if (!sum.valid) return Expr::Invalid();
  if (sum.terms.empty()) return sum.constant;
  if (sum.terms.size() == 1 && sum.constant == 0) return FromTerm(sum.terms[0]);
  std::vector<Expr> args;
  args.reserve(sum.terms.size() + 1);
  for (const Term& t : sum.terms) args.push_back(FromTerm(t));
  if (sum.constant != 0) args.emplace_back(sum.constant);
  return Make(ExprKind::kAdd, args);
}

Expr Scale(Expr e, int64_t factor) {
  if (factor == 0) return 0;
  if (factor == 1) return e;
  Sum s = TermsOf(e);
  for (Term& t : s.terms) s.valid &= MulInto(t.coefficient, factor, &t.coefficient);
  s.valid &= MulInto(s.constant, factor, &s.constant);
  return Plain(s);
}

Expr MergeFactors(Expr a, Expr b) {
  const std::span<const Expr> x = FactorsOf(a), y = FactorsOf(b);
  std::vector<Expr> factors(x.size() + y.size());
  std::merge(x.begin(), x.end(), y.begin(), y.end(), factors.begin(), Before);
  return Make(ExprKind::kMul, factors);
}

}  // namespace

Sum TermsOf(Expr e) {
  Sum s;
  const auto add = [&](Expr a) {
    if (a.IsConst()) {
      s.constant = a.value();
    } else if (a.kind() == ExprKind::kMul && a.node()->args[0].IsConst()) {
      s.terms.push_back({a.node()->args[1], a.node()->args[0].value()});
    } else {
      s.terms.push_back({a, 1});
    }
  };
  if (e.kind() == ExprKind::kAdd) {
    s.terms.reserve(e.node()->args.size());
    for (Expr a : e.node()->args) add(a);
  } else {
    add(e);
  }
  s.valid = e.IsValid();
  return s;
}

Expr FromTerm(const Term& t) {
  if (t.coefficient == 0) return 0;
  if (t.coefficient == 1) return t.key;
  return Make(ExprKind::kMul, {Expr(t.coefficient), t.key});
}

Expr FromSum(Sum sum) {
  while (sum.valid && sum.terms.size() <= kMaxExpansion && JoinRemainder(sum)) {
  }
  return Plain(sum);
}

void AddScaled(Sum& sum, const Sum& other, int64_t factor) {
  std::vector<Term> out;
  out.reserve(sum.terms.size() + other.terms.size());
  size_t i = 0, j = 0;
  while (i < sum.terms.size() || j < other.terms.size()) {
    const int c = i == sum.terms.size()     ? 1
                  : j == other.terms.size() ? -1
                                            : Compare(sum.terms[i].key, other.terms[j].key);
    if (c < 0) {
      out.push_back(sum.terms[i++]);
      continue;
    }
    Term t = other.terms[j++];
    sum.valid &= MulInto(t.coefficient, factor, &t.coefficient);
    if (c == 0) {
      sum.valid &=
          !__builtin_add_overflow(t.coefficient, sum.terms[i++].coefficient, &t.coefficient);
    }
    if (t.coefficient != 0) out.push_back(t);
  }
  sum.terms = std::move(out);
  int64_t constant = 0;
  sum.valid &= other.valid && MulInto(other.constant, factor, &constant);
  sum.valid &= !__builtin_add_overflow(sum.constant, constant, &sum.constant);
}

std::span<const Expr> FactorsOf(const Expr& key) {
  if (key.kind() == ExprKind::kMul) return key.node()->args;
  return {&key, 1};
}

Term DivideTerm(const Term& t, const Term& by) {
  constexpr Term kNo{Expr(), 0};
  if (by.coefficient == 0 || (by.coefficient == -1 && t.coefficient == INT64_MIN)) return kNo;
  if (t.coefficient % by.coefficient != 0) return kNo;
  const int64_t c = t.coefficient / by.coefficient;
  if (by.key.IsConst()) return {t.key, c};
  if (t.key.IsConst()) return kNo;
  const std::span<const Expr> x = FactorsOf(t.key), y = FactorsOf(by.key);
  if (y.size() > x.size()) return kNo;
  std::vector<Expr> left;
  size_t j = 0;
  for (Expr f : x) {
    if (j < y.size() && f == y[j]) {
      ++j;
    } else {
      left.push_back(f);
    }
  }
  if (j != y.size()) return kNo;
  if (left.empty()) return {Expr(1), c};
  return {left.size() == 1 ? left[0] : Make(ExprKind::kMul, left), c};
}

Expr operator+(Expr a, Expr b) {
  if (a.IsConst() && b.IsConst()) {
    int64_t r;
    return __builtin_add_overflow(a.value(), b.value(), &r) ? Expr::Invalid() : Expr(r);
  }
  if (a.IsConst(0)) return b;
  if (b.IsConst(0)) return a;
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  Sum s = TermsOf(a);
  AddScaled(s, TermsOf(b), 1);
  return FromSum(std::move(s));
}

Expr operator-(Expr a, Expr b) {
  if (b.IsConst(0)) return a;
  if (a == b && a.IsValid()) return 0;
  if (a.IsConst() && b.IsConst()) {
    int64_t r;
    return __builtin_sub_overflow(a.value(), b.value(), &r) ? Expr::Invalid() : Expr(r);
  }
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  Sum s = TermsOf(a);
  AddScaled(s, TermsOf(b), -1);
  return FromSum(std::move(s));
}

Expr operator*(Expr a, Expr b) {
  if (a.IsConst() && b.IsConst()) {
    int64_t r;
    return MulInto(a.value(), b.value(), &r) ? Expr(r) : Expr::Invalid();
  }
  if (!a.IsValid() || !b.IsValid()) return Expr::Invalid();
  if (a.IsConst()) return Scale(b, a.value());
  if (b.IsConst()) return Scale(a, b.value());
  const Sum x = TermsOf(a), y = TermsOf(b);
  const size_t nx = x.terms.size() + (x.constant != 0), ny = y.terms.size() + (y.constant != 0);
  if (nx * ny > kMaxExpansion && nx > 1 && ny > 1) return MergeFactors(a, b);
  Sum out;
  for (const Term& t : x.terms) {
    Sum row;
    for (const Term& u : y.terms) {
      int64_t c = 0;
      row.valid &= MulInto(t.coefficient, u.coefficient, &c);
      row.terms.push_back({MergeFactors(t.key, u.key), c});
    }
    if (y.constant != 0) {
      int64_t c = 0;
      row.valid &= MulInto(t.coefficient, y.constant, &c);
      row.terms.push_back({t.key, c});
    }
    if (!row.valid) return Expr::Invalid();
    std::sort(row.terms.begin(), row.terms.end(),
              [](const Term& p, const Term& q) { return Before(p.key, q.key); });
    AddScaled(out, row, 1);
    out.valid &= row.valid;
  }
  Sum rest = y;
  rest.constant = y.constant;
  AddScaled(out, rest, x.constant);
  return FromSum(std::move(out));
}

Expr Product(const std::vector<Expr>& v) {
  Expr p = 1;
  for (Expr e : v) p = p * e;
  return p;
}

}  // namespace ge
