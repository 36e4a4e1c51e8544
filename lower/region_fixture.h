// For tests: graphs of text run region by region, with inputs from a formula and poisoned buffers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "abi/convert.h"
#include "lower/interpret_region.h"
#include "lower/lower.h"

namespace ge {

// A chip with vectors of this many bytes; with 64, one that has masks and 32 registers.
inline SocSpec VectorSoc(int vector_bytes) {
  SocSpec soc;
  soc.vector_bytes = vector_bytes;
  soc.vector_registers = vector_bytes == 64 ? 32 : 16;
  soc.masks = vector_bytes == 64;
  return soc;
}

// The whole graph as one region, anchored at its last node with an engine of its own.
inline Region WholeGraph(const Graph& g) {
  Region r;
  r.name = "whole";
  r.nodes = g.order;
  for (NodeId n : g.order)
    if (g.node(n).op->lower) r.anchor = n;
  for (size_t v = 0; v < g.values.size(); ++v)
    if (g.value(static_cast<ValueId>(v)).producer == kNone)
      r.inputs.push_back(static_cast<ValueId>(v));
  r.outputs = g.outputs;
  return r;
}

// Turns graph inputs whose name begins with 'w' into constants; store(type, data, i) writes their
// element i.
template <class Store>
void MakeWeights(Graph& g, const Store& store) {
  std::vector<ValueId> inputs;
  for (ValueId v : g.inputs) {
    if (g.value(v).name[0] != 'w') {
      inputs.push_back(v);
      continue;
    }
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (Expr d : g.value(v).type.dims) dims.push_back(d.value()), count *= d.value();
    const DType type = g.value(v).type.dtype;
    std::vector<std::byte> data(static_cast<size_t>(BytesFor(type, count)));
    for (int64_t i = 0; i < count; ++i) store(type, data.data(), i);
    g.model->constants.push_back(MakeConstant(type, dims, data.data()));
    g.value(v).constant = static_cast<ConstId>(g.model->constants.size()) - 1;
  }
  g.inputs = inputs;
}

// Storage of every value of a graph, and values for its symbols.
struct GraphRun {
  const Graph& g;
  std::map<std::string, int64_t> symbols;
  std::map<ValueId, std::vector<std::byte>> storage;

  GraphRun(const Graph& graph, std::map<std::string, int64_t> sizes = {})
      : g(graph), symbols(std::move(sizes)) {}

  std::optional<int64_t> Symbol(Expr e) const {
    auto it = symbols.find(ToString(e));
    return it == symbols.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }
  int64_t Size(Expr e) const {
    return *Evaluate(e, [&](Expr s) { return Symbol(s); });
  }
  View ViewOf(ValueId v) const {
    return DenseView(g.value(v).type.layout, g.value(v).type.dims, g.value(v).halo);
  }
  // Storage filled with NaN (0xFF bytes) on first use; constants keep their bytes.
  void* Buffer(ValueId v) {
    if (const Constant* c = g.ConstantOf(v)) return const_cast<std::byte*>(c->bytes.data());
    auto& bytes = storage[v];
    if (bytes.empty())
      bytes.assign(BytesFor(g.value(v).type.dtype, Size(ViewOf(v).Elements())) + 64,
                   std::byte{0xFF});
    return bytes.data();
  }
  std::vector<std::vector<int64_t>> Indices(ValueId v) const {
    std::vector<std::vector<int64_t>> all = {{}};
    for (Expr dim : g.value(v).type.dims) {
      std::vector<std::vector<int64_t>> next;
      for (const auto& head : all)
        for (int64_t i = 0; i < Size(dim); ++i) {
          next.push_back(head);
          next.back().push_back(i);
        }
      all = std::move(next);
    }
    return all;
  }
  float& F32(ValueId v, const std::vector<int64_t>& idx) {
    std::vector<Expr> index(idx.begin(), idx.end());
    return static_cast<float*>(Buffer(v))[Size(ViewOf(v).Offset(index))];
  }
  // A float input with small exact values; halos and pad lanes as a producer leaves them: zero.
  void FillInput(ValueId v, int seed) {
    Buffer(v);
    std::memset(storage[v].data(), 0, storage[v].size() - 64);
    for (const auto& idx : Indices(v)) {
      int64_t h = seed;
      for (int64_t i : idx) h = h * 31 + i;
      const float x = static_cast<float>((h * 7 % 37) - 18) / 4;
      std::vector<Expr> index(idx.begin(), idx.end());
      StoreElement<float>(g.value(v).type.dtype, Buffer(v), Size(ViewOf(v).Offset(index)), x);
    }
  }
  void Run(const Region& region, const SocSpec& soc, const Policy& policy, int parts = 1) {
    Lowered lowered = LowerRegion(g, region, soc, policy);
    InterpretLowered(g, lowered,
                     {[&](ValueId v) { return Buffer(v); }, [&](Expr s) { return Symbol(s); }},
                     parts);
  }
  // Dense values in logical order.
  std::vector<float> Values(ValueId v) {
    std::vector<float> out;
    for (const auto& idx : Indices(v)) out.push_back(F32(v, idx));
    return out;
  }
  // Every element of the storage that is no logical element is zero.
  void ExpectZeroBorders(ValueId v) {
    std::vector<char> logical(Size(ViewOf(v).Elements()), 0);
    for (const auto& idx : Indices(v)) {
      std::vector<Expr> index(idx.begin(), idx.end());
      logical[Size(ViewOf(v).Offset(index))] = 1;
    }
    const float* data = static_cast<const float*>(Buffer(v));
    for (size_t i = 0; i < logical.size(); ++i) {
      if (logical[i]) continue;
      ASSERT_EQ(data[i], 0) << "border element " << i << " of " << g.value(v).name;
    }
    // Nothing was written past the end.
    for (size_t i = storage[v].size() - 64; i < storage[v].size(); ++i)
      ASSERT_EQ(storage[v][i], std::byte{0xFF});
  }
};

}  // namespace ge
