// The padded input of a convolution. Used in place if its buffer has the layout and the halo; else
// copied: zero border, channels in blocks (or plane by plane if they are few).
#include <algorithm>

#include "base/check.h"
#include "lower/cube_conv.h"
#include "lower/region_walk.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

// Height and width that the windows reach.
Expr Reached(Expr out, int64_t stride, int64_t kernel, int64_t dilation) {
  return (out - 1) * stride + (kernel - 1) * dilation + 1;
}

std::optional<PaddedInput> InPlace(const CubeBuild& build, const ConvShape& s, bool cuts) {
  const Value& value = build.g.value(s.x);
  for (NodeId n : build.region.nodes) {
    if (build.g.value(s.x).producer == n) return std::nullopt;
  }
  if (value.type.dtype != s.type || build.g.IsConstant(s.x)) return std::nullopt;
  View v = BufferView(value);
  const bool blocked = !v.layout.IsNd();
  const int spatial = s.rank - 2;
  if (blocked && !(v.layout.dims.size() == static_cast<size_t>(s.rank) + 1 &&
                   v.layout == Nc1hwc0(s.rank, v.layout.dims[1].tile))) {
    return std::nullopt;
  }
  if (!blocked && s.c.value() >= 16 && s.ChannelsPerGroup() > 1) return std::nullopt;
  if (!blocked && s.type == DType::kBF16) return std::nullopt;
  if (IsInteger(s.type)) {
    if (!blocked || v.layout.dims[1].tile % 4 != 0) return std::nullopt;
    const bool pads = !s.pad_top.IsConst(0) || !s.pad_left.IsConst(0) || !s.pad_bottom.IsConst(0) ||
                      !s.pad_right.IsConst(0);
    if (s.zero_value != kNone && pads) return std::nullopt;
    if (s.zero_value == kNone && v.HasHalo() && value.halo[0].fill != s.zero) return std::nullopt;
  }
  PaddedInput in;
  in.c0 = blocked ? v.layout.dims[1].tile : 1;
  in.c1 = CeilDiv(s.c, in.c0);
  in.base = v.offset;
  in.sn = v.strides[0];
  in.sc1 = v.strides[1];
  // Windows never reach beyond the pads.
  auto fits = [&](int d, Expr dim, Expr lo, Expr hi, Expr reached) {
    return ProvablyLe(lo, v.halo_lo[d]) &&
           (ProvablyLe(hi, v.halo_hi[d]) || ProvablyLe(reached - lo - dim, v.halo_hi[d]));
  };
  cuts = cuts && blocked && s.pad_top.IsConst() && s.pad_left.IsConst();
  const int w = s.turned ? 2 : 1 + spatial, h = s.turned ? 3 : 2;  // positions of the dims
  in.cut_columns = !fits(w, s.w, s.pad_left, s.pad_right, Reached(s.ow, s.sw, s.kw, s.dw));
  if (in.cut_columns && !cuts) return std::nullopt;
  in.sx = v.strides[w];
  in.width = v.extents[w];
  in.base = in.base + (v.halo_lo[w] - s.pad_left) * in.sx;
  if (spatial == 2) {
    in.cut_rows = !fits(h, s.h, s.pad_top, s.pad_bottom, Reached(s.oh, s.sh, s.kh, s.dh));
    if (in.cut_rows && !cuts) return std::nullopt;
    in.sy = v.strides[h];
    in.height = v.extents[h];
    in.base = in.base + (v.halo_lo[h] - s.pad_top) * in.sy;
  } else {
    in.sy = in.width * in.sx;
    in.height = 1;
  }
  in.elements = v.Elements();
  return in;
}

// Is a row of the window one run of memory? Channels are one block of c0.
bool ReadsRows(const ConvShape& s, int64_t c0) {
  return s.ChannelsPerGroup() <= c0 && s.group == 1 && s.dw == 1;
}

