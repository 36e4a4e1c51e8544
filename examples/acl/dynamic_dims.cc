// A model with symbolic dims, three ways: shapes by tensor descriptions with outputs that the
// library allocates; values for the dims; a batch size.
//   dynamic_dims MODEL.om BATCH EXPECTED.bin INPUT.bin
#include "common.h"

namespace {

// The input's dims with the dynamic ones set to n.
aclmdlIODims DimsAt(aclmdlDesc* desc, int64_t n) {
  aclmdlIODims dims;
  CHECK_ACL(aclmdlGetInputDims(desc, 0, &dims));
  for (size_t i = 0; i < dims.dimCount; ++i)
    if (dims.dims[i] < 0) dims.dims[i] = n;
  return dims;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int64_t n = std::atoll(argv[2]);
  StartDevice();
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  const std::vector<char> data = ReadFile(argv[4]);
  aclmdlIODims dims = DimsAt(desc, n);

  void* memory = nullptr;
  CHECK_ACL(aclrtMalloc(&memory, data.size(), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_ACL(aclrtMemcpy(memory, data.size(), data.data(), data.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  for (int way = 0; way < 3; ++way) {
    aclmdlDataset *input = aclmdlCreateDataset(), *output = aclmdlCreateDataset();
    aclDataBuffer* in = aclCreateDataBuffer(memory, data.size());
    aclDataBuffer* out = aclCreateDataBuffer(nullptr, 0);
    CHECK_ACL(aclmdlAddDatasetBuffer(input, in));
    CHECK_ACL(aclmdlAddDatasetBuffer(output, out));
    if (way == 0) {
      aclTensorDesc* shape =
          aclCreateTensorDesc(aclmdlGetInputDataType(desc, 0), static_cast<int>(dims.dimCount),
                              dims.dims, ACL_FORMAT_ND);
      CHECK_ACL(aclmdlSetDatasetTensorDesc(input, shape, 0));
      aclDestroyTensorDesc(shape);
    } else if (way == 1) {
      CHECK_ACL(aclmdlSetInputDynamicDims(model, input, 0, &dims));
    } else {
      CHECK_ACL(aclmdlSetDynamicBatchSize(model, input, 0, static_cast<uint64_t>(n)));
    }
    CHECK_ACL(aclmdlExecute(model, input, output));
    aclTensorDesc* shape = aclmdlGetDatasetTensorDesc(output, 0);
    std::printf("output dims:");
    for (size_t i = 0; i < aclGetTensorDescNumDims(shape); ++i)
      std::printf(" %lld", static_cast<long long>(aclGetTensorDescDim(shape, i)));
    std::printf("\n");
    std::vector<float> result(aclGetTensorDescElementCount(shape));
    void* result_memory = aclGetDataBufferAddr(out);
    CHECK_ACL(aclrtMemcpy(result.data(), result.size() * sizeof(float), result_memory,
                          result.size() * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
    Expect(result, argv[3], "dynamic dims");
    CHECK_ACL(aclrtFree(result_memory));
    CHECK_ACL(aclDestroyDataBuffer(in));
    CHECK_ACL(aclDestroyDataBuffer(out));
    CHECK_ACL(aclmdlDestroyDataset(input));
    CHECK_ACL(aclmdlDestroyDataset(output));
  }
  CHECK_ACL(aclrtFree(memory));
  CHECK_ACL(aclmdlUnload(model));
  CHECK_ACL(aclmdlDestroyDesc(desc));
  EndDevice();
  return 0;
}
