// Rules that keep quantised models in integers.
//
//   Conv(Dequantize(x, sx, zx), Dequantize(w, sw, zw), b)
//     ->  Add(Mul(Cast(ConvInteger(x, w, zx, zw)), sx * sw), b)        and so MatMul and Gemm
//   QLinearConv(..)  ->  the same, and QuantizeLinear after it          and so QLinearMatMul
//   QuantizeLinear(MaxPool(Dequantize(x, s, z)), s, z)  ->  MaxPool(x)
//   Flatten(Dequantize(x, s, z))  ->  Dequantize(Flatten(x), s, z)      and so Reshape
//
// The integer dot gives int32; casts, scales, bias, residual and the next quantisation are
// pointwise and join its region, so that they are its requantising epilogue. Scales are of one
// tensor for x, of one tensor or of one output channel for w; weights less their zero points fit in
// i8.
#include "opt/quantised.h"

#include <algorithm>
#include <cmath>

#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

// The operands of a DequantizeLinear.
struct Quantised {
  ValueId q = kNone, scale = kNone, zero = kNone;
  int64_t axis = 1;
};

bool AsQuantised(const Graph& g, ValueId v, Quantised* out) {
  if (v == kNone || g.value(v).producer == kNone) return false;
  const Node& n = g.node(g.value(v).producer);
  if (n.op->name != "DequantizeLinear" || g.value(v).type.dtype != DType::kF32) return false;
  if (AttrOr<int64_t>(n, "block_size", 0) != 0) return false;
  *out = {n.inputs[0], n.inputs[1], n.inputs.size() > 2 ? n.inputs[2] : kNone,
          AttrOr<int64_t>(n, "axis", 1)};
  return IsByte(g.value(out->q).type.dtype);
}

bool IsOne(const Graph& g, ValueId v) {
  const Constant* c = g.ConstantOf(v);
  return c && c->Elements() == 1;
}

// Constant scale and zero point (or none) of one element each.
bool OfOneTensor(const Graph& g, const Quantised& x) {
  return IsOne(g, x.scale) && (x.zero == kNone || IsOne(g, x.zero));
}

// Scale and zero point: one, or one for each of `columns` along `axis`.
bool OfColumns(const Graph& g, const Quantised& w, int64_t columns, int axis) {
  const int rank = g.value(w.q).type.rank();
  const bool along = (w.axis < 0 ? w.axis + rank : w.axis) == axis;
  for (ValueId v : {w.scale, w.zero}) {
    if (v == kNone) continue;
    const Constant* c = g.ConstantOf(v);
    if (!c || c->dims.size() > 1) return false;
    if (c->Elements() != 1 && !(along && c->Elements() == columns)) return false;
  }
  return true;
}

// Weights less zero points fit in i8. Element i belongs to column (i / inner) % columns.
bool FitsInBytes(const Constant& w, const Constant* zero, int64_t columns, int64_t inner) {
  if (w.dtype == DType::kI8 && (zero == nullptr || AllAre(*zero, 0))) return true;
  const auto values = Numbers(w);
  const std::vector<double> zeros = zero ? *Numbers(*zero) : std::vector<double>{0};
  for (size_t i = 0; i < values->size(); ++i) {
    const size_t column = i / static_cast<size_t>(inner) % static_cast<size_t>(columns);
    const double v = (*values)[i] - zeros[zeros.size() == 1 ? 0 : column];
    if (v < -128 || v > 127) return false;
  }
  return true;
}

// The axis of the weights that is the output's channels or columns.
int ColumnAxis(const Node& n) {
  if (n.op->name == "Conv") return 0;
  return n.op->name == "Gemm" && AttrOr<int64_t>(n, "transB", 0) ? 0 : 1;
}

// A constant, or what folding makes one: a bias is often dequantised too.
bool WillBeConstant(const Graph& g, ValueId v) {
  if (g.IsConstant(v)) return true;
  if (g.value(v).producer == kNone) return false;
  const Node& n = g.node(g.value(v).producer);
  if (n.op->name != "DequantizeLinear") return false;
  return std::all_of(n.inputs.begin(), n.inputs.end(),
                     [&](ValueId in) { return in == kNone || g.IsConstant(in); });
}

