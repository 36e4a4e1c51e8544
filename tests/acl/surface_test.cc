// The whole surface: every function that the headers declare survives null arguments at every stage
// of life and says what was wrong; what needs Ascend hardware says so; descriptions of tensors and
// models tell what they were given.
#include "tests/acl/surface.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/acl/device_test.h"

namespace {

struct Zero {
  static uint64_t Number() { return 0; }
  static void* Handle() { return nullptr; }
  static void* Memory() { return nullptr; }
  static const char* Text() { return nullptr; }
  static bool Flip() { return false; }
};

// Begin and end life, or take the message away.
const std::set<std::string> kAside = {
    "aclInit",           "aclFinalize",      "aclFinalizeReference", "aclrtPeekAtLastError",
    "aclrtGetLastError", "aclrtResetDevice", "aclrtResetDeviceForce"};

void CheckOne(const char* name, int (*call)()) {
  if (kAside.contains(name)) return;
  aclGetRecentErrMsg();
  const int code = call();
  if (code == ACL_SUCCESS) return;
  const char* message = aclGetRecentErrMsg();
  ASSERT_NE(message, nullptr) << name << " gave " << code;
  EXPECT_EQ(std::string(message).find("E" + std::to_string(code)), 0u) << name << ": " << message;
}

void CallAllWithNothing() {
#define F(name)                       \
  CheckOne(#name, [] {                \
    Zero zero;                        \
    return surface::Call(zero, name); \
  });
#include "tests/acl/functions.inc"
#undef F
}

TEST(AclSurface, NothingCrashesBeforeDuringAndAfter) {
  CallAllWithNothing();
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  CallAllWithNothing();
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  CallAllWithNothing();
  aclrtSetDevice(0);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  uint64_t references = 7;
  EXPECT_EQ(aclFinalizeReference(&references), ACL_SUCCESS);
  EXPECT_EQ(references, 0u);
  CallAllWithNothing();
}

class AclUnsupported : public DeviceTest {};

#define EXPECT_UNSUPPORTED(call)                                                           \
  do {                                                                                     \
    EXPECT_EQ(call, ACL_ERROR_API_NOT_SUPPORT);                                            \
    const char* message = aclGetRecentErrMsg();                                            \
    ASSERT_NE(message, nullptr) << #call;                                                  \
    EXPECT_NE(std::string(message).find("Ascend hardware"), std::string::npos) << message; \
  } while (0)

TEST_F(AclUnsupported, CompilingKernels) {
  aclrtcProg program = nullptr;
  size_t size = 0;
  EXPECT_UNSUPPORTED(aclrtcCompileProg(program, 0, nullptr));
  EXPECT_UNSUPPORTED(aclrtcGetBinDataSize(program, &size));
  EXPECT_UNSUPPORTED(aclrtcGetBinData(program, nullptr));
  EXPECT_UNSUPPORTED(aclrtcDestroyProg(&program));
}

TEST_F(AclUnsupported, OverflowSharingAndQueues) {
  int64_t value = 0;
  EXPECT_UNSUPPORTED(aclrtGetOverflowStatus(&value, 8, nullptr));
  EXPECT_UNSUPPORTED(aclrtResetOverflowStatus(nullptr));
  uint64_t shareable = 0;
  EXPECT_UNSUPPORTED(
      aclrtMemExportToShareableHandleV2(nullptr, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &shareable));
  aclrtDrvMemHandle memory = nullptr;
  EXPECT_UNSUPPORTED(aclrtMemImportFromShareableHandleV2(
      &shareable, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &memory));
  uint32_t id = 0;
  EXPECT_UNSUPPORTED(aclmdlLoadFromFileWithQ("x.om", &id, nullptr, 0, nullptr, 0));
  EXPECT_UNSUPPORTED(aclmdlLoadFromMemWithQ("x", 1, &id, nullptr, 0, nullptr, 0));
  char name[8];
  size_t count = 0;
  aclTensorDesc* desc = nullptr;
  EXPECT_UNSUPPORTED(
      aclmdlCreateAndGetOpDesc(0, 0, 0, name, sizeof name, &desc, &count, &desc, &count));
  EXPECT_EQ(aclmdlGetOpAttr(nullptr, "a", "b"), nullptr);
}

TEST_F(AclUnsupported, RoutesBetweenQueues) {
  EXPECT_EQ(acltdtCreateQueueRoute(0, 1), nullptr);
  EXPECT_NE(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(acltdtCreateQueueRouteList(), nullptr);
  EXPECT_EQ(acltdtCreateQueueRouteQueryInfo(), nullptr);
  EXPECT_UNSUPPORTED(acltdtAddQueueRoute(nullptr, nullptr));
  EXPECT_UNSUPPORTED(acltdtBindQueueRoutes(nullptr));
  EXPECT_UNSUPPORTED(acltdtUnbindQueueRoutes(nullptr));
  EXPECT_UNSUPPORTED(acltdtQueryQueueRoutes(nullptr, nullptr));
  EXPECT_UNSUPPORTED(acltdtDestroyQueueRoute(nullptr));
  EXPECT_UNSUPPORTED(acltdtDestroyQueueRouteList(nullptr));
  EXPECT_UNSUPPORTED(acltdtDestroyQueueRouteQueryInfo(nullptr));
}

TEST_F(AclUnsupported, KernelsRaiseNoExceptions) {
  EXPECT_EQ(aclrtSetExceptionInfoCallback(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetStreamIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetThreadIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetDeviceIdFromExceptionInfo(nullptr), UINT32_MAX);
  EXPECT_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), UINT32_MAX);
}

