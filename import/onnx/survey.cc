// The walk over all nodes, into subgraphs and called functions.
#include "import/onnx/survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "import/onnx/versions.h"
#include "ir/opdef.h"

namespace ge::onnx {

namespace {

constexpr size_t kMaxNamed = 20;  // domains without an operator set

std::string Key(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}\n{}\n{}", PlainDomain(domain), name, overload);
}

class Walk {
 public:
  Walk(const ModelProto& model, const Functions& functions)
      : model_(model), functions_(functions) {}

  Result<Unknown> Run() {
    GE_ASSIGN(const Opsets opsets, ReadOpsets(model_.opsets));
    GE_TRY(Nodes(model_.graph.nodes, opsets));
    if (!unimported_.empty())
      return Invalid(fmt::format("no operator set imported for {}", fmt::join(unimported_, "; ")));
    return std::move(unknown_);
  }

 private:
  Status Nodes(const std::vector<NodeProto>& nodes, const Opsets& opsets) {
    for (const NodeProto& n : nodes) {
      GE_TRY(OneNode(n, opsets));
      for (const AttrProto& a : n.attrs)
        if (a.graph) GE_TRY(Nodes(a.graph->nodes, opsets));
    }
    return Status();
  }

  Status OneNode(const NodeProto& n, const Opsets& opsets) {
    const std::string_view domain = PlainDomain(n.domain);
    const auto opset = opsets.find(domain);
    if (opset == opsets.end()) {
      if (unimported_.size() < kMaxNamed)
        unimported_.push_back(fmt::format("domain '{}' of {}", domain, Describe(n)));
      return Status();
    }
    if (const FunctionProto* f = functions_.Find(n)) return Call(*f);
    const std::string_view name = domain.empty() ? NewestName(n.op_type) : n.op_type;
    // Built by the importer itself.
    if (domain.empty() && (name == "Constant" || name == "SequenceMap")) return Status();
    if (domain == "ai.onnx.preview" && name == "FlexAttention") return Status();
    if (domain == "ai.onnx.preview.training" && name == "Gradient") return Status();
    if (FindOp(domain, name) != nullptr) return Status();
    unknown_.nodes.insert(&n);
    NodeFault fault;
    fault.kind = "operator";
    fault.node = NameOf(n);
    fault.domain = domain;
    fault.op = n.op_type;
    fault.opset = opset->second;
    fault.message = fmt::format("{}: there is no operator {} in opset {} of {}", Describe(n),
                                n.op_type, opset->second, domain.empty() ? "ai.onnx" : domain);
    unknown_.faults.push_back(std::move(fault));
    return Status();
  }

  Status Call(const FunctionProto& f) {
    const auto at = std::find(calls_.begin(), calls_.end(), &f);
    if (at != calls_.end()) {
      std::vector<std::string_view> cycle;
      for (auto it = at; it != calls_.end(); ++it) cycle.push_back((*it)->name);
      cycle.push_back(f.name);
      return Invalid(
          fmt::format("functions call each other in a cycle: {}", fmt::join(cycle, " -> ")));
    }
    if (calls_.size() >= 256)
      return Error(Code::kResourceExhausted, "functions nested deeper than 256 calls");
    if (!visited_.insert(&f).second) return Status();
    calls_.push_back(&f);
    Result<Opsets> opsets = ReadOpsets(f.opsets);
    const std::string where = fmt::format("function '{}'", f.name);
    if (!opsets.ok()) return std::move(opsets).In(where).status();
    GE_TRY(Nodes(f.nodes, *opsets).In(where));
    calls_.pop_back();
    return Status();
  }

  const ModelProto& model_;
  const Functions& functions_;
  Unknown unknown_;
  std::vector<std::string> unimported_;
  std::vector<const FunctionProto*> calls_;
  std::set<const FunctionProto*> visited_;
};

}  // namespace

std::string_view PlainDomain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

Result<Opsets> ReadOpsets(const std::vector<OpsetProto>& list) {
  Opsets opsets;
  for (const OpsetProto& o : list) opsets[std::string(PlainDomain(o.domain))] = o.version;
  if (auto it = opsets.find("");
      it != opsets.end() && (it->second < 1 || it->second > kNewestOpset))
    return Unsupported(
        fmt::format("opset {} of ai.onnx given, 1 to {} supported", it->second, kNewestOpset));
  return opsets;
}

Functions::Functions(const ModelProto& model) {
  for (const FunctionProto& f : model.functions)
    by_key_.emplace(Key(f.domain, f.name, f.overload), &f);
}

const FunctionProto* Functions::Find(const NodeProto& call) const {
  if (by_key_.empty()) return nullptr;
  const auto it = by_key_.find(Key(call.domain, call.op_type, call.overload));
  return it == by_key_.end() ? nullptr : it->second;
}

Result<Unknown> Survey(const ModelProto& model, const Functions& functions) {
  return Walk(model, functions).Run();
}

std::string_view NameOf(const NodeProto& n) {
  return n.name.empty() && !n.outputs.empty() ? n.outputs[0] : n.name;
}

std::string Describe(const NodeProto& n) {
  return fmt::format("node '{}' ({})", NameOf(n), n.op_type);
}

}  // namespace ge::onnx
