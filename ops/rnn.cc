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
Status InferRecurrence2(InferContext& c) { return InferRecurrence(c, false); }
Status InferRecurrence3(InferContext& c) { return InferRecurrence(c, true); }

bool IsLinear(const Node& n) { return AttrOr<int64_t>(n, "linear_before_reset", 0) != 0; }

void Zeros(const Recurrent& r, const Chunk& c, Expr t) {
  r.ForCells(c, [&](Expr row, Expr j) { r.YieldY(c, t, row, j, r.l.b.Const(r.t, 0)); });
}

void LowerRnn(Lowering& l, const Recurrent::Dots* dots) {
  const Recurrent r(l, 1, {"Tanh"}, dots);
  auto& b = l.b;
  r.ForChunks([&](const Chunk& c) {
    const int h = r.State("h", 4, c), sums = r.Buffer("sums", 1);
    auto step = [&](Expr t) {
      r.Sums(c, t, h, 0, 1, true, sums);
      r.ForCells(c, [&](Expr row, Expr j) {
        const Expr at = row * r.hidden + j;
        const Val v = b.Let(r.Activate(c, 0, r.Clipped(b.Load(sums, at))));
        b.Store(h, at, v);
        r.YieldY(c, t, row, j, v);
      });
    };
    r.Walk(c, step, [&](Expr t) { Zeros(r, c, t); });
    r.YieldLast(1, c, h);
  });
}

void LowerGru(Lowering& l, const Recurrent::Dots* dots) {
  const Recurrent r(l, 3, {"Sigmoid", "Tanh"}, dots);
  const bool linear = IsLinear(l.node);
  auto& b = l.b;
  r.ForChunks([&](const Chunk& c) {
    const int h = r.State("h", 4, c), sums = r.Buffer("sums", 3), reset = r.Buffer("reset", 1);
    auto sum = [&](int gate, Expr row, Expr j) {
      return b.Load(sums, row * (r.hidden * 3) + r.hidden * gate + j);
    };
    auto gate = [&](int k, Expr row, Expr j) {
      return b.Let(r.Activate(c, 0, r.Clipped(sum(k, row, j))));
    };
    // h from the sum of the third gate
    auto finish = [&](Expr t, Expr row, Expr j, Val fresh) {
      const Expr at = row * r.hidden + j;
      const Val keep = gate(0, row, j);
      const Val v = b.Let((1.0 - keep) * r.Activate(c, 1, r.Clipped(fresh)) + keep * b.Load(h, at));
      b.Store(h, at, v);
      r.YieldY(c, t, row, j, v);
    };
    auto step = [&](Expr t) {
      r.Sums(c, t, h, 0, 2, true, sums);
      if (linear) {
        r.Sums(c, t, h, 2, 1, false, sums);
        return r.ForCells(c, [&](Expr row, Expr j) {
          finish(t, row, j, r.FromInput(c, t, 2, row, j) + gate(1, row, j) * sum(2, row, j));
        });
      }
      r.ForCells(c, [&](Expr row, Expr j) {
        const Expr at = row * r.hidden + j;
        b.Store(reset, at, gate(1, row, j) * b.Load(h, at));
      });
      r.Sums(c, t, reset, 2, 1, true, sums);
      r.ForCells(c, [&](Expr row, Expr j) { finish(t, row, j, sum(2, row, j)); });
    };
    r.Walk(c, step, [&](Expr t) { Zeros(r, c, t); });
    r.YieldLast(1, c, h);
  });
}

