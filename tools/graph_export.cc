// See graph_export.h. ONNX's messages are written field by field; the numbers are those of
// onnx.proto. What a subgraph captures, which is an operand here, is its outer name there.
#include "tools/graph_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "import/onnx/versions.h"
#include "import/onnx/wire_writer.h"
#include "ir/opdef.h"
#include "om/fields.h"
#include "om/live.h"
#include "om/size.h"

namespace ge {
namespace {

using onnx::wire::Flt;
using onnx::wire::Int;
using onnx::wire::Msg;

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;  // of a protobuf message

// The operands of a control node that its subgraphs capture.
size_t Captures(const Node& n) {
  if (n.subgraphs.empty()) return 0;
  const size_t all = n.op->name == "If" ? n.inputs.size() - 1 : 0;
  return static_cast<size_t>(AttrOr<int64_t>(n, "captures", static_cast<int64_t>(all)));
}

class OnnxWriter {
 public:
  std::string Model(const Graph& g) {
    const std::string graph = GraphBody(g, {});
    std::string out = Int(1, 10) + Msg(2, "ge") + Msg(7, graph);
    for (const std::string& domain : domains_)
      out += onnx::wire::Opset(domain.empty() ? onnx::kNewestOpset : 1, domain);
    return out;
  }

 private:
  using Names = std::unordered_map<ValueId, std::string>;

  std::string NameOf(const Graph& g, ValueId v, Names& names) {
    if (v == kNone) return "";
    const auto known = names.find(v);
    if (known != names.end()) return known->second;
    const std::string& wanted = g.value(v).name;
    std::string name = wanted.empty() ? "v" : wanted;
    for (int k = 1; !taken_.insert(name).second; ++k)
      name = fmt::format("{}.{}", wanted.empty() ? "v" : wanted, k);
    return names.emplace(v, name).first->second;
  }

  static std::string TypeBody(const Value& v) {
    std::string dims;
    for (const Expr& d : v.type.dims)
      dims += Msg(1, d.IsConst() ? Int(1, d.value()) : Msg(2, ToString(d)));
    const std::string tensor = Msg(1, Int(1, static_cast<int64_t>(v.type.dtype)) + Msg(2, dims));
    if (v.kind == ValueKind::kSequence) return Msg(4, Msg(1, tensor));
    return v.kind == ValueKind::kOptional ? Msg(9, Msg(1, tensor)) : tensor;
  }
  std::string Info(const Graph& g, ValueId v, Names& names) {
    return Msg(1, NameOf(g, v, names)) + Msg(2, TypeBody(g.value(v)));
  }

  static std::string TensorBody(const Constant& c, const std::string& name) {
    std::string out;
    for (int64_t d : c.dims) out += Int(1, d);
    out += Int(2, static_cast<int64_t>(c.dtype));
    for (const std::string& s : c.strings) out += Msg(6, s);
    if (!name.empty()) out += Msg(8, name);
    const auto* bytes = reinterpret_cast<const char*>(c.bytes.data());
    return c.strings.empty() ? out + Msg(9, {bytes, c.bytes.size()}) : out;
  }

  static std::string AttrBody(const std::string& name, const Attr& attr) {
    std::string out = Msg(1, name);
    const auto typed = [&](int type) { return out += Int(20, type); };
    if (const auto* i = std::get_if<int64_t>(&attr)) return typed(2) + Int(3, *i);
    if (const auto* f = std::get_if<float>(&attr)) return typed(1) + Flt(2, *f);
    if (const auto* s = std::get_if<std::string>(&attr)) return typed(3) + Msg(4, *s);
    if (const auto* c = std::get_if<std::shared_ptr<const Constant>>(&attr))
      return typed(4) + Msg(5, TensorBody(**c, ""));
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attr)) {
      typed(7);
      for (int64_t i : *list) out += Int(8, i);
    } else if (const auto* list = std::get_if<std::vector<float>>(&attr)) {
      typed(6);
      for (float f : *list) out += Flt(7, f);
    } else if (const auto* list = std::get_if<std::vector<std::string>>(&attr)) {
      typed(8);
      for (const std::string& s : *list) out += Msg(9, s);
    }
    return out;
  }

