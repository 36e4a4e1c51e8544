// ge: runs, measures and looks into compiled models. One verb, one file.

#include <CLI/CLI.hpp>
#include <csignal>

#include "tools/verbs.h"

int main(int argc, char** argv) {
  CLI::App app{
      "ge: runs, measures and looks into models.\n"
      "Example: ge run resnet50.om --input cat.png --output out --topk 5\n"};
  ge::SayOutOfMemory();
  std::signal(SIGXFSZ, SIG_IGN);  // past the limit on files a write fails, and says so
  app.set_version_flag("--version", "ge " GE_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  ge::AddRunVerb(app, exit_code);
  ge::AddBenchVerb(app, exit_code);
  ge::AddOptVerb(app, exit_code);
  ge::AddOmVerb(app, exit_code);
  ge::AddReportVerb(app, exit_code);
  ge::AddCompareVerb(app, exit_code);
  ge::AddSimulateVerb(app, exit_code);
  ge::AddDumpVerb(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
