// Shared inference and lowering pieces; see shapes.h.
#include "ops/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace ge {
namespace {

int Nodes(Expr e) {
  if (!e.node()) return 1;
  int count = 1;
  for (Expr arg : e.node()->args) count += Nodes(arg);
  return count;
}

Expr Simpler(Expr a, Expr b) { return Nodes(b) < Nodes(a) ? b : a; }

// e is what broadcasting `part` with something gave: Select(x == 1, y, x) with part one of x, y.
bool IsBroadcastOf(Expr e, Expr part) {
  if (!e.node() || e.kind() != ExprKind::kSelect) return false;
  const auto& args = e.node()->args;
  return args[0] == Eq(args[2], 1) && (args[1] == part || args[2] == part);
}

// Dims made of common symbols are taken to be equal, where unrelated ones may also be 1 at run
// time.
bool Related(Expr a, Expr b) {
  std::vector<Expr> of_a = Symbols(a);
  for (Expr s : Symbols(b)) {
    if (std::find(of_a.begin(), of_a.end(), s) != of_a.end()) return true;
  }
  return false;
}

Result<Expr> BroadcastDim(InferContext& ctx, Expr a, Expr b) {
  if (a == b || b.IsConst(1)) return a;
  if (a.IsConst(1)) return b;
  if (a.IsConst() && b.IsConst()) {
    return ctx.Fault(fmt::format("dims {} and {} do not broadcast", a.value(), b.value()));
  }
  if (ProvablyEq(a, b)) return Simpler(a, b);
  if (IsBroadcastOf(a, b)) return a;
  if (IsBroadcastOf(b, a)) return b;
  if (Related(a, b)) {
    ctx.Check(Eq(a, b), fmt::format("dims {} and {} must be equal", ToString(a), ToString(b)));
    return Simpler(a, b);
  }
  ctx.Check(
      Or(Eq(a, b), Or(Eq(a, 1), Eq(b, 1))),
      fmt::format("dims {} and {} must be equal, or one of them 1", ToString(a), ToString(b)));
  if (ProvablyLe(2, a)) return a;
  if (ProvablyLe(2, b)) return b;
  return Select(Eq(a, 1), b, a);
}

}  // namespace

Result<Dims> Broadcast(InferContext& ctx, const Dims& a, const Dims& b) {
  size_t rank = std::max(a.size(), b.size());
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {
    size_t da = rank - a.size(), db = rank - b.size();
    if (i < da) {
      out[i] = b[i - db];
    } else if (i < db) {
      out[i] = a[i - da];
    } else {
      auto dim = BroadcastDim(ctx, a[i - da], b[i - db]);
      if (!dim.ok()) {
        return ctx.Fault(fmt::format("shapes {} and {} do not broadcast: axis {}: {}", ShapeText(a),
                                     ShapeText(b), i, dim.status().message()));
      }
      out[i] = *dim;
    }
  }
  return out;
}

Result<Dims> BroadcastInputs(InferContext& ctx, int first, int last) {
  Dims out;
  for (int i = first; i < last && i < ctx.NumInputs(); ++i) {
    if (!ctx.Has(i)) continue;
    GE_ASSIGN(out, Broadcast(ctx, out, ctx.In(i).dims));
  }
  return out;
}

Status CheckBroadcastsTo(InferContext& ctx, const Dims& from, const Dims& to) {
  if (from.size() > to.size()) {
    return ctx.Fault(
        fmt::format("shape {} does not broadcast to {}", ShapeText(from), ShapeText(to)));
  }
  for (size_t i = 0; i < from.size(); ++i) {
    Expr f = from[i], t = to[to.size() - from.size() + i];
    if (f == t || f.IsConst(1)) continue;
    if (f.IsConst() && t.IsConst()) {
      return ctx.Fault(
          fmt::format("shape {} does not broadcast to {}", ShapeText(from), ShapeText(to)));
    }
    ctx.Check(Or(Eq(f, t), Eq(f, 1)),
              fmt::format("dim {} must be {} or 1", ToString(f), ToString(t)));
  }
  return {};
}

int64_t BroadcastPosition(int64_t out_position, const Dims& out, const Dims& in) {
  int64_t position = 0, stride = 1;
  for (size_t i = 0; i < out.size(); ++i) {
    size_t axis = out.size() - 1 - i;
    int64_t extent = std::max<int64_t>(out[axis].value(), 1);
    int64_t at = out_position % extent;
    out_position /= extent;
    if (i >= in.size()) continue;
    int64_t dim = in[in.size() - 1 - i].value();
    if (dim != 1) position += at * stride;
    stride *= dim;
  }
  return position;
}

