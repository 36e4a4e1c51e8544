// Policy::Key: the part of a cache key that choices make.
#include "ir/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "ir/graph.h"

namespace ge {
namespace {

constexpr const char* kFields =
    "ROWSxVECTORS, rows=N, k=N, order=nm or mn, pack=a, b or ab, strips=N, direct, winograd";

// The whole text is a number of at least one.
bool IsCount(const std::string& text, int64_t* value) {
  char* end = nullptr;
  *value = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == 0 && *value > 0 &&
         *value < (int64_t{1} << 31);
}

bool SetTile(const std::string& word, DotChoice* c) {
  const size_t cross = word.find('x');
  int64_t m = 0, nv = 0;
  if (cross == std::string::npos || !IsCount(word.substr(0, cross), &m) ||
      !IsCount(word.substr(cross + 1), &nv))
    return false;
  c->m = static_cast<int>(m), c->nv = static_cast<int>(nv);
  return true;
}

// Which field a word is about: what may be said once.
std::string FieldOf(const std::string& word) {
  if (word == "direct" || word == "winograd") return "form";
  const size_t equals = word.find('=');
  return equals == std::string::npos ? "tile" : word.substr(0, equals);
}

bool SetField(const std::string& word, DotChoice* c) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) {
    if (word != "direct" && word != "winograd") return SetTile(word, c);
    c->form = word;
    return true;
  }
  const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "rows") return IsCount(value, &c->rows);
  if (name == "k") return IsCount(value, &c->k);
  if (name == "strips") return IsCount(value, &c->strips);
  if (name == "order") c->order = value;
  if (name == "pack") c->pack = value;
  return (name == "order" && (value == "nm" || value == "mn")) ||
         (name == "pack" && (value == "a" || value == "b" || value == "ab"));
}

}  // namespace

bool DotChoice::operator==(const DotChoice& o) const { return ToString(*this) == ToString(o); }

std::string ToString(const DotChoice& c) {
  std::string text = c.form;
  const auto add = [&](const std::string& field) { text += (text.empty() ? "" : " ") + field; };
  if (c.m > 0) add(fmt::format("{}x{}", c.m, c.nv));
  if (c.rows > 0) add(fmt::format("rows={}", c.rows));
  if (c.k > 0) add(fmt::format("k={}", c.k));
  if (!c.order.empty()) add("order=" + c.order);
  if (!c.pack.empty()) add("pack=" + c.pack);
  if (c.strips > 0) add(fmt::format("strips={}", c.strips));
  return text;
}

Result<DotChoice> ParseDotChoice(const std::string& text) {
  DotChoice c;
  std::istringstream words(text);
  std::string word;
  std::map<std::string, std::string> said;
  while (words >> word) {
    if (!SetField(word, &c)) return Invalid(fmt::format("[{}] is none of {}", word, kFields));
    if (const auto [first, fresh] = said.emplace(FieldOf(word), word); !fresh)
      return Invalid(
          fmt::format("[{}] and [{}] choose the same; one is allowed", first->second, word));
  }
  if (ToString(c).empty())
    return Invalid(fmt::format("nothing is chosen; allowed are {}", kFields));
  return c;
}

bool IsProblem(const std::string& name) {
  for (const char* kind : {"gemm ", "gemms ", "conv ", "attention "})
    if (name.starts_with(kind)) return true;
  return false;
}

const DotChoice* Policy::ChoiceFor(const Node& node) const {
  if (tiles.empty()) return nullptr;
  std::vector<std::string> names = {node.name};
  names.insert(names.end(), node.origin.begin(), node.origin.end());
  for (const std::string& name : names) {
    const auto at = tiles.find(name);
    if (at != tiles.end() && !IsProblem(name)) return &at->second;
  }
  return nullptr;
}

std::string Policy::Key() const {
  std::string chosen;
  for (const auto& [what, choice] : tiles)
    chosen += fmt::format(" [{} = {}]", what, ToString(choice));
  return fmt::format("opt={} off={} conv_tolerance={} bf16={} region={}/{} interpret={} fold={}{}",
                     opt_level, fmt::join(disabled, ","), conv_tolerance, bf16 ? 1 : 0,
                     max_region_nodes, max_region_inputs, interpret_kernels ? 1 : 0,
                     fold_limit_bytes, chosen);
}

}  // namespace ge
