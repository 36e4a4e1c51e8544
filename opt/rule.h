// Rule: a local rewrite of algebra, as data. The driver (pass "rules") runs all rules to a
// fixpoint.
//
// A pattern is a term over operators:
//   "BatchNormalization(Conv(x, #w, #b?), #scale, #bias, #mean, #var)"
//   x      any value; the same name twice means the same value
//   #w     a constant
//   b?     may be absent (then the binding is kNone)
//   d=Sub(x, y)    binds the output of an inner node as well
//   [Mul(x, #c) | Div(x, #d)]   one of several; the first that matches is meant
// Operands beyond those listed must be absent. Operands of commutative operators match in any
// order. Output 0 of a node is meant; nodes that use other outputs do not match. What the inner
// nodes compute may be used by matched nodes only, since the rewrite shall not duplicate work.
//
// A rule must give the same numbers for all inputs if `exact`; else up to rounding, on finite
// values. Rules never remove checks of shapes: the types of both sides are equal by inference.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/patch.h"
#include "ir/policy.h"

namespace ge {

// A pattern found in a graph.
struct Match {
  Graph& g;
  std::map<std::string_view, ValueId> values;  // by name; "" is the root's output
  std::vector<NodeId> nodes;                   // in the order in which the pattern writes them
  const Policy* policy = nullptr;              // of the compilation, if there is one

  ValueId operator[](std::string_view name) const { return values.at(name); }
  const Node& node(size_t i) const { return g.node(nodes[i]); }
  const TensorType& type(std::string_view name) const { return g.value(values.at(name)).type; }
  const Constant& constant(std::string_view name) const { return *g.ConstantOf(values.at(name)); }
};

struct Rule {
  std::string_view name;
  std::string_view pattern;
  // The reason why it does not apply after all, or "".
  std::string (*guard)(const Match&) = nullptr;
  // The value that takes the place of the root's output; kNone to give up.
  ValueId (*replace)(const Match&, Patch&) = nullptr;
  bool exact = true;
  // There are no values between the steps of what it makes. Modes that round what each step gives
  // leave it out.
  bool joins_steps = false;
  // Graphs in text IR where the rule applies, for the random tester. Inputs named c... become
  // constants of random values; an elems clause keeps a value as written.
  std::vector<std::string_view> samples;
  // Graphs that look like it, to which it must not apply.
  std::vector<std::string_view> near_misses = {};
};

// Rules refer to text; what is put together lives as long as they.
std::string_view Kept(std::string text);
// "name: type" and a node, or a name and a constant.
using SampleLines = std::vector<std::pair<std::string, std::string>>;
// The graph of these lines, whose output is %y.
std::string_view SampleOf(const std::string& inputs, const SampleLines& lines);

bool RegisterRules(std::vector<Rule> rules);
std::vector<const Rule*> AllRules();  // sorted by name

// Applies `rules` until nothing changes; how often each one applied is added to `counts` if given.
bool ApplyRules(Graph& g, const std::vector<const Rule*>& rules, const Policy& policy,
                std::map<std::string_view, int>* counts = nullptr);

}  // namespace ge
