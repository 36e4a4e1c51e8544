// cpuid bits, and XCR0: a feature counts only if the operating system saves its registers. In a
// virtual machine each cpuid goes to its host, which takes microseconds: a leaf is read once.
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
enum Leaf { kOne, kSeven, kSevenOne, kExtended, kEveryArm };  // the last: what each 64-bit ARM has
struct Feature {
  const char* name;
  Leaf leaf;
  Register reg;
  unsigned bit;
  uint64_t saved;  // XCR0 bits that must be set
};
constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTile = 0x60000;

constexpr std::array kFeatures = {
    Feature{"neon", kEveryArm, kEax, 0, 0},
    Feature{"sse42", kOne, kEcx, 20, 0},
    Feature{"popcnt", kOne, kEcx, 23, 0},
    Feature{"avx", kOne, kEcx, 28, kYmm},
    Feature{"fma", kOne, kEcx, 12, kYmm},
    Feature{"f16c", kOne, kEcx, 29, kYmm},
    Feature{"movbe", kOne, kEcx, 22, 0},
    Feature{"lzcnt", kExtended, kEcx, 5, 0},
    Feature{"bmi1", kSeven, kEbx, 3, 0},
    Feature{"bmi2", kSeven, kEbx, 8, 0},
    Feature{"avx2", kSeven, kEbx, 5, kYmm},
    Feature{"avx512f", kSeven, kEbx, 16, kZmm},
    Feature{"avx512dq", kSeven, kEbx, 17, kZmm},
    Feature{"avx512ifma", kSeven, kEbx, 21, kZmm},
    Feature{"avx512cd", kSeven, kEbx, 28, kZmm},
    Feature{"avx512bw", kSeven, kEbx, 30, kZmm},
    Feature{"avx512vl", kSeven, kEbx, 31, kZmm},
    Feature{"avx512vbmi", kSeven, kEcx, 1, kZmm},
    Feature{"avx512vbmi2", kSeven, kEcx, 6, kZmm},
    Feature{"gfni", kSeven, kEcx, 8, 0},
    Feature{"avx512vnni", kSeven, kEcx, 11, kZmm},
    Feature{"avx512bitalg", kSeven, kEcx, 12, kZmm},
    Feature{"avx512vpopcntdq", kSeven, kEcx, 14, kZmm},
    Feature{"amxbf16", kSeven, kEdx, 22, kTile},
    Feature{"avx512fp16", kSeven, kEdx, 23, kZmm},
    Feature{"amxtile", kSeven, kEdx, 24, kTile},
    Feature{"amxint8", kSeven, kEdx, 25, kTile},
    Feature{"avxvnni", kSevenOne, kEax, 4, kYmm},
    Feature{"avx512bf16", kSevenOne, kEax, 5, kZmm},
};

std::string Plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-' && c != '.') out.push_back(c);
  }
  return out;
}

#if defined(__x86_64__)
using Registers = std::array<unsigned, 4>;

// By Leaf; zeros where the CPU has no such leaf.
const std::array<Registers, kEveryArm>& Leaves() {
  static const auto leaves = [] {
    std::array<Registers, kEveryArm> all{};
    const unsigned last = __get_cpuid_max(0, nullptr),
                   extended = __get_cpuid_max(1u << 31, nullptr);
    const auto read = [&](Leaf leaf, unsigned number, unsigned subleaf) {
      Registers& r = all[leaf];
      if (number <= (number >> 31 != 0 ? extended : last))
        __cpuid_count(number, subleaf, r[kEax], r[kEbx], r[kEcx], r[kEdx]);
    };
    read(kOne, 1, 0);
    read(kSeven, 7, 0);
    if (all[kSeven][kEax] >= 1) read(kSevenOne, 7, 1);
    read(kExtended, 0x80000001, 0);
    return all;
  }();
  return leaves;
}

uint64_t SavedRegisters() {
  if ((Leaves()[kOne][kEcx] >> 27 & 1) == 0) return 0;  // no OSXSAVE
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool Present(const Feature& f) {
  if (f.leaf == kEveryArm) return false;
  return (Leaves()[f.leaf][f.reg] >> f.bit & 1) != 0 && (SavedRegisters() & f.saved) == f.saved;
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
