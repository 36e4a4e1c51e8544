// Matching of patterns: see pattern.h. The two orders of each symmetric operation are tried as the
// bits of a counter; patterns have few of them.
#include "opt/pattern.h"

#include <cctype>

#include "base/check.h"
#include "ir/opdef.h"

namespace ge {
namespace {

bool IsSymmetric(std::string_view op) {
  return op == "Add" || op == "Mul" || op == "Min" || op == "Max" || op == "And" || op == "Or";
}

struct TermReader {
  std::string_view text;
  size_t at = 0;
  int symmetric = 0, nodes = 0;

  bool Accept(char c) {
    while (at < text.size() && text[at] == ' ') ++at;
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  }
  std::string_view Name() {
    while (at < text.size() && text[at] == ' ') ++at;
    const size_t begin = at;
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) ||
                                text[at] == '_' || text[at] == '.')) {
      ++at;
    }
    GE_CHECK(at > begin, "bad pattern: " + std::string(text));
    return text.substr(begin, at - begin);
  }
  Term Read() {
    Term t;
    t.shared = Accept('+');
    t.constant = Accept('#');
    t.name = Name();
    if (Accept('=')) {
      t.op = Name();
    } else if (std::isupper(static_cast<unsigned char>(t.name[0]))) {
      t.op = t.name;
      t.name = {};
    }
    t.optional = Accept('?');
    if (t.op.empty()) return t;
    ++nodes;
    symmetric += IsSymmetric(t.op);
    GE_CHECK(Accept('('), "bad pattern: " + std::string(text));
    while (!Accept(')')) {
      t.operands.push_back(Read());
      Accept(',');
    }
    return t;
  }
};

}  // namespace

// The first group is replaced by each of its alternatives, then the rest likewise.
std::vector<std::string> Alternatives(const std::string& text) {
  const size_t open = text.find('[');
  if (open == std::string::npos) return {text};
  std::vector<size_t> cuts = {open};
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += (text[i] == '[') - (text[i] == ']');
    if (depth == 0 || (depth == 1 && text[i] == '|')) cuts.push_back(i);
    if (depth == 0) break;
  }
  GE_CHECK(depth == 0, "bad pattern: " + text);
  std::vector<std::string> all;
  for (size_t c = 0; c + 1 < cuts.size(); ++c) {
    std::string one = text.substr(cuts[c] + 1, cuts[c + 1] - cuts[c] - 1);
    one.erase(one.find_last_not_of(' ') + 1);
    one.erase(0, one.find_first_not_of(' '));
    for (std::string& whole :
         Alternatives(text.substr(0, open) + one + text.substr(cuts.back() + 1)))
      all.push_back(std::move(whole));
  }
  return all;
}

Pattern::Pattern(std::string_view text) {
  TermReader r{text};
  root_ = r.Read();
  GE_CHECK(r.at == text.size() && !root_.op.empty(), "bad pattern: " + std::string(text));
  num_symmetric_ = r.symmetric;
  num_nodes_ = r.nodes;
}

// One assignment of orders to the symmetric operations.
struct Pattern::Attempt {
  const UseLists& uses;
  Match& match;
  unsigned orders;
  int next = 0;
  std::vector<ValueId> inner;  // outputs of inner nodes that must not be used elsewhere
  std::string miss;

  bool Bind(std::string_view name, ValueId v) {
    return match.values.try_emplace(name, v).first->second == v;
  }

  bool Operand(const Term& t, ValueId v) {
    if (v == kNone) return t.optional && Bind(t.name, kNone);
    if (!t.op.empty()) {
      const NodeId producer = match.g.value(v).producer;
      if (producer == kNone || match.g.node(producer).op->name != t.op) return false;
      if (match.g.node(producer).outputs[0] != v) return false;
      if (!t.shared) inner.push_back(v);
      if (!t.name.empty() && !Bind(t.name, v)) return false;
      return NodeAt(t, producer);
    }
    if (t.constant && !match.g.IsConstant(v)) {
      miss = std::string(t.name) + " is not a constant";
      return false;
    }
    return Bind(t.name, v);
  }

  bool NodeAt(const Term& t, NodeId id) {
    const Node& n = match.g.node(id);
    match.nodes.push_back(id);
    for (size_t o = 1; o < n.outputs.size(); ++o) {
      if (n.outputs[o] != kNone && !uses.IsUnused(n.outputs[o])) return false;
    }
    for (size_t i = t.operands.size(); i < n.inputs.size(); ++i) {
      if (n.inputs[i] != kNone) return false;
    }
    bool swap = false;
    if (IsSymmetric(t.op)) {
      swap = orders >> next & 1;
      ++next;
      if (n.inputs.size() != 2) return false;
    }
    for (size_t i = 0; i < t.operands.size(); ++i) {
      const size_t from = swap ? 1 - i : i;
      if (!Operand(t.operands[i], from < n.inputs.size() ? n.inputs[from] : kNone)) return false;
    }
    return true;
  }

  bool InnerIsPrivate() {
    for (ValueId v : inner) {
      bool own = !uses.IsOutput(v);
      for (const Use& u : uses.Of(v)) {
        bool matched = false;
        for (NodeId n : match.nodes) matched = matched || n == u.node;
        own = own && matched;
      }
      if (!own) {
        miss = "value " + match.g.value(v).name + " is used elsewhere";
        return false;
      }
    }
    return true;
  }
};

bool Pattern::At(const UseLists& uses, NodeId n, Match& match, std::string& miss) const {
  for (unsigned orders = 0; orders < 1u << num_symmetric_; ++orders) {
    match.values.clear();
    match.nodes.clear();
    Attempt a{uses, match, orders, 0, {}, {}};
    match.values[""] = match.g.node(n).outputs[0];
    if (a.NodeAt(root_, n) && a.InnerIsPrivate()) return true;
    if (!a.miss.empty() && num_nodes_ > 1) miss = a.miss;
  }
  return false;
}

}  // namespace ge
