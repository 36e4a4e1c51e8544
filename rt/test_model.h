// For tests: a model from a text plan and C kernels, compiled here and now.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "om/file.h"
#include "rt/runtime.h"

namespace ge::rt {

inline std::string TestFolder() {
  // Removed when the process ends; not by a child that it forked.
  struct Folder {
    const pid_t owner = getpid();
    const std::string path = testing::TempDir() + "ge_rt_" + std::to_string(owner);
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      if (getpid() == owner) std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// `bodies`: "name: statements" of each kernel, in which `b` are the buffers, `s` the sizes, and
// [begin, end) the chunks. Gives the shared object's bytes.
inline std::string CompileKernels(const std::vector<std::string>& bodies) {
  std::string source = "#include \"abi/kernel_abi.h\"\n", table;
  for (size_t i = 0; i < bodies.size(); ++i) {
    source +=
        "static void k" + std::to_string(i) +
        "(const ge_kernel_call* call, int64_t begin, int64_t end) {\n"
        "  void* const* b = call->buffers; const int64_t* s = call->sizes; (void)b; (void)s;\n" +
        bodies[i] + "\n}\n";
    table += "k" + std::to_string(i) + ",";
  }
  source += "static const ge_kernel_fn kernels[] = {" + table + "};\n";
  source += "const ge_code_table ge_code = {GE_KERNEL_ABI_VERSION, " +
            std::to_string(bodies.size()) + ", kernels};\n";
  const std::string base = TestFolder() + "/k" + HashHex(source);
  if (!std::filesystem::exists(base + ".so")) {
    std::ofstream(base + ".c") << source;
    // ctest runs in the source folder; by hand, the file's own name leads there.
    const std::string root =
        std::filesystem::exists("abi/kernel_abi.h")
            ? "."
            : std::filesystem::path(__FILE__).parent_path().parent_path().string();
    const std::string command =
        "cc -O2 -shared -fPIC -I'" + root + "' -o '" + base + ".so' '" + base + ".c'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  return ReadFile(base + ".so");
}

struct TestModel {
  std::string plan;
  std::vector<std::string> kernels;
  std::vector<float> weights = {};
  std::vector<std::string> cpu_features = {};

  om::OmContents Contents() const {
    om::OmContents contents;
    auto parsed = om::ParsePlan(plan);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    if (parsed.ok()) contents.plan = *parsed;
    for (size_t i = contents.plan.kernels.size(); i < kernels.size(); ++i) {
      contents.plan.kernels.push_back({"k" + std::to_string(i), std::to_string(i), ""});
    }
    if (!kernels.empty()) contents.code = CompileKernels(kernels);
    contents.cpu_features = cpu_features;
    contents.weight_bytes = static_cast<int64_t>(weights.size() * sizeof(float));
    contents.fill_weights = [this](std::byte* out) -> Status {
      if (!weights.empty()) std::memcpy(out, weights.data(), weights.size() * sizeof(float));
      return {};
    };
    return contents;
  }

  std::string Write() const {
    static int count = 0;
    const std::string path = TestFolder() + "/m" + std::to_string(count++) + ".om";
    const Status status = om::WriteOm(path, Contents());
    EXPECT_TRUE(status.ok()) << status.message();
    return path;
  }

  std::shared_ptr<const Model> Load(int threads = 1) const {
    LoadOptions options;
    options.threads = threads;
    auto model = Model::Load(Write(), options);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? *model : nullptr;
  }
};

template <class T>
constexpr uint8_t TypeOf() {
  if constexpr (std::is_same_v<T, float>) return 1;
  if constexpr (std::is_same_v<T, int64_t>) return 7;
  return 9;  // bool
}

// A view of a vector as a tensor; by default of one dim.
template <class T>
Tensor On(std::vector<T>& data, std::vector<int64_t> dims = {-1}) {
  if (dims == std::vector<int64_t>{-1}) dims = {static_cast<int64_t>(data.size())};
  return {TypeOf<T>(), std::move(dims), data.data(), static_cast<int64_t>(data.size() * sizeof(T))};
}
inline Tensor OnBool(bool* value) { return {9, {}, value, 1}; }

template <class T>
std::vector<T> Values(const Tensor& t) {
  int64_t count = 1;
  for (const int64_t d : t.dims) count *= d;
  const auto* data = static_cast<const T*>(t.data);
  return {data, data + count};
}

inline std::unique_ptr<Run> NewRun(std::shared_ptr<const Model> model, void* work = nullptr) {
  auto run = Run::Create(std::move(model), work);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? std::move(*run) : nullptr;
}

}  // namespace ge::rt
