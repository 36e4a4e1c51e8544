// See precision.h.
#include "tools/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "ir/opdef.h"
#include "tools/op_names.h"

namespace ge {
namespace {

// Mixed precision: what gains by halves, and what loses by them. The rest follows its operands.
constexpr std::array<std::string_view, 7> kWhite = {
    "Conv", "ConvTranspose", "Gemm", "MatMul", "FusedMatMul", "Einsum", "FusedConv"};
constexpr std::array<std::string_view, 38> kBlack = {"Softmax",
                                                     "LogSoftmax",
                                                     "Exp",
                                                     "Log",
                                                     "Pow",
                                                     "Sqrt",
                                                     "Reciprocal",
                                                     "Erf",
                                                     "CumSum",
                                                     "CumProd",
                                                     "ReduceSum",
                                                     "ReduceMean",
                                                     "ReduceProd",
                                                     "ReduceL1",
                                                     "ReduceL2",
                                                     "ReduceLogSum",
                                                     "ReduceLogSumExp",
                                                     "ReduceSumSquare",
                                                     "BatchNormalization",
                                                     "LayerNormalization",
                                                     "InstanceNormalization",
                                                     "GroupNormalization",
                                                     "LpNormalization",
                                                     "MeanVarianceNormalization",
                                                     "RMSNormalization",
                                                     "SimplifiedLayerNormalization",
                                                     "SkipLayerNormalization",
                                                     "SkipSimplifiedLayerNormalization",
                                                     "LRN",
                                                     "GlobalLpPool",
                                                     "LpPool",
                                                     "Softplus",
                                                     "Sinh",
                                                     "Cosh",
                                                     "Tan",
                                                     "NegativeLogLikelihoodLoss",
                                                     "SoftmaxCrossEntropyLoss",
                                                     "Det"};
// Their f32 operands are no data of a network, or their results no numbers to round.
constexpr std::array<std::string_view, 22> kNever = {"Cast",
                                                     "CastLike",
                                                     "BitCast",
                                                     "QuantizeLinear",
                                                     "DequantizeLinear",
                                                     "DynamicQuantizeLinear",
                                                     "Range",
                                                     "NonMaxSuppression",
                                                     "RandomNormal",
                                                     "RandomUniform",
                                                     "RandomNormalLike",
                                                     "RandomUniformLike",
                                                     "Multinomial",
                                                     "EyeLike",
                                                     "ConstantOfShape",
                                                     "If",
                                                     "Loop",
                                                     "Scan",
                                                     "SequenceMap",
                                                     "Bernoulli",
                                                     "ImageDecoder",
                                                     "RoiAlign"};
// Rounded operands give rounded results.
constexpr std::array<std::string_view, 33> kExact = {"Reshape",
                                                     "Transpose",
                                                     "Flatten",
                                                     "Squeeze",
                                                     "Unsqueeze",
                                                     "Concat",
                                                     "Split",
                                                     "Slice",
                                                     "Gather",
                                                     "GatherElements",
                                                     "GatherND",
                                                     "Identity",
                                                     "Expand",
                                                     "Tile",
                                                     "Relu",
                                                     "MaxPool",
                                                     "GlobalMaxPool",
                                                     "Max",
                                                     "Min",
                                                     "Neg",
                                                     "Abs",
                                                     "DepthToSpace",
                                                     "SpaceToDepth",
                                                     "Where",
                                                     "ReduceMax",
                                                     "ReduceMin",
                                                     "Clip",
                                                     "Pad",
                                                     "ScatterElements",
                                                     "ScatterND",
                                                     "TopK",
                                                     "Dropout",
                                                     "Sign"};
template <class List>
bool In(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

Fault Bad(const std::string& option, int line, const std::string& what, const char* how) {
  return {"E10014", fmt::format("[--{}] line {}: {}", option, line, what), how};
}

// Text lines of a file, without comments and empty ones.
Fault ReadLines(const AtcOptions& o, const std::string& option,
                std::vector<std::pair<int, std::string>>* lines) {
  if (!o.Has(option)) return {};
  std::string text;
  if (Fault f = ReadSmallFile(option, o.Get(option), &text); f.any()) return f;
  int number = 0;
  for (const std::string& line : SplitList(text, '\n')) {
    ++number;
    if (!line.empty() && line[0] != '#') lines->emplace_back(number, line);
  }
  return {};
}

// "OpType::Name" is an operator, anything else a node.
std::string Subject(const std::string& text) {
  constexpr std::string_view kType = "OpType::";
  return text.starts_with(kType) ? "OpType::" + OnnxName(text.substr(kType.size())) : text;
}

Fault ReadKeep(const AtcOptions& o, Precision* p) {
  std::vector<std::pair<int, std::string>> lines;
  if (Fault f = ReadLines(o, "keep_dtype", &lines); f.any()) return f;
  for (const auto& [number, line] : lines)
    for (const std::string& name : SplitList(line, ';'))
      if (!name.empty()) p->keep.insert(Subject(name));
  return {};
}

DType TypeNamed(const std::string& name) {
  if (name == "float16") return DType::kF16;
  if (name == "bfloat16" || name == "bf16") return DType::kBF16;
  return DType::kNone;
}

// Node:InputDtype:float16,float32,OutputDtype:float16    (or OpType::Name:...)
Fault ReadCustom(const AtcOptions& o, Precision* p) {
  constexpr const char* kHow = "name:InputDtype:float16,float32,OutputDtype:float16";
  std::vector<std::pair<int, std::string>> lines;
  if (Fault f = ReadLines(o, "customize_dtypes", &lines); f.any()) return f;
  for (const auto& [number, line] : lines) {
    size_t at = std::string::npos;
    for (const char* key : {":InputDtype:", ":OutputDtype:"}) at = std::min(at, line.find(key));
    if (at == std::string::npos || at == 0)
      return Bad("customize_dtypes", number, fmt::format("[{}] gives no types", line), kHow);
    Precision::Types& types = p->custom[Subject(line.substr(0, at))];
    std::vector<DType>* list = nullptr;
    for (std::string part : SplitList(line.substr(at + 1), ',')) {
      for (const auto& [key, target] :
           {std::pair{"InputDtype:", &types.inputs}, std::pair{"OutputDtype:", &types.outputs}})
        if (part.starts_with(key)) {
          list = target;
          part = part.substr(std::string_view(key).size());
        }
      if (list == nullptr ||
          (TypeNamed(part) == DType::kNone && part != "float32" && part != "float"))
        return Bad("customize_dtypes", number, fmt::format("[{}] is no type of it", part),
                   "float32, float16 or bfloat16");
      list->push_back(TypeNamed(part));
    }
  }
  return {};
}

// {"white-list": {"to-add": [..], "to-remove": [..]}, "black-list": .., "gray-list": ..}
Fault ReadMixList(const AtcOptions& o, Precision* p) {
  if (!o.Has("modify_mixlist")) return {};
  constexpr const char* kHow = R"({"black-list": {"to-add": ["Conv2D"], "to-remove": []}, ...})";
  std::string text;
  if (Fault f = ReadSmallFile("modify_mixlist", o.Get("modify_mixlist"), &text); f.any()) return f;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {"E13005", "[--modify_mixlist] is not a JSON object", kHow};
  for (const auto& [list, changes] : json.items()) {
    if ((list != "white-list" && list != "black-list" && list != "gray-list") ||
        !changes.is_object())
      return {"E10014", fmt::format("[--modify_mixlist] has a member [{}]", list), kHow};
    for (const auto& [change, names] : changes.items()) {
      if ((change != "to-add" && change != "to-remove") || !names.is_array())
        return {"E10014", fmt::format("[--modify_mixlist] {} has a member [{}]", list, change),
                kHow};
      for (const auto& entry : names) {
        if (!entry.is_string())
          return {"E10014", fmt::format("[--modify_mixlist] {} holds no names", list), kHow};
        const std::string name = OnnxName(entry.get<std::string>());
        if (change == "to-remove" && list != "gray-list")
          (list == "white-list" ? p->white : p->black).erase(name);
        if (change == "to-remove") continue;
        p->white.erase(name);
        p->black.erase(name);
        if (list != "gray-list") (list == "white-list" ? p->white : p->black).insert(name);
      }
    }
  }
  return {};
}

// Rounds the values of one graph, each at most once for each type.
class Rounding {
 public:
  Rounding(const Precision& precision, Graph* g, const std::function<void(const std::string&)>& log)
      : p_(precision), g_(*g), log_(log) {}

  int Run() {
    int count = 0;
    const std::vector<NodeId> order = g_.order;
    for (const NodeId n : order) {
      for (const auto& sub : g_.node(n).subgraphs) count += Rounding(p_, sub.get(), log_).Run();
      count += Visit(n) ? 1 : 0;
    }
    SortTopologically(g_);
    return count;
  }

 private:
  bool IsF32(ValueId v) const {
    return v != kNone && g_.value(v).kind == ValueKind::kTensor &&
           g_.value(v).type.dtype == DType::kF32;
  }
  static bool Named(const Node& n, const std::set<std::string>& names) {
    if (names.contains("OpType::" + n.op->name) || names.contains(n.name)) return true;
    return std::any_of(n.origin.begin(), n.origin.end(),
                       [&](const std::string& o) { return names.contains(o); });
  }
  const Precision::Types* Custom(const Node& n) const {
    for (const auto& [name, types] : p_.custom)
      if (Named(n, {name})) return &types;
    return nullptr;
  }
  bool Half(const Node& n) const {
    const std::string& op = n.op->name;
    if (p_.mode == Precision::Mode::kOrigin || In(kNever, op) || Named(n, p_.keep)) return false;
    if (p_.mode == Precision::Mode::kAll) return true;
    if (p_.mode == Precision::Mode::kOperands) return In(kWhite, op);
    if (p_.white.contains(op) || p_.black.contains(op)) return p_.white.contains(op);
    // Grey: if all its operands but constants come from half precision.
    bool any = false;
    for (const ValueId v : n.inputs) {
      if (!IsF32(v) || g_.IsConstant(v)) continue;
      if (!rounded_.contains({v, p_.half})) return false;
      any = true;
    }
    return any;
  }

  bool Visit(NodeId id) {
    const Precision::Types* custom = Custom(g_.node(id));
    const bool half = custom == nullptr && Half(g_.node(id));
    if (!half && custom == nullptr) return false;
    bool touched = false;
    const std::string op = g_.node(id).op->name;
    for (size_t i = 0; i < g_.node(id).inputs.size(); ++i) {
      // The scales of a resize place pixels.
      if ((op == "Resize" || op == "Upsample") && i > 0) break;
      const DType to = half                        ? p_.half
                       : i < custom->inputs.size() ? custom->inputs[i]
                                                   : DType::kNone;
      if (to == DType::kNone || !IsF32(g_.node(id).inputs[i])) continue;
      g_.node(id).inputs[i] = Rounded(g_.node(id).inputs[i], to);
      touched = true;
    }
    const size_t results = g_.node(id).outputs.size();
    for (size_t i = 0; i < results; ++i) {
      const DType to = half                         ? p_.half
                       : i < custom->outputs.size() ? custom->outputs[i]
                                                    : DType::kNone;
      const ValueId v = g_.node(id).outputs[i];
      if (to == DType::kNone || !IsF32(v)) continue;
      touched = true;
      if (half && In(kExact, op)) {
        rounded_[{v, to}] = v;
      } else if (p_.mode != Precision::Mode::kOperands || custom != nullptr) {
        RoundResult(id, i, to);
      }
    }
    if (touched && log_)
      log_(fmt::format("precision: {} ({}) computes in {}", g_.node(id).name, op,
                       half ? Name(p_.half) : "the types given for it"));
    return touched;
  }

  ValueId Cast(ValueId v, DType to, const std::string& name) {
    const NodeId n = g_.AddNode(*FindOp("", "Cast"), name, {v}, 1);
    g_.node(n).attrs["to"] = static_cast<int64_t>(to);
    (void)Infer(g_, g_.node(n));  // a cast between floats always infers
    return g_.node(n).outputs[0];
  }

  ValueId Clipped(ValueId v) {
    constexpr float kLargest = 65504;
    std::vector<ValueId> operands = {v};
    for (const float bound : {-kLargest, kLargest})
      operands.push_back(g_.AddConstant("largest_half", MakeConstant(DType::kF32, {}, &bound)));
    const NodeId n = g_.AddNode(*FindOp("", "Clip"), g_.value(v).name + "_clip", operands, 1);
    (void)Infer(g_, g_.node(n));
    return g_.node(n).outputs[0];
  }

  ValueId Rounded(ValueId v, DType to) {
    const auto known = rounded_.find({v, to});
    if (known != rounded_.end()) return known->second;
    const std::string name = g_.value(v).name;
    const bool clip = p_.clip_weights && g_.IsConstant(v) && to == DType::kF16;
    const ValueId source = clip ? Clipped(v) : v;
    const ValueId wide =
        Cast(Cast(source, to, name + "_to_half"), DType::kF32, name + "_from_half");
    rounded_[{v, to}] = rounded_[{wide, to}] = wide;
    return wide;
  }

  // The value keeps its id, its name and its uses: it is the rounded one, and the node makes
  // another.
  void RoundResult(NodeId id, size_t output, DType to) {
    const ValueId v = g_.node(id).outputs[output];
    const ValueId raw = g_.AddValue(g_.value(v).name + ".f32", g_.value(v).type);
    g_.node(id).outputs[output] = raw;
    g_.value(raw).producer = id;
    const ValueId half = Cast(raw, to, g_.value(v).name + "_to_half");
    const NodeId last = g_.AddNode(*FindOp("", "Cast"), g_.value(v).name + "_from_half", {half}, 0);
    g_.node(last).attrs["to"] = static_cast<int64_t>(DType::kF32);
    g_.node(last).outputs = {v};
    g_.value(v).producer = last;
    rounded_[{v, to}] = v;
  }

  const Precision& p_;
  Graph& g_;
  const std::function<void(const std::string&)>& log_;
  std::map<std::pair<ValueId, DType>, ValueId> rounded_;
};

}  // namespace

Fault ReadPrecision(const AtcOptions& o, Precision* p) {
  using Mode = Precision::Mode;
  struct Row {
    std::string_view name;
    Mode mode;
    DType half;
  };
  // allow_fp32_to_fp16 and its like: f32 where the operator has it, and here every one has.
  constexpr Row kRows[] = {
      {"force_fp16", Mode::kAll, DType::kF16},
      {"fp16", Mode::kAll, DType::kF16},
      {"cube_fp16in_fp32out", Mode::kOperands, DType::kF16},
      {"allow_mix_precision", Mode::kMixed, DType::kF16},
      {"allow_mix_precision_fp16", Mode::kMixed, DType::kF16},
      {"mixed_float16", Mode::kMixed, DType::kF16},
      {"allow_mix_precision_bf16", Mode::kMixed, DType::kBF16},
      {"mixed_bfloat16", Mode::kMixed, DType::kBF16},
  };
  for (const char* option : {"precision_mode", "precision_mode_v2"})
    for (const Row& row : kRows)
      if (o.Has(option) && o.Is(option, row.name)) {
        p->mode = row.mode;
        p->half = row.half;
      }
  p->white.insert(kWhite.begin(), kWhite.end());
  p->black.insert(kBlack.begin(), kBlack.end());
  p->clip_weights = o.Is("is_weight_clip", "1");
  if (Fault f = ReadMixList(o, p); f.any()) return f;
  if (Fault f = ReadKeep(o, p); f.any()) return f;
  return ReadCustom(o, p);
}

int RoundToHalf(const Precision& precision, Graph* g,
                const std::function<void(const std::string&)>& log) {
  return Rounding(precision, g, log).Run();
}

}  // namespace ge
