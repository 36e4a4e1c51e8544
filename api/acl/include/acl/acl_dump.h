/* AscendCL: where dumps go. A C header. */
#ifndef GE_ACL_ACL_DUMP_H_
#define GE_ACL_ACL_DUMP_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum acldumpType {
  AIC_ERR_BRIEF_DUMP = 1,
  AIC_ERR_NORM_DUMP,
  AIC_ERR_DETAIL_DUMP,
  DATA_DUMP,
  OVERFLOW_DUMP
} acldumpType;

/* The folder that aclInit or aclmdlSetDump was given; NULL if there is none. */
ACL_FUNC_VISIBILITY const char* acldumpGetPath(acldumpType dumpType);

#ifdef __cplusplus
}
#endif
#endif /* GE_ACL_ACL_DUMP_H_ */
