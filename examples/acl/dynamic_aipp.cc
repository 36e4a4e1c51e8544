// Dynamic preprocessing: the picture's format, size, mean and scale are given at run time.
//   dynamic_aipp MODEL.om WIDTH HEIGHT EXPECTED.bin PICTURE.bin      (PICTURE: RGB, 8 bits)
#include "common.h"

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  StartDevice();
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  size_t index = 0, attached = 0;
  CHECK_ACL(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_AIPP_NAME, &index));
  aclmdlInputAippType type = ACL_DATA_WITHOUT_AIPP;
  CHECK_ACL(aclmdlGetAippType(model, 0, &type, &attached));
  if (type != ACL_DATA_WITH_DYNAMIC_AIPP || attached != index) return 1;
  aclmdlAIPP* aipp = aclmdlCreateAIPP(1);
  CHECK_ACL(aclmdlSetAIPPInputFormat(aipp, ACL_RGB888_U8));
  CHECK_ACL(aclmdlSetAIPPSrcImageSize(aipp, std::atoi(argv[2]), std::atoi(argv[3])));
  CHECK_ACL(aclmdlSetAIPPDtcPixelMean(aipp, 127, 127, 127, 0, 0));
  CHECK_ACL(aclmdlSetAIPPPixelVarReci(aipp, 0.0078125f, 0.0078125f, 0.0078125f, 1, 0));
  {
    const Buffers buffers(desc);
    buffers.SetInput(0, ReadFile(argv[5]));
    CHECK_ACL(aclmdlSetInputAIPP(model, buffers.input, index, aipp));
    CHECK_ACL(aclmdlExecute(model, buffers.input, buffers.output));
    Expect(buffers.Output(0), argv[4], "dynamic preprocessing");
  }
  CHECK_ACL(aclmdlDestroyAIPP(aipp));
  CHECK_ACL(aclmdlUnload(model));
  CHECK_ACL(aclmdlDestroyDesc(desc));
  EndDevice();
  return 0;
}