void LowerLstm(Lowering& l, const Recurrent::Dots* dots) {
  const Recurrent r(l, 4, {"Sigmoid", "Tanh", "Tanh"}, dots);
  constexpr int kInitialCell = 5, kPeephole = 6;
  const bool coupled = l.Int("input_forget", 0) != 0;
  auto& b = l.b;
  r.ForChunks([&](const Chunk& c) {
    const int h = r.State("h", 4, c), cell = r.State("cell", kInitialCell, c),
              sums = r.Buffer("gates", 4);
    auto step = [&](Expr t) {
      r.Sums(c, t, h, 0, 4, true, sums);
      r.ForCells(c, [&](Expr row, Expr j) {
        const Expr at = row * r.hidden + j;
        auto sum = [&](int gate) {
          return b.Load(sums, row * (r.hidden * 4) + r.hidden * gate + j);
        };
        // Peepholes are in the order i o f.
        auto peep = [&](int gate, Val state) {
          return l.Has(kPeephole)
                     ? sum(gate) + l.Load(kPeephole, {c.dir, r.hidden * gate + j}) * state
                     : sum(gate);
        };
        const Val old = b.Let(b.Load(cell, at));
        const Val in = b.Let(r.Activate(c, 0, r.Clipped(peep(0, old))));
        const Val forget = coupled ? 1.0 - in : r.Activate(c, 0, r.Clipped(peep(2, old)));
        const Val fresh = r.Activate(c, 1, r.Clipped(sum(3)));
        const Val now = b.Let(forget * old + in * fresh);
        const Val out = r.Activate(c, 0, r.Clipped(peep(1, now)));
        const Val v = b.Let(out * r.Activate(c, 2, now));
        b.Store(cell, at, now);
        b.Store(h, at, v);
        r.YieldY(c, t, row, j, v);
      });
    };
    r.Walk(c, step, [&](Expr t) { Zeros(r, c, t); });
    r.YieldLast(1, c, h);
    r.YieldLast(2, c, cell);
  });
}

void Lower(Lowering& l) { LowerRecurrence(l, nullptr); }

const OpDef& kRnn =
    Register({.name = "RNN",
              .min_inputs = 3,
              .max_inputs = 6,
              .max_outputs = 2,
              .infer = InferRnn,
              .expand = ExpandRecurrent,
              .samples = {"(f32[3,2,4], f32[1,5,4], f32[1,5,5], f32[1,10]) {hidden_size=5}"},
              .tolerance = 1e-4});
const OpDef& kGru =
    Register({.name = "GRU",
              .min_inputs = 3,
              .max_inputs = 6,
              .max_outputs = 2,
              .infer = InferGru,
              .expand = ExpandRecurrent,
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
     .expand = ExpandRecurrent,
     .samples =
         {"(f32[3,2,4], f32[1,20,4], f32[1,20,5], f32[1,40]) {hidden_size=5}",
          "(f32[3,2,4], f32[2,20,4], f32[2,20,5]) {hidden_size=5, direction=\"bidirectional\"}"},
     .tolerance = 1e-4});

OpDef Recurrence(const char* name, bool cell, double flops, std::vector<std::string> samples) {
  return {.name = name,
          .domain = "ge",
          .min_inputs = 2,
          .max_inputs = cell ? 7 : 5,
          .max_outputs = cell ? 3 : 2,
          .infer = cell ? InferRecurrence3 : InferRecurrence2,
          .lower = Lower,
          .flops_per_element = flops,
          .samples = std::move(samples),
          .tolerance = 1e-4};
}

const OpDef& kRnnSteps =
    Register(Recurrence("RNN", false, 1000, {"(f32[3,2,1,5], f32[1,5,5], f32[1,5])"}));
const OpDef& kGruSteps =
    Register(Recurrence("GRU", false, 3000,
                        {"(f32[3,2,1,15], f32[1,15,5], f32[1,15])",
                         "(f32[2,3,2,15], f32[2,15,5]) {direction=\"bidirectional\", "
                         "linear_before_reset=1, layout=1}"}));
const OpDef& kLstmSteps =
    Register(Recurrence("LSTM", true, 4000,
                        {"(f32[3,2,1,20], f32[1,20,5], f32[1,20])",
                         "(f32[3,9,2,20], f32[2,20,5], f32[2,20]) {direction=\"bidirectional\"}"}));

}  // namespace

std::vector<std::pair<int, int>> PartsOf(const Node& n) {
  if (n.op->name == "GRU") return {{0, 2}, {2, 1}};
  return {{0, GatesOf(n)}};
}

void LowerRecurrence(Lowering& l, const Recurrent::Dots* dots) {
  const std::string& name = l.node.op->name;
  (name == "LSTM" ? LowerLstm : name == "GRU" ? LowerGru : LowerRnn)(l, dots);
}

}  // namespace ge
