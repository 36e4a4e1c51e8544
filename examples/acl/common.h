// What the example clients share: checking, files, a model with its datasets. Only AscendCL and
// libc++.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "acl/acl.h"

inline void Check(aclError code, const char* what) {
  if (code == ACL_SUCCESS) return;
  const char* message = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed: %d\n%s", what, code, message == nullptr ? "" : message);
  std::exit(1);
}
#define CHECK_ACL(call) Check(call, #call)

inline void StartDevice() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
}
inline void EndDevice() {
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  std::printf("passed\n");
}

inline std::vector<char> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  return std::vector<char>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// Datasets with device memory for a model's inputs and outputs. The model's id stays the caller's.
struct Buffers {
  aclmdlDataset* input = aclmdlCreateDataset();
  aclmdlDataset* output = aclmdlCreateDataset();

  static void Add(aclmdlDataset* dataset, size_t bytes) {
    void* memory = nullptr;
    if (bytes > 0) CHECK_ACL(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclmdlAddDatasetBuffer(dataset, aclCreateDataBuffer(memory, bytes)));
  }
  static void Remove(aclmdlDataset* dataset) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(dataset); ++i) {
      aclDataBuffer* buffer = aclmdlGetDatasetBuffer(dataset, i);
      if (void* memory = aclGetDataBufferAddr(buffer)) CHECK_ACL(aclrtFree(memory));
      CHECK_ACL(aclDestroyDataBuffer(buffer));
    }
    CHECK_ACL(aclmdlDestroyDataset(dataset));
  }
  explicit Buffers(aclmdlDesc* desc) {
    for (size_t i = 0; i < aclmdlGetNumInputs(desc); ++i)
      Add(input, aclmdlGetInputSizeByIndex(desc, i));
    for (size_t i = 0; i < aclmdlGetNumOutputs(desc); ++i)
      Add(output, aclmdlGetOutputSizeByIndex(desc, i));
  }
  ~Buffers() {
    Remove(input);
    Remove(output);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  void* InputMemory(size_t i) const {
    return aclGetDataBufferAddr(aclmdlGetDatasetBuffer(input, i));
  }
  void SetInput(size_t i, const std::vector<char>& data) const {
    aclDataBuffer* buffer = aclmdlGetDatasetBuffer(input, i);
    CHECK_ACL(aclrtMemcpy(aclGetDataBufferAddr(buffer), aclGetDataBufferSizeV2(buffer), data.data(),
                          data.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  }
  std::vector<float> Output(size_t i) const {
    aclDataBuffer* buffer = aclmdlGetDatasetBuffer(output, i);
    std::vector<float> host(aclGetDataBufferSizeV2(buffer) / sizeof(float));
    CHECK_ACL(aclrtMemcpy(host.data(), host.size() * sizeof(float), aclGetDataBufferAddr(buffer),
                          host.size() * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
  }
};

// Compares with floats in a file; exits with 1 if one is off.
inline void Expect(const std::vector<float>& got, const std::string& path, const char* what) {
  const std::vector<char> raw = ReadFile(path);
  std::vector<float> want(raw.size() / sizeof(float));
  std::memcpy(want.data(), raw.data(), want.size() * sizeof(float));
  if (got.size() < want.size()) {
    std::fprintf(stderr, "%s: %zu values, %zu expected\n", what, got.size(), want.size());
    std::exit(1);
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::fabs(got[i] - want[i]) <= 1e-5f + 1e-4f * std::fabs(want[i])) continue;
    std::fprintf(stderr, "%s: value %zu is %g, expected %g\n", what, i, static_cast<double>(got[i]),
                 static_cast<double>(want[i]));
    std::exit(1);
  }
}

// One run of a loaded model with one input; `expected` null: not compared.
inline void RunOnce(uint32_t model, const char* input, const char* expected, const char* how) {
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  {
    const Buffers buffers(desc);
    buffers.SetInput(0, ReadFile(input));
    CHECK_ACL(aclmdlExecute(model, buffers.input, buffers.output));
    if (expected != nullptr) Expect(buffers.Output(0), expected, how);
  }
  CHECK_ACL(aclmdlDestroyDesc(desc));
  std::printf("%s: %s\n", how, expected != nullptr ? "right" : "done");
}

inline void PrintTop(const std::vector<float>& scores, int n) {
  std::vector<bool> taken(scores.size());
  for (int k = 0; k < n && k < static_cast<int>(scores.size()); ++k) {
    size_t best = 0;
    for (size_t i = 0; i < scores.size(); ++i)
      if (!taken[i] && (taken[best] || scores[i] > scores[best])) best = i;
    taken[best] = true;
    std::printf("top %d: index[%zu] value[%f]\n", k + 1, best, static_cast<double>(scores[best]));
  }
}