Result<Expr> SameDim(InferContext& ctx, Expr a, Expr b, std::string_view what) {
  if (a == b) return a;
  if (a.IsConst() && b.IsConst()) {
    return ctx.Fault(fmt::format("{}: {} is not {}", what, a.value(), b.value()));
  }
  if (!ProvablyEq(a, b)) {
    ctx.Check(Eq(a, b), fmt::format("{}: {} must be {}", what, ToString(a), ToString(b)));
  }
  return Simpler(a, b);
}

Result<int> NormaliseAxis(int64_t axis, int rank) {
  int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return Invalid(fmt::format("axis {} is outside rank {}", axis, rank));
  return static_cast<int>(at);
}

Result<std::vector<int>> NormaliseAxes(const std::vector<int64_t>& axes, int rank) {
  std::vector<int> out;
  for (int64_t axis : axes) {
    GE_ASSIGN(int at, NormaliseAxis(axis, rank));
    if (std::find(out.begin(), out.end(), at) != out.end()) {
      return Invalid(fmt::format("axis {} is given twice", axis));
    }
    out.push_back(at);
  }
  return out;
}

int AxisOf(int64_t axis, int rank) {
  auto at = NormaliseAxis(axis, rank);
  GE_CHECK(at.ok(), at.status().message());
  return *at;
}

std::optional<std::vector<int64_t>> IntsOf(const Graph& g, const Node& n, int operand) {
  if (operand < 0 || operand >= static_cast<int>(n.inputs.size())) return std::nullopt;
  ValueId v = n.inputs[operand];
  if (v == kNone) return std::nullopt;
  if (const auto& elems = g.value(v).elems) {
    std::vector<int64_t> out;
    for (Expr e : *elems) {
      if (!e.IsConst()) return std::nullopt;
      out.push_back(e.value());
    }
    return out;
  }
  const Constant* c = g.ConstantOf(v);
  if (c && (IsInteger(c->dtype) || c->dtype == DType::kBool)) return IntElements(*c);
  return std::nullopt;
}

