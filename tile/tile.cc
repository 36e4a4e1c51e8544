// The kernel's value pool, its grid, its size symbols and the place of its locals.
#include "tile/tile.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_set>

#include "tile/walk.h"

namespace ge::tile {
namespace {

void Mix(size_t& h, uint64_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull + (h >> 29); }

size_t HashOf(const ValueNode& n) {
  size_t h = static_cast<size_t>(n.op);
  Mix(h, static_cast<uint64_t>(n.type) << 8 | static_cast<uint64_t>(n.storage));
  Mix(h, static_cast<uint32_t>(n.a));
  Mix(h, static_cast<uint32_t>(n.b));
  Mix(h, static_cast<uint32_t>(n.c));
  Mix(h,
      static_cast<uint64_t>(static_cast<uint32_t>(n.buffer)) << 32 | static_cast<uint32_t>(n.var));
  Mix(h, n.index.node() ? n.index.node()->id + 1 : 0);
  Mix(h, static_cast<uint64_t>(n.index.IsConst() ? n.index.value() : 0));
  Mix(h, std::bit_cast<uint64_t>(n.f));
  Mix(h, static_cast<uint64_t>(n.i));
  return h;
}

// Constants are compared by their bits: -0.0 is not 0.0, and NaN is itself.
bool Same(const ValueNode& x, const ValueNode& y) {
  if (std::bit_cast<uint64_t>(x.f) != std::bit_cast<uint64_t>(y.f)) return false;
  ValueNode a = x, b = y;
  a.f = b.f = 0;
  return a == b;
}

constexpr int64_t kStackBytes = 4096;
constexpr int64_t kScratchAlign = 64;

Expr BytesOf(const Buffer& b) {
  int bits = BitWidth(b.dtype);
  return bits >= 8 ? b.elements * (bits / 8) : CeilDiv(b.elements * bits, 8);
}

// Places the locals of `s` from offset `at` on; siblings share. Returns the end of what is in use.
Expr Place(const Kernel& k, const Stmt& s, Expr at, ScratchPlan& plan) {
  if (s.kind == StmtKind::kAlloc) {
    Expr bytes = BytesOf(k.buffers[s.buffer]);
    if (!(bytes.IsConst() && bytes.value() <= kStackBytes)) {
      plan.offset[s.buffer] = at;
      at = at + RoundUp(bytes, kScratchAlign);
    }
  }
  Expr end = at;
  for (const Stmt& c : s.body) end = Max(end, Place(k, c, at, plan));
  for (const Stmt& c : s.orelse) end = Max(end, Place(k, c, at, plan));
  return end;
}

const Stmt* OutermostParallel(const Stmt& s) {
  if (s.kind == StmtKind::kLoop) return s.loop == LoopKind::kParallel ? &s : nullptr;
  if (s.kind != StmtKind::kBlock || s.body.size() != 1) return nullptr;
  return OutermostParallel(s.body[0]);
}

}  // namespace

ExprId Kernel::Add(const ValueNode& node) {
  size_t h = HashOf(node);
  auto [first, last] = index_.equal_range(h);
  for (auto it = first; it != last; ++it) {
    if (Same(values[it->second], node)) return it->second;
  }
  ExprId id = static_cast<ExprId>(values.size());
  values.push_back(node);
  index_.emplace(h, id);
  return id;
}

Expr Kernel::Grid() const {
  const Stmt* loop = OutermostParallel(body);
  return loop ? loop->extent : Expr(1);
}

int Kernel::NumArgs() const {
  int n = 0;
  for (const Buffer& b : buffers) n += b.is_arg;
  return n;
}

void CollectSizeSymbols(Kernel& k) {
  std::vector<Expr> used;
  std::unordered_set<const ExprNode*> bound;
  for (const Buffer& b : k.buffers) CollectSymbols(b.elements, used);
  ForEachStmt(k.body, [&](const Stmt& s) {
    ForEachExpr(s, [&](Expr e) { CollectSymbols(e, used); });
    ForEachBoundSymbol(k, s, [&](Expr e) { bound.insert(e.node()); });
  });
  std::vector<bool> live = Reachable(k);
  for (size_t i = 0; i < k.values.size(); ++i) {
    if (live[i] && (k.values[i].op == Op::kIndex || k.values[i].op == Op::kLoad)) {
      CollectSymbols(k.values[i].index, used);
    }
  }
  k.symbols.clear();
  std::unordered_set<const ExprNode*> seen;
  for (Expr e : used) {
    if (!bound.count(e.node()) && seen.insert(e.node()).second) k.symbols.push_back(e);
  }
  std::sort(k.symbols.begin(), k.symbols.end(),
            [](Expr a, Expr b) { return a.node()->name < b.node()->name; });
}

ScratchPlan PlanScratch(const Kernel& k) {
  ScratchPlan plan;
  plan.offset.assign(k.buffers.size(), Expr(-1));
  plan.bytes = Place(k, k.body, 0, plan);
  return plan;
}

}  // namespace ge::tile
