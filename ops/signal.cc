// Spectral operators. Complex numbers are a last axis of (re, im).
//   DFT    y[m,k] = sum over n of x[m,n] e^(-2 pi j k n / N); inverse: e^(+..) / N
//          onesided: k <= N/2 only; its inverse takes those and gives real numbers
//   STFT   y[b,f,k] = sum over n of window[n] x[b, f * step + n] e^(-2 pi j k n / N)
//   MelWeightMatrix   triangles over the mel scale (see below)
// Angles are reduced exactly: k * n mod N is taken in integers. Sums are taken in f64, because
// terms that cancel are common here.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ops/fourier.h"
#include "ops/shapes.h"
#include "ops/sizes.h"

namespace ge {
namespace {

using tile::Op;
using tile::ReduceOp;
using tile::Val;

struct Complex {
  Val re, im;
};

// e^(sign 2 pi j (k n mod N) / N)
Complex Turn(Lowering& l, DType t, Expr k, Expr n, Expr period, double sign) {
  Val at = l.b.Cast(l.b.Index(Mod(k * n, period)), t);
  Val angle = at * (sign * 2 * std::numbers::pi) / l.b.Cast(l.b.Index(period), t);
  return {l.b.Unary(Op::kCos, angle), l.b.Unary(Op::kSin, angle)};
}

// Part `component` (0 re, 1 im) of x * e.
Val Part(Lowering& l, Complex x, Complex e, Expr component) {
  auto re = [&] { return x.im.valid() ? x.re * e.re - x.im * e.im : x.re * e.re; };
  auto im = [&] { return x.im.valid() ? x.re * e.im + x.im * e.re : x.re * e.im; };
  if (component.IsConst()) return component.IsConst(0) ? re() : im();
  return l.b.Select(Equal(l.b.Index(component), l.b.ConstInt(DType::kI64, 0)), re(), im());
}

// --- DFT ----------------------------------------------------------------------------------------

struct Transform {
  Expr axis;     // 0 <= axis < rank - 1; symbolic if it is given at run time
  Expr length;   // N
  Expr in, out;  // elements along the axis
  bool inverse = false, onesided = false, complex = false;
  Expr Here(int64_t d) const { return Eq(axis, d); }
};

Transform TransformOf(const Node& n, const Dims& dims, const std::vector<Expr>& length,
                      const std::vector<Expr>& axis) {
  Transform t;
  int64_t rank = dims.size();
  t.inverse = AttrOr<int64_t>(n, "inverse", 0) != 0;
  t.onesided = AttrOr<int64_t>(n, "onesided", 0) != 0;
  t.complex = dims.back().IsConst(2);
  Expr given = axis.empty() ? Expr(AttrOr<int64_t>(n, "axis", -2)) : axis[0];
  t.axis = Select(Lt(given, 0), given + rank, given);
  for (int64_t d = 0; d + 1 < rank; ++d) t.in = d == 0 ? dims[0] : Select(t.Here(d), dims[d], t.in);
  bool to_real = t.inverse && t.onesided;
  t.length = !length.empty() ? length[0] : to_real ? (t.in - 1) * 2 : t.in;
  t.out = t.onesided && !t.inverse ? FloorDiv(t.length, 2) + 1 : t.length;
  return t;
}

// The last dim: 1, real numbers, or 2, complex ones.
Status CheckParts(InferContext& ctx, Expr parts) {
  if (parts.IsConst(1) || parts.IsConst(2)) return {};
  const std::string text = "the last dim is " + ToString(parts);
  return parts.IsConst() ? ctx.Fault(text + ", must be 1 or 2")
                         : Unsupported(text + ", must be known (--input_shape): 1 or 2");
}

Status InferDft(InferContext& ctx) {
  GE_TRY(CheckMinRank(ctx, 0, 2));
  Dims dims = ctx.In(0).dims;
  GE_TRY(CheckParts(ctx, dims.back()));
  std::vector<Expr> length, axis;
  if (ctx.Has(1)) {
    GE_ASSIGN(length, SizesOf(ctx, 1));
  }
  if (ctx.Has(2)) {
    GE_ASSIGN(axis, SizesOf(ctx, 2));
  }
  Transform t = TransformOf(ctx.node, dims, length, axis);
  if (t.onesided && t.inverse != t.complex) {
    return ctx.Fault(t.inverse ? "onesided inverse needs complex input"
                               : "onesided needs real input");
  }
  for (int64_t d = 0; d + 1 < static_cast<int64_t>(dims.size()); ++d) {
    dims[d] = Select(t.Here(d), t.out, dims[d]);
  }
  dims.back() = t.onesided && t.inverse ? 1 : 2;
  ctx.Out(0, ctx.In(0).dtype, std::move(dims));
  return {};
}

void LowerDft(Lowering& l) {
  const Dims in = l.In(0).dims, out = l.Out(0).dims;
  const int64_t last = static_cast<int64_t>(in.size()) - 1;
  Transform t = TransformOf(l.node, in, SizesOf(l, 1), SizesOf(l, 2));
  const DType f = DType::kF64;
  auto load = [&](const Index& at) { return l.b.Cast(l.Load(0, at), f); };
  bool to_real = t.inverse && t.onesided;
  Expr terms = Min(t.in, to_real ? FloorDiv(t.length, 2) + 1 : t.length);
  l.ForEach(out, false, [&](const Index& o) {
    Expr k = 0;
    for (int64_t d = 0; d < last; ++d) k = Select(t.Here(d), o[d], k);
    Val sum = l.b.Reduce(ReduceOp::kSum, {terms}, [&](const std::vector<Expr>& n) {
      Index at = o;
      for (int64_t d = 0; d < last; ++d) at[d] = Select(t.Here(d), n[0], o[d]);
      Complex x;
      at[last] = 0;
      x.re = load(at);
      at[last] = 1;
      if (t.complex) x.im = load(at);
      Val part =
          Part(l, x, Turn(l, f, k, n[0], t.length, t.inverse ? 1 : -1), to_real ? 0 : o[last]);
      if (!to_real) return part;
      // All but the first and, if N is even, the middle term stand for two.
      Expr once = Or(Eq(n[0], 0), Eq(n[0] * 2, t.length));
      return part * l.b.Cast(l.b.Index(Select(once, 1, 2)), f);
    });
    if (t.inverse) sum = sum / l.b.Cast(l.b.Index(t.length), f);
    l.Yield(0, o, l.b.Convert(sum, l.Out(0).dtype));
  });
}

const OpDef& kDft = Register(
    {.name = "DFT",
     .min_inputs = 1,
     .max_inputs = 3,
     .infer = InferDft,
     .lower = LowerDft,
     .expand = ExpandDft,
     .samples = {"(f32[2,6,1])", "(f32[2,5,2]) {inverse=1}", "(f32[2,6,1]) {onesided=1}"}});

// --- STFT ---------------------------------------------------------------------------------------

struct Frames {
  Expr step, length, count, bins;
};

Frames FramesOf(const Node& n, const Dims& signal, const std::vector<Expr>& step,
                const Dims* window, const std::vector<Expr>& length) {
  Frames f;
  f.step = step[0];
  f.length = !length.empty() ? length[0] : window ? (*window)[0] : signal[1];
  f.count = FloorDiv(signal[1] - f.length, f.step) + 1;
  bool onesided = AttrOr<int64_t>(n, "onesided", 1) != 0;
  f.bins = onesided ? FloorDiv(f.length, 2) + 1 : f.length;
  return f;
}

Status InferStft(InferContext& ctx) {
  GE_TRY(CheckMinRank(ctx, 0, 2));
  const Dims& signal = ctx.In(0).dims;
  if (signal.size() > 3) GE_TRY(CheckRank(ctx, 0, 3));
  if (signal.size() == 3) GE_TRY(CheckParts(ctx, signal[2]));
  if (ctx.Has(2)) GE_TRY(CheckRank(ctx, 2, 1));
  GE_ASSIGN(auto step, SizesOf(ctx, 1));
  std::vector<Expr> length;
  if (ctx.Has(3)) {
    GE_ASSIGN(length, SizesOf(ctx, 3));
    if (length.size() != 1) return ctx.Fault("frame_length must be one number");
  }
  if (step.size() != 1) return ctx.Fault("frame_step must be one number");
  Frames f = FramesOf(ctx.node, signal, step, ctx.Has(2) ? &ctx.In(2).dims : nullptr, length);
  if (!f.count.IsValid()) return ctx.Fault("frame_step must not be 0");
  ctx.Out(0, ctx.In(0).dtype, {signal[0], Max(f.count, 0), f.bins, 2});
  return {};
}

void LowerStft(Lowering& l) {
  const Dims& signal = l.In(0).dims;
  Frames f =
      FramesOf(l.node, signal, SizesOf(l, 1), l.Has(2) ? &l.In(2).dims : nullptr, SizesOf(l, 3));
  const DType t = DType::kF64;
  auto load = [&](int i, const Index& at) { return l.b.Cast(l.Load(i, at), t); };
  bool ranked = signal.size() == 3, complex = ranked && signal[2].IsConst(2);
  l.ForEach(l.Out(0).dims, false, [&](const Index& o) {
    Val y = l.b.Reduce(ReduceOp::kSum, {f.length}, [&](const std::vector<Expr>& n) {
      Index at{o[0], o[1] * f.step + n[0]};
      if (ranked) at.push_back(0);
      Complex x{load(0, at), {}};
      if (complex) {
        at[2] = 1;
        x.im = load(0, at);
      }
      if (l.Has(2)) {
        Val w = load(2, {n[0]});
        x.re = x.re * w;
        if (complex) x.im = x.im * w;
      }
      return Part(l, x, Turn(l, t, o[2], n[0], f.length, -1), o[3]);
    });
    l.Yield(0, o, l.b.Convert(y, l.Out(0).dtype));
  });
}

const OpDef& kStft = Register({.name = "STFT",
                               .min_inputs = 2,
                               .max_inputs = 4,
                               .infer = InferStft,
                               .lower = LowerStft,
                               .expand = ExpandStft,
                               .samples = {"(f32[1,20,1], i64[]=[4], f32[8])"}});

// --- MelWeightMatrix ----------------------------------------------------------------------------
// Inputs: num_mel_bins, dft_length, sample_rate, lower and upper edge in hertz. With bin(i) the
// spectrogram bin of the i-th of num_mel_bins + 2 evenly spaced mel frequencies, column i rises
// from 0 at bin(i) to 1 at bin(i+1) and falls to 0 at bin(i+2).

Status InferMel(InferContext& ctx) {
  GE_ASSIGN(auto bins, SizesOf(ctx, 0));
  GE_ASSIGN(auto length, SizesOf(ctx, 1));
  if (bins.size() != 1 || length.size() != 1)
    return ctx.Fault("num_mel_bins and dft_length are one number");
  ctx.Out(0, static_cast<DType>(ctx.Int("output_datatype", 1)),
          {FloorDiv(length[0], 2) + 1, bins[0]});
  return {};
}

Val Mel(Lowering& l, int, const Index& idx) {
  const DType d = DType::kF64;
  auto scalar = [&](int i) { return l.b.Cast(l.Load(i, Index(l.In(i).rank(), 0)), d); };
  auto mel = [&](Val hertz) {
    return l.b.Unary(Op::kLog, hertz / 700.0 + 1.0) * (2595 / std::log(10.0));
  };
  Val low = mel(scalar(3)), high = mel(scalar(4));
  Val step = (high - low) / (scalar(0) + 2.0);
  auto bin = [&](int64_t k) {
    Val at = l.b.Cast(l.b.Index(idx[1] + k), d) * step + low;
    Val hertz = (l.b.Unary(Op::kExp, at * (std::log(10.0) / 2595)) - 1.0) * 700.0;
    return l.b.Unary(Op::kFloor, (scalar(1) + 1.0) * hertz / scalar(2));
  };
  Val first = bin(0), centre = bin(1), end = bin(2), j = l.b.Cast(l.b.Index(idx[0]), d);
  Val zero = l.b.Const(d, 0), one = l.b.Const(d, 1);
  Val flat = Equal(first, centre);
  Val rising = l.b.Select(flat, one, (j - first) / l.b.Select(flat, one, centre - first));
  Val y = l.b.Select(And(LessEqual(first, j), LessEqual(j, centre)), rising, zero);
  Val falling = (end - j) / l.b.Select(Equal(end, centre), one, end - centre);
  y = l.b.Select(And(LessEqual(centre, j), Less(j, end)), falling, y);
  return l.b.Convert(y, l.Out(0).dtype);
}

const OpDef& kMel =
    Register({.name = "MelWeightMatrix",
              .min_inputs = 5,
              .max_inputs = 5,
              .infer = InferMel,
              .element = Mel,
              .expand = ExpandSizes<0, 1>,
              .fusion = Fusion::kGather,
              .flops_per_element = 100,
              .samples = {"(i64[]=[4], i64[]=[16], i64[]=[8000], f32[]=[0], f32[]=[4000])"}});

}  // namespace
}  // namespace ge
