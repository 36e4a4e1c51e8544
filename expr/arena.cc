// ExprArena: interned nodes. Two nodes of an arena are never structurally equal, so that Expr's ==
// is a pointer comparison.
#include "base/check.h"
#include "expr/node.h"

namespace ge {
namespace {

const ExprNode kInvalidNode{};

size_t Mix(size_t h, size_t x) {
  h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

size_t HashNode(ExprKind kind, std::span<const Expr> args) {
  size_t h = static_cast<size_t>(kind) + 1;
  for (Expr a : args) h = Mix(h, HashOf(a));
  return h ^ (h >> 32);
}

bool SameArgs(const std::vector<Expr>& a, std::span<const Expr> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}

void Grow(ExprArena::Tables& t) {
  std::vector<ExprNode*> old = std::move(t.slots);
  t.slots.assign(old.empty() ? 1024 : old.size() * 2, nullptr);
  const size_t mask = t.slots.size() - 1;
  for (ExprNode* n : old) {
    if (!n) continue;
    size_t i = n->hash & mask;
    while (t.slots[i]) i = (i + 1) & mask;
    t.slots[i] = n;
  }
}

void FillDepth(ExprNode& n) {
  for (Expr a : n.args) {
    if (!a.node()) continue;
    n.depth = std::max(n.depth, a.node()->depth + 1);
    n.size = std::min<uint32_t>(n.size + a.node()->size, 1u << 30);
  }
}

Expr InternIn(ExprArena& arena, ExprKind kind, std::span<const Expr> args) {
  ExprArena::Tables& t = arena.tables();
  if (2 * (t.nodes.size() + 1) > t.slots.size()) Grow(t);
  const size_t hash = HashNode(kind, args);
  const size_t mask = t.slots.size() - 1;
  size_t i = hash & mask;
  for (; t.slots[i]; i = (i + 1) & mask) {
    const ExprNode& n = *t.slots[i];
    if (n.hash == hash && n.kind == kind && SameArgs(n.args, args)) return Expr::Of(&n);
  }
  ExprNode& n = t.nodes.emplace_back();
  n.kind = kind;
  n.arena = &arena;
  n.args.assign(args.begin(), args.end());
  n.id = static_cast<uint32_t>(t.nodes.size() - 1);
  n.hash = hash;
  FillDepth(n);
  t.slots[i] = &n;
  for (Expr a : args) Bounds(a);  // makes the operands' bounds current
  FillFacts(n);
  return Expr::Of(&n);
}

int64_t Lcm(int64_t a, int64_t b) {
  int64_t x = a, y = b;
  while (y) {
    const int64_t r = x % y;
    x = y;
    y = r;
  }
  int64_t out;
  return __builtin_mul_overflow(a / x, b, &out) ? a : out;
}

}  // namespace

Expr Expr::Invalid() { return Of(&kInvalidNode); }
bool Expr::IsValid() const { return node_ != &kInvalidNode; }
bool Expr::IsSymbol() const { return node_ && node_->kind == ExprKind::kSymbol; }
ExprKind Expr::kind() const { return node_ ? node_->kind : ExprKind::kConst; }

size_t ExprPairHash::operator()(const ExprPair& p) const { return Mix(HashOf(p.a), HashOf(p.b)); }

size_t HashOf(Expr e) {
  return e.node() ? e.node()->hash : Mix(0x51ed27, static_cast<size_t>(e.value()));
}

ExprArena::ExprArena() : tables_(std::make_unique<Tables>()) {}
ExprArena::~ExprArena() = default;

Expr ExprArena::Symbol(std::string_view name, const SymbolFacts& facts) {
  auto it = tables_->symbols.find(name);
  if (it != tables_->symbols.end()) return Expr::Of(it->second);
  ExprNode& n = tables_->nodes.emplace_back();
  n.kind = ExprKind::kSymbol;
  n.arena = this;
  n.name = name;
  n.facts = facts;
  n.facts.multiple_of = std::max<int64_t>(1, n.facts.multiple_of);
  n.id = static_cast<uint32_t>(tables_->nodes.size() - 1);
  n.hash = Mix(0x73796d, n.id);
  tables_->symbols.emplace(n.name, &n);
  Bounds(n.facts.extent);
  FillFacts(n);
  return Expr::Of(&n);
}

Expr ExprArena::Fresh(std::string_view prefix, const SymbolFacts& facts) {
  int64_t& next = tables_->fresh[std::string(prefix)];
  for (;;) {
    const std::string name = std::string(prefix) + std::to_string(next++);
    if (!tables_->symbols.contains(name)) return Symbol(name, facts);
  }
}

void ExprArena::Refine(Expr symbol, const SymbolFacts& facts) {
  GE_CHECK(symbol.IsSymbol() && symbol.node()->arena == this, "Refine of a foreign symbol");
  ExprNode& n = tables_->nodes[symbol.node()->id];
  n.facts.lo = std::max(n.facts.lo, facts.lo);
  n.facts.hi = std::min(n.facts.hi, facts.hi);
  n.facts.multiple_of = Lcm(n.facts.multiple_of, std::max<int64_t>(1, facts.multiple_of));
  if (facts.hint) n.facts.hint = facts.hint;
  if (!facts.extent.IsConst(0)) n.facts.extent = facts.extent;
  ++tables_->epoch;
  tables_->divisions.clear();
}

std::optional<Expr> ExprArena::Find(std::string_view name) const {
  auto it = tables_->symbols.find(name);
  if (it == tables_->symbols.end()) return std::nullopt;
  return Expr::Of(it->second);
}

Expr Make(ExprKind kind, std::span<const Expr> args) {
  ExprArena* arena = nullptr;
  for (Expr a : args) {
    if (!a.IsValid()) return Expr::Invalid();
    if (a.node() && !arena) arena = a.node()->arena;
  }
  GE_CHECK(arena, "an expression of constants only was not folded");
  return InternIn(*arena, kind, args);
}

Expr Make(ExprKind kind, std::initializer_list<Expr> args) {
  return Make(kind, std::span<const Expr>(args.begin(), args.size()));
}

int Compare(Expr a, Expr b) {
  for (;;) {
    if (a == b) return 0;
    if (a.kind() != b.kind()) return a.kind() < b.kind() ? -1 : 1;
    if (a.IsConst()) return a.value() < b.value() ? -1 : 1;
    if (a.IsSymbol()) return a.node()->name < b.node()->name ? -1 : 1;
    const std::vector<Expr>&x = a.node()->args, &y = b.node()->args;
    // The first operands that differ decide: interned operands make this one path, not a tree.
    size_t i = 0;
    while (i < x.size() && i < y.size() && x[i] == y[i]) ++i;
    if (i == x.size() || i == y.size()) return x.size() < y.size() ? -1 : 1;
    a = x[i];
    b = y[i];
  }
}

}  // namespace ge
