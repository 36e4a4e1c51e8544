// Verify: recomputes what a Graph promises and lists every breach. Shares no code with the
// builders.
#include <fmt/format.h>

#include <unordered_set>

#include "ir/graph.h"
#include "ir/opdef.h"

namespace ge {

namespace {

constexpr size_t kMaxFaults = 100;

class Checker {
 public:
  explicit Checker(const Graph& g, std::vector<std::string>& faults) : g_(g), faults_(faults) {}

  void Run() {
    if (!g_.model) return Add("no model");
    CheckValues();
    CheckOrder();
    if (!faults_.empty()) return;  // inference needs a sound structure
    CheckTypes();
    for (NodeId id : g_.order) CheckSubgraphs(g_.node(id));
  }

 private:
  void Add(std::string fault) {
    if (faults_.size() < kMaxFaults)
      faults_.push_back(fmt::format("graph '{}': {}", g_.name, fault));
  }
  bool Exists(ValueId v) const { return v >= 0 && v < static_cast<ValueId>(g_.values.size()); }
  std::string Where(const Node& n) const {
    return fmt::format("node '{}' ({})", n.name, n.op ? n.op->name : "no operator");
  }

  void CheckValues() {
    std::unordered_set<ValueId> inputs;
    for (ValueId v : g_.inputs) {
      if (!Exists(v)) return Add(fmt::format("input {} does not exist", v));
      if (!inputs.insert(v).second)
        Add(fmt::format("value '{}' is an input twice", g_.value(v).name));
      if (g_.value(v).producer != kNone || g_.value(v).constant != kNone)
        Add(fmt::format("input '{}' has a producer or is a constant", g_.value(v).name));
    }
    for (const Value& v : g_.values) {
      if (v.constant != kNone &&
          (v.constant < 0 || v.constant >= static_cast<ConstId>(g_.model->constants.size())))
        Add(fmt::format("value '{}' is constant {}, which does not exist", v.name, v.constant));
      for (const Halo& h : v.halo)
        if (h.axis < 0 || h.axis >= v.type.rank() || h.lo < 0 || h.hi < 0)
          Add(fmt::format("value '{}' has a halo outside of its axes", v.name));
    }
  }

  void CheckOrder() {
    std::vector<char> defined(g_.values.size(), 0), seen(g_.nodes.size(), 0);
    for (ValueId v : g_.inputs)
      if (Exists(v)) defined[v] = 1;
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (g_.values[v].constant != kNone) defined[v] = 1;
    for (NodeId id : g_.order) {
      if (id < 0 || id >= static_cast<NodeId>(g_.nodes.size())) return Add("order names no node");
      const Node& n = g_.node(id);
      if (seen[id]++) Add(Where(n) + " stands twice in the order");
      if (n.dead) Add(Where(n) + " is dead but in the order");
      if (n.op == nullptr) Add(Where(n) + " has no operator");
      for (size_t i = 0; i < n.inputs.size(); ++i) {
        const ValueId v = n.inputs[i];
        if (v != kNone && (!Exists(v) || !defined[v]))
          Add(fmt::format("{} uses '{}' before it is defined", Where(n),
                          Exists(v) ? g_.value(v).name : std::to_string(v)));
      }
      for (ValueId v : n.outputs) Define(v, id, n, defined);
    }
    for (size_t id = 0; id < g_.nodes.size(); ++id)
      if (!g_.nodes[id].dead && !seen[id]) Add(Where(g_.nodes[id]) + " is not in the order");
    for (ValueId v : g_.outputs)
      if (!Exists(v) || !defined[v])
        Add(fmt::format("output '{}' is not defined",
                        Exists(v) ? g_.value(v).name : std::to_string(v)));
  }

  void Define(ValueId v, NodeId id, const Node& n, std::vector<char>& defined) {
    if (v == kNone) return;
    if (!Exists(v)) return Add(fmt::format("{} gives value {}, which does not exist", Where(n), v));
    if (defined[v]) Add(fmt::format("{} defines '{}' again", Where(n), g_.value(v).name));
    if (g_.value(v).producer != id)
      Add(fmt::format("'{}' does not name {} as its producer", g_.value(v).name, Where(n)));
    defined[v] = 1;
  }

  static void CopyNode(const Node& from, Node& to) {
    to.op = from.op;
    to.name = from.name;
    to.inputs = from.inputs;
    to.outputs = from.outputs;
    to.attrs = from.attrs;
    to.fresh = from.fresh;
  }

  // Inference runs on a copy without subgraphs; its checks and symbols leave no trace.
  void CheckTypes() {
    Graph probe;
    probe.name = g_.name;
    probe.model = g_.model;
    probe.values = g_.values;
    probe.nodes.resize(g_.nodes.size());
    for (NodeId id : g_.order) CopyNode(g_.node(id), probe.node(id));
    const auto checks = g_.model->checks;
    for (NodeId id : g_.order) {
      const Node& n = g_.node(id);
      if (!n.subgraphs.empty()) continue;
      if (Status s = Infer(probe, probe.node(id)); !s.ok()) Add(Where(n) + ": " + s.message());
      for (ValueId v : n.outputs) CompareType(n, v, probe);
    }
    g_.model->checks = checks;
  }

  void CompareType(const Node& n, ValueId v, Graph& probe) {
    if (v == kNone) return;
    const Value& held = g_.value(v);
    const Value& inferred = probe.value(v);
    bool same = held.type.dtype == inferred.type.dtype &&
                held.type.rank() == inferred.type.rank() && held.kind == inferred.kind;
    for (int d = 0; same && d < held.type.rank(); ++d) {
      const Expr a = held.type.dims[d], b = inferred.type.dims[d];
      same = !a.IsConst() || !b.IsConst() || a == b;
    }
    if (!same)
      Add(fmt::format("{}: '{}' is {} but inference says {}", Where(n), held.name,
                      ToString(held.type), ToString(inferred.type)));
    probe.value(v) = held;
  }

  void CheckSubgraphs(const Node& n) {
    for (const auto& sub : n.subgraphs) {
      if (sub->model != g_.model) Add(Where(n) + " has a subgraph of another model");
      const size_t fed = n.op->name == "If" ? n.inputs.size() - 1 : n.inputs.size();
      if (sub->inputs.size() != fed)
        Add(fmt::format("{} feeds {} inputs to a subgraph with {}", Where(n), fed,
                        sub->inputs.size()));
      Checker(*sub, faults_).Run();
    }
  }

  const Graph& g_;
  std::vector<std::string>& faults_;
};

}  // namespace

Status Verify(const Graph& g) {
  std::vector<std::string> faults;
  Checker(g, faults).Run();
  if (faults.empty()) return Status();
  std::string text;
  for (const std::string& f : faults) text += (text.empty() ? "" : "\n") + f;
  return Error(Code::kInternal, std::move(text));
}

}  // namespace ge