  std::string NodeBody(const Graph& g, const Node& n, Names& names) {
    const size_t captures = Captures(n), own = n.inputs.size() - captures;
    std::string out;
    for (size_t i = 0; i < own; ++i) out += Msg(1, NameOf(g, n.inputs[i], names));
    for (ValueId v : n.outputs) out += Msg(2, NameOf(g, v, names));
    out += Msg(3, n.name) + Msg(4, n.op->name);
    for (const auto& [name, attr] : n.attrs)
      if (name != "captures") out += Msg(5, AttrBody(name, attr));
    std::vector<std::string> captured;
    for (size_t i = own; i < n.inputs.size(); ++i)
      captured.push_back(NameOf(g, n.inputs[i], names));
    static constexpr const char* kBranches[] = {"then_branch", "else_branch"};
    for (size_t k = 0; k < n.subgraphs.size(); ++k) {
      const char* name = n.op->name == "If" ? kBranches[k] : "body";
      out += Msg(5, onnx::wire::AGraph(name, GraphBody(*n.subgraphs[k], captured)));
    }
    domains_.insert(n.op->domain);
    return n.op->domain.empty() ? out : out + Msg(7, n.op->domain);
  }

  std::string GraphBody(const Graph& g, const std::vector<std::string>& captured) {
    Names names;
    const size_t own = g.inputs.size() - captured.size();
    for (size_t i = own; i < g.inputs.size(); ++i) names[g.inputs[i]] = captured[i - own];
    std::string out = Msg(2, g.name.empty() ? "graph" : g.name);
    for (size_t i = 0; i < own; ++i) out += Msg(11, Info(g, g.inputs[i], names));
    std::set<ValueId> constants;
    const auto use = [&](ValueId v) {
      if (!g.IsConstant(v) || !constants.insert(v).second) return;
      out += Msg(5, TensorBody(*g.ConstantOf(v), NameOf(g, v, names)));
    };
    for (NodeId id : g.order) {
      const Node& n = g.node(id);
      for (ValueId v : n.inputs) use(v);
      out += Msg(1, NodeBody(g, n, names));
      for (ValueId v : n.outputs) {
        const bool shown =
            v != kNone && std::find(g.outputs.begin(), g.outputs.end(), v) == g.outputs.end();
        if (shown && g.value(v).kind != ValueKind::kOpaque) out += Msg(13, Info(g, v, names));
      }
    }
    for (ValueId v : g.outputs) {
      use(v);
      out += Msg(12, Info(g, v, names));
    }
    return out;
  }

  std::set<std::string> taken_, domains_ = {""};
};

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

// Nodes of a graph and of its subgraphs; `made` names the DOT node that makes a value.
void DotGraph(const Graph& g, const std::string& prefix, std::map<ValueId, std::string> made,
              std::string& out) {
  const auto point = [&](ValueId v, const char* what) {
    if (v == kNone || made.contains(v)) return;
    made[v] = fmt::format("{}v{}", prefix, v);
    out += fmt::format(
        "{} [shape=ellipse label={}];\n", made[v],
        Quoted(fmt::format("{}{}\n{}", what, g.value(v).name, ToString(g.value(v).type))));
  };
  for (ValueId v : g.inputs) point(v, "");
  for (NodeId id : g.order) {
    const Node& n = g.node(id);
    const std::string self = fmt::format("{}n{}", prefix, id);
    std::string label = n.op->name + "\n" + n.name;
    for (ValueId v : n.outputs)
      if (v != kNone) label += "\n" + ToString(g.value(v).type);
    out += fmt::format("{} [label={}];\n", self, Quoted(label));
    for (ValueId v : n.inputs) {
      if (v == kNone || g.IsConstant(v)) continue;
      point(v, "");
      out += fmt::format("{} -> {};\n", made[v], self);
    }
    for (ValueId v : n.outputs)
      if (v != kNone) made[v] = self;
    const size_t captures = Captures(n);
    for (size_t k = 0; k < n.subgraphs.size(); ++k) {
      const Graph& sub = *n.subgraphs[k];
      std::map<ValueId, std::string> inner;
      for (size_t i = 0; i < captures && i < sub.inputs.size(); ++i) {
        const ValueId from = n.inputs[n.inputs.size() - captures + i];
        if (made.contains(from)) inner[sub.inputs[sub.inputs.size() - captures + i]] = made[from];
      }
      out +=
          fmt::format("subgraph {} {{\nlabel={};\n", Quoted(fmt::format("cluster_{}_{}", self, k)),
                      Quoted(n.name + " " + sub.name));
      DotGraph(sub, fmt::format("{}g{}_", self, k), std::move(inner), out);
      out += "}\n";
    }
  }
  for (size_t o = 0; o < g.outputs.size(); ++o) {
    const ValueId v = g.outputs[o];
    point(v, "");
    out += fmt::format("{0}out{1} [shape=ellipse label={2}];\n{3} -> {0}out{1};\n", prefix, o,
                       Quoted(g.value(v).name), made[v]);
  }
}