TEST(AclTensors, DescriptionsKeepWhatTheyAreGiven) {
  const int64_t dims[] = {1, 3, -1, 5}, storage[] = {1, 1, 4, 5, 16};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT16, 4, dims, ACL_FORMAT_NCHW);
  EXPECT_EQ(aclGetTensorDescType(desc), ACL_FLOAT16);
  int64_t range[4][ACL_TENSOR_SHAPE_RANGE_NUM] = {{1, 1}, {3, 3}, {2, 9}, {5, 5}}, got[2] = {};
  EXPECT_EQ(aclSetTensorShapeRange(desc, 4, range), ACL_SUCCESS);
  EXPECT_EQ(aclGetTensorDescDimRange(desc, 2, 2, got), ACL_SUCCESS);
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[1], 9);
  EXPECT_NE(aclGetTensorDescDimRange(desc, 9, 2, got), ACL_SUCCESS);
  int64_t values[1][ACL_TENSOR_VALUE_RANGE_NUM] = {{0, 1}};
  EXPECT_EQ(aclSetTensorValueRange(desc, 1, values), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorOriginFormat(desc, ACL_FORMAT_NHWC), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorOriginShape(desc, 4, dims), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorStorageFormat(desc, ACL_FORMAT_NC1HWC0), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorStorageShape(desc, 5, storage), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorFormat(desc, ACL_FORMAT_NC1HWC0), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorShape(desc, 5, storage), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorDynamicInput(desc, "x"), ACL_SUCCESS);
  float constant[2] = {1, 2};
  EXPECT_EQ(aclSetTensorConst(desc, constant, sizeof constant), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorConst(desc, constant, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetTensorDescAddress(desc), constant);
  EXPECT_EQ(aclGetTensorDescByIndex(desc, 1), nullptr);
  aclTensorDesc* other = nullptr;
  const int code = aclTransTensorDescFormat(desc, ACL_FORMAT_NHWC, &other);
  EXPECT_EQ(code == ACL_SUCCESS, other != nullptr);
  aclDestroyTensorDesc(other);
  aclDestroyTensorDesc(desc);
  EXPECT_EQ(aclGetTensorDescType(desc), ACL_DT_UNDEFINED);
  EXPECT_EQ(aclSetTensorFormat(desc, ACL_FORMAT_ND), ACL_ERROR_INVALID_PARAM);
}

TEST(AclTensors, OperandsTellWhatTheyWereMadeOf) {
  const int64_t view[] = {2, 3}, strides[] = {3, 1}, storage[] = {6};
  float data[6] = {}, others[6] = {};
  aclTensor* t = aclCreateTensor(view, 2, ACL_FLOAT, strides, 1, ACL_FORMAT_ND, storage, 1, data);
  ASSERT_NE(t, nullptr);
  int64_t *dims = nullptr, *stored = nullptr, offset = 0;
  uint64_t n = 0, m = 0;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  void* address = nullptr;
  EXPECT_EQ(aclGetViewShape(t, &dims, &n), 0);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(dims[1], 3);
  EXPECT_EQ(aclGetStorageShape(t, &stored, &m), 0);
  EXPECT_EQ(m, 1u);
  EXPECT_EQ(stored[0], 6);
  EXPECT_EQ(aclGetViewOffset(t, &offset), 0);
  EXPECT_EQ(offset, 1);
  EXPECT_EQ(aclGetFormat(t, &format), 0);
  EXPECT_EQ(format, ACL_FORMAT_ND);
  EXPECT_EQ(aclGetRawTensorAddr(t, &address), 0);
  EXPECT_EQ(address, data);
  EXPECT_EQ(aclSetRawTensorAddr(t, others), 0);
  EXPECT_EQ(aclGetRawTensorAddr(t, &address), 0);
  EXPECT_EQ(address, others);
  delete[] dims;
  delete[] stored;
  EXPECT_EQ(aclDestroyTensor(t), 0);
  EXPECT_NE(aclGetViewOffset(t, &offset), 0);
}

class AclModelSurface : public AclUnsupported {
 protected:
  void SetUp() override {
    AclUnsupported::SetUp();
    path_ = std::getenv("GE_ACL_MODEL");
    if (path_ == nullptr) GTEST_SKIP() << "GE_ACL_MODEL is not set";
  }
  const char* path_ = nullptr;
};

