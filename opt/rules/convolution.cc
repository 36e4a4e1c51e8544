// Rules that put constants after a convolution into its weights and bias.
//
//   BatchNormalization(Conv(x, w, b), s, t, m, v)   ->  Conv(x, w * f, (b - m) * f + t)
//                                                       with f = s / sqrt(v + epsilon), per channel
//   Mul(Conv(x, w, b), c)                           ->  Conv(x, w * c, b * c)      c per channel
//   Add(Conv(x, w, b), c)                           ->  Conv(x, w, b + c)
//   Sub(Conv(x, w, b), c)                           ->  Conv(x, w, b - c)
//
// and one that drops weights:
//
//   Conv(x, w, b) with zeros at both ends of w      ->  Conv(x, w[first..last], b), pads cut
//
// The factors are computed in double and rounded once.
#include <algorithm>
#include <cmath>

#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

// y = a * scale + shift of each output channel.
struct Affine {
  std::vector<double> scale, shift;
};

// The nodes of these patterns: the root, then the convolution.
const Node& ConvOf(const Match& m) { return m.node(1); }
bool IsTransposed(const Match& m) { return ConvOf(m).op->name == "ConvTranspose"; }
// Weights are [out, in/group, window..], and [in, out/group, window..] if transposed (group 1
// here).
int64_t Channels(const Match& m) { return m.constant("w").dims[IsTransposed(m) ? 1 : 0]; }

// Values of a constant that is one number, or one per channel (axis 1 of the result).
std::optional<std::vector<double>> PerChannel(const Match& m, const Constant& c) {
  const int64_t channels = Channels(m);
  const auto values = Numbers(c);
  if (!values || values->empty()) return {};
  const size_t rank = static_cast<size_t>(m.type("").rank());
  if (c.dims.size() > rank) return {};
  for (size_t d = 0; d < c.dims.size(); ++d) {
    const size_t axis = rank - c.dims.size() + d;
    if (c.dims[d] != 1 && axis != 1) return {};
  }
  if (values->size() == 1) return std::vector<double>(static_cast<size_t>(channels), (*values)[0]);
  if (static_cast<int64_t>(values->size()) != channels) return {};
  return values;
}

bool IsComputed(DType t) { return t == DType::kF32 || t == DType::kF64 || t == DType::kF16; }

std::string ConvGuard(const Match& m) {
  if (!IsComputed(m.constant("w").dtype)) return "the weights are not f16, f32 or f64";
  if (IsTransposed(m) && AttrOr<int64_t>(ConvOf(m), "group", 1) != 1) return "it has groups";
  if (m["b"] != kNone && m.constant("b").Elements() != Channels(m)) return "the bias is odd";
  return "";
}

std::string PerChannelGuard(const Match& m) {
  if (std::string reason = ConvGuard(m); !reason.empty()) return reason;
  return PerChannel(m, m.constant("c")) ? "" : "the constant is not one number per channel";
}

std::string BatchNormGuard(const Match& m) {
  if (std::string reason = ConvGuard(m); !reason.empty()) return reason;
  if (AttrOr<int64_t>(m.node(0), "training_mode", 0) != 0) return "it is in training mode";
  for (std::string_view name : {"s", "t", "mean", "var"}) {
    if (m.constant(name).Elements() != Channels(m)) return "its parameters are odd";
  }
  const double epsilon = AttrOr<float>(m.node(0), "epsilon", 1e-5F);
  const auto var = Numbers(m.constant("var"));
  if (!var) return "its parameters are no numbers";
  for (double v : *var) {
    if (!(v + epsilon > 0)) return "a variance is not positive";
  }
  return "";
}

// A new convolution like the matched one, with its output channels transformed.
ValueId Folded(const Match& m, Patch& p, const Affine& f) {
  const Attrs attrs = ConvOf(m).attrs;
  const std::string op = ConvOf(m).op->name;
  const Constant& w = m.constant("w");
  const auto channels = static_cast<size_t>(Channels(m));
  std::vector<double> weights = *Numbers(w);
  size_t inner = 1;  // weights from one output channel to the next
  for (size_t d = IsTransposed(m) ? 2 : 1; d < w.dims.size(); ++d)
    inner *= static_cast<size_t>(w.dims[d]);
  bool scales = false;
  for (double s : f.scale) scales = scales || s != 1;
  for (size_t i = 0; i < weights.size() && scales; ++i) weights[i] *= f.scale[i / inner % channels];
  std::vector<double> bias(channels, 0);
  if (m["b"] != kNone) bias = *Numbers(m.constant("b"));
  for (size_t c = 0; c < channels; ++c) bias[c] = bias[c] * f.scale[c] + f.shift[c];
  const DType type = w.dtype;
  const ValueId new_w = scales ? p.Const(FromNumbers(type, w.dims, weights)) : m["w"];
  const ValueId new_b = p.Const(FromNumbers(type, {static_cast<int64_t>(channels)}, bias));
  return p.Add(op, {m["x"], new_w, new_b}, attrs);
}

