#include "lower/interpret_region.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "tile/interpret.h"

namespace ge {
namespace {

void* Address(std::vector<std::byte>& bytes) { return bytes.data(); }

}  // namespace

void InterpretLowered(const Graph& g, const Lowered& lowered, const RegionMemory& memory,
                      int parts) {
  std::vector<std::vector<std::byte>> temps, packs;
  for (const Temp& temp : lowered.temps) {
    std::optional<int64_t> bytes = Evaluate(temp.bytes, memory.symbol);
    GE_CHECK(bytes.has_value(), "size of a temporary is unknown");
    temps.emplace_back(*bytes, std::byte{0xA5});
  }
  for (const Pack& pack : lowered.packs) {
    packs.emplace_back(pack.bytes);
    pack.fill(*g.ConstantOf(pack.source), packs.back().data());
  }
  for (const LoweredKernel& k : lowered.kernels) {
    std::vector<void*> buffers;
    for (const KernelArg& arg : k.args)
      buffers.push_back(arg.kind == KernelArg::Kind::kValue  ? memory.value(arg.id)
                        : arg.kind == KernelArg::Kind::kTemp ? Address(temps[arg.id])
                                                             : Address(packs[arg.id]));
    std::vector<int64_t> sizes;
    for (Expr symbol : k.kernel.symbols) {
      std::optional<int64_t> size = memory.symbol(symbol);
      GE_CHECK(size.has_value(), "size symbol without a value: " + ToString(symbol));
      sizes.push_back(*size);
    }
    tile::Interpreter interpreter(k.kernel);
    ge_kernel_call call{buffers.data(), sizes.data(), nullptr, nullptr, nullptr};
    int64_t grid = interpreter.Grid(sizes.data());
    for (int64_t part = 0; part < parts; ++part)
      interpreter.Run(call, grid * part / parts, grid * (part + 1) / parts);
  }
}

}  // namespace ge
