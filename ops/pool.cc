// Pools over windows of the spatial axes; positions outside X do not count.
//   MaxPool      Y = max_k X[n, c, o*s + k*d - p ..], and the flat position of the first maximum
//   AveragePool  Y = sum_k X / count, where count has the positions within X (or within X and its
//   pads) LpPool       Y = (sum_k |X|^p)^(1/p)
// Global pools have one window that is the whole image.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/opdef.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

Result<Window> PoolWindow(const Node& n, const Dims& x) {
  const auto kernel = AttrOr<std::vector<int64_t>>(n, "kernel_shape", {});
  if (kernel.empty()) return Invalid("attribute kernel_shape is missing");
  for (int64_t k : kernel)
    if (k < 1) return Invalid(fmt::format("kernel_shape must be positive, got {}", k));
  if (x.size() < 3)
    return Invalid(fmt::format("X has rank {}, but at least 3 is needed", x.size()));
  return ForwardWindow(n, Tail(x, 2), Constants(kernel));
}

Status InferPool(InferContext& c) {
  const auto& x = c.In(0).dims;
  GE_ASSIGN(const Window win, PoolWindow(c.node, x));
  Dims out = {x[0], x[1]};
  out.insert(out.end(), win.out.begin(), win.out.end());
  c.Out(0, c.In(0).dtype, out);
  c.Out(1, DType::kI64, out);
  return {};
}

Index InputIndex(const Window& w, const Index& o, const std::vector<Expr>& k) {
  Index xi = {o[0], o[1]};
  for (int i = 0; i < w.rank(); ++i) xi.push_back(w.At(i, o[2 + i], k[i]));
  return xi;
}

// The least value of a dtype, in its compute type.
Val Lowest(tile::Builder& b, DType t) {
  if (IsFloat(t)) return b.Const(ComputeType(t), -std::numeric_limits<double>::infinity());
  if (!IsSigned(t)) return b.ConstInt(ComputeType(t), 0);
  const int bits = BitWidth(t);
  return b.ConstInt(ComputeType(t), std::numeric_limits<int64_t>::min() >> (64 - bits));
}

// Does it pay to make a line of window columns first? Not where lanes are channels, and not for
// windows that stay within X and are small.
bool ByLines(const Lowering& l, const Window& w) {
  const int last = w.rank() - 1;
  if (!l.In(0).layout.IsNd() || !l.Out(0).layout.IsNd() || w.kernel[last].IsConst(1) ||
      !ProvablyLe(0, w.pad_lo[last]))
    return false;
  const bool inside = ProvablyLe(w.pad_lo[last], 0) &&
                      ProvablyLe(w.At(last, w.out[last] - 1, w.kernel[last] - 1), w.in[last] - 1);
  const int64_t columns = HintValue(w.kernel[last]);
  return !inside || (columns > 2 && HintValue(Product(w.kernel)) > 2 * columns);
}

// How many of the kernel's positions along axis i lie in [lo, hi) for output o.
Expr CountInside(const Window& w, int i, Expr o, Expr lo, Expr hi) {
  const Expr base = o * w.stride[i] - w.pad_lo[i];
  const Expr first = Max(0, CeilDiv(lo - base, w.dilation[i]));
  const Expr end = Min(w.kernel[i], CeilDiv(hi - base, w.dilation[i]));
  return Max(0, end - first);
}

// A window axis after axis: each line of X is combined over all axes but the last, into a line that
// has the pads too; from it the elements of a line of Y. `none` is what
// counts outside.
void LowerByLines(Lowering& l, const Window& w, ReduceOp op, Val none,
                  const std::function<void(const Index& o, Val v)>& yield) {
  auto& b = l.b;
  const int last = w.rank() - 1;
  const Expr s = w.stride[last], d = w.dilation[last], lo = w.pad_lo[last], in = w.in[last];
  const Expr size = (w.out[last] - 1) * s + (w.kernel[last] - 1) * d + 1;
  const Expr used = Min(in, Max(0, size - lo)), hi = Max(0, size - lo - used);
  Dims outer = l.Out(0).dims;
  outer.pop_back();
  l.ForEach(outer, false, [&](const Index& o) {
    const int line = b.Alloc("line", none.type(), size);
    auto fill = [&](Expr from, Expr count) {
      if (!count.IsConst(0))
        b.For("c", count, LoopKind::kVector, [&](Expr c) { b.Store(line, from + c, none); });
    };
    fill(0, Min(lo, size));
    fill(lo + used, hi);
    std::vector<Expr> counts, firsts;
    for (int i = 0; i < last; ++i) {
      counts.push_back(CountInside(w, i, o[2 + i], 0, w.in[i]));
      firsts.push_back(Max(0, CeilDiv(w.pad_lo[i] - o[2 + i] * w.stride[i], w.dilation[i])));
    }
    b.For("c", used, LoopKind::kVector, [&](Expr c) {
      auto element = [&](const std::vector<Expr>& k) {
        Index xi = {o[0], o[1]};
        for (int i = 0; i < last; ++i) xi.push_back(w.At(i, o[2 + i], firsts[i] + k[i]));
        xi.push_back(c);
        return l.Load(0, xi);
      };
      Val v = counts.empty() ? element({}) : b.Reduce(op, counts, element);
      if (op == ReduceOp::kMax && !IsFloat(v.type())) v = b.Binary(Op::kMax, v, none);
      b.Store(line, lo + c, v);
    });
    b.For("o", w.out[last], LoopKind::kVector, [&](Expr at) {
      Index y = o;
      y.push_back(at);
      yield(y, b.Reduce(op, {w.kernel[last]}, [&](const std::vector<Expr>& k) {
        return b.Load(line, at * s + k[0] * d);
      }));
    });
  });
}

