/* Sizes, offsets and values of AscendCL's public types: a C compiler checks them. A program only so
 * that the build has a target: what it proves, it proves by compiling. */
#include <stddef.h>

#include "acl/acl.h"
#include "acl/acl_base.h"
#include "acl/acl_base_mdl.h"
#include "acl/acl_base_rt.h"
#include "acl/acl_dump.h"
#include "acl/acl_mdl.h"
#include "acl/acl_model_ri.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt.h"
#include "acl/acl_rt_allocator.h"
#include "acl/acl_rtc.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "aclnn/acl_meta.h"

#define SAME(value, expected) _Static_assert((value) == (expected), #value " is not " #expected)
#define OFFSET(type, member, expected) SAME(offsetof(type, member), expected)

SAME(sizeof(aclError), 4);
SAME(sizeof(aclFloat16), 2);
SAME(sizeof(aclrtStream), 8);
SAME(sizeof(aclDataType), 4);
SAME(sizeof(aclFormat), 4);
SAME(sizeof(aclmdlIODims), 1160);
OFFSET(aclmdlIODims, name, 0);
OFFSET(aclmdlIODims, dimCount, 128);
OFFSET(aclmdlIODims, dims, 136);
SAME(sizeof(aclmdlBatch), 1032);
OFFSET(aclmdlBatch, batch, 8);
SAME(sizeof(aclmdlHW), 2056);
OFFSET(aclmdlHW, hw, 8);
SAME(sizeof(aclAippDims), 2336);
OFFSET(aclAippDims, srcSize, 1160);
OFFSET(aclAippDims, aippOutdims, 1168);
OFFSET(aclAippInfo, cropSwitch, 12);
OFFSET(aclAippInfo, loadStartPosW, 16);
OFFSET(aclAippInfo, resizeSwitch, 32);
OFFSET(aclAippInfo, paddingSwitch, 44);
OFFSET(aclAippInfo, cscSwitch, 64);
OFFSET(aclAippInfo, singleLineMode, 67);
OFFSET(aclAippInfo, matrixR0C0, 68);
OFFSET(aclAippInfo, minChn0, 144);
OFFSET(aclAippInfo, srcFormat, 176);
OFFSET(aclAippInfo, srcDimNum, 184);
OFFSET(aclAippInfo, outDims, 200);
SAME(sizeof(aclrtMemLocation), 8);
SAME(sizeof(aclrtPhysicalMemProp), 32);
OFFSET(aclrtPhysicalMemProp, location, 12);
OFFSET(aclrtPhysicalMemProp, reserve, 24);
SAME(sizeof(aclrtMemAccessDesc), 24);
SAME(sizeof(aclrtMemcpyBatchAttr), 32);
SAME(sizeof(aclrtUtilizationInfo), 24);
SAME(sizeof(aclrtStreamAttrValue), 16);
SAME(sizeof(aclrtIpcEventHandle), 64);
SAME(sizeof(aclrtUuid), 16);
SAME(sizeof(aclmdlRICondTaskParams), 24);
OFFSET(aclmdlRICondTaskParams, type, 8);
OFFSET(aclmdlRICondTaskParams, size, 12);
OFFSET(aclmdlRICondTaskParams, modelRIArray, 16);
SAME(ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, 1);
SAME(ACL_MODEL_RI_COND_TYPE_IF, 0);
SAME(ACL_MODEL_RI_COND_TYPE_WHILE, 1);
SAME(ACL_MODEL_RI_COND_TYPE_SWITCH, 2);
SAME(ACL_RT_MEM_TYPE_DEV, 2);
SAME(ACL_RT_MEM_TYPE_DVPP, 8);
SAME(ACL_RT_MEM_TYPE_RSVD, 16);
SAME(ACL_SUBSCRIBE_NONE, -1);
SAME(ACL_SUBSCRIBE_OP_THREAD, 2);
SAME(ACL_STEP_START, 0);
SAME(ACL_STEP_END, 1);
SAME(sizeof(aclCANNPackageVersion), 512);
SAME(sizeof(aclrtMemUceInfo), 128);
OFFSET(aclrtErrorInfo, errorType, 4);
OFFSET(aclrtErrorInfo, detail, 8);
SAME(sizeof(aclrtErrorInfo), 2576);
SAME(sizeof(aclrtLaunchKernelAttr), 20);
SAME(sizeof(aclrtBinaryLoadOption), 20);

