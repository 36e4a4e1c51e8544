// See json.h. Recursive descent with a depth limit; UTF-16 escapes outside ASCII become '?': no
// text that this library looks at holds any.
#include "api/acl/json.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

#include "api/acl/error.h"
#include "base/file_map.h"

namespace ge::acl {
namespace {

constexpr int kMaxDepth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Json> Whole() {
    GE_ASSIGN(Json value, Value(0));
    Space();
    if (at_ != text_.size()) return Fault("text after the end");
    return value;
  }

 private:
  Status Fault(const std::string& what) const {
    return Invalid("JSON, character " + std::to_string(at_ + 1) + ": " + what);
  }
  void Space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Accept(char c) {
    Space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Result<Json> Value(int depth) {
    if (depth > kMaxDepth) return Fault("nested too deeply");
    Space();
    if (at_ >= text_.size()) return Fault("value expected");
    Json value;
    const char c = text_[at_];
    if (c == '{') return Object(depth);
    if (c == '[') return Array(depth);
    if (c == '"') {
      value.kind = Json::Kind::kString;
      GE_ASSIGN(value.string, String());
      return value;
    }
    if (Word("null")) return value;
    if (Word("true") || Word("false")) {
      value.kind = Json::Kind::kBool;
      value.boolean = c == 't';
      return value;
    }
    return Number();
  }

  Result<Json> Object(int depth) {
    Json value;
    value.kind = Json::Kind::kObject;
    Accept('{');
    if (Accept('}')) return value;
    do {
      Space();
      if (at_ >= text_.size() || text_[at_] != '"') return Fault("name of a member expected");
      GE_ASSIGN(std::string name, String());
      if (!Accept(':')) return Fault("':' expected");
      GE_ASSIGN(value.members[name], Value(depth + 1));
    } while (Accept(','));
    if (!Accept('}')) return Fault("'}' expected");
    return value;
  }

  Result<Json> Array(int depth) {
    Json value;
    value.kind = Json::Kind::kArray;
    Accept('[');
    if (Accept(']')) return value;
    do {
      GE_ASSIGN(Json item, Value(depth + 1));
      value.items.push_back(std::move(item));
    } while (Accept(','));
    if (!Accept(']')) return Fault("']' expected");
    return value;
  }

  Result<Json> Number() {
    const std::string digits(text_.substr(at_, 40));
    char* end = nullptr;
    Json value;
    value.kind = Json::Kind::kNumber;
    value.number = std::strtod(digits.c_str(), &end);
    if (end == digits.c_str()) return Fault("value expected");
    at_ += static_cast<size_t>(end - digits.c_str());
    return value;
  }

  Result<std::string> String() {
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c != '\\') {
        out += c;
        continue;
      }
      if (++at_ >= text_.size()) break;
      const char* from = "nrtbf";
      const char* to = "\n\r\t\b\f";
      if (const char* found = std::strchr(from, text_[at_]); found != nullptr && *found != 0) {
        out += to[found - from];
      } else if (text_[at_] == 'u') {
        const std::string hex(text_.substr(at_ + 1, 4));
        const long code = std::strtol(hex.c_str(), nullptr, 16);
        out += code > 0 && code < 128 ? static_cast<char>(code) : '?';
        at_ += 4;
      } else {
        out += text_[at_];
      }
    }
    return Fault("a string does not end");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Json& Json::operator[](std::string_view name) const {
  static const Json nothing;
  const auto it = members.find(name);
  return it == members.end() ? nothing : it->second;
}

Result<Json> ParseJson(std::string_view text) { return Parser(text).Whole(); }

aclError ReadConfig(const char* path, std::string* text, Json* json, const char* function) {
  if (path == nullptr || path[0] == 0) return ACL_SUCCESS;
  const auto map = FileMap::Open(path);
  if (!map.ok()) return Fail(ACL_ERROR_INVALID_FILE, function, map.status().message());
  const auto bytes = map->bytes();
  text->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto parsed = ParseJson(*text);
  if (!parsed.ok())
    return Fail(ACL_ERROR_PARSE_FILE, function,
                std::string(path) + ": " + parsed.status().message());
  if (parsed->kind != Json::Kind::kObject)
    return Fail(ACL_ERROR_PARSE_FILE, function, std::string(path) + ": not a JSON object");
  *json = std::move(parsed).value();
  return ACL_SUCCESS;
}

}  // namespace ge::acl
