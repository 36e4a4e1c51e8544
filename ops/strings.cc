// Operators on strings; their tensors live in object slots, host kernels (rt/host/strings.cc) do
// them.
//   StringConcat      a[i] + b[i], broadcast
//   StringSplit       parts of each string along a new last axis, filled with ""; and their numbers
//   StringNormalizer  without stop words, in one case
//   RegexFullMatch    whether the whole string matches
//   TfIdfVectorizer   counts (or weights) of n-grams from a pool
// and of ai.onnx.ml: LabelEncoder (keys to values), Binarizer, ArrayFeatureExtractor.
#include <fmt/format.h>

#include <algorithm>

#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

Status CheckStrings(const InferContext& c, int i) {
  if (c.In(i).dtype == DType::kString) return {};
  return c.Fault(fmt::format("input {} is {}, but must be strings", i, Name(c.In(i).dtype)));
}

Status InferStringConcat(InferContext& c) {
  GE_TRY(CheckStrings(c, 0));
  GE_TRY(CheckStrings(c, 1));
  return InferBroadcast(c);
}

Status InferStringSplit(InferContext& c) {
  GE_TRY(CheckStrings(c, 0));
  Dims out = c.In(0).dims;
  c.Out(1, DType::kI64, out);
  out.push_back(c.Fresh("parts"));
  c.Out(0, DType::kString, out);
  return {};
}

Status InferStringNormalizer(InferContext& c) {
  GE_TRY(CheckStrings(c, 0));
  const std::string change = c.Str("case_change_action", "NONE");
  if (change != "NONE" && change != "LOWER" && change != "UPPER")
    return c.Fault(
        fmt::format("case_change_action is '{}', but must be NONE, LOWER or UPPER", change));
  if (c.In(0).rank() < 1 || c.In(0).rank() > 2)
    return c.Fault(fmt::format("X {} must be [C] or [1, C]", ShapeText(c.In(0).dims)));
  Dims out = c.In(0).dims;
  // At least one string is left: "" if none is.
  if (!AttrOr<std::vector<std::string>>(c.node, "stopwords", {}).empty())
    out.back() = c.Fresh("words", 1, std::max<int64_t>(1, Bounds(out.back()).hi));
  c.Out(0, DType::kString, out);
  return {};
}

Status InferRegexFullMatch(InferContext& c) {
  GE_TRY(CheckStrings(c, 0));
  if (!HasAttr(c.node, "pattern")) return c.Fault("attribute pattern is missing");
  c.Out(0, DType::kBool, c.In(0).dims);
  return {};
}

Status InferTfIdf(InferContext& c) {
  const auto columns = c.Ints("ngram_indexes");
  if (columns.empty() || c.Ints("ngram_counts").empty())
    return c.Fault("ngram_indexes or ngram_counts is missing");
  for (int64_t k : columns)
    if (k < 0) return c.Fault(fmt::format("ngram_indexes must not be negative, got {}", k));
  const Dims& x = c.In(0).dims;
  if (x.size() < 1 || x.size() > 2)
    return c.Fault(fmt::format("X {} must have rank 1 or 2", ShapeText(x)));
  Dims out(x.begin(), x.end() - 1);
  out.push_back(*std::max_element(columns.begin(), columns.end()) + 1);
  c.Out(0, DType::kF32, out);
  return {};
}

const OpDef& kStringConcat = Register({.name = "StringConcat",
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .infer = InferStringConcat,
                                       .host = "StringConcat"});
const OpDef& kStringSplit = Register(
    {.name = "StringSplit", .max_outputs = 2, .infer = InferStringSplit, .host = "StringSplit"});
const OpDef& kStringNormalizer = Register(
    {.name = "StringNormalizer", .infer = InferStringNormalizer, .host = "StringNormalizer"});
const OpDef& kRegexFullMatch =
    Register({.name = "RegexFullMatch", .infer = InferRegexFullMatch, .host = "RegexFullMatch"});
const OpDef& kTfIdf =
    Register({.name = "TfIdfVectorizer", .infer = InferTfIdf, .host = "TfIdfVectorizer"});

