// See splice.h. Ids of buffers, variables and values move by what `into` held before.
#include "tile/splice.h"

#include "base/check.h"

namespace ge::tile {
namespace {

struct Move {
  std::vector<std::pair<int32_t, Expr>> buffers;  // per buffer of `from`
  VarId vars;
  ExprId values;

  int32_t Buffer(int32_t b) const { return b < 0 ? b : buffers[static_cast<size_t>(b)].first; }
  Expr Index(int32_t b, Expr e) const {
    return b < 0 ? e : e + buffers[static_cast<size_t>(b)].second;
  }
  VarId Var(VarId v) const { return v < 0 ? v : v + vars; }
  ExprId Value(ExprId v) const { return v < 0 ? v : v + values; }

  void Apply(Stmt* s) const {
    if (s->loop == LoopKind::kParallel) s->loop = LoopKind::kSerial;
    if (s->kind == StmtKind::kStore) s->index = Index(s->buffer, s->index);
    s->buffer = Buffer(s->buffer);
    s->value = Value(s->value);
    s->var = Var(s->var);
    if (s->kind == StmtKind::kBrGemm) {
      BrGemm& g = s->gemm;
      g.a = Index(g.a_buffer, g.a);
      g.b = Index(g.b_buffer, g.b);
      g.a_buffer = Buffer(g.a_buffer);
      g.b_buffer = Buffer(g.b_buffer);
      g.acc = Var(g.acc);
    }
    for (Stmt& b : s->body) Apply(&b);
    for (Stmt& b : s->orelse) Apply(&b);
  }
};

}  // namespace

Stmt Splice(Kernel& into, const Kernel& from, const std::vector<std::pair<int32_t, Expr>>& args) {
  Move move{.buffers = {},
            .vars = static_cast<VarId>(into.vars.size()),
            .values = static_cast<ExprId>(into.values.size())};
  size_t next = 0;
  for (const Buffer& b : from.buffers) {
    if (b.is_arg) {
      GE_CHECK(next < args.size(), "a spliced kernel has more arguments than places");
      move.buffers.push_back(args[next++]);
      continue;
    }
    move.buffers.emplace_back(static_cast<int32_t>(into.buffers.size()), Expr(0));
    into.buffers.push_back(b);
  }
  into.vars.insert(into.vars.end(), from.vars.begin(), from.vars.end());
  for (ValueNode v : from.values) {
    if (v.op == Op::kLoad) v.index = move.Index(v.buffer, v.index);
    v.buffer = move.Buffer(v.buffer);
    v.var = move.Var(v.var);
    v.a = move.Value(v.a);
    v.b = move.Value(v.b);
    v.c = move.Value(v.c);
    into.values.push_back(v);
  }
  Stmt block = from.body;
  move.Apply(&block);
  return block;
}

}  // namespace ge::tile
