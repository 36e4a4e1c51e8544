// Parsing, help and the checks of values. What an option means is said where it is used.
#include "tools/atc_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "soc/soc.h"
#include "tools/suggest.h"

namespace ge {
namespace {

constexpr size_t kMaxPath = 4096;
constexpr uintmax_t kMaxSmallFile = 64 << 20;

Fault BadValue(const std::string& code, const OptionRow& row, const std::string& value,
               const std::string& allowed) {
  return {code, fmt::format("Value [{}] for parameter [--{}] is invalid", value, row.name),
          allowed};
}

std::string Choices(std::string_view values) {
  std::string text;
  for (char c : values) text += c == '|' ? std::string(", ") : std::string(1, c);
  return text;
}

Fault CheckValue(const OptionRow& row, const std::string& value) {
  const auto choices = SplitList(row.values, '|');
  switch (row.kind) {
    case OptionKind::kChoice:
      if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
      return BadValue(row.name == "log" ? "E10010" : "E10001", row, value, Choices(row.values));
    case OptionKind::kBool:
      if (value == "true" || value == "false") return {};
      return BadValue("E10005", row, value, "true or false");
    case OptionKind::kZeroOne:
      if (value == "0" || value == "1") return {};
      return BadValue("E10006", row, value, "0 or 1");
    case OptionKind::kFile: {
      std::string unused;
      // --singleop has codes of its own.
      return row.treatment == Treatment::kRefused || row.name == "singleop"
                 ? Fault{}
                 : ReadSmallFile(std::string(row.name), value, &unused);
    }
    default: break;
  }
  if (value.size() > kMaxPath && (row.name == "model" || row.name == "output"))
    return {"E13002", fmt::format("the path of [--{}] has {} characters", row.name, value.size()),
            "at most 4096"};
  return {};
}

Fault Unsupported(const std::string& name, const std::string& value, const std::string& instead) {
  return {"E10055", fmt::format("[--{}={}] is not supported", name, value), instead};
}

// Is it one machine, unlike the host and the chips that stand for it?
bool NamesMachine(const std::string& chip) {
  return !chip.empty() && chip != "host" && !chip.starts_with("Ascend");
}

// Options that are known and refused.
Fault CheckRefused(const AtcOptions& o) {
  if (o.Has("auto_tune_mode"))
    return {"E10060", "[--auto_tune_mode] is retired",
            "leave it out: schedules are chosen by a model "
            "of the target's caches and units"};
  if (o.Is("mode", "30")) return Unsupported("mode", "30", "--mode=0 compiles for this CPU");
  for (const char* name : {"cluster_config", "hccl_sub_comm_config"})
    if (o.Has(name)) return Unsupported(name, o.Get(name), "one CPU: there is nothing to connect");
  if (o.Has("compression_optimize_conf"))
    return Unsupported("compression_optimize_conf", o.Get("compression_optimize_conf"),
                       "compile a model that is quantised already (QDQ or QLinear operators)");
  const std::string chip = o.Get("soc_version");
  if (o.Has("host_env_cpu") && NamesMachine(chip) &&
      (chip == "aarch64") != o.Is("host_env_cpu", "aarch64"))
    return {"E10056",
            fmt::format("[--host_env_cpu={}] and [--soc_version={}] are different machines",
                        o.Get("host_env_cpu"), chip),
            "give one"};
  if (o.Has("tune") && ChipOf(o) == "aarch64")
    return Unsupported("tune", "aarch64", "tiles are measured on the machine that runs the model");
  if (o.Get("precision_mode_v2").ends_with("hif8"))
    return Unsupported("precision_mode_v2", o.Get("precision_mode_v2"), "this CPU has no hif8");
  if (o.Has("framework") && !o.Is("framework", "5")) {
    if (o.Is("framework", "0") && !o.Has("weight"))
      return {"E10008", "[--weight] is missing for a Caffe model, and Caffe is not read yet",
              "export the model as ONNX: --framework=5"};
    return {"E10001",
            fmt::format("Value [{}] for parameter [--framework] is invalid", o.Get("framework")),
            "this version reads 5 (ONNX); 0 (Caffe), 1 (MindSpore) and 3 (TensorFlow) are not read "
            "yet"};
  }
  if (o.Has("weight"))
    return {"E10055", "[--weight] belongs to Caffe models", "an ONNX model holds its weights"};
  return {};
}

// Pairs that exclude each other, and options that need another one.
Fault CheckPairs(const AtcOptions& o) {
  struct Pair {
    const char *code, *a, *b;
  };
  for (const Pair& p : {Pair{"E10009", "dynamic_batch_size", "dynamic_image_size"},
                        Pair{"E10009", "dynamic_batch_size", "dynamic_dims"},
                        Pair{"E10009", "dynamic_image_size", "dynamic_dims"},
                        Pair{"E10047", "input_shape", "input_shape_range"},
                        Pair{"E10047", "enable_compress_weight", "compress_weight_conf"},
                        Pair{"E10056", "precision_mode", "precision_mode_v2"}}) {
    if (o.Has(p.a) && o.Has(p.b))
      return {p.code, fmt::format("[--{}] and [--{}] exclude each other", p.a, p.b), "give one"};
  }
  if (o.Has("tune") && !o.Has("op_bank_path"))
    return {"E10057", "[--tune] needs [--op_bank_path]", "give both"};
  if (o.Is("enable_single_stream", "true") && o.Has("multi_stream_parallel_mode"))
    return {"E10056",
            "[--enable_single_stream] and [--multi_stream_parallel_mode] exclude each other",
            "give one"};
  const std::string streams = o.Get("multi_stream_parallel_mode");
  if (!streams.empty() && streams != "cv") {
    const size_t colon = streams.find(':');
    const std::string kind = streams.substr(0, colon);
    const int count = colon == std::string::npos ? 0 : std::atoi(streams.c_str() + colon + 1);
    if ((kind != "LoadBalance" && kind != "MainStream") || count < 2 || count > 16)
      return {"E10001",
              fmt::format("Value [{}] for [--multi_stream_parallel_mode] is no such mode", streams),
              "cv, LoadBalance:N or MainStream:N with N from 2 to 16"};
  }
  if (o.Has("optypelist_for_implmode") && !o.Has("op_select_implmode"))
    return {"E10057", "[--optypelist_for_implmode] needs [--op_select_implmode]", "give both"};
  if (o.Has("optypelist_for_implmode") && o.Get("op_select_implmode").ends_with("_for_all"))
    return {"E10056",
            "[--optypelist_for_implmode] and an [--op_select_implmode] for all operators "
            "exclude each other",
            "high_precision or high_performance"};
  if (o.Has("dynamic_dims") && !o.Is("input_format", "ND"))
    return {"E10057", "[--dynamic_dims] needs [--input_format=ND]", "give both"};
  return {};
}

Fault CheckRequired(const AtcOptions& o) {
  const std::string mode = o.Get("mode");
  const auto missing = [&](const char* name, const char* how) {
    return Fault{"E10004", fmt::format("Value for [--{}] is empty or missing", name), how};
  };
  if (mode == "0" && o.Has("singleop"))
    return o.Has("output") ? Fault{} : missing("output", "give --output=FOLDER");
  if (mode == "0" || mode == "3") {
    if (!o.Has("model")) return missing("model", "give --model=FILE.onnx");
    if (mode == "0" && !o.Has("output")) return missing("output", "give --output=NAME");
    if (!o.Has("framework") && !o.Get("model").ends_with(".ir"))
      return {"E10007", "[--framework] is required", "5 = ONNX"};
  }
  if (mode == "1" && !o.Has("om") && !o.Has("model"))
    return {"E10007", "[--om] is required for --mode=1", "give --om=FILE"};
  if ((mode == "5" || mode == "6") && !o.Has("om"))
    return {"E10007", fmt::format("[--om] is required for --mode={}", mode), "give --om=FILE"};
  if ((mode == "1" || mode == "5") && !o.Has("json"))
    return {"E10007", fmt::format("[--json] is required for --mode={}", mode), "give --json=FILE"};
  return {};
}

constexpr std::string_view kUsage =
    "atc: compiles a model file into one .om file.\n"
    "Example: atc --model=resnet50.onnx --framework=5 --output=resnet50\n";

}  // namespace

std::vector<std::string> SplitList(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  const auto keep = [](unsigned char c) { return !std::isspace(c) && c != '"'; };
  for (std::string& s : parts) {
    s.erase(s.begin(), std::find_if(s.begin(), s.end(), keep));
    s.erase(std::find_if(s.rbegin(), s.rend(), keep).base(), s.end());
  }
  return parts;
}

const OptionRow* FindOption(std::string_view name) {
  for (const OptionRow& row : OptionTable())
    if (row.name == name) return &row;
  return nullptr;
}

std::string AtcOptions::Get(const std::string& name) const {
  if (auto it = given_.find(name); it != given_.end()) return it->second;
  const OptionRow* row = FindOption(name);
  if (row == nullptr || name == "framework") return "";
  if (row->kind == OptionKind::kChoice)
    return std::string(row->values.substr(0, row->values.find('|')));
  if (row->kind == OptionKind::kBool || row->kind == OptionKind::kZeroOne)
    return std::string(row->values);
  return "";
}

Fault ParseArguments(int argc, char** argv, AtcOptions* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--h") {
      options->Set("help", "1");
      continue;
    }
    if (!word.starts_with("--"))
      return {"E10060", fmt::format("[{}] is not an option", word),
              "options are --name=value; a value with ';' or spaces needs quotation marks"};
    const size_t equal = word.find('=');
    const std::string name = word.substr(2, equal == std::string::npos ? equal : equal - 2);
    const OptionRow* row = FindOption(name);
    if (row == nullptr) {
      std::vector<std::string> known;
      for (const OptionRow& r : OptionTable()) known.push_back("--" + std::string(r.name));
      return {"E10060", fmt::format("[--{}] is not an option of this version", name),
              Suggestion("--" + name, known)};
    }
    if (row->kind == OptionKind::kFlag) {
      options->Set(name, equal == std::string::npos ? "1" : word.substr(equal + 1));
      continue;
    }
    std::string value;
    if (equal != std::string::npos) {
      value = word.substr(equal + 1);
    } else if (i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--")) {
      value = argv[++i];
    }
    if (value.empty()) {
      // These may be empty: "" is their default.
      if (name == "multi_stream_parallel_mode" || name == "input_shape") continue;
      return {"E10004", fmt::format("Value for [--{}] is empty or missing", name),
              fmt::format("--{}=value", name)};
    }
    options->Set(name, value);
  }
  return {};
}