// The dtype of a label list: the attribute that is there.
std::optional<DType> LabelType(const Node& n, const std::string& what) {
  if (auto it = n.attrs.find(what + "_tensor"); it != n.attrs.end()) {
    const auto* tensor = std::get_if<std::shared_ptr<const Constant>>(&it->second);
    if (tensor && *tensor) return (*tensor)->dtype;
  }
  if (HasAttr(n, what + "_strings")) return DType::kString;
  if (HasAttr(n, what + "_int64s")) return DType::kI64;
  if (HasAttr(n, what + "_floats")) return DType::kF32;
  return std::nullopt;
}

// A tensor attribute becomes the list attribute that the host kernel reads.
void FlattenLabels(Node& n, const std::string& what) {
  auto it = n.attrs.find(what + "_tensor");
  if (it == n.attrs.end()) return;
  const auto* held = std::get_if<std::shared_ptr<const Constant>>(&it->second);
  if (!held || !*held) return;
  const Constant& c = **held;
  const bool list = what != "default";
  if (c.dtype == DType::kString) {
    if (list)
      n.attrs[what + "_strings"] = c.strings;
    else if (!c.strings.empty())
      n.attrs[what + "_string"] = c.strings[0];
  } else if (IsFloat(c.dtype)) {
    const std::vector<double> v = FloatElements(c);
    if (list)
      n.attrs[what + "_floats"] = std::vector<float>(v.begin(), v.end());
    else if (!v.empty())
      n.attrs[what + "_float"] = static_cast<float>(v[0]);
  } else {
    const std::vector<int64_t> v = IntElements(c);
    if (list)
      n.attrs[what + "_int64s"] = v;
    else if (!v.empty())
      n.attrs[what + "_int64"] = v[0];
  }
}

Status InferLabelEncoder(InferContext& c) {
  const auto keys = LabelType(c.node, "keys"), values = LabelType(c.node, "values");
  if (!keys || !values) return c.Fault("keys_* or values_* is missing");
  if (*keys != c.In(0).dtype)
    return c.Fault(fmt::format("keys are {}, but X is {}", Name(*keys), Name(c.In(0).dtype)));
  c.Out(0, *values, c.In(0).dims);
  for (const char* what : {"keys", "values", "default"}) FlattenLabels(c.node, what);
  return {};
}

const OpDef& kLabelEncoder = Register({.name = "LabelEncoder",
                                       .domain = "ai.onnx.ml",
                                       .infer = InferLabelEncoder,
                                       .host = "LabelEncoder"});

bool ExpandBinarizer(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId x = e.In(0);
  return e.Done(
      {e.Cast(e.Op("Greater", {x, e.ScalarLike(x, e.Float("threshold", 0))}), e.Type(x))});
}

const OpDef& kBinarizer = Register({.name = "Binarizer",
                                    .domain = "ai.onnx.ml",
                                    .infer = InferSameAsInput,
                                    .expand = ExpandBinarizer,
                                    .samples = {"(f32[2,3]) {threshold=1.0}"}});

Status InferArrayFeatureExtractor(InferContext& c) {
  GE_TRY(CheckMinRank(c, 0, 1));
  Dims out = c.In(0).dims;
  out.back() = c.In(1).Elements();
  if (out.size() == 1) out.insert(out.begin(), 1);
  c.Out(0, c.In(0).dtype, out);
  return {};
}

bool ExpandArrayFeatureExtractor(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const auto count = Product(e.Dims(e.In(1)));
  const ValueId y = e.Op("Gather", {e.In(0), e.Reshape(e.In(1), {count})}, {{"axis", int64_t{-1}}});
  return e.Done({e.Reshape(y, e.OutType(0).dims)});
}

const OpDef& kArrayFeatureExtractor = Register({.name = "ArrayFeatureExtractor",
                                                .domain = "ai.onnx.ml",
                                                .min_inputs = 2,
                                                .max_inputs = 2,
                                                .infer = InferArrayFeatureExtractor,
                                                .expand = ExpandArrayFeatureExtractor,
                                                .samples = {"(f32[3,4], i64[2])"}});

}  // namespace
}  // namespace ge