SAME(ACL_DT_UNDEFINED, -1);
SAME(ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED, 2);
SAME(ACL_MODEL_RI_CAPTURE_MODE_RELAXED, 2);
SAME(ACL_TENSOR_DATA_UNDEFINED, -1);
SAME(ACL_TENSOR_DATA_END_TENSOR, 4);
SAME(ACL_TDT_QUEUE_DEPTH_UINT32, 1);
SAME(ACL_AICORE_MEMORY_ACCESS, 8);
SAME(ACL_AICORE_NONE, 255);
SAME(ACL_PROF_PATH, 16);
SAME(ACL_PROF_MSPROFTX, 128);
SAME(DATA_DUMP, 4);
SAME(ACL_FLOAT, 0);
SAME(ACL_FLOAT16, 1);
SAME(ACL_INT8, 2);
SAME(ACL_INT32, 3);
SAME(ACL_UINT8, 4);
SAME(ACL_INT16, 6);
SAME(ACL_UINT16, 7);
SAME(ACL_UINT32, 8);
SAME(ACL_INT64, 9);
SAME(ACL_UINT64, 10);
SAME(ACL_DOUBLE, 11);
SAME(ACL_BOOL, 12);
SAME(ACL_STRING, 13);
SAME(ACL_COMPLEX64, 16);
SAME(ACL_COMPLEX128, 17);
SAME(ACL_BF16, 27);
SAME(ACL_INT4, 29);
SAME(ACL_UINT1, 30);
SAME(ACL_COMPLEX32, 33);
SAME(ACL_HIFLOAT8, 34);
SAME(ACL_FLOAT8_E5M2, 35);
SAME(ACL_FLOAT8_E4M3FN, 36);
SAME(ACL_FLOAT8_E8M0, 37);
SAME(ACL_FLOAT6_E3M2, 38);
SAME(ACL_FLOAT6_E2M3, 39);
SAME(ACL_FLOAT4_E2M1, 40);
SAME(ACL_FLOAT4_E1M2, 41);
SAME(ACL_FORMAT_UNDEFINED, -1);
SAME(ACL_FORMAT_NCHW, 0);
SAME(ACL_FORMAT_NHWC, 1);
SAME(ACL_FORMAT_ND, 2);
SAME(ACL_FORMAT_NC1HWC0, 3);
SAME(ACL_FORMAT_FRACTAL_Z, 4);
SAME(ACL_FORMAT_NC1HWC0_C04, 12);
SAME(ACL_FORMAT_HWCN, 16);
SAME(ACL_FORMAT_NDHWC, 27);
SAME(ACL_FORMAT_FRACTAL_NZ, 29);
SAME(ACL_FORMAT_NCDHW, 30);
SAME(ACL_FORMAT_NDC1HWC0, 32);
SAME(ACL_FRACTAL_Z_3D, 33);
SAME(ACL_FORMAT_NC, 35);
SAME(ACL_FORMAT_NCL, 47);
SAME(ACL_FORMAT_FRACTAL_NZ_C0_16, 50);
SAME(ACL_FORMAT_FRACTAL_NZ_C0_32, 51);
SAME(ACL_FORMAT_FRACTAL_NZ_C0_2, 52);
SAME(ACL_FORMAT_FRACTAL_NZ_C0_4, 53);
SAME(ACL_FORMAT_FRACTAL_NZ_C0_8, 54);
SAME(ACL_DEVICE, 0);
SAME(ACL_HOST, 1);
SAME(ACL_MEMCPY_HOST_TO_HOST, 0);
SAME(ACL_MEMCPY_HOST_TO_DEVICE, 1);
SAME(ACL_MEMCPY_DEVICE_TO_HOST, 2);
SAME(ACL_MEMCPY_DEVICE_TO_DEVICE, 3);
SAME(ACL_MEMCPY_DEFAULT, 4);
SAME(ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, 5);
SAME(ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, 6);
SAME(ACL_MEMCPY_INTER_DEVICE_TO_DEVICE, 7);
SAME(ACL_MEM_MALLOC_HUGE_FIRST, 0);
SAME(ACL_MEM_MALLOC_HUGE_ONLY, 1);
SAME(ACL_MEM_MALLOC_NORMAL_ONLY, 2);
SAME(ACL_MEM_MALLOC_NORMAL_ONLY_P2P, 5);
SAME(ACL_MEM_MALLOC_HUGE1G_ONLY, 6);
SAME(ACL_MEM_MALLOC_HUGE1G_ONLY_P2P, 7);
SAME(ACL_MEM_TYPE_LOW_BAND_WIDTH, 0x0100);
SAME(ACL_MEM_TYPE_HIGH_BAND_WIDTH, 0x1000);
SAME(ACL_MEM_ACCESS_USER_SPACE_READONLY, 0x100000);
SAME(ACL_DDR_MEM, 0);
SAME(ACL_HBM_MEM, 1);
SAME(ACL_DDR_MEM_HUGE, 2);
SAME(ACL_DDR_MEM_NORMAL, 3);
SAME(ACL_HBM_MEM_HUGE, 4);
SAME(ACL_HBM_MEM_NORMAL, 5);
SAME(ACL_EVENT_STATUS_COMPLETE, 0);
SAME(ACL_EVENT_STATUS_NOT_READY, 1);
SAME(ACL_EVENT_RECORDED_STATUS_NOT_READY, 0);
SAME(ACL_EVENT_RECORDED_STATUS_COMPLETE, 1);
SAME(ACL_EVENT_WAIT_STATUS_COMPLETE, 0);
SAME(ACL_EVENT_WAIT_STATUS_NOT_READY, 1);
SAME(ACL_STREAM_STATUS_COMPLETE, 0);
SAME(ACL_STREAM_STATUS_NOT_READY, 1);
SAME(ACL_EVENT_SYNC, 1);
SAME(ACL_EVENT_CAPTURE_STREAM_PROGRESS, 2);
SAME(ACL_EVENT_TIME_LINE, 8);
SAME(ACL_EVENT_DEVICE_USE_ONLY, 0x10);
SAME(ACL_EVENT_EXTERNAL, 0x20);
SAME(ACL_EVENT_IPC, 0x40);
SAME(ACL_STREAM_FAST_LAUNCH, 1);
SAME(ACL_STREAM_FAST_SYNC, 2);
SAME(ACL_STREAM_PERSISTENT, 4);
SAME(ACL_STREAM_HUGE, 8);
SAME(ACL_STREAM_CPU_SCHEDULE, 0x10);
SAME(ACL_STREAM_DEVICE_USE_ONLY, 0x20);
SAME(ACL_CALLBACK_NO_BLOCK, 0);
SAME(ACL_CALLBACK_BLOCK, 1);
SAME(ACL_DEBUG, 0);
SAME(ACL_INFO, 1);
SAME(ACL_WARNING, 2);
SAME(ACL_ERROR, 3);
SAME(ACL_MEMTYPE_DEVICE, 0);
SAME(ACL_MEMTYPE_HOST, 1);
SAME(ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT, 2);
SAME(ACL_YUV420SP_U8, 1);
SAME(ACL_XRGB8888_U8, 2);
SAME(ACL_RGB888_U8, 3);
SAME(ACL_YUV400_U8, 4);
SAME(ACL_NC1HWC0DI_FP16, 5);
SAME(ACL_NC1HWC0DI_S8, 6);
SAME(ACL_ARGB8888_U8, 7);
SAME(ACL_YUYV_U8, 8);
SAME(ACL_YUV422SP_U8, 9);
SAME(ACL_AYUV444_U8, 10);
SAME(ACL_RAW10, 11);
SAME(ACL_RAW24, 14);
SAME(ACL_MDL_PRIORITY_INT32, 0);
SAME(ACL_MDL_LOAD_TYPE_SIZET, 1);
SAME(ACL_MDL_PATH_PTR, 2);
SAME(ACL_MDL_MEM_ADDR_PTR, 3);
SAME(ACL_MDL_MEM_SIZET, 4);
SAME(ACL_MDL_WEIGHT_ADDR_PTR, 5);
SAME(ACL_MDL_WEIGHT_SIZET, 6);
SAME(ACL_MDL_WORKSPACE_ADDR_PTR, 7);
SAME(ACL_MDL_WORKSPACE_SIZET, 8);
SAME(ACL_MDL_OUTPUTQ_ADDR_PTR, 12);
SAME(ACL_MDL_WORKSPACE_MEM_OPTIMIZE, 13);
SAME(ACL_MDL_WEIGHT_PATH_PTR, 14);
SAME(ACL_MDL_MODEL_DESC_PTR, 15);
SAME(ACL_MDL_KERNEL_PTR, 17);
SAME(ACL_MDL_KERNEL_ARGS_PTR, 19);
SAME(ACL_MDL_STATIC_TASK_PTR, 21);
SAME(ACL_MDL_DYNAMIC_TASK_PTR, 23);
SAME(ACL_MDL_MEM_MALLOC_POLICY_SIZET, 25);
SAME(ACL_MDL_FIFO_PTR, 26);
SAME(ACL_MDL_WITHOUT_GRAPH_INT32, 28);
SAME(ACL_MDL_NPU_PERF_MODE_INT32, 29);
SAME(ACL_MDL_LOAD_FROM_FILE, 1);
SAME(ACL_MDL_LOAD_FROM_MEM_WITH_Q, 6);
SAME(ACL_MDL_STREAM_SYNC_TIMEOUT, 0);
SAME(ACL_MDL_EXEC_NPU_PERF_MODE, 3);
SAME(ACL_DATA_WITHOUT_AIPP, 0);
SAME(ACL_DYNAMIC_AIPP_NODE, 3);
SAME(ACL_MAX_DIM_CNT, 128);
SAME(ACL_MAX_TENSOR_NAME_LEN, 128);
SAME(ACL_MAX_BATCH_NUM, 128);
SAME(ACL_MAX_HW_NUM, 128);
SAME(ACL_MAX_SHAPE_COUNT, 128);
SAME(ACL_UNKNOWN_RANK, 0xFFFFFFFFFFFFFFFE);
SAME(ACL_MAJOR_VERSION, 1);
SAME(ACL_MINOR_VERSION, 17);
SAME(ACL_PATCH_VERSION, 0);
SAME(sizeof ACL_DYNAMIC_TENSOR_NAME, sizeof "ascend_mbatch_shape_data");

