// Loads and indices of a vector loop: side by side, at a constant distance, or each lane by itself.
//
// An index that is no linear function of the lane is computed for all lanes at once, in i32 where
// it fits, and its elements are loaded as one vector where they turn out to lie side by side:
// indices of tiles, borders and mirrors mostly do. Of a kernel's own line, which is there to be
// read in rising order (Resize), they are taken out of two vectors where they lie in these.
#include <algorithm>

#include "emit/prelude.h"
#include "emit/printer.h"
#include "expr/select.h"

namespace ge::emit {

using tile::ValueNode;

namespace {

constexpr int64_t kSmall = int64_t{1} << 30;

bool Fits(Expr e) {
  const auto [lo, hi] = Bounds(e);
  return -kSmall <= lo && hi <= kSmall;
}

// Types of which the prelude has strided loads.
bool HasStrided(DType storage) {
  switch (storage) {
    case DType::kU8:
    case DType::kI8:
    case DType::kU16:
    case DType::kI16:
    case DType::kI32:
    case DType::kU32:
    case DType::kF32:
    case DType::kBool:
    case DType::kF16:
    case DType::kBF16: return true;
    default: return false;
  }
}

}  // namespace

std::optional<std::string> KernelPrinter::SpellLanes(Expr e) {
  if (!Fits(e)) return std::nullopt;
  if (!Varying(e)) return fmt::format("v_bc_i32((si32){})", Index(e));
  if (std::optional<int64_t> stride = LaneStride(e); stride && std::abs(*stride) < kSmall / lanes_)
    return fmt::format("(v_bc_i32((si32){}) + v_iota_i32() * {})", Index(e), *stride);
  if (e.IsSymbol()) {
    if (!varying_symbols_.contains(e.node())) return std::nullopt;
    return fmt::format("v_cvt({}, i32)", symbols_.at(e.node()));
  }
  const ExprNode* n = e.node();
  const bool division = n->kind == ExprKind::kFloorDiv || n->kind == ExprKind::kMod;
  if (division && (!n->args[1].IsConst() || n->args[1].value() <= 0 || Bounds(n->args[0]).lo < 0))
    return std::nullopt;
  std::vector<std::string> args;
  for (size_t i = 0; i < n->args.size() - (division ? 1 : 0); ++i) {
    std::optional<std::string> arg = SpellLanes(n->args[i]);
    if (!arg) return std::nullopt;
    args.push_back(*std::move(arg));
  }
  auto joined = [&](auto two) {
    std::string text = args[0];
    for (size_t i = 1; i < args.size(); ++i) text = two(text, args[i]);
    return text;
  };
  auto infix = [&](const char* op) {
    return joined([&](const std::string& a, const std::string& b) {
      return fmt::format("({} {} {})", a, op, b);
    });
  };
  auto compare = [&](const char* op) {
    return fmt::format("(v_cmp4({} {} {}) & 1)", args[0], op, args[1]);
  };
  auto call = [&](const char* name) {
    return joined([&](const std::string& a, const std::string& b) {
      return fmt::format("{}({}, {})", name, a, b);
    });
  };
  switch (n->kind) {
    case ExprKind::kAdd: return infix("+");
    case ExprKind::kMul: return infix("*");
    case ExprKind::kAnd: return infix("&");
    case ExprKind::kOr: return infix("|");
    case ExprKind::kMin: return call("v_min_i32");
    case ExprKind::kMax: return call("v_max_i32");
    case ExprKind::kLt: return compare("<");
    case ExprKind::kLe: return compare("<=");
    case ExprKind::kEq: return compare("==");
    case ExprKind::kNe: return compare("!=");
    case ExprKind::kNot: return fmt::format("(1 - {})", args[0]);
    case ExprKind::kSelect:
      return fmt::format("v_sel_i32(v_cmp4({} != 0), {}, {})", args[0], args[1], args[2]);
    case ExprKind::kFloorDiv:
    case ExprKind::kMod:
      return fmt::format("v_as_i32(v_as_u32({}) {} {}u)", args[0],
                         n->kind == ExprKind::kMod ? "%" : "/", n->args[1].value());
    default: return std::nullopt;
  }
}

CValue KernelPrinter::PrintIndexValue(const ValueNode& n) {
  if (!Varying(n.index)) return Name(DType::kI64, false, Index(n.index));
  if (std::optional<int64_t> stride = LaneStride(n.index)) {
    return Name(DType::kI64, true,
                fmt::format("v_bc_i64({}) + v_iota_i64() * {}L", Index(n.index), *stride));
  }
  if (std::optional<std::string> lanes = SpellLanes(Resolved(n.index)))
    return Name(DType::kI64, true, fmt::format("v_cvt({}, i64)", *lanes));
  return ByLanes(DType::kI64, n.index, "{}");
}

CValue KernelPrinter::ByLanes(DType type, Expr offset, const std::string& load) {
  CValue v{Fresh('t'), true};
  Line("v{} {} = {{}};", ge::Name(type), v.text);
  std::string count = vector_->count.empty() ? "W" : vector_->count;
  std::string at;
  if (std::optional<int64_t> stride = LaneStride(offset)) {
    std::string base = Fresh('o');
    Line("const si64 {} = {};", base, Index(offset));
    at = fmt::format("{} + l * {}L", base, *stride);
  } else {
    at = Index(offset, "l");
  }
  Line("for (si64 l = 0; l < {}; l++) {}[l] = {};", count, v.text,
       fmt::format(fmt::runtime(load), at));
  return v;
}

// Where the chip gathers words faster than one by one. Not for what the compiler can see through.
bool KernelPrinter::HasGather(int buffer) const {
  return masks_ && BitWidth(kernel_.buffers[buffer].dtype) == 32;
}

// What does not vary of a sum, apart: it may be large.
static std::pair<Expr, Expr> Parted(Expr e, const std::function<bool(Expr)>& varies) {
  if (e.kind() != ExprKind::kAdd) return {0, e};
  Expr fixed = 0, rest = 0;
  for (Expr arg : e.node()->args) (varies(arg) ? rest : fixed) += arg;
  return {fixed, rest};
}

std::optional<CValue> KernelPrinter::PrintPieces(const ValueNode& n) {
  const auto [fixed, rest] = Parted(Resolved(n.index), [&](Expr e) { return Varying(e); });
  std::vector<Expr> symbols;
  CollectSymbols(rest, symbols);
  const bool anywhere = std::any_of(symbols.begin(), symbols.end(), [&](Expr s) {
    return varying_symbols_.contains(s.node());  // data says where
  });
  const std::optional<std::string> lanes = SpellLanes(rest);
  if (!lanes) return std::nullopt;
  const std::string_view d = ge::Name(kernel_.buffers[n.buffer].dtype);
  const std::string at = Fresh('x'), base = Fresh('o');
  const bool tail = !vector_->count.empty();
  CValue v{Fresh('t'), true};
  Line("const vi32 {} = {};", at, *lanes);
  Line("const si64 {} = {};", base, Index(fixed));
  Line("v{} {} = {{}};", ge::Name(n.type), v.text);
  const std::string count = tail ? ", " + vector_->count : "";
  if (!anywhere) {
    Line("if (!v_any(v_cmp4({0} != v_bc_i32({0}[0]) + v_iota_i32()){1}))", at,
         tail ? fmt::format(" & v_cmp4(v_iota_i32() < (si32){})", vector_->count) : "");
    Line("  {} = v_ld{}_{}(b{}, {} + {}[0]{});", v.text, tail ? "n" : "", d, n.buffer, base, at,
         count);
    Line("else");
  }
  if (anywhere && HasGather(n.buffer))
    Line("{} = v_{}_{}(b{}, {}, {}, {});", v.text,
         kernel_.buffers[n.buffer].is_arg ? "gat" : "near", d, n.buffer, base, at,
         tail ? vector_->count : "W");
  else
    Line("for (si64 l = 0; l < {}; l++) {}[l] = s_ld_{}(b{}, {} + {}[l]);",
         tail ? vector_->count : "W", v.text, d, n.buffer, base, at);
  return v;
}

// A condition, the same for all lanes, on each side of which the lanes read one element or lie side
// by side: whether an axis is broadcast may be known only at run time.
std::optional<Expr> KernelPrinter::LoadChoice(Expr index) const {
  if (!vector_ || LaneStride(index)) return std::nullopt;
  for (Expr condition : ConditionsIn(index)) {
    if (Varying(condition)) continue;
    const std::optional<int64_t> a = LaneStride(Decide(index, condition, true)),
                                 b = LaneStride(Decide(index, condition, false));
    if (a && b && *a >= 0 && *a <= 1 && *b >= 0 && *b <= 1) return condition;
  }
  return std::nullopt;
}

CValue KernelPrinter::PrintLoadChoice(const ValueNode& n, Expr condition) {
  CValue v{Fresh('t'), true};
  Line("v{} {};", ge::Name(n.type), v.text);
  for (bool holds : {true, false}) {
    if (holds)
      Line("if ({}) {{", Index(condition));
    else
      Line("else {{");
    ++indent_;
    ValueNode side = n;
    side.index = Decide(n.index, condition, holds);
    Line("{} = {};", v.text, As(PrintLoad(side), n.type, true));
    Close();
  }
  return v;
}

CValue KernelPrinter::PrintLoad(const ValueNode& n) {
  if (const std::optional<Expr> condition = LoadChoice(n.index))
    return PrintLoadChoice(n, *condition);
  const DType storage = kernel_.buffers[n.buffer].dtype;
  const std::string_view d = ge::Name(storage);
  if (!Varying(n.index)) {
    return Name(n.type, false, fmt::format("s_ld_{}(b{}, {})", d, n.buffer, Index(n.index)));
  }
  const bool tail = !vector_->count.empty();
  const std::optional<int64_t> stride = LaneStride(n.index);
  const bool strided =
      stride && 2 <= *stride && *stride <= kMostStep && HasStrided(storage) && (!tail || masks_);
  if (strided || stride == 1) {
    return Name(n.type, true,
                fmt::format("v_ld{}{}_{}(b{}, {}{})", tail ? "n" : "",
                            strided ? fmt::format("s{}", *stride) : "", d, n.buffer, Index(n.index),
                            tail ? ", " + vector_->count : ""));
  }
  if (!stride)
    if (std::optional<CValue> pieces = PrintPieces(n)) return *pieces;
  return ByLanes(n.type, n.index, fmt::format("s_ld_{}(b{}, {{}})", d, n.buffer));
}

}  // namespace ge::emit
