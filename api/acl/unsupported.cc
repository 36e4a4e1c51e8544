// What has no meaning on a CPU: compiling Ascend kernels, routes between queues, exceptions of
// cores.
#include "api/acl/error.h"
#include "api/acl/include/acl/acl_rtc.h"
#include "api/acl/include/acl/acl_tdt_queue.h"

using ge::acl::NotSupported;

#define ACL_UNSUPPORTED(name, parameters) \
  GE_ACL aclError name parameters { return NotSupported(__func__); }

ACL_UNSUPPORTED(aclrtGetOverflowStatus, (void*, size_t, aclrtStream))
ACL_UNSUPPORTED(aclrtResetOverflowStatus, (aclrtStream))
ACL_UNSUPPORTED(aclrtMemExportToShareableHandleV2,
                (aclrtDrvMemHandle, uint64_t, aclrtMemSharedHandleType, void*))
ACL_UNSUPPORTED(aclrtMemImportFromShareableHandleV2,
                (void*, aclrtMemSharedHandleType, uint64_t, aclrtDrvMemHandle*))
ACL_UNSUPPORTED(aclmdlCreateAndGetOpDesc, (uint32_t, uint32_t, uint32_t, char*, size_t,
                                           aclTensorDesc**, size_t*, aclTensorDesc**, size_t*))
ACL_UNSUPPORTED(aclrtcCreateProg,
                (aclrtcProg*, const char*, const char*, int, const char**, const char**))
ACL_UNSUPPORTED(aclrtcCompileProg, (aclrtcProg, int, const char**))
ACL_UNSUPPORTED(aclrtcDestroyProg, (aclrtcProg*))
ACL_UNSUPPORTED(aclrtcGetBinDataSize, (aclrtcProg, size_t*))
ACL_UNSUPPORTED(aclrtcGetBinData, (aclrtcProg, char*))

ACL_UNSUPPORTED(acltdtDestroyQueueRoute, (const acltdtQueueRoute*))
ACL_UNSUPPORTED(acltdtDestroyQueueRouteList, (const acltdtQueueRouteList*))
ACL_UNSUPPORTED(acltdtAddQueueRoute, (acltdtQueueRouteList*, const acltdtQueueRoute*))
ACL_UNSUPPORTED(acltdtBindQueueRoutes, (acltdtQueueRouteList*))
ACL_UNSUPPORTED(acltdtUnbindQueueRoutes, (acltdtQueueRouteList*))
ACL_UNSUPPORTED(acltdtQueryQueueRoutes, (const acltdtQueueRouteQueryInfo*, acltdtQueueRouteList*))
ACL_UNSUPPORTED(acltdtDestroyQueueRouteQueryInfo, (const acltdtQueueRouteQueryInfo*))

#define ACL_NONE(type, name, parameters) \
  GE_ACL type* name parameters {         \
    NotSupported(__func__);              \
    return nullptr;                      \
  }
ACL_NONE(acltdtQueueRoute, acltdtCreateQueueRoute, (uint32_t, uint32_t))
ACL_NONE(acltdtQueueRouteList, acltdtCreateQueueRouteList, ())
ACL_NONE(acltdtQueueRouteQueryInfo, acltdtCreateQueueRouteQueryInfo, ())

// Kernels do not raise exceptions: the callback is taken and never called.
GE_ACL aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback) { return ACL_SUCCESS; }
GE_ACL uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo*) { return UINT32_MAX; }
GE_ACL uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo*) { return UINT32_MAX; }
GE_ACL uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo*) { return UINT32_MAX; }
GE_ACL uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo*) { return UINT32_MAX; }
GE_ACL uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo*) { return UINT32_MAX; }