constexpr const char* kDotHead =
    "digraph {} {{\nnode [shape=box style=rounded fontname=\"sans-serif\" fontsize=10];\n";

}  // namespace

Result<std::string> OnnxModel(const Graph& g) {
  std::string model = OnnxWriter().Model(g);
  if (model.size() > kMostBytes)
    return Unsupported("an ONNX file of more than 2 GB needs external data, which is not written");
  return model;
}

std::string DotText(const Graph& g) {
  std::string out = fmt::format(fmt::runtime(kDotHead), Quoted(g.name));
  DotGraph(g, "", {}, out);
  return out + "}\n";
}

namespace {

// What tasks have written when a task begins, by any path that leads to it.
class Written {
 public:
  explicit Written(const om::Plan& plan)
      : plan_(plan), unknown_(plan.symbols.size(), om::kNoSize), before_(plan.tasks.size() + 1) {
    before_[0].emplace();
    // Again as long as a jump backward brings something new.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t t = 0; t < plan.tasks.size(); ++t) changed |= Step(t);
    }
  }

  // The tasks that made what `task` finds in a buffer; behind the last task: what is left.
  std::set<size_t> Makers(size_t task, int32_t buffer) const {
    std::set<size_t> makers;
    if (before_[task])
      for (const auto& [maker, what, read] : *before_[task])
        if (Meet(what, buffer)) makers.insert(maker);
    return makers;
  }

 private:
  using State = std::set<std::tuple<size_t, int32_t, bool>>;  // task, buffer, has it been read?

  // True if a task that comes earlier in the order begins with more than was known.
  bool Step(size_t t) {
    if (!before_[t]) return false;
    const om::Task& task = plan_.tasks[t];
    State state = *before_[t];
    for (const int32_t b : task.args)
      if (b >= 0 && !Writes(task, b)) Read(b, &state);
    for (const int32_t b : task.outs)
      if (b >= 0) Overwrite(t, b, &state);
    std::erase_if(state, [&](const auto& made) {
      const om::Buffer& root = plan_.buffers[static_cast<size_t>(Root(std::get<1>(made)))];
      const bool planned = root.kind == om::BufferKind::kArena && root.last >= 0;
      return planned && root.last <= static_cast<int32_t>(t);
    });
    const bool jumps = task.kind == om::TaskKind::kJump || task.kind == om::TaskKind::kJumpUnless;
    const bool more = jumps && Reach(static_cast<size_t>(task.target), state);
    if (task.kind != om::TaskKind::kJump) Reach(t + 1, state);
    return more && task.target <= static_cast<int32_t>(t);
  }

  bool Reach(size_t t, const State& state) {
    if (!before_[t]) {
      before_[t] = state;
      return true;
    }
    const size_t known = before_[t]->size();
    before_[t]->insert(state.begin(), state.end());
    return before_[t]->size() > known;
  }

