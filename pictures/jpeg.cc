// JPEG by libjpeg-turbo. Its errors leave by longjmp: nothing with a destructor is made between
// setjmp and the last call of the library.
#include <csetjmp>
#include <cstdio>
// cstdio must come before:
#include <jpeglib.h>

#include "pictures/formats.h"

namespace ge::pictures {
namespace {

struct Errors {
  jpeg_error_mgr base;  // first: the library hands out a pointer to it
  std::jmp_buf leave;
  char why[JMSG_LENGTH_MAX];
};

void Leave(j_common_ptr d) {
  auto* errors = reinterpret_cast<Errors*>(d->err);
  errors->base.format_message(d, errors->why);
  std::longjmp(errors->leave, 1);
}

// Warnings (of a file cut short, say) are no faults: the library fills in grey.
void Ignore(j_common_ptr, int) {}

}  // namespace

std::string DecodeJpeg(File file, Raster* r) {
  jpeg_decompress_struct d;
  Errors errors;
  std::string refused;
  d.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = Leave;
  errors.base.emit_message = Ignore;
  if (setjmp(errors.leave) != 0) {
    jpeg_destroy_decompress(&d);
    return errors.why;
  }
  jpeg_create_decompress(&d);
  jpeg_mem_src(&d, file.data(), file.size());
  jpeg_read_header(&d, TRUE);
  // Four inks come out as they are; as all writers do, they are taken to be inverted.
  const bool inks = d.num_components == 4;
  d.out_color_space = inks ? JCS_CMYK : d.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  refused = Prepare(d.image_height, d.image_width, d.num_components == 1 ? 1 : inks ? 4 : 3, r);
  if (!refused.empty()) {
    jpeg_destroy_decompress(&d);
    return refused;
  }
  jpeg_start_decompress(&d);
  const size_t row = r->pixels.size() / static_cast<size_t>(r->height);
  while (d.output_scanline < d.output_height) {
    uint8_t* at = &r->pixels[d.output_scanline * row];
    jpeg_read_scanlines(&d, &at, 1);
  }
  jpeg_finish_decompress(&d);
  jpeg_destroy_decompress(&d);
  if (!inks) return {};
  const size_t count = r->pixels.size() / 4;
  for (size_t p = 0; p < count; ++p)
    for (size_t c = 0; c < 3; ++c)
      r->pixels[3 * p + c] =
          static_cast<uint8_t>((r->pixels[4 * p + c] * r->pixels[4 * p + 3] + 127) / 255);
  r->channels = 3;
  r->pixels.resize(3 * count);
  return {};
}

}  // namespace ge::pictures
