// Values as C temporaries: one per node and statement. Operators of C where C has them for vectors
// and scalars alike, else the prelude's functions, whose names are mode_operation_type.
#include <cmath>

#include "base/check.h"
#include "emit/printer.h"
#include "emit/quotient.h"

namespace ge::emit {

using tile::Op;
using tile::ValueNode;

namespace {

bool IsF(DType t) { return t == DType::kF32 || t == DType::kF64; }

// Operations that are functions of the prelude; those in the math table get M as first argument.
struct Function {
  const char* name;
  bool table;
};

Function UnaryFunction(Op op, DType t) {
  const bool f64 = t == DType::kF64;
  switch (op) {
    case Op::kAbs: return {"abs", false};
    case Op::kNeg: return {"neg", false};
    case Op::kSign: return {"sign", false};
    case Op::kSqrt: return {"sqrt", false};
    case Op::kFloor: return {"floor", false};
    case Op::kCeil: return {"ceil", false};
    case Op::kRound: return {"round", false};
    case Op::kTrunc: return {"trunc", false};
    case Op::kIsNan: return {"isnan", false};
    case Op::kIsInf: return {"isinf", false};
    case Op::kExp: return {"exp", f64};
    case Op::kLog: return {"log", f64};
    case Op::kTanh: return {"tanh", f64};
    case Op::kErf: return {"erf", f64};
    case Op::kGelu: return {"gelu", f64};
    case Op::kExpm1: return {"expm1", f64};
    case Op::kLog1p: return {"log1p", f64};
    case Op::kSin: return {"sin", true};
    case Op::kCos: return {"cos", true};
    case Op::kTan: return {"tan", true};
    case Op::kAsin: return {"asin", f64};
    case Op::kAcos: return {"acos", f64};
    case Op::kAtan: return {"atan", f64};
    case Op::kSinh: return {"sinh", f64};
    case Op::kCosh: return {"cosh", f64};
    case Op::kAsinh: return {"asinh", f64};
    case Op::kAcosh: return {"acosh", f64};
    case Op::kAtanh: return {"atanh", f64};
    case Op::kLgamma: return {"lgamma", true};
    default: return {nullptr, false};
  }
}

const char* Infix(Op op, DType t) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSub: return "-";
    case Op::kMul: return "*";
    case Op::kDiv: return IsF(t) ? "/" : nullptr;
    case Op::kAnd: return "&";
    case Op::kOr: return "|";
    case Op::kXor: return "^";
    default: return nullptr;
  }
}

const char* Comparison(Op op) {
  switch (op) {
    case Op::kLt: return "<";
    case Op::kLe: return "<=";
    case Op::kEq: return "==";
    case Op::kNe: return "!=";
    default: return nullptr;
  }
}

Function BinaryFunction(Op op, DType t) {
  const bool f = IsF(t);
  switch (op) {
    case Op::kDiv: return {"div", false};
    case Op::kFloorMod: return {"floormod", f};
    case Op::kFmod: return {"fmod", f};
    case Op::kPow: return {"pow", t == DType::kF64};
    case Op::kMin: return {"min", false};
    case Op::kMax: return {"max", false};
    case Op::kShl: return {"shl", false};
    case Op::kShr: return {"shr", false};
    case Op::kAtan2: return {"atan2", true};
    default: return {nullptr, false};
  }
}

std::string FloatLiteral(double v, DType t) {
  const bool f32 = t == DType::kF32;
  if (std::isnan(v)) return f32 ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
  if (std::isinf(v))
    return fmt::format("{}{}", v < 0 ? "-" : "", f32 ? "__builtin_inff()" : "__builtin_inf()");
  return f32 ? fmt::format("{:a}f", static_cast<double>(static_cast<float>(v)))
             : fmt::format("{:a}", v);
}

char Mode(bool varying) { return varying ? 'v' : 's'; }

bool IsConstantOf(const ValueNode& n) { return n.op == Op::kConst; }

}  // namespace

CValue KernelPrinter::Name(DType type, bool varying, const std::string& text) {
  CValue v{Fresh('t'), varying};
  Line("const {}{} {} = {};", Mode(varying), ge::Name(type), v.text, text);
  return v;
}

