// atc: compiles a model file into one .om file, with the command line of CANN's atc.

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "emit/process.h"
#include "tools/atc_compile.h"
#include "tools/atc_options.h"
#include "tools/verbs.h"

namespace ge {
namespace {

constexpr const char* kStart = "ATC start working now, please wait for a moment.";
constexpr const char* kSuccess = "ATC run success, welcome to the next use.";
constexpr const char* kFailure =
    "ATC run failed, Please check the detail log, Try 'atc --help' for more information";

int Fail(const Fault& fault) {
  std::fprintf(stdout, "%s\n", kFailure);
  std::fprintf(stderr, "%s: %s\n", fault.code.c_str(), fault.message.c_str());
  std::string cause, solution = fault.solution;
  for (const ErrorRow& row : ErrorTable()) {
    if (row.code != fault.code) continue;
    cause = row.cause;
    if (solution.empty()) solution = row.solution;
  }
  std::fprintf(stderr, "  Possible Cause: %s\n  Solution: %s\n", cause.c_str(), solution.c_str());
  return 1;
}

std::string CommandLine(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i ? " " : "") + std::string(argv[i]);
  return line;
}

Fault RunMode(const AtcOptions& o, const std::string& command_line,
              const std::vector<std::string>& notes) {
  const std::string mode = o.Get("mode");
  if (mode == "0" && o.Has("singleop")) return CompileSingleOps(o, command_line, notes);
  if (mode == "0") return CompileWith(o, command_line, notes);
  for (const std::string& note : notes) std::printf("note: %s\n", note.c_str());
  if (mode == "3") return PreCheck(o);
  if (mode == "1") return ModelToJson(o);
  if (mode == "5") return TextToJson(o);
  return DisplayModel(o.Get("om"));
}

int Run(int argc, char** argv) {
  AtcOptions options;
  std::vector<std::string> notes;
  Fault fault = ParseArguments(argc, argv, &options);
  if (options.Has("help") && !fault.any()) {
    std::printf("%s", options.Is("help", "markdown") ? HelpMarkdown().c_str() : HelpText().c_str());
    return 0;
  }
  std::printf("%s\n", kStart);
  std::fflush(stdout);
  if (!fault.any()) fault = AddRawOptions(&options, &notes);
  if (!fault.any()) fault = CheckValues(options, &notes);
  if (!fault.any()) fault = RunMode(options, CommandLine(argc, argv), notes);
  if (fault.any()) return Fail(fault);
  std::printf("%s\n", kSuccess);
  return 0;
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) {
  ge::emit::CleanUpOnSignals();
  ge::SayOutOfMemory(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN);  // past the limit on files a write fails, and says so
  return ge::Printed(ge::Run(argc, argv));
}