// `group`: steps of k that a dot takes at once.
PaddedInput TempOf(const ConvShape& s, int64_t c0, int64_t group) {
  PaddedInput in;
  in.c0 = c0;
  if (group > 1 && ReadsRows(s, c0)) in.row_depth = CeilOf(s.kw * c0, group) * group;
  in.c1 = CeilDiv(s.c, c0);
  in.height = Reached(s.oh, s.sh, s.kh, s.dh);
  in.width = Reached(s.ow, s.sw, s.kw, s.dw);
  if (in.row_depth > 0) in.width = in.width + (CeilOf(in.row_depth, c0) - s.kw);
  in.sx = c0;
  in.sy = in.width * c0;
  in.sc1 = in.height * in.sy;
  in.sn = in.c1 * in.sc1;
  in.elements = s.n * in.sn;
  return in;
}

// One row (n, c1, y) of the copy.
class RowCopy {
 public:
  RowCopy(LoweringContext& c, const ConvShape& s, const PaddedInput& in, int temp)
      : c_(c), b_(c.b()), s_(s), in_(in), temp_(temp) {}

  void Run(Expr n, Expr c1, Expr y) {
    n_ = n, c1_ = c1, y_ = y - s_.pad_top;
    row_ = n * in_.sn + c1 * in_.sc1 + y * in_.sy;
    const Expr left = Max(s_.pad_left, 0);  // below 0: so many columns are cut off
    Expr count = Min(s_.w + s_.pad_left - left, in_.width - left);
    auto copy = [&] {
      Span(0, left, false);
      Span(left, count, true);
      Span(left + count, in_.width - left - count, false);
    };
    Expr inside = And(Le(0, y_), Lt(y_, s_.h));
    if (inside.IsConst(1)) return copy();
    b_.If(b_.Cast(b_.Index(inside), DType::kBool), copy, [&] { Span(0, in_.width, false); });
  }

 private:
  void Span(Expr begin, Expr count, bool copy) {
    if (count.IsConst() && count.value() <= 0) return;
    b_.For("x", count, in_.c0 == 1 ? LoopKind::kVector : LoopKind::kSerial, [&](Expr x) {
      if (in_.c0 == 1) return Element(begin + x, 0, copy);
      b_.For("c", in_.c0, LoopKind::kVector, [&](Expr lane) { Element(begin + x, lane, copy); });
    });
  }
  void Element(Expr x, Expr lane, bool copy) {
    Val v = s_.zero_value != kNone
                ? c_.Read(s_.zero_value,
                          Index(c_.graph().value(s_.zero_value).type.dims.size(), Expr(0)))
                : b_.Const(ComputeType(s_.type), static_cast<double>(s_.zero));
    if (copy) {
      Expr channel = c1_ * in_.c0 + lane;
      if (DivisibleBy(s_.c, in_.c0)) {
        v = c_.Read(s_.x, s_.At(n_, channel, y_, x - s_.pad_left));
      } else {
        Val real = c_.Read(s_.x, s_.At(n_, Min(channel, s_.c - 1), y_, x - s_.pad_left));
        v = b_.Select(b_.Cast(b_.Index(Lt(channel, s_.c)), DType::kBool), real, v);
      }
    }
    b_.Store(temp_, row_ + x * in_.sx + lane, v);
  }

  LoweringContext& c_;
  tile::Builder& b_;
  const ConvShape& s_;
  const PaddedInput& in_;
  int temp_;
  Expr n_, c1_, y_, row_;
};

}  // namespace

