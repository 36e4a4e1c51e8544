// A dump of what each operator makes: aclmdlInitDump, aclmdlSetDump, a run, aclmdlFinalizeDump;
// then a run that is not dumped. `ge dump FOLDER` turns the files into .npy.
//   dump MODEL.om CONFIG.json INPUT.bin
#include "common.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  StartDevice();
  CHECK_ACL(aclmdlInitDump());
  CHECK_ACL(aclmdlSetDump(argv[2]));
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  RunOnce(model, argv[3], nullptr, "dumped");
  CHECK_ACL(aclmdlFinalizeDump());
  RunOnce(model, argv[3], nullptr, "not dumped");
  CHECK_ACL(aclmdlUnload(model));
  EndDevice();
  return 0;
}
