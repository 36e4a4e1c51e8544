// Reads the text of objdump -d: a loop is what lies between a backward jump and its target.
#include "emit/gates.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "emit/process.h"

namespace ge::emit {

namespace {

constexpr int kMicroKernelFmas = 8;

struct Instruction {
  uint64_t address = 0;
  std::string text;
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
  return all;
}

// Target of a jump instruction; 0 if it is none.
uint64_t JumpTarget(const std::string& text) {
  size_t at = text.find_first_not_of(" \t");
  if (at == std::string::npos || text[at] != 'j') return 0;
  at = text.find_first_of(" \t", at);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at, nullptr, 16);
}

bool IsSpill(const std::string& text) {
  const bool vector =
      text.find("%zmm") != std::string::npos || text.find("%ymm") != std::string::npos;
  // An index register means an array of the kernel, not a spill.
  return vector &&
         (text.find("(%rsp)") != std::string::npos || text.find("(%rbp)") != std::string::npos);
}

}  // namespace

Result<std::vector<std::string>> FindSpills(const std::string& object_bytes) {
  GE_ASSIGN(std::string text, Disassemble(object_bytes, {"-d", "--no-show-raw-insn"}));
  std::vector<Instruction> code = Instructions(text);
  std::vector<std::string> spills;
  for (size_t jump = 0; jump < code.size(); ++jump) {
    const uint64_t target = JumpTarget(code[jump].text);
    if (target == 0 || target > code[jump].address) continue;
    size_t begin = jump;
    int fmas = 0;
    bool innermost = true;
    while (begin > 0 && code[begin].address > target) {
      --begin;
      fmas += code[begin].text.find("vfmadd") != std::string::npos;
      const uint64_t inner = JumpTarget(code[begin].text);
      innermost &= !(inner >= target && inner != 0 && inner <= code[begin].address);
    }
    // Epilogues with mathematics have multiply-adds too, but far fewer per instruction.
    if (fmas < kMicroKernelFmas || !innermost || 3 * fmas < static_cast<int>(jump - begin))
      continue;
    for (size_t i = begin; i < jump; ++i) {
      if (IsSpill(code[i].text)) spills.push_back(code[i].text);
    }
  }
  return spills;
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
