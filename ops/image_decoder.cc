// ImageDecoder: a file of bytes to [height, width, channels], both sizes found when it runs.
#include <fmt/format.h>

#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

Status InferImageDecoder(InferContext& c) {
  GE_TRY(CheckRank(c, 0, 1));
  if (c.In(0).dtype != DType::kU8)
    return c.Fault(fmt::format("input 0 is {}, but must be u8", Name(c.In(0).dtype)));
  const std::string format = c.Str("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    return c.Fault(fmt::format("pixel_format '{}' given, RGB, BGR or Grayscale allowed", format));
  c.Out(0, DType::kU8,
        {c.Fresh("height", 1), c.Fresh("width", 1), Expr(format == "Grayscale" ? 1 : 3)});
  return {};
}

const OpDef& kImageDecoder =
    Register({.name = "ImageDecoder", .infer = InferImageDecoder, .host = "ImageDecoder"});

}  // namespace
}  // namespace ge
