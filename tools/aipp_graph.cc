// AIPP as ordinary operators, so that they are fused into the model's first regions:
//
//   crop -> resize -> rotation -> channel swaps -> csc -> (x - mean - min) * var_reci -> padding
//   csc:  y[i] = clamp((sum_j matrix[i][j] * (x[j] - input_bias[j]) >> 8) + output_bias[i], 0, 255)
//
// Channels are i32[N,h,w] up to the colour conversion, which is exact; then f32. Raw pictures are
// one channel, scaled by a power of two instead of converted. Rounding: docs/aipp.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ir/expand.h"
#include "tools/aipp_config.h"

namespace ge {
namespace {

using Channels = std::vector<ValueId>;

Fault Bad(const std::string& what) {
  return {"E10052", "AIPP configuration: " + what, "see docs/aipp.md"};
}

// Integer arithmetic of the builder.
struct Ops {
  ExpandBuilder& e;
  ValueId I(int64_t v) { return e.Scalar(DType::kI32, static_cast<double>(v)); }
  ValueId F(double v) { return e.Scalar(DType::kF32, v); }
  ValueId Add(ValueId a, ValueId b) { return e.Op("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return e.Op("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return e.Op("Mul", {a, b}); }
  ValueId Half(ValueId a) { return e.Op("Div", {a, I(2)}); }
  ValueId Where(ValueId c, ValueId a, ValueId b) { return e.Op("Where", {c, a, b}); }
  ValueId Is(ValueId a, int64_t v) { return e.Op("Equal", {a, I(v)}); }
  ValueId Clamp(ValueId a, ValueId low, ValueId high) {
    return e.Op("Max", {e.Op("Min", {a, high}), low});
  }
  // Rounds to minus infinity; |a| < 2^29.
  ValueId Shift8(ValueId a) {
    return Sub(e.Op("Div", {Add(a, I(1 << 30)), I(256)}), I((1 << 30) / 256));
  }
  ValueId Slice(ValueId v, int64_t axis, Expr from, Expr to) {
    return e.Op("Slice", {v, e.Exprs({from}), e.Exprs({to}), e.Ints({axis})});
  }
  // Lines of an axis from the last to the first.
  ValueId Reverse(ValueId v, int64_t axis) {
    return e.Op("Slice", {v, e.Ints({-1}), e.Ints({INT64_MIN}), e.Ints({axis}), e.Ints({-1})});
  }
  // Clockwise, [N,h,w].
  ValueId Rotate(ValueId v, int64_t degrees) {
    if (degrees != 180) v = e.Op("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    if (degrees != 90) v = Reverse(v, 1);
    return degrees == 270 ? v : Reverse(v, 2);
  }
  ValueId Csc(const Channels& in, const Channels& matrix_row, const Channels& input_bias,
              ValueId output_bias) {
    ValueId sum = kNone;
    for (int j = 0; j < 3; ++j) {
      const ValueId term = Mul(Sub(in[j], input_bias[j]), matrix_row[j]);
      sum = j == 0 ? term : Add(sum, term);
    }
    return Clamp(Add(Shift8(sum), output_bias), I(0), I(255));
  }
  // One channel to the type that the model takes.
  ValueId Normalise(ValueId channel, ValueId mean, ValueId min, ValueId var, DType to) {
    const ValueId f = Mul(Sub(Sub(e.Cast(channel, DType::kF32), mean), min), var);
    if (IsFloat(to)) return e.Cast(f, to);
    const bool is_signed = to == DType::kI8;
    return e.Cast(Clamp(e.Op("Round", {f}), F(is_signed ? -128 : 0), F(is_signed ? 127 : 255)), to);
  }
};

struct Picture {
  Expr n, h, w;
};

// Channel c of an interleaved picture [N,h,w,count].
ValueId Interleaved(Ops o, ValueId in, const Picture& p, int64_t c) {
  return o.e.Reshape(o.Slice(in, 3, c, c + 1), {p.n, p.h, p.w});
}

// Values [N,h/sy,w/2] repeated to [N,h,w].
ValueId Spread(Ops o, ValueId v, const Picture& p, int64_t sy) {
  const Expr h = FloorDiv(p.h, sy), w = FloorDiv(p.w, 2);
  v = o.e.Reshape(v, {p.n, h, 1, w, 1});
  return o.e.Reshape(o.e.Expand(v, {p.n, h, sy, w, 2}), {p.n, p.h, p.w});
}

// A plane of Y, then rows of UV pairs: YUV420SP (sy = 2), YUV422SP (sy = 1).
Channels SemiPlanar(Ops o, ValueId in, const Picture& p, int64_t sy) {
  const Expr chroma = FloorDiv(p.h, sy), half = FloorDiv(p.w, 2);
  const ValueId y = o.e.Reshape(o.Slice(in, 1, 0, p.h), {p.n, p.h, p.w});
  const ValueId uv = o.e.Reshape(o.Slice(in, 1, p.h, p.h + chroma), {p.n, chroma, half, 2});
  return {y, Spread(o, o.Slice(uv, 3, 0, 1), p, sy), Spread(o, o.Slice(uv, 3, 1, 2), p, sy)};
}

bool IsRaw(const std::string& format) { return format.starts_with("RAW"); }

Channels ReadChannels(Ops o, ValueId in, const std::string& format, const Picture& p) {
  if (format == "YUV420SP_U8") return SemiPlanar(o, in, p, 2);
  if (format == "YUV422SP_U8") return SemiPlanar(o, in, p, 1);
  if (format == "YUYV_U8") {
    const ValueId quads = o.e.Reshape(in, {p.n, p.h, FloorDiv(p.w, 2), 4});
    return {Interleaved(o, in, p, 0), Spread(o, o.Slice(quads, 3, 1, 2), p, 1),
            Spread(o, o.Slice(quads, 3, 3, 4), p, 1)};
  }
  Channels channels;
  const int64_t count = format == "YUV400_U8" || IsRaw(format) ? 1 : format == "RGB888_U8" ? 3 : 4;
  for (int64_t c = 0; c < count; ++c) channels.push_back(Interleaved(o, in, p, c));
  return channels;
}

std::vector<Expr> StorageDims(const std::string& format, const Picture& p) {
  if (format == "YUV420SP_U8") return {p.n, FloorDiv(p.h * 3, 2), p.w, 1};
  if (format == "YUV422SP_U8") return {p.n, p.h * 2, p.w, 1};
  const int64_t count = format == "YUV400_U8"   ? 1
                        : IsRaw(format)         ? 1
                        : format == "YUYV_U8"   ? 2
                        : format == "RGB888_U8" ? 3
                                                : 4;
  return {p.n, p.h, p.w, count};
}

bool IsYuv(const std::string& format) {
  return format.find("YUV") != std::string::npos || format == "YUYV_U8";
}

void Swap(const AippConfig& c, Channels* channels) {
  const size_t n = channels->size();
  if (n == 4 && c.Int("ax_swap_switch"))
    std::rotate(channels->begin(), channels->begin() + 1, channels->end());
  if (n < 3 || !c.Int("rbuv_swap_switch")) return;
  const size_t first = n == 4 && !c.Int("ax_swap_switch") ? 1 : 0;
  std::swap((*channels)[first + (IsYuv(c.input_format) ? 1 : 0)], (*channels)[first + 2]);
}

ValueId StaticPicture(Ops o, const AippConfig& c, ValueId in, const Picture& source,
                      int64_t model_channels, DType to, const std::string& layout) {
  Channels channels = ReadChannels(o, in, c.input_format, source);
  for (ValueId& v : channels) {
    if (c.Int("crop")) {
      const int64_t y = c.Int("load_start_pos_h"), x = c.Int("load_start_pos_w");
      v = o.Slice(o.Slice(v, 1, y, y + c.Int("crop_size_h")), 2, x, x + c.Int("crop_size_w"));
    }
    if (c.Int("resize")) {
      const std::vector<Expr> sizes{source.n, c.Int("resize_output_h"), c.Int("resize_output_w")};
      v = o.e.Op("Resize", {o.e.Cast(v, DType::kF32), kNone, kNone, o.e.Exprs(sizes)},
                 {{"mode", std::string("linear")}});
      v = o.e.Op("Round", {v});
    }
    v = o.e.Cast(v, DType::kI32);
    if (c.Int("rotation_angle")) v = o.Rotate(v, c.Int("rotation_angle"));
  }
  Swap(c, &channels);
  if (c.Int("csc_switch")) {
    const Channels in_channels = channels;
    Channels bias;
    for (int j = 0; j < 3; ++j) bias.push_back(o.I(c.Int(fmt::format("input_bias_{}", j))));
    for (int i = 0; i < 3; ++i) {
      Channels row;
      for (int j = 0; j < 3; ++j) row.push_back(o.I(c.Int(fmt::format("matrix_r{}c{}", i, j))));
      channels[i] = o.Csc(in_channels, row, bias, o.I(c.Int(fmt::format("output_bias_{}", i))));
    }
  }
  channels.resize(static_cast<size_t>(model_channels));
  const int64_t axis = layout == "NHWC" ? 3 : 1;
  for (size_t i = 0; i < channels.size(); ++i) {
    const auto get = [&](const char* key, double otherwise) {
      return o.F(c.Get(fmt::format("{}_chn_{}", key, i), otherwise));
    };
    ValueId channel = channels[i];
    if (IsRaw(c.input_format) && c.Int("raw_rgbir_to_f16_n"))
      channel = o.Mul(o.e.Cast(channel, DType::kF32),
                      o.F(std::ldexp(1.0, -static_cast<int>(c.Int("raw_rgbir_to_f16_n")))));
    const ValueId v = o.Normalise(channel, get("mean", 0), get("min", 0), get("var_reci", 1), to);
    channels[i] = o.e.Op("Unsqueeze", {v, o.e.Ints({axis})});
  }
  ValueId all = o.e.Op("Concat", channels, {{"axis", axis}});
  if (!c.Int("padding")) return all;
  std::vector<int64_t> pads(8);
  const int64_t h = layout == "NHWC" ? 1 : 2;
  pads[h] = c.Int("top_padding_size");
  pads[h + 1] = c.Int("left_padding_size");
  pads[4 + h] = c.Int("bottom_padding_size");
  pads[4 + h + 1] = c.Int("right_padding_size");
  return o.e.Op("Pad", {all, o.e.Ints(pads), o.e.Scalar(to, c.Get("padding_value"))});
}

// Numbers of a record, as api/acl writes them.
enum Field {
  kFormat,
  kCsc,
  kRbuv,
  kAx,
  kSrcW,
  kSrcH,
  kMatrix,
  kOutputBias = 15,
  kInputBias = 18,
  kCrop = 21,
  kCropW,
  kCropH,
  kCropSizeW,
  kCropSizeH,
  kPadding = 31,
  kTop,
  kBottom,
  kLeft,
  kRight,
  kMean,
  kMin = 40,
  kVar = 44
};

// Every pixel finds its bytes by arithmetic on the record of its picture: [N,1,1] numbers with
// [1,H,1] and [1,1,W] coordinates.
struct DynamicPicture {
  Ops o;
  ValueId bytes, record;
  Picture target;

  ValueId Float(int field) {
    return o.e.Reshape(o.Slice(record, 1, field, field + 1), {target.n, 1, 1});
  }
  ValueId Int(int field) { return o.e.Cast(Float(field), DType::kI32); }
  ValueId Coordinate(Expr count, std::vector<Expr> dims) {
    const auto scalar = [&](Expr x) { return o.e.Op("Squeeze", {o.e.Exprs({x})}); };
    const ValueId range = o.e.Op("Range", {scalar(0), scalar(count), scalar(1)});
    return o.e.Cast(o.e.Reshape(range, dims), DType::kI32);
  }
  ValueId Pick(ValueId format, std::initializer_list<std::pair<int, ValueId>> cases,
               ValueId otherwise) {
    for (const auto& [f, v] : cases) otherwise = o.Where(o.Is(format, f), v, otherwise);
    return otherwise;
  }
  ValueId Both(ValueId a, ValueId b) { return o.e.Op("And", {a, b}); }
  Channels Read(ValueId format, ValueId w, ValueId h, ValueId sx, ValueId sy);
  void Swap(ValueId format, Channels& channels);
  void Convert(Channels& channels);
  ValueId Build(int64_t model_channels, DType to, const std::string& layout);
};

// The four channels of the source at these coordinates, by its format.
Channels DynamicPicture::Read(ValueId format, ValueId w, ValueId h, ValueId sx, ValueId sy) {
  const ValueId area = o.Mul(w, h), pixel = o.Add(o.Mul(sy, w), sx),
                pair = o.Mul(o.Half(sx), o.I(2));
  const ValueId size = Pick(format,
                            {{1, o.Add(area, o.Half(area))},
                             {3, o.Mul(area, o.I(3))},
                             {4, area},
                             {8, o.Mul(area, o.I(2))},
                             {9, o.Mul(area, o.I(2))}},
                            o.Mul(area, o.I(4)));
  const ValueId start = o.Mul(size, Coordinate(target.n, {target.n, 1, 1}));
  Channels channels;
  for (int64_t c = 0; c < 4; ++c) {
    const ValueId at3 = o.Add(o.Mul(pixel, o.I(3)), o.I(std::min<int64_t>(c, 2)));
    const ValueId at4 = o.Add(o.Mul(pixel, o.I(4)), o.I(c));
    const int64_t second = c == 2 ? 1 : 0;
    ValueId at420 = pixel, at422 = pixel, yuyv = o.Mul(pixel, o.I(2));
    if (c > 0) {
      at420 = o.Add(o.Add(area, o.Mul(o.Half(sy), w)), o.Add(pair, o.I(second)));
      at422 = o.Add(o.Add(area, o.Mul(sy, w)), o.Add(pair, o.I(second)));
      yuyv = o.Add(o.Mul(o.Mul(sy, w), o.I(2)), o.Add(o.Mul(pair, o.I(2)), o.I(second ? 3 : 1)));
    }
    const ValueId at =
        o.Add(start, Pick(format, {{1, at420}, {3, at3}, {4, pixel}, {8, yuyv}, {9, at422}}, at4));
    const ValueId last =
        o.e.Cast(o.e.Op("Squeeze", {o.e.Exprs({o.e.Dims(bytes)[0] - 1})}), DType::kI32);
    channels.push_back(o.e.Cast(o.e.Op("Gather", {bytes, o.Clamp(at, o.I(0), last)}), DType::kI32));
  }
  return channels;
}

// Of four channels the first goes last; then R and B, or U and V.
void DynamicPicture::Swap(ValueId format, Channels& channels) {
  const ValueId four =
      o.e.Op("Or", {o.e.Op("Or", {o.Is(format, 2), o.Is(format, 7)}), o.Is(format, 10)});
  const ValueId ax = Both(four, o.Is(Int(kAx), 1));
  const Channels in = channels;
  for (int c = 0; c < 4; ++c) channels[c] = o.Where(ax, in[(c + 1) % 4], in[c]);
  const ValueId rb = o.Is(Int(kRbuv), 1),
                rgb = o.e.Op("Or",
                             {o.e.Op("Or", {o.Is(format, 2), o.Is(format, 3)}), o.Is(format, 7)});
  const ValueId late = Both(four, o.e.Op("Not", {ax}));  // colours start at channel 1
  const auto swap = [&](ValueId condition, int a, int b) {
    const ValueId all = Both(rb, condition), va = channels[a], vb = channels[b];
    channels[a] = o.Where(all, vb, va);
    channels[b] = o.Where(all, va, vb);
  };
  const ValueId early = o.e.Op("Not", {late}), yuv = o.e.Op("Not", {rgb});
  swap(Both(early, rgb), 0, 2);
  swap(Both(early, yuv), 1, 2);
  swap(Both(late, rgb), 1, 3);
  swap(Both(late, yuv), 2, 3);
}

// The colour conversion, where it is wanted.
void DynamicPicture::Convert(Channels& channels) {
  const ValueId csc = o.Is(Int(kCsc), 1);
  const Channels in = channels;
  const Channels bias{Int(kInputBias), Int(kInputBias + 1), Int(kInputBias + 2)};
  for (int i = 0; i < 3; ++i) {
    const int m = kMatrix + 3 * i;
    channels[i] = o.Where(
        csc, o.Csc(in, {Int(m), Int(m + 1), Int(m + 2)}, bias, Int(kOutputBias + i)), in[i]);
  }
}

ValueId DynamicPicture::Build(int64_t model_channels, DType to, const std::string& layout) {
  const ValueId format = Int(kFormat), w = Int(kSrcW), h = Int(kSrcH), crop = o.Is(Int(kCrop), 1);
  const ValueId pad = o.Is(Int(kPadding), 1), zero = o.I(0), one = o.I(1);
  const auto when = [&](ValueId c, int field, ValueId otherwise) {
    return o.Where(c, Int(field), otherwise);
  };
  // Coordinates in the cropped picture, and in the source.
  const ValueId y = o.Sub(Coordinate(target.h, {1, target.h, 1}), when(pad, kTop, zero));
  const ValueId x = o.Sub(Coordinate(target.w, {1, 1, target.w}), when(pad, kLeft, zero));
  const auto within = [&](ValueId v, ValueId size) {
    return Both(o.e.Op("LessOrEqual", {zero, v}), o.e.Op("Less", {v, size}));
  };
  const ValueId inside =
      Both(within(y, when(crop, kCropSizeH, h)), within(x, when(crop, kCropSizeW, w)));
  const ValueId sy =
      o.Clamp(o.Add(y, when(crop, kCropH, zero)), zero, o.e.Op("Max", {o.Sub(h, one), zero}));
  const ValueId sx =
      o.Clamp(o.Add(x, when(crop, kCropW, zero)), zero, o.e.Op("Max", {o.Sub(w, one), zero}));
  Channels channels = Read(format, w, h, sx, sy);
  Swap(format, channels);
  Convert(channels);
  channels.resize(static_cast<size_t>(model_channels));
  const int64_t axis = layout == "NHWC" ? 3 : 1;
  for (int c = 0; c < static_cast<int>(channels.size()); ++c) {
    const ValueId v =
        o.Normalise(channels[c], Float(kMean + c), Float(kMin + c), Float(kVar + c), to);
    channels[c] = o.e.Op("Unsqueeze", {o.Where(inside, v, o.e.Scalar(to, 0)), o.e.Ints({axis})});
  }
  return o.e.Op("Concat", channels, {{"axis", axis}});
}

// The size of the source picture in the file or, where it gives none, the one that gives the
// model's.
Picture SourceOf(const AippConfig& c, Picture model) {
  Picture p = model;
  if (c.Int("padding")) {
    p.h = p.h - (c.Int("top_padding_size") + c.Int("bottom_padding_size"));
    p.w = p.w - (c.Int("left_padding_size") + c.Int("right_padding_size"));
  }
  if (c.Int("rotation_angle") % 180) std::swap(p.h, p.w);
  if (c.Int("src_image_size_h")) p.h = c.Int("src_image_size_h");
  if (c.Int("src_image_size_w")) p.w = c.Int("src_image_size_w");
  return p;
}

bool SameDims(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), ProvablyEq);
}

std::string Text(const std::vector<Expr>& dims) {
  std::vector<std::string> texts;
  for (Expr d : dims) texts.push_back(ToString(d));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

// How many the picture gives.
int64_t ChannelsOf(const AippConfig& c) {
  return c.dynamic                       ? 4
         : c.input_format == "YUV400_U8" ? 1
         : IsRaw(c.input_format)         ? 1
         : c.input_format == "XRGB8888_U8" || c.input_format == "ARGB8888_U8" ||
                 c.input_format == "AYUV444_U8"
             ? 4
             : 3;
}

}  // namespace

Fault InsertAipp(AippConfig& c, const std::string& layout, Graph* g) {
  const int input = AippInput(c, *g);
  if (input < 0)
    return Bad(fmt::format("no input is called {} or has the number {}", c.related_input_name,
                           c.Int("related_input_rank")));
  const ValueId old = g->inputs[input];
  const std::string name = g->value(old).name;
  const TensorType type = c.model = g->value(old).type;
  if (type.dims.size() != 4 || (layout != "NCHW" && layout != "NHWC"))
    return Bad(fmt::format("input {} must be a picture in NCHW or NHWC", name));
  if (type.dtype != DType::kF32 && type.dtype != DType::kF16 && type.dtype != DType::kU8 &&
      type.dtype != DType::kI8)
    return Bad(fmt::format("input {} has the type {}", name, Name(type.dtype)));
  const bool nhwc = layout == "NHWC";
  const Expr channels = type.dims[nhwc ? 3 : 1];
  const Picture model{type.dims[0], type.dims[nhwc ? 1 : 2], type.dims[nhwc ? 2 : 3]};
  const Picture source = SourceOf(c, model);
  const int64_t available = ChannelsOf(c);
  if (!channels.IsConst() || channels.value() > available || channels.value() < 1)
    return Bad(fmt::format("input {} has {} channels, the picture has {}", name, ToString(channels),
                           available));
  const std::vector<Expr> dims = c.dynamic ? std::vector<Expr>{c.Int("max_src_image_size")}
                                           : StorageDims(c.input_format, source);
  for (Expr d : dims)
    if (!d.IsConst() && !d.IsSymbol())
      return Bad(fmt::format("input {}: the picture's dims {} follow from a dynamic size", name,
                             Text(dims)));

  g->value(old).name = name + ".aipp";
  const ValueId bytes = g->AddInput(name, {});
  g->value(bytes).type.dtype = !IsRaw(c.input_format)      ? DType::kU8
                               : c.input_format == "RAW24" ? DType::kU32
                                                           : DType::kU16;
  g->value(bytes).type.dims = dims;
  g->inputs.pop_back();
  g->inputs[input] = bytes;
  ValueId record = kNone;
  if (c.dynamic) {
    record = g->AddInput(kAippInput, {});
    g->value(record).type.dtype = DType::kF32;
    g->value(record).type.dims = {model.n, kAippNumbers};
  }
  // A node that is replaced at once: its output is the old input.
  const NodeId node = g->AddNode(*FindOp("", "Identity"), "aipp_" + name, {bytes}, 0);
  g->node(node).outputs = {old};
  g->value(old).producer = node;
  std::erase(g->order, node);
  g->order.insert(g->order.begin(), node);
  ExpandBuilder e(*g, node);
  const Ops o{e};
  const ValueId result =
      c.dynamic
          ? DynamicPicture{o, bytes, record, model}.Build(channels.value(), type.dtype, layout)
          : StaticPicture(o, c, bytes, source, channels.value(), type.dtype, layout);
  if (result == kNone) return Bad(fmt::format("input {}: {}", name, g->model->expand_fault));
  const std::vector<Expr> made = e.Dims(result);
  if (!SameDims(made, type.dims))
    return Bad(fmt::format("input {}: the result has the dims {}, the model wants {}", name,
                           Text(made), Text(type.dims)));
  if (!e.Done({result})) return Bad(fmt::format("input {}: {}", name, g->model->expand_fault));
  const std::vector<NodeId> order = g->order;
  for (NodeId n : order)
    if (g->node(n).name.starts_with("aipp_") && !g->node(n).dead)
      if (Status s = ExpandNode(*g, n); !s.ok()) return Bad(s.message());
  return {};
}

}  // namespace ge
