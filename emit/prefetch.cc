// Lines from memory, fetched ahead.
//
// A processor looks a few hundred instructions ahead. Of a loop with an exponential that is some
// twenty vectors, too few to keep memory busy while it computes. Such a loop asks for the lines
// that it needs later: its own, where it reads or writes more than the second cache holds; and,
// where rows go through a local buffer, those of the next row that a loop before it reads, and
// those that a loop after it writes. Elsewhere the code stays as it is; also where a step reads
// many lines of one argument: a window, most of which the last step has read.
#include <algorithm>

#include "emit/printer.h"

namespace ge::emit {

using tile::LoopKind;
using tile::Stmt;
using tile::StmtKind;

namespace {

constexpr int64_t kReadAhead = 4096, kWriteAhead = 2048;  // bytes
constexpr ptrdiff_t kMostLines = 8;                       // of an argument, read in one step

bool IsSlow(tile::Op op) { return op >= tile::Op::kExp && op <= tile::Op::kGelu; }

// Statements of a body, with those of blocks and allocations, not of loops.
void Flatten(const std::vector<Stmt>& body, std::vector<const Stmt*>* flat) {
  for (const Stmt& s : body) {
    flat->push_back(&s);
    if (s.kind == StmtKind::kBlock || s.kind == StmtKind::kAlloc) Flatten(s.body, flat);
  }
}

// Symbols that statements of a body bind, however deep.
void CollectBound(const tile::Kernel& k, const std::vector<Stmt>& body, std::vector<Expr>* bound) {
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::kLoop) bound->push_back(s.symbol);
    for (const auto& [symbol, extent] : s.axes) bound->push_back(symbol);
    if (s.kind == StmtKind::kLet && k.vars[s.var].index.IsSymbol())
      bound->push_back(k.vars[s.var].index);
    CollectBound(k, s.body, bound);
    CollectBound(k, s.orelse, bound);
  }
}

}  // namespace

void CollectNodes(const tile::Kernel& k, const std::vector<Stmt>& body,
                  std::unordered_set<tile::ExprId>& seen) {
  for (const Stmt& s : body) {
    std::vector<tile::ExprId> stack = {s.value};
    while (!stack.empty()) {
      const tile::ExprId id = stack.back();
      stack.pop_back();
      if (id < 0 || !seen.insert(id).second) continue;
      for (tile::ExprId operand : {k.values[id].a, k.values[id].b, k.values[id].c})
        stack.push_back(operand);
    }
    CollectNodes(k, s.body, seen);
    CollectNodes(k, s.orelse, seen);
  }
}

bool HasSlowOp(const tile::Kernel& k, const std::unordered_set<tile::ExprId>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](tile::ExprId id) { return IsSlow(k.values[id].op); });
}

bool KernelPrinter::FromMemory(int buffer) const {
  const tile::Buffer& b = kernel_.buffers[buffer];
  return b.is_arg && b.elements.IsConst() && BytesFor(b.dtype, b.elements.value()) > l2_bytes_ &&
         BitWidth(b.dtype) >= 8;
}

// What a vector loop reads (or writes) line by line of large arguments, as functions of its symbol
// and of what is bound outside of `body`, which is the loop's or holds it.
std::vector<KernelPrinter::Fetch> KernelPrinter::StreamsOf(const Stmt& loop, bool written,
                                                           const std::vector<Stmt>& body) const {
  std::vector<Fetch> found;
  std::vector<Expr> bound;
  CollectBound(kernel_, body, &bound);
  auto add = [&](int buffer, Expr index) {
    if (!FromMemory(buffer)) return;
    for (Expr symbol : bound)
      if (symbol != loop.symbol && DependsOn(index, symbol)) return;
    const std::optional<Linear> linear = AsLinear(index, loop.symbol);
    if (linear && linear->coefficient.IsConst(1)) found.push_back({buffer, index, 0, written});
  };
  if (written) {
    for (const Stmt& s : loop.body)
      if (s.kind == StmtKind::kStore) add(s.buffer, s.index);
    return found;
  }
  std::unordered_set<tile::ExprId> nodes;
  CollectNodes(kernel_, loop.body, nodes);
  std::vector<tile::ExprId> ordered(nodes.begin(), nodes.end());
  std::sort(ordered.begin(), ordered.end());
  for (tile::ExprId id : ordered) {
    if (kernel_.values[id].op == tile::Op::kLoad)
      add(kernel_.values[id].buffer, kernel_.values[id].index);
  }
  return found;
}

bool KernelPrinter::IsSlowLoop(const Stmt& s) const {
  if (s.kind != StmtKind::kLoop || s.loop != LoopKind::kVector) return false;
  std::unordered_set<tile::ExprId> nodes;
  CollectNodes(kernel_, s.body, nodes);
  return HasSlowOp(kernel_, nodes);
}

// A loop over rows: which of the loops in it fetches for others.
void KernelPrinter::PlanFetches(const Stmt& rows) {
  std::vector<const Stmt*> flat;
  Flatten(rows.body, &flat);
  const auto slow =
      std::find_if(flat.begin(), flat.end(), [&](const Stmt* s) { return IsSlowLoop(*s); });
  if (slow == flat.end()) return;
  std::vector<Fetch>& fetches = fetches_[*slow];
  for (auto s = flat.begin(); s != flat.end(); ++s) {
    const Stmt& loop = **s;
    const bool like = s != slow && loop.kind == StmtKind::kLoop && loop.loop == LoopKind::kVector &&
                      loop.extent == (*slow)->extent;
    if (!like) continue;
    const bool before = s < slow;
    for (Fetch f : StreamsOf(loop, !before, rows.body)) {
      f.index = Substitute(f.index, [&](Expr symbol) -> std::optional<Expr> {
        if (symbol == loop.symbol) return (*slow)->symbol;
        if (before && symbol == rows.symbol) return symbol + 1;
        return std::nullopt;
      });
      fetches.push_back(f);
    }
  }
}

void KernelPrinter::PrintFetches(const Stmt& loop) {
  std::vector<Fetch> fetches;
  if (const auto planned = fetches_.find(&loop); planned != fetches_.end())
    fetches = planned->second;
  const std::vector<Fetch> reads = StreamsOf(loop, false, loop.body);
  const bool window = std::any_of(reads.begin(), reads.end(), [&](const Fetch& read) {
    return std::count_if(reads.begin(), reads.end(), [&](const Fetch& other) {
             return other.buffer == read.buffer;
           }) > kMostLines;
  });
  if (IsSlowLoop(loop) && !window) {
    for (bool written : {false, true}) {
      for (Fetch f : StreamsOf(loop, written, loop.body)) {
        f.ahead = written ? kWriteAhead : kReadAhead;
        fetches.push_back(f);
      }
    }
  }
  for (const Fetch& f : fetches) {
    Line("__builtin_prefetch(b{} + ({}) * {} + {}, {}, {});", f.buffer, Index(f.index),
         BytesFor(kernel_.buffers[f.buffer].dtype, 1), f.ahead, f.written ? 1 : 0,
         f.ahead > 0 ? 3 : 2);
  }
}

}  // namespace ge::emit
