// Recurrent cells; f, g, h are the activations, * on vectors is elementwise:
//   RNN   H' = f(X W^T + Wb + H R^T + Rb)
//   GRU   z = f(X Wz^T + H Rz^T + ..), r = f(X Wr^T + H Rr^T + ..)
//         n = g(X Wn^T + Wbn + (r*H) Rn^T + Rbn)      or, linear_before_reset: r * (H Rn^T + Rbn)
//         H' = (1 - z) * n + z * H
//   LSTM  i = f(.. + Pi*C), f = f(.. + Pf*C), c = g(..), C' = f*C + i*c, o = f(.. + Po*C'), H' = o
//   * h(C')
//         gates in the order i o f c
#include "ir/opdef.h"
#include "ops/recurrent.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Val;
using Chunk = Recurrent::Chunk;

Status InferRnn(InferContext& c) { return InferRecurrent(c, 1, 1, false); }
Status InferGru(InferContext& c) { return InferRecurrent(c, 3, 2, false); }
Status InferLstm(InferContext& c) { return InferRecurrent(c, 4, 3, true); }

void Zeros(const Recurrent& r, const Chunk& c, Expr t) {
  r.l.b.For("j", r.hidden, LoopKind::kVector,
            [&](Expr j) { r.YieldY(c, t, j, r.l.b.Const(r.t, 0)); });
}

void LowerRnn(Lowering& l) {
  const Recurrent r(l, 1, {"Tanh"});
  auto& b = l.b;
  r.ForChunks([&](const Chunk& c) {
    const int h = r.State("h", 5, c), next = b.Alloc("next", r.t, r.hidden);
    auto step = [&](Expr t) {
      b.For("j", r.hidden, LoopKind::kSerial, [&](Expr j) {
        b.Store(next, j,
                r.Activate(c, 0, r.Clipped(r.FromInput(c, t, 0, j) + r.FromState(c, h, 0, j))));
      });
      b.For("j", r.hidden, LoopKind::kVector, [&](Expr j) {
        const Val v = b.Let(b.Load(next, j));
        b.Store(h, j, v);
        r.YieldY(c, t, j, v);
      });
    };
    r.Walk(c, step, [&](Expr t) { Zeros(r, c, t); });
    r.YieldLast(1, c, h);
  });
}

void LowerGru(Lowering& l) {
  const Recurrent r(l, 3, {"Sigmoid", "Tanh"});
  const bool linear = l.Int("linear_before_reset", 0) != 0;
  auto& b = l.b;
  r.ForChunks([&](const Chunk& c) {
    const int h = r.State("h", 5, c), z = b.Alloc("z", r.t, r.hidden),
              reset = b.Alloc("reset", r.t, r.hidden);
    const int next = b.Alloc("next", r.t, r.hidden);
    auto step = [&](Expr t) {
      b.For("j", r.hidden, LoopKind::kSerial, [&](Expr j) {
        b.Store(z, j,
                r.Activate(c, 0, r.Clipped(r.FromInput(c, t, 0, j) + r.FromState(c, h, 0, j))));
        const Val gate =
            b.Let(r.Activate(c, 0, r.Clipped(r.FromInput(c, t, 1, j) + r.FromState(c, h, 1, j))));
        b.Store(reset, j, linear ? gate : gate * b.Load(h, j));
      });
      b.For("j", r.hidden, LoopKind::kSerial, [&](Expr j) {
        const Val x = r.FromInput(c, t, 2, j);
        const Val s =
            linear ? b.Load(reset, j) * r.FromState(c, h, 2, j) : r.FromState(c, reset, 2, j);
        b.Store(next, j, r.Activate(c, 1, r.Clipped(x + s)));
      });
      b.For("j", r.hidden, LoopKind::kVector, [&](Expr j) {
        const Val keep = b.Let(b.Load(z, j));
        const Val v = b.Let((1.0 - keep) * b.Load(next, j) + keep * b.Load(h, j));
        b.Store(h, j, v);
        r.YieldY(c, t, j, v);
      });
    };
    r.Walk(c, step, [&](Expr t) { Zeros(r, c, t); });
    r.YieldLast(1, c, h);
  });
}