Fault AddRawOptions(AtcOptions* options, std::vector<std::string>* notes) {
  if (!options->Has("raw_ge_options")) return {};
  std::string text;
  const std::string path = options->Get("raw_ge_options");
  if (Fault f = ReadSmallFile("raw_ge_options", path, &text); f.any()) return f;
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("compile options") ||
      !json["compile options"].is_object())
    return {"E13005", path + ": not a JSON object with \"compile options\"",
            "{\"compile options\": {\"global\": {}, \"session\": {}, \"graph\": {}}}"};
  // The command line wins, then graph, session, global.
  for (const char* scope : {"graph", "session", "global"}) {
    const auto it = json["compile options"].find(scope);
    if (it == json["compile options"].end() || !it->is_object()) continue;
    for (const auto& [key, value] : it->items()) {
      const auto table = OptionTable();
      const auto row = std::find_if(table.begin(), table.end(), [&key = key](const OptionRow& r) {
        return !r.raw.empty() && r.raw == key;
      });
      if (row == table.end()) {
        if (!options->Is("raw_ge_options_ignore_unsupported", "true"))
          return {"E10060", fmt::format("[{}] in {} is not an option of this version", key, path),
                  "--raw_ge_options_ignore_unsupported=true passes over it"};
        notes->push_back(fmt::format("[{}] in {} has no effect", key, path));
        continue;
      }
      const std::string name(row->name);
      if (!options->Has(name))
        options->Set(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return {};
}

Fault CheckValues(const AtcOptions& options, std::vector<std::string>* notes) {
  if (options.Is("mode", "0") || options.Is("mode", "3"))
    if (Fault f = CheckRequired(options); f.any()) return f;
  for (const auto& [name, value] : options.given()) {
    const OptionRow& row = *FindOption(name);
    if (Fault f = CheckValue(row, value); f.any()) return f;
    if (row.treatment == Treatment::kAccepted)
      notes->push_back(fmt::format("[--{}] is accepted without effect: {}", name, row.help));
  }
  if (Fault f = CheckRefused(options); f.any()) return f;
  if (const auto soc = FindSoc(ChipOf(options), nullptr); !soc.ok())
    return {"E10001", soc.status().message(), "one of the known chips, or leave it out"};
  if (Fault f = CheckPairs(options); f.any()) return f;
  return CheckRequired(options);
}

Fault ReadSmallFile(const std::string& option, const std::string& path, std::string* text) {
  const auto fault = [&](const char* code, const std::string& what, const char* how) {
    return Fault{code, fmt::format("[--{}] {}: {}", option, path.substr(0, 200), what), how};
  };
  if (path.size() > kMaxPath)
    return fault("E13002", fmt::format("the path has {} characters", path.size()), "at most 4096");
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return fault("E13000", "no such file", "check the path");
  if (!std::filesystem::is_regular_file(status) ||
      std::filesystem::file_size(path, error) > kMaxSmallFile)
    return fault("E13003", "not a plain file of at most 64 MB", "give a text file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fault("E13001", "it cannot be opened", "check its rights");
  std::stringstream bytes;
  bytes << file.rdbuf();
  *text = bytes.str();
  return {};
}

std::string HelpText() {
  std::string text(kUsage), group;
  for (const OptionRow& row : OptionTable()) {
    if (row.group != group) text += fmt::format("\n{}:\n", group = row.group);
    const char* mark = row.treatment == Treatment::kAccepted  ? " (no effect)"
                       : row.treatment == Treatment::kRefused ? " (not supported)"
                                                              : "";
    text += fmt::format("  --{}{}{}\n      {}{}\n", row.name, row.values.empty() ? "" : "=",
                        row.values, row.help, mark);
  }
  return text;
}

std::string HelpMarkdown() {
  std::string text =
      "# atc: options and error codes\n\n"
      "Written by `atc --help=markdown` from the tables in `tools/atc_option_table.cc`.\n\n"
      "`--name=value` or `--name value`. The first of several values is the default. *works*: does "
      "what it says; *accepted*: has no meaning on a CPU, gives a note; *refused*: E10055, or the "
      "code that is given.\n";
  std::string group;
  const auto cell = [](std::string_view s) {
    std::string out;
    for (char c : s) out += c == '|' ? std::string("\\|") : std::string(1, c);
    return out;
  };
  for (const OptionRow& row : OptionTable()) {
    if (row.group != group) {
      group = row.group;
      text += fmt::format(
          "\n## {}\n\n| option | values | treatment | meaning |\n|---|---|---|---|\n", group);
    }
    text += fmt::format("| --{} | {} | {} | {} |\n", row.name, cell(row.values),
                        row.treatment == Treatment::kWorks      ? "works"
                        : row.treatment == Treatment::kAccepted ? "accepted"
                                                                : "refused",
                        cell(row.help));
  }
  text += "\n## Error codes\n\n| code | cause | solution |\n|---|---|---|\n";
  for (const ErrorRow& row : ErrorTable())
    text += fmt::format("| {} | {} | {} |\n", row.code, cell(row.cause), cell(row.solution));
  return text;
}

std::string ChipOf(const AtcOptions& o) {
  const std::string chip = o.Get("soc_version");
  return o.Is("host_env_cpu", "aarch64") && !NamesMachine(chip) ? "aarch64" : chip;
}

}  // namespace ge
