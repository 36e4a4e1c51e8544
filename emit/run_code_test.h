// For tests of emit/: compiles kernels, loads the object and calls kernels on vectors of bytes.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "abi/kernel_abi.h"
#include "emit/emit.h"
#include "tile/interpret.h"

namespace ge::emit {

inline const ge_math_table* TestMath() {
  static const ge_math_table table = [] {
    ge_math_table t = {};
    t.count1 = GE_M_COUNT1;
    t.count2 = GE_M_COUNT2;
    double (*f1[])(double) = {std::exp,    std::log,   std::sin,   std::cos,   std::tan,
                              std::asin,   std::acos,  std::atan,  std::sinh,  std::cosh,
                              std::tanh,   std::asinh, std::acosh, std::atanh, std::erf,
                              std::lgamma, std::expm1, std::log1p, std::cbrt};
    double (*f2[])(double, double) = {std::pow, std::fmod, std::atan2};
    std::copy(std::begin(f1), std::end(f1), t.f1);
    std::copy(std::begin(f2), std::end(f2), t.f2);
    return t;
  }();
  return &table;
}

// A shared object loaded from memory.
class LoadedCode {
 public:
  explicit LoadedCode(const std::string& bytes) {
    int fd = memfd_create("ge_code", 0);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
    close(fd);
    if (handle_) table_ = static_cast<const ge_code_table*>(dlsym(handle_, "ge_code"));
    EXPECT_NE(table_, nullptr);
  }
  ~LoadedCode() {
    if (handle_) dlclose(handle_);
  }
  LoadedCode(const LoadedCode&) = delete;
  ge_kernel_fn kernel(int i) const { return table_->kernels[i]; }
  uint32_t count() const { return table_->count; }

 private:
  void* handle_ = nullptr;
  const ge_code_table* table_ = nullptr;
};

// A buffer with canaries behind its end.
struct TestBuffer {
  static constexpr size_t kCanary = 64;
  std::vector<uint8_t> bytes;
  size_t size = 0;
  template <class T>
  static TestBuffer Of(const std::vector<T>& v) {
    TestBuffer b;
    b.size = v.size() * sizeof(T);
    b.bytes.assign(b.size + kCanary, 0xC5);
    if (b.size) std::memcpy(b.bytes.data(), v.data(), b.size);
    return b;
  }
  template <class T>
  std::vector<T> As() const {
    std::vector<T> v(size / sizeof(T));
    if (size) std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
    return v;
  }
  bool CanariesIntact() const {
    for (size_t i = size; i < bytes.size(); ++i) {
      if (bytes[i] != 0xC5) return false;
    }
    return true;
  }
};

// Calls fn on copies of `buffers` over the grid in `chunks` parts; returns the buffers after it.
inline std::vector<TestBuffer> CallKernel(ge_kernel_fn fn, std::vector<TestBuffer> buffers,
                                          const std::vector<int64_t>& sizes, int64_t grid,
                                          int64_t scratch_bytes, const void* self = nullptr,
                                          int chunks = 1) {
  std::vector<void*> pointers;
  for (TestBuffer& b : buffers) pointers.push_back(b.bytes.data());
  std::vector<uint8_t> scratch(static_cast<size_t>(scratch_bytes) + 64);
  void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  ge_kernel_call call{pointers.data(), sizes.data(), aligned, TestMath(), self};
  for (int c = 0; c < chunks; ++c) fn(&call, grid * c / chunks, grid * (c + 1) / chunks);
  for (const TestBuffer& b : buffers) EXPECT_TRUE(b.CanariesIntact());
  return buffers;
}

struct Target {
  std::string soc, compiler;
};
// The levels that this machine can run, with each compiler that is installed.
inline std::vector<Target> TestTargets() {
  std::vector<Target> targets;
  for (const char* cc : {"clang-19", "gcc"}) {
    if (!FindCompiler(cc).ok()) continue;
    targets.push_back({"x86-64-v3", cc});
    if (HostSoc().masks) targets.push_back({"x86-64-v4", cc});
  }
  return targets;
}

inline CodeObject MustCompile(const std::vector<const tile::Kernel*>& kernels, const Target& t,
                              const std::string& cache = "off") {
  CompileOptions options;
  options.compiler = FindCompiler(t.compiler).value();
  options.cache_dir = cache;
  Result<CodeObject> code = CompileKernels(kernels, FindSoc(t.soc, nullptr).value(), options);
  EXPECT_TRUE(code.ok()) << code.status().message();
  return code.ok() ? *std::move(code) : CodeObject{};
}

}  // namespace ge::emit
