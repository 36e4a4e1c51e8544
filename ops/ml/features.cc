// Preparation of features, of ai.onnx.ml:
//   Scaler      (x - offset) * scale, of one value or one per column
//   Normalizer  a row over its greatest absolute value (MAX), its sum of absolute values (L1), or
//               its length (L2); a row of zeros stays
//   Imputer     imputed_value where x is replaced_value (NaN: where x is NaN)
//   OneHotEncoder   y[..., k] = x == cats[k]
//   FeatureVectorizer  its inputs side by side
//   ZipMap      a map from labels to scores for each row: the scores as they are, a column per
//               label in the order of classlabels_*
#include <fmt/format.h>

#include <cmath>

#include "ops/ml/scores.h"
#include "ops/shapes.h"

namespace ge::ml {
namespace {

Status InferFloat(InferContext& c) {
  c.Out(0, DType::kF32, c.In(0).dims);
  return {};
}

ValueId PerColumn(ExpandBuilder& e, const char* name, float otherwise) {
  auto values = AttrOr<std::vector<float>>(e.node(), name, {});
  if (values.empty()) values = {otherwise};
  const auto n = static_cast<int64_t>(values.size());
  return Floats(e, {n}, values);
}

bool ExpandScaler(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId shifted = e.Op("Sub", {FloatInput(e, 0), PerColumn(e, "offset", 0)});
  return e.Done({e.Op("Mul", {shifted, PerColumn(e, "scale", 1)})});
}

Status InferNormalizer(InferContext& c) {
  const std::string norm = c.Str("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return c.Fault(fmt::format("norm '{}' given; allowed: MAX, L1, L2", norm));
  GE_TRY(CheckMinRank(c, 0, 1));
  return InferFloat(c);
}

bool ExpandNormalizer(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId x = FloatInput(e, 0), last = e.Ints({-1});
  const std::string norm = e.Str("norm", "MAX");
  ValueId size;
  if (norm == "MAX")
    size = e.Op("ReduceMax", {x, last});
  else
    size = e.Op(norm == "L1" ? "ReduceL1" : "ReduceL2", {x, last});
  const ValueId zero = e.Op("Equal", {size, e.ScalarLike(size, 0)});
  return e.Done({e.Op("Div", {x, e.Op("Where", {zero, e.ScalarLike(size, 1), size})})});
}

Status InferImputer(InferContext& c) {
  if (IsFloat(c.In(0).dtype) == c.Ints("imputed_value_int64s").empty()) return InferSameAsInput(c);
  return c.Fault("imputed_value_floats or imputed_value_int64s does not suit X");
}

bool ExpandImputer(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId x = e.In(0);
  if (!IsFloat(e.Type(x))) {
    const ValueId old = e.Scalar(e.Type(x), static_cast<double>(e.Int("replaced_value_int64", 0)));
    return e.Done({e.Op("Where", {e.Op("Equal", {x, old}),
                                  e.Cast(e.Ints(e.Ints("imputed_value_int64s")), e.Type(x)), x})});
  }
  const float old = e.Float("replaced_value_float", 0);
  const ValueId hit =
      std::isnan(old) ? e.Op("IsNaN", {x}) : e.Op("Equal", {x, e.ScalarLike(x, old)});
  const ValueId fill = e.Cast(PerColumn(e, "imputed_value_floats", 0), e.Type(x));
  return e.Done({e.Op("Where", {hit, fill, x})});
}

Status InferOneHot(InferContext& c) {
  const size_t numbers = c.Ints("cats_int64s").size(),
               strings = AttrOr<std::vector<std::string>>(c.node, "cats_strings", {}).size();
  const bool text = c.In(0).dtype == DType::kString;
  if ((text ? strings : numbers) == 0)
    return c.Fault(fmt::format("{} is missing", text ? "cats_strings" : "cats_int64s"));
  Dims out = c.In(0).dims;
  out.push_back(static_cast<int64_t>(text ? strings : numbers));
  c.Out(0, DType::kF32, out);
  return {};
}

bool ExpandOneHot(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  ValueId x = e.In(0);
  std::vector<int64_t> cats = e.Ints("cats_int64s");
  if (e.Type(x) == DType::kString) {
    const auto strings = AttrOr<std::vector<std::string>>(e.node(), "cats_strings", {});
    cats.clear();
    for (size_t i = 0; i < strings.size(); ++i) cats.push_back(static_cast<int64_t>(i));
    x = e.Op("ai.onnx.ml.LabelEncoder", {x},
             {{"keys_strings", strings}, {"values_int64s", cats}, {"default_int64", int64_t{-1}}});
  }
  const ValueId column = e.Op("Unsqueeze", {e.Cast(x, DType::kI64), e.Ints({-1})});
  return e.Done({e.Cast(e.Op("Equal", {column, e.Ints(cats)}), DType::kF32)});
}

Status InferVectorizer(InferContext& c) {
  Expr width = 0, rows = 1;
  for (int i = 0; i < c.NumInputs(); ++i) {
    const Dims& x = c.In(i).dims;
    if (x.size() != 1 && x.size() != 2)
      return c.Fault(fmt::format("X {} must have rank 1 or 2", ShapeText(x)));
    width = width + x.back();
    if (x.size() == 2) rows = x[0];
  }
  c.Out(0, DType::kF32, {rows, width});
  return {};
}

bool ExpandVectorizer(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  std::vector<ValueId> parts;
  for (int i = 0; i < e.NumInputs(); ++i) {
    ValueId x = FloatInput(e, i);
    if (e.Rank(x) == 1) x = e.Op("Unsqueeze", {x, e.Ints({0})});
    parts.push_back(x);
  }
  return e.Done({e.Op("Concat", parts, {{"axis", int64_t{1}}})});
}

Status InferZipMap(InferContext& c) {
  const auto labels = static_cast<int64_t>(LabelsOf(c.node).size());
  if (labels == 0) return c.Fault("classlabels_int64s or classlabels_strings is missing");
  GE_TRY(CheckMinRank(c, 0, 1));
  c.Check(Eq(c.In(0).dims.back(), labels),
          fmt::format("X {} does not have a column for each of {} labels", ShapeText(c.In(0).dims),
                      labels));
  return InferFloat(c);
}

bool ExpandZipMap(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  return e.Done({e.Op("Identity", {FloatInput(e, 0)})});
}

OpDef Feature(const char* name, Status (*infer)(InferContext&), bool (*expand)(Graph&, NodeId),
              std::vector<std::string> samples) {
  return {.name = name,
          .domain = kDomain,
          .infer = infer,
          .expand = expand,
          .samples = std::move(samples)};
}

const OpDef& kScaler = Register(
    Feature("Scaler", InferFloat, ExpandScaler, {"(f32[3,2]) {offset=[0.5, 1.0], scale=[2.0]}"}));
const OpDef& kNormalizer = Register(
    Feature("Normalizer", InferNormalizer, ExpandNormalizer, {"(f32[3,4]) {norm=\"L2\"}"}));
const OpDef& kImputer = Register(
    Feature("Imputer", InferImputer, ExpandImputer, {"(f32[3,2]) {imputed_value_floats=[0.5]}"}));
const OpDef& kOneHotEncoder = Register(
    Feature("OneHotEncoder", InferOneHot, ExpandOneHot, {"(i64[3]) {cats_int64s=[1, 2, 3]}"}));
const OpDef& kZipMap = Register(
    Feature("ZipMap", InferZipMap, ExpandZipMap, {"(f32[3,2]) {classlabels_int64s=[7, 3]}"}));
const OpDef& kFeatureVectorizer = Register({.name = "FeatureVectorizer",
                                            .domain = kDomain,
                                            .max_inputs = -1,
                                            .infer = InferVectorizer,
                                            .expand = ExpandVectorizer,
                                            .samples = {"(f32[3,2], f32[3,4])"}});

}  // namespace
}  // namespace ge::ml
