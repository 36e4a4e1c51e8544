// Every way to load: file, memory, each with memory of our own; with a configuration; as a bundle.
//   load_ways MODEL.om EXPECTED.bin INPUT.bin
#include "common.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  StartDevice();
  uint32_t id = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &id));
  RunOnce(id, argv[3], argv[2], "from file");
  CHECK_ACL(aclmdlUnload(id));

  std::vector<char> om = ReadFile(argv[1]);
  CHECK_ACL(aclmdlLoadFromMem(om.data(), om.size(), &id));
  const std::vector<char> kept = om;
  om.assign(om.size(), 0);  // the library has its own copy
  RunOnce(id, argv[3], argv[2], "from memory");
  CHECK_ACL(aclmdlUnload(id));

  size_t work_size = 0, weight_size = 0;
  CHECK_ACL(aclmdlQuerySize(argv[1], &work_size, &weight_size));
  std::printf("work %zu bytes, weights %zu bytes\n", work_size, weight_size);
  if (work_size == 0 || weight_size == 0) return 1;
  void *work = nullptr, *weights = nullptr;
  CHECK_ACL(aclrtMalloc(&work, work_size, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_ACL(aclrtMalloc(&weights, weight_size, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_ACL(aclmdlLoadFromFileWithMem(argv[1], &id, work, work_size, weights, weight_size));
  RunOnce(id, argv[3], argv[2], "from file with memory");
  CHECK_ACL(aclmdlUnload(id));
  size_t work_size2 = 0, weight_size2 = 0;
  CHECK_ACL(aclmdlQuerySizeFromMem(kept.data(), kept.size(), &work_size2, &weight_size2));
  if (work_size2 != work_size || weight_size2 != weight_size) return 1;
  CHECK_ACL(aclmdlLoadFromMemWithMem(kept.data(), kept.size(), &id, work, work_size, weights,
                                     weight_size));
  RunOnce(id, argv[3], argv[2], "from memory with memory");
  CHECK_ACL(aclmdlUnload(id));

  aclmdlConfigHandle* config = aclmdlCreateConfigHandle();
  size_t type = ACL_MDL_LOAD_FROM_FILE_WITH_MEM;
  const char* path = argv[1];
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof type));
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, sizeof path));
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_WORKSPACE_ADDR_PTR, &work, sizeof work));
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_WORKSPACE_SIZET, &work_size, sizeof work_size));
  CHECK_ACL(aclmdlLoadWithConfig(config, &id));
  CHECK_ACL(aclmdlDestroyConfigHandle(config));
  RunOnce(id, argv[3], argv[2], "with a configuration");
  CHECK_ACL(aclmdlUnload(id));
  CHECK_ACL(aclrtFree(work));
  CHECK_ACL(aclrtFree(weights));

  uint32_t bundle = 0;
  size_t models = 0;
  CHECK_ACL(aclmdlBundleLoadFromFile(argv[1], &bundle));
  CHECK_ACL(aclmdlBundleGetModelNum(bundle, &models));
  if (models != 1) return 1;
  CHECK_ACL(aclmdlBundleGetModelId(bundle, 0, &id));
  RunOnce(id, argv[3], argv[2], "as a bundle");
  CHECK_ACL(aclmdlBundleUnload(bundle));
  EndDevice();
  return 0;
}
