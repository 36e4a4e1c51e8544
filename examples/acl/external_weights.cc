// Weights in files of their own (atc --external_weight), three ways: found beside the .om; in a
// folder that is told, for a model in memory; from device memory of ours.
//   external_weights MODEL.om WEIGHT_FILE EXPECTED.bin INPUT.bin
#include "common.h"

namespace {

void Run(uint32_t model, char** argv, const char* how) {
  RunOnce(model, argv[4], argv[3], how);
  CHECK_ACL(aclmdlUnload(model));
}

// A configuration to load the model from memory.
aclmdlConfigHandle* FromMemory(const std::vector<char>& om) {
  aclmdlConfigHandle* config = aclmdlCreateConfigHandle();
  size_t type = ACL_MDL_LOAD_FROM_MEM, size = om.size();
  const void* address = om.data();
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof type));
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_MEM_ADDR_PTR, &address, sizeof address));
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_MEM_SIZET, &size, sizeof size));
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  StartDevice();
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  Run(model, argv, "beside the model");

  const std::vector<char> om = ReadFile(argv[1]);
  if (aclmdlLoadFromMem(om.data(), om.size(), &model) == ACL_SUCCESS) return 1;  // from where?
  const std::string file = argv[2];
  const std::string folder = file.substr(0, file.rfind('/'));
  aclmdlConfigHandle* config = FromMemory(om);
  const char* path = folder.c_str();
  CHECK_ACL(aclmdlSetConfigOpt(config, ACL_MDL_WEIGHT_PATH_PTR, &path, sizeof path));
  CHECK_ACL(aclmdlLoadWithConfig(config, &model));
  CHECK_ACL(aclmdlDestroyConfigHandle(config));
  Run(model, argv, "in a folder that is told");

  const std::vector<char> weights = ReadFile(file);
  void* memory = nullptr;
  CHECK_ACL(aclrtMalloc(&memory, weights.size(), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_ACL(aclrtMemcpy(memory, weights.size(), weights.data(), weights.size(),
                        ACL_MEMCPY_HOST_TO_DEVICE));
  config = FromMemory(om);
  CHECK_ACL(aclmdlSetExternalWeightAddress(config, file.c_str(), memory, weights.size()));
  CHECK_ACL(aclmdlLoadWithConfig(config, &model));
  CHECK_ACL(aclmdlDestroyConfigHandle(config));
  Run(model, argv, "from memory of ours");
  CHECK_ACL(aclrtFree(memory));
  EndDevice();
  return 0;
}