std::string KernelPrinter::As(const CValue& v, DType type, bool varying) {
  if (v.varying || !varying) return v.text;
  return fmt::format("v_bc_{}({})", ge::Name(type), v.text);
}

CValue KernelPrinter::Value(tile::ExprId id) {
  if (auto it = memo_.find(id); it != memo_.end()) return it->second;
  // Operands first, in id order, without recursion as deep as the value is.
  std::vector<tile::ExprId> stack = {id};
  while (!stack.empty()) {
    tile::ExprId at = stack.back();
    const ValueNode& n = kernel_.values[at];
    if (at == started_ && vector_) {
      memo_[at] = vars_[started_acc_];
      stack.pop_back();
      continue;
    }
    bool ready = true;
    for (tile::ExprId operand : {n.c, n.b, n.a}) {
      if (operand >= 0 && !memo_.contains(operand)) stack.push_back(operand), ready = false;
    }
    if (!ready) continue;
    stack.pop_back();
    if (!memo_.contains(at)) memo_[at] = PrintNode(n);
  }
  return memo_[id];
}

CValue KernelPrinter::PrintNode(const ValueNode& n) {
  switch (n.op) {
    case Op::kConst: return PrintConst(n);
    case Op::kIndex: return PrintIndexValue(n);
    case Op::kVar: return vars_[n.var];
    case Op::kLoad: return PrintLoad(n);
    case Op::kSelect: return PrintSelect(n);
    case Op::kFma: return PrintFma(n);
    default: return n.b >= 0 ? PrintBinary(n) : PrintUnary(n);
  }
}

CValue KernelPrinter::PrintConst(const ValueNode& n) {
  switch (n.type) {
    case DType::kF32:
    case DType::kF64: return {"(" + FloatLiteral(n.f, n.type) + ")", false};
    case DType::kBool: return {n.i ? "(-1)" : "0", false};
    case DType::kU64: return {fmt::format("{}UL", static_cast<uint64_t>(n.i)), false};
    case DType::kI32: return {fmt::format("((si32){})", n.i), false};
    default:
      return {n.i == INT64_MIN ? "(-0x7fffffffffffffffL - 1)" : fmt::format("({}L)", n.i), false};
  }
}

// x, if `n` is 1 / (exp(-x) + 1).
static std::optional<tile::ExprId> OfSigmoid(const tile::Kernel& k, const ValueNode& n) {
  if (n.op != Op::kRcp || n.type != DType::kF32) return std::nullopt;
  const ValueNode& sum = k.values[n.a];
  if (sum.op != Op::kAdd || !IsConstantOf(k.values[sum.b]) || k.values[sum.b].f != 1)
    return std::nullopt;
  const ValueNode& power = k.values[sum.a];
  if (power.op != Op::kExp || k.values[power.a].op != Op::kNeg) return std::nullopt;
  return k.values[power.a].a;
}

// x, if `n` is (tanh(x) + 1) / 2, which is the sigmoid of 2x.
static std::optional<tile::ExprId> OfHalfTanh(const tile::Kernel& k, const ValueNode& n) {
  // The other operand of one that is the number c.
  auto beside = [&](const ValueNode& v, double c) -> const ValueNode* {
    for (auto [a, b] : {std::pair{v.a, v.b}, {v.b, v.a}})
      if (IsConstantOf(k.values[a]) && k.values[a].f == c) return &k.values[b];
    return nullptr;
  };
  if (n.op != Op::kMul || n.type != DType::kF32) return std::nullopt;
  const ValueNode* sum = beside(n, 0.5);
  if (sum == nullptr || sum->op != Op::kAdd) return std::nullopt;
  const ValueNode* tanh = beside(*sum, 1);
  return tanh != nullptr && tanh->op == Op::kTanh ? std::optional(tanh->a) : std::nullopt;
}

std::string KernelPrinter::PrintQuotient(const std::string& x, float reciprocal, float rest) {
  auto literal = [](float v) { return FloatLiteral(static_cast<double>(v), DType::kF32); };
  if (rest == 0) return fmt::format("{} * v_bc_f32({})", x, literal(reciprocal));
  return fmt::format("v_fma({0}, v_bc_f32({1}), {0} * v_bc_f32({2}))", x, literal(reciprocal),
                     literal(rest));
}

