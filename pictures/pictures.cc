// The face of libge_pictures.so: which format a file has, and the order of the channels.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "abi/picture.h"
#include "pictures/formats.h"

namespace ge::pictures {

std::string Prepare(int64_t height, int64_t width, int channels, Raster* r) {
  if (height < 1 || width < 1 || height > kMostPixels / width)
    return "a picture of " + std::to_string(height) + " x " + std::to_string(width) +
           " pixels; at most " + std::to_string(kMostPixels) + " pixels are decoded";
  r->height = height;
  r->width = width;
  r->channels = channels;
  r->pixels.resize(static_cast<size_t>(height * width * channels));
  return {};
}

namespace {

bool StartsWith(File file, std::string_view magic, size_t at = 0) {
  return file.size() >= at + magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin() + at,
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

std::string Decode(File file, Raster* r) {
  using namespace std::string_view_literals;
  if (StartsWith(file, "\xff\xd8\xff"sv)) return DecodeJpeg(file, r);
  if (StartsWith(file, "\0\0\0\x0cjP  \r\n\x87\n"sv) || StartsWith(file, "\xff\x4f\xff\x51"sv))
    return DecodeJpeg2000(file, r);
  if (StartsWith(file, "II*\0"sv) || StartsWith(file, "MM\0*"sv)) return DecodeTiff(file, r);
  if (StartsWith(file, "RIFF"sv) && StartsWith(file, "WEBP"sv, 8)) return DecodeWebP(file, r);
  if (StartsWith(file, "BM"sv) || StartsWith(file, "\x89PNG"sv)) return DecodeByStb(file, r);
  if (StartsWith(file, "P5"sv) || StartsWith(file, "P6"sv)) return DecodePnm(file, r);
  return "unknown format; BMP, JPEG, JPEG 2000, PNG, PNM (binary), TIFF and WebP are known";
}

// Luma of ITU-R 601 in 16 bits of fraction.
uint8_t Grey(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

void WritePixels(const Raster& r, ge_picture_order order, uint8_t* out) {
  const int64_t count = r.height * r.width;
  for (int64_t p = 0; p < count; ++p) {
    const uint8_t* in = &r.pixels[static_cast<size_t>(p * r.channels)];
    if (order == GE_PICTURE_GREY) {
      out[p] = r.channels == 1 ? in[0] : Grey(in);
      continue;
    }
    for (int c = 0; c < 3; ++c)
      out[3 * p + (order == GE_PICTURE_BGR ? 2 - c : c)] = in[r.channels == 1 ? 0 : c];
  }
}

}  // namespace
}  // namespace ge::pictures

extern "C" {

__attribute__((visibility("default"))) const char* ge_decode_picture(const void* file,
                                                                     int64_t bytes,
                                                                     ge_picture_order order,
                                                                     ge_picture* picture) {
  using namespace ge::pictures;
  static thread_local std::string why;
  Raster r;
  why = Decode({static_cast<const uint8_t*>(file), static_cast<size_t>(bytes)}, &r);
  // Some libraries quote the file.
  std::replace_if(why.begin(), why.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (!why.empty()) return why.c_str();
  const int64_t size = r.height * r.width * (order == GE_PICTURE_GREY ? 1 : 3);
  *picture = {static_cast<uint8_t*>(std::malloc(static_cast<size_t>(size))), r.height, r.width};
  if (picture->pixels == nullptr) return "no memory for the pixels";
  WritePixels(r, order, picture->pixels);
  return nullptr;
}

__attribute__((visibility("default"))) void ge_free_picture(ge_picture* picture) {
  std::free(picture->pixels);
  picture->pixels = nullptr;
}

}  // extern "C"
