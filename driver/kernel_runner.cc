// Small kernels are interpreted; large ones are compiled (and cached) like any other kernel, loaded
// for the moment and called on this thread.

#include "driver/kernel_runner.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "abi/kernel_abi.h"
#include "emit/emit.h"
#include "fmt/format.h"
#include "rt/math_table.h"
#include "soc/soc.h"
#include "tile/interpret.h"

namespace ge {
namespace {

constexpr double kCompileAboveFlops = 2e7;  // a compiler start is about 60 ms

// A loaded code object; unloaded with it.
class LoadedCode {
 public:
  static Result<std::unique_ptr<LoadedCode>> Load(const std::string& bytes) {
    auto code = std::make_unique<LoadedCode>();
    const int fd = memfd_create("ge_fold", MFD_CLOEXEC);
    if (fd < 0) return Error(Code::kUnavailable, "memfd_create failed");
    const bool written = write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (written) code->handle_ = dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
    close(fd);
    if (!code->handle_) return Error(Code::kUnavailable, "cannot load folding code");
    code->table_ = static_cast<const ge_code_table*>(dlsym(code->handle_, "ge_code"));
    if (!code->table_) return Error(Code::kInternal, "folding code has no ge_code");
    return code;
  }
  ~LoadedCode() {
    if (handle_) dlclose(handle_);
  }
  ge_kernel_fn kernel(int i) const { return table_->kernels[i]; }

 private:
  void* handle_ = nullptr;
  const ge_code_table* table_ = nullptr;
};

std::unique_ptr<std::byte, decltype(&std::free)> AlignedBlock(int64_t bytes) {
  const size_t size = static_cast<size_t>((std::max<int64_t>(bytes, 1) + 63) / 64 * 64);
  return {static_cast<std::byte*>(std::aligned_alloc(64, size)), &std::free};
}

using Block = std::unique_ptr<std::byte, decltype(&std::free)>;

}  // namespace

Status RunKernels(const Graph& g, const Lowered& lowered,
                  const std::function<void*(ValueId)>& address) {
  std::vector<Block> temps, packs;
  for (const Temp& t : lowered.temps) temps.push_back(AlignedBlock(t.bytes.value()));
  for (const Pack& p : lowered.packs) {
    packs.push_back(AlignedBlock(p.bytes));
    p.fill(*g.ConstantOf(p.source), packs.back().get());
  }
  std::unique_ptr<LoadedCode> code;
  std::vector<int> index;
  double flops = 0;
  for (const LoweredKernel& k : lowered.kernels) flops += k.flops;
  if (flops > kCompileAboveFlops) {
    std::vector<const tile::Kernel*> kernels;
    for (const LoweredKernel& k : lowered.kernels) kernels.push_back(&k.kernel);
    emit::CompileOptions options;
    auto compiler = emit::FindCompiler();
    if (compiler.ok()) {
      options.compiler = *compiler;
      auto object = emit::CompileKernels(kernels, HostSoc(), options);
      if (object.ok()) {
        GE_ASSIGN(code, LoadedCode::Load(object->bytes));
        index = object->index;
      }
    }
  }
  for (size_t i = 0; i < lowered.kernels.size(); ++i) {
    const LoweredKernel& k = lowered.kernels[i];
    if (!k.kernel.symbols.empty()) return Error(Code::kInternal, "a folded kernel has free symbols");
    std::vector<void*> buffers;
    for (const KernelArg& a : k.args) {
      switch (a.kind) {
        case KernelArg::Kind::kValue: buffers.push_back(address(a.id)); break;
        case KernelArg::Kind::kTemp: buffers.push_back(temps[a.id].get()); break;
        case KernelArg::Kind::kPack: buffers.push_back(packs[a.id].get()); break;
      }
    }
    const tile::ScratchPlan scratch_plan = tile::PlanScratch(k.kernel);
    const Block scratch = AlignedBlock(scratch_plan.bytes.value());
    ge_kernel_call call{buffers.data(), nullptr, scratch.get(), rt::MathTable(), nullptr};
    if (code) {
      code->kernel(index[i])(&call, 0, k.grid.value());
    } else {
      const tile::Interpreter interpreter(k.kernel);
      interpreter.Run(call, 0, k.grid.value());
    }
  }
  return {};
}

}  // namespace ge
