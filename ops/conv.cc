// Conv           Y[n, m, o..] = B[m] + sum_{c, k..} X[n, g*C/G + c, o*s + k*d - p ..] * W[m, c,
// k..] ConvTranspose  Y[n, m, o..] = B[m] + sum_{c, k..} X[n, g*C/G + c, i..] * W[g*C/G + c, m',
// k..]
//                over the k with i*s = o + p - k*d for a whole i
// with g the group of channel m, m' its place there. Outside X there are zeros.
#include <fmt/format.h>

#include "base/check.h"
#include "ir/opdef.h"
#include "ops/conv_dense.h"
#include "ops/conv_depth.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::Val;

Status CheckConvRanks(InferContext& c) {
  const auto &x = c.In(0), &w = c.In(1);
  if (x.rank() < 3)
    return c.Fault(fmt::format("X has rank {}, but at least 3 is needed", x.rank()));
  if (w.rank() != x.rank())
    return c.Fault(fmt::format("W has rank {}, but X has rank {}", w.rank(), x.rank()));
  if (c.Int("group", 1) < 1)
    return c.Fault(fmt::format("group is {}, but must be at least 1", c.Int("group", 1)));
  if (c.Has(2) && c.In(2).rank() != 1)
    return c.Fault(fmt::format("B has rank {}, but must have rank 1", c.In(2).rank()));
  const auto kernel = c.Ints("kernel_shape");
  if (!kernel.empty() && static_cast<int>(kernel.size()) != x.rank() - 2)
    return c.Fault(
        fmt::format("kernel_shape has {} values for {} spatial axes", kernel.size(), x.rank() - 2));
  for (size_t i = 0; i < kernel.size(); ++i)
    c.Check(Eq(w.dims[2 + i], kernel[i]),
            fmt::format("kernel_shape[{}] is {}, but W is {}", i, kernel[i], ShapeText(w.dims)));
  return {};
}

Status InferConv(InferContext& c) {
  GE_TRY(CheckConvRanks(c));
  const auto &x = c.In(0).dims, &w = c.In(1).dims;
  const int64_t group = c.Int("group", 1);
  c.Check(Eq(x[1], w[1] * group),
          fmt::format("X {} has {} channels, but W {} with group {} takes {}", ShapeText(x),
                      ToString(x[1]), ShapeText(w), group, ToString(w[1] * group)));
  c.Check(Eq(Mod(w[0], group), 0),
          fmt::format("{} output channels are not divisible by group {}", ToString(w[0]), group));
  if (c.Has(2))
    c.Check(Eq(c.In(2).dims[0], w[0]),
            fmt::format("B {} does not have one value per output channel ({})",
                        ShapeText(c.In(2).dims), ToString(w[0])));
  GE_ASSIGN(const Window win, ForwardWindow(c.node, Tail(x, 2), Tail(w, 2)));
  std::vector<Expr> out = {x[0], w[0]};
  out.insert(out.end(), win.out.begin(), win.out.end());
  // ge.Conv sums and yields f32, whatever the type of X and W.
  c.Out(0, c.node.op->domain == "ge" ? DType::kF32 : c.In(0).dtype, out);
  return {};
}

void LowerConv(Lowering& l) {
  const auto &x = l.In(0).dims, &w = l.In(1).dims;
  auto window = ForwardWindow(l.node, Tail(x, 2), Tail(w, 2));
  GE_CHECK(window.ok());
  const Window& win = *window;
  const Expr per_group = FloorDiv(w[0], l.Int("group", 1));
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    const Val zero = l.b.Const(ComputeType(l.In(0).dtype), 0);
    Val sum = l.b.Reduce(tile::ReduceOp::kSum, Tail(w, 1), [&](const std::vector<Expr>& k) {
      Index xi = {o[0], FloorDiv(o[1], per_group) * w[1] + k[0]}, wi = {o[1], k[0]};
      for (int i = 0; i < win.rank(); ++i) {
        xi.push_back(win.At(i, o[2 + i], k[1 + i]));
        wi.push_back(k[1 + i]);
      }
      return l.LoadOr(0, xi, zero) * l.Load(1, wi);
    });
    if (l.Has(2)) sum = sum + l.Load(2, {o[1]});
    l.Yield(0, o, sum);
  });
}

const OpDef& kConv =
    Register({.name = "Conv",
              .min_inputs = 2,
              .max_inputs = 3,
              .infer = InferConv,
              .lower = LowerConv,
              .expand = ExpandConvOfVolumes,
              .halves = Halves::kWiden,
              .flops_per_element = 2,
              .samples = {"(f32[2,3,6,7], f32[4,3,3,3], f32[4]) {pads=[1,1,1,1], strides=[2,1]}",
                          "(f32[1,4,9], f32[6,2,3]) {group=2, dilations=[2]}",
                          "(f32[1,2,4,5,3], f32[3,2,2,3,1]) {auto_pad=\"SAME_UPPER\"}",
                          "(f32[2,4,7,5,6], f32[6,2,3,3,3], f32[6]) {group=2, strides=[2,1,2], "
                          "dilations=[2,1,1], pads=[2,1,1,1,1,1]}",
                          "(f32[1,4,5,5], f32[4,1,3,3]) {group=4, auto_pad=\"SAME_LOWER\"}"},
              .tolerance = 1e-4});

