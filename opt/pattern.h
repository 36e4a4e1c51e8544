// Patterns of rules: parsed once, matched at a node. See opt/rule.h for the notation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "opt/rule.h"

namespace ge {

struct Term {
  std::string_view name;  // of the binding; empty: none
  std::string_view op;    // empty: a leaf
  bool constant = false, optional = false, shared = false;
  std::vector<Term> operands;
};

// The patterns that one with alternatives stands for.
std::vector<std::string> Alternatives(const std::string& text);

class Pattern {
 public:
  explicit Pattern(std::string_view text);
  std::string_view root() const { return root_.op; }
  // Whether the pattern holds at node n. If only a constant is missing or an inner value is used
  // elsewhere, `miss` says so.
  bool At(const UseLists& uses, NodeId n, Match& match, std::string& miss) const;

 private:
  struct Attempt;
  Term root_;
  int num_symmetric_ = 0;  // operations whose operands match in two orders
  int num_nodes_ = 0;
};

}  // namespace ge
