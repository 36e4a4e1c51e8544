// Rules that make the requantisation of an integer dot short.
//
//   QuantizeLinear(Relu?(Add?(Mul(Cast(sum), s), b)), sy, zy)
//     ->  QuantizeLinear(Relu?(Mul(Cast(Add(sum, b / s)), s / sy)), 1, zy)   if b / s are integers
//     ->  QuantizeLinear(Relu?(Add(Mul(Cast(sum), s / sy), b / sy)), 1, zy)  else
//
// Scales, bias and the division by the next scale become one product: it is rounded once where the
// longer form is rounded three times, so a result can differ by one where that form met a tie. An
// integer bias is what exporters write: DequantizeLinear of i32 by the scale of the sum.
#include <algorithm>
#include <cmath>

#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

const Node* Producer(const Graph& g, ValueId v) {
  return g.value(v).producer == kNone ? nullptr : &g.node(g.value(v).producer);
}

bool IsIntegerDot(const Node* n) {
  return n != nullptr && (n->op->name == "ConvInteger" || n->op->name == "MatMulInteger");
}

// Steps of a dot whose sum and bias together stay within i32.
constexpr int64_t kDeepest = (1 << 30) / (255 * 255);
bool IsShallow(const Graph& g, const Node& dot) {
  const std::vector<Expr>& dims = g.value(dot.inputs[1]).type.dims;
  const bool conv = dot.op->name == "ConvInteger";
  int64_t depth = 1;
  for (size_t d = conv ? 1 : 0; d + (conv ? 0 : 1) < dims.size(); ++d) {
    if (!dims[d].IsConst() || dims[d].value() > kDeepest) return false;
    depth *= std::max<int64_t>(dims[d].value(), 1);
  }
  return depth <= kDeepest;
}

double At(const std::vector<double>& v, size_t i) { return v[v.size() == 1 ? 0 : i]; }

// b / s as integers; empty if they are not. `same` as long as there is one shape for both.
std::vector<double> IntegerBias(const std::vector<double>& b, const std::vector<double>& s) {
  std::vector<double> whole(std::max(b.size(), s.size()));
  for (size_t i = 0; i < whole.size(); ++i) {
    const double q = At(b, i) / At(s, i), n = std::nearbyint(q);
    // Both scales were rounded.
    if (!(std::fabs(n) < 1 << 29) || std::fabs(q - n) > std::max(1e-3, std::fabs(n) * 0x1p-21))
      return {};
    whole[i] = n;
  }
  return whole;
}

bool HasBias(const Match& m) { return m.values.contains("b"); }

std::string Guard(const Match& m) {
  const Node& quantise = m.node(0);
  if (m.type("sum").dtype != DType::kI32 || m.type("f").dtype != DType::kF32) return "no i32 sum";
  if (!IsIntegerDot(Producer(m.g, m["sum"]))) {
    const Node* add = Producer(m.g, m["sum"]);
    if (add == nullptr || add->op->name != "Add") return "not the sum of a dot";
  }
  if (AttrOr<int64_t>(quantise, "precision", 0) != 0 ||
      AttrOr<int64_t>(quantise, "block_size", 0) != 0)
    return "a precision or blocks";
  if (m.constant("sy").Elements() != 1) return "scales of channels";
  const DType to = m.g.value(quantise.outputs[0]).type.dtype;
  if (to != DType::kU8 && to != DType::kI8) return "not to bytes";
  for (std::string_view name : {"s", "sy"}) {
    if (m.type(name).dtype != DType::kF32) return "a scale of another type";
    const std::vector<double> scales = *Numbers(m.constant(name));
    for (double s : scales)
      if (!(s > 1e-30 && s < 1e30)) return "an odd scale";
  }
  if ((*Numbers(m.constant("sy")))[0] == 1) return "the scale is one already";
  if (!HasBias(m)) return "";
  const std::vector<double> bias = *Numbers(m.constant("b"));
  return std::all_of(bias.begin(), bias.end(), [](double b) { return std::isfinite(b); })
             ? ""
             : "an odd bias";
}

ValueId Requantise(const Match& m, Patch& p) {
  const Graph& g = m.g;
  const Constant &s = m.constant("s"), &sy = m.constant("sy");
  const double next = (*Numbers(sy))[0];
  const std::vector<double> scales = *Numbers(s);
  std::vector<double> scale = scales;
  for (double& v : scale) v /= next;
  ValueId sum = m["sum"], bias = kNone;
  if (HasBias(m)) {
    const Constant& b = m.constant("b");
    std::vector<double> values = *Numbers(b);
    const bool one_shape = b.dims == s.dims || s.Elements() == 1;
    const std::vector<double> whole =
        one_shape && IsIntegerDot(Producer(g, sum)) && IsShallow(g, *Producer(g, sum))
            ? IntegerBias(values, scales)
            : std::vector<double>{};
    if (!whole.empty()) {
      sum = p.Add("Add", {sum, p.Const(FromNumbers(DType::kI32, b.dims, whole))});
    } else {
      for (double& v : values) v /= next;
      bias = p.Const(FromNumbers(DType::kF32, b.dims, values));
    }
  }
  const ValueId f = p.Add("Cast", {sum}, {{"to", static_cast<int64_t>(DType::kF32)}});
  ValueId y = p.Add("Mul", {f, p.Const(FromNumbers(DType::kF32, s.dims, scale))});
  if (bias != kNone) y = p.Add("Add", {y, bias});
  for (NodeId n : m.nodes)
    if (g.node(n).op->name == "Relu") y = p.Add("Relu", {y});
  const std::map<std::string, Attr, std::less<>> attrs = m.node(0).attrs;
  const ValueId one = p.Const(FromNumbers(DType::kF32, sy.dims, {1}));
  std::vector<ValueId> operands = {y, one};
  if (m["zy"] != kNone) operands.push_back(m["zy"]);
  return p.Add("QuantizeLinear", operands, attrs);
}

