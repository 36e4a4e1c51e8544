// Runs other programs (the C compiler, the disassembler) without a shell, and files around them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ge::emit {

struct ProcessResult {
  int exit_code = -1;  // -1: could not be started or was killed
  std::string output;  // standard output and error together
};
// argv[0] is searched in PATH. Blocks; may be called from several threads.
ProcessResult RunProcess(const std::vector<std::string>& argv);

// For the start of main, before there are threads: SIGINT, SIGTERM and SIGHUP, unless they are
// ignored or blocked, end the programs that run and remove the scratch folders before they end this
// process.
void CleanUpOnSignals();

// The path of a program in PATH, or "" if there is none.
std::string FindProgram(std::string_view name);

Result<std::string> ReadWholeFile(const std::string& path);
// Writes beside `path` and renames: readers see the old file or the whole new one.
Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// A folder in the temporary folder that is removed with its files when this goes; if the process is
// killed, by the next one.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  bool ok() const { return !path_.empty(); }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace ge::emit
