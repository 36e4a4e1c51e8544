// Intel Sapphire Rapids: AVX-512 with VNNI and the AMX matrix unit, 48 KB L1 and 2 MB L2 per core.
//
// Numbers were measured on a 2-core virtual machine of this chip: L2 79 GB/s, DRAM 15 GB/s per
// core, 3.3 to 3.7 GHz. A loop of tile products alone reached 3.2 to 3.8 TFLOPS in bf16 (15 times
// f32), which is one product of 16 x 16 x 32 every 16 cycles; convolutions and matrix products
// reached 23 to 63 % of that, 55 to 63 % where epilogues are short and weights in L2.
//
// sapphirerapids-emulated is the same chip with the matrix unit's instructions as C functions: code
// for it gives the same bits and runs on any AVX-512 machine with VNNI and bf16, slowly.
#include "soc/chips.h"

namespace ge {
namespace {

SocSpec SapphireRapids(std::string_view, std::string*) {
  SocSpec soc = X86Level(4);
  soc.name = "sapphirerapids";
  soc.vnni = true;
  soc.l1_bytes = 48 << 10;
  soc.l2_bytes = 2 << 20;
  soc.ghz = 3.5;
  soc.dram_gb_per_s = 15;
  soc.l2_gb_per_s = 79;
  soc.cc_flags.push_back("-mavx512vnni");
  soc.features.push_back("avx512vnni");
  AddAmx(soc);
  return soc;
}

SocSpec Emulated(std::string_view name, std::string* note) {
  SocSpec soc = SapphireRapids(name, note);
  soc.name = "sapphirerapids-emulated";
  soc.amx_in_c = true;
  std::erase_if(soc.features, [](const std::string& f) { return f.starts_with("amx"); });
  return soc;
}

[[maybe_unused]] const bool kKnown = RegisterChip({"sapphirerapids", SapphireRapids}) &&
                                     RegisterChip({"sapphirerapids-emulated", Emulated});

}  // namespace

void AddAmx(SocSpec& soc) {
  soc.amx = true;
  for (const char* f : {"avx512bf16", "amxtile", "amxbf16", "amxint8"}) soc.features.push_back(f);
}

}  // namespace ge
