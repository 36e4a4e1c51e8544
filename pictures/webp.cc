// WebP by libwebp. Of an animation, which it does not decode alone, nothing.
#include <webp/decode.h>

#include "pictures/formats.h"

namespace ge::pictures {

std::string DecodeWebP(File file, Raster* r) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK)
    return "a damaged WebP file";
  if (features.has_animation) return "an animated WebP file; one picture is allowed";
  if (std::string why = Prepare(features.height, features.width, 3, r); !why.empty()) return why;
  const bool done = WebPDecodeRGBInto(file.data(), file.size(), r->pixels.data(), r->pixels.size(),
                                      features.width * 3) != nullptr;
  return done ? "" : "a damaged WebP file";
}

}  // namespace ge::pictures
