// See picture.h.

#include "tools/picture.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>

#define STB_IMAGE_IMPLEMENTATION
#define STBI_MAX_DIMENSIONS (1 << 15)
#include <stb/stb_image.h>
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#if __has_include(<stb/stb_image_resize2.h>)
#include <stb/stb_image_resize2.h>
#else
#include <stb/stb_image_resize.h>
#endif

namespace ge {
namespace {

void Resize(const unsigned char* in, int w, int h, unsigned char* out, int ow, int oh, int c) {
#if __has_include(<stb/stb_image_resize2.h>)
  stbir_resize_uint8_linear(in, w, h, 0, out, ow, oh, 0, c == 3 ? STBIR_RGB : STBIR_1CHANNEL);
#else
  stbir_resize_uint8(in, w, h, 0, out, ow, oh, 0, c);
#endif
}

}  // namespace

bool IsPicture(const std::string& path) {
  std::string end = path.substr(
      path.find_last_of('.') == std::string::npos ? path.size() : path.find_last_of('.'));
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return end == ".png" || end == ".jpg" || end == ".jpeg" || end == ".bmp";
}

Result<std::vector<float>> ReadPicture(const std::string& path, PictureFormat& f) {
  int w = 0, h = 0, c = 0;
  std::unique_ptr<unsigned char, decltype(&stbi_image_free)> raw(
      stbi_load(path.c_str(), &w, &h, &c, f.channels), &stbi_image_free);
  if (!raw) return Invalid(path + ": " + stbi_failure_reason());
  if (f.height <= 0) f.height = h;
  if (f.width <= 0)
    f.width = std::max<int64_t>(1, std::lround(static_cast<double>(w) * f.height / h));
  const int64_t pixels = f.height * f.width;
  std::vector<unsigned char> sized(static_cast<size_t>(pixels * f.channels));
  Resize(raw.get(), w, h, sized.data(), static_cast<int>(f.width), static_cast<int>(f.height),
         f.channels);
  std::vector<float> out(sized.size());
  for (int64_t p = 0; p < pixels; ++p)
    for (int k = 0; k < f.channels; ++k) {
      const int from = f.bgr ? f.channels - 1 - k : k;
      const float v = (static_cast<float>(sized[p * f.channels + from]) * f.scale - f.mean) / f.std;
      out[f.channels_first ? k * pixels + p : p * f.channels + k] = v;
    }
  return out;
}

}  // namespace ge
