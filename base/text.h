// TextReader: the one tokenizer of all text forms (Expr, types, TileIR, AscendIR, plans). A cursor
// over a string that must outlive it. Quote and QuoteName write what it reads back.
//
// Tokens: names [A-Za-z_][A-Za-z0-9_.]*, quoted strings with \n \t \" \\ \xHH escapes, integers
// (decimal, 0x), floats (decimal, hex), punctuation: one character, or one of -> == != <= >= && ||
// +=
// ... :: << >>. Comments run from // to the end of the line. A '-' is never part of a number token;
// Int() and Float() accept one in front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ge {

enum class TokenKind : uint8_t { kEnd, kName, kQuoted, kInt, kFloat, kPunct, kBad };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;   // as written (quoted: with the quotes)
  std::string string;      // kQuoted: unescaped. kBad: what is wrong
  uint64_t magnitude = 0;  // kInt
  double number = 0;       // kInt, kFloat
  size_t begin = 0;        // position in the text
  bool Is(std::string_view s) const {
    return (kind == TokenKind::kPunct || kind == TokenKind::kName) && text == s;
  }
};

class TextReader {
 public:
  static constexpr int kMaxDepth = 256;

  explicit TextReader(std::string_view text);

  const Token& Peek() const { return token_; }
  Token Next();  // returns the current token and moves on
  bool AtEnd() const { return token_.kind == TokenKind::kEnd; }
  bool Is(std::string_view s) const { return token_.Is(s); }  // a name or punctuation (not quoted)
  bool Accept(std::string_view s);                            // moves on if Is(s)
  Status Expect(std::string_view s);
  Status ExpectEnd() const;

  bool AtName() const {
    return token_.kind == TokenKind::kName || token_.kind == TokenKind::kQuoted;
  }
  Result<std::string> Name();    // plain or quoted
  Result<std::string> Quoted();  // quoted only
  Result<int64_t> Int();         // [-]integer in int64
  Result<uint64_t> Unsigned();
  Result<double> Float();  // [-]number, nan or inf; integers too
  bool AtNumber() const {
    return token_.kind == TokenKind::kInt || token_.kind == TokenKind::kFloat || Is("-");
  }

  // "line 3, column 7: message, before 'token'".
  Status Fault(const std::string& message) const;
  size_t position() const { return token_.begin; }  // of the current token
  void Seek(size_t position);
  std::string_view text() const { return text_; }

  // Guards recursive parsers: TextReader::Nest nest(r); GE_TRY(nest.status());
  class Nest {
   public:
    explicit Nest(TextReader& reader) : reader_(reader) { ++reader_.depth_; }
    ~Nest() { --reader_.depth_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;
    Status status() const;

   private:
    TextReader& reader_;
  };

 private:
  void Scan();
  void ScanNumber();
  void ScanQuoted();

  std::string_view text_;
  size_t pos_ = 0;  // after the current token
  int depth_ = 0;
  Token token_;
};

bool IsPlainName(std::string_view name);       // reads back as one kName token
std::string Quote(std::string_view text);      // "..." with escapes
std::string QuoteName(std::string_view name);  // as is if plain, else quoted
std::string FloatText(double value);  // shortest text that reads back exactly; nan, inf, -inf

}  // namespace ge