constexpr const char* kConv = R"(graph "g" (%x: u8[1,4,5,5], %c_w: i8[3,4,3,3], )"
                              R"(%c_s_v: f32[3,1,1], %c_b: f32[3,1,1]) -> (%y) {
  %sy = const f32[] {0.5}
  %zy = const u8[] {7}
  %d: i32[1,3,3,3] = ConvInteger(%x, %c_w) @"d"
  %f: f32[1,3,3,3] = Cast(%d) {to=1} @"f"
  %p: f32[1,3,3,3] = Mul(%f, %c_s_v) @"p"
  %a: f32[1,3,3,3] = Add(%p, %c_b) @"a"
  %y: u8[1,3,3,3] = QuantizeLinear(%a, %sy, %zy) @"y"
})";
constexpr const char* kConvRelu = R"(graph "g" (%x: u8[1,4,5,5], %c_w: i8[3,4,3,3], )"
                                  R"(%c_s_v: f32[3,1,1], %c_b: f32[3,1,1]) -> (%y) {
  %sy = const f32[] {0.25}
  %zy = const i8[] {-100}
  %d: i32[1,3,3,3] = ConvInteger(%x, %c_w) @"d"
  %f: f32[1,3,3,3] = Cast(%d) {to=1} @"f"
  %p: f32[1,3,3,3] = Mul(%f, %c_s_v) @"p"
  %a: f32[1,3,3,3] = Add(%p, %c_b) @"a"
  %r: f32[1,3,3,3] = Relu(%a) @"r"
  %y: i8[1,3,3,3] = QuantizeLinear(%r, %sy, %zy) @"y"
})";
constexpr const char* kIntegerBias = R"(graph "g" (%x: i8[2,3], %c_w: i8[3,4]) -> (%y) {
  %s = const f32[4] {0.5, 0.25, 1, 2}
  %b = const f32[4] {5, -3.25, 7, 0}
  %sy = const f32[] {2}
  %zy = const u8[] {30}
  %d: i32[2,4] = MatMulInteger(%x, %c_w) @"d"
  %f: f32[2,4] = Cast(%d) {to=1} @"f"
  %p: f32[2,4] = Mul(%f, %s) @"p"
  %a: f32[2,4] = Add(%p, %b) @"a"
  %y: u8[2,4] = QuantizeLinear(%a, %sy, %zy) @"y"
})";
constexpr const char* kPlain = R"(graph "g" (%x: u8[2,3], %c_w: i8[3,4], %c_s_v: f32[4]) -> (%y) {
  %sy = const f32[1] {4}
  %zy = const i8[1] {1}
  %d: i32[2,4] = MatMulInteger(%x, %c_w) @"d"
  %f: f32[2,4] = Cast(%d) {to=1} @"f"
  %p: f32[2,4] = Mul(%f, %c_s_v) @"p"
  %y: i8[2,4] = QuantizeLinear(%p, %sy, %zy) @"y"
})";
constexpr const char* kPlainRelu = R"(graph "g" (%x: u8[2,3], %c_w: i8[3,4]) -> (%y) {
  %s = const f32[] {0.5}
  %sy = const f32[] {4}
  %zy = const u8[] {0}
  %d: i32[2,4] = MatMulInteger(%x, %c_w) @"d"
  %f: f32[2,4] = Cast(%d) {to=1} @"f"
  %p: f32[2,4] = Mul(%f, %s) @"p"
  %r: f32[2,4] = Relu(%p) @"r"
  %y: u8[2,4] = QuantizeLinear(%r, %sy, %zy) @"y"
})";

Rule Of(std::string_view name, std::string_view pattern, std::vector<std::string_view> samples) {
  return {.name = name,
          .pattern = pattern,
          .guard = Guard,
          .replace = Requantise,
          .exact = false,
          .samples = std::move(samples)};
}

[[maybe_unused]] const bool kRules = RegisterRules({
    Of("requantised_bias", "QuantizeLinear(Add(Mul(f=Cast(sum), #s), #b), #sy, #zy?)",
       {kConv, kIntegerBias}),
    Of("requantised_bias_relu", "QuantizeLinear(Relu(Add(Mul(f=Cast(sum), #s), #b)), #sy, #zy?)",
       {kConvRelu}),
    Of("requantised", "QuantizeLinear(Mul(f=Cast(sum), #s), #sy, #zy?)", {kPlain}),
    Of("requantised_relu", "QuantizeLinear(Relu(Mul(f=Cast(sum), #s)), #sy, #zy?)", {kPlainRelu}),
});

}  // namespace
}  // namespace ge
