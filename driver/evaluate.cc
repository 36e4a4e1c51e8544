// One node becomes one region, lowered as at opt_level 0, and its kernels run on the constants.

#include "driver/evaluate.h"

#include <algorithm>
#include <cstring>

#include "base/fp_state.h"
#include "driver/kernel_runner.h"
#include "ir/host_attrs.h"
#include "ir/opdef.h"
#include "lower/lower.h"
#include "rt/host_kernel.h"

namespace ge {
namespace {

std::optional<std::vector<int64_t>> StaticDims(const TensorType& t) {
  std::vector<int64_t> dims;
  for (const Expr& d : t.dims) {
    if (!d.IsConst()) return std::nullopt;
    dims.push_back(d.value());
  }
  return dims;
}

// Uninitialised constants of the node's output types; empty if one is not static.
struct Outputs {
  std::vector<Constant> constants;
  std::vector<std::byte*> data;
};
std::optional<Outputs> AllocateOutputs(const Graph& g, const Node& n) {
  Outputs out;
  for (ValueId v : n.outputs) {
    if (v == kNone) {
      out.constants.emplace_back();
      out.data.push_back(nullptr);
      continue;
    }
    const Value& value = g.value(v);
    auto dims = StaticDims(value.type);
    if (!dims || value.kind != ValueKind::kTensor || value.type.dtype == DType::kString)
      return std::nullopt;
    Constant c;
    c.dtype = value.type.dtype;
    c.dims = *dims;
    const int64_t bytes = BytesFor(c.dtype, c.Elements());
    auto storage = std::make_shared<std::vector<std::byte>>(std::max<int64_t>(bytes, 1));
    c.bytes = std::span<const std::byte>(storage->data(), bytes);
    out.data.push_back(storage->data());
    c.keep = storage;
    out.constants.push_back(std::move(c));
  }
  return out;
}

std::vector<Constant> EvaluateHost(const Graph& g, const Node& n) {
  const rt::HostFn fn = rt::FindHost(n.op->host);
  auto outputs = AllocateOutputs(g, n);
  if (!fn || !outputs) return {};
  std::vector<rt::HostTensor> inputs;
  for (ValueId v : n.inputs) {
    rt::HostTensor t;
    if (v != kNone) {
      const Constant& c = *g.ConstantOf(v);
      if (c.dtype == DType::kString) return {};
      t.dtype = static_cast<uint8_t>(c.dtype);
      t.dims = c.dims;
      t.data = c.bytes.data();
      t.bytes = static_cast<int64_t>(c.bytes.size());
    }
    inputs.push_back(t);
  }
  std::vector<rt::HostOutput> results(n.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Constant& c = outputs->constants[i];
    results[i] = {.dtype = static_cast<uint8_t>(c.dtype),
                  .dims = c.dims,
                  .data = outputs->data[i],
                  .bytes = static_cast<int64_t>(c.bytes.size())};
  }
  const rt::HostAttrs attrs(EncodeHostAttrs(n));
  std::vector<int64_t> sizes;
  rt::HostCall call{attrs, inputs, results, sizes};
  if (!fn(call).ok()) return {};
  return std::move(outputs->constants);
}

std::vector<Constant> EvaluateKernels(const Graph& g, const Node& n) {
  auto outputs = AllocateOutputs(g, n);
  if (!outputs) return {};
  Region region;
  region.name = n.name;
  region.nodes = {static_cast<NodeId>(&n - g.nodes.data())};
  if (n.op->lower) region.anchor = region.nodes[0];
  for (ValueId v : n.inputs)
    if (v != kNone &&
        std::find(region.inputs.begin(), region.inputs.end(), v) == region.inputs.end())
      region.inputs.push_back(v);
  for (ValueId v : n.outputs)
    if (v != kNone) region.outputs.push_back(v);
  Policy policy;
  policy.opt_level = 0;
  const Lowered lowered = LowerRegion(g, region, HostSoc(), policy);
  auto address = [&](ValueId v) -> void* {
    for (size_t o = 0; o < n.outputs.size(); ++o)
      if (n.outputs[o] == v) return outputs->data[o];
    return const_cast<std::byte*>(g.ConstantOf(v)->bytes.data());
  };
  if (!RunKernels(g, lowered, address).ok()) return {};
  return std::move(outputs->constants);
}

}  // namespace

std::vector<Constant> EvaluateConstant(const Graph& g, const Node& n) {
  for (ValueId v : n.inputs)
    if (v != kNone && !g.IsConstant(v)) return {};
  if (!n.subgraphs.empty() || n.op->control) return {};
  FpState fp;
  if (!n.op->host.empty()) return EvaluateHost(g, n);
  if (!n.op->element && !n.op->lower) return {};
  return EvaluateKernels(g, n);
}

}  // namespace ge
