// Which operands of ONNX's operators have the same element type, by its schemas: a node whose
// operands differ is no ONNX, whatever a kernel could make of it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "import/onnx/emit.h"

namespace ge::onnx {
namespace {

// One letter for each operand: equal letters are equal types, '.' is free, '*' repeats the last.
struct Row {
  std::string_view op, types;
};

constexpr Row kShared[] = {
    {"Add", "aa"},
    {"And", "aa"},
    {"BatchNormalization", "abbcc"},
    {"BitShift", "aa"},
    {"BitwiseAnd", "aa"},
    {"BitwiseOr", "aa"},
    {"BitwiseXor", "aa"},
    {"Clip", "aaa"},
    {"Concat", "a*"},
    {"Conv", "aaa"},
    {"ConvInteger", "abab"},
    {"ConvTranspose", "aaa"},
    {"DeformConv", "aaaaa"},
    {"Div", "aa"},
    {"Einsum", "a*"},
    {"Equal", "aa"},
    {"GRU", "aaaaba"},
    {"Gemm", "aaa"},
    {"Greater", "aa"},
    {"GreaterOrEqual", "aa"},
    {"GroupNormalization", "aaa"},
    {"InstanceNormalization", "aaa"},
    {"LSTM", "aaaabaaa"},
    {"LayerNormalization", "aaa"},
    {"Less", "aa"},
    {"LessOrEqual", "aa"},
    {"MatMul", "aa"},
    {"MatMulInteger", "abab"},
    {"Max", "a*"},
    {"MaxRoiPool", "aa"},
    {"MaxUnpool", "abb"},
    {"Mean", "a*"},
    {"Min", "a*"},
    {"Mod", "aa"},
    {"Mul", "aa"},
    {"NegativeLogLikelihoodLoss", "aba"},
    {"Or", "aa"},
    {"PRelu", "aa"},
    {"Pad", "a.ab"},
    {"QLinearConv", "a.ab.b.c."},
    {"RNN", "aaaaba"},
    {"Range", "aaa"},
    {"RoiAlign", "aab"},
    {"RotaryEmbedding", "aaa"},
    {"STFT", "abab"},
    {"ScatterElements", "aba"},
    {"ScatterND", "a.a"},
    {"SequenceConstruct", "a*"},
    {"Slice", "abbbb"},
    {"SoftmaxCrossEntropyLoss", "aba"},
    {"Sub", "aa"},
    {"Sum", "a*"},
    {"Where", "abb"},
    {"Xor", "aa"},
};

}  // namespace

Status CheckSharedTypes(const Graph& g, const Node& n) {
  const auto* row = std::find_if(std::begin(kShared), std::end(kShared),
                                 [&](const Row& r) { return r.op == n.op->name; });
  if (!n.op->domain.empty() || row == std::end(kShared)) return {};
  const std::string_view types = row->types;
  const auto letter = [&](size_t i) {
    return types.back() == '*' ? types.front() : i < types.size() ? types[i] : '.';
  };
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    for (size_t first = 0; first < i; ++first) {
      if (letter(i) == '.' || letter(first) != letter(i)) continue;
      if (n.inputs[first] == kNone || n.inputs[i] == kNone) continue;
      const DType a = g.value(n.inputs[first]).type.dtype, b = g.value(n.inputs[i]).type.dtype;
      if (a == b || a == DType::kNone || b == DType::kNone) continue;
      return Invalid(fmt::format("operand {} is {} and operand {} is {}; {} has one type for both",
                                 first, Name(a), i, Name(b), n.op->name));
    }
  }
  return {};
}

}  // namespace ge::onnx
