// TIFF by libtiff, which reads from memory through callbacks.
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "pictures/formats.h"

namespace ge::pictures {
namespace {

struct Source {
  File file;
  uint64_t at = 0;
};

tmsize_t Read(thandle_t handle, void* to, tmsize_t bytes) {
  auto* s = static_cast<Source*>(handle);
  const uint64_t left = s->at < s->file.size() ? s->file.size() - s->at : 0;
  const uint64_t n = std::min<uint64_t>(left, static_cast<uint64_t>(std::max<tmsize_t>(bytes, 0)));
  if (n > 0) std::memcpy(to, s->file.data() + s->at, n);
  s->at += n;
  return static_cast<tmsize_t>(n);
}
tmsize_t Write(thandle_t, void*, tmsize_t) { return 0; }
toff_t Seek(thandle_t handle, toff_t to, int whence) {
  auto* s = static_cast<Source*>(handle);
  s->at = to + (whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->file.size() : 0);
  return s->at;
}
int Close(thandle_t) { return 0; }
toff_t Size(thandle_t handle) { return static_cast<Source*>(handle)->file.size(); }
int Map(thandle_t, void**, toff_t*) { return 0; }
void Unmap(thandle_t, void*, toff_t) {}

}  // namespace

std::string DecodeTiff(File file, Raster* r) {
  TIFFSetErrorHandler(nullptr);  // it would print
  TIFFSetWarningHandler(nullptr);
  Source source{file};
  const std::unique_ptr<TIFF, decltype(&TIFFClose)> tiff(
      TIFFClientOpen("picture", "rm", &source, Read, Write, Seek, Close, Size, Map, Unmap),
      &TIFFClose);
  if (!tiff) return "a damaged TIFF file";
  uint32_t w = 0, h = 0;
  uint16_t samples = 1, photometric = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &w);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &h);
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetField(tiff.get(), TIFFTAG_PHOTOMETRIC, &photometric);
  const bool grey = samples <= 2 && photometric <= PHOTOMETRIC_MINISBLACK;
  if (std::string why = Prepare(h, w, grey ? 1 : 3, r); !why.empty()) return why;
  std::vector<uint32_t> pixels(static_cast<size_t>(r->height * r->width));
  if (!TIFFReadRGBAImageOriented(tiff.get(), w, h, pixels.data(), ORIENTATION_TOPLEFT, 1))
    return "a damaged TIFF file, or one of a kind that is not decoded";
  uint8_t* out = r->pixels.data();
  for (uint32_t p : pixels) {
    *out++ = static_cast<uint8_t>(TIFFGetR(p));
    if (grey) continue;
    *out++ = static_cast<uint8_t>(TIFFGetG(p));
    *out++ = static_cast<uint8_t>(TIFFGetB(p));
  }
  return {};
}

}  // namespace ge::pictures
