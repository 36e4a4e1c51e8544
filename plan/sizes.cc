// Exprs become size code; symbols become plan symbols, bound by input dims or by tasks.
#include "base/check.h"
#include "om/size.h"
#include "plan/plan_builder.h"

namespace ge {
namespace {

constexpr uint32_t kMaxSizeNodes = 1 << 16;

om::SizeOp OpOf(ExprKind k) {
  switch (k) {
    case ExprKind::kAdd: return om::SizeOp::kAdd;
    case ExprKind::kMul: return om::SizeOp::kMul;
    case ExprKind::kFloorDiv: return om::SizeOp::kFloorDiv;
    case ExprKind::kMod: return om::SizeOp::kMod;
    case ExprKind::kMin: return om::SizeOp::kMin;
    case ExprKind::kMax: return om::SizeOp::kMax;
    case ExprKind::kSelect: return om::SizeOp::kSelect;
    case ExprKind::kLt: return om::SizeOp::kLt;
    case ExprKind::kLe: return om::SizeOp::kLe;
    case ExprKind::kEq: return om::SizeOp::kEq;
    case ExprKind::kNe: return om::SizeOp::kNe;
    case ExprKind::kAnd: return om::SizeOp::kAnd;
    case ExprKind::kOr: return om::SizeOp::kOr;
    case ExprKind::kNot: return om::SizeOp::kNot;
    default: break;
  }
  GE_CHECK(false, "an expression kind without size code");
}

}  // namespace

int32_t PlanBuilder::SymbolIndex(Expr symbol) {
  auto it = symbol_index_.find(symbol.node());
  if (it != symbol_index_.end()) return it->second;
  const SymbolFacts& f = symbol.node()->facts;
  const auto index = static_cast<int32_t>(plan_.symbols.size());
  plan_.symbols.push_back({symbol.node()->name, f.lo, f.hi, f.multiple_of});
  out_.typical.push_back(HintValue(symbol));
  symbol_index_.emplace(symbol.node(), index);
  return index;
}

void PlanBuilder::Encode(Expr e, std::vector<om::SizeCode>& code) {
  if (e.IsConst()) {
    code.push_back({om::SizeOp::kConst, e.value()});
    return;
  }
  if (e.IsSymbol()) {
    code.push_back({om::SizeOp::kSymbol, SymbolIndex(e)});
    return;
  }
  const ExprNode& n = *e.node();
  const om::SizeOp op = OpOf(n.kind);
  const size_t arity = static_cast<size_t>(om::SizeArity(op));
  for (size_t i = 0; i < n.args.size(); ++i) {
    Encode(n.args[i], code);
    const bool complete = arity == 2 ? i >= 1 : i + 1 == arity;
    if (complete) code.push_back({op, 0});
  }
}

om::SizeRef PlanBuilder::Size(Expr e) {
  const bool constant = e.IsConst();
  if (constant) {
    if (auto it = size_of_value_.find(e.value()); it != size_of_value_.end()) return it->second;
  } else if (auto it = size_of_node_.find(e.node()); it != size_of_node_.end()) {
    return it->second;
  }
  std::vector<om::SizeCode> code;
  const bool fits =
      e.IsValid() && (constant || (e.node()->size <= kMaxSizeNodes && e.node()->depth < 200));
  if (fits) {
    Encode(e, code);
  } else {
    if (fault_.ok()) {
      fault_ = e.IsValid() ? Unsupported("a size formula is too large")
                           : Invalid("a size overflows 64 bits, or divides by zero");
    }
    code.push_back({om::SizeOp::kConst, 0});
  }
  const om::SizeRef ref = om::AddSize(&plan_, code);
  if (constant) {
    size_of_value_.emplace(e.value(), ref);
  } else {
    size_of_node_.emplace(e.node(), ref);
  }
  return ref;
}

std::vector<om::SizeRef> PlanBuilder::Sizes(const std::vector<Expr>& dims) {
  std::vector<om::SizeRef> out;
  out.reserve(dims.size());
  for (Expr d : dims) out.push_back(Size(d));
  return out;
}

bool PlanBuilder::DependsOnLate(Expr e) {
  if (e.IsConst()) return false;
  std::vector<Expr> symbols;
  CollectSymbols(e, symbols);
  for (Expr s : symbols) {
    if (plan_.symbols[SymbolIndex(s)].input < 0) return true;
  }
  return false;
}

// A dim that is a plain symbol binds it at its first occurrence. Any other formula gets a symbol of
// its own and a check; if it is linear in one unbound symbol, that one is bound from it by a task.
Status PlanBuilder::BindInputDims() {
  std::vector<std::pair<Expr, Expr>> formulas;  // (own symbol, formula)
  for (size_t i = 0; i < root_.inputs.size(); ++i) {
    const Value& v = root_.value(root_.inputs[i]);
    om::IoTensor io{v.name, static_cast<uint8_t>(v.type.dtype), {}, -1};
    for (size_t d = 0; d < v.type.dims.size() && v.kind == ValueKind::kTensor; ++d) {
      Expr dim = v.type.dims[d];
      if (!dim.IsConst() && !dim.IsSymbol()) {
        const Interval range = Bounds(dim);
        const Expr own =
            root_.arena().Fresh("dim", {.lo = std::max<int64_t>(0, range.lo), .hi = range.hi});
        formulas.emplace_back(own, dim);
        dim = own;
      }
      io.dims.push_back(Size(dim));
      if (!dim.IsSymbol() || IsBound(dim)) continue;
      om::Symbol& s = plan_.symbols[SymbolIndex(dim)];
      s.input = static_cast<int32_t>(i);
      s.dim = static_cast<int32_t>(d);
      bound_.insert(dim.node());
    }
    plan_.inputs.push_back(std::move(io));
  }
  for (const auto& [own, formula] : formulas) {
    for (Expr s : Symbols(formula)) {
      if (IsBound(s)) continue;
      const auto linear = AsLinear(formula, s);
      if (!linear || linear->coefficient.IsConst(0)) continue;
      AddBind(s, FloorDiv(own - linear->rest, linear->coefficient));
      break;
    }
    plan_.checks.push_back({Size(Eq(own, formula)), "an input's dim is not " + ToString(formula)});
  }
  return {};
}

// Checks whose symbols all have a value. Others are about code that is not in the plan.
void PlanBuilder::AddChecks() {
  for (const Model::Check& check : root_.model->checks) {
    if (check.condition.IsConst() && !check.condition.IsConst(0)) continue;
    bool known = check.condition.IsValid();
    for (Expr s : Symbols(check.condition)) known &= IsBound(s);
    if (known) plan_.checks.push_back({Size(check.condition), check.message});
  }
}

Status PlanBuilder::CheckAllBound() const {
  GE_TRY(Status(fault_));
  for (const auto& [node, index] : symbol_index_) {
    if (!bound_.contains(node)) {
      return Unsupported("size " + node->name + " depends on data in a way that has no plan");
    }
  }
  return {};
}

}  // namespace ge