  void Read(int32_t b, State* state) const {
    State now;
    for (const auto& [maker, what, read] : *state) now.emplace(maker, what, read || Meet(what, b));
    *state = std::move(now);
  }

  // Several tasks may make one value, each a part of it: what nobody has read yet stays.
  void Overwrite(size_t t, int32_t b, State* state) const {
    std::erase_if(*state, [&](const auto& made) {
      const auto& [maker, what, read] = made;
      return Covers(b, what) && (read || what != b);
    });
    state->emplace(t, b, false);
  }

 public:
  // A result is an argument of its kernel too.
  static bool Writes(const om::Task& task, int32_t b) {
    return std::find(task.outs.begin(), task.outs.end(), b) != task.outs.end();
  }

 private:
  int32_t Root(int32_t b) const { return om::RootOf(plan_, b); }
  // Bytes of the root; an end before the start where they are not known.
  std::pair<int64_t, int64_t> Range(int32_t b) const {
    const om::Buffer& buffer = plan_.buffers[static_cast<size_t>(b)];
    const auto size = [&](om::SizeRef s, int64_t none) {
      return s < 0 ? none : om::EvalSize(plan_, s, unknown_);
    };
    const int64_t from = size(buffer.alias_offset, 0), bytes = size(buffer.bytes, om::kNoSize);
    if (from < 0 || bytes < 0) return {0, -1};
    return {from, from + bytes};
  }
  bool Meet(int32_t a, int32_t b) const {
    if (a == b || Root(a) != Root(b)) return a == b;
    const auto [a0, a1] = Range(a);
    const auto [b0, b1] = Range(b);
    return a1 < a0 || b1 < b0 || (a0 < b1 && b0 < a1);
  }
  bool Covers(int32_t a, int32_t b) const {
    if (a == b || Root(a) != Root(b)) return a == b;
    const auto [a0, a1] = Range(a);
    const auto [b0, b1] = Range(b);
    return Root(b) == a || (a0 <= a1 && b0 <= b1 && a0 <= b0 && b1 <= a1);
  }

  const om::Plan& plan_;
  const std::vector<int64_t> unknown_;
  std::vector<std::optional<State>> before_;
};

}  // namespace

std::string DotText(const om::Plan& plan) {
  std::string out = fmt::format(fmt::runtime(kDotHead), Quoted(plan.model_name));
  const Written written(plan);
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    out += fmt::format("i{} [shape=ellipse label={}];\n", i, Quoted(plan.inputs[i].name));
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    const om::Task& task = plan.tasks[t];
    const std::string lane = task.lane < 0 ? "" : fmt::format("\nstream {}", task.lane);
    out += fmt::format(
        "t{} [label={}];\n", t,
        Quoted(fmt::format("{} {}\n{}{}", t, om::kTaskKinds[static_cast<size_t>(task.kind)],
                           task.name, lane)));
    std::set<std::string> edges;
    for (int32_t b : task.args) {
      if (b < 0 || Written::Writes(task, b)) continue;
      const om::Buffer& buffer = plan.buffers[static_cast<size_t>(b)];
      for (const size_t from : written.Makers(t, b))
        edges.insert(fmt::format("t{} -> t{} [label={}];\n", from, t, Quoted(buffer.name)));
      if (buffer.kind == om::BufferKind::kInput)
        edges.insert(fmt::format("i{} -> t{};\n", buffer.index, t));
    }
    for (int32_t w : task.waits) edges.insert(fmt::format("t{} -> t{} [style=dashed];\n", w, t));
    if (task.target >= 0 && static_cast<size_t>(task.target) < plan.tasks.size())
      edges.insert(fmt::format("t{} -> t{} [style=dotted];\n", t, task.target));
    for (const std::string& edge : edges) out += edge;
  }
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    out += fmt::format("o{} [shape=ellipse label={}];\n", o, Quoted(plan.outputs[o].name));
    for (const size_t from : written.Makers(plan.tasks.size(), plan.outputs[o].buffer))
      out += fmt::format("t{} -> o{};\n", from, o);
  }
  return out + "}\n";
}

}  // namespace ge
