// BMP and PNG by stb_image.
#include <climits>

#include "pictures/formats.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#include <stb/stb_image.h>

namespace ge::pictures {

std::string DecodeByStb(File file, Raster* r) {
  if (file.size() > INT_MAX) return "a file over 2 GB";
  const auto size = static_cast<int>(file.size());
  int w = 0, h = 0, channels = 0;
  if (!stbi_info_from_memory(file.data(), size, &w, &h, &channels)) return stbi_failure_reason();
  const int wanted = channels <= 2 ? 1 : 3;
  if (std::string why = Prepare(h, w, wanted, r); !why.empty()) return why;
  stbi_uc* pixels = stbi_load_from_memory(file.data(), size, &w, &h, &channels, wanted);
  if (pixels == nullptr) return stbi_failure_reason();
  r->pixels.assign(pixels, pixels + r->pixels.size());
  stbi_image_free(pixels);
  return {};
}

}  // namespace ge::pictures
