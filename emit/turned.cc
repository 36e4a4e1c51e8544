// A copy whose source lies the other way: a loop around a vector loop that stores side by side what
// it loads anywhere, while neighbours of the outer loop load side by side. Done in squares of
// W by W elements: W vectors are loaded, turned in registers, and stored with what else is
// computed.
#include "emit/printer.h"

namespace ge::emit {

using tile::LoopKind;
using tile::Op;
using tile::Stmt;
using tile::StmtKind;

namespace {

constexpr size_t kMostSources = 2;

bool Enough(Expr extent, int lanes) { return !extent.IsConst() || extent.value() >= lanes / 2; }

bool OfFourBytes(DType t) { return t == DType::kF32 || t == DType::kI32 || t == DType::kBool; }

}  // namespace

// The loads that are to be turned; empty: the loop is none of these.
std::vector<tile::ExprId> KernelPrinter::TurnedLoads(const Stmt& s) const {
  if (s.loop != LoopKind::kSerial || vector_ || s.body.size() != 1) return {};
  const Stmt& inner = s.body[0];
  if (inner.kind != StmtKind::kLoop || inner.loop != LoopKind::kVector || inner.body.size() != 1 ||
      inner.body[0].kind != StmtKind::kStore || !CanVectorize(inner) ||
      DependsOn(inner.extent, s.symbol) || !Enough(s.extent, lanes_) ||
      !Enough(inner.extent, lanes_))
    return {};
  const Expr row = s.symbol, lane = inner.symbol;
  const Stmt& store = inner.body[0];
  const std::optional<Linear> to = AsLinear(store.index, lane);
  if (!to || !to->coefficient.IsConst(1)) return {};
  std::vector<tile::ExprId> loads, stack = {store.value};
  std::unordered_set<tile::ExprId> seen;
  while (!stack.empty()) {
    const tile::ExprId id = stack.back();
    stack.pop_back();
    if (id < 0 || !seen.insert(id).second) continue;
    const tile::ValueNode& n = kernel_.values[id];
    for (tile::ExprId operand : {n.a, n.b, n.c}) stack.push_back(operand);
    if (n.op != Op::kLoad || !DependsOn(n.index, lane)) continue;
    const std::optional<Linear> along = AsLinear(n.index, lane), across = AsLinear(n.index, row);
    if (along && along->coefficient.IsConst(1)) continue;
    if (!across || !across->coefficient.IsConst(1) ||
        BitWidth(kernel_.buffers[n.buffer].dtype) < 8 || !OfFourBytes(n.type))
      return {};
    loads.push_back(id);
  }
  return loads.size() <= kMostSources ? loads : std::vector<tile::ExprId>{};
}

void KernelPrinter::PrintTurned(const Stmt& s, const std::vector<tile::ExprId>& loads) {
  const Stmt& inner = s.body[0];
  const std::string i = Fresh('i'), j = Fresh('i'), ie = Fresh('e'), je = Fresh('e'),
                    m = Fresh('n'), n = Fresh('n');
  Open();
  Line("const si64 {} = {};", ie, Index(s.extent));
  Line("const si64 {} = {};", je, Index(inner.extent));
  Line("for (si64 {0} = 0; {0} < {1}; {0} += W) for (si64 {2} = 0; {2} < {3}; {2} += W) {{", i, ie,
       j, je);
  ++indent_;
  Line("const si64 {0} = ge_min(W, {1} - {2}), {3} = ge_min(W, {4} - {5});", m, ie, i, n, je, j);
  auto square = [&](bool full) {
    const std::string rows = full ? "W" : m, lanes = full ? "W" : n;
    OpenScope();
    Bind(s.symbol, i), Bind(inner.symbol, j);
    std::vector<std::string> turned;
    for (tile::ExprId id : loads) {
      const tile::ValueNode& load = kernel_.values[id];
      const std::string q = Fresh('q');
      Line("vu32 {}[W];", q);
      vector_ = VectorScope{inner.symbol, j, ""};
      const std::string place = fmt::format("b{}, {}", load.buffer, Index(load.index, "l"));
      vector_.reset();
      const std::string_view d = ge::Name(kernel_.buffers[load.buffer].dtype);
      if (full) {
        Line("LANES {}[l] = v_as_u32(v_ld_{}({}));", q, d, place);
      } else {
        Line("LANES {}[l] = l < {} ? v_as_u32(v_ldn_{}({}, {})) : (vu32){{}};", q, lanes, d, place,
             rows);
      }
      Line("v_turn({});", q);
      turned.push_back(q);
    }
    const std::string r = Fresh('i');
    Line("for (si64 {0} = 0; {0} < {1}; {0}++) {{", r, rows);
    ++indent_;
    OpenScope();
    Bind(s.symbol, fmt::format("({} + {})", i, r));
    vector_ = VectorScope{inner.symbol, j, full ? "" : n};
    memo_.clear();
    for (size_t k = 0; k < loads.size(); ++k) {
      const DType type = TypeOf(loads[k]);
      memo_[loads[k]] = {
          fmt::format("v_as_{}({}[{}])", type == DType::kF32 ? "f32" : "i32", turned[k], r), true};
    }
    PrintStore(inner.body[0]);
    vector_.reset();
    varying_symbols_.clear();
    CloseFor();
    CloseScope();
  };
  Line("if ({} == W && {} == W) {{", m, n);
  ++indent_;
  square(true);
  Close();
  Line("else {{");
  ++indent_;
  square(false);
  Close();
  Close();
  Close();
}

}  // namespace ge::emit
