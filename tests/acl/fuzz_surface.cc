// The fuzz over the whole surface: every function with random arguments of its types. What is left
// to the steps that are written by hand is what waits without a timeout, makes things that somebody
// must free, or uses memory after it has returned: there a client would be at fault.
#include <array>
#include <string_view>

#include "tests/acl/fuzz_pool.h"
#include "tests/acl/surface.h"

namespace {

constexpr std::string_view kByHand[] = {
    // wait
    "aclrtSynchronizeStream", "aclrtSynchronizeStreamWithTimeout", "aclrtSynchronizeDevice",
    "aclrtSynchronizeDeviceWithTimeout", "aclrtSynchronizeEvent",
    "aclrtSynchronizeEventWithTimeout", "aclrtProcessReport", "aclrtProcessHostFunc",
    "aclrtDestroyStream", "aclmdlExecuteV2", "aclmdlRIExecute", "acltdtSendTensor",
    "acltdtReceiveTensor", "acltdtEnqueue", "acltdtDequeue", "acltdtEnqueueData",
    "acltdtDequeueData", "acltdtAttachQueue",
    // make
    "aclCreateDataBuffer", "aclCreateTensorDesc", "aclCreateTensor", "aclCreateScalar",
    "aclTransTensorDescFormat", "aclmdlCreateDesc", "aclmdlCreateDataset", "aclmdlCreateAIPP",
    "aclmdlCreateConfigHandle", "aclmdlCreateExecConfigHandle", "aclmdlLoadFromFile",
    "aclmdlLoadFromMem", "aclmdlLoadFromFileWithMem", "aclmdlLoadFromMemWithMem",
    "aclmdlLoadWithConfig", "aclmdlBundleLoadFromFile", "aclmdlBundleLoadFromMem",
    "aclmdlGetDescFromMem", "aclmdlQuerySizeFromMem", "aclmdlRIBuildBegin", "aclmdlRICaptureEnd",
    "aclmdlGetDatasetTensorDesc", "aclprofCreateConfig", "aclprofCreateStamp",
    "aclprofCreateStepInfo", "aclprofCreateSubscribeConfig", "acltdtCreateChannel",
    "acltdtCreateChannelWithCapacity", "acltdtCreateDataItem", "acltdtCreateDataset",
    "acltdtCreateQueue", "acltdtCreateQueueAttr", "acltdtAllocBuf", "aclrtCreateContext",
    "aclrtCreateStream", "aclrtCreateStreamV2", "aclrtCreateStreamWithConfig",
    "aclrtCreateStreamConfigHandle", "aclrtCreateEvent", "aclrtCreateEventWithFlag",
    "aclrtCreateEventExWithFlag", "aclrtCreateNotify", "aclrtCreateGroupInfo", "aclrtMalloc",
    "aclrtMallocAlign32", "aclrtMallocCached", "aclrtMallocHost", "aclrtMallocHostWithCfg",
    "aclrtMallocWithCfg", "aclrtMallocPhysical", "aclrtMemAllocManaged", "aclrtReserveMemAddress",
    "aclrtHostRegister", "aclrtHostRegisterV2", "aclrtIpcOpenEventHandle", "aclrtNotifyImportByKey",
    "aclrtIpcMemImportByKey", "aclrtMemImportFromShareableHandle", "aclrtCreateLabel",
    "aclrtCreateLabelList", "aclrtAllocatorCreateDesc", "aclrtCreateBinary",
    // go round in circles
    "aclrtSwitchLabelByIndex", "aclrtActiveStream", "aclrtSwitchStream",
    // use memory
    "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtMemcpyAsyncWithCondition", "aclrtMemcpy2d",
    "aclrtMemcpy2dAsync", "aclrtMemcpyBatch", "aclrtMemcpyBatchAsync", "aclrtMemset",
    "aclrtMemsetAsync", "aclrtReduceAsync", "aclrtValueWrite", "aclrtValueWait",
    "aclSetTensorConst", "aclrtMemcpyBatchV2", "aclrtMemcpyBatchAsyncV2", "aclrtMemsetD32",
    "aclrtMemsetD32Async", "aclrtMemcpyAsyncWithOffset", "aclrtSetMemcpyDesc",
    "aclrtMemcpyAsyncWithDesc", "aclrtFreeWithDevSync", "aclrtFreeHostWithDevSync",
    "acltdtGetBufData", "aclrtGetGroupInfoDetail", "acltdtGetQueueAttr", "acltdtSetBufDataLen",
    "acltdtFreeBuf",
    // end everything, or change it for all; files of the client's
    "aclFinalize", "aclFinalizeReference", "aclrtResetDeviceForce", "aclrtSetOpWaitTimeout",
    "aclrtSetDeviceResLimit", "aclmdlRIDebugJsonPrint", "aclmdlRIDebugPrint", "aclprofInit"};

struct Source {
  Rng& rng;
  void* (*handle)(Rng&);
  std::vector<char>& memory;
  size_t used = 0;

  uint64_t Number() {
    switch (rng() % 8) {
      case 0: return rng();
      case 1: return static_cast<uint64_t>(-1);
      case 2: return rng() % 5000;
      default: return rng() % 5;
    }
  }
  void* Handle() { return handle(rng); }
  bool Flip() { return rng() % 2 == 0; }
  const char* Text() {
    static constexpr const char* kTexts[] = {"x", "", "/nowhere/x.om", "ascend_mbatch_shape_data",
                                             "Ascend910B1"};
    return rng() % 8 == 0 ? nullptr : kTexts[rng() % std::size(kTexts)];
  }
  void* Memory() {
    if (rng() % 8 == 0) return nullptr;
    constexpr size_t kPart = size_t{1} << 19;  // above the largest structure
    char* part = memory.data() + used * kPart;
    used = (used + 1) % (memory.size() / kPart);
    std::memset(part, 0, 4096);
    return part;
  }
};
static_assert(sizeof(aclAippInfo) < size_t{1} << 19);

using Step = aclError (*)(Source&);
std::vector<Step> Steps() {
  std::vector<Step> steps;
  const auto add = [&](std::string_view name, Step step) {
    for (const std::string_view other : kByHand)
      if (other == name) return;
    steps.push_back(step);
  };
#define F(name) add(#name, [](Source& source) -> aclError { return surface::Call(source, name); });
#include "tests/acl/functions.inc"
#undef F
  return steps;
}

}  // namespace

aclError SurfaceStep(Rng& rng, void* (*handle)(Rng&)) {
  static const std::vector<Step> steps = Steps();
  thread_local std::vector<char> memory(size_t{1} << 22);
  Source source{rng, handle, memory};
  return steps[rng() % steps.size()](source);
}
