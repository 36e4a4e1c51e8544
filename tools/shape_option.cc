// See shape_option.h.

#include "tools/shape_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ge {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::string Trim(std::string s) {
  const auto keep = [](unsigned char c) { return !std::isspace(c) && c != '"'; };
  s.erase(s.begin(), std::find_if(s.begin(), s.end(), keep));
  s.erase(std::find_if(s.rbegin(), s.rend(), keep).base(), s.end());
  return s;
}

}  // namespace

Result<std::map<std::string, std::vector<std::string>>> ParseInputShape(const std::string& text) {
  std::map<std::string, std::vector<std::string>> shapes;
  for (const std::string& part : Split(text, ';')) {
    if (Trim(part).empty()) continue;
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos)
      return Invalid(fmt::format("[{}] in --input_shape has no ':'", part));
    const std::string name = Trim(part.substr(0, colon));
    if (name.empty()) return Invalid(fmt::format("[{}] in --input_shape has no name", part));
    if (shapes.contains(name)) return Invalid(fmt::format("--input_shape names [{}] twice", name));
    std::vector<std::string>& dims = shapes[name];
    const std::string list = Trim(part.substr(colon + 1));
    if (list.empty()) continue;
    for (const std::string& raw : Split(list, ',')) {
      const std::string d = Trim(raw);
      if (d == "-1") {
        dims.emplace_back();
        continue;
      }
      const bool digits =
          !d.empty() && d.size() < 18 &&
          std::all_of(d.begin(), d.end(), [](unsigned char c) { return std::isdigit(c); });
      if (!digits || std::stoll(d) == 0)
        return Invalid(fmt::format(
            "dim [{}] of [{}] in --input_shape is neither a positive number nor -1", d, name));
      dims.push_back(d);
    }
  }
  return shapes;
}

}  // namespace ge
