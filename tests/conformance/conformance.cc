// Runs ONNX's backend tests: folders of <case>/model.onnx with test_data_set_*/{input,output}_N.pb.
//
//   conformance DATA_FOLDER [--folders node,simple,...] [--mode code|interp] [--opt 0|2] [--filter
//   TEXT] [--batch N]
//
// In the folders light and real a case is one model file of light/ with its outputs beside it; real
// adds a tolerance. A case with expect_error.txt passes if the model is refused, with a message
// that holds every line of message.txt, if there is one.
//
// Cases are compiled many at a time and run in a child process, so that a crash or a hang costs one
// case. Prints the failures, results by operator, a line for each folder, then "N passed, N
// failed".

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "abi/convert.h"
#include "driver/compile.h"
#include "tests/conformance/test_data.h"
#include "tools/session.h"

namespace ge {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string data, folders = "node,simple,pytorch-converted,pytorch-operator,light,real",
                    mode = "code", soc, filter, work, excluded;
  int opt = 2, batch = 48, timeout = 120, threads = 2;
  bool quiet = false;
};

struct Case {
  std::string folder, name, op;
  fs::path path, model;  // folder of the data sets, model file
  std::string prefix;    // of expected outputs, where there are no data sets
  double rtol = 1e-3;
  bool refused = false;  // must be
};

struct Outcome {
  bool passed = false;
  std::string message;
};

// A model of light/: itself, or what real/<case>/data.json names.
std::optional<Case> LightCase(const std::string& folder, const fs::path& entry) {
  Case c;
  c.folder = folder;
  c.name = entry.stem().string();
  c.op = "several";
  if (fs::is_directory(entry)) {
    std::ifstream file(entry / "data.json");
    const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return std::nullopt;
    c.model = entry.parent_path().parent_path() / "light" /
              fs::path(json.value("url", std::string())).filename();
    c.rtol = json.value("rtol", c.rtol);
  } else if (entry.extension() == ".onnx") {
    c.model = entry;
  } else {
    return std::nullopt;
  }
  c.prefix = (c.model.parent_path() / c.model.stem()).string();
  return c;
}

std::optional<Case> CaseOf(const std::string& folder, const fs::path& entry) {
  if (folder == "light" || folder == "real") return LightCase(folder, entry);
  const fs::path model = entry / "model.onnx";
  if (!fs::exists(model)) return std::nullopt;
  return Case{.folder = folder,
              .name = entry.filename().string(),
              .op = FirstOperator(model),
              .path = entry,
              .model = model,
              .prefix = "",
              .refused = fs::exists(entry / "expect_error.txt")};
}

std::vector<Case> FindCases(const Options& o) {
  std::vector<Case> cases;
  for (const std::string& folder : CLI::detail::split(o.folders, ',')) {
    const fs::path root = fs::path(o.data) / folder;
    if (!fs::is_directory(root)) continue;
    for (const auto& entry : fs::directory_iterator(root)) {
      std::optional<Case> c = CaseOf(folder, entry.path());
      if (c && (o.filter.empty() || c->name.find(o.filter) != std::string::npos))
        cases.push_back(std::move(*c));
    }
  }
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
    return std::tie(a.folder, a.name) < std::tie(b.folder, b.name);
  });
  return cases;
}

CompileRequest RequestOf(const Case& c, const Options& o) {
  CompileRequest r;
  r.model = c.model.string();
  if (c.prefix.empty()) r.input_shapes = ShapesFor(c.path);
  r.output = (fs::path(o.work) / (c.folder + "_" + c.name + ".om")).string();
  r.cache_dir = (fs::path(o.work) / "cache").string();
  r.soc_version = o.soc;
  r.policy.opt_level = o.opt;
  r.policy.interpret_kernels = o.mode == "interp";
  r.policy.conv_tolerance = 0;
  return r;
}

