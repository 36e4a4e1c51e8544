// What the files of expr/ share: interning, canonical order, and the linear form of a sum.
// Not for other folders.
#pragma once

#include <deque>
#include <initializer_list>
#include <span>
#include <unordered_map>
#include <vector>

#include "expr/expr.h"

namespace ge {

// a = quotient * b + remainder, as FloorDiv and Mod give them.
struct DivMod {
  Expr quotient, remainder;
};

struct ExprPair {
  Expr a, b;
  friend bool operator==(const ExprPair&, const ExprPair&) = default;
};
struct ExprPairHash {
  size_t operator()(const ExprPair& p) const;
};

struct ExprArena::Tables {
  std::deque<ExprNode> nodes;
  std::vector<ExprNode*> slots;  // open addressing, a power of two
  std::unordered_map<std::string_view, ExprNode*> symbols;
  std::unordered_map<std::string, int64_t> fresh;  // next number per prefix
  std::unordered_map<ExprPair, DivMod, ExprPairHash> divisions;
  uint32_t epoch = 1;  // grows with Refine
};

size_t HashOf(Expr e);
// The node of that kind and operands, in the arena of the first operand that has one. No
// simplification.
Expr Make(ExprKind kind, std::span<const Expr> args);
Expr Make(ExprKind kind, std::initializer_list<Expr> args);
// Total order by kind, name and value, never by address or age.
int Compare(Expr a, Expr b);
inline bool Before(Expr a, Expr b) { return Compare(a, b) < 0; }

// coefficient * key; key is a product of symbols and other atoms, without constant factor.
struct Term {
  Expr key;
  int64_t coefficient;
};
struct Sum {
  std::vector<Term> terms;  // sorted by key, no zero coefficients
  int64_t constant = 0;
  bool valid = true;  // false: overflow
};
Sum TermsOf(Expr e);
Expr FromTerm(const Term& t);
Expr FromSum(Sum sum);
void AddScaled(Sum& sum, const Sum& other, int64_t factor);
std::span<const Expr> FactorsOf(const Expr& key);
// t / by if it is exact, else coefficient 0.
Term DivideTerm(const Term& t, const Term& by);

DivMod Divide(Expr a, Expr b);  // a, b valid, b not a constant <= 1
bool ProvablyNonNegative(Expr e);
int64_t KnownFactor(Expr e);        // some positive number that divides e always
void FillFacts(const ExprNode& n);  // bounds, factor and epoch, from the operands' current ones
int64_t FloorDivInt(int64_t a, int64_t b);  // b > 0

}  // namespace ge
