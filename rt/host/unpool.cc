// MaxUnpool: zeros, and each value of X at its flat position. The positions are those of the output
// that the kernel, strides and pads give; a larger output_shape has that one in its first corner.
#include <cstring>

#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

// The output without output_shape.
Status NaturalShape(const HostCall& call, const HostTensor& x, Shape* out) {
  const size_t rank = x.dims.size() - 2;
  const Shape kernel = call.attrs.Ints("kernel_shape");
  Shape strides = call.attrs.Ints("strides"), pads = call.attrs.Ints("pads");
  if (strides.empty()) strides.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    return Invalid("kernel_shape, strides or pads do not fit X " + Text(x.dims));
  *out = {x.dims[0], x.dims[1]};
  for (size_t i = 0; i < rank; ++i)
    out->push_back((x.dims[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i]);
  return {};
}

Status MaxUnpool(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 1));
  HostTensor x, positions;
  GE_TRY(TensorIn(call, 0, &x));
  GE_TRY(TensorIn(call, 1, &positions));
  if (x.dims.size() < 3) return Invalid("X " + Text(x.dims) + " must have at least rank 3");
  if (TypeOf(positions) != DType::kI64 || Count(positions.dims) != Count(x.dims))
    return Invalid("indices must be i64, one per element of X");
  if (call.outputs.empty()) return {};
  const Shape out(call.outputs[0].dims.begin(), call.outputs[0].dims.end());
  Shape natural;
  GE_TRY(NaturalShape(call, x, &natural));
  void* y;
  GE_TRY(Claim(call, 0, out, &y));
  if (y == nullptr) return {};
  if (out.size() != natural.size())
    return Invalid("the output " + Text(out) + " does not have the rank of X");
  std::memset(y, 0, static_cast<size_t>(BytesFor(TypeOf(x), Count(out))));
  const int64_t limit = Count(natural);
  for (int64_t i = 0, n = Count(x.dims); i < n; ++i) {
    int64_t flat = IntAt(positions, i), at = 0, scale = 1;
    GE_TRY(WrapIndex(&flat, limit, "index"));
    for (auto d = static_cast<int64_t>(out.size()) - 1; d >= 0; --d) {
      const int64_t k = flat % natural[d];
      if (k >= out[d])
        return Invalid("index " + std::to_string(k) + " of axis " + std::to_string(d) +
                       " is outside the output " + Text(out));
      at += k * scale;
      scale *= out[d];
      flat /= natural[d];
    }
    CopyElements(TypeOf(x), x.data, i, y, at, 1);
  }
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("MaxUnpool", MaxUnpool);

}  // namespace
}  // namespace ge::rt