Status RunCase(const Case& c, const std::string& om, const Options& o) {
  GE_ASSIGN(auto model, LoadModel(om, o.threads));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  if (!c.prefix.empty()) return RunRamp(*model, *run, c.prefix, c.rtol);
  int sets = 0;
  for (; fs::is_directory(c.path / fmt::format("test_data_set_{}", sets)); ++sets) {
    const fs::path set = c.path / fmt::format("test_data_set_{}", sets);
    GE_TRY(RunDataSet(*model, *run, set).In(set.filename().string()));
  }
  return sets ? Status() : Error(Code::kNotFound, "no data set");
}

Status CheckMessage(const fs::path& wanted, const std::string& message) {
  std::ifstream file(wanted);
  for (std::string line; std::getline(file, line);)
    if (message.find(line) == std::string::npos)
      return Invalid(fmt::format("refused by '{}', which does not say '{}'", message, line));
  return {};
}

// The child's side: compiles the batch, runs each case, writes "index<TAB>1|0<TAB>message" lines.
void RunBatch(const std::vector<Case>& cases, const std::vector<size_t>& batch, const Options& o,
              int fd) {
  auto say = [&](size_t i, const std::string& state, std::string message) {
    std::replace(message.begin(), message.end(), '\n', ' ');
    const std::string line = fmt::format("{}\t{}\t{}\n", i, state, message.substr(0, 400));
    if (write(fd, line.data(), line.size()) < 0) _exit(3);
  };
  alarm(static_cast<unsigned>(o.timeout));
  std::vector<CompileRequest> requests;
  for (size_t i : batch) requests.push_back(RequestOf(cases[i], o));
  auto reports = CompileMany(requests);
  for (size_t k = 0; k < batch.size(); ++k) {
    say(batch[k], "start", "");
    alarm(static_cast<unsigned>(o.timeout));
    const Case& c = cases[batch[k]];
    Status status = reports[k].ok() ? RunCase(c, requests[k].output, o) : reports[k].status();
    if (c.refused) {
      if (!o.quiet && !reports[k].ok())
        std::fprintf(stderr, "refused %s: %s\n", c.name.c_str(), status.message().c_str());
      status = reports[k].ok() ? Invalid("compiled, but must be refused")
                               : CheckMessage(c.path / "message.txt", status.message());
    }
    say(batch[k], status.ok() ? "pass" : "fail", status.message());
    std::error_code ignored;
    fs::remove(requests[k].output, ignored);
  }
}

