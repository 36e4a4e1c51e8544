// atc: compiles a model file into one .om file, with the command line of CANN's atc.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "driver/compile.h"
#include "import/onnx/import.h"
#include "tools/shape_option.h"
#include "tools/suggest.h"
#include "tools/verbs.h"

namespace ge {
namespace {

constexpr const char* kStart = "ATC start working now, please wait for a moment.";
constexpr const char* kSuccess = "ATC run success, welcome to the next use.";
constexpr const char* kFailure =
    "ATC run failed, Please check the detail log, Try 'atc --help' for more information";

struct Options {
  std::string model, output, input_shape, input_format = "NCHW", soc_version, log = "null";
  int framework = -1;
  int opt_level = 2;
  std::string disable, compiler, cache_dir;
  bool interpret = false;
};

int Fail(const std::string& code, const std::string& message, const std::string& solution = "") {
  std::fprintf(stdout, "%s\n", kFailure);
  std::fprintf(stderr, "%s: %s\n", code.c_str(), message.c_str());
  if (!solution.empty()) std::fprintf(stderr, "  Solution: %s\n", solution.c_str());
  return 1;
}

// One line that is rewritten on a terminal; plain lines elsewhere. Silent for the first two
// seconds.
class ProgressLine {
 public:
  void operator()(const std::string& stage, double fraction) {
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::seconds(2) || now - last_ < std::chrono::milliseconds(200))
      return;
    last_ = now;
    if (isatty(STDERR_FILENO)) {
      std::fprintf(stderr, "\r\033[K[%3.0f%%] %s", fraction * 100, stage.c_str());
      open_ = true;
    } else if (stage != stage_ || fraction >= next_) {
      std::fprintf(stderr, "[%3.0f%%] %s\n", fraction * 100, stage.c_str());
      next_ = fraction + 0.25;
    }
    stage_ = stage;
  }
  ~ProgressLine() {
    if (open_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_{};
  std::string stage_;
  double next_ = 0;
  bool open_ = false;
};

std::string CommandLine(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i ? " " : "") + std::string(argv[i]);
  return line;
}

void AddOptions(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, "model file (.onnx, or AscendIR text .ir)")->group("Input");
  app.add_option("--framework", o.framework, "format of the model: 5 = ONNX")->group("Input");
  app.add_option("--input_shape", o.input_shape,
                 "shapes of inputs, \"name:1,3,224,224;other:8\"; -1 keeps a dim dynamic")
      ->group("Input");
  app.add_option("--input_format", o.input_format,
                 "layout of the inputs: NCHW, NHWC, ND, NCDHW, NDHWC")
      ->group("Input");
  app.add_option("--output", o.output, "path of the result; .om is added")->group("Output");
  app.add_option("--soc_version", o.soc_version,
                 "target chip: host (default), x86-64-v3, x86-64-v4, sapphirerapids, or Ascend* "
                 "(code for the host)")
      ->group("Target");
  app.add_option("--log", o.log, "null (default), debug, info, warning or error")->group("Debug");
  app.add_option("--opt_level", o.opt_level,
                 "0: nothing optimised, 1: algebra and fusion, 2: all (default)")
      ->group("Debug");
  app.add_option("--disable_passes", o.disable,
                 "comma-separated names of passes and rules to leave out")
      ->group("Debug");
  app.add_option("--cc", o.compiler,
                 "C compiler for the kernels (default: $GE_CC, clang-19, clang, gcc)")
      ->group("Debug");
  app.add_option("--cache_dir", o.cache_dir,
                 "folder of compiled kernels, or off (default: $GE_CACHE_DIR, ~/.cache/ge)")
      ->group("Debug");
  app.add_flag("--interpret", o.interpret,
               "keep kernels as TileIR text; only 'ge run' executes such a file")
      ->group("Debug");
}

// The first fault of the options as {code, message, solution}; empty code if none.
struct Fault {
  std::string code, message, solution;
};
Fault CheckOptions(const Options& o) {
  if (o.model.empty())
    return {"E10004", "Value for [--model] is empty or missing", "give --model=FILE.onnx"};
  if (o.output.empty())
    return {"E10004", "Value for [--output] is empty or missing", "give --output=NAME"};
  if (o.framework == -1 && !o.model.ends_with(".ir"))
    return {"E10007", "[--framework] is required", "5 = ONNX"};
  if (o.framework != -1 && o.framework != 5)
    return {"E10001", fmt::format("Value [{}] for parameter [--framework] is invalid", o.framework),
            "this version reads 5 (ONNX); 0 (Caffe), 1 (MindSpore) and 3 (TensorFlow) are not read "
            "yet"};
  for (const char* ok : {"null", "debug", "info", "warning", "error"})
    if (o.log == ok) {
      if (o.opt_level < 0 || o.opt_level > 2)
        return {"E10001",
                fmt::format("Value [{}] for parameter [--opt_level] is invalid", o.opt_level),
                "0, 1 or 2"};
      for (const char* format : {"NCHW", "NHWC", "ND", "NCDHW", "NDHWC"})
        if (o.input_format == format) return {};
      return {"E10001",
              fmt::format("Value [{}] for parameter [--input_format] is invalid", o.input_format),
              "NCHW, NHWC, ND, NCDHW or NDHWC"};
    }
  return {"E10010", fmt::format("Value [{}] for parameter [--log] is invalid", o.log),
          "null, debug, info, warning or error"};
}

// The output may neither be hidden in a folder nor replace the model.
Fault CheckPaths(const std::string& model, const std::string& output) {
  const std::filesystem::path path(output);
  std::error_code ignored;
  if (path.filename() == ".om" || std::filesystem::is_directory(path, ignored))
    return {"E10001", fmt::format("Value [{}] for parameter [--output] is a folder", output),
            "give --output=FOLDER/NAME"};
  if (std::filesystem::equivalent(path, model, ignored))
    return {"E10001", fmt::format("[--output] {} would replace the model", output),
            "give another --output"};
  if (const auto parent = path.parent_path();
      !parent.empty() && !std::filesystem::is_directory(parent, ignored))
    return {"E10001", fmt::format("[--output] folder {} does not exist", parent.string()),
            "make the folder first"};
  return {};
}

void PrintReport(const CompileReport& r, bool info) {
  for (const std::string& note : r.notes) std::printf("note: %s\n", note.c_str());
  if (!info) return;
  std::printf("nodes %d -> %d, regions %d, kernels %d (%d compiled, others cached or shared)\n",
              r.nodes_in, r.nodes_out, r.regions, r.kernels, r.kernels_compiled);
  std::printf(
      "weights %.1f MB, arena %s, code %.1f KB\n", r.weight_bytes / 1e6,
      r.arena_bytes < 0 ? "by shape" : fmt::format("{:.1f} MB", r.arena_bytes / 1e6).c_str(),
      r.code_bytes / 1e3);
  std::printf(
      "import %.2f s, optimise %.2f s, lower %.2f s, plan %.2f s, code %.2f s, write %.2f s\n",
      r.import_s, r.optimise_s, r.lower_s, r.plan_s, r.code_s, r.write_s);
}

int Run(int argc, char** argv) {
  CLI::App app{
      "atc: compiles a model file into one .om file.\n"
      "Example: atc --model=resnet50.onnx --framework=5 --output=resnet50\n"};
  app.set_help_flag("--help,--h", "this text");
  app.allow_extras();
  app.option_defaults()->always_capture_default(false);
  Options o;
  AddOptions(app, o);
  for (int i = 1; i < argc; ++i) {  // CLI11 would take the next word as the value
    const std::string_view word = argv[i];
    if (!word.starts_with("--") || word.back() != '=') continue;
    std::printf("%s\n", kStart);
    return Fail("E10004",
                fmt::format("Value for [{}] is empty or missing", word.substr(0, word.size() - 1)));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const CLI::ParseError& e) {
    std::printf("%s\n", kStart);
    return Fail("E10001", e.what(), "atc --help lists the options");
  }
  std::printf("%s\n", kStart);
  std::fflush(stdout);
  if (!app.remaining().empty()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
    const std::string given = app.remaining()[0].substr(0, app.remaining()[0].find('='));
    return Fail("E10060", fmt::format("[{}] is not an option of this version", given),
                Suggestion(given, known));
  }
  if (Fault f = CheckOptions(o); !f.code.empty()) return Fail(f.code, f.message, f.solution);

  CompileRequest request;
  request.model = o.model;
  request.output = o.output.ends_with(".om") ? o.output : o.output + ".om";
  if (Fault f = CheckPaths(o.model, request.output); !f.code.empty())
    return Fail(f.code, f.message, f.solution);
  request.soc_version = o.soc_version;
  request.command_line = CommandLine(argc, argv);
  request.compiler = o.compiler;
  request.cache_dir = o.cache_dir;
  request.policy.opt_level = o.opt_level;
  request.policy.interpret_kernels = o.interpret;
  for (const std::string& name : CLI::detail::split(o.disable, ','))
    if (!name.empty()) request.policy.disabled.insert(name);
  auto shapes = ParseInputShape(o.input_shape);
  if (!shapes.ok())
    return Fail("E10002", shapes.status().message(), "--input_shape=\"name:1,3,224,224;other:8\"");
  request.input_shapes = *shapes;
  const bool info = o.log == "info" || o.log == "debug";
  if (info) request.log = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  auto report = [&] {
    ProgressLine progress;
    request.progress = [&progress](const std::string& stage, double f) { progress(stage, f); };
    return Compile(request);
  }();
  if (!report.ok()) {
    const Code code = report.status().code();
    const char* number = code == Code::kNotFound      ? "E10410"
                         : code == Code::kUnsupported ? "E19010"
                         : code == Code::kInternal    ? "E19999"
                                                      : "E16001";
    return Fail(number, report.status().message());
  }
  PrintReport(*report, info);
  std::printf("%s\n", kSuccess);
  return 0;
}

}  // namespace
}  // namespace ge

int main(int argc, char** argv) {
  ge::SayOutOfMemory();
  return ge::Run(argc, argv);
}
