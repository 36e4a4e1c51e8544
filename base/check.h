// GE_CHECK: for bugs inside GE. Prints where, what and the current pass, writes the registered
// text of the IR to a crash file and aborts. Never use it for input that a user gave.
#pragma once

#include <functional>
#include <string>

namespace ge {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

// While alive, a crash report names `stage` and writes `dump()` to a file in the temporary folder.
// Nests; thread-local.
class CrashScope {
 public:
  CrashScope(std::string stage, std::function<std::string()> dump);
  ~CrashScope();
  CrashScope(const CrashScope&) = delete;
  CrashScope& operator=(const CrashScope&) = delete;

 private:
  friend void CheckFailed(const char*, int, const char*, const std::string&);
  std::string stage_;
  std::function<std::string()> dump_;
  CrashScope* outer_;
};

}  // namespace ge

#define GE_CHECK(condition, ...)                                                     \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::ge::CheckFailed(__FILE__, __LINE__, #condition, ::std::string(__VA_ARGS__)); \
  } while (0)
