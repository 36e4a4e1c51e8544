// The text of an AIPP configuration: `aipp_op { key: value ... }`, '#' starts a comment.
#include "tools/aipp_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/suggest.h"

namespace ge {
namespace {

struct Key {
  const char* name;  // '*' stands for one digit
  double low, high;
  bool whole = true;
};
constexpr Key kKeys[] = {
    {"related_input_rank", 0, 1023},
    {"max_src_image_size", 0, 4294967295.0},
    {"src_image_size_w", 0, 65536},
    {"src_image_size_h", 0, 65536},
    {"crop", 0, 1},
    {"load_start_pos_w", 0, 65535},
    {"load_start_pos_h", 0, 65535},
    {"crop_size_w", 0, 65536},
    {"crop_size_h", 0, 65536},
    {"resize", 0, 1},
    {"resize_output_w", 0, 65536},
    {"resize_output_h", 0, 65536},
    {"padding", 0, 1},
    {"left_padding_size", 0, 65536},
    {"right_padding_size", 0, 65536},
    {"top_padding_size", 0, 65536},
    {"bottom_padding_size", 0, 65536},
    {"padding_value", -65504, 65504, false},
    {"cpadding_value", -65504, 65504, false},
    {"rotation_angle", 0, 270},
    {"csc_switch", 0, 1},
    {"rbuv_swap_switch", 0, 1},
    {"ax_swap_switch", 0, 1},
    {"single_line_mode", 0, 1},
    {"matrix_r*c*", -32768, 32767},
    {"input_bias_*", 0, 255},
    {"output_bias_*", 0, 255},
    {"mean_chn_*", 0, 255},
    {"min_chn_*", 0, 255, false},
    {"var_reci_chn_*", -65504, 65504, false},
    {"raw_rgbir_to_f16_n", 0, 15},
};

bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.size() != name.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '3';
    if (pattern[i] == '*' ? !digit : pattern[i] != name[i]) return false;
  }
  return true;
}

constexpr const char* kFormats[] = {"YUV420SP_U8", "XRGB8888_U8", "RGB888_U8",   "YUV400_U8",
                                    "ARGB8888_U8", "YUYV_U8",     "YUV422SP_U8", "AYUV444_U8",
                                    "RAW10",       "RAW12",       "RAW16",       "RAW24"};

struct Piece {
  std::string text;
  int line;
};

std::vector<Piece> Pieces(const std::string& text) {
  std::vector<Piece> tokens;
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == ',' || c == ';') {
      ++i;
    } else if (c == '{' || c == '}' || c == ':') {
      tokens.push_back({std::string(1, c), line});
      ++i;
    } else if (c == '"') {
      const size_t end = text.find('"', i + 1);
      tokens.push_back({text.substr(i + 1, end == std::string::npos ? end : end - i - 1), line});
      i = end == std::string::npos ? text.size() : end + 1;
    } else {
      size_t end = i;
      while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) &&
             std::string_view("{}:#,;\"").find(text[end]) == std::string_view::npos)
        ++end;
      tokens.push_back({text.substr(i, end - i), line});
      i = end;
    }
  }
  return tokens;
}

Fault Bad(int line, const std::string& what, const std::string& how = "see docs/aipp.md") {
  return {"E10052", fmt::format("AIPP configuration, line {}: {}", line, what), how};
}

Fault SetNumber(const Piece& key, const std::string& value, AippConfig* config) {
  std::vector<std::string> known{"aipp_mode", "input_format", "related_input_name"};
  for (const Key& k : kKeys) {
    known.push_back(k.name);
    if (!Matches(k.name, key.text)) continue;
    double number = 0;
    if (value == "true" || value == "false") {
      number = value == "true";
    } else {
      char* end = nullptr;
      number = std::strtod(value.c_str(), &end);
      if (value.empty() || *end != 0)
        return Bad(key.line, fmt::format("[{}] of {} is no number", value, key.text));
    }
    if (!(number >= k.low && number <= k.high) ||
        (k.whole && number != static_cast<double>(static_cast<int64_t>(number))))
      return Bad(key.line, fmt::format("{} of {} is out of range", value, key.text),
                 fmt::format("{} to {}", k.low, k.high));
    config->numbers[key.text] = number;
    return {};
  }
  return Bad(key.line, fmt::format("no key is called {}", key.text), Suggestion(key.text, known));
}

