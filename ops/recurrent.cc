// The shared parts of RNN, GRU and LSTM.
#include "ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/expand.h"
#include "ops/shapes.h"

namespace ge {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

namespace {

struct Activation {
  const char* name;
  int takes;           // numbers: none, alpha, or alpha and beta
  double alpha, beta;  // defaults
};

constexpr Activation kActivations[] = {{"relu", 0, 0, 0},         {"tanh", 0, 0, 0},
                                       {"sigmoid", 0, 0, 0},      {"affine", 2, 1, 0},
                                       {"leakyrelu", 1, 0.01, 0}, {"thresholdedrelu", 1, 1, 0},
                                       {"scaledtanh", 2, 1, 1},   {"hardsigmoid", 2, 0.2, 0.5},
                                       {"elu", 1, 1, 0},          {"softsign", 0, 0, 0},
                                       {"softplus", 0, 0, 0}};

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
  c.Check(Eq(r[0], dirs), fmt::format("R {} does not have {} directions", ShapeText(r), dirs));
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

Status InferRecurrence(InferContext& c, bool has_cell) {
  const bool batch_first = c.Int("layout", 0) != 0;
  const Dims &p = c.In(0).dims, &r = c.In(1).dims;
  const Expr seq = p[batch_first ? 1 : 0], batch = p[batch_first ? 0 : 1], dirs = p[2],
             hidden = r[2];
  const DType t = c.In(0).dtype;
  const Dims last = batch_first ? Dims{batch, dirs, hidden} : Dims{dirs, batch, hidden};
  c.Out(0, t, batch_first ? Dims{batch, seq, dirs, hidden} : Dims{seq, dirs, batch, hidden});
  c.Out(1, t, last);
  if (has_cell) c.Out(2, t, last);
  return {};
}

int GatesOf(const Node& n) { return n.op->name == "LSTM" ? 4 : n.op->name == "GRU" ? 3 : 1; }

bool ExpandRecurrent(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const Dims x = e.Dims(e.In(0)), r = e.Dims(e.In(2));
  const DType out = e.Type(e.In(0)), type = ComputeType(out);
  auto operand = [&](int i) { return e.Has(i) ? e.Cast(e.In(i), type) : kNone; };
  // Loops over directions are unrolled: R says so too, where its dim is open.
  const Expr dirs = Directions(e.Str("direction", "forward")), sums = r[1];
  const ValueId of_old = r[0].IsConst() ? operand(2) : e.Reshape(operand(2), {dirs, sums, r[2]});
  const ValueId rows = e.Reshape(operand(0), {x[0] * x[1], x[2]});
  const ValueId weights = e.Reshape(operand(1), {dirs * sums, x[2]});
  std::vector<ValueId> product = {rows, weights};
  ValueId of_state = kNone;
  if (e.Has(3)) {
    const ValueId both = e.Reshape(operand(3), {dirs, 2, sums});
    auto half = [&](int64_t i) {
      return e.Op("Slice", {both, e.Ints({i}), e.Ints({i + 1}), e.Ints({1})});
    };
    product.push_back(e.Reshape(half(0), {dirs * sums}));
    of_state = e.Reshape(half(1), {dirs, sums});
  }
  const ValueId p = e.Op("Gemm", product, {{"transB", int64_t{1}}});
  std::vector<ValueId> inputs = {e.Reshape(p, {x[0], x[1], dirs, sums}), of_old, of_state, e.In(4)};
  for (int i = 5; i < 8; ++i) inputs.push_back(operand(i));
  Attrs attrs;
  for (const auto& [name, value] : e.node().attrs) attrs[name] = value;
  std::vector<ValueId> y =
      e.Ops("ge." + e.node().op->name, inputs, e.NumOutputs(), std::move(attrs));
  for (int o = 0; o < e.NumOutputs(); ++o) y[o] = e.Wants(o) ? e.Cast(y[o], out) : kNone;
  return e.Done(y);
}

Recurrent::Recurrent(Lowering& lowering, int num_gates,
                     std::vector<std::string> default_activations, const Dots* how)
    : l(lowering),
      gates(num_gates),
      activations_per_direction(static_cast<int>(default_activations.size())),
      dots(how) {
  const Dims &p = l.In(0).dims, &r = l.In(1).dims;
  batch_first = l.Int("layout", 0) != 0;
  seq = p[batch_first ? 1 : 0];
  batch = p[batch_first ? 0 : 1];
  dirs = p[2];
  hidden = r[2];
  t = ComputeType(l.In(0).dtype);
  activations = AttrOr<std::vector<std::string>>(l.node, "activations", {});
  const int64_t wanted = Directions(l.Str("direction", "forward")) * activations_per_direction;
  while (static_cast<int64_t>(activations.size()) < wanted)
    activations.push_back(default_activations[activations.size() % default_activations.size()]);
  // Functions take the given numbers in turn, those that have none pass.
  const auto alphas = AttrOr<std::vector<float>>(l.node, "activation_alpha", {});
  const auto betas = AttrOr<std::vector<float>>(l.node, "activation_beta", {});
  for (size_t i = 0, a = 0, k = 0; i < activations.size(); ++i) {
    const Activation* f = FindActivation(activations[i]);
    GE_CHECK(f, "activation " + activations[i]);
    const auto next = [](const std::vector<float>& given, bool takes, size_t& at,
                         double otherwise) {
      return takes && at < given.size() ? given[at++] : static_cast<float>(otherwise);
    };
    alpha.push_back(next(alphas, f->takes > 0, a, f->alpha));
    beta.push_back(next(betas, f->takes > 1, k, f->beta));
  }
  clip = l.Float("clip", 0);
}

void Recurrent::ForChunks(const std::function<void(const Chunk&)>& body) const {
  if (dots == nullptr)
    return l.ForEach({dirs, batch}, false,
                     [&](const Index& i) { body({dirs.IsConst(1) ? Expr(0) : i[0], i[1]}); });
  const int64_t most = dots->rows;
  const Expr groups = CeilDiv(batch, most);
  l.b.For("p", dirs * groups, LoopKind::kParallel, [&](Expr p) {
    const Expr first = (groups.IsConst(1) ? Expr(0) : Mod(p, groups)) * most;
    body({dirs.IsConst(1)     ? Expr(0)
          : groups.IsConst(1) ? p
                              : FloorDiv(p, groups),
          first, DivisibleBy(batch, most) ? Expr(most) : Min(most, batch - first)});
  });
}

void Recurrent::ForCells(const Chunk& c, const std::function<void(Expr, Expr)>& body) const {
  auto row = [&](Expr i) { l.b.For("j", hidden, LoopKind::kVector, [&](Expr j) { body(i, j); }); };
  if (c.rows.IsConst(1)) return row(0);
  l.b.For("row", c.rows, LoopKind::kSerial, row);
}

void Recurrent::Walk(const Chunk& c, const std::function<void(Expr)>& step,
                     const std::function<void(Expr)>& idle) const {
  auto& b = l.b;
  Expr length = seq;
  if (l.Has(3)) {
    const Val given = b.Cast(l.Load(3, {c.batch}), DType::kI64);
    length =
        b.LetIndex(Max(Min(given, b.Index(seq)), b.ConstInt(DType::kI64, 0)), 0, Bounds(seq).hi);
  }
  const std::string direction = l.Str("direction", "forward");
  const Expr backward = direction == "bidirectional" ? Eq(c.dir, 1) : Expr(direction == "reverse");
  b.For("t", length, LoopKind::kSerial, [&](Expr s) { step(Select(backward, length - 1 - s, s)); });
  if (length != seq) b.For("t", seq - length, LoopKind::kSerial, [&](Expr s) { idle(length + s); });
}

int Recurrent::Buffer(std::string_view name, int parts) const {
  return l.b.Alloc(name, t, hidden * parts * (dots ? dots->rows : 1));
}

int Recurrent::State(std::string_view name, int initial, const Chunk& c) const {
  const int state = Buffer(name, 1);
  ForCells(c, [&](Expr row, Expr j) {
    const Expr entry = c.batch + row;
    const Index at = batch_first ? Index{entry, c.dir, j} : Index{c.dir, entry, j};
    l.b.Store(state, row * hidden + j, l.Has(initial) ? l.Load(initial, at) : l.b.Const(t, 0));
  });
  return state;
}

Val Recurrent::At(const Chunk& c, Expr time, Expr row, Expr n) const {
  const Expr entry = c.batch + row;
  return l.Load(0, batch_first ? Index{entry, time, c.dir, n} : Index{time, entry, c.dir, n});
}

Val Recurrent::FromInput(const Chunk& c, Expr time, int gate, Expr row, Expr j) const {
  return At(c, time, row, hidden * gate + j);
}

void Recurrent::Sums(const Chunk& c, Expr time, int state, int first_gate, int num_gates,
                     bool input, int into) const {
  const Expr first = hidden * first_gate, count = hidden * num_gates;
  auto sink = [&](Expr row, Expr n, Val sum) {
    if (l.Has(2)) sum = sum + l.Load(2, {c.dir, n});
    if (input) sum = sum + At(c, time, row, n);
    l.b.Store(into, row * (hidden * gates) + n, sum);
  };
  if (dots) return dots->sums(c, state, first, count, sink);
  l.b.For("n", count, LoopKind::kSerial, [&](Expr n) {
    sink(0, first + n, l.b.Reduce(ReduceOp::kSum, {hidden}, [&](auto& i) {
      return l.b.Load(state, i[0]) * l.Load(1, {c.dir, first + n, i[0]});
    }));
  });
}

Val Recurrent::Clipped(Val v) const {
  return clip > 0 ? Max(Min(v, Like(v, clip)), Like(v, -clip)) : v;
}

Val Recurrent::Apply(int number, Val v) const {
  auto& b = l.b;
  const Activation* f = FindActivation(activations[number]);
  GE_CHECK(f, "activation " + activations[number]);
  const double a = alpha[number], k = beta[number];
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
  if (activations[k] == activations[k + n] && alpha[k] == alpha[k + n] && beta[k] == beta[k + n])
    return Apply(k, v);
  const Val x = l.b.Let(v);
  return l.b.Select(l.b.Cast(l.b.Index(Eq(c.dir, 0)), DType::kBool), Apply(k, x), Apply(k + n, x));
}

bool Recurrent::Wants(int output) const {
  return output < static_cast<int>(l.node.outputs.size()) && l.node.outputs[output] != kNone;
}

void Recurrent::YieldY(const Chunk& c, Expr time, Expr row, Expr j, Val v) const {
  if (!Wants(0)) return;
  const Expr entry = c.batch + row;
  l.Yield(0, batch_first ? Index{entry, time, c.dir, j} : Index{time, c.dir, entry, j}, v);
}

void Recurrent::YieldLast(int output, const Chunk& c, int state) const {
  if (!Wants(output)) return;
  ForCells(c, [&](Expr row, Expr j) {
    const Expr entry = c.batch + row;
    l.Yield(output, batch_first ? Index{entry, c.dir, j} : Index{c.dir, entry, j},
            l.b.Load(state, row * hidden + j));
  });
}

}  // namespace ge