// What v is a view of: the rules below will have dequantised the view.
ValueId BeforeViews(const Graph& g, ValueId v) {
  while (v != kNone && g.value(v).producer != kNone) {
    const Node& n = g.node(g.value(v).producer);
    if (n.op->name != "Flatten" && (n.op->name != "Reshape" || !g.IsConstant(n.inputs[1]))) break;
    v = n.inputs[0];
  }
  return v;
}

std::string Fault(const Graph& g, const Node& n) {
  Quantised x, w;
  if (!AsQuantised(g, BeforeViews(g, n.inputs[0]), &x)) return "the input is not dequantised bytes";
  if (!AsQuantised(g, n.inputs[1], &w)) return "the weights are not dequantised bytes";
  if (!OfOneTensor(g, x)) return "the input's scale is not one constant";
  const Constant* weights = g.ConstantOf(w.q);
  if (!weights || weights->Elements() == 0) return "the weights are not constant";
  const TensorType& type = g.value(n.inputs[0]).type;
  const size_t rank = weights->dims.size();
  if (n.op->name == "Conv") {
    if (type.rank() != 4 && type.rank() != 3) return "an odd rank";
    if (AttrOr<int64_t>(n, "group", 1) != 1) return "several groups";
    if (!type.dims[1].IsConst()) return "a symbolic number of channels";
  } else if (rank != 2 || type.rank() < 2 || !type.dims.back().IsConst()) {
    return "an odd rank or a symbolic depth";
  }
  if (n.inputs.size() > 2 && n.inputs[2] != kNone && !WillBeConstant(g, n.inputs[2]))
    return "the bias is not constant";
  if (n.op->name == "Gemm" &&
      (AttrOr<int64_t>(n, "transA", 0) || AttrOr<float>(n, "alpha", 1) != 1 ||
       AttrOr<float>(n, "beta", 1) != 1))
    return "transA, alpha or beta";
  const int axis = ColumnAxis(n);
  const int64_t columns = weights->dims[axis];
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < rank; ++d) inner *= weights->dims[d];
  if (!OfColumns(g, w, columns, axis)) return "scales of blocks";
  if (!FitsInBytes(*weights, g.ConstantOf(w.zero), columns, inner)) return "weights of 9 bits";
  return "";
}

// Numbers of a constant, each `n` times if it is one.
std::vector<double> Spread(const Constant& c, size_t n) {
  std::vector<double> v = *Numbers(c);
  if (v.size() == 1) v.resize(n, v[0]);
  return v;
}

// Values for output channels as a constant that broadcasts over `spatial` axes after them.
ValueId Channels(Patch& p, const std::vector<double>& v, int spatial) {
  std::vector<int64_t> dims = {static_cast<int64_t>(v.size())};
  dims.resize(static_cast<size_t>(spatial) + 1, 1);
  return p.Const(FromNumbers(DType::kF32, dims, v));
}

ValueId Scaled(const Match& m, Patch& p, ValueId sum, ValueId x_scale, ValueId w_scale,
               int64_t columns, int spatial) {
  const Graph& g = m.g;
  std::vector<double> scale = Spread(*g.ConstantOf(w_scale), static_cast<size_t>(columns));
  const double sx = (*Numbers(*g.ConstantOf(x_scale)))[0];
  for (double& s : scale) s *= sx;
  const ValueId f = p.Add("Cast", {sum}, {{"to", static_cast<int64_t>(DType::kF32)}});
  return p.Add("Mul", {f, Channels(p, scale, spatial)});
}

Attrs WindowOf(const Node& n) {
  Attrs attrs;
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})
    if (auto it = n.attrs.find(name); it != n.attrs.end()) attrs[name] = it->second;
  return attrs;
}

const Node& Root(const Match& m) { return m.node(0); }

// Why the dot is faster in floats; "" if it is not.
std::string WhyFloats(const Match& m, size_t node = 0) {
  const bool asked = m.policy != nullptr && m.policy->floats_pay;
  return asked ? m.policy->floats_pay(m.g, m.node(node)) : "";
}

