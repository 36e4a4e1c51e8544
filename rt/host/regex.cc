// A recursive parser that emits code behind itself, and a simulation of all states at once.
#include "rt/host/regex.h"

#include <algorithm>
#include <string>

namespace ge::rt {
namespace {

constexpr size_t kMaxSteps = 100000;
constexpr int kMaxDepth = 200, kMaxRepeat = 1000;
constexpr uint32_t kLastCodePoint = 0x10ffff;

bool IsWord(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

uint32_t FoldCase(uint32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;

// \d, \w, \s; empty for other letters.
Ranges Class(char c) {
  switch (c) {
    case 'd': return {{'0', '9'}};
    case 'w': return {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}};
    case 's': return {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    default: return {};
  }
}

Ranges NamedClass(std::string_view name) {
  if (name == "alpha") return {{'A', 'Z'}, {'a', 'z'}};
  if (name == "digit") return {{'0', '9'}};
  if (name == "alnum") return {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
  if (name == "upper") return {{'A', 'Z'}};
  if (name == "lower") return {{'a', 'z'}};
  if (name == "space") return {{'\t', '\r'}, {' ', ' '}};
  if (name == "punct") return {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
  if (name == "xdigit") return {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  if (name == "word") return Class('w');
  return {};
}

Ranges Complement(Ranges r) {
  std::sort(r.begin(), r.end());
  Ranges out;
  uint32_t next = 0;
  for (const auto& [lo, hi] : r) {
    if (lo > next) out.emplace_back(next, lo - 1);
    next = std::max(next, hi + 1);
  }
  if (next <= kLastCodePoint) out.emplace_back(next, kLastCodePoint);
  return out;
}

}  // namespace

std::vector<uint32_t> CodePoints(std::string_view text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<uint8_t>(text[i]);
    const int more = c >= 0xf0 && c < 0xf8 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    uint32_t point = more == 0 ? c : c & (0x3fu >> more);
    bool valid = more > 0 && i + more < text.size() && c < 0xf8;
    for (int k = 1; valid && k <= more; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      valid = (next & 0xc0) == 0x80;
      point = point << 6 | (next & 0x3f);
    }
    out.push_back(valid ? point : c);
    i += valid ? more + 1 : 1;
  }
  return out;
}

bool Regex::Set::Has(uint32_t c) const {
  for (const auto& [lo, hi] : ranges)
    if (c >= lo && c <= hi) return !negated;
  return negated;
}

// alternatives := sequence ('|' sequence)*; sequence := (atom repeat?)*. Each Parse* appends code
// that falls through at its end.
class RegexParser {
 public:
  explicit RegexParser(std::string_view pattern) : text_(CodePoints(pattern)) {}

  Result<Regex> Parse() {
    GE_TRY(Alternatives(0));
    if (!AtEnd()) return Fault("unmatched ')'");
    Emit(Regex::Op::kMatch);
    return std::move(re_);
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  uint32_t Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0;
  }
  bool Take(uint32_t c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeText(std::string_view s) {
    for (size_t i = 0; i < s.size(); ++i)
      if (at_ + i >= text_.size() || text_[at_ + i] != static_cast<uint8_t>(s[i])) return false;
    at_ += s.size();
    return true;
  }
  Status Fault(const std::string& what) const {
    return Invalid("pattern: " + what + " at character " + std::to_string(at_));
  }
  int32_t Here() const { return static_cast<int32_t>(re_.steps_.size()); }
  void Emit(Regex::Op op, int32_t a = 0, int32_t b = 0) { re_.steps_.push_back({op, a, b}); }
  void EmitSet(Regex::Set set) {
    re_.sets_.push_back(std::move(set));
    Emit(Regex::Op::kSet, static_cast<int32_t>(re_.sets_.size()) - 1);
  }

  // Inserts a split before the code that begins at `from`: that code's own targets move by one,
  // while what led to `from` from before now leads to the split.
  void InsertSplit(int32_t from) {
    for (size_t i = from; i < re_.steps_.size(); ++i) {
      Regex::Step& s = re_.steps_[i];
      if (s.op == Regex::Op::kSplit || s.op == Regex::Op::kJump) {
        if (s.a >= from) ++s.a;
        if (s.op == Regex::Op::kSplit && s.b >= from) ++s.b;
      }
    }
    re_.steps_.insert(re_.steps_.begin() + from, {Regex::Op::kSplit, from + 1, 0});
  }

  Status Alternatives(int depth) {
    if (depth > kMaxDepth) return Fault("groups nested too deeply");
    const int32_t begin = Here();
    std::vector<int32_t> ends;
    int32_t branch = begin;
    GE_TRY(Sequence(depth));
    while (Take('|')) {
      InsertSplit(branch);
      for (int32_t& e : ends)
        if (e >= branch) ++e;
      ends.push_back(Here());
      Emit(Regex::Op::kJump);
      re_.steps_[branch].b = Here();
      branch = Here();
      GE_TRY(Sequence(depth));
    }
    for (int32_t e : ends) re_.steps_[e].a = Here();
    return {};
  }

  Status Sequence(int depth) {
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      if (re_.steps_.size() > kMaxSteps) return Fault("too large");
      const int32_t from = Here();
      const size_t source = at_;
      GE_TRY(Atom(depth));
      GE_TRY(Repeat(from, source, depth));
    }
    return {};
  }

  Status Repeat(int32_t from, size_t source, int depth) {
    while (!AtEnd()) {
      if (Take('*')) {
        InsertSplit(from);
        Emit(Regex::Op::kJump, from);
        re_.steps_[from].b = Here();
      } else if (Take('+')) {
        Emit(Regex::Op::kSplit, from, Here() + 1);
      } else if (Take('?')) {
        InsertSplit(from);
        re_.steps_[from].b = Here();
      } else if (Peek() == '{' && Peek(1) >= '0' && Peek(1) <= '9') {
        return Counted(from, source, depth);
      } else {
        return {};
      }
      Take('?');  // lazy: the same strings match
    }
    return {};
  }

  Result<int> Number() {
    int n = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      n = n * 10 + static_cast<int>(Peek() - '0');
      if (n > kMaxRepeat) return Fault("a repetition of more than 1000");
      ++at_;
    }
    return n;
  }

  // {m}, {m,}, {m,n}: the atom is parsed again for each copy.
  Status Counted(int32_t from, size_t source, int depth) {
    ++at_;
    GE_ASSIGN(const int least, Number());
    int most = least;
    bool open = false;
    if (Take(',')) {
      open = Peek() == '}';
      if (!open) {
        GE_ASSIGN(most, Number());
      }
    }
    if (!Take('}') || most < least) return Fault("a malformed repetition");
    Take('?');
    const size_t after = at_;
    re_.steps_.resize(from);
    auto copy = [&]() -> Status {
      if (re_.steps_.size() > kMaxSteps) return Fault("too large");
      at_ = source;
      return Atom(depth);
    };
    for (int i = 0; i < least; ++i) GE_TRY(copy());
    if (open) {
      const int32_t loop = Here();
      Emit(Regex::Op::kSplit, loop + 1);
      GE_TRY(copy());
      Emit(Regex::Op::kJump, loop);
      re_.steps_[loop].b = Here();
    }
    std::vector<int32_t> exits;
    for (int i = least; !open && i < most; ++i) {
      exits.push_back(Here());
      Emit(Regex::Op::kSplit, Here() + 1);
      GE_TRY(copy());
    }
    for (int32_t e : exits) re_.steps_[e].b = Here();
    at_ = after;
    return {};
  }

  Status Atom(int depth) {
    const uint32_t c = text_[at_++];
    switch (c) {
      case '(': return Group(depth);
      case '[': return Bracket();
      case '.': EmitSet({{{'\n', '\n'}}, true}); return {};
      case '^': Emit(Regex::Op::kStart); return {};
      case '$': Emit(Regex::Op::kEnd); return {};
      case '*':
      case '+':
      case '?': return Fault("nothing to repeat");
      case '\\': return Escape();
      default: EmitSet({{{c, c}}, false}); return {};
    }
  }

  Status Group(int depth) {
    if (TakeText("?i)")) {
      re_.ignore_case_ = true;
      return {};
    }
    if (TakeText("?P<") || TakeText("?<")) {
      while (!AtEnd() && Peek() != '>') ++at_;
      if (!Take('>')) return Fault("a group name without end");
    } else if (Peek() == '?' && !TakeText("?:")) {
      return Unsupported("pattern: this kind of group, at character " + std::to_string(at_));
    }
    GE_TRY(Alternatives(depth + 1));
    return Take(')') ? Status() : Fault("a group without ')'");
  }

  // After a backslash, a character that stands for one code point.
  Status EscapedPoint(uint32_t c, uint32_t* point) {
    static constexpr std::string_view kNames = "nrtfva", kPoints = "\n\r\t\f\v\a";
    const size_t k = c < 128 ? kNames.find(static_cast<char>(c)) : std::string_view::npos;
    *point = k != std::string_view::npos ? static_cast<uint8_t>(kPoints[k]) : c;
    if (c != 'x')
      return (k != std::string_view::npos || !IsWord(c)) ? Status() : Fault("an unknown escape");
    const bool braces = Take('{');
    uint32_t v = 0;
    int digits = 0;
    for (; digits < (braces ? 6 : 2); ++digits, ++at_) {
      const uint32_t h = Peek() | 32;
      if (Peek() >= '0' && Peek() <= '9')
        v = v * 16 + (Peek() - '0');
      else if (h >= 'a' && h <= 'f')
        v = v * 16 + (h - 'a' + 10);
      else
        break;
    }
    if (digits == 0 || (braces && !Take('}'))) return Fault("a malformed \\x");
    *point = v;
    return {};
  }

  Status Escape() {
    if (AtEnd()) return Fault("a backslash at the end");
    const uint32_t c = text_[at_++];
    switch (c) {
      case 'A': Emit(Regex::Op::kStart); return {};
      case 'z': Emit(Regex::Op::kEnd); return {};
      case 'b': Emit(Regex::Op::kWordEdge); return {};
      case 'B': Emit(Regex::Op::kNoWordEdge); return {};
      default: break;
    }
    if (Ranges r = ClassOf(c); !r.empty()) {
      EmitSet({std::move(r), false});
      return {};
    }
    uint32_t point;
    GE_TRY(EscapedPoint(c, &point));
    EmitSet({{{point, point}}, false});
    return {};
  }

  static Ranges ClassOf(uint32_t c) {
    if (c >= 128) return {};
    const char letter = static_cast<char>(c);
    if (Ranges r = Class(letter); !r.empty()) return r;
    if (letter >= 'A' && letter <= 'Z')
      if (Ranges r = Class(static_cast<char>(letter + 32)); !r.empty()) return Complement(r);
    return {};
  }

  Status Bracket() {
    Regex::Set set;
    set.negated = Take('^');
    bool first = true;
    while (first || Peek() != ']') {
      first = false;
      if (AtEnd()) return Fault("a class without ']'");
      if (TakeText("[:")) {
        std::string name;
        while (!AtEnd() && Peek() != ':') name.push_back(static_cast<char>(text_[at_++]));
        const Ranges r = NamedClass(name);
        if (r.empty() || !TakeText(":]")) return Fault("an unknown class");
        set.ranges.insert(set.ranges.end(), r.begin(), r.end());
        continue;
      }
      uint32_t lo = text_[at_++];
      if (lo == '\\') {
        if (AtEnd()) return Fault("a backslash at the end");
        const uint32_t c = text_[at_++];
        if (Ranges r = ClassOf(c); !r.empty()) {
          set.ranges.insert(set.ranges.end(), r.begin(), r.end());
          continue;
        }
        GE_TRY(EscapedPoint(c, &lo));
      }
      uint32_t hi = lo;
      if (Peek() == '-' && Peek(1) != ']' && at_ + 1 < text_.size()) {
        ++at_;
        hi = text_[at_++];
        if (hi == '\\') {
          if (AtEnd()) return Fault("a backslash at the end");
          const uint32_t c = text_[at_++];
          GE_TRY(EscapedPoint(c, &hi));
        }
        if (hi < lo) return Fault("a range that runs backwards");
      }
      set.ranges.emplace_back(lo, hi);
    }
    ++at_;
    EmitSet(std::move(set));
    return {};
  }

  std::vector<uint32_t> text_;
  size_t at_ = 0;
  Regex re_;
};

Result<Regex> Regex::Compile(std::string_view pattern) { return RegexParser(pattern).Parse(); }

// Adds `at` and what it reaches without reading; `seen[s]` = pos + 1 where s was added at this
// position.
void Regex::Follow(int32_t at, const std::vector<uint32_t>& text, size_t pos,
                   std::vector<int32_t>& states, std::vector<size_t>& seen) const {
  std::vector<int32_t> open = {at};
  while (!open.empty()) {
    const int32_t s = open.back();
    open.pop_back();
    if (seen[s] == pos + 1) continue;
    seen[s] = pos + 1;
    const Step& step = steps_[s];
    const bool before = pos > 0 && IsWord(text[pos - 1]),
               after = pos < text.size() && IsWord(text[pos]);
    switch (step.op) {
      case Op::kJump: open.push_back(step.a); break;
      case Op::kSplit:
        open.push_back(step.b);
        open.push_back(step.a);
        break;
      case Op::kStart:
        if (pos == 0) open.push_back(s + 1);
        break;
      case Op::kEnd:
        if (pos == text.size()) open.push_back(s + 1);
        break;
      case Op::kWordEdge:
        if (before != after) open.push_back(s + 1);
        break;
      case Op::kNoWordEdge:
        if (before == after) open.push_back(s + 1);
        break;
      case Op::kSet:
      case Op::kMatch: states.push_back(s); break;
    }
  }
}

bool Regex::FullMatch(std::string_view bytes) const {
  const std::vector<uint32_t> text = CodePoints(bytes);
  std::vector<int32_t> states, next;
  std::vector<size_t> seen(steps_.size(), 0);
  Follow(0, text, 0, states, seen);
  for (size_t pos = 0; pos < text.size() && !states.empty(); ++pos) {
    next.clear();
    for (int32_t s : states) {
      if (steps_[s].op != Op::kSet) continue;
      const Set& set = sets_[steps_[s].a];
      const uint32_t c = text[pos];
      const bool hit =
          set.Has(c) ||
          (ignore_case_ && (set.Has(FoldCase(c)) || (FoldCase(c) >= 'a' && FoldCase(c) <= 'z' &&
                                                     set.Has(FoldCase(c) - 32))));
      if (hit) Follow(s + 1, text, pos + 1, next, seen);
    }
    states.swap(next);
  }
  return std::any_of(states.begin(), states.end(),
                     [&](int32_t s) { return steps_[s].op == Op::kMatch; });
}

}  // namespace ge::rt
