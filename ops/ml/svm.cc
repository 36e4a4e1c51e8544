// Support vector machines of ai.onnx.ml. K(x, v) is x.v (LINEAR), (gamma x.v + c)^degree (POLY),
// tanh(gamma x.v + c) (SIGMOID) or exp(-gamma |x - v|^2) (RBF).
//   SVMRegressor   sum over v of coefficient[v] K(x, v) + rho; its sign if one_class
//   SVMClassifier  for classes i < j the margin sum_{v of i} c[j-1, v] K + sum_{v of j} c[i, v] K
//                  + rho: a vote for i where it is positive, else for j; most votes win
//                  With prob_a and prob_b the scores are probabilities of the classes, by coupling
//                  those of the pairs, 1 - logistic(a margin + b); the votes still name the winner
// Without support vectors the coefficients are the vectors themselves.
#include <fmt/format.h>

#include <algorithm>

#include "ops/ml/scores.h"
#include "ops/shapes.h"

namespace ge::ml {
namespace {

Status CheckKernel(const InferContext& c) {
  GE_TRY(CheckTransform(c));
  GE_TRY(CheckRank(c, 0, 2));
  const std::string kernel = c.Str("kernel_type", "LINEAR");
  for (const char* known : {"LINEAR", "POLY", "SIGMOID", "RBF"})
    if (kernel == known) return {};
  return c.Fault(
      fmt::format("kernel_type '{}' given; allowed: LINEAR, POLY, SIGMOID, RBF", kernel));
}

// K(X, V): [N, S] for V of shape [S, F].
ValueId KernelOf(ExpandBuilder& e, ValueId x, int64_t vectors, const std::vector<float>& values) {
  if (values.empty() || vectors < 1 || values.size() % vectors != 0) return kNone;
  const auto features = static_cast<int64_t>(values.size()) / vectors;
  const auto params = FloatsOf(e.node(), "kernel_params");
  const auto param = [&](size_t i) { return i < params.size() ? params[i] : 0.0F; };
  const std::string kernel = e.Str("kernel_type", "LINEAR");
  const ValueId v = Floats(e, {vectors, features}, values);
  const auto scale = [&](ValueId a, float k) { return e.Op("Mul", {a, e.ScalarLike(a, k)}); };
  if (kernel == "RBF") {
    const ValueId d = e.Op("Sub", {e.Op("Unsqueeze", {x, e.Ints({1})}), v});
    const ValueId square = e.Op("ReduceSumSquare", {d, e.Ints({2})}, {{"keepdims", int64_t{0}}});
    return e.Op("Exp", {scale(square, -param(0))});
  }
  const ValueId dot =
      e.Op("MatMul", {x, e.Op("Transpose", {v}, {{"perm", std::vector<int64_t>{1, 0}}})});
  if (kernel == "LINEAR") return dot;
  const ValueId inner = scale(dot, param(0));
  const ValueId moved = e.Op("Add", {inner, e.ScalarLike(inner, param(1))});
  return kernel == "SIGMOID" ? e.Op("Tanh", {moved})
                             : e.Op("Pow", {moved, e.ScalarLike(moved, param(2))});
}

Status InferRegressor(InferContext& c) {
  GE_TRY(CheckKernel(c));
  if (FloatsOf(c.node, "coefficients").empty()) return c.Fault("coefficients are missing");
  c.Out(0, DType::kF32, {c.In(0).dims[0], 1});
  return {};
}

bool ExpandRegressor(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const int64_t supports = e.Int("n_supports", 0);
  const auto coefficients = FloatsOf(e.node(), "coefficients"), rho = FloatsOf(e.node(), "rho");
  ValueId y;
  if (supports > 0) {
    if (static_cast<int64_t>(coefficients.size()) != supports) return false;
    const ValueId k =
        KernelOf(e, FloatInput(e, 0), supports, FloatsOf(e.node(), "support_vectors"));
    y = e.Op("MatMul", {k, Floats(e, {supports, 1}, coefficients)});
  } else {
    y = KernelOf(e, FloatInput(e, 0), 1, coefficients);
  }
  y = e.Op("Add", {y, e.ScalarLike(y, rho.empty() ? 0 : rho[0])});
  if (e.Int("one_class", 0) != 0)
    return e.Done({e.Op("Where", {e.Op("Greater", {y, e.ScalarLike(y, 0)}), e.ScalarLike(y, 1),
                                  e.ScalarLike(y, -1)})});
  return e.Done({Transformed(e, y)});
}

Status InferSvmClassifier(InferContext& c) {
  GE_TRY(CheckKernel(c));
  const auto per_class = c.Ints("vectors_per_class");
  const auto classes = static_cast<int64_t>(LabelsOf(c.node).size());
  if (per_class.empty()) return Unsupported("SVMClassifier without vectors_per_class");
  if (static_cast<int64_t>(per_class.size()) != classes)
    return c.Fault(fmt::format("vectors_per_class has {} values; allowed: {}, one per label",
                               per_class.size(), classes));
  int64_t supports = 0;
  for (int64_t k : per_class) {
    if (k < 0) return c.Fault("vectors_per_class must not be negative");
    supports += k;
  }
  const int64_t pairs = classes * (classes - 1) / 2;
  if (static_cast<int64_t>(FloatsOf(c.node, "coefficients").size()) != supports * (classes - 1) ||
      static_cast<int64_t>(FloatsOf(c.node, "rho").size()) != pairs)
    return c.Fault("coefficients or rho do not have the number of values that the classes need");
  const size_t a = FloatsOf(c.node, "prob_a").size(), b = FloatsOf(c.node, "prob_b").size();
  if (a != b || (a != 0 && static_cast<int64_t>(a) != pairs))
    return c.Fault(
        fmt::format("prob_a has {} values and prob_b {}; allowed: {} each, or none", a, b, pairs));
  return InferClassifier(c, classes == 2 || a != 0 ? Expr(classes) : Expr(pairs));
}

// Row v, column p: the coefficient of vector v in the margin of pair p.
std::vector<float> PairMatrix(const Node& n, const std::vector<int64_t>& per_class,
                              int64_t supports) {
  const auto coefficients = FloatsOf(n, "coefficients");
  const auto classes = static_cast<int64_t>(per_class.size());
  const int64_t pairs = classes * (classes - 1) / 2;
  std::vector<int64_t> first(classes, 0);
  for (int64_t i = 1; i < classes; ++i) first[i] = first[i - 1] + per_class[i - 1];
  std::vector<float> m(supports * pairs, 0.0F);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      for (int64_t v = first[i]; v < first[i] + per_class[i]; ++v)
        m[v * pairs + pair] = coefficients[(j - 1) * supports + v];
      for (int64_t v = first[j]; v < first[j] + per_class[j]; ++v)
        m[v * pairs + pair] = coefficients[i * supports + v];
    }
  return m;
}

// [N, classes] of the margins [N, pairs].
ValueId Probabilities(ExpandBuilder& e, ValueId margins, int64_t pairs, int64_t classes) {
  const ValueId a = Floats(e, {pairs}, FloatsOf(e.node(), "prob_a")),
                b = Floats(e, {pairs}, FloatsOf(e.node(), "prob_b"));
  const ValueId fit = e.Op("Add", {e.Op("Mul", {margins, a}), b});
  return e.Op("ge.CoupledProbabilities", {e.Op("Sigmoid", {e.Op("Neg", {fit})})},
              {{"classes", classes}});
}

Status InferCoupled(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 2));
  c.Out(0, DType::kF32, {c.In(0).dims[0], c.Int("classes", 2)});
  return {};
}