std::string DotGuard(const Match& m) {
  auto b = m.values.find("b");
  if (b != m.values.end() && b->second != kNone && !m.g.IsConstant(b->second))
    return "the bias is not constant";
  const std::string fault = Fault(m.g, Root(m));
  return fault.empty() ? WhyFloats(m) : fault;
}

ValueId QuantisedConv(const Match& m, Patch& p) {
  const Graph& g = m.g;
  Quantised x, w;
  AsQuantised(g, m["x"], &x);
  AsQuantised(g, m["w"], &w);
  const int spatial = g.value(x.q).type.rank() - 2;
  const int64_t columns = g.ConstantOf(w.q)->dims[0];
  std::vector<double> bias;
  if (m["b"] != kNone) bias = *Numbers(m.constant("b"));
  const ValueId sum = p.Add("ConvInteger", {x.q, w.q, x.zero, w.zero}, WindowOf(Root(m)));
  ValueId y = Scaled(m, p, sum, x.scale, w.scale, columns, spatial);
  return bias.empty() ? y : p.Add("Add", {y, Channels(p, bias, spatial)});
}

ValueId QuantisedMatMul(const Match& m, Patch& p) {
  const Graph& g = m.g;
  Quantised x, w;
  AsQuantised(g, m["x"], &x);
  AsQuantised(g, m["w"], &w);
  const int axis = ColumnAxis(Root(m));
  const int64_t columns = g.ConstantOf(w.q)->dims[static_cast<size_t>(axis)];
  ValueId matrix = w.q;
  if (axis == 0) matrix = p.Add("Transpose", {w.q}, {{"perm", std::vector<int64_t>{1, 0}}});
  const ValueId sum = p.Add("MatMulInteger", {x.q, matrix, x.zero, w.zero});
  const ValueId y = Scaled(m, p, sum, x.scale, w.scale, columns, 0);
  auto bias = m.values.find("b");
  return bias == m.values.end() || bias->second == kNone ? y : p.Add("Add", {y, bias->second});
}

// --- QLinearConv, QLinearMatMul
// -------------------------------------------------------------------

bool AllOne(const Match& m, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (m.constant(name).Elements() != 1) return false;
  return true;
}

std::string QLinearFault(const Match& m) {
  if (!AllOne(m, {"sx", "zx", "sy", "zy"})) return "a scale of the data is not one number";
  const Constant &w = m.constant("w"), &sw = m.constant("sw"), &zw = m.constant("zw");
  const bool conv = Root(m).op->name == "QLinearConv";
  if (!IsByte(m.type("x").dtype) || !IsByte(w.dtype)) return "not bytes";
  if (w.Elements() == 0 || sw.dims.size() > 1 || zw.dims.size() > 1) return "odd weights";
  const int64_t groups = AttrOr<int64_t>(Root(m), "group", 1);
  if (conv && groups != 1 && (groups != w.dims[0] || w.dims[1] != 1))
    return "several groups of more than one channel";
  if (!conv && w.dims.size() != 2) return "a batch of weights";
  const int64_t columns = w.dims[conv ? 0 : 1];
  for (const Constant* c : {&sw, &zw})
    if (c->Elements() != 1 && c->Elements() != columns) return "odd scales";
  return "";
}

std::string QLinearGuard(const Match& m) {
  const std::string fault = QLinearFault(m);
  return fault.empty() ? WhyFloats(m) : fault;
}

// Several groups have no kernels of bytes, and some dots are faster in floats.
std::string QLinearFloatsGuard(const Match& m) {
  if (!AllOne(m, {"sx", "zx", "sy", "zy"})) return "a scale of the data is not one number";
  const Constant &w = m.constant("w"), &sw = m.constant("sw"), &zw = m.constant("zw");
  const bool conv = Root(m).op->name == "QLinearConv";
  if (!IsByte(m.type("x").dtype) || !IsByte(w.dtype) || m.type("sw").dtype != DType::kF32)
    return "not bytes of f32";
  if (w.Elements() == 0 || sw.dims.size() > 1 || zw.dims.size() > 1) return "odd weights";
  if (!conv && w.dims.size() != 2) return "a batch of weights";
  const int64_t columns = w.dims[conv ? 0 : 1];
  for (const Constant* c : {&sw, &zw})
    if (c->Elements() != 1 && c->Elements() != columns) return "odd scales";
  const bool groups = conv && AttrOr<int64_t>(Root(m), "group", 1) != 1;
  return groups || !WhyFloats(m).empty() ? "" : "bytes are faster";
}