[[maybe_unused]] const OpDef& kWideConv =
    Register({.name = "Conv",
              .domain = "ge",
              .min_inputs = 2,
              .max_inputs = 3,
              .infer = InferConv,
              .lower = LowerConv,
              .flops_per_element = 2,
              .samples = {"(bf16[2,3,6,7], bf16[4,3,3,3], f32[4]) {pads=[1,1,1,1], strides=[2,1]}"},
              .tolerance = 1e-4});

Status InferConvTranspose(InferContext& c) {
  GE_TRY(CheckConvRanks(c));
  const auto &x = c.In(0).dims, &w = c.In(1).dims;
  const int64_t group = c.Int("group", 1);
  c.Check(Eq(x[1], w[0]),
          fmt::format("X {} and W {} differ in input channels", ShapeText(x), ShapeText(w)));
  c.Check(Eq(Mod(w[0], group), 0),
          fmt::format("{} input channels are not divisible by group {}", ToString(w[0]), group));
  if (c.Has(2))
    c.Check(
        Eq(c.In(2).dims[0], w[1] * group),
        fmt::format("B {} does not have one value per output channel", ShapeText(c.In(2).dims)));
  GE_ASSIGN(const Window win, TransposedWindow(c.node, Tail(x, 2), Tail(w, 2)));
  std::vector<Expr> out = {x[0], w[1] * group};
  out.insert(out.end(), win.out.begin(), win.out.end());
  c.Out(0, c.In(0).dtype, out);
  return {};
}

// One axis of the transposed sum: `steps` terms; term j multiplies input `x` and weight `k`.
struct TransposedTerm {
  Expr x, k;
  Expr exact;  // 0: no whole input position
};

Expr TransposedSteps(const Window& w, int i) {
  return w.dilation[i] == 1 ? CeilDiv(w.kernel[i], w.stride[i]) : w.kernel[i];
}

TransposedTerm TermOf(const Window& w, int i, Expr o, Expr j) {
  const Expr at = o + w.pad_lo[i];
  const int64_t s = w.stride[i];
  // Without dilation only every s-th weight meets an input: visit those alone.
  if (w.dilation[i] == 1) return {FloorDiv(at, s) - j, Mod(at, s) + j * s, 1};
  const Expr from = at - j * w.dilation[i];
  return {FloorDiv(from, s), j, Eq(Mod(from, s), 0)};
}

void LowerConvTranspose(Lowering& l) {
  const auto &x = l.In(0).dims, &w = l.In(1).dims;
  auto window = TransposedWindow(l.node, Tail(x, 2), Tail(w, 2));
  GE_CHECK(window.ok());
  const Window& win = *window;
  const Expr in_group = FloorDiv(w[0], l.Int("group", 1));
  std::vector<Expr> axes = {in_group};
  for (int i = 0; i < win.rank(); ++i) axes.push_back(TransposedSteps(win, i));
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    const Val zero = l.b.Const(ComputeType(l.In(0).dtype), 0);
    Val sum = l.b.Reduce(tile::ReduceOp::kSum, axes, [&](const std::vector<Expr>& j) {
      const Expr channel = FloorDiv(o[1], w[1]) * in_group + j[0];
      Index xi = {o[0], channel}, wi = {channel, Mod(o[1], w[1])};
      Expr exact = 1;
      for (int i = 0; i < win.rank(); ++i) {
        const TransposedTerm t = TermOf(win, i, o[2 + i], j[1 + i]);
        xi.push_back(t.x);
        wi.push_back(t.k);
        exact = And(exact, t.exact);
      }
      const Val term = l.LoadOr(0, xi, zero) * l.LoadOr(1, wi, zero);
      if (exact.IsConst(1)) return term;
      return l.b.Select(l.b.Cast(l.b.Index(exact), DType::kBool), term, zero);
    });
    if (l.Has(2)) sum = sum + l.Load(2, {o[1]});
    l.Yield(0, o, sum);
  });
}

bool ExpandConvTranspose(Graph& g, NodeId n) {
  return ExpandConvTransposeOfVolumes(g, n) || ExpandConvTransposeWithGaps(g, n);
}

const OpDef& kConvTranspose =
    Register({.name = "ConvTranspose",
              .min_inputs = 2,
              .max_inputs = 3,
              .infer = InferConvTranspose,
              .lower = LowerConvTranspose,
              .expand = ExpandConvTranspose,
              .halves = Halves::kWiden,
              .flops_per_element = 2,
              .samples = {"(f32[1,2,3,3], f32[2,3,3,3], f32[3]) {strides=[2,2], pads=[1,1,1,1], "
                          "output_padding=[1,1]}",
                          "(f32[1,4,3], f32[4,2,2]) {group=2, strides=[2]}",
                          "(f32[1,4,3,2,3], f32[4,3,3,2,2], f32[6]) {group=2, strides=[2,2,1], "
                          "pads=[1,0,0,0,1,0], output_padding=[1,0,0]}",
                          "(f32[1,1,2,2], f32[1,1,3,3]) {auto_pad=\"SAME_UPPER\"}",
                          "(f32[1,1,3,3], f32[1,1,2,2]) {dilations=[2,2]}"},
              .tolerance = 1e-4});

}  // namespace
}  // namespace ge