ValueId FoldBatchNorm(const Match& m, Patch& p) {
  const double epsilon = AttrOr<float>(m.node(0), "epsilon", 1e-5F);
  const auto s = *Numbers(m.constant("s")), t = *Numbers(m.constant("t"));
  const auto mean = *Numbers(m.constant("mean")), var = *Numbers(m.constant("var"));
  Affine f;
  for (size_t c = 0; c < s.size(); ++c) {
    f.scale.push_back(s[c] / std::sqrt(var[c] + epsilon));
    f.shift.push_back(t[c] - mean[c] * f.scale.back());
  }
  return Folded(m, p, f);
}

ValueId FoldMul(const Match& m, Patch& p) {
  const auto c = *PerChannel(m, m.constant("c"));
  return Folded(m, p, {c, std::vector<double>(c.size(), 0)});
}

ValueId FoldAdd(const Match& m, Patch& p) {
  const auto c = *PerChannel(m, m.constant("c"));
  return Folded(m, p, {std::vector<double>(c.size(), 1), c});
}

ValueId FoldSub(const Match& m, Patch& p) {
  auto c = *PerChannel(m, m.constant("c"));
  for (double& v : c) v = -v;
  return Folded(m, p, {std::vector<double>(c.size(), 1), c});
}

constexpr int64_t kLongWindow = 5;  // shorter ones have forms of their own (Winograd's)

// Of the taps of each window axis: the first and the last one with a weight that is not zero.
// Axes of short windows, and windows without weights, are left whole.
std::vector<std::pair<int64_t, int64_t>> UsedTaps(const Constant& w) {
  const std::vector<double> values = *Numbers(w);
  std::vector<std::pair<int64_t, int64_t>> used;
  int64_t inner = 1;
  for (size_t d = w.dims.size(); d-- > 2;) {
    const int64_t taps = w.dims[d];
    int64_t first = taps, last = -1;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) continue;
      const int64_t tap = static_cast<int64_t>(i) / inner % taps;
      first = std::min(first, tap), last = std::max(last, tap);
    }
    if (last < first || taps <= kLongWindow) first = 0, last = taps - 1;
    used.insert(used.begin(), {first, last});
    inner *= taps;
  }
  return used;
}

std::string ZeroTapsGuard(const Match& m) {
  const Constant& w = m.constant("w");
  if (AttrOr<std::string>(m.node(0), "auto_pad", "NOTSET") != "NOTSET")
    return "its pads are not numbers";
  if (std::all_of(w.dims.begin() + 2, w.dims.end(), [](int64_t d) { return d <= kLongWindow; }))
    return "its window is short";
  if (!IsComputed(w.dtype)) return "the weights are not f16, f32 or f64";
  const auto used = UsedTaps(w);
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i].second - used[i].first + 1 < w.dims[2 + i]) return "";
  return "no end of its window is zero";
}

