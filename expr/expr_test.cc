// Exprs: rules by example, and random trees against direct evaluation.
#include "expr/expr.h"

#include <gtest/gtest.h>

#include <random>

namespace ge {
namespace {

class ExprTest : public ::testing::Test {
 protected:
  Expr Sym(const char* name, int64_t lo = 0, int64_t hi = INT64_MAX) {
    return arena_.Symbol(name, {.lo = lo, .hi = hi});
  }
  Expr Loop(const char* name, Expr extent) {
    return arena_.Symbol(name, {.lo = 0, .extent = extent});
  }
  ExprArena arena_;
};

TEST_F(ExprTest, SumsAreCanonical) {
  const Expr a = Sym("a"), b = Sym("b");
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ(a * 3 + b - a, a * 2 + b);
  EXPECT_EQ((a + 1) * (b + 2), a * b + a * 2 + b + 2);
  EXPECT_EQ(a - a, Expr(0));
  EXPECT_EQ(ToString(b * 2 + a - 3), "a + 2*b - 3");
  EXPECT_TRUE(ProvablyEq((a + b) * (a - b), a * a - b * b));
}

TEST_F(ExprTest, OverflowIsInvalid) {
  const Expr a = Sym("a");
  EXPECT_FALSE((Expr(INT64_MAX) + 1).IsValid());
  EXPECT_FALSE((a * INT64_MAX * 2).IsValid());
  EXPECT_FALSE(FloorDiv(a, 0).IsValid());
  EXPECT_FALSE((FloorDiv(a, 0) + 1).IsValid());
  EXPECT_FALSE(FloorDiv(Expr(INT64_MIN), -1).IsValid());
}

TEST_F(ExprTest, DivisionByBoundsAndExtents) {
  const Expr n = Sym("N"), h = Sym("H"), w = Sym("W");
  const Expr i = Loop("i", n), j = Loop("j", h), k = Loop("k", w), c = Loop("c", 16);
  EXPECT_EQ(FloorDiv(i * 16 + c, 16), i);
  EXPECT_EQ(Mod(i * 16 + c, 16), c);
  EXPECT_EQ(FloorDiv(i * w + k, w), i);
  EXPECT_EQ(Mod(i * w + k, w), k);
  const Expr flat = (i * h + j) * w + k;
  EXPECT_EQ(FloorDiv(flat, h * w), i);
  EXPECT_EQ(Mod(FloorDiv(flat, w), h), j);
  EXPECT_EQ(FloorDiv(i * 16 + c, 64), FloorDiv(i, 4));
  EXPECT_EQ(Mod(i * 16 + c, 64), Mod(i, 4) * 16 + c);
  EXPECT_EQ(FloorDiv(j * w + k, h * w), Expr(0));
  EXPECT_EQ(FloorDiv(i * (h + 2) * (w + 2), (h + 2) * (w + 2)), i);
  EXPECT_EQ(Mod(i * (w + 2) + k, w + 2), k);
  EXPECT_EQ(FloorDiv(n * h * w, n * w), h);
}

TEST_F(ExprTest, ShapeFormulasAgree) {
  const Expr w = Sym("w");
  EXPECT_EQ(FloorDiv(w - 1, 2) + 1, FloorDiv(w + 1, 2));
  EXPECT_EQ(FloorDiv(FloorDiv(w + 1, 2) + 1, 2), FloorDiv(w + 3, 4));
  EXPECT_EQ(FloorDiv(FloorDiv(w, 3), 5), FloorDiv(w, 15));
  EXPECT_EQ(CeilDiv(w * 4, 4), w);
  EXPECT_EQ(CeilDiv(1, -1), Expr(-1));
  EXPECT_EQ(CeilDiv(7, -3), Expr(-2));
  EXPECT_EQ(CeilDiv(-7, -3), Expr(3));
  const Expr m = arena_.Symbol("m", {.multiple_of = 32});
  EXPECT_EQ(Mod(m, 8), Expr(0));
  EXPECT_TRUE(DivisibleBy(m * 3 + 64, 32));
  EXPECT_FALSE(DivisibleBy(m + 1, 32));
}

TEST_F(ExprTest, FlattenedIndexComesBack) {
  const Expr x = Sym("x"), h = Sym("H"), w = Sym("W");
  EXPECT_EQ(FloorDiv(x, 7) * 7 + Mod(x, 7), x);
  EXPECT_EQ(FloorDiv(x, h * w) * h * w + Mod(FloorDiv(x, w), h) * w + Mod(x, w), x);
  EXPECT_EQ(FloorDiv(x, 6) * 12 + Mod(FloorDiv(x, 2), 3) * 4 + Mod(x, 2) * 2, x * 2);
  EXPECT_EQ(FloorDiv(x, w + 2) * (w + 2) + Mod(x, w + 2), x);
}

TEST_F(ExprTest, ComparisonsFold) {
  const Expr n = Sym("n", 1, 100), i = Loop("i", n);
  EXPECT_EQ(Lt(i, n), Expr(1));
  EXPECT_EQ(Le(n, i), Expr(0));
  EXPECT_EQ(Lt(i, 100), Expr(1));
  EXPECT_EQ(Lt(i, 200), Expr(1));
  EXPECT_EQ(Ne(i, n), Expr(1));
  EXPECT_EQ(Min(i, n), i);
  EXPECT_EQ(Max(i, n - 1), n - 1);
  EXPECT_EQ(Not(Lt(n, 5)), Le(5, n));
  EXPECT_EQ(Select(Lt(i, n), n, i), n);
  EXPECT_EQ(Lt(i + 3, n + 3), Expr(1));
  EXPECT_TRUE(ProvablyLt(i * 4 + 3, n * 4));
  EXPECT_FALSE(ProvablyLt(i * 4 + 4, n * 4));
}

TEST_F(ExprTest, LinearFormAndSubstitution) {
  const Expr a = Sym("a"), b = Sym("b");
  auto l = AsLinear(a * b * 2 + a + b + 5, a);
  ASSERT_TRUE(l.has_value());
  EXPECT_EQ(l->coefficient, b * 2 + 1);
  EXPECT_EQ(l->rest, b + 5);
  EXPECT_FALSE(AsLinear(a * a, a).has_value());
  EXPECT_FALSE(AsLinear(FloorDiv(a, 2), a).has_value());
  const Expr s = Substitute(FloorDiv(a + b, 4), [&](Expr e) -> std::optional<Expr> {
    if (e == b) return a * 3;
    return std::nullopt;
  });
  EXPECT_EQ(s, a);
}

TEST_F(ExprTest, RefineTightens) {
  const Expr a = Sym("a");
  const Expr e = a + 1;
  EXPECT_EQ(Bounds(e).lo, 1);
  arena_.Refine(a, {.lo = 5, .hi = 9});
  EXPECT_EQ(Bounds(e).lo, 6);
  EXPECT_EQ(Bounds(e).hi, 10);
  EXPECT_EQ(FloorDiv(a, 10), Expr(0));
}

TEST_F(ExprTest, FreshNamesAreNew) {
  Sym("i0");
  const Expr f = arena_.Fresh("i"), g = arena_.Fresh("i");
  EXPECT_FALSE(f == g);
  EXPECT_EQ(f.node()->name, "i1");
  EXPECT_TRUE(arena_.Find("i2").has_value());
  EXPECT_FALSE(arena_.Find("nothing").has_value());
}

TEST_F(ExprTest, DeepAndSharedExpressions) {
  const Expr a = Sym("a"), b = Sym("b");
  Expr e = a;
  for (int i = 0; i < 20000; ++i) e = Max(FloorDiv(e + b, 3), b * 2 - i) + Mod(e, 1000003);
  const auto one = [](Expr) -> std::optional<int64_t> { return 1; };
  EXPECT_TRUE(Evaluate(e, one).has_value());
  EXPECT_EQ(Symbols(e).size(), 2u);
  EXPECT_TRUE(DependsOn(e, a));
  arena_.Refine(a, {.lo = 1});
  EXPECT_GE(Bounds(e).hi, 0);
  EXPECT_FALSE(ToString(e).empty());
  EXPECT_TRUE(Substitute(e, [&](Expr) -> std::optional<Expr> { return 1; }).IsConst());
}

TEST_F(ExprTest, ParserRefuses) {
  for (const char* text : {"", "a +", "floordiv(a)", "min(a)", "(a", "a b", "99999999999999999999",
                           "select(a, b)", "3 4", "\"open"}) {
    EXPECT_FALSE(ParseExpr(text, arena_).ok()) << text;
  }
  const std::string deep(100000, '(');
  EXPECT_FALSE(ParseExpr(deep, arena_).ok());
  EXPECT_FALSE(ParseExpr(std::string(100000, '-') + "a", arena_).ok());
  auto odd = ParseExpr("\"batch size\"*2 + -9223372036854775808", arena_);
  ASSERT_TRUE(odd.ok()) << odd.status().message();
  EXPECT_EQ(ToString(*odd), "2*\"batch size\" + -9223372036854775808");
}

// A tree beside its Expr.
struct Tree {
  ExprKind kind = ExprKind::kConst;
  int64_t value = 0;  // constant, or symbol number
  std::vector<Tree> args;
};

using Wide = std::optional<int64_t>;

Wide Direct(const Tree& t, const std::vector<int64_t>& symbols) {
  if (t.kind == ExprKind::kConst) return t.value;
  if (t.kind == ExprKind::kSymbol) return symbols[t.value];
  std::vector<int64_t> v;
  for (const Tree& a : t.args) {
    const Wide x = Direct(a, symbols);
    if (!x || *x > (1ll << 40) || *x < -(1ll << 40)) return std::nullopt;
    v.push_back(*x);
  }
  const auto floordiv = [](int64_t a, int64_t b) {
    int64_t q = a / b;
    while ((q * b > a) == (b > 0) && q * b != a) --q;
    return q;
  };
  switch (t.kind) {
    case ExprKind::kAdd: return v[0] + v[1];
    case ExprKind::kMul: {
      int64_t r;
      if (__builtin_mul_overflow(v[0], v[1], &r)) return std::nullopt;
      return r;
    }
    case ExprKind::kFloorDiv: return v[1] == 0 ? Wide() : Wide(floordiv(v[0], v[1]));
    case ExprKind::kMod: return v[1] == 0 ? Wide() : Wide(v[0] - floordiv(v[0], v[1]) * v[1]);
    case ExprKind::kMin: return v[0] < v[1] ? v[0] : v[1];
    case ExprKind::kMax: return v[0] < v[1] ? v[1] : v[0];
    case ExprKind::kSelect: return v[0] ? v[1] : v[2];
    case ExprKind::kLt: return v[0] < v[1];
    case ExprKind::kLe: return v[0] <= v[1];
    case ExprKind::kEq: return v[0] == v[1];
    case ExprKind::kNe: return v[0] != v[1];
    case ExprKind::kAnd: return v[0] && v[1];
    case ExprKind::kOr: return v[0] || v[1];
    case ExprKind::kNot: return !v[0];
    default: return std::nullopt;
  }
}

class Fuzz {
 public:
  explicit Fuzz(uint32_t seed) : random_(seed) {
    Add({.lo = 0, .hi = 10}, 0);
    Add({.lo = -5, .hi = 5}, 0);
    n_ = Add({.lo = 1, .hi = 8}, 0);
    m_ = Add({.lo = 0, .hi = 6, .multiple_of = 2}, 0);
    Add({.lo = 0, .extent = n_}, n_);
    Add({.lo = 0, .extent = m_}, m_);
    Add({.lo = 0, .extent = n_ * m_}, n_ * m_);
    Add({.lo = 0, .extent = n_ + 2}, n_ + 2);
    Add({.lo = 0, .extent = 16}, 16);
  }

  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  // Values within the facts; false if a loop variable has none.
  bool Values(std::vector<int64_t>& out) {
    out.clear();
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const SymbolFacts& f = symbols_[i].node()->facts;
      int64_t hi = f.hi;
      if (!extents_[i].IsConst(0)) {
        hi = *Evaluate(extents_[i], [&](Expr s) { return Lookup(s, out); }) - 1;
      }
      if (hi < f.lo) return false;
      int64_t v = f.lo + Pick(static_cast<int>(hi - f.lo + 1));
      v -= v % f.multiple_of;
      out.push_back(v);
    }
    return true;
  }

