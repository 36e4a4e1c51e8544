// rules: applies every registered rule until none applies. A worklist of nodes, rules found by the
// operator of their root: about linear in the nodes and in the rewrites.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "base/check.h"
#include "ir/opdef.h"
#include "opt/facts.h"
#include "opt/pass.h"
#include "opt/pattern.h"
#include "opt/rule.h"

namespace ge {
namespace {

std::map<std::string_view, Rule>& Registry() {
  static std::map<std::string_view, Rule> rules;
  return rules;
}

// Values with more uses than this do not bring their users back to the worklist.
constexpr size_t kManyUses = 16;

class RuleDriver {
 public:
  RuleDriver(Graph& g, const std::vector<const Rule*>& rules, const Policy& policy,
             std::map<std::string_view, int>* counts)
      : g_(g), policy_(policy), uses_(g), counts_(counts) {
    for (const Rule* r : rules) {
      if (policy.disabled.contains(std::string(r->name))) continue;
      if (!texts_.contains(r->pattern)) texts_[r->pattern] = Alternatives(std::string(r->pattern));
      Entry entry{r, {}};
      for (const std::string& text : texts_[r->pattern]) entry.patterns.emplace_back(text);
      const std::string_view root = entry.patterns[0].root();
      by_root_[root].push_back(std::move(entry));
    }
  }

  bool Run() {
    for (NodeId id : uses_.Order()) Push(id);
    // Two rules that undo each other would be a bug of the rules; it shall not hang a compilation.
    int64_t budget = 20 * static_cast<int64_t>(g_.nodes.size()) + 1000;
    bool changed = false;
    while (!queue_.empty() && budget-- > 0) {
      const NodeId id = queue_.front();
      queue_.pop_front();
      queued_[id] = false;
      if (!uses_.Dead(id)) changed |= Visit(id);
    }
    if (!queue_.empty() && policy_.report) policy_.report("rules: gave up before the fixpoint");
    return changed;
  }

 private:
  struct Entry {
    const Rule* rule;
    std::vector<Pattern> patterns;
  };

  void Push(NodeId id) {
    if (static_cast<size_t>(id) >= queued_.size()) queued_.resize(g_.nodes.size(), false);
    if (queued_[id]) return;
    queued_[id] = true;
    queue_.push_back(id);
  }

  void PushAround(ValueId v) {
    if (v == kNone) return;
    if (g_.value(v).producer != kNone) Push(g_.value(v).producer);
    if (uses_.Of(v).size() > kManyUses) return;
    for (const Use& u : uses_.Of(v)) Push(u.node);
  }

  void Report(const Rule& r, NodeId id, std::string_view reason) {
    if (policy_.report) policy_.report(fmt::format("{}: {}: {}", r.name, g_.node(id).name, reason));
  }

  // All nodes that were replaced, in the order in which they ran.
  void ReportApplied(const Rule& r, const std::vector<NodeId>& nodes) {
    if (!policy_.report) return;
    std::string names;
    for (auto n = nodes.rbegin(); n != nodes.rend(); ++n)
      names += (names.empty() ? "" : " + ") + g_.node(*n).name;
    policy_.report(fmt::format("{}: {}: applied", r.name, names));
  }

  bool Visit(NodeId id) {
    auto it = by_root_.find(g_.node(id).op->name);
    if (it == by_root_.end() || !g_.node(id).op->domain.empty()) return false;
    if (g_.node(id).outputs.empty() || g_.node(id).outputs[0] == kNone) return false;
    for (const Entry& e : it->second) {
      if (Apply(e, id)) return true;
    }
    return false;
  }

  bool Apply(const Entry& e, NodeId id) {
    Match match{g_, {}, {}, &policy_};
    std::string miss;
    const bool found = std::any_of(e.patterns.begin(), e.patterns.end(),
                                   [&](const Pattern& p) { return p.At(uses_, id, match, miss); });
    if (!found) {
      if (!miss.empty()) Report(*e.rule, id, miss);
      return false;
    }
    if (e.rule->guard) {
      if (std::string reason = e.rule->guard(match); !reason.empty()) {
        Report(*e.rule, id, reason);
        return false;
      }
    }
    const size_t old_nodes = g_.nodes.size();
    const ValueId old = match[""];
    Patch patch(uses_, match.nodes);
    const ValueId by = e.rule->replace(match, patch);
    if (by == kNone || by == old) return false;
    if (!SameType(old, by)) {
      Report(*e.rule, id, "the shapes are not known to be equal");
      return false;
    }
    patch.Replace(old, by);
    if (!patch.Apply()) return false;
    ReportApplied(*e.rule, match.nodes);
    if (counts_) ++(*counts_)[e.rule->name];
    for (size_t n = old_nodes; n < g_.nodes.size(); ++n) {
      if (!g_.nodes[n].dead) Push(static_cast<NodeId>(n));
    }
    PushAround(by);
    for (const auto& [name, v] : match.values) {
      if (v != old) PushAround(v);
    }
    return true;
  }

  bool SameType(ValueId a, ValueId b) const {
    const Value &x = g_.value(a), &y = g_.value(b);
    if (x.kind != y.kind || x.type.dtype != y.type.dtype || x.type.rank() != y.type.rank())
      return false;
    for (int d = 0; d < x.type.rank(); ++d) {
      if (!ProvablyEq(x.type.dims[d], y.type.dims[d])) return false;
    }
    return true;
  }

  Graph& g_;
  const Policy& policy_;
  UseLists uses_;
  std::map<std::string_view, int>* counts_;
  std::map<std::string_view, std::vector<std::string>> texts_;  // of patterns, which refer to it
  std::unordered_map<std::string_view, std::vector<Entry>> by_root_;
  std::deque<NodeId> queue_;
  std::vector<bool> queued_;
};

bool Run(Graph& g, const Policy& policy, const PassServices&) {
  return ApplyRules(g, AllRules(), policy);
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "rules", .needs = {"folded"}, .gives = {"simplified"}, .run = Run});

}  // namespace

std::string_view Kept(std::string text) {
  static std::deque<std::string> all;
  return all.emplace_back(std::move(text));
}

std::string_view SampleOf(const std::string& inputs, const SampleLines& lines) {
  std::string text = "graph \"g\" (" + inputs + ") -> (%y) {\n";
  for (const auto& [name, node] : lines) {
    const bool constant = node.starts_with("const ");
    const std::string called = " @\"" + name.substr(0, name.find(':')) + "\"";
    text += "  %" + name + " = " + node + (constant ? "" : called) + "\n";
  }
  return Kept(text + "}");
}

bool RegisterRules(std::vector<Rule> rules) {
  for (Rule& r : rules) {
    const std::string_view name = r.name;
    GE_CHECK(Registry().emplace(name, std::move(r)).second,
             "rule registered twice: " + std::string(name));
  }
  return true;
}

std::vector<const Rule*> AllRules() {
  std::vector<const Rule*> all;
  for (const auto& [name, rule] : Registry()) all.push_back(&rule);
  return all;
}

bool ApplyRules(Graph& g, const std::vector<const Rule*>& rules, const Policy& policy,
                std::map<std::string_view, int>* counts) {
  bool changed = false;
  ForEachGraph(g, [&](Graph& sub) { changed |= RuleDriver(sub, rules, policy, counts).Run(); });
  return changed;
}

}  // namespace ge
