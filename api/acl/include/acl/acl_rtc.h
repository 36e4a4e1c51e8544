/* AscendCL: compiling Ascend kernels at run time. Not supported: every call returns
 * ACL_ERROR_API_NOT_SUPPORT. A C header. */
#ifndef GE_ACL_ACL_RTC_H_
#define GE_ACL_ACL_RTC_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclrtcProg;
ACL_FUNC_VISIBILITY aclError aclrtcCreateProg(aclrtcProg* prog, const char* src, const char* name,
                                              int numHeaders, const char** headers,
                                              const char** includeNames);
ACL_FUNC_VISIBILITY aclError aclrtcCompileProg(aclrtcProg prog, int numOptions,
                                               const char** options);
ACL_FUNC_VISIBILITY aclError aclrtcDestroyProg(aclrtcProg* prog);
ACL_FUNC_VISIBILITY aclError aclrtcGetBinDataSize(aclrtcProg prog, size_t* binDataSizeRet);
ACL_FUNC_VISIBILITY aclError aclrtcGetBinData(aclrtcProg prog, char* binData);

#ifdef __cplusplus
}
#endif
#endif /* GE_ACL_ACL_RTC_H_ */
