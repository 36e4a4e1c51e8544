// Depthwise convolutions of bytes are computed in f32: their sums are exact there, and one product
// for each byte of input leaves dots of bytes nothing to gain.
//
//   ConvInteger(x, w, zx, zw), one channel a group  ->  Cast(Conv(Cast(x) - zx, w - zw))
//
// The product of two differences of bytes is below 2^16, so f32 holds the sum of up to 256 exactly.
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

constexpr int64_t kMostTaps = 256;

std::string Guard(const Match& m) {
  const Constant& w = m.constant("w");
  const ValueId zx = m["zx"], zw = m["zw"];
  const TensorType& x = m.type("x");
  if (x.rank() < 3 || w.dims[1] != 1) return "several channels a group";
  if (!x.dims[1].IsConst(w.dims[0]) || AttrOr<int64_t>(m.node(0), "group", 1) != w.dims[0])
    return "not as many outputs as groups";
  if (w.Elements() == 0 || w.Elements() / w.dims[0] > kMostTaps) return "a window beyond 256";
  if (zx != kNone && !m.type("zx").Elements().IsConst(1)) return "several zero points of the input";
  if (zw == kNone) return "";
  const Constant& zeros = m.constant("zw");
  if (zeros.Elements() != 1 && zeros.dims != std::vector<int64_t>{w.dims[0]})
    return "odd zero points of the weights";
  return "";
}

ValueId InFloats(const Match& m, Patch& p) {
  const Constant& w = m.constant("w");
  std::vector<double> values = *Numbers(w);
  if (m["zw"] != kNone) {
    const std::vector<double> zeros = *Numbers(m.constant("zw"));
    const size_t taps = values.size() / static_cast<size_t>(w.dims[0]);
    for (size_t i = 0; i < values.size(); ++i) values[i] -= zeros[zeros.size() == 1 ? 0 : i / taps];
  }
  const std::map<std::string, Attr, std::less<>> window = m.node(0).attrs;
  const std::vector<int64_t> one(static_cast<size_t>(m.type("x").rank()), 1);
  const auto cast = [&](ValueId v, DType to) {
    return p.Add("Cast", {v}, {{"to", static_cast<int64_t>(to)}});
  };
  ValueId x = cast(m["x"], DType::kF32);
  if (m["zx"] != kNone) {
    const ValueId shape = p.Const(FromNumbers(DType::kI64, {static_cast<int64_t>(one.size())},
                                              std::vector<double>(one.begin(), one.end())));
    x = p.Add("Sub", {x, p.Add("Reshape", {cast(m["zx"], DType::kF32), shape})});
  }
  const ValueId sum = p.Add("Conv", {x, p.Const(FromNumbers(DType::kF32, w.dims, values))}, window);
  return cast(sum, DType::kI32);
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "integer_depthwise",
     .pattern = "ConvInteger(x, #w, zx?, #zw?)",
     .guard = Guard,
     .replace = InFloats,
     .samples = {R"(graph "g" (%x: u8[1,4,5,5], %z: u8[1], %c_w: u8[4,1,3,3]) -> (%y) {
  %zw = const u8[] {3}
  %y: i32[1,4,3,3] = ConvInteger(%x, %c_w, %z, %zw) {group=4, pads=[1,1,1,1], strides=[2,2]} @"y"
})",
                 R"(graph "g" (%x: i8[2,3,7], %c_w: i8[3,1,5]) -> (%y) {
  %zw = const i8[3] {3, -4, 5}
  %y: i32[2,3,3] = ConvInteger(%x, %c_w, _, %zw) {group=3} @"y"
})",
                 R"(graph "g" (%x: u8[1,2,5,5], %c_w: i8[2,1,2,3]) -> (%y) {
  %z = const u8[] {128}
  %y: i32[1,2,5,5] = ConvInteger(%x, %c_w, %z) {group=2, pads=[1,1,0,1]} @"y"
})"}},
});

}  // namespace
}  // namespace ge
