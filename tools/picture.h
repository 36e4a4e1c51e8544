// Pictures (PNG, JPEG, BMP) as float tensors. Decoding and resizing are stb's.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace ge {

struct PictureFormat {
  int64_t height = 0, width = 0;  // of the result; width 0 keeps the aspect ratio
  bool channels_first = true;     // CHW, else HWC
  bool bgr = false;
  int channels = 3;                             // 1 or 3
  float scale = 1.0f / 255, mean = 0, std = 1;  // (v * scale - mean) / std
};
// pixels of 1 x (C x H x W | H x W x C); format.width is set to the width used.
Result<std::vector<float>> ReadPicture(const std::string& path, PictureFormat& format);
bool IsPicture(const std::string& path);

}  // namespace ge