TEST_F(AclModelSurface, DescriptionsFromFileAndMemory) {
  std::ifstream file(path_, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const bool memory : {false, true}) {
    aclmdlDesc* desc = aclmdlCreateDesc();
    ASSERT_EQ(memory ? aclmdlGetDescFromMem(desc, bytes.data(), bytes.size())
                     : aclmdlGetDescFromFile(desc, path_),
              ACL_SUCCESS);
    EXPECT_EQ(aclmdlGetOutputDataType(desc, 0), ACL_FLOAT);
    EXPECT_EQ(aclmdlGetOutputFormat(desc, 0), ACL_FORMAT_NCHW);
    aclmdlIODims dims{}, same{};
    EXPECT_EQ(aclmdlGetOutputDims(desc, 0, &dims), ACL_SUCCESS);
    EXPECT_EQ(dims.dimCount, 2u);
    EXPECT_EQ(dims.dims[1], 10);
    EXPECT_EQ(aclmdlGetOutputDims(desc, 1, &dims), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclmdlGetInputDimsV2(desc, 0, &same), ACL_SUCCESS);
    EXPECT_EQ(same.dims[2], 32);
    aclmdlIODimsRange range{};
    EXPECT_EQ(aclmdlGetInputDimsRange(desc, 0, &range), ACL_SUCCESS);
    EXPECT_EQ(range.range[3][0], 32);
    EXPECT_EQ(range.range[3][1], 32);
    const std::string shown = aclmdlGetOutputNameByIndex(desc, 0);
    EXPECT_EQ(shown.substr(shown.size() - 4), ":0:y");
    EXPECT_EQ(aclmdlGetTensorRealName(desc, "y"), shown);
    EXPECT_EQ(aclmdlGetTensorRealName(desc, "nothing"), nullptr);
    EXPECT_EQ(aclmdlDestroyDesc(desc), ACL_SUCCESS);
  }
  uint32_t bundle = 0, model = 0;
  size_t count = 0;
  EXPECT_EQ(aclmdlBundleLoadFromMem(bytes.data(), bytes.size(), &bundle), ACL_SUCCESS);
  EXPECT_EQ(aclmdlBundleGetModelNum(bundle, &count), ACL_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(aclmdlBundleGetModelId(bundle, 0, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlBundleUnload(bundle), ACL_SUCCESS);
  EXPECT_EQ(aclmdlUnload(model), static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID));
}

TEST_F(AclModelSurface, ExecutionOptions) {
  aclmdlExecConfigHandle* options = aclmdlCreateExecConfigHandle();
  ASSERT_NE(options, nullptr);
  int32_t timeout = 1000;
  EXPECT_EQ(aclmdlSetExecConfigOpt(options, ACL_MDL_STREAM_SYNC_TIMEOUT, &timeout, sizeof timeout),
            ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetExecConfigOpt(options, ACL_MDL_STREAM_SYNC_TIMEOUT, &timeout, 3),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlSetExecConfigOpt(options, static_cast<aclmdlExecConfigAttr>(99), &timeout, 4),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlExecuteV2(12345, nullptr, nullptr, nullptr, options), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlDestroyExecConfigHandle(options), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyExecConfigHandle(options), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclModelSurface, AippParameters) {
  aclmdlAIPP* aipp = aclmdlCreateAIPP(2);
  size_t size = 0;
  EXPECT_EQ(aclmdlGetAippDataSize(2, &size), ACL_SUCCESS);
  EXPECT_EQ(size, 2 * 48 * sizeof(float));
  EXPECT_EQ(aclmdlSetAIPPCscParams(aipp, 1, 256, 0, 359, 256, -88, -183, 256, 454, 0, 0, 0, 0, 0,
                                   128, 128),
            ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetAIPPCscParams(aipp, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlSetAIPPRbuvSwapSwitch(aipp, 1), ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetAIPPAxSwapSwitch(aipp, 3), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlSetAIPPScfParams(aipp, 0, 8, 8, 8, 8, 1), ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetAIPPPaddingParams(aipp, 1, 1, 1, 1, 1, 2), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlSetAIPPPaddingParams(aipp, 1, 1, 1, 1, 1, 1), ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetAIPPDtcPixelMin(aipp, 0, 0, 0, 0, 0), ACL_SUCCESS);
  aclmdlDataset* dataset = aclmdlCreateDataset();
  EXPECT_EQ(aclmdlSetAIPPByInputIndex(4711, dataset, 0, aipp),
            static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID));
  uint32_t model = 0;
  ASSERT_EQ(aclmdlLoadFromFile(path_, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetAIPPByInputIndex(model, dataset, 0, aipp),
            static_cast<aclError>(ACL_ERROR_GE_AIPP_NOT_EXIST));
  EXPECT_EQ(aclmdlUnload(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyDataset(dataset), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyAIPP(aipp), ACL_SUCCESS);
}

}  // namespace