// Row-major position, or with storage_order 1 column-major within the image.
Expr FlatPosition(const Dims& x, const Index& i, bool column_major) {
  if (!column_major) return Linear(i, x);
  Expr image = 0, size = 1;
  for (size_t d = 2; d < x.size(); ++d) {
    image += i[d] * size;
    size *= x[d];
  }
  return (i[0] * x[1] + i[1]) * size + image;
}

void LowerMaxPool(Lowering& l) {
  const auto& x = l.In(0).dims;
  auto window = PoolWindow(l.node, x);
  GE_CHECK(window.ok());
  const Window& w = *window;
  const bool indices = l.node.outputs.size() > 1 && l.node.outputs[1] != kNone;
  const bool values = l.node.outputs[0] != kNone, column_major = l.Int("storage_order", 0) != 0;
  const Dims& out = l.Out(values ? 0 : 1).dims;
  if (values && !indices && ByLines(l, w))
    return LowerByLines(l, w, ReduceOp::kMax, Lowest(l.b, l.In(0).dtype),
                        [&](const Index& o, Val v) { l.Yield(0, o, v); });
  l.ForEach(out, true, [&](const Index& o) {
    auto& b = l.b;
    const Val low = Lowest(b, l.In(0).dtype);
    const Val top = b.Let(b.Reduce(ReduceOp::kMax, w.kernel, [&](const std::vector<Expr>& k) {
      return l.LoadOr(0, InputIndex(w, o, k), low);
    }));
    if (values) l.Yield(0, o, top);
    if (!indices) return;
    const Val none = b.ConstInt(DType::kI64, INT64_MAX);
    Val first = b.Reduce(ReduceOp::kMin, w.kernel, [&](const std::vector<Expr>& k) {
      const Index xi = InputIndex(w, o, k);
      const Val v = b.Let(l.LoadOr(0, xi, low));
      Expr inside = 1;
      for (int i = 0; i < w.rank(); ++i)
        inside = And(inside, And(Le(0, xi[2 + i]), Lt(xi[2 + i], x[2 + i])));
      Val hit = Equal(v, top);
      if (IsFloat(v.type())) hit = Or(hit, b.Unary(Op::kIsNan, v));
      hit = And(hit, b.Cast(b.Index(inside), DType::kBool));
      return b.Select(hit, b.Index(FlatPosition(x, xi, column_major)), none);
    });
    l.Yield(1, o, first);
  });
}

const OpDef& kMaxPool =
    Register({.name = "MaxPool",
              .max_outputs = 2,
              .infer = InferPool,
              .lower = LowerMaxPool,
              .halves = Halves::kWiden,
              .samples = {"(f32[1,2,6,7]) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}",
                          "(f32[1,1,5,5]) {kernel_shape=[2,2], strides=[2,2], ceil_mode=1}",
                          "(f32[1,2,4,5,21]) {kernel_shape=[3,3,5], strides=[1,2,3], "
                          "pads=[2,1,2,1,1,3], dilations=[1,2,1], ceil_mode=1}",
                          "(i8[1,3,7,20]) {kernel_shape=[3,3], pads=[1,1,1,1]}",
                          "(u8[1,2,8]) {kernel_shape=[3], dilations=[2]}"}});

void LowerAveragePool(Lowering& l) {
  const auto& x = l.In(0).dims;
  auto window = PoolWindow(l.node, x);
  GE_CHECK(window.ok());
  const Window& w = *window;
  const bool with_pads = l.Int("count_include_pad", 0) != 0;
  const DType t = ComputeType(l.In(0).dtype);
  auto yield = [&](const Index& o, Val sum) {
    Expr count = 1;
    for (int i = 0; i < w.rank(); ++i)
      count *= with_pads ? CountInside(w, i, o[2 + i], 0 - w.pad_lo[i], x[2 + i] + w.pad_hi[i])
                         : CountInside(w, i, o[2 + i], 0, x[2 + i]);
    l.Yield(0, o, sum / l.b.Cast(l.b.Index(count), t));
  };
  if (ByLines(l, w)) return LowerByLines(l, w, ReduceOp::kSum, l.b.Const(t, 0), yield);
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    auto& b = l.b;
    const Val sum = b.Reduce(ReduceOp::kSum, w.kernel, [&](const std::vector<Expr>& k) {
      return l.LoadOr(0, InputIndex(w, o, k), b.Const(t, 0));
    });
    yield(o, sum);
  });
}

