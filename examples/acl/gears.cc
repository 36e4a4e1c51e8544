// A model with gears: one more input, ascend_mbatch_shape_data, and a size to be set before each
// run.
//   gears batch|image|dims MODEL.om (VALUES EXPECTED.bin INPUT.bin)...
//
// VALUES is what aclmdlSetDynamicBatchSize ("2"), aclmdlSetDynamicHWSize ("32,48") or
// aclmdlSetInputDynamicDims (all dims of the input: "2,8,16") sets. The model has one input.
#include "common.h"

namespace {

std::vector<int64_t> Numbers(const char* text) {
  std::vector<int64_t> numbers;
  for (char* at = const_cast<char*>(text); *at != 0; at += *at == ',' ? 1 : 0) {
    char* end = nullptr;
    numbers.push_back(std::strtoll(at, &end, 10));
    if (end == at) std::exit(2);
    at = end;
  }
  return numbers;
}

void PrintGears(const std::string& kind, aclmdlDesc* desc) {
  std::printf("gears:");
  if (kind == "batch") {
    aclmdlBatch batches;
    CHECK_ACL(aclmdlGetDynamicBatch(desc, &batches));
    for (size_t i = 0; i < batches.batchCount; ++i)
      std::printf(" %llu", static_cast<unsigned long long>(batches.batch[i]));
  } else if (kind == "image") {
    aclmdlHW sizes;
    CHECK_ACL(aclmdlGetDynamicHW(desc, static_cast<size_t>(-1), &sizes));
    for (size_t i = 0; i < sizes.hwCount; ++i)
      std::printf(" %llux%llu", static_cast<unsigned long long>(sizes.hw[i][0]),
                  static_cast<unsigned long long>(sizes.hw[i][1]));
  } else {
    size_t count = 0;
    CHECK_ACL(aclmdlGetInputDynamicGearCount(desc, static_cast<size_t>(-1), &count));
    std::vector<aclmdlIODims> dims(count);
    CHECK_ACL(aclmdlGetInputDynamicDims(desc, static_cast<size_t>(-1), dims.data(), count));
    for (const aclmdlIODims& gear : dims) {
      for (size_t i = 0; i < gear.dimCount; ++i)
        std::printf("%c%lld", i == 0 ? ' ' : 'x', static_cast<long long>(gear.dims[i]));
    }
  }
  std::printf("\n");
}

aclError SetGear(const std::string& kind, uint32_t model, aclmdlDataset* input, size_t index,
                 const std::vector<int64_t>& values) {
  if (kind == "batch")
    return aclmdlSetDynamicBatchSize(model, input, index, static_cast<uint64_t>(values.at(0)));
  if (kind == "image")
    return aclmdlSetDynamicHWSize(model, input, index, static_cast<uint64_t>(values.at(0)),
                                  static_cast<uint64_t>(values.at(1)));
  aclmdlIODims dims{};
  dims.dimCount = values.size();
  for (size_t i = 0; i < values.size(); ++i) dims.dims[i] = values[i];
  return aclmdlSetInputDynamicDims(model, input, index, &dims);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const std::string kind = argv[1];
  StartDevice();
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[2], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  PrintGears(kind, desc);
  size_t index = 0;
  CHECK_ACL(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
  if (index + 1 != aclmdlGetNumInputs(desc)) return 1;
  {
    const Buffers buffers(desc);
    if (aclmdlExecute(model, buffers.input, buffers.output) == ACL_SUCCESS)
      return 1;  // no gear yet
    std::vector<int64_t> wrong = Numbers(argv[3]);
    wrong[0] = 12345;
    if (SetGear(kind, model, buffers.input, index, wrong) == ACL_SUCCESS) return 1;
    for (int i = 3; i + 2 < argc; i += 3) {
      buffers.SetInput(0, ReadFile(argv[i + 2]));
      CHECK_ACL(SetGear(kind, model, buffers.input, index, Numbers(argv[i])));
      CHECK_ACL(aclmdlExecute(model, buffers.input, buffers.output));
      aclmdlIODims dims;
      CHECK_ACL(aclmdlGetCurOutputDims(desc, 0, &dims));
      size_t elements = 1;
      for (size_t d = 0; d < dims.dimCount; ++d) elements *= static_cast<size_t>(dims.dims[d]);
      if (elements * sizeof(float) != ReadFile(argv[i + 1]).size()) return 1;
      Expect(buffers.Output(0), argv[i + 1], argv[i]);
      std::printf("%s: right\n", argv[i]);
    }
  }
  CHECK_ACL(aclmdlUnload(model));
  CHECK_ACL(aclmdlDestroyDesc(desc));
  EndDevice();
  return 0;
}
