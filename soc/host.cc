// The CPU that runs this process, by its feature bits: the highest x86-64 level it has, its cache
// sizes and extensions. Invariant: code for HostSoc() runs on this machine.
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "rt/cpu.h"
#include "soc/chips.h"

namespace ge {

namespace {

int64_t CacheBytes(int name, int64_t otherwise) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

#if defined(__x86_64__)
bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

// Rates that were measured once on chips of a kind, so that two compilations on one machine choose
// the same; others keep the defaults of their level. Zen 5: on a 2-core virtual machine of an EPYC,
// such that estimates of the kernels of ResNet-50, BERT-base, MobileNetV2 and YOLOv8n are, as a
// geometric mean, what they take.
void SetRates(SocSpec* soc) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return;
  const unsigned family = ((a >> 8) & 15) + ((a >> 20) & 255);
  if (__builtin_cpu_is("amd") && family == 0x1a) {  // Zen 5
    soc->ghz = 4.1;
    soc->dot_share = 0.97;
    soc->l2_gb_per_s = 160, soc->l3_gb_per_s = 65, soc->dram_gb_per_s = 37;
    soc->l3_bytes = 32 << 20;  // of eight cores; the system names that of all of them
  } else if (soc->amx) {       // as soc/sapphirerapids.cc
    soc->ghz = 3.5;
  }
}
#endif

}  // namespace

SocSpec HostSoc() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  SocSpec soc = X86Level(HasAvx512() ? 4 : 3);
#else
  SocSpec soc = Aarch64();
#endif
  soc.name = "host";
  soc.l1_bytes = CacheBytes(_SC_LEVEL1_DCACHE_SIZE, soc.l1_bytes);
  soc.l2_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, soc.l2_bytes);
#if defined(__x86_64__)
  if (soc.masks && __builtin_cpu_supports("avx512vnni")) {
    soc.vnni = true;
    soc.cc_flags.push_back("-mavx512vnni");
    soc.features.push_back("avx512vnni");
  }
  // Only if the system lets this process use it. Chips with AMX leave bf16 to it: their vector unit
  // does such dots at half the rate of f32.
  if (soc.masks && soc.vnni && rt::CheckCpu({"avx512bf16", "amxtile", "amxbf16", "amxint8"}).ok()) {
    AddAmx(soc);
  }
  if (soc.masks && !soc.amx && __builtin_cpu_supports("avx512bf16")) {
    soc.bf16 = true;
    soc.features.push_back("avx512bf16");
  }
  SetRates(&soc);
#endif
  return soc;
}

namespace {

[[maybe_unused]] const bool kKnown =
    RegisterChip({"host", [](std::string_view, std::string*) { return HostSoc(); }});

}  // namespace
}  // namespace ge