ValueId InFloatsOfQLinear(const Match& m, Patch& p) {
  const bool conv = Root(m).op->name == "QLinearConv";
  const Constant& w = m.constant("w");
  const auto columns = static_cast<size_t>(w.dims[conv ? 0 : 1]);
  const std::vector<double> scale = Spread(m.constant("sw"), columns),
                            zero = Spread(m.constant("zw"), columns);
  const size_t inner = conv ? static_cast<size_t>(w.Elements()) / columns : 1;
  std::vector<double> weights = *Numbers(w);
  for (size_t i = 0; i < weights.size(); ++i) {
    const size_t column = i / inner % columns;
    weights[i] = (weights[i] - zero[column]) * scale[column];
  }
  const Attrs window = WindowOf(Root(m));
  const bool has_bias = conv && m["b"] != kNone;
  std::vector<double> bias = has_bias ? *Numbers(m.constant("b")) : std::vector<double>{};
  const double sx = (*Numbers(m.constant("sx")))[0];
  for (size_t i = 0; i < bias.size(); ++i) bias[i] *= sx * scale[i];
  const std::vector<int64_t> dims = w.dims;
  std::vector<ValueId> operands = {p.Add("DequantizeLinear", {m["x"], m["sx"], m["zx"]}),
                                   p.Const(FromNumbers(DType::kF32, dims, weights))};
  if (has_bias)
    operands.push_back(p.Const(FromNumbers(DType::kF32, {static_cast<int64_t>(columns)}, bias)));
  const ValueId y = conv ? p.Add("Conv", operands, window) : p.Add("MatMul", operands);
  return p.Add("QuantizeLinear", {y, m["sy"], m["zy"]});
}

// --- MatMulInteger in floats

std::string IntegerFloatsGuard(const Match& m) {
  const Constant& w = m.constant("w");
  if (m.g.value(Root(m).outputs[0]).type.dtype != DType::kF32) return "not to f32";
  if (!IsByte(m.type("x").dtype) || !IsByte(w.dtype) || w.Elements() == 0) return "not bytes";
  if (w.dims.size() != 2) return "a batch of weights";
  if (m["zx"] != kNone && !m.type("zx").Elements().IsConst(1)) return "zero points of rows";
  if (m["zw"] != kNone && m.constant("zw").Elements() != 1 &&
      (m.constant("zw").dims.size() != 1 || m.constant("zw").Elements() != w.dims[1]))
    return "odd zero points";
  // Of a depth below four bytes no group is full.
  return w.dims[0] < 4 || !WhyFloats(m, 1).empty() ? "" : "bytes are faster";
}

ValueId IntegerInFloats(const Match& m, Patch& p) {
  const Constant& w = m.constant("w");
  const auto columns = static_cast<size_t>(w.dims[1]);
  std::vector<double> weights = *Numbers(w);
  if (m["zw"] != kNone) {
    const std::vector<double> zero = Spread(m.constant("zw"), columns);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= zero[i % columns];
  }
  const std::vector<int64_t> dims = w.dims;
  const Attrs to = {{"to", static_cast<int64_t>(DType::kF32)}};
  ValueId x = p.Add("Cast", {m["x"]}, to);
  if (m["zx"] != kNone) x = p.Add("Sub", {x, p.Add("Cast", {m["zx"]}, to)});
  return p.Add("MatMul", {x, p.Const(FromNumbers(DType::kF32, dims, weights))});
}

ValueId Requantised(const Match& m, Patch& p, ValueId y) {
  return p.Add("QuantizeLinear", {y, m["sy"], m["zy"]});
}

