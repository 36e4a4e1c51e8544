// The parts of an ONNX model file that import reads, as plain structs. Texts and tensors are views
// into the mapped file: nothing large is copied. Field numbers are in proto.cc only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ge::onnx {

struct GraphProto;

struct TensorProto {
  std::string_view body;  // decoded by ReadTensor (tensor.h)
  std::string_view name;
};

struct SparseTensorProto {
  TensorProto values, indices;  // values.name names the initialiser
  std::vector<int64_t> dims;
};

struct DimProto {
  std::optional<int64_t> value;
  std::string_view param;
};

struct TypeProto {
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kMap, kSparse, kOpaque };
  Kind kind = Kind::kNone;
  int64_t elem_type = 0;
  bool has_shape = false;
  std::vector<DimProto> dims;
  std::unique_ptr<TypeProto> element;  // kSequence, kOptional
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

enum class AttrKind : uint8_t {  // AttributeProto.AttributeType
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparse = 11,
  kSparses = 12,
  kType = 13,
  kTypes = 14,
};

struct AttrProto {
  std::string_view name, ref;  // ref: name of the function's attribute that it takes
  AttrKind kind = AttrKind::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  TensorProto tensor;
  std::unique_ptr<SparseTensorProto> sparse;
  std::unique_ptr<GraphProto> graph;
  std::unique_ptr<TypeProto> type;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct NodeProto {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttrProto> attrs;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfoProto> inputs, outputs;
  std::vector<std::string_view> value_infos;  // as they lie in the file: seldom read
};

struct OpsetProto {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attrs;
  std::vector<AttrProto> default_attrs;
  std::vector<NodeProto> nodes;
  std::vector<OpsetProto> opsets;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::vector<OpsetProto> opsets;
  GraphProto graph;
  bool has_graph = false;
  std::vector<FunctionProto> functions;
};

// Fails on damaged wire data and on subgraphs or types nested deeper than max_depth.
Result<ModelProto> ReadModel(std::string_view bytes, int max_depth);
Result<ValueInfoProto> ReadValueInfo(std::string_view bytes);

}  // namespace ge::onnx