PaddedInput PadInput(CubeBuild& build, const ConvShape& s, bool cuts) {
  if (std::optional<PaddedInput> in = InPlace(build, s, cuts)) return *in;
  const bool depthwise = s.group == s.c.value() && s.group > 1;
  const int64_t lanes =
      depthwise || build.soc.amx ? BlockChannels(build.soc, s.type, s.ChannelsPerGroup()) : 16;
  const int64_t channels = s.ChannelsPerGroup();
  const int64_t group = IsInteger(s.type) ? 4 : s.type == DType::kBF16 ? 2 : 1;
  int64_t few = 1;  // plane by plane
  if (group > 1) few = ReadsRows(s, channels) ? channels : CeilOf(channels, group) * group;
  PaddedInput in = TempOf(s, channels < 8 && !depthwise ? few : lanes, group);
  in.temp = build.AddTemp(in.elements * BytesFor(s.type, 1));
  build.AddKernel("pad input", [&](LoweringContext& c) {
    int temp = c.AddArg({KernelArg::Kind::kTemp, in.temp}, "padded", s.type, in.elements, true);
    const double ns = static_cast<double>(HintValue(in.sy)) * 0.1;
    const int64_t rows = RowsPerChunk(build.soc, ns, HintValue(in.height),
                                      static_cast<double>(HintValue(s.n * in.c1)));
    Expr groups = CeilDiv(in.height, rows);
    c.b().For("p", s.n * in.c1 * groups, LoopKind::kParallel, [&](Expr p) {
      Expr first = groups.IsConst(1) ? Expr(0) : Mod(p, groups) * rows,
           plane = groups.IsConst(1) ? p : FloorDiv(p, groups);
      Expr n = s.n.IsConst(1) ? Expr(0) : FloorDiv(plane, in.c1),
           c1 = s.n.IsConst(1) ? plane : Mod(plane, in.c1);
      c.b().For("y", Min(rows, in.height - first), LoopKind::kSerial,
                [&](Expr y) { RowCopy(c, s, in, temp).Run(n, c1, first + y); });
    });
  });
  return in;
}

int PaddedArg(LoweringContext& c, const ConvShape& s, const PaddedInput& in) {
  if (in.temp < 0) return c.ArgOf(s.x);
  return c.AddArg({KernelArg::Kind::kTemp, in.temp}, "padded", s.type, in.elements, false);
}

bool MayWriteOver(const CubeBuild& build, const ConvShape& s, const PaddedInput& in) {
  if (in.temp >= 0 || build.region.outputs.size() != 1 || s.rank != 4) return false;
  const Value &x = build.g.value(s.x), &y = build.g.value(build.region.outputs[0]);
  const View from = BufferView(x), to = BufferView(y);
  int uses = 0;
  for (NodeId n : build.region.nodes)
    for (ValueId v : build.g.node(n).inputs) uses += v == s.x;
  return uses == 1 && x.type.dtype == y.type.dtype && x.type.dims == y.type.dims &&
         !from.layout.IsNd() && !from.HasHalo() && SameStorage(from, to);
}

void NoteWritesOver(CubeBuild& build, const ConvShape& s) {
  LoweredKernel& kernel = build.lowered.kernels.back();
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const KernelArg& arg = kernel.args[i];
    if (arg.kind == KernelArg::Kind::kValue && arg.id == s.x) kernel.over = static_cast<int32_t>(i);
  }
}

void CopySpan(tile::Builder& b, int from_buffer, Expr from, int to_buffer, Expr to, Expr count) {
  b.For("i", count, LoopKind::kVector,
        [&](Expr i) { b.Store(to_buffer, to + i, b.Load(from_buffer, from + i)); });
}

void ZeroPadLanes(LoweringContext& c, const ConvShape& s, Expr n, Expr y, Expr x) {
  for (ValueId v : c.region().outputs) {
    const View& view = c.ViewOf(v);
    if (!view.HasPadLanes() || view.HasHalo()) continue;
    const Expr channels = s.o, used = Mod(channels, view.order[1].tile);
    c.b().For("pad", view.order[1].tile - used, LoopKind::kVector, [&](Expr lane) {
      c.b().Store(c.ArgOf(v), view.Offset(s.At(n, channels + lane, y, x)),
                  c.b().Const(ComputeType(c.graph().value(v).type.dtype), 0));
    });
  }
}

