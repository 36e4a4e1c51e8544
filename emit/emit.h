// Emit: TileIR as C text, compiled by clang or gcc into one freestanding shared object, with a
// content-addressed cache of object code.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "soc/soc.h"
#include "tile/tile.h"

namespace ge::emit {

// The C function `symbol` for one kernel (no prelude).
std::string EmitKernel(const tile::Kernel& kernel, const SocSpec& soc, const std::string& symbol);
// What every translation unit begins with: types, conversions, vector mathematics.
std::string Prelude(const SocSpec& soc);
// Hash of canonical TileIR, chip, flags, compiler and emitter version.
std::string KernelHash(const tile::Kernel& kernel, const SocSpec& soc,
                       const std::string& compiler_id);

struct CompilerSpec {
  std::string path;  // "" = search: $GE_CC, clang-19, clang, gcc
  std::string id;    // "clang 19.1.7": filled by FindCompiler
  bool is_clang = true;
};
Result<CompilerSpec> FindCompiler(const std::string& preferred = "");

struct CompileOptions {
  CompilerSpec compiler;
  std::string cache_dir;  // "" = $GE_CACHE_DIR or ~/.cache/ge; "off" = none
  int jobs = 0;           // compiler processes at once; 0 = CPUs
  std::string sanitize;   // "" or "address,undefined" (tests)
  std::function<void(int done, int total)> progress;
};

struct CodeObject {
  std::string bytes;              // the shared object, exports ge_code
  std::vector<int> index;         // kernels[i] of the request is ge_code.kernels[index[i]]
  std::vector<std::string> hash;  // per distinct kernel, in ge_code order
  int compiled = 0, cached = 0;
};
// Compiles the distinct kernels that the cache lacks, in parallel batches, links all. Thread-safe.
Result<CodeObject> CompileKernels(std::span<const tile::Kernel* const> kernels, const SocSpec& soc,
                                  const CompileOptions& options);

}  // namespace ge::emit
