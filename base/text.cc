// The tokenizer behind all text forms. Works on any bytes: whatever cannot be a token becomes a
// kBad token that every Expect refuses with its position.
#include "base/text.h"

#include <charconv>
#include <cmath>

namespace ge {
namespace {

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c) || c == '.'; }
int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view kLongPunctuation[] = {
    "...", "->", "==", "!=", "<=", ">=", "&&", "||", "+=", "::", "<<", ">>"};

}  // namespace

TextReader::TextReader(std::string_view text) : text_(text) { Scan(); }

Token TextReader::Next() {
  Token token = std::move(token_);
  Scan();
  return token;
}

bool TextReader::Accept(std::string_view s) {
  if (!Is(s)) return false;
  Scan();
  return true;
}

Status TextReader::Expect(std::string_view s) {
  if (!Is(s)) return Fault("expected '" + std::string(s) + "'");
  Scan();
  return {};
}

Status TextReader::ExpectEnd() const { return AtEnd() ? Status() : Fault("expected the end"); }

Result<std::string> TextReader::Name() {
  if (token_.kind == TokenKind::kQuoted) return std::move(Next().string);
  if (token_.kind != TokenKind::kName) return Fault("expected a name");
  return std::string(Next().text);
}

Result<std::string> TextReader::Quoted() {
  if (token_.kind != TokenKind::kQuoted) return Fault("expected a quoted string");
  return std::move(Next().string);
}

Result<int64_t> TextReader::Int() {
  const bool negative = Accept("-");
  if (token_.kind != TokenKind::kInt) return Fault("expected an integer");
  const uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (token_.magnitude > limit) return Fault("integer out of range");
  const uint64_t m = Next().magnitude;
  return static_cast<int64_t>(negative ? ~m + 1 : m);
}

Result<uint64_t> TextReader::Unsigned() {
  if (token_.kind != TokenKind::kInt) return Fault("expected an unsigned integer");
  return Next().magnitude;
}

Result<double> TextReader::Float() {
  const double sign = Accept("-") ? -1.0 : 1.0;
  if (Accept("inf")) return sign * INFINITY;
  if (Accept("nan")) return std::copysign(static_cast<double>(NAN), sign);
  if (token_.kind != TokenKind::kInt && token_.kind != TokenKind::kFloat) {
    return Fault("expected a number");
  }
  return sign * Next().number;
}

Status TextReader::Fault(const std::string& message) const {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < token_.begin && i < text_.size(); ++i) {
    ++column;
    if (text_[i] == '\n') ++line, column = 1;
  }
  std::string where = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
  if (token_.kind == TokenKind::kBad) return Invalid(where + token_.string);
  std::string found = AtEnd() ? "the end" : "'" + std::string(token_.text.substr(0, 40)) + "'";
  return Invalid(where + message + ", found " + found);
}

void TextReader::Seek(size_t position) {
  pos_ = position < text_.size() ? position : text_.size();
  Scan();
}

Status TextReader::Nest::status() const {
  if (reader_.depth_ <= kMaxDepth) return {};
  return reader_.Fault("nesting deeper than " + std::to_string(kMaxDepth));
}

void TextReader::Scan() {
  const auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++pos_;
    } else if (c == '/' && at(pos_ + 1) == '/') {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    } else {
      break;
    }
  }
  token_ = Token();
  token_.begin = pos_;
  if (pos_ >= text_.size()) return;
  const char c = text_[pos_];
  if (IsNameStart(c)) {
    token_.kind = TokenKind::kName;
    while (pos_ < text_.size() && IsNameChar(text_[pos_])) ++pos_;
  } else if (IsDigit(c)) {
    ScanNumber();
  } else if (c == '"') {
    ScanQuoted();
  } else if (c > ' ' && c < 127) {
    token_.kind = TokenKind::kPunct;
    size_t length = 1;
    for (std::string_view p : kLongPunctuation) {
      if (text_.substr(pos_).starts_with(p)) {
        length = p.size();
        break;
      }
    }
    pos_ += length;
  } else {
    token_.kind = TokenKind::kBad;
    token_.string = "unexpected byte " + std::to_string(static_cast<unsigned char>(c));
    ++pos_;
  }
  token_.text = text_.substr(token_.begin, pos_ - token_.begin);
}

void TextReader::ScanNumber() {
  const char* begin = text_.data() + pos_;
  const char* end = text_.data() + text_.size();
  const bool hex = end - begin > 2 && begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X') &&
                   HexDigit(begin[2]) >= 0;
  const char* digits = hex ? begin + 2 : begin;
  const char* p = digits;
  while (p < end && (hex ? HexDigit(*p) >= 0 : IsDigit(*p))) ++p;
  const char* whole = p;
  if (p + 1 < end && *p == '.' && (hex ? HexDigit(p[1]) >= 0 : IsDigit(p[1]))) {
    ++p;
    while (p < end && (hex ? HexDigit(*p) >= 0 : IsDigit(*p))) ++p;
  }
  if (p < end && (hex ? (*p == 'p' || *p == 'P') : (*p == 'e' || *p == 'E'))) {
    const char* q = p + 1;
    if (q < end && (*q == '-' || *q == '+')) ++q;
    if (q < end && IsDigit(*q)) {
      while (q < end && IsDigit(*q)) ++q;
      p = q;
    }
  }
  pos_ += static_cast<size_t>(p - begin);
  std::errc error{};
  if (p == whole) {
    token_.kind = TokenKind::kInt;
    error = std::from_chars(digits, p, token_.magnitude, hex ? 16 : 10).ec;
    token_.number = static_cast<double>(token_.magnitude);
    if (error == std::errc()) return;
  }
  token_.kind = TokenKind::kFloat;  // also integers beyond 64 bits
  const auto format = hex ? std::chars_format::hex : std::chars_format::general;
  if (std::from_chars(digits, p, token_.number, format).ec == std::errc::invalid_argument) {
    token_.kind = TokenKind::kBad;
    token_.string = "malformed number";
  }
}

void TextReader::ScanQuoted() {
  token_.kind = TokenKind::kQuoted;
  for (++pos_; pos_ < text_.size(); ++pos_) {
    const char c = text_[pos_];
    if (c == '"') {
      ++pos_;
      return;
    }
    if (c != '\\') {
      token_.string += c;
      continue;
    }
    if (++pos_ >= text_.size()) break;
    const char e = text_[pos_];
    if (e == 'n') {
      token_.string += '\n';
    } else if (e == 't') {
      token_.string += '\t';
    } else if (e == 'x' && pos_ + 2 < text_.size() && HexDigit(text_[pos_ + 1]) >= 0 &&
               HexDigit(text_[pos_ + 2]) >= 0) {
      token_.string +=
          static_cast<char>(HexDigit(text_[pos_ + 1]) * 16 + HexDigit(text_[pos_ + 2]));
      pos_ += 2;
    } else {
      token_.string += e;
    }
  }
  token_.kind = TokenKind::kBad;
  token_.string = "a quoted string without end";
}

bool IsPlainName(std::string_view name) {
  if (name.empty() || !IsNameStart(name[0])) return false;
  for (char c : name) {
    if (!IsNameChar(c)) return false;
  }
  return true;
}

std::string Quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (u < 32 || u == 127) {
      out += "\\x";
      out += kHex[u / 16];
      out += kHex[u % 16];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string QuoteName(std::string_view name) {
  return IsPlainName(name) ? std::string(name) : Quote(name);
}

std::string FloatText(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

}  // namespace ge
