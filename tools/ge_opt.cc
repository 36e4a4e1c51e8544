// ge opt: text IR (or a model) in, named passes, text IR (or DOT, or ONNX) out.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "driver/compile.h"
#include "driver/pipeline.h"
#include "fuse/fuse.h"
#include "opt/rule.h"
#include "tools/graph_export.h"
#include "tools/npy.h"
#include "tools/suggest.h"
#include "tools/switches.h"
#include "tools/verbs.h"

namespace ge {
namespace {

struct OptOptions {
  std::string model, passes, output, soc_version;
  bool all = false, list = false, layouts = false, report = false;
};

void PrintNames() {
  fmt::print("passes, for --passes and for --disable_passes of atc:\n");
  for (const Pass* p : AllPasses()) fmt::print("  {}\n", p->name);
  fmt::print("rules, for --disable_passes:\n");
  for (const Rule* r : AllRules()) fmt::print("  {}\n", r->name);
  fmt::print("other steps, for --disable_passes:\n");
  for (std::string_view step : kSteps) fmt::print("  {}\n", step);
}

Status Opt(const OptOptions& o) {
  if (o.list) {
    PrintNames();
    return {};
  }
  if (o.model.empty()) return Invalid("give a .ir or .onnx file, or --list");
  CompileRequest request;
  request.model = o.model;
  GE_ASSIGN(auto graph, ImportModel(request));
  Policy policy;
  if (o.report)
    policy.report = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  std::vector<std::string> given = CLI::detail::split(o.passes, ',');
  std::vector<std::string_view> names;
  if (o.all) names = PassNames(policy);
  for (const std::string& name : given) {
    if (name.empty()) continue;
    if (!FindPass(name)) {
      std::vector<std::string> known;
      for (const Pass* p : AllPasses()) known.emplace_back(p->name);
      return Invalid(
          fmt::format("no pass '{}'; {}; ge opt --list prints all", name, Suggestion(name, known)));
    }
    names.push_back(name);
  }
  RunPasses(*graph, policy, names, [&](std::string_view name, bool changed) {
    if (o.report)
      std::fprintf(stderr, "%s: %s\n", std::string(name).c_str(),
                   changed ? "changed" : "no change");
  });
  if (o.layouts) {
    std::string note;
    GE_ASSIGN(SocSpec soc, FindSoc(o.soc_version, &note));
    AssignLayouts(*graph, soc, policy);
  }
  std::string text;
  if (o.output.ends_with(".dot")) {
    text = DotText(*graph);
  } else if (o.output.ends_with(".onnx")) {
    GE_ASSIGN(text, OnnxModel(*graph));
  } else {
    text = ToString(*graph);
  }
  if (o.output.empty()) {
    std::cout << text;
    return {};
  }
  return WriteFile(o.output, text);
}

}  // namespace

void AddOptVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("opt", "text IR (or a model) in, named passes, text IR out");
  auto o = std::make_shared<OptOptions>();
  verb->add_option("model", o->model, ".ir or .onnx file");
  verb->add_option("--passes", o->passes, "comma-separated names, run in this order");
  verb->add_option("-o,--output", o->output,
                   "file (default: standard output); .dot and .onnx: in those forms");
  verb->add_option("--soc_version", o->soc_version, "chip whose layouts --layouts chooses");
  verb->add_flag("--all", o->all, "the whole pass list");
  verb->add_flag("--layouts", o->layouts, "then choose memory layouts");
  verb->add_flag("--report", o->report, "print rewrites and near misses to standard error");
  verb->add_flag("--list", o->list, "print the names of passes, rules and other steps");
  verb->callback([o, &exit_code] { exit_code = ExitCode(Opt(*o)); });
}

}  // namespace ge
