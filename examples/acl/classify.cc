// Classification, synchronous: init, device, context, stream, model, one picture after the other.
//   classify MODEL.om EXPECTED.bin INPUT.bin...      (EXPECTED "-": not compared)
#include "common.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  StartDevice();
  aclrtContext context = nullptr;
  CHECK_ACL(aclrtCreateContext(&context, 0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  aclrtRunMode mode = ACL_DEVICE;
  CHECK_ACL(aclrtGetRunMode(&mode));

  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  for (size_t i = 0; i < aclmdlGetNumInputs(desc); ++i)
    std::printf("input %zu: %s, %zu bytes, type %d, format %d\n", i,
                aclmdlGetInputNameByIndex(desc, i), aclmdlGetInputSizeByIndex(desc, i),
                aclmdlGetInputDataType(desc, i), aclmdlGetInputFormat(desc, i));
  for (size_t i = 0; i < aclmdlGetNumOutputs(desc); ++i)
    std::printf("output %zu: %s, %zu bytes\n", i, aclmdlGetOutputNameByIndex(desc, i),
                aclmdlGetOutputSizeByIndex(desc, i));
  {
    const Buffers buffers(desc);
    for (int picture = 3; picture < argc; ++picture) {
      buffers.SetInput(0, ReadFile(argv[picture]));
      CHECK_ACL(aclmdlExecute(model, buffers.input, buffers.output));
      const std::vector<float> scores = buffers.Output(0);
      if (std::string(argv[2]) != "-") Expect(scores, argv[2], argv[picture]);
      PrintTop(scores, 5);
    }
  }
  CHECK_ACL(aclmdlUnload(model));
  CHECK_ACL(aclmdlDestroyDesc(desc));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtDestroyContext(context));
  EndDevice();
  return 0;
}