// A vector of bytes just made, and what is read of it again; empty if `n` is neither.
std::string KernelPrinter::PrintQuantised(const ValueNode& n) {
  const std::optional<Quantised> q = AsQuantised(kernel_, n);
  if (!q || !memo_[q->rounded].varying) return "";
  const std::string& x = memo_[q->rounded].text;
  if (n.op == Op::kCast && NeverNan(kernel_, q->rounded)) return x;
  // NaN counts as 0.
  if (n.op == Op::kCast) return fmt::format("v_sel_f32(v_cmp4({0} == {0}), {0}, v_bc_f32(0))", x);
  // NaN becomes a number whose lowest byte is 0.
  float reciprocal = 0, rest = 0;
  const auto of = RoundedQuotient(kernel_, kernel_.values[q->rounded], &reciprocal, &rest);
  const std::string nearest =
      of ? PrintQuotient(As(memo_[*of], DType::kF32, true), reciprocal, rest) : x;
  return fmt::format("v_nar_{}(v_rint_i32({}) + v_bc_i32({}))", ge::Name(n.storage), nearest,
                     q->zero);
}

CValue KernelPrinter::PrintUnary(const ValueNode& n) {
  const CValue a = memo_[n.a];
  const char m = Mode(a.varying);
  const DType from = TypeOf(n.a);
  std::string text = PrintQuantised(n);
  if (!text.empty()) return Name(n.type, true, text);
  float reciprocal = 0, rest = 0;
  if (std::optional<tile::ExprId> x;
      a.varying && n.op == Op::kRound && (x = RoundedQuotient(kernel_, n, &reciprocal, &rest))) {
    const std::string by = As(memo_[*x], from, true);
    text = fmt::format("v_round_f32({})", PrintQuotient(by, reciprocal, rest));
  } else if (n.op == Op::kCast) {
    if (from == n.type) return a;
    if (a.varying && from == DType::kF32 && n.type == DType::kI32) {
      constexpr double kSmall = 1 << 30;
      if (auto [lo, hi] = RangeOf(kernel_, n.a); -kSmall <= lo && hi <= kSmall) {
        text = fmt::format("v_cvt({0}, i32) & v_cmp4({0} == {0})", a.text);
        return Name(n.type, true, text);
      }
    }
    text = fmt::format("{}_cast_{}_{}({})", m, ge::Name(from), ge::Name(n.type), a.text);
    if (const ValueNode& of = kernel_.values[n.a]; a.varying && of.op == Op::kIndex)
      if (std::optional<std::string> lanes = SpellLanes(Resolved(of.index)))
        text = n.type == DType::kI32
                   ? *lanes
                   : fmt::format("{}_cast_i32_{}({})", m, ge::Name(n.type), *lanes);
  } else if (n.op == Op::kBitCast) {
    text = fmt::format("{}_as_{}({})", m, ge::Name(n.type), a.text);
  } else if (n.op == Op::kNarrow) {
    text = fmt::format("{}_nar_{}({})", m, ge::Name(n.storage), a.text);
  } else if (n.op == Op::kNot || n.op == Op::kBitNot) {
    text = "~" + a.text;
  } else if (n.op == Op::kNeg && !IsF(from)) {
    text = "-" + a.text;
  } else if (std::optional<tile::ExprId> x = a.varying ? OfSigmoid(kernel_, n) : std::nullopt) {
    text = fmt::format("v_sigmoid_f32({})", As(memo_[*x], from, true));
  } else if (n.op == Op::kRcp) {
    text = fmt::format("{} / {}", n.type == DType::kF32 ? "1.0f" : "1.0", a.text);
  } else {
    Function f = UnaryFunction(n.op, from);
    GE_CHECK(f.name != nullptr, fmt::format("no C for unary op {}", static_cast<int>(n.op)));
    text = fmt::format("{}_{}_{}({}{})", m, f.name, ge::Name(from), f.table ? "M, " : "", a.text);
  }
  return Name(n.type, a.varying, text);
}

