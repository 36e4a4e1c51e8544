// Reduce: inside a vector loop a nest of serial loops around one accumulator (a vector if the value
// varies); outside, lanes along the innermost axis where that axis is contiguous: four accumulators
// of W lanes, a fixed tree. The order of additions depends on the extents only.
#include "emit/printer.h"

namespace ge::emit {

using tile::Op;
using tile::ReduceOp;
using tile::Stmt;

namespace {

const char* LimitOf(DType t, bool high) {
  switch (t) {
    case DType::kF32: return high ? "__builtin_inff()" : "(-__builtin_inff())";
    case DType::kF64: return high ? "__builtin_inf()" : "(-__builtin_inf())";
    case DType::kI32: return high ? "0x7fffffff" : "(-0x7fffffff - 1)";
    case DType::kI64: return high ? "0x7fffffffffffffffL" : "(-0x7fffffffffffffffL - 1)";
    case DType::kU64: return high ? "0xffffffffffffffffUL" : "0UL";
    default: return high ? "(-1)" : "0";
  }
}

}  // namespace

std::string ReduceIdentity(ReduceOp op, DType type) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kOr: return "0";
    case ReduceOp::kProd: return "1";
    case ReduceOp::kAnd: return type == DType::kU64 ? "0xffffffffffffffffUL" : "(-1)";
    case ReduceOp::kMin: return LimitOf(type, true);
    case ReduceOp::kMax: return LimitOf(type, false);
  }
  return "0";
}

std::string ReduceCombine(ReduceOp op, DType type, char mode, const std::string& a,
                          const std::string& b) {
  const bool boolean = type == DType::kBool;
  // Which of two floats is NaN is asked of the first: of the new one, so that the next step does
  // not wait for the answer.
  const std::string& first = IsFloat(type) ? b : a;
  const std::string& second = IsFloat(type) ? a : b;
  switch (op) {
    case ReduceOp::kSum: return a + " + " + b;
    case ReduceOp::kProd: return a + " * " + b;
    case ReduceOp::kAnd: return a + " & " + b;
    case ReduceOp::kOr: return a + " | " + b;
    case ReduceOp::kMin:
      return boolean ? a + " & " + b
                     : fmt::format("{}_min_{}({}, {})", mode, ge::Name(type), first, second);
    case ReduceOp::kMax:
      return boolean ? a + " | " + b
                     : fmt::format("{}_max_{}({}, {})", mode, ge::Name(type), first, second);
  }
  return a;
}

void KernelPrinter::OpenAxes(const Stmt& s, size_t count) {
  for (size_t i = 0; i < count; ++i) OpenFor(s.axes[i].first, "0", Index(s.axes[i].second));
}

// acc = acc op value, with a sum of f32 products as fused multiply-adds.
void KernelPrinter::Accumulate(const Stmt& s, const std::string& acc, bool varying) {
  PrintBody(s.body);
  memo_.clear();
  const DType type = kernel_.vars[s.var].type;
  const char mode = varying ? 'v' : 's';
  const tile::ValueNode& n = kernel_.values[s.value];
  std::string next;
  if (s.reduce == ReduceOp::kSum && type == DType::kF32 && n.op == Op::kMul) {
    CValue a = Value(n.a), b = Value(n.b);
    next = fmt::format("{}_fma({}, {}, {})", mode, As(a, type, varying), As(b, type, varying), acc);
  } else {
    next = ReduceCombine(s.reduce, type, mode, acc, As(Value(s.value), type, varying));
  }
  if (masked_reduce_) {  // lanes past the end must not count
    next = fmt::format("v_sel_{}(v_iota_i32() < (si32){}, {}, {})", ge::Name(type), vector_->count,
                       next, acc);
  }
  Line("{} = {};", acc, next);
}

void KernelPrinter::PrintReduce(const Stmt& s) {
  if (!vector_ && ReducesInLanes(s)) return PrintReduceLanes(s);
  const DType type = kernel_.vars[s.var].type;
  // Whether the value varies is known only after its statements are bound: a dry run, then undone.
  bool varying = false;
  if (vector_) {
    std::string kept = out_;
    for (const auto& [symbol, extent] : s.axes) symbols_[symbol.node()] = "0";
    PrintBody(s.body);
    memo_.clear();
    varying = Value(s.value).varying;
    out_ = std::move(kept);
  }
  std::string acc = Fresh('a');
  std::string identity = ReduceIdentity(s.reduce, type);
  if (varying) identity = fmt::format("v_bc_{}({})", ge::Name(type), identity);
  Line("{}{} {} = {};", varying ? 'v' : 's', ge::Name(type), acc, identity);
  OpenAxes(s, s.axes.size());
  Accumulate(s, acc, varying);
  for (size_t i = 0; i < s.axes.size(); ++i) CloseFor();
  vars_[s.var] = {acc, varying};
  if (kernel_.vars[s.var].index.IsSymbol()) {
    symbols_[kernel_.vars[s.var].index.node()] = acc;
    depth_[kernel_.vars[s.var].index.node()] = static_cast<int>(scopes_.size());
    if (varying) varying_symbols_.insert(kernel_.vars[s.var].index.node());
  }
}

