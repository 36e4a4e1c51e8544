// Linear models of ai.onnx.ml, with W of shape [targets, features]:
//   LinearRegressor   Y = post(X W^T + intercepts)
//   LinearClassifier  scores as above; the label of the greatest. One row of W for two labels: the
//                     second label where its score is positive, scores (1 - s, s)
#include <fmt/format.h>

#include "ops/ml/scores.h"
#include "ops/shapes.h"

namespace ge::ml {
namespace {

Result<int64_t> Features(const Node& n, int64_t targets) {
  const auto size = static_cast<int64_t>(FloatsOf(n, "coefficients").size());
  if (targets < 1 || size % targets != 0 || size == 0)
    return Invalid(
        fmt::format("{} coefficients given; allowed: a multiple of {} targets", size, targets));
  return size / targets;
}

ValueId Scores(ExpandBuilder& e, int64_t targets, int64_t features) {
  ValueId x = FloatInput(e, 0);
  if (e.Rank(x) == 1) x = e.Op("Unsqueeze", {x, e.Ints({0})});
  const ValueId w = Floats(e, {targets, features}, FloatsOf(e.node(), "coefficients"));
  ValueId y = e.Op("MatMul", {x, e.Op("Transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}})});
  const auto intercepts = FloatsOf(e.node(), "intercepts");
  if (static_cast<int64_t>(intercepts.size()) == targets)
    y = e.Op("Add", {y, Floats(e, {targets}, intercepts)});
  return y;
}

Status InferRegressor(InferContext& c) {
  GE_TRY(CheckTransform(c));
  const int64_t targets = c.Int("targets", 1);
  GE_TRY(Features(c.node, targets).status());
  const Dims& x = c.In(0).dims;
  c.Out(0, DType::kF32, {x.size() == 2 ? x[0] : Expr(1), targets});
  return {};
}

bool ExpandRegressor(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const int64_t targets = e.Int("targets", 1);
  auto features = Features(e.node(), targets);
  if (!features.ok()) return false;
  return e.Done({Transformed(e, Scores(e, targets, *features))});
}

int64_t Rows(const Node& n) { return static_cast<int64_t>(FloatsOf(n, "intercepts").size()); }
bool OneForTwo(const Node& n) { return Rows(n) == 1 && LabelsOf(n).size() == 2; }

Status InferLinearClassifier(InferContext& c) {
  const int64_t rows = Rows(c.node);
  if (rows < 1) return c.Fault("intercepts are missing");
  GE_TRY(Features(c.node, rows).status());
  return InferClassifier(c, OneForTwo(c.node) ? 2 : rows);
}

bool ExpandClassifier(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const int64_t rows = Rows(e.node());
  auto features = Features(e.node(), rows);
  if (!features.ok()) return false;
  ValueId scores = Scores(e, rows, *features), at;
  if (rows == 1) {
    const ValueId positive = e.Op("Greater", {scores, e.ScalarLike(scores, 0)});
    at = e.Op("Squeeze", {e.Cast(positive, DType::kI64), e.Ints({1})});
  } else {
    at = e.Op("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  }
  if (OneForTwo(e.node())) {
    const bool softmax = e.Str("post_transform", "NONE").starts_with("SOFTMAX");
    if (!softmax) scores = Transformed(e, scores);
    const ValueId first = e.Op("Sub", {e.ScalarLike(scores, 1), scores});
    scores = e.Op("Concat", {first, scores}, {{"axis", int64_t{1}}});
    if (softmax) scores = Transformed(e, scores);
  } else {
    scores = Transformed(e, scores);
  }
  const Labels labels = LabelsOf(e.node());
  return e.Done({e.Wants(0) ? LabelsAt(e, labels, at) : kNone, e.Wants(1) ? scores : kNone});
}

const OpDef& kLinearRegressor =
    Register({.name = "LinearRegressor",
              .domain = kDomain,
              .infer = InferRegressor,
              .expand = ExpandRegressor,
              .samples = {"(f32[3,2]) {coefficients=[0.5, -1.0], intercepts=[0.25]}"}});
const OpDef& kLinearClassifier = Register({.name = "LinearClassifier",
                                           .domain = kDomain,
                                           .min_outputs = 1,
                                           .max_outputs = 2,
                                           .infer = InferLinearClassifier,
                                           .expand = ExpandClassifier});

}  // namespace
}  // namespace ge::ml