CValue KernelPrinter::PrintBinary(const ValueNode& n) {
  const CValue a = memo_[n.a], b = memo_[n.b];
  const bool varying = a.varying || b.varying;
  const char m = Mode(varying);
  const DType t = TypeOf(n.a);
  const std::string x = As(a, t, varying), y = As(b, t, varying);
  const bool wide = t == DType::kF64 || t == DType::kI64 || t == DType::kU64;
  if (const char* compare = Comparison(n.op)) {
    if (t == DType::kBool && (n.op == Op::kLt || n.op == Op::kLe)) {  // true is -1
      return Name(n.type, varying, fmt::format("{}_cmp4({} {} {})", m, y, compare, x));
    }
    return Name(n.type, varying, fmt::format("{}_cmp{}({} {} {})", m, wide ? 8 : 4, x, compare, y));
  }
  if (std::optional<tile::ExprId> of = varying ? OfHalfTanh(kernel_, n) : std::nullopt)
    return Name(n.type, true, fmt::format("v_sigmoid_f32({0} + {0})", As(memo_[*of], t, true)));
  if (const char* infix = Infix(n.op, t))
    return Name(n.type, varying, fmt::format("{} {} {}", x, infix, y));
  const ValueNode& right = kernel_.values[n.b];
  if (n.op == Op::kDiv && IsConstantOf(right) && right.i != 0 && right.i != -1) {
    return Name(n.type, varying, fmt::format("{} / {}", x, y));
  }
  // Min and Max with a number: one instruction, since only the other side can be NaN.
  const bool is_max = n.op == Op::kMax;
  if ((is_max || n.op == Op::kMin) && t == DType::kF32) {
    const ValueNode& left = kernel_.values[n.a];
    if (IsConstantOf(right) && !std::isnan(right.f)) {
      // Of two bounds on one side the tighter one.
      if (left.op == n.op && IsConstantOf(kernel_.values[left.b]) && varying &&
          !std::isnan(kernel_.values[left.b].f)) {
        const double first = kernel_.values[left.b].f;
        const bool second = is_max ? right.f > first : right.f < first;
        if (!second) return a;
        return Name(n.type, true,
                    fmt::format("v_pick{}_f32({}, {})", is_max ? "max" : "min", y,
                                As(memo_[left.a], t, true)));
      }
      return Name(n.type, varying,
                  fmt::format("{}_pick{}_f32({}, {})", m, is_max ? "max" : "min", y, x));
    }
    if (IsConstantOf(left) && !std::isnan(left.f)) {
      return Name(n.type, varying,
                  fmt::format("{}_pick{}_f32({}, {})", m, is_max ? "max" : "min", x, y));
    }
  }
  if (t == DType::kBool && (is_max || n.op == Op::kMin)) {
    return Name(n.type, varying, fmt::format("{} {} {}", x, is_max ? "|" : "&", y));
  }
  Function f = BinaryFunction(n.op, t);
  GE_CHECK(f.name != nullptr, fmt::format("no C for binary op {}", static_cast<int>(n.op)));
  return Name(
      n.type, varying,
      fmt::format("{}_{}_{}({}{}, {})", m, f.name, ge::Name(t), f.table ? "M, " : "", x, y));
}

CValue KernelPrinter::PrintSelect(const ValueNode& n) {
  const CValue c = memo_[n.a], a = memo_[n.b], b = memo_[n.c];
  const bool varying = c.varying || a.varying || b.varying;
  if (!varying) return Name(n.type, false, fmt::format("{} ? {} : {}", c.text, a.text, b.text));
  return Name(n.type, true,
              fmt::format("v_sel_{}({}, {}, {})", ge::Name(n.type), As(c, DType::kBool, true),
                          As(a, n.type, true), As(b, n.type, true)));
}

CValue KernelPrinter::PrintFma(const ValueNode& n) {
  const CValue a = memo_[n.a], b = memo_[n.b], c = memo_[n.c];
  const bool varying = a.varying || b.varying || c.varying;
  auto as = [&](const CValue& v) { return As(v, n.type, varying); };
  return Name(n.type, varying,
              fmt::format("{}_fma({}, {}, {})", Mode(varying), as(a), as(b), as(c)));
}

}  // namespace ge::emit
