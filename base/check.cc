// The end of the process on a bug inside GE: location, stage and a file with the current text IR.
#include "base/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace ge {
namespace {

thread_local CrashScope* g_scope = nullptr;
thread_local bool g_crashing = false;

void WriteCrashFile(const std::string& text) {
  const char* folder = std::getenv("TMPDIR");
  const std::string path = std::string(folder && *folder ? folder : "/tmp") + "/ge-crash-" +
                           std::to_string(getpid()) + ".txt";
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  std::fprintf(stderr, "  the state is in %s\n", path.c_str());
}

}  // namespace

CrashScope::CrashScope(std::string stage, std::function<std::string()> dump)
    : stage_(std::move(stage)), dump_(std::move(dump)), outer_(g_scope) {
  g_scope = this;
}

CrashScope::~CrashScope() { g_scope = outer_; }

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "GE bug: %s:%d: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  // A failure while dumping must not dump again.
  if (!g_crashing) {
    g_crashing = true;
    std::string text =
        std::string(file) + ":" + std::to_string(line) + ": " + condition + ": " + message + "\n";
    for (CrashScope* s = g_scope; s; s = s->outer_) {
      std::fprintf(stderr, "  in stage %s\n", s->stage_.c_str());
      text += "stage " + s->stage_ + "\n";
      if (s->dump_) text += s->dump_() + "\n";
    }
    WriteCrashFile(text);
  }
  std::fflush(nullptr);
  std::abort();
}

}  // namespace ge
