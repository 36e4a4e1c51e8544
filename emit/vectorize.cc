// May a vector loop run W iterations at once? Its body must have one control flow for all lanes: no
// If on a varying condition, no varying extents, no local memory, no BrGemm, no inner vector loop.
#include "emit/printer.h"

namespace ge::emit {

using tile::ExprId;
using tile::LoopKind;
using tile::Stmt;
using tile::StmtKind;

namespace {

// Follows what varies with the loop's symbol through the body, in program order.
class LaneAnalysis {
 public:
  LaneAnalysis(const tile::Kernel& k, Expr symbol) : kernel_(k) { symbols_.insert(symbol.node()); }

  bool Uniform(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (!Uniform(s)) return false;
    }
    return true;
  }

 private:
  bool Uniform(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::kBlock: return Uniform(s.body);
      case StmtKind::kLoop:
        return s.loop != LoopKind::kVector && !Varies(s.extent) && Uniform(s.body);
      case StmtKind::kAlloc:
      case StmtKind::kBrGemm: return false;
      case StmtKind::kLet: Bind(s.var, Varies(s.value)); return true;
      case StmtKind::kReduce:
        for (const auto& [symbol, extent] : s.axes) {
          if (Varies(extent)) return false;
        }
        if (!Uniform(s.body)) return false;
        Bind(s.var, Varies(s.value));
        return true;
      case StmtKind::kIf: return !Varies(s.value) && Uniform(s.body) && Uniform(s.orelse);
      case StmtKind::kStore: return true;
    }
    return false;
  }

  void Bind(tile::VarId var, bool varies) {
    if (!varies) return;
    vars_.insert(var);
    if (kernel_.vars[var].index.IsSymbol()) symbols_.insert(kernel_.vars[var].index.node());
  }
  bool Varies(Expr e) const {
    std::vector<Expr> used;
    CollectSymbols(e, used);
    for (Expr s : used) {
      if (symbols_.contains(s.node())) return true;
    }
    return false;
  }
  bool Varies(ExprId root) {
    std::vector<ExprId> stack = {root};
    std::unordered_set<ExprId> seen;
    while (!stack.empty()) {
      ExprId id = stack.back();
      stack.pop_back();
      if (id < 0 || !seen.insert(id).second) continue;
      const tile::ValueNode& n = kernel_.values[id];
      if (n.op == tile::Op::kVar && vars_.contains(n.var)) return true;
      if ((n.op == tile::Op::kIndex || n.op == tile::Op::kLoad) && Varies(n.index)) return true;
      for (ExprId operand : {n.a, n.b, n.c}) stack.push_back(operand);
    }
    return false;
  }

  const tile::Kernel& kernel_;
  std::unordered_set<const ExprNode*> symbols_;
  std::unordered_set<tile::VarId> vars_;
};

}  // namespace

bool KernelPrinter::CanVectorize(const Stmt& loop) const {
  if (!masks_ && loop.extent.IsConst() && loop.extent.value() < lanes_) return false;
  return OneFlow(loop.symbol, loop.body);
}

bool KernelPrinter::OneFlow(Expr symbol, const std::vector<Stmt>& body) const {
  return LaneAnalysis(kernel_, symbol).Uniform(body);
}

}  // namespace ge::emit
