// ge: runs, measures and looks into compiled models. One verb, one file.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/suggest.h"
#include "tools/verbs.h"

namespace {

constexpr int kUsageError = 2;

// A command line that names no verb: the word that was given, and the verbs there are.
int Unknown(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) verbs.push_back(verb->get_name());
  const std::string all = CLI::detail::join(verbs, ", ");
  if (argc < 2) {
    std::fprintf(stderr, "ge: give one of %s; ge --help says more\n", all.c_str());
  } else {
    const std::string hint = ge::Suggestion(argv[1], verbs);
    std::fprintf(stderr, "ge: '%s' is none of %s; %s\n", argv[1], all.c_str(),
                 hint.starts_with("did") ? hint.c_str() : "ge --help says more");
  }
  return kUsageError;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "ge: runs, measures and looks into models.\n"
      "Example: ge run resnet50.om --input cat.png --output out --topk 5\n"
      "Exit codes: 0 success, 1 failure, 2 a command line that is not understood\n"};
  ge::SayOutOfMemory(argc, argv);
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    exit_code = e.get_exit_code() == 0 ? 0 : kUsageError;
    if (exit_code != 0 && app.get_subcommands().empty()) return Unknown(app, argc, argv);
    app.exit(e);
  }
  return ge::Printed(exit_code);
}
