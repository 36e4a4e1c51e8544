// Element types: AscendCL's numbers and ours.
#pragma once

#include "abi/dtype.h"
#include "api/acl/include/acl/acl_base.h"

namespace ge::acl {

inline DType FromAcl(aclDataType type) {
  switch (type) {
    case ACL_FLOAT: return DType::kF32;
    case ACL_FLOAT16: return DType::kF16;
    case ACL_INT8: return DType::kI8;
    case ACL_INT32: return DType::kI32;
    case ACL_UINT8: return DType::kU8;
    case ACL_INT16: return DType::kI16;
    case ACL_UINT16: return DType::kU16;
    case ACL_UINT32: return DType::kU32;
    case ACL_INT64: return DType::kI64;
    case ACL_UINT64: return DType::kU64;
    case ACL_DOUBLE: return DType::kF64;
    case ACL_BOOL: return DType::kBool;
    case ACL_STRING: return DType::kString;
    case ACL_COMPLEX64: return DType::kC64;
    case ACL_COMPLEX128: return DType::kC128;
    case ACL_BF16: return DType::kBF16;
    case ACL_INT4: return DType::kI4;
    case ACL_FLOAT8_E5M2: return DType::kF8E5M2;
    case ACL_FLOAT8_E4M3FN: return DType::kF8E4M3FN;
    case ACL_FLOAT8_E8M0: return DType::kF8E8M0;
    case ACL_FLOAT4_E2M1: return DType::kF4E2M1;
    default: return DType::kNone;
  }
}

inline aclDataType ToAcl(DType type) {
  for (int value = 0; value <= ACL_FLOAT4_E1M2; ++value) {
    const auto candidate = static_cast<aclDataType>(value);
    if (FromAcl(candidate) == type && type != DType::kNone) return candidate;
  }
  return ACL_DT_UNDEFINED;
}

}  // namespace ge::acl
