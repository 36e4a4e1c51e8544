// Regular expressions in RE2's syntax, without captures: for whole-string matches in linear time.
//
// Supported: literals, ., classes with ranges, \d \w \s and their negations, [[:alpha:]] and kin,
// groups
// ((...), (?:...), (?P<name>...)), |, * + ? {m,n} (also lazy: the same here), ^ $ \A \z \b \B,
// escapes
// \n \t \r \f \v \xHH \x{H..}, flag (?i). Strings are UTF-8; one step is one code point.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace ge::rt {

class Regex {
 public:
  static Result<Regex> Compile(std::string_view pattern);
  bool FullMatch(std::string_view text) const;

  struct Set {
    std::vector<std::pair<uint32_t, uint32_t>> ranges;  // inclusive
    bool negated = false;
    bool Has(uint32_t c) const;
  };
  enum class Op : uint8_t { kSet, kSplit, kJump, kStart, kEnd, kWordEdge, kNoWordEdge, kMatch };
  struct Step {
    Op op;
    int32_t a = 0, b = 0;  // targets; kSet: a = set
  };

 private:
  friend class RegexParser;
  void Follow(int32_t at, const std::vector<uint32_t>& text, size_t pos,
              std::vector<int32_t>& states, std::vector<size_t>& seen) const;

  std::vector<Step> steps_;
  std::vector<Set> sets_;
  bool ignore_case_ = false;
};

// Code points of UTF-8 text; a byte that is no UTF-8 stands for itself.
std::vector<uint32_t> CodePoints(std::string_view text);

}  // namespace ge::rt