ValueId DropZeroTaps(const Match& m, Patch& p) {
  Attrs attrs = m.node(0).attrs;
  const Constant& w = m.constant("w");
  const std::vector<double> values = *Numbers(w);
  const auto used = UsedTaps(w);
  const size_t axes = used.size();
  auto pads = AttrOr<std::vector<int64_t>>(m.node(0), "pads", std::vector<int64_t>(2 * axes, 0));
  auto dilations =
      AttrOr<std::vector<int64_t>>(m.node(0), "dilations", std::vector<int64_t>(axes, 1));
  std::vector<int64_t> dims = w.dims;
  for (size_t i = 0; i < axes; ++i) {
    pads[i] -= used[i].first * dilations[i];
    pads[axes + i] -= (w.dims[2 + i] - 1 - used[i].second) * dilations[i];
    dims[2 + i] = used[i].second - used[i].first + 1;
  }
  std::vector<double> kept;
  for (size_t i = 0; i < values.size(); ++i) {
    bool inside = true;
    auto rest = static_cast<int64_t>(i);
    for (size_t d = axes; d-- > 0; rest /= w.dims[2 + d]) {
      const int64_t tap = rest % w.dims[2 + d];
      inside = inside && tap >= used[d].first && tap <= used[d].second;
    }
    if (inside) kept.push_back(values[i]);
  }
  attrs["pads"] = pads;
  attrs["kernel_shape"] = std::vector<int64_t>(dims.begin() + 2, dims.end());
  std::vector<ValueId> inputs = {m["x"], p.Const(FromNumbers(w.dtype, dims, kept))};
  if (m["b"] != kNone) inputs.push_back(m["b"]);
  return p.Add("Conv", inputs, attrs);
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "conv_batch_norm",
     .pattern = "BatchNormalization(Conv(x, #w, #b?), #s, #t, #mean, #var)",
     .guard = BatchNormGuard,
     .replace = FoldBatchNorm,
     .exact = false,
     .samples =
         {R"(graph "g" (%x: f32[1,3,5,5], %c_w: f32[4,3,3,3], %c_s: f32[4], %c_t: f32[4], %c_m: f32[4], %c_v: f32[4]) -> (%y) {
  %i: f32[1,4,5,5] = Conv(%x, %c_w) {pads=[1, 1, 1, 1]} @"i"
  %y: f32[1,4,5,5] = BatchNormalization(%i, %c_s, %c_t, %c_m, %c_v) {epsilon=0.5} @"y"
})",
          R"(graph "g" (%x: f32[2,4,6], %c_w: f32[4,2,3], %c_b: f32[4], %c_s: f32[4], %c_t: f32[4], %c_m: f32[4], %c_v: f32[4]) -> (%y) {
  %i: f32[2,4,4] = Conv(%x, %c_w, %c_b) {group=2} @"i"
  %y: f32[2,4,4] = BatchNormalization(%i, %c_s, %c_t, %c_m, %c_v) @"y"
})"}},
    {.name = "conv_transpose_batch_norm",
     .pattern = "BatchNormalization(ConvTranspose(x, #w, #b?), #s, #t, #mean, #var)",
     .guard = BatchNormGuard,
     .replace = FoldBatchNorm,
     .exact = false,
     .samples =
         {R"(graph "g" (%x: f32[1,3,4,4], %c_w: f32[3,5,2,2], %c_b: f32[5], %c_s: f32[5], %c_t: f32[5], %c_m: f32[5], %c_v: f32[5]) -> (%y) {
  %i: f32[1,5,8,8] = ConvTranspose(%x, %c_w, %c_b) {strides=[2, 2]} @"i"
  %y: f32[1,5,8,8] = BatchNormalization(%i, %c_s, %c_t, %c_m, %c_v) {epsilon=0.5} @"y"
})"}},
    {.name = "conv_transpose_add",
     .pattern = "Add(ConvTranspose(x, #w, #b?), #c)",
     .guard = PerChannelGuard,
     .replace = FoldAdd,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[1,3,4,4], %c_w: f32[3,2,2,2], %c_c: f32[1,2,1,1]) -> (%y) {
  %i: f32[1,2,5,5] = ConvTranspose(%x, %c_w) @"i"
  %y: f32[1,2,5,5] = Add(%i, %c_c) @"y"
})"}},
    {.name = "conv_mul",
     .pattern = "Mul(Conv(x, #w, #b?), #c)",
     .guard = PerChannelGuard,
     .replace = FoldMul,
     .exact = false,
     .samples =
         {R"(graph "g" (%x: f32[1,3,5,5], %c_w: f32[4,3,3,3], %c_b: f32[4], %c_c: f32[4,1,1]) -> (%y) {
  %i: f32[1,4,3,3] = Conv(%x, %c_w, %c_b) @"i"
  %y: f32[1,4,3,3] = Mul(%i, %c_c) @"y"
})",
          R"(graph "g" (%x: f32[1,3,5,5], %c_w: f32[4,3,3,3], %c_c: f32[]) -> (%y) {
  %i: f32[1,4,3,3] = Conv(%x, %c_w) @"i"
  %y: f32[1,4,3,3] = Mul(%c_c, %i) @"y"
})"}},
    {.name = "conv_add",
     .pattern = "Add(Conv(x, #w, #b?), #c)",
     .guard = PerChannelGuard,
     .replace = FoldAdd,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[1,3,5,5], %c_w: f32[4,3,3,3], %c_c: f32[1,4,1,1]) -> (%y) {
  %i: f32[1,4,3,3] = Conv(%x, %c_w) @"i"
  %y: f32[1,4,3,3] = Add(%i, %c_c) @"y"
})"}},
    {.name = "conv_sub",
     .pattern = "Sub(Conv(x, #w, #b?), #c)",
     .guard = PerChannelGuard,
     .replace = FoldSub,
     .exact = false,
     .samples =
         {R"(graph "g" (%x: f32[1,3,5,5], %c_w: f32[4,3,3,3], %c_b: f32[4], %c_c: f32[4,1,1]) -> (%y) {
  %i: f32[1,4,3,3] = Conv(%x, %c_w, %c_b) @"i"
  %y: f32[1,4,3,3] = Sub(%i, %c_c) @"y"
})"}},
    {.name = "conv_zero_taps",
     .pattern = "Conv(x, #w, #b?)",
     .guard = ZeroTapsGuard,
     .replace = DropZeroTaps,
     .exact = false,
     .samples = {R"(graph "g" (%x: f32[1,1,20]) -> (%y) {
  %w = const f32[2,1,7] {0, 0, 1, -2, 3, 0, 0, 0, 0, 0, 0, 5, 2, 0}
  %y: f32[1,2,5] = Conv(%x, %w) {strides=[3]} @"y"
})",
                 R"(graph "g" (%x: f32[2,1,3,9], %c_b: f32[1]) -> (%y) {
  %w = const f32[1,1,2,6] {0, 0, 0, 3, -1, 0, 0, 0, 4, 3, -1, 0}
  %y: f32[2,1,2,4] = Conv(%x, %w, %c_b) {dilations=[2, 1], pads=[1, 0, 0, 0]} @"y"
})"}},
});

}  // namespace
}  // namespace ge