Fault SetKey(const Piece& key, const std::string& value, AippConfig* config) {
  if (key.text == "aipp_mode") {
    if (value != "static" && value != "dynamic")
      return Bad(key.line, fmt::format("aipp_mode is [{}]", value), "static or dynamic");
    config->dynamic = value == "dynamic";
  } else if (key.text == "input_format") {
    const auto known = [&](const char* f) { return value == f; };
    if (std::none_of(std::begin(kFormats), std::end(kFormats), known))
      return Bad(key.line, fmt::format("input_format [{}] is not supported", value),
                 "YUV420SP_U8, YUV422SP_U8, YUYV_U8, YUV400_U8, RGB888_U8, XRGB8888_U8, "
                 "ARGB8888_U8, AYUV444_U8, RAW10, RAW12, RAW16 or RAW24");
    config->input_format = value;
  } else if (key.text == "related_input_name") {
    config->related_input_name = value;
  } else {
    return SetNumber(key, value, config);
  }
  return {};
}

Fault CheckConfig(const AippConfig& c, int line) {
  if (c.dynamic)
    return c.Int("max_src_image_size") > 0 ? Fault{}
                                           : Bad(line, "a dynamic aipp_op needs max_src_image_size",
                                                 "bytes of the largest input");
  if (c.input_format.empty()) return Bad(line, "a static aipp_op needs input_format");
  if (c.Int("rotation_angle") % 90 != 0)
    return Bad(line, "rotation_angle is no right angle", "0, 90, 180 or 270");
  const bool yuv420 = c.input_format == "YUV420SP_U8";
  const bool pairs = yuv420 || c.input_format == "YUYV_U8" || c.input_format == "YUV422SP_U8";
  if (pairs && c.Int("src_image_size_w") % 2) return Bad(line, "src_image_size_w must be even");
  if (yuv420 && c.Int("src_image_size_h") % 2) return Bad(line, "src_image_size_h must be even");
  if ((c.input_format == "YUV400_U8" || c.input_format.starts_with("RAW")) && c.Int("csc_switch"))
    return Bad(line, fmt::format("csc_switch needs three channels, {} has one", c.input_format));
  if (c.Int("crop") && (!c.Int("src_image_size_w") || !c.Int("src_image_size_h")))
    return Bad(line, "crop needs src_image_size_w and src_image_size_h");
  for (const auto& [start, size, whole] :
       {std::tuple{"load_start_pos_w", "crop_size_w", "src_image_size_w"},
        std::tuple{"load_start_pos_h", "crop_size_h", "src_image_size_h"}})
    if (c.Int("crop") && c.Int(start) + c.Int(size) > c.Int(whole))
      return Bad(line, fmt::format("{} + {} is larger than {}", start, size, whole));
  return {};
}

}  // namespace

Fault ParseAipp(const std::string& text, std::vector<AippConfig>* configs) {
  const std::vector<Piece> tokens = Pieces(text);
  const auto at = [&](size_t i) { return i < tokens.size() ? tokens[i] : Piece{"", 0}; };
  const int last = tokens.empty() ? 1 : tokens.back().line;
  for (size_t i = 0; i < tokens.size();) {
    if (tokens[i].text != "aipp_op")
      return Bad(tokens[i].line, fmt::format("[{}] where aipp_op {{ is expected", tokens[i].text));
    const int line = tokens[i].line;
    if (at(++i).text == ":") ++i;
    if (at(i).text != "{") return Bad(line, "aipp_op has no {");
    AippConfig config;
    for (++i; at(i).text != "}";) {
      if (i >= tokens.size()) return Bad(last, "aipp_op has no }");
      if (at(i + 1).text != ":" || i + 2 >= tokens.size())
        return Bad(tokens[i].line, fmt::format("[{}] has no value", tokens[i].text));
      if (Fault f = SetKey(tokens[i], tokens[i + 2].text, &config); f.any()) return f;
      i += 3;
    }
    ++i;
    if (Fault f = CheckConfig(config, line); f.any()) return f;
    configs->push_back(std::move(config));
  }
  if (configs->empty()) return Bad(1, "there is no aipp_op");
  return {};
}

int AippInput(const AippConfig& config, const Graph& g) {
  if (config.related_input_name.empty()) {
    const int64_t rank = config.Int("related_input_rank");
    return rank < static_cast<int64_t>(g.inputs.size()) ? static_cast<int>(rank) : -1;
  }
  for (size_t i = 0; i < g.inputs.size(); ++i)
    if (g.value(g.inputs[i]).name == config.related_input_name) return static_cast<int>(i);
  return -1;
}

std::string AippJson(const std::vector<AippConfig>& configs, const std::string& layout,
                     const Graph& g) {
  nlohmann::json all = nlohmann::json::array();
  for (const AippConfig& c : configs) {
    nlohmann::json dims = nlohmann::json::array();
    for (Expr d : c.model.dims) dims.push_back(d.IsConst() ? d.value() : -1);
    all.push_back({{"input", AippInput(c, g)},
                   {"mode", c.dynamic ? "dynamic" : "static"},
                   {"format", c.input_format},
                   {"layout", layout},
                   {"dims", dims},
                   {"type", Name(c.model.dtype)},
                   {"keys", c.numbers}});
  }
  return all.dump();
}

}  // namespace ge