  std::optional<int64_t> Lookup(Expr s, const std::vector<int64_t>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      if (symbols_[i] == s) return values[i];
    }
    return std::nullopt;
  }

  std::pair<Tree, Expr> Random(int depth) {
    if (depth == 0 || Pick(6) == 0) {
      if (Pick(3) == 0) {
        static constexpr int64_t kConstants[] = {0, 1, 2, 3, 4, 8, 16, 32, -1, -2, 5, 7};
        const int64_t v = kConstants[Pick(12)];
        return {Tree{ExprKind::kConst, v, {}}, v};
      }
      const int s = Pick(static_cast<int>(symbols_.size()));
      return {Tree{ExprKind::kSymbol, s, {}}, symbols_[s]};
    }
    static constexpr ExprKind kKinds[] = {
        ExprKind::kAdd, ExprKind::kAdd, ExprKind::kAdd,      ExprKind::kMul, ExprKind::kMul,
        ExprKind::kMul, ExprKind::kMod, ExprKind::kFloorDiv, ExprKind::kMod, ExprKind::kFloorDiv,
        ExprKind::kMin, ExprKind::kMax, ExprKind::kSelect,   ExprKind::kLt,  ExprKind::kLe,
        ExprKind::kEq,  ExprKind::kNe,  ExprKind::kAnd,      ExprKind::kOr,  ExprKind::kNot};
    const ExprKind kind = kKinds[Pick(20)];
    auto [ta, a] = Random(depth - 1);
    auto [tb, b] = Random(depth - 1);
    switch (kind) {
      case ExprKind::kAdd: return {Tree{kind, 0, {ta, tb}}, a + b};
      case ExprKind::kMul: return {Tree{kind, 0, {ta, tb}}, a * b};
      case ExprKind::kFloorDiv: return {Tree{kind, 0, {ta, tb}}, FloorDiv(a, b)};
      case ExprKind::kMod: return {Tree{kind, 0, {ta, tb}}, Mod(a, b)};
      case ExprKind::kMin: return {Tree{kind, 0, {ta, tb}}, Min(a, b)};
      case ExprKind::kMax: return {Tree{kind, 0, {ta, tb}}, Max(a, b)};
      case ExprKind::kLt: return {Tree{kind, 0, {ta, tb}}, Lt(a, b)};
      case ExprKind::kLe: return {Tree{kind, 0, {ta, tb}}, Le(a, b)};
      case ExprKind::kEq: return {Tree{kind, 0, {ta, tb}}, Eq(a, b)};
      case ExprKind::kNe: return {Tree{kind, 0, {ta, tb}}, Ne(a, b)};
      case ExprKind::kAnd: return {Tree{kind, 0, {ta, tb}}, And(a, b)};
      case ExprKind::kOr: return {Tree{kind, 0, {ta, tb}}, Or(a, b)};
      case ExprKind::kNot: return {Tree{kind, 0, {ta}}, Not(a)};
      default: {
        auto [tc, c] = Random(depth - 1);
        return {Tree{kind, 0, {ta, tb, tc}}, Select(a, b, c)};
      }
    }
  }

