// Options of atc: one table that drives parsing, --help, --help=markdown (docs/atc.md) and the
// checks of single values; and the error codes that atc prints, with cause and solution.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ge {

// A refusal: {code, cause, solution}; an empty code is none.
struct Fault {
  std::string code, message, solution;
  bool any() const { return !code.empty(); }
};

enum class Treatment : char {
  kWorks,     // does what it says
  kAccepted,  // accepted with a note: it has no meaning on a CPU
  kRefused,   // E10055
};
enum class OptionKind : char { kText, kChoice, kBool, kZeroOne, kNumber, kFile, kFlag };

struct OptionRow {
  std::string_view name, group;
  Treatment treatment;
  OptionKind kind;
  std::string_view values;  // kChoice: "a|b|c", the default first; others: shown in the help
  std::string_view help;
  std::string_view raw;  // its ge.* name in --raw_ge_options
};
std::span<const OptionRow> OptionTable();
const OptionRow* FindOption(std::string_view name);

struct ErrorRow {
  std::string_view code, cause, solution;
};
std::span<const ErrorRow> ErrorTable();

// What was given, by name without dashes. Options that were not given are absent.
class AtcOptions {
 public:
  bool Has(const std::string& name) const { return given_.contains(name); }
  // The value given, or the default.
  std::string Get(const std::string& name) const;
  bool Is(const std::string& name, std::string_view value) const { return Get(name) == value; }
  void Set(const std::string& name, std::string value) { given_[name] = std::move(value); }
  const std::map<std::string, std::string>& given() const { return given_; }

 private:
  std::map<std::string, std::string> given_;
};

// --name=value and --name value. Unknown names get E10060 with a hint.
Fault ParseArguments(int argc, char** argv, AtcOptions* options);
// Adds what --raw_ge_options gives and the command line does not.
Fault AddRawOptions(AtcOptions* options, std::vector<std::string>* notes);
// Values one by one, then those that exclude or need each other. Notes: accepted, without effect.
Fault CheckValues(const AtcOptions& options, std::vector<std::string>* notes);

std::string HelpText();
std::string HelpMarkdown();

// The chip to compile for: --soc_version, or the machine of --host_env_cpu.
std::string ChipOf(const AtcOptions& options);

// A small file, or the reason why not (E13000 to E13003).
Fault ReadSmallFile(const std::string& option, const std::string& path, std::string* text);
std::vector<std::string> SplitList(std::string_view text, char separator);  // parts are trimmed

}  // namespace ge
