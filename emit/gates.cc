// Reads the text of objdump -d: a loop is what lies between a backward jump and its target.
#include "emit/gates.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "emit/process.h"

namespace ge::emit {

namespace {

constexpr int kMicroKernelFmas = 8, kFmaShare = 5;  // at least, and at least 1 of so many

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct Instruction {
  uint64_t address = 0;
  std::string text;
  bool rbp_is_frame = false;  // else %rbp is a register like others
};

Result<std::string> Disassemble(const std::string& bytes, const std::vector<std::string>& options) {
  std::string program;
  for (const char* name : {"llvm-objdump-19", "llvm-objdump", "objdump"}) {
    if (program = FindProgram(name); !program.empty()) break;
  }
  if (program.empty()) return Error(Code::kUnavailable, "no objdump");
  ScratchFolder folder;
  if (!folder.ok()) return Error(Code::kResourceExhausted, "cannot create a temporary folder");
  std::string file = folder.File("code.so");
  GE_TRY(WriteFileAtomically(file, bytes));
  std::vector<std::string> argv = {program};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back(file);
  ProcessResult run = RunProcess(argv);
  if (run.exit_code != 0) return Error(Code::kUnavailable, program + ": " + run.output);
  return run.output;
}

std::vector<Instruction> Instructions(const std::string& text) {
  std::vector<Instruction> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    char* end = nullptr;
    uint64_t address = std::strtoull(line.c_str(), &end, 16);
    if (end == line.c_str() || *end != ':') continue;
    all.push_back({address, std::string(end + 1)});
  }
  // A function that uses %rbp saves it first; if it is to be the frame, the next copies %rsp.
  bool frame = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (Has(all[i].text, "push") && Has(all[i].text, "%rbp") && i + 1 < all.size())
      frame = Has(all[i + 1].text, "%rsp, %rbp") || Has(all[i + 1].text, "%rsp,%rbp");
    all[i].rbp_is_frame = frame;
  }
  return all;
}

// Target of a jump instruction; 0 if it is none. ARM: "b.lt 0x..", "cbnz x8, 0x...", "tbz w9, #1,
// 0x...".
uint64_t JumpTarget(const std::string& text) {
  size_t at = text.find_first_not_of(" \t");
  if (at == std::string::npos) return 0;
  const std::string_view name = std::string_view(text).substr(at);
  const bool arm = name.starts_with("b.") || name.starts_with("cb") || name.starts_with("tb") ||
                   name.starts_with("b\t");
  if (name[0] != 'j' && !arm) return 0;
  at = arm ? text.find("0x", at) : text.find_first_of(" \t", at);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at, nullptr, 16);
}

bool IsMultiplyAdd(const std::string& text) {
  for (const char* name : {"vfmadd", "vdpbf16ps", "vpdpbusd", "vpmaddwd", "fmla", "smull"}) {
    if (Has(text, name)) return true;
  }
  return false;
}

bool IsTileProduct(const std::string& text) { return Has(text, "tdp"); }

bool IsSpill(const Instruction& instruction) {
  const std::string& text = instruction.text;
  // An index register means an array of the kernel, not a spill.
  if (Has(text, "%zmm") || Has(text, "%ymm"))
    return Has(text, "(%rsp)") || (instruction.rbp_is_frame && Has(text, "(%rbp)"));
  const bool arm_vector = Has(text, "\tq") || Has(text, " q");
  return arm_vector && Has(text, "[sp") && !Has(text, ", x") && !Has(text, ", lsl");
}

}  // namespace

Result<MicroKernels> FindSpills(const std::string& object_bytes) {
  GE_ASSIGN(std::string text, Disassemble(object_bytes, {"-d", "--no-show-raw-insn"}));
  std::vector<Instruction> code = Instructions(text);
  MicroKernels found;
  for (size_t jump = 0; jump < code.size(); ++jump) {
    const uint64_t target = JumpTarget(code[jump].text);
    if (target == 0 || target > code[jump].address) continue;
    size_t begin = jump;
    int fmas = 0, products = 0;
    bool innermost = true, mathematics = false;
    while (begin > 0 && code[begin].address > target) {
      --begin;
      fmas += IsMultiplyAdd(code[begin].text);
      products += IsTileProduct(code[begin].text);
      // Dots neither clamp nor subtract nor divide.
      for (const char* sign : {"vmaxps", "vminps", "vsubps", "vdivps", "fcmgt", "fsub"})
        mathematics |= Has(code[begin].text, sign);
      const uint64_t inner = JumpTarget(code[begin].text);
      innermost &= !(inner >= target && inner != 0 && inner <= code[begin].address);
    }
    // Mathematics has multiply-adds too.
    const bool vectors = fmas >= kMicroKernelFmas && !mathematics &&
                         kFmaShare * fmas >= static_cast<int>(jump - begin);
    if (!innermost || (!vectors && products == 0)) continue;
    ++found.loops;
    for (size_t i = begin; i < jump; ++i) {
      if (IsSpill(code[i])) found.spills.push_back(code[i].text);
    }
  }
  return found;
}

Result<TileUse> FindTileUse(const std::string& object_bytes) {
  GE_ASSIGN(std::string text, Disassemble(object_bytes, {"-d", "--no-show-raw-insn"}));
  TileUse use;
  for (const Instruction& i : Instructions(text)) {
    use.products += IsTileProduct(i.text);
    use.shapes += Has(i.text, "ldtilecfg");
    use.releases += Has(i.text, "tilerelease");
    use.loads += Has(i.text, "tileload");
    use.stores += Has(i.text, "tilestore");
  }
  return use;
}

Result<std::vector<std::string>> UndefinedSymbols(const std::string& object_bytes) {
  GE_ASSIGN(std::string text, Disassemble(object_bytes, {"-T"}));
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("*UND*") != std::string::npos) names.push_back(line);
  }
  return names;
}

}  // namespace ge::emit
