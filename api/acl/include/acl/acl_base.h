/* AscendCL: shared types; see the two headers. */
#ifndef GE_ACL_ACL_BASE_H_
#define GE_ACL_ACL_BASE_H_
#include "acl_base_mdl.h"
#include "acl_base_rt.h"
#endif /* GE_ACL_ACL_BASE_H_ */
