// Expr: an immutable symbolic integer. Shapes, loop bounds, strides, sizes and arena offsets are
// all Exprs; a static model has only constant ones.
//
// An Expr is a small value: a constant, or a pointer to a node interned in an ExprArena (one per
// root Graph; it must outlive the Expr). Constants need no arena. Every operation simplifies and
// canonicalises, so that structural equality is `==`. Arithmetic is checked int64: what overflows,
// or divides by zero, gives an Invalid expr, which swallows everything it meets.
//
// Division by zero has no value: simplification may give x/x = 1 without proof that x != 0.
// An arena and the Exprs of it belong to one thread at a time.
//
// Text form: infix with functions, e.g. "batch*seq + 3", "floordiv(w + 1, 2)", "min(a, b)".
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"

namespace ge {

enum class ExprKind : uint8_t {
  kConst,
  kSymbol,
  kAdd,
  kMul,
  kFloorDiv,
  kMod,
  kMin,
  kMax,
  kSelect,  // a ? b : c
  kLt,
  kLe,
  kEq,
  kNe,  // 0 or 1
  kAnd,
  kOr,
  kNot,  // of 0/1 values
  kInvalid,
};

struct ExprNode;
class ExprArena;

class Expr {
 public:
  Expr() = default;  // constant 0
  template <std::integral T>
  Expr(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT: implicit, constants are Exprs
  static Expr Of(const ExprNode* node) {
    Expr e;
    e.node_ = node;
    return e;
  }
  static Expr Invalid();

  bool IsConst() const { return node_ == nullptr; }
  bool IsConst(int64_t v) const { return node_ == nullptr && value_ == v; }
  bool IsValid() const;
  bool IsSymbol() const;
  int64_t value() const { return value_; }        // only of a constant
  const ExprNode* node() const { return node_; }  // null for a constant
  ExprKind kind() const;

  // Structural identity, not a symbolic comparison (that is Eq()).
  friend bool operator==(const Expr& a, const Expr& b) = default;

 private:
  const ExprNode* node_ = nullptr;
  int64_t value_ = 0;  // zero when node_ is set
};

// What is known of a symbol's value. Ranges are inclusive.
struct SymbolFacts {
  int64_t lo = 0;
  int64_t hi = INT64_MAX;
  int64_t multiple_of = 1;
  int64_t hint = 0;  // a typical value for schedules; 0 = unknown
  Expr extent;       // if not constant 0: value < extent (for loop variables)
};

struct Interval {
  int64_t lo, hi;  // inclusive; INT64_MIN / INT64_MAX mean unbounded
};

struct ExprNode {
  ExprKind kind = ExprKind::kInvalid;
  ExprArena* arena = nullptr;
  // kAdd, kMul, kMin, kMax, kAnd, kOr: canonical operand list. Others: positional operands.
  // kAdd: terms in canonical order, a constant last. kMul: (constant, product or factor), or
  // factors.
  std::vector<Expr> args;
  std::string name;    // kSymbol
  SymbolFacts facts;   // kSymbol
  uint32_t id = 0;     // creation number in the arena, for hash tables only
  uint32_t depth = 1;  // longest path down
  uint32_t size = 1;   // nodes if it were a tree (saturates)
  size_t hash = 0;
  mutable uint32_t epoch = 0;  // of bounds and factor: stale if the arena's is newer
  mutable Interval bounds{INT64_MIN, INT64_MAX};
  mutable int64_t factor = 1;  // divides the value always (0: the value is zero)
};

class ExprArena {
 public:
  ExprArena();
  ~ExprArena();
  ExprArena(const ExprArena&) = delete;
  ExprArena& operator=(const ExprArena&) = delete;

  // The symbol of that name; made with `facts` if new, else facts are left as they are.
  Expr Symbol(std::string_view name, const SymbolFacts& facts = {});
  // A new symbol whose name begins with `prefix` and is not used yet.
  Expr Fresh(std::string_view prefix, const SymbolFacts& facts = {});
  // Tightens what is known of a symbol. Exprs built before keep their form.
  void Refine(Expr symbol, const SymbolFacts& facts);
  std::optional<Expr> Find(std::string_view name) const;

  // For expr/ only.
  struct Tables;
  Tables& tables() { return *tables_; }

 private:
  std::unique_ptr<Tables> tables_;
};

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
inline Expr& operator+=(Expr& a, Expr b) { return a = a + b; }
inline Expr& operator*=(Expr& a, Expr b) { return a = a * b; }
Expr FloorDiv(Expr a, Expr b);  // rounds to minus infinity
Expr CeilDiv(Expr a, Expr b);
Expr TruncDiv(Expr a, Expr b);  // rounds to zero, as ONNX Div on integers
Expr Mod(Expr a, Expr b);       // sign of the divisor
Expr Min(Expr a, Expr b);
Expr Max(Expr a, Expr b);
Expr Lt(Expr a, Expr b);
Expr Le(Expr a, Expr b);
Expr Eq(Expr a, Expr b);
Expr Ne(Expr a, Expr b);
Expr And(Expr a, Expr b);
Expr Or(Expr a, Expr b);
Expr Not(Expr a);
Expr Select(Expr condition, Expr then, Expr otherwise);
Expr RoundUp(Expr a, Expr multiple);
Expr Product(const std::vector<Expr>& v);

Interval Bounds(Expr e);
bool ProvablyEq(Expr a, Expr b);
bool ProvablyLt(Expr a, Expr b);
bool ProvablyLe(Expr a, Expr b);
bool DivisibleBy(Expr e, int64_t k);
// e = coefficient * symbol + rest with `rest` free of symbol; nullopt if e is not of that form.
struct Linear {
  Expr coefficient, rest;
};
std::optional<Linear> AsLinear(Expr e, Expr symbol);
bool DependsOn(Expr e, Expr symbol);
// All symbols of e, sorted by name.
std::vector<Expr> Symbols(Expr e);
void CollectSymbols(Expr e, std::vector<Expr>& out);  // appends new ones, in order of first use
Expr Substitute(Expr e, const std::function<std::optional<Expr>(Expr symbol)>& replace);
// Value of e where `value` gives each symbol's; nullopt on overflow, division by zero or a symbol
// without value.
std::optional<int64_t> Evaluate(Expr e,
                                const std::function<std::optional<int64_t>(Expr symbol)>& value);
// Evaluate with every symbol's hint (or max(lo, 1) if it has none): for heuristics only.
int64_t HintValue(Expr e);

std::string ToString(Expr e);
// With other names for the symbols (used for canonical kernel text).
std::string ToString(Expr e, const std::function<std::string(Expr symbol)>& name);
Result<Expr> ParseExpr(std::string_view text, ExprArena& arena);
// The same inside a larger text: stops after the longest expression.
Result<Expr> ParseExpr(TextReader& reader, ExprArena& arena);

}  // namespace ge