// Lanes pay if every load of the value is contiguous or constant along the innermost axis.
bool KernelPrinter::ReducesInLanes(const Stmt& s) const {
  if (s.axes.empty()) return false;
  const auto& [symbol, extent] = s.axes.back();
  if (extent.IsConst() && extent.value() < lanes_) return false;
  bool contiguous = false;
  std::vector<tile::ExprId> stack = {s.value};
  for (const Stmt& let : s.body) {  // what the step names first
    if (let.kind != tile::StmtKind::kLet || kernel_.vars[let.var].index.IsSymbol()) return false;
    stack.push_back(let.value);
  }
  std::unordered_set<tile::ExprId> seen;
  while (!stack.empty()) {
    tile::ExprId id = stack.back();
    stack.pop_back();
    if (id < 0 || !seen.insert(id).second) continue;
    const tile::ValueNode& n = kernel_.values[id];
    if (n.op == Op::kLoad && DependsOn(n.index, symbol)) {
      std::optional<Linear> linear = AsLinear(n.index, symbol);
      if (!linear || !linear->coefficient.IsConst(1)) return false;
      contiguous = true;
    }
    if (n.op == Op::kIndex && DependsOn(n.index, symbol) && !AsLinear(n.index, symbol))
      return false;
    for (tile::ExprId operand : {n.a, n.b, n.c}) stack.push_back(operand);
  }
  return contiguous;
}

// The four vectors r0 .. r3 and the scalar rs become the one scalar `result`.
void KernelPrinter::CombineLanes(const Stmt& s, const std::string& r, const std::string& result) {
  const DType type = kernel_.vars[s.var].type;
  const std::string_view t = ge::Name(type);
  auto combine = [&](char mode, const std::string& a, const std::string& b) {
    return ReduceCombine(s.reduce, type, mode, a, b);
  };
  Line("{0}0 = {1};", r, combine('v', r + "0", r + "1"));
  Line("{0}2 = {1};", r, combine('v', r + "2", r + "3"));
  Line("{0}0 = {1};", r, combine('v', r + "0", r + "2"));
  // Halves onto each other, as a tree. Wide elements need two registers: as scalars.
  if (type == DType::kF32 || type == DType::kI32 || type == DType::kBool) {
    for (int h = lanes_ / 2; h >= 1; h /= 2)
      Line("{0}0 = {1};", r, combine('v', r + "0", fmt::format("v_upper({}0, {})", r, h)));
    Line("s{0} {1}q[1] = {{{1}0[0]}};", t, r);
  } else {
    Line("s{} {}q[W];", t, r);
    Line("LANES {0}q[l] = {0}0[l];", r);
    Line("for (int h = W / 2; h >= 1; h /= 2) for (int l = 0; l < h; l++) {}q[l] = {};", r,
         combine('s', r + "q[l]", r + "q[l + h]"));
  }
  Line("{} = {};", result, combine('s', r + "q[0]", r + "s"));
}

void KernelPrinter::PrintReduceLanes(const Stmt& s) {
  const DType type = kernel_.vars[s.var].type;
  const std::string_view t = ge::Name(type);
  const auto [symbol, extent] = s.axes.back();
  const std::string identity = ReduceIdentity(s.reduce, type);
  const std::string r = Fresh('r'), i = Fresh('i'), e = Fresh('e'), result = Fresh('a');
  const bool fixed = extent.IsConst();
  const int64_t size = fixed ? extent.value() : 0;
  auto step = [&](const std::string& base, const std::string& acc, const std::string& count) {
    vector_ = VectorScope{symbol, base, count};
    masked_reduce_ = !count.empty();
    Open();
    OpenScope();
    Bind(symbol, base);
    Accumulate(s, acc, true);
    CloseFor();
    masked_reduce_ = false;
    vector_.reset();
    varying_symbols_.clear();
  };
  Line("s{} {};", t, result);
  Open();
  Line("v{0} {1}0 = v_bc_{0}({2}), {1}1 = {1}0, {1}2 = {1}0, {1}3 = {1}0;", t, r, identity);
  Line("s{} {}s = {};", t, r, identity);
  OpenAxes(s, s.axes.size() - 1);
  Line("const si64 {} = {};", e, Index(extent));
  Line("si64 {} = 0;", i);
  if (!fixed || size >= 4 * lanes_) {
    Line("for (; {0} + 4 * W <= {1}; {0} += 4 * W) {{", i, e);
    ++indent_;
    for (int u = 0; u < 4; ++u) {
      step(u == 0 ? i : fmt::format("({} + {})", i, u * lanes_), fmt::format("{}{}", r, u), "");
    }
    Close();
  }
  if (!fixed || size % (4 * lanes_) >= lanes_) {
    Line("for (; {0} + W <= {1}; {0} += W) {{", i, e);
    ++indent_;
    step(i, r + "0", "");
    Close();
  }
  if (!fixed || size % lanes_ != 0) {
    if (masks_) {
      std::string n = Fresh('n');
      Line("if ({} < {}) {{", i, e);
      ++indent_;
      Line("const si64 {} = {} - {};", n, e, i);
      step(i, r + "1", n);
      Close();
    } else {
      Line("for (; {0} < {1}; {0}++) {{", i, e);
      ++indent_;
      OpenScope();
      Bind(symbol, i);
      Accumulate(s, r + "s", false);
      CloseFor();
    }
  }
  for (size_t axis = 0; axis + 1 < s.axes.size(); ++axis) CloseFor();
  CombineLanes(s, r, result);
  Close();
  vars_[s.var] = {result, false};
  if (!kernel_.vars[s.var].index.IsSymbol()) return;
  symbols_[kernel_.vars[s.var].index.node()] = result;
  depth_[kernel_.vars[s.var].index.node()] = static_cast<int>(scopes_.size());
}

}  // namespace ge::emit
