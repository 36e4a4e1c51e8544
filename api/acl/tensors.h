// The plain records of clients: data buffers, tensor descriptions, datasets. They own no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/acl/handles.h"
#include "api/acl/include/acl/acl.h"

namespace ge::acl {

struct DataBuffer {
  static constexpr int kHandleKind = 5;
  void* data = nullptr;
  size_t bytes = 0;
};

struct TensorDesc {
  static constexpr int kHandleKind = 6;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  std::vector<int64_t> dims;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::string name, dynamic_input;
  bool unknown_rank = false;
  const void* constant = nullptr;
  size_t constant_bytes = 0;
  aclMemType place = ACL_MEMTYPE_DEVICE;
};

struct Dataset {
  static constexpr int kHandleKind = 7;
  struct Entry {
    const void* buffer = nullptr;       // handle
    std::shared_ptr<TensorDesc> desc;   // the client's, or the shape of the last result
    const void* desc_handle = nullptr;  // given out by aclmdlGetDatasetTensorDesc
  };
  std::vector<Entry> entries;
  std::vector<int64_t> gear;  // set by aclmdlSetDynamic...; empty = none
  int64_t gear_model = -1;    // for this model
};

// Bytes of a tensor; -1 if a dim is unknown or the type has no size.
int64_t TensorBytes(aclDataType dtype, const std::vector<int64_t>& dims);

}  // namespace ge::acl
