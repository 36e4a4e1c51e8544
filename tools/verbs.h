// The verbs of `ge`. Each adds its subcommand; when it has run, exit_code is set.
#pragma once

#include <string>

#include "base/status.h"

namespace CLI {
class App;
}

namespace ge {
void AddRunVerb(CLI::App& app, int& exit_code);
void AddBenchVerb(CLI::App& app, int& exit_code);
void AddOptVerb(CLI::App& app, int& exit_code);
void AddOmVerb(CLI::App& app, int& exit_code);
void AddReportVerb(CLI::App& app, int& exit_code);
void AddCompareVerb(CLI::App& app, int& exit_code);
void AddSimulateVerb(CLI::App& app, int& exit_code);
void AddDumpVerb(CLI::App& app, int& exit_code);
// Prints a failure to stderr, once with the model's path in front; the exit code.
int ExitCode(const Status& status, const std::string& model = "");
// The exit code, or 1 with a sentence where standard output did not take all that was printed.
int Printed(int exit_code);
// A request for more memory than there is ends the program with one line, which holds the command
// line, not with an abort.
void SayOutOfMemory(int argc, char** argv);
}  // namespace ge
