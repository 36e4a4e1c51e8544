// See samples.h. A sample is "(type, type=[elements], , type) {attributes}"; an empty operand is
// absent.
#include "ir/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace ge {
namespace {

std::vector<std::string> Operands(const std::string& list) {
  std::vector<std::string> out;
  std::string current;
  int depth = 0;
  const auto flush = [&] {
    const size_t begin = current.find_first_not_of(' ');
    out.push_back(begin == std::string::npos ? "" : current.substr(begin));
    current.clear();
  };
  for (char c : list) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0)
      flush();
    else
      current += c;
  }
  flush();
  if (out.size() == 1 && out[0].empty()) out.clear();
  return out;
}

// "f32[2,3]" to "f32[d2,d3]"; `symbols` collects the names.
std::string Symbolic(const std::string& type, std::set<std::string>* symbols) {
  std::string out;
  for (size_t i = 0; i < type.size(); ++i) {
    const bool starts = std::isdigit(static_cast<unsigned char>(type[i])) != 0 && i > 0 &&
                        (type[i - 1] == '[' || type[i - 1] == ',');
    if (!starts) {
      out += type[i];
      continue;
    }
    size_t end = i;
    while (std::isdigit(static_cast<unsigned char>(type[end])) != 0) ++end;
    const std::string number = type.substr(i, end - i);
    if (number == "0" || number == "1") {
      out += number;
    } else {
      out += "d" + number;
      symbols->insert("d" + number);
    }
    i = end - 1;
  }
  return out;
}

}  // namespace

std::string SampleGraph(const OpDef& op, const std::string& sample, bool symbolic) {
  const size_t close = sample.rfind(')', sample.find('{'));
  std::set<std::string> symbols;
  std::string inputs, constants, use;
  int count = 0;
  for (const std::string& operand : Operands(sample.substr(1, close - 1))) {
    use += use.empty() && count == 0 ? "" : ", ";
    ++count;
    if (operand.empty() || operand == "_") {
      use += "_";
      continue;
    }
    use += fmt::format("%i{}", count);
    if (const size_t elements = operand.find('='); elements != std::string::npos) {
      std::string values = operand.substr(elements + 1);
      values.front() = '{';
      values.back() = '}';
      constants +=
          fmt::format("  %i{} = const {} {}\n", count, operand.substr(0, elements), values);
      continue;
    }
    inputs += fmt::format("{}%i{}: {}", inputs.empty() ? "" : ", ", count,
                          symbolic ? Symbolic(operand, &symbols) : operand);
  }
  std::string text, outputs;
  for (const std::string& s : symbols) text += fmt::format("symbol {} lo=1\n", s);
  for (int o = 0; o < std::max(op.min_outputs, 1); ++o)
    outputs += fmt::format("{}%o{}", o ? ", " : "", o);
  const std::string name = op.domain.empty() ? op.name : op.domain + "." + op.name;
  return text + fmt::format("graph g({}) -> ({}) {{\n{}  {} = {}({}){}\n}}\n", inputs, outputs,
                            constants, outputs, name, use, sample.substr(close + 1));
}

}  // namespace ge
