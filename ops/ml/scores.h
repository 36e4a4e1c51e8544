// Scores of the models of ai.onnx.ml, and labels from them.
//   post_transform  NONE, LOGISTIC 1/(1+e^-x), SOFTMAX over a row, SOFTMAX_ZERO (zeros stay zero)
#pragma once

#include <string>
#include <vector>

#include "ir/expand.h"
#include "ir/opdef.h"

namespace ge::ml {

inline constexpr const char* kDomain = "ai.onnx.ml";

// An attribute; empty if it is absent.
inline std::vector<float> FloatsOf(const Node& n, std::string_view name) {
  return AttrOr<std::vector<float>>(n, name, {});
}

// X as f32.
ValueId FloatInput(ExpandBuilder& e, int i);
// A f32 constant.
ValueId Floats(ExpandBuilder& e, std::vector<int64_t> dims, const std::vector<float>& values);
Status CheckTransform(const InferContext& c);
// scores [N, C] after post_transform; kNone if it is not known.
ValueId Transformed(ExpandBuilder& e, ValueId scores);

// classlabels_ints / classlabels_int64s or classlabels_strings.
struct Labels {
  std::vector<int64_t> numbers;
  std::vector<std::string> strings;
  size_t size() const { return strings.empty() ? numbers.size() : strings.size(); }
  DType type() const { return strings.empty() ? DType::kI64 : DType::kString; }
};
Labels LabelsOf(const Node& n);
// Positions [N] in the list of labels, to labels.
ValueId LabelsAt(ExpandBuilder& e, const Labels& labels, ValueId positions);
// Type and shape of a classifier's outputs: labels [N], scores [N, columns].
Status InferClassifier(InferContext& c, Expr columns);

}  // namespace ge::ml
