// Window geometry. ONNX's rules: explicit pads, or SAME_UPPER / SAME_LOWER / VALID; a window of
// ceil mode that would start in the end padding is dropped.
#include "ops/window.h"

#include <fmt/format.h>

namespace ge {
namespace {

Result<std::vector<int64_t>> Positive(const Node& n, const char* attr, int rank) {
  auto v = AttrOr<std::vector<int64_t>>(n, attr, {});
  if (v.empty()) v.assign(rank, 1);
  if (static_cast<int>(v.size()) != rank)
    return Invalid(
        fmt::format("{} has {} values, but there are {} spatial axes", attr, v.size(), rank));
  for (int64_t x : v)
    if (x < 1) return Invalid(fmt::format("{} must be at least 1, got {}", attr, x));
  return v;
}

Result<Window> Common(const Node& n, const std::vector<Expr>& in, const std::vector<Expr>& kernel) {
  Window w;
  const int rank = static_cast<int>(in.size());
  if (kernel.size() != in.size())
    return Invalid(
        fmt::format("kernel of {} axes for an input of {} spatial axes", kernel.size(), rank));
  w.in = in;
  w.kernel = kernel;
  GE_ASSIGN(w.stride, Positive(n, "strides", rank));
  GE_ASSIGN(w.dilation, Positive(n, "dilations", rank));
  auto pads = AttrOr<std::vector<int64_t>>(n, "pads", {});
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (static_cast<int>(pads.size()) != 2 * rank)
    return Invalid(fmt::format("pads has {} values, but {} are needed", pads.size(), 2 * rank));
  w.pad_lo = Constants({pads.begin(), pads.begin() + rank});
  w.pad_hi = Constants({pads.begin() + rank, pads.end()});
  w.out.resize(rank);
  return w;
}

Result<std::string> AutoPad(const Node& n) {
  const auto mode = AttrOr<std::string>(n, "auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER")
    return mode;
  return Invalid(
      fmt::format("auto_pad is '{}', but must be NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode));
}

}  // namespace

std::vector<Expr> Tail(const std::vector<Expr>& dims, size_t from) {
  if (from >= dims.size()) return {};
  return {dims.begin() + static_cast<int64_t>(from), dims.end()};
}

std::vector<Expr> Constants(const std::vector<int64_t>& v) { return {v.begin(), v.end()}; }

Result<Window> ForwardWindow(const Node& n, const std::vector<Expr>& in,
                             const std::vector<Expr>& kernel) {
  GE_ASSIGN(Window w, Common(n, in, kernel));
  GE_ASSIGN(const std::string mode, AutoPad(n));
  const bool ceil_mode = AttrOr<int64_t>(n, "ceil_mode", 0) != 0;
  for (int i = 0; i < w.rank(); ++i) {
    const int64_t s = w.stride[i];
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      w.out[i] = CeilDiv(in[i], s);
      const Expr total = Max(0, (w.out[i] - 1) * s + w.Reach(i) - in[i]);
      const Expr half = FloorDiv(total, 2);
      w.pad_lo[i] = mode == "SAME_UPPER" ? half : total - half;
      w.pad_hi[i] = total - w.pad_lo[i];
      continue;
    }
    if (mode == "VALID") w.pad_lo[i] = w.pad_hi[i] = 0;
    const Expr room = in[i] + w.pad_lo[i] + w.pad_hi[i] - w.Reach(i);
    if (room.IsConst() && room.value() < 0)
      return Invalid(
          fmt::format("window of {} does not fit in axis {} of size {} with pads {} and {}",
                      ToString(w.Reach(i)), i + 2, ToString(in[i]), ToString(w.pad_lo[i]),
                      ToString(w.pad_hi[i])));
    if (!ceil_mode || mode == "VALID") {
      w.out[i] = FloorDiv(room, s) + 1;
    } else {
      // The last window must start before the end padding.
      w.out[i] = Min(CeilDiv(room, s) + 1, CeilDiv(in[i] + w.pad_lo[i], s));
    }
  }
  return w;
}

Result<Window> TransposedWindow(const Node& n, const std::vector<Expr>& in,
                                const std::vector<Expr>& kernel) {
  GE_ASSIGN(Window w, Common(n, in, kernel));
  GE_ASSIGN(const std::string mode, AutoPad(n));
  auto extra = AttrOr<std::vector<int64_t>>(n, "output_padding", {});
  if (extra.empty()) extra.assign(in.size(), 0);
  auto shape = AttrOr<std::vector<int64_t>>(n, "output_shape", {});
  // Some writers give output_shape with batch and channels in front.
  if (shape.size() == in.size() + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (extra.size() != in.size() || (!shape.empty() && shape.size() != in.size()))
    return Invalid("output_padding or output_shape does not have one value per spatial axis");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  for (int i = 0; i < w.rank(); ++i) {
    if (extra[i] < 0)
      return Invalid(fmt::format("output_padding is {}, but must not be negative", extra[i]));
    const Expr full = (in[i] - 1) * w.stride[i] + w.Reach(i) + extra[i];
    if (mode == "VALID") w.pad_lo[i] = w.pad_hi[i] = 0;
    if (shape.empty() && !same) {
      w.out[i] = full - w.pad_lo[i] - w.pad_hi[i];
    } else {
      w.out[i] = shape.empty() ? in[i] * w.stride[i] : Expr(shape[i]);
      const Expr total = Max(0, full - w.out[i]);
      const Expr half = FloorDiv(total, 2);
      w.pad_lo[i] = mode == "SAME_UPPER" ? half : total - half;
      w.pad_hi[i] = total - w.pad_lo[i];
    }
    if (w.out[i].IsConst() && w.out[i].value() < 0)
      return Invalid(fmt::format("output axis {} would have size {}", i + 2, w.out[i].value()));
  }
  return w;
}

Result<Window> PhaseWindow(const Node& n, const std::vector<Expr>& in,
                           const std::vector<Expr>& kernel, std::vector<int64_t>* cut) {
  GE_ASSIGN(const Window t, TransposedWindow(n, in, kernel));
  Window w;
  cut->clear();
  w.in = in;
  for (int i = 0; i < t.rank(); ++i) {
    const int64_t s = t.stride[i];
    const Expr past = t.out[i] - (in[i] - 1) * s + t.pad_lo[i] - 1;  // of the last input's first
    if (t.dilation[i] != 1 || !kernel[i].IsConst() || !t.pad_lo[i].IsConst() || !past.IsConst())
      return Invalid("no forward form");
    const int64_t taps = (kernel[i].value() + s - 1) / s, skipped = t.pad_lo[i].value() / s;
    const int64_t lo = taps - 1 - skipped, hi = past.value() < 0 ? -1 : past.value() / s;
    if (lo < 0 || hi < 0) return Invalid("no forward form");
    cut->push_back(t.pad_lo[i].value() % s);
    w.kernel.push_back(taps);
    w.stride.push_back(1);
    w.dilation.push_back(1);
    w.pad_lo.push_back(lo);
    w.pad_hi.push_back(hi);
    w.out.push_back(in[i] - skipped + hi);
  }
  return w;
}

}  // namespace ge
