// Window: the geometry of convolutions and pools, from ONNX attributes to Exprs.
//
// Output o of an axis reads input o*stride + k*dilation - pad_lo for k in [0, kernel).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace ge {

struct Window {
  std::vector<Expr> in, kernel, out;  // one per spatial axis
  std::vector<int64_t> stride, dilation;
  std::vector<Expr> pad_lo, pad_hi;
  int rank() const { return static_cast<int>(in.size()); }
  Expr Reach(int i) const { return (kernel[i] - 1) * dilation[i] + 1; }
  // The input position that output `o` reads at kernel position `k`.
  Expr At(int i, Expr o, Expr k) const { return o * stride[i] + k * dilation[i] - pad_lo[i]; }
};

// `in`: spatial input dims. Reads strides, dilations, pads, auto_pad, ceil_mode of the node.
Result<Window> ForwardWindow(const Node& n, const std::vector<Expr>& in,
                             const std::vector<Expr>& kernel);
// The transposed form: `in` is the small side, `out` the large one; pads cut the output.
// Also reads output_padding and output_shape.
Result<Window> TransposedWindow(const Node& n, const std::vector<Expr>& in,
                                const std::vector<Expr>& kernel);

// A transposed convolution of dilation 1 as a forward one of stride 1 over the small side: with s
// the stride, its output q stands for s outputs of the transposed one, q*s - cut + [0, s), and the
// kernel of phase r holds every s-th weight, from r on, in reverse. `kernel`, `out`, pads and
// stride are those of the forward form. Fails where its pads are not constants.
Result<Window> PhaseWindow(const Node& n, const std::vector<Expr>& in,
                           const std::vector<Expr>& kernel, std::vector<int64_t>* cut);

// dims[from..]
std::vector<Expr> Tail(const std::vector<Expr>& dims, size_t from);
std::vector<Expr> Constants(const std::vector<int64_t>& v);

}  // namespace ge
