//   X [n, c, d, h, w] -> X' [n * d', kd * c, h, w], slice (z, c) of image (n, o) being
//   X[n, c, o * stride + z * dilation - pad]; groups stay outermost among the channels
#include "ops/conv_depth.h"

#include <algorithm>

#include "ir/expand.h"
#include "ops/window.h"

namespace ge {

namespace {

const std::vector<int64_t> kDepthOut = {0, 2, 1, 3, 4};  // depth before channels, or back

// Slices first[z] + o * stride of v [n, d, c, h, w], o < count, as images with the channels of all
// z beside each other within a group.
ValueId Stacked(ExpandBuilder& e, ValueId v, int64_t group, const std::vector<Expr>& first,
                Expr count, int64_t stride) {
  const std::vector<Expr> dims = e.Dims(v);
  if (dims.empty()) return kNone;
  const Expr images = dims[0] * count;
  std::vector<ValueId> parts;
  for (Expr from : first) {
    const ValueId part =
        e.Op("Slice", {v, e.Exprs({from}), e.Exprs({from + (count - 1) * stride + 1}), e.Ints({1}),
                       e.Ints({stride})});
    parts.push_back(e.Reshape(part, {images, group, FloorDiv(dims[2], group), dims[3], dims[4]}));
  }
  v = parts.size() == 1 ? parts[0] : e.Op("Concat", parts, {{"axis", int64_t{2}}});
  return e.Reshape(v, {images, dims[2] * static_cast<int64_t>(first.size()), dims[3], dims[4]});
}

// The depth of images y [n * d, m, h, w] behind their channels.
ValueId AsVolumes(ExpandBuilder& e, ValueId y, Expr n, Expr depth) {
  const std::vector<Expr> dims = e.Dims(y);
  if (dims.empty()) return kNone;
  y = e.Reshape(y, {n, depth, dims[1], dims[2], dims[3]});
  return e.Op("Transpose", {y}, {{"perm", kDepthOut}});
}

std::vector<int64_t> Flat(const std::vector<int64_t>& all) { return {all[1], all[2]}; }

}  // namespace

bool ExpandConvOfVolumes(Graph& g, NodeId id) {
  ExpandBuilder e(g, id);
  const std::vector<Expr> x = e.Dims(e.In(0)), w = e.Dims(e.In(1));
  if (x.size() != 5 || !w[2].IsConst() || w[2].value() < 1) return false;
  auto window = ForwardWindow(e.node(), Tail(x, 2), Tail(w, 2));
  if (!window.ok()) return false;
  const int64_t group = e.Int("group", 1), depth = w[2].value();
  std::vector<int64_t> pads;  // of height and width, low then high
  for (const auto* side : {&window->pad_lo, &window->pad_hi})
    for (int i : {1, 2}) {
      if (!(*side)[i].IsConst()) return false;
      pads.push_back((*side)[i].value());
    }
  ValueId v = e.Op("Transpose", {e.In(0)}, {{"perm", kDepthOut}});
  if (!window->pad_lo[0].IsConst(0) || !window->pad_hi[0].IsConst(0))
    v = e.Op("Pad", {v, e.Exprs({0, window->pad_lo[0], 0, 0, 0, 0, window->pad_hi[0], 0, 0, 0})});
  std::vector<Expr> first;
  for (int64_t z = 0; z < depth; ++z) first.push_back(z * window->dilation[0]);
  v = Stacked(e, v, group, first, window->out[0], window->stride[0]);
  ValueId weights = e.Op("Transpose", {e.In(1)}, {{"perm", kDepthOut}});
  weights = e.Reshape(weights, {w[0], w[1] * depth, w[3], w[4]});
  std::vector<ValueId> inputs = {v, weights};
  if (e.Has(2)) inputs.push_back(e.In(2));
  const ValueId y = e.Op("Conv", inputs,
                         {{"group", group},
                          {"pads", pads},
                          {"strides", Flat(window->stride)},
                          {"dilations", Flat(window->dilation)}});
  return e.Done({AsVolumes(e, y, x[0], window->out[0])});
}

bool ExpandConvTransposeOfVolumes(Graph& g, NodeId id) {
  ExpandBuilder e(g, id);
  const std::vector<Expr> x = e.Dims(e.In(0)), w = e.Dims(e.In(1));
  if (x.size() != 5 || !w[2].IsConst() || w[2].value() < 1) return false;
  auto window = TransposedWindow(e.node(), Tail(x, 2), Tail(w, 2));
  if (!window.ok()) return false;
  const int64_t group = e.Int("group", 1), depth = w[2].value(), stride = window->stride[0];
  // What the pads leave of height and width, as pads and as additions at the end.
  std::vector<int64_t> pads(4), more(2);
  for (int i : {1, 2}) {
    const Expr lo = window->pad_lo[i];
    const Expr hi = (x[2 + i] - 1) * window->stride[i] + window->Reach(i) - lo - window->out[i];
    if (!lo.IsConst() || !hi.IsConst() || lo.value() < 0) return false;
    pads[i - 1] = lo.value(), pads[i + 1] = std::max<int64_t>(hi.value(), 0);
    more[i - 1] = std::max<int64_t>(-hi.value(), 0);
    if (more[i - 1] >= std::max(window->stride[i], window->dilation[i])) return false;
  }
  ValueId v = e.Op("Transpose", {e.In(0)}, {{"perm", kDepthOut}});
  if (stride > 1) {
    v = e.Reshape(v, {x[0], x[2], 1, x[1], x[3], x[4]});
    v = e.Op("Pad", {v, e.Ints({0, 0, 0, 0, 0, 0, 0, 0, stride - 1, 0, 0, 0})});
    v = e.Reshape(v, {x[0], x[2] * stride, x[1], x[3], x[4]});
  }
  const Expr reach = window->Reach(0) - 1, lo = reach - window->pad_lo[0];
  const Expr hi = window->out[0] + reach - lo - x[2] * stride;
  v = e.Op("Pad", {v, e.Exprs({0, lo, 0, 0, 0, 0, hi, 0, 0, 0})});
  std::vector<Expr> first;
  for (int64_t z = depth - 1; z >= 0; --z) first.push_back(z * window->dilation[0]);
  v = Stacked(e, v, group, first, window->out[0], 1);
  const Expr per_group = FloorDiv(x[1], group);
  ValueId weights = e.Reshape(e.In(1), {group, per_group, w[1], depth, w[3], w[4]});
  weights = e.Op("Transpose", {weights}, {{"perm", std::vector<int64_t>{0, 3, 1, 2, 4, 5}}});
  weights = e.Reshape(weights, {x[1] * depth, w[1], w[3], w[4]});
  std::vector<ValueId> inputs = {v, weights};
  if (e.Has(2)) inputs.push_back(e.In(2));
  const ValueId y = e.Op("ConvTranspose", inputs,
                         {{"group", group},
                          {"pads", pads},
                          {"output_padding", more},
                          {"strides", Flat(window->stride)},
                          {"dilations", Flat(window->dilation)}});
  return e.Done({AsVolumes(e, y, x[0], window->out[0])});
}

}  // namespace ge
