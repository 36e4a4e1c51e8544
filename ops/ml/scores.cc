// See scores.h.
#include "ops/ml/scores.h"

#include <fmt/format.h>

#include "ops/shapes.h"

namespace ge::ml {

ValueId FloatInput(ExpandBuilder& e, int i) { return e.Cast(e.In(i), DType::kF32); }

ValueId Floats(ExpandBuilder& e, std::vector<int64_t> dims, const std::vector<float>& values) {
  return e.Constant(DType::kF32, std::move(dims), {values.begin(), values.end()});
}

Status CheckTransform(const InferContext& c) {
  const std::string name = c.Str("post_transform", "NONE");
  for (const char* known : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"})
    if (name == known) return {};
  return Unsupported(fmt::format(
      "post_transform '{}' given; allowed: NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO", name));
}

ValueId Transformed(ExpandBuilder& e, ValueId scores) {
  const std::string name = e.Str("post_transform", "NONE");
  if (name == "LOGISTIC") return e.Op("Sigmoid", {scores});
  if (name == "SOFTMAX") return e.Op("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (name != "SOFTMAX_ZERO") return scores;
  // exp(x - max) of what is not zero, over the sum of those.
  const ValueId zero = e.ScalarLike(scores, 0);
  const ValueId most = e.Op("ReduceMax", {scores, e.Ints({-1})});
  const ValueId power = e.Op("Exp", {e.Op("Sub", {scores, most})});
  const ValueId is_zero = e.Op("Equal", {scores, zero});
  const ValueId kept = e.Op("Where", {is_zero, zero, power});
  return e.Op("Div", {kept, e.Op("ReduceSum", {kept, e.Ints({-1})})});
}

Labels LabelsOf(const Node& n) {
  Labels labels;
  labels.numbers = AttrOr<std::vector<int64_t>>(n, "classlabels_ints", {});
  if (labels.numbers.empty())
    labels.numbers = AttrOr<std::vector<int64_t>>(n, "classlabels_int64s", {});
  labels.strings = AttrOr<std::vector<std::string>>(n, "classlabels_strings", {});
  return labels;
}

ValueId LabelsAt(ExpandBuilder& e, const Labels& labels, ValueId positions) {
  if (labels.strings.empty()) return e.Op("Gather", {e.Ints(labels.numbers), positions});
  std::vector<int64_t> keys;
  for (size_t i = 0; i < labels.strings.size(); ++i) keys.push_back(static_cast<int64_t>(i));
  return e.Op("ai.onnx.ml.LabelEncoder", {positions},
              {{"keys_int64s", keys}, {"values_strings", labels.strings}});
}

Status InferClassifier(InferContext& c, Expr columns) {
  GE_TRY(CheckTransform(c));
  const Labels labels = LabelsOf(c.node);
  if (labels.size() == 0)
    return c.Fault("classlabels_ints and classlabels_strings are both missing");
  const Dims& x = c.In(0).dims;
  if (x.size() != 1 && x.size() != 2)
    return c.Fault(fmt::format("X {} must have rank 1 or 2", ShapeText(x)));
  const Expr rows = x.size() == 2 ? x[0] : Expr(1);
  c.Out(0, labels.type(), {rows});
  c.Out(1, DType::kF32, {rows, columns});
  return {};
}

}  // namespace ge::ml
