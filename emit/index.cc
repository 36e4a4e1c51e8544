// Exprs as int64 C expressions. Divisions of what cannot be negative are unsigned, so that a
// constant power of two becomes a shift and others need no correction.
#include <algorithm>
#include <climits>

#include "base/check.h"
#include "emit/printer.h"

namespace ge::emit {

namespace {

std::string Constant(int64_t v) {
  if (v == INT64_MIN) return "(-0x7fffffffffffffffL - 1)";
  return v < 0 ? fmt::format("({}L)", v) : fmt::format("{}L", v);
}

bool DividesUnsigned(Expr a, Expr b) { return Bounds(a).lo >= 0 && Bounds(b).lo > 0; }

}  // namespace

std::string KernelPrinter::IndexNary(Expr e, const std::string& lane) {
  const ExprNode* n = e.node();
  std::string text = Spell(n->args[0], lane);
  for (size_t i = 1; i < n->args.size(); ++i) {
    std::string next = Spell(n->args[i], lane);
    switch (n->kind) {
      case ExprKind::kAdd: text += " + " + next; break;
      case ExprKind::kMul: text += " * " + next; break;
      case ExprKind::kAnd: text += " & " + next; break;
      case ExprKind::kOr: text += " | " + next; break;
      case ExprKind::kMin: text = "ge_min(" + text + ", " + next + ")"; break;
      default: text = "ge_max(" + text + ", " + next + ")"; break;
    }
  }
  return "(" + text + ")";
}

Expr KernelPrinter::Resolved(Expr e) const {
  if (!vector_ || !vector_->column.IsSymbol()) return e;
  const bool row = vector_->row.IsSymbol() && DependsOn(e, vector_->row);
  if (!row && !DependsOn(e, vector_->column)) return e;
  return Substitute(e, [&](Expr s) -> std::optional<Expr> {
    if (s == vector_->column) return vector_->column_value;
    if (row && s == vector_->row) return vector_->row_value;
    return std::nullopt;
  });
}

std::string KernelPrinter::Index(Expr e, const std::string& lane) {
  return Spell(Resolved(e), lane);
}

int KernelPrinter::DepthOf(Expr e) const {
  std::vector<Expr> symbols;
  CollectSymbols(e, symbols);
  int depth = 0;
  for (Expr s : symbols) {
    auto it = depth_.find(s.node());
    if (it == depth_.end()) return INT_MAX;
    depth = std::max(depth, it->second);
  }
  return depth;
}

std::string KernelPrinter::Hoisted(Expr e, int depth) {
  auto it = scopes_[depth].names.find(e.node());
  if (it != scopes_[depth].names.end()) return it->second;
  const int outer = std::exchange(spell_depth_, depth);
  std::string text = SpellNode(e, "");
  spell_depth_ = outer;
  std::string name = Fresh('z');
  Scope& scope = scopes_[depth];
  scope.header.append(static_cast<size_t>(scope.indent) * 2, ' ');
  scope.header += fmt::format("const si64 {} = {};\n", name, text);
  return scope.names[e.node()] = name;
}

std::string KernelPrinter::Spell(Expr e, const std::string& lane) {
  if (e.IsConst() || e.IsSymbol()) return SpellNode(e, lane);
  if (lane.empty() || !Varying(e)) {
    if (int depth = DepthOf(e); depth < CurrentDepth()) return Hoisted(e, depth);
  }
  const ExprKind kind = e.node()->kind;
  if (kind != ExprKind::kAdd && kind != ExprKind::kMul) return SpellNode(e, lane);
  // The operands that do not change here as one expression.
  Expr fixed = kind == ExprKind::kAdd ? 0 : 1, rest = fixed;
  int count = 0;
  for (Expr arg : e.node()->args) {
    const bool is_fixed = (lane.empty() || !Varying(arg)) && DepthOf(arg) < CurrentDepth();
    count += is_fixed && !arg.IsConst();
    Expr& side = is_fixed ? fixed : rest;
    side = kind == ExprKind::kAdd ? side + arg : side * arg;
  }
  if (count < 2 || fixed.IsConst() || rest.IsConst()) return SpellNode(e, lane);
  return fmt::format("({} {} {})", Spell(fixed, lane), kind == ExprKind::kAdd ? "+" : "*",
                     Spell(rest, lane));
}

std::string KernelPrinter::SpellNode(Expr e, const std::string& lane) {
  if (e.IsConst()) return Constant(e.value());
  const ExprNode* n = e.node();
  auto arg = [&](size_t i) { return Spell(n->args[i], lane); };
  switch (n->kind) {
    case ExprKind::kSymbol: {
      auto it = symbols_.find(n);
      GE_CHECK(it != symbols_.end(), "unbound symbol " + n->name + " in kernel " + kernel_.name);
      if (lane.empty()) return it->second;
      if (vector_ && n == vector_->symbol.node()) return "(" + it->second + " + " + lane + ")";
      return varying_symbols_.contains(n) ? it->second + "[" + lane + "]" : it->second;
    }
    case ExprKind::kAdd:
    case ExprKind::kMul:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kMin:
    case ExprKind::kMax: return IndexNary(e, lane);
    case ExprKind::kFloorDiv:
    case ExprKind::kMod: {
      const bool div = n->kind == ExprKind::kFloorDiv;
      if (DividesUnsigned(n->args[0], n->args[1])) {
        return fmt::format("((si64)((su64){} {} {}))", arg(0), div ? "/" : "%", arg(1));
      }
      return fmt::format("{}({}, {})", div ? "ge_fdiv" : "ge_mod", arg(0), arg(1));
    }
    case ExprKind::kSelect: return fmt::format("({} ? {} : {})", arg(0), arg(1), arg(2));
    case ExprKind::kLt: return fmt::format("((si64)({} < {}))", arg(0), arg(1));
    case ExprKind::kLe: return fmt::format("((si64)({} <= {}))", arg(0), arg(1));
    case ExprKind::kEq: return fmt::format("((si64)({} == {}))", arg(0), arg(1));
    case ExprKind::kNe: return fmt::format("((si64)({} != {}))", arg(0), arg(1));
    case ExprKind::kNot: return fmt::format("((si64)!{})", arg(0));
    case ExprKind::kConst:
    case ExprKind::kInvalid: break;
  }
  GE_CHECK(false, "invalid Expr in kernel " + kernel_.name);
  return "0L";
}

bool KernelPrinter::Varying(Expr e) const {
  if (e.IsConst() || (!vector_ && varying_symbols_.empty())) return false;
  std::vector<Expr> symbols;
  CollectSymbols(Resolved(e), symbols);
  for (Expr s : symbols) {
    if ((vector_ && s == vector_->symbol) || varying_symbols_.contains(s.node())) return true;
  }
  return false;
}

std::optional<int64_t> KernelPrinter::LaneStride(Expr e) const {
  if (!vector_) return std::nullopt;
  std::optional<Linear> linear = AsLinear(Resolved(e), vector_->symbol);
  if (!linear || !linear->coefficient.IsConst() || Varying(linear->rest)) return std::nullopt;
  return linear->coefficient.value();
}

}  // namespace ge::emit
