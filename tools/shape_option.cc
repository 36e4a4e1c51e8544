// See shape_option.h.

#include "tools/shape_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ge {
namespace {

bool ParseDimNumber(const std::string& text, int64_t* value) {
  const bool digits =
      !text.empty() && text.size() < 18 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
  if (digits) *value = std::stoll(text);
  return digits;
}

Fault ParseDim(const std::string& dim, const std::string& name, std::string* out) {
  if (dim == "-1") return {};
  int64_t low = 0, high = 0;
  if (const size_t tilde = dim.find('~'); tilde != std::string::npos) {
    const std::string to = dim.substr(tilde + 1);
    const bool open = to == "-1";
    if (!ParseDimNumber(dim.substr(0, tilde), &low) || (!open && !ParseDimNumber(to, &high)) ||
        (!open && (low > high || high == 0)))
      return {"E10048", fmt::format("range [{}] of [{}] in --input_shape is invalid", dim, name),
              "low~high with low <= high, or low~-1"};
    *out = open ? fmt::format("{}~{}", low, INT64_MAX) : dim;
    return {};
  }
  const bool negative = dim.starts_with('-') && ParseDimNumber(dim.substr(1), &low);
  const bool number = ParseDimNumber(dim, &low);
  if (number && low > 0) {
    *out = dim;
    return {};
  }
  return {number || negative ? "E10011" : "E10002",
          fmt::format("dim [{}] of [{}] in --input_shape is neither a positive number nor a range "
                      "nor -1",
                      dim, name),
          "--input_shape=\"name:1,3,224,224;other:8\""};
}

}  // namespace

Fault ParseInputShape(const std::string& text, bool brackets, InputShapes* shapes) {
  const auto bad = [](std::string what) {
    return Fault{"E10002", std::move(what), "--input_shape=\"name:1,3,224,224;other:8\""};
  };
  for (const std::string& part : SplitList(text, ';')) {
    if (part.empty()) continue;
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos)
      return bad(fmt::format("[{}] in --input_shape has no ':'", part));
    const std::string name = SplitList(part.substr(0, colon), '\n')[0];
    if (name.empty()) return bad(fmt::format("[{}] in --input_shape has no name", part));
    if (shapes->contains(name)) return bad(fmt::format("--input_shape names [{}] twice", name));
    std::vector<std::string>& dims = (*shapes)[name];
    std::string list = SplitList(part.substr(colon + 1), '\n')[0];
    if (brackets) {
      if (!list.starts_with('[') || !list.ends_with(']') || list.size() < 2)
        return bad(fmt::format("[{}] in --input_shape_range has no brackets", part));
      list = list.substr(1, list.size() - 2);
    }
    if (list.empty()) continue;
    for (const std::string& d : SplitList(list, ',')) {
      dims.emplace_back();
      if (Fault f = ParseDim(d, name, &dims.back()); f.any()) return f;
    }
  }
  return {};
}

}  // namespace ge