const OpDef& kCoupled = Register({.name = "CoupledProbabilities",
                                  .domain = "ge",
                                  .infer = InferCoupled,
                                  .host = "CoupledProbabilities"});

bool ExpandClassifier(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const Labels labels = LabelsOf(e.node());
  const auto classes = static_cast<int64_t>(labels.size());
  const auto per_class = e.Ints("vectors_per_class");
  int64_t supports = 0;
  for (int64_t k : per_class) supports += k;
  const int64_t pairs = classes * (classes - 1) / 2;
  const ValueId k = KernelOf(e, FloatInput(e, 0), supports, FloatsOf(e.node(), "support_vectors"));
  const ValueId product =
      e.Op("MatMul", {k, Floats(e, {supports, pairs}, PairMatrix(e.node(), per_class, supports))});
  ValueId margins = e.Op("Add", {product, Floats(e, {pairs}, FloatsOf(e.node(), "rho"))});
  // Votes: [N, pairs] of +-1 times who gains by them.
  const ValueId won = e.Cast(e.Op("Greater", {margins, e.ScalarLike(margins, 0)}), DType::kF32);
  std::vector<float> gain(pairs * classes, 0.0F), base(classes, 0.0F);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      gain[pair * classes + i] = 1;
      gain[pair * classes + j] = -1;
      base[j] += 1;
    }
  const ValueId votes = e.Op("Add", {e.Op("MatMul", {won, Floats(e, {pairs, classes}, gain)}),
                                     Floats(e, {classes}, base)});
  const ValueId at = e.Op("ArgMax", {votes}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  if (!FloatsOf(e.node(), "prob_a").empty())
    margins = Probabilities(e, margins, pairs, classes);
  else if (classes == 2)
    margins = e.Op("Concat", {e.Op("Neg", {margins}), margins}, {{"axis", int64_t{1}}});
  return e.Done(
      {e.Wants(0) ? LabelsAt(e, labels, at) : kNone, e.Wants(1) ? Transformed(e, margins) : kNone});
}

const OpDef& kSvmRegressor =
    Register({.name = "SVMRegressor",
              .domain = kDomain,
              .infer = InferRegressor,
              .expand = ExpandRegressor,
              .samples = {"(f32[3,2]) {coefficients=[0.5, -1.0], n_supports=2, rho=[0.25], "
                          "support_vectors=[1.0, 2.0, 3.0, 4.0]}"}});
const OpDef& kSvmClassifier = Register({.name = "SVMClassifier",
                                        .domain = kDomain,
                                        .min_outputs = 1,
                                        .max_outputs = 2,
                                        .infer = InferSvmClassifier,
                                        .expand = ExpandClassifier});

}  // namespace
}  // namespace ge::ml