#include "abi_rest.inc"

/* Constants that are variables: compared at run time. */
static int CheckCodes(void) {
  const long long values[][2] = {{ACL_SUCCESS, 0},
                                 {ACL_ERROR_NONE, 0},
                                 {ACL_ERROR_INVALID_PARAM, 100000},
                                 {ACL_ERROR_UNINITIALIZE, 100001},
                                 {ACL_ERROR_REPEAT_INITIALIZE, 100002},
                                 {ACL_ERROR_MODEL_NOT_DYNAMIC, 100019},
                                 {ACL_ERROR_OP_TYPE_NOT_MATCH, 100020},
                                 {ACL_ERROR_REPEAT_SUBSCRIBE, 100033},
                                 {ACL_ERROR_WAIT_CALLBACK_TIMEOUT, 100036},
                                 {ACL_ERROR_DUMP_NOT_RUN, 100045},
                                 {ACL_ERROR_PROF_REPEAT_SUBSCRIBE, 148046},
                                 {ACL_ERROR_INVALID_BUNDLE_MODEL_ID, 148053},
                                 {ACL_ERROR_BAD_ALLOC, 200000},
                                 {ACL_ERROR_API_NOT_SUPPORT, 200001},
                                 {ACL_ERROR_STORAGE_OVER_LIMIT, 300000},
                                 {ACL_ERROR_INTERNAL_ERROR, 500000},
                                 {ACL_ERROR_PROFILING_FAILURE, 500005},
                                 {ACL_ERROR_GE_PARAM_INVALID, 145000},
                                 {ACL_ERROR_GE_EXEC_NOT_INIT, 145001},
                                 {ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, 145003},
                                 {ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID, 145013},
                                 {ACL_ERROR_GE_AIPP_NOT_EXIST, 145015},
                                 {ACL_ERROR_GE_LOAD_MODEL, 545001},
                                 {ACL_ERROR_RT_PARAM_INVALID, 107000},
                                 {ACL_ERROR_RT_INVALID_DEVICEID, 107001},
                                 {ACL_ERROR_RT_CONTEXT_NULL, 107002},
                                 {ACL_ERROR_RT_STREAM_CONTEXT, 107003},
                                 {ACL_ERROR_RT_INVALID_HANDLE, 107017},
                                 {ACL_ERROR_RT_STREAM_SUBSCRIBE, 107011},
                                 {ACL_ERROR_RT_THREAD_SUBSCRIBE, 107012},
                                 {ACL_ERROR_RT_STREAM_NO_CB_REG, 107015},
                                 {ACL_ERROR_RT_REPORT_TIMEOUT, 507012},
                                 {ACL_ERROR_RT_WAIT_TIMEOUT, 107019},
                                 {ACL_ERROR_RT_FEATURE_NOT_SUPPORT, 207000},
                                 {ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, 507046}};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i)
    if (values[i][0] != values[i][1]) return (int)i + 1;
  return 0;
}

int main(void) { return CheckCodes(); }
