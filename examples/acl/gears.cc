// A model with gears of the batch: one more input, ascend_mbatch_shape_data, and a size to be set
// before each run.
//   gears MODEL.om (BATCH EXPECTED.bin INPUT.bin)...
#include "common.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  aclmdlBatch batches;
  CHECK_ACL(aclmdlGetDynamicBatch(desc, &batches));
  std::printf("gears:");
  for (size_t i = 0; i < batches.batchCount; ++i)
    std::printf(" %llu", static_cast<unsigned long long>(batches.batch[i]));
  std::printf("\n");
  size_t index = 0;
  CHECK_ACL(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
  if (batches.batchCount == 0 || index + 1 != aclmdlGetNumInputs(desc)) return 1;
  {
    const Buffers buffers(desc);
    if (aclmdlExecute(model, buffers.input, buffers.output) == ACL_SUCCESS)
      return 1;  // no gear yet
    if (aclmdlSetDynamicBatchSize(model, buffers.input, index, 12345) == ACL_SUCCESS) return 1;
    for (int i = 2; i + 2 < argc; i += 3) {
      buffers.SetInput(0, ReadFile(argv[i + 2]));
      CHECK_ACL(aclmdlSetDynamicBatchSize(model, buffers.input, index,
                                          static_cast<uint64_t>(std::atoll(argv[i]))));
      CHECK_ACL(aclmdlExecute(model, buffers.input, buffers.output));
      aclmdlIODims dims;
      CHECK_ACL(aclmdlGetCurOutputDims(desc, 0, &dims));
      if (dims.dims[0] != std::atoll(argv[i])) return 1;
      Expect(buffers.Output(0), argv[i + 1], argv[i]);
      std::printf("batch %s: right\n", argv[i]);
    }
  }
  CHECK_ACL(aclmdlUnload(model));
  CHECK_ACL(aclmdlDestroyDesc(desc));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  std::printf("passed\n");
  return 0;
}