bool RowsOutside(const SocSpec& soc, double weight_bytes, const ConvShape& s) {
  const double input = static_cast<double>(HintValue(s.n * s.c * s.h * s.w)) *
                       static_cast<double>(BytesFor(s.type, 1));
  return weight_bytes <= static_cast<double>(soc.l2_bytes) / 2 && weight_bytes <= 4 * input;
}

ChunkPlace PlaceOfChunk(Expr p, Expr images, Expr panels, Expr parts, bool rows_outside) {
  const Expr inner = rows_outside ? panels : parts, outer = rows_outside ? parts : panels;
  const Expr low = inner.IsConst(1) ? Expr(0) : Mod(p, inner),
             rest = inner.IsConst(1) ? p : FloorDiv(p, inner);
  const Expr n = images.IsConst(1) ? Expr(0) : FloorDiv(rest, outer),
             high = images.IsConst(1) ? rest : Mod(rest, outer);
  return rows_outside ? ChunkPlace{n, low, high} : ChunkPlace{n, high, low};
}

int64_t LinesOfTile(const CubeBuild& build, const ConvShape& s, const GemmTile& tile, int k_group,
                    int most_rows, int64_t panel_bytes) {
  constexpr int64_t kInL1 = 24 << 10;
  if (OnMatrixUnit(build.soc, k_group) || !s.oh.IsConst() || !s.ow.IsConst()) return 1;
  const int64_t width = s.ow.value(), most = std::min(s.oh.value(), most_rows / width);
  if (const int m = build.fixed.m; m > 0)
    return m % width == 0 ? std::clamp<int64_t>(m / width, 1, most) : 1;
  return tile.m == width && panel_bytes > kInL1 ? std::max<int64_t>(most, 1) : 1;
}

void ForLines(tile::Builder& b, const ConvShape& s, Expr first, int64_t chunk, int64_t lines,
              const std::function<void(Expr, int64_t)>& body) {
  if (lines == 1) {
    const Expr count = DivisibleBy(s.oh, chunk) ? Expr(chunk) : Min(chunk, s.oh - first);
    return b.For("y", count, LoopKind::kSerial, [&](Expr y) { body(first + y, 1); });
  }
  const auto part = [&](int64_t count) {
    if (count / lines > 0)
      b.For("y", count / lines, LoopKind::kSerial, [&](Expr y) { body(first + y * lines, lines); });
    if (count % lines > 0) body(first + count / lines * lines, count % lines);
  };
  const int64_t all = s.oh.value(), last = all % chunk;
  if (chunk >= all || last == 0) return part(std::min(chunk, all));
  b.If(
      b.Cast(b.Index(Le(first + chunk, all)), DType::kBool), [&] { part(chunk); },
      [&] { part(last); });
}

void SpreadOverLines(LoweringContext& c, const ConvShape& s, const PaddedInput& in, int64_t lines,
                     tile::BrGemm* g) {
  if (lines == 1) return;
  g->row = c.b().arena().Fresh("row", {.lo = 0, .hi = g->m - 1, .extent = g->m});
  g->a = g->a + FloorDiv(g->row, s.ow) * (in.sy * s.sh - s.ow * g->a_row);
}

int64_t RowsPerChunk(const SocSpec& soc, double ns_per_row, int64_t rows, double other_chunks) {
  (void)soc;
  rows = std::max<int64_t>(rows, 1);
  const int64_t least =
      std::max<int64_t>(1, static_cast<int64_t>(4000 / std::max(ns_per_row, 1.0)));
  const int64_t wanted =
      std::max<int64_t>(1, static_cast<int64_t>(8 / std::max(other_chunks, 1.0)));
  const int64_t most =
      std::max<int64_t>(1, static_cast<int64_t>(100000 / std::max(ns_per_row, 1.0)));
  int64_t chunk = std::max(least, CeilOf(rows, wanted));
  return std::min(rows, std::min(chunk, std::max(most, least)));
}

}  // namespace ge