ValueId FromQLinearConv(const Match& m, Patch& p) {
  const int spatial = m.type("x").rank() - 2;
  const int64_t columns = m.constant("w").dims[0];
  ValueId sum = p.Add("ConvInteger", {m["x"], m["w"], m["zx"], m["zw"]}, WindowOf(Root(m)));
  if (m["b"] != kNone) {
    Constant bias = m.constant("b");
    bias.dims.resize(static_cast<size_t>(spatial) + 1, 1);
    sum = p.Add("Add", {sum, p.Const(std::move(bias))});
  }
  return Requantised(m, p, Scaled(m, p, sum, m["sx"], m["sw"], columns, spatial));
}

ValueId FromQLinearMatMul(const Match& m, Patch& p) {
  const ValueId sum = p.Add("MatMulInteger", {m["x"], m["w"], m["zx"], m["zw"]});
  return Requantised(m, p, Scaled(m, p, sum, m["sx"], m["sw"], m.constant("w").dims[1], 0));
}

// --- MaxPool of bytes
// -----------------------------------------------------------------------------

std::string PoolGuard(const Match& m) {
  if (!AllOne(m, {"s", "z", "s2", "z2"})) return "scales of channels";
  if (m.constant("z").dtype != m.constant("z2").dtype || !IsByte(m.type("x").dtype))
    return "not the same bytes";
  const double s = (*Numbers(m.constant("s")))[0];
  if (*Numbers(m.constant("s2")) != *Numbers(m.constant("s")) ||
      *Numbers(m.constant("z2")) != *Numbers(m.constant("z")) || !(s > 0) || !std::isnormal(s))
    return "another scale or zero point";
  for (NodeId n : m.nodes)
    if (m.g.node(n).op->name == "MaxPool" && m.g.node(n).outputs.size() != 1) return "indices";
  return "";
}

ValueId BytePool(const Match& m, Patch& p) {
  for (NodeId n : m.nodes)
    if (m.g.node(n).op->name == "MaxPool") {
      const std::map<std::string, Attr, std::less<>> attrs = m.g.node(n).attrs;
      return p.Add("MaxPool", {m["x"]}, attrs);
    }
  return kNone;
}

// --- Views of what was dequantised
// -----------------------------------------------------------------------------

std::string ViewGuard(const Match& m) {
  if (!IsOne(m.g, m["s"]) || (m["z"] != kNone && !IsOne(m.g, m["z"]))) return "scales of channels";
  return IsByte(m.type("x").dtype) ? "" : "no bytes";
}