void LowerLstm(Lowering& l) {
  const Recurrent r(l, 4, {"Sigmoid", "Tanh", "Tanh"});
  constexpr int kInitialCell = 6, kPeephole = 7;
  const bool coupled = l.Int("input_forget", 0) != 0;
  auto& b = l.b;
  r.ForChunks([&](const Chunk& c) {
    const int h = r.State("h", 5, c), cell = r.State("cell", kInitialCell, c);
    const int sums = b.Alloc("gates", r.t, r.hidden * 4);
    // Peepholes are in the order i o f.
    auto peep = [&](int gate, Expr j, Val state) {
      const Val sum = b.Load(sums, r.hidden * gate + j);
      return l.Has(kPeephole) ? sum + l.Load(kPeephole, {c.dir, r.hidden * gate + j}) * state : sum;
    };
    auto step = [&](Expr t) {
      for (int gate = 0; gate < 4; ++gate)
        b.For("j", r.hidden, LoopKind::kSerial, [&](Expr j) {
          b.Store(sums, r.hidden * gate + j,
                  r.FromInput(c, t, gate, j) + r.FromState(c, h, gate, j));
        });
      b.For("j", r.hidden, LoopKind::kVector, [&](Expr j) {
        const Val old = b.Let(b.Load(cell, j));
        const Val in = b.Let(r.Activate(c, 0, r.Clipped(peep(0, j, old))));
        const Val forget = coupled ? 1.0 - in : r.Activate(c, 0, r.Clipped(peep(2, j, old)));
        const Val fresh = r.Activate(c, 1, r.Clipped(b.Load(sums, r.hidden * 3 + j)));
        const Val now = b.Let(forget * old + in * fresh);
        const Val out = r.Activate(c, 0, r.Clipped(peep(1, j, now)));
        const Val v = b.Let(out * r.Activate(c, 2, now));
        b.Store(cell, j, now);
        b.Store(h, j, v);
        r.YieldY(c, t, j, v);
      });
    };
    r.Walk(c, step, [&](Expr t) { Zeros(r, c, t); });
    r.YieldLast(1, c, h);
    r.YieldLast(2, c, cell);
  });
}

const OpDef& kRnn =
    Register({.name = "RNN",
              .min_inputs = 3,
              .max_inputs = 6,
              .max_outputs = 2,
              .infer = InferRnn,
              .lower = LowerRnn,
              .flops_per_element = 1000,
              .samples = {"(f32[3,2,4], f32[1,5,4], f32[1,5,5], f32[1,10]) {hidden_size=5}"},
              .tolerance = 1e-4});
const OpDef& kGru =
    Register({.name = "GRU",
              .min_inputs = 3,
              .max_inputs = 6,
              .max_outputs = 2,
              .infer = InferGru,
              .lower = LowerGru,
              .flops_per_element = 3000,
              .samples = {"(f32[3,2,4], f32[1,15,4], f32[1,15,5], f32[1,30]) {hidden_size=5}",
                          "(f32[3,2,4], f32[2,15,4], f32[2,15,5], f32[2,30]) {hidden_size=5, "
                          "direction=\"bidirectional\", linear_before_reset=1}"},
              .tolerance = 1e-4});
const OpDef& kLstm = Register(
    {.name = "LSTM",
     .min_inputs = 3,
     .max_inputs = 8,
     .max_outputs = 3,
     .infer = InferLstm,
     .lower = LowerLstm,
     .flops_per_element = 4000,
     .samples =
         {"(f32[3,2,4], f32[1,20,4], f32[1,20,5], f32[1,40]) {hidden_size=5}",
          "(f32[3,2,4], f32[2,20,4], f32[2,20,5]) {hidden_size=5, direction=\"bidirectional\"}"},
     .tolerance = 1e-4});

}  // namespace
}  // namespace ge
