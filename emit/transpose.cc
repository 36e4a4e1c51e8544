// Copies that turn rows into columns: a loop over rows around a vector loop that reads along a row
// and stores across. Instead of one store per element, W rows of W elements are loaded, turned in
// registers, and stored as W vectors.
#include "emit/printer.h"

namespace ge::emit {

using tile::LoopKind;
using tile::Op;
using tile::Stmt;
using tile::StmtKind;

// Does every element that the value reads lie beside its neighbour along `symbol`, or not depend on
// it? None may be of the buffer that is stored to.
bool KernelPrinter::ReadsAlong(tile::ExprId value, Expr symbol, int stored) const {
  bool along = false;
  std::vector<tile::ExprId> stack = {value};
  std::unordered_set<tile::ExprId> seen;
  while (!stack.empty()) {
    const tile::ExprId id = stack.back();
    stack.pop_back();
    if (id < 0 || !seen.insert(id).second) continue;
    const tile::ValueNode& n = kernel_.values[id];
    if (n.op == Op::kLoad && n.buffer == stored) return false;
    if ((n.op == Op::kLoad || n.op == Op::kIndex) && DependsOn(n.index, symbol)) {
      const std::optional<Linear> linear = AsLinear(n.index, symbol);
      if (!linear || !linear->coefficient.IsConst(1)) return false;
      along |= n.op == Op::kLoad;
    }
    for (tile::ExprId operand : {n.a, n.b, n.c}) stack.push_back(operand);
  }
  return along;
}

bool KernelPrinter::IsTransposedCopy(const Stmt& s) const {
  if (vector_ || s.loop != LoopKind::kSerial || s.body.size() != 1) return false;
  const Stmt& inner = s.body[0];
  if (inner.kind != StmtKind::kLoop || inner.loop != LoopKind::kVector || inner.body.size() != 1)
    return false;
  const Stmt& store = inner.body[0];
  if (store.kind != StmtKind::kStore || kernel_.buffers[store.buffer].dtype != DType::kF32)
    return false;
  if (s.extent.IsConst() && s.extent.value() < lanes_) return false;
  if (!inner.extent.IsConst() || inner.extent.value() % lanes_ != 0) return false;
  const std::optional<Linear> down = AsLinear(store.index, s.symbol);
  const std::optional<Linear> across = AsLinear(store.index, inner.symbol);
  return down && down->coefficient.IsConst(1) && across && !across->coefficient.IsConst(1) &&
         !DependsOn(across->coefficient, s.symbol) &&
         ReadsAlong(store.value, inner.symbol, store.buffer) && OneFlow(inner.symbol, inner.body);
}

// Turns vectors {r}0..W-1, a square of elements: blocks of 1, 2, 4, .. change places.
void KernelPrinter::PrintTurn(const std::string& r) {
  for (int h = 1; h < lanes_; h *= 2) {
    std::string even, odd;
    for (int l = 0; l < lanes_; ++l) {
      const bool second = (l & h) != 0;
      even += fmt::format(", {}", second ? lanes_ + l - h : l);
      odd += fmt::format(", {}", second ? lanes_ + l : l + h);
    }
    for (int i = 0; i < lanes_; ++i) {
      if (i & h) continue;
      Line(
          "{{ const vf32 a = {0}{1}, b = {0}{2}; {0}{1} = SHUFFLE(a, b{3}); "
          "{0}{2} = SHUFFLE(a, b{4}); }}",
          r, i, i + h, even, odd);
    }
  }
}

void KernelPrinter::PrintTransposedCopy(const Stmt& s) {
  const Stmt &inner = s.body[0], &store = inner.body[0];
  const std::string i = Fresh('i'), j = Fresh('i'), e = Fresh('e'), r = Fresh('r');
  // body at row i + u and column j + v, lanes along `symbol`.
  auto at = [&](int u, int v, Expr symbol, const std::function<void()>& body) {
    Open();
    OpenScope();
    Bind(s.symbol, fmt::format("({} + {})", i, u));
    Bind(inner.symbol, fmt::format("({} + {})", j, v));
    vector_ = VectorScope{symbol, symbol == s.symbol ? i : j, ""};
    memo_.clear();
    body();
    vector_.reset();
    CloseFor();
  };
  Open();
  Line("const si64 {} = {};", e, Index(s.extent));
  Line("si64 {} = 0;", i);
  Line("for (; {0} + W <= {1}; {0} += W) {{", i, e);
  ++indent_;
  Line("for (si64 {0} = 0; {0} < {1}; {0} += W) {{", j, inner.extent.value());
  ++indent_;
  for (int u = 0; u < lanes_; ++u) {
    Line("vf32 {}{};", r, u);
    at(u, 0, inner.symbol,
       [&] { Line("{}{} = {};", r, u, As(Value(store.value), DType::kF32, true)); });
  }
  PrintTurn(r);
  for (int v = 0; v < lanes_; ++v) {
    at(0, v, s.symbol,
       [&] { Line("v_st_f32(b{}, {}, {}{});", store.buffer, Index(store.index), r, v); });
  }
  Close();
  Close();
  if (!s.extent.IsConst() || s.extent.value() % lanes_ != 0) PrintSerialLoop(s, i, e);
  Close();
}

}  // namespace ge::emit
