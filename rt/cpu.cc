// cpuid bits, and XCR0: a feature counts only if the operating system saves its registers.
#include "rt/cpu.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ge::rt {
namespace {

enum Register { kEax, kEbx, kEcx, kEdx };
struct Feature {
  const char* name;
  unsigned leaf, subleaf;
  Register reg;
  unsigned bit;
  uint64_t saved;  // XCR0 bits that must be set
};
constexpr unsigned kEveryArm = ~0u;  // instead of a leaf: what each 64-bit ARM has
constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTile = 0x60000;

constexpr std::array kFeatures = {
    Feature{"neon", kEveryArm, 0, kEax, 0, 0},
    Feature{"sse42", 1, 0, kEcx, 20, 0},
    Feature{"popcnt", 1, 0, kEcx, 23, 0},
    Feature{"avx", 1, 0, kEcx, 28, kYmm},
    Feature{"fma", 1, 0, kEcx, 12, kYmm},
    Feature{"f16c", 1, 0, kEcx, 29, kYmm},
    Feature{"movbe", 1, 0, kEcx, 22, 0},
    Feature{"lzcnt", 0x80000001, 0, kEcx, 5, 0},
    Feature{"bmi1", 7, 0, kEbx, 3, 0},
    Feature{"bmi2", 7, 0, kEbx, 8, 0},
    Feature{"avx2", 7, 0, kEbx, 5, kYmm},
    Feature{"avx512f", 7, 0, kEbx, 16, kZmm},
    Feature{"avx512dq", 7, 0, kEbx, 17, kZmm},
    Feature{"avx512ifma", 7, 0, kEbx, 21, kZmm},
    Feature{"avx512cd", 7, 0, kEbx, 28, kZmm},
    Feature{"avx512bw", 7, 0, kEbx, 30, kZmm},
    Feature{"avx512vl", 7, 0, kEbx, 31, kZmm},
    Feature{"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    Feature{"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    Feature{"gfni", 7, 0, kEcx, 8, 0},
    Feature{"avx512vnni", 7, 0, kEcx, 11, kZmm},
    Feature{"avx512bitalg", 7, 0, kEcx, 12, kZmm},
    Feature{"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm},
    Feature{"amxbf16", 7, 0, kEdx, 22, kTile},
    Feature{"avx512fp16", 7, 0, kEdx, 23, kZmm},
    Feature{"amxtile", 7, 0, kEdx, 24, kTile},
    Feature{"amxint8", 7, 0, kEdx, 25, kTile},
    Feature{"avxvnni", 7, 1, kEax, 4, kYmm},
    Feature{"avx512bf16", 7, 1, kEax, 5, kZmm},
};

std::string Plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-' && c != '.') out.push_back(c);
  }
  return out;
}

#if defined(__x86_64__)
uint64_t SavedRegisters() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 27 & 1) == 0) return 0;  // no OSXSAVE
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool Present(const Feature& f) {
  if (f.leaf == kEveryArm) return false;
  std::array<unsigned, 4> r{};
  if (__get_cpuid_count(f.leaf, f.subleaf, &r[0], &r[1], &r[2], &r[3]) == 0) return false;
  return (r[f.reg] >> f.bit & 1) != 0 && (SavedRegisters() & f.saved) == f.saved;
}

// The tile registers are large, so Linux gives them only to processes that ask.
bool AskForTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#else
bool Present(const Feature& f) { return f.leaf == kEveryArm; }
bool AskForTiles() { return false; }
#endif

}  // namespace

bool CpuHas(std::string_view feature) {
  const std::string name = Plain(feature);
  for (const Feature& f : kFeatures) {
    if (name == f.name) return Present(f);
  }
  return false;
}

Status CheckCpu(const std::vector<std::string>& features) {
  std::string missing;
  bool tiles = false;
  for (const std::string& f : features) {
    if (!CpuHas(f)) missing += (missing.empty() ? "" : ", ") + f;
    tiles |= Plain(f).starts_with("amx");
  }
  if (!missing.empty()) {
    return Error(Code::kUnavailable,
                 "its code needs CPU features that this machine lacks: " + missing);
  }
  if (tiles && !AskForTiles()) {
    return Error(Code::kUnavailable,
                 "its code needs AMX, and the system refuses its use to this process");
  }
  return {};
}

}  // namespace ge::rt