namespace {

template <class T>
T At(const Constant& c, int64_t i) {
  T value;
  std::memcpy(&value, c.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// IEEE-like small float of `exponent` and `mantissa` bits, given as its bit pattern, with
// infinities.
double SmallFloat(uint32_t bits, int exponent, int mantissa) {
  uint32_t m = bits & ((1u << mantissa) - 1), e = (bits >> mantissa) & ((1u << exponent) - 1);
  double sign = (bits >> (exponent + mantissa)) & 1 ? -1 : 1;
  int bias = (1 << (exponent - 1)) - 1;
  if (e == (1u << exponent) - 1) return m ? NAN : sign * INFINITY;
  if (e == 0) return sign * std::ldexp(m, 1 - bias - mantissa);
  return sign * std::ldexp(m | (1u << mantissa), static_cast<int>(e) - bias - mantissa);
}

int64_t IntElement(const Constant& c, int64_t i) {
  switch (c.dtype) {
    case DType::kI64:
    case DType::kU64: return At<int64_t>(c, i);
    case DType::kI32: return At<int32_t>(c, i);
    case DType::kU32: return At<uint32_t>(c, i);
    case DType::kI16: return At<int16_t>(c, i);
    case DType::kU16: return At<uint16_t>(c, i);
    case DType::kI8: return At<int8_t>(c, i);
    case DType::kU8: return At<uint8_t>(c, i);
    case DType::kBool: return At<uint8_t>(c, i) != 0;
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2: {
      int width = BitWidth(c.dtype), per_byte = 8 / width;
      int64_t v = (At<uint8_t>(c, i / per_byte) >> (i % per_byte * width)) & ((1 << width) - 1);
      bool negative = IsSigned(c.dtype) && (v >> (width - 1)) != 0;
      return negative ? v - (int64_t{1} << width) : v;
    }
    default: return static_cast<int64_t>(FloatElement(c, i));
  }
}

}  // namespace

double FloatElement(const Constant& c, int64_t i) {
  switch (c.dtype) {
    case DType::kF32: return At<float>(c, i);
    case DType::kF64: return At<double>(c, i);
    case DType::kF16: return SmallFloat(At<uint16_t>(c, i), 5, 10);
    case DType::kBF16: return SmallFloat(At<uint16_t>(c, i), 8, 7);
    case DType::kU64: return static_cast<double>(At<uint64_t>(c, i));
    default:
      if (IsInteger(c.dtype) || c.dtype == DType::kBool) {
        return static_cast<double>(IntElement(c, i));
      }
      return NAN;
  }
}

std::vector<int64_t> IntElements(const Constant& c) {
  std::vector<int64_t> out(c.Elements());
  for (size_t i = 0; i < out.size(); ++i) out[i] = IntElement(c, i);
  return out;
}

std::vector<double> FloatElements(const Constant& c) {
  std::vector<double> out(c.Elements());
  for (size_t i = 0; i < out.size(); ++i) out[i] = FloatElement(c, i);
  return out;
}

std::optional<double> ScalarOf(const Graph& g, const Node& n, int operand) {
  if (operand < 0 || operand >= static_cast<int>(n.inputs.size())) return std::nullopt;
  ValueId v = n.inputs[operand];
  if (v == kNone) return std::nullopt;
  if (const Constant* c = g.ConstantOf(v)) {
    if (c->Elements() == 1 && c->dtype != DType::kString) return FloatElement(*c, 0);
    return std::nullopt;
  }
  auto ints = IntsOf(g, n, operand);
  if (ints && ints->size() == 1) return static_cast<double>((*ints)[0]);
  return std::nullopt;
}

Result<std::optional<std::vector<int64_t>>> AxesOf(const Graph& g, const Node& n, int operand,
                                                   std::string_view attr) {
  using Axes = std::optional<std::vector<int64_t>>;
  if (operand >= 0 && operand < static_cast<int>(n.inputs.size()) && n.inputs[operand] != kNone) {
    auto ints = IntsOf(g, n, operand);
    if (!ints) {
      return Unsupported(fmt::format("axes (operand {}) must be known when compiling", operand));
    }
    return Axes(std::move(ints));
  }
  if (!HasAttr(n, attr)) return Axes();
  auto list = AttrOr<std::vector<int64_t>>(n, attr, {});
  if (const auto* one = std::get_if<int64_t>(&n.attrs.find(attr)->second)) list = {*one};
  return Axes(std::move(list));
}

Status CheckSameType(const InferContext& ctx, int first, int last) {
  DType t = DType::kNone;
  for (int i = first; i < last && i < ctx.NumInputs(); ++i) {
    if (!ctx.Has(i)) continue;
    if (t == DType::kNone) t = ctx.In(i).dtype;
    if (ctx.In(i).dtype != t) {
      return ctx.Fault(
          fmt::format("operands of types {} and {} (operand {}); they must be of one type", Name(t),
                      Name(ctx.In(i).dtype), i));
    }
  }
  return {};
}

Status CheckRank(const InferContext& ctx, int operand, int rank) {
  int given = ctx.In(operand).rank();
  if (given == rank) return {};
  return ctx.Fault(fmt::format("operand {} has rank {}, must be {}", operand, given, rank));
}

Status CheckMinRank(const InferContext& ctx, int operand, int rank) {
  int given = ctx.In(operand).rank();
  if (given >= rank) return {};
  return ctx.Fault(
      fmt::format("operand {} has rank {}, must be at least {}", operand, given, rank));
}

std::string ShapeText(const Dims& dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + ToString(dims[i]);
  return out + "]";
}

void CopyType(InferContext& ctx, int output, int input) {
  if (ctx.Wants(output)) ctx.Out(output, ctx.In(input).dtype, ctx.In(input).dims);
}

Status InferSameAsInput(InferContext& ctx) {
  CopyType(ctx, 0, 0);
  return {};
}

Status InferBroadcast(InferContext& ctx) {
  GE_TRY(CheckSameType(ctx, 0, ctx.NumInputs()));
  GE_ASSIGN(Dims dims, BroadcastInputs(ctx, 0, ctx.NumInputs()));
  ctx.Out(0, ctx.In(0).dtype, std::move(dims));
  return {};
}

Expr Linear(const Index& index, const Dims& dims) {
  Expr at = 0;
  for (size_t i = 0; i < dims.size(); ++i) at = at * dims[i] + index[i];
  return at;
}

Index Unlinear(Expr position, const Dims& dims) {
  Index index(dims.size());
  Expr stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    Expr at = FloorDiv(position, stride);
    index[i] = i == 0 ? at : Mod(at, dims[i]);
    if (dims[i].IsConst(1)) index[i] = 0;
    stride = stride * dims[i];
  }
  return index;
}

namespace {

// The shortest groups of axes from i and j on that hold equally many elements; all the rest if
// none.
std::pair<size_t, size_t> EqualGroup(const Dims& a, size_t i, const Dims& b, size_t j) {
  size_t rest_a = a.size() - i, rest_b = b.size() - j;
  for (size_t total = 2; total < rest_a + rest_b; ++total) {
    for (size_t na = 1; na < total && na <= rest_a; ++na) {
      size_t nb = total - na;
      if (nb > rest_b) continue;
      Expr pa = Product(Dims(a.begin() + i, a.begin() + i + na));
      Expr pb = Product(Dims(b.begin() + j, b.begin() + j + nb));
      if (pa == pb) return {na, nb};
    }
  }
  return {rest_a, rest_b};
}

}  // namespace

Index ReshapedIndex(const Index& idx, const Dims& to, const Dims& from) {
  Index out;
  size_t i = 0, j = 0;
  while (i < to.size() && j < from.size()) {
    auto [ni, nj] = EqualGroup(to, i, from, j);
    Dims group_to(to.begin() + i, to.begin() + i + ni);
    Dims group_from(from.begin() + j, from.begin() + j + nj);
    Index part(idx.begin() + i, idx.begin() + i + ni);
    if (!(group_to == group_from)) part = Unlinear(Linear(part, group_to), group_from);
    out.insert(out.end(), part.begin(), part.end());
    i += ni;
    j += nj;
  }
  out.resize(from.size(), Expr(0));  // what is left on either side are axes of one element
  return out;
}

std::optional<std::vector<int64_t>> ConstDims(const Dims& dims) {
  std::vector<int64_t> out;
  for (Expr d : dims) {
    if (!d.IsConst()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

tile::Val BoolConst(tile::Builder& b, bool v) { return b.ConstInt(DType::kBool, v); }

tile::Val InRange(tile::Builder& b, Expr i, Expr dim) {
  bool low = ProvablyLe(0, i), high = ProvablyLt(i, dim);
  if (low && high) return BoolConst(b, true);
  tile::Val above = low ? tile::Val() : LessEqual(b.ConstInt(DType::kI64, 0), b.Index(i));
  if (high) return above;
  tile::Val below = Less(b.Index(i), b.Index(dim));
  return low ? below : And(above, below);
}

tile::Val Less(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kLt, a, b); }
tile::Val LessEqual(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kLe, a, b); }
tile::Val Equal(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kEq, a, b); }
tile::Val NotEqual(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kNe, a, b); }
tile::Val And(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kAnd, a, b); }
tile::Val Or(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kOr, a, b); }
tile::Val Min(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kMin, a, b); }
tile::Val Max(tile::Val a, tile::Val b) { return a.b->Binary(tile::Op::kMax, a, b); }
tile::Val Like(tile::Val v, double x) { return v.b->Const(v.type(), x); }

tile::Val ScalarOr(Lowering& l, int operand, DType t, double otherwise) {
  if (!l.Has(operand)) return l.b.Const(t, otherwise);
  if (l.Const(operand) && ComputeType(l.In(operand).dtype) == t) {
    if (auto ints = IntsOf(l.graph, l.node, operand); ints && ints->size() == 1) {
      return l.b.ConstInt(t, (*ints)[0]);
    }
    if (auto x = ScalarOf(l.graph, l.node, operand); x && !std::isnan(*x)) return l.b.Const(t, *x);
  }
  return l.Load(operand, Index(l.In(operand).rank(), Expr(0)));
}

Expr IndexOperand(Lowering& l, int operand, int64_t position, int64_t lo, int64_t hi) {
  if (const auto* elems = l.Elems(operand)) return (*elems)[position];
  const auto& dims = l.In(operand).dims;
  tile::Val v = l.b.Cast(l.Load(operand, Unlinear(position, dims)), DType::kI64);
  v = Max(l.b.ConstInt(DType::kI64, lo), Min(v, l.b.ConstInt(DType::kI64, hi)));
  return l.b.LetIndex(v, lo, hi);
}

}  // namespace ge