// The conversion after the view, where a dot finds it.
ValueId DequantisedView(const Match& m, Patch& p) {
  const auto named = [&](std::string_view name) -> const Node& {
    for (NodeId n : m.nodes)
      if (m.g.node(n).op->name == name) return m.g.node(n);
    return m.node(0);
  };
  const Node &dequantise = named("DequantizeLinear"), &view = Root(m);
  std::vector<ValueId> operands = view.inputs;
  operands[0] = m["x"];
  const std::map<std::string, Attr, std::less<>> of_view = view.attrs, attrs = dequantise.attrs;
  const std::string op(view.op->name);
  std::vector<ValueId> scales = {p.Add(op, operands, of_view), m["s"]};
  if (m["z"] != kNone) scales.push_back(m["z"]);
  return p.Add("DequantizeLinear", scales, attrs);
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "flatten_of_dequantised",
     .pattern = "Flatten(+DequantizeLinear(x, #s, #z?))",
     .guard = ViewGuard,
     .replace = DequantisedView,
     .samples = {R"(graph "g" (%x: u8[2,3,1,1]) -> (%y) {
  %s = const f32[] {0.25}
  %z = const u8[] {3}
  %f: f32[2,3,1,1] = DequantizeLinear(%x, %s, %z) @"f"
  %y: f32[2,3] = Flatten(%f) @"y"
})"}},
    {.name = "reshape_of_dequantised",
     .pattern = "Reshape(+DequantizeLinear(x, #s, #z?), #shape)",
     .guard = ViewGuard,
     .replace = DequantisedView,
     .samples = {R"(graph "g" (%x: i8[2,3,2]) -> (%y) {
  %s = const f32[] {0.5}
  %shape = const i64[2] {2, 6}
  %f: f32[2,3,2] = DequantizeLinear(%x, %s) @"f"
  %y: f32[2,6] = Reshape(%f, %shape) @"y"
})"}},
    {.name = "quantised_conv",
     .pattern = "Conv(+x=DequantizeLinear(xq, #sx, #zx?), "
                "+w=DequantizeLinear(#wq, #sw, #zw?), b?)",
     .guard = DotGuard,
     .replace = QuantisedConv,
     .exact = false,
     .samples =
         {R"(graph "g" (%x: u8[1,4,5,5], %c_w: i8[6,4,3,3], %c_s_v: f32[6], %c_b: f32[6]) -> (%y) {
  %s = const f32[] {0.25}
  %z = const u8[] {3}
  %f: f32[1,4,5,5] = DequantizeLinear(%x, %s, %z) @"f"
  %v: f32[6,4,3,3] = DequantizeLinear(%c_w, %c_s_v) {axis=0} @"v"
  %y: f32[1,6,5,5] = Conv(%f, %v, %c_b) {pads=[1,1,1,1]} @"y"
})",
          R"(graph "g" (%x: i8[1,2,7], %c_w: u8[3,2,3], %c_z: u8[3]) -> (%y) {
  %s = const f32[] {0.5}
  %z = const i8[] {-2}
  %sw = const f32[3] {0.5, 1, 0.25}
  %f: f32[1,2,7] = DequantizeLinear(%x, %s, %z) @"f"
  %v: f32[3,2,3] = DequantizeLinear(%c_w, %sw, %c_z) {axis=0} @"v"
  %y: f32[1,3,3] = Conv(%f, %v) {strides=[2]} @"y"
})"}},
    {.name = "quantised_matmul",
     .pattern = "MatMul(+x=DequantizeLinear(xq, #sx, #zx?), "
                "+w=DequantizeLinear(#wq, #sw, #zw?))",
     .guard = DotGuard,
     .replace = QuantisedMatMul,
     .exact = false,
     .samples = {R"(graph "g" (%x: i8[2,3,5], %c_w: i8[5,4], %c_s_v: f32[4]) -> (%y) {
  %s = const f32[] {0.25}
  %z = const i8[] {1}
  %f: f32[2,3,5] = DequantizeLinear(%x, %s, %z) @"f"
  %v: f32[5,4] = DequantizeLinear(%c_w, %c_s_v) {axis=-1} @"v"
  %y: f32[2,3,4] = MatMul(%f, %v) @"y"
})"}},
    {.name = "quantised_gemm",
     .pattern = "Gemm(+x=DequantizeLinear(xq, #sx, #zx?), "
                "+w=DequantizeLinear(#wq, #sw, #zw?), b?)",
     .guard = DotGuard,
     .replace = QuantisedMatMul,
     .exact = false,
     .samples = {R"(graph "g" (%x: u8[3,5], %c_w: i8[4,5], %c_s_v: f32[4], %c_b: f32[4]) -> (%y) {
  %s = const f32[] {0.25}
  %z = const u8[] {2}
  %f: f32[3,5] = DequantizeLinear(%x, %s, %z) @"f"
  %v: f32[4,5] = DequantizeLinear(%c_w, %c_s_v) {axis=0} @"v"
  %y: f32[3,4] = Gemm(%f, %v, %c_b) {transB=1} @"y"
})"}},
    {.name = "qlinear_conv",
     .pattern = "QLinearConv(x, #sx, #zx, #w, #sw, #zw, #sy, #zy, #b?)",
     .guard = QLinearGuard,
     .replace = FromQLinearConv,
     .exact = false,
     .samples =
         {R"(graph "g" (%x: u8[1,4,5,5], %c_w: i8[3,4,3,3], %c_zw: i8[3], %c_b: i32[3]) -> (%y) {
  %sx = const f32[] {0.5}
  %zx = const u8[] {3}
  %sw = const f32[3] {0.25, 0.5, 1}
  %sy = const f32[] {2}
  %zy = const u8[] {100}
  %y: u8[1,3,5,5] = QLinearConv(%x, %sx, %zx, %c_w, %sw, %c_zw, %sy, %zy, %c_b) {pads=[1,1,1,1]} @"y"
})",
          R"(graph "g" (%x: u8[1,3,5,5], %c_w: u8[3,1,3,3], %c_zw: u8[]) -> (%y) {
  %sx = const f32[] {0.5}
  %zx = const u8[] {3}
  %sw = const f32[] {0.25}
  %sy = const f32[] {2}
  %zy = const u8[] {100}
  %y: u8[1,3,5,5] = QLinearConv(%x, %sx, %zx, %c_w, %sw, %c_zw, %sy, %zy) {group=3, pads=[1,1,1,1]} @"y"
})"}},
    {.name = "matmul_integer_floats",
     .pattern = "Cast(MatMulInteger(x, #w, zx?, #zw?))",
     .guard = IntegerFloatsGuard,
     .replace = IntegerInFloats,
     .exact = false,
     .samples = {R"(graph "g" (%x: u8[4,3], %z: u8[], %c_w: i8[3,5], %c_z: i8[5]) -> (%y) {
  %d: i32[4,5] = MatMulInteger(%x, %c_w, %z, %c_z) @"d"
  %y: f32[4,5] = Cast(%d) {to=1} @"y"
})"}},
    {.name = "qlinear_conv_floats",
     .pattern = "QLinearConv(x, #sx, #zx, #w, #sw, #zw, #sy, #zy, #b?)",
     .guard = QLinearFloatsGuard,
     .replace = InFloatsOfQLinear,
     .exact = false,
     .samples =
         {R"(graph "g" (%x: u8[1,4,5,5], %c_w: i8[4,1,3,3], %c_zw: i8[4], %c_b: i32[4]) -> (%y) {
  %sx = const f32[] {0.5}
  %zx = const u8[] {3}
  %sw = const f32[4] {0.25, 0.5, 1, 2}
  %sy = const f32[] {2}
  %zy = const u8[] {100}
  %y: u8[1,4,5,5] = QLinearConv(%x, %sx, %zx, %c_w, %sw, %c_zw, %sy, %zy, %c_b) {group=4, pads=[1,1,1,1]} @"y"
})"}},
    {.name = "qlinear_matmul",
     .pattern = "QLinearMatMul(x, #sx, #zx, #w, #sw, #zw, #sy, #zy)",
     .guard = QLinearGuard,
     .replace = FromQLinearMatMul,
     .exact = false,
     .samples = {R"(graph "g" (%x: i8[2,5], %c_w: i8[5,4], %c_zw: i8[]) -> (%y) {
  %sx = const f32[] {0.5}
  %zx = const i8[] {1}
  %sw = const f32[] {0.25}
  %sy = const f32[] {2}
  %zy = const i8[] {-5}
  %y: i8[2,4] = QLinearMatMul(%x, %sx, %zx, %c_w, %sw, %c_zw, %sy, %zy) @"y"
})"}},
    {.name = "max_pool_bytes",
     .pattern = "QuantizeLinear(MaxPool(+DequantizeLinear(x, #s, #z)), #s2, #z2)",
     .guard = PoolGuard,
     .replace = BytePool,
     .samples = {R"(graph "g" (%x: u8[1,2,6,6]) -> (%y) {
  %s = const f32[] {0.3}
  %z = const u8[] {3}
  %f: f32[1,2,6,6] = DequantizeLinear(%x, %s, %z) @"f"
  %p: f32[1,2,3,3] = MaxPool(%f) {kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]} @"p"
  %y: u8[1,2,3,3] = QuantizeLinear(%p, %s, %z) @"y"
})"}},
});

}  // namespace

std::string QuantisedDotFault(const Graph& g, const Node& n) {
  const std::string& name = n.op->name;
  if (!n.op->domain.empty() || (name != "Conv" && name != "MatMul" && name != "Gemm"))
    return "no dot";
  return Fault(g, n);
}

}  // namespace ge