// Runs a batch in a child; on a crash the case in hand fails and the rest goes on in a new child.
void RunInChild(const std::vector<Case>& cases, std::vector<size_t> batch, const Options& o,
                std::map<size_t, Outcome>& outcomes) {
  while (!batch.empty()) {
    int fds[2];
    if (pipe(fds) != 0) return;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      close(fds[0]);
      RunBatch(cases, batch, o, fds[1]);
      _exit(0);
    }
    close(fds[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    close(fds[0]);
    int status = 0;
    waitpid(child, &status, 0);
    std::istringstream lines(text);
    std::set<size_t> started;
    for (std::string line; std::getline(lines, line);) {
      const auto parts = CLI::detail::split(line, '\t');
      const size_t index = std::stoul(parts[0]);
      if (parts[1] == "start")
        started.insert(index);
      else
        outcomes[index] = {parts[1] == "pass", parts.size() > 2 ? parts[2] : ""};
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    const std::string how = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "HANG" : "CRASH";
    std::vector<size_t> rest;
    for (size_t i : batch)
      if (!outcomes.contains(i)) rest.push_back(i);
    if (started.empty() &&
        rest.size() > 1) {  // it died while compiling: one at a time finds the case
      for (size_t i : rest) RunInChild(cases, {i}, o, outcomes);
      return;
    }
    if (rest.empty()) return;
    outcomes[rest[0]] = {false, how + (started.empty() ? " while compiling" : " while running")};
    rest.erase(rest.begin());
    batch = rest;
  }
}

// Lines "folder/case  reason" of cases that are not run.
std::map<std::string, std::string> ReadExcluded(const std::string& path) {
  std::map<std::string, std::string> excluded;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    excluded[line.substr(0, space)] = space == std::string::npos ? "" : line.substr(space + 1);
  }
  return excluded;
}

int Run(const Options& o) {
  const std::vector<Case> cases = FindCases(o);
  const auto excluded = ReadExcluded(o.excluded);
  std::vector<size_t> wanted;
  for (size_t i = 0; i < cases.size(); ++i)
    if (!excluded.contains(cases[i].folder + "/" + cases[i].name)) wanted.push_back(i);
  std::map<size_t, Outcome> outcomes;
  for (size_t i = 0, end; i < wanted.size(); i = end) {
    // Whole networks one at a time: their weights would fill the memory.
    end = i + 1;
    while (end < wanted.size() && end < i + static_cast<size_t>(o.batch) &&
           cases[wanted[i]].prefix.empty() && cases[wanted[end]].prefix.empty())
      ++end;
    RunInChild(cases, {wanted.begin() + i, wanted.begin() + end}, o, outcomes);
  }

  struct Count {
    int passed = 0, failed = 0, excluded = 0, crashed = 0;
  };
  std::map<std::string, Count> by_op, by_folder;
  Count total;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    if (excluded.contains(c.folder + "/" + c.name)) {
      ++by_folder[c.folder].excluded;
      continue;
    }
    const Outcome& r = outcomes[i];
    for (Count* n : {&by_op[c.op], &by_folder[c.folder], &total}) {
      ++(r.passed ? n->passed : n->failed);
      n->crashed += r.message.starts_with("CRASH") || r.message.starts_with("HANG");
    }
    if (!r.passed && !o.quiet)
      std::printf("FAIL %s/%s: %s\n", c.folder.c_str(), c.name.c_str(), r.message.c_str());
  }
  for (const auto& [op, n] : by_op)
    std::printf("operator %-36s %4d passed %4d failed\n", op.c_str(), n.passed, n.failed);
  for (const auto& [folder, n] : by_folder)
    std::printf("%-20s %5d passed, %5d failed, %3d excluded, %d crashed or hung\n", folder.c_str(),
                n.passed, n.failed, n.excluded, n.crashed);
  std::printf("%d passed, %d failed\n", total.passed, total.failed);
  return total.crashed ? 2 : total.failed ? 1 : 0;
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) {
  CLI::App app{"runs ONNX's backend tests"};
  ge::Options o;
  app.add_option("data", o.data, "folder of the tests")->required();
  app.add_option("--folders", o.folders, "which, comma-separated");
  app.add_option("--mode", o.mode, "code or interp")->check(CLI::IsMember({"code", "interp"}));
  app.add_option("--opt", o.opt, "opt_level");
  app.add_option("--soc", o.soc, "chip, as atc's --soc_version");
  app.add_option("--filter", o.filter, "only cases whose name holds this text");
  app.add_option("--batch", o.batch, "models compiled together")->check(CLI::PositiveNumber);
  app.add_option("--timeout", o.timeout, "seconds of a case, or of compiling a batch");
  app.add_option("--threads", o.threads, "workers");
  app.add_option("--excluded", o.excluded, "file of cases with a reason not to run them");
  app.add_option("--work", o.work, "folder for compiled models and kernels");
  app.add_flag("--quiet", o.quiet, "do not print each failure");
  CLI11_PARSE(app, argc, argv);
  const bool own = o.work.empty();
  if (own)
    o.work = (std::filesystem::temp_directory_path() / fmt::format("ge_conformance_{}", getpid()))
                 .string();
  std::filesystem::create_directories(o.work);
  const int code = ge::Run(o);
  if (own) std::filesystem::remove_all(o.work);
  return code;
}
