// The shared parts of RNN, GRU and LSTM.
#include "ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ops/shapes.h"

namespace ge {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

namespace {

struct Activation {
  const char* name;
  double alpha, beta;  // defaults
};

constexpr Activation kActivations[] = {{"relu", 0, 0},         {"tanh", 0, 0},
                                       {"sigmoid", 0, 0},      {"affine", 1, 0},
                                       {"leakyrelu", 0.01, 0}, {"thresholdedrelu", 1, 0},
                                       {"scaledtanh", 1, 1},   {"hardsigmoid", 0.2, 0.5},
                                       {"elu", 1, 0},          {"softsign", 0, 0},
                                       {"softplus", 0, 0}};

std::string Lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return std::tolower(c); });
  return s;
}

const Activation* FindActivation(const std::string& name) {
  for (const Activation& a : kActivations)
    if (Lower(name) == a.name) return &a;
  return nullptr;
}

int Directions(const std::string& direction) { return direction == "bidirectional" ? 2 : 1; }

}  // namespace

Status InferRecurrent(InferContext& c, int gates, int activations_per_direction, bool has_cell) {
  for (int i = 0; i < 3; ++i) GE_TRY(CheckRank(c, i, 3));
  const std::string direction = c.Str("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return c.Fault(
        fmt::format("direction is '{}', but must be forward, reverse or bidirectional", direction));
  const int dirs = Directions(direction);
  const bool batch_first = c.Int("layout", 0) != 0;
  const Dims &x = c.In(0).dims, &w = c.In(1).dims, &r = c.In(2).dims;
  const Expr seq = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1], hidden = r[2];
  c.Check(Eq(w[0], dirs), fmt::format("W {} does not have {} directions", ShapeText(w), dirs));
  c.Check(Eq(w[1], hidden * gates),
          fmt::format("W {} does not have {} gates of {}", ShapeText(w), gates, ToString(hidden)));
  c.Check(Eq(w[2], x[2]),
          fmt::format("W {} does not take the inputs of X {}", ShapeText(w), ShapeText(x)));
  c.Check(Eq(r[1], hidden * gates),
          fmt::format("R {} does not have {} gates of {}", ShapeText(r), gates, ToString(hidden)));
  if (c.Int("hidden_size", 0) > 0)
    c.Check(Eq(hidden, c.Int("hidden_size", 0)),
            fmt::format("hidden_size is {}, but R is {}", c.Int("hidden_size", 0), ShapeText(r)));
  const auto names = AttrOr<std::vector<std::string>>(c.node, "activations", {});
  if (!names.empty() && static_cast<int>(names.size()) != activations_per_direction * dirs)
    return c.Fault(fmt::format("{} activations given, {} needed", names.size(),
                               activations_per_direction * dirs));
  for (const std::string& name : names)
    if (!FindActivation(name)) return Unsupported(fmt::format("activation '{}'", name));
  if (c.Has(3))
    c.Check(Eq(c.In(3).Elements(), hidden * gates * (2 * dirs)),
            fmt::format("B is {}, but [{}, {}] is needed", ShapeText(c.In(3).dims), dirs,
                        ToString(hidden * (2 * gates))));
  const DType t = c.In(0).dtype;
  if (batch_first) {
    c.Out(0, t, {batch, seq, dirs, hidden});
    c.Out(1, t, {batch, dirs, hidden});
    if (has_cell) c.Out(2, t, {batch, dirs, hidden});
  } else {
    c.Out(0, t, {seq, dirs, batch, hidden});
    c.Out(1, t, {dirs, batch, hidden});
    if (has_cell) c.Out(2, t, {dirs, batch, hidden});
  }
  return {};
}

Recurrent::Recurrent(Lowering& lowering, int num_gates,
                     std::vector<std::string> default_activations)
    : l(lowering),
      gates(num_gates),
      activations_per_direction(static_cast<int>(default_activations.size())) {
  const Dims &x = l.In(0).dims, &r = l.In(2).dims;
  batch_first = l.Int("layout", 0) != 0;
  seq = x[batch_first ? 1 : 0];
  batch = x[batch_first ? 0 : 1];
  input = x[2];
  hidden = r[2];
  dirs = Directions(l.Str("direction", "forward"));
  t = ComputeType(l.In(0).dtype);
  activations = AttrOr<std::vector<std::string>>(l.node, "activations", {});
  while (static_cast<int64_t>(activations.size()) < dirs.value() * activations_per_direction)
    activations.push_back(default_activations[activations.size() % default_activations.size()]);
  alpha = AttrOr<std::vector<float>>(l.node, "activation_alpha", {});
  beta = AttrOr<std::vector<float>>(l.node, "activation_beta", {});
  clip = l.Float("clip", 0);
}

void Recurrent::ForChunks(const std::function<void(const Chunk&)>& body) const {
  l.ForEach({dirs, batch}, false,
            [&](const Index& i) { body({dirs.IsConst(1) ? Expr(0) : i[0], i[1]}); });
}

