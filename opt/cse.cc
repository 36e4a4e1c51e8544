// cse: common subexpressions. Nodes of one operator with equal attributes and inputs become one,
// and so do equal small constants.
//
//   %a = Relu(%x)  %b = Relu(%x)  %y = Add(%a, %b)     ->  %a = Relu(%x)  %y = Add(%a, %a)
//
// Not merged: random numbers, nodes with subgraphs, nodes that make a symbol of their own (the
// symbol of the second would lose the place where it is bound).
#include <bit>
#include <unordered_map>

#include "ir/opdef.h"
#include "ir/patch.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

constexpr size_t kSmallConstant = 4096;  // bytes

void Append(std::string& key, const void* p, size_t n) {
  key.append(static_cast<const char*>(p), n);
}
template <class T>
void AppendPod(std::string& key, T v) {
  Append(key, &v, sizeof v);
}

void AppendConstant(std::string& key, const Constant& c) {
  AppendPod(key, c.dtype);
  AppendPod(key, c.dims.size());
  Append(key, c.dims.data(), c.dims.size() * sizeof(int64_t));
  Append(key, c.bytes.data(), c.bytes.size());
  for (const std::string& s : c.strings) {
    AppendPod(key, s.size());
    key += s;
  }
}

// Equal keys mean equal attributes; floats are compared by bits.
void AppendAttr(std::string& key, const Attr& attr) {
  AppendPod(key, attr.index());
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_arithmetic_v<T>) {
          AppendPod(key, v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          AppendPod(key, v.size());
          key += v;
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const Constant>>) {
          AppendConstant(key, *v);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          AppendPod(key, v.size());
          for (const std::string& s : v) {
            AppendPod(key, s.size());
            key += s;
          }
        } else {
          AppendPod(key, v.size());
          Append(key, v.data(), v.size() * sizeof(v[0]));
        }
      },
      attr);
}

std::string KeyOf(const Node& n) {
  std::string key;
  AppendPod(key, n.op);
  for (ValueId v : n.inputs) AppendPod(key, v);
  AppendPod(key, int32_t{-2});
  for (ValueId v : n.outputs) AppendPod(key, v != kNone);
  for (const auto& [name, attr] : n.attrs) {
    AppendPod(key, name.size());
    key += name;
    AppendAttr(key, attr);
  }
  return key;
}

// Every operand that is a small constant becomes the first constant with that content.
bool MergeConstants(UseLists& uses) {
  Graph& g = uses.graph();
  std::unordered_map<std::string, ValueId> first;
  std::vector<ValueId> same(g.values.size(), kNone);
  bool changed = false;
  for (NodeId id : uses.Order()) {
    for (size_t i = 0; i < g.node(id).inputs.size(); ++i) {
      const ValueId v = g.node(id).inputs[i];
      const Constant* c = v == kNone ? nullptr : g.ConstantOf(v);
      if (!c || c->bytes.size() > kSmallConstant) continue;
      if (same[v] == kNone) {
        std::string key;
        AppendConstant(key, *c);
        same[v] = first.try_emplace(std::move(key), v).first->second;
      }
      if (same[v] == v) continue;
      uses.SetInput(id, static_cast<int>(i), same[v]);
      changed = true;
    }
  }
  return changed;
}

bool RunOn(Graph& g) {
  UseLists uses(g);
  bool changed = MergeConstants(uses);
  std::unordered_map<std::string, NodeId> first;
  for (NodeId id : uses.Order()) {
    const Node& n = g.node(id);
    if (n.dead || !n.subgraphs.empty() || !n.fresh.empty() || IsRandom(n)) continue;
    auto [it, fresh] = first.try_emplace(KeyOf(n), id);
    if (fresh) continue;
    const NodeId other = it->second;
    Patch p(uses, {id});
    for (size_t o = 0; o < n.outputs.size(); ++o) {
      if (n.outputs[o] != kNone) p.Replace(n.outputs[o], g.node(other).outputs[o]);
    }
    if (!p.Apply()) continue;
    changed = true;
    // What is kept stands for both.
    for (const std::string& source : g.node(id).origin) {
      auto& origin = g.node(other).origin;
      auto at = std::lower_bound(origin.begin(), origin.end(), source);
      if (at == origin.end() || *at != source) origin.insert(at, source);
    }
  }
  return changed;
}

bool Run(Graph& g, const Policy&, const PassServices&) {
  bool changed = false;
  ForEachGraph(g, [&](Graph& sub) { changed |= RunOn(sub); });
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "cse", .needs = {}, .gives = {"unique"}, .run = Run});

}  // namespace
}  // namespace ge
