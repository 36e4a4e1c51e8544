// bf16: dots with constant weights take their factors rounded to bf16 and sum in f32, where the
// policy allows it. Everything between dots stays f32.
//
//   MatMul(x, #w)  ->  ge.MatMul(Cast(x, bf16), #w rounded)          and so Gemm and Conv
//
// A value that several dots read is rounded once, by whoever makes it: the Cast is pointwise and
// joins the producer's region. It is moved before a Reshape, which would keep it from that.
#include <unordered_map>

#include "ir/opdef.h"
#include "ir/patch.h"
#include "opt/facts.h"
#include "opt/pass.h"

namespace ge {
namespace {

constexpr int64_t kSmallestSide = 16;  // of weights: less is not worth a conversion

// A convolution of pictures: pairs lie in a row of its window, all channels beside each other. That
// takes a copy of the picture, so it is for convolutions with much to do for each pixel.
bool ReadsRows(const Node& n, const Constant& w) {
  constexpr int64_t kMostChannels = 4, kLeastProducts = 1000;
  const auto dilations = AttrOr<std::vector<int64_t>>(n, "dilations", {1, 1});
  if (w.dims.size() != 4 || w.dims[1] > kMostChannels || w.dims[3] < 3 || dilations.back() != 1)
    return false;
  int64_t pixels = 1;  // of the picture, for one of the result
  for (int64_t stride : AttrOr<std::vector<int64_t>>(n, "strides", {1, 1})) pixels *= stride;
  return w.Elements() >= kLeastProducts * pixels;
}

// Constant weights whose dot takes whole pairs of k.
const Constant* WeightsOf(const Graph& g, const Node& n) {
  const bool conv = n.op->name == "Conv";
  if (!n.op->domain.empty() || (!conv && n.op->name != "MatMul" && n.op->name != "Gemm"))
    return nullptr;
  if (g.value(n.outputs[0]).type.dtype != DType::kF32 || g.IsConstant(n.inputs[0])) return nullptr;
  const Constant* w = g.ConstantOf(n.inputs[1]);
  if (w == nullptr || g.value(n.inputs[0]).type.rank() < 2) return nullptr;
  if (AttrOr<int64_t>(n, "transA", 0) != 0 || AttrOr<int64_t>(n, "group", 1) != 1) return nullptr;
  if (conv ? w->dims.size() < 3 : w->dims.size() != 2) return nullptr;
  const bool columns_first = conv || AttrOr<int64_t>(n, "transB", 0) != 0;
  const int64_t k = w->dims[columns_first ? 1 : 0], columns = w->dims[columns_first ? 0 : 1];
  if (columns < kSmallestSide) return nullptr;
  return (k % 2 == 0 && k >= kSmallestSide) || (conv && ReadsRows(n, *w)) ? w : nullptr;
}

class Rounding {
 public:
  explicit Rounding(Graph& g) : g_(g), uses_(g) {}

  bool Run() {
    bool changed = false;
    for (NodeId n : uses_.Order()) changed |= Visit(n);
    return changed;
  }

 private:
  bool Visit(NodeId id) {
    if (uses_.Dead(id)) return false;
    const Constant* w = WeightsOf(g_, g_.node(id));
    if (w == nullptr) return false;
    const auto numbers = Numbers(*w);
    if (!numbers) return false;
    // Copies: what a patch adds may move the graph's nodes.
    std::vector<ValueId> inputs = g_.node(id).inputs;
    const Attrs attrs = g_.node(id).attrs;
    const std::string op = "ge." + std::string(g_.node(id).op->name);
    const ValueId x = inputs[0], weights = inputs[1], y = g_.node(id).outputs[0];
    Patch p(uses_, {id});
    auto rounded_x = rounded_.find(x), rounded_w = rounded_.find(weights);
    inputs[0] = rounded_x != rounded_.end() ? rounded_x->second : Rounded(p, x);
    inputs[1] = rounded_w != rounded_.end() ? rounded_w->second
                                            : p.Const(FromNumbers(DType::kBF16, w->dims, *numbers));
    p.Replace(y, p.Add(op, inputs, attrs));
    if (!p.Apply()) return false;
    rounded_[x] = inputs[0];
    rounded_[weights] = inputs[1];
    return true;
  }

  ValueId Rounded(Patch& p, ValueId x) {
    const Attrs to = {{"to", static_cast<int64_t>(DType::kBF16)}};
    const NodeId producer = g_.value(x).producer;
    if (producer == kNone || g_.node(producer).op->name != "Reshape" || !uses_.HasOneUse(x))
      return p.Add("Cast", {x}, to);
    const std::vector<ValueId> from = g_.node(producer).inputs;
    const Attrs attrs = g_.node(producer).attrs;
    return p.Add("Reshape", {p.Add("Cast", {from[0]}, to), from[1]}, attrs);
  }

  Graph& g_;
  UseLists uses_;
  std::unordered_map<ValueId, ValueId> rounded_;
};

bool Run(Graph& g, const Policy& policy, const PassServices&) {
  if (!policy.bf16) return false;
  bool changed = false;
  ForEachGraph(g, [&](Graph& each) { changed |= Rounding(each).Run(); });
  return changed;
}

[[maybe_unused]] const bool kRegistered =
    RegisterPass({.name = "bf16", .needs = {}, .gives = {}, .run = Run});

}  // namespace
}  // namespace ge