const OpDef& kAveragePool = Register(
    {.name = "AveragePool",
     .infer = InferPool,
     .lower = LowerAveragePool,
     .halves = Halves::kWiden,
     .samples = {"(f32[1,2,6,7]) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}",
                 "(f32[1,2,6,7]) {kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1}",
                 "(f32[1,1,5,5]) {kernel_shape=[2,2], strides=[2,2], ceil_mode=1}"}});

// (sum |x|^p)^(1/p)
Val LpOf(Lowering& l, const Dims& axes, const std::function<Val(const std::vector<Expr>&)>& load) {
  auto& b = l.b;
  const double p = static_cast<double>(l.Int("p", 2));
  const Val sum = b.Reduce(ReduceOp::kSum, axes, [&](const std::vector<Expr>& k) {
    const Val v = load(k);
    if (p == 2) {
      const Val x = b.Let(v);
      return x * x;
    }
    const Val a = b.Unary(Op::kAbs, v);
    return p == 1 ? a : b.Binary(Op::kPow, a, Like(a, p));
  });
  if (p == 1) return sum;
  return p == 2 ? b.Unary(Op::kSqrt, sum) : b.Binary(Op::kPow, sum, Like(sum, 1 / p));
}

void LowerLpPool(Lowering& l) {
  auto window = PoolWindow(l.node, l.In(0).dims);
  GE_CHECK(window.ok());
  const Window& w = *window;
  l.ForEach(l.Out(0).dims, true, [&](const Index& o) {
    l.Yield(0, o, LpOf(l, w.kernel, [&](const std::vector<Expr>& k) {
              return l.LoadOr(0, InputIndex(w, o, k), l.b.Const(ComputeType(l.In(0).dtype), 0));
            }));
  });
}

const OpDef& kLpPool =
    Register({.name = "LpPool",
              .infer = InferPool,
              .lower = LowerLpPool,
              .halves = Halves::kWiden,
              .samples = {"(f32[1,2,6,7]) {kernel_shape=[3,3], strides=[2,2], p=3}",
                          "(f32[1,2,6]) {kernel_shape=[2]}"}});

Status InferGlobalPool(InferContext& c) {
  const auto& x = c.In(0).dims;
  if (x.size() < 2)
    return c.Fault(fmt::format("X has rank {}, but at least 2 is needed", x.size()));
  Dims out(x.size(), Expr(1));
  out[0] = x[0];
  out[1] = x[1];
  c.Out(0, c.In(0).dtype, out);
  return {};
}

Index GlobalIndex(const Index& o, const std::vector<Expr>& k) {
  Index xi = {o[0], o[1]};
  xi.insert(xi.end(), k.begin(), k.end());
  return xi;
}

void LowerGlobalAverage(Lowering& l) {
  const Dims image = Tail(l.In(0).dims, 2);
  l.ForEach(l.Out(0).dims, false, [&](const Index& o) {
    const Val sum = l.b.Reduce(ReduceOp::kSum, image, [&](const std::vector<Expr>& k) {
      return l.Load(0, GlobalIndex(o, k));
    });
    l.Yield(0, o, sum / l.b.Cast(l.b.Index(Product(image)), sum.type()));
  });
}

void LowerGlobalMax(Lowering& l) {
  l.ForEach(l.Out(0).dims, false, [&](const Index& o) {
    l.Yield(0, o,
            l.b.Reduce(ReduceOp::kMax, Tail(l.In(0).dims, 2),
                       [&](const std::vector<Expr>& k) { return l.Load(0, GlobalIndex(o, k)); }));
  });
}

void LowerGlobalLp(Lowering& l) {
  l.ForEach(l.Out(0).dims, false, [&](const Index& o) {
    l.Yield(0, o, LpOf(l, Tail(l.In(0).dims, 2), [&](const std::vector<Expr>& k) {
              return l.Load(0, GlobalIndex(o, k));
            }));
  });
}

const OpDef& kGlobalAveragePool = Register({.name = "GlobalAveragePool",
                                            .infer = InferGlobalPool,
                                            .lower = LowerGlobalAverage,
                                            .halves = Halves::kWiden,
                                            .samples = {"(f32[2,3,4,5])", "(f32[1,3,7])"}});
const OpDef& kGlobalMaxPool = Register({.name = "GlobalMaxPool",
                                        .infer = InferGlobalPool,
                                        .lower = LowerGlobalMax,
                                        .halves = Halves::kWiden,
                                        .samples = {"(f32[2,3,4,5])"}});
const OpDef& kGlobalLpPool = Register({.name = "GlobalLpPool",
                                       .infer = InferGlobalPool,
                                       .lower = LowerGlobalLp,
                                       .samples = {"(f32[2,3,4,5])", "(f32[2,3,4,5]) {p=3}"}});

}  // namespace
}  // namespace ge
