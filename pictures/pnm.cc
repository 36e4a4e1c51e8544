// PNM: binary grey (P5) and colour (P6). A header of four words, then rows of samples, of two bytes
// if the largest sample is over 255.
#include <algorithm>
#include <cctype>

#include "pictures/formats.h"

namespace ge::pictures {
namespace {

// The next number of the header, after white space and comments; -1 if there is none.
int64_t Number(File file, size_t* at) {
  const auto more = [&] { return *at < file.size(); };
  while (more() && (std::isspace(file[*at]) || file[*at] == '#')) {
    if (file[*at] == '#')
      while (more() && file[*at] != '\n') ++*at;
    else
      ++*at;
  }
  if (!more() || !std::isdigit(file[*at])) return -1;
  int64_t n = 0;
  for (; more() && std::isdigit(file[*at]); ++*at)
    n = std::min<int64_t>(n * 10 + file[*at] - '0', kMostPixels);
  return n;
}

}  // namespace

std::string DecodePnm(File file, Raster* r) {
  size_t at = 2;
  const int64_t width = Number(file, &at), height = Number(file, &at), most = Number(file, &at);
  if (most < 1 || most > 65535) return "a damaged PNM file";
  if (std::string why = Prepare(height, width, file[1] == '5' ? 1 : 3, r); !why.empty()) return why;
  ++at;  // one white space
  const size_t bytes = most > 255 ? 2 : 1;
  if (at > file.size() || file.size() - at < r->pixels.size() * bytes)
    return "a PNM file cut short";
  for (uint8_t& pixel : r->pixels) {
    int64_t v = file[at];
    if (bytes == 2) v = v << 8 | file[at + 1];
    at += bytes;
    pixel = static_cast<uint8_t>((std::min(v, most) * 255 + most / 2) / most);
  }
  return {};
}

}  // namespace ge::pictures
