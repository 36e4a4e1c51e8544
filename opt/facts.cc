// Questions and repairs that several passes share: see facts.h.
#include "opt/facts.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "abi/convert.h"
#include "ir/opdef.h"

namespace ge {
namespace {

constexpr double kExactIntegers = 0x1p53;

bool SameFacts(const Value& a, const Value& b) {
  return a.type == b.type && a.elems == b.elems && a.kind == b.kind;
}

}  // namespace

std::optional<std::vector<double>> Numbers(const Constant& c) {
  if (c.dtype == DType::kString || BitWidth(c.dtype) == 0 || BitWidth(c.dtype) > 64) return {};
  if (c.dtype == DType::kC64) return {};
  const int64_t n = c.Elements();
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double v = LoadElement<double>(c.dtype, c.bytes.data(), i);
    if (IsInteger(c.dtype) && std::fabs(v) > kExactIntegers) return {};
    values[static_cast<size_t>(i)] = v;
  }
  return values;
}

Constant FromNumbers(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  const auto n = static_cast<int64_t>(values.size());
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(BytesFor(dtype, n)));
  for (int64_t i = 0; i < n; ++i)
    StoreElement(dtype, bytes->data(), i, values[static_cast<size_t>(i)]);
  Constant c;
  c.dtype = dtype;
  c.dims = std::move(dims);
  c.bytes = *bytes;
  c.keep = bytes;
  return c;
}

Constant Taken(const Constant& c, int axis, const std::vector<int64_t>& indices) {
  const auto d = static_cast<size_t>(axis);
  std::vector<int64_t> dims = c.dims;
  const auto own = static_cast<size_t>(dims[d]);
  dims[d] = static_cast<int64_t>(indices.size());
  size_t outer = 1;
  for (size_t i = 0; i < d; ++i) outer *= static_cast<size_t>(dims[i]);
  const size_t inner = c.bytes.size() / (outer * own);  // bytes
  std::vector<std::byte> bytes;
  bytes.reserve(outer * indices.size() * inner);
  for (size_t o = 0; o < outer; ++o) {
    for (int64_t i : indices) {
      const auto from = c.bytes.subspan((o * own + static_cast<size_t>(i)) * inner, inner);
      bytes.insert(bytes.end(), from.begin(), from.end());
    }
  }
  return MakeConstant(c.dtype, std::move(dims), bytes.data());
}

bool AllAre(const Constant& c, double x) {
  if (c.Elements() == 0 || c.dtype == DType::kString || c.dtype == DType::kC64 ||
      c.dtype == DType::kC128) {
    return false;
  }
  for (int64_t i = 0; i < c.Elements(); ++i) {
    const double v = LoadElement<double>(c.dtype, c.bytes.data(), i);
    if (v != x || std::signbit(v) != std::signbit(x)) return false;
  }
  return true;
}

std::optional<double> OneNumber(const Graph& g, ValueId v) {
  const Constant* c = g.ConstantOf(v);
  const auto values = c == nullptr ? std::nullopt : Numbers(*c);
  if (!values || values->size() != 1) return {};
  return (*values)[0];
}

bool IsPlain(const Node& n, std::string_view name) {
  return n.op->domain.empty() && n.op->name == name;
}

bool IsRandom(const Node& n) {
  const std::string& name = n.op->name;
  return name.starts_with("Random") || name == "Bernoulli" || name == "Multinomial" ||
         name == "Dropout" || name == "ge.Random";
}

bool InferAgain(Graph& g, const std::vector<ValueId>& changed) {
  if (changed.empty()) return false;
  std::vector<bool> dirty(g.values.size(), false);
  for (ValueId v : changed) dirty[v] = true;
  bool any = false;
  for (NodeId id : g.order) {
    Node& n = g.node(id);
    bool affected = false;
    for (ValueId v : n.inputs) affected = affected || (v != kNone && dirty[v]);
    if (!affected) continue;
    std::vector<Value> before;
    for (ValueId v : n.outputs) before.push_back(v == kNone ? Value() : g.value(v));
    const bool ok = Infer(g, n).ok();
    for (size_t o = 0; o < n.outputs.size(); ++o) {
      const ValueId v = n.outputs[o];
      if (v == kNone) continue;
      if (!ok) {
        g.value(v).type = before[o].type;
        g.value(v).elems = before[o].elems;
        continue;
      }
      g.value(v).type.layout = before[o].type.layout;
      if (!g.value(v).elems && before[o].elems) g.value(v).elems = before[o].elems;
      if (!SameFacts(before[o], g.value(v))) dirty[v] = any = true;
    }
  }
  return any;
}

void ForEachGraph(Graph& g, const std::function<void(Graph&)>& f) {
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (g.nodes[i].dead) continue;
    for (size_t s = 0; s < g.nodes[i].subgraphs.size(); ++s)
      ForEachGraph(*g.nodes[i].subgraphs[s], f);
  }
  f(g);
}

void MakeNamesUnique(Graph& g) {
  std::unordered_map<std::string, int> seen;
  for (ValueId v : g.inputs) ++seen[g.value(v).name];
  for (ValueId v : g.outputs) {
    if (g.value(v).producer != kNone) ++seen[g.value(v).name];
  }
  auto rename = [&](ValueId v) {
    if (std::find(g.inputs.begin(), g.inputs.end(), v) != g.inputs.end()) return;
    if (std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end()) return;
    const std::string base = g.value(v).name;
    for (int i = 1; !seen.emplace(g.value(v).name, 1).second; ++i) {
      g.value(v).name = base + "." + std::to_string(i);
    }
  };
  std::vector<bool> done(g.values.size(), false);
  for (NodeId id : g.order) {
    for (const auto* list : {&g.node(id).inputs, &g.node(id).outputs}) {
      for (ValueId v : *list) {
        if (v == kNone || done[v]) continue;
        done[v] = true;
        rename(v);
      }
    }
  }
}

}  // namespace ge
