// The registry of host kernels, and the text form of their attributes.
#include "rt/host_kernel.h"

#include <array>
#include <charconv>
#include <cmath>

namespace ge::rt {
namespace {

std::map<std::string, HostFn, std::less<>>& Registry() {
  static std::map<std::string, HostFn, std::less<>> registry;
  return registry;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return 0;
}

// "-" is the empty string, so that a list of one empty string is not an empty list.
std::string FromHex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(HexDigit(hex[i]) * 16 + HexDigit(hex[i + 1])));
  }
  return out;
}

std::string ToHex(std::string_view text) {
  if (text.empty()) return "-";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back("0123456789abcdef"[byte >> 4]);
    out.push_back("0123456789abcdef"[byte & 15]);
  }
  return out;
}

int64_t ToInt(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Independent of the locale, unlike strtod.
double ToDouble(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  const bool hex = text.size() > 2 && text[0] == '0' && text[1] == 'x';
  if (hex) text.remove_prefix(2);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value,
                  hex ? std::chars_format::hex : std::chars_format::general);
  return negative ? -value : value;
}

std::string FromDouble(double value) {
  std::array<char, 64> buffer;
  const std::string sign = std::signbit(value) ? "-" : "";
  const double magnitude = std::fabs(value);
  if (!std::isfinite(magnitude)) return sign + (std::isnan(magnitude) ? "nan" : "inf");
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude,
                                 std::chars_format::hex);
  return sign + "0x" + std::string(buffer.data(), end.ptr);
}

// The value's text without its "type:" mark; empty if the attribute is absent.
std::string_view Body(const std::map<std::string, std::string, std::less<>>& values,
                      std::string_view name) {
  const auto it = values.find(name);
  if (it == values.end()) return {};
  const std::string_view text = it->second;
  const size_t colon = text.find(':');
  return colon == std::string_view::npos ? text : text.substr(colon + 1);
}

template <class T, class Convert>
std::vector<T> SplitList(std::string_view text, Convert convert) {
  std::vector<T> out;
  if (text.empty()) return out;
  while (true) {  // the last item may be an empty string
    const size_t comma = text.find(',');
    out.push_back(convert(text.substr(0, comma)));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

template <class Range, class Convert>
void AppendList(std::string* text, std::string_view name, const char* type, const Range& values,
                Convert convert) {
  text->append(name).append("=").append(type).append(":");
  bool first = true;
  for (const auto& value : values) {
    if (!first) text->push_back(',');
    text->append(convert(value));
    first = false;
  }
  text->push_back('\n');
}

}  // namespace

HostAttrs::HostAttrs(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      values_[std::string(line.substr(0, equals))] = line.substr(equals + 1);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

int64_t HostAttrs::Int(std::string_view name, int64_t otherwise) const {
  return Has(name) ? ToInt(Body(values_, name)) : otherwise;
}
double HostAttrs::Float(std::string_view name, double otherwise) const {
  return Has(name) ? ToDouble(Body(values_, name)) : otherwise;
}
std::string HostAttrs::Str(std::string_view name, std::string_view otherwise) const {
  return Has(name) ? FromHex(Body(values_, name)) : std::string(otherwise);
}
std::vector<int64_t> HostAttrs::Ints(std::string_view name) const {
  return SplitList<int64_t>(Body(values_, name), ToInt);
}
std::vector<double> HostAttrs::Floats(std::string_view name) const {
  return SplitList<double>(Body(values_, name), ToDouble);
}
std::vector<std::string> HostAttrs::Strs(std::string_view name) const {
  return SplitList<std::string>(Body(values_, name), FromHex);
}
bool HostAttrs::Has(std::string_view name) const { return values_.find(name) != values_.end(); }

void AppendAttr(std::string* text, std::string_view name, int64_t value) {
  AppendList(text, name, "i", std::span(&value, 1), [](int64_t v) { return std::to_string(v); });
}
void AppendAttr(std::string* text, std::string_view name, double value) {
  AppendList(text, name, "f", std::span(&value, 1), FromDouble);
}
void AppendAttr(std::string* text, std::string_view name, std::string_view value) {
  AppendList(text, name, "s", std::span(&value, 1), ToHex);
}
void AppendAttr(std::string* text, std::string_view name, std::span<const int64_t> values) {
  AppendList(text, name, "is", values, [](int64_t v) { return std::to_string(v); });
}
void AppendAttr(std::string* text, std::string_view name, std::span<const double> values) {
  AppendList(text, name, "fs", values, FromDouble);
}
void AppendAttr(std::string* text, std::string_view name, std::span<const std::string> values) {
  AppendList(text, name, "ss", values, [](const std::string& s) { return ToHex(s); });
}

bool RegisterHost(std::string_view name, HostFn fn) {
  return Registry().emplace(std::string(name), fn).second;
}
HostFn FindHost(std::string_view name) {
  const auto it = Registry().find(name);
  return it == Registry().end() ? nullptr : it->second;
}

}  // namespace ge::rt
