// Tensors of a model file to Constants. Bytes stay where they are mapped, in the model file or in
// external data files, which must lie in the model's folder; only typed fields, sparse tensors and
// unaligned small tensors are copied.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/file_map.h"
#include "base/status.h"
#include "import/onnx/proto.h"
#include "ir/graph.h"

namespace ge::onnx {

class TensorSource {
 public:
  // `folder` holds the model file; `file` owns the bytes that TensorProtos view.
  TensorSource(std::string folder, std::shared_ptr<FileMap> file)
      : folder_(std::move(folder)), file_(std::move(file)) {}

  Result<Constant> Read(const TensorProto& tensor);
  Result<Constant> Read(const SparseTensorProto& tensor);

 private:
  Result<std::shared_ptr<FileMap>> Open(const std::string& location);

  std::string folder_;
  std::shared_ptr<FileMap> file_;
  std::map<std::string, std::shared_ptr<FileMap>> external_;
};

// The DType of ONNX's number; refused if unknown.
Result<DType> ReadDType(int64_t onnx_type);
// Product of dims, refused if a dim is negative or the bytes overflow.
Result<int64_t> CheckedElements(const std::vector<int64_t>& dims, DType dtype);

}  // namespace ge::onnx
