// One decoder per picture format. Each takes a whole file and gives rows of pixels from the top, in
// one byte per channel; a fault is a reason in words, never an exception or an exit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ge::pictures {

using File = std::span<const uint8_t>;

struct Raster {
  int64_t height = 0, width = 0;
  int channels = 3;  // 1: grey, 3: red, green, blue
  std::vector<uint8_t> pixels;
};

// A header may claim any size: larger pictures are refused before memory is taken.
inline constexpr int64_t kMostPixels = int64_t{1} << 28;

// "" or the reason. Sets the raster's size and takes its memory.
std::string Prepare(int64_t height, int64_t width, int channels, Raster* r);

std::string DecodeJpeg(File file, Raster* r);
std::string DecodeJpeg2000(File file, Raster* r);
std::string DecodeTiff(File file, Raster* r);
std::string DecodeWebP(File file, Raster* r);
std::string DecodePnm(File file, Raster* r);
std::string DecodeByStb(File file, Raster* r);  // BMP, PNG

}  // namespace ge::pictures
