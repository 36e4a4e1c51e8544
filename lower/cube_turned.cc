// Results of rank 3 in ND. See TurnedOutput.
#include "lower/cube_conv.h"

namespace ge {

using tile::LoopKind;

namespace {

constexpr int64_t kLeast = 4096;                   // elements that are worth another kernel
constexpr int64_t kChannels = 16, kPixels = 1024;  // of a task that turns

}  // namespace

TurnedOutput::TurnedOutput(CubeBuild& build, const ConvShape& s) : build_(build), s_(s) {
  if (s.rank != 3 || s.transposed || s.o.value() < kChannels || HintValue(s.ow) < kChannels) return;
  if (s.o.value() * HintValue(s.ow) < kLeast) return;
  for (ValueId v : build.region.outputs)
    if (!build.g.value(v).type.layout.IsNd()) return;
  pitch_ = CeilOf(s.o.value(), kChannels) * kChannels + kChannels;  // no power of two
  temp_ = build.AddTemp(s.n * s.ow * (pitch_ * 4));
}

void TurnedOutput::Declare(LoweringContext& c) {
  if (temp_ < 0) return;
  arg_ =
      c.AddArg({KernelArg::Kind::kTemp, temp_}, "turned", DType::kF32, s_.n * s_.ow * pitch_, true);
}

void TurnedOutput::Yield(LoweringContext& c, Expr n, Expr channel, Expr y, Expr x,
                         tile::Val value) const {
  if (temp_ < 0) return c.Yield(s_.y, s_.At(n, channel, y, x), value);
  c.b().Store(arg_, (n * s_.ow + x) * pitch_ + channel, value);
}

void TurnedOutput::Finish() {
  if (temp_ < 0) return;
  build_.AddKernel("turn result", [&](LoweringContext& c) {
    const int temp = c.AddArg({KernelArg::Kind::kTemp, temp_}, "turned", DType::kF32,
                              s_.n * s_.ow * pitch_, false);
    const Expr blocks = CeilDiv(s_.o, kChannels), parts = CeilDiv(s_.ow, kPixels);
    c.b().For("p", s_.n * blocks * parts, LoopKind::kParallel, [&](Expr p) {
      const Expr part = parts.IsConst(1) ? Expr(0) : Mod(p, parts),
                 rest = parts.IsConst(1) ? p : FloorDiv(p, parts);
      const Expr block = Mod(rest, blocks), n = FloorDiv(rest, blocks);
      const Expr channel = block * kChannels, pixel = part * kPixels;
      const Expr channels =
          DivisibleBy(s_.o, kChannels) ? Expr(kChannels) : Min(kChannels, s_.o - channel);
      c.b().For("c", channels, LoopKind::kSerial, [&](Expr i) {
        c.b().For("x", Min(kPixels, s_.ow - pixel), LoopKind::kVector, [&](Expr j) {
          const Expr o = channel + i, x = pixel + j;
          c.Yield(s_.y, s_.At(n, o, 0, x), c.b().Load(temp, (n * s_.ow + x) * pitch_ + o));
        });
      });
    });
  });
}

}  // namespace ge