void Recurrent::Walk(const Chunk& c, const std::function<void(Expr)>& step,
                     const std::function<void(Expr)>& idle) const {
  auto& b = l.b;
  Expr length = seq;
  if (l.Has(4)) {
    const Val given = b.Cast(l.Load(4, {c.batch}), DType::kI64);
    length =
        b.LetIndex(Max(Min(given, b.Index(seq)), b.ConstInt(DType::kI64, 0)), 0, Bounds(seq).hi);
  }
  const std::string direction = l.Str("direction", "forward");
  const Expr backward = direction == "bidirectional" ? Eq(c.dir, 1) : Expr(direction == "reverse");
  b.For("t", length, LoopKind::kSerial, [&](Expr s) { step(Select(backward, length - 1 - s, s)); });
  if (length != seq) b.For("t", seq - length, LoopKind::kSerial, [&](Expr s) { idle(length + s); });
}

int Recurrent::State(std::string_view name, int initial, const Chunk& c) const {
  auto& b = l.b;
  const int state = b.Alloc(name, t, hidden);
  b.For("j", hidden, LoopKind::kVector, [&](Expr j) {
    const Index at = batch_first ? Index{c.batch, c.dir, j} : Index{c.dir, c.batch, j};
    b.Store(state, j, l.Has(initial) ? l.Load(initial, at) : b.Const(t, 0));
  });
  return state;
}

Val Recurrent::Bias(const Chunk& c, int gate_of_both, Expr j) const {
  return l.Load(3, {c.dir, hidden * gate_of_both + j});
}

Val Recurrent::FromInput(const Chunk& c, Expr time, int gate, Expr j) const {
  const Expr row = hidden * gate + j;
  const Val sum = l.b.Reduce(ReduceOp::kSum, {input}, [&](auto& i) {
    const Index at = batch_first ? Index{c.batch, time, i[0]} : Index{time, c.batch, i[0]};
    return l.Load(0, at) * l.Load(1, {c.dir, row, i[0]});
  });
  return l.Has(3) ? sum + Bias(c, gate, j) : sum;
}

Val Recurrent::FromState(const Chunk& c, int state, int gate, Expr j) const {
  const Expr row = hidden * gate + j;
  const Val sum = l.b.Reduce(ReduceOp::kSum, {hidden}, [&](auto& i) {
    return l.b.Load(state, i[0]) * l.Load(2, {c.dir, row, i[0]});
  });
  return l.Has(3) ? sum + Bias(c, gates + gate, j) : sum;
}

Val Recurrent::Clipped(Val v) const {
  return clip > 0 ? Max(Min(v, Like(v, clip)), Like(v, -clip)) : v;
}

Val Recurrent::Apply(int number, Val v) const {
  auto& b = l.b;
  const Activation* f = FindActivation(activations[number]);
  GE_CHECK(f, "activation " + activations[number]);
  const double a = number < static_cast<int>(alpha.size()) ? alpha[number] : f->alpha;
  const double k = number < static_cast<int>(beta.size()) ? beta[number] : f->beta;
  const std::string name = f->name;
  const Val x = b.Let(v), zero = Like(x, 0), one = Like(x, 1);
  if (name == "relu") return Max(x, zero);
  if (name == "tanh") return b.Unary(Op::kTanh, x);
  if (name == "sigmoid") return one / (b.Unary(Op::kExp, -x) + 1);
  if (name == "affine") return x * a + k;
  if (name == "leakyrelu") return b.Select(Less(x, zero), x * a, x);
  if (name == "thresholdedrelu") return b.Select(Less(x, Like(x, a)), zero, x);
  if (name == "scaledtanh") return b.Unary(Op::kTanh, x * k) * a;
  if (name == "hardsigmoid") return Max(Min(x * a + k, one), zero);
  if (name == "elu") return b.Select(Less(x, zero), b.Unary(Op::kExpm1, x) * a, x);
  if (name == "softsign") return x / (b.Unary(Op::kAbs, x) + 1);
  // softplus, without overflow for large x
  return Max(x, zero) + b.Unary(Op::kLog1p, b.Unary(Op::kExp, -b.Unary(Op::kAbs, x)));
}

Val Recurrent::Activate(const Chunk& c, int k, Val v) const {
  const int n = activations_per_direction;
  if (dirs.IsConst(1)) return Apply(k, v);
  auto parameter = [&](const std::vector<float>& p, int i) {
    return i < static_cast<int>(p.size()) ? p[i] : -1.0F;
  };
  if (activations[k] == activations[k + n] && parameter(alpha, k) == parameter(alpha, k + n) &&
      parameter(beta, k) == parameter(beta, k + n))
    return Apply(k, v);
  const Val x = l.b.Let(v);
  return l.b.Select(l.b.Cast(l.b.Index(Eq(c.dir, 0)), DType::kBool), Apply(k, x), Apply(k + n, x));
}

bool Recurrent::Wants(int output) const {
  return output < static_cast<int>(l.node.outputs.size()) && l.node.outputs[output] != kNone;
}

void Recurrent::YieldY(const Chunk& c, Expr time, Expr j, Val v) const {
  if (!Wants(0)) return;
  l.Yield(0, batch_first ? Index{c.batch, time, c.dir, j} : Index{time, c.dir, c.batch, j}, v);
}

void Recurrent::YieldLast(int output, const Chunk& c, int state) const {
  if (!Wants(output)) return;
  l.b.For("j", hidden, LoopKind::kVector, [&](Expr j) {
    l.Yield(output, batch_first ? Index{c.batch, c.dir, j} : Index{c.dir, c.batch, j},
            l.b.Load(state, j));
  });
}

}  // namespace ge
