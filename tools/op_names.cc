// See op_names.h.
#include "tools/op_names.h"

#include <utility>

namespace ge {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"Conv2D", "Conv"},
    {"Conv3D", "Conv"},
    {"DepthwiseConv2D", "Conv"},
    {"Conv2DTranspose", "ConvTranspose"},
    {"Deconvolution", "ConvTranspose"},
    {"MatMulV2", "MatMul"},
    {"MatMulV3", "MatMul"},
    {"BatchMatMul", "MatMul"},
    {"BatchMatMulV2", "MatMul"},
    {"Matmul", "MatMul"},
    {"GEMM", "Gemm"},
    {"FullyConnection", "Gemm"},
    {"SoftmaxV2", "Softmax"},
    {"LogSoftmaxV2", "LogSoftmax"},
    {"RealDiv", "Div"},
    {"Eltwise", "Add"},
    {"ReduceSumD", "ReduceSum"},
    {"ReduceMeanD", "ReduceMean"},
    {"BatchNorm", "BatchNormalization"},
    {"BNInference", "BatchNormalization"},
    {"LayerNorm", "LayerNormalization"},
    {"InstanceNorm", "InstanceNormalization"},
    {"TransposeD", "Transpose"},
    {"ConcatD", "Concat"},
    {"ConcatV2", "Concat"},
    {"MaxPoolV3", "MaxPool"},
    {"AvgPoolV2", "AveragePool"},
    {"Maximum", "Max"},
    {"Minimum", "Min"},
    {"ClipByValue", "Clip"},
    {"ReluV2", "Relu"},
    {"Relu6", "Clip"}};

}  // namespace

std::string OnnxName(std::string_view name) {
  for (const auto& [theirs, ours] : kNames)
    if (theirs == name) return std::string(ours);
  return std::string(name);
}

}  // namespace ge
