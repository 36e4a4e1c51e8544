// Numeric and symbolic bounds. Intervals saturate: INT64_MIN and INT64_MAX mean unbounded.
#include <algorithm>
#include <numeric>

#include "expr/node.h"

namespace ge {
namespace {

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;
constexpr size_t kMaxTerms = 32;  // of a sum whose symbolic bound is sought
bool IsInf(int64_t v) { return v == kMin || v == kMax; }

// One end of a sum: an infinite operand or an overflow gives `infinity`.
int64_t AddEnd(int64_t a, int64_t b, int64_t infinity) {
  int64_t r;
  if (a == infinity || b == infinity || __builtin_add_overflow(a, b, &r)) return infinity;
  return r;
}

int64_t MulSat(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t r;
  const int64_t infinity = (a < 0) == (b < 0) ? kMax : kMin;
  if (IsInf(a) || IsInf(b) || __builtin_mul_overflow(a, b, &r)) return infinity;
  return r;
}

Interval MulBounds(Interval a, Interval b) {
  const auto [lo, hi] =
      std::minmax({MulSat(a.lo, b.lo), MulSat(a.lo, b.hi), MulSat(a.hi, b.lo), MulSat(a.hi, b.hi)});
  return {lo, hi};
}

int64_t DivEnd(int64_t a, int64_t b) {
  if (IsInf(a)) return a;
  if (b == kMax) return a < 0 ? -1 : 0;
  return FloorDivInt(a, b);
}

Interval DivBounds(Interval a, Interval b) {
  if (b.lo < 0) {
    if (IsInf(a.lo) || IsInf(a.hi)) return {kMin, kMax};
    const int64_t m = std::max(a.hi, -a.lo);  // |quotient| <= |a|
    return {-m, m};
  }
  const int64_t least = std::max<int64_t>(1, b.lo), most = std::max<int64_t>(1, b.hi);
  const auto [lo, hi] = std::minmax(
      {DivEnd(a.lo, least), DivEnd(a.lo, most), DivEnd(a.hi, least), DivEnd(a.hi, most)});
  return {lo, hi};
}

Interval ModBounds(Interval a, Interval b) {
  Interval r{b.lo < 0 ? (b.lo == kMin ? kMin : b.lo + 1) : 0,
             b.hi == kMax ? kMax : std::max<int64_t>(b.hi - 1, 0)};
  if (b.lo >= 0 && a.lo >= 0) r.hi = std::min(r.hi, a.hi);
  return r;
}

Interval SymbolBounds(const SymbolFacts& f) {
  Interval r{f.lo, f.hi};
  if (!f.extent.IsConst(0)) {
    const Interval e =
        f.extent.IsConst() ? Interval{f.extent.value(), f.extent.value()} : f.extent.node()->bounds;
    if (e.hi != kMax) r.hi = std::min(r.hi, e.hi - 1);
  }
  if (r.hi < r.lo) r.hi = r.lo;  // an empty loop: its body never runs
  return r;
}

Interval Current(Expr e) { return e.node() ? e.node()->bounds : Interval{e.value(), e.value()}; }

// Recomputes stale bounds bottom up, without recursion.
void Refresh(const ExprNode* root) {
  std::vector<const ExprNode*> stack{root};
  while (!stack.empty()) {
    const ExprNode* n = stack.back();
    const uint32_t epoch = n->arena->tables().epoch;
    const size_t before = stack.size();
    const auto need = [&](Expr e) {
      if (e.node() && e.node()->epoch != epoch) stack.push_back(e.node());
    };
    if (n->epoch != epoch) {
      for (Expr a : n->args) need(a);
      if (n->kind == ExprKind::kSymbol) need(n->facts.extent);
    }
    if (stack.size() != before) continue;
    if (n->epoch != epoch) FillFacts(*n);
    stack.pop_back();
  }
}

// A symbolic bound of a term's key: loop variables and remainders go to their last value, what is
// no loop variable stays. Nullopt: the key is its own best bound.
std::optional<Expr> KeyBound(Expr key, bool upper, int depth);

Expr BoundSum(Expr e, bool upper, int depth) {
  const Sum s = TermsOf(e);
  Expr out = s.constant;
  for (const Term& t : s.terms) {
    const std::optional<Expr> b = KeyBound(t.key, (t.coefficient > 0) == upper, depth);
    out = out + (b ? *b : t.key) * t.coefficient;
  }
  return out;
}

std::optional<Expr> KeyBound(Expr key, bool upper, int depth) {
  if (depth > 6) return std::nullopt;
  const ExprNode& n = *key.node();
  switch (n.kind) {
    case ExprKind::kSymbol:
      if (n.facts.extent.IsConst(0)) return std::nullopt;
      return upper ? n.facts.extent - 1 : Expr(n.facts.lo);
    case ExprKind::kMod: {
      if (Bounds(n.args[1]).lo < 0) return std::nullopt;
      return upper ? n.args[1] - 1 : Expr(0);
    }
    case ExprKind::kFloorDiv: {
      if (Bounds(n.args[1]).lo < 0) return std::nullopt;
      const Expr a = BoundSum(n.args[0], upper, depth + 1);
      if (a == n.args[0]) return std::nullopt;
      return FloorDiv(a, n.args[1]);
    }
    case ExprKind::kMul: {
      Expr product = 1;
      bool changed = false;
      for (Expr f : n.args) {
        if (Bounds(f).lo < 0) return std::nullopt;
        const std::optional<Expr> b =
            f.kind() == ExprKind::kAdd ? std::nullopt : KeyBound(f, upper, depth + 1);
        changed |= b.has_value();
        product = product * (b ? *b : f);
      }
      if (!changed) return std::nullopt;
      return product;
    }
    default: return std::nullopt;
  }
}

int64_t CurrentFactor(Expr e) {
  if (e.node()) return e.node()->factor;
  return e.value() == kMin ? 1 : std::abs(e.value());
}

int64_t ComputeFactor(const ExprNode& n) {
  switch (n.kind) {
    case ExprKind::kSymbol: return n.facts.multiple_of;
    case ExprKind::kMul: {
      int64_t f = 1, r;
      for (Expr a : n.args) {
        if (!__builtin_mul_overflow(f, CurrentFactor(a), &r)) f = r;
      }
      return std::max<int64_t>(f, 1);
    }
    case ExprKind::kFloorDiv: {
      const int64_t d = n.args[1].IsConst() ? n.args[1].value() : 0;
      const int64_t f = CurrentFactor(n.args[0]);
      return d > 0 && f % d == 0 ? f / d : 1;
    }
    case ExprKind::kAdd:
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kMod: {
      int64_t g = 0;
      for (Expr a : n.args) g = std::gcd(g, CurrentFactor(a));
      return g;
    }
    case ExprKind::kSelect: return std::gcd(CurrentFactor(n.args[1]), CurrentFactor(n.args[2]));
    default: return 1;
  }
}

Interval BoundsOf(const ExprNode& n) {
  const auto arg = [&](int i) { return Current(n.args[i]); };
  switch (n.kind) {
    case ExprKind::kSymbol: return SymbolBounds(n.facts);
    case ExprKind::kAdd: {
      Interval r{0, 0};
      for (Expr a : n.args) {
        const Interval b = Current(a);
        r = {AddEnd(r.lo, b.lo, kMin), AddEnd(r.hi, b.hi, kMax)};
      }
      return r;
    }
    case ExprKind::kMul: {
      Interval r = arg(0);
      for (size_t i = 1; i < n.args.size(); ++i) {
        // A square is never negative.
        const bool square = n.args[i] == n.args[i - 1] && i == 1 && n.args.size() == 2;
        r = MulBounds(r, Current(n.args[i]));
        if (square) r.lo = std::max<int64_t>(r.lo, 0);
      }
      return r;
    }
    case ExprKind::kFloorDiv: return DivBounds(arg(0), arg(1));
    case ExprKind::kMod: return ModBounds(arg(0), arg(1));
    case ExprKind::kMin:
    case ExprKind::kMax: {
      Interval r = arg(0);
      for (Expr a : n.args) {
        const Interval b = Current(a);
        r = n.kind == ExprKind::kMin ? Interval{std::min(r.lo, b.lo), std::min(r.hi, b.hi)}
                                     : Interval{std::max(r.lo, b.lo), std::max(r.hi, b.hi)};
      }
      return r;
    }
    case ExprKind::kSelect: return {std::min(arg(1).lo, arg(2).lo), std::max(arg(1).hi, arg(2).hi)};
    case ExprKind::kLt:
    case ExprKind::kLe:
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kNot: return {0, 1};
    default: return {kMin, kMax};
  }
}

}  // namespace

int64_t FloorDivInt(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

void FillFacts(const ExprNode& n) {
  n.bounds = BoundsOf(n);
  n.factor = ComputeFactor(n);
  n.epoch = n.arena->tables().epoch;
}

Interval Bounds(Expr e) {
  if (e.IsConst()) return {e.value(), e.value()};
  const ExprNode* n = e.node();
  if (!n->arena) return {kMin, kMax};
  if (n->epoch != n->arena->tables().epoch) Refresh(n);
  return n->bounds;
}

bool ProvablyNonNegative(Expr e) {
  if (!e.IsValid()) return false;
  for (int round = 0; round < 4; ++round) {
    if (Bounds(e).lo >= 0) return true;
    if (e.IsConst()) return false;
    if (e.kind() == ExprKind::kAdd && e.node()->args.size() > kMaxTerms) return false;
    const Expr lower = BoundSum(e, false, 0);
    if (lower == e || !lower.IsValid()) return false;
    e = lower;
  }
  return false;
}

bool ProvablyEq(Expr a, Expr b) { return a.IsValid() && (a == b || (a - b).IsConst(0)); }
bool ProvablyLt(Expr a, Expr b) { return ProvablyNonNegative(b - a - 1); }
bool ProvablyLe(Expr a, Expr b) { return ProvablyNonNegative(b - a); }

int64_t KnownFactor(Expr e) {
  Bounds(e);  // makes the facts current
  return CurrentFactor(e);
}

bool DivisibleBy(Expr e, int64_t k) {
  if (k == 0 || !e.IsValid()) return false;
  const int64_t f = KnownFactor(e);  // 0: e is zero
  return k == kMin ? f == 0 : f % k == 0;
}

}  // namespace ge
