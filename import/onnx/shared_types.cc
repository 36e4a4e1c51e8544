// Which operands of ONNX's operators have the same element type, by its schemas: a node whose
// operands differ is no ONNX, whatever a kernel could make of it. Of operators on quantised tensors
// and positions also which types those are.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "import/onnx/emit.h"

namespace ge::onnx {
namespace {

// One letter for each operand: equal letters are equal types, '.' is free, '*' repeats the last. Of
// the types, 'f' is a float type, 'q', 'r' and 's' are of quantised numbers, 'm' and 'n' are of
// numbers, 'i' i32 or i64, '?' bool.
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
    {"DequantizeLinear", "qfq"},
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
    {"QLinearConv", "qfqrfrfs."},
    {"QLinearMatMul", "qfqrfrfs"},
    {"QuantizeLinear", "nmq"},
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
    {"com.microsoft.DequantizeLinear", "qfq"},
    {"com.microsoft.DynamicQuantizeLSTM", "fqrfiffffqfr"},
    {"com.microsoft.DynamicQuantizeMatMul", "fqfqf"},
    {"com.microsoft.MatMulIntegerToFloat", "qrffqrf"},
    {"com.microsoft.QGemm", "qfqrfr.fs"},
    {"com.microsoft.QLinearAdd", "qfqqfqfq"},
    {"com.microsoft.QLinearAveragePool", "qfqfq"},
    {"com.microsoft.QLinearGlobalAveragePool", "qfqfq"},
    {"com.microsoft.QLinearLeakyRelu", "qfqfq"},
    {"com.microsoft.QLinearMul", "qfqqfqfq"},
    {"com.microsoft.QLinearReduceMean", "qfqfq"},
    {"com.microsoft.QLinearSigmoid", "qfqfq"},
    {"com.microsoft.QLinearSoftmax", "qfqfq"},
    {"com.microsoft.QLinearWhere", "?qfqqfqfq"},
    {"com.microsoft.QuantizeLinear", "nmq"},
    {"com.microsoft.RotaryEmbedding", "fiff"},
};

bool Allowed(char letter, DType t) {
  switch (letter) {
    case 'f': return IsFloat(t);
    case 'q':
    case 'r':
    case 's': return IsInteger(t) || (IsFloat(t) && BitWidth(t) <= 8);
    case 'm':
    case 'n': return IsInteger(t) || IsFloat(t);
    case 'i': return t == DType::kI32 || t == DType::kI64;
    case '?': return t == DType::kBool;
    default: return true;
  }
}

std::string_view Allowed(char letter) {
  switch (letter) {
    case 'f': return "a float type";
    case 'm':
    case 'n': return "a type of numbers";
    case 'i': return "i32 or i64";
    case '?': return "bool";
    default: return "integers or f8";
  }
}

}  // namespace

Status CheckSharedTypes(const Graph& g, const Node& n) {
  const std::string name = n.op->domain.empty() ? n.op->name : n.op->domain + "." + n.op->name;
  const auto* row = std::find_if(std::begin(kShared), std::end(kShared),
                                 [&](const Row& r) { return r.op == name; });
  if (row == std::end(kShared)) return {};
  const std::string_view types = row->types;
  const auto letter = [&](size_t i) {
    return types.back() == '*' ? types.front() : i < types.size() ? types[i] : '.';
  };
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == kNone) continue;
    const DType given = g.value(n.inputs[i]).type.dtype;
    if (given != DType::kNone && !Allowed(letter(i), given))
      return Invalid(fmt::format("operand {} of {} is {}, must be {}", i, n.op->name, Name(given),
                                 Allowed(letter(i))));
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
