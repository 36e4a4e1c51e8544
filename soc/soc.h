// SocSpec: numbers of one chip, and how code for it is compiled. The host CPU is read by feature
// bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ge {

struct SocSpec {
  std::string name;                // "host", "x86-64-v3", "x86-64-v4", "sapphirerapids", ...
  std::string machine = "x86_64";  // or "aarch64": as `uname -m` says
  int vector_bytes = 32;           // 16: NEON, 32: AVX2, 64: AVX-512
  int vector_registers = 16;
  bool masks = false;  // AVX-512 mask registers
  bool vnni = false;
  // A matrix unit: bytes and pairs of bf16 are multiplied by tiles of 16 rows and 16 columns
  // (emit/brgemm_amx.cc). `amx_in_c`: its instructions are C functions, so that code runs anywhere.
  bool amx = false, amx_in_c = false;
  double tile_cycles = 16;   // between two products of tiles, each 16 rows x 64 bytes x 16 columns
  double tile_share = 0.55;  // of such products, what a dot reaches
  bool bf16 = false;         // dot products of bf16 pairs (vdpbf16ps) at the rate of f32 FMAs
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;
  double ghz = 3.0;
  int fma_per_cycle = 2;    // vector FMAs
  double dot_share = 0.75;  // of the FMAs a cycle can do, what a dot reaches
  int64_t l3_bytes = 0;     // 0: none that is faster than memory
  double dram_gb_per_s = 15, l3_gb_per_s = 20, l2_gb_per_s = 80;
  std::vector<std::string> cc_flags;  // -march=... and kin
  std::vector<std::string> features;  // CPU feature names that the code needs, checked on load
  // Are pairs of bf16 multiplied at least as fast as f32?
  bool HasPairs() const { return bf16 || amx; }
  bool IsArm() const { return machine == "aarch64"; }
  int F32Lanes() const { return vector_bytes / 4; }
};

// By --soc_version: "" or "host", an x86-64 level, a CPU name, or Ascend* (host code; *note is
// set).
Result<SocSpec> FindSoc(std::string_view soc_version, std::string* note);
SocSpec HostSoc();

}  // namespace ge
