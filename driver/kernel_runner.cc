// Small kernels are interpreted; large ones are compiled (and cached) like any other kernel, loaded
// for the moment and called on this thread.

#include "driver/kernel_runner.h"

#include <cstdlib>
#include <memory>

#include "abi/kernel_abi.h"
#include "emit/emit.h"
#include "rt/code.h"
#include "soc/soc.h"
#include "tile/interpret.h"

namespace ge {
namespace {

constexpr double kCompileAboveFlops = 2e7;  // a compiler start is about 60 ms

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
  rt::CodeObject code;
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
        const auto* bytes = reinterpret_cast<const std::byte*>(object->bytes.data());
        GE_ASSIGN(code, rt::CodeObject::Load({bytes, object->bytes.size()}, object->hash.size()));
        index = object->index;
      }
    }
  }
  for (size_t i = 0; i < lowered.kernels.size(); ++i) {
    const LoweredKernel& k = lowered.kernels[i];
    if (!k.kernel.symbols.empty())
      return Error(Code::kInternal, "a folded kernel has free symbols");
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
    ge_kernel_call call{buffers.data(), nullptr, scratch.get(), &rt::MathTable(), nullptr};
    if (!code.kernels().empty()) {
      code.kernels()[index[i]](&call, 0, k.grid.value());
    } else {
      const tile::Interpreter interpreter(k.kernel);
      interpreter.Run(call, 0, k.grid.value());
    }
  }
  return {};
}

}  // namespace ge
