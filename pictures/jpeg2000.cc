// JPEG 2000 by OpenJPEG: files (JP2) and bare code streams.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "pictures/formats.h"

namespace ge::pictures {
namespace {

struct Source {
  File file;
  size_t at = 0;
};

OPJ_SIZE_T Read(void* to, OPJ_SIZE_T bytes, void* user) {
  auto* s = static_cast<Source*>(user);
  const size_t n = std::min<size_t>(bytes, s->file.size() - s->at);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, s->file.data() + s->at, n);
  s->at += n;
  return n;
}
OPJ_OFF_T Skip(OPJ_OFF_T bytes, void* user) {
  auto* s = static_cast<Source*>(user);
  if (bytes < 0) return -1;
  const size_t n = std::min<size_t>(static_cast<size_t>(bytes), s->file.size() - s->at);
  s->at += n;
  return static_cast<OPJ_OFF_T>(n);
}
OPJ_BOOL Seek(OPJ_OFF_T to, void* user) {
  auto* s = static_cast<Source*>(user);
  if (to < 0 || static_cast<size_t>(to) > s->file.size()) return OPJ_FALSE;
  s->at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

// A sample in 8 bits, unsigned.
uint8_t Byte(const opj_image_comp_t& c, size_t at) {
  int64_t v = c.data[at] + (c.sgnd ? int64_t{1} << (c.prec - 1) : 0);
  if (c.prec > 8) v >>= c.prec - 8;
  if (c.prec < 8) v = v * 255 / ((1 << c.prec) - 1);
  return static_cast<uint8_t>(std::clamp<int64_t>(v, 0, 255));
}

// Luma and two differences of chroma to red, green, blue (ITU-R 601, full range).
void FromLuma(uint8_t* p) {
  const double y = p[0], b = p[1] - 128.0, r = p[2] - 128.0;
  const double rgb[] = {y + 1.402 * r, y - 0.344136 * b - 0.714136 * r, y + 1.772 * b};
  for (int c = 0; c < 3; ++c) p[c] = static_cast<uint8_t>(std::clamp(rgb[c] + 0.5, 0.0, 255.0));
}

std::string ToRaster(const opj_image_t& image, Raster* r) {
  const bool grey = image.numcomps < 3;
  const opj_image_comp_t& first = image.comps[0];
  if (std::string why = Prepare(first.h, first.w, grey ? 1 : 3, r); !why.empty()) return why;
  for (int c = 0; c < r->channels; ++c) {
    const opj_image_comp_t& comp = image.comps[c];
    if (comp.data == nullptr || comp.w == 0 || comp.h == 0 || comp.prec > 31)
      return "a JPEG 2000 file without pixels";
    for (int64_t y = 0; y < r->height; ++y)
      for (int64_t x = 0; x < r->width; ++x) {  // a coarser channel is repeated
        const size_t at = static_cast<size_t>(y * comp.h / first.h) * comp.w +
                          static_cast<size_t>(x * comp.w / first.w);
        r->pixels[static_cast<size_t>((y * r->width + x) * r->channels + c)] = Byte(comp, at);
      }
  }
  if (!grey && image.color_space == OPJ_CLRSPC_SYCC)
    for (size_t p = 0; p < r->pixels.size(); p += 3) FromLuma(&r->pixels[p]);
  return {};
}

}  // namespace

std::string DecodeJpeg2000(File file, Raster* r) {
  Source source{file};
  const std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)> stream(
      opj_stream_create(1 << 16, OPJ_TRUE), &opj_stream_destroy);
  const std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)> codec(
      opj_create_decompress(file[0] == 0 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), &opj_destroy_codec);
  if (!stream || !codec) return "no memory for a JPEG 2000 decoder";
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_stream_set_read_function(stream.get(), Read);
  opj_stream_set_skip_function(stream.get(), Skip);
  opj_stream_set_seek_function(stream.get(), Seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* raw = nullptr;
  bool ok = opj_setup_decoder(codec.get(), &parameters) &&
            opj_read_header(stream.get(), codec.get(), &raw);
  const std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)> image(raw, &opj_image_destroy);
  ok = ok && raw->numcomps > 0;
  if (ok)  // before the library takes memory by the header's word
    if (std::string why = Prepare(raw->comps[0].h, raw->comps[0].w, 1, r); !why.empty()) return why;
  ok = ok && opj_decode(codec.get(), stream.get(), raw) &&
       opj_end_decompress(codec.get(), stream.get());
  return ok ? ToRaster(*image, r) : "a damaged JPEG 2000 file";
}

}  // namespace ge::pictures