  ExprArena arena;

 private:
  Expr Add(const SymbolFacts& facts, Expr extent) {
    symbols_.push_back(arena.Symbol("s" + std::to_string(symbols_.size()), facts));
    extents_.push_back(extent);
    return symbols_.back();
  }
  std::mt19937 random_;
  std::vector<Expr> symbols_, extents_;
  Expr n_, m_;
};

TEST(ExprFuzz, SimplifiedValueEqualsDirectValue) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Fuzz fuzz(seed);
    for (int i = 0; i < 200; ++i) {
      auto [tree, e] = fuzz.Random(2 + i % 4);
      std::vector<int64_t> values;
      for (int k = 0; k < 12; ++k) {
        if (!fuzz.Values(values)) continue;
        const Wide want = Direct(tree, values);
        if (!want || !e.IsValid()) continue;
        const Wide got = Evaluate(e, [&](Expr s) { return fuzz.Lookup(s, values); });
        std::string at;
        for (int64_t v : values) at += std::to_string(v) + " ";
        ASSERT_TRUE(got.has_value()) << seed << " " << ToString(e) << " at " << at;
        ASSERT_EQ(*got, *want) << seed << " " << ToString(e) << " at " << at;
        const Interval bounds = Bounds(e);
        ASSERT_LE(bounds.lo, *got) << ToString(e) << " at " << at;
        ASSERT_GE(bounds.hi, *got) << ToString(e) << " at " << at;
        for (int64_t d : {2, 3, 4, 8}) {
          if (DivisibleBy(e, d)) {
            ASSERT_EQ(*got % d, 0) << ToString(e) << " at " << at;
          }
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100000);
}

TEST(ExprFuzz, TextRoundTrip) {
  for (uint32_t seed = 1000; seed < 1100; ++seed) {
    Fuzz fuzz(seed);
    for (int i = 0; i < 100; ++i) {
      const Expr e = fuzz.Random(2 + i % 4).second;
      auto back = ParseExpr(ToString(e), fuzz.arena);
      ASSERT_TRUE(back.ok()) << ToString(e) << ": " << back.status().message();
      ASSERT_EQ(*back, e) << ToString(e) << " became " << ToString(*back);
    }
  }
}

}  // namespace
}  // namespace ge
